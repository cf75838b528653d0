"""Rewrite a module of plain StableHLO to linalg on tensors: jaxlib's own pass, and around it what that leaves behind.

what it does not take   in other words
nearly everything       stablehlo-legalize-to-linalg, in named ops where it knows one
unsigned types          signless ones
bounds of open dims     none: a dim is open, and the bound is reported
strided writes          tensor.insert_slice
softmax, if named       linalg.softmax
scalars that are read   arith, each clamped once
sizes at run time       tensor.dim, insert_slice, reshape
while, if, case         scf.for, scf.while, scf.if
loops in any order      scf.forall, if that is asked for
shardings               removed, and reported
generic products        linalg.matmul, contract, convolutions, poolings
all named ops           linalg.generic, if that is asked for
"""

import re
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod

from hlo_lower.base.errors import NotLoweredError
from hlo_lower.base.short_forms import by_count
from hlo_lower.ir import mlir
from hlo_lower.ir.builder import Builder
from hlo_lower.ir.view import Graph, Node, Value
from hlo_lower.lowering.engine.attributes import of_dialects, remove_foreign
from hlo_lower.lowering.linalg.control_flow import CONTROL, DYNAMIC, lower_control, lower_dynamic, mark_counted
from hlo_lower.lowering.linalg.in_place import write_in_place
from hlo_lower.lowering.linalg.loops import (
    ParallelLoops,
    inline_into_loops,
    lower_parallel,
    put_in_plain_places,
    replace_all,
    step_by_size,
)
from hlo_lower.lowering.linalg.open_softmax import SOFTMAX, name_open_softmax
from hlo_lower.lowering.linalg.open_windows import convolution, windows
from hlo_lower.lowering.linalg.products import fold_into_products
from hlo_lower.lowering.linalg.scalars import drop_clamps, mark_assumed, read_scalars, unmark_assumed
from hlo_lower.lowering.linalg.structured_ops import generalize, specialize
from hlo_lower.lowering.linalg.unit_dims import drop_unit_dims, moves_units_alone
from hlo_lower.lowering.plain.chlo import TO_STABLEHLO
from hlo_lower.lowering.scatter.constant import INSERT_SLICE, read_place
from hlo_lower.ops import names

# --- what a module in linalg still holds that a reader of linalg may not know ---


PLAIN = frozenset({"affine", "arith", "builtin", "complex", "func", "linalg", "math", "scf", "tensor"})
"""The dialects that a linalg pipeline reads."""

CAST = "builtin.unrealized_conversion_cast"


@dataclass(frozen=True)
class LinalgReport:
    """How a module has left in linalg.

    Attributes:
      named: whether elementwise ops, reductions and transposes are named ops (else `linalg.generic`).
      left: the operations of other dialects that are still there, by name, each with how many; a custom call with
        its target.
      removed: attributes that were taken off because only StableHLO's readers know them, by name, each with how many.
      counted_loops: loops that became `scf.for`.
      other_loops: loops that became `scf.while`.
      signless: unsigned element types that became signless ones, as linalg has no others: "ui32".
      parallel_loops: loops that became `scf.forall`.
      in_order: where that was asked for and is not so, a place and why.
    """

    named: bool
    left: tuple[tuple[str, int], ...] = ()
    removed: tuple[tuple[str, int], ...] = ()
    counted_loops: int = 0
    other_loops: int = 0
    signless: tuple[str, ...] = ()
    parallel_loops: int = 0
    in_order: tuple[str, ...] = ()

    @property
    def is_complete(self) -> bool:
        """Whether no operation of another dialect is left."""
        return not self.left

    def summary(self) -> str:
        """What is left, in a line."""
        form = "named ops" if self.named else "generic ops"
        return f"linalg in {form}, {'complete' if self.is_complete else f'left: {_describe_counts(self.left)}'}"

    def lines(self) -> tuple[str, ...]:
        """The whole report, a line for each thing that there is to tell."""
        told = [self.summary()]
        if self.counted_loops or self.other_loops or self.parallel_loops:
            parallel = f"{self.parallel_loops} scf.forall, " if self.parallel_loops else ""
            told.append(f"loops: {parallel}{self.counted_loops} scf.for, {self.other_loops} scf.while")
        told += [f"in order: {loop}" for loop in self.in_order]
        if self.removed:
            told.append(f"attributes removed: {_describe_counts(self.removed)}")
        if self.signless:
            told.append(f"signless now: {', '.join(self.signless)}")
        return tuple(told)


def _describe_counts(counts: tuple[tuple[str, int], ...]) -> str:
    return ", ".join(f"{count} {name}" for name, count in counts)


def is_foreign(node: Node) -> bool:
    """Whether a node is of a dialect that a linalg pipeline does not read."""
    return node.name.split(".")[0] not in PLAIN or node.name == CAST


def left_in(graph: Graph) -> tuple[tuple[str, int], ...]:
    """The foreign operations of a module by name, the most frequent first; what ends a region belongs to its op."""
    counts = Counter(_name(node) for node in graph.nodes() if is_foreign(node) and node.name != names.RETURN)
    return tuple(by_count(counts).items())


def _name(node: Node) -> str:
    target = node.attribute("call_target_name")
    return node.name if target is None else f"{node.name} @{mlir.symbol_name(target)}"


# --- composites that stand for an operation that StableHLO lacks, as that operation ---
#
# Their decompositions say the same in plain StableHLO: so every oracle runs the module before it leaves, and here
#
# composite "hlo_lower.insert_slice" %operand, %update   %r = tensor.insert_slice %update into %operand[..] [..] [..]
# composite "linalg.softmax" %x {dimension = 1}          %r = linalg.softmax dimension(1) ins(%x) outs(%empty)
#
# The first is a write with strides, of a lowering for linalg; the second a named op that the target takes by that name
# (`[[named]]` in its file). It has no region: MLIR decomposes it into the maximum of a row, the exponentials of what is
# left, their sum, and quotients.


def names_of(*, named: bool) -> tuple[str, ...]:
    """The names of the composites that leave as operations; those of named ops only where such are asked for."""
    return tuple(name for name in _LOWERINGS if named or name != SOFTMAX)


def composite_name(node: Node) -> str:
    """The name of a composite; "" of what is none."""
    name = node.attribute("name") if node.name == names.COMPOSITE else None
    return "" if name is None else mlir.symbol_name(name)


def lower_composites(graph: Graph) -> None:
    """Replace the composites that stand for operations by these."""
    with mlir.active(graph.context):
        for node in [node for node in graph.nodes() if composite_name(node) in _LOWERINGS]:
            new = _LOWERINGS[composite_name(node)](Builder.before(node), node)
            replace_all(node.results, new.results)
            node.raw.erase()


def _insert_slice(build: Builder, node: Node) -> Node:
    operand, update = node.operands
    offsets, strides = read_place(node)
    attributes = {
        "static_offsets": mlir.dense_i64(offsets),
        "static_sizes": mlir.dense_i64(update.static_shape),
        "static_strides": mlir.dense_i64(strides),
        "operandSegmentSizes": mlir.parse_attribute("array<i32: 1, 1, 0, 0, 0>"),
    }
    return build.op("tensor.insert_slice", [update, operand], [operand.raw.type], attributes)


def _softmax(build: Builder, node: Node) -> Node:
    """One of a narrow type is computed in f32, as the composite says, between conversions that jaxlib's pass takes
    next."""
    [x], [result] = node.operands, node.results
    dimension = mlir.entries_of(node.raw.attributes["composite_attributes"])["dimension"]
    wide = x if x.element_type in ("f32", "f64") else build.convert(x, "f32")
    empty = build.op("tensor.empty", [], [wide.raw.type]).result()
    made = build.op(SOFTMAX, [wide, empty], [wide.raw.type], {"dimension": dimension})
    narrow = build.convert(made.result(), result.element_type).node
    assert narrow is not None
    return narrow


_LOWERINGS: Mapping[str, Callable[[Builder, Node], Node]] = {INSERT_SLICE: _insert_slice, SOFTMAX: _softmax}


# --- make a module ready for jaxlib's pass to linalg ---
#
# What that pass does not take, or takes wrongly, in other words.
#
# chlo                                      plain StableHLO, by jaxlib's own pass
# composites without an op of their own     calls of their decompositions, by jaxlib's own pass
# slices, pads, windows without elements    an empty constant: tensor.extract_slice has no start behind the last element
# broadcast of an unsigned scalar           broadcast of one element: the named form does not verify
# reduce over no dims, or of no elements    the operand; the initial value: the pass leaves both
# windows of open sizes, dynamic_conv       linalg.generic (`open_windows.py`)
# transpose of dims of extent 1 alone       reshape
# optimization_barrier                      nothing: it orders a compiler's work, which linalg does not know


def passes_before(graph: Graph, *, named: bool) -> tuple[str, ...]:
    """The passes of jaxlib that a module needs first."""
    kept = names_of(named=named)
    found: set[str] = set()
    for node in graph.nodes():
        if node.name.startswith("chlo."):
            found.add(TO_STABLEHLO)
        elif node.name == names.COMPOSITE and composite_name(node) not in kept:
            found.add(f"func.func(stablehlo-legalize-composite-to-call{{except={','.join(kept)}}})")
    return tuple(sorted(found))


def prepare(graph: Graph) -> None:
    """Replace the operations that jaxlib's pass does not take; the module stays StableHLO."""
    with mlir.active(graph.context):
        for node in [node for node in graph.nodes() if node.name in _REWRITES]:
            values = _REWRITES[node.name](Builder.before(node), node)
            if values is not None:
                replace_all(node.results, values)
                node.raw.erase()


def _broadcast(build: Builder, node: Node) -> Sequence[Value] | None:
    """Between casts, which `make_signless` takes away again."""
    value, result = node.operand(0), node.result()
    if not value.element.is_unsigned or not value.is_static or prod(value.static_shape) != 1:
        return None
    element = value.element.signed_type
    plain = build.op(CAST, [value], [mlir.tensor_type(value.shape, element)]).result()
    wide = build.clone(node, [plain], [mlir.tensor_type(result.shape, element)]).result()
    return build.op(CAST, [wide], [result.raw.type]).results


def _empty_results(build: Builder, node: Node) -> Sequence[Value] | None:
    """Constants for an op whose results all have no elements; None for any other op."""
    if not all(result.is_static and not prod(result.static_shape) for result in node.results):
        return None
    types = [result.raw.type for result in node.results]
    values = [{"value": mlir.parse_attribute(f"dense<> : {raw_type}")} for raw_type in types]
    return [
        build.op(names.CONSTANT, [], [raw_type], value).result() for raw_type, value in zip(types, values, strict=True)
    ]


def _reduce(build: Builder, node: Node) -> Sequence[Value] | None:
    """Of no elements: the initial value. Over no dims: in place, over one of extent 1 put behind the others."""
    half = len(node.results)
    inputs, initial = node.operands[:half], node.operands[half:]
    if not all(value.is_static for value in inputs):
        return None
    shape = inputs[0].static_shape
    if not prod(shape):
        return [build.broadcast(value, node.result().static_shape) for value in initial]
    if not node.integers("dimensions"):
        for number, value in enumerate(inputs):
            node.raw.operands[number] = build.reshape(value, (*shape, 1)).raw
        node.raw.attributes["dimensions"] = mlir.dense_i64([len(shape)])
    return None


def _transpose(build: Builder, node: Node) -> Sequence[Value] | None:
    """A reshape, where dims of extent 1 move alone."""
    return [build.reshape(node.operand(0), node.result().static_shape)] if moves_units_alone(node) else None


_REWRITES: Mapping[str, Callable[[Builder, Node], Sequence[Value] | None]] = {
    names.BROADCAST_IN_DIM: _broadcast,
    names.REDUCE: _reduce,
    names.SLICE: _empty_results,
    names.PAD: _empty_results,
    names.REDUCE_WINDOW: lambda build, node: _empty_results(build, node) or windows(build, node),
    names.CONVOLUTION: lambda build, node: _empty_results(build, node) or convolution(build, node),
    names.DYNAMIC_CONV: convolution,
    names.OPTIMIZATION_BARRIER: lambda _, node: node.operands,
    names.TRANSPOSE: _transpose,
}


# --- integers without signs: linalg has no `ui32`, its operations know how they read their bits ---
#
# jaxlib's pass reads unsigned types into its operations, but leaves them at the borders: in the signatures of
# functions, in what loops carry, and in casts to and fro. Here every such type becomes the signless one of the same
# width, and the casts between equals go. An operation that is left as it is may read the sign: it keeps its types,
# between casts.


UNSIGNED = re.compile(r"(?<![A-WYZa-wyz_])ui(\d+)\b")
"""An unsigned type, in the text of a type: `ui32` of `tensor<4xui32>`."""


def make_signless(graph: Graph, rewritten: Collection[str]) -> tuple[str, ...]:
    """Make every unsigned type of a module signless.

    Args:
      graph: the module, after jaxlib's pass.
      rewritten: operations of other dialects that are going to be replaced; the others keep their types.

    Returns:
      The unsigned types that there were.
    """
    nodes = graph.nodes()
    with mlir.active(graph.context):
        types = _Types()
        if not any(types.signless(value) for node in nodes for value in _values(node)):
            return ()
        keeps = [_keeps_types(node, rewritten) for node in nodes]
        for node, is_kept in zip(nodes, keeps, strict=True):
            if is_kept:
                _fence(node, types)
        for node, is_kept in zip(nodes, keeps, strict=True):
            if not is_kept:
                _retype(node, types)
        for node in nodes:
            if node.name == CAST and [v.raw.type for v in node.operands] == [v.raw.type for v in node.results]:
                mlir.replace_results(node.raw, node.raw.operands)
                node.raw.erase()
    return tuple(sorted(types.found))


@dataclass
class _Types:
    """Types without signs, each found once: printing a type takes long.

    Attributes:
      found: the unsigned element types that were met.
    """

    found: set[str] = field(default_factory=set[str])
    _known: dict[mlir.RawType, mlir.RawType | None] = field(default_factory=dict[mlir.RawType, mlir.RawType | None])

    def signless(self, value: Value) -> mlir.RawType | None:
        """The type of a value without signs, or None where it has none."""
        raw_type = value.raw.type
        if raw_type not in self._known:
            text = str(raw_type)
            unsigned = {m[0] for m in UNSIGNED.finditer(text)}
            self.found |= unsigned
            self._known[raw_type] = mlir.parse_type(UNSIGNED.sub(r"i\1", text)) if unsigned else None
        return self._known[raw_type]


def _values(node: Node) -> list[Value]:
    return [*node.results, *_arguments(node)]


def _arguments(node: Node) -> list[Value]:
    return [argument for block in node.blocks for argument in block.arguments] if node.has_regions else []


def _keeps_types(node: Node, rewritten: Collection[str]) -> bool:
    """Whether a node is one that is left as it is, or ends a region of such a one."""
    if node.name == names.RETURN:
        parent = node.parent
        return parent is not None and _keeps_types(parent, rewritten)
    return is_foreign(node) and node.name != CAST and node.name not in rewritten


def _fence(node: Node, types: _Types) -> None:
    """Put casts around an operation that keeps its types: in front of operands, behind results and arguments."""
    before = Builder.before(node)
    for number, operand in enumerate(node.operands):
        if types.signless(operand) is not None:
            node.raw.operands[number] = before.op(CAST, [operand], [operand.raw.type]).result().raw
    for result in node.results:
        if (plain := types.signless(result)) is not None:
            cast = before.op(CAST, [result], [plain])
            cast.raw.move_after(node.raw)
            _put_behind(result, cast)
    for argument in _arguments(node):
        if (plain := types.signless(argument)) is not None:
            block = argument.block
            assert block is not None
            cast = Builder(mlir.insert_at_begin(block.raw), node.raw.location).op(CAST, [argument], [plain])
            _put_behind(argument, cast)


def _put_behind(value: Value, cast: Node) -> None:
    value.raw.replace_all_uses_with(cast.result().raw)
    cast.raw.operands[0] = value.raw


def _retype(node: Node, types: _Types) -> None:
    """Give the results of a node, the arguments of its regions and the signature of a function their signless types."""
    for value in _values(node):
        plain = types.signless(value)
        if plain is not None:
            mlir.set_type(value.raw, plain)
    signature = node.attribute("function_type") if node.name == "func.func" else None
    if signature is not None and UNSIGNED.search(str(signature)):
        node.raw.attributes["function_type"] = mlir.parse_attribute(UNSIGNED.sub(r"i\1", str(signature)))


# --- bounds of open dims: an attribute of StableHLO in the type of a tensor, which no reader of linalg knows ---


BOUNDS = re.compile(r", #stablehlo\.bounds<[^>]*>")
"""The bounds in the text of a type: `tensor<?x8xf32, #stablehlo.bounds<4, ?>>`."""


def drop_bounds(graph: Graph) -> int:
    """Take the bounds off the types of a module; how many values had some."""
    count = 0
    with mlir.active(graph.context):
        for node in graph.nodes():
            for value in _values(node):
                if BOUNDS.search(text := str(value.raw.type)):
                    mlir.set_type(value.raw, mlir.parse_type(BOUNDS.sub("", text)))
                    count += 1
            signature = node.attribute("function_type") if node.name == "func.func" else None
            if signature is not None and BOUNDS.search(str(signature)):
                node.raw.attributes["function_type"] = mlir.parse_attribute(BOUNDS.sub("", str(signature)))
    return count


# --- the whole way ---


REWRITTEN = CONTROL | DYNAMIC | {names.COMPOSITE}
"""Operations that jaxlib's pass leaves and that are replaced here."""

STABLEHLO_DIALECTS = ("sdy", "mhlo", "stablehlo", "chlo", "mpmd")
"""Those whose attributes no reader of linalg knows."""

TO_LINALG, SIMPLIFY = "stablehlo-legalize-to-linalg{enable-primitive-ops=true}", "canonicalize,cse"


def to_linalg(graph: Graph, *, named: bool, parallel: bool = False) -> LinalgReport:
    """Rewrite a module to linalg on tensors, in place.

    Args:
      graph: a module whose scatters are lowered; it is read anew from here on.
      named: write named operations where there are any (`linalg.softmax`, `matmul`, `reduce`, `map`, ...); otherwise
        the same module in `linalg.generic`, softmax in its plain ops.
      parallel: emit counted loops whose iterations do not meet as `scf.forall`.

    Returns:
      What is left of other dialects, and what changed besides.

    Raises:
      NotLoweredError: jaxlib's pass fails, or what it made does not verify.
    """
    for pipeline in passes_before(graph, named=named):
        _run(graph, pipeline)
    mlir.load_linalg(graph.context)
    prepare(graph)
    mark_assumed(graph)
    mark_counted(graph)
    _run(graph, TO_LINALG)
    lower_composites(graph)
    _run(graph, TO_LINALG)  # the conversions that these built
    signless = make_signless(graph, REWRITTEN)
    lower_dynamic(graph)
    counted, others = lower_control(graph)
    bounds = drop_bounds(graph)
    removed = remove_foreign(graph, of_dialects(*STABLEHLO_DIALECTS), is_foreign)
    removed += (("stablehlo.bounds", bounds),) * (bounds > 0)
    _run(graph, SIMPLIFY)
    for change in (read_scalars, drop_clamps, unmark_assumed, drop_unit_dims):
        if change(graph):
            _run(graph, SIMPLIFY)
    if parallel and inline_into_loops(graph):
        _run(graph, SIMPLIFY)
    loops = lower_parallel(graph) if parallel else ParallelLoops()
    for change in (put_in_plain_places, step_by_size):
        if change(graph):
            _run(graph, SIMPLIFY)
    if fold_into_products(graph):
        _run(graph, SIMPLIFY)
    if named and name_open_softmax(graph):
        _run(graph, SIMPLIFY)
    specialize(graph)
    if loops.count and write_in_place(graph):
        _run(graph, SIMPLIFY)
    _check(graph)  # which notes the maps of strides and dilations, too
    if not named:
        generalize(graph)
        _check(graph)
    _run(graph, "symbol-dce")
    counted = counted - loops.count
    return LinalgReport(named, left_in(graph), removed, counted, others, signless, loops.count, loops.in_order)


def _run(graph: Graph, pipeline: str) -> None:
    try:
        mlir.run_pass(graph.module.operation, f"builtin.module({pipeline})")
    except mlir.PassError as error:
        raise _not_lowered(graph, f"{pipeline}: {error}") from None


def _check(graph: Graph) -> None:
    problem = mlir.verify_module(graph.module)
    if problem is not None:
        raise _not_lowered(graph, f"the module in linalg does not verify: {problem}")


def _not_lowered(graph: Graph, what: str) -> NotLoweredError:
    return NotLoweredError(graph.name, what, next_step="--target stablehlo writes the module without linalg")
