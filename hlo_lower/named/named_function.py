"""`hl.named`: a JAX function whose calls are composites in an export, so that a consumer sees what it computes.

    @hl.named("rms_norm", axes=-1, epsilon=1e-6)        stablehlo.composite "hl.rms_norm" %x, %weight {
    def rms_norm(x, weight, *, epsilon):                  composite_attributes = {axes = [2], epsilon = 1.0e-06 : f64,
        scale = lax.rsqrt(mean(x * x) + epsilon)            weight = "plain"}, decomposition = @hl.rms_norm, ...}
        return x * scale * weight

`jax.lax.composite` knows neither vmap nor differentiation, and puts arrays that a function closes over before its
arguments. Here the name stays under vmap where it stays true, with its axes moved; else, and in a gradient, the
function is traced as if it had no name. Of open (symbolic) sizes it is a call of a function of that name, with a
warning: JAX cannot lower a composite there. An array that is no argument is an error: whoever takes the composite for
the named op would take it for the first operand.
"""

import functools
import inspect
import re
import warnings
from collections.abc import Callable, Sequence
from typing import Any, ParamSpec, TypeVar, cast

import jax
import jax.custom_batching
import jax.export

from hlo_lower.base.arguments import function
from hlo_lower.base.errors import InputError
from hlo_lower.named.named_attributes import checked_attributes, placed_attributes
from hlo_lower.ops.vocabulary import PREFIX, VERSION, OpInVocabulary

_jax: Any = jax  # its annotations leave tree, jvp and vmap partly unknown

P = ParamSpec("P")
R = TypeVar("R")

ROWS_ALONE = frozenset(
    {
        *("softmax", "log_softmax", "layer_norm", "rms_norm", "batch_norm", "l2_norm", "rope", "linear", "one_hot"),
        *("top_k", "argmax", "argmin", "cumsum", "cumprod", "cummax", "cummin", "cumlogsumexp", "logsumexp"),
        *("gelu", "silu", "relu", "relu6", "hard_swish", "dropout"),
    }
)
"""Ops that stay what they are where vmap adds an axis to their first operand, and to no other."""

ALL_ALIKE = frozenset({"attention", "swiglu", "take_along_axis"})
"""Ops that stay what they are where vmap adds an axis to each operand."""


def named(name: str, **attributes: Any) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Give the calls of a function the name of an op, and its attributes.

    The function is what the composite is made of, so numbers stay what they are whether or not a consumer knows the
    name. That the function computes what it is named is its author's promise. Attributes that are left out have
    their default; axes may be counted from the end; an attribute that the function takes as a keyword-only argument
    is passed to it.

    Args:
      name: of a named op, as `docs/named-ops.md` lists them, without "hl.".
      attributes: of that op.

    Returns:
      A decorator. The function that it gives takes the op's operands in their order, as arrays.

    Raises:
      InputError: no op has this name, or an attribute is unknown, missing, or of a wrong type; when it is called,
        there are too many operands or too few, an axis that the first of them does not have, or the function takes
        an array that is not an argument.

    Example:
      >>> @hl.named("silu")
      ... def silu(x):
      ...     return x / (1 + jax.numpy.exp(-x))
      >>> '"hl.silu"' in jax.jit(silu).lower(np.ones(4, np.float32)).as_text()
      True
    """
    op, given = checked_attributes(name, attributes)

    def decorate(fn: Callable[P, R]) -> Callable[P, R]:
        function("hl.named", fn, 'decorate a function: hl.named("silu")(fn)')
        return cast(Callable[P, R], _NamedFunction(op, given, fn))

    return decorate


class _NamedFunction:
    def __init__(self, op: OpInVocabulary, attributes: dict[str, Any], fn: Callable[..., Any]) -> None:
        functools.update_wrapper(self, fn)
        self._op = op
        self._attributes = attributes
        taken = {
            key: attributes[key]
            for key, parameter in inspect.signature(fn).parameters.items()
            if parameter.kind is parameter.KEYWORD_ONLY and key in attributes
        }
        self._fn: Callable[..., Any] = functools.partial(fn, **taken) if taken else fn

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        operands = self._in_order(args, kwargs)
        leaves = cast(list[Any], _jax.tree.leaves(operands))
        attributes = placed_attributes(self._op, self._attributes, [len(jax.numpy.shape(leaf)) for leaf in leaves])
        self._check_closed(operands)
        if any(jax.export.is_symbolic_dim(size) for leaf in leaves for size in jax.numpy.shape(leaf)):
            return self._call_by_name(operands)
        return self._differentiable(attributes)(*operands)

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        """As a method: the instance is the first argument, and no operand."""
        if instance is None:
            return self
        return _NamedFunction(self._op, self._attributes, functools.partial(self._fn, instance))

    def _in_order(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        """Operands by their places: a composite has no keywords."""
        if not kwargs:
            return args
        bound = inspect.signature(self._fn).bind(*args, **kwargs)
        if bound.kwargs:
            raise InputError(
                f"hl.named({self._op.name!r})",
                f"{', '.join(bound.kwargs)} given as a keyword",
                facts="operands of a composite have an order, and attributes are given to hl.named",
                next_step="give attributes to hl.named, and let operands be positional arguments of the function",
            )
        return bound.args

    def _check_closed(self, operands: tuple[Any, ...]) -> None:
        """Refuse arrays from outside."""
        closed = _jax.make_jaxpr(self._fn)(*operands)
        if closed.consts:
            told = ", ".join(str(jax.typeof(const)) for const in closed.consts)
            raise InputError(
                f"hl.named({self._op.name!r})",
                f"the function uses an array that is not one of its arguments: {told}",
                facts=f"the operands of {self._op.name} are {self._op.takes}",
                next_step="pass it as an argument, or make it inside of the function (jnp.arange, jnp.tril)",
            )

    def _call_by_name(self, operands: tuple[Any, ...]) -> Any:
        """Call a function that has the op's name instead of a composite.

        For open sizes JAX passes the sizes to a composite's decomposition but not to the composite, so the module would
        not verify.
        """
        name = f"{PREFIX}{self._op.name}"
        told = (
            f"hl.named({self._op.name!r}): JAX cannot lower a composite of open sizes; a call of @{name} stands for it"
        )
        warnings.warn(f"{told}. Export at known sizes, or `hlo-lower raise` what --bind makes of it", stacklevel=3)
        function: Any = functools.partial(self._fn)
        function.__name__ = name
        return _jax.jit(function)(*operands)

    def _differentiable(self, attributes: dict[str, Any]) -> Callable[..., Any]:
        """The composite; in a derivative the function itself."""
        call: Any = _jax.custom_jvp(self._vmappable(self._fn, attributes))

        def derivative(primals: tuple[Any, ...], tangents: tuple[Any, ...]) -> Any:
            return _jax.jvp(self._fn, primals, tangents)

        call.defjvp(derivative)
        return call

    def _vmappable(self, fn: Callable[..., Any], attributes: dict[str, Any]) -> Callable[..., Any]:
        """The composite; under vmap the composite with an axis more, or the function itself."""
        call: Any = jax.custom_batching.custom_vmap(self._composite(fn, attributes))

        def under_vmap(_size: int, batched: Sequence[Any], *operands: Any) -> Any:
            in_axes = _jax.tree.map(_axis_of, tuple(batched))
            over = _jax.vmap(fn, in_axes=in_axes)
            if self._stays_true(cast(list[bool], _jax.tree.leaves(batched))):
                over = self._vmappable(over, _one_axis_more(attributes))
            out = over(*operands)
            return out, _jax.tree.map(_is_batched, out)

        call.def_vmap(under_vmap)
        return call

    def _stays_true(self, batched: list[bool]) -> bool:
        """Whether the op is still that op, its axes moved by one."""
        alone = batched[0] and not any(batched[1:])
        return (alone and self._op.name in ROWS_ALONE) or (all(batched) and self._op.name in ALL_ALIKE)

    def _composite(self, fn: Callable[..., Any], attributes: dict[str, Any]) -> Callable[..., Any]:
        def decomposition(*operands: Any, **_: Any) -> Any:
            return fn(*operands)

        outlined: Any = _jax.lax.composite(decomposition, name=f"{PREFIX}{self._op.name}", version=VERSION)
        return functools.partial(outlined, **attributes)


def _axis_of(batched: bool) -> int | None:
    return 0 if batched else None


def _is_batched(_: Any) -> bool:
    return True


def _one_axis_more(attributes: dict[str, Any]) -> dict[str, Any]:
    moved = {key: attributes[key] + 1 for key in ("axis", "channel_axis") if key in attributes}
    several = {"axes": tuple(axis + 1 for axis in attributes["axes"])} if "axes" in attributes else {}
    return {**attributes, **moved, **several, **_layout_before(attributes.get("layout", ""))}


def _layout_before(layout: str) -> dict[str, str]:
    """The layout of an attention with one more axis of its batch before all others; "" where all letters are taken."""
    if not layout:
        return {}
    letter = next((letter for letter in "bncd" if letter not in layout), "")
    return {"layout": re.sub(r"^|(?<=,)|(?<=->)", letter, layout) if letter else ""}
