"""One form for what a module means, whoever wrote it: what is done before it becomes linalg.

A bias is broadcast in one step or in two, a layer of rank 3 is a product or one between two reshapes, relu is a call
or a maximum of either side. Each is written here in one of its ways, while the module is StableHLO:

subject                                       its forms
small functions that are called               here: their ops
reshapes, broadcasts, slices                  `moved_forms.py`
transposes, and what they move through        `turned_forms.py`
reductions                                    `reduction_forms.py`
convolutions                                  `convolution_forms.py`
elementwise ops                               `elementwise_forms.py`
products                                      `product_forms.py`

Equal, to the bit: elements are moved, and the same numbers are computed of the same numbers in the same types.
Products are summed in the order of the dims that are summed, as before.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

from hlo_lower.ir import mlir
from hlo_lower.ir.builder import Builder
from hlo_lower.ir.view import Function, Graph, Node, Value
from hlo_lower.lowering.linalg.convolution_forms import convolution_of_sources, reshape_of_convolution
from hlo_lower.lowering.linalg.elementwise_forms import (
    NEUTRAL,
    as_clamp,
    as_logistic,
    as_relu,
    clamp_of_numbers,
    of_broadcasts,
    of_negated,
    order_comparison,
    second_last,
    simplify_convert,
    without_neutral,
)
from hlo_lower.lowering.linalg.groups import NAMED
from hlo_lower.lowering.linalg.moved_forms import broadcast_once, reshaped_once, sliced_whole
from hlo_lower.lowering.linalg.open_sizes import RESHAPES, SPREADS, given_sizes, sink_sizes
from hlo_lower.lowering.linalg.product_forms import product_of_convolution, product_of_sources
from hlo_lower.lowering.linalg.reduction_forms import reduce_of_sources, reduce_of_window
from hlo_lower.lowering.linalg.turned_forms import dim_by_dim_of_sources, transposed_once
from hlo_lower.ops import names
from hlo_lower.ops.spec import COMBINING, ELEMENTWISE

SMALL = 16
"""Ops that a function has at most whose calls become its ops."""

MOST_ROUNDS = 32
"""Rounds in which something is rewritten: a chain of so many reshapes through ops is longer than any that was met."""

Rule = Callable[[Builder, Node], Value | None]
"""What stands for the one result of a node; None where it stays."""


Told = Callable[[mlir.RawValue, mlir.RawValue, Collection[mlir.RawOperation], str], None]
"""Called with each rewrite before it is made: the old value, the new one, the ops that were built for the new one, and
the name of the function."""


def one_form(graph: Graph, told: Told | None = None) -> None:
    """Write a module of StableHLO, whose small functions are inlined (`inline_small`), in one form, in place."""
    with mlir.active(graph.context):
        for _ in range(MOST_ROUNDS):
            is_changed = _rewritten(graph, told)
            mlir.run_pass(graph.module.operation, "builtin.module(cse)")  # which erases what nothing reads, too
            if not is_changed:
                break
        sink_sizes(graph)
    graph.forget()


def _rewritten(graph: Graph, told: Told | None) -> bool:
    """Rewrite each node once; whether any was."""
    found = [node for node in graph.nodes() if node.name in _RULES]
    found.sort(
        key=lambda node: node.name != names.DOT_GENERAL
    )  # before what is reshaped for one is, through what makes it
    changed = False
    for node in found:
        for rule in _RULES[node.name]:
            build = Builder.before(node)
            value = rule(build, node)
            if value is not None and value.raw.type == node.result().raw.type and not _is_read(node, build.built):
                if told is not None:
                    built = {one.raw for one in build.built}
                    told(node.result().raw, value.raw, built, graph.function_of(node).name)
                node.result().raw.replace_all_uses_with(value.raw)
                if not node.has_regions:  # whose ops may be among those that are found; nothing reads it, so it goes
                    node.raw.erase()
                changed = True
                break
    return changed


def _is_read(node: Node, built: Iterable[Node]) -> bool:
    """Whether what was built reads the node that it is to replace: a size that is seen of it alone."""
    return any(value == node.result() for one in built for value in one.operands)


# --- functions ---


def inline_small(graph: Graph) -> None:
    """Put the ops of small private functions in the place of their calls, those within them first."""
    with mlir.active(graph.context):
        _inline_small(graph)
    graph.forget()


def _inline_small(graph: Graph) -> None:
    private = {name: f for name, f in graph.functions.items() if f.has_body and not f.is_public}
    small = {name: f for name, f in private.items() if _is_small(f.node) or _takes_sizes(graph, f)}
    for _ in range(SMALL):
        calls = [node for node in graph.nodes() if _is_call_of(small, node)]
        for call in calls:
            values = Builder.before(call).inline(small[call.callee].body, call.operands)
            for result, value in zip(call.results, values, strict=True):
                result.raw.replace_all_uses_with(value.raw)
            call.raw.erase()
        if not calls:
            break
    mlir.run_pass(graph.module.operation, "builtin.module(symbol-dce)")


def _is_call_of(functions: Collection[str], node: Node) -> bool:
    return node.name == "func.call" and node.callee in functions and node.attribute(NAMED) is None


def _is_small(function: Node) -> bool:
    """Whether a function is of few ops, all of them elementwise, calls, or such as move elements."""
    nodes = [Node(raw) for raw in mlir.operations_within(function.raw)][1:]
    known = {*ELEMENTWISE, *RESHAPES, *SPREADS, names.CONSTANT, names.PAD, names.TRANSPOSE, "func.call", "func.return"}
    known |= {names.GET_DIMENSION_SIZE, names.CONCATENATE}
    return len(nodes) <= SMALL and all(node.name in known for node in nodes)


SIZE = "jax.global_constant"
"""The attribute of an argument that is a size of other arguments: what a caller gives for it says which."""


def _takes_sizes(graph: Graph, function: Function) -> bool:
    """Whether a function that is called once takes sizes, as the one does that JAX writes for @main of open sizes."""
    is_called_once = len(graph.calls_of(function.name)) == 1 and not graph.has_other_reference(function.name)
    return is_called_once and SIZE in str(function.node.attribute("arg_attrs"))


# --- the rules ---


def _rules() -> Iterator[tuple[str, tuple[Rule, ...]]]:
    yield names.RESHAPE, (reshaped_once, reshape_of_convolution)
    yield names.DYNAMIC_RESHAPE, (reshaped_once, given_sizes)
    yield names.BROADCAST_IN_DIM, (broadcast_once,)
    yield names.DYNAMIC_BROADCAST_IN_DIM, (broadcast_once, given_sizes)
    yield names.SLICE, (sliced_whole,)
    yield names.TRANSPOSE, (transposed_once,)
    yield names.DOT_GENERAL, (product_of_sources,)
    yield names.CONVOLUTION, (product_of_convolution, convolution_of_sources)
    yield names.REDUCE, (reduce_of_sources,)
    yield names.REDUCE_WINDOW, (reduce_of_window, dim_by_dim_of_sources)
    yield names.PAD, (dim_by_dim_of_sources,)
    for name in ELEMENTWISE:
        own: Mapping[str, tuple[Rule, ...]] = {
            names.CONVERT: (simplify_convert,),
            names.COMPARE: (order_comparison,),
            names.DIVIDE: (as_logistic,),
            names.MINIMUM: (as_clamp,),
            names.MAXIMUM: (as_clamp,),
            names.CLAMP: (clamp_of_numbers,),
            names.SELECT: (of_negated, as_relu),
        }
        commutes = (second_last,) if name in COMBINING else ()
        neutral = (without_neutral,) if name in COMBINING or name in NEUTRAL else ()
        yield name, (*own.get(name, ()), *neutral, *commutes, of_broadcasts)


_RULES: Mapping[str, tuple[Rule, ...]] = dict(_rules())
