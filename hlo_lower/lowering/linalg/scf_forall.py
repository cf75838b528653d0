"""Emit a loop whose iterations do not meet as `scf.forall`: what each computes is put into the results in parallel.

    %r = scf.for %i = %c0 to %c96 step %c32 iter_args(%o = %empty) {
      ...; %new = tensor.insert_slice %tile into %o[0, %i] [8, 32] [1, 1]; scf.yield %new }
    ->
    %r = scf.forall (%i) = (0) to (96) step (32) shared_outs(%o = %empty) {
      ...; scf.forall.in_parallel { tensor.parallel_insert_slice %tile into %o[0, %i] [8, 32] [1, 1] } }

Equal: each carried value is written by one slice, the slices of any two iterations do not meet along some dim (their
places are computed for all iterations, `counter_values`), and an iteration reads of it nothing but its own slice before
it is written. So no iteration sees what another one writes, nor is anything written twice, and their order is free. A
last tile that is moved back meets the one before it, and is computed by itself behind the loop.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from hlo_lower.ir import mlir
from hlo_lower.ir.builder import Builder
from hlo_lower.ir.view import Block, Node, Value
from hlo_lower.lowering.linalg.counter_values import CounterValues, Numbers
from hlo_lower.lowering.linalg.scf_for import index_constant, move_nodes, replace_all

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
        found = [number for operand in loop.operands[:3] if (number := index_number(operand)) is not None]
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
    apart = min(_apart(values, write) for write in writes)
    if apart < len(counted):
        if apart < max(2, len(counted) - 1):
            raise _SequentialError("writes slices that meet")
        _split(loop, counted, apart)
    _replace(loop, counted[:apart], writes)


def _names(block: Block, functions: Mapping[str, Node], seen: set[str]) -> set[str]:
    """The operations that are run, those of functions that are called included."""
    names: set[str] = set()
    for raw in mlir.walked(block.owner.raw):
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
    """Whether a slice that is read is the one that is written."""
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


def index_number(value: Value) -> int | None:
    """The number of a constant that is an index."""
    node = value.node
    attribute = None if node is None or node.name != "arith.constant" else node.attribute("value")
    return None if attribute is None else mlir.integer_of(attribute)
