"""The values that a loop is about, and the dim along which each of them is computed piece by piece."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import gcd
from typing import Literal, TypeAlias

from hlo_lower.facts.memory.dataflow import Dataflow
from hlo_lower.ir.view import Node, Value
from hlo_lower.ops.axes.cut import AxisLink, Boundary, OpAxes, Steps
from hlo_lower.tile.find.demands import ITERATOR, UnmetError, segments
from hlo_lower.tile.find.moved_links import FilteredLink, MovedLink, link_at

Fuse: TypeAlias = Literal["none", "producers", "all"]
FUSES: tuple[Fuse, ...] = ("none", "producers", "all")
"""What is computed in a loop with the value that it is made for."""

NOTHING = 1 << 62
"""More bytes than any value has: nothing is large."""


@dataclass(frozen=True)
class Core:
    """The values that a loop is about."""

    seed: Value  # the one that it is made for
    least: int  # bytes from which a value is large
    cluster: frozenset[Value]  # the large values that are connected with the seed by sharing an op
    values: frozenset[Value]  # these, and the small ones on paths between them
    inside: frozenset[Value] = frozenset()  # those that each tile computes anew, as a whole
    outside: frozenset[Value] = frozenset()  # those that are not cut: what a loop around gives
    is_asked: bool = False  # whether a loop over the seed was asked for by hand


def core_of(program: Dataflow, seed: Value, least: int, fuse: Fuse = "all") -> Core:
    """The core around a seed, the result of a node that has axes; from `least` bytes on a value is large."""
    if fuse != "all":
        before = _ancestors(program, seed, least) if fuse == "producers" else set[Value]()
        return Core(seed, NOTHING, frozenset({seed}), frozenset(before | {seed}))
    cluster = _cluster(program, seed, least)
    arguments = set(program.block.arguments)
    behind: set[Value] = set()
    for node in program.nodes:
        if any(value in behind or value in cluster for value in program.used_values[node]):
            behind.update(node.results)
    before: set[Value] = set()
    for node in reversed(program.nodes):
        if any(value in before or value in cluster for value in node.results):
            before.update(program.used_values[node])
    return Core(seed, least, frozenset(cluster), frozenset((cluster | (behind & before)) - arguments))


def _ancestors(program: Dataflow, seed: Value, least: int) -> set[Value]:
    """The large values that a seed is computed from through large values alone."""
    found, pending = set[Value](), [seed]
    while pending:
        maker = program.maker.get(pending.pop())
        for value in maker.operands if maker else ():
            if value in program.maker and value not in found and program.size[value] >= least:
                found.add(value)
                pending.append(value)
    return found


def _cluster(program: Dataflow, seed: Value, least: int) -> set[Value]:
    found, pending = {seed}, [seed]
    while pending:
        value = pending.pop()
        maker = program.maker.get(value)
        for node in (*([maker] if maker else []), *program.users[value]):
            if node == program.terminator or isinstance(program.axes(node), Boundary):
                continue
            for other in (*node.operands, *node.results):
                if other not in found and program.size[other] >= least:
                    found.add(other)
                    pending.append(other)
    return found


FEWEST_STEPS = 4
"""A value that can only be cut into fewer steps keeps its neighbours from being cut further: it gets no label."""


@dataclass
class Labels:
    """What is cut, and where."""

    core: Core  # whose labels they are
    dims: dict[Value, int] = field(default_factory=dict[Value, int])  # the dim of each labelled value
    # the axis of each node that computes or reduces labelled values
    axes: dict[Node, AxisLink] = field(default_factory=dict[Node, AxisLink])
    steps: int = 0  # how many steps all labelled dims share
    # values labelled only because something that moves positions reads them: no tile of them leaves a loop
    moved: set[Value] = field(default_factory=set[Value])
    # where the steps are cut (`segments`), [] for nowhere, and how many steps tiles are multiples of
    segments: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])
    grain: int = 1
    # values that came by a second label, or by one that their op does not have; each is read as a whole
    refused: dict[Value, str] = field(default_factory=dict[Value, str])

    @property
    def ranges(self) -> list[tuple[int, int]]:
        """The segments: each from one step to another."""
        return self.segments or [(0, self.steps)]

    def tiles(self, size: int) -> list[Steps]:
        """A tile of so many steps in each segment, or of as many as there are."""
        return [Steps(ITERATOR, self.steps, min(size, high - low), low, self.grain) for low, high in self.ranges]


def label(program: Dataflow, core: Core, dim: int) -> Labels:
    """Spread a label of the seed both ways, inside of the core and onto what large values are used for; then up
    through what moves positions."""
    labels = Labels(core, steps=core.seed.static_shape[dim])
    return _cut_segments(
        program, _spread(program, labels, [core.seed] if _put(program, labels, core.seed, dim) else [])
    )


def label_combined(program: Dataflow, core: Core, axis: AxisLink) -> Labels:
    """The same along an axis of the seed's node along which pieces are combined: the seed itself is accumulated."""
    node = program.maker[core.seed]
    labels = Labels(core, axes={node: axis}, steps=gcd(*lengths(node, axis)))
    return _cut_segments(program, _spread(program, labels, _put_operands(program, labels, node, axis)))


def _cut_segments(program: Dataflow, labels: Labels) -> Labels:
    """Cut the steps into segments; drop labels until each op can give what its readers need."""
    while labels.dims:
        tiles = [value for value in labels.dims if value not in labels.moved]
        nodes = [node for node in program.nodes if node in labels.axes]
        try:
            labels.segments, labels.grain = segments(labels.axes, labels.dims, nodes, tiles, labels.steps)
        except UnmetError as error:
            _drop(program, labels, error.node)
        else:
            break
    return labels


def _drop(program: Dataflow, labels: Labels, node: Node) -> None:
    """Take labels away until a node is not asked for what it cannot give: those of what it moves, if any; else its own,
    so that it is there as a whole. Where the seed is its result, or a node of equal positions is asked for others, all
    labels go."""
    moved = [value for value in node.operands if value in labels.moved]
    is_moving = isinstance(labels.axes.get(node), (MovedLink, FilteredLink))
    if node.result() in labels.moved:
        _unlabel(labels, node.results)
    elif is_moving and moved:
        _unlabel(labels, moved)
    elif is_moving and labels.core.seed not in node.results:
        _unlabel(labels, node.results)
    else:
        labels.refused[labels.core.seed] = f"{node.name} gives no pieces that the loop could take"
        for found in (labels.dims, labels.axes, labels.moved):
            found.clear()
    _unlabel_read(program, labels)


def _unlabel(labels: Labels, values: Sequence[Value]) -> None:
    for value in values:
        labels.dims.pop(value, None)
        labels.moved.discard(value)
        if value.node is not None:
            labels.axes.pop(value.node, None)


def _unlabel_read(program: Dataflow, labels: Labels) -> None:
    """Take the label off what is labelled only for what moves it, and is read otherwise, too: it is there as a
    whole."""
    pending = list(labels.moved)
    while pending:
        value = pending.pop()
        if value not in labels.moved or all(reads_only_tiles(labels, user, value) for user in program.users[value]):
            continue
        node = program.maker[value]
        _unlabel(labels, node.results)
        pending += [other for other in node.operands if other in labels.moved]


def reads_tile(labels: Labels, node: Node, number: int) -> bool:
    """Whether a node in a loop reads an operand as a tile that is computed there, or could be."""
    value, dim = node.operand(number), labels.axes[node].operands[number]
    return dim is not None and labels.dims.get(value) == dim


def reads_only_tiles(labels: Labels, user: Node, value: Value) -> bool:
    """Whether a user of a value is in a loop and reads it as tiles alone."""
    if user not in labels.axes:
        return False
    numbers = [n for n, operand in enumerate(user.operands) if operand == value]
    return bool(numbers) and all(reads_tile(labels, user, number) for number in numbers)


def _spread(program: Dataflow, labels: Labels, pending: list[Value]) -> Labels:
    while pending:
        value = pending.pop(0)
        pending += _spread_up(program, labels, value)
        for user in program.users[value]:
            if user != program.terminator:
                pending += _spread_down(program, labels, value, user)
    for node in program.nodes:
        if node.results and node.result() in labels.dims and _combines_instead(program, labels, node):
            _unlabel(labels, node.results)
    _spread_moved(program, labels)
    for node in program.nodes:
        axis = labels.axes.get(node) or _axis_of(program, labels, node)
        if axis is not None:
            labels.axes[node] = axis
    _unlabel_read(program, labels)
    return labels


def _combines_instead(program: Dataflow, labels: Labels, node: Node) -> bool:
    """Whether a node would read a large operand along another dim than that along which it is cut, and can combine what
    the tiles of that one give: only the smaller result is then stored, in the place of the operand.

    The gradient of attention to its values is such a sum over the rows of the weights.
    """
    axes, link = program.axes(node), _link(program, labels, node, labels.dims[node.result()])
    if not isinstance(axes, OpAxes) or link is None or labels.core.seed in node.results:
        return False
    stored = sum(program.size[value] for value in node.results)
    for number, (value, dim) in enumerate(zip(node.operands, link.operands, strict=True)):
        its = labels.dims.get(value)
        if dim is None or its in (None, dim) or program.size[value] < max(labels.core.least, stored + 1):
            continue
        axis = axes.of_operand(number, its)
        if axis is not None and axis.combine and all(n % labels.steps == 0 for n in lengths(node, axis)):
            return True
    return False


def _link(program: Dataflow, labels: Labels, node: Node, dim: int) -> AxisLink | None:
    """The link along which a dim of the results of a node is cut."""
    core = labels.core
    return link_at(program, node, dim, is_asked=core.is_asked and core.seed in node.results)


def _spread_moved(program: Dataflow, labels: Labels) -> None:
    """From the results of ops that move positions to their operands, and from these to all that they are made of."""
    links = {value: _link(program, labels, program.maker[value], dim) for value, dim in labels.dims.items()}
    pending = [value for value, link in links.items() if isinstance(link, (MovedLink, FilteredLink))]
    while pending:
        value = pending.pop()
        node = program.maker[value]
        axis = _link(program, labels, node, labels.dims[value])
        assert axis is not None
        for other, dim in zip(node.operands, axis.operands, strict=True):
            if dim is not None and (other in labels.core.values or other in program.cheap):
                pending += _put_moved(program, labels, other, dim)


def _put_moved(program: Dataflow, labels: Labels, value: Value, dim: int) -> list[Value]:
    """Label a value that is read at other positions; [value] if it is new. Each of its positions is to be a step of
    its own: along a dim of which the op that makes it has as many everywhere."""
    known, maker = labels.dims.get(value), program.maker.get(value)
    if known is not None and known != dim:
        labels.refused[value] = f"dims {known} and {dim}"
    if known is not None or maker is None:
        return []
    axis = _link(program, labels, maker, dim)
    is_moved = isinstance(axis, (MovedLink, FilteredLink))
    if axis is None or (not is_moved and set(lengths(maker, axis)) != {value.static_shape[dim]}):
        labels.refused.setdefault(value, f"its op does not give single positions along dim {dim}")
        return []
    if any(other in labels.dims for other in maker.results):
        return []
    for other, place in zip(maker.results, axis.results, strict=True):
        if place is not None:
            labels.dims[other] = place
            labels.moved.add(other)
    return [value]


def _put(program: Dataflow, labels: Labels, value: Value, dim: int) -> bool:
    """Label a value, where that can be; whether it is new."""
    known = labels.dims.get(value)
    if known is not None:
        if known != dim:
            labels.refused[value] = f"dims {known} and {dim}"
        return False
    if value in labels.core.outside:
        return False
    maker = program.maker.get(value)
    axis = None if maker is None or maker in labels.axes else _link(program, labels, maker, dim)
    if maker is None or axis is None:
        labels.refused.setdefault(value, f"its op does not give pieces along dim {dim}")
        return False
    steps = gcd(labels.steps, *lengths(maker, axis))
    if steps < min(FEWEST_STEPS, labels.steps):
        labels.refused.setdefault(value, f"dim {dim} is cut into {steps} steps at most")
        return False
    labels.steps = steps
    labels.dims[value] = dim
    return True


def _spread_up(program: Dataflow, labels: Labels, value: Value) -> list[Value]:
    """From a result to the op's operands and other results."""
    node = program.maker[value]
    axis = _link(program, labels, node, labels.dims[value])
    assert axis is not None
    put = [other for other, d in zip(node.results, axis.results, strict=True) if d is not None]
    found = [other for other in put if other != value and _put(program, labels, other, labels.dims[value])]
    return found + _put_operands(program, labels, node, axis)


def _put_operands(program: Dataflow, labels: Labels, node: Node, axis: AxisLink) -> list[Value]:
    if isinstance(axis, MovedLink):
        return []
    pairs = list(zip(node.operands, axis.operands, strict=True))
    if isinstance(axis, FilteredLink):
        pairs = pairs[: len(node.results)]
    wanted = [(v, d) for v, d in pairs if d is not None and (v in labels.core.values or v in program.cheap)]
    return [value for value, dim in wanted if _put(program, labels, value, dim)]


def _spread_down(program: Dataflow, labels: Labels, value: Value, node: Node) -> list[Value]:
    """From an operand to the op's results, and to the other operands of a reduction."""
    axes = program.axes(node)
    if not isinstance(axes, OpAxes):
        return []
    found: list[Value] = []
    is_large = program.size[value] >= labels.core.least
    for number, operand in enumerate(node.operands):
        axis = axes.of_operand(number, labels.dims[value]) if operand == value else None
        if axis is None:
            continue
        if axis.combine:
            found += _put_operands(program, labels, node, axis) if is_large else []
            continue
        for result, dim in zip(node.results, axis.results, strict=True):
            wanted = result in labels.core.values or is_large
            if dim is not None and wanted and _put(program, labels, result, dim):
                found.append(result)
    return found


def _axis_of(program: Dataflow, labels: Labels, node: Node) -> AxisLink | None:
    """The axis along which a node is cut: its results' label, or one that reduces a large labelled operand."""
    axes = program.axes(node)
    if not isinstance(axes, OpAxes) or not node.results:
        return None
    dim = labels.dims.get(node.result())
    if dim is not None:
        return _link(program, labels, node, dim)
    for number, operand in enumerate(node.operands):
        its = labels.dims.get(operand)
        if its is None or operand in labels.moved or program.size[operand] < labels.core.least:
            continue
        axis = axes.of_operand(number, its)
        if axis is not None and axis.combine and all(n % labels.steps == 0 for n in lengths(node, axis)):
            return axis
    return None


def lengths(node: Node, axis: AxisLink) -> list[int]:
    """The sizes of the dims that are cut along an axis of a node; of one that moves positions the result's."""
    pairs = list(zip(node.results, axis.results, strict=True))
    if not isinstance(axis, (MovedLink, FilteredLink)):
        pairs += zip(node.operands, axis.operands, strict=True)
    return [value.static_shape[dim] for value, dim in pairs if dim is not None]
