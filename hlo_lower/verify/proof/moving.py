"""Operations that make tensors or move elements, each to a place that the module fixes."""

import numpy as np

from hlo_lower.ir import mlir
from hlo_lower.verify.proof.beyond import Beyond
from hlo_lower.verify.proof.elements import ElementKind, ProofType
from hlo_lower.verify.proof.operation import Operation
from hlo_lower.verify.proof.solver import z3
from hlo_lower.verify.proof.tensors import MOST_ELEMENTS, Place, Tensor, built
from hlo_lower.verify.proof.terms import Term
from hlo_lower.verify.proof.uninterpreted import applied
from hlo_lower.verify.read.meanings import MOVES


def constant(op: Operation) -> list[Tensor]:
    """`constant`: floats by their bits, each bit pattern a constant of its own."""
    shape, element = op.shape(), op.element()
    if np.prod(shape, dtype=object) > MOST_ELEMENTS:
        raise Beyond(f"a constant of more than {MOST_ELEMENTS} elements")
    value = mlir.constant_value(op.raw)
    if value is None:
        raise Beyond(f"a constant of {element.name}")
    return [built(shape, lambda place: literal(value[place], element))]


def literal(value: np.generic, element: ProofType) -> Term:
    """A NumPy number as a term."""
    if element.kind is ElementKind.TRUTH:
        return bool(value)
    if element.kind is ElementKind.INTEGER:
        return element.declared.wrapped(int(value))
    bits = int.from_bytes(np.asarray(value).tobytes(), "little")
    return bits if element.width else z3.Const(f"{element.name} {bits:#x}", element.sort)


def iota(op: Operation) -> list[Tensor]:
    """`iota`: of floats, the number converted."""
    dim, element = op.integer("iota_dimension"), op.element()

    def number(place: Place) -> Term:
        if element.kind is ElementKind.FLOAT:
            return applied(f"iota {place[dim]}", [], element)
        return element.declared.wrapped(place[dim])

    return [built(op.shape(), number)]


def moved(op: Operation) -> list[Tensor]:
    """One of `MOVES`."""
    return [MOVES[op.raw.name](op.raw, op.operands, op.shape())]


def pad(op: Operation) -> list[Tensor]:
    """`pad`, with interior and negative padding."""
    value, filling = op.operands
    low, between = op.integers("edge_padding_low"), op.integers("interior_padding")

    def source(place: Place) -> Term:
        at: list[int] = []
        for x, first, gap, size in zip(place, low, between, value.shape, strict=True):
            number, rest = divmod(x - first, gap + 1)
            if rest or not 0 <= number < size:
                return filling[()]
            at.append(number)
        return value[tuple(at)]

    return [built(op.shape(), source)]


def unchanged(op: Operation) -> list[Tensor]:
    """`optimization_barrier`."""
    return list(op.operands)


def custom_call(op: Operation) -> list[Tensor]:
    """`custom_call @Sharding`, which returns its operand."""
    if (name := mlir.call_target(op.raw)) != "Sharding":
        raise Beyond(f"stablehlo.custom_call @{name}")
    return list(op.operands)


def get_dimension_size(op: Operation) -> list[Tensor]:
    """`get_dimension_size` of a tensor of static shape."""
    size = op.operands[0].shape[op.integer("dimension")]
    return [built((), lambda _: size)]
