"""Small modules of one op of integers, of those that the prover computes; floats are functions to it that it knows
nothing of, and windows it does not look into: rules for these are held against XLA by running."""

from collections.abc import Iterator

from hlo_lower.base.element_types import element_type
from hlo_lower.base.registry import Rule
from hlo_lower.lowering.single_ops.plain_op import Elements, PlainOp
from hlo_lower.ops.names import SCATTER
from hlo_lower.ops.targets.target import Target
from hlo_lower.testing.fuzz.drawn_types import typed
from hlo_lower.testing.prove.proof_case import ProofCase, op_case

BINARY = (PlainOp.SHIFT_LEFT, PlainOp.SHIFT_RIGHT, PlainOp.SHIFT_RIGHT_LOGICAL)
PROVED = (*BINARY, PlainOp.SIGN, PlainOp.REMAINDER, PlainOp.CLAMP, PlainOp.DOT_GENERAL, PlainOp.REDUCE)
"""Ops of integers whose meaning the prover has."""

TYPES = {Elements.SIGNED: ("i8", "i16"), Elements.UNSIGNED: ("ui8", "ui16"), Elements.BOOLEAN: ("i1",)}


WIDE = {Elements.SIGNED: ("i64",), Elements.UNSIGNED: ("ui64",)}
"""Those of shifts by what is known."""


def has_plain_cases(rule: Rule) -> bool:
    """Whether there are modules to prove a rule on."""
    [named] = rule.constraints["named"]
    elements = rule.constraints.get("elements")
    if elements is None:
        return named in (PlainOp.CLAMP, PlainOp.PAD)
    return named in PROVED and not elements.isdisjoint(TYPES) and "numbers" not in rule.constraints


def plain_cases(rule: Rule) -> Iterator[ProofCase]:
    """Every case that a rule for one op may take."""
    if not has_plain_cases(rule):
        return
    [named] = rule.constraints["named"]
    assert isinstance(named, PlainOp)
    target = Target("npu", refused={named.value: "none", SCATTER: "lowered"})
    for elements, types in (*TYPES.items(), *(WIDE.items() if named in BINARY else ())):
        for element in types if elements in rule.constraints.get("elements", TYPES) else ():
            for name, arguments, result, lines in _modules(named, element):
                yield op_case(f"{name} of {element}", arguments, result, lines, target)


def _modules(named: PlainOp, element: str) -> Iterator[tuple[str, str, str, str]]:
    """Modules of one op on an element type: what each is, its arguments, its result and its lines."""
    op = named.value
    kind = typed((2,), element)
    if named is PlainOp.DOT_GENERAL:
        a, b, c = typed((2, 3), element), typed((3, 2), element), typed((2, 2), element)
        line = f"%r = {op} %x, %y, contracting_dims = [1] x [0] : ({a}, {b}) -> {c}"
        yield op, f"%x: {a}, %y: {b}", c, line
    elif named is PlainOp.PAD:
        a, b, value = typed((2, 3), element), typed((3, 5), element), typed((), element)
        line = f"%r = {op} %x, %v, low = [2, -1], high = [-1, 1], interior = [0, 1] : ({a}, {value}) -> {b}"
        yield op, f"%x: {a}, %v: {value}", b, line
    elif named is PlainOp.REDUCE:
        a, start = typed((5, 2), element), typed((), element)
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
        names = ("%x",) if named is PlainOp.SIGN else ("%x", "%y") if named in BINARY else ("%x", "%y", "%z")
        arguments = ", ".join(f"{name}: {kind}" for name in names)
        line = f'%r = "{op}"({", ".join(names)}) : ({", ".join([kind] * len(names))}) -> {kind}'
        yield op, arguments, kind, line
