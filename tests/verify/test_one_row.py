"""What puts one row in order is the row: sorts along a dim of 1, and their reversals."""

import pytest
from untyped_mlir import module

import hlo_lower as hl

BODY = "%s = sort(%x) <dimension = {dim}> {{LT}}; %r = reverse %s, dims = [{dim}]"
SAME = module("%x: 8x1xi32", "return %x")


@pytest.mark.parametrize(("dim", "is_same"), [(1, True), (0, False)])
def test_a_sort_of_one_row_is_the_row(dim, is_same):
    """Along the other dim it is another computation."""
    verdict = hl.verify(module("%x: 8x1xi32", BODY.format(dim=dim)), SAME)
    assert verdict.ok == is_same
    assert ("the same operations" in str(verdict)) == is_same


def test_a_sort_that_names_no_dim_is_along_the_last_one():
    text = module("%x: 8x1xi32", "%r = sort(%x) {LT}")
    assert "the same operations" in str(hl.verify(text, SAME))
