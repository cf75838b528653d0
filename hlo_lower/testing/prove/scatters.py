"""The bounded family of scatters: extents 0 to 3, up to 3 updates (or 2 by 2), windows that overlap.

A rule is tried on what its constraints admit of it. Which rule takes a module is the converter's to say; here only what
cannot be is left out, so that little is tried in vain.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import cache
from itertools import product
from math import prod
from typing import Any, Literal

from hlo_lower.base.registry import Rule
from hlo_lower.facts.scatter.facts import Dialect, Drops, InBounds, Offsets, Order, Parts, Strategy, Unique
from hlo_lower.facts.values.region import Combiner
from hlo_lower.lowering.scatter.one_window import SHORT
from hlo_lower.ops.subset import Subset
from hlo_lower.testing.fuzz.case import Case
from hlo_lower.testing.fuzz.case_forms import CaseForm
from hlo_lower.testing.fuzz.drawn_types import tensor_type
from hlo_lower.testing.fuzz.index_columns import DrawnColumn, Treatment
from hlo_lower.testing.fuzz.module_text import module_text
from hlo_lower.testing.fuzz.update_computations import Expr, UpdateComputation
from hlo_lower.testing.prove.proof_case import ProofCase


@dataclass(frozen=True)
class ProofBody:
    """An update computation, and what it is for."""

    name: str  # for messages
    combiner: Combiner  # as the region is classified
    region: UpdateComputation  # it
    operands: tuple[str, ...]  # the operands' element types; one may be narrower than the region's
    is_free: bool = False  # whether updates may be combined with each other first
    is_wide: bool = False  # whether it is only for rules that multiply, of which few take 8 bits


def _body(name: str, combiner: Combiner, *returns: Expr, **how: bool) -> ProofBody:
    elements = tuple(expr.element for expr in returns)
    return ProofBody(
        f"{name} {' and '.join(elements)}", combiner, UpdateComputation(elements, returns), elements, **how
    )


def _binary(op: str, combiner: Combiner, element: str, **how: bool) -> ProofBody:
    return _body(op, combiner, Expr(op, element, (Expr("current", element), Expr("update", element))), **how)


_C, _U = Expr("current", "f32"), Expr("update", "f32")
_D, _V = Expr("current", "f32", number=1), Expr("update", "f32", number=1)
_TRIPLED = Expr("multiply", "f32", (_C, Expr("constant", "f32", number=3)))

BODIES = (
    _body("assign", Combiner.ASSIGN, _U),
    _body("constant", Combiner.ASSIGN_CONSTANT, Expr("constant", "f32", number=2)),
    _binary("add", Combiner.ADD, "f32"),
    _binary("subtract", Combiner.SUB, "f32"),
    _binary("add", Combiner.ADD, "i8", is_free=True),
    _binary("add", Combiner.ADD, "i32", is_free=True, is_wide=True),
    _binary("subtract", Combiner.SUB, "i8", is_free=True),
    _binary("minimum", Combiner.MIN, "i8", is_free=True),
    _binary("maximum", Combiner.MAX, "i8", is_free=True),
    _binary("xor", Combiner.XOR, "i8", is_free=True),
    _binary("or", Combiner.OR, "i1", is_free=True),
    _binary("and", Combiner.AND, "i1", is_free=True),
    _body("negate", Combiner.UNARY, Expr("negate", "f32", (_C,))),
    _body("3 c - u", Combiner.GENERAL, Expr("subtract", "f32", (_TRIPLED, _U))),
    _body("assign", Combiner.ASSIGN, _U, Expr("update", "i8", number=1)),
    _body("c + v, d - u", Combiner.GENERAL, Expr("add", "f32", (_C, _V)), Expr("subtract", "f32", (_D, _U))),
    ProofBody("add f16 in f32", Combiner.ADD, UpdateComputation(("f32",), (Expr("add", "f32", (_C, _U)),)), ("f16",)),
    _body("nothing", Combiner.NO_OP, _C),
)


EXTENTS = (0, 1, 2, 3)
COUNTS = ((), (0,), (1,), (2,), (3,))
"""Scatter dims: none, which is one window, or up to three positions."""


def form_of(
    operand: tuple[int, ...],
    window: tuple[int | None, ...],
    indexed: tuple[int, ...],
    positions: tuple[int, ...],
    *,
    is_batched: bool = False,
    vector: Literal["last", "first", "implied"] = "last",
) -> CaseForm:
    """A form of the family, its scatter dims before its window dims.

    The window has an extent for each operand dim, None where the dim is inserted or batching; `indexed` are the operand
    dims of the components of the index vector. A batching dim is dim 0, counted by the first scatter dim. An "implied"
    index vector stands nowhere: it has one component.
    """
    count, inserted = (
        len(positions),
        tuple(d for d, w in enumerate(window) if w is None and not (is_batched and d == 0)),
    )
    return CaseForm(
        operand,
        tuple(1 if w is None else w for w in window),
        inserted,
        ((0, 0),) if is_batched else (),
        positions,
        tuple(map(DrawnColumn, indexed)),
        0 if vector == "first" else count,
        vector == "implied",
        tuple(range(count, count + sum(w is not None for w in window))),
    )


@cache
def form_text(form: CaseForm) -> str:
    """A form in a line."""
    sizes = "x".join(str(w) if d in form.kept_dims else "_" for d, w in enumerate(form.window))
    where = f"{'x'.join(map(str, form.positions))} windows" if form.positions else "1 window"
    dims = [column.dim for column in form.columns]
    return f"{'x'.join(map(str, form.operand))}: {where} of {sizes} at dims {dims}"


def is_vector_last(form: CaseForm) -> bool:
    """Whether the index vector stands behind the scatter dims."""
    return not form.implicit and form.index_vector_dim == len(form.positions)


PAIRS = ((2, 3), (3, 2), (3, 3), (2, 1), (0, 2))
"""Operand shapes of rank 2; the largest is written by two windows at most."""


def forms() -> Iterator[CaseForm]:
    """Every form of the family; the index tensor is an argument."""
    for size, count in product(EXTENTS, COUNTS):
        yield form_of((size,), (None,), (0,), count)
        yield from (form_of((size,), (w,), (0,), count) for w in (0, 1, 2, 3) if w <= size)
    for pair, count in product(PAIRS, COUNTS):
        if pair != (3, 3) or count != (3,):
            yield from _of_two(pair, count)
    for size, count in product((2, 3), ((), (2,), (3,))):
        yield form_of((size, 2), (None, 2), (0,), count, vector="first")
        yield form_of((size, 2), (None, 2), (0,), count, vector="implied")
    yield from _batched_forms()
    yield from (form_of(shape, (None, None), (0, 1), (2, 2)) for shape in ((2, 3), (3, 3)))


def _of_two(shape: tuple[int, int], count: tuple[int, ...]) -> Iterator[CaseForm]:
    """Rows, columns, points, and windows that overlap."""
    rows, columns = shape
    yield form_of(shape, (None, columns), (0,), count)
    yield form_of(shape, (rows, None), (1,), count)
    yield form_of(shape, (None, None), (0, 1), count)
    if min(shape) >= 1:
        yield form_of(shape, (None, None), (1, 0), count)
        # What no component is for begins at 0, and the window does not cover it.
        yield form_of(shape, (None, None), (1,), count)
        yield form_of(shape, (None, 1), (0,), count)
        yield form_of(shape, (1, min(columns, 2)), (0, 1), count)
    if min(shape) >= 2:
        yield form_of(shape, (2, 2), (0, 1), count)
        yield form_of(shape, (2, 1), (0,), count)


def _batched_forms() -> Iterator[CaseForm]:
    """One row or window for each coordinate of a batching dim."""
    for batches, size, is_first in product((1, 2, 3), (1, 2, 3), (False, True)):
        for window in (None, min(size, 2)):
            vector = "first" if is_first else "last"
            yield form_of((batches, size), (None, window), (1,), (batches,), is_batched=True, vector=vector)
    yield form_of((2, 2, 2), (None, None, 2), (1,), (2,), is_batched=True)


# --- where indices come from, so that the facts that a rule is for are proved of them ---
#
# A producer gives a form the columns of its index tensor (`hlo_lower.testing.fuzz.index_columns`), and where no column
# is of that kind the lines by which an argument is made of others.


ONE = frozenset({Subset.TILE, Subset.POINT, Subset.FULL})
SEVERAL = frozenset({Subset.FILTER, Subset.POINTS, Subset.WINDOWS})
BATCHES = SEVERAL | {Subset.BATCHED_TILE}
RUN = ONE | {Subset.ROWS}
NOTHING = frozenset({Subset.EMPTY})
ANYTHING = frozenset(Subset)

ANY_OFFSETS = frozenset(Offsets)
AT_RUN_TIME = frozenset({Offsets.RUNTIME})
KNOWN = ANY_OFFSETS - AT_RUN_TIME


@dataclass(frozen=True)
class Made:
    """How an argument of a module is made of another one."""

    name: str  # of what is made; an argument of the module as it is written
    # source, kind: the argument that takes its place, and its type
    source: str
    kind: str
    lines: str  # operations on `source` that give `name`


@dataclass(frozen=True)
class Indices:
    """Indices of a scatter, and what may be found of them."""

    name: str  # for messages
    form: CaseForm  # the scatter's, with the columns of its indices
    subsets: frozenset[Subset]  # what a scatter at them can be; of rules for nothing else nothing is tried
    # offsets, in_bounds, parts, unique: the same of other facts; None of in_bounds and unique: anything
    offsets: frozenset[Offsets] = ANY_OFFSETS
    in_bounds: InBounds | None = None
    parts: Parts = Parts.ONE
    unique: Unique | None = None
    flags: str = ""  # attributes of the scatter
    is_example: bool = True  # whether rules that do not ask for its facts are tried on it, too
    made: tuple[Made, ...] = ()  # arguments that are made of others


Producer = Callable[[CaseForm, str], Iterator[Indices]]


def _with_treatment(form: CaseForm, treatment: Treatment) -> CaseForm:
    return replace(form, columns=tuple(replace(column, treatment=treatment) for column in form.columns))


def _subsets_of(form: CaseForm) -> frozenset[Subset]:
    if prod(form.positions) == 1:
        return ONE
    return BATCHES if form.batching else SEVERAL


def runtime(form: CaseForm, index: str) -> Iterator[Indices]:
    """An argument, of which nothing is known; and the same with the flag that no element is written twice."""
    found = Indices("runtime", form, _subsets_of(form), AT_RUN_TIME, unique=Unique.UNKNOWN)
    yield found
    if prod(form.positions) > 1:
        flags = "unique_indices = true, "
        yield replace(found, name="claimed unique", unique=Unique.PROVED, flags=flags, is_example=False)


def clamped_argument(form: CaseForm, index: str) -> Iterator[Indices]:
    """An argument brought into bounds."""
    limits = [size - window for size, window in map(form.extent, form.columns)]
    if min(limits) >= 0:
        subsets = _subsets_of(form) if max(limits) else ANYTHING  # a start that is always 0 makes windows of one place
        yield Indices("clamped", _with_treatment(form, "clamped"), subsets, in_bounds=InBounds.ALWAYS)


def outside(form: CaseForm, index: str) -> Iterator[Indices]:
    """An argument brought to where nothing is."""
    beyond = _with_treatment(form, "clamped outside")
    yield Indices("outside", beyond, NOTHING, in_bounds=InBounds.NEVER, is_example=False)


def normalized_argument(form: CaseForm, index: str) -> Iterator[Indices]:
    """An argument whose negative values count from the end."""
    yield Indices("normalized", _with_treatment(form, "normalised"), _subsets_of(form), AT_RUN_TIME)


def constant(form: CaseForm, index: str) -> Iterator[Indices]:
    """Constants: ascending, descending, every second one, all the same, crossed, and some out of bounds."""
    count = prod(form.positions)
    if len(form.positions) > 1:
        return
    starts = {
        "ascending": range(count),
        "descending": range(count)[::-1],
        "every second": range(0, 2 * count, 2),
        "the same": [1] * count,
        "from -1": range(-1, count - 1),
        "crossed": [2 * n % 3 for n in range(count)],
        "down and out": [1, 0, 9][:count],
    }
    for name, own in starts.items():
        if not count or (count == 1 and name not in ("ascending", "the same", "from -1")):
            continue
        columns = [DrawnColumn(column.dim, "constant", values=tuple(own)) for column in form.columns]
        if len(columns) == 2 and name in ("ascending", "crossed"):
            columns[-1] = replace(columns[-1], values=(0,) * count)
        is_example = name == "crossed" or count == 1
        known = replace(form, columns=tuple(columns))
        yield Indices(f"constant, {name}", known, ANYTHING, KNOWN, is_example=is_example)


def _is_run(form: CaseForm) -> bool:
    """Whether there is one component, at one row of positions."""
    return len(form.columns) == 1 and len(form.positions) == 1 and is_vector_last(form)


def run(form: CaseForm, index: str) -> Iterator[Indices]:
    """A run of rows at a runtime base: up, down, and with negative ones from the end."""
    if not _is_run(form) or not form.positions[0]:
        return
    up, down = (replace(form, columns=(DrawnColumn(form.columns[0].dim, kind),)) for kind in ("run", "reversed"))
    yield Indices("run", up, RUN)
    yield Indices("run down", down, RUN)
    yield Indices("wrapped run", _with_treatment(up, "normalised"), RUN, parts=Parts.SEVERAL)


def per_batch(form: CaseForm, index: str) -> Iterator[Indices]:
    """A column that counts the batch, and one of runtime values."""
    is_pair = len(form.columns) == 2 and is_vector_last(form) and form.positions == form.operand[:1]
    if is_pair and not form.columns[0].dim:
        counted = replace(form, columns=(DrawnColumn(0, "coordinate"), form.columns[1]))
        yield Indices("per batch", counted, BATCHES | ONE, AT_RUN_TIME)


def _sort_text(name: str, given: str, kind: str, scalar: str) -> str:
    return (
        f'{name} = "stablehlo.sort"({given}) <{{dimension = 0 : i64, is_stable = true}}> ({{\n'
        f"^bb0(%a: {scalar}, %b: {scalar}):\n %l = stablehlo.compare LT, %a, %b, SIGNED : ({scalar}, {scalar})"
        f" -> tensor<i1>\n stablehlo.return %l : tensor<i1>\n}}) : ({kind}) -> {kind}"
    )


def sorted_values(form: CaseForm, index: str) -> Iterator[Indices]:
    """Runtime values in ascending order; and the order of runtime values, which is a permutation."""
    if not _is_run(form) or form.positions[0] < 2:
        return
    kind, scalar = tensor_type(form.indices, index), tensor_type((), index)
    ascending = Made("%i", "%given", kind, _sort_text("%i", "%given", kind, scalar))
    yield Indices("sorted", form, SEVERAL, AT_RUN_TIME, made=(ascending,))
    lines = (
        f"%numbers = stablehlo.iota dim = 0 : {kind}\n"
        f'%order, %i = "stablehlo.sort"(%given, %numbers) <{{dimension = 0 : i64, is_stable = true}}> ({{\n'
        f"^bb0(%a: {scalar}, %b: {scalar}, %y: {scalar}, %z: {scalar}):\n"
        f" %l = stablehlo.compare LT, %a, %b, SIGNED : ({scalar}, {scalar}) -> tensor<i1>\n"
        f" stablehlo.return %l : tensor<i1>\n}}) : ({kind}, {kind}) -> ({kind}, {kind})"
    )
    made = (Made("%i", "%given", kind, lines),)
    yield Indices("permutation", form, SEVERAL, AT_RUN_TIME, unique=Unique.PROVED, made=made)


def sorted_by_run(form: CaseForm, index: str) -> Iterator[Indices]:
    """Rows that ascend along one scatter dim, a run of columns along the other: in bounds, and in both orders."""
    if len(form.positions) != 2 or not is_vector_last(form):
        return
    scalar = tensor_type((), index)
    for dim in (0, 1):
        rows, most = tensor_type((form.positions[dim],), index), form.operand[1] - form.positions[1 - dim]
        ascending = (
            f"%zero = stablehlo.constant dense<0> : {scalar}\n"
            f"%last = stablehlo.constant dense<{form.operand[0] - 1}> : {scalar}\n"
            f"%inside = stablehlo.clamp %zero, %rows, %last : ({scalar}, {rows}, {scalar}) -> {rows}\n"
            f"{_sort_text('%sorted', '%inside', rows, scalar)}\n"
            f"%i0 = stablehlo.broadcast_in_dim %sorted, dims = [{dim}] : "
            f"({rows}) -> {tensor_type(form.positions, index)}"
        )
        inside = (
            f"%first = stablehlo.constant dense<0> : {scalar}\n%most = stablehlo.constant dense<{most}> : {scalar}\n"
            f"%i1 = stablehlo.clamp %first, %base, %most : {scalar}"
        )
        made = Made("%i0", "%rows", rows, ascending), Made("%i1", "%base", scalar, inside)
        along = replace(form, columns=(form.columns[0], DrawnColumn(form.columns[1].dim, "run", 1 - dim)))
        name = f"sorted by run, rows along dim {dim}"
        yield Indices(name, along, SEVERAL, AT_RUN_TIME, InBounds.ALWAYS, made=made)


PRODUCERS: tuple[Producer, ...] = (
    *(runtime, clamped_argument, outside, normalized_argument, constant, run),
    *(per_batch, sorted_values, sorted_by_run),
)
"""Every way in which the family makes indices."""


# --- the cases of a rule ---


SETTINGS: tuple[tuple[str, Literal["xla", "spec"]], ...] = (
    ("i8", "xla"),
    ("i8", "spec"),
    ("i32", "xla"),
    ("i32", "spec"),
)
"""Index types and policies."""

ONLY_ELEMENTS = frozenset({Drops.ELEMENTS})
COMPARING = frozenset({Strategy.MASK, Strategy.INVERSION, Strategy.REDUCTION, Strategy.DOT})
"""Forms that compare each row with each write: all at once, or in parts."""

ONLY_CONSTANT = frozenset({Offsets.CONSTANT})

SMALLEST = form_of((2,), (None,), (0,), (2,))
"""The form in which a rule is proved with every region that it takes."""


def scatter_cases(rule: Rule) -> Iterator[ProofCase]:
    """Every case that a rule for scatters may take.

    In rank 1 each form is tried with both index types under both policies, in rank 2 with each of them once. The
    regions that a rule takes come in turn, and all of them in the smallest form.
    """
    bodies = [body for body in BODIES if _takes_body(rule, body)]
    is_uniform = Strategy.MASK in rule.constraints.get("strategy", ())
    turn = 0
    for form, (index, oob) in product(forms(), SETTINGS):
        if _takes_policy(rule, oob) and not (len(form.operand) > 1 and _is_skipped(form, index, oob)):
            for indices in _indices(rule, form, index):
                turn += 1
                for body in bodies if form == SMALLEST else bodies[turn % len(bodies) :][:1]:
                    options = _options(rule, form, is_in_parts=turn % 4 == 0)
                    yield scatter_case(indices, body, index, oob, options, is_uniform=is_uniform)


def _is_skipped(form: CaseForm, index: str, oob: str) -> bool:
    """Every second setting of a form of more than one dim: each index type and each policy is there once."""
    is_odd = (sum(form.operand) + len(form.updates)) % 2
    return ((index == "i8") == (oob == "xla")) != is_odd


def _options(rule: Rule, form: CaseForm, *, is_in_parts: bool) -> dict[str, Any]:
    """Keywords of `hlo_lower.lower`: the rule preferred; now and then with small masks, if it takes them in parts."""
    found: dict[str, Any] = {"prefer": (rule.short_name,)}
    if COMPARING & rule.constraints.get("strategy", frozenset()) and is_in_parts and prod(form.positions) > 1:
        found["prefer"] = (rule.short_name, "mask_elements=2")
    if (
        ONLY_CONSTANT.issuperset(rule.constraints.get("offsets", Offsets))
        and Strategy.MANY in rule.constraints["strategy"]
    ):
        found["prefer"] = ("few_windows=1",)
    if Dialect.STABLEHLO not in rule.constraints.get("dialect", frozenset(Dialect)):
        found["target"] = "linalg"
    if rule.when is SHORT:
        found["prefer"] = (rule.short_name, "short_operand=4096")
    if Strategy.OWN_SCATTER in rule.constraints.get("strategy", ()):
        found["target"] = "iree"
    return found


def _takes(rule: Rule, fact: str, values: Iterable[Enum]) -> bool:
    accepted = rule.constraints.get(fact)
    return accepted is None or any(value in accepted for value in values)


def _takes_body(rule: Rule, body: ProofBody) -> bool:
    if not _takes(rule, "combiner", [body.combiner]):
        return False
    is_product = Strategy.DOT in rule.constraints.get("strategy", ())
    return (body.is_free or _takes(rule, "order", [Order.KEPT])) and body.is_wide == is_product


def _takes_policy(rule: Rule, oob: str) -> bool:
    """Whether a rule can be for a policy: only under "spec" are there single elements to drop."""
    return oob == "spec" or not ONLY_ELEMENTS.issuperset(rule.constraints.get("drops", Drops))


def _indices(rule: Rule, form: CaseForm, index: str) -> Iterator[Indices]:
    """The indices of a form that may have what a rule asks for."""
    for indices, facts in _all_indices(form, index):
        if all(_takes(rule, fact, values) for fact, values in facts.items()) and (
            indices.is_example or _asks(rule, indices)
        ):
            yield indices


@cache
def _all_indices(form: CaseForm, index: str) -> Sequence[tuple[Indices, Mapping[str, Iterable[Enum]]]]:
    """All indices of a form, each with what may be found of them: made once for the rules of a process."""
    return [
        (
            indices,
            {
                "subset": _subsets(indices, form),
                "parts": [indices.parts],
                "offsets": indices.offsets,
                "in_bounds": [indices.in_bounds] if indices.in_bounds else InBounds,
                "unique": [indices.unique] if indices.unique else Unique,
            },
        )
        for producer in PRODUCERS
        for indices in producer(form, index)
    ]


def _asks(rule: Rule, indices: Indices) -> bool:
    """Whether a rule is for what is particular of indices that are no example: constants, out of bounds, unique."""
    if indices.offsets == KNOWN:
        return Offsets.CONSTANT in rule.constraints.get("offsets", ())
    return "unique" in rule.constraints or Subset.EMPTY in rule.constraints["subset"]


def _subsets(indices: Indices, form: CaseForm) -> frozenset[Subset]:
    """What a scatter at indices can write: nothing, where there is nothing to write or to write to."""
    if not prod(form.positions) or not prod(form.operand) or not prod(form.updates):
        return NOTHING
    return indices.subsets


def scatter_case(
    indices: Indices,
    body: ProofBody,
    index: str,
    oob: Literal["xla", "spec"],
    options: Mapping[str, Any],
    *,
    is_uniform: bool = False,
) -> ProofCase:
    """The module of a scatter, with keywords of `hlo_lower.lower`; `is_uniform`: every update is the same element,
    an argument."""
    form, made = indices.form, list(indices.made)
    if is_uniform:
        for k, element in enumerate(body.operands):
            given, updates = tensor_type((), element), tensor_type(form.updates, element)
            spread = f"%w{k} = stablehlo.broadcast_in_dim %one{k}, dims = [] : ({given}) -> {updates}"
            made.append(Made(f"%w{k}", f"%one{k}", given, spread))

    def text() -> str:
        text = module_text([Case("", ("", ""), form, body.operands, body.region, index, "", (), 0)])
        text = text.replace("<{scatter_dimension_numbers", f"<{{{indices.flags}scatter_dimension_numbers")
        for one in made:
            text = _with_made(text, one)
        return text

    name = f"{form_text(form)}, {index} {indices.name}, {'one ' if is_uniform else ''}{body.name}, oob={oob}"
    return ProofCase(text, name, oob, options, bool(indices.flags))


def _with_made(text: str, made: Made) -> str:
    """A module, one of whose arguments is made of another one."""
    head, _, body = text.partition("{\n")
    before, _, behind = head.partition(f"{made.name}: ")
    kind = behind[: behind.index(">") + 1]
    return f"{before}{made.source}: {made.kind}{behind.removeprefix(kind)}{{\n{made.lines}\n{body}"
