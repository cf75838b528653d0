"""Targets and modules of each kind of op."""

import pytest

import hlo_lower as hl

SCATTER = {"stablehlo.scatter": "it is what is to be lowered"}
SIGNED = {f"stablehlo.{op}": ["i1", "i32", "f32"] for op in ("add", "minimum", "and", "xor", "subtract")}
TARGETS = {
    "in_bounds": hl.Target("in_bounds", refused=SCATTER, gather="in_bounds"),
    "no_gather": hl.Target("no_gather", refused={**SCATTER, "stablehlo.gather": "none"}),
    "no_reverse": hl.Target("no_reverse", refused={**SCATTER, "stablehlo.reverse": "none"}),
    "plain": hl.Target("plain", refused=SCATTER, legalize=True),
    "signed_only": hl.Target("signed_only", refused=SCATTER, op_dtypes=SIGNED),
    "only_xor": hl.Target("only_xor", refused=SCATTER, op_dtypes={"stablehlo.and": ["i1"]}),
    "takes_square": hl.Target("takes_square", refused=SCATTER, legalize=True, composites=["chlo.square"]),
}


@pytest.fixture(scope="session")
def targets():
    """Targets by name."""
    return TARGETS
