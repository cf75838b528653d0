"""Read the counted loops of a module back into subsets, bodies and yields (`loop_form`), whoever wrote them.

    %c = stablehlo.multiply %counter, 7; %m = stablehlo.minimum %c, 73
    %t = stablehlo.dynamic_slice %x, %m, %zero, sizes = [7, 60]; ...
    %n = stablehlo.dynamic_update_slice %o, %r, %m
    ->
    %t = materialize %x[tile(min(7*i, 73), 7), full]; ...
    yield %r to %o[tile(min(7*i, 73), 7)]

A start is followed through additions, multiplications by constants, minima, maxima and clamps, and through what loops
around carry as it is. Bounds that no iteration reaches are left out. Ops that compute nothing but places are
not told, nor are constants without dims, which stand where they are read.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from hlo_lower.ir import mlir
from hlo_lower.ir.regions import only_op
from hlo_lower.ir.view import Block, Graph, Node, Value
from hlo_lower.lowering.loops import CountedLoop, read_counted
from hlo_lower.ops.axes.parts import Filter, Offset, StridedRange, TensorSubset, whole
from hlo_lower.ops.names import CONSTANT, DYNAMIC_SLICE, DYNAMIC_UPDATE_SLICE, GATHER, SLICE, WHILE
from hlo_lower.tile.loop_form import Carried, Computed, Item, LoopForm, Materialized, Yielded
from hlo_lower.tile.prepare.loop_carries import is_kept
from hlo_lower.tile.prepare.slice_hoisting import taken_dim
from hlo_lower.tile.subsets import affine

LONGEST = 60
"""Letters of an attribute that are told."""

COUNTED = ("i32", "i64", "ui32", "ui64")
"""Types of places: what is computed of counters does not wrap around in them where it stays below 2**31."""

ITERATORS = "ijklmnpq"


@dataclass(frozen=True)
class _Range:
    """The least and the greatest of what a name stands for."""

    least: int
    most: int


@dataclass
class _Reader:
    graph: Graph
    names: dict[Value, str] = field(default_factory=dict[Value, str])
    places: dict[Value, Offset | None] = field(default_factory=dict[Value, "Offset | None"])
    ranges: dict[str, _Range] = field(default_factory=dict[str, _Range])
    count: int = 0

    def block(self, block: Block, depth: int) -> Iterator[Item]:
        """What a block computes, the terminator left out."""
        *nodes, _ = block.nodes
        for node in nodes:
            item = self._item(node, depth)
            if item is not None:
                yield item

    def _item(self, node: Node, depth: int) -> Item | None:
        if node.name == DYNAMIC_UPDATE_SLICE and self.yielded(node) is not None:
            return None
        if node.results and all(self.place(value) is not None for value in node.results):
            return None
        number = node.constant() if node.name == CONSTANT and node.result().shape == () else None
        if number is not None:
            self.names[node.result()] = str(number)
            return None
        counted = read_counted(node) if node.name == WHILE else None
        trips = None if counted is None else _trips(node, counted)
        if counted is not None and trips is not None and depth < len(ITERATORS):
            return self._loop(node, counted, trips, depth)
        part = self._read(node)
        results = tuple(self.new(value) for value in node.results)
        if part is not None:
            return Materialized(results[0], self.name(node.operand(0)), part)
        return Computed(results, self._text(node))

    def new(self, value: Value) -> str:
        """A name for a value that is made."""
        self.names[value] = f"%{self.count}"
        self.count += 1
        return self.names[value]

    def name(self, value: Value) -> str:
        """The name of a value, or where it is one of the places."""
        place = self.place(value)
        if place is not None:
            return str(place)
        return self.names[value] if value in self.names else self.new(value)

    # --- places ---

    def place(self, value: Value) -> Offset | None:
        """A scalar as a multiple of a counter and a constant; None where it is something else."""
        if value not in self.places:
            self.places[value] = None if value.node is None else self._found(value, value.node)
        return self.places[value]

    def _found(self, value: Value, node: Node) -> Offset | None:
        if value.shape != () or value.element_type not in COUNTED or len(node.results) != 1:
            return None
        if node.name == CONSTANT:
            number = value.constant()
            return None if number is None else Offset(int(number))
        given = [self.place(operand) for operand in node.operands]
        known = [place for place in given if place is not None]
        if len(known) < len(given):
            return None
        match node.name.removeprefix("stablehlo."):
            case "add" if not (known[0].scale and known[1].scale):
                one, other = sorted(known, key=lambda place: -abs(place.scale))
                found = affine(one, 1, other.constant)
            case "multiply" if not (known[0].scale and known[1].scale):
                one, other = sorted(known, key=lambda place: -abs(place.scale))
                found = affine(one, other.constant, 0)
            case "minimum" if not (known[0].scale and known[1].scale):
                one, other = sorted(known, key=lambda place: -abs(place.scale))
                found = self._at_most(one, other.constant)
            case "clamp" if not (known[0].scale or known[2].scale):
                found = (
                    self._at_most(known[1], known[2].constant)
                    if self._span(known[1]).least >= known[0].constant
                    else None
                )
            case "convert" | "reshape":
                found = known[0]
            case _:
                return None
        if found is None or (found.scale and found.iterator not in self.ranges):
            return None
        span = self._span(found)
        return found if max(abs(span.least), abs(span.most)) < 1 << 31 else None

    def _span(self, place: Offset) -> _Range:
        if not place.scale:
            return _Range(place.constant, place.constant)
        known = self.ranges[place.iterator]
        ends = [place.constant + place.scale * end for end in (known.least, known.most)]
        return _Range(min(ends), max(ends))

    def _at_most(self, place: Offset, most: int) -> Offset:
        """A place that does not go beyond a bound: a name of its own where it would."""
        span = self._span(place)
        if span.most <= most:
            return place
        name = f"min({place}, {most})"
        self.ranges[name] = _Range(min(span.least, most), most)
        return Offset(0, name, 1)

    def _start(self, value: Value, last: int) -> Offset:
        """Where a slice begins, which it clamps to [0, last]."""
        place = self.place(value)
        if place is None or self._span(place).least < 0:
            return Offset(0, self.name(value), 1) if last else Offset(0)
        return self._at_most(place, last)

    # --- subsets ---

    def _read(self, node: Node) -> TensorSubset | None:
        """The subset of its first operand that a node gives; None where it does something else."""
        shape = node.operand(0).static_shape if node.operands and node.operand(0).is_static else ()
        if node.name == DYNAMIC_SLICE and node.is_static:
            return self._tile(shape, node.operands[1:], node.integers("slice_sizes"))
        if node.name == SLICE and node.is_static:
            names = "start_indices", "limit_indices", "strides"
            sizes, bounds = node.result().static_shape, zip(*(node.integers(name) for name in names), strict=True)
            runs = [StridedRange(Offset(s), n, k if n > 1 else 1) for n, (s, _, k) in zip(sizes, bounds, strict=True)]
            return TensorSubset(shape, tuple(runs))
        if node.name == GATHER and node.is_static and (dim := taken_dim(node)) is not None:
            rows = Filter(self.name(node.operand(1)), whole(node.result().static_shape[dim]))
            return TensorSubset(shape, tuple(rows if d == dim else whole(n) for d, n in enumerate(shape)))
        return None

    def _tile(self, shape: Sequence[int], starts: Sequence[Value], sizes: Sequence[int]) -> TensorSubset:
        pairs = zip(shape, starts, sizes, strict=True)
        axes = (StridedRange(self._start(start, extent - size), size) for extent, start, size in pairs)
        return TensorSubset(tuple(shape), tuple(axes))

    def yielded(self, node: Node | None) -> TensorSubset | None:
        """The subset of a carried value that an update gives to the next iteration; None of another op."""
        if node is None or node.name != DYNAMIC_UPDATE_SLICE or not node.is_static:
            return None
        into, update = node.operands[:2]
        block, users = into.block, list(node.result().users)
        if block is None or len(users) != 1 or len(list(into.users)) != 1 or users[0] != block.terminator:
            return None
        if block.owner.name != WHILE or block.terminator.operand(into.number) != node.result():
            return None
        return self._tile(into.static_shape, node.operands[2:], update.static_shape)

    # --- loops ---

    def _loop(self, loop: Node, counted: CountedLoop, trips: int, depth: int) -> LoopForm:
        iterator, body = ITERATORS[depth], loop.blocks[1]
        self.ranges[iterator] = _Range(0, trips - 1)
        kept = [number != counted.counter and is_kept(loop, number) for number in range(len(loop.operands))]
        carried: list[Carried] = []
        places: list[int] = []
        for number, (value, initial) in enumerate(zip(body.arguments, loop.operands, strict=True)):
            if number == counted.counter:
                self.places[value] = Offset(0, iterator, 1)
            elif kept[number]:
                self.places[value], self.names[value] = self.place(initial), self.name(initial)
                self.names[loop.result(number)] = self.names[value]
            else:
                self.places[value], self.names[value] = None, f"%{iterator}{len(carried)}"
                told = str(value.raw.type).removeprefix("tensor<").removesuffix(">")
                carried.append(Carried(self.names[value], self.name(initial), told))
                places.append(number)
        items = tuple(self.block(body, depth + 1))
        yields: list[Yielded] = []
        for number, one in zip(places, carried, strict=True):
            given = body.terminator.operand(number)
            subset = self.yielded(given.node)
            value = given if subset is None or given.node is None else given.node.operand(1)
            yields.append(Yielded(self.name(value), one.name, subset))
        is_parallel = all(one.subset is not None and _moves(one.subset, iterator) for one in yields)
        results = tuple(self.new(loop.result(number)) for number in places)
        where = str(self.graph.location(loop))
        return LoopForm(where, iterator, trips, is_parallel, tuple(carried), items, tuple(yields), results)

    def _text(self, node: Node) -> str:
        attributes = {name: str(value) for name, value in sorted(mlir.attributes_of(node.raw).items())}
        told = ", ".join(f"{k} = {v if len(v) <= LONGEST else '...'}" for k, v in attributes.items())
        bodies = [only_op(block) for block in node.blocks]
        inner = "".join(f" by {'a region' if op is None else op.name.removeprefix('stablehlo.')}" for op in bodies)
        operands = ", ".join(self.name(value) for value in node.operands)
        types = ", ".join(str(v.raw.type).removeprefix("tensor<").removesuffix(">") for v in node.results)
        return f"{node.name}({operands}){f' {{{told}}}' if told else ''}{inner} : {types}"


def _trips(loop: Node, counted: CountedLoop) -> int | None:
    """How often a loop runs whose counter begins with zero and ends at a constant; None of another."""
    first = loop.operand(counted.counter).constant()
    limit = counted.limit
    if counted.limit_at is not None:
        bound = loop.operand(counted.limit_at).constant()
        limit = None if bound is None else int(bound)
    return limit if first is not None and int(first) == 0 and limit is not None and limit > 0 else None


def _moves(subset: TensorSubset, iterator: str) -> bool:
    """Whether iterations have subsets that do not meet. A last tile that is moved back meets the one before it, and
    what they have in common is what the later one gives."""
    runs = [axis for axis in subset.axes if isinstance(axis, StridedRange)]
    return any(run.start.iterator == iterator and run.start.scale >= run.size for run in runs)


def read_loops(graph: Graph) -> tuple[LoopForm, ...]:
    """The counted loops of the entry point of a module, with those within them.

    Example:
      >>> read_loops(hl.read("decode.mlir"))
      ()
    """
    reader = _Reader(graph)
    for number, argument in enumerate(graph.main.body.arguments):
        reader.names[argument], reader.places[argument] = f"%arg{number}", None
    return tuple(item for item in reader.block(graph.main.body, 0) if isinstance(item, LoopForm))
