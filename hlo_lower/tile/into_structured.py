"""Fuse an op of linalg into an `scf.for` or `scf.forall` that stands in a module: a producer into its loop.

    %e = linalg.map { math.exp } ins(%x) outs(%none)
    scf.forall (%i) = (0) to (80) step (4) { %t = tensor.extract_slice %e[%i, 0] [4, 60] [1, 1]; ... }
    ->
    scf.forall (%i) = (0) to (80) step (4) {
      %s = tensor.extract_slice %x[%i, 0] [4, 60] [1, 1]; %n = tensor.empty() : 4x60
      %t = linalg.map { math.exp } ins(%s) outs(%n); ... }

Right: element p of the result of a structured op is computed of the elements of its operands that its indexing maps
name, at the dims that p stands for and at all of those that are reduced. Where each dim that is cut stands by itself in
the maps, a part of the result is the same op on the same parts of the operands. A `tensor.empty` is another one, for
nothing is read of it. What an iteration reads in another way it computes as a whole.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase

from hlo_lower.base.errors import InputError
from hlo_lower.facts.memory.dataflow import type_of
from hlo_lower.ir import mlir
from hlo_lower.ir.builder import Builder
from hlo_lower.ir.regions import captured_values
from hlo_lower.ir.view import Block, Graph, Node, Value
from hlo_lower.lowering.linalg.in_place import EMPTY
from hlo_lower.lowering.linalg.loops import PLACE, READ
from hlo_lower.lowering.linalg.structured_ops import IndexMap, maps_of, rank_of
from hlo_lower.tile.tiled_module import TiledLoopRecord

LOOPS = ("scf.for", "scf.forall")
FILL = "linalg.fill"
OWN_PLACE = "linalg.index"
"""An op that tells where an iteration is, and so is another one on a part."""


@dataclass(frozen=True)
class _Part:
    """A slice of a tensor, dim by dim: where it begins, how many elements it has, and how far they are apart."""

    starts: tuple[int | Value, ...]
    sizes: tuple[int, ...]
    strides: tuple[int, ...]

    @classmethod
    def read_by(cls, node: Node) -> "_Part | None":
        """What an `extract_slice` reads; None where its size is not known."""
        offsets, sizes, strides = (node.integers(name) for name in PLACE)
        unknown, places = mlir.dynamic_size(), iter(node.operands[1:])
        if unknown in (*sizes, *strides):
            return None
        return cls(tuple(next(places) if n == unknown else n for n in offsets), sizes, strides)

    def is_whole(self, dim: int, extent: int) -> bool:
        """Whether it is all of a dim."""
        return (self.starts[dim], self.sizes[dim], self.strides[dim]) == (0, extent, 1)

    def read(self, build: Builder, value: Value) -> Value:
        """The slice of a tensor; what is empty is made anew."""
        shape, element = value.static_shape, mlir.tensor_element(value.raw.type)
        if all(self.is_whole(dim, extent) for dim, extent in enumerate(shape)):
            return value
        raw_type, maker = mlir.tensor_type(self.sizes, element), value.node
        if maker is not None and maker.name == EMPTY:
            return build.op(EMPTY, [], [raw_type]).result()
        if maker is not None and maker.name == FILL:
            into = self.read(build, maker.operand(1))
            return build.copy_on(maker, [maker.operand(0), into], [raw_type], {}).result()
        return self.extract_slice(build, value, raw_type)

    def extract_slice(self, build: Builder, value: Value, raw_type: mlir.RawType) -> Value:
        """The `extract_slice` of a tensor; its type may omit dims of size 1."""
        places = [start for start in self.starts if isinstance(start, Value)]
        starts = [mlir.dynamic_size() if isinstance(start, Value) else start for start in self.starts]
        told = dict(zip(PLACE, (starts, self.sizes, self.strides), strict=True))
        attributes = {name: mlir.dense_i64(numbers) for name, numbers in told.items()}
        attributes["operandSegmentSizes"] = mlir.parse_attribute(f"array<i32: 1, {len(places)}, 0, 0>")
        return build.op(READ, [value, *places], [raw_type], attributes).result()


def fuse_into_structured(graph: Graph, op: str, into: str) -> tuple[TiledLoopRecord, ...]:
    """Fuse an op at a place into a loop at another one; what is told of the loop.

    Raises:
      InputError: there is no such loop or op, or the op cannot be fused.
    """
    loop = _loop(graph, into)
    node = _producer(graph, loop, op)
    told = f"{node.name}, {type_of(node.result())}"
    maps = maps_of(node)
    assert maps is not None
    is_exact = rank_of(maps) == len(maps[-1])
    with mlir.active(graph.context):
        types = _computed_inside(node, maps, loop)
        before = [value.node for value in node.operands if value.node is not None]
        for unused in (node, *dict.fromkeys(maker for maker in before if maker.name in (EMPTY, FILL))):
            if not any(value.is_used for value in unused.results):
                unused.raw.erase()
    graph.forget()
    subset = f"{', '.join(dict.fromkeys(types))} of {told}"
    return (TiledLoopRecord(str(graph.location(loop)), subset, 1, 1, len(types), (), (), (), is_exact),)


def _loop(graph: Graph, into: str) -> Node:
    loops = [node for node in graph.nodes() if node.name in LOOPS]
    found = next((loop for loop in loops if fnmatchcase(str(graph.location(loop)), into)), None)
    if found is None:
        places = ", ".join(dict.fromkeys(str(graph.location(loop)) for loop in loops))
        raise InputError(
            f"{graph.name}, {into}",
            "no loop is there",
            facts=f"loops are at {places}" if places else "the module has none",
            next_step="name another loop" if places else "hlo-lower convert --target linalg writes them",
        )
    return found


def _producer(graph: Graph, loop: Node, op: str) -> Node:
    """The op at a place that gives what a loop reads in its body."""
    where, inside = f"{graph.name}, {op}", list(_inside(loop.blocks[0]))
    read = dict.fromkeys(v.node for node in inside for v in node.operands if v.node is not None)
    around = [node for node in read if node not in set(inside) and node.name not in (EMPTY, "arith.constant")]
    found = next((node for node in around if fnmatchcase(str(graph.location(node)), op)), None)
    if found is None:
        places = ", ".join(dict.fromkeys(str(graph.location(node)) for node in around))
        facts = f"it reads what comes from {places}" if places else "it reads arguments alone"
        what = "no op makes what the loop reads"
        raise InputError(where, what, facts=facts, next_step="name one of these ops" if places else "another loop")
    is_static = all(value.is_static for value in (*found.operands, *found.results) if value.is_tensor)
    is_plain = found.name.startswith("linalg.") and len(found.results) == 1 and is_static
    if not is_plain or maps_of(found) is None or captured_values(*found.blocks):
        what = f"{found.name} has no indexing maps, several results, or sizes that are not known"
        raise InputError(where, what, next_step="name another op")
    return found


def _inside(block: Block) -> list[Node]:
    """The nodes of a block and of the regions within."""
    return [node for one in block.nodes for node in (one, *(n for inner in one.blocks for n in _inside(inner)))]


def _computed_inside(node: Node, maps: Sequence[IndexMap], loop: Node) -> list[str]:
    """Compute in a loop what it reads of a node's result; the types of what is computed."""
    result, [block] = node.result(), loop.blocks
    whole: Value | None = None
    told: list[str] = []
    for user in [one for one in _inside(block) if result in one.operands]:
        build = Builder.before(user)
        part = _Part.read_by(user) if user.name == READ and user.operand(0) == result else None
        piece = None if part is None else _piece(build, node, maps, part)
        if part is not None and piece is not None:
            told.append(type_of(piece))
            if piece.raw.type != user.result().raw.type:  # dims of one element are left out
                all_ = replace(part, starts=(0,) * len(part.sizes), strides=(1,) * len(part.sizes))
                piece = all_.extract_slice(build, piece, user.result().raw.type)
            user.result().raw.replace_all_uses_with(piece.raw)
            user.raw.erase()
            continue
        if whole is None:
            first = Builder.before(next(block.nodes))
            whole = first.copy_on(node, node.operands, [result.raw.type], {}).result()
            told.append(type_of(whole))
        for number, value in enumerate(user.operands):
            if value == result:
                user.raw.operands[number] = whole.raw
    return told


def _piece(build: Builder, node: Node, maps: Sequence[IndexMap], part: _Part) -> Value | None:
    """A part of a node's result, computed of parts of its operands; None where a dim is not cut by itself."""
    if any(inner.name == OWN_PLACE for block in node.blocks for inner in _inside(block)):
        return None
    extents, cut = node.result().static_shape, dict[int, int]()
    for place, index in enumerate(maps[-1]):
        if not part.is_whole(place, extents[place]):
            if len(index) != 1 or index[0][1] != 1:
                return None
            cut[index[0][0]] = place
    parts = [_of_operand(value, one, cut, part) for value, one in zip(node.operands, maps, strict=True)]
    pairs = [(value, its) for value, its in zip(node.operands, parts, strict=True) if its is not None]
    if len(pairs) < len(parts):
        return None
    read = {(value, its): its.read(build, value) if value.is_tensor else value for value, its in dict.fromkeys(pairs)}
    taken = [read[pair] for pair in pairs]
    raw_type = mlir.tensor_type(part.sizes, mlir.tensor_element(node.result().raw.type))
    return build.copy_on(node, taken, [raw_type], {}).result()


def _of_operand(value: Value, one: IndexMap, cut: Mapping[int, int], part: _Part) -> _Part | None:
    """What a part of the result reads of an operand with this map; `cut` has the dims that are cut, and where in the
    result. None where one of them does not stand by itself."""
    starts, sizes, strides = list[int | Value](), list[int](), list[int]()
    for extent, index in zip(value.static_shape if value.is_tensor else (), one, strict=True):
        its = [dim for dim, _ in index if dim in cut]
        if its and (len(index) != 1 or index[0][1] != 1):
            return None
        place = cut[its[0]] if its else None
        starts.append(0 if place is None else part.starts[place])
        sizes.append(extent if place is None else part.sizes[place])
        strides.append(1 if place is None else part.strides[place])
    return _Part(tuple(starts), tuple(sizes), tuple(strides))
