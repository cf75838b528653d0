"""Where sums may be in another order: what rounding alone decides in every run is not told to be equal."""

import pytest

import hlo_lower as hl

SQUARINGS = 7
M8 = "tensor<8x8xf32>"


def powers(last: str) -> str:
    """(I + x) to the 128th power, %m, and what is made of it and x: of ordinary numbers NaN, of zeros zeros."""
    lines = [
        f"%i = stablehlo.iota dim = 0 : {M8}",
        f"%j = stablehlo.iota dim = 1 : {M8}",
        f"%d = stablehlo.compare EQ, %i, %j : ({M8}, {M8}) -> tensor<8x8xi1>",
        f"%e = stablehlo.convert %d : (tensor<8x8xi1>) -> {M8}",
        f"%m0 = stablehlo.add %x, %e : {M8}",
        *(
            f"%m{k + 1} = stablehlo.dot_general %m{k}, %m{k}, contracting_dims = [1] x [0] : ({M8}, {M8}) -> {M8}"
            for k in range(SQUARINGS)
        ),
        last.replace("%m", f"%m{SQUARINGS}"),
    ]
    return f"func.func @main(%x: {M8}) -> {M8} {{\n" + "\n".join(lines) + f"\nreturn %r : {M8}\n}}"


def product(one: str, other: str, dim: int = 1) -> str:
    """%r, a product of matrices."""
    return f"%r = stablehlo.dot_general {one}, {other}, contracting_dims = [{dim}] x [0] : ({M8}, {M8}) -> {M8}"


@pytest.mark.sweep
def test_a_wrong_product_behind_many_is_seen_on_mild_floats():
    """What is only finite where floats are small is compared there; the right version is the product turned over."""
    before, wrong = powers(product("%m", "%x")), powers(product("%m", "%x", dim=0))
    turned = f"%t = stablehlo.dot_general %x, %m, contracting_dims = [0] x [1] : ({M8}, {M8}) -> {M8}"
    right = powers(f"{turned}\n%r = stablehlo.transpose %t, dims = [1, 0] : ({M8}) -> {M8}")
    assert hl.verify(before, right, level="regions", float_mode="reassociate").ok
    assert hl.verify(before, wrong, level="regions", float_mode="reassociate").differs


NOISE = """func.func @main(%x: tensor<64xf32>) -> tensor<f32> {
  %f = stablehlo.constant dense<1.0e+20> : tensor<64xf32>
  %one = stablehlo.constant dense<1.5> : tensor<64xf32>
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %y = stablehlo.add %x, %one : tensor<64xf32>
  %p = stablehlo.multiply %y, %f : tensor<64xf32>
  %s = stablehlo.FUNCTION %p : tensor<64xf32>
  %r = stablehlo.reduce(%s init: %z) applies stablehlo.add across dimensions = [0] : (tensor<64xf32>, tensor<f32>) -> tensor<f32>
  return %r : tensor<f32>
}
"""  # noqa: E501


def test_what_is_noise_in_every_run_is_not_equal():
    """The sine of a number that rounding moves by many turns may be any; so may a cosine in its place."""
    before, after = (NOISE.replace("FUNCTION", name) for name in ("sine", "cosine"))
    verdict = hl.verify(before, after, level="regions", float_mode="reassociate")
    assert not verdict.ok
    assert hl.verify(before, before, level="regions", float_mode="reassociate").ok
