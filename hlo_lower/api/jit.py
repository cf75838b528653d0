"""`hl.jit`: a JAX function that is compiled from its lowered module, called as under `jax.jit`.

    outer = jax.jit(trace-time: export fn for these shapes, lower its module, call that)

The outer `jax.jit` does what it always does: it flattens arguments, keeps one compilation per abstract signature
(shapes, element types, weak types, shardings, static values, the 64-bit flag), and donates. Its body is traced once for
each signature, and that is when the module is exported and lowered.
"""

import functools
import inspect
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from types import MethodType
from typing import Any, Generic, ParamSpec, TypedDict, TypeVar, Unpack, cast, overload

import jax
import jax.core
import jax.export

from hlo_lower.api.verified import verify_lowered
from hlo_lower.base.arguments import function, known_names, short_repr, split_keywords
from hlo_lower.base.errors import InputError, NotLoweredError
from hlo_lower.base.registry import CompositeLoweringRegistry
from hlo_lower.ir.export.locations import portable_locations, source_folder
from hlo_lower.ir.export.user_code import one_line
from hlo_lower.lowering.kinds import registry_of
from hlo_lower.lowering.lowered import Lowered
from hlo_lower.lowering.options import NAMES, Keywords, Options, options_of
from hlo_lower.lowering.pipeline import lower as _lower
from hlo_lower.verify import Level
from hlo_lower.verify.effort import checked_level

_jax: Any = jax  # its annotations leave jit, tree and custom_jvp partly unknown

P = ParamSpec("P")
R = TypeVar("R")


class LoweredFunction(Generic[P, R]):
    """A function under `hl.jit`. Call it as the function that it wraps.

    Attributes:
      options: how it is lowered.

    Example:
      >>> put = hl.jit(lambda cache, row, at: cache.at[at].set(row))
      >>> put.lowered(np.zeros((8, 4), np.float32), np.ones(4, np.float32), 3).scatters_left
      0
    """

    __wrapped__: Callable[P, R]

    def __init__(
        self,
        fn: Callable[P, R],
        options: Options,
        registry: CompositeLoweringRegistry | None,
        placing: dict[str, Any],
        donating: dict[str, Any],
        verify: Level | None = None,
    ) -> None:
        functools.update_wrapper(self, fn)
        self.options = options
        self._fn: Callable[..., Any] = fn
        self._name = str(getattr(fn, "__name__", type(fn).__name__))
        self._registry = registry
        self._verify: Level | None = verify
        self._static = placing
        try:
            self._compiled: Any = _jax.jit(self._with_signature(self._run), **placing, **donating)
        except (TypeError, ValueError) as error:
            told = ", ".join(f"{name}={short_repr(value)}" for name, value in {**placing, **donating}.items())
            next_step = "positions are whole numbers, names are texts: static_argnums=(0,), static_argnames=('n',)"
            raise InputError("hl.jit", f"jax.jit rejects it: {one_line(error)}", told, next_step=next_step) from error

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call the lowered function.

        Raises:
          InputError: the function cannot be exported for these arguments, or is differentiated or batched from outside.
          NotLoweredError: a scatter has no lowering.
        """
        if _jax.config.jax_disable_jit:
            plain: Any = self._fn(*args, **kwargs)
            return cast(Any, (plain, _jax.numpy.ones((), bool))) if self.options.checked else plain
        return self._compiled(*args, **kwargs)

    def __get__(self, instance: object, owner: object = None) -> Any:
        return self if instance is None else MethodType(self, instance)

    def lowered(self, *args: Any, **kwargs: Any) -> Lowered:
        """The lowered module for these arguments, which may be `jax.ShapeDtypeStruct`: its text, records, and so on.

        Raises:
          InputError, NotLoweredError: as a call.
        """
        found: list[Lowered] = []

        def record(args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
            found.append(self._lower(args, kwargs)[0])

        _jax.jit(self._with_signature(record), **self._static).trace(*args, **kwargs)
        return found[0]

    def _with_signature(self, body: Callable[[tuple[Any, ...], dict[str, Any]], Any]) -> Callable[..., Any]:
        """A function with the name and the signature of the wrapped one; JAX reads argument names from it."""

        def call(*args: Any, **kwargs: Any) -> Any:
            return body(args, kwargs)

        return functools.update_wrapper(call, self._fn)

    def _run(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        lowered, dynamic_args, dynamic_kwargs = self._lower(args, kwargs)
        return _only_called(lowered.exported_as_given, self._name)(*dynamic_args, **dynamic_kwargs)

    def _lower(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Lowered, list[Any], dict[str, Any]]:
        """Export and lower for arguments as the outer trace gives them: what is not traced is static."""
        is_dynamic = [_is_traced(arg) for arg in args]
        static_kwargs = {name: arg for name, arg in kwargs.items() if not _is_traced(arg)}
        dynamic_args = [arg for arg, dynamic in zip(args, is_dynamic, strict=True) if dynamic]
        dynamic_kwargs = {name: arg for name, arg in kwargs.items() if name not in static_kwargs}

        def fn(*given: Any, **named: Any) -> Any:
            rest = iter(given)
            whole = [next(rest) if dynamic else arg for arg, dynamic in zip(args, is_dynamic, strict=True)]
            return self._fn(*whole, **named, **static_kwargs)

        fn.__name__ = fn.__qualname__ = self._name
        if (signature := _without_static(self._fn, is_dynamic, static_kwargs)) is not None:
            fn.__signature__ = signature  # pyright: ignore[reportFunctionMemberAccess]
        specs, named = _jax.tree.map(_spec, (dynamic_args, dynamic_kwargs))
        with portable_locations(source_folder(self._fn)):
            jitted = _jax.jit(fn)
            jitted.trace(*specs, **named)  # what the function itself raises, it raises here
            exported = self._export(jitted, specs, named)
        try:
            lowered = _lower(exported, options=self.options, name=self._name, registry=self._registry)
        except NotLoweredError as error:
            error.next_step = "keep_unsupported=True leaves what has no lowering as it is"
            raise
        if self._verify is not None:
            lowered = verify_lowered(exported, lowered, self._verify)
        return lowered, dynamic_args, dynamic_kwargs

    def _export(self, jitted: Any, specs: Sequence[Any], named: dict[str, Any]) -> jax.export.Exported:
        try:
            return jax.export.export(jitted)(*specs, **named)
        except Exception as error:
            what = f"jax.export rejects the function: {one_line(error)}"
            next_step = "keep callbacks and prints out of it, and call the rest under hl.jit"
            if any(isinstance(c, jax.core.Tracer) for c in _jax.make_jaxpr(jitted)(*specs, **named).consts):
                what = "the function uses a traced value from outside, which its module cannot do"
                next_step = "pass the value as an argument"
            raise InputError(self._name, what, next_step=next_step) from error


def _is_traced(arg: Any) -> bool:
    return any(isinstance(leaf, jax.core.Tracer) for leaf in _jax.tree.leaves(arg))


def _spec(leaf: Any) -> jax.ShapeDtypeStruct:
    aval: Any = jax.typeof(leaf)
    is_explicit = jax.sharding.AxisType.Explicit in aval.sharding.mesh.axis_types
    sharding = aval.sharding if is_explicit else None  # on other meshes XLA places what is inside as it sees fit
    return jax.ShapeDtypeStruct(aval.shape, aval.dtype, weak_type=aval.weak_type, sharding=sharding)


def _without_static(
    fn: Callable[..., Any], is_dynamic: Sequence[bool], static_kwargs: Iterable[str]
) -> inspect.Signature | None:
    """The signature of what is exported: the names of the arguments stand in the module."""
    try:
        parameters = list(inspect.signature(fn).parameters.values())
    except (TypeError, ValueError):
        return None
    static = set(static_kwargs)
    positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    static |= {p.name for p, dynamic in zip(positional, is_dynamic, strict=False) if not dynamic}
    return inspect.Signature([p for p in parameters if p.name not in static])


def _only_called(exported: jax.export.Exported, name: str) -> Callable[..., Any]:
    """A call of an exported function that says clearly what it is not: JAX would differentiate what is not lowered."""

    def refuse(what: str, inside: str) -> InputError:
        return InputError(
            name,
            f"a function under hl.jit cannot be {what} from outside",
            facts="the module is lowered as it is, and its derivative or batched form would not be",
            next_step=f"put it inside: hl.jit(jax.{inside}({name}))",
        )

    @_jax.custom_batching.custom_vmap
    def call(args: Any, kwargs: Any) -> Any:
        return cast(Any, exported).call(*args, **kwargs)

    @call.def_vmap
    def _(*_: Any) -> Any:
        raise refuse("batched", "vmap")

    @_jax.custom_jvp
    def call_guarded(args: Any, kwargs: Any) -> Any:
        return call(args, kwargs)

    @call_guarded.defjvp
    def _(*_: Any) -> Any:
        raise refuse("differentiated", "grad")

    return lambda *args, **kwargs: call_guarded(args, kwargs)


class Placing(TypedDict, total=False):
    """The keywords of `jax.jit` that `jit` takes: which arguments are static, which are given away."""

    static_argnums: int | Sequence[int] | None
    static_argnames: str | Iterable[str] | None
    donate_argnums: int | Sequence[int] | None
    donate_argnames: str | Iterable[str] | None


class JitKeywords(Keywords, Placing, total=False):
    """The keywords of `jit`: those of `Options`, and the others."""

    options: Options | None
    registry: CompositeLoweringRegistry | None
    verify: Level | None


PLACING = tuple(Placing.__annotations__)


@overload
def jit(fn: Callable[P, R], **keywords: Unpack[JitKeywords]) -> LoweredFunction[P, R]: ...
@overload
def jit(fn: None = None, **keywords: Unpack[JitKeywords]) -> Callable[[Callable[P, R]], LoweredFunction[P, R]]: ...
def jit(
    fn: Callable[..., Any] | None = None,
    *,
    options: Options | None = None,
    registry: CompositeLoweringRegistry | None = None,
    verify: Level | None = None,
    **keywords: Any,
) -> Any:
    """Compile a function from its lowered module: `jax.jit`, with every scatter lowered.

    Under an outer `jax.jit`, and in the bodies of `jax.lax` control flow, it is called like any function. What is
    derived from a function is lowered where it is inside: `hl.jit(jax.grad(fn))`, `hl.jit(jax.vmap(fn))`; around the
    result, `jax.grad` and `jax.vmap` raise. The module is exported for JAX's default platform, and JAX refuses
    arguments that lie on another one.

    Args:
      fn: the Python function, not one under `jax.jit`; without it a decorator is returned.
      options: how it is lowered, as an `Options`; or its keywords (target, oob, ...) here. 64-bit integers and
        floats are left as they are: the arguments are JAX's. With `checked` the function gives a pair, of its result
        and of whether what is assumed held, which is true where nothing is.
      registry: as in `lower`.
      verify: as in `lower`; it happens where JAX traces the function, once for each signature.
      static_argnums, static_argnames, donate_argnums, donate_argnames: as in `jax.jit`.

    Returns:
      The function, with `.lowered(*args)` for the `Lowered` of these arguments. It raises InputError where the function
      cannot be exported, NotLoweredError where a scatter has no lowering, and DifferenceError where `verify` is given
      and the lowered module is not verified to be equal.

    Raises:
      InputError: the target does not exist, or takes no StableHLO; fn is no function; or an argument is of a wrong type
        or none of its choices.

    Example:
      >>> put = hl.jit(lambda cache, row, at: cache.at[at].set(row), target="iree")
      >>> float(put(np.zeros((8, 4), np.float32), np.ones(4, np.float32), 3).sum())
      4.0
    """
    known_names("jit", keywords, (*NAMES, *PLACING))
    placing, meaning = split_keywords(keywords, PLACING)
    chosen = replace(options_of(options, meaning), demote_i64=False, demote_f64=False, widen=())
    if chosen.target.dialect != "stablehlo":
        what = f"JAX compiles StableHLO, and a module for {chosen.target.name} leaves in {chosen.target.dialect}"
        raise InputError("hl.jit", what)
    if verify is not None:
        checked_level("verify", verify)
    registry_of(registry)
    static, donated = split_keywords(placing, STATIC)

    def wrap(fn: Callable[..., Any]) -> LoweredFunction[..., Any]:
        function("hl.jit", fn, "give hl.jit the Python function: hl.jit(f), or @hl.jit above it")
        return LoweredFunction(fn, chosen, registry, static, donated, verify)

    return wrap if fn is None else wrap(fn)


STATIC = ("static_argnums", "static_argnames")
