"""StableHLO op by op in NumPy: slow, plain, and written without a look at the judge.

A module is read once into nodes; the bodies of reductions, scatters and sorts are evaluated on arrays of any shape, as
all that they hold is elementwise. Out of bounds, a scatter drops whole windows, as XLA does.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cmp_to_key
from math import prod
from typing import Any

import numpy as np

from hlo_lower.ir import mlir
from mutating.elementwise import ELEMENTWISE, converted
from mutating.windows import convolution, dot_general, gather, reduce_window, scatter

Array = np.ndarray[Any, Any]

STEPS = 60_000
"""Nodes evaluated in one run, before it counts as one that does not end."""

ELEMENTS = 1 << 22
"""Elements of one value, above which a module is too large for this."""


class Unsupported(Exception):
    """The evaluator has no definition of an op."""


class BadInput(Exception):
    """The arguments do not fit each other, or the run takes too long."""


@dataclass(eq=False)
class Node:
    """One op: its number in the module's walk, operands and results by number, and what the evaluator needs of it."""

    key: int
    name: str
    ins: list[int]
    outs: list[int]
    types: list[mlir.TensorType | None]
    attributes: dict[str, Any]
    blocks: list["Block"]
    scalar: bool = False


@dataclass(eq=False)
class Block:
    """Nodes in order, and what they return."""

    arguments: list[int]
    types: list[mlir.TensorType | None]
    nodes: list[Node]
    returns: list[int]


def dtype_of(tensor: mlir.TensorType | None) -> np.dtype[Any]:
    """The NumPy type of the elements."""
    dtype = tensor and _dtype_named(tensor.element_name)
    if dtype is None:
        raise Unsupported(f"type {tensor}")
    return dtype


_dtype_named = cache(mlir.dtype_of)


class Module:
    """A module that can be evaluated.

    Attributes:
      functions: by name.
      main: the block of the entry.
      watched: by the number of an op, what is called with it and the values of its operands and results.
    """

    def __init__(self, text: str) -> None:
        self._ids: dict[Any, int] = {}
        self._steps = 0
        self.functions: dict[str, Block] = {}
        self.watched: dict[int, Callable[[Node, list[Array], list[Array]], None]] = {}
        self.last_first: set[int] = set()
        """Sorts that have ties the other way round, as one that is not stable may."""
        module = mlir.parse_module(text, mlir.shared_context(len(text)))
        with mlir.active(module.context):
            self._keys = {op: n for n, op in enumerate(mlir.operations_within(module.operation))}
            for op in (op.operation for op in module.body.operations):
                if op.name == "func.func" and op.regions[0].blocks:
                    self.functions[mlir.symbol_name(op.attributes["sym_name"])] = self._block(op.regions[0].blocks[0])
        self.main = self.functions["main"]

    def _id(self, value: Any) -> int:
        return self._ids.setdefault(value, len(self._ids))

    def _block(self, block: Any, scalar: bool = False) -> Block:
        arguments = [self._id(a) for a in block.arguments]
        types = [mlir.read_tensor_type(a.type) for a in block.arguments]
        operations = [op.operation for op in block.operations]
        nodes = [self._node(op, scalar) for op in operations[:-1]]
        return Block(arguments, types, nodes, [self._id(v) for v in operations[-1].operands])

    def _node(self, op: Any, scalar: bool) -> Node:
        inner = scalar or op.name in SCALAR_BODIES
        blocks = [self._block(region.blocks[0], inner) for region in op.regions if region.blocks]
        types = [mlir.read_tensor_type(r.type) for r in op.results]
        node = Node(
            self._keys[op], op.name, [self._id(v) for v in op.operands], [self._id(r) for r in op.results],
            types, {}, blocks, scalar,
        )  # fmt: skip
        if op.name == "stablehlo.constant":
            value = mlir.constant_value(op, is_complex=True)
            if value is None or value.size > ELEMENTS:
                raise Unsupported(f"constant of type {op.results[0].type}")
            node.attributes = {"value": np.array(value)}
        else:
            node.attributes = _attributes(op)
        return node

    # --- running ---------------------------------------------------------------------------------------------

    def run(self, arguments: Sequence[Array]) -> list[Array]:
        """The results of main.

        Raises:
          BadInput: shapes do not fit, or it takes too many steps.
          Unsupported: an op has no definition here.
        """
        self._steps = 0
        with np.errstate(all="ignore"):
            try:
                return self._call(self.main, list(arguments))
            except (ValueError, IndexError, OverflowError, np.linalg.LinAlgError) as error:
                raise BadInput(f"{type(error).__name__}: {error}") from error

    def _call(self, block: Block, arguments: Sequence[Array], env: dict[int, Array] | None = None) -> list[Array]:
        env = {} if env is None else env
        env.update(zip(block.arguments, arguments, strict=True))
        for node in block.nodes:
            self._steps += 1
            if self._steps > STEPS:
                raise BadInput("it takes too many steps")
            values = [env[i] for i in node.ins]
            results = self.evaluated(node, values, env)
            if node.key in self.watched:
                self.watched[node.key](node, values, results)
            for number, result in zip(node.outs, results, strict=True):
                env[number] = result
        return [env[i] for i in block.returns]

    def evaluated(self, node: Node, values: list[Array], env: dict[int, Array]) -> list[Array]:
        """The results of one op."""
        name = node.name
        if rule := ELEMENTWISE.get(name.removeprefix("stablehlo.").removeprefix("chlo.")):
            return [np.asarray(rule(node, *values)).astype(dtype_of(node.types[0]), copy=False)]
        if node.scalar and name in UNCHANGED_SCALARS:
            return [values[0]]
        if name == "stablehlo.constant":
            return [node.attributes["value"]]
        if name in CONTROL:
            return CONTROL[name](self, node, values, env)
        if name in DYNAMIC:
            return DYNAMIC[name](node, values)
        if rule := STRUCTURE.get(name):
            return rule(self, node, values, env)
        raise Unsupported(name)

    def body(self, node: Node, env: dict[int, Array]) -> Callable[..., list[Array]]:
        """The body of a node as a function of arrays."""
        return lambda *values: self._call(node.blocks[0], values, env)

    def dependent(self) -> set[int]:
        """The numbers of the ops that some result may depend on."""
        live: set[int] = set()
        seen: set[int] = set()

        def visit(block: Block, needed: set[int]) -> None:
            for node in reversed(block.nodes):
                if needed.isdisjoint(node.outs) and node.name not in EFFECTS:
                    continue
                live.add(node.key)
                needed.update(node.ins)
                for inner in node.blocks:
                    visit(inner, needed)
                    needed.update(inner.returns)
                    visit(inner, needed)
                callee = node.attributes.get("callee") or node.attributes.get("decomposition")
                if callee in self.functions and callee not in seen:
                    seen.add(callee)
                    function = self.functions[callee]
                    visit(function, set(function.returns))

        visit(self.main, set(self.main.returns))
        return live

    def nodes(self) -> dict[int, Node]:
        """All ops by number."""
        found: dict[int, Node] = {}

        def visit(block: Block) -> None:
            for node in block.nodes:
                found[node.key] = node
                for inner in node.blocks:
                    visit(inner)

        for function in self.functions.values():
            visit(function)
        return found


EFFECTS = ("stablehlo.custom_call",)
SCALAR_BODIES = {f"stablehlo.{n}" for n in ("reduce", "scatter", "sort", "reduce_window", "map")}
UNCHANGED_SCALARS = {f"stablehlo.{n}" for n in ("reshape", "broadcast_in_dim", "transpose", "optimization_barrier")}

_LIST = re.compile(r"(\w+) = \[([-\d, ]*)\]")
_NUMBER = re.compile(r"(\w+) = (\d+)(?![\d\]])")


def _attributes(op: Any) -> dict[str, Any]:
    """The attributes of an op as plain values: integers, lists of integers, words."""
    found: dict[str, Any] = {}
    for name, attribute in mlir.attributes_of(op).items():
        text = str(attribute)
        if text.startswith("#stablehlo.conv<"):
            found[name] = (mlir.convolution_dimension_numbers(op), mlir.convolution_spatial_dimensions(op))
        elif re.match(r"#stablehlo\.(scatter|gather|dot)<", text):
            fields: dict[str, Any] = {k: int(v) for k, v in _NUMBER.findall(text)}
            fields |= {k: [int(n) for n in v.split(",") if n.strip()] for k, v in _LIST.findall(text)}
            found[name] = fields
        elif text.startswith("#stablehlo<"):
            found[name] = text.removesuffix(">").split(" ")[-1]
        elif match := re.fullmatch(r"array<i\w+(?:: (.*))?>", text):
            found[name] = [{"true": 1, "false": 0}.get(v) if v in ("true", "false") else int(v)
                           for v in (match[1] or "").split(", ") if v]  # fmt: skip
        elif text.startswith("dense<") and ": tensor<" in text and "xi64" in text:
            shape = mlir.static_shape(attribute.type)
            found[name] = np.array(mlir.dense_value(attribute, shape, "i64")).tolist()
        elif match := re.fullmatch(r"(-?\d+) : i\d+", text):
            found[name] = int(match[1])
        elif text in ("true", "false"):
            found[name] = text == "true"
        elif text.startswith("@"):
            found[name] = text[1:].strip('"')
        else:
            found[name] = text
    return found


# --- control ---------------------------------------------------------------------------------------------------


def _while(self: Module, node: Node, values: list[Array], env: dict[int, Array]) -> list[Array]:
    condition, body = node.blocks
    while bool(self._call(condition, values, env)[0]):
        values = self._call(body, values, env)
        self._steps += 1
        if self._steps > STEPS:
            raise BadInput("a loop takes too many steps")
    return values


def _case(self: Module, node: Node, values: list[Array], env: dict[int, Array]) -> list[Array]:
    chosen, count = int(values[0]), len(node.blocks)
    return self._call(node.blocks[chosen if 0 <= chosen < count else count - 1], [], env)


def _if(self: Module, node: Node, values: list[Array], env: dict[int, Array]) -> list[Array]:
    return self._call(node.blocks[0 if bool(values[0]) else 1], [], env)


def _func(self: Module, node: Node, values: list[Array], env: dict[int, Array]) -> list[Array]:
    return self._call(self.functions[node.attributes["callee"]], values)


def _composite(self: Module, node: Node, values: list[Array], env: dict[int, Array]) -> list[Array]:
    return self._call(self.functions[node.attributes["decomposition"]], values)


def _custom_call(self: Module, node: Node, values: list[Array], env: dict[int, Array]) -> list[Array]:
    target = node.attributes["call_target_name"].strip('"')
    if target == "shape_assertion":
        if not bool(values[0]):
            raise BadInput("a shape assertion is false")
        return []
    if target in ("Sharding", "annotate_device_placement"):
        return values[: len(node.outs)]
    raise Unsupported(f"custom_call @{target}")


CONTROL = {
    "stablehlo.while": _while,
    "stablehlo.case": _case,
    "stablehlo.if": _if,
    "func.call": _func,
    "stablehlo.composite": _composite,
    "stablehlo.custom_call": _custom_call,
}

# --- structure -------------------------------------------------------------------------------------------------


def _broadcast(x: Array, shape: Sequence[int], dims: Sequence[int]) -> Array:
    if prod(shape) > ELEMENTS:
        raise BadInput("too many elements")
    if not x.shape:
        return np.broadcast_to(x, tuple(shape))
    middle = [1] * len(shape)
    for size, dim in zip(x.shape, dims, strict=True):
        middle[dim] = size
    order = np.argsort(dims) if len(dims) else []
    return np.broadcast_to(np.transpose(x, order).reshape(middle), tuple(shape))


def _shape(node: Node) -> list[int]:
    tensor = node.types[0]
    assert tensor is not None
    if not tensor.is_static:
        raise Unsupported(f"{node.name} of dynamic type")
    return [int(n or 0) for n in tensor.shape]


def _iota(shape: Sequence[int], dim: int, dtype: np.dtype[Any]) -> Array:
    if prod(shape) > ELEMENTS:
        raise BadInput("too many elements")
    line = converted(np.arange(shape[dim], dtype=np.int64), dtype)
    return _broadcast(line, shape, [dim])


def _slices(node: Node) -> tuple[slice, ...]:
    a = node.attributes
    return tuple(map(slice, a["start_indices"], a["limit_indices"], a["strides"]))


def _clamped(starts: Sequence[Any], sizes: Sequence[int], shape: Sequence[int]) -> list[slice]:
    found: list[slice] = []
    for start, size, extent in zip(starts, sizes, shape, strict=True):
        if size > extent:
            raise BadInput("a slice is larger than what it is of")
        first = min(max(int(start), 0), extent - size)
        found.append(slice(first, first + size))
    return found


def _dynamic_slice(self: Module, node: Node, values: list[Array], env: dict[int, Array]) -> list[Array]:
    x, *starts = values
    return [x[tuple(_clamped(starts, node.attributes["slice_sizes"], x.shape))]]


def _dynamic_update_slice(self: Module, node: Node, values: list[Array], env: dict[int, Array]) -> list[Array]:
    x, update, *starts = values
    result = np.array(x)
    result[tuple(_clamped(starts, update.shape, x.shape))] = update
    return [result]


def _padded(x: Array, value: Array, low: Sequence[int], high: Sequence[int], interior: Sequence[int]) -> Array:
    shape = [lo + hi + n + max(n - 1, 0) * i for lo, hi, n, i in zip(low, high, x.shape, interior, strict=True)]
    if min([0, *shape]) < 0:
        raise BadInput("a pad of negative size")
    result = np.full(shape, value, x.dtype)
    into: list[Any] = []
    taken: list[Any] = []
    for lo, n, i, size in zip(low, x.shape, interior, shape, strict=True):
        places = lo + np.arange(n) * (i + 1)
        inside = (places >= 0) & (places < size)
        into.append(places[inside])
        taken.append(np.arange(n)[inside])
    if x.ndim:
        result[np.ix_(*into)] = x[np.ix_(*taken)]
    else:
        result = np.array(x)
    return result


def _pad(self: Module, node: Node, values: list[Array], env: dict[int, Array]) -> list[Array]:
    a = node.attributes
    return [_padded(*values, a["edge_padding_low"], a["edge_padding_high"], a["interior_padding"])]


def _reduce(self: Module, node: Node, values: list[Array], env: dict[int, Array]) -> list[Array]:
    half = len(values) // 2
    dims, body = node.attributes["dimensions"], self.body(node, env)
    kept = [d for d in range(values[0].ndim) if d not in dims]
    rows = [np.transpose(x, [*dims, *kept]).reshape(-1, *[x.shape[d] for d in kept]) for x in values[:half]]
    results = [np.broadcast_to(v, rows[0].shape[1:]) for v in values[half:]]
    for n in range(len(rows[0])):
        results = body(*results, *(row[n] for row in rows))
        self._steps += 1
        if self._steps > STEPS:
            raise BadInput("a reduction takes too many steps")
    shape = rows[0].shape[1:]
    return [np.broadcast_to(r, shape).astype(dtype_of(t), copy=False) for r, t in zip(results, node.types, strict=True)]


def _sort(self: Module, node: Node, values: list[Array], env: dict[int, Array]) -> list[Array]:
    dim = node.attributes.get("dimension", -1)
    moved = [np.moveaxis(v, dim, -1) for v in values]
    n = moved[0].shape[-1]
    if n * moved[0].size > ELEMENTS:
        raise BadInput("too large a sort")
    pairs: list[Array] = []
    for v in moved:
        pairs += [v[..., :, None], v[..., None, :]]
    less = np.broadcast_to(self.body(node, env)(*pairs)[0], (*moved[0].shape[:-1], n, n))
    order = np.zeros(moved[0].shape, np.int64)
    ties = -1 if node.key in self.last_first else 1
    for row in np.ndindex(moved[0].shape[:-1]):
        table = less[row]
        key = cmp_to_key(lambda i, j, t=table: -1 if t[i, j] else 1 if t[j, i] else 0)
        order[row] = sorted(range(n)[::ties], key=key)
    return [np.moveaxis(np.take_along_axis(v, order, -1), -1, dim) for v in moved]


def _top_k(self: Module, node: Node, values: list[Array], env: dict[int, Array]) -> list[Array]:
    (x,) = values
    k = node.attributes["k"]
    floats = converted(x, np.dtype("float64")) if x.dtype.kind not in "iub" else x
    signs = np.signbit(floats) if floats.dtype.kind == "f" else np.zeros(x.shape, bool)
    index = np.broadcast_to(np.arange(x.shape[-1]), x.shape)
    ranks = -floats.astype(np.float64) if floats.dtype.kind != "f" else np.where(np.isnan(floats), -np.inf, -floats)
    nans = ~np.isnan(floats) if floats.dtype.kind == "f" else np.ones(x.shape, bool)
    order = np.lexsort((index, signs, ranks, nans), axis=-1)[..., :k]
    return [np.take_along_axis(x, order, -1), order.astype(dtype_of(node.types[1]))]


def _rng_bits(self: Module, node: Node, values: list[Array], env: dict[int, Array]) -> list[Array]:
    (state,) = values
    shape = _shape(Node(0, "", [], [], node.types[1:], {}, []))
    seed = np.random.default_rng(np.frombuffer(np.ascontiguousarray(state).tobytes(), np.uint8))
    dtype = dtype_of(node.types[1])
    return [state + np.array(1, state.dtype), seed.integers(0, np.iinfo(dtype).max, shape, dtype, endpoint=True)]


def _scatter(self: Module, node: Node, values: list[Array], env: dict[int, Array]) -> list[Array]:
    return scatter(node.attributes["scatter_dimension_numbers"], values, self.body(node, env))


def _fft(self: Module, node: Node, values: list[Array], env: dict[int, Array]) -> list[Array]:
    kind, length = node.attributes["fft_type"], node.attributes["fft_length"]
    if len(length) != 1:
        raise Unsupported("fft of several dims")
    run = {"FFT": np.fft.fft, "IFFT": np.fft.ifft, "RFFT": np.fft.rfft, "IRFFT": np.fft.irfft}[kind]
    return [run(values[0], length[0]).astype(dtype_of(node.types[0]))]


def _bitcast(self: Module, node: Node, values: list[Array], env: dict[int, Array]) -> list[Array]:
    x, to = np.ascontiguousarray(values[0]), dtype_of(node.types[0])
    if x.dtype.itemsize == to.itemsize:
        return [x.view(to)]
    if x.dtype.itemsize > to.itemsize:
        return [x[..., None].view(to)]
    return [x.view(to)[..., 0]]


STRUCTURE: Mapping[str, Callable[[Module, Node, list[Array], dict[int, Array]], list[Array]]] = {
    "stablehlo.broadcast_in_dim": lambda _, n, v, e: [
        _broadcast(v[0], _shape(n), n.attributes["broadcast_dimensions"])
    ],
    "stablehlo.reshape": lambda _, n, v, e: [v[0].reshape(_shape(n))],
    "stablehlo.transpose": lambda _, n, v, e: [np.transpose(v[0], n.attributes["permutation"])],
    "stablehlo.iota": lambda _, n, v, e: [_iota(_shape(n), n.attributes["iota_dimension"], dtype_of(n.types[0]))],
    "stablehlo.slice": lambda _, n, v, e: [v[0][_slices(n)]],
    "stablehlo.reverse": lambda _, n, v, e: [np.flip(v[0], n.attributes["dimensions"])],
    "stablehlo.concatenate": lambda _, n, v, e: [np.concatenate(v, n.attributes["dimension"])],
    "stablehlo.dynamic_slice": _dynamic_slice,
    "stablehlo.dynamic_update_slice": _dynamic_update_slice,
    "stablehlo.pad": _pad,
    "stablehlo.reduce": _reduce,
    "stablehlo.sort": _sort,
    "chlo.top_k": _top_k,
    "stablehlo.scatter": _scatter,
    "stablehlo.gather": lambda _, n, v, e: [gather(n.attributes["dimension_numbers"], n.attributes["slice_sizes"], *v)],
    "stablehlo.dot_general": lambda _, n, v, e: [
        dot_general(n.attributes["dot_dimension_numbers"], *v, dtype_of(n.types[0]))
    ],
    "stablehlo.convolution": lambda _, n, v, e: [convolution(n.attributes, *v, dtype_of(n.types[0]))],
    "stablehlo.reduce_window": lambda m, n, v, e: reduce_window(n.attributes, v, m.body(n, e)),
    "stablehlo.rng_bit_generator": _rng_bits,
    "stablehlo.fft": _fft,
    "stablehlo.bitcast_convert": _bitcast,
    "stablehlo.optimization_barrier": lambda _, n, v, e: v,
    "stablehlo.tuple": lambda _, n, v, e: v,
}

# --- sizes that are values -------------------------------------------------------------------------------------


def _sizes(x: Array) -> list[int]:
    sizes = [int(n) for n in x]
    if any(n < 0 for n in sizes) or prod(sizes) > ELEMENTS:
        raise BadInput(f"sizes {sizes}")
    return sizes


def _real_dynamic_slice(node: Node, v: list[Array]) -> list[Array]:
    x, starts, limits, strides = v
    for start, limit, extent in zip(starts, limits, x.shape, strict=True):
        if not 0 <= start <= limit <= extent:
            raise BadInput("a slice outside")
    return [x[tuple(slice(int(a), int(b), int(c)) for a, b, c in zip(starts, limits, strides, strict=True))]]


DYNAMIC: Mapping[str, Callable[[Node, list[Array]], list[Array]]] = {
    "stablehlo.get_dimension_size": lambda n, v: [np.array(v[0].shape[n.attributes["dimension"]], np.int32)],
    "stablehlo.dynamic_broadcast_in_dim": lambda n, v: [
        _broadcast(v[0], _sizes(v[1]), n.attributes["broadcast_dimensions"])
    ],
    "stablehlo.dynamic_reshape": lambda n, v: [v[0].reshape(_sizes(v[1]))],
    "stablehlo.dynamic_iota": lambda n, v: [_iota(_sizes(v[0]), n.attributes["iota_dimension"], dtype_of(n.types[0]))],
    "stablehlo.real_dynamic_slice": _real_dynamic_slice,
    "stablehlo.dynamic_pad": lambda n, v: [_padded(v[0], v[1], *(tuple(map(int, p)) for p in v[2:]))],
    "stablehlo.dynamic_gather": lambda n, v: [gather(n.attributes["dimension_numbers"], _sizes(v[2]), v[0], v[1])],
}
