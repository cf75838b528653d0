"""Targets and modules of each kind of op."""

import pytest

import hlo_lower as hl
from hlo_lower.lowering.plain.older_op import OlderOp
from hlo_lower.lowering.quirks.forms_of_ops import WORDS as OP_FORMS
from hlo_lower.lowering.single_ops.plain_op import PlainOp
from hlo_lower.ops.targets.costs import COSTS

SCATTER = {"stablehlo.scatter": "it is what is to be lowered"}
SIGNED = {f"stablehlo.{op}": ["i1", "i32", "f32"] for op in ("add", "minimum", "and", "xor", "subtract")}
NO_SORT = {**SCATTER, "stablehlo.sort": "none"}
NO_PAIRS = COSTS.with_entry("rank_pair", 1e9)
CONTROL = ("while", "case", "if", "map", "optimization_barrier", "custom_call")
TARGETS = {
    "no_control": hl.Target("no_control", refused={**SCATTER, **{f"stablehlo.{op}": "none" for op in CONTROL}}),
    "no_if": hl.Target("no_if", refused={**SCATTER, "stablehlo.if": "none"}),
    "few_branches": hl.Target("few_branches", refused=SCATTER, refused_forms=["case of three branches"]),
    "in_bounds": hl.Target("in_bounds", refused=SCATTER, gather="in_bounds"),
    "no_gather": hl.Target("no_gather", refused={**SCATTER, "stablehlo.gather": "none"}),
    "no_reverse": hl.Target("no_reverse", refused={**SCATTER, "stablehlo.reverse": "none"}),
    "no_sort": hl.Target("no_sort", refused=NO_SORT),
    "no_pairs": hl.Target("no_pairs", refused=NO_SORT, costs=NO_PAIRS),
    "short_text": hl.Target(
        "short_text", refused=NO_SORT, costs=NO_PAIRS.with_entry("few_stages", 1).with_entry("few_windows", 1)
    ),
    "plain": hl.Target("plain", refused=SCATTER, legalize=True),
    "signed_only": hl.Target("signed_only", refused=SCATTER, op_dtypes=SIGNED),
    "real_only": hl.Target("real_only", refused=SCATTER, refused_dtypes={"complex<f32>": "none"}),
    "only_xor": hl.Target("only_xor", refused=SCATTER, op_dtypes={"stablehlo.and": ["i1"]}),
    "no_matrices": hl.Target(
        "no_matrices",
        refused={**SCATTER, **{f"stablehlo.{op}": "none" for op in ("custom_call", "cholesky", "triangular_solve")}},
    ),
    "finite": hl.Target("finite", refused=SCATTER, refused_forms=["constant Inf", "compare TOTALORDER"]),
    "positive": hl.Target("positive", refused=SCATTER, refused_forms=["sine or tangent below 0", "power below 0"]),
    "no_forms": hl.Target("no_forms", refused=SCATTER, refused_forms=OP_FORMS),
    "few_dims": hl.Target("few_dims", refused=SCATTER, max_rank={"*": 4}),
    "takes_square": hl.Target("takes_square", refused=SCATTER, legalize=True, composites=["chlo.square"]),
}
TARGETS |= {
    f"no_{op.value.partition('.')[2]}": hl.Target("npu", refused={**SCATTER, op.value: "none"})
    for op in (*PlainOp, *OlderOp)
}


@pytest.fixture(scope="session")
def targets():
    """Targets by name."""
    return TARGETS
