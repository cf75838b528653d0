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
      op: its name in `hlo_lower.vocabulary`.
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


class Suite:
    """Cases of one source in the order in which they are written.

    Example:
      >>> suite = Suite("jax.nn")
      >>> @suite.case(f32(2, 8), finds=(finds("relu"),))
      ... def relu(x):
      ...     return jax.nn.relu(x)
    """

    def __init__(self, source: str) -> None:
        self.source = source
        self.cases: list[Case] = []

    def case(
        self,
        *arguments: Any,
        finds: tuple[Finding, ...] = (),
        refuses: tuple[Finding, ...] = (),
    ) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        """Add the function below as a case of its name."""

        def add(function: Callable[..., Any]) -> Callable[..., Any]:
            name = f"{self.source}/{function.__name__}"
            self.cases.append(Case(name, self.source, function, arguments, finds, refuses))
            return function

        return add
