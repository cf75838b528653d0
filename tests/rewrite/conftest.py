"""Targets and modules of each kind of op."""

import pytest

import hlo_lower as hl
from hlo_lower.lowerings.plain_op import PlainOp

SCATTER = {"stablehlo.scatter": "it is what is to be lowered"}
CONTROL = ("while", "case", "if", "map", "optimization_barrier", "custom_call")
TARGETS = {
    "no_control": hl.Target("no_control", refused={**SCATTER, **{f"stablehlo.{op}": "none" for op in CONTROL}}),
    "no_if": hl.Target("no_if", refused={**SCATTER, "stablehlo.if": "none"}),
    "in_bounds": hl.Target("in_bounds", refused=SCATTER, gather="in_bounds"),
    "no_gather": hl.Target("no_gather", refused={**SCATTER, "stablehlo.gather": "none"}),
    "no_reverse": hl.Target("no_reverse", refused={**SCATTER, "stablehlo.reverse": "none"}),
    "plain": hl.Target("plain", refused=SCATTER, legalize=True),
    "takes_square": hl.Target("takes_square", refused=SCATTER, legalize=True, composites=["chlo.square"]),
}
TARGETS |= {
    f"no_{op.value.partition('.')[2]}": hl.Target("npu", refused={**SCATTER, op.value: "none"}) for op in PlainOp
}


@pytest.fixture(scope="session")
def targets():
    """Targets by name."""
    return TARGETS
