"""Which dims of a scatter's operand are spread over devices, as far as the module says.

A partitioned module gives shardings of arguments, results and constraints, and a partitioner finds the others. Here
the operand is followed to the nearest one, towards what it is made of and towards what uses the result, through ops
that keep every element in its place. Only a choice between right forms depends on the answer, never what is computed.
"""

import re
from math import prod

from hlo_lower.ir import mlir
from hlo_lower.ops.names import CONVERT, CUSTOM_CALL, DYNAMIC_UPDATE_SLICE, OPTIMIZATION_BARRIER, RETURN, SCATTER, WHILE

SHARDY, GSPMD = "sdy.sharding", "mhlo.sharding"

_IN_PLACE = frozenset({SCATTER, DYNAMIC_UPDATE_SLICE, CONVERT, OPTIMIZATION_BARRIER, WHILE})
"""Ops whose result k has its elements where operand k has them."""

_MAX_STEPS = 64

_TILES = re.compile(r"devices=\[([\d,]+)\]")
_INLINED_MESH = re.compile(r"\bmesh<[^<>]*>")
"""A mesh that stands in a sharding, `mesh<["x"=2]>`, in the place of its name."""


def spread_dims(scatter: mlir.RawOperation) -> frozenset[int] | None:
    """The dims of a scatter's first operand that are spread over devices; None where the module does not say.

    A module for one device has none, nor has the body of an `sdy.manual_computation`, which is written for one.
    """
    module = scatter
    while module.parent is not None:
        module = module.parent.operation
    if not is_partitioned(module):
        return frozenset()
    found = _of_operation(scatter, 0)
    found = _behind(scatter.operands[0]) if found is None else found
    return _ahead(scatter.results[0]) if found is None else found


def is_partitioned(module: mlir.RawOperation) -> bool:
    """Whether a module is for several devices: by its own count, which may not be said, or by a mesh that it names."""
    count = "mhlo.num_partitions"
    is_counted = count in module.attributes and mlir.integer_of(module.attributes[count]) != 1
    return is_counted or any(prod(axes.values()) != 1 for axes in mlir.mesh_axes(module))


def _dims(text: str) -> frozenset[int] | None:
    """The dims that a printed sharding spreads, Shardy's or GSPMD's; None where it says nothing."""
    text = _INLINED_MESH.sub("@mesh", text)
    if "@" in text or text.startswith("#sdy"):
        begin = text.find("[", text.find("@"))
        end, depth = begin, 0
        while end < len(text):
            depth += {"[": 1, "]": -1}.get(text[end], 0)
            if depth == 0:
                break
            end += 1
        per_dim = re.findall(r"\{([^}]*)\}", text[begin:end])
        if per_dim and all(axes == "?" for axes in per_dim):
            return None
        return frozenset(d for d, axes in enumerate(per_dim) if '"' in axes)
    if tiles := _TILES.search(text):
        return frozenset(d for d, count in enumerate(tiles[1].split(",")) if int(count) > 1)
    return frozenset() if "replicated" in text or "maximal" in text else None


def _of_operation(op: mlir.RawOperation, number: int) -> frozenset[int] | None:
    """What an operation says of one of its results."""
    attributes = op.attributes
    if op.name == "sdy.sharding_constraint":
        return _dims(str(attributes["sharding"]))
    if SHARDY in attributes:
        entries = _INLINED_MESH.sub("@mesh", str(attributes[SHARDY])).split("<@")[1:]
        return _dims(f"@{entries[number]}") if number < len(entries) else None
    if GSPMD in attributes and len(op.results) == 1:
        return _dims(str(attributes[GSPMD]))
    return None


def _of_function(op: mlir.RawOperation, which: str, number: int) -> frozenset[int] | None:
    """What a function says of an argument or of a result."""
    if which not in op.attributes:
        return None
    own = op.attributes[which][number]
    name = next((n for n in (SHARDY, GSPMD) if n in own), None)
    return None if name is None else _dims(str(own[name]))


def _behind(value: mlir.RawValue) -> frozenset[int] | None:
    for _ in range(_MAX_STEPS):
        if mlir.is_block_argument(value):
            owner, number = value.owner.owner.operation, mlir.argument_number(value)
            if owner.name == "sdy.manual_computation":
                return frozenset()
            if owner.name == "func.func":
                return _of_function(owner, "arg_attrs", number)
            if owner.name != WHILE:
                return None
            value = owner.operands[number]
            continue
        op, number = value.owner.operation, mlir.result_number(value)
        found = _of_operation(op, number)
        if found is not None or op.name not in _IN_PLACE:
            return found
        value = op.operands[number]
    return None


def _ahead(value: mlir.RawValue) -> frozenset[int] | None:
    for _ in range(_MAX_STEPS):
        following = None
        for use in value.uses:
            user, number = use.owner.operation, int(use.operand_number)
            if user.name in ("func.return", RETURN):
                around = user.parent.operation
                if around.name == "func.func":
                    return _of_function(around, "res_attrs", number)
                following = around.results[number] if around.name == WHILE else None
                continue
            found = _of_operation(user, 0) if user.name in ("sdy.sharding_constraint", CUSTOM_CALL) else None
            if found is not None:
                return found
            if user.name in _IN_PLACE and number < len(user.results):
                following = user.results[number]
        if following is None:
            return None
        value = following
    return None
