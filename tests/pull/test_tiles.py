"""Loops over tiles are derived equal to what they compute where they are, and nothing is where it is not."""

from itertools import product

import numpy as np
import pytest
from mutants import mutant
from op_cases import CASES
from op_pieces import are_same, attacks
from random_graphs import are_equal, program, tiled
from small_tiles import by_hand
from untyped_mlir import module
from wrong_loops import MACHINERY, RULES, SEEN, changed

from hlo_lower.ops.axes.op_axes import default_subset_rules
from hlo_lower.verify import Assumed, verify
from hlo_lower.verify.pull import derive

BY_NAME = {case.name: case for case in CASES}


def both(seed, rules=None):
    """A random program, and the same with loops in it."""
    text = program(seed)
    after = text
    for number in range(2):
        after, _ = tiled(after, seed + number, rules or default_subset_rules())
    return text, after


def derived(first, second, seconds=0.3):
    """Whether two modules are equal, sums of floats in any order."""
    return bool(derive(first, second, seconds=seconds, reassociated=True))


@pytest.mark.few(2)
@pytest.mark.parametrize("seed", [9, 8, 21, 22, 23])
def test_random_loops_are_derived(seed):
    """Whatever ops the loops hold."""
    assert derived(*both(seed), seconds=30)


@pytest.mark.few(2)
@pytest.mark.parametrize("wrong", MACHINERY, ids=lambda wrong: wrong.__name__)
def test_a_wrong_loop_is_not_derived(wrong, monkeypatch):
    """Whatever way a loop is wrong, it is not taken for right."""
    wrong(monkeypatch)
    assert not derived(*both(SEEN[wrong.__name__]))


@pytest.mark.few(2)
@pytest.mark.parametrize("what", RULES)
def test_a_wrong_rule_is_not_derived(what):
    """The judge does not believe what the tiler's rules say."""
    assert not derived(*both(SEEN[what], changed(*RULES[what])))


@pytest.mark.few(1)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_ops_on_cut_operands_are_told_apart(case):
    """An op on cut operands is a part of the op only where it gives it."""
    assert [pair for pair in attacks(case) if derived(*pair, seconds=0.3) and not are_same(*pair)] == []


BLOCK = 4
"""Programs of a test. Most mutants differ, so that z3 looks for a proof in vain, a second of processor in each of up to
four attempts: 1.5 s a mutant, six mutants a program."""


@pytest.mark.sweep
@pytest.mark.parametrize("block", range(400 // BLOCK))
def test_no_wrong_mutant_is_derived(block):
    """Of random programs with loops, each changed somewhere a few times, those that are derived give the same."""
    for seed in range(BLOCK * block, BLOCK * (block + 1)):
        first, second = both(seed)
        rng = np.random.default_rng(seed)
        for found in (mutant(second, rng) for _ in range(6)):
            if found is not None and derived(first, found):
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


def test_sums_of_floats_are_split_only_where_their_order_is_free():
    """Not where results are compared bit for bit; either version may be the one with the loop."""
    assert derived(SUMS, looped(16), 30)
    assert derived(looped(16), SUMS, 30)
    assert not derived(SUMS, looped(15))
    assert not derive(SUMS, looped(16), seconds=0.3)


def test_zeros_of_both_signs_are_no_contradiction():
    """What is taken of x + 0 must leave a sum of 0.0 and -0.0 what it is: else all is equal there."""
    bits = """%a = bitcast_convert %x -> 4xi32; %b = bitcast_convert %y -> 4xi32; %least = constant -2147483648 : 4xi32
    %zero = constant 0 : 4xi32; %p = compare EQ, %a, %least, SIGNED; %q = compare EQ, %b, %zero, SIGNED
    %both = and %p, %q; %sum = add %x, %y; %one = constant 1.0 : 4xf32; %r = select %both, %one, %sum"""
    texts = [module("%x: 4xf32, %y: 4xf32", bits, returned) for returned in ("%sum", "%r")]
    assert not derived(*texts)


def folded(step, begin, tile):
    """A loop over six tiles of 16 elements of x and y, of which each gives %part."""
    body = f"""%zero = constant 0.0 : f32; %first = constant 0 : i32; %one = constant 1 : i32; %size = constant 16 : i32
    %trips = constant 6 : i32; %none = constant {begin} : f32
    %r:2 = while(%t = %first, %sum = %none) cond {{ %c = compare LT, %t, %trips; return %c }} do {{
      %i = multiply %t, %size; %a = dynamic_slice %x, %i, sizes = [16]; %b = dynamic_slice %y, %i, sizes = [16]
      {tile}; %new = {step} %sum, %part; %next = add %t, %one; return %next, %new }}"""
    return module("%x: 96xf32, %y: 96xf32", body, "%r#1")


def whole(body):
    """A module of x and y in one piece."""
    return module("%x: 96xf32, %y: 96xf32", f"%zero = constant 0.0 : f32; %one = constant 1.0 : f32; {body}")


def reduced(result, value, op="add", begin="%zero"):
    """A reduce of a vector."""
    return f"%{result} = reduce(%{value} init: {begin}) applies stablehlo.{op} across dimensions = [0]"


PRODUCT = "dot_general %{}, %{}, contracting_dims = [0] x [0]"
OF_OTHER_OPS = {
    "a product of products is not their sum": (
        whole("%r = " + PRODUCT.format("x", "y")),
        folded("multiply", "1.0", "%part = " + PRODUCT.format("a", "b")),
    ),
    "a product of sums is not their sum": (
        whole(reduced("r", "x")),
        folded("multiply", "1.0", reduced("part", "a")),
    ),
    "a product of sums is not a sum of products": (
        whole("%s = add %x, %y; " + reduced("r", "s", "multiply", "%one")),
        whole(f"{reduced('p', 'x', 'multiply', '%one')}; {reduced('q', 'y', 'multiply', '%one')}; %r = add %p, %q"),
    ),
}


@pytest.mark.parametrize("name", OF_OTHER_OPS)
def test_folds_of_two_ops_are_not_one(name):
    """What holds of sums of sums holds of no other pair of ops."""
    assert not derived(*OF_OTHER_OPS[name])


@pytest.mark.parametrize("part", ["%part = " + PRODUCT.format("a", "b"), reduced("part", "a")])
def test_sums_of_tiles_are_one_sum(part):
    """Of products and of elements: the same loops as above, with an addition."""
    one = "%r = " + PRODUCT.format("x", "y") if "dot" in part else reduced("r", "x")
    assert derived(whole(one), folded("add", "0.0", part), 30)


def convolved(squared="%y, %y"):
    """The sum over rows and columns of the squares of a padded convolution."""
    body = f"""%y = convolution(%x, %w) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], \
window = {{stride = [1, 1], pad = [[1, 1], [1, 1]]}} \
{{batch_group_count = 1 : i64, feature_group_count = 1 : i64}} -> 1x6x6x2xf32
    %s = multiply {squared}; %z = constant 0.0 : f32
    %r = reduce(%s init: %z) applies stablehlo.add across dimensions = [1, 2]"""
    return module("%x: 1x6x6x2xf32, %w: 3x3x2x2xf32", body.replace("\\\n", ""))


@pytest.mark.parametrize("rows", [1, 2])
def test_what_tiles_compute_inside_of_a_sum_is_compared_at_their_places(rows):
    """A convolution of tiles with their halo, within a sum over rows, is that of all rows at the same places."""
    after = by_hand(convolved(), 5, 2, rows)
    assert all(word in after for word in ("while", "dense<-1>"))
    assert derived(convolved(), after, 30)
    assert not derived(convolved("%y, %x"), after)
    assert not derived(convolved(), after.replace("dense<-1>", "dense<-2>"))


ONE, TWO = "%k = {} %a, %b", "%m = multiply %a, %b; %k = add %m, %b"


@pytest.mark.few(3)
@pytest.mark.parametrize(("inner", "outer"), [*product((ONE.format("add"), ONE.format("maximum"), TWO), repeat=2)])
def test_sums_of_rows_are_not_those_of_columns(inner, outer):
    """Within the sum of their exponentials both are bound, and on the diagonal they are of the same elements."""

    def sums(dim):
        return module(
            "%x: 6x6xf32",
            f"""%z = constant 0.0 : f32
    %s = reduce(%x, %z) <dimensions = array<i64: {dim}>> {{%a, %b: {inner}; return %k}} -> 6xf32; %e = exponential %s
    %r = reduce(%e, %z) <dimensions = array<i64: 0>> {{%a, %b: {outer}; return %k}} -> f32""",
        )

    assert derived(sums(0), sums(0))
    assert not derived(sums(0), sums(1))


def test_a_split_sum_is_judged_without_a_run():
    """Where `--float-mode reassociate` says that the order is free; a wrong one is run and found wrong."""
    [region] = verify(SUMS, looped(16), Assumed(reassociated=True), level="regions").regions
    assert (region.how, region.runs) == ("derived", 0)
    assert "reassociated" in region.laws
    assert verify(SUMS, looped(15), Assumed(reassociated=True), level="regions").differs


# --- what no law looks at is not left open: unread results, loops that never end ---

DRAWN = "%r:2 = rng_bit_generator %x, algorithm = THREE_FRY : (tensor<2xui64>) -> (tensor<2xui64>, tensor<8xui32>)"
CALLED = "%r:2 = custom_call @computes(%x) -> (2xui64, 8xui32)"


@pytest.mark.parametrize("body", [DRAWN, CALLED], ids=["state", "call"])
def test_results_that_nobody_reads_tell_what_is_computed(body):
    """The next state depends on how many numbers are drawn, and a call may do something else for another type."""
    text = module("%x: 2xui64", body, "%r#0")
    assert derived(text, text)
    assert not derived(text, text.replace("8xui32", "64xui32"))


def counting(limit="%most", following="%next"):
    """A loop of which every result is written over."""
    body = f"""%zero = constant 0 : i32; %one = constant 1 : i32; %most = constant 4 : i32
    %r:2 = while(%i = %zero, %carried = %x) cond {{ %c = compare LT, %i, {limit}; return %c }} do {{
      %next = add %i, %one; %other = negate %carried; return {following}, %other }}
    %y = negate %x; %whole = dynamic_update_slice %r#1, %y, %zero"""
    return module("%x: 4xf32, %n: i32, %m: i32", body, "%whole")


def test_a_loop_that_may_not_end_is_not_derived():
    """A loop whose results are written over has to end: it counts, or is one that the first version has, too."""
    negated = module("%x: 4xf32, %n: i32, %m: i32", "%y = negate %x", "%y")
    assert derived(negated, counting())
    assert not derived(negated, counting(following="%zero"))
    assert not derived(negated, counting(limit="%n"))
    assert derived(counting(limit="%n"), counting(limit="%n"))
    assert not derived(counting(limit="%n"), counting(limit="%m"))


@pytest.mark.parametrize("element", ["i32", "f32"])
def test_a_loop_that_reads_all_that_it_carries_is_a_function(element):
    """A sum of what a loop carries differs from round to round: the loop is no fold, position by position."""

    def summed(pair):
        zero = "0.0" if element == "f32" else "0"
        body = f"""%zero = constant {zero} : {element}; %first = constant 0 : i32; %one = constant 1 : i32
        %most = constant 50 : i32
        %r:2 = while(%i = %first, %v = %x) cond {{ %c = compare LT, %i, %most; return %c }} do {{
          %all = reduce(%v init: %zero) applies stablehlo.add across dimensions = [0]
          %each = broadcast_in_dim %all, dims = [] -> 8x{element}
          %new = add {pair}; %next = add %i, %one; return %next, %new }}"""
        return module(f"%x: 8x{element}", body, "%r#1")

    assert derived(summed("%v, %each"), summed("%each, %v"), 30)
    assert not derived(summed("%v, %each"), summed("%v, %v"))


def test_variables_of_a_loop_are_not_those_around_it():
    """A loop that is asked for at variables, in which a value is asked for at a second place, and so at variables."""

    def turned(pair):
        body = f"""%zero = constant 0 : i32; %one = constant 1 : i32; %two = constant 2 : i32
        %r:2 = while(%t = %zero, %a = %x) cond {{ %c = compare LT, %t, %two; return %c }} do {{
          %b = reshape %a -> 2x3x1xi32
          %own = reduce(%b init: %one) applies stablehlo.multiply across dimensions = [2]
          %back = reverse %own, dims = [1]
          %f = subtract {pair}; %next = add %t, %one; return %next, %f }}
        %none = constant 0 : 2x3xi32; %no = multiply %r#1, %none; %turned = reverse %r#1, dims = [1]
        %s = add %no, %turned"""
        return module("%x: 2x3xi32", body, "%s")

    assert derived(turned("%own, %own"), turned("%own, %own"))
    assert not derived(turned("%own, %back"), turned("%own, %own"))
