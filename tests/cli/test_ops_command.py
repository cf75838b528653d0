"""`hlo-lower ops`."""

import pytest

from hlo_lower.cli import main
from hlo_lower.ops.quirks import QUIRKS


def test_an_op_is_shown_with_its_rules_and_targets(capsys):
    """The short name is enough; what a target rejects and a rule replaces is lowered."""
    assert main(["ops", "round_nearest_afz"]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("stablehlo.round_nearest_afz")
    assert "round_afz_to_floor" in shown
    assert "litert lowered" in shown
    assert "iree accepts" in shown


@pytest.mark.parametrize(
    ("name", "rule"),
    [
        ("triangular_solve", "triangular_solve_to_rows"),
        ("complex", "complex_to_parts"),
        ("chlo.erf", "chlo_to_stablehlo"),
        ("while", "while_to_trips"),
        ("scatter", "compare_reduce"),
        ("stablehlo.add", None),  # rules for scatters that add do not replace it
    ],
)
def test_rules_of_every_kind_of_op_are_found(name, rule, capsys):
    """Whether a kind is named after its op, or its facts name the op."""
    assert main(["ops", name]) == 0
    shown = capsys.readouterr().out
    assert rule in shown if rule else "rules:" not in shown


@pytest.mark.parametrize("form", ["text", "markdown"])
def test_forms_are_shown_with_who_refuses_them(form, capsys, monkeypatch):
    """Each of the list, with what becomes of it and each reason; of one op its own."""
    monkeypatch.setenv("COLUMNS", "400")
    assert main(["ops", "--forms", "--format", form]) == 0
    shown = capsys.readouterr().out
    for quirk in QUIRKS:
        told = (quirk.word, quirk.becomes, *quirk.consumers, *quirk.consumers.values())
        assert all(part in shown or part.replace("`", "") in shown for part in told), quirk.word
    assert main(["ops", "pad", "--forms", "--format", form]) == 0
    shown = capsys.readouterr().out
    of_pads = [quirk.word for quirk in QUIRKS if quirk.word in shown]
    assert of_pads == ["pad between elements", "pad with a computed value"]
