"""Update computations as plain data: an expression per operand, with its MLIR text and its NumPy value.

An expression is written twice, as text for the compilers and as NumPy for the reference; the two share only the tree.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hlo_lower.testing.fuzz.drawn_types import TYPES, tensor_type
from hlo_lower.verify.judges.definitions import apply

Array = NDArray[Any]


@dataclass(frozen=True)
class Expr:
    """A scalar expression."""

    # "current", "update" (number says of which operand), "constant" (number is its value), "captured constant" (the
    # same, from around the region), "captured" (number of a runtime value from around it), "convert", or an op of
    # `verify.judges.definitions`
    op: str
    element: str  # the type of its value
    args: tuple["Expr", ...] = ()  # what it is computed from
    number: int = 0  # see op
    # "" as the op itself; "call": in a function that the region calls; "boxed": on tensors of one element, which no
    # scalar op lifts, so that a lowering has to go through `stablehlo.map`
    form: str = ""


@dataclass(frozen=True)
class UpdateComputation:
    """An update computation: the types that it computes in, and what it returns, an expression per operand."""

    elements: tuple[str, ...]
    returns: tuple[Expr, ...]

    @property
    def captured_values(self) -> tuple[Expr, ...]:
        """The runtime values that it takes from around it, in order of their numbers."""
        found = {e.number: e for e in self.every() if e.op == "captured"}
        return tuple(found[n] for n in sorted(found))

    def every(self) -> list[Expr]:
        """All expressions, arguments before what is computed from them."""
        found: dict[Expr, None] = {}

        def visit(expr: Expr) -> None:
            for arg in expr.args:
                visit(arg)
            found[expr] = None

        for returned in self.returns:
            visit(returned)
        return list(found)


def evaluate(
    region: UpdateComputation, currents: Sequence[Array], updates: Sequence[Array], captured: Sequence[Array]
) -> list[Array]:
    """The new values of a region on windows, an array per operand; `captured_values` are the scalars that it takes from
    around it."""
    shape = currents[0].shape
    values: dict[Expr, Array] = {}
    with np.errstate(all="ignore"):
        for expr in region.every():
            element = TYPES[expr.element]
            inputs = [values[a] for a in expr.args]
            if expr.op in ("current", "update"):
                found = (currents if expr.op == "current" else updates)[expr.number]
            elif expr.op in ("constant", "captured constant"):
                found = element.constant(expr.number)
            elif expr.op == "captured":
                found = captured[expr.number]
            elif expr.op == "convert":
                found = inputs[0].astype(element.dtype)
            else:
                found = apply(expr.op, TYPES[expr.args[-1].element].dtype, inputs)
            values[expr] = np.broadcast_to(found, shape)
    return [np.array(values[e]) for e in region.returns]


@dataclass(frozen=True)
class RegionText:
    """The text of a region."""

    around: tuple[str, ...]  # lines before the scatter that define what the region captures
    body: tuple[str, ...]  # the region, from its block's label to its return
    functions: tuple[str, ...]  # functions that it calls


def region_text(region: UpdateComputation, symbol: str, captured: Sequence[str]) -> RegionText:
    """Write a region; names of its functions begin with `symbol`, and `captured` names the values that it takes from
    around it."""
    scalars = [tensor_type((), e) for e in region.elements]
    arguments = [f"%{word}{i}: {t}" for word in ("c", "u") for i, t in enumerate(scalars)]
    names: dict[Expr, str] = {}
    around: list[str] = []
    body = [f"^bb0({', '.join(arguments)}):"]
    functions: list[str] = []
    for number, expr in enumerate(region.every()):
        if expr.op in ("current", "update"):
            names[expr] = f"%{expr.op[0]}{expr.number}"
        elif expr.op == "captured":
            names[expr] = captured[expr.number]
        elif expr.op == "captured constant":
            names[expr] = f"%k{number}"
            around.append(f"%k{number} = {_constant(expr)}")
        else:
            names[expr] = f"%e{number}"
            body.extend(_lines(expr, f"%e{number}", [names[a] for a in expr.args], f"{symbol}_{number}", functions))
    returned = ", ".join(names[e] for e in region.returns)
    body.append(f"  stablehlo.return {returned} : {', '.join(scalars)}")
    return RegionText(tuple(around), tuple(body), tuple(functions))


def _constant(expr: Expr) -> str:
    element = TYPES[expr.element]
    return f"stablehlo.constant dense<{element.literal(expr.number)}> : {tensor_type((), expr.element)}"


def _lines(expr: Expr, name: str, inputs: list[str], symbol: str, functions: list[str]) -> list[str]:
    if expr.op == "constant":
        return [f"  {name} = {_constant(expr)}"]
    scalars = [tensor_type((), a.element) for a in expr.args]
    result = tensor_type((), expr.element)
    if expr.form == "call":
        parameters = [f"%p{i}" for i in range(len(inputs))]
        declared = ", ".join(f"{p}: {t}" for p, t in zip(parameters, scalars, strict=True))
        functions.append(
            f"func.func private @{symbol}({declared}) -> {result} {{\n"
            f"  %r = {_op(expr, parameters, ())}\n  return %r : {result}\n}}"
        )
        return [f"  {name} = func.call @{symbol}({', '.join(inputs)}) : ({', '.join(scalars)}) -> {result}"]
    if expr.form == "boxed":
        boxes = [f"{name}_{i}" for i in range(len(inputs))]
        lines = [
            f"  {box} = stablehlo.reshape {i} : ({t}) -> {tensor_type((1,), a.element)}"
            for box, i, t, a in zip(boxes, inputs, scalars, expr.args, strict=True)
        ]
        lines.append(f"  {name}_r = {_op(expr, boxes, (1,))}")
        return [*lines, f"  {name} = stablehlo.reshape {name}_r : ({tensor_type((1,), expr.element)}) -> {result}"]
    return [f"  {name} = {_op(expr, inputs, ())}"]


def _op(expr: Expr, inputs: Sequence[str], shape: tuple[int, ...]) -> str:
    types = [tensor_type(shape, a.element) for a in expr.args]
    result = tensor_type(shape, expr.element)
    if expr.op.startswith("compare"):
        kind = {"signed": "SIGNED", "unsigned": "UNSIGNED", "bool": "UNSIGNED"}.get(
            TYPES[expr.args[0].element].kind, "FLOAT"
        )
        direction = expr.op.split()[1]
        return f"stablehlo.compare {direction}, {', '.join(inputs)}, {kind} : ({', '.join(types)}) -> {result}"
    if expr.op == "convert":
        return f"stablehlo.convert {inputs[0]} : ({types[0]}) -> {result}"
    if expr.op == "select":
        return f"stablehlo.select {', '.join(inputs)} : {types[0]}, {result}"
    return f"stablehlo.{expr.op} {', '.join(inputs)} : {result}"
