"""The body of a loop: for one tile, its nodes on pieces of what they read."""

from collections.abc import Sequence

from hlo_lower.facts.memory.dataflow import Dataflow, size_of
from hlo_lower.ir.builder import Builder
from hlo_lower.ir.view import Node, Value
from hlo_lower.lowering.loops import TiledLoop, rounded
from hlo_lower.ops.axes.cut import THREADED, AxisLink, Cut, OpAxes, Steps
from hlo_lower.ops.axes.parts import Bindings, accumulate, materialize, yield_to
from hlo_lower.tile.emit.phases import Loop, reads_tile
from hlo_lower.tile.find.labels import Labels

ITERATOR, INNER = "i", "j"

FEW = 4
"""So many pieces of an accumulator stand one after the other, without a loop: XLA adds a piece to its place on one
thread (it ends in a `dynamic_update_slice`), and others multiply meanwhile, but not across the trips of a loop."""


class LoopBody:
    """Builds the tiles of a loop, which takes `given` from around it. What a tile gives to an accumulator is itself
    computed tile by tile where it has more than `most` bytes."""

    def __init__(self, program: Dataflow, labels: Labels, loop: Loop, given: Sequence[Value], most: int) -> None:
        self.program, self.labels, self._loop = program, labels, loop
        self._given, self.most = tuple(given), most
        self._inside = set(loop.nodes)
        self.seeds: list[Node] = []  # those that compute the tiles of the plan's seed

    def build(
        self, build: Builder, start: int | Value, size: int, carried: tuple[Value, ...], given: tuple[Value, ...]
    ) -> Sequence[Value]:
        """One tile (a `TileBuilder`)."""
        tile = _Tile(self, build, Bindings({ITERATOR: start}), Steps(ITERATOR, self.labels.steps, size))
        tile.whole.update(zip(self._given, given, strict=True))
        split = len(self._loop.tiles)
        left = list(carried[split:])
        combined: list[Value] = []
        for node in self._loop.nodes:
            if node in self._loop.accumulators:
                mine, left = left[: len(node.results)], left[len(node.results) :]
                combined += tile.accumulate(node, mine)
            else:
                tile.compute(node)
        made = [*(tile.write(v, old) for v, old in zip(self._loop.tiles, carried, strict=False)), *combined]
        tile.drop_unused(made)
        return made

    def is_inside(self, node: Node | None) -> bool:
        """Whether a node is in the loop."""
        return node in self._inside


class _Tile:
    def __init__(self, body: LoopBody, build: Builder, bound: Bindings, steps: Steps) -> None:
        self._body, self._build, self._bound, self._steps = body, build, bound, steps
        self.whole: dict[Value, Value] = {}
        self._pieces: dict[tuple[Value, int | None], Value] = {}
        self._tiles: dict[Value, Value] = {}

    def compute(self, node: Node) -> None:
        """A node on pieces of what it reads."""
        self._tiles.update(zip(node.results, self._built(node, self._operands(node)), strict=True))

    def accumulate(self, node: Node, carried: Sequence[Value]) -> Sequence[Value]:
        """What was accumulated, with what this tile gives."""
        axis = self._body.labels.axes[node]
        if axis.combine == THREADED:
            return self._built(node, self._operands(node, dict(enumerate(carried))))
        operands = self._operands(node)
        if self._body.program.size[node.result()] > self._body.most:
            inner = _second_axis(self._body.program, node, operands, self._body.most)
            if inner is not None:
                return self._by_pieces(node, inner, operands, carried[0])
        [partial] = self._built(node, operands)
        return [self._build.elementwise(axis.combine, carried[0], partial)]

    def _by_pieces(self, node: Node, inner: AxisLink, operands: tuple[Value, ...], old: Value) -> Sequence[Value]:
        """An accumulator that is itself large, piece by piece along another axis, each in its place."""
        program = self._body.program
        combine = self._body.labels.axes[node].combine
        dim = inner.results[0]
        assert dim is not None
        length = node.result().static_shape[dim]
        size = rounded(max(1, length * self._body.most // program.size[node.result()]), length)
        steps = Steps(INNER, length, size)
        kept = list(operands)

        def piece(
            build: Builder, start: int | Value, count: int, carried: tuple[Value, ...], given: tuple[Value, ...]
        ) -> Sequence[Value]:
            bound, those = Bindings({INNER: start}), Steps(steps.iterator, steps.count, count)
            parts = [those.part(v.static_shape, d) for v, d in zip(given, inner.operands, strict=True)]
            taken = tuple(materialize(build, v, p, bound) for v, p in zip(given, parts, strict=True))
            [partial] = program.rules.built(build, Cut(node, inner, those, taken, bound))
            part = those.part(carried[0].static_shape, dim)
            return [accumulate(build, carried[0], part, partial, bound, combine)]

        is_unrolled = length <= FEW * size
        return TiledLoop(length, size, is_unrolled=is_unrolled).emit(self._build, [old], kept, piece)

    def drop_unused(self, given: Sequence[Value]) -> None:
        """Erase the parts that were read and that nothing takes: an op read another part in their place."""
        for piece in self._pieces.values():
            node = None if piece.is_used or piece in given else piece.node
            if node is not None and node in self._build.built:
                self._build.built.remove(node)
                node.raw.erase()

    def write(self, value: Value, old: Value) -> Value:
        """A result with this tile of it written."""
        part = self._steps.part(value.static_shape, self._body.labels.dims[value])
        return yield_to(self._build, old, part, self._tiles[value], self._bound)

    def _built(self, node: Node, operands: tuple[Value, ...]) -> tuple[Value, ...]:
        built = self._body.program.rules.built(self._build, self._cut(node, operands))
        if self._body.labels.core.seed in node.results and built[0].node is not None:
            self._body.seeds.append(built[0].node)
        return built

    def _cut(self, node: Node, operands: tuple[Value, ...]) -> Cut:
        return Cut(node, self._body.labels.axes[node], self._steps, operands, self._bound)

    def _operands(self, node: Node, carried: dict[int, Value] | None = None) -> tuple[Value, ...]:
        found: list[Value] = []
        for number, value in enumerate(node.operands):
            maker = self._body.program.maker.get(value)
            if carried and number in carried:
                found.append(carried[number])
            elif self._body.is_inside(maker) and reads_tile(self._body.labels, node, number):
                found.append(self._tiles[value])
            else:
                found.append(self._piece(value, self._body.labels.axes[node].operands[number]))
        return tuple(found)

    def _piece(self, value: Value, dim: int | None) -> Value:
        """A part of a value from around the loop."""
        known = self._pieces.get((value, dim))
        if known is None:
            part = self._steps.part(value.static_shape, dim)
            known = materialize(self._build, self._whole(value), part, self._bound)
            self._pieces[value, dim] = known
        return known

    def _whole(self, value: Value) -> Value:
        if value not in self.whole:  # it is made in the loop (`is_made_inside`)
            node = value.node
            assert node is not None
            operands = [self._whole(operand) for operand in node.operands]
            types = [result.raw.type for result in node.results]
            made = self._build.copy_on(node, operands, types, {}).results
            self.whole.update(zip(node.results, made, strict=True))
        return self.whole[value]


def _second_axis(program: Dataflow, node: Node, operands: Sequence[Value], most: int) -> AxisLink | None:
    """The axis along which an accumulator can be computed piece by piece, in pieces that are not too large: that along
    which least of the operands is cut, which a dot wants copied; then that of the longest dim."""
    axes = program.axes(node)
    assert isinstance(axes, OpAxes)
    shape, size = node.result().static_shape, program.size[node.result()]

    def order(axis: AxisLink) -> tuple[bool, int, int]:
        extent = shape[axis.results[0] or 0]
        copied = sum(size_of(v) for v, dim in zip(operands, axis.operands, strict=True) if dim is not None)
        return size > extent * most, copied, -extent

    return min((axis for axis in axes.axes if not axis.combine), key=order, default=None)
