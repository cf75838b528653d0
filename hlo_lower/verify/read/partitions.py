"""Modules that are partitioned over several devices: how many, on what mesh, and the same program on one device.

Shardings say where values lie, not what they are (Shardy, "Sharding Representation"; XLA's `HloSharding`): a module
that is partitioned computes what it computes on one device without them. That holds as long as the program itself is
written for all devices together; the body of an `sdy.manual_computation`, which `shard_map` makes, is written for one
of them, and its collectives have no meaning on one device.
"""

from math import prod

from hlo_lower.ir import mlir
from hlo_lower.ops.names import COLLECTIVE_PERMUTE, CONSTANT, CUSTOM_CALL, PARTITION_ID, REPLICA_ID
from hlo_lower.ops.spec import (
    FRONTEND,
    GSPMD,
    IN_HLO,
    MANUAL,
    NOTES,
    NOTING_CALLS,
    OF_DEVICES,
    PARTITIONS,
    REPLICAS,
    SHARDY,
    TO_FULL,
    TO_SHARD,
)


def device_count(module: mlir.RawModule) -> int:
    """How many devices a module is for: `mhlo.num_partitions` times `mhlo.num_replicas`."""
    attributes = module.operation.attributes
    return prod(mlir.integer_of(attributes[name]) for name in (PARTITIONS, REPLICAS) if name in attributes)


def is_for_one_device(module: mlir.RawModule) -> bool:
    """Whether a module is for one device: by its own count, which may not be said, and by the meshes that it names."""
    return device_count(module) == 1 and all(prod(axes.values()) == 1 for axes in mlir.mesh_axes(module.operation))


def is_replicated(module: mlir.RawModule) -> bool:
    """Whether it runs in several replicas, each with arguments and results of its own."""
    attributes = module.operation.attributes
    return REPLICAS in attributes and mlir.integer_of(attributes[REPLICAS]) > 1


def mesh_axes(module: mlir.RawModule, count: int) -> dict[str, int]:
    """Names and sizes of the module's mesh of this many devices; where it names none an axis for each prime factor, of
    which JAX makes whatever tiles GSPMD has."""
    meshes = (axes for axes in mlir.mesh_axes(module.operation) if prod(axes.values()) == count)
    return next(meshes, {f"devices{number}": factor for number, factor in enumerate(_prime_factors(count))})


def _prime_factors(count: int) -> list[int]:
    found: list[int] = []
    divisor = 2
    while count > 1:
        while count % divisor == 0:
            found.append(divisor)
            count //= divisor
        divisor += 1
    return found


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


def may_speak(text: str) -> bool:
    """Whether the text of a module may hold what is written for one of several devices, or speaks with others."""
    return any(name in text for name in (MANUAL, *OF_DEVICES))


def on_one_device(text: str) -> str | None:
    """The same program without shardings, or None where part of it is written for one of several devices."""
    module = mlir.parse_module(text)
    is_stated = PARTITIONS in module.operation.attributes and device_count(module) == 1
    return mlir.print_module(module, locations=True) if remove_shardings(module, is_stated) else None


def remove_shardings(module: mlir.RawModule, is_one: bool = False) -> bool:
    """Take shardings out of a module, in place, and what is written for one device where that is the only one; False,
    with some of them left, where part of it is written for one of several devices.

    Args:
      module: it.
      is_one: whether it says that it is for one device.
    """
    with mlir.active(module.context):
        for op in reversed(mlir.operations_within(module.operation)):
            if is_note(op) or _is_alone(op, is_one):
                mlir.replace_results(op, list(op.operands))
                op.erase()
            elif op.name == MANUAL and _is_of_one_place(op):
                _inline(op)
            elif op.name in (PARTITION_ID, REPLICA_ID) and is_one:
                _put_zero(op)
            elif op.name in (mlir.MESH, "sdy.sharding_group"):
                op.erase()
            elif op.name.startswith("sdy.") or op.name in OF_DEVICES or _is_of_shards(mlir.call_target(op)):
                if op.name != "sdy.return":  # of a computation that stands further up
                    return False
            else:
                _remove_shardings_of(op)
        for name in (PARTITIONS, REPLICAS):
            if name in module.operation.attributes:
                del module.operation.attributes[name]
    return True


def _is_alone(op: mlir.RawOperation, is_one: bool) -> bool:
    """Whether a collective gives back its operands, because each of its groups is one device."""
    attributes = op.attributes
    if op.name == COLLECTIVE_PERMUTE:
        return is_one and mlir.dense_integers(attributes["source_target_pairs"]) == (0, 0)
    if op.name not in OF_DEVICES or "replica_groups" not in attributes:
        return False
    if not str(attributes["replica_groups"]).startswith("dense"):
        return False
    groups = mlir.static_shape(attributes["replica_groups"].type)
    is_over_all = mlir.channel_of(op) != 0 and "use_global_device_ids" not in attributes
    return groups[1] == 1 and (is_one or not is_over_all)


def _is_of_one_place(op: mlir.RawOperation) -> bool:
    """Whether the axes for whose places a computation is written have one place each."""
    given = [sharding for name in ("in_shardings", "out_shardings") for sharding in mlir.tensor_shardings(op, name)]
    axes = mlir.manual_axes(op)
    return all(dict(sharding.mesh.axes).get(axis) == 1 for sharding in given for axis in axes)


def _inline(op: mlir.RawOperation) -> None:
    """Put what stands in a computation in its place."""
    block = op.regions[0].blocks[0]
    for argument, operand in zip(list(block.arguments), list(op.operands), strict=True):
        argument.replace_all_uses_with(operand)
    *operations, last = [inner.operation for inner in block.operations]
    for inner in operations:
        inner.move_before(op)
    mlir.replace_results(op, list(last.operands))
    op.erase()


def _put_zero(op: mlir.RawOperation) -> None:
    mlir.put_instead(op, CONSTANT, {"value": mlir.parse_attribute("dense<0> : tensor<ui32>")})
    op.erase()


def is_note(op: mlir.RawOperation) -> bool:
    """Whether an operation says of its one operand where it lies, and gives it back."""
    return op.name in NOTES or mlir.call_target(op) in NOTING_CALLS


def _is_of_shards(name: str) -> bool:
    return name in (TO_SHARD, TO_FULL, "PartitionId") or name.startswith(IN_HLO)


def _remove_shardings_of(op: mlir.RawOperation) -> None:
    """Take shardings off an operation; of a function all that is said of its arguments and results: names and donation
    do not change what is computed."""
    is_function = op.name == "func.func"
    for name, attribute in mlir.attributes_of(op).items():
        if is_of_places(name, attribute) or (is_function and name in ("arg_attrs", "res_attrs")):
            del op.attributes[name]


def is_of_places(name: str, attribute: mlir.RawAttribute) -> bool:
    """Whether an attribute says where values lie."""
    is_named = name in (SHARDY, GSPMD) or name.startswith("mhlo.spmd_")
    return is_named or (name == FRONTEND and IN_HLO in str(attribute))
