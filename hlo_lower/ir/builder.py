"""The one builder of new operations: StableHLO ops by their spec names, at a point in a module.

Ops that would change nothing are not made: a reshape to the same shape, a full slice, an identity transpose or a
convert to the same type gives its operand back.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from numpy.typing import NDArray

from hlo_lower.base.element_types import element_type
from hlo_lower.ir import mlir
from hlo_lower.ir.view import Block, Node, Value

BodyBuilder: TypeAlias = "Callable[[Builder, tuple[Value, ...]], Sequence[Value]]"

BESIDE_ZERO = {"GE": "GT", "LT": "LE"}
"""For directions in which a number is compared with 0 those in which it is compared with -1."""


class Builder:
    """Builds operations at an insertion point, all with one source location, and remembers them.

    Attributes:
      built: the operations built so far, nested ones included.
      repeated: those of them that are copies of operations of the module, and so add nothing that it does not hold.
    """

    def __init__(self, point: object, location: mlir.RawLocation, built: list[Node] | None = None) -> None:
        self._point = point
        self._location = location
        self.built: list[Node] = [] if built is None else built
        self.repeated: set[Node] = set()
        self._splats: dict[tuple[str, mlir.RawType], Value] = {}

    @classmethod
    def before(cls, node: Node) -> "Builder":
        """A builder that inserts before a node and takes over its location."""
        return cls(mlir.insert_before(node.raw), node.raw.location)

    def at_end(self, block: Block) -> "Builder":
        """A builder that appends to a block, with the same location and the same list of what was built."""
        return Builder(mlir.insert_at_end(block.raw), self._location, self.built)

    def forget(self, node: Node) -> None:
        """Take a node that is about to be erased off the list of what was built."""
        self.built.remove(node)
        self._splats = {key: value for key, value in self._splats.items() if value not in node.results}

    def op(
        self,
        name: str,
        operands: Sequence[Value],
        result_types: Sequence[mlir.RawType],
        attributes: dict[str, mlir.RawAttribute] | None = None,
        regions: int = 0,
    ) -> Node:
        """Build any operation."""
        raw = mlir.create_operation(
            name,
            [v.raw for v in operands],
            result_types,
            attributes,
            regions=regions,
            location=self._location,
            insertion_point=self._point,
        )
        node = Node(raw)
        self.built.append(node)
        return node

    def _value(
        self,
        name: str,
        operands: Sequence[Value],
        result_type: mlir.RawType,
        attributes: dict[str, mlir.RawAttribute] | None = None,
    ) -> Value:
        return self.op(name, operands, [result_type], attributes).results[0]

    # --- constants and shapes ---

    def constant(self, value: int, shape: Sequence[int], element: str) -> Value:
        """An integer or boolean constant with the same value everywhere."""
        text = ("false", "true")[value] if element == "i1" else str(value)
        return self._splat(text, mlir.tensor_type(shape, element))

    def constant_array(self, values: NDArray[Any], element: str) -> Value:
        """A constant of integers or booleans, element by element."""
        raw_type = mlir.tensor_type(values.shape, element)
        array = values.astype(mlir.dtype_of(element))
        return self._value("stablehlo.constant", [], raw_type, {"value": mlir.dense_attribute(array, raw_type)})

    def _splat(self, text: str, raw_type: mlir.RawType) -> Value:
        """A constant with the same value everywhere; the same one again is the one that was built before."""
        if (text, raw_type) not in self._splats:
            attributes = {"value": mlir.parse_attribute(f"dense<{text}> : {raw_type}")}
            self._splats[text, raw_type] = self._value("stablehlo.constant", [], raw_type, attributes)
        return self._splats[text, raw_type]

    def float_splat(self, value: float, shape: Sequence[int], element: str) -> Value:
        """A float constant with the same value everywhere; one that the type does not have is rounded to it."""
        raw_type = mlir.tensor_type(shape, element)
        return self._splat(mlir.float_text(value, element), raw_type)

    def zero(self, element: mlir.RawType) -> Value:
        """A scalar zero of any element type (0, 0.0, false, 0 + 0i)."""
        raw_type = mlir.tensor_type((), element)
        name = str(element)
        declared = element_type(name)
        text = {"i1": "false"}.get(name, "0" if declared.is_integer else "0.0")
        if declared.is_complex:
            return self.complex([self._splat("0.0", mlir.tensor_type((), declared.part))] * 2)
        if name == "f8E8M0FNU":  # it has no zero; its least value does as filler
            text = "0x00"
        return self._splat(text, raw_type)

    def zero_of(self, value: Value) -> Value:
        """A scalar zero of a value's element type."""
        return self.zero(mlir.tensor_element(value.raw.type))

    def zeros_like(self, value: Value) -> Value:
        """Zeros of the shape and element type of a value of static shape."""
        return self.broadcast(self.zero_of(value), value.static_shape)

    def infinity(self, element: mlir.RawType, *, is_negative: bool = False) -> Value:
        """A scalar of IEEE 754's infinity in a float type of 16, 32 or 64 bits."""
        declared = element_type(str(element))
        bits = is_negative << declared.bits - 1 | (1 << declared.exponent) - 1 << declared.mantissa
        return self._splat(f"0x{bits:0{declared.bits // 4}X}", mlir.tensor_type((), element))

    def iota(self, shape: Sequence[int], dimension: int, element: str) -> Value:
        """`stablehlo.iota` along a dimension."""
        attributes = {"iota_dimension": mlir.i64_attribute(dimension)}
        return self._value("stablehlo.iota", [], mlir.tensor_type(shape, element), attributes)

    def reshape(self, value: Value, shape: Sequence[int]) -> Value:
        """The same elements in row-major order under another shape."""
        if value.shape == tuple(shape):
            return value
        return self._value("stablehlo.reshape", [value], _of_shape(value, shape))

    def transpose(self, value: Value, permutation: Sequence[int]) -> Value:
        """Dim i of the result is dim permutation[i] of the operand."""
        if list(permutation) == list(range(len(permutation))):
            return value
        shape = [value.shape[d] for d in permutation]
        attributes = {"permutation": mlir.dense_i64(permutation)}
        return self._value("stablehlo.transpose", [value], _of_shape(value, shape), attributes)

    def reverse(self, value: Value, dims: Sequence[int]) -> Value:
        """The elements in opposite order along these dims."""
        if not dims:
            return value
        return self._value("stablehlo.reverse", [value], value.raw.type, {"dimensions": mlir.dense_i64(dims)})

    def broadcast(self, value: Value, shape: Sequence[int], dims: Sequence[int] = ()) -> Value:
        """`broadcast_in_dim`: dim i of the operand becomes dim dims[i] of the result."""
        if value.shape == tuple(shape) and list(dims) == list(range(len(shape))):
            return value
        if list(dims) != sorted(dims):  # the op allows it, but some consumers do not
            order = sorted(range(len(dims)), key=lambda i: dims[i])
            value, dims = self.transpose(value, order), sorted(dims)
        attributes = {"broadcast_dimensions": mlir.dense_i64(dims)}
        return self._value("stablehlo.broadcast_in_dim", [value], _of_shape(value, shape), attributes)

    def convert(self, value: Value, element: mlir.RawType | str) -> Value:
        """The elements converted to another element type."""
        if value.element_type == str(element):
            return value
        return self._value("stablehlo.convert", [value], mlir.tensor_type(value.shape, element))

    # --- parts ---

    def bitcast(self, value: Value, element: str) -> Value:
        """The same bits as another element type of as many."""
        return self._value("stablehlo.bitcast_convert", [value], mlir.tensor_type(value.static_shape, element))

    def slice(self, value: Value, starts: Sequence[int], limits: Sequence[int], strides: Sequence[int] = ()) -> Value:
        """The static part [start, limit) of each dim, every stride-th element of it."""
        steps = list(strides) or [1] * len(starts)
        shape = [len(range(start, limit, step)) for start, limit, step in zip(starts, limits, steps, strict=True)]
        if value.shape == tuple(shape):
            return value
        bounds = {"start_indices": starts, "limit_indices": limits, "strides": steps}
        attributes = {name: mlir.dense_i64(values) for name, values in bounds.items()}
        return self._value("stablehlo.slice", [value], _of_shape(value, shape), attributes)

    def dynamic_slice(self, value: Value, starts: Sequence[Value], sizes: Sequence[int]) -> Value:
        """The part of these sizes at scalar starts, which the op clamps into the operand."""
        attributes = {"slice_sizes": mlir.dense_i64(sizes)}
        return self._value("stablehlo.dynamic_slice", [value, *starts], _of_shape(value, sizes), attributes)

    def dynamic_update_slice(self, value: Value, update: Value, starts: Sequence[Value]) -> Value:
        """The operand with update written at scalar starts, which the op clamps."""
        return self._value("stablehlo.dynamic_update_slice", [value, update, *starts], value.raw.type)

    def pad(
        self, value: Value, fill: Value, low: Sequence[int], high: Sequence[int], interior: Sequence[int] = ()
    ) -> Value:
        """The operand with low and high elements of fill around it, and interior ones between its own."""
        between = list(interior) or [0] * len(low)
        if not any(low) and not any(high) and not any(between):
            return value
        shape = [
            None if size is None else lo + size + hi + max(size - 1, 0) * gap
            for lo, size, hi, gap in zip(low, value.shape, high, between, strict=True)
        ]
        amounts = {"edge_padding_low": low, "edge_padding_high": high, "interior_padding": between}
        attributes = {name: mlir.dense_i64(values) for name, values in amounts.items()}
        return self._value("stablehlo.pad", [value, fill], _of_shape(value, shape), attributes)

    def concatenate(self, values: Sequence[Value], dim: int) -> Value:
        """Values one after the other along a dim; one value is given back."""
        first = values[0]
        if len(values) == 1:
            return first
        size = sum(value.static_shape[dim] for value in values)
        shape = [size if d == dim else n for d, n in enumerate(first.static_shape)]
        joined = _of_shape(first, shape)
        return self._value("stablehlo.concatenate", values, joined, {"dimension": mlir.i64_attribute(dim)})

    def gather_rows(
        self, value: Value, rows: Value, axis: int, batch: Sequence[int] = (), vector: int | None = None
    ) -> Value:
        """The rows along an axis that a column of row numbers [n, 1] names.

        Args:
          value: what is read.
          rows: the row numbers; with a batch a list for each of its positions, their dims in the order of the value's.
          axis: the dim of the value that they count.
          batch: dims of the value along which each position has a list of its own.
          vector: the dim of `rows` that has one element; by default the last one.
        """
        shape, named = value.static_shape, sorted((axis, *batch))
        vector = len(named) if vector is None else vector
        places = dict(zip(named, (d for d in range(len(named) + 1) if d != vector), strict=True))
        others = [d for d in range(len(shape)) if d not in places]
        numbers = f"offset_dims = {others}, collapsed_slice_dims = [{axis}], "
        if batch:
            numbers += f"operand_batching_dims = {list(batch)}, "
            numbers += f"start_indices_batching_dims = {[places[d] for d in batch]}, "
        numbers += f"start_index_map = [{axis}], index_vector_dim = {vector}"
        found = [rows.static_shape[places[axis]] if d == axis else n for d, n in enumerate(shape)]
        return self.gather(value, rows, numbers, [1 if d in places else n for d, n in enumerate(shape)], found)

    def gather_window(self, value: Value, start: Value, dims: Sequence[int]) -> Value:
        """The window at a start [len(dims)] in these dims, of extent 1 there, which are left out; all of the others."""
        shape, others = value.static_shape, [d for d in range(len(value.static_shape)) if d not in dims]
        numbers = f"offset_dims = {list(range(len(others)))}, collapsed_slice_dims = {list(dims)}, "
        numbers += f"start_index_map = {list(dims)}, index_vector_dim = 0"
        sizes = [1 if d in dims else n for d, n in enumerate(shape)]
        return self.gather(value, start, numbers, sizes, [shape[d] for d in others])

    def gather(self, value: Value, indices: Value, numbers: str, sizes: Sequence[int], shape: Sequence[int]) -> Value:
        """Windows of these sizes, by dimension numbers as they are printed, as a value of a shape."""
        attributes = {
            "dimension_numbers": mlir.parse_attribute(f"#stablehlo.gather<{numbers}>"),
            "slice_sizes": mlir.dense_i64(sizes),
        }
        return self._value("stablehlo.gather", [value, indices], _of_shape(value, shape), attributes)

    # --- elementwise ---

    def elementwise(self, name: str, *operands: Value) -> Value:
        """An elementwise op whose result has the type of its first operand; "add" is "stablehlo.add"."""
        return self._value(name if "." in name else f"stablehlo.{name}", operands, operands[0].raw.type)

    def and_(self, left: Value, right: Value) -> Value:
        """Bit by bit, or of truths: whether both hold."""
        return self.elementwise("and", left, right)

    def or_(self, left: Value, right: Value) -> Value:
        """Bit by bit, or of truths: whether one holds."""
        return self.elementwise("or", left, right)

    def xor(self, left: Value, right: Value) -> Value:
        """Bit by bit, or of truths: whether one alone holds."""
        return self.elementwise("xor", left, right)

    def add(self, left: Value, right: Value) -> Value:
        """The sum, elementwise."""
        return self.elementwise("add", left, right)

    def subtract(self, left: Value, right: Value) -> Value:
        """The difference, elementwise."""
        return self.elementwise("subtract", left, right)

    def multiply(self, left: Value, right: Value) -> Value:
        """The product, elementwise."""
        return self.elementwise("multiply", left, right)

    def divide(self, left: Value, right: Value) -> Value:
        """The quotient, elementwise; of integers towards 0."""
        return self.elementwise("divide", left, right)

    def minimum(self, left: Value, right: Value) -> Value:
        """The lesser of two elements at each place."""
        return self.elementwise("minimum", left, right)

    def maximum(self, left: Value, right: Value) -> Value:
        """The greater of two elements at each place."""
        return self.elementwise("maximum", left, right)

    def abs(self, value: Value) -> Value:
        """The size of each element."""
        return self.elementwise("abs", value)

    def compare(self, left: Value, direction: str, right: Value | int) -> Value:
        """Compare integers or floats elementwise, or integers with a number; direction is EQ, NE, GE, GT, LE or LT.

        Whether a signed integer is below 0 is asked as whether it is above -1: XLA takes `i * i` and `|i|` for not
        negative, of what wraps around, too, and folds `>= 0` and `< 0` of them (jaxlib 0.10.2, CPU, at every level).
        """
        if isinstance(right, int):
            if right == 0 and direction in BESIDE_ZERO and not left.element.is_unsigned:
                direction, right = BESIDE_ZERO[direction], -1
            right = self.constant(right, left.static_shape, left.element_type)
        attributes = {
            "comparison_direction": mlir.parse_attribute(f"#stablehlo<comparison_direction {direction}>"),
            "compare_type": mlir.parse_attribute(f"#stablehlo<comparison_type {left.element.compare_type}>"),
        }
        return self._value("stablehlo.compare", [left, right], mlir.tensor_type(left.shape, "i1"), attributes)

    def select(self, predicate: Value, on_true: Value, on_false: Value) -> Value:
        """Elementwise choice; the predicate may be a scalar."""
        return self._value("stablehlo.select", [predicate, on_true, on_false], on_true.raw.type)

    def clamp(self, low: Value, value: Value, high: Value) -> Value:
        """min(max(value, low), high); the bounds may be scalars."""
        return self._value("stablehlo.clamp", [low, value, high], value.raw.type)

    def parts(self, value: Value) -> tuple[Value, Value]:
        """The real and the imaginary part of complex numbers."""
        part = mlir.tensor_type(value.shape, value.element.part)
        real, imag = (self._value(f"stablehlo.{name}", [value], part) for name in ("real", "imag"))
        return real, imag

    def complex(self, parts: Sequence[Value]) -> Value:
        """Complex numbers of their real and their imaginary part."""
        real, imag = parts
        raw_type = mlir.tensor_type(real.shape, f"complex<{real.element_type}>")
        return self._value("stablehlo.complex", [real, imag], raw_type)

    # --- structure ---

    def region(self, node: Node, region: int, types: Sequence[mlir.RawType], body: BodyBuilder) -> None:
        """Fill a region of a node; what body returns is what the region returns."""
        block = Block(mlir.append_block(node.raw, region, types, self._location))
        inner = self.at_end(block)
        inner.op("stablehlo.return", body(inner, block.arguments), [])

    def clone(self, node: Node, operands: Sequence[Value], result_types: Sequence[mlir.RawType]) -> Node:
        """The same operation and attributes on other operands, with other result types; without its regions."""
        if node.name == "stablehlo.constant":  # its elements may be of a type that the bindings have no class for
            copy = Node(mlir.clone_at(node.raw, self._point, self._location))
            self.built.append(copy)
            return copy
        return self.op(node.name, operands, result_types, mlir.attributes_of(node.raw))

    def copy_on(
        self,
        node: Node,
        operands: Sequence[Value],
        result_types: Sequence[mlir.RawType],
        attributes: Mapping[str, mlir.RawAttribute | None],
    ) -> Node:
        """The same operation, regions included, on other operands, with other types and some other attributes; None
        leaves one out."""
        raw = mlir.clone_on(node.raw, self._point, self._location, [v.raw for v in operands], result_types)
        for name, value in attributes.items():
            if value is not None:
                raw.attributes[name] = value
            elif name in raw.attributes:
                del raw.attributes[name]
        copy = Node(raw)
        self.built.append(copy)
        return copy

    def copy(self, original: Node, replaced: Mapping[Value, Value]) -> Node:
        """A copy of a node of another block, regions and location included.

        Args:
          original: what is copied.
          replaced: for values that it reads those to read instead.
        """
        copy = Node(mlir.clone_to(original.raw, self._point, {a.raw: b.raw for a, b in replaced.items()}))
        self.built.append(copy)
        return copy

    def inline(self, block: Block, given: Sequence[Value]) -> list[Value]:
        """What a block returns for some arguments, its operations copied.

        Args:
          block: what is copied, all but its terminator.
          given: the values of its arguments.
        """
        copies = dict(zip(block.arguments, given, strict=True))
        *nodes, end = block.nodes
        for original in nodes:
            copies.update(zip(original.results, self.copy(original, copies).results, strict=True))
        return [copies.get(value, value) for value in end.operands]

    def repeat(self, original: Node, replaced: Mapping[Value, Value]) -> Node:
        """The same as `copy`, of an operation that the module holds already."""
        copy = self.copy(original, replaced)
        self.repeated.add(copy)
        return copy

    def repeat_block(self, block: Block, node: Node, region: int) -> None:
        """Fill a region of a node with a copy of a block without arguments, of operations that the module holds."""
        into, copies = mlir.append_block(node.raw, region, [], self._location), dict[mlir.RawValue, mlir.RawValue]()
        for original in block.nodes:
            copy = Node(mlir.clone_into(original.raw, into, copies))
            copies.update(zip(original.raw.results, copy.raw.results, strict=True))
            self.built.append(copy)
            self.repeated.add(copy)

    def copy_nodes(
        self,
        nodes: Sequence[Node],
        returning: Value,
        node: Node,
        region: int,
        taken: Sequence[Value],
        captured: Mapping[Value, Value],
    ) -> None:
        """Fill a region of a node with copies of nodes of another block, and return what one of their values became.

        Args:
          nodes: those that are copied, in order.
          returning: the value that the region returns.
          node, region: where the copies go.
          taken: the values that become the arguments of the region.
          captured: for other values from outside of these nodes, those to take instead.
        """
        block = Block(mlir.append_block(node.raw, region, [value.raw.type for value in taken], self._location))
        inner = self.at_end(block)
        copies = {**captured, **dict(zip(taken, block.arguments, strict=True))}
        for original in nodes:
            copy = Node(mlir.clone_into(original.raw, block.raw, {a.raw: b.raw for a, b in copies.items()}))
            self.built.append(copy)
            copies.update(zip(original.results, copy.results, strict=True))
        inner.op("stablehlo.return", [copies.get(returning, returning)], [])


def _of_shape(value: Value, shape: Sequence[int | None]) -> mlir.RawType:
    """The type of a tensor of this shape, with the elements of a value."""
    return mlir.tensor_type(shape, mlir.tensor_element(value.raw.type))


def rebuilt(
    node: Node,
    operands: Sequence[Value],
    types: Sequence[mlir.RawType],
    name: str = "",
    attributes: dict[str, mlir.RawAttribute] | None = None,
) -> Node:
    """Put another op in the place of a node, with its regions; results behind those of the node are new ones.

    Args:
      node: the node, which is erased.
      operands, types: of the new op: its operands, and the types of its results.
      name, attributes: likewise; those of the node where they are not given.
    """
    own = mlir.attributes_of(node.raw) if attributes is None else attributes
    fresh = Builder.before(node).op(name or node.name, operands, types, own, regions=len(node.raw.regions))
    for number, block in enumerate(node.blocks):
        mlir.move_block(block.raw, fresh.raw, number)
    for before, after in zip(node.results, fresh.results, strict=False):
        before.raw.replace_all_uses_with(after.raw)
    node.raw.erase()
    return fresh
