"""MLIR text of integer computations, line by line: the ops that random index programs are made of."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from hlo_lower.testing.fuzz.drawn_types import TYPES, typed

Shape = tuple[int, ...]


@dataclass(frozen=True)
class Term:
    """A value of the text: its name, shape and element type."""

    name: str
    shape: Shape
    element: str

    @property
    def type(self) -> str:
        """Its type as MLIR prints it."""
        return typed(self.shape, self.element)


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

    def add(self, op: str, shape: Shape, element: str) -> Term:
        """A value defined by a line."""
        found = Term(f"%{self.prefix}{len(self.text)}", shape, element)
        self.text.append(f"{found.name} = {op}")
        return found

    # --- ops ---

    def constant(self, values: Any, shape: Shape, element: str) -> Term:
        """A constant whose values wrap around into the type."""
        kind, array = TYPES[element], np.asarray(values, object)
        wrap: Callable[[Any], int] = lambda v: int(kind.constant(int(v)))  # noqa: E731
        told = wrap(array.item()) if array.ndim == 0 else np.vectorize(wrap, otypes=[object])(array).tolist()
        return self.add(f"stablehlo.constant dense<{told}> : {typed(shape, element)}", shape, element)

    def iota(self, shape: Shape, dim: int, element: str) -> Term:
        """Coordinates along a dim."""
        return self.add(f"stablehlo.iota dim = {dim} : {typed(shape, element)}", shape, element)

    def binary(self, op: str, a: Term, b: Term) -> Term:
        """An op on two values of one type."""
        return self.add(f"stablehlo.{op} {a.name}, {b.name} : {a.type}", a.shape, a.element)

    def unary(self, op: str, a: Term) -> Term:
        """An op on one value, with a result of its type."""
        return self.add(f"stablehlo.{op} {a.name} : {a.type}", a.shape, a.element)

    def with_number(self, op: str, a: Term, number: int) -> Term:
        """An op on a value and a number."""
        return self.binary(op, a, self.constant(number, a.shape, a.element))

    def convert(self, a: Term, element: str) -> Term:
        """The same elements in another type."""
        result = typed(a.shape, element)
        return self.add(f"stablehlo.convert {a.name} : ({a.type}) -> {result}", a.shape, element)

    def broadcast(self, a: Term, shape: Shape, dims: Sequence[int]) -> Term:
        """broadcast_in_dim."""
        op = f"stablehlo.broadcast_in_dim {a.name}, dims = {list(dims)} : ({a.type}) -> {typed(shape, a.element)}"
        return self.add(op, shape, a.element)

    def reshape(self, a: Term, shape: Shape) -> Term:
        """The same elements in another shape."""
        return self.add(f"stablehlo.reshape {a.name} : ({a.type}) -> {typed(shape, a.element)}", shape, a.element)

    def transpose(self, a: Term, order: Sequence[int]) -> Term:
        """Dims in another order."""
        shape = tuple(a.shape[d] for d in order)
        op = f"stablehlo.transpose {a.name}, dims = {list(order)} : ({a.type}) -> {typed(shape, a.element)}"
        return self.add(op, shape, a.element)

    def slice(self, a: Term, dim: int, begin: int, end: int) -> Term:
        """A part along one dim."""
        parts = [f"{begin}:{end}" if d == dim else f"0:{n}" for d, n in enumerate(a.shape)]
        shape = tuple(end - begin if d == dim else n for d, n in enumerate(a.shape))
        op = f"stablehlo.slice {a.name} [{', '.join(parts)}] : ({a.type}) -> {typed(shape, a.element)}"
        return self.add(op, shape, a.element)

    def concatenate(self, parts: Sequence[Term], dim: int) -> Term:
        """Values one after the other."""
        size = sum(part.shape[dim] for part in parts)
        shape = tuple(size if d == dim else n for d, n in enumerate(parts[0].shape))
        types = f"({', '.join(p.type for p in parts)}) -> {typed(shape, parts[0].element)}"
        names = ", ".join(p.name for p in parts)
        return self.add(f"stablehlo.concatenate {names}, dim = {dim} : {types}", shape, parts[0].element)

    def reverse(self, a: Term, dim: int) -> Term:
        """The last first."""
        return self.add(f"stablehlo.reverse {a.name}, dims = [{dim}] : {a.type}", a.shape, a.element)

    def compare(self, direction: str, a: Term, b: Term) -> Term:
        """A comparison."""
        result = typed(a.shape, "i1")
        return self.add(f"stablehlo.compare {direction}, {a.name}, {b.name} : ({a.type}, {a.type}) -> {result}",
                        a.shape, "i1")  # fmt: skip

    def select(self, predicate: Term, a: Term, b: Term) -> Term:
        """A choice; the predicate may be a scalar."""
        op = f"stablehlo.select {predicate.name}, {a.name}, {b.name} : {predicate.type}, {a.type}"
        return self.add(op, a.shape, a.element)

    def clamp(self, low: int, a: Term, high: int) -> Term:
        """Cut to numbers."""
        least, most = (self.constant(n, (), a.element) for n in (low, high))
        types = f"({least.type}, {a.type}, {most.type}) -> {a.type}"
        return self.add(f"stablehlo.clamp {least.name}, {a.name}, {most.name} : {types}", a.shape, a.element)

    def sort(self, operands: Sequence[Term], dim: int, direction: str = "LT") -> list[Term]:
        """Sort by the first operand."""
        inner, sides = self.nested(), list[str]()
        for n, operand in enumerate(operands):
            sides += [f"%{inner.prefix}{side}{n}: {typed((), operand.element)}" for side in "lr"]
        scalar = typed((), operands[0].element)
        names, types = ", ".join(o.name for o in operands), ", ".join(o.type for o in operands)
        name = f"%{self.prefix}{len(self.text)}"
        count = f":{len(operands)}" if len(operands) > 1 else ""
        results = types if len(operands) == 1 else f"({types})"
        self.text.append(
            f'{name}{count} = "stablehlo.sort"({names}) <{{dimension = {dim} : i64, is_stable = true}}> ({{\n'
            f"  ^bb0({', '.join(sides)}):\n"
            f"    %{inner.prefix}c = stablehlo.compare {direction}, %{inner.prefix}l0, %{inner.prefix}r0 :"
            f" ({scalar}, {scalar}) -> tensor<i1>\n"
            f"    stablehlo.return %{inner.prefix}c : tensor<i1>\n  }}) : ({types}) -> {results}"
        )
        return [
            Term(f"{name}#{n}" if count else name, operand.shape, operand.element) for n, operand in enumerate(operands)
        ]

    def running_sum(self, a: Term, dim: int, *, is_reversed: bool) -> Term:
        """A cumulative sum."""
        inner, scalar, zero = self.nested(), typed((), a.element), self.constant(0, (), a.element)
        sides = (0, a.shape[dim] - 1) if is_reversed else (a.shape[dim] - 1, 0)
        padding = [list(sides) if d == dim else [0, 0] for d in range(len(a.shape))]
        window = [n if d == dim else 1 for d, n in enumerate(a.shape)]
        return self.add(
            f'"stablehlo.reduce_window"({a.name}, {zero.name}) <{{window_dimensions = array<i64: '
            f"{', '.join(map(str, window))}>, padding = dense<{padding}> : tensor<{len(a.shape)}x2xi64>}}> ({{\n"
            f"  ^bb0(%{inner.prefix}a: {scalar}, %{inner.prefix}b: {scalar}):\n"
            f"    %{inner.prefix}s = stablehlo.add %{inner.prefix}a, %{inner.prefix}b : {scalar}\n"
            f"    stablehlo.return %{inner.prefix}s : {scalar}\n  }}) : ({a.type}, {scalar}) -> {a.type}",
            a.shape,
            a.element,
        )

    def taken(self, a: Term, places: Term) -> Term:
        """a[places] of vectors, clamped."""
        (size,) = places.shape
        column = self.reshape(places, (size, 1))
        return self.add(
            f'"stablehlo.gather"({a.name}, {column.name}) <{{dimension_numbers = #stablehlo.gather<'
            "collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, "
            f"slice_sizes = array<i64: 1>}}> : ({a.type}, {column.type}) -> {typed((size,), a.element)}",
            (size,),
            a.element,
        )

    def dynamic_slice(self, a: Term, start: Term, size: int) -> Term:
        """A part of a vector from a runtime start."""
        result = typed((size,), a.element)
        op = f"stablehlo.dynamic_slice {a.name}, {start.name}, sizes = [{size}] : ({a.type}, {start.type}) -> {result}"
        return self.add(op, (size,), a.element)

    def case(self, number: Term, branches: Sequence[tuple["Lines", Term]]) -> Term:
        """A choice of a branch."""
        told = ", ".join(
            "{\n    " + "\n    ".join((*lines.text, f"stablehlo.return {found.name} : {found.type}")) + "\n  }"
            for lines, found in branches
        )
        result = branches[0][1]
        op = f'"stablehlo.case"({number.name}) ({told}) : ({number.type}) -> {result.type}'
        return self.add(op, result.shape, result.element)

    def repeat(self, a: Term, times: Term, body: Callable[["Lines", Term, Term], Term]) -> Term:
        """A while that runs so often, an i32, with a counter from 0."""
        zero, inner = self.constant(0, (), "i32"), self.nested()
        counter, carried = Term(f"%{inner.prefix}i", (), "i32"), Term(f"%{inner.prefix}x", a.shape, a.element)
        found = body(inner, carried, counter)
        following = inner.with_number("add", counter, 1)
        name, arguments = f"%{self.prefix}{len(self.text)}", f"(%{{0}}i: tensor<i32>, %{{0}}x: {a.type})"
        other = f"{inner.prefix}c"
        types = f"tensor<i32>, {a.type}"
        self.text.append(
            f'{name}:2 = "stablehlo.while"({zero.name}, {a.name}) ({{\n  ^bb0{arguments.format(other)}:\n'
            f"    %{other}p = stablehlo.compare LT, %{other}i, {times.name}"
            " : (tensor<i32>, tensor<i32>) -> tensor<i1>\n"
            f"    stablehlo.return %{other}p : tensor<i1>\n  }}, {{\n  ^bb0{arguments.format(inner.prefix)}:\n    "
            + "\n    ".join(inner.text)
            + f"\n    stablehlo.return {following.name}, {found.name} : {types}\n  }}) : ({types}) -> ({types})"
        )
        return Term(f"{name}#1", a.shape, a.element)

    def call(self, inputs: Sequence[Term], symbol: str, result: Term) -> Term:
        """A call of a private function with a result of this type."""
        names, types = ", ".join(i.name for i in inputs), ", ".join(i.type for i in inputs)
        return self.add(f"func.call @{symbol}({names}) : ({types}) -> {result.type}", result.shape, result.element)
