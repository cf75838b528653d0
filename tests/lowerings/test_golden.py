"""Golden files: each rule's canonical form, as CHECK lines beside the input, and what is refused.

The first line of a file gives the options ("// options: oob=spec"); the CHECK lines are those of the filecheck package.
"""

from functools import cache
from pathlib import Path

import pytest
from filecheck.matcher import Matcher
from filecheck.options import Options

import hlo_lower as hl
from hlo_lower.base.errors import EXIT_NOT_LOWERED
from hlo_lower.facts.scatter.dynamic import DYNAMIC_SCATTER
from hlo_lower.ir import mlir
from hlo_lower.lowering.kinds import default_registry

GOLDEN = Path(__file__).parents[1] / "golden"
RULES = sorted(path for path in GOLDEN.glob("*.mlir") if not path.name.startswith("refused_"))


def options_of(path: Path) -> dict[str, object]:
    """The keywords of hl.lower in a file's first line; what is preferred is a list ("prefer=mask;few_windows=2")."""
    head, _, told = path.read_text().splitlines()[0].partition("options:")
    assert head == "// "
    options: dict[str, object] = dict(pair.split("=", 1) for pair in told.split())
    if "prefer" in options:
        options["prefer"] = str(options["prefer"]).split(";")
    if "trust_flags" in options:
        options["trust_flags"] = options["trust_flags"] == "True"
    return options


def rule_of(path: Path) -> str:
    """The rule that a file is named after: "last_writer" of last_writer-in_parts.mlir."""
    return path.stem.partition("-")[0]


@cache
def lowered_by(path: Path) -> hl.Lowered:
    """A golden file lowered, once for all tests."""
    return hl.lower(path, **options_of(path))


@pytest.mark.parametrize("path", RULES, ids=lambda path: path.stem)
def test_a_rule_gives_its_canonical_form(path, tmp_path, capsys):
    """The file is named after the rule that lowers its scatter, and its CHECK lines match what comes out."""
    lowered = lowered_by(path)
    assert [record.rule for record in lowered.records] == [rule_of(path)]
    output = tmp_path / "lowered.mlir"
    output.write_text(lowered.stablehlo)
    options = Options(match_filename=str(path), input_file=str(output))
    assert Matcher.from_opts(options).run() == 0, capsys.readouterr().err + lowered.stablehlo


def test_every_rule_has_a_golden_file():
    """A rule without a golden file has no documented form."""
    registry = default_registry()
    rules = {
        rule.name.removeprefix("scatter_to_")
        for op in ("stablehlo.scatter", DYNAMIC_SCATTER)
        for rule in registry.rules(op)
    }
    assert {rule_of(path) for path in RULES} == rules


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


@pytest.mark.parametrize("path", RULES, ids=lambda path: path.stem)
def test_a_rule_builds_only_what_the_table_tells(path):
    """The operations of the result are those that the table of rules has, and those of the input."""
    lowered = lowered_by(path)
    [rule] = [r for r in hl.rules() if r.name == rule_of(path)]
    before, after = set(), set()
    source = hl.read(path)
    source.walk(lambda node: before.add(node.name))
    for name in source.functions:  # what a composite becomes where it is run stands in a function of its own
        mlir.walk(lowered.graph.functions[name].node.raw, lambda raw: after.add(raw.name))
    assert after - before - {"stablehlo.return"} <= set(rule.builds)
