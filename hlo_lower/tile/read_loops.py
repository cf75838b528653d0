"""Read the loops of a module back into subsets, bodies and yields (`loop_form`), whoever wrote them: counted
`stablehlo.while`s, and of a module in linalg `scf.for` and `scf.forall`.

    %c = stablehlo.multiply %counter, 7; %m = stablehlo.minimum %c, 73
    %t = stablehlo.dynamic_slice %x, %m, %zero, sizes = [7, 60]; ...
    %n = stablehlo.dynamic_update_slice %o, %r, %m
    ->
    %t = materialize %x[tile(min(7*i, 73), 7), full]; ...
    yield %r to %o[tile(min(7*i, 73), 7)]

A start is followed through additions, multiplications by constants, minima, maxima and clamps, and through what loops
around carry as it is; what scf counts is followed alike. Bounds that no iteration reaches are left out. Ops that
compute nothing but places are not told, nor are constants without dims, which stand where they are read.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from hlo_lower.ir import mlir
from hlo_lower.ir.regions import only_op
from hlo_lower.ir.view import Block, Graph, Node, Value
from hlo_lower.lowering.linalg.loops import PLACE, READ, WRITE, constant_number, range_of
from hlo_lower.lowering.linalg.structured_ops import OWN_MAPS
from hlo_lower.lowering.loops import CountedLoop, read_counted
from hlo_lower.ops.axes.parts import Filter, Offset, StridedRange, TensorSubset, whole
from hlo_lower.ops.names import CONSTANT, DYNAMIC_SLICE, DYNAMIC_UPDATE_SLICE, GATHER, SLICE, WHILE
from hlo_lower.tile.find.scan_stacks import trips_of
from hlo_lower.tile.loop_form import Carried, Computed, Item, LoopForm, Materialized, Yielded
from hlo_lower.tile.prepare.loop_carries import is_kept
from hlo_lower.tile.prepare.row_picks import row_pick
from hlo_lower.tile.subsets import affine

PARALLEL_WRITE = "tensor.parallel_insert_slice"

LONGEST = 60
"""Letters of an attribute that are told."""

COUNTED = ("i32", "i64", "ui32", "ui64", "index")
"""Types of places: what is computed of counters does not wrap around in them where it stays below 2**31."""

STEPS = {
    "arith.addi": "add",
    "arith.muli": "multiply",
    "arith.minsi": "minimum",
    "arith.maxsi": "maximum",
    "arith.index_cast": "convert",
    "tensor.extract": "convert",
    "tensor.from_elements": "convert",
}
"""Ops of a module in linalg that places go through, and what StableHLO calls them."""

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
        if node.name in (DYNAMIC_UPDATE_SLICE, WRITE) and self.yielded_subset(node) is not None:
            return None
        if node.results and all(self.place(value) is not None for value in node.results):
            return None
        number = _told_number(node)
        if number is not None:
            self.names[node.result()] = number
            return None
        counts = range_of(node) if node.name in ("scf.for", "scf.forall") else None
        if counts and depth < len(ITERATORS) and len(node.blocks[0].arguments) == 1 + len(node.results):
            return self._read_structured(node, counts, depth)
        counted = read_counted(node) if node.name == WHILE else None
        trips = None if counted is None else trips_of(node, counted)
        if counted is not None and trips is not None and trips > 0 and depth < len(ITERATORS):
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
            self.places[value] = None if value.node is None else self._offset_of(value, value.node)
        return self.places[value]

    def _offset_of(self, value: Value, node: Node) -> Offset | None:
        if _scalar_type(value) not in COUNTED or len(node.results) != 1:
            return None
        if node.name == "arith.constant":
            number = constant_number(value)
            return None if number is None else Offset(number)
        if node.name == CONSTANT:
            return None if value.integer is None else Offset(value.integer)
        given = [self.place(operand) for operand in node.operands]
        known = [place for place in given if place is not None]
        if len(known) < len(given):
            return None
        match STEPS.get(node.name, node.name.removeprefix("stablehlo.")):
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
            case "maximum" if not (known[0].scale and known[1].scale):
                one, other = sorted(known, key=lambda place: -abs(place.scale))
                found = one if self._span(one).least >= other.constant else None
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
        if node.name == READ and node.operand(0).is_static:
            return self._slice(shape, node, node.operands[1:])
        if node.name == SLICE and node.is_static:
            names = "start_indices", "limit_indices", "strides"
            sizes, bounds = node.result().static_shape, zip(*(node.integers(name) for name in names), strict=True)
            runs = [StridedRange(Offset(s), n, k if n > 1 else 1) for n, (s, _, k) in zip(sizes, bounds, strict=True)]
            return TensorSubset(shape, tuple(runs))
        taken = row_pick(node) if node.name == GATHER and node.is_static else None
        if taken is not None and not taken.batch:
            rows = Filter(self.name(node.operand(1)), whole(node.result().static_shape[taken.dim]))
            return TensorSubset(shape, tuple(rows if d == taken.dim else whole(n) for d, n in enumerate(shape)))
        return None

    def _tile(self, shape: Sequence[int], starts: Sequence[Value], sizes: Sequence[int]) -> TensorSubset:
        pairs = zip(shape, starts, sizes, strict=True)
        axes = (StridedRange(self._start(start, extent - size), size) for extent, start, size in pairs)
        return TensorSubset(tuple(shape), tuple(axes))

    def _slice(self, shape: Sequence[int], node: Node, places: Sequence[Value]) -> TensorSubset | None:
        """The slice that an op of tensor reads or writes; None where its size is not known."""
        offsets, sizes, strides = (node.integers(name) for name in PLACE)
        unknown, left = mlir.dynamic_size(), iter(places)
        if unknown in (*sizes, *strides):
            return None
        starts = [self._where(next(left)) if n == unknown else Offset(n) for n in offsets]
        runs = zip(starts, sizes, strides, strict=True)
        return TensorSubset(tuple(shape), tuple(StridedRange(s, n, k if n > 1 else 1) for s, n, k in runs))

    def _where(self, value: Value) -> Offset:
        """Where a slice begins that nothing clamps."""
        place = self.place(value)
        return Offset(0, self.name(value), 1) if place is None else place

    def yielded_subset(self, node: Node | None) -> TensorSubset | None:
        """The subset of a carried value that an update passes on to the next iteration; None for any other op."""
        if node is not None and node.name in (WRITE, PARALLEL_WRITE) and node.operand(1).is_static:
            into, block = node.operand(1), node.operand(1).block
            is_last = block is not None and block.owner.name in ("scf.for", "scf.forall")
            if node.name == WRITE and is_last and block is not None:
                users = list(node.result().users)
                is_last = users == [block.terminator] and block.terminator.operand(into.number - 1) == node.result()
            return self._slice(into.static_shape, node, node.operands[2:]) if is_last else None
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
            subset = self.yielded_subset(given.node)
            value = given if subset is None or given.node is None else given.node.operand(1)
            yields.append(Yielded(self.name(value), one.name, subset))
        is_parallel = all(one.subset is not None and _moves(one.subset, iterator) for one in yields)
        results = tuple(self.new(loop.result(number)) for number in places)
        where = str(self.graph.location(loop))
        return LoopForm(where, iterator, trips, is_parallel, tuple(carried), items, tuple(yields), results)

    def _read_structured(self, loop: Node, counts: range, depth: int) -> LoopForm:
        """Read an `scf.for` or `scf.forall` with one counter."""
        iterator, [body] = ITERATORS[depth], loop.blocks
        counter, *arguments = body.arguments
        self.ranges[iterator] = _Range(0, len(counts) - 1)
        self.places[counter] = Offset(counts.start, iterator, counts.step)
        initial = loop.operands[len(loop.operands) - len(arguments) :]
        carried: list[Carried] = []
        for number, (value, begin) in enumerate(zip(arguments, initial, strict=True)):
            self.places[value], self.names[value] = None, f"%{iterator}{number}"
            told = str(value.raw.type).removeprefix("tensor<").removesuffix(">")
            carried.append(Carried(self.names[value], self.name(begin), told))
        items, is_parallel = tuple(self.block(body, depth + 1)), loop.name == "scf.forall"
        writes = list(body.terminator.blocks[0].nodes) if is_parallel else []
        yields: list[Yielded] = []
        for number, (value, one) in enumerate(zip(arguments, carried, strict=True)):
            mine = [write for write in writes if write.operand(1) == value]
            if not is_parallel:
                given = body.terminator.operand(number)
                mine = [given.node] if given.node is not None and self.yielded_subset(given.node) is not None else []
                yields += [] if mine else [Yielded(self.name(given), one.name, None)]
            yields += [Yielded(self.name(write.operand(0)), one.name, self.yielded_subset(write)) for write in mine]
        results = tuple(self.new(result) for result in loop.results)
        where = str(self.graph.location(loop))
        return LoopForm(where, iterator, len(counts), is_parallel, tuple(carried), items, tuple(yields), results)

    def _text(self, node: Node) -> str:
        untold = ("operandSegmentSizes", *OWN_MAPS[1:])
        attributes = {n: str(value) for n, value in sorted(mlir.attributes_of(node.raw).items()) if n not in untold}
        told = ", ".join(f"{k} = {v if len(v) <= LONGEST else '...'}" for k, v in attributes.items())
        bodies = [_body_op(block) for block in node.blocks] if node.name not in NAMES_ALL else []
        inner = "".join(f" by {'a region' if op is None else op.name.removeprefix('stablehlo.')}" for op in bodies)
        operands = ", ".join(self.name(value) for value in node.operands)
        types = ", ".join(str(v.raw.type).removeprefix("tensor<").removesuffix(">") for v in node.results)
        return f"{node.name}({operands}){f' {{{told}}}' if told else ''}{inner} : {types}"


NAMES_ALL = ("linalg.fill", "linalg.matmul", "linalg.batch_matmul", "linalg.transpose", "linalg.broadcast")
"""Ops of linalg whose region says nothing more than their name."""


def _body_op(block: Block) -> Node | None:
    """The op that a region consists of; None where it is more."""
    found = only_op(block)
    [*nodes] = block.nodes
    if found is None and len(nodes) == 2 and nodes[1].operands == nodes[0].results:
        return nodes[0] if set(nodes[0].operands) <= set(block.arguments) else None
    return found


def _told_number(node: Node) -> str | None:
    """A constant without dims, as text; None of another op."""
    if node.name == "arith.constant" and not node.result().is_tensor:
        return str(node.raw.attributes["value"]).partition(" : ")[0]
    number = node.constant() if node.name == CONSTANT and node.result().shape == () else None
    return None if number is None else str(number)


def _scalar_type(value: Value) -> str:
    """The element type of a tensor without dims, or the type of what is not a tensor; "" of others."""
    if not value.is_tensor:
        return str(value.raw.type)
    return value.element_type if value.shape == () else ""


def _moves(subset: TensorSubset, iterator: str) -> bool:
    """Whether iterations have subsets that do not meet. A last tile that is moved back meets the one before it, and
    what they have in common is what the later one gives."""
    runs = [axis for axis in subset.axes if isinstance(axis, StridedRange)]
    return any(run.start.iterator == iterator and run.start.scale >= run.size for run in runs)


def read_loops(graph: Graph) -> tuple[LoopForm, ...]:
    """The loops that count in the entry point of a module, with those within them.

    Example:
      >>> read_loops(hl.read("decode.mlir"))
      ()
    """
    reader = _Reader(graph)
    for number, argument in enumerate(graph.main.body.arguments):
        reader.names[argument], reader.places[argument] = f"%arg{number}", None
    return tuple(item for item in reader.block(graph.main.body, 0) if isinstance(item, LoopForm))
