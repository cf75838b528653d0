"""The families of gathers, for targets that take fewer and fewer of them, and of gathers and scatters of open size."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import product
from typing import Literal

from hlo_lower.base.registry import Rule
from hlo_lower.facts.gather.facts import GatherStrategy, TakenGather
from hlo_lower.facts.scatter.dynamic import Positions, WindowSizes
from hlo_lower.ir import mlir
from hlo_lower.ops.names import CONCATENATE, DYNAMIC_SLICE, GATHER, REDUCE, SCATTER
from hlo_lower.ops.quirks.moves import ORDERED_WINDOWS, ROWS
from hlo_lower.ops.targets.target import Target
from hlo_lower.testing.fuzz.case_forms import CaseForm
from hlo_lower.testing.fuzz.drawn_types import OPEN, tensor_type
from hlo_lower.testing.prove.proof_case import ProofCase, op_case
from hlo_lower.testing.prove.scatters import BODIES, forms, is_vector_last, runtime, scatter_case
from hlo_lower.verify.run import entry_function

_REFUSED = {SCATTER: "lowered", GATHER: "not taken"}

_CLAMPS_NOT = Target("clamps_not", refused={SCATTER: "lowered"}, gather="in_bounds")

TARGETS: Mapping[GatherStrategy, Target] = {
    GatherStrategy.EMPTY: Target("no_gather", refused=_REFUSED),
    GatherStrategy.FEW: Target("no_sums", refused={**_REFUSED, REDUCE: "not taken"}),
    GatherStrategy.SHORT_AXIS: Target("no_slices", refused={**_REFUSED, DYNAMIC_SLICE: "not taken"}),
    GatherStrategy.MANY: Target(
        "no_unroll",
        refused={**_REFUSED, CONCATENATE: "not taken", REDUCE: "not taken"},
    ),
}
"""For each form of a gather a target that leaves it as the only one."""


@dataclass(frozen=True)
class GatherShape:
    """The shapes and dimension numbers of a gather; positions stand first, the index vector last."""

    operand: tuple[int, ...]  # its shape
    window: tuple[int, ...]  # the slice sizes
    collapsed: tuple[int, ...]  # dims of extent 1 that the result lacks
    indexed: tuple[int, ...]  # the operand dims of the components
    positions: tuple[int, ...]  # the shape of the indices without the index vector
    is_batched: bool = False  # whether dim 0 of the operand is a batching dim

    @property
    def offsets(self) -> tuple[int, ...]:
        """The extents of the window that the result has."""
        gone = {*self.collapsed, *((0,) if self.is_batched else ())}
        return tuple(w for d, w in enumerate(self.window) if d not in gone)

    @property
    def indices(self) -> tuple[int, ...]:
        """The indices' shape."""
        return (*self.positions, len(self.indexed))

    @property
    def numbers(self) -> str:
        """The dimension numbers."""
        batching, first = [0] if self.is_batched else [], len(self.positions)
        fields = {
            "offset_dims": [first + k for k in range(len(self.offsets))],
            "collapsed_slice_dims": list(self.collapsed),
            "operand_batching_dims": batching,
            "start_indices_batching_dims": batching,
            "start_index_map": list(self.indexed),
            "index_vector_dim": first,
        }
        return f"#stablehlo.gather<{', '.join(f'{name} = {value}' for name, value in fields.items())}>"


def shapes() -> Iterator[GatherShape]:
    """Every gather of the family."""
    counts = ((), (0,), (1,), (2,), (3,))
    for size, count in product((1, 2, 3), counts):
        yield GatherShape((size,), (1,), (0,), (0,), count)
        yield from (GatherShape((size,), (w,), (), (0,), count) for w in range(size + 1))
    for (rows, columns), count in product(((2, 3), (3, 2), (3, 3), (1, 2)), counts):
        yield GatherShape((rows, columns), (1, columns), (0,), (0,), count)
        yield GatherShape((rows, columns), (1, 1), (0, 1), (0, 1), count)
        yield GatherShape((rows, columns), (1, 1), (0, 1), (1, 0), count)
        yield GatherShape((rows, columns), (1, 2), (), (0, 1), count)
        yield GatherShape((rows, columns), (1, columns - 1), (0,), (0,), count)
    for batches, size in product((1, 2, 3), (1, 2, 3)):
        yield GatherShape((batches, size), (1, 1), (1,), (1,), (batches,), is_batched=True)


def gather_cases(rule: Rule) -> Iterator[ProofCase]:
    """Every case that a rule for gathers may take."""
    [*forms] = rule.constraints.get("strategy", [GatherStrategy.MANY])
    is_not_taken = TakenGather.NOT in rule.constraints["taken"]
    target = TARGETS[GatherStrategy(forms[0])] if is_not_taken else _CLAMPS_NOT
    if TakenGather.ORDERED in rule.constraints["taken"]:
        target = Target("npu", refused_forms=[ORDERED_WINDOWS.word])
    if TakenGather.AT_OTHERS in rule.constraints["taken"]:
        target = Target("npu", refused={SCATTER: "lowered"}, op_dtypes={GATHER: ["i32", "f32", "i1"]})
    if TakenGather.ROWS in rule.constraints["taken"]:
        target = Target("npu", refused_forms=[ROWS.word])
    is_clamped = TakenGather.WHOLE in rule.constraints["taken"]
    for shape, index, element in product(shapes(), ("i8", "i32", "ui8"), ("f32", "i8", "i1")):
        yield gather_case(shape, index, element, target, is_clamped=is_clamped)


def gather_case(shape: GatherShape, index: str, element: str, target: Target, *, is_clamped: bool) -> ProofCase:
    """The module of a gather; `is_clamped`: it brings the starts into bounds."""
    operand, starts = tensor_type(shape.operand, element), tensor_type(shape.indices, index)
    result = tensor_type((*shape.positions, *shape.offsets), element)
    limits = [shape.operand[d] - shape.window[d] for d in shape.indexed]
    low, high = (tensor_type((len(limits),), index), tensor_type((len(limits),), index))
    lines, taken = "", "%i"
    if is_clamped:
        dim = len(shape.positions)
        lines = (
            f"%zero = stablehlo.constant dense<0> : {low}\n%last = stablehlo.constant dense<{limits}> : {high}\n"
            f"%low = stablehlo.broadcast_in_dim %zero, dims = [{dim}] : ({low}) -> {starts}\n"
            f"%high = stablehlo.broadcast_in_dim %last, dims = [{dim}] : ({high}) -> {starts}\n"
            f"%j = stablehlo.clamp %low, %i, %high : {starts}\n"
        )
        taken = "%j"
    sizes = ", ".join(map(str, shape.window))
    lines += (
        f'%r = "stablehlo.gather"(%o, {taken}) <{{dimension_numbers = {shape.numbers}, '
        f"slice_sizes = array<i64: {sizes}>}}> : ({operand}, {starts}) -> {result}"
    )
    told = f"{'x'.join(map(str, shape.operand))}: windows {list(shape.window)} at dims {list(shape.indexed)}"
    name = f"{told}, positions {list(shape.positions)}, {index} {'clamped' if is_clamped else 'runtime'}, {element}"
    return op_case(name, f"%o: {operand}, %i: {starts}", result, lines, target)


# --- scatters and gathers with dims of open size: lowered as such, and proved at each size of the family ---
#
# What is proved is the lowered module after jaxlib's own shape refinement, against the module of static shape.


_TAKES_GATHERS = Target("no_f64", refused={SCATTER: "lowered"}, refused_dtypes={"f64": "not there"})

POLICIES: tuple[Literal["xla", "spec"], ...] = ("xla", "spec")


def dynamic_scatter_cases(rule: Rule) -> Iterator[ProofCase]:
    """Every case that a rule for scatters of dynamic shape may take."""
    bodies = [body for body in BODIES if body.combiner in rule.constraints["combiner"] and not body.is_wide]
    is_one = Positions.ONE in rule.constraints.get("positions", frozenset(Positions) - {Positions.ONE})
    opens_windows = WindowSizes.STATIC not in rule.constraints.get("window_sizes", ())
    turn = 0
    for form, index, oob in product(forms(), ("i8", "i32"), POLICIES):
        if (not form.positions) != is_one or not is_vector_last(form) or (len(form.operand) > 1 and index == "i32"):
            continue
        turn += 1
        body = bodies[turn % len(bodies)]
        opened = _open_extents(form, opens_windows=opens_windows)
        case, lowered = (scatter_case(next(runtime(f, index)), body, index, oob, {}) for f in (form, opened))
        if opened != form:
            yield replace(case, dynamic_text=lowered.text)


def _open_extents(form: CaseForm, *, opens_windows: bool) -> CaseForm:
    """The form with open extents: all of them, or those of indexed dims that the window has.

    The latter leave what a position reads and writes of known size.
    """
    if opens_windows:
        operand, positions = (OPEN,) * len(form.operand), (OPEN,) * len(form.positions)
        window = tuple(OPEN if d in form.kept_dims else w for d, w in enumerate(form.window))
        return replace(form, operand=operand, window=window, positions=positions)
    opened = {column.dim for column in form.columns} & set(form.kept_dims)
    return replace(form, operand=tuple(OPEN if d in opened else n for d, n in enumerate(form.operand)))


def dynamic_gather_cases(rule: Rule) -> Iterator[ProofCase]:
    """Every case that a rule for gathers of dynamic shape may take: the operand's dims are open."""
    is_left = TakenGather.WHOLE in rule.constraints["taken"]
    for case in gather_cases(rule):
        options = {"target": _TAKES_GATHERS} if is_left else case.options
        shape = case.text.partition("%o: tensor<")[2].partition(">")[0]
        opened = re.sub(r"\d+x", "?x", shape)
        if is_left == ("clamped" in case.name) and ", f32" in case.name:
            text = case.text.replace(f"%o: tensor<{shape}>", f"%o: tensor<{opened}>")
            text = text.replace(f": (tensor<{shape}>,", f": (tensor<{opened}>,")
            yield ProofCase(case.text, case.name, case.oob, options, dynamic_text=text)


def at_static_sizes(text: str, static: str) -> str:
    """A module of dynamic shape at the sizes that another one has, or RefinementError."""
    context = mlir.shared_context(len(text))
    module, like = (mlir.parse_module(source, context) for source in (text, static))
    types = [str(argument.type) for argument in entry_function(like).regions[0].blocks[0].arguments]
    return mlir.print_module(mlir.refine_shapes(module, types))
