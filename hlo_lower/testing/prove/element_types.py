"""Ops on integers that a target refuses, on few elements of few bits, all numbers of which are proved."""

from collections.abc import Iterator

from hlo_lower.base.registry import Rule
from hlo_lower.lowering.types.carried.carrier import Form
from hlo_lower.lowering.types.carried.exactness import TABLE
from hlo_lower.ops.names import AND, BITCAST_CONVERT, CONVERT, OR, SCATTER
from hlo_lower.ops.targets.target import Target
from hlo_lower.testing.fuzz.drawn_types import typed
from hlo_lower.testing.prove.proof_case import ProofCase, op_case

BITS = ("and", "or", "xor", "shift_left", "shift_right_logical", "shift_right_arithmetic")
BINARY = ("add", "subtract", "multiply", "minimum", "maximum", "divide", "remainder", *BITS)
UNARY = ("negate", "not", "reverse", "reshape")
COMPARISONS = ("LT", "GE", "EQ")
FOLDS = ("add", "maximum", "minimum", "xor")

CARRIED: dict[Form, tuple[tuple[str, str], ...]] = {
    Form.SIGNED: (("ui8", "i8"), ("ui32", "i32")),
    Form.WIDER: (("ui8", "i32"), ("i8", "i16"), ("i16", "i32"), ("ui32", "i64")),
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
            for name, arguments, result, lines in _modules(before):
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


def _modules(element: str) -> Iterator[tuple[str, str, str, str]]:
    """Modules of one op on an element type: what each is, its arguments, its result and its line."""
    x, s, p = (typed(shape, kind) for shape, kind in (((3,), element), ((), element), ((3,), "i1")))
    for op in BINARY:
        hard = ("divide", "remainder", *(("multiply",) if element.endswith("64") else ()))
        if op not in hard or element in ("ui8", "i8"):  # for a solver; the form depends on no width
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
