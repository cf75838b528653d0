"""Windows that a consumer takes for running sums, does not pad, or has no derivative of."""

from hlo_lower.ir.view import Graph, Node
from hlo_lower.ops import names
from hlo_lower.ops.axes.op_axes import is_neutral, is_one_op
from hlo_lower.ops.bounds import source_of
from hlo_lower.ops.names import REDUCE_WINDOW, SELECT_AND_SCATTER
from hlo_lower.ops.quirks.quirk import Quirk, Rules, module

# --- reduce_window ---


def _whole_dim(node: Node) -> int | None:
    """The dim along which windows are as long as it is, where they have one element along all others and are plain."""
    sizes, shape = node.integers("window_dimensions"), node.operand(0).static_shape
    rank = len(sizes)
    rest = ("window_strides", "window_dilations", "base_dilations")
    longer = [dim for dim, size in enumerate(sizes) if size > 1]
    is_plain = all(set(node.integers(name, (1,) * rank)) <= {1} for name in rest)
    return longer[0] if is_plain and len(longer) == 1 and sizes[longer[0]] == shape[longer[0]] else None


def _padding(node: Node) -> list[tuple[int, int]]:
    """For each dim what stands in front of its elements, and behind them."""
    found = node.padding(len(node.integers("window_dimensions")))
    return list(zip(found[::2], found[1::2], strict=True))


def _is_no_running_sum(_graph: Graph, node: Node) -> bool:
    """Whether windows are as long as a dim, and none of them begins in front of it, or ends behind it, by one more."""
    dim = _whole_dim(node)
    if dim is None:
        return False
    size, padding = node.operand(0).static_shape[dim], _padding(node)
    running = ((size - 1, 0), (0, size - 1), (size, -1), (-1, size))
    return padding[dim] not in running or any(pair != (0, 0) for d, pair in enumerate(padding) if d != dim)


def _is_cut(_graph: Graph, node: Node) -> bool:
    """Whether elements are cut off at an end, and it is no running sum."""
    return _whole_dim(node) is None and any(min(pair) < 0 for pair in _padding(node))


Y = "tensor<4x1xf32>"


def _windows(result: str, window: str, *padding: str, element: str = "f32", start: int = 0) -> str:
    """Sums over windows."""
    scalar, of = f"tensor<{element}>", f"tensor<4x6x{element}>"
    return module(
        f"%x: {of}",
        result,
        f"%i = stablehlo.constant dense<{float(start) if element == 'f32' else start}> : {scalar}",
        f'%r = "stablehlo.reduce_window"(%x, %i) <{{window_dimensions = array<i64: {window}>{"".join(padding)}}}> ({{',
        f"^bb0(%a: {scalar}, %b: {scalar}):",
        f"  %c = stablehlo.add %a, %b : {scalar}",
        f"  stablehlo.return %c : {scalar}",
        f"}}) : ({of}, {scalar}) -> {result}",
    )


CURED = (Rules("op", ("reduce_window_to_slices", "reduce_window_to_doublings", "reduce_window_to_float_doublings")),)

WHOLE_DIM = Quirk(
    "reduce_window of a whole dim",
    (REDUCE_WINDOW,),
    {"mps": "it mistakes it for a running sum, and then rejects its padding"},
    "slices, or doublings",
    _windows(Y, "1, 6"),
    _is_no_running_sum,
    CURED,
)

CUT = Quirk(
    "reduce_window with negative padding",
    (REDUCE_WINDOW,),
    {"mps": "its pad is rejected"},
    "slices, or doublings",
    _windows("tensor<4x4xf32>", "1, 2", ", padding = dense<[[0, 0], [-1, 0]]> : tensor<2x2xi64>"),
    _is_cut,
    CURED,
)


def _is_padded_from_number(_graph: Graph, node: Node) -> bool:
    """Whether windows of padded elements are reduced by one operation from what changes the result."""
    [body] = node.blocks
    if len(node.results) > 1 or not is_one_op(body) or max(map(max, _padding(node)), default=0) <= 0:
        return False
    return not is_neutral(source_of(node.operand(1)), next(iter(body.nodes)).name.removeprefix("stablehlo."))


PADDED_START = Quirk(
    "padded reduce_window from a number",
    (REDUCE_WINDOW,),
    {
        "iree": "it combines padding with the number, too, and leaves it out of a running fold",
        "litert": "it combines padding with the number, too",
    },
    "the same from the identity of the operation, and the number then",
    _windows(
        "tensor<4x6xi32>", "1, 6", ", padding = dense<[[0, 0], [5, 0]]> : tensor<2x2xi64>", element="i32", start=3
    ),
    _is_padded_from_number,
    (Rules("op", ("reduce_to_reduce_and_start",)),),
)


def _is_running_otherwise(_graph: Graph, node: Node) -> bool:
    """Whether all but one element of a window stand in front of the first one, or behind the last one, and it is no
    running fold of numbers with a sign that gives as many elements as it is given."""
    dim, padding = _whole_dim(node), _padding(node)
    if dim is None:
        return False
    most = node.operand(0).static_shape[dim] - 1
    is_running = (padding[dim][0] == most) != (padding[dim][1] == most)
    has_sign = all(value.element.is_signed or value.element.is_float for value in node.results)
    is_turned = padding[dim][1] == most and not all(map(is_one_op, node.blocks))
    return is_running and (min(padding[dim], key=abs) != 0 or not has_sign or is_turned)


RUNNING = Quirk(
    "running reduce_window of other numbers, or to another length",
    (REDUCE_WINDOW,),
    {"iree": "its running fold keeps the length, and is rejected without a sign; a backward one begins at the end"},
    "slices, or doublings",
    _windows("tensor<4x6xui32>", "1, 6", ", padding = dense<[[0, 0], [5, 0]]> : tensor<2x2xi64>", element="ui32"),
    _is_running_otherwise,
    CURED,
)


def _is_no_image(_graph: Graph, node: Node) -> bool:
    """Whether it is neither a running sum or product, nor a pooling of images: floats, windows along two dims."""
    dim, padding, [body] = _whole_dim(node), _padding(node), node.blocks
    if len(node.results) > 1 or not is_one_op(body) or not node.operand(0).element.is_float:
        return True
    name, rank = next(iter(body.nodes)).name, len(padding)
    if dim is not None:
        running = (node.operand(0).static_shape[dim] - 1, 0)
        others = [pair for d, pair in enumerate(padding) if d != dim]
        return name not in (names.ADD, names.MULTIPLY) or padding[dim] != running or others != [(0, 0)] * (rank - 1)
    sizes, strides = node.integers("window_dimensions"), node.integers("window_strides", (1,) * rank)
    pooled = [d for d in range(rank) if sizes[d] > 1 or strides[d] > 1 or padding[d] != (0, 0)]
    longer = [d for d in range(rank) if sizes[d] > 1]
    spatial = {2: [0, 1], 4: longer if len(longer) == 2 else [2, 3], 5: longer}.get(rank, [])
    is_taken = len(spatial) == (3 if rank == 5 else 2) and set(pooled) <= set(spatial)
    is_taken &= name == names.MAXIMUM or (name == names.ADD and rank < 5)
    return not is_taken or set(node.integers("base_dilations", (1,) * rank)) != {1} or min(map(min, padding)) < 0


NO_IMAGE = Quirk(
    "reduce_window of other than images",
    (REDUCE_WINDOW,),
    {"tt": "it has poolings of two dims, and running sums and products"},
    "slices, or doublings",
    _windows("tensor<4x5xi32>", "1, 2", element="i32"),
    _is_no_image,
    CURED,
)

SEVERAL = Quirk(
    "reduce_window of several operands",
    (REDUCE_WINDOW,),
    {"mps": "it is rejected"},
    "slices",
    module(
        "%x: tensor<4xf32>, %y: tensor<4xf32>",
        "tensor<3xf32>",
        "%i = stablehlo.constant dense<0.0> : tensor<f32>",
        '%s:2 = "stablehlo.reduce_window"(%x, %y, %i, %i) <{window_dimensions = array<i64: 2>}> ({',
        "^bb0(%a: tensor<f32>, %b: tensor<f32>, %c: tensor<f32>, %d: tensor<f32>):",
        "  %e = stablehlo.add %a, %c : tensor<f32>",
        "  %f = stablehlo.maximum %b, %d : tensor<f32>",
        "  stablehlo.return %e, %f : tensor<f32>, tensor<f32>",
        "}) : (tensor<4xf32>, tensor<4xf32>, tensor<f32>, tensor<f32>) -> (tensor<3xf32>, tensor<3xf32>)",
        "%r = stablehlo.add %s#0, %s#1 : tensor<3xf32>",
    ),
    lambda _graph, node: len(node.results) > 1,
    (Rules("op", ("reduce_window_to_slices",)),),
)

# --- select_and_scatter ---


def _is_other_than_first_and_sum(_graph: Graph, node: Node) -> bool:
    """Whether another element is chosen than the first of the greatest or least, or sources are not added up."""
    chooses, combines = node.blocks
    first, *rest = chooses.nodes
    direction = str(first.attribute("comparison_direction")).rstrip(">")
    is_first = first.name == names.COMPARE and first.operands == chooses.arguments and direction.endswith(("GE", "LE"))
    is_sum = is_one_op(combines) and next(iter(combines.nodes)).name == names.ADD
    return not (is_first and len(rest) == 1 and is_sum)


V = "tensor<f32>"

LAST_CHOSEN = Quirk(
    "select_and_scatter of other regions",
    (SELECT_AND_SCATTER,),
    {"mps": "it chooses the first of the greatest or least whatever the body says of equal ones, and only adds"},
    "slices",
    module(
        "%x: tensor<4xf32>, %y: tensor<2xf32>",
        "tensor<4xf32>",
        f"%i = stablehlo.constant dense<0.0> : {V}",
        '%r = "stablehlo.select_and_scatter"(%x, %y, %i) <{',
        "  window_dimensions = array<i64: 2>, window_strides = array<i64: 2>}> ({",
        f"^bb0(%a: {V}, %b: {V}):",
        f"  %c = stablehlo.compare GT, %a, %b : ({V}, {V}) -> tensor<i1>",
        "  stablehlo.return %c : tensor<i1>",
        "}, {",
        f"^bb0(%a: {V}, %b: {V}):",
        f"  %c = stablehlo.add %a, %b : {V}",
        f"  stablehlo.return %c : {V}",
        f"}}) : (tensor<4xf32>, tensor<2xf32>, {V}) -> tensor<4xf32>",
    ),
    _is_other_than_first_and_sum,
    (Rules("op", ("select_and_scatter_to_slices",)),),
)
