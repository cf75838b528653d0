"""What a function is traced with: specs of its arguments, with symbolic shapes where they are asked for."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp

from hlo_lower.base.arguments import short_repr
from hlo_lower.base.errors import InputError
from hlo_lower.ir import mlir
from hlo_lower.ir.export.symbolic import SymbolicDims
from hlo_lower.ir.shapes.tokens import ACCEPTED, ExpressionError, PointedError
from hlo_lower.ir.shapes.written_shapes import WrittenConstraint, WrittenShape, read_written

ELEMENT_TYPES = "f32 or float32, bf16 or bfloat16, f16, f64, i32 or int32, i64, ui8 or uint8, i1 or bool, and the like"


def element_type(name: str) -> Any | None:
    """The NumPy dtype of a name; None where there is none. "i4" is MLIR's, four bits wide."""
    if (found := mlir.dtype_of(name)) is not None:
        return found
    scalar: Any = jnp.bool_ if name == "bool" else getattr(jnp, name, None)
    try:
        dtype = jnp.dtype(scalar) if scalar is not None else None
    except TypeError:  # jnp has many names that are no types
        return None
    return dtype if dtype is not None and dtype.name == name else None


_jax: Any = jax  # its annotations leave tree partly unknown

HOW = f'a shape has {ACCEPTED}, "..." and "_"; a constraint compares: "s >= 1", "s % 16 == 0"'


_ATTRIBUTE = re.compile(r"([A-Za-z_]\w*)((?:\.[A-Za-z_]\w*)+)", re.ASCII)


def written_with(label: str, texts: Sequence[str], static: Mapping[str, Any]) -> list[str]:
    """Shapes and constraints with the numbers of a config in the place of its names: "b, config.heads" as "b, 32".

    Args:
      label: whose shapes they are.
      texts: as they were written.
      static: what the names before the dots stand for.

    Raises:
      InputError: there is no such name, or what it has is not a whole number; it points to the place.
    """

    def number(found: re.Match[str]) -> str:
        value: Any = static.get(found[1])
        what = f"there is no {found[1]}" if found[1] not in static else ""
        for name in found[2].split(".")[1:]:
            what = what or ("" if hasattr(value, name) else f"{found[1]} has no {name}")
            value = getattr(value, name, None)
        if not what and type(value) is not int:
            what = f"{found[0]} is {short_repr(value)}, and no whole number"
        if what:
            told = ", ".join(f"{name}={short_repr(value)}" for name, value in static.items())
            facts, width = told or "the function has no config", len(found[0])
            raise PointedError(label, what, facts=facts, text=found.string, column=found.start(), width=width)
        return str(value) if value >= 0 else f"({value})"

    return [_ATTRIBUTE.sub(number, text) for text in texts]


def specs_of(fn: Callable[..., Any], args: Sequence[Any], shapes: Sequence[str] | None) -> tuple[Any, ...]:
    """The arguments as specs: as they are, or with symbolic shapes, one per argument or one per leaf of them.

    Without arguments the shapes say all that there is, the element types too.

    Raises:
      InputError: the shapes cannot be read, or do not fit the arguments.
    """
    if shapes is None:
        return tuple(args)
    label = str(getattr(fn, "__name__", "function"))
    written, constraints = _read(label, shapes, len(args))
    flat: list[tuple[list[Any], Any]] = [_jax.tree.flatten(arg) for arg in args]
    leaves = [leaf for arg_leaves, _ in flat for leaf in arg_leaves]
    numbers = list(range(len(written)))
    if len(written) == len(args):
        numbers = [n for n, (arg_leaves, _) in enumerate(flat) for _ in arg_leaves]
    if args and len(numbers) != len(leaves):
        raise InputError(
            where=label,
            what=f"{len(written)} shapes for {len(args)} arguments",
            facts=f"arguments {', '.join(describe(arg) for arg in args)}",
            next_step='give one shape per argument, "..." for those that stay as they are',
        )
    told = "argument" if len(written) == len(args) or not args else "leaf"
    try:
        dims = SymbolicDims(written, constraints)
    except ExpressionError as error:
        raise _pointed_error(label, _place_of(error, written, told), error) from None
    symbolic: list[Any] = []
    for number, leaf in zip(numbers, leaves if args else [None] * len(numbers), strict=True):
        place = f"{told} {number}" + ("" if leaf is None else f", {describe(leaf)}")
        try:
            symbolic.append(_spec(dims, written[number], leaf))
        except ExpressionError as error:
            raise _pointed_error(label, place, error) from None
    if not args:
        return tuple(symbolic)
    remaining = iter(symbolic)
    return tuple(_jax.tree.unflatten(tree, [next(remaining) for _ in arg_leaves]) for arg_leaves, tree in flat)


def _read(label: str, shapes: Sequence[str], arguments: int) -> tuple[list[WrittenShape], list[WrittenConstraint]]:
    """The shapes and the constraints among texts."""
    written: list[WrittenShape] = []
    constraints: list[WrittenConstraint] = []
    compares = sum(any(letter in text for letter in "<>=") for text in shapes)
    told = "argument" if len(shapes) - compares in (arguments, 0) or not arguments else "leaf"
    for text in shapes:
        try:
            found = read_written(text)
        except ExpressionError as error:
            is_shape = not any(letter in text for letter in "<>=")
            raise _pointed_error(label, f"{told} {len(written)}" if is_shape else "constraint", error) from None
        if isinstance(found, WrittenShape):
            written.append(found)
        else:
            constraints.append(found)
    return written, constraints


def _place_of(error: ExpressionError, written: Sequence[WrittenShape], told: str) -> str:
    """The argument whose shape a text is, or that it is a constraint."""
    found = next((n for n, shape in enumerate(written) if shape.text == error.text), None)
    return "constraint" if found is None else f"{told} {found}"


def _pointed_error(label: str, place: str, error: ExpressionError) -> PointedError:
    return PointedError(
        where=label,
        what=f"{place}: {error.what}",
        next_step=error.hint or HOW,
        text=error.text,
        column=error.column,
        width=error.width,
    )


def _spec(dims: SymbolicDims, written: WrittenShape, leaf: Any) -> jax.ShapeDtypeStruct:
    """The spec of an argument; a leaf of None stands for no argument."""
    asked = element_type(written.element) if written.element else None
    if written.element and asked is None:
        raise written.element_error(f"{written.element} is not an element type", f"there are {ELEMENT_TYPES}")
    if leaf is None:
        return jax.ShapeDtypeStruct(dims.dims_of(written, None), asked or jax.numpy.float32)
    dtype = _dtype(leaf)
    if asked is not None and asked != dtype:
        raise written.element_error(f"the argument is of {dtype}", "leave the element type out, or change the argument")
    return jax.ShapeDtypeStruct(dims.dims_of(written, jax.numpy.shape(leaf)), dtype)


def check_widths(label: str, specs: Sequence[Any]) -> None:
    """Refuse specs of 64 bits that JAX would narrow without a word."""
    for leaf in jax.tree.leaves(specs):
        if isinstance(leaf, jax.ShapeDtypeStruct) and jax.dtypes.canonicalize_dtype(leaf.dtype) != leaf.dtype:
            raise InputError(
                where=label,
                what=f"an argument is {describe(leaf)}, and JAX runs with 64-bit types off",
                next_step='put "x64": True in its entry of EXPORTS, set JAX_ENABLE_X64=1, or ask for 32 bits',
            )


def _dtype(leaf: Any) -> Any:
    return leaf.dtype if hasattr(leaf, "dtype") else jax.dtypes.result_type(leaf)


def describe(arg: Any) -> str:
    """`float32[8,4]` for a leaf, the number of leaves for a pytree."""
    leaves = jax.tree.leaves(arg)
    if len(leaves) != 1:
        return f"a tree of {len(leaves)} arrays"
    try:
        return f"{_dtype(leaves[0])}[{','.join(str(d) for d in jax.numpy.shape(leaves[0]))}]"
    except TypeError:
        return type(leaves[0]).__name__
