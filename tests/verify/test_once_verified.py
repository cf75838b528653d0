"""Wrong second versions that were once verified, each small: an edge, lost numbers, attributes, other functions."""

import pytest
from untyped_mlir import module

import hlo_lower as hl
from hlo_lower.verify import Assumed, verify

SCATTER = "%r = scatter(%x, %i, %u) <inserted=[0], to=[0], ivd=1> {%p, %q: return %q}"
UNGUARDED = "%s = reshape %i -> i32; %r = dynamic_update_slice %x, %u, %s"


def written(body=SCATTER, returned="%r", *, n=8, attributes=""):
    """A module that writes one element of n, and returns that or what is computed behind."""
    return module(f"%x: {n}xf32{attributes}, %u: 1xf32, %i: 1x1xi32", body, returned)


EXTENTS = [(8, "auto"), (128, "regions"), *(pytest.param(n, "auto", marks=pytest.mark.sweep) for n in (1, 4, 64, 100))]


@pytest.mark.parametrize(("n", "level"), EXTENTS)
def test_an_update_without_a_guard(n, level):
    """A slice is updated at the nearest place where a scatter writes nothing, whatever the extent is."""
    before = written(n=n)
    verdict = verify(before, written(UNGUARDED, n=n), level=level)
    assert (verdict.differs, verdict.exit_code) == (True, 1), verdict.lines()
    [region] = verdict.regions
    assert not 0 <= region.inputs[2].item() < n
    assert verify(before, hl.lower(before).text, level=level).ok


BEHIND = {
    "a NaN becomes a zero": "%z = constant 0.0 : 8xf32; %c = compare EQ, %r, %r; %s = select %c, %r, %z",
    "-0.0 becomes 0.0": "%z = constant 0.0 : 8xf32; %s = add %r, %z",
    "infinity becomes finite": """%l = constant -3.40282347E+38 : 8xf32; %h = constant 3.40282347E+38 : 8xf32
    %s = clamp %l, %r, %h""",
}


@pytest.mark.parametrize("name", BEHIND)
def test_a_number_that_is_lost_behind_a_scatter(name):
    """What is changed of NaN, infinity and the sign of zero alone is a difference behind what both have in common."""
    verdict = verify(written(), written(f"{SCATTER}\n{BEHIND[name]}", "%s"), level="regions")
    assert (verdict.differs, {region.status for region in verdict.regions}) == (True, {"differs"}), verdict.lines()


@pytest.mark.parametrize(
    ("op", "kind"), [("abs %k", "i32"), ("minimum %k, %most", "i32"), ("maximum %k, %least", "i8")]
)
def test_integers_that_place_nothing(op, kind):
    """Data below zero, above 31 and at the end of its type is drawn, too."""
    ends = f"%most = constant 40 : 4x{kind}; %least = constant -127 : 4x{kind}"
    one, other = (module(f"%k: 4x{kind}", f"{ends}; %m = {op}", returned) for returned in ("%k", "%m"))
    assert verify(one, other, level="regions").differs
    assert verify(one, one, level="regions").ok


def test_a_sharding_of_an_argument_that_is_lost_gained_or_another_one():
    """It is a promise to the caller: told by name, whatever is computed. Split over two devices is not replicated."""
    plain, both, split = (
        written(attributes=how and f' {{mhlo.sharding = "{{{how}}}"}}') for how in ("", "replicated", "devices=[2]0,1")
    )
    for one, other, told in ((plain, both, "gains"), (both, plain, "loses"), (both, split, "has")):
        verdict = verify(one, other, level="regions")
        assert (verdict.differs, len(verdict.interface)) == (True, 1)
        assert f"argument 0 {told} mhlo.sharding" in verdict.interface[0]
    assert verify(both, both, level="regions").ok


def logits(factor):
    """Logits, some of which are banned."""
    body = f"""%k = constant {factor} : 16xf32; %ban = constant -1.0e30 : 3xf32; %y = multiply %x, %k
    %r = scatter(%y, %i, %ban) <inserted=[0], to=[0], ivd=1> {{%p, %q: return %q}}"""
    return module("%x: 16xf32, %i: 3x1xi32", body)


@pytest.mark.parametrize(("wrong", "reassociated"), [("0.0", True), ("2.001", True), ("2.001", False)])
def test_logits_beside_a_ban(wrong, reassociated):
    """Beside -1e30 zeros are not logits, nor are logits that are off by a part in two thousand, in either mode."""
    right, after = (hl.lower(logits(k)).text for k in ("2.0", wrong))
    assert verify(logits("2.0"), after, Assumed(reassociated=reassociated)).differs
    assert verify(logits("2.0"), right, Assumed(reassociated=reassociated)).ok


SOFTMAX = """%least = constant 0xFF800000 : f32; %zero = constant 0.0 : f32
%top = reduce(%x init: %least) applies stablehlo.maximum across dimensions = [1]
%tops = broadcast_in_dim %top, dims = [0] -> 4x16xf32; %moved = subtract %x, %tops; %e = exponential EXPONENT
%s = reduce(%e init: %zero) applies stablehlo.add across dimensions = [1]
%sums = broadcast_in_dim %s, dims = [0] -> 4x16xf32; %r = divide %e, %sums"""


@pytest.mark.parametrize("reassociated", [False, True])
def test_exponentials_that_overflow_are_seen(reassociated):
    """Without the maximum a softmax is the same for small numbers only: also where sums may be in another order."""
    safe, bare = (module("%x: 4x16xf32", SOFTMAX.replace("EXPONENT", name)) for name in ("%moved", "%x"))
    assert verify(safe, bare, Assumed(reassociated=reassociated)).differs
    assert verify(safe, safe.replace("%moved", "%other"), Assumed(reassociated=reassociated)).ok
