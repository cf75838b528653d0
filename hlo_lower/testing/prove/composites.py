"""Composites: a call of the decomposition, whatever it computes; kept ones; and softmax against itself written out."""

from collections.abc import Iterator
from itertools import product

from hlo_lower.base.registry import Rule
from hlo_lower.lowering.plain.composite import TakenComposite
from hlo_lower.ops.names import SCATTER
from hlo_lower.ops.targets.target import Target
from hlo_lower.testing.fuzz.drawn_types import typed
from hlo_lower.testing.prove.proof_case import ProofCase


def composite_cases(rule: Rule) -> Iterator[ProofCase]:
    """Every case that a rule for composites may take."""
    is_kept = TakenComposite.WHOLE in rule.constraints.get("taken", ())
    is_softmax = rule.short_name.endswith("softmax")
    name = "odml.softmax" if is_softmax else "some.name"
    composites = [name] if is_kept else []
    target = Target("takes_no_composite", legalize=True, composites=composites, refused={SCATTER: "lowered"})
    for rows, columns, element in product((1, 2, 3), (1, 2, 3), ("f32",) if is_softmax else ("f32", "i8")):
        body = _softmax((rows, columns)) if is_softmax else _double((rows, columns), element)
        kind = typed((rows, columns), element)
        text = (
            f"func.func public @main(%x: {kind}) -> {kind} {{\n"
            f'%r = stablehlo.composite "{name}" %x {{composite_attributes = {{axis = -1 : i64}}, decomposition = @f}}'
            f" : ({kind}) -> {kind}\nreturn %r : {kind}\n}}\n"
            f"func.func private @f(%x: {kind}) -> {kind} {{\n{body}}}\n"
        )
        yield ProofCase(text, f"{name} of {rows}x{columns}, {element}", "xla", {"target": target})


def _double(shape: tuple[int, ...], element: str) -> str:
    kind = typed(shape, element)
    return f"%y = stablehlo.add %x, %x : {kind}\nreturn %y : {kind}\n"


def _softmax(shape: tuple[int, int]) -> str:
    kind, column = typed(shape, "f32"), typed(shape[:1], "f32")
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
