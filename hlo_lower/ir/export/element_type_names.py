"""Element types by their short names: MLIR's ("bf16", "i32", "ui8", "i1") and NumPy's ("bfloat16", "int32", "bool")."""

from typing import Any

import jax.numpy as jnp

from hlo_lower.ir import mlir

ACCEPTED = "f32 or float32, bf16 or bfloat16, f16, f64, i32 or int32, i64, ui8 or uint8, i1 or bool, and the like"


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
