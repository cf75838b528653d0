"""Every comparison is able to fail: lowerings that are wrong in one way each, and right ones that are not accused.

The wrong lowerings are a scatter again, with something of it changed, or plain ops that are right only in some regimes.
"""

import re

import pytest

from hlo_lower.verify import verify

POINTS = "inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1"
TILE = "update_window_dims = [0], scatter_dims_to_operand_dims = [0]"
ADD = "%s = stablehlo.add %c, %d : tensor<{e}> stablehlo.return %s : tensor<{e}>"
SUBTRACT = "%s = stablehlo.subtract %c, %d : tensor<{e}> stablehlo.return %s : tensor<{e}>"
SHIFTED = "%one = stablehlo.constant dense<1> : tensor<5x1xi32> %j = stablehlo.add %i, %one : tensor<5x1xi32>"
CLAMPED = """%lo = stablehlo.constant dense<0> : tensor<i32> %hi = stablehlo.constant dense<7> : tensor<i32>
  %j = stablehlo.clamp %lo, %i, %hi : (tensor<i32>, tensor<5x1xi32>, tensor<i32>) -> tensor<5x1xi32>"""
WRAPPED = """%z = stablehlo.constant dense<0> : tensor<5x1xi32> %n = stablehlo.constant dense<8> : tensor<5x1xi32>
  %neg = stablehlo.compare LT, %i, %z, SIGNED : (tensor<5x1xi32>, tensor<5x1xi32>) -> tensor<5x1xi1>
  %w = stablehlo.add %i, %n : tensor<5x1xi32>
  %j = stablehlo.select %neg, %w, %i : tensor<5x1xi1>, tensor<5x1xi32>"""
REVERSED = """%j = stablehlo.reverse %i, dims = [0] : tensor<5x1xi32>
  %v = stablehlo.reverse %u, dims = [0] : tensor<5xf32>"""

UPDATE_SLICE = """func.func public @main(%o: tensor<8xf32>, %i: tensor<1xi32>, %u: tensor<3xf32>) -> tensor<8xf32> {
  %s = stablehlo.reshape %i : (tensor<1xi32>) -> tensor<i32>
  %r = stablehlo.dynamic_update_slice %o, %u, %s : (tensor<8xf32>, tensor<3xf32>, tensor<i32>) -> tensor<8xf32>
  return %r : tensor<8xf32>
}"""
GUARDED = UPDATE_SLICE.replace(
    "%r = stablehlo.dynamic_update_slice %o, %u,",
    """%z = stablehlo.constant dense<0> : tensor<i32> %last = stablehlo.constant dense<5> : tensor<i32>
  %ge = stablehlo.compare GE, %s, %z, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
  %le = stablehlo.compare LE, %s, %last, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
  %ok = stablehlo.and %ge, %le : tensor<i1>
  %old = stablehlo.dynamic_slice %o, %s, sizes = [3] : (tensor<8xf32>, tensor<i32>) -> tensor<3xf32>
  %new = stablehlo.select %ok, %u, %old : tensor<i1>, tensor<3xf32>
  %r = stablehlo.dynamic_update_slice %o, %new,""",
)


def wrong(scatter_text, name: str) -> tuple[str, str]:
    """A module and a wrong lowering of it."""
    text = scatter_text
    return {
        "clamp for drop": (text(), text(before=CLAMPED, used="%o, %j, %u")),
        "negative indices wrap": (text(), text(before=WRAPPED, used="%o, %j, %u")),
        "off by one": (text(), text(before=SHIFTED, used="%o, %j, %u")),
        "first writer wins": (text(), text(before=REVERSED, used="%o, %j, %v")),
        "nothing is written": (text(), text(returned="%o")),
        "added once too often": (
            text(body=ADD),
            text(body=ADD, before="", used="%o, %i, %u").replace(
                "return %r", "%q = stablehlo.add %r, %r : tensor<8xf32> return %q"
            ),
        ),
        "arguments swapped": (text(body=SUBTRACT), text(body=SUBTRACT.replace("%c, %d", "%d, %c"))),
        "order of additions": (text(body=ADD), text(body=ADD, before=REVERSED, used="%o, %j, %v")),
        "signed zero lost": (
            text("8xf32", "1xi32", "3xf32", TILE),
            GUARDED.replace(
                "return %r",
                """%zero = stablehlo.constant dense<0.0> : tensor<8xf32>
  %q = stablehlo.add %r, %zero : tensor<8xf32> return %q""",
            ),
        ),
        "unguarded update slice": (text("8xf32", "1xi32", "3xf32", TILE), UPDATE_SLICE),
    }[name]


def as_cut_out(text: str) -> str:
    """The module with its arguments in the order of a cut-out: operand, updates, indices."""
    return re.sub(r"\((%o: [^,)]*), (%i: [^,)]*), (%u: [^,)]*)\)", r"(\1, \3, \2)", text, count=1)


@pytest.mark.parametrize(
    ("name", "regimes"),
    [
        ("clamp for drop", ("one past the end", "overhanging", "negative")),
        ("negative indices wrap", ("negative",)),
        ("off by one", ("in range",)),
        ("first writer wins", ("in range", "first and last", "duplicates", "all equal")),
        ("nothing is written", ("in range",)),
        ("added once too often", ("in range",)),
        ("arguments swapped", ("in range",)),
        ("order of additions", ("one past the end", "first and last", "all equal", "duplicates", "in range")),
        ("signed zero lost", ("duplicates", "mixed")),
        ("unguarded update slice", ("one past the end", "overhanging")),
    ],
)
def test_a_wrong_lowering_of_one_scatter_is_caught_and_named(scatter_text, name, regimes):
    """A converter that is wrong in one way is caught in a regime that shows it, and the scatter is named."""
    before, after = wrong(scatter_text, name)
    verdict = verify(before, after, convert=lambda _: as_cut_out(after), level="scatter")
    [found] = verdict.scatters
    assert (verdict.ok, found.status) == (False, "differs")
    assert found.difference.split(":")[0] in regimes
    assert "scatter 1" in found.where
    assert "scatter 1" in "\n".join(verdict.lines())


@pytest.mark.parametrize("name", ["clamp for drop", "off by one", "nothing is written", "arguments swapped"])
def test_a_wrong_module_is_caught_and_the_scatter_on_its_path_named(scatter_text, name):
    """A wrong second version is caught by running it, even when the converter is right."""
    before, after = wrong(scatter_text, name)
    verdict = verify(before, after, convert=lambda text: text)
    assert verdict.module is not None
    assert (verdict.ok, verdict.module.status) == (False, "differs")
    assert verdict.module.difference is not None
    assert verdict.module.difference.result == 0
    assert [place.number for place in verdict.module.on_path] == [1]


def test_dropping_elements_is_wrong_where_windows_are_dropped(scatter_text):
    """The guarded update is right under oob="xla" and wrong under oob="spec", which keeps the inside elements."""
    before = scatter_text("8xf32", "1xi32", "3xf32", TILE)
    under_xla = verify(before, GUARDED, convert=lambda _: as_cut_out(GUARDED), oob="xla")
    under_spec = verify(before, GUARDED, convert=lambda _: as_cut_out(GUARDED), oob="spec")
    assert (under_xla.ok, under_xla.scatters[0].status) == (True, "equal")
    assert (under_spec.ok, under_spec.scatters[0].status) == (False, "differs")
    assert under_spec.scatters[0].difference.split(":")[0] == "overhanging" or "one past the end" in str(under_spec)


CASES = {
    "points": {},
    "added points": {"body": ADD},
    "integers": {"operand": "8xi32", "updates": "5xi32", "body": ADD},
    "bfloat16": {"operand": "8xbf16", "updates": "5xbf16", "body": ADD},
    "booleans": {"operand": "8xi1", "updates": "5xi1", "body": ADD},
    "i64 indices": {"indices": "5x1xi64"},
    "unsigned indices": {"indices": "5x1xui32"},
    "one window": {"indices": "1xi32", "updates": "3xf32", "numbers": TILE},
    "normalised": {"before": WRAPPED, "used": "%o, %j, %u"},
    "clamped": {"before": CLAMPED, "used": "%o, %j, %u"},
}


@pytest.mark.parametrize("name", CASES)
def test_a_scatter_is_equal_to_itself(scatter_text, name):
    """The identity is accepted under oob="xla", and at least two oracles judged it."""
    text = scatter_text(**CASES[name])
    verdict = verify(text, text, convert=lambda module: module)
    assert verdict.ok, "\n".join(verdict.lines())
    assert len({judge for regime in verdict.scatters[0].regimes for judge in regime.judges}) >= 2


@pytest.mark.parametrize("name", CASES)
def test_the_regimes_reach_what_can_be_reached(scatter_text, name):
    """Windows lie inside and outside in some regime, unless the indices are clamped; overhanging only if wide."""
    text = scatter_text(**CASES[name])
    [found] = verify(text, text, convert=lambda module: module, level="scatter").scatters
    assert sum(r.inside for r in found.regimes) > 0
    assert (name != "clamped") == (sum(r.outside for r in found.regimes) > 0)
    assert (name == "one window") == (sum(r.overhanging for r in found.regimes) > 0)
