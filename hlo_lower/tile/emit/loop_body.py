"""The body of a loop: for one tile, its nodes on pieces of what they read."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace

from hlo_lower.facts.memory.dataflow import Dataflow, size_of
from hlo_lower.ir import mlir
from hlo_lower.ir.builder import Builder
from hlo_lower.ir.view import Node, Value
from hlo_lower.lowering.loops import TileBuilder, TiledLoop, tile_size_near
from hlo_lower.ops.axes.cut import THREADED, AxisLink, Cut, OpAxes, Steps
from hlo_lower.ops.axes.op_axes import clamped_starts
from hlo_lower.ops.axes.parts import Bindings, DimSubset, TensorSubset, accumulate, is_run, materialize, yield_to
from hlo_lower.ops.names import DYNAMIC_SLICE, PAD, REVERSE, SLICE
from hlo_lower.tile.emit.filtered_updates import SortedUpdates, UpdateLists, scatter_tiles
from hlo_lower.tile.emit.phases import Loop
from hlo_lower.tile.find.demands import ITERATOR, Demands, demands, filtered_by, needed_subset, parts_of
from hlo_lower.tile.find.labels import Labels, reads_tile
from hlo_lower.tile.find.moved_links import FilteredLink, MovedLink, UpdateNumbers, WindowNumbers, WrittenLink
from hlo_lower.tile.subsets import Picked

INNER = "j"


class LoopBody:
    """Builds the tiles of a loop, which takes `given` from around it: values, and the rows that filters are by. What a
    tile gives to an accumulator is itself computed tile by tile where it has more than `most` bytes."""

    def __init__(self, program: Dataflow, labels: Labels, loop: Loop, given: Sequence[Hashable], most: int) -> None:
        self.program, self.labels, self.loop = program, labels, loop
        self._given, self.most = tuple(given), most
        self._inside = set(loop.nodes)
        self.seeds: list[Node] = []  # those that compute the tiles of the plan's seed

    def steps(self, first: int, size: int) -> Steps:
        """The steps of a tile whose iterator counts from a step on."""
        return Steps(ITERATOR, self.labels.steps, size, first, self.labels.grain)

    def from_step(self, first: int) -> TileBuilder:
        """Builds the tiles of a segment that begins at a step."""

        def tile(
            build: Builder, start: int | Value, size: int, carried: tuple[Value, ...], given: tuple[Value, ...]
        ) -> Sequence[Value]:
            return self.build(build, start, self.steps(first, size * self.labels.grain), carried, given)

        return tile

    def build(
        self, build: Builder, start: int | Value, steps: Steps, carried: Sequence[Value], given: Sequence[Value]
    ) -> Sequence[Value]:
        """One tile."""
        around = dict(zip(self._given, given, strict=True))
        wanted = demands(self.labels.axes, self.labels.dims, self.loop.nodes, self.loop.tiles, steps)
        tile = _Tile(self, build, Bindings({ITERATOR: start}), steps, wanted, around)
        split = len(self.loop.tiles)
        left = list(carried[split:])
        combined: list[Value] = []
        for node in self.loop.nodes:
            if node in self.loop.accumulators:
                mine, left = left[: len(node.results)], left[len(node.results) :]
                combined += tile.accumulate(node, mine)
            else:
                tile.compute(node)
        made = [*(tile.write(v, old) for v, old in zip(self.loop.tiles, carried, strict=False)), *combined]
        tile.drop_unused(made)
        return made

    def is_inside(self, node: Node | None) -> bool:
        """Whether a node is in the loop."""
        return node in self._inside


class _Tile:
    """The pieces of a tile, in the loop over tiles, or those of a chunk of updates (`by`) in the loop over these."""

    def __init__(
        self,
        body: LoopBody,
        build: Builder,
        bound: Bindings,
        steps: Steps,
        wanted: Demands,
        around: Mapping[Hashable, Value],
        by: UpdateNumbers | None = None,
    ) -> None:
        self._body, self._build, self._steps, self._wanted, self._by = body, build, steps, wanted, by
        self.whole = {value: new for value, new in around.items() if isinstance(value, Value)}
        self._filters = {key: new for key, new in around.items() if not isinstance(key, Value)}
        self._bound = Bindings(bound.iterators, self._filters)
        self._pieces: dict[tuple[Value, int | None, DimSubset | None], Value] = {}
        self._tiles: dict[tuple[Value, DimSubset], Value] = {}

    def compute(self, node: Node) -> None:
        """A node on pieces of what it reads, for each subset of its results that is needed."""
        axis = self._body.labels.axes[node]
        for part in parts_of(self._wanted, node, axis):
            if part is None or filtered_by(part) != self._by:
                continue
            if isinstance(axis, MovedLink | FilteredLink):
                found: Sequence[Value] = self._moved_pieces(node, axis, part)
            else:
                cut = replace(self._cut(node, self._operands(node, part=part)), taken=part)
                found = self._build_piece(node, cut)
            self._tiles.update(((value, part), piece) for value, piece in zip(node.results, found, strict=True))

    def _moved_pieces(self, node: Node, axis: MovedLink | FilteredLink, part: DimSubset) -> Sequence[Value]:
        """The pieces along a dim in which an op moves positions."""
        if isinstance(axis, MovedLink):
            found: Sequence[Value] = [self._move_piece(node, axis, part)]
        elif isinstance(axis, WrittenLink):
            found = [self._update_piece(node, axis, part)]
        else:
            found = self._scatter_piece(node, axis, part)
        maker = found[0].node
        if self._body.labels.core.seed in node.results and maker is not None and maker in self._build.built:
            self._body.seeds.append(maker)
        return found

    def _move_piece(self, node: Node, axis: MovedLink, part: DimSubset) -> Value:
        """The piece of an op that moves positions along a dim: the elements that it reads, with filling around and
        between them."""
        image, dim = axis.move.image(part), axis.results[0]
        assert dim is not None
        build, shape = self._build, list(node.result().static_shape)
        shape[dim] = part.size
        if image.operand is None:
            return build.broadcast(self._operand(node, 1, None), shape)
        read = self._operand(node, image.operand, part)
        if isinstance(axis.move, Picked) and isinstance(axis.move.index, WindowNumbers):
            return self._windows(node, axis.move.index, part, read, shape)
        if image.is_plain:
            return self._elsewhere(node, dim, read)
        names = ("edge_padding_low", "edge_padding_high", "interior_padding")
        edges = [list(node.integers(name)) for name in names]
        between = (image.part.size - 1) * image.spacing + 1
        for edge, size in zip(edges, (image.lead, part.size - image.lead - between, image.spacing - 1), strict=True):
            edge[dim] = size
        return build.pad(read, self._operand(node, 1, None), *edges)

    def _elsewhere(self, node: Node, dim: int, read: Value) -> Value:
        """What a node makes along its other dims of what it reads along one."""
        build, shape = self._build, read.static_shape
        if node.name == SLICE:
            starts, limits, steps = (
                [own if d == dim else n for d, n in enumerate(node.integers(name))]
                for name, own in (("start_indices", 0), ("limit_indices", shape[dim]), ("strides", 1))
            )
            return build.slice(read, starts, limits, steps)
        if node.name == DYNAMIC_SLICE:
            sizes = [shape[dim] if d == dim else n for d, n in enumerate(node.integers("slice_sizes"))]
            zero = build.constant(0, (), node.operand(1 + dim).element_type)
            starts = [zero if d == dim else self._operand(node, 1 + d, None) for d in range(len(shape))]
            operands = clamped_starts(build, [read, *starts], sizes)
            return build.dynamic_slice(read, operands, sizes) if tuple(sizes) != shape else read
        if node.name == PAD:
            edges = [
                [0 if d == dim else n for d, n in enumerate(node.integers(name))]
                for name in ("edge_padding_low", "edge_padding_high", "interior_padding")
            ]
            return build.pad(read, self._operand(node, 1, None), *edges) if any(map(any, edges)) else read
        others = [d for d in node.integers("dimensions") if d != dim] if node.name == REVERSE else []
        return build.reverse(read, others) if others else read

    def _windows(self, node: Node, rows: WindowNumbers, part: DimSubset, read: Value, shape: Sequence[int]) -> Value:
        """A piece of a gather of windows or points, of which those of one dim were read one behind the other."""
        indices = rows.renumber(self._build, self._piece(rows.indices, rows.along, part))
        raw_type = mlir.tensor_type(shape, mlir.tensor_element(node.result().raw.type))
        flags = {"indices_are_sorted": mlir.parse_attribute("false")}
        return self._build.copy_on(node, [read, indices], [raw_type], flags).result()

    def _update_piece(self, node: Node, axis: WrittenLink, part: DimSubset) -> Value:
        """The piece of a slice update: written positions get the update, the others keep the old elements."""
        dim = axis.results[0]
        assert dim is not None
        old, new = self._operand(node, 0, part), self._operand(node, 1, part)
        mask = self._filters[node, "written"]
        mine = materialize(self._build, mask, TensorSubset(mask.static_shape, (part,)), self._bound)
        return self._build.select(self._build.broadcast(mine, old.static_shape, (dim,)), new, old)

    def _scatter_piece(self, node: Node, axis: FilteredLink, part: DimSubset) -> Sequence[Value]:
        """The pieces of a scatter's rows. A loop of its own computes the updates that go there."""
        assert is_run(part)
        made = len(node.results)
        chunk = axis.needed_subset(node, made + 1, part)
        by = UpdateNumbers(node)
        around = {**self.whole, **self._filters}

        def updates(build: Builder, ids: Value, given: tuple[Value, ...]) -> Sequence[Value]:
            values = {**dict(zip(around, given, strict=True)), by: ids}
            tile = _Tile(self._body, build, Bindings(), self._steps, self._wanted, values, by)
            for other in self._body.loop.nodes:
                if other not in self._body.loop.accumulators:
                    tile.compute(other)
            return [tile.read(node, made + 1 + k, chunk) for k in range(made)]

        rows, order = self._filters[node, "rows"], self._filters[node, "order"]
        mine = SortedUpdates(rows, order, self._filters.get((node, "vectors")))
        first = self._bound.start(self._build, part.start)
        tiles = [self._operand(node, k, part) for k in range(made)]
        lists, given = UpdateLists(node, axis), [*around.values()]
        return scatter_tiles(self._build, lists, mine, tiles, first, chunk.size, given, updates)

    def accumulate(self, node: Node, carried: Sequence[Value]) -> Sequence[Value]:
        """What was accumulated, with what this tile gives."""
        axis = self._body.labels.axes[node]
        if axis.combine == THREADED:
            return self._build_piece(node, self._cut(node, self._operands(node, dict(enumerate(carried)))))
        operands = self._operands(node)
        if self._body.program.size[node.result()] > self._body.most:
            inner = _second_axis(self._body.program, node, operands, self._body.most)
            if inner is not None:
                return self._by_pieces(node, inner, operands, carried[0])
        [partial] = self._build_piece(node, self._cut(node, operands))
        return [self._build.elementwise(axis.combine, carried[0], partial)]

    def _by_pieces(self, node: Node, inner: AxisLink, operands: tuple[Value, ...], old: Value) -> Sequence[Value]:
        """An accumulator that is itself large, piece by piece along another axis, each in its place."""
        program = self._body.program
        combine = self._body.labels.axes[node].combine
        dim = inner.results[0]
        assert dim is not None
        length = node.result().static_shape[dim]
        size = tile_size_near(max(1, length * self._body.most // program.size[node.result()]), length)
        steps = Steps(INNER, length, size)
        kept = list(operands)

        def piece(
            build: Builder, start: int | Value, count: int, carried: tuple[Value, ...], given: tuple[Value, ...]
        ) -> Sequence[Value]:
            bound, those = Bindings({INNER: start}), Steps(steps.iterator, steps.count, count)
            parts = [those.part(v.static_shape, d) for v, d in zip(given, inner.operands, strict=True)]
            taken = tuple(materialize(build, v, p, bound) for v, p in zip(given, parts, strict=True))
            [partial] = program.rules.build_piece(build, Cut(node, inner, those, taken, bound))
            part = those.part(carried[0].static_shape, dim)
            return [accumulate(build, carried[0], part, partial, bound, combine)]

        return TiledLoop(length, size).emit(self._build, [old], kept, piece)

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
        dim = self._body.labels.dims[value]
        return yield_to(self._build, old, part, self._tiles[value, part.axes[dim]], self._bound)

    def _build_piece(self, node: Node, cut: Cut) -> tuple[Value, ...]:
        built = self._body.program.rules.build_piece(self._build, cut)
        if self._body.labels.core.seed in node.results and built[0].node is not None:
            self._body.seeds.append(built[0].node)
        return built

    def _cut(self, node: Node, operands: tuple[Value, ...]) -> Cut:
        return Cut(node, self._body.labels.axes[node], self._steps, operands, self._bound)

    def _operands(
        self, node: Node, carried: dict[int, Value] | None = None, part: DimSubset | None = None
    ) -> tuple[Value, ...]:
        return tuple(
            carried[number] if carried and number in carried else self._operand(node, number, part)
            for number in range(len(node.operands))
        )

    def _operand(self, node: Node, number: int, part: DimSubset | None) -> Value:
        """What a part of a node's results, None for what is combined, needs of an operand: computed in the loop, or a
        part of what is around it."""
        value, axis = node.operand(number), self._body.labels.axes[node]
        if axis.operands[number] is None:
            return self._piece(value, None, None)
        read = needed_subset(node, axis, number, part, self._steps)
        assert read is not None
        return self.read(node, number, read)

    def read(self, node: Node, number: int, read: DimSubset) -> Value:
        """A subset of the dim of an operand that is cut."""
        value, axis = node.operand(number), self._body.labels.axes[node]
        if self._body.is_inside(self._body.program.maker.get(value)) and reads_tile(self._body.labels, node, number):
            return self._tiles[value, read]
        return self._piece(value, axis.operands[number], read)

    def _piece(self, value: Value, dim: int | None, read: DimSubset | None) -> Value:
        """A part of a value from around the loop."""
        known = self._pieces.get((value, dim, read))
        if known is None:
            part = TensorSubset.full(value.static_shape)
            part = part if dim is None or read is None else part.along(dim, read)
            known = materialize(self._build, self._whole(value), part, self._bound)
            self._pieces[value, dim, read] = known
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
