"""The families of ops: small modules of plain ops, other element types, reverses, composites, control flow, sorts."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import chain, combinations, product
from typing import TypeAlias

from hlo_lower.base.element_types import element_type
from hlo_lower.base.registry import Rule
from hlo_lower.facts.sort.sort_facts import SortStrategy
from hlo_lower.lowering.control import ControlOp, Way
from hlo_lower.lowering.plain.composite import TakenComposite
from hlo_lower.lowering.single_ops.plain_op import Elements, PlainOp
from hlo_lower.lowering.single_ops.reverse import Axes
from hlo_lower.lowering.sort import TOP_K
from hlo_lower.lowering.types.carried.carrier import Form
from hlo_lower.lowering.types.carried.exactness import TABLE
from hlo_lower.ops.names import AND, BITCAST_CONVERT, CONVERT, OR, REVERSE, SCATTER, SORT
from hlo_lower.ops.quirks import WORDS
from hlo_lower.ops.quirks.branches import MANY
from hlo_lower.ops.quirks.moves import REVERSED_APART
from hlo_lower.ops.targets.costs import COSTS
from hlo_lower.ops.targets.target import Target
from hlo_lower.testing.fuzz.drawn_types import tensor_type
from hlo_lower.testing.prove.proof_case import ProofCase, op_case

SHIFTS = (PlainOp.SHIFT_LEFT, PlainOp.SHIFT_RIGHT, PlainOp.SHIFT_RIGHT_LOGICAL)
PROVED = (*SHIFTS, PlainOp.SIGN, PlainOp.REMAINDER, PlainOp.CLAMP, PlainOp.DOT_GENERAL, PlainOp.REDUCE)
"""Ops of integers whose meaning the prover has."""

TYPES = {Elements.SIGNED: ("i8", "i16"), Elements.UNSIGNED: ("ui8", "ui16"), Elements.BOOLEAN: ("i1",)}


WIDE = {Elements.SIGNED: ("i64",), Elements.UNSIGNED: ("ui64",)}
"""Those of shifts by what is known."""


def has_plain_cases(rule: Rule) -> bool:
    """Whether there are modules to prove a rule on: it is for one op, whose meaning the prover has."""
    named, elements = rule.constraints.get("named", frozenset()), rule.constraints.get("elements")
    if len(named) != 1:
        return False
    if elements is None:
        return named <= {PlainOp.CLAMP, PlainOp.PAD}
    if named <= {PlainOp.DOT_GENERAL} and elements <= {Elements.BOOLEAN}:
        return False  # it is computed in floats
    return named <= {*PROVED} and not elements.isdisjoint(TYPES) and "numbers" not in rule.constraints


def plain_cases(rule: Rule) -> Iterator[ProofCase]:
    """Every case that a rule for one op may take."""
    if not has_plain_cases(rule):
        return
    [named] = rule.constraints["named"]
    assert isinstance(named, PlainOp)
    target = Target("npu", refused={named.value: "none", SCATTER: "lowered"})
    for elements, types in (*TYPES.items(), *(WIDE.items() if named in SHIFTS else ())):
        for element in types if elements in rule.constraints.get("elements", TYPES) else ():
            for name, arguments, result, lines in _plain_modules(named, element):
                yield op_case(f"{name} of {element}", arguments, result, lines, target)


def _plain_modules(named: PlainOp, element: str) -> Iterator[tuple[str, str, str, str]]:
    """Modules of one op on an element type: what each is, its arguments, its result and its lines."""
    op = named.value
    kind = tensor_type((2,), element)
    if named is PlainOp.DOT_GENERAL:
        a, b, c = tensor_type((2, 3), element), tensor_type((3, 2), element), tensor_type((2, 2), element)
        line = f"%r = {op} %x, %y, contracting_dims = [1] x [0] : ({a}, {b}) -> {c}"
        yield op, f"%x: {a}, %y: {b}", c, line
    elif named is PlainOp.PAD:
        a, b, value = tensor_type((2, 3), element), tensor_type((3, 5), element), tensor_type((), element)
        line = f"%r = {op} %x, %v, low = [2, -1], high = [-1, 1], interior = [0, 1] : ({a}, {value}) -> {b}"
        yield op, f"%x: {a}, %v: {value}", b, line
    elif named is PlainOp.REDUCE:
        a, start = tensor_type((5, 2), element), tensor_type((), element)
        lines = (
            f"%z = stablehlo.constant dense<{'false' if element == 'i1' else 0}> : {start}\n"
            f"%r = {op}(%x init: %z) applies stablehlo.{'or' if element == 'i1' else 'add'} across dimensions = [0] : "
            f"({a}, {start}) -> {kind}"
        )
        yield op, f"%x: {a}", kind, lines
    elif named is PlainOp.REMAINDER or element.endswith("64"):
        divisors = (3, 0, 7) if element_type(element).is_unsigned else (3, 0, -1, -5)
        for number in divisors if named is PlainOp.REMAINDER else (32, 5, 64):
            lines = f"%d = stablehlo.constant dense<{number}> : {kind}\n%r = {op} %x, %d : {kind}"
            yield f"{op} by {number}", f"%x: {kind}", kind, lines
    elif element != "i1":
        names = ("%x",) if named is PlainOp.SIGN else ("%x", "%y") if named in SHIFTS else ("%x", "%y", "%z")
        arguments = ", ".join(f"{name}: {kind}" for name in names)
        line = f'%r = "{op}"({", ".join(names)}) : ({", ".join([kind] * len(names))}) -> {kind}'
        yield op, arguments, kind, line


BITS = ("and", "or", "xor", "shift_left", "shift_right_logical", "shift_right_arithmetic")
BINARY = ("add", "subtract", "multiply", "minimum", "maximum", "divide", "remainder", *BITS)
UNARY = ("negate", "not", "reverse", "reshape")
COMPARISONS = ("LT", "GE", "EQ")
FOLDS = ("add", "maximum", "minimum", "xor")

CARRIED: dict[Form, tuple[tuple[str, str], ...]] = {
    Form.SIGNED: (("ui8", "i8"), ("ui32", "i32")),
    Form.WIDER: (("ui4", "i32"), ("i4", "i8"), ("ui8", "i32"), ("i8", "i16"), ("i16", "i32"), ("ui32", "i64")),
    Form.HALVES: (("ui64", "i32"), ("i64", "i32")),
    Form.ITSELF: (("i32", "i32"), ("i8", "i8")),
}
"""Element types and what they are carried in, by the form."""


def element_type_cases(rule: Rule) -> Iterator[ProofCase]:
    """Every case that a rule for ops on integers may take."""
    [form] = rule.constraints["carried"]
    for before, after in CARRIED[Form(form)]:
        for without in ((), ("and", "xor", "shift_right_logical")):
            target = _taking(after, without if form is not Form.ITSELF else without[2:], form)
            for name, arguments, result, lines in _element_type_modules(before):
                if name not in without:
                    told = f"{name} of {before} in {after}" + f", without {', '.join(without)}" * bool(without)
                    yield op_case(told, arguments, result, lines, target)


def _taking(after: str, without: tuple[str, ...], form: object) -> Target:
    """A target that takes ops on one integer type and predicates alone, and conversions of all."""
    conversions = (CONVERT, BITCAST_CONVERT)
    refused = {f"stablehlo.{op}": "none" for op in without} | {SCATTER: "lowered"}
    taken = {op: ["i1", after] for op in TABLE if op not in refused and op not in conversions}
    if form is Form.ITSELF:
        taken |= {AND: ["i1"], OR: ["i1"]}
    return Target("one_integer", refused=refused, op_dtypes=taken)


def _element_type_modules(element: str) -> Iterator[tuple[str, str, str, str]]:
    """Modules of one op on an element type: what each is, its arguments, its result and its line."""
    x, s, p = (tensor_type(shape, kind) for shape, kind in (((3,), element), ((), element), ((3,), "i1")))
    for op in BINARY:
        hard = ("divide", "remainder", *(("multiply",) if element.endswith("64") else ()))
        if op not in hard or element in ("ui4", "i4", "ui8", "i8"):  # for a solver; the form depends on no width
            yield op, f"%x: {x}, %y: {x}", x, f"%r = stablehlo.{op} %x, %y : {x}"
    for op in UNARY:
        more = {"reverse": ", dims = [0]"}.get(op, "")
        kind = f"({x}) -> {x}" if op == "reshape" else x
        yield op, f"%x: {x}", x, f"%r = stablehlo.{op} %x{more} : {kind}"
    for direction in COMPARISONS:
        compare = f"%r = stablehlo.compare {direction}, %x, %y : ({x}, {x}) -> {p}"
        yield f"compare {direction}", f"%x: {x}, %y: {x}", p, compare
    yield "select", f"%p: {p}, %x: {x}, %y: {x}", x, f"%r = stablehlo.select %p, %x, %y : {p}, {x}"
    yield "clamp", f"%a: {s}, %x: {x}, %b: {s}", x, f"%r = stablehlo.clamp %a, %x, %b : ({s}, {x}, {s}) -> {x}"
    for op in FOLDS:
        reduce = f"stablehlo.reduce(%x init: %s) applies stablehlo.{op} across dimensions = [0] : ({x}, {s}) -> {s}"
        yield f"reduce {op}", f"%x: {x}, %s: {s}", s, f"%r = {reduce}"


REVERSED_SHAPES = ((), (1,), (3,), (0, 2), (2, 1), (2, 3), (2, 2, 2))


def reverse_cases(rule: Rule) -> Iterator[ProofCase]:
    """Every case that a rule for reverses may take."""
    few = 64 if Axes.SHORT in rule.constraints.get("axes", ()) else 1
    refused = {REVERSE: "none", SCATTER: "lowered"}
    target = Target("no_reverse", refused=refused, costs=COSTS.with_entry("few_windows", few))
    if Axes.APART in rule.constraints.get("axes", ()):
        target = Target("npu", refused_forms=[REVERSED_APART.word])
    for shape in REVERSED_SHAPES:
        for dims in chain.from_iterable(combinations(range(len(shape)), n) for n in range(len(shape) + 1)):
            for element in ("f32", "i8"):
                kind = tensor_type(shape, element)
                line = f"%r = stablehlo.reverse %x, dims = {list(dims)} : {kind}"
                yield op_case(f"{list(dims)} of {shape}, {element}", f"%x: {kind}", kind, line, target)


def composite_cases(rule: Rule) -> Iterator[ProofCase]:
    """Every case that a rule for composites may take."""
    if TakenComposite.IN_F32 in rule.constraints.get("taken", ()):
        yield from _top_k_cases()
        return
    is_kept = TakenComposite.WHOLE in rule.constraints.get("taken", ())
    is_softmax = rule.short_name.endswith("softmax")
    name = "odml.softmax" if is_softmax else "some.name"
    composites = [name] if is_kept else []
    target = Target("takes_no_composite", legalize=True, composites=composites, refused={SCATTER: "lowered"})
    for rows, columns, element in product((1, 2, 3), (1, 2, 3), ("f32",) if is_softmax else ("f32", "i8")):
        body = _softmax((rows, columns)) if is_softmax else _double((rows, columns), element)
        kind = tensor_type((rows, columns), element)
        text = _named(name, "axis = -1 : i64", kind, [kind], body)
        yield ProofCase(text, f"{name} of {rows}x{columns}, {element}", "xla", {"target": target})


def _top_k_cases() -> Iterator[ProofCase]:
    """Composites of a top_k of bf16, which the target takes in f32."""
    taken = {TOP_K: ["f32", "i32"]}
    target = Target("wide_top_k", composites=[TOP_K], op_dtypes=taken, refused={SCATTER: "lowered", SORT: "none"})
    for rows, columns, k in ((1, 1, 1), (1, 2, 1), (2, 2, 2), (1, 3, 2)):
        given = tensor_type((rows, columns), "bf16")
        found = [tensor_type((rows, k), element) for element in ("bf16", "i32")]
        types = ", ".join(found)
        body = f"%v, %i = {TOP_K}(%x, k = {k}) : {given} -> ({types})\nreturn %v, %i : {types}\n"
        text = _named(TOP_K, f"k = {k} : i64", given, found, body)
        yield ProofCase(text, f"{k} of {rows}x{columns}", "xla", {"target": target})


def _named(name: str, parameter: str, given: str, found: Sequence[str], body: str) -> str:
    """A module of one composite of %x, with one parameter; the body of its decomposition returns what it gives."""
    count, types = len(found), ", ".join(found)
    several, made = (f":{count}", f"({types})") if count > 1 else ("", types)
    returned = ", ".join(f"%r#{k}" for k in range(count)) if count > 1 else "%r"
    attributes = f"{{composite_attributes = {{{parameter}}}, decomposition = @f}}"
    return (
        f"func.func public @main(%x: {given}) -> {made} {{\n"
        f'%r{several} = stablehlo.composite "{name}" %x {attributes} : ({given}) -> {made}\n'
        f"return {returned} : {types}\n}}\nfunc.func private @f(%x: {given}) -> {made} {{\n{body}}}\n"
    )


def _double(shape: tuple[int, ...], element: str) -> str:
    kind = tensor_type(shape, element)
    return f"%y = stablehlo.add %x, %x : {kind}\nreturn %y : {kind}\n"


def _softmax(shape: tuple[int, int]) -> str:
    kind, column = tensor_type(shape, "f32"), tensor_type(shape[:1], "f32")
    reduced = f"across dimensions = [1] : ({kind}, tensor<f32>) -> {column}"
    spread = f"dims = [0] : ({column}) -> {kind}"
    return (
        "%least = stablehlo.constant dense<0xFF800000> : tensor<f32>\n"
        f"%most = stablehlo.reduce(%x init: %least) applies stablehlo.maximum {reduced}\n"
        f"%m = stablehlo.broadcast_in_dim %most, {spread}\n%d = stablehlo.subtract %x, %m : {kind}\n"
        f"%e = stablehlo.exponential %d : {kind}\n%zero = stablehlo.constant dense<0.0> : tensor<f32>\n"
        f"%sum = stablehlo.reduce(%e init: %zero) applies stablehlo.add {reduced}\n"
        f"%n = stablehlo.broadcast_in_dim %sum, {spread}\n%r = stablehlo.divide %e, %n : {kind}\nreturn %r : {kind}\n"
    )


SCALAR = "tensor<i32>"
BODIES = ("stablehlo.add %x, %x", "stablehlo.abs %x", "stablehlo.negate %x")


def control_cases(rule: Rule) -> Iterator[ProofCase]:
    """Every case that a rule for control flow may take."""
    ops = rule.constraints.get("named", frozenset(ControlOp))
    refused = dict.fromkeys(sorted(str(op.value) for op in ops), "none")
    target = Target("no_control", refused={**refused, SCATTER: "lowered"})
    if set(ops) == {ControlOp.CASE} and Way.ONE in rule.constraints.get("way", ()):
        scatter = {SCATTER: "lowered"}
        target = Target("few_branches", refused=scatter, refused_forms=[MANY.word])
    for element in ("i32", "f32", "i8"):
        for op in ControlOp:
            for name, arguments, result, lines in _FORMS[op](element) if op in ops else ():
                yield op_case(f"{name}, {element}", arguments, result, lines, target)


Module: TypeAlias = tuple[str, str, str, str]
"""What a module is, its arguments, its result and its lines."""


def _loops(element: str) -> Iterator[Module]:
    kind = tensor_type((2,), element)
    for first, step, last, direction in ((0, 1, 3, "LT"), (3, -2, 0, "GE"), (5, 1, 5, "LT"), (0, 3, 9, "NE")):
        counted = f"from {first} by {step} while {direction} {last}"
        yield counted, f"%a: {kind}", kind, _loop(element, first, step, last, direction)
    for first, step, last, direction, nearer in ((0, 1, 2, "LT", "minimum"), (3, -2, 0, "GE", "maximum")):
        limit = f"%last = stablehlo.{nearer} %end, %bound : {SCALAR}"
        lines = _loop(element, first, step, last, direction)
        lines = lines.replace("%last =", "%bound =").replace("\n%n", f"\n{limit}\n%n")
        yield f"from {first} by {step} while {direction} {last}, or before", f"%a: {kind}, %end: {SCALAR}", kind, lines


def _loop(element: str, first: int, step: int, last: int, direction: str) -> str:
    """The lines of a loop that counts and adds."""
    kind = tensor_type((2,), element)
    return (
        f"%first = stablehlo.constant dense<{first}> : {SCALAR}\n"
        f"%step = stablehlo.constant dense<{step}> : {SCALAR}\n"
        f"%last = stablehlo.constant dense<{last}> : {SCALAR}\n"
        f"%n, %r = stablehlo.while(%i = %first, %x = %a) : {SCALAR}, {kind}\n"
        f"cond {{\n%p = stablehlo.compare {direction}, %i, %last : ({SCALAR}, {SCALAR}) -> tensor<i1>\n"
        f"stablehlo.return %p : tensor<i1>\n}} do {{\n"
        f"%c = stablehlo.convert %i : ({SCALAR}) -> tensor<{element}>\n"
        f"%w = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<{element}>) -> {kind}\n"
        f"%y = stablehlo.add %x, %w : {kind}\n%j = stablehlo.add %i, %step : {SCALAR}\n"
        f"stablehlo.return %j, %y : {SCALAR}, {kind}\n}}"
    )


def _branches(op: str, count: int, element: str) -> Iterator[Module]:
    kind, index = tensor_type((2,), element), "tensor<i1>" if op == "if" else SCALAR
    regions = ", ".join(f"{{\n%b = {body} : {kind}\nstablehlo.return %b : {kind}\n}}" for body in BODIES[:count])
    taken = f'%r = "stablehlo.{op}"(%i) ({regions}) : ({index}) -> {kind}'
    yield f"{op} of {count}", f"%i: {index}, %x: {kind}", kind, taken
    for number in ("true", "false") if op == "if" else range(-1, count + 1):
        known = f"%i = stablehlo.constant dense<{number}> : {index}\n{taken}"
        yield f"{op} {number} of {count}", f"%x: {kind}", kind, known


def _maps(element: str) -> Iterator[Module]:
    scalar = tensor_type((), element)
    for shape in ((), (3,), (2, 2)):
        kind = tensor_type(shape, element)
        lines = (
            f'%r = "stablehlo.map"(%x, %y) <{{dimensions = array<i64{":" if shape else ""} '
            f"{', '.join(map(str, range(len(shape))))}>}}> ({{\n^bb0(%a: {scalar}, %b: {scalar}):\n"
            f"%two = stablehlo.constant dense<2> : {scalar}\n%s = stablehlo.subtract %a, %two : {scalar}\n"
            f"%m = stablehlo.maximum %s, %b : {scalar}\nstablehlo.return %m : {scalar}\n"
            f"}}) : ({kind}, {kind}) -> {kind}"
        ).replace("dense<2> : tensor<f32>", "dense<2.0> : tensor<f32>")
        yield f"map over {shape}", f"%x: {kind}, %y: {kind}", kind, lines


def _passing(op: str, element: str) -> Iterator[Module]:
    kind = tensor_type((2, 2), element)
    lines = f"%z = stablehlo.add %x, %x : {kind}\n%r = {op.replace('KIND', kind)}"
    yield op.split()[0], f"%x: {kind}", kind, lines


BARRIER = "stablehlo.optimization_barrier %z : KIND"
NOTE = 'stablehlo.custom_call @Sharding(%z) {mhlo.sharding = "{replicated}"} : (KIND) -> KIND'

_FORMS: dict[ControlOp, Callable[[str], Iterator[Module]]] = {
    ControlOp.WHILE: _loops,
    ControlOp.CASE: lambda element: (form for count in (1, 2, 3) for form in _branches("case", count, element)),
    ControlOp.IF: lambda element: _branches("if", 2, element),
    ControlOp.MAP: _maps,
    ControlOp.BARRIER: lambda element: _passing(BARRIER, element),
    ControlOp.CUSTOM_CALL: lambda element: _passing(NOTE, element),
    ControlOp.CONSTRAINT: lambda element: iter(()),
}


SORTED_SHAPES = (
    ((1,), 0),
    ((2,), 0),
    ((3,), 0),
    ((4,), 0),
    ((5,), 0),
    ((2, 3), 0),
    ((2, 3), 1),
    ((3, 1), 0),
    ((0, 2), 1),
)
"""Shapes, each with the dim that is sorted along."""

LOOPED = frozenset({SortStrategy.LOOPED_NETWORK, SortStrategy.LOOPED_ROUNDS})
ROUNDS = frozenset({SortStrategy.ROUNDS, SortStrategy.LOOPED_ROUNDS})


def sort_cases(rule: Rule) -> Iterator[ProofCase]:
    """Every case that a rule for sorts may take."""
    strategies = rule.constraints.get("strategy", frozenset(SortStrategy))
    few = 1 if strategies & LOOPED else 64
    costs = COSTS.with_entry("few_windows", few).with_entry("few_stages", few)
    if SortStrategy.RANKS not in strategies:
        costs = costs.with_entry("rank_pair", 1e9)
    target = Target("no_sort", refused={SORT: "none", SCATTER: "lowered"}, costs=costs)
    if SortStrategy.STABLE_SORTS in strategies and len(strategies) == 1:
        words = [word for word in WORDS if word.startswith("sort ")]
        target = Target("one_key", refused={SCATTER: "lowered"}, costs=costs, refused_forms=words)
    if SortStrategy.TOP_K in strategies and len(strategies) == 1:
        target = replace(target, composites=[TOP_K], costs=costs.with_entry("top_k", 1e-6))
    for (shape, dim), direction, element, second in product(SORTED_SHAPES, ("LT", "GT"), ("i8", "ui8"), (False, True)):
        for rows in (1, 2) if strategies & ROUNDS else (None,):
            if rows is None or rows < shape[dim]:
                yield sort_case(shape, dim, direction, element, target, has_second=second, rows=rows)


def sort_case(
    shape: tuple[int, ...],
    dim: int,
    direction: str,
    element: str,
    target: Target,
    *,
    has_second: bool = False,
    rows: int | None = None,
) -> ProofCase:
    """The module of a sort of keys along a dim, LT or GT, with a tensor that goes along, which decides equal keys if
    `has_second`; only so many rows are read, if given."""
    keys, along = tensor_type(shape, element), tensor_type(shape, "i8")
    kind = element_type(element).compare_type
    pair, other = f"(tensor<{element}>, tensor<{element}>) -> tensor<i1>", "(tensor<i8>, tensor<i8>) -> tensor<i1>"
    lines = f"%first = stablehlo.compare {direction}, %a, %b, {kind} : {pair}\n"
    if has_second:
        lines += (
            f"%equal = stablehlo.compare EQ, %a, %b, {kind} : {pair}\n"
            f"%less = stablehlo.compare LT, %c, %d, SIGNED : {other}\n"
            "%rest = stablehlo.and %equal, %less : tensor<i1>\n%r = stablehlo.or %first, %rest : tensor<i1>\n"
        )
    body = (
        f'%s:2 = "stablehlo.sort"(%x, %y) <{{dimension = {dim} : i64, is_stable = true}}> ({{\n'
        f"^bb0(%a: tensor<{element}>, %b: tensor<{element}>, %c: tensor<i8>, %d: tensor<i8>):\n{lines}"
        f"stablehlo.return %{'r' if has_second else 'first'} : tensor<i1>\n}}) : "
        f"({keys}, {along}) -> ({keys}, {along})\n"
    )
    results, found = (keys, along), "%s#0, %s#1"
    if rows is not None:
        part = tuple(rows if d == dim else size for d, size in enumerate(shape))
        results, found = (tensor_type(part, element), tensor_type(part, "i8")), "%p, %q"
        slices = ", ".join(f"0:{size}" for size in part)
        body += f"%p = stablehlo.slice %s#0 [{slices}] : ({keys}) -> {results[0]}\n"
        body += f"%q = stablehlo.slice %s#1 [{slices}] : ({along}) -> {results[1]}\n"
    text = (
        f"func.func public @main(%x: {keys}, %y: {along}) -> ({results[0]}, {results[1]}) {{\n{body}"
        f"return {found} : {results[0]}, {results[1]}\n}}\n"
    )
    name = f"{direction} of {element} along {dim} of {shape}, rows {rows}, {'two keys' if has_second else 'one key'}"
    return ProofCase(text, name, "xla", {"target": target})
