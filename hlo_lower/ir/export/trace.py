"""A function traced and exported as StableHLO text that is the same on every machine."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import jax
import jax.export

from hlo_lower.base.arguments import function, is_listed, is_named, short_repr, texts, whole
from hlo_lower.base.errors import InputError
from hlo_lower.ir import mlir
from hlo_lower.ir.export.argument_specs import check_widths, describe, specs_of, written_with
from hlo_lower.ir.export.kept_chlo import Remembered, with_chlo
from hlo_lower.ir.export.locations import portable_locations, source_file, source_folder
from hlo_lower.ir.export.trace_errors import tracing_error
from hlo_lower.ir.export.user_code import user_line
from hlo_lower.ir.shapes.dims import Shape, as_texts

_jax: Any = jax  # its annotations leave jit partly unknown


def export(
    fn: Callable[..., Any],
    *args: Any,
    shapes: Sequence[Shape] | None = None,
    donate: int | Sequence[int] = (),
    static: Mapping[str, Any] | None = None,
    name: str | None = None,
    platforms: str | Sequence[str] | None = None,
    plain_stablehlo: bool = False,
) -> jax.export.Exported:
    """Trace a function and export it as StableHLO, with source locations that name no machine.

    What JAX lowers a function to has ops of chlo as well (`erf`, `top_k`, ...). They stay, so that their names say what
    they compute; `hl.lower` writes them out for a target that does not take them.

    Args:
      fn: a Python function, or one under `jax.jit`, which then keeps its own donation.
      *args: per positional argument a pytree of arrays, scalars or `jax.ShapeDtypeStruct`; only shapes and
        dtypes count.
      shapes: symbolic shapes ("b, 2*s + 1, 64"), one per positional argument or one per leaf of them, in order. "..."
        keeps the dims from there on, "_" keeps one. Equal names are equal sizes, and each is 1 or more. dtypes are
        those of args; without args they stand before the dims, as in "bf16[b, 64]", and are f32 where they do not. What
        compares is a constraint on the sizes and no shape: "s >= 2", "block_size % 16 == 0". A tuple is a shape, too,
        of dims of `hl.dims` or `jax.export.symbolic_shape` and numbers: (b * h + 1, 4). In a text "config.heads" is a
        number of the config that static has.
      donate: positions of the arguments that the caller gives away; the module says so (`tf.aliasing_output`).
      static: keyword arguments that are not traced (a config).
      name: the module is called `jit_<name>`; by default the function's name.
      platforms: platforms to lower for ("cpu", "cuda", ...); by default JAX's default backend.
      plain_stablehlo: write chlo ops out as plain StableHLO, as `jax.export` does. Always so before jax 0.10, whose XLA
        reads no chlo.

    Returns:
      What `hl.lower`, `hl.read` and the others take, with the function's pytrees.

    Raises:
      InputError: the function raises while it is traced (the cause is chained), or shapes cannot be read or do not fit
        args; it points to the place. Or an argument is of a wrong type.

    Example:
      >>> exported = hl.export(lambda x, i: x.at[i].set(0), np.zeros((8, 4), np.float32), np.int32(3))
      >>> len(hl.classify(exported))
      1
    """
    _check(fn, donate, static, name)
    platforms = None if platforms is None else texts("platforms", platforms, "cpu")
    positions = (donate,) if isinstance(donate, int) else tuple(donate)
    label = name or str(getattr(fn, "__name__", "function"))
    written = None if shapes is None else written_with(label, as_texts(label, shapes), static or {})
    specs = specs_of(fn, args, written)
    check_widths(label, specs)
    with portable_locations(source_folder(fn)):
        try:
            jitted = _jit_function(fn, positions, static or {}, label)
            if plain_stablehlo or not mlir.XLA_TAKES_CHLO:
                return jax.export.export(jitted, platforms=platforms)(*specs)
            remembered: Any = Remembered(jitted)
            return with_chlo(jax.export.export(remembered, platforms=platforms)(*specs), remembered)
        except InputError:
            raise
        except Exception as error:
            where = user_line(error, source_file(fn)) or label
            facts = f"arguments {', '.join(describe(spec) for spec in specs)}"
            raise tracing_error(error, label, where, facts, written or ()) from error


def _check(fn: object, donate: object, static: object, name: object) -> None:
    """Check the types of what a function is exported with; whether it fits the function is seen when it is traced."""
    function("hl.export", fn, "give the function, then example arguments: hl.export(f, *args)")
    for position in cast(Sequence[object], donate) if is_listed(donate) else [donate]:
        whole("donate", position, 0)
    if static is not None and not is_named(static):
        told = f"{short_repr(static)} is not a mapping from names to values"
        raise InputError("static", told, next_step='write static={"config": config}')
    if not isinstance(name, str | None):
        raise InputError("name", f"{short_repr(name)} is not text", next_step='write name="decode"')


def exported_text(exported: jax.export.Exported) -> str:
    """The module of an `Exported` as text with its source locations, as jaxlib prints it."""
    context = mlir.make_context()
    module = mlir.parse_module(bytes(exported.mlir_module_serialized), context)
    return mlir.print_module(module, locations=True)


def _jit_function(fn: Callable[..., Any], donate: Sequence[int], static: Mapping[str, Any], label: str) -> Any:
    if hasattr(fn, "lower") and hasattr(fn, "trace") and not donate and not static:
        return fn

    def call(*args: Any) -> Any:
        return fn(*args, **static)

    # A fresh function each time: JAX caches what it traced by function, and with it the source locations.
    call.__name__ = call.__qualname__ = label
    if (signature := _positional_signature(fn)) is not None:
        call.__signature__ = signature  # pyright: ignore[reportFunctionMemberAccess]
    return _jax.jit(call, donate_argnums=tuple(donate))


def _positional_signature(fn: Callable[..., Any]) -> inspect.Signature | None:
    """The signature without keyword-only parameters: JAX takes the names of the arguments from it."""
    try:
        signature = inspect.signature(fn)
    except (TypeError, ValueError):
        return None
    kept = [p for p in signature.parameters.values() if p.kind is not p.KEYWORD_ONLY and p.kind is not p.VAR_KEYWORD]
    return signature.replace(parameters=kept, return_annotation=inspect.Signature.empty)
