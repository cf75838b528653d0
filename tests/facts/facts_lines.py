"""Integer computations line by line, in short notation (see untyped_mlir): what random index programs are made of."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from untyped_mlir import of

from hlo_lower.testing.fuzz.drawn_types import TYPES

Shape = tuple[int, ...]


@dataclass(frozen=True)
class Term:
    """A value of the text."""

    name: str
    shape: Shape
    element: str

    @property
    def type(self) -> str:
        """Its type in short."""
        return of(self.shape, self.element)


def names(terms: Sequence[Term]) -> str:
    """The names of values."""
    return ", ".join(term.name for term in terms)


@dataclass
class Lines:
    """The body of a function, or of a region of it.

    Attributes:
      prefix: what the names that it defines begin with.
      text: its lines.
      arguments: of the function; a region has those of its function.
      functions: the text of private functions that are called.
    """

    prefix: str
    text: list[str] = field(default_factory=list[str])
    arguments: list[Term] = field(default_factory=list[Term])
    functions: list[str] = field(default_factory=list[str])
    inner: int = 0

    def nested(self) -> "Lines":
        """The body of a region."""
        self.inner += 1
        return Lines(f"{self.prefix}r{self.inner}_", [], self.arguments, self.functions)

    def argument(self, shape: Shape, element: str) -> Term:
        """One more argument of the function."""
        self.arguments.append(Term(f"%arg{len(self.arguments)}", shape, element))
        return self.arguments[-1]

    def add(self, op: str, shape: Shape, element: str, count: str = "") -> Term:
        """A value defined by a line."""
        found = Term(f"%{self.prefix}{len(self.text)}", shape, element)
        self.text.append(f"{found.name}{count} = {op}")
        return found

    def returning(self, *results: Term) -> str:
        """The lines, and what they return."""
        return "\n".join([*self.text, f"return {names(results)}"])

    # --- ops ---

    def constant(self, values: Any, shape: Shape, element: str) -> Term:
        """A constant whose values wrap around into the type."""
        kind, array = TYPES[element], np.asarray(values, object)
        wrap: Callable[[Any], int] = lambda v: int(kind.constant(int(v)))  # noqa: E731
        told = wrap(array.item()) if array.ndim == 0 else np.vectorize(wrap, otypes=[object])(array).tolist()
        return self.add(f"constant {told} : {of(shape, element)}", shape, element)

    def iota(self, shape: Shape, dim: int, element: str) -> Term:
        """Coordinates along a dim."""
        return self.add(f"iota dim = {dim} : {of(shape, element)}", shape, element)

    def binary(self, op: str, a: Term, b: Term) -> Term:
        """An op on two values of one type."""
        return self.add(f"{op} {a.name}, {b.name}", a.shape, a.element)

    def unary(self, op: str, a: Term) -> Term:
        """An op on one value, with a result of its type."""
        return self.add(f"{op} {a.name}", a.shape, a.element)

    def with_number(self, op: str, a: Term, number: int) -> Term:
        """An op on a value and a number."""
        return self.binary(op, a, self.constant(number, a.shape, a.element))

    def convert(self, a: Term, element: str) -> Term:
        """The same elements in another type."""
        return self.add(f"convert {a.name} -> {of(a.shape, element)}", a.shape, element)

    def broadcast(self, a: Term, shape: Shape, dims: Sequence[int]) -> Term:
        """broadcast_in_dim."""
        op = f"broadcast_in_dim {a.name}, dims = {list(dims)} -> {of(shape, a.element)}"
        return self.add(op, shape, a.element)

    def reshape(self, a: Term, shape: Shape) -> Term:
        """The same elements in another shape."""
        return self.add(f"reshape {a.name} -> {of(shape, a.element)}", shape, a.element)

    def slice(self, a: Term, dim: int, begin: int, end: int) -> Term:
        """A part along one dim."""
        parts = [f"{begin}:{end}" if d == dim else f"0:{n}" for d, n in enumerate(a.shape)]
        shape = tuple(end - begin if d == dim else n for d, n in enumerate(a.shape))
        return self.add(f"slice {a.name} [{', '.join(parts)}]", shape, a.element)

    def concatenate(self, parts: Sequence[Term], dim: int) -> Term:
        """Values one after the other."""
        size = sum(part.shape[dim] for part in parts)
        shape = tuple(size if d == dim else n for d, n in enumerate(parts[0].shape))
        return self.add(f"concatenate {names(parts)}, dim = {dim}", shape, parts[0].element)

    def reverse(self, a: Term, dim: int) -> Term:
        """The last first."""
        return self.add(f"reverse {a.name}, dims = [{dim}]", a.shape, a.element)

    def compare(self, direction: str, a: Term, b: Term) -> Term:
        """A comparison."""
        return self.add(f"compare {direction}, {a.name}, {b.name}", a.shape, "i1")

    def select(self, predicate: Term, a: Term, b: Term) -> Term:
        """A choice; the predicate may be a scalar."""
        return self.add(f"select {names([predicate, a, b])}", a.shape, a.element)

    def clamp(self, low: int, a: Term, high: int) -> Term:
        """Cut to numbers."""
        least, most = (self.constant(n, (), a.element) for n in (low, high))
        return self.add(f"clamp {names([least, a, most])}", a.shape, a.element)

    def sort(self, operands: Sequence[Term], dim: int, direction: str = "LT") -> list[Term]:
        """Sort by the first operand."""
        count = f":{len(operands)}" if len(operands) > 1 else ""
        op = f"sort({names(operands)}) <dimension = {dim} : i64, is_stable = true> {{{direction}}}"
        name = self.add(op, operands[0].shape, "", count).name
        return [Term(f"{name}#{n}" if count else name, o.shape, o.element) for n, o in enumerate(operands)]

    def running_sum(self, a: Term, dim: int, *, is_reversed: bool) -> Term:
        """A cumulative sum."""
        zero = self.constant(0, (), a.element)
        sides = (0, a.shape[dim] - 1) if is_reversed else (a.shape[dim] - 1, 0)
        padding = [list(sides) if d == dim else [0, 0] for d in range(len(a.shape))]
        window = ", ".join(str(n if d == dim else 1) for d, n in enumerate(a.shape))
        attributes = (
            f"window_dimensions = array<i64: {window}>, padding = dense<{padding}> : tensor<{len(padding)}x2xi64>"
        )
        op = f"reduce_window({names([a, zero])}) <{attributes}> {{add}} -> {a.type}"
        return self.add(op, a.shape, a.element)

    def taken(self, a: Term, places: Term) -> Term:
        """a[places] of vectors, clamped."""
        (size,) = places.shape
        numbers = "#stablehlo.gather<collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>"
        attributes = f"dimension_numbers = {numbers}, slice_sizes = array<i64: 1>"
        column = self.reshape(places, (size, 1))
        op = f"gather({names([a, column])}) <{attributes}> -> {of((size,), a.element)}"
        return self.add(op, (size,), a.element)

    def dynamic_slice(self, a: Term, start: Term, size: int) -> Term:
        """A part of a vector from a runtime start."""
        return self.add(f"dynamic_slice {a.name}, {start.name}, sizes = [{size}]", (size,), a.element)

    def case(self, number: Term, branches: Sequence[tuple["Lines", Term]]) -> Term:
        """A choice of a branch."""
        told = "\n} {\n".join(lines.returning(found) for lines, found in branches)
        return self.add(f"case({number.name}) {{\n{told}\n}}", branches[0][1].shape, branches[0][1].element)

    def repeat(self, a: Term, times: Term, body: Callable[["Lines", Term, Term], Term]) -> Term:
        """A while that runs so often, an i32, with a counter from 0."""
        zero, inner = self.constant(0, (), "i32"), self.nested()
        i, x = Term(f"%{inner.prefix}i", (), "i32"), Term(f"%{inner.prefix}x", a.shape, a.element)
        found = body(inner, x, i)
        following = inner.with_number("add", i, 1)
        goes_on = f"%{inner.prefix}p = compare LT, {names([i, times])}\nreturn %{inner.prefix}p"
        op = f"while({i.name} = {zero.name}, {x.name} = {a.name}) cond {{\n{goes_on}\n"
        op += f"}} do {{\n{inner.returning(following, found)}\n}}"
        return Term(f"{self.add(op, a.shape, a.element, ':2').name}#1", a.shape, a.element)

    def call(self, inputs: Sequence[Term], symbol: str, result: Term) -> Term:
        """A call of a private function with a result of this type."""
        return self.add(f"call @{symbol}({names(inputs)}) -> {result.type}", result.shape, result.element)
