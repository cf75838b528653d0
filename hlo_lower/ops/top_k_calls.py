"""XLA's own custom calls for the largest elements: `TopK`, and `ApproxTopK` where all of them are asked for.

    %v, %i = custom_call @TopK(%x) {called_computations = [@greater]}
    %v, %i = custom_call @ApproxTopK(%x, %iota, %least, %none) {mhlo.backend_config = {aggregate_to_topk = true, ...}}

Both are `chlo.top_k` of the first operand, whose k is the last extent of the results: the function that they call says
that greater elements come first, and XLA on a CPU computes them so, NaN as in a total order. What is approximate may
miss some of them, and need not.
"""

from collections.abc import Mapping

from hlo_lower.base.causes import Cause, Code
from hlo_lower.ir import mlir
from hlo_lower.ir.view import Block, Function, Node
from hlo_lower.ops.names import COMPARE, IOTA

EXACT, APPROXIMATE = "TopK", "ApproxTopK"
NAMES = frozenset({EXACT, APPROXIMATE})

CONFIGURED = "mhlo.backend_config"
OF_HOW_WELL = frozenset({"is_fallback", "recall_target", "reduction_input_size_override", "top_k"})
"""What is said of an approximation besides where it looks and what it gives."""

UNSAID = {"backend_config": ('""', "{}"), "has_side_effect": ("false",)}
"""Attributes that say nothing where they have these values."""

READ = frozenset({"call_target_name", "called_computations", "api_version", *UNSAID})


def count_of(node: Node) -> int:
    """How many elements it gives of each row."""
    return node.result(0).static_shape[-1]


def why_no_top_k(node: Node) -> Cause | None:
    """Why such a call may be something else than the largest elements with their places; None where it is that."""
    attributes = mlir.attributes_of(node.raw)
    is_exact = mlir.call_target(node.raw) == EXACT
    more = set(attributes) - READ - (set[str]() if is_exact else {CONFIGURED})
    more |= {key for key, values in UNSAID.items() if key in attributes and str(attributes[key]) not in values}
    if more:
        return Code.NAME_IN_DOUBT(min(more))
    if not _are_largest(node) or (not is_exact and not _is_of_all(node, mlir.entries_of(attributes[CONFIGURED]))):
        return Code.NOT_TOP_K()
    if _puts_greater_first(node) or (not is_exact and comparator_of(node) is not None):
        return None
    return Code.TOP_K_OF_SMALLEST()


def comparator_of(node: Node) -> Block | None:
    """The function by which an approximate one sorts, where that is another order than of the greatest first; None of
    any other call.

    XLA on a CPU sorts by it, as it stands, and takes the first elements: which come first where it is no order, as of
    NaN, is left to the sort.
    """
    if mlir.call_target(node.raw) != APPROXIMATE or _puts_greater_first(node):
        return None
    body = _called(node)
    values, place = node.operand(0).element_type, node.result(1).element_type
    wanted = [(element, ()) for element in (values, values, place, place)]
    has_form = body is not None and [(a.element_type, a.shape) for a in body.arguments] == wanted
    return body if has_form else None


def _are_largest(node: Node) -> bool:
    """Whether it has the operands and results of the largest elements of rows."""
    if not node.is_static or len(node.results) != 2 or not node.operand(0).static_shape:
        return False
    given, (values, places) = node.operand(0), node.results
    is_narrower = values.static_shape[:-1] == given.static_shape[:-1] and count_of(node) <= given.static_shape[-1]
    is_typed = (values.element_type, places.element_type) == (given.element_type, "i32")
    return is_narrower and is_typed and places.static_shape == values.static_shape


def _is_of_all(node: Node, told: Mapping[str, mlir.RawAttribute]) -> bool:
    """Whether an approximate one looks along the last dim, and gives the largest of all with their places."""
    if len(node.operands) != 4 or set(told) - OF_HOW_WELL != {"aggregate_to_topk", "reduction_dim"}:
        return False
    last, numbers = len(node.operand(0).static_shape) - 1, node.operand(1).node
    is_numbered = numbers is not None and numbers.name == IOTA and numbers.integer("iota_dimension") == last
    is_last = mlir.integer_of(told["reduction_dim"]) == last
    return is_numbered and is_last and str(told["aggregate_to_topk"]) == "true"


def _puts_greater_first(node: Node) -> bool:
    """Whether the function that it calls says that the first one of two elements is greater."""
    body = _called(node)
    returned = None if body is None else body.terminator.operand(0).node
    if body is None or returned is None or returned.name != COMPARE:
        return False
    is_greater = mlir.enum_value(returned.attribute("comparison_direction")) == "GT"
    return is_greater and list(returned.operands) == list(body.arguments[:2])


def _called(node: Node) -> Block | None:
    """The body of the one function that a custom call names as its own."""
    names = mlir.attributes_of(node.raw).get("called_computations")
    called = [] if names is None else [mlir.symbol_name(name) for name in names]
    top = node.raw
    while top.parent is not None:
        top = top.parent
    functions = (Node(raw.operation, node.module) for raw in top.regions[0].blocks[0].operations)
    bodies = [f.blocks[0] for f in functions if f.name == "func.func" and [Function(f).name] == called and f.blocks]
    return bodies[0] if bodies else None
