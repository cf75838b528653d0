"""Random small programs of int32 arrays, in which every sum is exact whatever its order, and random loops in them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np

import hlo_lower as hl
from hlo_lower.facts.memory.dataflow import Dataflow
from hlo_lower.ir.writer import to_text
from hlo_lower.ops.axes.cut import AxisLink, Boundary, OpAxes, SubsetRules
from hlo_lower.tile.by_hand import axes_by_dim, extent_along, tile_by_hand
from hlo_lower.tile.emit.emit_loops import Sizes, emit
from hlo_lower.tile.emit.phases import LoopPlan, cut
from hlo_lower.tile.find.labels import FUSES, core_of, label
from hlo_lower.tile.prepare.normalize import prepare
from hlo_lower.verify.run import Executable, Rounding

SIZES = (1, 2, 3, 4, 6)


@dataclass
class Drawn:
    """A program being drawn: arrays by which the next ones are computed."""

    rng: np.random.Generator
    arrays: list[jax.Array] = field(default_factory=list)

    def one(self, least_rank: int = 0) -> jax.Array:
        """An array of at least a rank, late ones more often."""
        fit = [a for a in self.arrays if a.ndim >= least_rank]
        return fit[int(len(fit) * self.rng.random() ** 0.5)]

    def axis(self, array: jax.Array) -> int:
        """A dim of an array."""
        return int(self.rng.integers(array.ndim))


def cast(d: Drawn, choices: Sequence[Any]) -> Any:
    """One of some choices."""
    return choices[d.rng.integers(len(choices))]


def binary(d: Drawn, a: jax.Array) -> jax.Array:
    same = [b for b in d.arrays if b.shape == a.shape]
    return cast(d, (jnp.add, jnp.multiply, jnp.maximum))(a, cast(d, same))


def mask(d: Drawn, a: jax.Array) -> jax.Array:
    """A select by a comparison of iotas, as of a causal mask."""
    rows, columns = (jax.lax.broadcasted_iota(jnp.int32, a.shape, k) for k in (0, d.axis(a)))
    return jnp.where(rows + 1 >= columns, a, -columns)


def broadcast(d: Drawn, a: jax.Array) -> jax.Array:
    """A new dim, alike along it or of one position."""
    place = int(d.rng.integers(a.ndim + 1))
    shape = (*a.shape[:place], cast(d, SIZES), *a.shape[place:])
    return jax.lax.broadcast_in_dim(a, shape, [k for k in range(len(shape)) if k != place])


def reshape(d: Drawn, a: jax.Array) -> jax.Array:
    """Two neighbours merged, or the first dim split."""
    if a.ndim > 1 and d.rng.random() < 0.5:
        k = int(d.rng.integers(a.ndim - 1))
        return a.reshape(*a.shape[:k], -1, *a.shape[k + 2 :])
    k = d.axis(a)
    part = 2 if a.shape[k] % 2 == 0 else 1
    return a.reshape(*a.shape[:k], *((part, -1) if d.rng.random() < 0.5 else (-1, part)), *a.shape[k + 1 :])


def transpose(d: Drawn, a: jax.Array) -> jax.Array:
    return a.transpose(*(int(k) for k in d.rng.permutation(a.ndim)))


def window(d: Drawn, a: jax.Array) -> jax.Array:
    """A slice, a pad, a reverse, a concatenation or a roll along a dim."""
    k = d.axis(a)
    low = [(1, 2, 0) if dim == k else (0, 0, 0) for dim in range(a.ndim)]
    along = jax.lax.slice_in_dim(a, 0, max(1, a.shape[k] - 1), axis=k)
    return cast(d, (along, jax.lax.pad(a, jnp.int32(5), low), jnp.flip(a, k), jnp.concatenate([a, along], k)))


def dot(d: Drawn, a: jax.Array) -> jax.Array:
    """A product with another array of which a dim fits, batched where the first dims fit, too."""
    k = d.axis(a)
    b, j = cast(d, [(b, j) for b in d.arrays for j in range(b.ndim) if b.shape[j] == a.shape[k]])
    is_batched = d.rng.random() < 0.4 and k and j and a.shape[0] == b.shape[0]
    return jax.lax.dot_general(a, b, (((k,), (j,)), ((0,), (0,)) if is_batched else ((), ())))


def reduce(d: Drawn, a: jax.Array) -> jax.Array:
    """A sum, a maximum, or a softmax-like pair of both, kept as a dim now and then."""
    k, keep = d.axis(a), bool(d.rng.random() < 0.5)
    found = cast(d, (jnp.sum, jnp.max, jnp.min))(a, axis=k, keepdims=keep)
    return a - found if keep and d.rng.random() < 0.6 else found


def gather(d: Drawn, a: jax.Array) -> jax.Array:
    """Rows that the data picks, clamped."""
    rows = d.one(1)
    return jnp.take(a, rows.reshape(-1)[:6], axis=d.axis(a), mode="clip")


def scatter(d: Drawn, a: jax.Array) -> jax.Array:
    """Rows that the data picks written, added or maximised; out of bounds they are dropped."""
    rows = d.one(1).reshape(-1)[:6] % 7 - 2
    value = d.rng.integers(-3, 4, (len(rows), *a.shape[1:])).astype(np.int32) + rows[(..., *[None] * (a.ndim - 1))]
    return getattr(a.at[jnp.where(rows < 0, 99, rows)], cast(d, ("set", "add", "max")))(value, mode="drop")


def sort(d: Drawn, a: jax.Array) -> jax.Array:
    """Sorted along a dim, or the largest of the last."""
    return jnp.sort(a, axis=d.axis(a)) if d.rng.random() < 0.5 else jax.lax.top_k(a, 1 + a.shape[-1] // 2)[1]


def dynamic(d: Drawn, a: jax.Array) -> jax.Array:
    """A slice or an update at a place that the data picks."""
    k = d.axis(a)
    start, size = d.one(1).reshape(-1)[0], max(1, a.shape[k] - 1)
    part = jax.lax.dynamic_slice_in_dim(a, start, size, axis=k)
    return part if d.rng.random() < 0.5 else jax.lax.dynamic_update_slice_in_dim(a, part * 2, start + 1, axis=k)


Op: TypeAlias = Callable[[Drawn, jax.Array], jax.Array]
OPS: Sequence[Op] = (
    *(binary, binary, mask, broadcast, reshape, transpose, window, dot, dot),
    *(reduce, reduce, gather, scatter, sort, dynamic),
)
MOST = 700
"""Elements of an array, at most."""

DRAWN, ACCUMULATED = 6, 5
"""Plans that are drawn for one that is made, and what an accumulator counts beside an op."""


def program(seed: int, count: int = 12, ops: Sequence[Op] = OPS, *, keep_unused: bool = False) -> str:
    """A module of so many random operations, of which a few results are returned; without arguments that none of them
    takes, unless asked for."""

    def computed(*arguments: jax.Array) -> list[jax.Array]:
        d = Drawn(np.random.default_rng(seed + 1), list(arguments))
        for _ in range(count):
            array = cast(d, ops)(d, d.one(1))
            if 0 < array.size <= MOST and 0 < array.ndim <= 4:
                d.arrays.append(array)
        return [d.arrays[-1], *(d.arrays[int(k)] for k in d.rng.integers(len(d.arrays), size=2))]

    rng = np.random.default_rng(seed)
    shapes = [tuple(int(s) for s in rng.choice((2, 4, 6), rng.integers(1, 4))) for _ in range(3)]
    structs = [jax.ShapeDtypeStruct(s, jnp.int32) for s in shapes]
    return jax.jit(computed, keep_unused=keep_unused).lower(*structs).as_text()


def drawn_plan(found: Dataflow, rng: np.random.Generator) -> LoopPlan | None:
    """Of a few random plans the one with most ops, accumulators counted several times; None where none has a loop."""
    seeds = [v for n in found.nodes for v in n.results if not isinstance(found.axes(n), Boundary) and v.shape]
    if not seeds:
        return None
    plans: list[LoopPlan] = []
    for _ in range(DRAWN):
        value = seeds[rng.integers(len(seeds))]
        least = int(rng.choice((1, 1, 1, 64, 400)))
        core = core_of(found, value, least, FUSES[min(int(rng.integers(6)), 2)])
        plans.append(cut(found, label(found, core, int(rng.integers(len(value.shape))))))
    return max((plan for plan in plans if plan.loops), key=weight, default=None)


def weight(plan: LoopPlan) -> int:
    """How much there is to go wrong in a plan."""
    return sum(len(loop.nodes) + ACCUMULATED * len(loop.accumulators) + len(loop.again) for loop in plan.loops)


def tiled(text: str, seed: int, rules: SubsetRules) -> tuple[str, str]:
    """The module with the loops of a random plan, and what was drawn; the same text where there was none."""
    rng = np.random.default_rng([seed, 1])
    graph = hl.read(text)
    prepare(graph)
    blocks = list(Dataflow(graph, rules).blocks())  # in a module that has loops, half of the time the body of one
    found = blocks[np.random.default_rng([seed, 3]).integers(2) * (len(blocks) - 1)]
    plan = drawn_plan(found, rng)
    if plan is None:
        return text, "no loop"
    steps = plan.labels.steps
    sizes = Sizes(int(rng.integers(1, max(2, steps))), int(rng.choice((64, 1 << 20))), bool(rng.integers(4) == 0))
    loops = [(len(loop.nodes), len(loop.accumulators), len(loop.again)) for loop in plan.loops]
    scatters = sum(node.name == "stablehlo.scatter" for loop in plan.loops for node in loop.nodes)
    told = f"{scatters} scatters, {plan.labels.core.seed.raw.type} {loops} {steps} {sizes}"
    emit(found, plan, sizes)
    return to_text(graph), told


def with_loops(text: str, seed: int, rules: SubsetRules) -> tuple[str, str]:
    """The module with two random plans, one after the other, and what was drawn."""
    told: list[str] = []
    for number in range(2):
        text, how = tiled(text, seed + number, rules)
        told.append(how)
    return text, "; ".join(told)


def tiled_by_hand(
    text: str, seed: int, rules: SubsetRules, prefer: Callable[[AxisLink], bool] | None = None
) -> tuple[str, str]:
    """The module with a random op tiled along one to three of its dims, reduced ones more often, or ones of which an
    axis is preferred, and what was drawn; the same text where what is fused keeps it from being cut so."""
    rng = np.random.default_rng([seed, 4])
    graph = hl.read(text)
    prepare(graph)
    found = Dataflow(graph, rules)
    known = [(n, found.axes(n)) for n in found.nodes if n.results]
    dims = {n: by for n, axes in known if isinstance(axes, OpAxes) and (by := axes_by_dim(found, n, axes))}
    wanted = dims if prefer is None else {n: axes for n, axes in dims.items() if any(map(prefer, axes.values()))}
    combining = [n for n, axes in wanted.items() if prefer or any(axis.combine for axis in axes.values())]
    pool = combining if combining and rng.random() < 0.7 else list(dims)
    if not pool:
        return text, "no loop"
    node = pool[rng.integers(len(pool))]
    drawn = rng.permutation(list(dims[node]))[: rng.integers(1, 4)]
    sizes = {int(d): int(rng.integers(1, extent_along(node, dims[node][int(d)]) + 1)) for d in drawn}
    made = [number for number, value in enumerate(node.operands) if value in found.maker]
    operands = [int(n) for n in rng.permutation(made)[: rng.integers(1, 3)]] if rng.random() < 0.4 else []
    fuse = FUSES[rng.integers(len(FUSES))]
    hand = hl.ByHand(str(graph.location(node)), sizes, fuse, bool(rng.integers(6) == 0), operands)
    try:
        tile_by_hand(graph, rules, hand)
    except hl.InputError as error:
        return text, str(error)
    return to_text(graph), str(hand)


def agree(text: str, after: str, seed: int) -> bool:
    """Whether two versions give the same.

    XLA is asked a second time without fusion and the algebraic simplifier: with them program 1193 gives something else
    with loops than without, where the reference interpreter finds all versions equal.
    """
    return any(are_equal(text, after, rounding, seed) for rounding in ("quick", "unfused"))


def mismatch(seed: int, rules: SubsetRules) -> str:
    """What differs between a random program and the same with random loops in it; "" for nothing."""
    text = program(seed)
    after, told = with_loops(text, seed, rules)
    return "" if agree(text, after, seed) else told


def are_equal(text: str, after: str, rounding: Rounding, seed: int) -> bool:
    """Whether two versions give the same on two sets of arguments."""
    versions = [Executable(version, rounding) for version in (text, after)]
    rng = np.random.default_rng([seed, 2])
    for _ in range(2):
        arguments = [rng.integers(-3, 9, a.shape).astype(np.int32) for a in versions[0].arguments]
        pairs = zip(*(version.run(arguments) for version in versions), strict=True)
        if not all(np.array_equal(one, other) for one, other in pairs):
            return False
    return True
