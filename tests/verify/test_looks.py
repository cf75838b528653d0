"""A module in bf16 and one that moves and computes in f32: values are aligned through the conversions."""

from untyped_mlir import module

import hlo_lower as hl

DERIVES = True

ARGUMENTS = "%x: 4x8xbf16, %w: 8x8xbf16, %b: 8xbf16, %i: 1xi32"
BEFORE = module(
    ARGUMENTS,
    """%y = dot_general %x, %w, contracting_dims = [1] x [0]; %c = broadcast_in_dim %b, dims = [1] -> 4x8xbf16
    %z = add %y, %c; %t = tanh %z; %r = transpose %t, dims = [1, 0]""",
    "%r",
)
AFTER = module(
    ARGUMENTS,
    """%0 = convert %x -> 4x8xf32; %1 = convert %w -> 8x8xf32; %2 = dot_general %0, %1, contracting_dims = [1] x [0]
    %y = convert %2 -> 4x8xbf16; %3 = convert %b -> 8xf32; %4 = broadcast_in_dim %3, dims = [1] -> 4x8xf32
    %5 = convert %y -> 4x8xf32; %6 = add %5, %4; %z = convert %6 -> 4x8xbf16; %t = tanh %z
    %7 = convert %t -> 4x8xf32; %8 = transpose %7, dims = [1, 0]; %r = convert %8 -> 8x4xbf16""",
    "%r",
)


def test_each_op_is_a_region():
    """What is computed in f32 and rounded is derived op by op, and the tanh between is the same in both."""
    verdict = hl.verify(BEFORE, AFTER)
    assert [(region.how, len(region.first)) for region in verdict.regions] == [("derived", n) for n in (1, 2, 1)]


def test_a_number_that_is_not_rounded_is_another():
    """The sum of the product before it is rounded looks like another value, and is one."""
    unrounded = AFTER.replace("%6 = stablehlo.add %5, %4", "%6 = stablehlo.add %2, %4")
    assert unrounded != AFTER
    verdict = hl.verify(BEFORE, unrounded)
    assert verdict.exit_code == 1
    assert verdict.summary().count("derived") <= 1
