"""Golden files of the kinds beside scatters, and the ops that all golden modules build, as the table of rules tells."""

import re
import textwrap
from pathlib import Path

import pytest
from filecheck.matcher import Matcher
from filecheck.options import Options

import hlo_lower as hl
from hlo_lower.lowering.built_ops import BUILT_OPS
from hlo_lower.lowering.engine import engine
from hlo_lower.lowering.kinds import default_registry

GOLDEN = Path(__file__).parents[1] / "golden"
KINDS = sorted((GOLDEN / "kinds").glob("*.mlir"))
SCATTERS = sorted(path for path in GOLDEN.glob("*.mlir") if not path.stem.startswith("refused_"))


def options_of(path):
    """The keywords of hl.lower in a file's first line; what is preferred is a list ("prefer=mask;few_windows=2")."""
    options = dict(pair.split("=", 1) for pair in path.read_text().splitlines()[0].partition("options:")[2].split())
    if "prefer" in options:
        options["prefer"] = options["prefer"].split(";")
    return {**options, **({"trust_flags": options["trust_flags"] == "True"} if "trust_flags" in options else {})}


def lowered_by(path, targets):
    """A golden module lowered, for a target of this folder if it names one."""
    options = options_of(path)
    name = options.pop("target", "stablehlo")
    return hl.lower(path, target=targets.get(name, name), **options)


def rules_of(lowered):
    """The rules that lowered a module's one op."""
    told = [re.search(r"\((\w+)\)$", note) for note in lowered.notes if " chlo" not in note]
    return [record.rule for record in lowered.records] + [found[1] for found in told if found]


@pytest.mark.parametrize("path", KINDS, ids=lambda path: path.stem)
def test_a_rule_gives_its_canonical_form(path, targets, tmp_path, capsys):
    """The file is named after the rule that lowers its op, and its CHECK lines match what comes out."""
    lowered = lowered_by(path, targets)
    if not path.stem.startswith(("chlo_", "custom_call_")):  # whose notes name no rule
        assert rules_of(lowered) == [path.stem]
    output = tmp_path / "lowered.mlir"
    output.write_text(lowered.stablehlo)
    matcher = Matcher.from_opts(Options(match_filename=str(path), input_file=str(output)))
    assert matcher.run() == 0, capsys.readouterr().err + lowered.stablehlo


@pytest.fixture
def built(monkeypatch):
    """What rules built while it is used: by the rule, the names of ops but those of the op's own region."""
    found = {}
    keep = engine.keep_attributes

    def noting(node, values, build, *args, **kwargs):
        values = keep(node, values, build, *args, **kwargs)
        is_inlined = node.name == "stablehlo.sort"  # whose comparator becomes ops of whole tensors
        own = {inner.name for block in node.blocks for inner in block.nodes if not is_inlined}
        names.update({made.name for made in build.built} - own - {"stablehlo.return"})
        return values

    names = set()
    monkeypatch.setattr(engine, "keep_attributes", noting)
    return found, names


def test_the_ops_that_rules_build_are_told_as_they_are(targets, built):
    """The generated list is what the golden modules show; where it differs, this prints what belongs there."""
    found, names = built
    for path in (*SCATTERS, *KINDS):
        names.clear()
        lowered_by(path, targets)
        found.setdefault(path.stem.partition("-")[0], set()).update(names)
    expected = {rule: tuple(sorted(ops)) for rule, ops in sorted(found.items())}
    rows = (f"{rule}: {' '.join(op.removeprefix('stablehlo.') for op in ops)}" for rule, ops in expected.items())
    assert expected == BUILT_OPS, "\n".join(textwrap.fill(row, 118, subsequent_indent="    ") for row in rows)


def test_every_rule_that_builds_has_a_golden_file():
    """All but those that leave the op as it is."""
    registry = default_registry()
    rules = {rule.short_name for op in registry.ops for rule in registry.rules(op)}
    assert {rule for rule in rules if not rule.endswith("_to_itself")} == set(BUILT_OPS)
