"""Causes that count alike from module to module."""

import pytest

from hlo_lower.base.causes import Code
from hlo_lower.base.english import told_kind
from hlo_lower.report.module import guard_cause, refusal_cause


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (Code.ARGUMENT(27, "main", None), "argument"),
        (Code.ARGUMENT(3, "main", "pos"), "argument"),
        (Code.ARGUMENT_OF("reduce"), "argument of reduce"),
        (Code.RESULT_OF("gather"), "result of gather"),
        (Code.RESULT_OF("chlo.top_k"), "result of chlo.top_k"),
        (Code.RESULT_OF_CALL("f"), "result of a call"),
        (Code.CARRIED_BY("while"), "carried by while"),
        (Code.OVERHANGS(), "overhangs"),
        (Code.NOT_KNOWN(), "not known"),
    ],
)
def test_guards_are_counted_by_what_the_index_comes_from(record, source, expected):
    """Names and numbers, which differ from module to module, are left out."""
    assert expected == told_kind(guard_cause(record(bounds=Code.GUARDED(source))))


@pytest.mark.parametrize(
    ("why", "expected"),
    [
        (Code.DYNAMIC_SHAPE("tensor<?x5xf32>"), "dynamic shape"),
        (Code.QUANTIZED("!quant.uniform<i8:f32, 0.1>"), "quantized element type"),
        (Code.KEPT_ON_REQUEST(), "kept on request (--only, --skip)"),
        (Code.KEPT_UNSUPPORTED(Code.DYNAMIC_SHAPE("tensor<?x5xf32>")), "dynamic shape"),
        (Code.NO_LOWERING("iree"), "no lowering for target iree"),
    ],
)
def test_a_missing_rule_is_counted_by_its_reason(record, why, expected):
    """Types, which differ from module to module, are left out."""
    assert expected == told_kind(refusal_cause(record(rule="", why=why)))
