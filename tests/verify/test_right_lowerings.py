"""What the tool itself makes of a scatter is accepted where a wrong version of it is not, and the values are told."""

import numpy as np
import pytest

import hlo_lower as hl
from hlo_lower.verify import verify

TILE = "update_window_dims = [0], scatter_dims_to_operand_dims = [0]"
ADD = "%s = stablehlo.add %c, %d : tensor<{e}> stablehlo.return %s : tensor<{e}>"
SUBTRACT = "%s = stablehlo.subtract %c, %d : tensor<{e}> stablehlo.return %s : tensor<{e}>"
ONE_WINDOW = {"indices": "1xi32", "updates": "3xf32", "numbers": TILE}

RIGHT = {
    "points": {},
    "subtracted points": {"body": SUBTRACT},
    "one window": ONE_WINDOW,
    "one added window": {**ONE_WINDOW, "body": ADD},
    "booleans": {"operand": "8xi1", "updates": "5xi1", "body": ADD},
    "i8 indices": {"indices": "5x1xi8"},
}


def lower(text: str, oob: str) -> str:
    """The tool's conversion."""
    return hl.lower(text, oob=oob).text


def without_guard(text: str) -> str:
    """What the tool makes of it, with each guard's choice replaced by the update: windows are clamped, not dropped."""
    lines = []
    for line in lower(text, "xla").splitlines():
        if "stablehlo.select" in line:
            name, _, rest = line.partition("= stablehlo.select ")
            _, new, _ = rest.split(" : ")[0].split(", ")
            kind = rest.rsplit(", ", 1)[1]
            line = f"{name}= stablehlo.maximum {new}, {new} : {kind}"
        lines.append(line)
    return "\n".join(lines)


def swapped(text: str) -> str:
    """The same with the operands of each subtraction swapped."""
    return lower(text.replace("stablehlo.subtract %arg3, %arg4", "stablehlo.subtract %arg4, %arg3"), "xla")


@pytest.mark.parametrize("oob", ["xla", "spec"])
@pytest.mark.parametrize("name", RIGHT)
def test_the_tools_own_lowering_is_accepted(scatter_text, name, oob):
    """What `lower` makes of a scatter is equal in all regimes under both policies, judged by two oracles at least."""
    text = scatter_text(**RIGHT[name])
    verdict = verify(text, lower(text, oob), convert=lambda module: lower(module, oob), oob=oob, level="scatter")
    assert verdict.ok, "\n".join(verdict.lines())
    assert len({judge for regime in verdict.scatters[0].regimes for judge in regime.judges}) >= 2


@pytest.mark.parametrize(
    ("name", "convert"),
    [
        ("one window", without_guard),
        ("one added window", without_guard),
        ("points", without_guard),
        ("subtracted points", swapped),
    ],
)
def test_the_same_lowering_made_wrong_is_not(scatter_text, name, convert):
    """One change to what the tool makes of it, and the verdict names scatter, judge, place and values."""
    text = scatter_text(**RIGHT[name])
    verdict = verify(text, lower(text, "xla"), convert=convert, level="scatter")
    [found] = verdict.scatters
    assert (verdict.ok, found.status) == (False, "differs")
    [line] = [line for line in verdict.lines() if "differs" in line]
    assert line.startswith("scatter 1 at line 3 in @main: differs: ")
    for part in ("says result 0 at [", "expected ", ", got ", "elements differ, bit for bit"):
        assert part in line


def test_a_conversion_that_does_not_parse_is_refused(scatter_text):
    """A converter that raises one of the tool's errors refuses the scatter; the verdict is not ok."""

    def fails(text: str) -> str:
        raise hl.NotLoweredError("cut-out", "no lowering")

    verdict = verify(scatter_text(), scatter_text(), convert=fails, level="scatter")
    assert (verdict.ok, verdict.scatters[0].status) == (False, "refused")
    assert "no lowering" in verdict.scatters[0].reason


def test_progress_is_told(scatter_text):
    """Progress goes from nothing to everything in each stage."""
    told: list[tuple[str, int, int]] = []
    text = scatter_text()
    verify(text, text, convert=lambda module: module, runs=1, progress=lambda *step: told.append(step))
    for stage in ("scatters", "module"):
        steps = [(done, total) for name, done, total in told if name == stage]
        assert (steps[0][0], steps[-1][0]) == (0, steps[-1][1])


def test_a_second_version_that_is_only_run_says_so():
    """Lowered by another rule it is equal, but the scatters that were judged alone are not its own."""
    source = hl.export(lambda x, i, u: x.at[i].set(u), np.zeros((8, 4)), np.zeros(3, int), np.ones((3, 4)))
    verdict = hl.verify(source, hl.lower(source, prefer=("while",)).text)
    assert verdict.ok
    assert verdict.second_version == "run, not rebuilt"
    assert verdict.summary().endswith("second version only run")
    assert hl.verify(source, hl.lower(source).text).second_version == "run"


def test_a_second_version_is_examined_even_where_it_is_not_run(scatter_text):
    """With level "scatter" a second version passes only if it is what the converter makes of the first."""
    text = scatter_text()
    lowered = hl.lower(text).text
    for after, ok in ((lowered, True), (text.replace("@main", "@other"), False), (text, False)):
        assert hl.verify(text, after, level="scatter").ok is ok
