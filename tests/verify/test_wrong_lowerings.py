"""Every comparison is able to fail: lowerings that are wrong in one way each, and right ones that are not accused.

The wrong lowerings are a scatter again, with something of it changed, or plain ops that are right only in some regimes.
"""

import pytest

from hlo_lower.verify import Assumed, verify

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


@pytest.mark.few(3)
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
        ("signed zero lost", ("first and last", "duplicates", "mixed")),
        ("unguarded update slice", ("one past the end", "overhanging")),
    ],
)
def test_a_wrong_lowering_of_one_scatter_is_caught_and_named(scatter_text, name, regimes):
    """A lowering that is wrong in one way is caught by a run whose aim shows it, and the scatter is named."""
    verdict = verify(*wrong(scatter_text, name), level="regions")
    [found] = verdict.regions
    assert (verdict.ok, verdict.exit_code, found.status) == (False, 1, "differs")
    # what is done to the scatter's result is a region behind the scatter, which is matched
    assert found.scatters == (() if name == "added once too often" else (1,))
    assert found.difference.split(":")[0] in regimes
    [line] = [line for line in verdict.lines() if ": differs: " in line]
    assert line.startswith(f"{'scatter 1 at line 3' if found.scatters else 'line 7'} in main: differs: ")


@pytest.mark.parametrize("name", ["clamp for drop", "off by one", "nothing is written", "arguments swapped"])
def test_a_wrong_module_is_caught_and_the_scatter_on_its_path_named(scatter_text, name):
    """The module's own runs tell what they find, with the scatters that the result depends on."""
    verdict = verify(*wrong(scatter_text, name))
    assert verdict.module is not None
    assert (verdict.ok, verdict.module.status) == (False, "differs")
    assert verdict.module.difference is not None
    assert verdict.module.difference.result == 0
    assert [place.number for place in verdict.module.on_path] == [1]


def test_dropping_elements_is_wrong_where_windows_are_dropped(scatter_text):
    """The guarded update is right under oob="xla" and wrong under oob="spec", which keeps the inside elements."""
    before = scatter_text("8xf32", "1xi32", "3xf32", TILE)
    under_xla, under_spec = (verify(before, GUARDED, Assumed(oob), level="regions") for oob in ("xla", "spec"))
    assert (under_xla.ok, under_xla.regions[0].status) == (True, "equal")
    assert (under_spec.ok, under_spec.regions[0].status) == (False, "differs")
    [region] = under_spec.regions
    assert "reference says" in region.difference
    assert region.difference.split(":")[0] in ("overhanging", "one past the end", "first and last")


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


def rewritten(scatter_text, name: str) -> tuple[str, str]:
    """A module and one that writes the same: the updates are turned round twice."""
    case = {"used": "%o, %i, %u", **CASES[name]}
    kind = f"tensor<{case.get('updates', '5xf32')}>"
    twice = f"%u1 = stablehlo.reverse %u, dims = [0] : {kind} %u2 = stablehlo.reverse %u1, dims = [0] : {kind}"
    ready = {**case, "before": f"{case.get('before', '')} {twice}", "used": case["used"].replace("%u", "%u2")}
    return scatter_text(**case), scatter_text(**ready)


@pytest.mark.parametrize("name", CASES)
def test_a_scatter_is_equal_to_itself(scatter_text, name):
    """The identity has no region, and nothing is run for it."""
    text = scatter_text(**CASES[name])
    verdict = verify(text, text, level="regions")
    assert (verdict.ok, verdict.regions, verdict.summary()) == (True, (), "the same operations")


@pytest.mark.few(4)
@pytest.mark.parametrize("name", CASES)
def test_a_right_rewriting_is_accepted_by_two_judges(scatter_text, name):
    """The scatter with updates turned round twice is a region, equal as it stands, with windows where they can lie."""
    verdict = verify(*rewritten(scatter_text, name), level="regions")
    assert verdict.ok, "\n".join(verdict.lines())
    [found] = verdict.regions
    assert (found.how, found.scatters) == ("as it stands", (1,))
    assert len(found.judges) >= 2
    assert min(found.windows[0], found.windows[2]) > 0  # a clamp before it is no part of the region
    assert (name == "one window") == (found.windows[1] > 0)


def test_the_regimes_reach_what_can_be_reached(scatter_text):
    """Windows of a region lie inside, outside and overhanging, and two judges at least look at them."""
    [found] = verify(scatter_text("8xf32", "1xi32", "3xf32", TILE), GUARDED, level="regions").regions
    inside, overhanging, outside, most = found.windows
    assert min(inside, overhanging, outside) > 0
    assert most == 1
    assert {"XLA", "reference"} <= set(found.judges)
