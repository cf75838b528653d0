"""A loop's step is looked for through conversions of a type to itself, and through no other."""

import pytest
from untyped_mlir import module

import hlo_lower as hl

COUNTED = """%zero = constant 0 : i32
    %w:2 = while(%i = %zero, %x = %o) cond { %p = compare LT, %i, 200; return %p
    } do {
      %at = reshape %i -> 1xi32; %y = scatter(%x, %at, %u) <inserted=[0], to=[0]> {assign}
      %a = convert %i -> KIND; %b = add %a, 1; %next = convert %b -> i32; return %next, %y
    }
    return %w#1"""


@pytest.mark.parametrize(("kind", "in_bounds"), [("i32", "always"), ("i8", "unknown")])
def test_a_counter_that_wraps_around_in_a_narrower_type_is_no_counter(kind, in_bounds):
    """Counted in i8, 127 is followed by -128, which is out of bounds; in i32 the loop counts from 0 to 199."""
    [record] = hl.classify(hl.read(module("%o: 200xf32, %u: f32", COUNTED.replace("KIND", kind))))
    assert record.in_bounds == in_bounds
