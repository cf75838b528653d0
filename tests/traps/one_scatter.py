"""Modules of one scatter, made from their dimension numbers, lowered and held against the NumPy reference."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pytest
from untyped_mlir import SHORT_NUMBERS, module, of

import hlo_lower as hl
from hlo_lower.base.element_types import element_type
from hlo_lower.verify.bounds.compare import first_difference
from hlo_lower.verify.judges.definitions import ScatterNumbers, scatter
from hlo_lower.verify.run import Executable

Policy = Literal["xla", "spec"]
INT_MIN, INT_MAX = -(2**31), 2**31 - 1
POLICIES = pytest.mark.parametrize("oob", ["xla", "spec"])
BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "assign": lambda c, u: u,
    "add": lambda c, u: c | u if c.dtype == np.bool_ else c + u,
    "subtract": lambda c, u: c - u,
    "multiply": lambda c, u: c & u if c.dtype == np.bool_ else c * u,
    "maximum": np.maximum,
    "minimum": np.minimum,
}


def dtype_of(element: str) -> Any:
    """The NumPy type of an element type."""
    return element_type(element).dtype


def array(values: Any, element: str) -> Any:
    """An array of an element type."""
    return np.asarray(values, dtype_of(element))


def f32(values: Any) -> Any:
    """An array of float32."""
    return np.asarray(values, np.float32)


def i32(values: Any) -> Any:
    """An array of int32."""
    return np.asarray(values, np.int32)


@dataclass(frozen=True)
class Case:
    """A module of one scatter, its dimension numbers and its combiner, or the body of its region."""

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

    def text(self, at: Any = None, lines: str = "", given: str = "") -> str:
        """The module; its indices may be constants or what lines compute of what else is given, instead of %i."""
        kind = of(self.indices, self.index)
        if at is not None:
            lines = f"%i = constant {np.asarray(at).reshape(self.indices).tolist()} : {kind}"
        values = ((short, getattr(self.dims, name)) for short, name in SHORT_NUMBERS.items())
        told = ", ".join(f"{short}={v if short == 'ivd' else list(v)}" for short, v in values if v != ())
        body, result = f"%c, %u: {self.body}" if self.body else self.combiner, ""
        if self.region_element:
            types = ", ".join(f"%{name}: {self.region_element}" for name in "cu")
            body = f"^bb0({types}): " + ("return %u" if body == "assign" else f"%n = {body} %c, %u; return %n")
            result = f" -> {of(self.operand, self.region_element)}"
        own = "" if "%i =" in lines else f", %i: {kind}"
        arguments = f"%op: {of(self.operand, self.element)}{own}{given}, %up: {of(self.updates, self.element)}"
        return module(arguments, f"{lines}\n%r = scatter(%op, %i, %up) <{told}{self.flags}> {{{body}}}{result}")

    def expected(self, operand: Any, indices: Any, updates: Any, oob: Policy) -> list[Any]:
        """The reference's results."""
        inner = np.dtype(dtype_of(self.region_element or self.element))

        def combine(currents: list[Any], new: list[Any]) -> list[Any]:
            with np.errstate(all="ignore"):
                return [BINARY[self.combiner](c, u) for c, u in zip(currents, new, strict=True)]

        return scatter([operand], indices, [updates], self.dims, combine, [inner], oob=oob)

    def lowered(self, oob: Policy = "xla") -> Executable:
        """The module without its scatter, compiled."""
        return compiled(self.text(), oob)

    def check(self, *indices: Any, oob: Policy = "xla") -> None:
        """Run on each of the index arrays what was lowered, and expect the reference's result bit for bit."""
        executable = self.lowered(oob)
        for number, values in enumerate(indices):
            rng = np.random.default_rng(number)
            drawn = array(values, self.index).reshape(self.indices)
            operand, updates = some(rng, self.operand, self.element), some(rng, self.updates, self.element)
            found = executable.run([operand, drawn, updates])
            difference = first_difference(self.expected(operand, drawn, updates, oob), found)
            assert difference is None, f"indices {drawn.tolist()}: {difference}"


def some(rng: np.random.Generator, shape: tuple[int, ...], element: str) -> Any:
    """Random values of an element type."""
    dtype = np.dtype(dtype_of(element))
    if dtype.kind == "b":
        return np.asarray(rng.random(shape) < 0.5)
    if dtype.name in ("int4", "uint4"):
        return array(rng.integers(0, 8, shape), element)
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        return np.asarray(rng.integers(info.min, info.max, shape, dtype, endpoint=True))
    if dtype.kind == "c":
        return array(rng.standard_normal(shape) + 1j * rng.standard_normal(shape), element)
    return array(rng.standard_normal(shape), element)


def numbers(window=(), inserted=(), batching=(), indices_batching=(), to=(), ivd=1) -> ScatterNumbers:
    """Dimension numbers, empty where not given."""
    return ScatterNumbers(tuple(window), tuple(inserted), tuple(batching), tuple(indices_batching), tuple(to), ivd)


def compiled(text: str, oob: Policy = "xla") -> Executable:
    """A module without its scatters, compiled."""
    lowered = hl.lower(text, oob=oob)
    assert "stablehlo.scatter" not in lowered.text
    return Executable(lowered.text, "exact")


def run(text: str, *arguments: Any, oob: Policy = "xla") -> list[Any]:
    """Lower a module and run it."""
    return compiled(text, oob).run([np.asarray(a) for a in arguments])


def ops_of_size(text: str, elements: int) -> list[str]:
    """The names of the operations of a module that give a tensor of so many elements or more."""
    graph = hl.read(text)
    sized = ((node, [np.prod(v.static_shape) for v in node.results if v.is_static]) for node in graph.nodes())
    return [node.name for node, sizes in sized if any(size >= elements for size in sizes)]


def points(n: int, size: int, **changes: Any) -> Case:
    """N single elements into a vector."""
    return Case((size,), (n, 1), (n,), numbers(inserted=[0], to=[0]), **changes)


def tile(window: int, size: int, **changes: Any) -> Case:
    """One window into a vector."""
    return Case((size,), (1,), (window,), numbers(window=[0], to=[0], ivd=0), **changes)


def windows(n: int, window: int, size: int, **changes: Any) -> Case:
    """N windows into a vector."""
    return Case((size,), (n, 1), (n, window), numbers(window=[1], to=[0]), **changes)


def rows(n: int, size: int, width: int, **changes: Any) -> Case:
    """N rows into a matrix."""
    return Case((size, width), (n, 1), (n, width), numbers(window=[1], inserted=[0], to=[0]), **changes)


def written(size: int, start: int, updates: list[float], oob: Policy = "xla") -> list[float]:
    """A vector of zeros after a window was written at a start."""
    inside = 0 <= start <= size - len(updates) or oob == "spec"
    at = {start + k: value for k, value in enumerate(updates) if inside}
    return [at.get(k, 0.0) for k in range(size)]


def variadic(s: str, t: str, body: str) -> str:
    """A scatter of six points into vectors of 4 of two types; its region has %ca, %cb, %ua and %ub."""
    lines = f"""%s, %t = scatter(%a, %b, %i, %x, %y) <inserted=[0], to=[0], ivd=1> {{ %ca, %cb, %ua, %ub:
        {body}
        }}
        return %s, %t"""
    return module(f"%a: 4x{s}, %b: 4x{t}, %i: 6x1xi32, %x: 6x{s}, %y: 6x{t}", lines)
