"""One case: a function, the shapes that it is traced with, and what is to be found in its module, or must not be."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp


@dataclass(frozen=True)
class Finding:
    """A named op with the attributes that are asked of it.

    Attributes:
      op: its name in `hlo_lower.ops.vocabulary`.
      attributes: those that matter here; others may be anything.
      times: how often, each call of a function counted.
    """

    op: str
    attributes: Mapping[str, Any] = field(default_factory=dict[str, Any])
    times: int = 1


@dataclass(frozen=True)
class Case:
    """A program that is looked at.

    Attributes:
      name: unique, "softmax/jax_nn".
      source: in whose manner it is written, a row of the table.
      function: a function of arrays.
      arguments: what it is traced with.
      expected: what is found in it.
      refused: what is not found in it: where a near miss gives attributes, not with these.
    """

    name: str
    source: str
    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    expected: tuple[Finding, ...] = ()
    refused: tuple[Finding, ...] = ()

    def text(self) -> str:
        """Its module."""
        return jax.jit(self.function).lower(*self.arguments).as_text()


def finds(op: str, times: int = 1, **attributes: Any) -> Finding:
    """What is to be found."""
    return Finding(op, attributes, times)


def f32(*shape: int) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(shape, jnp.float32)


def f16(*shape: int) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(shape, jnp.float16)


def bf16(*shape: int) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(shape, jnp.bfloat16)


def i32(*shape: int) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(shape, jnp.int32)


def boolean(*shape: int) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(shape, jnp.bool_)


Findings = Finding | tuple[Finding, ...]
"""One, or several."""


class Suite:
    """Cases of one source in the order in which they are written.

    Example:
      >>> suite = Suite("jax.nn")
      >>> suite.add("relu", lambda x: jax.nn.relu(x), f32(2, 8), finds=finds("relu"))
      >>> @suite.case(f32(2, 8), finds=finds("softmax", axis=1))
      ... def softmax_by_hand(x):
      ...     e = jnp.exp(x - x.max(-1, keepdims=True))
      ...     return e / e.sum(-1, keepdims=True)
    """

    def __init__(self, source: str) -> None:
        self.source = source
        self.cases: list[Case] = []

    def case(
        self,
        *arguments: Any,
        finds: Findings = (),
        refuses: Findings = (),
    ) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        """Add the function below as a case of its name."""

        def added(function: Callable[..., Any]) -> Callable[..., Any]:
            self.add(function.__name__, function, *arguments, finds=finds, refuses=refuses)
            return function

        return added

    def add(
        self,
        name: str,
        function: Callable[..., Any],
        *arguments: Any,
        finds: Findings = (),
        refuses: Findings = (),
    ) -> None:
        """Add a function, mostly an expression, as a case of this name."""
        function.__name__ = name
        expected, refused = ((one,) if isinstance(one, Finding) else one for one in (finds, refuses))
        self.cases.append(Case(f"{self.source}/{name}", self.source, function, arguments, expected, refused))
