"""Small loops, branches, maps, barriers and notes, each in a few forms."""

from collections.abc import Callable, Iterator
from typing import TypeAlias

from hlo_lower.base.registry import Rule
from hlo_lower.lowering.control.control import ControlOp, Way
from hlo_lower.ops.names import SCATTER
from hlo_lower.ops.targets.refused_forms import RefusedForm
from hlo_lower.ops.targets.target import Target
from hlo_lower.testing.fuzz.drawn_types import typed
from hlo_lower.testing.prove.proof_case import ProofCase, op_case

SCALAR = "tensor<i32>"
BODIES = ("stablehlo.add %x, %x", "stablehlo.abs %x", "stablehlo.negate %x")


def control_cases(rule: Rule) -> Iterator[ProofCase]:
    """Every case that a rule for control flow may take."""
    ops = rule.constraints.get("named", frozenset(ControlOp))
    refused = dict.fromkeys(sorted(str(op.value) for op in ops), "none")
    target = Target("no_control", refused={**refused, SCATTER: "lowered"})
    if set(ops) == {ControlOp.CASE} and Way.ONE in rule.constraints.get("way", ()):
        scatter = {SCATTER: "lowered"}
        target = Target("few_branches", refused=scatter, refused_forms=[RefusedForm.MANY.value])
    for element in ("i32", "f32", "i8"):
        for op in ControlOp:
            for name, arguments, result, lines in _FORMS[op](element) if op in ops else ():
                yield op_case(f"{name}, {element}", arguments, result, lines, target)


Module: TypeAlias = tuple[str, str, str, str]
"""What a module is, its arguments, its result and its lines."""


def _loops(element: str) -> Iterator[Module]:
    kind = typed((2,), element)
    for first, step, last, direction in ((0, 1, 3, "LT"), (3, -2, 0, "GE"), (5, 1, 5, "LT"), (0, 3, 9, "NE")):
        lines = (
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
        yield f"from {first} by {step} while {direction} {last}", f"%a: {kind}", kind, lines


def _branches(op: str, count: int, element: str) -> Iterator[Module]:
    kind, index = typed((2,), element), "tensor<i1>" if op == "if" else SCALAR
    regions = ", ".join(f"{{\n%b = {body} : {kind}\nstablehlo.return %b : {kind}\n}}" for body in BODIES[:count])
    taken = f'%r = "stablehlo.{op}"(%i) ({regions}) : ({index}) -> {kind}'
    yield f"{op} of {count}", f"%i: {index}, %x: {kind}", kind, taken
    for number in ("true", "false") if op == "if" else range(-1, count + 1):
        known = f"%i = stablehlo.constant dense<{number}> : {index}\n{taken}"
        yield f"{op} {number} of {count}", f"%x: {kind}", kind, known


def _maps(element: str) -> Iterator[Module]:
    scalar = typed((), element)
    for shape in ((), (3,), (2, 2)):
        kind = typed(shape, element)
        lines = (
            f'%r = "stablehlo.map"(%x, %y) <{{dimensions = array<i64{":" if shape else ""} '
            f"{', '.join(map(str, range(len(shape))))}>}}> ({{\n^bb0(%a: {scalar}, %b: {scalar}):\n"
            f"%two = stablehlo.constant dense<2> : {scalar}\n%s = stablehlo.subtract %a, %two : {scalar}\n"
            f"%m = stablehlo.maximum %s, %b : {scalar}\nstablehlo.return %m : {scalar}\n"
            f"}}) : ({kind}, {kind}) -> {kind}"
        ).replace("dense<2> : tensor<f32>", "dense<2.0> : tensor<f32>")
        yield f"map over {shape}", f"%x: {kind}, %y: {kind}", kind, lines


def _passing(op: str, element: str) -> Iterator[Module]:
    kind = typed((2, 2), element)
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
