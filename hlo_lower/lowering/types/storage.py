"""A module in which one element type stands for another: values, blocks, signatures and the signature in JAX."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import jax
import jax.export
import numpy as np

from hlo_lower.ir import mlir
from hlo_lower.ir.builder import Builder
from hlo_lower.ir.reader import read
from hlo_lower.ir.regions import captured_values
from hlo_lower.ir.view import Function, Graph, Node, Value
from hlo_lower.lowering.engine.legality import dtypes_on
from hlo_lower.lowering.integers64.demotion import (
    SIGNATURE_ATTRIBUTES,
    After,
    DemotedValue,
    Demotion,
    with_original_signature,
)
from hlo_lower.lowering.types.carried.carrier import MARK, PAIRED, Carrier, Form
from hlo_lower.lowering.types.carried.pairs import realize
from hlo_lower.lowering.types.element_type import storage_of
from hlo_lower.ops.names import BITCAST_CONVERT, COMPOSITE, CONVERT, CUSTOM_CALL, OPTIMIZATION_BARRIER
from hlo_lower.ops.spec import CONTROL, Role, ops_with
from hlo_lower.ops.targets.target import Target

ElementTypes = Mapping[str, str]
"""Element types and those that they become; of two parts, which stand along a last dim, one as in "2xf32"."""

TWO = "2x"


def storage_type(raw_type: mlir.RawType, becomes: ElementTypes) -> mlir.RawType:
    """A type with the element type that its own becomes; other types as they are."""
    tensor = mlir.read_tensor_type(raw_type)
    if tensor is None or tensor.element_name not in becomes:
        return raw_type
    after = becomes[tensor.element_name]
    shape = (*tensor.shape, 2) if after.startswith(TWO) else tensor.shape
    return mlir.tensor_type(shape, after.removeprefix(TWO))


def retype(graph: Graph, becomes: ElementTypes, kept: Collection[Value] = (), inside: Collection[Node] = ()) -> None:
    """Give every value its new type, and every function its new signature.

    Args:
      graph: the module; ops that are not right on the new types have to be replaced before.
      becomes: element types and those that they become.
      kept: values that keep theirs.
      inside: nodes in whose regions nothing changes.
    """
    functions: list[Function] = []
    skipped: set[mlir.RawOperation] = set()
    for node in inside:
        for block in node.blocks:
            for inner in block.nodes:
                skipped.update(mlir.operations_within(inner.raw))

    def change(value: Value) -> None:
        if value not in kept and value.is_tensor and value.element_type in becomes:
            mlir.set_type(value.raw, storage_type(value.raw.type, becomes))

    for node in graph.nodes():
        if node.raw in skipped:
            continue
        for value in node.results:
            change(value)
        if node not in inside:
            for block in node.blocks:
                for argument in block.arguments:
                    change(argument)
        if node.name == "func.func":
            functions.append(Function(node))
    for function in functions:
        if function.has_body:
            mlir.set_signature(function.node.raw)
        else:
            mlir.set_declared_signature(function.node.raw, lambda raw_type: storage_type(raw_type, becomes))


def recode(node: Node, values: np.ndarray[Any, Any], becomes: ElementTypes) -> None:
    """Give a constant these numbers, or the nearest ones of the type that its own becomes."""
    dtype = _dtype(becomes[node.result().element_type])
    if mlir.is_splat(node.raw):
        values = values.reshape(-1)[:1]
    with np.errstate(all="ignore"):
        given = values.astype(dtype)
    node.raw.attributes["value"] = mlir.dense_attribute(given, storage_type(node.result().raw.type, becomes))


def erase_same(nodes: Iterable[Node]) -> None:
    """Erase those of the nodes that convert to the type that is there already."""
    for node in nodes:
        if node.name == CONVERT and node.operand(0).raw.type == node.result().raw.type:
            node.result().raw.replace_all_uses_with(node.operand(0).raw)
            node.raw.erase()


def with_avals(graph: Graph, becomes: ElementTypes) -> jax.export.Exported | None:
    """The `Exported` that a graph came from, with its new signature; None where it came from none."""
    exported: jax.export.Exported | None = graph.exported
    if exported is None:
        return None
    dtypes = {_dtype(before): (_dtype(after.removeprefix(TWO)), after) for before, after in becomes.items()}

    def aval(given: Any) -> Any:
        if given.dtype not in dtypes:
            return given
        dtype, after = dtypes[given.dtype]
        return given.update(dtype=dtype, shape=(*given.shape, 2) if after.startswith(TWO) else given.shape)

    return replace(
        exported,
        in_avals=tuple(map(aval, exported.in_avals)),
        out_avals=tuple(map(aval, exported.out_avals)),
        mlir_module_serialized=mlir.module_portable_artifact(graph.module),
        uses_global_constants=False,
    )


def _dtype(element: str) -> np.dtype[Any]:
    found = mlir.dtype_of(element)
    assert found is not None
    return found


# --- element types that a target has no room for: what holds values of them holds integers that stand for them ---
#
# The stage of element types has put every op on carriers, so that such a type is left only in casts and in what moves
# values whole: functions, loops, branches. Here all of that gets the carrier's type, and the casts go.


MOVING = CONTROL | ops_with(role=Role.ENDS) | {OPTIMIZATION_BARRIER, "func.func", "func.return", "func.call"}
"""Ops that hold or pass on values of any type."""

NAMING = frozenset({COMPOSITE, CUSTOM_CALL})
"""Ops that may take a function by its name, with types that are not known."""


def store(graph: Graph, target: Target) -> Demotion | None:
    """Give values of types that the target has no room for the types that they are carried in, in place.

    Args:
      graph: the module after the stage of element types.
      target: the target.

    Returns:
      What changed, arguments and results included; None where there is no such value, or where a function that is named
      otherwise than by a call, or a region that takes such a value from outside, stands in the way. An op that has no
      form on carriers keeps its types, between casts.
    """
    if target.dtypes is None and not target.refused_dtypes:
        return None
    carriers = _carriers(graph, target)
    if not carriers:
        return None
    nodes = [node for node in graph.nodes() if not carriers.keys().isdisjoint(dtypes_on(node))]
    casts = [node for node in nodes if _is_cast(node, carriers)]
    passing = set(casts)
    blocked = [node for node in nodes if node.name not in MOVING and node not in passing]
    outer = set(blocked)
    blocked = [node for node in blocked if not _is_within(node, outer)]
    casts = [node for node in casts if not _is_within(node, outer)]
    if any(node.name in NAMING or _captures(node, carriers) for node in blocked) or _is_sharded(graph, carriers):
        return None
    told = Demotion.of(graph, nodes, {before: _after(carrier) for before, carrier in carriers.items()})
    with mlir.active(graph.context):
        kept: set[Value] = set()
        for node in blocked:
            casts += _set_apart(node, carriers, kept)
        becomes = {b: (TWO if c.form is Form.PARTS else "") + c.after for b, c in carriers.items()}
        retype(graph, becomes, kept, [node for node in blocked if node.has_regions])
        for node in casts:
            node.result().raw.replace_all_uses_with(node.operand(0).raw)
            node.raw.erase()
    graph.forget()
    realize(graph)
    graph.exported = with_avals(graph, becomes)
    return told


def _after(carrier: Carrier) -> After:
    return After(carrier.after, carrier.cast, carrier.form is Form.PARTS)


def _is_sharded(graph: Graph, carriers: Mapping[str, Carrier]) -> bool:
    """Whether an argument or a result that would get a dim more is spread over devices, of which its sharding says."""
    if all(carrier.form is not Form.PARTS for carrier in carriers.values()):
        return False
    named = (str(f.node.attribute(name)) for f in graph.functions.values() for name in SIGNATURE_ATTRIBUTES)
    return any("sharding" in text for text in named)


def unmark(graph: Graph) -> None:
    """Take away what the stage of element types wrote on casts."""
    for node in graph.nodes():
        if node.attribute(MARK) is not None:
            del node.raw.attributes[MARK]


def _carriers(graph: Graph, target: Target) -> Mapping[str, Carrier]:
    """For each type of the module's values that the target has no room for what it is stored in."""
    found = {dtype for node in graph.nodes() for dtype in dtypes_on(node)}
    stored = {dtype: storage_of(target, dtype) for dtype in sorted(found)}
    return {dtype: carrier for dtype, carrier in stored.items() if carrier is not None}


def _is_cast(node: Node, carriers: Mapping[str, Carrier]) -> bool:
    """Whether an op takes a value to its carrier or back, and so changes nothing once that is its type.

    A conversion to a narrow type is one only where the stage wrote it: of any number it takes what fits.
    """
    if node.name not in (CONVERT, BITCAST_CONVERT, PAIRED):
        return False
    before, after = node.operand(0).element_type, node.result().element_type
    if before in carriers:
        return carriers[before].after == after and carriers[before].cast == node.name
    carrier = carriers[after]
    is_ours = carrier.form in (Form.SIGNED, Form.PARTS) or node.attribute(MARK) is not None
    return carrier.after == before and carrier.cast == node.name and is_ours


def _captures(node: Node, carriers: Mapping[str, Carrier]) -> bool:
    """Whether a node's region takes a value that would change from outside of it."""
    return any(value.is_tensor and value.element_type in carriers for value in captured_values(*node.blocks))


def _is_within(node: Node, others: Collection[Node]) -> bool:
    parent = node.parent
    while parent is not None and parent not in others:
        parent = parent.parent
    return parent is not None


def _set_apart(node: Node, carriers: Mapping[str, Carrier], kept: set[Value]) -> list[Node]:
    """Put casts around an op that keeps its types; gives those that change nothing once its neighbours have others."""
    before, going, known = Builder.before(node), list[Node](), dict[Value, Value]()
    for number, value in enumerate(node.operands):
        carrier = carriers.get(value.element_type) if value.is_tensor else None
        if carrier is not None:
            if value not in known:
                there = before.op(carrier.cast, [value], [carrier.type_of(value.shape)])
                known[value] = before.op(carrier.cast, [there.result()], [value.raw.type]).result()
                kept.add(known[value])
                going.append(there)
            node.raw.operands[number] = known[value].raw
    after = Builder(mlir.insert_after(node.raw), node.raw.location)
    for value in node.results:
        carrier = carriers.get(value.element_type) if value.is_tensor else None
        if carrier is not None:
            users = [(use.owner, use.operand_number) for use in value.raw.uses]
            there = after.op(carrier.cast, [value], [carrier.type_of(value.shape)])
            back = after.op(carrier.cast, [there.result()], [value.raw.type])
            for owner, place in users:
                owner.operands[place] = back.result().raw
            kept.add(value)
            going.append(back)
    return going


def stored_lines(storage: Demotion) -> Iterator[str]:
    """What changed of the signature, a line for each argument and result; one line where nothing of it did."""
    for value in (*storage.arguments, *storage.results):
        how = "the same bits" if value.cast == BITCAST_CONVERT else "the same numbers"
        how = "real and imaginary parts along a last dim of 2" if value.is_pair else how
        yield f"{value.name} of @{storage.entry}, {value.before}, as {value.after}: {how}"
    if not storage.arguments and not storage.results:
        yield f"{storage.values} values within the module in other types"


def as_given(before: str, after: str, target: Target) -> str:
    """A module under the signature of the one that it was made of, where that is stored in other types.

    Args:
      before, after: the two versions.
      target: whom the second one is for; only types that it has no room for count.
    """
    if target.dtypes is None and not target.refused_dtypes:
        return after
    one, other = (read(text, contained=False) for text in (before, after))
    arguments = _changed_storage("argument", one.main.body.arguments, other.main.body.arguments, target)
    results = _changed_storage("result", one.main.body.terminator.operands, other.main.body.terminator.operands, target)
    if arguments is None or results is None or not (arguments or results):
        return after
    return with_original_signature(after, Demotion(other.main.name, arguments, results, 1, ()))


def _changed_storage(
    what: str, before: Sequence[Value], after: Sequence[Value], target: Target
) -> tuple[DemotedValue, ...] | None:
    """The arguments or results that are stored in another type; None where any differs otherwise."""
    found: list[DemotedValue] = []
    if len(before) != len(after):
        return None
    for number, (one, other) in enumerate(zip(before, after, strict=True)):
        if str(one.raw.type) == str(other.raw.type):  # types of two modules
            continue
        carrier = storage_of(target, one.element_type) if one.is_tensor and other.is_tensor else None
        if carrier is None or (carrier.after, carrier.shape_of(one.shape)) != (other.element_type, other.shape):
            return None
        found.append(DemotedValue.of(what, number, one, _after(carrier)))
    return tuple(found)
