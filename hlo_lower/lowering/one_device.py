"""A module for several devices becomes one for one device (`--one-device`).

Shardings say where values lie, not what they are (Shardy, "Sharding Representation"): a program for all devices means
the same without them. What is written for one of the devices becomes the program of all of them, in lockstep.
"""

import re
from collections import Counter
from dataclasses import replace
from typing import Any

from hlo_lower.base.causes import Code
from hlo_lower.base.change import Change, Outcome, merge_changes
from hlo_lower.base.errors import NotLoweredError
from hlo_lower.facts.scatter.shardings import is_partitioned
from hlo_lower.ir import mlir
from hlo_lower.ir.view import Graph, Node
from hlo_lower.lowering.engine.attributes import remove_foreign
from hlo_lower.lowering.lockstep import NEXT, Lockstep, is_note
from hlo_lower.ops.cleanup import erase_uncalled
from hlo_lower.ops.spec import FRONTEND, IN_HLO, MANUAL, OF_DEVICES, PARTITIONS, REPLICAS, TO_FULL, TO_SHARD
from hlo_lower.ops.targets.target import Target

OF_PLACES = re.compile(r"(sdy\.|mhlo\.sharding$|mhlo\.spmd_)"), re.compile(r"#sdy\b")
"""Attributes that say where values lie."""


def is_rejected_alone(graph: Graph, target: Target) -> bool:
    """Whether a module says that it is for one device, and holds what a target rejects of programs for several."""
    attributes = graph.module.operation.attributes
    is_one = all(name in attributes and mlir.integer_of(attributes[name]) == 1 for name in (PARTITIONS, REPLICAS))
    if is_partitioned(graph.module.operation) or not is_one:
        return False
    rejected = {name for name in (MANUAL, *OF_DEVICES) if target.refuses_op(name) is not None}
    return bool(rejected) and mlir.any_operation(graph.module.operation, lambda raw: raw.name in rejected)


def to_one_device(graph: Graph, most: int) -> tuple[Change, ...]:
    """Take a module to one device, in place.

    Args:
      graph: the module.
      most: ops that may be built of what is written for one of several devices.

    Returns:
      What was removed, and what was run for all devices.

    Raises:
      NotLoweredError: part of it has no meaning on one device.
    """
    module = graph.module.operation
    counts = [mlir.integer_of(module.attributes[n]) if n in module.attributes else 1 for n in (PARTITIONS, REPLICAS)]
    with mlir.active(graph.context):
        expanded = _expand(graph, Lockstep(graph, most), counts)
        placed = _remove_notes(graph)
        _refuse_left(graph, counts)
        for name, count in remove_foreign(graph, OF_PLACES):
            placed[name] += count
        placed.update(_remove_from_frontend(graph))
        for name, count in zip((PARTITIONS, REPLICAS), counts, strict=True):
            if count != 1:
                module.attributes[name] = mlir.parse_attribute("1 : i32")
    graph.exported = _exported(graph)
    graph.forget()
    where = str(graph.location(Node(module)))
    changes = [Change(Outcome.LOWERED, name, Code.RUN_FOR_ALL_DEVICES(), at) for name, at in expanded]
    changes += [
        Change(Outcome.LOWERED, name, Code.PLACED_ON_ONE_DEVICE(), where, n) for name, n in sorted(placed.items())
    ]
    return merge_changes(changes)


def _expand(graph: Graph, lockstep: Lockstep, counts: list[int]) -> list[tuple[str, str]]:
    """Take what is written for one of the devices to one; names of ops and where they stood."""
    found: list[tuple[str, str]] = []
    pending, called = [name for name, function in graph.functions.items() if function.is_public], set[str]()
    seen = set(pending)
    while pending:
        function = graph.functions[pending.pop()]
        if not function.has_body:
            continue
        blocks = [function.body]
        while blocks:
            block = blocks.pop()
            for node in list(block.nodes):
                is_alone = node.name in OF_DEVICES and counts == [1, 1]
                if node.name == MANUAL or mlir.call_target(node.raw) == TO_SHARD or is_alone:
                    found.append((_name(node), str(graph.location(node))))
                if node.name == MANUAL:
                    called.update(_called_in(graph, node))
                    lockstep.expand_computation(node)
                elif is_alone:
                    lockstep.expand_alone(node)
            if any(mlir.call_target(node.raw) == TO_SHARD for node in block.nodes):
                called.update(*(_called_in(graph, node) for node in block.nodes))
                lockstep.expand_shards(block, counts[0])
            for node in block.nodes:
                if node.body_name in graph.functions and node.body_name not in seen:
                    seen.add(node.body_name)
                    pending.append(node.body_name)
                blocks += node.blocks
    graph.forget()
    erase_uncalled(graph, called)
    return found


def _called_in(graph: Graph, node: Node) -> set[str]:
    names = {Node(raw).body_name for raw in mlir.operations_within(node.raw)}
    return {name for name in names if name in graph.functions}


def _remove_notes(graph: Graph) -> Counter[str]:
    """Take away what says where values lie."""
    removed = Counter[str]()
    for node in reversed(graph.nodes()):
        if is_note(node):
            removed[_name(node)] += 1
            mlir.replace_results(node.raw, [node.operand(0).raw])
            node.raw.erase()
        elif node.name == "sdy.sharding_group":
            removed[node.name] += 1
            node.raw.erase()
    graph.forget()
    return removed


def _refuse_left(graph: Graph, counts: list[int]) -> None:
    """Reject the first op that is left of a program for one of several devices.

    Raises:
      NotLoweredError: there is one.
    """
    for node in graph.nodes():
        target = mlir.call_target(node.raw)
        is_known = node.name == mlir.MESH or not node.name.startswith("sdy.")
        if is_known and node.name not in OF_DEVICES and not target.startswith((TO_SHARD, TO_FULL, IN_HLO)):
            continue
        partitions, replicas = counts
        if not is_known or target:
            why = "its meaning on one device is not known"
        elif replicas > 1:
            why = f"the module runs in {replicas} replicas, each with arguments of its own"
        else:
            why = f"the module is written for one of {partitions} devices, and has that one's arguments"
        what = f"{_name(node)}: not taken to one device: {why}"
        raise NotLoweredError(str(graph.location(node)), what, next_step=NEXT)


def _name(node: Node) -> str:
    called = mlir.call_target(node.raw)
    return f"{node.name} @{called}" if called else node.name


def _remove_from_frontend(graph: Graph) -> Counter[str]:
    """Take what Shardy says within HLO out of the attributes of a frontend."""
    removed = Counter[str]()
    for node in graph.nodes():
        if FRONTEND not in node.raw.attributes:
            continue
        entries = mlir.entries_of(node.raw.attributes[FRONTEND])
        kept = {name: value for name, value in entries.items() if not name.startswith(IN_HLO)}
        for name in entries.keys() - kept.keys():
            removed[name] += 1
        if not kept:
            del node.raw.attributes[FRONTEND]
        elif len(kept) < len(entries):
            node.raw.attributes[FRONTEND] = mlir.dictionary_attribute(kept)
    return removed


def _exported(graph: Graph) -> Any:
    """The `Exported` that a graph came from, for one device; None where it came from none."""
    exported: Any = graph.exported
    if exported is None:
        return None
    nowhere = {}
    for name in ("in_shardings_hlo", "out_shardings_hlo", "_in_named_shardings", "_out_named_shardings"):
        if hasattr(exported, name):
            nowhere[name] = (None,) * len(getattr(exported, name))
    avals = {
        name: tuple(aval.update(sharding=None) if getattr(aval, "sharding", None) else aval for aval in given)
        for name, given in (("in_avals", exported.in_avals), ("out_avals", exported.out_avals))
    }
    module = mlir.module_portable_artifact(graph.module)
    return replace(exported, nr_devices=1, mlir_module_serialized=module, **nowhere, **avals)
