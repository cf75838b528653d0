"""Pairs of modules: those that are equal are told so, and none that differ where it is easily overlooked."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from told_pairs import (
    CLAMP,
    DIFFERENT,
    EQUAL,
    ONLY_RUN,
    TURNING,
    UNEQUAL,
    UNGUARDED,
    XY,
    behind,
    point,
    returning,
    summed_up_to,
    written,
)
from untyped_mlir import module

import hlo_lower as hl
from hlo_lower.verify import Assumed, regions, verify
from hlo_lower.verify.drive import ties
from hlo_lower.verify.judges import judge


@pytest.mark.parametrize("name", UNEQUAL)
def test_pairs_that_differ_are_not_told_equal(name):
    assert not verify(*UNEQUAL[name], level="regions").ok


@pytest.mark.parametrize("name", DIFFERENT)
def test_pairs_are_told_to_differ(name):
    """In every region that is left between the two, but for other sizes."""
    verdict = verify(*DIFFERENT[name], level="regions")
    assert verdict.exit_code == 1, verdict.lines()
    assert {region.status for region in verdict.regions} == {"differs", *(["equal"] if "size" in name else [])}


@pytest.mark.few(3)
@pytest.mark.parametrize("name", TURNING)
def test_pairs_are_told_to_differ_the_other_way_round(name):
    assert verify(*TURNING[name][::-1], level="regions").exit_code == 1


@pytest.mark.parametrize("name", EQUAL)
def test_pairs_that_are_equal_are_told_so(name):
    verdict = verify(*EQUAL[name], level="regions")
    assert verdict.exit_code == 0, verdict.lines()


@pytest.mark.sweep
def test_a_loop_is_run_to_its_end_where_a_constant_bounds_it():
    """One that may count further than runs do is only run, and one that differs at its end is found out."""
    assert verify(*summed_up_to(1 << 20), level="regions").exit_code == 4
    assert verify(*summed_up_to(200, 1), level="regions").exit_code == 1


@pytest.mark.parametrize("told", ONLY_RUN)
def test_what_no_run_reaches_is_told_and_no_proof(told):
    verdict = verify(*ONLY_RUN[told], level="regions")
    assert verdict.exit_code == 4, verdict.lines()
    assert told in "\n".join(verdict.lines())


@pytest.mark.parametrize("name", [*UNEQUAL, *DIFFERENT])
def test_the_same_module_is_told_equal_to_itself(name):
    """What is compared besides is the same in the same module."""
    assert all(verify(text, text, level="regions").ok for text in (UNEQUAL | DIFFERENT)[name])


@pytest.mark.parametrize(("n", "level"), [(8, "auto"), (128, "regions")])
def test_an_update_without_a_guard(n, level):
    """A slice is updated at the nearest place where a scatter writes nothing, whatever the extent is."""
    verdict = verify(point(n=n), point(UNGUARDED, n=n), level=level)
    assert verdict.exit_code == 1, verdict.lines()
    [region] = verdict.regions
    assert not 0 <= region.inputs[2].item() < n
    assert verify(point(n=n), hl.lower(point(n=n)).text, level=level).ok


def test_a_clamp_makes_an_unguarded_update_right():
    """With the clamp inside both are one function; where it lets a window overhang, arguments show the difference."""
    verdict = verify(*behind(CLAMP.format(5)), level="regions")
    [region] = verdict.regions
    assert (region.status, region.how, region.scatters) == ("equal", "widened", (1,))
    assert "equal with 3 producers of its inputs" in "\n".join(verdict.lines())
    for last in (6, 2_000_000):
        [region] = verify(*behind(CLAMP.format(last)), level="regions").regions
        assert (region.status, int(region.inputs[1]) > 5) == ("differs", True)


def logits(factor):
    """Logits, some of which are banned."""
    body = f"""%k = constant {factor} : 16xf32; %ban = constant -1.0e30 : 3xf32; %y = multiply %x, %k
    %r = scatter(%y, %i, %ban) <inserted=[0], to=[0], ivd=1> {{assign}}"""
    return module("%x: 16xf32, %i: 3x1xi32", body)


SOFTMAX = """%least = constant 0xFF800000 : f32; %zero = constant 0.0 : f32
%top = reduce(%x init: %least) applies stablehlo.maximum across dimensions = [1]
%tops = broadcast_in_dim %top, dims = [0] -> 4x16xf32; %moved = subtract %x, %tops; %e = exponential HERE
%s = reduce(%e init: %zero) applies stablehlo.add across dimensions = [1]
%sums = broadcast_in_dim %s, dims = [0] -> 4x16xf32; %r = divide %e, %sums"""
SAFE, BARE = written("%x: 4x16xf32", SOFTMAX, "%moved", "%x")
BESIDE = """%big = constant 1.0e30 : 1xf32; %r = scatter(%x, %i, %u) <inserted=[0], to=[0], ivd=1> {add}
%d = HERE %r, %r; %c = concatenate %d, %big, dim = 0 -> 17xf32"""
KEPT, LOST = written("%x: 16xf32, %i: 4x1xi32, %u: 4xf32", BESIDE, "maximum", "subtract", "%c")
FLOATS = {
    "r - r in the place of r beside a large constant": (KEPT, KEPT, LOST),
    "zeros beside a ban": (logits("2.0"), logits("2.0"), logits("0.0")),
    "a part in two thousand beside a ban": (logits("2.0"), logits("2.0"), logits("2.001")),
    # without the maximum it is the same for small numbers only
    "exponentials that overflow": (SAFE, SAFE.replace("%moved", "%other"), BARE),
}


@pytest.mark.parametrize(
    ("name", "reassociated"),
    [
        *((name, True) for name in FLOATS),
        *(pytest.param(name, False, marks=pytest.mark.sweep if k else ()) for k, name in enumerate(FLOATS)),
    ],
)
def test_floats_differ_also_where_sums_may_be_in_another_order(name, reassociated):
    before, *others = FLOATS[name]
    right, wrong = (hl.lower(text).text for text in others)
    assert verify(before, wrong, Assumed(reassociated=reassociated)).differs
    assert verify(before, right, Assumed(reassociated=reassociated)).ok


def norm(x):
    """A norm of half floats, whose mean is computed in f32."""
    mean = jnp.mean((x * x).astype(jnp.float32), axis=1, keepdims=True).astype(jnp.float16)
    return x * jax.lax.rsqrt(mean + jnp.float16(1e-3))


WAYS = {
    "a rate of runs": (regions, "RUNS_WITH_A_ROUNDING", 0),
    "ties": (ties, "ROUNDING", frozenset()),
    "the constants": (judge, "constants_apart", lambda *_: ()),
}


@pytest.mark.parametrize(
    "way", [*(pytest.param(w, marks=pytest.mark.sweep if w != "the constants" else ()) for w in WAYS), None]
)
def test_a_constant_of_one_unit_more_is_not_equal(monkeypatch, way):
    """x / 4 and x / 3.9999998 differ as a half float only beside a tie, which sums of squares seldom meet. Each of some
    ways sees that, or leads to a run that shows it; without them all the two are told equal."""
    text = jax.jit(norm).lower(np.zeros((3, 4), np.float16)).as_text()
    other = text.replace("dense<4.000000e+00>", "dense<3.99999976>")
    assert other != text
    for name, without in WAYS.items():
        if name != way:
            monkeypatch.setattr(*without)
    assert verify(text, other, level="regions").exit_code in ((1, 4) if way else (0,))


def test_a_whole_module_whose_second_version_xla_gets_wrong_is_not_run():
    """XLA is not a judge of the second version's scatters either."""
    assert verify(*UNEQUAL["a write that XLA drops"], level="full").module.status == "not run"


SUM = "%z = constant 0.0 : f32; %t = reduce(%s init: %z) applies stablehlo.add across dimensions = [0]"


def test_a_mask_that_fills_nan_in_is_driven_beside_ordinary_floats():
    """Of random truth values one is false, and so nothing but NaN was compared."""
    masked = f"%nan = constant 0x7FC00000 : 64xf32; %s = select %m, %v, %nan; {SUM}; %n = negate %t"
    assert verify(*returning("%m: 64xi1, %v: 64xf32", masked, "%t", "%n"), level="regions").differs


def test_a_result_that_is_nan_in_every_run_is_not_told_equal():
    """Nothing is known of what is computed for it."""
    texts = returning(XY, "%a = subtract %x, %x; %n = divide %a, %a; %r = add %n, %y", "%n", "%r")
    [region] = verify(*texts, level="regions").regions
    assert (region.status, region.reason) == ("not judged", "result 0 is NaN in every run")


def test_what_rounding_decides_is_seen_beside_a_run_of_nan():
    """A run whose result is NaN tells nothing of how much rounding moves it."""
    body = f"%big = constant 1.0e20 : 64xf32; %p = multiply %x, %big; %s = HERE %p; {SUM}"
    texts = written("%x: 64xf32", body, "sine", "cosine", "%t")
    assert not verify(*texts, Assumed(reassociated=True), level="regions").ok


OUTFEED = """%t = create_token : !stablehlo.token
%u = "stablehlo.outfeed"(%x, %t) <{outfeed_config = "HERE"}> : (tensor<4xf32>, !stablehlo.token) -> !stablehlo.token"""
DIVIDED = "%a = constant 7 : 4xi32; %z = constant ZERO : 4xi32; %d = divide %a, %z; %r = HERE %d, %x"


def test_what_waits_for_a_host_is_not_run():
    """XLA would wait without end."""
    first, second = written(XY, OUTFEED, "a", "b", "%x")
    assert verify(first, second).differs
    assert verify(first, first).module.status == "not run"


@pytest.mark.parametrize("zero", ["0", "[1, 0, 2, 3]"])
def test_what_divides_a_constant_by_zero_is_run(zero):
    """XLA would end the process, if it saw both."""
    first, second = written("%x: 4xi32", DIVIDED.replace("ZERO", zero), "add", "subtract")
    assert not verify(first, second).ok
    assert verify(first, first).module.status == "equal"


@pytest.mark.sweep
@pytest.mark.parametrize("start", ["%a", "%x"])
def test_what_is_divided_may_be_computed_by_any_number_of_ops(start):
    """Behind eleven hundred sums; also by a zero that as many ops make."""
    sums = "\n".join(f"%v{k + 1} = add %v{k}, %o" for k in range(1100))
    body = f"%a = constant -1100 : 4xi32; %o = constant 1 : 4xi32; %v0 = multiply {start}, %o\n{sums}"
    body += "\n%d = remainder HERE; %r = add %d, %x"
    fine, zero = written("%x: 4xi32", body, "%v1100, %o", "%o, %v1100")
    assert verify(fine, fine).module.status == "equal"
    assert verify(zero, zero).module.status == "equal"


LEFT = {
    "cholesky": "cholesky %a, lower = true",
    "transform": "fft %a, type = RFFT, length = [3] -> 3x2xcomplex<f32>",
}


@pytest.mark.parametrize("name", LEFT)
def test_what_both_leave_to_a_factorization_or_a_transform_is_compared_for_nan(name):
    """A NaN that is lost before it; what it makes of one is the same in both."""
    body = f"%z = constant 0.0 : 3x3xf32; %p = compare GT, %x, %z; %a = HERE; %r = {LEFT[name]}"
    first, second = written("%x: 3x3xf32", body, "maximum %x, %z", "select %p, %x, %z")
    assert not verify(first, second).ok
    assert verify(first, first).ok
