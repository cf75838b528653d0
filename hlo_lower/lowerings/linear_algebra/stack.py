"""Matrices of one shape, one or a batch of them, and what is done with their rows and columns in a loop.

Steps read and write a row or column by its number at run time: what stands before it is masked out by comparing an iota
with that number, so that one loop body serves all steps, and a target without loops gets them one after the other.
"""

from collections.abc import Callable, Sequence
from math import prod

from hlo_lower.graph import Builder, Value
from hlo_lower.graph.axes import reduce_along
from hlo_lower.loop.structured import StructuredLoop

COUNTER = "i32"

Step = Callable[["Stack", Value, tuple[Value, ...]], Sequence[Value]]
"""One step of a loop: from the stack that builds it, its number and what it carries, to what the next one carries."""


class Stack:
    """A batch of matrices at a place where ops are built.

    Attributes:
      build: builds ops there.
      batch: (), or one size: how many matrices.
      element: of the matrices.
    """

    def __init__(self, build: Builder, batch: tuple[int, ...], element: str) -> None:
        self.build, self.batch, self.element = build, batch, element

    @classmethod
    def of(cls, build: Builder, value: Value, rank: int) -> "Stack":
        """The stack of a value whose last `rank` dims are those of one matrix or vector; its batch dims become one."""
        shape = value.static_shape
        sizes = shape[: len(shape) - rank]
        return cls(build, (prod(sizes),) if sizes else (), value.element_type)

    def flat(self, value: Value, rank: int) -> Value:
        """A value with the batch dims of the op as one."""
        shape = value.static_shape
        return self.build.reshape(value, (*self.batch, *shape[len(shape) - rank :]))

    # --- the same number everywhere, and places ---

    def number(self, value: float, own: Sequence[int]) -> Value:
        """A float, of this shape for each matrix."""
        return self.build.float_splat(value, (*self.batch, *own), self.element)

    def place(self, own: Sequence[int], axis: int) -> Value:
        """Of each element its place along an axis of its matrix or vector."""
        return self.build.iota((*self.batch, *own), len(self.batch) + axis, COUNTER)

    def step(self, number: Value, own: Sequence[int]) -> Value:
        """A step's number, of this shape for each matrix."""
        return self.build.broadcast(number, (*self.batch, *own))

    def spread(self, value: Value, own: Sequence[int], axes: Sequence[int]) -> Value:
        """What each matrix has, along these axes of this shape."""
        count = len(self.batch)
        return self.build.broadcast(value, (*self.batch, *own), [*range(count), *(count + a for a in axes)])

    # --- parts ---

    def part(self, value: Value, number: Value, axis: int) -> Value:
        """What stands at a place along an axis, without that axis: a column of a matrix, an element of a vector."""
        zero, count = self.build.constant(0, (), COUNTER), len(self.batch)
        shape = value.static_shape
        at = count + axis
        starts = [number if d == at else zero for d in range(len(shape))]
        piece = self.build.dynamic_slice(value, starts, [1 if d == at else n for d, n in enumerate(shape)])
        return self.build.reshape(piece, [n for d, n in enumerate(shape) if d != at])

    def sum(self, value: Value, axis: int) -> Value:
        """The sum along an axis."""
        return self.reduced(value, self.build.float_splat(0.0, (), self.element), axis, "add")

    def reduced(self, value: Value, initial: Value, axis: int, op: str) -> Value:
        """What an op makes of all elements along an axis."""
        return reduce_along(self.build, value, initial, len(self.batch) + axis, op)

    def outer(self, left: Value, right: Value) -> Value:
        """The products of the elements of two vectors: rows are the first one's."""
        own = left.static_shape[-1], right.static_shape[-1]
        return self.op("multiply", self.spread(left, own, [0]), self.spread(right, own, [1]))

    # --- elementwise ---

    def op(self, name: str, *values: Value) -> Value:
        """An elementwise op."""
        return self.build.elementwise(name, *values)

    def where(self, holds: Value, then: Value, otherwise: Value) -> Value:
        """Elementwise choice."""
        return self.build.select(holds, then, otherwise)

    def transposed(self, matrices: Value) -> Value:
        """The transposed matrices."""
        count = len(self.batch)
        return self.build.transpose(matrices, [*range(count), count + 1, count])

    # --- loops ---

    def steps(self, count: int, carried: Sequence[Value], step: Step) -> list[Value]:
        """What is carried after so many steps."""
        if count == 1:
            return list(step(self, self.build.constant(0, (), COUNTER), tuple(carried)))

        def body(inner: Builder, number: Value, values: tuple[Value, ...], _: tuple[Value, ...]) -> Sequence[Value]:
            return step(Stack(inner, self.batch, self.element), number, values)

        return StructuredLoop(count, COUNTER).emit_while(self.build, carried, (), body) if count else list(carried)
