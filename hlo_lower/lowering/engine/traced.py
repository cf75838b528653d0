"""Rules as JAX functions, traced at the types of what they are given, and built op by op where a rule builds.

JAX makes a jaxpr of a function, whose primitives are ops of StableHLO by other names. What is one number, a row or a
column everywhere stays that until an op needs it in a shape: so a constant is one constant of that shape, and what a
function says of scalars is built of tensors of any shape.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial, wraps
from typing import Any, cast

import jax
import numpy as np

from hlo_lower.base.element_types import element_type_of
from hlo_lower.base.registry import DoesNotApply
from hlo_lower.facts.scatter.combine import OPS, identity
from hlo_lower.facts.values.region import Combiner
from hlo_lower.ir import mlir
from hlo_lower.ir.axes import matrix_products, reduce_along
from hlo_lower.ir.builder import Builder
from hlo_lower.ir.view import Value
from hlo_lower.lowering.engine.kind import OpLowering
from hlo_lower.ops.names import IS_FINITE

Function = Callable[..., Any]

ELEMENTWISE: dict[str, str] = {
    **{name: name for name in ("abs", "add", "and", "atan2", "floor", "log", "not", "or", "rsqrt", "sqrt")},
    **{name: name for name in ("shift_left", "shift_right_logical", "xor")},
    "cos": "cosine", "div": "divide", "exp": "exponential", "expm1": "exponential_minus_one", "max": "maximum",
    "min": "minimum", "mul": "multiply", "neg": "negate", "pow": "power", "rem": "remainder", "sign": "sign",
    "sin": "sine", "sub": "subtract",
}  # fmt: skip
"""Primitives whose results have their operands' type, and the ops that they are."""

ROUNDED = {"TO_NEAREST_EVEN": "round_nearest_even", "AWAY_FROM_ZERO": "round_nearest_afz"}

COMPARED = ("eq", "ne", "ge", "gt", "le", "lt")

FOLDED = {"reduce_sum": Combiner.ADD, "reduce_max": Combiner.MAX, "reduce_min": Combiner.MIN}

ON_WHOLE: Mapping[str, Callable[[Builder, list[Value], Mapping[str, Any], Any], Value]] = {
    "bitcast_convert_type": lambda build, x, _, result: build.bitcast(x[0], _element(result.dtype)),
    "concatenate": lambda build, x, params, _: build.concatenate(x, params["dimension"]),
    "dot_general": lambda build, x, _params, _result: matrix_products(build, *x),
    "dynamic_slice": lambda build, x, params, _: build.dynamic_slice(x[0], x[1:], params["slice_sizes"]),
    "iota": lambda build, _, params, result: build.iota(result.shape, params["dimension"], _element(result.dtype)),
    "reshape": lambda build, x, _, result: build.reshape(x[0], result.shape),
    "rev": lambda build, x, params, _: build.reverse(x[0], params["dimensions"]),
    "slice": lambda build, x, params, _: build.slice(
        x[0], params["start_indices"], params["limit_indices"], params["strides"] or ()
    ),
    "squeeze": lambda build, x, _, result: build.reshape(x[0], result.shape),
    "transpose": lambda build, x, params, _: build.transpose(x[0], params["permutation"]),
}
"""Primitives of tensors that are not computed element by element."""


@dataclass(frozen=True)
class _Spread:
    """What is the same along dims: dim i of a value is dim dims[i] of the shape; or a number everywhere."""

    source: Any
    shape: tuple[int, ...]
    dims: tuple[int, ...] = ()


def of_elements(function: Function) -> Callable[[OpLowering[Any]], list[Value]]:
    """The rule that gives of each element of an op's operands what a JAX function of scalars does."""

    @wraps(function)
    def lowering(op: OpLowering[Any]) -> list[Value]:
        return on_each(op.build, function, *op.node.operands)

    return lowering


def on_each(build: Builder, function: Function, *values: Value, **given: Any) -> list[Value]:
    """What a JAX function of scalars gives for each element of tensors of one shape, built; as `build_traced`."""
    jaxpr = jaxpr_of(function, ((),) * len(values), _types(values), tuple(given.items()))
    return _Run(build, values).build(jaxpr, [values[0].static_shape] * len(jaxpr.out_avals))


def build_traced(build: Builder, function: Function, *values: Value, **given: Any) -> list[Value]:
    """Trace a JAX function and build its ops on values.

    Args:
      build: where.
      function: of arrays; a function of a module, so that it is traced once for each choice of types.
      values: the arrays.
      given: further arguments, which are hashable.

    Raises:
      DoesNotApply: NumPy has no such element type.
    """
    shapes = tuple(value.static_shape for value in values)
    jaxpr = jaxpr_of(function, shapes, _types(values), tuple(given.items()))
    return _Run(build, values).build(jaxpr, [result.shape for result in jaxpr.out_avals])


def _types(values: Sequence[Value]) -> tuple[str, ...]:
    return tuple(value.element_type for value in values)


@lru_cache(maxsize=512)
def jaxpr_of(
    function: Function, shapes: Sequence[tuple[int, ...]], elements: Sequence[str], given: Sequence[tuple[str, Any]]
) -> Any:
    """What JAX makes of a function of arrays, once for each choice of their types."""
    dtypes = [mlir.dtype_of(element) for element in elements]
    if any(dtype is None for dtype in dtypes):
        raise DoesNotApply("JAX has not its element type")
    types = [jax.ShapeDtypeStruct(shape, dtype) for shape, dtype in zip(shapes, dtypes, strict=True)]
    with mlir.plain_jax():
        return cast(Any, jax).make_jaxpr(partial(function, **dict(given)))(*types)


class _Run:
    def __init__(self, build: Builder, values: Sequence[Value]) -> None:
        self._build, self._values = build, values
        self._broadcast: dict[tuple[Value, tuple[int, ...], tuple[int, ...]], Value] = {}

    def build(self, jaxpr: Any, shapes: Sequence[Sequence[int]]) -> list[Value]:
        """The results in these shapes, over which a number that one is everywhere is spread."""
        return [self._in_shape(*one) for one in zip(self._items(jaxpr, self._values), shapes, strict=True)]

    def _items(self, closed: Any, given: Sequence[Value | _Spread]) -> list[Value | _Spread]:
        known = dict(zip(closed.jaxpr.invars, given, strict=True))
        for variable, array in zip(closed.jaxpr.constvars, closed.consts, strict=True):
            known[variable] = self._build.constant_array(np.asarray(array), _element(array.dtype))

        def item(atom: Any) -> Value | _Spread:
            return _Spread(np.asarray(atom.val)[()], ()) if hasattr(atom, "val") else known[atom]

        for equation in closed.jaxpr.eqns:
            operands, inner = [item(atom) for atom in equation.invars], equation.params.get("jaxpr")
            results = [self._build_equation(equation, operands)] if inner is None else self._items(inner, operands)
            known.update(zip(equation.outvars, results, strict=True))
        return [item(atom) for atom in closed.jaxpr.outvars]

    def _build_equation(self, equation: Any, operands: Sequence[Value | _Spread]) -> Value | _Spread:
        name, params, result, build = equation.primitive.name, equation.params, equation.outvars[0].aval, self._build
        if name == "broadcast_in_dim":
            return _spread(operands[0], result.shape, params["broadcast_dimensions"])
        if name == "convert_element_type":
            return self._convert(operands[0], result.dtype)
        if name in FOLDED:
            [value] = self._whole(operands)
            is_sum, element = name == "reduce_sum", mlir.tensor_element(value.raw.type)
            first = build.zero(element) if is_sum else identity(build, FOLDED[name], value.element_type)
            return reduce_along(build, value, first, params["axes"], OPS[FOLDED[name]])
        if name in ON_WHOLE:
            return ON_WHOLE[name](build, self._whole(operands), params, result)
        shape = np.broadcast_shapes(*map(_shape_of, operands))
        if name in COMPARED and (number := _number(operands[1])) is not None:
            return build.compare(self._in_shape(operands[0], shape), name.upper(), number)
        values = [self._in_shape(operand, shape) for operand in operands]
        if name in COMPARED:
            return build.compare(values[0], name.upper(), values[1])
        if name == "round":
            return build.elementwise(ROUNDED[params["rounding_method"].name], *values)
        if name == "is_finite":
            return build.op(IS_FINITE, values, [mlir.tensor_type(shape, "i1")]).result()
        if name == "select_n":
            return build.select(values[0], values[2], values[1])
        return build.elementwise(ELEMENTWISE[name], *values)

    def _convert(self, item: Value | _Spread, dtype: Any) -> Value | _Spread:
        source = item if isinstance(item, Value) else item.source
        made = self._build.convert(source, _element(dtype)) if isinstance(source, Value) else source.astype(dtype)
        return made if isinstance(item, Value) else replace(item, source=made)

    def _whole(self, items: Sequence[Value | _Spread]) -> list[Value]:
        return [self._in_shape(item, _shape_of(item)) for item in items]

    def _in_shape(self, item: Value | _Spread, shape: Sequence[int]) -> Value:
        """An item in a shape, its own dims the last ones."""
        spread = _spread(item, _shape_of(item), range(len(_shape_of(item)))) if isinstance(item, Value) else item
        if isinstance(spread.source, Value):
            before = len(shape) - len(spread.shape)
            key = spread.source, tuple(shape), tuple(before + dim for dim in spread.dims)
            if key not in self._broadcast:
                self._broadcast[key] = self._build.broadcast(*key)
            return self._broadcast[key]
        element = _element(spread.source.dtype)
        is_whole = spread.source.dtype.kind in "iub"
        splat: Callable[..., Value] = self._build.constant if is_whole else self._build.float_splat
        return splat(spread.source.item() if is_whole else float(spread.source), shape, element)


def _spread(item: Value | _Spread, shape: tuple[int, ...], dims: Sequence[int]) -> _Spread:
    if isinstance(item, Value):
        return _Spread(item, shape, tuple(dims))
    return _Spread(item.source, shape, tuple(dims[dim] for dim in item.dims))


def _number(item: Value | _Spread) -> int | None:
    """The integer that an item is everywhere, where it is known."""
    source: Any = item.source if isinstance(item, _Spread) else item
    return None if isinstance(source, Value) or np.asarray(source).dtype.kind not in "iu" else int(source)


def _shape_of(item: Value | _Spread) -> tuple[int, ...]:
    return item.static_shape if isinstance(item, Value) else item.shape


def _element(dtype: Any) -> str:
    """The element type of arrays of a dtype, as MLIR prints it."""
    return element_type_of(np.dtype(dtype)).name
