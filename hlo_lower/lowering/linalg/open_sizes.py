"""The sizes of values, known or open, and the ops that reshape and broadcast to such sizes.

    func @main(%x: tensor<?x4x8xf32>)                        sizes (b, 4, 8), where b is the first size of %x
    %f = dynamic_reshape %x, [b * 4, 8] : tensor<?x8xf32>     sizes (4 b, 8)
    %y = dot_general %f, %w : tensor<?x16xf32>                sizes (4 b, 16)
    %r = dynamic_reshape %y, [b, 4, 16]                       sizes (b, 4, 16)

The size of an open dim is a product: a number, and sizes that an argument has, or numbers that the module computes.
Whoever computes them, and in whatever order, they are equal as products, and are written in one way: each is a
`get_dimension_size` of the first value that has it. A product is computed in 64 bits, where it does not wrap.

What is not seen is a size of its own, which equals itself only; so nothing is taken to be equal that may differ.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cmp_to_key
from math import prod
from typing import TypeAlias

from hlo_lower.ir import mlir
from hlo_lower.ir.builder import Builder
from hlo_lower.ir.extents import Extent, extent_of, product, vector
from hlo_lower.ir.view import Graph, Node, Value
from hlo_lower.ops import names
from hlo_lower.ops.purity import PURE_OPS
from hlo_lower.ops.spec import ELEMENTWISE

SHAPED = frozenset({names.DYNAMIC_BROADCAST_IN_DIM, names.DYNAMIC_RESHAPE})
"""Ops whose second operand is the shape of their result."""

BY_WINDOW = "window_dimensions", "window_strides", "base_dilations"
"""What a window changes the size of a dim by, beside padding."""

RESHAPES = names.RESHAPE, names.DYNAMIC_RESHAPE
SPREADS = names.BROADCAST_IN_DIM, names.DYNAMIC_BROADCAST_IN_DIM

BROADCAST_DIMS = "broadcast_dimensions"

MOST = 1 << 12
"""Ops through which a size is followed at most."""


@dataclass(frozen=True)
class Atom:
    """A size that is no product that is seen.

    Attributes:
      value: what it is of.
      at: the dim of the value whose size it is; or the place of an element of a vector, 0 of a scalar.
      is_size: whether it is the size of a dim.
    """

    value: Value
    at: int
    is_size: bool = True


@dataclass(frozen=True)
class Product:
    """The size of an open dim.

    Attributes:
      factor: a number.
      sizes: the sizes that are multiplied with it, each with how often.
    """

    factor: int
    sizes: frozenset[tuple[Atom, int]] = frozenset()

    def __mul__(self, other: "Size") -> "Product":
        """The product of both."""
        if isinstance(other, int):
            return Product(self.factor * other, self.sizes)
        counts = Counter(dict(self.sizes)) + Counter(dict(other.sizes))
        return Product(self.factor * other.factor, frozenset(counts.items()))

    __rmul__ = __mul__


Size: TypeAlias = int | Product
"""A known size, or an open one; an open one that is known to be a number is a product of nothing else."""


def quotient(size: Size, other: Size) -> Size | None:
    """What times the second is the first; None where no product of known sizes is."""
    whole, part = (one if isinstance(one, Product) else Product(one) for one in (size, other))
    left, right = Counter(dict(whole.sizes)), Counter(dict(part.sizes))
    if part.factor == 0 or whole.factor % part.factor or right - left:
        return None
    found = Product(whole.factor // part.factor, frozenset((left - right).items()))
    return found if found.sizes else found.factor


def sizes_of(value: Value) -> tuple[Size, ...]:
    """The sizes of a value."""
    return tuple(_size_of(value, dim) if size is None else size for dim, size in enumerate(value.shape))


def _size_of(value: Value, dim: int) -> Product:
    """The size of an open dim: of the first value that has it, as far as that is seen."""
    for _ in range(MOST):
        node = value.node
        if node is None:
            break
        if node.name in SHAPED:
            return _given_size(node, dim)
        source = _source_of(node, dim)
        if source is None or source[0].shape[source[1]] is not None:
            break
        value, dim = source
    return _one(Atom(value, dim))


def _one(atom: Atom) -> Product:
    return Product(1, frozenset({(atom, 1)}))


def _source_of(node: Node, dim: int) -> tuple[Value, int] | None:
    """The operand, and its dim, whose size a dim of a result has."""
    first = node.operands[0] if node.operands else None
    if first is None or len(node.results) != 1:
        return None
    if node.name in ELEMENTWISE:
        rank = len(node.result().shape)
        return next(((one, dim) for one in node.operands if len(one.shape) == rank), None)
    if node.name == names.TRANSPOSE:
        return first, node.integers("permutation")[dim]
    if node.name == names.REDUCE:
        return first, [one for one in range(len(first.shape)) if one not in node.integers("dimensions")][dim]
    if node.name == names.PAD:
        amounts = ("edge_padding_low", "edge_padding_high", "interior_padding")
        return None if any(node.integers(name)[dim] for name in amounts) else (first, dim)
    if node.name == names.REDUCE_WINDOW:
        steps = [node.integers(name, (1,) * (dim + 1))[dim] for name in BY_WINDOW]
        around = node.padding(len(first.shape))[2 * dim : 2 * dim + 2]
        return None if any(step != 1 for step in steps) or any(around) else (first, dim)
    if node.name == names.DOT_GENERAL:
        return _factor_of(node, dim)
    if node.name == names.CONVOLUTION:
        return _batch_of(node, dim)
    return None


def _factor_of(node: Node, dim: int) -> tuple[Value, int]:
    """The factor of a product, and its dim, that a dim of the result is."""
    numbers = mlir.dot_dimension_numbers(node.raw)
    batches = list(numbers.lhs_batching_dimensions)
    own: list[tuple[Value, int]] = [(node.operand(0), one) for one in batches]
    for factor, batching, summed in (
        (node.operand(0), batches, numbers.lhs_contracting_dimensions),
        (node.operand(1), numbers.rhs_batching_dimensions, numbers.rhs_contracting_dimensions),
    ):
        own += [(factor, one) for one in range(len(factor.shape)) if one not in (*batching, *summed)]
    return own[dim]


def _batch_of(node: Node, dim: int) -> tuple[Value, int] | None:
    """The input of a convolution, and its dim, where a dim of the result is its batch."""
    numbers = str(node.raw.attributes["dimension_numbers"])
    given, result = (numbers[numbers.rindex(mark) :].partition("]")[0] for mark in ("<[", "->["))
    letters = [one.strip("<->[ ").split(", ") for one in (given, result)]
    is_plain = mlir.integer_of(node.raw.attributes["batch_group_count"]) == 1
    return (node.operand(0), letters[0].index("b")) if is_plain and letters[1][dim] == "b" else None


def _given_size(node: Node, dim: int) -> Product:
    """The size that an op gives its result by a vector; of a reshape with one open dim what its operand leaves."""
    found = _element_of(node.operand(1), dim)
    value, shape = node.operand(0), node.result().shape
    is_seen = all(atom.is_size for atom, _ in found.sizes)
    if is_seen or node.name != names.DYNAMIC_RESHAPE or shape.count(None) != 1 or value.shape.count(None) != 1:
        return found
    left = quotient(prod(sizes_of(value)), prod(size for size in shape if size is not None))
    return left if isinstance(left, Product) else found


def _element_of(value: Value, at: int) -> Product:
    """An element of a vector of integers, or a scalar."""
    node = value.node
    if node is None:
        return _one(Atom(value, at, is_size=False))
    if node.name == names.CONSTANT:
        numbers = node.constant()
        return _one(Atom(value, at, is_size=False)) if numbers is None else Product(int(numbers.reshape(-1)[at]))
    if node.name == names.GET_DIMENSION_SIZE:
        source, dim = node.operand(0), node.integer("dimension")
        known = source.shape[dim]
        return _size_of(source, dim) if known is None else Product(known)
    if node.name == names.CONCATENATE:
        for part in node.operands:
            count = part.static_shape[0]
            if at < count:
                return _element_of(part, at)
            at -= count
    is_alike = node.name == names.CONVERT and node.operand(0).element.name in WIDE and value.element.name in WIDE
    if is_alike or node.name == names.RESHAPE:
        return _element_of(node.operand(0), at)
    if node.name == names.MULTIPLY and value.element.name in WIDE:
        return _element_of(node.operand(0), at) * _element_of(node.operand(1), at)
    return _one(Atom(value, at, is_size=False))


OF_SIZES = frozenset(
    {names.GET_DIMENSION_SIZE, names.CONCATENATE, names.CONVERT, names.RESHAPE, names.CONSTANT, names.MULTIPLY}
)
"""Ops that compute sizes."""

WIDE = frozenset({"i32", "i64", "ui32", "ui64", "index"})
"""Types that hold the sizes of what there is."""


# --- ops of such sizes ---


def type_of(sizes: Sequence[Size], value: Value) -> mlir.RawType:
    """The type of a tensor of these sizes with the elements of a value."""
    return mlir.tensor_type([size if isinstance(size, int) else None for size in sizes], value.element_type)


def reshape(build: Builder, value: Value, sizes: Sequence[Size]) -> Value:
    """The same elements in row-major order under other sizes."""
    if sizes_of(value) == tuple(sizes):
        return value
    known = [size for size in sizes if isinstance(size, int)]
    if len(known) == len(sizes):
        return build.reshape(value, known)
    return build.op(names.DYNAMIC_RESHAPE, [value, vector_of(build, sizes)], [type_of(sizes, value)]).result()


def broadcast(build: Builder, value: Value, sizes: Sequence[Size], dims: Sequence[int] = ()) -> Value:
    """`broadcast_in_dim`: dim i of the operand becomes dim dims[i] of the result."""
    known = [size for size in sizes if isinstance(size, int)]
    if len(known) == len(sizes):
        return build.broadcast(value, known, dims)
    if sizes_of(value) == tuple(sizes) and list(dims) == list(range(len(sizes))):
        return value
    order = sorted(range(len(dims)), key=lambda number: dims[number])
    return _broadcast(build, build.transpose(value, order), sizes, sorted(dims))


def _broadcast(build: Builder, value: Value, sizes: Sequence[Size], dims: Sequence[int]) -> Value:
    """With a word on the dims of which it is seen that they are as long as the result's, or that they are spread."""
    own = sizes_of(value)
    attributes = {
        BROADCAST_DIMS: dims,
        "known_expanding_dimensions": [k for k, size in enumerate(own) if size == 1 != sizes[dims[k]]],
        "known_nonexpanding_dimensions": [k for k, size in enumerate(own) if size == sizes[dims[k]]],
    }
    told = {name: mlir.dense_i64(numbers) for name, numbers in attributes.items() if numbers or name == BROADCAST_DIMS}
    operands = [value, vector_of(build, sizes)]
    return build.op(names.DYNAMIC_BROADCAST_IN_DIM, operands, [type_of(sizes, value)], told).result()


def vector_of(build: Builder, sizes: Sequence[Size]) -> Value:
    """Sizes as a vector, in 64 bits if any of them is a product."""
    products = [size for size in sizes if isinstance(size, Product)]
    is_wide = any(size.factor != 1 or sum(count for _, count in size.sizes) > 1 for size in products if size.sizes)
    element = "i64" if is_wide else "i32"
    return vector(build, [_extent_of(build, size, element) for size in sizes], element)


def _extent_of(build: Builder, size: Size, element: str) -> Extent:
    if isinstance(size, int):
        return size
    atoms = sorted((atom for atom, count in size.sizes for _ in range(count)), key=cmp_to_key(_order))
    return product(build, [*(_scalar_of(build, atom, element) for atom in atoms), size.factor], element)


def _scalar_of(build: Builder, atom: Atom, element: str) -> Extent:
    if atom.is_size:
        return extent_of(build, atom.value, atom.at, element)
    value = atom.value if atom.value.shape == () else build.slice(atom.value, [atom.at], [atom.at + 1])
    return build.convert(build.reshape(value, ()), element)


def _order(first: Atom, second: Atom) -> int:
    """Arguments first, by their numbers; then by where they are made."""
    keys = [(atom.value.node is not None, atom.value.number, atom.at, atom.is_size) for atom in (first, second)]
    nodes = first.value.node, second.value.node
    if nodes[0] is not None and nodes[1] is not None and nodes[0] != nodes[1] and nodes[0].parent == nodes[1].parent:
        return -1 if nodes[0].raw.is_before_in_block(nodes[1].raw) else 1
    return (keys[0] > keys[1]) - (keys[0] < keys[1])


def given_sizes(build: Builder, node: Node) -> Value | None:
    """An op whose sizes are a vector, of that vector in its one form."""
    value, sizes = node.operand(0), sizes_of(node.result())
    if node.name == names.DYNAMIC_RESHAPE:
        made = build.op(node.name, [value, vector_of(build, sizes)], [node.result().raw.type]).result()
    else:
        made = _broadcast(build, value, sizes, node.integers(BROADCAST_DIMS))
    return None if _is_same(node.result(), made) else made


def _is_same(value: Value, other: Value) -> bool:
    """Whether two values are computed by the same ops of the same ones."""
    first, second = value.node, other.node
    if value == other or first is None or second is None:
        return value == other
    return (
        (first.name, value.raw.type, value.number) == (second.name, other.raw.type, other.number)
        and mlir.attributes_of(first.raw) == mlir.attributes_of(second.raw)
        and len(first.operands) == len(second.operands)
        and all(map(_is_same, first.operands, second.operands))
    )


def sink_sizes(graph: Graph) -> None:
    """Put constants, and what computes sizes, in front of the first op that reads them, each op's in the order of its
    operands; what nothing reads goes."""
    for function in graph.functions.values():
        nodes, placed = list(function.body.nodes) if function.has_body else [], set[mlir.RawOperation]()
        kept: list[mlir.RawOperation] = []
        for node in reversed(nodes):
            is_read = any(value.is_used for value in node.results)
            if not is_read and not node.has_regions and node.name in PURE_OPS:
                node.raw.erase()
            elif not _is_of_sizes(node.raw):
                kept.append(node.raw)
        for raw in reversed(kept):
            for value in [value for one in mlir.operations_within(raw) for value in one.operands]:
                _place(mlir.producer(value), raw, placed)


def _place(raw: mlir.RawOperation | None, before: mlir.RawOperation, placed: set[mlir.RawOperation]) -> None:
    if raw is None or raw in placed or raw.parent != before.parent or not _is_of_sizes(raw):
        return
    for value in raw.operands:
        _place(mlir.producer(value), before, placed)
    raw.move_before(before)
    placed.add(raw)


def _is_of_sizes(raw: mlir.RawOperation) -> bool:
    """Whether an op is a constant, or computes a scalar or a vector of integers, as sizes are."""
    if raw.name not in OF_SIZES or raw.name == names.CONSTANT:
        return raw.name == names.CONSTANT
    result = Value(raw.results[0])
    return len(result.shape) < 2 and result.element.name in WIDE
