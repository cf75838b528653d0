"""What a derivation makes is freed with it: a context that goes before its terms looks through all for each level."""

import gc

import pytest

pytest.importorskip("z3")

from untyped_mlir import module

from hlo_lower.verify.pull import derive
from hlo_lower.verify.pull.solver import z3


def scaled(factor):
    """A factor times a number, and that number, at each of eight places."""
    return module("%x: 8xi32", f"%c = constant {factor} : 8xi32; %a = multiply %x, %c; %r = add %a, %x")


@pytest.mark.parametrize("factor", [3, 5])
def test_no_term_is_left_behind_a_derivation(factor):
    """Of one that succeeds and of one that does not: Python's collector has nothing of it to look for later."""
    gc.disable()
    try:
        assert bool(derive(scaled(3), scaled(factor))) is (factor == 3)
        left = [one for one in gc.get_objects() if isinstance(one, z3.AstRef) and one.ctx is z3.main_ctx()]
    finally:
        gc.enable()
    assert not left
