"""The thin typed view over a module: graph, functions, nodes, blocks, values, source locations.

The module of jaxlib's MLIR is the only state. A view object is made when it is asked for, holds the raw object and
compares by it; so it stays valid while other operations come and go, and costs nothing for what is never looked at.
"""

from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass, field
from functools import cache, cached_property
from html import escape
from pathlib import PurePath
from typing import Any, cast

import numpy as np

from hlo_lower.base.element_types import ElementType, element_type
from hlo_lower.ir import mlir


@dataclass(frozen=True)
class Location:
    """Where an operation comes from.

    Attributes:
      file: source file as the module names it, or the module's own file where it has no locations.
      line, column: from 1; 0 where unknown.
      scope: the outermost name that is a path ("jit(decode)/layer_0/scatter"), or "".
    """

    file: str
    line: int
    column: int
    scope: str = ""

    def __str__(self) -> str:
        name = _last_part(self.file)
        return f"{name}:{self.line}" if self.line else name or "unknown"


@cache
def _last_part(file: str) -> str:
    return PurePath(file).name or file


class _View:
    """What the view's objects share: they are equal when they look at the same raw object.

    Not frozen, and compared by hand: they are made by the thousand, and a frozen dataclass takes twice the time.

    Attributes:
      raw: the object of the bindings.
      module: the module that it is in, if a graph handed it out. A raw object does not keep its module alive, and to
        read one whose module is gone ends the process.
    """

    __slots__ = ()
    raw: Any
    module: mlir.RawModule | None

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and self.raw == cast(Any, other).raw

    def __hash__(self) -> int:
        return hash(self.raw)


@dataclass(slots=True, eq=False)
class Value(_View):
    """An SSA value with a type, the result of a node or an argument of a block."""

    raw: mlir.RawValue
    module: mlir.RawModule | None = None

    @property
    def tensor_type(self) -> mlir.TensorType | None:
        """Its type read at once, or None where it is no ranked tensor."""
        return mlir.read_tensor_type(self.raw.type)

    @property
    def is_tensor(self) -> bool:
        """Whether it is a ranked tensor (tokens and tuples are not)."""
        return mlir.is_ranked_tensor(self.raw.type)

    @property
    def shape(self) -> tuple[int | None, ...]:
        """The shape; None is a dynamic size."""
        return mlir.tensor_shape(self.raw.type)

    @property
    def static_shape(self) -> tuple[int, ...]:
        """The shape of a value that is known to be static.

        Raises:
          ValueError: a size is dynamic.
        """
        tensor = mlir.read_tensor_type(self.raw.type)
        if tensor is None or not tensor.is_static:
            raise ValueError(f"dynamic shape {self.raw.type}")
        return cast(tuple[int, ...], tensor.shape)

    @property
    def is_static(self) -> bool:
        """Whether it is a ranked tensor whose sizes are all known."""
        return mlir.is_static(self.raw.type)

    @property
    def element_type(self) -> str:
        """The element type as MLIR prints it ("f32", "ui8", "complex<f32>")."""
        return mlir.tensor_element_name(self.raw.type)

    @property
    def element(self) -> ElementType:
        """What is declared of the element type."""
        return element_type(self.element_type)

    @property
    def node(self) -> "Node | None":
        """The node whose result this is; None for a block argument."""
        return None if mlir.is_block_argument(self.raw) else Node(self.raw.owner.operation, self.module)

    def constant(self) -> "np.ndarray[Any, Any] | None":
        """The numbers of the constant that makes it; None where none does, or they have no NumPy form."""
        node = self.node
        return None if node is None else node.constant()

    @property
    def integer(self) -> int | None:
        """The number that it is, where it is a constant without dims, of integers."""
        found = self.constant() if self.is_tensor and self.shape == () else None
        return None if found is None or found.dtype.kind not in "iu" else int(found)

    @property
    def repeated_integer(self) -> int | None:
        """The integer that all its elements are, where they come from a splat constant, perhaps spread; else None."""
        node = self.node
        while node is not None and node.name == "stablehlo.broadcast_in_dim":
            node = node.operand(0).node
        values = None if node is None else node.constant()
        if node is None or values is None or values.dtype.kind not in "iu" or not values.size:
            return None
        return int(values.reshape(-1)[0]) if mlir.is_splat(node.raw) else None

    @property
    def block(self) -> "Block | None":
        """The block whose argument this is; None for the result of a node."""
        return Block(self.raw.owner, self.module) if mlir.is_block_argument(self.raw) else None

    @property
    def number(self) -> int:
        """Its position among the results of its node or the arguments of its block."""
        return mlir.argument_number(self.raw) if mlir.is_block_argument(self.raw) else mlir.result_number(self.raw)

    @property
    def users(self) -> "Iterator[Node]":
        """The nodes that use it, once for each use."""
        return (Node(use.owner.operation, self.module) for use in self.raw.uses)

    @property
    def is_used(self) -> bool:
        """Whether any node uses it."""
        return next(iter(self.raw.uses), None) is not None


@dataclass(slots=True, eq=False)
class Block(_View):
    """A block: its arguments and its nodes in order."""

    raw: mlir.RawBlock
    module: mlir.RawModule | None = None

    @property
    def arguments(self) -> tuple[Value, ...]:
        """The block's arguments."""
        return tuple(Value(a, self.module) for a in self.raw.arguments)

    def argument(self, number: int) -> Value:
        """One argument; a function of a large model has thousands."""
        return Value(self.raw.arguments[number], self.module)

    @property
    def nodes(self) -> Iterator["Node"]:
        """The block's nodes in program order, the terminator last."""
        return (Node(op.operation, self.module) for op in self.raw.operations)

    @property
    def terminator(self) -> "Node":
        """The last node: `func.return` or `stablehlo.return`."""
        operations = self.raw.operations
        return Node(operations[len(operations) - 1].operation, self.module)

    @property
    def owner(self) -> "Node":
        """The node whose region holds the block."""
        return Node(self.raw.owner.operation, self.module)


@dataclass(slots=True, eq=False)
class Node(_View):
    """An operation."""

    raw: mlir.RawOperation
    module: mlir.RawModule | None = None

    @property
    def name(self) -> str:
        """The operation's full name ("stablehlo.scatter")."""
        return self.raw.name

    @property
    def operands(self) -> tuple[Value, ...]:
        """The operands."""
        return tuple(Value(v, self.module) for v in self.raw.operands)

    @property
    def results(self) -> tuple[Value, ...]:
        """The results."""
        return tuple(Value(v, self.module) for v in self.raw.results)

    def operand(self, number: int) -> Value:
        """One operand."""
        return Value(self.raw.operands[number], self.module)

    def result(self, number: int = 0) -> Value:
        """One result."""
        return Value(self.raw.results[number], self.module)

    @property
    def blocks(self) -> tuple[Block, ...]:
        """The blocks of all its regions, region by region (StableHLO's regions have one block each)."""
        return tuple(Block(block, self.module) for region in self.raw.regions for block in region.blocks)

    @property
    def is_static(self) -> bool:
        """Whether all sizes of its operands and results are known."""
        return all(value.is_static for value in (*self.operands, *self.results))

    @property
    def has_regions(self) -> bool:
        """Whether it has any region, which may take values from around it."""
        return len(self.raw.regions) > 0

    @property
    def parent(self) -> "Node | None":
        """The node around it: a function, a while, a case, the module."""
        parent = self.raw.parent
        return None if parent is None else Node(parent.operation, self.module)

    def attribute(self, name: str) -> mlir.RawAttribute | None:
        """A raw attribute, or None where the node has none of that name."""
        attributes = self.raw.attributes
        return attributes[name] if name in attributes else None  # noqa: SIM401 (the bindings' map has no get in 0.9)

    def integers(self, name: str, otherwise: tuple[int, ...] | None = None) -> tuple[int, ...]:
        """The integers of an `array<i64>` attribute (dims, permutation, slice bounds); others where there is none."""
        if otherwise is not None and name not in self.raw.attributes:
            return otherwise
        return mlir.integers_of(self.raw.attributes[name])

    def padding(self, rank: int) -> tuple[int, ...]:
        """Low and high padding of each dim of windows, one after the other, `dense<...> : tensor<...xi64>`; 0 unless
        it is said."""
        attributes = self.raw.attributes
        return mlir.dense_integers(attributes["padding"]) if "padding" in attributes else (0,) * (2 * rank)

    def integer(self, name: str) -> int:
        """An integer attribute (iota_dimension, dimension)."""
        return mlir.integer_of(self.raw.attributes[name])

    def constant(self) -> "np.ndarray[Any, Any] | None":
        """The value of a `stablehlo.constant`, or None where it has no NumPy form; None of another op."""
        return mlir.constant_value(self.raw) if self.raw.name == "stablehlo.constant" else None

    @property
    def callee(self) -> str:
        """The symbol that a `func.call` names."""
        return mlir.symbol_name(self.raw.attributes["callee"])

    @property
    def body_name(self) -> str:
        """The function that stands for a node: of a call, or of a composite (its decomposition); "" of others."""
        name = self.raw.name
        if name == "func.call":
            return self.callee
        return mlir.symbol_name(self.raw.attributes["decomposition"]) if name == "stablehlo.composite" else ""


@dataclass(frozen=True, slots=True)
class Function:
    """A `func.func`."""

    node: Node

    @property
    def name(self) -> str:
        """Its symbol, without the @."""
        return mlir.symbol_name(self.node.raw.attributes["sym_name"])

    @property
    def is_public(self) -> bool:
        """Whether it is visible from outside the module (no visibility is public)."""
        return mlir.is_public(self.node.raw)

    @property
    def has_body(self) -> bool:
        """Whether it is more than a declaration."""
        return bool(self.node.blocks)

    @property
    def body(self) -> Block:
        """Its entry block."""
        return self.node.blocks[0]


@dataclass(eq=False, repr=False)
class Graph:
    """A module, read. Functions, calls, scatters and slices are found in one walk, when first asked for.

    Attributes:
      module: the raw module; lowering rewrites it in place.
      name: the file it came from, "-" for standard input, "<module>" for an object.
      has_locations: whether the module came with source locations, and so is printed with them.
      exported: the `jax.export.Exported` that it came from, if any.
      is_structured: whether it is in linalg and scf, which was asked for (`read`).
      has_shardy: whether it may hold something of the dialect sdy; where not, nobody has to look for it.
      version: how often `forget` was called; what is known of an older version may be wrong.

    Example:
      >>> graph = hl.read("decode.mlir")
      >>> graph
      <Graph decode.mlir: 5 ops, 1 scatter, 1 function>
      >>> graph.name, graph.op_count
      ('decode.mlir', 5)
    """

    module: mlir.RawModule
    name: str
    _: KW_ONLY
    has_locations: bool
    exported: Any = None
    has_shardy: bool = True
    is_structured: bool = field(default=False, init=False)
    version: int = field(default=0, init=False)

    def __repr__(self) -> str:
        return f"<Graph {self._summary()}>"

    def _repr_html_(self) -> str:
        """For notebooks: the line of the repr, and the names of the functions."""
        names = ", ".join(f"@{name}" for name in self.functions)
        return f"<p><b>Graph</b> {escape(self._summary())}</p>\n<p>{escape(names)}</p>"

    def _summary(self) -> str:
        parts = [(self.op_count, "op"), (len(self.scatters), "scatter"), (len(self.functions), "function")]
        return f"{self.name}: {', '.join(f'{n:,} {noun}' + 's' * (n != 1) for n, noun in parts)}"

    @property
    def context(self) -> mlir.RawContext:
        """The MLIR context that the module lives in."""
        return self.module.context

    @cached_property
    def _index(self) -> "_Index":
        return _Index(self.module)

    def forget(self) -> None:
        """Find functions, calls and scatters anew when they are asked for: operations of the module came or went."""
        self.__dict__.pop("_index", None)
        self.version += 1

    @property
    def op_count(self) -> int:
        """Operations in the module as read, the module and the functions included."""
        return self._index.op_count

    @property
    def functions(self) -> dict[str, Function]:
        """All functions by name, in program order."""
        return self._index.functions

    @property
    def scatters(self) -> tuple[Node, ...]:
        """All `stablehlo.scatter` nodes as read, nested regions included, in program order."""
        return tuple(self._index.scatters)

    @property
    def slices(self) -> tuple[Node, ...]:
        """All `stablehlo.dynamic_slice` and `stablehlo.gather` nodes as read, in program order."""
        return tuple(self._index.slices)

    def calls_of(self, function: str) -> tuple[Node, ...]:
        """The `func.call` nodes that name a function."""
        return tuple(self._index.calls.get(function, ()))

    @property
    def calls(self) -> dict[str, list[Node]]:
        """All `func.call` nodes as read, by the function that they name."""
        return self._index.calls

    @property
    def callers(self) -> list[Node]:
        """All nodes that a function stands for, as read: `func.call` and `stablehlo.composite`."""
        return self._index.callers

    def free_name(self, name: str) -> str:
        """A name that no function has: this one, or one with a number behind it."""
        names = (name, *(f"{name}_{number}" for number in range(len(self.functions))))
        return next(one for one in names if one not in self.functions)

    def has_other_reference(self, function: str) -> bool:
        """Whether something besides `func.call` may name a function (a composite, a custom call)."""
        return function in self._index.references

    @property
    def main(self) -> Function:
        """The public function: `main`, or the first public one."""
        functions = self.functions
        if "main" in functions and functions["main"].is_public:
            return functions["main"]
        return next(f for f in functions.values() if f.is_public)

    def function_of(self, node: Node) -> Function:
        """The function that holds a node, however deeply nested."""
        current = node.raw
        while current.name != "func.func":
            parent = current.parent
            if parent is None:
                raise ValueError(f"{node.name} is in no function")
            current = parent.operation
        return Function(Node(current, self.module))

    def location(self, node: Node) -> Location:
        """Where a node comes from: its source location, or its place in the module's own text."""
        found = self.place(node.raw.location)
        parent = node.raw.parent
        if found.line or not self.has_locations or parent is None or parent.operation.name == "builtin.module":
            return found
        return self.place(node.raw.location, self.function_of(node).name)

    def place(self, location: mlir.RawLocation, function: str = "") -> Location:
        """A raw location of this module, read.

        Args:
          location: of an op or a value.
          function: the one that holds it: where the location names no line, as in the functions that JAX itself traces
            once, the line is that of the function's first call.
        """
        (file, line, column), names = mlir.read_location(location)
        if not self.has_locations:
            names = ()
        while not line and self.has_locations and function in self._index.called_at:  # no function calls itself
            call, function = self._index.called_at[function]
            (file, line, column), around = mlir.read_location(call)
            names = (*around, *names)
        scope = next((name for name in names if "/" in name), "")
        return Location(self.name if file in ("", mlir.PARSE_BUFFER) else file, line, column, scope)

    def nodes(self) -> list[Node]:
        """All nodes in program order, the module's own first."""
        return [Node(raw, self.module) for raw in mlir.operations_within(self.module.operation)]


_NAMING = ("stablehlo.composite", "stablehlo.custom_call", "sdy.manual_computation")
"""Ops that may name a function beside `func.call`."""

_SLICES = ("stablehlo.dynamic_slice", "stablehlo.gather")
_INDEXED = {"stablehlo.scatter", "func.func", "func.call", *_NAMING, *_SLICES}


class _Index:
    """What one walk over a module finds.

    Attributes:
      op_count: operations, the module included.
      callers: what a function stands for: calls and composites.
      called_at: for each function where its first call stands, and the function that holds this one.
    """

    def __init__(self, module: mlir.RawModule) -> None:
        self.scatters: list[Node] = []
        self.slices: list[Node] = []
        self.functions: dict[str, Function] = {}
        self.calls: dict[str, list[Node]] = {}
        self.callers: list[Node] = []
        self.called_at: dict[str, tuple[mlir.RawLocation, str]] = {}
        self.references: set[str] = set()
        within = ""
        found, self.op_count = mlir.find_named(module.operation, _INDEXED)
        for node in (Node(raw, module) for raw in found):
            name = node.name
            if name == "stablehlo.scatter":
                self.scatters.append(node)
            elif name in _SLICES:
                self.slices.append(node)
            elif name == "func.func":
                function = Function(node)
                self.functions[function.name] = function
                within = function.name
            elif name == "func.call":
                self.callers.append(node)
                self.calls.setdefault(node.callee, []).append(node)
                self.called_at.setdefault(node.callee, (node.raw.location, within))
            else:
                self.callers += [node] if node.body_name else []
                self.references.update(mlir.symbols_in(node.raw))
