"""Points that are counted by one number, where a reshape stands beside what gathers or scatters them."""

import re

import numpy as np
import pytest
from small_tiles import by_hand
from untyped_mlir import module

import hlo_lower as hl
from hlo_lower.ir.writer import to_text
from hlo_lower.tile.find import moved_links
from hlo_lower.tile.prepare import merged_points
from hlo_lower.tile.prepare.merged_points import merge_points
from hlo_lower.verify.run import Executable

ADDED = "{%a, %b: %n = add %a, %b; return %n}"
KEPT = "{%a, %b: return %b}"


def text_of(shape, element):
    """A type in short."""
    return "x".join([*map(str, shape), element])


def drawn(seed):
    """A random module of a gather of points of what is reshaped, or of a scatter of points whose operand, result or
    updates are, and arguments for it: points in bounds, at the edges and beyond, of several integer types."""
    rng = np.random.default_rng([seed, 7])
    front, behind = (tuple(int(n) for n in rng.choice((1, 2, 3), rng.integers(0, 2))) for _ in range(2))
    counted = tuple(int(n) for n in rng.choice((2, 3, 4), rng.integers(2, 4)))
    whole, rows = (*front, *counted, *behind), (*front, int(np.prod(counted)), *behind)
    dims = [len(front) + k for k in range(len(counted))]
    mapped = [int(d) for d in rng.permutation(dims)]
    places = tuple(int(n) for n in rng.choice((2, 3, 5), rng.integers(1, 3)))
    vector = int(rng.integers(0, len(places) + 1))
    named = (*places[:vector], len(mapped), *places[vector:])
    element = str(rng.choice(("i32", "i8", "ui8", "ui32")))
    windows = [len(places) + k for k in range(len(front) + len(behind))]
    update = (*places, *front, *behind)
    if rng.random() < 0.4:
        sizes = [1 if d in dims else n for d, n in enumerate(whole)]
        body = f"""%e = add %x, %x; %p = reshape %e -> {text_of(whole, "i32")}
        %g = gather(%p, %i) <dimension_numbers = #stablehlo.gather<offset_dims = {windows},
          collapsed_slice_dims = {dims}, start_index_map = {mapped}, index_vector_dim = {vector}>,
          slice_sizes = array<i64: {", ".join(map(str, sizes))}>> -> {text_of(update, "i32")}
        %r = negate %g"""
    else:
        flat, how = (int(np.prod(places)), *front, *behind), rng.choice((ADDED, KEPT))
        body = f"""%e = add %x, %x; %p = reshape %e -> {text_of(whole, "i32")}
        %f = add %u, %u; %v = reshape %f -> {text_of(flat, "i32")}; %w = negate %v
        %y = reshape %w -> {text_of(update, "i32")}
        %s = scatter(%p, %i, %y) <window={windows}, inserted={dims}, to={mapped}, ivd={vector}> {how}
        %q = reshape %s -> {text_of(rows, "i32")}; %r = negate %q"""
    types = [f"%x: {text_of(rows, 'i32')}", f"%i: {text_of(named, element)}", f"%u: {text_of(update, 'i32')}"]
    text = module(", ".join(types), body)
    low = 0 if element.startswith("u") else -2
    points = rng.integers(low, 6, named)
    kind = ("uint" if element.startswith("u") else "int") + element.lstrip("ui")
    points = np.where(rng.random(named) < 0.1, np.iinfo(kind).max, points).astype(kind)
    data, updates = (rng.integers(-9, 9, shape).astype(np.int32) for shape in (rows, update))
    return text, [data, points, updates]


def merged(text):
    """A module with its points merged."""
    graph = hl.read(text)
    merge_points(graph)
    return to_text(graph)


def differs(seed):
    """Whether a random module, merged, gives something else."""
    text, given = drawn(seed)
    after = merged(text)
    assert after != text
    one, other = (Executable(version, "quick").run(given)[0] for version in (text, after))
    return not np.array_equal(one, other)


@pytest.mark.parametrize("seeds", [range(6), pytest.param(range(6, 500), marks=pytest.mark.sweep)], ids=str)
def test_merged_points_are_the_same(seeds):
    """Of gathers and scatters, in bounds and beyond: bit for bit."""
    assert [seed for seed in seeds if differs(seed)] == []


def one_behind(right):
    """The numbers of points, each one further."""

    def count(build, node, indices, group):
        found = right(build, node, indices, group)
        return build.add(found, build.constant(1, found.static_shape, "i32"))

    return count


def in_order(right):
    """The numbers of points in the order of the index vector's components."""
    return lambda numbers: (*right(numbers)[:2], tuple(sorted(right(numbers)[2])))


WRONG = {"one behind": ("_count", one_behind), "components in order": ("dims_of", in_order)}


@pytest.mark.parametrize("what", WRONG)
def test_wrong_numbers_are_seen(what, monkeypatch):
    """Points that are counted wrongly give something else."""
    name, broken = WRONG[what]
    monkeypatch.setattr(merged_points, name, broken(getattr(merged_points, name)))
    assert any(differs(seed) for seed in range(6))


FOLLOWED = {
    "gather": """%p = reshape %e -> 10x2x6xi32; %r = gather(%p, %pairs) <dimension_numbers = #stablehlo.gather<
      offset_dims = [1], collapsed_slice_dims = [0, 1], start_index_map = [0, 1], index_vector_dim = 1>,
      slice_sizes = array<i64: 1, 1, 6>> -> 12x6xi32""",
    "scatter": f"""%p = reshape %x -> 2x10x6xi32
      %s = scatter(%p, %pairs, %f) <window=[1], inserted=[0, 1], to=[1, 0], ivd=1> {ADDED}
      %r = reshape %s -> 20x6xi32""",
    "updates": f"""%g = reshape %f -> 3x4x6xi32; %i = reshape %rows -> 3x4x1xi32
      %r = scatter(%x, %i, %g) <window=[2], inserted=[0], to=[0], ivd=2> {ADDED}""",
}


@pytest.mark.parametrize("name", FOLLOWED)
def test_tiles_go_through_reshaped_points(name, monkeypatch):
    """Of what is reshaped before it is picked or scattered a tile computes its own rows."""
    monkeypatch.setattr(moved_links, "LEAST_CHUNK", 2)
    text = module(
        "%x: 20x6xi32, %y: 12x6xi32, %pairs: 12x2xi32, %rows: 12x1xi32",
        f"%e = add %x, %x; %f = add %y, %y; {FOLLOWED[name]}; %t = negate %r",
        "%t",
    )
    after = by_hand(text, text.splitlines().index(text.splitlines()[-3]) + 1, 0, 4)
    sizes = re.findall(r"stablehlo.add .*tensor<(\d+)x6xi32>", after)
    assert sizes
    assert max(map(int, sizes)) < 12
    rng = np.random.default_rng(3)
    given = [rng.integers(-9, 9, shape) for shape in ((20, 6), (12, 6))]
    given += [
        rng.integers(-2, 12, (12, 2)) * [1, 0] + rng.integers(-1, 3, (12, 2)) * [0, 1],
        rng.integers(-2, 23, (12, 1)),
    ]
    one, other = (Executable(v, "quick").run([a.astype(np.int32) for a in given])[0] for v in (text, after))
    assert np.array_equal(one, other)
