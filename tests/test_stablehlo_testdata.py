"""The self-checking scatter modules of openxla/stablehlo, where the corpus is there: what is lowered meets @expected.

Each static module has one scatter at constant indices and a check of its result, `check.expect_eq` or
`check.expect_close` (floats within 3 units in the last place). No window of these modules reaches out in part, so the
expectations, which XLA computed, hold under both policies. The check is taken out of the lowered module, whose @main
then returns what it got and what it expects.
"""

import re
from collections import Counter
from operator import attrgetter
from pathlib import Path

import numpy as np
import pytest

import hlo_lower as hl
from hlo_lower.verify.bounds.compare import first_difference
from hlo_lower.verify.run import Executable

CORPUS = Path(__file__).parents[2] / "shared" / "corpus" / "stablehlo_testdata"
MODULES = sorted(CORPUS.glob("*.mlir"))
DYNAMIC = [path for path in MODULES if path.name.startswith("dynamic__")]
STATIC = [path for path in MODULES if path not in DYNAMIC]
COMBINERS = {"add": "add", "maximum": "max", "minimum": "min", "multiply": "mul"}

ROUNDS = ("add", "mul")
"""Combiners that round: their results may differ within the check's bound, those of the others not in a bit."""

CLOSE_ULPS = 3
"""What `check.expect_close` allows, in units in the last place."""

needs_corpus = pytest.mark.skipif(not MODULES, reason="the corpus is not there")


name = attrgetter("stem")


def features(path):
    """What a static module is about: dimension numbers and shapes, combiner, element type."""
    text = path.read_text()
    numbers = re.search(r"#stablehlo\.scatter<([^>]*)>", text)
    types = re.search(r"\}\) : \((.*)\) -> tensor<(?:\d+x)*(\w+)>", text)
    combiner = re.search(r"stablehlo\.(add|maximum|multiply|minimum)", text)
    form = numbers[1] + re.sub(r"(?:bf16|ui?\d+|i\d+|f\d+)>", ">", types[1])
    return form, COMBINERS[combiner[1]] if combiner else "assign", types[2]


def sample():
    """Two modules of each form, the rarest combiners and element types so far first."""
    told, used, chosen = {path: features(path) for path in STATIC}, Counter(), []
    for form in sorted({form for form, *_ in told.values()}) * 2:
        if left := [path for path in STATIC if told[path][0] == form and path not in chosen]:
            chosen.append(min(left, key=lambda path: (sum(used[feature] for feature in told[path][1:]), path.name)))
            used.update(told[chosen[-1]][1:])
    return chosen


def without_check(text):
    """A module whose @main returns what it got and what it expects instead of comparing them; the check's name."""
    found = re.search(r".*@(check\.\w+)\((\S+), (\S+)\) .* : \((.*)\) -> \(\)\n *return \2 .*", text)
    check, got, expected, types = found.groups()
    text = text.replace(found[0], f"return {got}, {expected} : {types}")
    return re.sub(r"(@main\(.*?\)) -> .*", rf"\1 -> ({types}) {{", text, count=1), check


def with_index_argument(text):
    """The module with the scatter's constant indices turned into a new argument of @main, and their value."""
    graph = hl.read(text)
    indices = graph.scatters[0].operand(1)
    moved = re.sub(r'("stablehlo\.scatter"\(\S+, )[^,]+', r"\1%indices", text)
    return moved.replace("@main()", f"@main(%indices: {indices.raw.type})"), np.array(indices.node.constant())


def ulps(a, b):
    """The largest distance of two arrays of floats in units in the last place; NaN is as far from NaN as 0."""
    signed = f"i{a.dtype.itemsize}"
    low = int(np.iinfo(signed).min)
    # Floats in their order are integers in their order, those of the negative ones turned around.
    one, other = ([low - int(v) if v < 0 else int(v) for v in x.reshape(-1).view(signed)] for x in (a, b))
    are_nan = (np.isnan(a) & np.isnan(b)).reshape(-1)
    return max(0 if nan else abs(m - n) for m, n, nan in zip(one, other, are_nan, strict=True))


def check_expectation(text, arguments, rounds, told):
    """Run a lowered module, and hold its result against @expected as strictly as its combiner and its check allow."""
    unchecked, check = without_check(text)
    got, expected = Executable(unchecked, "exact").run(arguments)
    found = first_difference([expected], [got])
    within = rounds and check == "check.expect_close" and ulps(got, expected) <= CLOSE_ULPS
    assert found is None or within, f"{told}: {found}"


@pytest.mark.few(12)
@needs_corpus
@pytest.mark.parametrize("path", STATIC, ids=name)
def test_every_module_meets_its_expectation(path):
    """Each module gives what it expects, the indices constant or an argument, under both policies."""
    source = path.read_text()
    moved, indices = with_index_argument(source)
    rounds = features(path)[1] in ROUNDS
    for form, text, arguments in (("constant indices", source, []), ("index argument", moved, [indices])):
        known = ""
        for oob in ("xla", "spec"):
            lowered = hl.lower(text, oob=oob).text
            assert "stablehlo.scatter" not in lowered
            assert "@check.expect_" in lowered
            if lowered != known:  # most are the same under both
                check_expectation(lowered, arguments, rounds, f"{form}, oob={oob}")
            known = lowered


@needs_corpus
def test_a_wrong_result_is_found():
    """An expectation that is another in one bit is not met, and an infinity is far from every number."""
    path = next(p for p in STATIC if features(p)[1:] == ("assign", "f32"))
    lowered = hl.lower(path.read_text()).text
    check_expectation(lowered, [], False, "as it is")
    body = lowered[lowered.index("@expected() -> ") :]
    first = re.search(r"dense<\[*(-?[\d.e+-]+)", body)
    number = np.float32(first[1])
    moved = body.replace(first[1], f"{np.nextafter(number, np.float32(np.inf)):.9e}", 1)
    with pytest.raises(AssertionError, match="1 elements differ"):
        check_expectation(lowered.replace(body, moved), [], False, "moved")
    one, infinite = np.ones(1, np.float32), np.full(1, np.inf, np.float32)
    assert [ulps(one, np.nextafter(one, v)) for v in (infinite, -infinite, one)] == [1, 1, 0]
    assert min(ulps(one, infinite), ulps(one, -one)) > CLOSE_ULPS


@needs_corpus
@pytest.mark.parametrize("oob", ["xla", pytest.param("spec", marks=pytest.mark.sweep)])
def test_dynamic_modules_are_converted(oob):
    """Each module of dynamic shape loses its scatter without its sizes being bound."""
    for path in DYNAMIC:
        lowered = hl.lower(path, oob=oob)
        assert (lowered.scatters_left, "stablehlo.scatter" in lowered.text) == (0, False), path.name


@pytest.mark.sweep
@needs_corpus
@pytest.mark.parametrize("oob", ["xla", "spec"])
@pytest.mark.parametrize("path", STATIC, ids=name)
def test_every_scatter_verifies_on_its_own(path, oob):
    """With operands, indices and updates as arguments each scatter is right in all index regimes."""
    text, _ = with_index_argument(path.read_text())
    verdict = hl.verify(text, hl.lower(text, oob=oob), level="regions")
    assert verdict.ok, "\n".join(verdict.lines())
