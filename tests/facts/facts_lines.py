"""Integer computations line by line, in short notation (see untyped_mlir): what random index programs are made of."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from untyped_mlir import of

from hlo_lower.testing.fuzz.drawn_types import TYPES

Shape = tuple[int, ...]


@dataclass(frozen=True)
class Term:
    """A value of the text; as text it is its name."""

    name: str
    shape: Shape
    element: str

    @property
    def type(self) -> str:
        return of(self.shape, self.element)

    def __str__(self) -> str:
        return self.name


def names(terms: Sequence[Term]) -> str:
    return ", ".join(map(str, terms))


@dataclass
class Lines:
    """The body of a function, or of a region of it.

    Attributes:
      prefix: what the names that it defines begin with.
      text: its lines.
      arguments: of the function; a region has those of its function.
      functions: the text of private functions that are called.
      inner: how many regions it has.
    """

    prefix: str
    text: list[str] = field(default_factory=list[str])
    arguments: list[Term] = field(default_factory=list[Term])
    functions: list[str] = field(default_factory=list[str])
    inner: int = 0

    def nested(self):
        """The body of a region."""
        self.inner += 1
        return replace(self, prefix=f"{self.prefix}r{self.inner}_", text=[], inner=0)

    def argument(self, shape: Shape, element: str) -> Term:
        self.arguments.append(Term(f"%arg{len(self.arguments)}", shape, element))
        return self.arguments[-1]

    def add(self, op: str, shape: Shape, element: str, count: str = "") -> Term:
        """A value defined by a line."""
        found = Term(f"%{self.prefix}{len(self.text)}", shape, element)
        self.text.append(f"{found}{count} = {op}")
        return found

    def into(self, op: str, shape: Shape, element: str) -> Term:
        """A value defined by a line that says its type."""
        return self.add(f"{op} -> {of(shape, element)}", shape, element)

    def like(self, op: str, a: Term, *others: Term) -> Term:
        """An op on values, with a result of the type of the first one."""
        return self.add(f"{op} {names([a, *others])}", a.shape, a.element)

    def returning(self, *results: Term) -> str:
        """The lines, and what they return."""
        return "\n".join([*self.text, f"return {names(results)}"])

    def constant(self, values: Any, shape: Shape, element: str) -> Term:
        """A constant whose values wrap around into the type."""
        wrapped = np.frompyfunc(lambda value: int(TYPES[element].constant(int(value))), 1, 1)
        told = np.asarray(wrapped(np.asarray(values, object)), object).tolist()
        return self.add(f"constant {told} : {of(shape, element)}", shape, element)

    def with_number(self, op: str, a: Term, number: int) -> Term:
        return self.like(op, a, self.constant(number, a.shape, a.element))

    def iota(self, shape: Shape, dim: int, element: str) -> Term:
        return self.add(f"iota dim = {dim} : {of(shape, element)}", shape, element)

    def convert(self, a: Term, element: str) -> Term:
        return self.into(f"convert {a}", a.shape, element)

    def broadcast(self, a: Term, shape: Shape, dims: Sequence[int]) -> Term:
        return self.into(f"broadcast_in_dim {a}, dims = {list(dims)}", shape, a.element)

    def reshape(self, a: Term, shape: Shape) -> Term:
        return self.into(f"reshape {a}", shape, a.element)

    def slice(self, a: Term, dim: int, begin: int, end: int) -> Term:
        parts = [f"{begin}:{end}" if d == dim else f"0:{n}" for d, n in enumerate(a.shape)]
        shape = tuple(end - begin if d == dim else n for d, n in enumerate(a.shape))
        return self.add(f"slice {a} [{', '.join(parts)}]", shape, a.element)

    def concatenate(self, parts: Sequence[Term], dim: int) -> Term:
        size = sum(part.shape[dim] for part in parts)
        shape = tuple(size if d == dim else n for d, n in enumerate(parts[0].shape))
        return self.add(f"concatenate {names(parts)}, dim = {dim}", shape, parts[0].element)

    def reverse(self, a: Term, dim: int) -> Term:
        return self.add(f"reverse {a}, dims = [{dim}]", a.shape, a.element)

    def compare(self, direction: str, a: Term, b: Term) -> Term:
        return self.add(f"compare {direction}, {a}, {b}", a.shape, "i1")

    def select(self, predicate: Term, a: Term, b: Term) -> Term:
        return self.add(f"select {predicate}, {a}, {b}", a.shape, a.element)

    def clamp(self, low: int, a: Term, high: int) -> Term:
        least, most = (self.constant(n, (), a.element) for n in (low, high))
        return self.add(f"clamp {least}, {a}, {most}", a.shape, a.element)

    def sort(self, operands: Sequence[Term], dim: int, direction: str = "LT") -> list[Term]:
        """Sort by the first operand."""
        count = f":{len(operands)}" if len(operands) > 1 else ""
        op = f"sort({names(operands)}) <dimension = {dim} : i64, is_stable = true> {{{direction}}}"
        name = self.add(op, operands[0].shape, "", count).name
        return [Term(f"{name}#{n}" if count else name, o.shape, o.element) for n, o in enumerate(operands)]

    def running_sum(self, a: Term, dim: int, *, is_reversed: bool) -> Term:
        zero = self.constant(0, (), a.element)
        sides = (0, a.shape[dim] - 1) if is_reversed else (a.shape[dim] - 1, 0)
        padding = [list(sides) if d == dim else [0, 0] for d in range(len(a.shape))]
        window = ", ".join(str(n if d == dim else 1) for d, n in enumerate(a.shape))
        told = f"window_dimensions = array<i64: {window}>, padding = dense<{padding}> : tensor<{len(padding)}x2xi64>"
        return self.into(f"reduce_window({a}, {zero}) <{told}> {{add}}", a.shape, a.element)

    def taken(self, a: Term, places: Term) -> Term:
        """a[places] of vectors, clamped."""
        numbers = "#stablehlo.gather<collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>"
        column = self.reshape(places, (*places.shape, 1))
        told = f"dimension_numbers = {numbers}, slice_sizes = array<i64: 1>"
        return self.into(f"gather({a}, {column}) <{told}>", places.shape, a.element)

    def dynamic_slice(self, a: Term, start: Term, size: int) -> Term:
        return self.add(f"dynamic_slice {a}, {start}, sizes = [{size}]", (size,), a.element)

    def case(self, number: Term, branches: Sequence[tuple["Lines", Term]]) -> Term:
        told = "\n} {\n".join(lines.returning(found) for lines, found in branches)
        return self.add(f"case({number}) {{\n{told}\n}}", branches[0][1].shape, branches[0][1].element)

    def repeat(self, a: Term, times: Term, body: Callable[["Lines", Term, Term], Term]) -> Term:
        """A while that runs so often, an i32, with a counter from 0."""
        zero, inner = self.constant(0, (), "i32"), self.nested()
        i, x = Term(f"%{inner.prefix}i", (), "i32"), Term(f"%{inner.prefix}x", a.shape, a.element)
        found = body(inner, x, i)
        turn = inner.returning(inner.with_number("add", i, 1), found)
        goes_on = f"%{inner.prefix}p = compare LT, {i}, {times}\nreturn %{inner.prefix}p"
        op = f"while({i} = {zero}, {x} = {a}) cond {{\n{goes_on}\n}} do {{\n{turn}\n}}"
        return Term(f"{self.add(op, a.shape, a.element, ':2')}#1", a.shape, a.element)

    def call(self, inputs: Sequence[Term], symbol: str, result: Term) -> Term:
        """A call of a private function with a result of this type."""
        return self.into(f"call @{symbol}({names(inputs)})", result.shape, result.element)
