"""Causes that count alike from module to module."""

import pytest
from hlo_lower.report.causes import guard_cause, refusal_cause


@pytest.mark.parametrize(
    ("bounds", "expected"),
    [
        ("guarded: argument 27 of @main", "argument"),
        ("guarded: argument pos", "argument"),
        ("guarded: gather", "result of gather"),
        ("guarded: chlo.top_k", "result of chlo.top_k"),
        ("guarded: carried by while", "carried by while"),
        ("guarded: overhangs", "overhangs"),
        ("guarded: result 3 of a call", "result of a call"),
        ("guarded", "not known"),
        ("", "not known"),
    ],
)
def test_guards_are_counted_by_what_the_index_comes_from(record, bounds, expected):
    """Names and numbers, which differ from module to module, are left out."""
    assert expected == guard_cause(record(bounds=bounds))


@pytest.mark.parametrize(
    ("why", "bounds", "expected"),
    [
        ("", "dynamic shape tensor<?x5xf32>", "dynamic shape"),
        ("", "quantized element type !quant.uniform<i8:f32, 0.1>", "quantized element type"),
        ("kept on request (--only, --skip)", "proved (constant)", "kept on request (--only, --skip)"),
        ("kept, no lowering: dynamic shape tensor<?x5xf32>", "", "kept, no lowering: dynamic shape"),
        ("", "guarded: argument pos", "no rule for its class"),
        ("", "proved (clamped)", "no rule for its class"),
    ],
)
def test_a_missing_rule_is_counted_by_its_reason(record, why, bounds, expected):
    """What was said of the rule comes first, then what keeps the scatter from being classified."""
    assert expected == refusal_cause(record(rule="", why=why, bounds=bounds))
