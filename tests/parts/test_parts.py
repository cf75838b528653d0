"""Loops are shown equal part by part where they are, and nothing is where it is not."""

import numpy as np
import pytest
from mutants import mutant
from op_cases import CASES
from op_pieces import are_same, attacks
from random_graphs import are_equal, program, tiled
from untyped_mlir import module
from wrong_loops import MACHINERY, RULES, SEEN, changed

from hlo_lower.ops.axes.op_axes import default_subset_rules
from hlo_lower.verify import Assumed, regions, verify
from hlo_lower.verify.parts import are_equal_by_parts, by_parts
from hlo_lower.verify.parts.place_laws import each
from hlo_lower.verify.parts.positions import LoopCounter, Position

BY_NAME = {case.name: case for case in CASES}


def both(seed, rules=None):
    """A random program, and the same with loops in it."""
    text = program(seed)
    after = text
    for number in range(2):
        after, _ = tiled(after, seed + number, rules or default_subset_rules())
    return text, after


def shown(first, second):
    """Whether two modules are shown to be equal."""
    return are_equal_by_parts(first, second, reassociated=True)


def test_most_random_loops_are_shown():
    """Of the first random programs with loops at least three in four need no run."""
    found = [shown(*both(seed)) for seed in range(8)]
    assert sum(found) >= 6, found


@pytest.mark.parametrize("wrong", MACHINERY, ids=lambda wrong: wrong.__name__)
def test_a_wrong_loop_is_not_shown(wrong, monkeypatch):
    """Whatever way a loop is wrong, it is not taken for right."""
    wrong(monkeypatch)
    assert not shown(*both(SEEN[wrong.__name__]))


@pytest.mark.parametrize("what", RULES)
def test_a_wrong_rule_is_not_shown(what):
    """The judge does not believe what the tiler's rules say."""
    assert not shown(*both(SEEN[what], changed(*RULES[what])))


@pytest.mark.parametrize("name", ["transpose", "reduce_add"])
def test_ops_on_cut_operands_are_told_apart(name):
    """An op on cut operands is taken for a part of the op only where it gives it; some are."""
    found = [(first, second) for first, second in attacks(BY_NAME[name]) if shown(first, second)]
    assert found
    assert all(are_same(first, second) for first, second in found[:4])


@pytest.mark.parametrize(("name", "op"), [("reverse", "stablehlo.reverse"), ("sort", "stablehlo.sort")])
def test_a_wrong_law_is_seen(name, op, monkeypatch):
    """With the law of elementwise ops in the place of its own an op is taken for a part that it does not give."""
    monkeypatch.setitem(by_parts.LAWS, op, each)
    wrong = [pair for pair in attacks(BY_NAME[name]) if shown(*pair)]
    assert not all(are_same(*pair) for pair in wrong)


@pytest.mark.sweep
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_every_op_on_cut_operands_is_told_apart(case):
    """The same for every op with a rule, and every part that is shown."""
    assert [pair for pair in attacks(case) if shown(*pair) and not are_same(*pair)] == []


@pytest.mark.sweep
@pytest.mark.parametrize("block", range(20))
def test_no_wrong_mutant_is_shown(block):
    """Of random programs with loops, each changed somewhere a few times, those that are shown give the same."""
    for seed in range(20 * block, 20 * (block + 1)):
        first, second = both(seed)
        rng = np.random.default_rng(seed)
        for found in (mutant(second, rng) for _ in range(6)):
            if found is not None and shown(first, found):
                assert any(are_equal(first, found, rounding, seed) for rounding in ("quick", "unfused")), found


SUMS = module(
    "%x: 24x8xf32, %w: 8x96xf32",
    """%zero = constant 0.0 : f32; %logits = dot_general %x, %w, contracting_dims = [1] x [0]
    %likely = exponential %logits; %sums = reduce(%likely init: %zero) applies stablehlo.add across dimensions = [1]""",
    "%sums",
)


def looped(size):
    """The sums in six parts of a size."""
    body = f"""%zero = constant 0.0 : f32; %none = constant 0.0 : 24xf32; %first = constant 0 : i32
    %one = constant 1 : i32; %size = constant {size} : i32; %trips = constant 6 : i32
    %r:2 = while(%t = %first, %sums = %none) cond {{ %c = compare LT, %t, %trips; return %c }} do {{
      %i = multiply %t, %size; %part = dynamic_slice %w, %first, %i, sizes = [8, 16]
      %logits = dot_general %x, %part, contracting_dims = [1] x [0]; %likely = exponential %logits
      %more = reduce(%likely init: %zero) applies stablehlo.add across dimensions = [1]
      %new = add %sums, %more; %next = add %t, %one; return %next, %new }}"""
    return module("%x: 24x8xf32, %w: 8x96xf32", body, "%r#1")


def test_a_large_region_is_judged_by_its_parts(monkeypatch):
    """Where few runs could be made none is; what is not shown is run, and found wrong."""
    monkeypatch.setattr(regions, "VALUES", 0)
    right = verify(SUMS, looped(16), Assumed(reassociated=True), level="regions")
    assert [(region.judges, region.runs) for region in right.regions] == [(("their parts",), 0)]
    wrong = verify(SUMS, looped(15), Assumed(reassociated=True), level="regions")
    assert wrong.differs


def test_sums_of_floats_are_split_only_where_their_order_is_free():
    """Not where results are compared bit for bit."""
    assert are_equal_by_parts(SUMS, looped(16), reassociated=True)
    assert not are_equal_by_parts(SUMS, looped(16), reassociated=False)


def test_positions_have_bounds():
    """Those of a counter, of a sum, and of what is cut off; equal ones are equal objects."""
    i = Position.of(LoopCounter(1, 5))
    assert i.times(4).plus(Position(3)).bounds == (3, 19)
    assert i.times(4).at_most(10).bounds == (0, 10)
    assert i.plus(i) == i.times(2)
    assert i.times(6).plus(Position(4)).over(2) == i.times(3).plus(Position(2))
    assert i.times(6).plus(Position(3)).over(2) is None
    assert Position.of(LoopCounter(1, 1)) == Position(0)


# --- what no law looks at is not left open: unread results, results too many, loops that never end ---

DRAWN = "%r:2 = rng_bit_generator %x, algorithm = THREE_FRY : (tensor<2xui64>) -> (tensor<2xui64>, tensor<8xui32>)"
CALLED = "%r:2 = custom_call @computes(%x) -> (2xui64, 8xui32)"


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


def counting(limit="%most", following="%next"):
    """A loop of which every result is written over."""
    body = f"""%zero = constant 0 : i32; %one = constant 1 : i32; %most = constant 4 : i32
    %r:2 = while(%i = %zero, %carried = %x) cond {{ %c = compare LT, %i, {limit}; return %c }} do {{
      %next = add %i, %one; %other = negate %carried; return {following}, %other }}
    %y = negate %x; %whole = dynamic_update_slice %r#1, %y, %zero"""
    return module("%x: 4xf32, %n: i32", body, "%whole")


def test_a_loop_that_may_not_end_is_not_shown():
    """A loop whose results are written over has to end: it counts, or is one that the first piece has, too."""
    negated = module("%x: 4xf32, %n: i32", "%y = negate %x", "%y")
    assert shown(negated, counting())
    assert not shown(negated, counting(following="%zero"))
    assert not shown(negated, counting(limit="%n"))
    assert shown(counting(limit="%n"), counting(limit="%n"))
