"""Sorts are derived to be what our rules write for them, and no sort whose order is open or another one is."""

import re
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

pytest.importorskip("z3")

from mutants import mutant
from op_pieces import are_same
from rule_examples import TARGETS
from untyped_mlir import module

import hlo_lower as hl
from hlo_lower.verify.pull import derive

SORT = """func.func public @main(%x: tensor<64xi32>, %y: tensor<64xf32>) -> (tensor<64xi32>, tensor<64xf32>) {
  %s:2 = "stablehlo.sort"(%x, %y) <{dimension = 0 : i64, is_stable = true}> ({
  ^bb0(%a: tensor<i32>, %b: tensor<i32>, %c: tensor<f32>, %d: tensor<f32>):
    %first = stablehlo.compare LT, %a, %b, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %first : tensor<i1>
  }) : (tensor<64xi32>, tensor<64xf32>) -> (tensor<64xi32>, tensor<64xf32>)
  return %s#0, %s#1 : tensor<64xi32>, tensor<64xf32>
}"""
RANKS = re.sub("compare +", "compare ", hl.lower(SORT, target="coreml").text)  # jaxlib 0.9 prints two spaces
UNSTABLE = "is_stable = false"


def test_a_sort_by_counting_is_derived_whatever_the_size():
    """Each element at its rank: sorts with payload, of floats by their total order, and unstable ones of keys alone."""
    found = derive(SORT, RANKS, seconds=20)
    assert found
    assert "ranks" in found.laws
    for sort in (jnp.argsort, lambda x: jnp.sort(x.astype(jnp.int32), stable=False)):
        text = jax.jit(sort).lower(jnp.zeros(64)).as_text()
        assert derive(text, hl.lower(text, target="coreml").text, seconds=20)


@pytest.mark.few(3)
@pytest.mark.parametrize(
    ("first", "second"),
    [
        (SORT.replace("is_stable = true", UNSTABLE), RANKS),  # equal keys may come in any order
        (SORT.replace("LT", "LE"), RANKS),  # no order: an element would come before itself
        (SORT.replace("LT", "GT"), RANKS),
        (SORT, RANKS.replace("compare LT", "compare LE", 1)),  # equal keys get the rank of the last of them
        (SORT, RANKS.replace("compare EQ", "compare GE", 1)),
    ],
)
def test_another_order_is_not_derived(first, second):
    """Or one that is open."""
    assert not derive(first, second, seconds=0.3)


def counted(x, *, among=64, before=jnp.less):
    """Each element at the number of those before it, of which some are looked for."""
    i = jnp.arange(64)
    is_first, is_behind = before(x[None, :], x[:, None]), before(x[:, None], x[None, :])
    rank = jnp.sum(is_first | (~is_behind & (i[None, :] < i[:, None])), axis=1, dtype=jnp.int32)
    here = rank[None, :among] == i[:, None]
    return x[jnp.sum(jnp.where(here, i[None, :among], 0), axis=1, dtype=jnp.int32)]


def wrapping(a, b):
    """Whether a - b is below 0 as the type holds it: no order, as 0 < 100 < -128 < 0."""
    return a - b < 0


def in_a_circle(a, b):
    """Whether b follows a among 0, 1, 2, 3 and 0 again: no order, though what neither precedes is all of one parity."""
    return (b - a) & 3 == 1


def sorted_by(before):
    """A stable sort of 64 numbers by a comparator of two."""
    body = {
        jnp.less: "%s = compare LT, %a, %b, SIGNED",
        wrapping: "%d = subtract %a, %b; %s = compare LT, %d, 0, SIGNED",
        in_a_circle: "%d = subtract %b, %a; %m = and %d, 3; %s = compare EQ, %m, 1, SIGNED",
    }
    sort = f"%r = sort(%x) <dimension = 0 : i64, is_stable = true> {{%a, %b: {body[before]}; return %s}}"
    return module("%x: 64xi8", sort)


@pytest.mark.parametrize(
    ("how", "is_derived"),
    [({}, True), ({"among": 63}, False), ({"before": wrapping}, False), ({"before": in_a_circle}, False)],
    ids=["all", "all but one", "a comparator that wraps", "a circle"],
)
def test_what_is_counted_is_a_sort_by_an_order(how, is_derived):
    """Where all ranks are looked for, and the comparator is transitive; else it is not, or another computation."""
    text = jax.jit(partial(counted, **how)).lower(jnp.zeros(64, jnp.int8)).as_text()
    assert bool(derive(sorted_by(how.get("before", jnp.less)), text, seconds=0.3)) == is_derived


def test_floats_without_a_total_order_have_no_ranks():
    """A NaN has no place among floats that LT compares, so that what a sort gives then is not said."""
    text = jax.jit(jnp.argsort).lower(jnp.zeros(64)).as_text()
    lowered = hl.lower(text, target="coreml").text
    [order] = set(re.findall("compare  *LT, .*TOTALORDER.*", text))
    plain = text.replace(order, re.sub(", +TOTALORDER", ", FLOAT", order))
    assert plain != text
    assert not derive(plain, lowered, seconds=0.3)


def ordered(count):
    """The stable order of some keys."""
    how = "<dimension = 0 : i64, is_stable = true> {%a, %b, %c, %d: %q = compare LT, %a, %b; return %q}"
    return f"%i = iota dim = 0 : {count}xi32; %s:2 = sort(%x, %i) {how}"


def of_keys(count, body):
    """A module of keys, of numbers for them, and of what those are combined with."""
    return module(f"%x: {count}xi32, %y: {count}xf32, %z: {count}xf32", f"{ordered(count)}\n{body}")


def at_places(places, combiner="add", count=50):
    """Numbers that are combined with others, at places made of the stable order of keys."""
    form = f"<inserted=[0], to=[0], ivd=1> {{{combiner}}}"
    return of_keys(count, f"{places}; %t = reshape %at -> {count}x1xi32; %r = scatter(%z, %t, %y) {form}")


def gathered(count=50):
    """The same, read at the number of the key: each place gets one number."""
    n, rows = f"{count}x{count}xi32", "collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1"
    body = f"""%low = constant -2147483648 : i32; %none = constant -1 : {n}
    %places = broadcast_in_dim %s#1, dims = [1] -> {n}; %here = iota dim = 0 : {n}
    %is = compare EQ, %places, %here; %number = iota dim = 1 : {n}; %those = select %is, %number, %none
    %k = reduce(%those init: %low) applies stablehlo.maximum across dimensions = [1]
    %t = reshape %k -> {count}x1xi32"""
    form = f"dimension_numbers = #stablehlo.gather<{rows}>, slice_sizes = array<i64: 1>"
    return of_keys(count, f"{body}; %n = gather(%y, %t) <{form}> -> {count}xf32; %r = add %z, %n")


IN_ORDER = "%o = constant 0 : 50xi32; %at = add %s#1, %o"


@pytest.mark.few(3)
@pytest.mark.parametrize(
    ("places", "combiner", "is_derived"),
    [
        (IN_ORDER, "add", True),
        (IN_ORDER, "%c, %d: %e = add %d, %c; return %e", True),
        (IN_ORDER.replace("constant 0", "constant 1"), "add", False),  # one goes out of bounds
        ("%o = constant 48 : 50xi32; %at = minimum %s#1, %o", "add", False),  # two go to one place
        ("%o = constant 0 : 50xi32; %at = add %s#0, %o", "add", False),  # equal keys go to one place
        (IN_ORDER, "maximum", False),
    ],
)
def test_one_number_at_each_place_is_no_sum(places, combiner, is_derived):
    """What is added at the places of a permutation is read by its inverse."""
    assert bool(derive(at_places(places, combiner), gathered(), seconds=0.5)) == is_derived


@pytest.mark.parametrize(
    "block", [pytest.param(block, marks=pytest.mark.sweep if block else ()) for block in range(40)]
)
def test_no_wrong_mutant_of_a_permutation_is_derived(block):
    """Each side changed somewhere a few times: those that are derived give the same, on keys that are often equal."""
    texts = at_places(IN_ORDER.replace("50x", "9x"), count=9), gathered(9)
    rng = np.random.default_rng(block)
    for k in range(4):
        found = mutant(texts[k % 2], rng)
        if found is not None and derive(texts[1 - k % 2], found, seconds=0.3):
            assert are_same(texts[1 - k % 2], found, seed=k), found


def by_keys(count, *shape):
    """The module of a sort by some keys of a shape along the last dim, and what a target with a top_k gets for it."""
    source = hl.export(lambda *keys: jax.lax.sort(keys, num_keys=count), *[np.zeros(shape, np.int32)] * count)
    return source.mlir_module(), hl.lower(source, target=TARGETS["own_top_k"]).text


KEYS = {"two": (2, 40), "three": (3, 40), "of rows": (2, 3, 40)}


@pytest.mark.parametrize("which", KEYS)
def test_a_sort_of_sorted_rows_is_one_by_both(which):
    """By the last key, and what came of that by the one before it, each by a top_k."""
    found = derive(*by_keys(*KEYS[which]), seconds=20)
    assert found
    assert "order of an order" in found.laws


def changed(text, which):
    """The text of two top_k with one thing changed."""
    tops = re.findall(r"chlo.top_k\((%\w+)", text)
    match which:
        case "the keys exchanged":
            return re.sub("(?<=reshape %arg)[01]", lambda found: str(1 - int(found[0])), text, count=2)
        case "one key goes down":
            return text.replace(" = stablehlo.subtract ", " = stablehlo.add ", 1)
        case "another key's order":
            return text.replace(f"chlo.top_k({tops[1]}", f"chlo.top_k({tops[0]}")
        case _:
            raise AssertionError(which)


@pytest.mark.few(2)
@pytest.mark.parametrize("which", ["the keys exchanged", "one key goes down", "another key's order"])
def test_another_sort_of_sorted_rows_is_not_derived(which):
    """Keys in another order, a key the other way, and what is sorted again in the order of the same key."""
    source, lowered = by_keys(2, 40)
    wrong = changed(lowered, which)
    assert wrong != lowered
    assert not derive(source, wrong, seconds=1)


def test_a_diagonal_of_several_orders_is_none():
    """Keys at what k is in the order of row k are 40 numbers, some twice: not the keys in another order."""

    def drawn(x, y):
        orders = jax.lax.top_k(x, 40)[1]
        return jax.lax.top_k(y[jnp.diagonal(orders)], 40)[0]

    given = np.zeros((40, 40), np.int32), np.zeros(40, np.int32)
    texts = [hl.export(function, *given).mlir_module() for function in (drawn, lambda _, y: jax.lax.top_k(y, 40)[0])]
    assert not derive(*texts, seconds=1)


@pytest.mark.parametrize(
    "block", [pytest.param(block, marks=pytest.mark.sweep if block else ()) for block in range(40)]
)
def test_no_wrong_mutant_of_a_sort_of_sorted_rows_is_derived(block):
    """Each side changed somewhere a few times: those that are derived give the same, on keys that are often equal."""
    texts, rng = by_keys(2 + block % 2, 12), np.random.default_rng(block)
    for k in range(4):
        found = mutant(texts[k % 2], rng)
        if found is not None and derive(texts[1 - k % 2], found, seconds=0.8):
            assert are_same(texts[1 - k % 2], found, seed=k), found


TOTAL = "%r = compare {}, %v, %w, TOTALORDER"
WIDE = "%v = convert %x -> 8xf32; %w = convert %y -> 8xf32; "


@pytest.mark.parametrize("direction", ["EQ", "LT", "GE"])
def test_bf16_keeps_its_total_order_in_f32(direction):
    """Each pair of 2,000 of its numbers, NaN and zeros of both signs among them; f32 whose last bit is set does not."""
    drawn = np.random.default_rng(0).integers(0, 1 << 16, 2000).astype(np.uint16)
    drawn[:8] = 0, 0x8000, 0x7F80, 0xFF80, 0x7FC0, 0xFFC0, 0x7F81, 0xFF81
    narrow, wide = (
        drawn.view(np.int16).astype(np.int64),
        (drawn.astype(np.uint32) << 16).view(np.int32).astype(np.int64),
    )
    narrow, wide = np.where(narrow < 0, narrow ^ 0x7FFF, narrow), np.where(wide < 0, wide ^ 0x7FFFFFFF, wide)
    assert np.array_equal(np.less.outer(narrow, narrow), np.less.outer(wide, wide))
    given, order = "%x: 8xbf16, %y: 8xbf16", TOTAL.format(direction)
    before = module(given, order.replace("%v", "%x").replace("%w", "%y"))
    assert derive(before, module(given, WIDE + order))
    bits = (
        "%b = bitcast_convert %w -> 8xi32; %o = constant 1 : 8xi32; %c = or %b, %o; %u = bitcast_convert %c -> 8xf32; "
    )
    assert not derive(before, module(given, WIDE + bits + order.replace("%w", "%u")))
