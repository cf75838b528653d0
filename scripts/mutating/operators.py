"""The mutation operators: each changes one op of a module in place, or says that it cannot.

An operator is a function of an op and a random generator that returns what it did, or None. `EQUAL` holds those that
keep what is computed, `PROMISES` those that only promise or ask for something else.
"""

from collections.abc import Callable, Sequence
from random import Random
from typing import Any

import numpy as np

from hlo_lower.ir import mlir

Op = Any
Operator = Callable[[Op, Random], str | None]
OPERATORS: dict[str, tuple[tuple[str, ...], Operator]] = {}
"""By name: the ops that it is for (none: all), and the operator."""

EQUAL: set[str] = set()
PROMISES: set[str] = set()


def _operator(*ops: str, equal: bool = False, promise: bool = False) -> Callable[[Operator], Operator]:
    def register(function: Operator) -> Operator:
        name = function.__name__.strip("_")
        OPERATORS[name] = tuple(op if "." in op else f"stablehlo.{op}" for op in ops), function
        if equal:
            EQUAL.add(name)
        if promise:
            PROMISES.add(name)
        return function

    return register


# --- what they are made of -------------------------------------------------------------------------------------


def _replace(op: Op, name: str, attributes: dict[str, Any] | None = None, operands: Sequence[Any] | None = None) -> str:
    """Another op in the place of this one, of the same type."""
    new = mlir.create_operation(
        name,
        list(op.operands) if operands is None else operands,
        [r.type for r in op.results],
        mlir.attributes_of(op) if attributes is None else attributes,
        location=op.location,
        insertion_point=mlir.insert_before(op),
    )
    for old, result in zip(op.results, new.results, strict=True):
        old.replace_all_uses_with(result)
    return f"{op.name} -> {name}"


def _made(op: Op, name: str, operands: Sequence[Any], type_: Any, attributes: dict[str, Any] | None = None) -> Any:
    """The result of a new op in front of this one."""
    return mlir.create_operation(
        name, operands, [type_], attributes, location=op.location, insertion_point=mlir.insert_before(op)
    ).results[0]


def _constant(op: Op, value: Any, type_: Any) -> Any:
    shape = mlir.static_shape(type_)
    array = np.broadcast_to(np.asarray(value, mlir.dtype_of(mlir.tensor_element_name(type_))), shape)
    return _made(op, "stablehlo.constant", [], type_, {"value": mlir.dense_attribute(_splat(array), type_)})


def _splat(array: Any) -> Any:
    return np.array(
        array.reshape(-1)[:1]
        if array.size and array.dtype != np.bool_ and (array == array.reshape(-1)[0]).all()
        else array
    )


def _swap(op: Op, i: int, j: int) -> str | None:
    if i == j or op.operands[i] == op.operands[j] or op.operands[i].type != op.operands[j].type:
        return None
    first, second = op.operands[i], op.operands[j]
    op.operands[i], op.operands[j] = second, first
    return f"operands {i} and {j} of {op.name} changed places"


def _is_float(value: Any) -> bool:
    name = mlir.tensor_element_name(value.type)
    return name.startswith(("f", "bf"))


def _list(op: Op, name: str, change: Callable[[list[int]], list[int] | None]) -> str | None:
    if name not in op.attributes:
        return None
    old = list(mlir.integers_of(op.attributes[name]))
    new = change(list(old))
    if new is None or new == old:
        return None
    op.attributes[name] = mlir.dense_i64(new)
    return f"{name} of {op.name}: {old} -> {new}"


def _exchange(shape: Sequence[int | None], rng: Random, places: Sequence[int]) -> tuple[int, int] | None:
    """Two of the places that have the same size."""
    pairs = [(i, j) for i in places for j in places if i < j and shape[i] == shape[j] and shape[i] != 1]
    return rng.choice(pairs) if pairs else None


def _parsed(op: Op, name: str, old: str, new: str) -> str | None:
    text = str(op.attributes[name])
    changed = text.replace(old, new, 1)
    if changed == text:
        return None
    op.attributes[name] = mlir.parse_attribute(changed)
    return f"{op.name}: {old} -> {new}"


def _field(op: Op, name: str, field: str) -> list[int]:
    import re

    found = re.search(rf"\b{field} = \[([\d, ]*)\]", str(op.attributes[name]))
    return [int(n) for n in found[1].split(",") if n.strip()] if found else []


def _set_field(op: Op, name: str, field: str, old: list[int], new: list[int]) -> str | None:
    return (
        None
        if old == new
        else _parsed(op, name, f"{field} = [{', '.join(map(str, old))}]", f"{field} = [{', '.join(map(str, new))}]")
    )


def _enum(op: Op, name: str, kind: str, value: str) -> None:
    op.attributes[name] = mlir.parse_attribute(f"#stablehlo<{kind} {value}>")


# --- elementwise -----------------------------------------------------------------------------------------------

NOT_COMMUTATIVE = ("subtract", "divide", "power", "remainder", "atan2", "shift_left", "shift_right_logical",
                   "shift_right_arithmetic", "compare", "complex")  # fmt: skip


@_operator(*NOT_COMMUTATIVE)
def swap_operands(op: Op, rng: Random) -> str | None:
    return _swap(op, 0, 1)


@_operator("compare")
def compare_direction(op: Op, rng: Random) -> str | None:
    old = mlir.enum_value(op.attributes["comparison_direction"])
    new = {"LT": "LE", "LE": "LT", "GT": "GE", "GE": "GT", "EQ": "NE", "NE": "EQ"}[old]
    _enum(op, "comparison_direction", "comparison_direction", new)
    return f"{old} -> {new}"


@_operator("compare")
def compare_reversed(op: Op, rng: Random) -> str | None:
    old = mlir.enum_value(op.attributes["comparison_direction"])
    new = {"LT": "GT", "LE": "GE", "GT": "LT", "GE": "LE", "EQ": "GE", "NE": "GT"}[old]
    if mlir.tensor_element_name(op.operands[0].type).startswith("complex"):
        return None
    _enum(op, "comparison_direction", "comparison_direction", new)
    return f"{old} -> {new}"


@_operator("compare")
def compare_type(op: Op, rng: Random) -> str | None:
    element = mlir.tensor_element_name(op.operands[0].type)
    if _is_float(op.operands[0]):
        old = "TOTALORDER" if "TOTALORDER" in str(mlir.attributes_of(op).get("compare_type", "")) else "FLOAT"
        new = "FLOAT" if old == "TOTALORDER" else "TOTALORDER"
        _enum(op, "compare_type", "comparison_type", new)
        return f"{old} -> {new}"
    if element == "i1" or element.startswith("complex"):
        return None
    other = element[1:] if element.startswith("ui") else f"u{element}"
    for i, value in enumerate(list(op.operands)):
        type_ = mlir.tensor_type(mlir.tensor_shape(value.type), other)
        op.operands[i] = _made(op, "stablehlo.bitcast_convert", [value], type_)
    _enum(op, "compare_type", "comparison_type", "UNSIGNED" if other[0] == "u" else "SIGNED")
    return f"compared as {other}"


def _another(*groups: tuple[str, ...]) -> Operator:
    def other(op: Op, rng: Random) -> str | None:
        name = op.name.removeprefix("stablehlo.")
        choices = [n for group in groups if name in group for n in group if n != name]
        if op.operands and mlir.tensor_element_name(op.operands[0].type) == "i1" and "add" in [*choices, name]:
            return None
        return _replace(op, f"stablehlo.{rng.choice(choices)}") if choices else None

    return other


for _name, _groups in {
    "min_max": (("minimum", "maximum"),),
    "add_subtract": (("add", "subtract"),),
    "multiply_divide": (("multiply", "divide"),),
    "and_or_xor": (("and", "or", "xor"),),
    "shift_kind": (("shift_left", "shift_right_logical", "shift_right_arithmetic"),),
    "rounding_kind": (("floor", "ceil", "round_nearest_even", "round_nearest_afz"),),
    "similar_function": (
        ("exponential", "exponential_minus_one"),
        ("log", "log_plus_one"),
        ("sqrt", "rsqrt", "cbrt"),
        ("sine", "cosine"),
        ("tanh", "logistic"),
        ("abs", "negate"),
        ("sign", "negate"),
        ("divide", "remainder"),
    ),
    "real_imaginary": (("real", "imag"),),
}.items():
    OPERATORS[_name] = tuple(f"stablehlo.{n}" for group in _groups for n in group), _another(*_groups)


NARROWER = {
    "f32": "bf16 f16",
    "f64": "f32",
    "f16": "bf16",
    "bf16": "f16",
    "i32": "i16 i8 f32 ui32",
    "i64": "i32 f64",
    "ui32": "ui16 f32",
    "i8": "f16",
    "i16": "i8 f16",
}


@_operator("add", "subtract", "multiply", "maximum", "minimum", "select", "gather", "divide", "convert", "concatenate")
def narrower_type(op: Op, rng: Random) -> str | None:
    result = op.results[0]
    element = mlir.tensor_element_name(result.type)
    choices = {name: others.split() for name, others in NARROWER.items()}
    if element not in choices:
        return None
    other = rng.choice(choices[element])
    type_ = mlir.tensor_type(mlir.tensor_shape(result.type), other)
    point = mlir.insert_after(op)
    down = mlir.create_operation("stablehlo.convert", [result], [type_], location=op.location, insertion_point=point)
    up = mlir.create_operation(
        "stablehlo.convert",
        [down.results[0]],
        [result.type],
        location=op.location,
        insertion_point=mlir.insert_after(down),
    )
    result.replace_all_uses_with(up.results[0])
    down.operands[0] = result
    return f"{op.name} through {other}"


@_operator("negate", "abs", "exponential", "tanh", "sqrt", "rsqrt", "convert", "floor", "sign", "not", "reverse",
           "transpose", "clamp", "optimization_barrier", "reduce_precision", "log", "add", "multiply", "maximum",
           "select", "and", "or", "dynamic_update_slice", "scatter", "remainder")  # fmt: skip
def drop_op(op: Op, rng: Random) -> str | None:
    fitting = [v for v in op.operands if v.type == op.results[0].type]
    if len(op.results) != 1 or not fitting:
        return None
    op.results[0].replace_all_uses_with(rng.choice(fitting))
    return f"{op.name} left out"


@_operator("select")
def select_branches(op: Op, rng: Random) -> str | None:
    return _swap(op, 1, 2)


@_operator("clamp")
def clamp_bounds(op: Op, rng: Random) -> str | None:
    return _swap(op, 0, 2)


@_operator("compare")
def nan_test(op: Op, rng: Random) -> str | None:
    if mlir.enum_value(op.attributes["comparison_direction"]) != "NE" or op.operands[0] != op.operands[1]:
        return None
    op.results[0].replace_all_uses_with(_constant(op, False, op.results[0].type))
    return "x != x -> false"


@_operator("is_finite")
def finite_test(op: Op, rng: Random) -> str | None:
    x = op.operands[0]
    same = {"comparison_direction": mlir.parse_attribute("#stablehlo<comparison_direction EQ>")}
    op.results[0].replace_all_uses_with(_made(op, "stablehlo.compare", [x, x], op.results[0].type, same))
    return "is_finite(x) -> x == x"


@_operator("select")
def drop_normalisation(op: Op, rng: Random) -> str | None:
    test, changed = mlir.producer(op.operands[0]), mlir.producer(op.operands[1])
    if test is None or changed is None or (test.name, changed.name) != ("stablehlo.compare", "stablehlo.add"):
        return None
    op.results[0].replace_all_uses_with(op.operands[2])
    return "select(i < 0, i + n, i) -> i"


# --- constants -------------------------------------------------------------------------------------------------


def _changed_constant(op: Op, change: Callable[[Any], Any]) -> str | None:
    old = mlir.constant_value(op)
    if old is None or not old.size or old.size > 1 << 16:
        return None
    with np.errstate(all="ignore"):
        new = np.asarray(change(np.array(old))).astype(old.dtype)
    if new.tobytes() == np.array(old).tobytes():
        return None
    op.attributes["value"] = mlir.dense_attribute(_splat(new), op.results[0].type)
    at = next(
        i for i in range(new.size) if new.reshape(-1)[i : i + 1].tobytes() != old.reshape(-1)[i : i + 1].tobytes()
    )
    return f"constant {old.reshape(-1)[at]} -> {new.reshape(-1)[at]} at {at} of {new.size}"


@_operator("constant")
def constant_step(op: Op, rng: Random) -> str | None:
    return _changed_constant(
        op, lambda c: ~c if c.dtype == np.bool_ else c + np.array(rng.choice([1, -1])).astype(c.dtype)
    )


@_operator("constant")
def constant_ulp(op: Op, rng: Random) -> str | None:
    up = rng.random() < 0.5

    def moved(c: Any) -> Any:
        bits = np.ascontiguousarray(c).view(f"u{c.dtype.itemsize}")
        return (bits + np.array(1 if up else -1).astype(bits.dtype)).view(c.dtype).reshape(c.shape)

    value = mlir.constant_value(op) if _is_float(op.results[0]) else None
    if value is None or not np.isfinite(value.astype(np.float64)).all() or (value == 0).any():
        return None
    return _changed_constant(op, moved)


@_operator("constant")
def constant_sign(op: Op, rng: Random) -> str | None:
    return None if mlir.tensor_element_name(op.results[0].type) == "i1" else _changed_constant(op, lambda c: -c)


@_operator("constant")
def negative_zero(op: Op, rng: Random) -> str | None:
    value = mlir.constant_value(op) if _is_float(op.results[0]) else None
    return None if value is None or (value != 0).any() else _changed_constant(op, lambda c: -c)


@_operator("constant")
def constant_double(op: Op, rng: Random) -> str | None:
    return None if mlir.tensor_element_name(op.results[0].type) == "i1" else _changed_constant(op, lambda c: c + c)


@_operator("constant")
def constant_element(op: Op, rng: Random) -> str | None:
    value = mlir.constant_value(op)
    if value is None or value.size < 2 or value.dtype.kind not in "iufb":
        return None
    at = rng.randrange(value.size)

    def changed(c: Any) -> Any:
        flat = c.reshape(-1)
        flat[at] = ~flat[at] if c.dtype == np.bool_ else flat[at] + 1
        return c

    return _changed_constant(op, changed)


# --- movement --------------------------------------------------------------------------------------------------


@_operator("iota")
def iota_dimension(op: Op, rng: Random) -> str | None:
    shape = mlir.tensor_shape(op.results[0].type)
    old = mlir.integer_of(op.attributes["iota_dimension"])
    others = [d for d in range(len(shape)) if d != old and shape[d] != 1]
    if not others:
        return None
    op.attributes["iota_dimension"] = mlir.i64_attribute(new := rng.choice(others))
    return f"iota along {old} -> {new}"


def _permuted(attribute: str) -> Operator:
    def permuted(op: Op, rng: Random) -> str | None:
        def change(dims: list[int]) -> list[int] | None:
            found = _exchange(mlir.tensor_shape(op.results[0].type), rng, range(len(dims)))
            source = mlir.tensor_shape(op.operands[0].type)
            if attribute == "broadcast_dimensions":
                found = _exchange(source, rng, range(len(dims)))
            if found is None:
                return None
            i, j = found
            dims[i], dims[j] = dims[j], dims[i]
            return dims

        return _list(op, attribute, change)

    return permuted


OPERATORS["transpose_permutation"] = ("stablehlo.transpose",), _permuted("permutation")
OPERATORS["broadcast_exchanged"] = ("stablehlo.broadcast_in_dim",), _permuted("broadcast_dimensions")


@_operator("broadcast_in_dim")
def broadcast_moved(op: Op, rng: Random) -> str | None:
    source, target = mlir.tensor_shape(op.operands[0].type), mlir.tensor_shape(op.results[0].type)

    def change(dims: list[int]) -> list[int] | None:
        moves = [
            (i, d)
            for i in range(len(dims))
            for d in range(len(target))
            if d not in dims and source[i] == target[d] != 1
        ]
        if not moves:
            return None
        i, d = rng.choice(moves)
        dims[i] = d
        return dims

    return _list(op, "broadcast_dimensions", change)


@_operator("reshape")
def reshape_transposed(op: Op, rng: Random) -> str | None:
    source = op.operands[0]
    shape = mlir.tensor_shape(source.type)
    found = _exchange(shape, rng, range(len(shape)))
    if found is None:
        return None
    order = list(range(len(shape)))
    order[found[0]], order[found[1]] = found[1], found[0]
    op.operands[0] = _made(op, "stablehlo.transpose", [source], source.type, {"permutation": mlir.dense_i64(order)})
    return f"transposed by {order} before a reshape"


@_operator("slice")
def slice_shift(op: Op, rng: Random) -> str | None:
    shape = mlir.static_shape(op.operands[0].type)
    starts, limits = (list(mlir.integers_of(op.attributes[n])) for n in ("start_indices", "limit_indices"))
    moves = [(d, s) for d in range(len(shape)) for s in (1, -1) if starts[d] + s >= 0 and limits[d] + s <= shape[d]]
    if not moves:
        return None
    d, s = rng.choice(moves)
    starts[d] += s
    limits[d] += s
    op.attributes["start_indices"], op.attributes["limit_indices"] = mlir.dense_i64(starts), mlir.dense_i64(limits)
    return f"slice moved by {s} along {d}"


@_operator("pad")
def pad_sides(op: Op, rng: Random) -> str | None:
    low, high = (list(mlir.integers_of(op.attributes[f"edge_padding_{n}"])) for n in ("low", "high"))
    places = [d for d in range(len(low)) if low[d] or high[d]]
    if not places:
        return None
    d = rng.choice(places)
    step = 1 if high[d] > 0 else -1
    low[d], high[d] = low[d] + step, high[d] - step
    op.attributes["edge_padding_low"], op.attributes["edge_padding_high"] = mlir.dense_i64(low), mlir.dense_i64(high)
    return f"padding moved along {d}"


@_operator("reverse")
def reverse_dimension(op: Op, rng: Random) -> str | None:
    rank = len(mlir.tensor_shape(op.results[0].type))
    return _list(op, "dimensions", lambda dims: [rng.choice([d for d in range(rank) if d not in dims] or dims)])


@_operator("concatenate")
def concatenate_order(op: Op, rng: Random) -> str | None:
    count = len(op.operands)
    pairs = [(i, j) for i in range(count) for j in range(i) if op.operands[i].type == op.operands[j].type]
    return _swap(op, *rng.choice(pairs)) if pairs else None


@_operator("dynamic_slice", "dynamic_update_slice")
def dynamic_starts(op: Op, rng: Random) -> str | None:
    first = 1 if op.name.endswith("dynamic_slice") else 2
    count = len(op.operands) - first
    return _swap(op, *(first + n for n in rng.sample(range(count), 2))) if count > 1 else None


# --- reductions and products -----------------------------------------------------------------------------------


@_operator("reduce", "reduce_window")
def reduce_init(op: Op, rng: Random) -> str | None:
    half = len(op.operands) // 2
    at = half + rng.randrange(half)
    value = op.operands[at]
    if mlir.tensor_element_name(value.type) == "i1":
        op.operands[at] = _made(op, "stablehlo.not", [value], value.type)
        return "another initial truth value"
    number = rng.choice([1, -1, 0])
    op.operands[at] = _constant(
        op, np.array(number).astype(mlir.dtype_of(mlir.tensor_element_name(value.type))), value.type
    )
    return f"initial value {number}"


@_operator("reduce")
def reduce_dimension(op: Op, rng: Random) -> str | None:
    shape = mlir.tensor_shape(op.operands[0].type)

    def change(dims: list[int]) -> list[int] | None:
        moves = [
            (i, d)
            for i in range(len(dims))
            for d in range(len(shape))
            if d not in dims and shape[d] == shape[dims[i]] != 1
        ]
        if not moves:
            return None
        i, d = rng.choice(moves)
        dims[i] = d
        return sorted(dims)

    return _list(op, "dimensions", change)


@_operator("reduce_window", "convolution")
def window_padding(op: Op, rng: Random) -> str | None:
    if "padding" not in op.attributes:
        return None
    old = op.attributes["padding"]
    table = np.array(mlir.dense_value(old, mlir.static_shape(old.type), "i64"))
    table = np.array(np.broadcast_to(table, mlir.static_shape(old.type)))
    d = rng.randrange(len(table))
    step = 1 if table[d, 1] > 0 else -1 if table[d, 0] > 0 else 0
    if not step:
        return None
    table[d] += [step, -step]
    op.attributes["padding"] = mlir.dense_attribute(table, old.type)
    return f"window padding moved along {d}"


@_operator("dot_general")
def dot_dimensions(op: Op, rng: Random) -> str | None:
    side = rng.choice(["lhs", "rhs"])
    shape = mlir.tensor_shape(op.operands[side == "rhs"].type)
    name = "dot_dimension_numbers"
    contracted, batch = (_field(op, name, f"{side}_{kind}_dimensions") for kind in ("contracting", "batching"))
    moves = [(i, d) for i in range(len(contracted)) for d in range(len(shape))
             if d not in (*contracted, *batch) and shape[d] == shape[contracted[i]] != 1]  # fmt: skip
    if not moves:
        return None
    i, d = rng.choice(moves)
    return _set_field(
        op, name, f"{side}_contracting_dimensions", contracted, [*contracted[:i], d, *contracted[i + 1 :]]
    )


@_operator("dot_general", promise=True)
def precision_lowered(op: Op, rng: Random) -> str | None:
    if "precision_config" not in op.attributes:
        return None
    text = str(op.attributes["precision_config"])
    for old, new in (("HIGHEST", "HIGH"), ("HIGHEST", "DEFAULT"), ("HIGH", "DEFAULT"))[rng.randrange(2) :]:
        if f"precision {old}>" in text:
            op.attributes["precision_config"] = mlir.parse_attribute(
                text.replace(f"precision {old}>", f"precision {new}>", 1)
            )
            return f"precision {old} -> {new} of one operand"
    return None


# --- gathers and scatters --------------------------------------------------------------------------------------

NUMBERS = {"stablehlo.scatter": "scatter_dimension_numbers", "stablehlo.gather": "dimension_numbers"}


@_operator("scatter", "gather")
def index_columns(op: Op, rng: Random) -> str | None:
    field = "scatter_dims_to_operand_dims" if op.name.endswith("scatter") else "start_index_map"
    dims = _field(op, NUMBERS[op.name], field)
    if len(dims) < 2:
        return None
    i, j = rng.sample(range(len(dims)), 2)
    new = list(dims)
    new[i], new[j] = dims[j], dims[i]
    return _set_field(op, NUMBERS[op.name], field, dims, new)


@_operator("scatter", "gather")
def index_dimension(op: Op, rng: Random) -> str | None:
    field = "scatter_dims_to_operand_dims" if op.name.endswith("scatter") else "start_index_map"
    dims = _field(op, NUMBERS[op.name], field)
    rank = len(mlir.tensor_shape(op.operands[0].type))
    others = [d for d in range(rank) if d not in dims]
    if not dims or not others:
        return None
    i = rng.randrange(len(dims))
    return _set_field(op, NUMBERS[op.name], field, dims, [*dims[:i], rng.choice(others), *dims[i + 1 :]])


@_operator("scatter", "gather")
def window_dimensions(op: Op, rng: Random) -> str | None:
    is_scatter = op.name.endswith("scatter")
    field = "update_window_dims" if is_scatter else "offset_dims"
    dims = _field(op, NUMBERS[op.name], field)
    shape = mlir.tensor_shape((op.operands[-1] if is_scatter else op.results[0]).type)
    moves = [
        (i, d) for i in range(len(dims)) for d in range(len(shape)) if d not in dims and shape[d] == shape[dims[i]]
    ]
    if not moves:
        return None
    i, d = rng.choice(moves)
    return _set_field(op, NUMBERS[op.name], field, dims, sorted([*dims[:i], d, *dims[i + 1 :]]))


@_operator("scatter", "gather")
def inserted_dimension(op: Op, rng: Random) -> str | None:
    field = "inserted_window_dims" if op.name.endswith("scatter") else "collapsed_slice_dims"
    dims = _field(op, NUMBERS[op.name], field)
    shape = mlir.tensor_shape(op.operands[0].type)
    moves = [(i, d) for i in range(len(dims)) for d in range(len(shape)) if d not in dims]
    if not moves:
        return None
    i, d = rng.choice(moves)
    return _set_field(op, NUMBERS[op.name], field, dims, sorted([*dims[:i], d, *dims[i + 1 :]]))


@_operator("scatter", promise=True)
def promise_unique(op: Op, rng: Random) -> str | None:
    return _parsed(op, "unique_indices", "false", "true")


@_operator("scatter", "gather", promise=True)
def promise_sorted(op: Op, rng: Random) -> str | None:
    if "indices_are_sorted" in op.attributes:
        return _parsed(op, "indices_are_sorted", "false", "true")
    op.attributes["indices_are_sorted"] = mlir.parse_attribute("true")
    return "indices_are_sorted = true"


@_operator("scatter", "reduce", "reduce_window")
def combiner(op: Op, rng: Random) -> str | None:
    block = op.regions[0].blocks[0]
    operations = list(block.operations)
    old, new = list(block.arguments)[: len(op.results)], list(block.arguments)[len(op.results) :]
    last = operations[-1].operation
    at = rng.randrange(len(last.operands))
    if mlir.producer(last.operands[at]) is None or mlir.is_block_argument(last.operands[at]):
        if mlir.tensor_element_name(new[at].type) == "i1":
            return None
        name = rng.choice(["add", "maximum", "multiply"])
        last.operands[at] = _made(last, f"stablehlo.{name}", [old[at], new[at]], new[at].type)
        return f"combiner set -> {name}"
    last.operands[at] = rng.choice([old, new])[at]
    return "combiner -> one of its arguments"


# --- sorts -----------------------------------------------------------------------------------------------------


@_operator("sort", promise=True)
def sort_stability(op: Op, rng: Random) -> str | None:
    if "true" not in str(mlir.attributes_of(op).get("is_stable", "")):
        return None
    op.attributes["is_stable"] = mlir.parse_attribute("false")
    return "is_stable dropped"


@_operator("sort")
def sort_dimension(op: Op, rng: Random) -> str | None:
    rank = len(mlir.tensor_shape(op.operands[0].type))
    old = mlir.integer_of(op.attributes["dimension"]) % rank
    others = [d for d in range(rank) if d != old]
    if not others:
        return None
    op.attributes["dimension"] = mlir.i64_attribute(rng.choice(others))
    return "another sort dimension"


@_operator("sort")
def sort_key(op: Op, rng: Random) -> str | None:
    block = op.regions[0].blocks[0]
    arguments = list(block.arguments)
    keys = range(len(arguments) // 2)
    moves = [(i, j) for i in keys for j in keys if i != j and arguments[2 * i].type == arguments[2 * j].type]
    if not moves:
        return None
    i, j = rng.choice(moves)
    for side in (0, 1):
        arguments[2 * i + side].replace_all_uses_with(arguments[2 * j + side])
    return f"key {i} -> {j}"


# --- control ---------------------------------------------------------------------------------------------------


@_operator("case", "if")
def case_branches(op: Op, rng: Random) -> str | None:
    count = len(op.regions)
    i, j = rng.sample(range(count), 2)
    first, second = op.regions[i].blocks[0], op.regions[j].blocks[0]
    mlir.move_block(first, op, j)
    mlir.move_block(op.regions[j].blocks[0], op, i)
    return f"branches {i} and {j} changed places" if second is not None else None


@_operator("while")
def loop_carry(op: Op, rng: Random) -> str | None:
    block = op.regions[1].blocks[0]
    last = list(block.operations)[-1].operation
    count = len(last.operands)
    pairs = [(i, j) for i in range(count) for j in range(i) if last.operands[i].type == last.operands[j].type]
    return _swap(last, *rng.choice(pairs)) if pairs else None


@_operator("while")
def loop_step(op: Op, rng: Random) -> str | None:
    last = list(op.regions[1].blocks[0].operations)[-1].operation
    places = [
        i
        for i, v in enumerate(last.operands)
        if mlir.tensor_shape(v.type) == () and mlir.tensor_element_name(v.type) in ("i32", "i64")
    ]
    if not places:
        return None
    i = rng.choice(places)
    value = last.operands[i]
    last.operands[i] = _made(last, "stablehlo.add", [value, _constant(last, 1, value.type)], value.type)
    return f"one more is added to what is carried in {i}"


@_operator("while")
def loop_bound(op: Op, rng: Random) -> str | None:
    compares = [o for o in mlir.body_of(op) if o.name == "stablehlo.compare"]
    return compare_direction(rng.choice(compares), rng) if compares else None


@_operator("func.call")
def other_callee(op: Op, rng: Random) -> str | None:
    module = op
    while module.name != "builtin.module":
        module = module.parent.operation if hasattr(module.parent, "operation") else module.parent
    own = str(op.attributes["callee"]).strip('@"')
    functions = {
        mlir.symbol_name(f.attributes["sym_name"]): f
        for f in module.regions[0].blocks[0].operations
        if f.operation.name == "func.func"
    }
    type_ = str(functions[own].attributes["function_type"])
    others = [n for n, f in functions.items() if n not in (own, "main") and str(f.attributes["function_type"]) == type_]
    if not others:
        return None
    op.attributes["callee"] = mlir.symbol_attribute(new := rng.choice(others))
    return f"@{own} -> @{new}"


@_operator()
def other_operand(op: Op, rng: Random) -> str | None:
    if op.name in ("builtin.module", "func.func") or not op.operands:
        return None
    block = mlir.block_of(op)
    at = rng.randrange(len(op.operands))
    values = list(block.arguments)
    for other in block.operations:
        if other.operation == op:
            break
        values += list(other.operation.results)
    fitting = [v for v in values if v.type == op.operands[at].type and v != op.operands[at]]
    if not fitting:
        return None
    op.operands[at] = rng.choice(fitting)
    return f"operand {at} of {op.name} is another value"


@_operator("func.return", "stablehlo.return")
def result_order(op: Op, rng: Random) -> str | None:
    count = len(op.operands)
    pairs = [(i, j) for i in range(count) for j in range(i) if op.operands[i].type == op.operands[j].type]
    return _swap(op, *rng.choice(pairs)) if pairs else None


@_operator("add", "multiply")
def reassociated(op: Op, rng: Random) -> str | None:
    """(a + b) + c -> a + (b + c): the same for integers, another rounding for floats."""
    inner = mlir.producer(op.operands[0])
    if inner is None or inner.name != op.name or not _is_float(op.results[0]):
        return None
    a, b = inner.operands
    right = _made(op, op.name, [b, op.operands[1]], op.results[0].type)
    op.operands[0], op.operands[1] = a, right
    return "another order of two float operations"


# --- what stays the same ---------------------------------------------------------------------------------------


@_operator("add", "multiply", "and", "or", "xor", equal=True)
def commuted(op: Op, rng: Random) -> str | None:
    if mlir.tensor_element_name(op.results[0].type).startswith("complex"):
        return None
    return _swap(op, 0, 1)


@_operator("compare", equal=True)
def compare_turned(op: Op, rng: Random) -> str | None:
    old = mlir.enum_value(op.attributes["comparison_direction"])
    new = {"LT": "GT", "LE": "GE", "GT": "LT", "GE": "LE", "EQ": "EQ", "NE": "NE"}[old]
    done = _swap(op, 0, 1)
    _enum(op, "comparison_direction", "comparison_direction", new)
    return done


@_operator("select", equal=True)
def select_turned(op: Op, rng: Random) -> str | None:
    done = _swap(op, 1, 2)
    if done:
        op.operands[0] = _made(op, "stablehlo.not", [op.operands[0]], op.operands[0].type)
    return done


@_operator("add", equal=True)
def subtracted_negative(op: Op, rng: Random) -> str | None:
    if mlir.tensor_element_name(op.results[0].type) == "i1":
        return None
    negative = _made(op, "stablehlo.negate", [op.operands[1]], op.operands[1].type)
    return _replace(op, "stablehlo.subtract", {}, [op.operands[0], negative])


@_operator("multiply", equal=True)
def doubled_as_sum(op: Op, rng: Random) -> str | None:
    for i in (0, 1):
        producer = mlir.producer(op.operands[i])
        if producer is not None and producer.name == "stablehlo.constant" and mlir.is_splat(producer):
            value = mlir.constant_value(producer)
            if value is not None and value.size and value.reshape(-1)[0] == 2:
                return _replace(op, "stablehlo.add", {}, [op.operands[1 - i]] * 2)
    return None


@_operator("and", equal=True)
def de_morgan(op: Op, rng: Random) -> str | None:
    nots = [_made(op, "stablehlo.not", [v], v.type) for v in op.operands]
    either = _made(op, "stablehlo.or", nots, op.results[0].type)
    return _replace(op, "stablehlo.not", {}, [either])


@_operator("transpose", "reverse", "add", "subtract", "gather", "reduce", "select", equal=True)
def turned_twice(op: Op, rng: Random) -> str | None:
    value = op.results[0]
    rank = len(mlir.tensor_shape(value.type))
    if not rank:
        return None
    dims = {"dimensions": mlir.dense_i64([rng.randrange(rank)])}
    one = mlir.create_operation(
        "stablehlo.reverse", [value], [value.type], dims, location=op.location, insertion_point=mlir.insert_after(op)
    )
    two = mlir.create_operation(
        "stablehlo.reverse",
        [one.results[0]],
        [value.type],
        dims,
        location=op.location,
        insertion_point=mlir.insert_after(one),
    )
    value.replace_all_uses_with(two.results[0])
    one.operands[0] = value
    return "reversed twice"


@_operator("constant", equal=True)
def constant_from_parts(op: Op, rng: Random) -> str | None:
    """An integer constant as the sum of two."""
    value = mlir.constant_value(op)
    if value is None or value.dtype.kind not in "iu" or not value.size or value.size > 4096:
        return None
    part = rng.randrange(1, 50)
    with np.errstate(all="ignore"):
        rest = (value - np.array(part, value.dtype)).astype(value.dtype)
    return _replace(
        op, "stablehlo.add", {}, [_constant(op, part, op.results[0].type), _constant(op, rest, op.results[0].type)]
    )
