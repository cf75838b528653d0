"""What the dims of the entry point's arguments are called.

JAX writes the specification of polymorphic shapes into the message of each shape assertion ("args[0].shape =
(2*s + 1, 8)"); an `Exported` holds it in its `in_avals`. Where neither says anything, a dim of unknown size is named by
its place, `arg1.0` for dim 0 of argument 1.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from hlo_lower.ir import mlir
from hlo_lower.ir.shapes.constraints import constraints_in, readable
from hlo_lower.ir.shapes.expressions import ExpressionError, symbols_of

_SPECIFICATIONS = re.compile(r"polymorphic shapes specifications: (.*?)\. Obtained dimension variables", re.DOTALL)
_SHAPE = re.compile(r"\.shape = \(([^=]*?)\)(?=,[^,=]*\.shape = \(|$)")


@dataclass(frozen=True)
class Specification:
    """The arguments of @main and their dims.

    Attributes:
      arguments: for each argument its type as printed.
      dims: for each argument its dims, each an expression over symbols ("8", "2*s + 1") or a place ("arg1.0"); None
        where the argument is no ranked tensor.
      elements: element type of each argument as printed.
      is_given: whether the module says what the dims are called.
      has_open_results: whether a result of @main has a dim of unknown size.
      constraints: what else the module says of its sizes, in JAX's notation: "mod(s, 16) == 0".
    """

    arguments: tuple[str, ...]
    dims: tuple[tuple[str, ...] | None, ...]
    elements: tuple[str, ...]
    is_given: bool
    has_open_results: bool = False
    constraints: tuple[str, ...] = ()

    @property
    def is_dynamic(self) -> bool:
        """Whether any dim of an argument or a result has no size yet."""
        return self.has_open_results or any(not dim.isdigit() for dims in self.dims for dim in dims or ())

    @property
    def symbols(self) -> tuple[str, ...]:
        """The symbols and places that need a size, in the order of the arguments."""
        found: dict[str, None] = {}
        for dims in self.dims:
            for dim in dims or ():
                found.update(dict.fromkeys((dim,) if is_place(dim) else symbols_of(dim)))
        return tuple(found)

    @property
    def scalars(self) -> tuple[str, ...]:
        """The integer scalars among the arguments: "arg0"; not where a symbol of the shapes has that name, too."""
        symbols = self.symbols
        return tuple(
            f"arg{n}"
            for n, (dims, element) in enumerate(zip(self.dims, self.elements, strict=True))
            if dims == () and re.fullmatch(r"[su]?i\d+", element) and element != "i1" and f"arg{n}" not in symbols
        )

    def places(self) -> dict[str, str]:
        """Every dim by its place: "arg1.0" is dim 0 of argument 1."""
        return {f"arg{n}.{i}": dim for n, dims in enumerate(self.dims) for i, dim in enumerate(dims or ())}

    def lines(self) -> list[str]:
        """The arguments with unknown sizes, for a reader: "argument 0 is (2*s + 1, 8)"; then the constraints."""
        told = ((n, dims) for n, dims in enumerate(self.dims) if any(not dim.isdigit() for dim in dims or ()))
        lines = [f"argument {n} is ({', '.join(dims or ())})" for n, dims in told]
        return lines + ([f"where {', '.join(map(readable, self.constraints))}"] if self.constraints else [])


def is_place(dim: str) -> bool:
    """Whether a dim is named by its place: "arg1.0"."""
    return re.fullmatch(r"arg\d+\.\d+", dim) is not None


def specification_of(module: mlir.RawModule, given: Sequence[Sequence[object]] | None = None) -> Specification | None:
    """The specification of a module's @main; None where there is no such function.

    Args:
      module: the module.
      given: the dims of each argument, from an `Exported`.
    """
    main = main_of(module)
    if main is None:
        return None
    types = [a.type for a in main.regions[0].blocks[0].arguments]
    tensors = [mlir.read_tensor_type(t) for t in types]
    shapes = [None if t is None else t.shape for t in tensors]
    messages = _messages(module)
    told = [tuple(str(d) for d in dims) for dims in given] if given is not None else _in_messages(messages, shapes)
    is_given = told is not None and _fits(told, shapes)
    dims: list[tuple[str, ...] | None] = []
    for n, shape in enumerate(shapes):
        if shape is None:
            dims.append(None)
        elif is_given and told is not None:
            dims.append(told[n])
        else:
            dims.append(tuple(str(d) if d is not None else f"arg{n}.{i}" for i, d in enumerate(shape)))
    elements = tuple("" if t is None else t.element_name for t in tensors)
    results = [mlir.read_tensor_type(t) for t in main.opview.type.results]
    is_open = any(t is not None and not t.is_static for t in results)
    return Specification(
        tuple(str(t) for t in types), tuple(dims), elements, is_given, is_open, constraints_in(messages)
    )


def main_of(module: mlir.RawModule) -> mlir.RawOperation | None:
    """The function @main, if it has a body."""
    for op in module.body.operations:
        raw = op.operation
        if raw.name == "func.func" and mlir.symbol_name(raw.attributes["sym_name"]) == "main":
            return raw if len(raw.regions[0].blocks) else None
    return None


def _fits(told: Sequence[tuple[str, ...]], shapes: Sequence[tuple[int | None, ...] | None]) -> bool:
    """Whether dims agree with the types: as many, the known ones equal, the unknown ones expressions."""
    if len(told) != len(shapes):
        return False
    for dims, shape in zip(told, shapes, strict=True):
        if shape is None or len(dims) != len(shape):
            return False
        for dim, size in zip(dims, shape, strict=True):
            if (dim != str(size)) if size is not None else not _is_expression(dim):
                return False
    return True


def _is_expression(dim: str) -> bool:
    try:
        return bool(symbols_of(dim))
    except ExpressionError:
        return False


def _messages(module: mlir.RawModule) -> list[str]:
    """The messages of the module's shape assertions."""
    calls = (op for op in mlir.operations_within(module.operation) if op.name == "stablehlo.custom_call")
    return [mlir.symbol_name(op.attributes["error_message"]) for op in calls if "error_message" in op.attributes]


def _in_messages(
    messages: Sequence[str], shapes: Sequence[tuple[int | None, ...] | None]
) -> list[tuple[str, ...]] | None:
    """The dims that the module's shape assertions tell; they list the arguments of unknown shape, in order."""
    listed = next((found for message in messages if (found := _SPECIFICATIONS.search(message))), None)
    if listed is None:
        return None
    symbolic = iter(_split(shape) for shape in _SHAPE.findall(listed.group(1)))
    dims: list[tuple[str, ...]] = []
    for shape in shapes:
        if shape is not None and None in shape:
            dims.append(next(symbolic, ()))
        else:
            dims.append(tuple(str(d) for d in shape or ()))
    return dims


def _split(shape: str) -> tuple[str, ...]:
    """The dims of "2*s + 1, max(s, 4), 8": split at commas that stand in no parentheses."""
    parts, depth = [""], 0
    for letter in shape:
        depth += (letter == "(") - (letter == ")")
        if letter == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return tuple(part.strip() for part in parts if part.strip())
