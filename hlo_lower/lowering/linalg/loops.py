"""Counted loops in linalg: as `scf.for`, or as `scf.forall` where their iterations do not meet."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from hlo_lower.base.element_types import element_type
from hlo_lower.ir import mlir
from hlo_lower.ir.builder import Builder
from hlo_lower.ir.view import Block, Graph, Node, Value
from hlo_lower.lowering.loops import CountedLoop

# What the integers of a loop's body are in each of its iterations, where they come of its counter and constants alone.
#
# They are computed as they stand, for all iterations at once, so that nothing is assumed of how a place was written:
# tiles by a multiplication, the last one moved back by a minimum, clamps, JAX's negative places. Numbers that would not
# fit their type are not known, and neither are negative ones that an op reads without a sign.


Numbers: TypeAlias = NDArray[np.int64]

LONGEST, DEEPEST = 1 << 22, 64
"""Iterations, and operations one upon the other, beyond which nothing is known."""

_CASTS = frozenset({"arith.index_cast", "arith.extsi", "arith.trunci", "tensor.from_elements", "tensor.extract"})
_UNSIGNED_CASTS = frozenset({"arith.index_castui", "arith.extui"})

_OPS: Mapping[str, Callable[[Any, Any], Any]] = {
    "arith.addi": np.add,
    "arith.subi": np.subtract,
    "arith.muli": np.multiply,
    "arith.maxsi": np.maximum,
    "arith.minsi": np.minimum,
    "arith.maxui": np.maximum,
    "arith.minui": np.minimum,
}
_SIGNED = frozenset({*_OPS, "arith.cmpi", "arith.extsi", "arith.index_cast"})
_UNSIGNED = frozenset({"arith.maxui", "arith.minui"})

_COMPARED = (np.equal, np.not_equal, *(np.less, np.less_equal, np.greater, np.greater_equal) * 2)
"""By the number of `arith.cmpi`'s predicate; those from 6 on read no sign."""


@dataclass
class CounterValues:
    """The integers of a loop's body, one for each iteration.

    Attributes:
      counter: the loop's counter, an index.
      numbers: what it is, iteration by iteration.
    """

    counter: Value
    numbers: Numbers
    _known: dict[Value, Numbers | None] = field(default_factory=dict[Value, "Numbers | None"])

    @classmethod
    def of_range(cls, counter: Value, numbers: range) -> "CounterValues | None":
        """Those of a loop over these numbers; None where there are too many, or none."""
        if not 0 < len(numbers) <= LONGEST:
            return None
        return cls(counter, np.arange(numbers.start, numbers.stop, numbers.step, dtype=np.int64))

    def of(self, value: Value, depth: int = 0) -> Numbers | None:
        """An index, an integer, or the one element of a tensor without dims; None where it is not known."""
        if value == self.counter:
            return self.numbers
        if value not in self._known:
            found = self._compute(value, depth) if depth < DEEPEST else None
            self._known[value] = found if found is None or _fits(found, value) else None
        return self._known[value]

    def _compute(self, value: Value, depth: int) -> Numbers | None:
        node = value.node
        if node is None:
            return None
        if node.name == "arith.constant":
            return _constant(node, len(self.numbers))
        if node.name in _SIGNED and any(_range(operand) == (0, 1) for operand in node.operands):
            return None  # as a number with a sign true is -1
        if node.name in _CASTS or node.name in _UNSIGNED_CASTS:
            [*operands] = node.operands
            found = self.of(operands[0], depth + 1) if len(operands) == 1 and _is_scalar(operands[0]) else None
            return found if node.name in _CASTS or _is_positive(found) else None
        if node.name in _OPS or node.name in ("arith.cmpi", "arith.select"):
            return _compute_op(node, [self.of(operand, depth + 1) for operand in node.operands])
        return None


def _compute_op(node: Node, operands: list[Numbers | None]) -> Numbers | None:
    """Compute an op on known numbers; None if one is unknown or the result may wrap around in 64 bits."""
    given = [numbers for numbers in operands if numbers is not None]
    if len(given) < len(operands):
        return None
    if node.name == "arith.select":
        return np.where(given[0] != 0, given[1], given[2])
    predicate = node.integer("predicate") if node.name == "arith.cmpi" else 0
    if (node.name in _UNSIGNED or predicate >= 6) and not all(_is_positive(numbers) for numbers in given):
        return None
    if node.name == "arith.cmpi":
        return _COMPARED[predicate](*given).astype(np.int64)
    most = [max(abs(int(numbers.min())), abs(int(numbers.max())), 1) for numbers in given]
    return _OPS[node.name](*given) if most[0] * most[1] < 1 << 62 and sum(most) < 1 << 62 else None


def _constant(node: Node, count: int) -> Numbers | None:
    attribute = node.attribute("value")
    value = node.result()
    if attribute is None or not _is_scalar(value) or _range(value) is None:
        return None
    number = mlir.dense_integers(attribute)[0] if value.is_tensor else mlir.integer_of(attribute)
    return np.broadcast_to(np.int64(number), (count,))


def _is_positive(numbers: Numbers | None) -> bool:
    return numbers is not None and int(numbers.min()) >= 0


def _is_scalar(value: Value) -> bool:
    """Whether a value is not a tensor, or one without dims."""
    return not value.is_tensor or value.shape == ()


def _range(value: Value) -> tuple[int, int] | None:
    """The range of an index or of an integer without a sign; None of anything else."""
    declared = element_type(value.element_type if value.is_tensor else str(value.raw.type))
    return None if declared.is_unsigned else declared.integer_range


def _fits(numbers: Numbers, value: Value) -> bool:
    """Whether numbers are such ones of a value's type: an i1 is 0 or 1, all others have a sign."""
    held = _range(value)
    return held is not None and held[0] <= int(numbers.min()) and int(numbers.max()) <= held[1]


# --- emit a counted loop as `scf.for`: an index as its counter, what is carried as its iter_args ---
#
#     %r:n = stablehlo.while(%i = %first, %c = %carried) cond { %i < limit } do { ...; return %i + 1, %next }
#     ->
#     %r = scf.for %k = %lower to %upper step %one iter_args(%c = %carried) {
#       %i = tensor.from_elements (arith.index_cast %k); ...; scf.yield %next }
#
# Equal: both run for first, first + 1, ..., limit - 1, and not at all where first >= limit. After the loop the counter
# is max(first, limit). The operations of the body are moved, not copied. An index is at least as wide as the counter.


def index_constant(build: Builder, value: int) -> Value:
    """`arith.constant` of index type."""
    attribute = mlir.parse_attribute(f"{value} : index")
    return build.op("arith.constant", [], [mlir.parse_type("index")], {"value": attribute}).result()


def to_index(build: Builder, scalar: Value, *, is_unsigned: bool = False) -> Value:
    """A scalar tensor of integers as an index."""
    element = build.op("tensor.extract", [scalar], [mlir.tensor_element(scalar.raw.type)]).result()
    cast = "arith.index_castui" if is_unsigned else "arith.index_cast"
    return build.op(cast, [element], [mlir.parse_type("index")]).result()


def from_index(build: Builder, index: Value, scalar_type: mlir.RawType, *, is_unsigned: bool = False) -> Value:
    """An index as a scalar tensor of integers."""
    cast = "arith.index_castui" if is_unsigned else "arith.index_cast"
    element = build.op(cast, [index], [mlir.tensor_element(scalar_type)]).result()
    return build.op("tensor.from_elements", [element], [scalar_type]).result()


def move_nodes(block: Block, to: Block) -> tuple[Value, ...]:
    """Move the nodes of a block to the end of another and drop its terminator; what that returned."""
    *nodes, terminator = block.nodes
    for node in nodes:
        to.raw.append(node.raw)
    returned = terminator.operands
    terminator.raw.erase()
    return returned


def replace_all(old: Sequence[Value], new: Sequence[Value]) -> None:
    """Use other values in the place of these."""
    for before, after in zip(old, new, strict=True):
        before.raw.replace_all_uses_with(after.raw)


def emit_for(loop: Node, counted: CountedLoop) -> Node:
    """Replace a `stablehlo.while` by `scf.for`.

    Args:
      loop: the loop, in types without signs; its condition is not looked at any more.
      counted: what counts in it.

    Returns:
      The `scf.for`.
    """
    build = Builder.before(loop)
    at, is_unsigned = counted.counter, counted.is_unsigned
    initial = loop.operands
    carried = [value for number, value in enumerate(initial) if number != at]
    lower = to_index(build, initial[at], is_unsigned=is_unsigned)
    if counted.limit_at is None:
        assert counted.limit is not None
        upper = index_constant(build, counted.limit)
    else:
        upper = to_index(build, initial[counted.limit_at], is_unsigned=is_unsigned)
    types = [value.raw.type for value in carried]
    new = build.op("scf.for", [lower, upper, index_constant(build, 1), *carried], types, regions=1)
    body = loop.blocks[1]
    block = Block(mlir.append_block(new.raw, 0, [mlir.parse_type("index"), *types], loop.raw.location))
    inner = build.at_end(block)
    counter, *arguments = block.arguments
    given = list(arguments)
    given.insert(at, from_index(inner, counter, initial[at].raw.type, is_unsigned=is_unsigned))
    replace_all(body.arguments, given)
    returned = move_nodes(body, block)
    inner.op("scf.yield", [value for number, value in enumerate(returned) if number != at], [])
    results = list(new.results)
    last = loop.result(at)
    if last.is_used:
        greatest = build.op("arith.maxsi", [lower, upper], [lower.raw.type]).result()
        results.insert(at, from_index(build, greatest, last.raw.type, is_unsigned=is_unsigned))
    else:
        results.insert(at, initial[at])
    replace_all(loop.results, results)
    loop.raw.erase()
    return new


# --- emit a loop whose iterations do not meet as `scf.forall` ---
#
# What each computes is put into the results in parallel.
#
#     %r = scf.for %i = %c0 to %c96 step %c32 iter_args(%o = %empty) {
#       ...; %new = tensor.insert_slice %tile into %o[0, %i] [8, 32] [1, 1]; scf.yield %new }
#     ->
#     %r = scf.forall (%i) = (0) to (96) step (32) shared_outs(%o = %empty) {
#       ...; scf.forall.in_parallel { tensor.parallel_insert_slice %tile into %o[0, %i] [8, 32] [1, 1] } }
#
# Equal: each carried value is written by one slice, the slices of any two iterations do not meet along some dim (their
# places are computed for all iterations, `counter_values`), and an iteration reads of it nothing but its own slice
# before it is written. So no iteration sees what another one writes, nor is anything written twice, and their order is
# free. A last tile that is moved back meets the one before it, and is computed by itself behind the loop.


ORDERLESS = frozenset({"affine", "arith", "complex", "linalg", "math", "scf", "tensor"})
"""Dialects whose operations on tensors may run in any order."""

READ, WRITE = "tensor.extract_slice", "tensor.insert_slice"

PLACE = ("static_offsets", "static_sizes", "static_strides")


class _SequentialError(Exception):
    """A loop has to stay in order, and why: what follows "it"."""


def range_of(loop: Node) -> range | None:
    """What the counter of an `scf.for` or `scf.forall` of one dim counts, where that is known."""
    if loop.name == "scf.forall":
        names = ("staticLowerBound", "staticUpperBound", "staticStep")
        found = [number for name in names for number in loop.integers(name)]
    else:
        found = [number for operand in loop.operands[:3] if (number := constant_number(operand)) is not None]
    return range(*found) if len(found) == 3 and mlir.dynamic_size() not in found and found[2] > 0 else None


def emit_forall(loop: Node, functions: Mapping[str, Node]) -> str:
    """Replace an `scf.for` by `scf.forall`, where its iterations do not meet.

    Args:
      loop: the loop.
      functions: those of the module by name, for what is called.

    Returns:
      Why it has to stay in order, and is as it was: what follows "it"; "" where it was replaced.
    """
    try:
        _emit(loop, functions)
    except _SequentialError as error:
        return str(error)
    return ""


def _emit(loop: Node, functions: Mapping[str, Node]) -> None:
    counted = range_of(loop)
    [block] = loop.blocks
    values = None if counted is None else CounterValues.of_range(block.argument(0), counted)
    if counted is None or values is None:
        raise _SequentialError("does not count between constants")
    if not loop.results:
        raise _SequentialError("gives nothing")
    for name in _names(block, functions, set()):
        if name.split(".")[0] not in ORDERLESS:
            raise _SequentialError(f"holds {name}")
    writes = [_write(block, number) for number in range(len(loop.results))]
    for number, write in enumerate(writes):
        if _fills(values, write):
            empty = Builder.before(loop).op("tensor.empty", [], [loop.result(number).raw.type])
            loop.raw.operands[3 + number] = empty.result().raw
    apart = min(_apart(values, write) for write in writes)
    if apart < len(counted):
        if apart < max(2, len(counted) - 1):
            raise _SequentialError("writes slices that meet")
        _split(loop, counted, apart)
    _replace(loop, counted[:apart], writes)


def _names(block: Block, functions: Mapping[str, Node], seen: set[str]) -> set[str]:
    """The operations that are run, those of functions that are called included."""
    names: set[str] = set()
    for raw in mlir.operations_within(block.owner.raw):
        node = Node(raw)
        if node.name != "func.call":
            names.add(node.name)
        elif node.callee not in seen:
            seen.add(node.callee)
            [*bodies] = functions[node.callee].blocks if node.callee in functions else ()
            names |= _names(bodies[0], functions, seen) if bodies else {f"func.call @{node.callee}"}
    return names - {"func.func", "func.return"}


def _write(block: Block, number: int) -> Node:
    """The slice that is written into a carried value.

    Raises:
      _SequentialError: it is read or written in another way.
    """
    carried, given = block.argument(1 + number), block.terminator.operand(number)
    told = _SequentialError(f"carries {carried.raw.type} from one iteration to the next")
    write = given.node
    if write is None or write.name != WRITE or write.operand(1) != carried or len(list(given.users)) != 1:
        raise told
    for user in carried.users:
        if user != write and not (user.name == READ and user.operand(0) == carried and _places(user, 1, write)):
            raise told
    if len([user for user in carried.users if user == write]) != 1 or mlir.block_of(write.raw) != block.raw:
        raise told
    return write


def _places(read: Node, first: int, write: Node) -> bool:
    return read.operands[first:] == write.operands[2:] and all(read.integers(n) == write.integers(n) for n in PLACE)


def _apart(values: CounterValues, write: Node) -> int:
    """How many iterations, from the first on, write slices of which no two meet: all, all but the last, or none."""
    count = len(values.numbers)
    offsets, sizes, strides = (write.integers(name) for name in PLACE)
    places = iter(write.operands[2:])
    found = 0
    for offset, size, stride in zip(offsets, sizes, strides, strict=True):
        if offset != mlir.dynamic_size():
            continue
        numbers = values.of(next(places))
        if numbers is None or mlir.dynamic_size() in (size, stride):
            continue
        extent = (size - 1) * stride + 1
        found = max(found, next((k for k in (count, count - 1) if _are_apart(numbers[:k], extent)), 0))
    return found


def _fills(values: CounterValues, write: Node) -> bool:
    """Whether every element of a result is written, and none is read of what it begins with."""
    carried = write.operand(1)
    if not carried.is_static or list(carried.users) != [write]:
        return False
    places, cut = iter(write.operands[2:]), 0
    for extent, offset, size, stride in zip(
        carried.static_shape, *(write.integers(name) for name in PLACE), strict=True
    ):
        if offset == mlir.dynamic_size():
            numbers = values.of(next(places))
            if numbers is None or size < 1 or stride != 1 or not _covers(np.sort(numbers), size, extent):
                return False
            cut += 1
        elif (offset, size, stride) != (0, extent, 1):
            return False
    return cut <= 1


def _covers(numbers: Numbers, size: int, extent: int) -> bool:
    """Whether runs of a size that begin at sorted numbers cover a dim."""
    return bool(numbers[0] == 0 and numbers[-1] + size == extent and (np.diff(numbers) <= size).all())


def _are_apart(numbers: Numbers, extent: int) -> bool:
    return bool((np.diff(np.sort(numbers)) >= extent).all())


def _split(loop: Node, counted: range, count: int) -> None:
    """Let a loop end after so many iterations, and another one behind it do the others, in order."""
    copy = Node(mlir.clone_at(loop.raw, mlir.insert_after(loop.raw), loop.raw.location))
    replace_all(loop.results, copy.results)
    copy.raw.operands[0] = index_constant(Builder.before(loop), counted[count]).raw
    for number, result in enumerate(loop.results):
        copy.raw.operands[3 + number] = result.raw


def _replace(loop: Node, counted: range, writes: Sequence[Node]) -> None:
    build, types = Builder.before(loop), [result.raw.type for result in loop.results]
    attributes = {
        "staticLowerBound": mlir.dense_i64([counted.start]),
        "staticUpperBound": mlir.dense_i64([counted.stop]),
        "staticStep": mlir.dense_i64([counted.step]),
        "operandSegmentSizes": mlir.parse_attribute(f"array<i32: 0, 0, 0, {len(types)}>"),
    }
    new = build.op("scf.forall", loop.operands[3:], types, attributes, regions=1)
    block = Block(mlir.append_block(new.raw, 0, [mlir.parse_type("index"), *types], loop.raw.location))
    replace_all(loop.blocks[0].arguments, block.arguments)
    move_nodes(loop.blocks[0], block)
    together = build.at_end(block).op("scf.forall.in_parallel", [], [], regions=1)
    inner = build.at_end(Block(mlir.append_block(together.raw, 0, [], loop.raw.location)))
    for write in writes:
        kept = {name: write.raw.attributes[name] for name in (*PLACE, "operandSegmentSizes")}
        inner.op("tensor.parallel_insert_slice", write.operands, [], kept)
        write.raw.erase()
    replace_all(loop.results, new.results)
    loop.raw.erase()


def constant_number(value: Value) -> int | None:
    """The number of a constant that is an index or an integer, with its sign."""
    node = value.node
    attribute = None if node is None or node.name != "arith.constant" or value.is_tensor else node.attribute("value")
    is_integer = attribute is not None and element_type(str(value.raw.type)).integer_range is not None
    return mlir.integer_of(attribute) if attribute is not None and is_integer else None


# --- loops whose order is free as `scf.forall`; of the others it is told why they stay `scf.for` ---


MOST_INLINED = 4096
"""Operations that loops get from functions that they call."""


@dataclass(frozen=True)
class ParallelLoops:
    """What became of the counted loops of a module.

    Attributes:
      count: those that are `scf.forall`.
      in_order: where the others are and why they are not, a line each.
    """

    count: int = 0
    in_order: tuple[str, ...] = ()


def inline_into_loops(graph: Graph) -> bool:
    """Put the bodies of functions that loops call in the place of the calls, so that what they write is seen.

    Returns:
      Whether there were any.
    """
    loops, functions = _loops_and_functions(graph)
    pending = [call for loop in loops for call in _calls(loop.raw)]
    count = 0
    with mlir.active(graph.context):
        while pending and count < MOST_INLINED:
            call = pending.pop()
            function = functions.get(call.callee)
            if function is None or not function.blocks or call.parent is None:
                continue
            built = mlir.inline_call(call.raw, function.raw)
            pending += [inner for raw in built for inner in _calls(raw)]
            count += len(built)
    return count > 0


def lower_parallel(graph: Graph) -> ParallelLoops:
    """Replace the `scf.for` whose iterations do not meet, inner ones first."""
    loops, functions = _loops_and_functions(graph)
    count, in_order = 0, list[str]()
    with mlir.active(graph.context):
        for loop in reversed(loops):
            where = str(graph.location(loop))
            why = emit_forall(loop, functions)
            count += not why
            in_order += [f"scf.for at {where} {why}"] if why else []
    return ParallelLoops(count, tuple(dict.fromkeys(reversed(in_order))))


def _loops_and_functions(graph: Graph) -> tuple[list[Node], dict[str, Node]]:
    """The `scf.for` ops of a module in program order, and its functions by name."""
    nodes = graph.nodes()
    functions = (node for node in nodes if node.name == "func.func")
    named = {mlir.symbol_name(node.raw.attributes["sym_name"]): node for node in functions}
    return [node for node in nodes if node.name == "scf.for"], named


def _calls(raw: mlir.RawOperation) -> list[Node]:
    return [Node(inner) for inner in mlir.operations_within(raw) if inner.name == "func.call"]


# --- places that come of a loop's counter, in plain terms: the counter itself, or its multiple and a constant ---
#
# jaxlib's pass computes every start of a slice in tensors without dims and clamps it into the tensor. What comes of it
# is computed for all iterations (`hlo_lower.lowering.linalg.loops`); where that is a * counter + b, a reader sees which
# rows an iteration touches, and where all places are multiples of one size, the loop steps by it:
#
#     %k = arith.index_cast %counter; %t = tensor.from_elements %k; %m = linalg.map { arith.muli } ins(%t, %size); ...
#     %l = arith.maxsi %i, 0; %p = arith.minsi %l, limit; tensor.extract_slice %x[%p, 0] [40, 8] [1, 1]
#     ->
#     scf.for %i = 0 to 80 step 40 { tensor.extract_slice %x[%i, 0] [40, 8] [1, 1] ...


LOOPS = ("scf.for", "scf.forall")
COMPUTES = ("arith", "linalg")
"""Dialects whose operations compute places, and have none."""


def put_in_plain_places(graph: Graph) -> bool:
    """Replace the places of slices that come of a counter by plain ones; whether there were any."""
    with mlir.active(graph.context):
        return sum(_plain_places(loop) for loop in _loops(graph)) > 0


def step_by_size(graph: Graph) -> bool:
    """Let loops step by what their counters are multiplied by wherever they are read; whether there were any."""
    with mlir.active(graph.context):
        return sum(_stepped(loop) for loop in _loops(graph)) > 0


def _loops(graph: Graph) -> list[Node]:
    return [node for node in graph.nodes() if node.name in LOOPS]


@dataclass
class _Places:
    """Places as multiples of a counter, each built once, at the beginning of the loop's body."""

    counter: Value
    numbers: Numbers
    build: Builder

    def of(self, places: Numbers) -> Value | None:
        """a * counter + b; None where the places are something else."""
        steps, counted = np.diff(places), np.diff(self.numbers)
        a, left = divmod(int(steps[0]), int(counted[0])) if len(steps) else (0, 0)
        b = int(places[0]) - a * int(self.numbers[0])
        if left or not np.array_equal(steps, a * counted):
            return None
        if a == 0:
            return index_constant(self.build, b)
        multiple = self.counter if a == 1 else self._op("arith.muli", self.counter, a)
        return multiple if b == 0 else self._op("arith.addi", multiple, b)

    def _op(self, name: str, value: Value, number: int) -> Value:
        return self.build.op(name, [value, index_constant(self.build, number)], [value.raw.type]).result()


def _plain_places(loop: Node) -> bool:
    counted, block = range_of(loop), loop.blocks[0]
    counter = block.argument(0)
    values = None if counted is None else CounterValues.of_range(counter, counted)
    if values is None or not counter.is_used:
        return False
    places = _Places(counter, values.numbers, Builder(mlir.insert_at_begin(block.raw), loop.raw.location))
    index, replaced = counter.raw.type, False
    for raw in mlir.operations_within(loop.raw)[1:]:
        if raw.name.split(".")[0] in COMPUTES:
            continue
        for number, operand in enumerate(Node(raw).operands):
            if operand.raw.type != index or operand == counter or constant_number(operand) is not None:
                continue
            found = values.of(operand)
            plain = None if found is None else places.of(found)
            if plain is not None:
                raw.operands[number] = plain.raw
                replaced = True
    return replaced


def _stepped(loop: Node) -> bool:
    counted = range_of(loop)
    counter = loop.blocks[0].argument(0)
    users = list(counter.users)
    sizes = {constant_number(user.operand(1)) if user.name == "arith.muli" else None for user in users}
    size = sizes.pop() if len(sizes) == 1 else None
    if counted is None or size is None or size < 2 or any(user.operand(0) != counter for user in users):
        return False
    first, end, step = counted.start * size, counted.stop * size, counted.step * size
    if loop.name == "scf.forall":
        for name, number in (("staticLowerBound", first), ("staticUpperBound", end), ("staticStep", step)):
            loop.raw.attributes[name] = mlir.dense_i64([number])
    else:
        build = Builder.before(loop)
        for number, bound in enumerate((first, end, step)):
            loop.raw.operands[number] = index_constant(build, bound).raw
    for user in users:
        user.result().raw.replace_all_uses_with(counter.raw)
        user.raw.erase()
    return True
