"""Regions of loops are derived within what their counters are, however many turns there are."""

from untyped_mlir import module

from hlo_lower.verify import verify

LOOP = """%zero = constant 0 : i32; %one = constant 1 : i32
%w:2 = while(%k = %zero, %v = %x) cond { %c = compare LT, %k, %n, SIGNED; return %c } do {
  %next = add %k, %one; %f = convert %k -> f32; %g = broadcast_in_dim %f, dims = [] -> 3xf32; OP; return %next, %r }"""


def test_a_counter_of_two_billion_turns_costs_nothing():
    """What an open loop's counter may be is known by its ends."""
    difference, turned = (
        module("%n: i32, %x: 3xf32", LOOP.replace("OP", op), "%w#1")
        for op in ("%r = subtract %v, %g", "%m = negate %g; %r = add %m, %v")
    )
    verdict = verify(difference, turned, require="derived", level="regions")
    assert (verdict.ok, verdict.counts()) == (True, {"derived": 1})


def test_what_is_only_tested_does_not_count_as_derived():
    """Its exit code is 4, and 1 where it differs."""
    bodies = "%a = abs %x; %r = sqrt %a", "%n = negate %x; %a = maximum %n, %x; %r = sqrt %a"
    texts = [module("%x: 4xf32", body, "%r") for body in bodies]
    assert [verify(*texts, require=which, level="regions").exit_code for which in ("tested", "derived")] == [0, 4]
