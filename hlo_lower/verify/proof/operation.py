"""One operation as the tables of the evaluator are given it: its operands as tensors, its types and its attributes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

from hlo_lower.ir import mlir
from hlo_lower.verify.proof.beyond import Beyond
from hlo_lower.verify.proof.elements import ProofType
from hlo_lower.verify.proof.tensors import Tensor
from hlo_lower.verify.proof.terms import Term
from hlo_lower.verify.proof.world import World
from hlo_lower.verify.read.program import Body, Op, Program, ValueId

Scope = Mapping[ValueId, Tensor]
"""What each value of the module stands for, as far as it has been evaluated."""


class Evaluates(Protocol):
    """What evaluates the bodies that an operation holds."""

    @property
    def world(self) -> World: ...

    @property
    def program(self) -> Program: ...

    def body(self, body: Body, arguments: Sequence[Tensor], scope: Scope, /) -> list[Tensor]: ...

    def scalars(self, body: Body, arguments: Sequence[Term], scope: Scope, /) -> list[Term]: ...


@dataclass(frozen=True)
class Operation:
    """An operation with evaluated operands.

    Attributes:
      op: the operation.
      operands: its operands.
      scope: what its regions may refer to.
      evaluator: what evaluates those.
    """

    op: Op
    operands: tuple[Tensor, ...]
    scope: Scope
    evaluator: Evaluates

    @property
    def raw(self) -> mlir.RawOperation:
        """The operation as jaxlib's bindings have it."""
        return self.op.raw

    @property
    def world(self) -> World:
        """The setting."""
        return self.evaluator.world

    @cached_property
    def name(self) -> str:
        """ "add" of stablehlo.add; other dialects keep theirs ("func.call")."""
        return str(self.raw.name).removeprefix("stablehlo.")

    def shape(self, result: int = 0) -> tuple[int, ...]:
        """The shape of a result.

        Raises:
          Beyond: it is no tensor of static shape.
        """
        return static_shape(self.raw.results[result].type)

    def element(self, result: int = 0) -> ProofType:
        """The element type of a result."""
        return self.world.element(element_name(self.raw.results[result].type))

    def operand_element(self, number: int = 0) -> ProofType:
        """The element type of an operand."""
        return self.world.element(element_name(self.raw.operands[number].type))

    @property
    def elements(self) -> list[ProofType]:
        """The element types of all operands."""
        return [self.operand_element(k) for k in range(len(self.operands))]

    def integers(self, name: str) -> tuple[int, ...]:
        """An attribute of integers."""
        return mlir.integers_of(self.raw.attributes[name])

    def integer(self, name: str) -> int:
        """An attribute of one integer."""
        return mlir.integer_of(self.raw.attributes[name])

    def keyword(self, name: str) -> str:
        """An enumerated attribute, "" where it is absent."""
        attributes = self.raw.attributes
        return mlir.enum_value(attributes[name]) if name in attributes else ""

    @property
    def attributes(self) -> str:
        """The attributes that say what it computes, as text; those of other dialects (shardings) do not."""
        given = mlir.attributes_of(self.raw)
        return " ".join(f"{name} = {given[name]}" for name in sorted(given) if "." not in name)

    def region(self, number: int = 0) -> Body:
        """The body of a region."""
        return self.op.bodies[number]


def static_shape(raw_type: mlir.RawType) -> tuple[int, ...]:
    """The shape of a tensor type.

    Raises:
      Beyond: it is no tensor of static shape.
    """
    tensor = mlir.read_tensor_type(raw_type)
    if tensor is None or not tensor.is_static:
        raise Beyond(f"a value of type {raw_type}")
    return tuple(size or 0 for size in tensor.shape)


def element_name(raw_type: mlir.RawType) -> str:
    """The element type of a tensor type as printed.

    Raises:
      Beyond: it is no tensor.
    """
    tensor = mlir.read_tensor_type(raw_type)
    if tensor is None:
        raise Beyond(f"a value of type {raw_type}")
    return tensor.element_name
