"""Modules that are partitioned over several devices: how many, on what mesh, and the same program on one device.

Shardings say where values lie, not what they are (Shardy, "Sharding Representation"; XLA's `HloSharding`): a module
that is partitioned computes what it computes on one device without them. That holds as long as the program itself is
written for all devices together; the body of an `sdy.manual_computation`, which `shard_map` makes, is written for one
of them, and its collectives have no meaning on one device.
"""

from collections.abc import Sequence
from math import prod

from hlo_lower.ir import mlir
from hlo_lower.ops.names import CUSTOM_CALL, RECV, SEND
from hlo_lower.ops.spec import Role, ops_with

SHARDY, GSPMD, FRONTEND = "sdy.sharding", "mhlo.sharding", "mhlo.frontend_attributes"

_SEEN_THROUGH = frozenset({"sdy.sharding_constraint", "sdy.reshard", "sdy.propagation_barrier"})

_OF_DEVICES = ops_with(role=Role.DEVICES) | {SEND, RECV}


def device_count(module: mlir.RawModule) -> int:
    """How many devices a module is for: `mhlo.num_partitions` times `mhlo.num_replicas`."""
    attributes = module.operation.attributes
    names = ("mhlo.num_partitions", "mhlo.num_replicas")
    return prod(mlir.integer_of(attributes[name]) for name in names if name in attributes)


def is_for_one_device(module: mlir.RawModule) -> bool:
    """Whether a module is for one device: by its own count, which may not be said, and by the meshes that it names."""
    return device_count(module) == 1 and all(prod(axes.values()) == 1 for axes in mlir.mesh_axes(module.operation))


def is_replicated(module: mlir.RawModule) -> bool:
    """Whether it runs in several replicas, each with arguments and results of its own."""
    attributes = module.operation.attributes
    return "mhlo.num_replicas" in attributes and mlir.integer_of(attributes["mhlo.num_replicas"]) > 1


def mesh_axes(module: mlir.RawModule, count: int) -> dict[str, int]:
    """Names and sizes of the module's mesh of this many devices; one axis where it names none."""
    meshes = (axes for axes in mlir.mesh_axes(module.operation) if prod(axes.values()) == count)
    return next(meshes, {"devices": count})


def hold_at_entry(main: mlir.RawOperation) -> None:
    """Put the shardings of the entry point's arguments on the values too, where a caller's placement cannot hide them.

    The module is called from another one's @main, and a partitioner reads argument attributes of @main only.
    """
    if "arg_attrs" not in main.attributes:
        return
    block = main.regions[0].blocks[0]
    if not len(block.operations):
        return
    point = mlir.insert_before(block.operations[0].operation)
    for argument, attributes in zip(list(block.arguments), list(main.attributes["arg_attrs"]), strict=True):
        held = _constraint(argument, attributes, point, main.location)
        if held is not None:
            argument.replace_all_uses_with(held.results[0])
            held.operands[0] = argument


def _constraint(
    value: mlir.RawValue, attributes: mlir.RawAttribute, point: object, location: mlir.RawLocation
) -> mlir.RawOperation | None:
    if SHARDY in attributes:
        sharding = {"sharding": attributes[SHARDY]}
        name = "sdy.sharding_constraint"
    elif GSPMD in attributes:
        sharding = {"call_target_name": mlir.parse_attribute('"Sharding"'), GSPMD: attributes[GSPMD]}
        name = CUSTOM_CALL
    else:
        return None
    return mlir.create_operation(name, [value], [value.type], sharding, location=location, insertion_point=point)


def on_one_device(text: str) -> str | None:
    """The same program without shardings, or None where part of it is written for one of several devices."""
    module = mlir.parse_module(text)
    return mlir.print_module(module) if remove_shardings(module) else None


def remove_shardings(module: mlir.RawModule) -> bool:
    """Take shardings out of a module, in place; False, with some of them left, where part of it is written for one of
    several devices."""
    with mlir.active(module.context):
        for op in reversed(mlir.operations_within(module.operation)):
            if is_note(op):
                op.results[0].replace_all_uses_with(op.operands[0])
                op.erase()
            elif op.name == mlir.MESH:
                op.erase()
            elif op.name.startswith("sdy.") or op.name in _OF_DEVICES or _is_of_shards(mlir.call_target(op)):
                return False
            else:
                _remove(op, _shardings_of(op))
        _remove(module.operation, ("mhlo.num_partitions", "mhlo.num_replicas"))
    return True


def is_note(op: mlir.RawOperation) -> bool:
    """Whether an operation says of its one operand where it lies, and gives it back."""
    return op.name in _SEEN_THROUGH or mlir.call_target(op) == "Sharding"


def _is_of_shards(name: str) -> bool:
    return name in ("SPMDFullToShardShape", "SPMDShardToFullShape", "PartitionId") or name.startswith("xla.sdy.")


def _shardings_of(op: mlir.RawOperation) -> list[str]:
    if op.name == "func.func":
        return ["arg_attrs", "res_attrs"]  # names and donation go with them: neither changes what is computed
    attributes = mlir.attributes_of(op)
    return [n for n, a in attributes.items() if n in (SHARDY, GSPMD) or (n == FRONTEND and "xla.sdy." in str(a))]


def _remove(op: mlir.RawOperation, names: Sequence[str]) -> None:
    for name in names:
        if name in op.attributes:
            del op.attributes[name]
