"""Places that come of a loop's counter, in plain terms: the counter itself, or its multiple and a constant.

jaxlib's pass computes every start of a slice in tensors without dims and clamps it into the tensor. What comes of it
is computed for all iterations (`hlo_lower.lowering.linalg.counter_values`); where that is a * counter + b, a reader
sees which rows an iteration touches, and where all places are multiples of one size, the loop steps by it:

    %k = arith.index_cast %counter; %t = tensor.from_elements %k; %m = linalg.map { arith.muli } ins(%t, %size); ...
    %l = arith.maxsi %i, 0; %p = arith.minsi %l, limit; tensor.extract_slice %x[%p, 0] [40, 8] [1, 1]
    ->
    scf.for %i = 0 to 80 step 40 { tensor.extract_slice %x[%i, 0] [40, 8] [1, 1] ...
"""

from dataclasses import dataclass

import numpy as np

from hlo_lower.ir import mlir
from hlo_lower.ir.builder import Builder
from hlo_lower.ir.view import Graph, Node, Value
from hlo_lower.lowering.linalg.counter_values import CounterValues, Numbers
from hlo_lower.lowering.linalg.scf_for import index_constant
from hlo_lower.lowering.linalg.scf_forall import index_number, range_of

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
    loops: list[Node] = []
    graph.walk(lambda node: loops.append(node) if node.name in LOOPS else None)
    return loops


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
    for raw in mlir.walked(loop.raw)[1:]:
        if raw.name.split(".")[0] in COMPUTES:
            continue
        for number, operand in enumerate(Node(raw).operands):
            if operand.raw.type != index or operand == counter or index_number(operand) is not None:
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
    sizes = {index_number(user.operand(1)) if user.name == "arith.muli" else None for user in users}
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
