"""The memo under assumptions: what rests on one is kept as long as it holds, and everything else for good."""

from hlo_lower.facts.values.provider import Memo


def found(memo, key, value, rests_on=None):
    """Find something, resting on the assumption of a level."""
    memo.begin()
    if rests_on is not None:
        memo.note(rests_on)
    memo.keep(key, value)


def test_what_rests_on_nothing_stays():
    """What is found while something is assumed, but not by it, outlives the assumption."""
    memo = Memo()
    memo.assume()
    found(memo, "a", 1)
    memo.settle()
    assert memo.get("a") == 1


def test_what_rests_on_an_assumption_goes_with_it():
    """It is found again while that holds, and not after."""
    memo = Memo()
    memo.assume()
    found(memo, "a", 1, rests_on=1)
    assert memo.get("a") == 1
    memo.settle()
    assert memo.get("a") is None


def test_it_is_kept_with_the_innermost_that_it_rests_on():
    """An inner assumption that does not matter may be settled before."""
    memo = Memo()
    memo.assume()
    memo.assume()
    found(memo, "outer", 1, rests_on=1)
    found(memo, "inner", 2, rests_on=2)
    memo.settle()
    assert (memo.get("outer"), memo.get("inner")) == (1, None)
    memo.settle()
    assert memo.get("outer") is None


def test_what_is_made_of_it_rests_on_the_same():
    """A search that finds something in the memo, or by another search, rests on whatever that rests on."""
    memo = Memo()
    memo.assume()
    found(memo, "a", 1, rests_on=1)
    memo.begin()
    memo.get("a")
    memo.keep("of the memo", 2)
    memo.begin()
    found(memo, "b", 1, rests_on=1)
    memo.keep("of a search", 3)
    memo.begin()
    memo.begin()
    memo.note(1)
    memo.drop()
    memo.keep("of what is not kept", 4)
    memo.settle()
    assert [memo.get(key) for key in ("of the memo", "of a search", "of what is not kept")] == [None] * 3


def test_a_settled_assumption_is_no_reason_any_more():
    """The search that made an assumption and settled it rests on the others only."""
    memo = Memo()
    memo.begin()
    memo.assume()
    found(memo, "a", 1, rests_on=1)
    memo.settle()
    memo.keep("proved", 2)
    assert (memo.get("proved"), memo.level) == (2, 0)
