"""Regions are judged once where they are alike; what their inputs may be is part of that."""

import pytest
from untyped_mlir import module

from hlo_lower.verify import verify

RIGHT = "%s@ = multiply %i@, %i@; %p@ = xor %q@, %s@"
BELOW_FOUR = "%m@ = constant 3 : i32; %j@ = minimum %i@, %m@; %s@ = multiply %j@, %j@; %p@ = xor %q@, %s@"
"""The same for the first four values of the counter."""
LOOP = """%z@ = constant 0 : i32
%w@:2 = while(%i@ = %z@, %q@ = %x@) cond { %e@ = constant END : i32; %t@ = compare LT, %i@, %e@; return %t@ } do {
  %o@ = constant 1 : i32; %k@ = add %i@, %o@; STEP; return %k@, %p@ }
"""


def two_loops(ends: tuple[int, int], step: str) -> str:
    """Two loops one after the other, with the same body."""
    turns = LOOP.replace("STEP", step)
    loops = (turns.replace("END", str(end)).replace("@", name) for name, end in zip("ab", ends, strict=True))
    return module("%xa: i32, %xb: i32", "".join(loops), "%wa#1, %wb#1")


@pytest.mark.parametrize(("ends", "is_equal"), [((4, 4), True), ((4, 9), False), ((9, 4), False)])
def test_a_body_that_is_right_in_a_short_loop_is_judged_again_in_a_longer_one(ends, is_equal):
    """Two bodies of one text are alike only if their counters take the same values."""
    verdict = verify(two_loops(ends, RIGHT), two_loops(ends, BELOW_FOUR), level="regions")
    assert (verdict.ok, verdict.differs) == (is_equal, not is_equal), verdict.lines()
    if is_equal:
        assert [region.count for region in verdict.regions] == [2]
