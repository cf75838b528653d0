"""Modules of one scatter, made from their dimension numbers, lowered and held against the NumPy reference."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import ml_dtypes
import numpy as np
import pytest

import hlo_lower as hl
from hlo_lower.ir.view import Node
from hlo_lower.verify.bounds.compare import first_difference
from hlo_lower.verify.judges.definitions import ScatterNumbers, scatter
from hlo_lower.verify.run import Executable

Policy = Literal["xla", "spec"]

POLICIES = pytest.mark.parametrize("oob", ["xla", "spec"])

DTYPES = {
    "i1": np.bool_,
    "i8": np.int8,
    "i16": np.int16,
    "i32": np.int32,
    "i64": np.int64,
    "ui8": np.uint8,
    "ui32": np.uint32,
    "ui64": np.uint64,
    "f16": np.float16,
    "f32": np.float32,
    "bf16": ml_dtypes.bfloat16,
    "complex<f32>": np.complex64,
    "complex<f64>": np.complex128,
    "i4": ml_dtypes.int4,
    "ui4": ml_dtypes.uint4,
}

BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda c, u: c | u if c.dtype == np.bool_ else c + u,
    "subtract": lambda c, u: c - u,
    "multiply": lambda c, u: c & u if c.dtype == np.bool_ else c * u,
    "maximum": np.maximum,
    "minimum": np.minimum,
}


def tensor(shape: tuple[int, ...], element: str) -> str:
    """A tensor type."""
    return f"tensor<{''.join(f'{size}x' for size in shape)}{element}>"


def region(combiner: str, element: str) -> str:
    """The body of an update computation on %c and %u."""
    if combiner == "assign":
        return f"stablehlo.return %u : tensor<{element}>"
    return f"""%n = stablehlo.{combiner} %c, %u : tensor<{element}>
        stablehlo.return %n : tensor<{element}>"""


@dataclass(frozen=True)
class Case:
    """A module of one scatter, its dimension numbers and its combiner."""

    operand: tuple[int, ...]
    indices: tuple[int, ...]
    updates: tuple[int, ...]
    dims: ScatterNumbers
    element: str = "f32"
    region_element: str = ""
    index: str = "i32"
    combiner: str = "assign"
    body: str = ""
    flags: str = ""

    def text(self) -> str:
        """The module."""
        d, inner = self.dims, self.region_element or self.element
        fields = ", ".join(
            f"{name} = {list(value)}" for name, value in vars(d).items() if name != "index_vector_dim" and value
        )
        arguments = [
            tensor(self.operand, self.element),
            tensor(self.indices, self.index),
            tensor(self.updates, self.element),
        ]
        result = tensor(self.operand, inner)
        numbers = f"#stablehlo.scatter<{fields}{', ' if fields else ''}index_vector_dim = {d.index_vector_dim}>"
        return f"""
module {{
  func.func @main(%op: {arguments[0]}, %i: {arguments[1]}, %up: {arguments[2]}) -> {result} {{
    %r = "stablehlo.scatter"(%op, %i, %up) <{{{self.flags} scatter_dimension_numbers = {numbers}}}> ({{
      ^bb0(%c: tensor<{inner}>, %u: tensor<{inner}>):
        {self.body or region(self.combiner, inner)}
    }}) : ({", ".join(arguments)}) -> {result}
    return %r : {result}
  }}
}}"""

    def with_indices(self, values: Any) -> str:
        """The module with these constants as its indices, instead of an argument."""
        kind = tensor(self.indices, self.index)
        text = f"%i = stablehlo.constant dense<{np.asarray(values).reshape(self.indices).tolist()}> : {kind}"
        return self.text().replace(f", %i: {kind}", "").replace("%r = ", f"{text}\n    %r = ", 1)

    def combine(self, currents: list[Any], updates: list[Any]) -> list[Any]:
        """The combiner on arrays."""
        if self.combiner == "assign":
            return updates
        with np.errstate(all="ignore"):
            return [BINARY[self.combiner](c, u) for c, u in zip(currents, updates, strict=True)]

    def lowered(self, oob: Policy = "xla") -> Executable:
        """The module without its scatter, compiled."""
        result = hl.lower(self.text(), oob=oob)
        assert "stablehlo.scatter" not in result.text
        return Executable(result.text, "exact")

    def check(self, *indices: Any, oob: Policy = "xla") -> None:
        """Run on each of the index arrays what was lowered, and expect the reference's result bit for bit."""
        executable = self.lowered(oob)
        inner = np.dtype(DTYPES[self.region_element or self.element])
        for number, values in enumerate(indices):
            rng = np.random.default_rng(number)
            drawn = np.asarray(values).reshape(self.indices).astype(DTYPES[self.index])
            operand = some(rng, self.operand, self.element)
            updates = some(rng, self.updates, self.element)
            expected = scatter([operand], drawn, [updates], self.dims, self.combine, [inner], oob=oob)
            found = first_difference(expected, executable.run([operand, drawn, updates]))
            assert found is None, f"indices {drawn.tolist()}: {found}"


def some(rng: np.random.Generator, shape: tuple[int, ...], element: str) -> Any:
    """Random values of an element type."""
    dtype = np.dtype(DTYPES[element])
    if dtype.kind == "b":
        return np.asarray(rng.random(shape) < 0.5)
    if dtype.name in ("int4", "uint4"):
        return np.asarray(rng.integers(0, 8, shape)).astype(dtype)
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        return np.asarray(rng.integers(info.min, info.max, shape, dtype, endpoint=True))
    if dtype.kind == "c":
        return np.asarray(rng.standard_normal(shape) + 1j * rng.standard_normal(shape)).astype(dtype)
    return np.asarray(rng.standard_normal(shape)).astype(dtype)


def numbers(window=(), inserted=(), batching=(), indices_batching=(), to_operand=(), ivd=1) -> ScatterNumbers:
    """Dimension numbers, empty where not given."""
    return ScatterNumbers(
        tuple(window), tuple(inserted), tuple(batching), tuple(indices_batching), tuple(to_operand), ivd
    )


def run(text: str, *arguments: Any, oob: Policy = "xla") -> list[Any]:
    """Lower a module and run it."""
    lowered = hl.lower(text, oob=oob)
    assert "stablehlo.scatter" not in lowered.text
    return Executable(lowered.text, "exact").run([np.asarray(a) for a in arguments])


def ops_of_size(text: str, elements: int) -> list[str]:
    """The names of the operations of a module that give a tensor of so many elements or more."""
    found: list[str] = []

    def visit(node: Node) -> None:
        if any(v.is_static and np.prod(v.static_shape) >= elements for v in node.results):
            found.append(node.name)

    hl.read(text).walk(visit)
    return found


def f32(values: Any) -> Any:
    """An array of float32."""
    return np.asarray(values, np.float32)


def i32(values: Any) -> Any:
    """An array of int32."""
    return np.asarray(values, np.int32)


def points(n: int, size: int, **changes: Any) -> Case:
    """N single elements into a vector."""
    return Case((size,), (n, 1), (n,), numbers(inserted=[0], to_operand=[0]), **changes)


def tile(window: int, size: int, **changes: Any) -> Case:
    """One window into a vector."""
    return Case((size,), (1,), (window,), numbers(window=[0], to_operand=[0], ivd=0), **changes)


def windows(n: int, window: int, size: int, **changes: Any) -> Case:
    """N windows into a vector."""
    return Case((size,), (n, 1), (n, window), numbers(window=[1], to_operand=[0]), **changes)


def rows(n: int, size: int, width: int, **changes: Any) -> Case:
    """N rows into a matrix."""
    return Case((size, width), (n, 1), (n, width), numbers(window=[1], inserted=[0], to_operand=[0]), **changes)


INT_MIN, INT_MAX = -(2**31), 2**31 - 1


VARIADIC = """
module {{
  func.func @main(%a: tensor<4x{s}>, %b: tensor<4x{t}>, %i: tensor<6x1xi32>, %x: tensor<6x{s}>, %y: tensor<6x{t}>)
      -> (tensor<4x{s}>, tensor<4x{t}>) {{
    %r:2 = "stablehlo.scatter"(%a, %b, %i, %x, %y) <{{scatter_dimension_numbers = #stablehlo.scatter<
      inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}}> ({{
      ^bb0(%ca: tensor<{s}>, %cb: tensor<{t}>, %ua: tensor<{s}>, %ub: tensor<{t}>):
        {body}
    }}) : (tensor<4x{s}>, tensor<4x{t}>, tensor<6x1xi32>, tensor<6x{s}>, tensor<6x{t}>)
      -> (tensor<4x{s}>, tensor<4x{t}>)
    return %r#0, %r#1 : tensor<4x{s}>, tensor<4x{t}>
  }}
}}"""
