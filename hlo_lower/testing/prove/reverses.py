"""Reverses of small tensors, along no dim up to all of them."""

from collections.abc import Iterator
from itertools import chain, combinations

from hlo_lower.base.registry import Rule
from hlo_lower.lowering.single_ops.reverse import Axes
from hlo_lower.ops.names import REVERSE, SCATTER
from hlo_lower.ops.targets.costs import COSTS
from hlo_lower.ops.targets.refused_forms import RefusedForm
from hlo_lower.ops.targets.target import Target
from hlo_lower.testing.fuzz.drawn_types import typed
from hlo_lower.testing.prove.proof_case import ProofCase, op_case

SHAPES = ((), (1,), (3,), (0, 2), (2, 1), (2, 3), (2, 2, 2))


def reverse_cases(rule: Rule) -> Iterator[ProofCase]:
    """Every case that a rule for reverses may take."""
    few = 64 if Axes.SHORT in rule.constraints.get("axes", ()) else 1
    refused = {REVERSE: "none", SCATTER: "lowered"}
    target = Target("no_reverse", refused=refused, costs=COSTS.with_entry("few_windows", few))
    if Axes.APART in rule.constraints.get("axes", ()):
        target = Target("npu", refused_forms=[RefusedForm.REVERSED_APART.value])
    for shape in SHAPES:
        for dims in chain.from_iterable(combinations(range(len(shape)), n) for n in range(len(shape) + 1)):
            for element in ("f32", "i8"):
                kind = typed(shape, element)
                line = f"%r = stablehlo.reverse %x, dims = {list(dims)} : {kind}"
                yield op_case(f"{list(dims)} of {shape}, {element}", f"%x: {kind}", kind, line, target)
