"""Tensors that count along a dim: iotas, moved and spread, as pieces of an iota are written."""

import numpy as np

from hlo_lower.ir import mlir
from hlo_lower.verify.parts.counted_whiles import Scope
from hlo_lower.verify.parts.op_parts import shape_of
from hlo_lower.verify.parts.positions import ZERO, Position
from hlo_lower.verify.read.meanings import is_splat
from hlo_lower.verify.read.program import Op, Program, ValueId


def counted(program: Program, scope: Scope, value: ValueId) -> tuple[int, Position] | None:
    """The dim along which a tensor of integers counts, by one, and from where: element p is start + p[dim]."""
    op = scope.maker(value)
    tensor = program.type_of(value)
    if op is None or tensor is None or len(op.results) != 1 or not tensor.is_static:
        return None
    found = _counted_by(program, scope, op)
    element = program.dtype_of(value)
    if found is None or element is None or element.kind not in "iu":
        return None
    low, high = found[1].bounds
    limits = np.iinfo(element)
    last = high + shape_of(program, value)[found[0]] - 1
    return found if limits.min <= low and last <= limits.max else None


def _counted_by(program: Program, scope: Scope, op: Op) -> tuple[int, Position] | None:
    if op.name == "stablehlo.iota":
        return mlir.integer_of(op.raw.attributes["iota_dimension"]), ZERO
    if op.name == "stablehlo.convert":
        return counted(program, scope, op.inputs[0])
    if op.name == "stablehlo.broadcast_in_dim":
        inner = counted(program, scope, op.inputs[0])
        dims = mlir.integers_of(op.raw.attributes["broadcast_dimensions"])
        if inner is None or shape_of(program, op.inputs[0])[inner[0]] == 1:
            return None
        return dims[inner[0]], inner[1]
    if op.name in ("stablehlo.add", "stablehlo.subtract"):
        for place in (0, 1) if op.name == "stablehlo.add" else (0,):
            along = counted(program, scope, op.inputs[place])
            moved = None if along is None else _everywhere(program, scope, op.inputs[1 - place])
            if along is not None and moved is not None:
                return along[0], along[1].plus(moved, 1 if op.name == "stablehlo.add" else -1)
    return None


def _everywhere(program: Program, scope: Scope, value: ValueId) -> Position | None:
    """The number that a tensor has everywhere."""
    known = scope.known(value)
    if known is not None and known.dtype.kind in "iu" and known.size and is_splat(known):
        return Position(int(known[(0,) * known.ndim]))
    op = scope.maker(value)
    if op is None or op.name != "stablehlo.broadcast_in_dim":
        return scope.position(value) if shape_of(program, value) == () else None
    return _everywhere(program, scope, op.inputs[0])
