"""What a function is traced with: specs of its arguments, with symbolic shapes where they are asked for."""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.export

from hlo_lower.errors import InputError
from hlo_lower.export.user_code import one_line

_jax: Any = jax  # its annotations leave tree partly unknown


def specs_of(fn: Callable[..., Any], args: Sequence[Any], shapes: Sequence[str] | None) -> tuple[Any, ...]:
    """The arguments as specs: as they are, or with symbolic shapes, one per argument or one per leaf of them."""
    if shapes is None:
        return tuple(args)
    flat: list[tuple[list[Any], Any]] = [_jax.tree.flatten(arg) for arg in args]
    leaves = [leaf for arg_leaves, _ in flat for leaf in arg_leaves]
    if len(shapes) == len(args):
        per_leaf = [shape for shape, (arg_leaves, _) in zip(shapes, flat, strict=True) for _ in arg_leaves]
    else:
        per_leaf = list(shapes)
    label = str(getattr(fn, "__name__", "function"))
    if len(per_leaf) != len(leaves):
        raise InputError(
            where=label,
            what=f"{len(shapes)} shapes for {len(args)} arguments",
            facts=f"arguments {', '.join(describe(arg) for arg in args)}",
            next_step='give one shape per argument, "..." for those that stay as they are',
        )
    scope = jax.export.SymbolicScope()
    symbolic: list[Any] = []
    for leaf, shape in zip(leaves, per_leaf, strict=True):
        like, dtype = jax.numpy.shape(leaf), _dtype(leaf)
        try:
            dims = jax.export.symbolic_shape(shape, scope=scope, like=like)
        except Exception as error:
            raise InputError(
                where=label,
                what=f'shape "{shape}" does not fit {describe(leaf)}: {one_line(error)}',
                next_step='write the dims with commas between them, names for sizes left open: --shapes "b, 2*s+1, 64"',
            ) from error
        symbolic.append(jax.ShapeDtypeStruct(dims, dtype))
    remaining = iter(symbolic)
    return tuple(_jax.tree.unflatten(tree, [next(remaining) for _ in arg_leaves]) for arg_leaves, tree in flat)


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
