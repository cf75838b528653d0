"""Where computations end that were written otherwise: each is a region, not all of them one."""

import jax
import jax.numpy as jnp
import pytest
from untyped_mlir import module

import hlo_lower as hl

DERIVES = True


@pytest.mark.usefixtures("in_full_time")
def test_a_sort_of_what_is_sorted_is_two_regions():
    """The greatest numbers end where nothing else of their type is computed before what the second sort gives; and of
    two values that both versions reverse what they reverse is equal."""
    exported = hl.export(lambda x: jnp.flip(jnp.sort(jax.lax.top_k(x, 2)[0])), jax.ShapeDtypeStruct((2, 4), "float32"))
    verdict = hl.verify(exported, hl.lower(exported, target="iree"))
    assert {region.how for region in verdict.regions} == {"derived"}
    assert "order of an order" not in {law for region in verdict.regions for law in region.laws}  # each sort is alone


@pytest.mark.parametrize(
    ("moved", "other"),
    [
        ("%r = broadcast_in_dim %y, dims = [0] -> 0xf32", "%y = add %x, %x"),
        (
            "%s = slice %y [0:0] -> 0xf32; %r = reverse %s, dims = [0]",
            "%y = add %x, %x",
        ),
    ],
    ids=["none of one", "a part of it"],
)
def test_what_gives_no_element_says_nothing_of_what_it_moves(moved, other):
    """Of no elements the results are equal, whatever the operands are."""
    before, after = (module("%x: 1xf32", f"{line}; {moved}") for line in ("%y = exponential %x", other))
    assert hl.verify(before, after).exit_code == 0


def test_what_gives_some_elements_says_nothing_of_the_others():
    """A slice is equal where its operand is not."""
    line = "%r = slice %y [0:2] -> 2xf32"
    other = """%e = exponential %x; %z = constant 0.0 : 4xf32; %n = iota dim = 0 : 4xi32; %two = constant 2 : 4xi32
        %p = compare LT, %n, %two; %y = select %p, %e, %z"""
    before, after = (module("%x: 4xf32", f"{lines}; {line}") for lines in ("%y = exponential %x", other))
    assert hl.verify(before, after).exit_code == 0
