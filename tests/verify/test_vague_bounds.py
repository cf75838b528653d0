"""Where sums may be in another order: what rounding alone decides in every run is not told to be equal."""

import pytest
from untyped_mlir import module

import hlo_lower as hl

SQUARED = "".join(f"%m{k + 1} = dot_general %m{k}, %m{k}, contracting_dims = [1] x [0]\n" for k in range(7))
POWERS = f"""%i = iota dim = 0 : 8x8xf32; %j = iota dim = 1 : 8x8xf32; %d = compare EQ, %i, %j
%e = convert %d -> 8x8xf32; %m0 = add %x, %e
{SQUARED}"""
"""(I + x) to the 128th power, %m7: of ordinary numbers NaN, of zeros zeros."""
NOISE = """%f = constant 1.0e+20 : 64xf32; %one = constant 1.5 : 64xf32; %z = constant 0.0 : f32
%y = add %x, %one; %p = multiply %y, %f; %s = FUNCTION %p
%r = reduce(%s init: %z) applies stablehlo.add across dimensions = [0]"""


def judged(before, after):
    """The verdict where sums may be in another order."""
    return hl.verify(before, after, level="regions", float_mode="reassociate")


@pytest.mark.sweep
def test_a_wrong_product_behind_many_is_seen_on_mild_floats():
    """What is only finite where floats are small is compared there; the right version is the product turned over."""
    turned = "%t = dot_general %x, %m7, contracting_dims = [0] x [1]; %r = transpose %t, dims = [1, 0]"
    before, right, wrong = (
        module("%x: 8x8xf32", POWERS + last, "%r")
        for last in (
            "%r = dot_general %m7, %x, contracting_dims = [1] x [0]",
            turned,
            "%r = dot_general %m7, %x, contracting_dims = [0] x [0]",
        )
    )
    assert judged(before, right).ok
    assert judged(before, wrong).differs


def test_what_is_noise_in_every_run_is_not_equal():
    """The sine of a number that rounding moves by many turns may be any; so may a cosine in its place."""
    before, after = (module("%x: 64xf32", NOISE.replace("FUNCTION", name), "%r") for name in ("sine", "cosine"))
    assert not judged(before, after).ok
    assert judged(before, before).ok
