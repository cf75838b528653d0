"""The examples of the rules: each becomes the canonical form of its rule, and the tables made of them are not stale."""

import re

import pytest
from filecheck.matcher import Matcher
from filecheck.options import Options
from rule_examples import EXAMPLES, GOLDEN, built_ops

import hlo_lower as hl
from hlo_lower.base.errors import EXIT_NOT_LOWERED
from hlo_lower.lowering.kinds import built_ops as ops_told
from hlo_lower.lowering.kinds import default_registry


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.path.stem)
def test_a_rule_gives_its_canonical_form(example, tmp_path, capsys):
    """The rule that the file is named after lowers the module's one op, and the CHECK lines match what comes out."""
    lowered = example.lowered
    told = [re.search(r"\((\w+)\)$", note) for note in lowered.notes if " chlo" not in note]
    if not example.rule.startswith(("chlo_", "custom_call_")):  # whose notes name no rule
        assert [record.rule for record in lowered.records] + [found[1] for found in told if found] == [example.rule]
    output = tmp_path / "lowered.mlir"
    output.write_text(lowered.stablehlo)
    matcher = Matcher.from_opts(Options(match_filename=str(example.path), input_file=str(output)))
    assert matcher.run() == 0, capsys.readouterr().err + lowered.stablehlo


def test_every_rule_has_an_example_and_its_ops_are_told():
    """`python tests/rule_examples.py` writes what belongs there; all rules but those `_to_itself` have an example."""
    assert {rule: set(ops) for rule, ops in ops_told().items()} == built_ops()
    registry = default_registry()
    rules = {rule.short_name for op in registry.ops for rule in registry.rules(op)}
    assert {rule for rule in rules if not rule.endswith("_to_itself")} == {example.rule for example in EXAMPLES}


def test_a_quantized_type_is_refused():
    """A scatter of quantized elements is refused with its place, its type and what to do."""
    with pytest.raises(hl.NotLoweredError) as error:
        hl.lower(GOLDEN / "refused_quantized.mlir", name="refused_quantized.mlir")
    assert error.value.exit_code == EXIT_NOT_LOWERED
    assert str(error.value).splitlines() == [
        "refused_quantized.mlir:6:8: stablehlo.scatter: quantized element type !quant.uniform<i8:f32, 2.000000e+00>",
        "  facts:   operand tensor<8x4x!quant.uniform<i8:f32, 2.000000e+00>>, 1 result(s)",
        "  nearest: every scatter of ranked tensors of plain element type has a lowering",
        "  next:    --keep-unsupported converts all but these",
    ]
