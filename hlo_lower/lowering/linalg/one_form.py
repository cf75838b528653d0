"""One form for what a module means, whoever wrote it: what is done before it becomes linalg.

A bias is broadcast in one step or in two, a layer of rank 3 is a product or one between two reshapes, relu is a call
or a maximum of either side. Each is written here in one of its ways, while the module is StableHLO:

what                                          its one form
a small function that is called               its ops
reshape, transpose, broadcast of such a one   one of them; of one number, a constant
broadcast of dims of extent 1                 of a value without them
reshape of elementwise ops                    reshapes of what they take, where those come of reshapes and broadcasts
elementwise ops of broadcasts alike           a broadcast of their result
product of reshaped factors                   the reshaped product of the factors as they were
convert to the same type, x * 1, max(x, -inf) x
constants and broadcasts, of either side      the second operand
x <= 0 ? 0 : x                                max(x, 0)
min(max(x, a), b), max(min(x, b), a), numbers clamp(a, x, b)
not p ? x : y; 1 / (exp(-x) + 1)              p ? y : x; logistic(x)

Equal, to the bit: elements are moved, and the same numbers are computed of the same numbers in the same types.
Products are summed in the order of the dims that are summed, as before. `x > 0 ? x : 0` is another function: of NaN
it is 0.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from math import prod

import numpy as np

from hlo_lower.ir import mlir
from hlo_lower.ir.builder import Builder
from hlo_lower.ir.view import Graph, Node, Value
from hlo_lower.lowering.linalg.groups import NAMED
from hlo_lower.ops.names import (
    BROADCAST_IN_DIM,
    CLAMP,
    CONSTANT,
    DOT_GENERAL,
    DYNAMIC_BROADCAST_IN_DIM,
    RESHAPE,
    TRANSPOSE,
)
from hlo_lower.ops.spec import COMBINING, ELEMENTWISE, MIRRORED, identity_of

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
    graph.forget()


def _rewritten(graph: Graph, told: Told | None) -> bool:
    """Rewrite each node once; whether any was."""
    found = [node for node in graph.nodes() if node.name in _RULES]
    found.sort(key=lambda node: node.name != DOT_GENERAL)  # before what is reshaped for one is, through what makes it
    changed = False
    for node in found:
        for rule in _RULES[node.name]:
            if not (rule in OF_ANY_SHAPE or node.is_static):
                continue
            build = Builder.before(node)
            value = rule(build, node)
            if value is not None and value.raw.type == node.result().raw.type:
                if told is not None:
                    built = {one.raw for one in build.built}
                    told(node.result().raw, value.raw, built, graph.function_of(node).name)
                node.result().raw.replace_all_uses_with(value.raw)
                node.raw.erase()
                changed = True
                break
    return changed


# --- functions ---


def inline_small(graph: Graph) -> None:
    """Put the ops of small private functions in the place of their calls, those within them first."""
    with mlir.active(graph.context):
        _inline_small(graph)
    graph.forget()


def _inline_small(graph: Graph) -> None:
    small = {name: f for name, f in graph.functions.items() if f.has_body and not f.is_public and _is_small(f.node)}
    for _ in range(SMALL):
        calls = [node for node in graph.nodes() if _is_call_of(small, node)]
        for call in calls:
            values = Builder.before(call).inline_before(call, small[call.callee].body, call.operands)
            mlir.replace_results(call.raw, [value.raw for value in values])
            call.raw.erase()
        if not calls:
            break
    mlir.run_pass(graph.module.operation, "builtin.module(symbol-dce)")


def _is_call_of(functions: Collection[str], node: Node) -> bool:
    return node.name == "func.call" and node.callee in functions and node.attribute(NAMED) is None


def _is_small(function: Node) -> bool:
    """Whether a function is of few ops, all of them elementwise, calls, or such as move elements."""
    nodes = [Node(raw) for raw in mlir.operations_within(function.raw)][1:]
    known = {*ELEMENTWISE, BROADCAST_IN_DIM, CONSTANT, RESHAPE, "func.call", "func.return"}
    return len(nodes) <= SMALL and all(node.name in known for node in nodes)


# --- what moves elements ---


Groups = list[tuple[list[int], list[int]]]
"""Dims of a shape, and those of another one that hold the same elements in the same order."""


def groups_of(before: Sequence[int], after: Sequence[int]) -> Groups:
    """The dims of two shapes of equally many elements, more than none, in the least groups that a reshape keeps."""
    groups: Groups = []
    first = second = 0
    while first < len(before) or second < len(after):
        left, right = [first] * (first < len(before)), [second] * (second < len(after))
        while (of_left := prod(before[d] for d in left)) != (of_right := prod(after[d] for d in right)):
            if of_left < of_right:
                left.append(first + len(left))
            else:
                right.append(second + len(right))
        first, second = first + len(left), second + len(right)
        groups.append((left, right))
    return groups


def _static_maker(value: Value, name: str) -> Node | None:
    """The op that makes a value, if it has this name and static shapes."""
    node = value.node
    return node if node is not None and node.name == name and node.is_static else None


def _maker_named(value: Value, name: str) -> Node | None:
    """The op that makes a value, if it has this name; its shapes may be dynamic."""
    node = value.node
    return node if node is not None and node.name == name else None


def _scalar(build: Builder, value: Value) -> Value | None:
    """The scalar that stands at every place of a value, which has dims; None where that is not seen."""
    spread, constant = _static_maker(value, BROADCAST_IN_DIM), _static_maker(value, CONSTANT)
    if spread is not None and spread.operand(0).shape == ():
        return spread.operand(0)
    if constant is None or not mlir.is_splat(constant.raw) or not value.shape:
        return None
    raw_type = mlir.tensor_type((), value.element_type)
    return build.op(
        CONSTANT, [], [raw_type], {"value": mlir.resplat(constant.raw.attributes["value"], raw_type)}
    ).result()


def _fill(build: Builder, scalar: Value, shape: Sequence[int]) -> Value:
    """A scalar at every place of a shape. A constant scalar becomes a constant, which jaxlib's pass reads as a
    scalar."""
    constant = _static_maker(scalar, CONSTANT)
    if constant is None or not shape or scalar.element.is_complex:
        return build.broadcast(scalar, shape)
    raw_type = mlir.tensor_type(shape, scalar.element_type)
    return build.op(
        CONSTANT, [], [raw_type], {"value": mlir.resplat(constant.raw.attributes["value"], raw_type)}
    ).result()


def _is_scalar(value: Value) -> bool:
    spread, constant = _static_maker(value, BROADCAST_IN_DIM), _static_maker(value, CONSTANT)
    of_scalar = spread is not None and spread.operand(0).shape == ()
    return of_scalar or (constant is not None and bool(value.shape) and mlir.is_splat(constant.raw))


def _reshape(build: Builder, node: Node) -> Value | None:
    """Of a reshape or broadcast: one op. Of elementwise ops: see `_absorbs`."""
    value, shape = node.operand(0), node.result().static_shape
    return value if value.shape == shape else _value_in_shape(build, value, shape)


def _value_in_shape(build: Builder, value: Value, shape: Sequence[int]) -> Value | None:
    """A value in another shape, if that needs no reshape or replaces one; else None."""
    source = value.node
    if source is None or not source.is_static or 0 in shape:
        return None
    if source.name == RESHAPE:
        return build.reshape(source.operand(0), shape)
    if _is_scalar(value):
        scalar = _scalar(build, value)
        return None if scalar is None else _fill(build, scalar, shape)
    if source.name == BROADCAST_IN_DIM:
        return _spread(build, source, shape)
    if source.name in ELEMENTWISE and _absorbs(value, shape) and _is_read_in(value, shape):
        given = [
            operand if _stays(operand, source) else _in_shape(build, operand, shape) for operand in source.operands
        ]
        return build.clone(source, given, [mlir.tensor_type(shape, value.element_type)]).result()
    return None


def _in_shape(build: Builder, value: Value, shape: Sequence[int]) -> Value:
    return _value_in_shape(build, value, shape) or build.reshape(value, shape)


def _stays(operand: Value, of: Node) -> bool:
    """Whether an operand is a scalar beside others that are none: a predicate, a bound."""
    return operand.shape == () and of.result().shape != ()


def _is_read_in(value: Value, shape: Sequence[int]) -> bool:
    """Whether a value is read by reshapes to one shape alone."""
    return all(user.name == RESHAPE and user.result().shape == tuple(shape) for user in value.users)


def _absorbs(value: Value, shape: Sequence[int]) -> bool:
    """Whether reshapes of what an op takes are no more ops than one of its result: all but one of its operands come
    of a reshape or of a scalar, or are themselves ops of which that is true."""
    source = value.node
    if source is None or not source.is_static:
        return False
    if source.name == RESHAPE or _is_scalar(value):
        return True
    if source.name == BROADCAST_IN_DIM:
        return _dims_after_reshape(source, shape) is not None
    if source.name not in ELEMENTWISE or not _is_read_in(value, shape):
        return False
    left = [
        operand for operand in source.operands if not _stays(operand, source) and not _absorbs_within(operand, shape)
    ]
    return len(set(left)) <= 1


def _absorbs_within(value: Value, shape: Sequence[int]) -> bool:
    source = value.node
    if source is None or source.name not in ELEMENTWISE:
        return _absorbs(value, shape)
    operands = [operand for operand in source.operands if not _stays(operand, source)]
    is_read_once = len(list(value.users)) == 1
    return source.is_static and is_read_once and all(_absorbs_within(operand, shape) for operand in operands)


def _dims_after_reshape(spread: Node, shape: Sequence[int]) -> list[int] | None:
    """The dims along which a broadcast's operand lies after its result is reshaped; None if one dim would mix its
    elements with copies."""
    operand, dims = spread.operand(0), spread.integers("broadcast_dimensions")
    before = spread.result().static_shape
    if any(size != before[dim] for size, dim in zip(operand.static_shape, dims, strict=True)) or list(dims) != sorted(
        dims
    ):
        return None
    kept: list[int] = []
    for left, right in groups_of(before, shape):
        own = prod(before[dim] for dim in left if dim in dims)
        if own not in (1, prod(before[dim] for dim in left)):
            return None
        kept += [dim for dim in right if own != 1 and shape[dim] != 1]
    return kept


def _spread(build: Builder, spread: Node, shape: Sequence[int]) -> Value | None:
    dims = _dims_after_reshape(spread, shape)
    if dims is None:
        return None
    return build.broadcast(build.reshape(spread.operand(0), [shape[dim] for dim in dims]), shape, dims)


def _broadcast(build: Builder, node: Node) -> Value | None:
    """In one step, with dims in order, dims of extent 1 as `_units_placed` says; what spreads nothing is a reshape."""
    value, shape, dims = node.operand(0), node.result().static_shape, node.integers("broadcast_dimensions")
    if 0 in shape:
        return None
    if not value.shape:
        is_kept = _static_maker(value, CONSTANT) is None or not shape or value.element.is_complex
        return None if is_kept else _fill(build, value, shape)
    if (scalar := _scalar(build, value)) is not None:
        return _fill(build, scalar, shape)
    sizes = value.static_shape
    order = sorted(range(len(dims)), key=lambda number: dims[number])
    if prod(sizes) == prod(shape):
        return build.reshape(build.transpose(value, order), shape)
    if order != sorted(order):
        return build.broadcast(value, shape, dims)
    inner = _static_maker(value, BROADCAST_IN_DIM)
    if inner is not None:
        within = inner.integers("broadcast_dimensions")
        return build.broadcast(inner.operand(0), shape, [dims[dim] for dim in within])
    long = [dim for dim, size in zip(dims, sizes, strict=True) if size != 1]
    reshape = _static_maker(value, RESHAPE)
    source = value if reshape is None or _long(reshape.operand(0)) != _long(value) else reshape.operand(0)
    placed = _units_placed(source.static_shape, long, shape)
    if placed is not None:
        return None if source == value and placed == list(dims) else build.broadcast(source, shape, placed)
    if len(long) == len(sizes):
        return None
    return build.broadcast(build.reshape(value, _long(value)), shape, long)


def _long(value: Value) -> list[int]:
    return [size for size in value.static_shape if size != 1]


def _units_placed(sizes: Sequence[int], long: Sequence[int], shape: Sequence[int]) -> list[int] | None:
    """The dims of a shape for those of a value that is broadcast, whose long ones have theirs: each of extent 1 takes
    the next one of extent 1 that is free; None where there is none."""
    placed: list[int] = []
    left = list(long)
    for size in sizes:
        after = placed[-1] + 1 if placed else 0
        before = left[0] if left else len(shape)
        free = [dim for dim in range(after, before) if shape[dim] == 1]
        if size == 1 and not free:
            return None
        placed.append(free[0] if size == 1 else left.pop(0))
    return placed


def _transpose(build: Builder, node: Node) -> Value | None:
    """One of a transpose or a broadcast; of dims of extent 1 alone a reshape."""
    value, permutation = node.operand(0), node.integers("permutation")
    shape = node.result().static_shape
    long = [dim for dim in permutation if value.static_shape[dim] != 1]
    if long == sorted(long):
        return build.reshape(value, shape)
    if (inner := _static_maker(value, TRANSPOSE)) is not None:
        before = inner.integers("permutation")
        return build.transpose(inner.operand(0), [before[dim] for dim in permutation])
    if (scalar := _scalar(build, value)) is not None:
        return _fill(build, scalar, shape)
    if (inner := _static_maker(value, BROADCAST_IN_DIM)) is not None:
        dims = inner.integers("broadcast_dimensions")
        return build.broadcast(inner.operand(0), shape, [permutation.index(dim) for dim in dims])
    return None


# --- elementwise ops ---


def _convert(build: Builder, node: Node) -> Value | None:
    """Of the same type: nothing. Of a number that the other type has: that number."""
    value, result = node.operand(0), node.result()
    if value.raw.type == result.raw.type:
        return value
    constant = _static_maker(value, CONSTANT)
    is_number = constant is not None and value.shape == () and not value.element.is_complex
    number = constant.constant() if constant is not None and is_number and not result.element.is_complex else None
    dtype = mlir.dtype_of(result.element_type)
    if number is None or dtype is None or result.element_type == "i1" or value.element_type == "i1":
        return None
    with np.errstate(all="ignore"):
        other = np.asarray(number).astype(dtype)
        is_kept = np.isfinite(number) and other.astype(np.asarray(number).dtype) == number
    if not is_kept or other.astype(np.float64) != np.float64(number):
        return None
    return build.op(CONSTANT, [], [result.raw.type], {"value": mlir.dense_attribute(other, result.raw.type)}).result()


def _of_broadcasts(build: Builder, node: Node) -> Value | None:
    """Elementwise ops of values that are broadcast alike, and of scalars, before they are."""
    if not node.result().shape:
        return None
    spread = [_static_maker(operand, BROADCAST_IN_DIM) for operand in node.operands if not _stays(operand, node)]
    wide = [one for one in spread if one is not None and one.operand(0).shape]
    others = [operand for operand in node.operands if not _stays(operand, node) and not _is_scalar(operand)]
    if len(wide) != len(others) or len({one.integers("broadcast_dimensions") for one in wide}) > 1:
        return None
    if len({one.operand(0).shape for one in wide}) > 1:
        return None
    shape = wide[0].operand(0).static_shape if wide else ()
    dims = wide[0].integers("broadcast_dimensions") if wide else ()
    given: list[Value] = []
    for operand in node.operands:
        source = _static_maker(operand, BROADCAST_IN_DIM)
        scalar = None if _stays(operand, node) else _scalar(build, operand)
        if scalar is not None:
            given.append(_fill(build, scalar, shape) if shape else scalar)
        else:
            given.append(operand if _stays(operand, node) or source is None else source.operand(0))
    made = build.clone(node, given, [mlir.tensor_type(shape, node.result().element_type)]).result()
    return build.broadcast(made, node.result().static_shape, dims)


NEUTRAL = {"stablehlo.divide": 1.0, "stablehlo.subtract": 0.0}
"""Ops that are not commutative, and the second operand that changes nothing."""


def _number(value: Value) -> float | int | None:
    """The number that stands at every place of a value, where it is a constant one."""
    spread = _static_maker(value, BROADCAST_IN_DIM) or _maker_named(value, DYNAMIC_BROADCAST_IN_DIM)
    constant = _static_maker(spread.operand(0) if spread is not None else value, CONSTANT)
    if constant is None or not mlir.is_splat(constant.raw) or constant.result().element.is_complex:
        return None
    array = constant.constant()
    return None if array is None or not array.size else array.reshape(-1)[0].item()


def _neutral(_: Builder, node: Node) -> Value | None:
    """The first operand, where the second changes nothing."""
    value, other = node.operands
    element = value.element
    wanted = NEUTRAL.get(node.name, identity_of(node.name, element) if node.name in COMBINING else None)
    if wanted is None or element.name == "i1" or not (element.is_integer or element.name in IEEE):
        return None
    number = _number(other)
    is_it = (
        number is not None
        and number == wanted
        and (element.is_integer or np.signbit(float(number)) == np.signbit(float(wanted)))
    )
    return value if is_it else None


IEEE = ("f16", "bf16", "f32", "f64")
"""Floats that have infinities, and zeros of both signs."""


def _rank(value: Value) -> int:
    """Where a value stands as an operand: values first, then what is broadcast, then constants and scalars."""
    if _is_scalar(value) or _static_maker(value, CONSTANT) is not None or _number(value) is not None:
        return 2
    return 1 if _static_maker(value, BROADCAST_IN_DIM) or _maker_named(value, DYNAMIC_BROADCAST_IN_DIM) else 0


def _second(build: Builder, node: Node) -> Value | None:
    """Constants and what is broadcast behind other values, where the order of operands does not matter."""
    first, second = node.operands
    if not _is_before(second, first):
        return None
    return build.clone(node, [second, first], [node.result().raw.type]).result()


def _is_before(value: Value, other: Value) -> bool:
    """Whether a value is the first of two operands: by what it is, then arguments first, then by where it is made."""
    ranks = _rank(value), _rank(other)
    if ranks[0] != ranks[1] or value == other:
        return ranks[0] < ranks[1]
    nodes = value.node, other.node
    if nodes[0] is None or nodes[1] is None:
        are_arguments = nodes[0] is None and nodes[1] is None
        return value.number < other.number if are_arguments else nodes[0] is None
    return nodes[0].raw.is_before_in_block(nodes[1].raw) if nodes[0].parent == nodes[1].parent else False


def _compare(build: Builder, node: Node) -> Value | None:
    """With constants and what is broadcast as the second operand."""
    first, second = node.operands
    if _rank(second) >= _rank(first):
        return None
    direction = mlir.enum_value(node.raw.attributes["comparison_direction"])
    attributes = mlir.attributes_of(node.raw)
    attributes["comparison_direction"] = mlir.parse_attribute(f"#stablehlo<comparison_direction {MIRRORED[direction]}>")
    return build.op(node.name, [second, first], [node.result().raw.type], attributes).result()


def _swap_choices(build: Builder, node: Node) -> Value | None:
    """A select on a negated predicate becomes a select on the predicate itself, with its choices exchanged."""
    predicate, on_true, on_false = node.operands
    spread = _static_maker(predicate, BROADCAST_IN_DIM)
    inner = _maker_named(predicate if spread is None else spread.operand(0), "stablehlo.not")
    if inner is None:
        return None
    plain = inner.operand(0)
    if spread is not None:
        plain = build.broadcast(plain, predicate.static_shape, spread.integers("broadcast_dimensions"))
    return build.clone(node, [plain, on_false, on_true], [node.result().raw.type]).result()


def _logistic(build: Builder, node: Node) -> Value | None:
    """1 / (exp(-x) + 1), which is what jaxlib's pass writes for a logistic of x, op by op."""
    plus = _maker_named(node.operand(1), "stablehlo.add")
    if plus is None or _number(node.operand(0)) != 1 or _number(plus.operand(1)) != 1:
        return None
    exponential = _maker_named(plus.operand(0), "stablehlo.exponential")
    negated = None if exponential is None else _maker_named(exponential.operand(0), "stablehlo.negate")
    if negated is None or node.result().element.name not in ("f32", "f64"):  # narrower ones are rounded in between
        return None
    return build.elementwise("logistic", negated.operand(0))


BOUNDS = {"stablehlo.minimum": "stablehlo.maximum", "stablehlo.maximum": "stablehlo.minimum"}
"""The ops that bound a value on one side, and those on the other."""


def _clamp_of_bounds(build: Builder, node: Node) -> Value | None:
    """min(max(x, low), high) of floats and two numbers becomes clamp(low, x, high); so does max(min(x, high), low) if
    low is less than high."""
    inner = _static_maker(node.operand(0), BOUNDS[node.name])
    if inner is None or node.result().element.name not in IEEE:
        return None
    outer, other = node.operand(1), inner.operand(1)
    low, high = (other, outer) if node.name == "stablehlo.minimum" else (outer, other)
    least, most = _number(low), _number(high)
    if least is None or most is None or not least < most:
        return None
    scalars = [value if value.shape == () else _scalar(build, value) for value in (low, high)]
    operands = [value for value in (scalars[0], inner.operand(0), scalars[1]) if value is not None]
    return build.op(CLAMP, operands, [node.result().raw.type]).result() if len(operands) == 3 else None


def _clamp(build: Builder, node: Node) -> Value | None:
    """Of numbers as scalars; of an infinity a maximum or minimum alone."""
    low, value, high = node.operands
    if node.result().element.name in IEEE and _number(high) == np.inf:
        return build.maximum(value, _in_full(build, low, value))
    if node.result().element.name in IEEE and _number(low) == -np.inf:
        return build.minimum(value, _in_full(build, high, value))
    scalars = [_scalar(build, bound) or bound for bound in (low, high)]
    if scalars == [low, high]:
        return None
    if scalars[0].shape != scalars[1].shape:
        return None  # both are scalars or none
    return build.clone(node, [scalars[0], value, scalars[1]], [node.result().raw.type]).result()


def _in_full(build: Builder, bound: Value, like: Value) -> Value:
    return bound if bound.shape == like.shape else _fill(build, bound, like.static_shape)


LESSER, GREATER = ("LE", "LT"), ("GT", "GE")


def _relu(build: Builder, node: Node) -> Value | None:
    """max(x, 0) of what chooses between x and 0 by comparing them: of floats `x <= 0 ? 0 : x` alone, which gives NaN of
    NaN and 0.0 of -0.0 as the maximum does; of integers all of them."""
    predicate, on_true, on_false = node.operands
    test = _maker_named(predicate, "stablehlo.compare")
    if test is None or _number(test.operand(1)) != 0 or predicate.shape != node.result().shape:
        return None
    value, zero = test.operands
    direction = mlir.enum_value(test.raw.attributes["comparison_direction"])
    kind = test.attribute("compare_type")
    if kind is not None and mlir.enum_value(kind) == "TOTALORDER":
        return None
    chosen, other = (on_false, on_true) if direction in LESSER else (on_true, on_false)
    number = _number(other)
    if direction not in LESSER + GREATER or chosen != value or number != 0 or zero.raw.type != value.raw.type:
        return None
    if not value.element.is_integer and (direction != "LE" or np.signbit(number) or value.element.name not in IEEE):
        return None
    return build.maximum(value, other)


# --- products ---


def _product(build: Builder, node: Node) -> Value | None:
    """Of factors that are reshaped, without the reshapes, its result reshaped; without batches of one."""
    numbers = mlir.dot_dimension_numbers(node.raw)
    batching = list(numbers.lhs_batching_dimensions), list(numbers.rhs_batching_dimensions)
    summed = list(numbers.lhs_contracting_dimensions), list(numbers.rhs_contracting_dimensions)
    if any(0 in value.static_shape for value in node.operands):
        return None
    made = _without_batches_of_one(build, node, batching, summed)
    for sides in ((0, 1), (0,), (1,)):
        made = made or _on_sources(build, node, batching, summed, sides)
    return made


Sides = tuple[Sequence[int], Sequence[int]]


def _without_batches_of_one(build: Builder, node: Node, batching: Sides, summed: Sides) -> Value | None:
    """Of a second factor that was given them by a reshape: they are dims of the first one alone."""
    left, right = node.operands
    pairs = list(zip(*batching, strict=True))
    long = [pair for pair in pairs if left.static_shape[pair[0]] != 1]
    gone = {pair[1] for pair in pairs if pair not in long}
    kept = [dim for dim in range(len(right.static_shape)) if dim not in gone]
    reshape = _static_maker(right, RESHAPE)
    if reshape is None or not gone or reshape.operand(0).static_shape != tuple(right.static_shape[d] for d in kept):
        return None
    first_batching, second_batching = [a for a, _ in long], [kept.index(b) for _, b in long]
    second_summed = [kept.index(dim) for dim in summed[1]]
    factors = left, reshape.operand(0)
    return _product_over(build, node, factors, (first_batching, second_batching), (summed[0], second_summed))


def _on_sources(build: Builder, node: Node, batching: Sides, summed: Sides, sides: Sequence[int]) -> Value | None:
    """The product of what is reshaped to its factors, on these sides, where dims that are paired are so before, too."""
    factors = list(node.operands)
    of_dim: list[dict[int, list[int]]] = []
    for side, factor in enumerate(node.operands):
        shape = factor.static_shape
        of_dim.append({dim: [dim] for dim in range(len(shape))})
        if side not in sides:
            continue
        reshape = _static_maker(factor, RESHAPE)
        if reshape is None:
            return None
        factors[side] = reshape.operand(0)
        of_dim[side] = {}
        paired = {*batching[side], *summed[side]}
        for before, after in groups_of(factors[side].static_shape, shape):
            within = [dim for dim in after if dim in paired]
            if within and (not before or any(shape[dim] != 1 for dim in after if dim not in within[:1])):
                return None  # one dim becomes several, of which some are paired; or one of extent 1 is
            of_dim[side] |= dict.fromkeys(within, before)
    numbers: list[tuple[list[int], list[int]]] = []
    for first, second in (batching, summed):
        dims: tuple[list[int], list[int]] = ([], [])
        for left, right in zip(first, second, strict=True):
            before = of_dim[0][left], of_dim[1][right]
            sizes = [[factors[side].static_shape[dim] for dim in before[side]] for side in (0, 1)]
            if sizes[0] != sizes[1]:  # then perhaps but for dims of extent 1, which are left to the result
                before = [[d for d in before[k] if factors[k].static_shape[d] != 1] or before[k][:1] for k in (0, 1)]
                sizes = [[factors[side].static_shape[dim] for dim in before[side]] for side in (0, 1)]
            if sizes[0] != sizes[1]:
                return None
            dims[0].extend(before[0])
            dims[1].extend(before[1])
        numbers.append(dims)
    return _product_over(build, node, (factors[0], factors[1]), numbers[0], numbers[1])


def _product_over(
    build: Builder, node: Node, factors: tuple[Value, Value], batching: Sides, summed: Sides
) -> Value | None:
    """The product over these dims, in the shape of a given product."""
    attributes = mlir.dot_attributes(node.raw, batching, summed, is_turned=False)
    if attributes is None:
        return None
    free = [
        [size for dim, size in enumerate(factor.static_shape) if dim not in (*batching[side], *summed[side])]
        for side, factor in enumerate(factors)
    ]
    shape = [*(factors[0].static_shape[dim] for dim in batching[0]), *free[0], *free[1]]
    made = build.op(DOT_GENERAL, factors, [mlir.tensor_type(shape, node.result().element_type)], attributes).result()
    return build.reshape(made, node.result().static_shape)


OF_ANY_SHAPE: frozenset[Rule] = frozenset({_convert, _neutral, _second, _compare, _swap_choices, _relu, _logistic})
"""Rules that look at no sizes."""


def _rules() -> Iterator[tuple[str, tuple[Rule, ...]]]:
    yield RESHAPE, (_reshape,)
    yield BROADCAST_IN_DIM, (_broadcast,)
    yield TRANSPOSE, (_transpose,)
    yield DOT_GENERAL, (_product,)
    for name in ELEMENTWISE:
        own: Mapping[str, tuple[Rule, ...]] = {
            "stablehlo.convert": (_convert,),
            "stablehlo.compare": (_compare,),
            "stablehlo.divide": (_logistic,),
            "stablehlo.minimum": (_clamp_of_bounds,),
            "stablehlo.maximum": (_clamp_of_bounds,),
            CLAMP: (_clamp,),
            "stablehlo.select": (_swap_choices, _relu),
        }
        commutes = (_second,) if name in COMBINING else ()
        neutral = (_neutral,) if name in COMBINING or name in NEUTRAL else ()
        yield name, (*own.get(name, ()), *neutral, *commutes, _of_broadcasts)


_RULES: Mapping[str, tuple[Rule, ...]] = dict(_rules())
