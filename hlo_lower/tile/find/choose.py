"""Choose what to tile: the loops that could be made of what is live at the peak, the most promising first."""

from collections.abc import Sequence
from dataclasses import dataclass

from hlo_lower.facts.memory.dataflow import Dataflow
from hlo_lower.facts.memory.liveness import liveness, most_below, programs_at_peak
from hlo_lower.ir.view import Node, Value
from hlo_lower.lowering.loops import tile_size_near
from hlo_lower.ops.axes.cut import THREADED, Boundary
from hlo_lower.ops.axes.op_axes import counted_dim
from hlo_lower.ops.names import SCATTER
from hlo_lower.ops.spec import PRODUCTS
from hlo_lower.tile.emit.emit_loops import Sizes
from hlo_lower.tile.emit.phases import Loop, LoopPlan, cut
from hlo_lower.tile.find.labels import FEWEST_STEPS, core_of, label
from hlo_lower.tile.find.moved_links import FilteredLink, moves

SEEDS = 4
"""Values at the peak that loops are made for."""

LARGE = 8
"""A value is large from this part of the seed, or of the budget, on."""

NARROW = 2
"""The same, where nothing is gained with all that: attention by itself, without the layer around it."""

SMALLEST = 512
"""A value is not large below this part of the seed, however small the budget is: else everything would be."""

SHARES = (2, 8)
"""The parts of the budget that a tile may take, the first in the hope that its estimate holds."""

CACHED = 8 << 20
"""Bytes of a tile beyond which a larger one is not faster: what a tile writes is still in a cache where it is read."""

READ = 4
"""But a tile is to be so many times larger than what it reads whole, which each tile reads, and a dot packs, anew."""

INNER_SHARES = (2, 8)
"""The same for a tile of a loop within a loop: the estimate that no value but the tile is stored is off by a few."""

LATER = 2
"""Smaller tiles of a plan are tried behind so many other plans; of a loop within its loop at once."""

SLIGHT = 64
"""Around a loop in whose body most of the peak lies no loop is made for a value below this part of it."""

AGAIN = 0.5
"""What bytes that are computed again cost, in bytes that are stored."""


@dataclass(frozen=True)
class CostedPlan:
    """A plan that could be built."""

    program: Dataflow  # the block that the loops are in
    plan: LoopPlan  # the loops
    sizes: Sizes  # how they are built
    cost: float  # bytes that it leaves stored or computes again, an estimate to order choices by
    rank: int = 0  # 0 for the largest tiles of a plan, 1 for smaller ones


def choices(program: Dataflow, budget: int, large: int = LARGE) -> list[CostedPlan]:
    """The plans for the largest values at the peak, in the entry point or the loop that it lies in, along each of
    their axes, the cheapest first. From the part `large` of the seed, or of the budget, on a value is large."""
    *outer, last = programs_at_peak(program)
    found = [plan for block in outer for plan in _choices(block, budget, liveness(block).most // SLIGHT, large)]
    found += _choices(last, budget, 1, large)
    order = sorted({choice.cost for choice in found})

    def place(choice: CostedPlan) -> tuple[int, int]:
        later = choice.rank if choice.sizes.steps > 1 else 0  # else the tiles are those of a loop within
        return order.index(choice.cost) + LATER * later, later

    return sorted(found, key=place)


def _choices(
    program: Dataflow, budget: int, slight: int, large: int, shares: Sequence[int] = SHARES
) -> list[CostedPlan]:
    """The plans of a block, for values of at least `slight` bytes."""
    found: list[CostedPlan] = []
    seen: set[frozenset[tuple[Value, int]]] = set()
    for seed in seeds(program):
        size = program.size[seed]
        if size < slight:
            continue
        least = max(1, min(size, budget) // large, size // SMALLEST)
        core = core_of(program, seed, least)
        plans: dict[int, LoopPlan] = {}
        for dim, extent in enumerate(seed.static_shape):
            labels = label(program, core, dim) if extent >= FEWEST_STEPS else None
            known = frozenset(labels.dims.items()) if labels else frozenset[tuple[Value, int]]()
            if labels and known and known not in seen:
                seen.add(known)
                plan = cut(program, labels)
                if plan.loops and saves(plan):
                    plans[dim] = plan
        plain = {dim for dim, plan in plans.items() if not any(loop.accumulators for loop in plan.loops)}
        for dim, plan in plans.items():
            sizes = dict.fromkeys(sizes_for(program, plan, budget // share) for share in shares)
            price = cost(program, plan) + AGAIN * bytes_scattered_again(program, plan, next(iter(sizes)))
            if plain <= {dim}:  # else a loop within it makes a large step smaller
                price += max(0, max(step_bytes(program, plan, loop) for loop in plan.loops) - CACHED)
            found += [CostedPlan(program, plan, size, price, rank) for rank, size in enumerate(sizes)]
    return found


def finer_part(program: Dataflow, budget: int) -> int:
    """The part of the budget from which a value is large so that all smaller values together leave room for tiles.
    Layers have many small values, and each is stored."""
    part = LARGE
    while budget // part and most_below(program, budget // part) > budget // 2:
        part *= 2
    return part


OVERESTIMATED = 2
"""How many times what XLA needs the liveness of a body may be: of a softmax's chain XLA stores one value of two."""


def within(loop: Node, program: Dataflow, budget: int, large: int, rank: int = 0) -> CostedPlan | None:
    """The plan for the body of a loop that was just made, where a tile of one step is clearly beyond the budget.

    Along a batching dim a tile reads nothing whole: with a head of attention for itself, a tile of the same bytes has
    more of its rows, and reads the keys of one head. Not where it would accumulate: a product of a batch of one that
    sums over rows is slower in XLA than that of several (the gradient of attention: 1.1 to 1.2 times the time).

    Args:
      loop: a `stablehlo.while`.
      program: the program that it is in, as it is now.
      budget, large: see `choices`.
      rank: 1 for smaller tiles.
    """
    [body] = program.inner(loop)
    if liveness(body).most <= OVERESTIMATED * budget:
        return None
    found = _choices(body, budget, 1, large, INNER_SHARES)
    plain = [c for c in found if not any(inner.accumulators for inner in c.plan.loops)]
    return min(plain, key=lambda choice: (choice.cost, abs(choice.rank - rank)), default=None)


def saves(plan: LoopPlan) -> bool:
    """Whether a plan has a large value of which only tiles are stored: one that does not leave its loop."""
    made = {value for loop in plan.loops for node in loop.nodes for value in node.results}
    leaving = {value for loop in plan.loops for value in loop.tiles}
    return any(value in made and value not in leaving for value in plan.labels.core.cluster)


def seeds(program: Dataflow) -> Sequence[Value]:
    """The largest values that are live at the peak and can be cut, and what is made of them behind ops that move
    positions, through which labels go only upwards."""
    at_peak = liveness(program).at_peak
    found = [v for v in at_peak if not isinstance(program.axes(program.maker[v]), Boundary)][:SEEDS]
    behind = [value for value in _behind(program, found) if value not in found]
    return [*behind[-SEEDS:], *found]


def _behind(program: Dataflow, values: Sequence[Value]) -> list[Value]:
    """The results of ops that move positions of what large values are part of, in order."""
    least = min((program.size[value] for value in values), default=0) // LARGE
    reached = set(values)
    found: list[Value] = []
    for node in program.nodes:
        large = [v for v in node.results if program.size[v] >= max(least, 1)]
        if not large or isinstance(program.axes(node), Boundary) or not reached.intersection(node.operands):
            continue
        reached.update(large)
        found += large if moves(node) else []
    return found


def cost(program: Dataflow, plan: LoopPlan) -> float:
    """Bytes of large values that a plan leaves stored, and half of those that it computes again."""
    labels, core = plan.labels, plan.labels.core
    stored = core.cluster - program.outputs - program.cheap  # what is cheap is made in the loop
    kept = sum(program.size[v] for v in stored if v not in labels.dims)
    tiles = sum(program.size[v] for loop in plan.loops for v in loop.tiles if v not in program.outputs)
    sums = sum(program.size[v] for loop in plan.loops for node in loop.accumulators for v in node.results)
    again = sum(program.size[v] for loop in plan.loops for node in loop.again for v in node.results)
    return kept + tiles + sums + AGAIN * again


def bytes_scattered_again(program: Dataflow, plan: LoopPlan, sizes: Sizes) -> int:
    """Bytes of updates that scatters read again for each tile, dropping most of them (`scatter_piece`)."""
    scatters = [n for loop in plan.loops for n in loop.nodes if n.name == SCATTER]
    links = {node: plan.labels.axes[node] for node in scatters}
    whole = [n for n, link in links.items() if counted_dim(n, link) is not None and not isinstance(link, FilteredLink)]
    updates = sum(program.size[v] for n in whole for v in n.operands[len(n.results) + 1 :])
    return updates * (-(-plan.labels.steps // sizes.steps) - 1)


def sizes_for(program: Dataflow, plan: LoopPlan, most_live: int) -> Sizes:
    """Tiles for which a loop needs so many bytes at most, and at least two of them; no larger than is fast."""
    steps = plan.labels.steps
    most = max(step_bytes(program, plan, loop) for loop in plan.loops)
    fast = max(CACHED, READ * max(read_whole(program, plan, loop) for loop in plan.loops))
    wanted = int(min(max(1, min(most_live, fast) // max(most, 1)), max(1, steps // 2)))
    return Sizes(tile_size_near(wanted, steps), max(1, min(most_live // 2, CACHED)))


GOES_THROUGH = PRODUCTS | {SCATTER}
"""Ops that go through all of an operand that is not cut; a gather reads rows of it."""


def read_whole(program: Dataflow, plan: LoopPlan, loop: Loop) -> int:
    """Bytes that each tile of a loop goes through, as large as it may be."""
    found: dict[Value, None] = {}
    for node in loop.nodes:
        axis = plan.labels.axes[node]
        carried = len(node.results) if axis.combine == THREADED else 0
        for value, dim in list(zip(node.operands, axis.operands, strict=True))[carried:]:
            if dim is None and node.name in GOES_THROUGH:
                found[value] = None
    return sum(program.size[value] for value in found)


def step_bytes(program: Dataflow, plan: LoopPlan, loop: Loop) -> int:
    """Bytes that are live in a loop for each step of a tile, at most."""
    place = {node: number for number, node in enumerate(loop.nodes)}
    changes = [0] * (len(loop.nodes) + 1)
    for node in loop.nodes:
        for value in node.results:
            if value in plan.labels.dims and not program.is_fused(value):
                last = max((place[user] for user in program.users[value] if user in place), default=place[node])
                changes[place[node]] += program.size[value]
                changes[last + 1] -= program.size[value]
    live = most = 0
    for change in changes:
        live += change
        most = max(most, live)
    return -(-most // plan.labels.steps)
