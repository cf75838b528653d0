"""Programs that are written for one of several devices, run for all of these in lockstep on one.

    %r = sdy.manual_computation(%x) in_shardings=[<@mesh, [{"d"}]>] ... (%own) { return sine(all_reduce(%own)) }
    ->   %a, %b = the halves of %x;   %s = %a + %b;   %t = sine %s;   %r = concatenate %t, %t

`shard_map` and `pmap` of JAX make such programs: the body of an `sdy.manual_computation`, or what stands between the
custom calls @SPMDFullToShardShape and @SPMDShardToFullShape. An op becomes a copy for each device, on that device's
values; where these are the same value one copy serves several. A collective reads the values of its group. Loops and
branches that hold one go on for all devices at once, which they do by their own meaning only if all take the same way:
what decides has to be one value.

Equal: each op computes what it computed on its device. A sum over devices goes in the order of its group; no order is
defined for it, and in two devices, of integers and for maxima there is none.
"""

import re
from collections import ChainMap
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from math import prod
from typing import NoReturn, TypeAlias

import numpy as np

from hlo_lower.base.errors import NotLoweredError
from hlo_lower.facts.scatter.lift import lift_elementwise
from hlo_lower.ir import mlir
from hlo_lower.ir.builder import Builder
from hlo_lower.ir.view import Block, Graph, Node, Value
from hlo_lower.ops import names
from hlo_lower.ops.names import CASE, IF, WHILE
from hlo_lower.ops.purity import Functional
from hlo_lower.ops.spec import GSPMD, MANUAL, NOTES, NOTING_CALLS, OF_DEVICES, TO_FULL, TO_SHARD

NEXT = "export the module for one device, or run it on its devices with jax.jit"

Row: TypeAlias = tuple[Value, ...]
"""A value as each device has it."""


def is_note(node: Node) -> bool:
    """Whether an op says of its one operand where that lies, and gives it back."""
    return node.name in NOTES or mlir.call_target(node.raw) in NOTING_CALLS


@dataclass(frozen=True)
class _Device:
    """One of the devices: its place along axes of a mesh, its number, and whether all axes are known that give it."""

    places: Mapping[str, int]
    number: int
    is_whole: bool = True


@dataclass(frozen=True)
class _Scope:
    """Where ops are built, for which devices, and what is known there."""

    build: Builder
    devices: Sequence[_Device]
    rows: dict[Value, Row] = field(default_factory=dict[Value, Row])
    made: ChainMap[object, Sequence[Value]] = field(default_factory=ChainMap[object, Sequence[Value]])

    def row(self, value: Value) -> Row:
        """A value as each device has it; one that is not of a device is the same for all."""
        return self.rows.get(value) or (value,) * len(self.devices)


Blocks: TypeAlias = Sequence[tuple[int, ...]]
"""For each device the number of its block along each dim."""


class Lockstep:
    """Takes what is written for one of several devices to one, in place.

    Args:
      graph: the module.
      most: ops that may be built.
    """

    def __init__(self, graph: Graph, most: int) -> None:
        self._graph, self._most = graph, most
        self._count = 0
        self._is_function = Functional(graph)
        self._known: dict[str, bool] = {}

    def speaks(self, node: Node) -> bool:
        """Whether an op, one in it, or one of a function that is called there, speaks with other devices or is written
        for one of them."""
        for raw in mlir.operations_within(node.raw):
            inner = Node(raw)
            if inner.name in OF_DEVICES or inner.name == MANUAL or mlir.call_target(raw) in (TO_SHARD, TO_FULL):
                return True
            if inner.body_name and self._function_speaks(inner.body_name):
                return True
        return False

    def _function_speaks(self, name: str) -> bool:
        if name not in self._known:
            self._known[name] = False
            function = self._graph.functions.get(name)
            self._known[name] = function is not None and self.speaks(function.node)
        return self._known[name]

    # --- where such a program begins ---

    def expand_computation(self, node: Node) -> None:
        """Take an `sdy.manual_computation` of a program for all devices to one device."""
        scope = _Scope(Builder.before(node), [_Device({}, 0)])
        self._compute(node, scope)
        mlir.replace_results(node.raw, [scope.rows[result][0].raw for result in node.results])
        node.raw.erase()

    def expand_shards(self, block: Block, count: int) -> None:
        """Take what stands between the two calls of a block to one device."""
        scope = _Scope(Builder.before(block.terminator), [_Device({}, number) for number in range(count)])
        gone: list[Node] = []
        for node in list(block.nodes):
            here, target = replace(scope, build=Builder.before(node)), mlir.call_target(node.raw)
            if target == TO_SHARD:
                scope.rows[node.result()] = self._shards_of(node, here)
            elif target == TO_FULL:
                blocks = self._gspmd_blocks(node, node, len(node.result().static_shape), count)
                whole = self._assemble(here, scope.row(node.operand(0)), blocks)
                self._check_shape(node, whole, node.result())
                mlir.replace_results(node.raw, [whole.raw])
            elif any(Value(taken) in scope.rows for taken in mlir.taken_by(node.raw)):
                if node == block.terminator:
                    self._refuse(node, "it returns what each device has for itself")
                self._step(node, here)
            else:
                continue
            gone.append(node)
        for node in reversed(gone):
            node.raw.erase()

    def expand_alone(self, node: Node) -> None:
        """Take a collective of a module for one device away."""
        scope = _Scope(Builder.before(node), [_Device({}, 0)])
        self._speak(node, scope)
        mlir.replace_results(node.raw, [scope.rows[result][0].raw for result in node.results])
        node.raw.erase()

    def _shards_of(self, node: Node, scope: _Scope) -> Row:
        source, operand = node.operand(0).node, node.operand(0)
        if operand in scope.rows or source is None or GSPMD not in source.raw.attributes:
            self._refuse(node, "no sharding says how its operand is spread")
        if mlir.symbol_name(node.raw.attributes[GSPMD]) != "{manual}":
            self._refuse(node, "it is written for one device along some axes only")
        blocks = self._gspmd_blocks(node, source, len(operand.static_shape), len(scope.devices))
        row = self._split(scope, (operand,) * len(scope.devices), blocks)
        self._check_shape(node, row[0], node.result())
        return row

    def _check_shape(self, node: Node, built: Value, wanted: Value) -> None:
        if built.raw.type != wanted.raw.type:
            self._refuse(node, f"its parts are padded: {wanted.raw.type}")

    def _gspmd_blocks(self, node: Node, source: Node, rank: int, count: int) -> Blocks:
        """The blocks that a sharding of GSPMD gives devices."""
        text = mlir.symbol_name(source.raw.attributes[GSPMD])
        tiles = tiles_of(text, rank, count)
        if tiles is None:
            self._refuse(node, f"its sharding {text} is not read")
        places = {int(number): place[:rank] for place, number in np.ndenumerate(tiles)}
        return [places[number] for number in range(count)]

    # --- programs of one device ---

    def _run(self, block: Block, scope: _Scope) -> list[Row]:
        """Build a block for all devices; what it returns, as each has it."""
        *nodes, last = block.nodes
        for node in nodes:
            self._step(node, scope)
        return [scope.row(value) for value in last.operands]

    def _step(self, node: Node, scope: _Scope) -> None:
        if is_note(node):
            scope.rows[node.result()] = scope.row(node.operand(0))
        elif node.name == MANUAL:
            self._compute(node, scope)
        elif node.name in OF_DEVICES:
            self._speak(node, scope)
        elif node.name.startswith("sdy.") or mlir.call_target(node.raw) in (TO_SHARD, TO_FULL):
            self._refuse(node, "it stands in a program for one of several devices")
        elif not self.speaks(node):
            self._copy(node, scope)
        elif node.name == "func.call":
            body = self._graph.functions[node.callee].body
            given = dict(zip(body.arguments, map(scope.row, node.operands), strict=True))
            returned = self._run(body, replace(scope, rows=given))
            scope.rows.update(zip(node.results, returned, strict=True))
        elif node.name == WHILE:
            self._loop(node, scope)
        elif node.name in (IF, CASE):
            self._branch(node, scope)
        else:
            self._refuse(node, "what speaks with other devices stands in it")

    def _copy(self, node: Node, scope: _Scope) -> None:
        """Copy an op for each device; for several at once where it is a function, and they have the same operands."""
        taken = [value for value in map(Value, mlir.taken_by(node.raw)) if value in scope.rows]
        is_shared = bool(node.results) and self._is_function(node)
        found: list[Sequence[Value]] = []
        for place in range(len(scope.devices)):
            given = tuple(scope.rows[value][place] for value in taken)
            key = (node.result(), given) if is_shared else object()
            if key not in scope.made:
                self._count += 1
                if self._count > self._most:
                    self._refuse(
                        node, f"on one device there are more than {self._most:,} ops", "--max-unroll allows more"
                    )
                scope.made[key] = scope.build.copy(node, dict(zip(taken, given, strict=True))).results
            found.append(scope.made[key])
        scope.rows.update(zip(node.results, zip(*found, strict=True), strict=True))

    def _compute(self, node: Node, scope: _Scope) -> None:
        """Run the body of an `sdy.manual_computation` for all devices along its axes."""
        given, returned = (mlir.tensor_shardings(node.raw, name) for name in ("in_shardings", "out_shardings"))
        meshes = {sharding.mesh for sharding in (*given, *returned)}
        if not meshes:
            return
        if len(meshes) > 1 or any(mesh.device_ids for mesh in meshes):
            self._refuse(node, "its mesh has devices in another order")
        [mesh] = meshes
        sizes, axes = dict(mesh.axes), mlir.manual_axes(node.raw)
        if any(sharding.unreduced for sharding in (*given, *returned)):
            self._refuse(node, "each device has a part of a sum (unreduced)")
        if not node.is_static:
            self._refuse(node, "it has open sizes", "--bind gives the sizes")
        outer = [place for place in range(len(scope.devices)) for _ in range(prod(sizes[axis] for axis in axes))]
        own = [dict(zip(axes, one, strict=True)) for one in product(*(range(sizes[axis]) for axis in axes))]
        devices = [_device({**device.places, **places}, mesh) for device in scope.devices for places in own]
        inner = replace(scope, devices=devices, rows=dict[Value, Row]())
        for operand, argument, sharding in zip(node.operands, node.blocks[0].arguments, given, strict=True):
            row = scope.row(operand)
            blocks = [_block(device.places, sharding, sizes, axes) for device in devices]
            inner.rows[argument] = self._split(inner, [row[place] for place in outer], blocks)
            self._check_shape(node, inner.rows[argument][0], argument)
        for result, sharding, row in zip(node.results, returned, self._run(node.blocks[0], inner), strict=True):
            whole: list[Value] = []
            for place in range(len(scope.devices)):
                mine = [k for k, one in enumerate(outer) if one == place]
                blocks = [_block(devices[k].places, sharding, sizes, axes) for k in mine]
                whole.append(self._assemble(scope, [row[k] for k in mine], blocks))
            self._check_shape(node, whole[0], result)
            scope.rows[result] = tuple(whole)

    def _split(self, scope: _Scope, row: Sequence[Value], blocks: Blocks) -> Row:
        """The blocks of a value, for each device its own."""
        counts = [max(numbers) + 1 for numbers in zip(*blocks, strict=True)]
        return tuple(self._part(scope, value, block, counts) for value, block in zip(row, blocks, strict=True))

    def _part(self, scope: _Scope, value: Value, block: Sequence[int], counts: Sequence[int]) -> Value:
        """One of several blocks of a value."""
        if prod(counts) == 1:
            return value
        key = (value, tuple(block), tuple(counts))
        if key not in scope.made:
            sizes = [extent // count for extent, count in zip(value.static_shape, counts, strict=True)]
            starts = [size * number for size, number in zip(sizes, block, strict=True)]
            limits = [start + size for start, size in zip(starts, sizes, strict=True)]
            scope.made[key] = [scope.build.slice(value, starts, limits)]
        return scope.made[key][0]

    def _assemble(self, scope: _Scope, row: Sequence[Value], blocks: Blocks) -> Value:
        """The whole of which devices have blocks: of several that have the same one the first counts."""
        first = dict(reversed(list(zip(blocks, row, strict=True))))
        counts = [max(numbers) + 1 for numbers in zip(*blocks, strict=True)]

        def along(dim: int, block: tuple[int, ...]) -> Value:
            if dim == len(counts):
                return first[block]
            parts = [along(dim + 1, (*block, number)) for number in range(counts[dim])]
            return parts[0] if len(parts) == 1 else scope.build.concatenate(parts, dim)

        return along(0, ())

    # --- loops and branches that hold a collective ---

    def _loop(self, node: Node, scope: _Scope) -> None:
        """One loop that carries the values of all devices; one value where they start with one and go on with one."""
        given = [scope.row(operand) for operand in node.operands]
        shared = [_is_one(row) for row in given]
        while True:
            rows = [row[:1] if one else row for row, one in zip(given, shared, strict=True)]
            types = [[value.raw.type for value in row] for row in rows]
            flat = [value for row in rows for value in row]
            loop = scope.build.op(WHILE, flat, [value.raw.type for value in flat], regions=2)
            returned = [self._region(node, loop, number, scope, types) for number in range(2)]
            if not _is_one(returned[0][0][0]):
                self._refuse(node, "devices may leave the loop at different turns")
            differ = [one and not _is_one(row) for one, row in zip(shared, returned[1][0], strict=True)]
            if not any(differ):
                break
            loop.raw.erase()
            shared = [one and not other for one, other in zip(shared, differ, strict=True)]
        for (rows_of, inner), number in zip(returned, range(2), strict=True):
            ends = (
                [rows_of[0][:1]] if number == 0 else [r[:1] if s else r for r, s in zip(rows_of, shared, strict=True)]
            )
            inner.build.op(names.RETURN, [value for row in ends for value in row], [])
        results = iter(loop.results)
        for result, row in zip(node.results, rows, strict=True):
            own = tuple(next(results) for _ in row)
            scope.rows[result] = own if len(own) > 1 else own * len(scope.devices)

    def _branch(self, node: Node, scope: _Scope) -> None:
        """The same branches, each with the values of all devices."""
        index = scope.row(node.operand(0))
        if not _is_one(index):
            self._refuse(node, "devices may take different branches")
        types = [value.raw.type for value in node.results for _ in scope.devices]
        branch = scope.build.op(node.name, index[:1], types, regions=len(node.blocks))
        for number in range(len(node.blocks)):
            returned, inner = self._region(node, branch, number, scope, [])
            inner.build.op(names.RETURN, [value for row in returned for value in row], [])
        results = iter(branch.results)
        for result in node.results:
            scope.rows[result] = tuple(next(results) for _ in scope.devices)

    def _region(
        self, node: Node, built: Node, number: int, scope: _Scope, types: Sequence[Sequence[mlir.RawType]]
    ) -> tuple[list[Row], _Scope]:
        """Fill a region for all devices, but for its end; what it returns, and its scope."""
        flat = [one for row in types for one in row]
        block = Block(mlir.append_block(built.raw, number, flat, node.raw.location))
        inner = replace(scope, build=scope.build.at_end(block), made=scope.made.new_child())
        arguments = iter(block.arguments)
        for argument, row in zip(node.blocks[number].arguments, types, strict=True):
            own = tuple(next(arguments) for _ in row)
            scope.rows[argument] = own if len(own) > 1 else own * len(scope.devices)
        return self._run(node.blocks[number], inner), inner

    # --- collectives ---

    def _speak(self, node: Node, scope: _Scope) -> None:
        """What a collective gives each device."""
        if not node.is_static:
            self._refuse(node, "it has open sizes", "--bind gives the sizes")
        match node.name:
            case names.ALL_REDUCE | names.COLLECTIVE_BROADCAST | names.ALL_GATHER:
                self._by_group(node, scope, self._whole)
            case names.REDUCE_SCATTER | names.ALL_TO_ALL:
                self._by_group(node, scope, self._own_parts)
            case names.COLLECTIVE_PERMUTE:
                self._permute(node, scope)
            case names.PARTITION_ID | names.REPLICA_ID:
                self._number(node, scope)
            case _:
                self._refuse(node, "what it sends has no place on one device")

    def _groups(self, node: Node, scope: _Scope) -> Iterator[list[int]]:
        """The groups of a collective, each as places of its devices; every device is in one."""
        attributes, count = node.raw.attributes, len(scope.devices)
        channel, is_numbered = mlir.channel_of(node.raw), "use_global_device_ids" in attributes
        given = attributes["replica_groups"]
        if not str(given).startswith("dense"):
            self._refuse(node, "its groups are not listed")
        numbers = np.asarray(mlir.dense_integers(given), np.int64).reshape(mlir.static_shape(given.type))
        if channel == 0 and not is_numbered:  # over replicas, of which there is one
            yield from ([place] for place in range(count))
            return
        if (node.name in _NUMBERED and not is_numbered) or not numbers.size:
            numbers = np.asarray([[device.number for device in scope.devices]])
        places = {device.number: place for place, device in enumerate(scope.devices)}
        seen: set[int] = set()
        for group in numbers.tolist():
            members = [number for number in group if number >= 0]
            own = [places[number] for number in members if number in places]
            if not own:
                continue
            if len(own) != len(members):
                self._refuse(node, "its groups have devices for which the program is not written")
            seen.update(own)
            yield own
        if len(seen) != count:
            self._refuse(node, "a device is in no group")

    def _by_group(self, node: Node, scope: _Scope, of_group: "_OfGroup") -> None:
        """Give each device of a group what is computed of an operand as the group's devices have it."""
        groups = list(self._groups(node, scope))
        for operand, result in zip(node.operands, node.results, strict=True):
            row, found = scope.row(operand), list(scope.row(operand))
            for group in groups:
                given = of_group(node, scope, [row[place] for place in group])
                for place, value in zip(group, given, strict=True):
                    found[place] = value
            scope.rows[result] = tuple(found)

    def _whole(self, node: Node, scope: _Scope, row: Sequence[Value]) -> Sequence[Value]:
        """What all devices of a group get: the sum of their values, the first one, or all of them beside each other."""
        if node.name == names.ALL_REDUCE:
            return [self._total(node, scope, row)] * len(row)
        if node.name == names.COLLECTIVE_BROADCAST or len(row) == 1:
            return [row[0]] * len(row)
        return [scope.build.concatenate(row, node.integer("all_gather_dim"))] * len(row)

    def _own_parts(self, node: Node, scope: _Scope, row: Sequence[Value]) -> Sequence[Value]:
        """What each device of a group gets: its part of their sum, or its part of each value beside each other."""
        count = len(row)
        if node.name == names.REDUCE_SCATTER:
            return self._parts(scope, self._total(node, scope, row), node.integer("scatter_dimension"), count)
        parts = (self._parts(scope, value, node.integer("split_dimension"), count) for value in row)
        columns = zip(*parts, strict=True)
        dim = node.integer("concat_dimension")
        return [scope.build.concatenate(one, dim) if count > 1 else one[0] for one in columns]

    def _total(self, node: Node, scope: _Scope, row: Sequence[Value]) -> Value:
        """What the region of a collective makes of the values of a group, in its order."""
        key = (node.result(), tuple(row))
        if key not in scope.made:
            total, *others = row
            for other in others:
                lifted = lift_elementwise(scope.build, self._graph, node.blocks[0], [total, other])
                if lifted is None:
                    self._refuse(node, "its body is not elementwise")
                [total] = lifted
            scope.made[key] = [total]
        return scope.made[key][0]

    def _parts(self, scope: _Scope, value: Value, dim: int, count: int) -> list[Value]:
        """As many equal parts of a value along a dim."""
        rank = len(value.static_shape)
        counts = [count if k == dim else 1 for k in range(rank)]
        blocks = ([number if k == dim else 0 for k in range(rank)] for number in range(count))
        return [self._part(scope, value, block, counts) for block in blocks]

    def _permute(self, node: Node, scope: _Scope) -> None:
        """Each device has what is sent to it; zeros where nothing is."""
        pairs = np.asarray(mlir.dense_integers(node.raw.attributes["source_target_pairs"]), np.int64).reshape(-1, 2)
        places = {device.number: place for place, device in enumerate(scope.devices)}
        row, build = scope.row(node.operand(0)), scope.build
        found: list[Value | None] = [None] * len(row)
        if mlir.channel_of(node.raw) == 0:  # over replicas, of which there is one
            found = list(row) if [0, 0] in pairs.tolist() else found
        else:
            for source, target in pairs.tolist():
                if (source in places) != (target in places):
                    self._refuse(node, "it goes over axes for whose places the program is not written")
                if target in places:
                    found[places[target]] = row[places[source]]
        if None in found:
            zero = build.zero_of(row[0])
            zeros = build.broadcast(zero, row[0].static_shape)
            found = [zeros if value is None else value for value in found]
        scope.rows[node.result()] = tuple(value for value in found if value is not None)

    def _number(self, node: Node, scope: _Scope) -> None:
        is_partition = node.name == names.PARTITION_ID
        if is_partition and not all(device.is_whole for device in scope.devices):
            self._refuse(node, "its device is known along some axes only")
        numbers = [device.number if is_partition else 0 for device in scope.devices]
        build = scope.build
        known = {number: build.constant(number, (), "ui32") for number in dict.fromkeys(numbers)}
        scope.rows[node.result()] = tuple(known[number] for number in numbers)

    def _refuse(self, node: Node, why: str, next_step: str = NEXT) -> NoReturn:
        called = mlir.call_target(node.raw)
        told = f"{node.name} @{called}" if called else node.name
        raise NotLoweredError(
            str(self._graph.location(node)), f"{told}: not taken to one device: {why}", next_step=next_step
        )


_OfGroup: TypeAlias = Callable[[Node, _Scope, Sequence[Value]], Sequence[Value]]

_NUMBERED = (names.ALL_GATHER, names.ALL_REDUCE, names.REDUCE_SCATTER)
"""Collectives over replicas and all partitions where they have a channel and do not number devices."""


def _is_one(row: Row) -> bool:
    """Whether all devices have the same value."""
    return all(value == row[0] for value in row)


def _device(places: Mapping[str, int], mesh: mlir.Mesh) -> _Device:
    """The device at a place of a mesh; where an axis is not known, the first one along it."""
    number = 0
    for axis, size in mesh.axes:
        number = number * size + places.get(axis, 0)
    return _Device(places, number, all(axis in places or size == 1 for axis, size in mesh.axes))


def _block(
    places: Mapping[str, int], sharding: mlir.TensorSharding, sizes: Mapping[str, int], axes: Sequence[str]
) -> tuple[int, ...]:
    """The block of a device along each dim, by those axes of a sharding that a computation is written for."""
    found: list[int] = []
    for dim in sharding.dims:
        number = 0
        for axis in dim:
            if axis in axes:
                number = number * sizes[axis] + places[axis]
        found.append(number)
    return tuple(found)


_TILED = re.compile(r"\{devices=\[([\d,]+)\](?:<=\[([\d,]+)\](?:T\(([\d,]+)\))?|([\d,]+))( last_tile_dim_replicate)?\}")


def tiles_of(text: str, rank: int, count: int) -> "np.ndarray[tuple[int, ...], np.dtype[np.int64]] | None":
    """The devices of a sharding of GSPMD, by their places along each dim and, behind these, among those that have the
    same block; None for one that is not read, as are parts that are manual, partial sums and tuples.

    Example:
      >>> tiles_of("{devices=[2,1,2]<=[2,2]T(1,0) last_tile_dim_replicate}", 2, 4).tolist()
      [[[0, 2]], [[1, 3]]]
    """
    if text == "{replicated}":
        return np.arange(count, dtype=np.int64).reshape([1] * rank + [count])
    if (found := _TILED.fullmatch(text)) is None:
        return None
    shape, dims, order, listed, is_replicated = found.groups()
    tile = _numbers(shape)
    if len(tile) != rank + bool(is_replicated) or prod(tile) != count:
        return None
    numbers = np.asarray(_numbers(listed), np.int64) if listed else np.arange(count, dtype=np.int64)
    if dims:
        numbers = numbers.reshape(_numbers(dims))
    if order:
        numbers = numbers.transpose(_numbers(order))
    return numbers.reshape(tile) if sorted(numbers.reshape(-1)) == list(range(count)) else None


def _numbers(text: str) -> list[int]:
    return [int(number) for number in text.split(",")]
