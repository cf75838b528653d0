"""What no law of parts looks at must not be left open: unread results, results too many, loops that never end."""

import pytest
from untyped_mlir import module

from hlo_lower.verify.parts import are_equal_by_parts

DRAWN = "%r:2 = rng_bit_generator %x, algorithm = THREE_FRY : (tensor<2xui64>) -> (tensor<2xui64>, tensor<8xui32>)"
CALLED = "%r:2 = custom_call @computes(%x) -> (2xui64, 8xui32)"


def shown(first, second):
    """Whether two modules are shown to be equal."""
    return are_equal_by_parts(first, second, reassociated=True)


@pytest.mark.parametrize("body", [DRAWN, CALLED], ids=["state", "call"])
def test_results_that_nobody_reads_tell_what_is_computed(body):
    """The next state depends on how many numbers are drawn, and a call may do something else for another type."""
    text = module("%x: 2xui64", body, "%r#0")
    assert shown(text, text)
    assert not shown(text, text.replace("8xui32", "64xui32"))


def test_more_results_than_the_first_has_are_not_shown():
    """What the first one does not return is equal to nothing; what the second one does not is not asked for."""
    one, two = (module("%x: 4xf32", "%y = negate %x", returned) for returned in ("%x", "%x, %y"))
    assert not shown(one, two)
    assert shown(two, one)


def looped(limit="%most", following="%next"):
    """A loop of which every result is written over."""
    body = f"""%zero = constant 0 : i32; %one = constant 1 : i32; %most = constant 4 : i32
    %r:2 = while(%i = %zero, %carried = %x) cond {{ %c = compare LT, %i, {limit}; return %c }} do {{
      %next = add %i, %one; %other = negate %carried; return {following}, %other }}
    %y = negate %x; %whole = dynamic_update_slice %r#1, %y, %zero"""
    return module("%x: 4xf32, %n: i32", body, "%whole")


def test_a_loop_that_may_not_end_is_not_shown():
    """A loop whose results are written over has to end: it counts, or is one that the first piece has, too."""
    negated = module("%x: 4xf32, %n: i32", "%y = negate %x", "%y")
    assert shown(negated, looped())
    assert not shown(negated, looped(following="%zero"))
    assert not shown(negated, looped(limit="%n"))
    assert shown(looped(limit="%n"), looped(limit="%n"))
