"""What making 64-bit integers 32 bits wide rests on, and the check of arguments against it."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hlo_lower.base.element_types import element_type, element_type_of
from hlo_lower.base.errors import InputError
from hlo_lower.ir import mlir
from hlo_lower.ir.builder import Builder
from hlo_lower.ir.reader import read
from hlo_lower.ir.view import Block, Function, Graph, Node, Value
from hlo_lower.ir.writer import to_text
from hlo_lower.lowering.types.carried.pairs import written_out
from hlo_lower.ops.names import CONVERT

Array = NDArray[Any]

NARROWER = {"i64": "i32", "ui64": "ui32"}
"""The element types that go, and what they become."""


class After(NamedTuple):
    """What a value becomes: its element type, the op that takes it there, and whether it is a pair then."""

    element: str
    cast: str = CONVERT
    is_pair: bool = False


@dataclass(frozen=True)
class DemotedValue:
    """An argument or a result of the entry point whose element type changed.

    Attributes:
      number: its position among the arguments or the results.
      name: what a message calls it ("argument 2 (input_pos)").
      before, after: its element types ("i64", "i32").
      cast: the op that takes a value from one to the other: of the same number, or of the same bits, or what stands for
        the ops that take complex numbers apart.
      is_pair: whether the value has a last dim of 2 since: the parts of a complex number.
    """

    number: int
    name: str
    before: str
    after: str
    cast: str = CONVERT
    is_pair: bool = False

    @classmethod
    def of(cls, what: str, number: int, value: Value, after: After) -> "DemotedValue":
        """The "argument" or "result" of a number, before it changes."""
        name = mlir.value_name(value.raw) if what == "argument" else ""
        return cls(number, f"{what} {number}" + (f" ({name})" if name else ""), value.element_type, *after)


@dataclass(frozen=True)
class Demotion:
    """What became of the 64-bit integers of a module.

    Attributes:
      entry: the entry point's name.
      arguments, results: those of the entry point that are narrower now.
      values: how many tensors of 64-bit integers there were, those within functions included.
      assumptions: what is taken for granted, neither proved nor tested, a sentence each: arguments first, then
        operations.
      tested: what is assumed and tested at run time, a sentence each.
    """

    entry: str
    arguments: tuple[DemotedValue, ...]
    results: tuple[DemotedValue, ...]
    values: int
    assumptions: tuple[str, ...] = ()
    tested: tuple[str, ...] = ()

    @classmethod
    def of(cls, graph: Graph, nodes: Iterable[Node], becomes: Mapping[str, After]) -> "Demotion":
        """What changes of a module, before it does.

        Args:
          graph: the module.
          nodes: its ops, all that have a result of a type that goes among them.
          becomes: for each type that goes what it becomes.
        """
        main = graph.main

        def changed_values(what: str, values: Sequence[Value]) -> tuple[DemotedValue, ...]:
            those = [(i, v, becomes[v.element_type]) for i, v in enumerate(values) if _is_among(v, becomes)]
            return tuple(DemotedValue.of(what, *told) for told in those)

        arguments, results = (
            changed_values("argument", main.body.arguments),
            changed_values("result", main.body.terminator.operands),
        )
        count = sum(_is_among(value, becomes) for node in nodes for value in node.results)
        return cls(main.name, arguments, results, count + len(arguments))

    @property
    def is_needed(self) -> bool:
        """Whether there was any 64-bit integer."""
        return self.values > 0

    def summary(self) -> str:
        """One line for a report."""
        if not self.is_needed:
            return "no 64-bit integers"
        signature = f"{len(self.arguments)} arguments and {len(self.results)} results"
        return f"{self.values} tensors of 64-bit integers made 32 bits wide, {signature} of @{self.entry} among them"


def _is_among(value: Value, becomes: Collection[str]) -> bool:
    return value.is_tensor and value.element_type in becomes


def narrow_arguments(arguments: Sequence[Array], demotion: Demotion, where: str = "") -> list[Array]:
    """Check arguments of the original against what a demotion assumes of them, and convert them to what it takes.

    Args:
      arguments: one array per argument of the entry point, of the original types or of the new ones.
      demotion: what was assumed.
      where: what messages begin with: the file or the function that the arguments are for.

    Raises:
      InputError: a value does not fit; the message has the argument's name, the value and its index.
    """
    narrowed = list(arguments)
    for argument in demotion.arguments:
        if argument.number >= len(narrowed):
            raise InputError(where, f"{argument.name} is missing", facts=f"{len(narrowed)} arguments are given")
        narrowed[argument.number] = narrow_array(np.asarray(narrowed[argument.number]), argument.name, where)
    return narrowed


def narrow_array(array: Array, name: str, where: str = "") -> Array:
    """An array of 64-bit integers as one of 32 bits; any other array as it is.

    Raises:
      InputError: a value does not fit.
    """
    name_after = NARROWER.get(element_type_of(array.dtype).name)
    if name_after is None:
        return array
    after = element_type(name_after)
    outside = (array < after.least) | (array > after.most)
    if bool(outside.any()):
        index = tuple(int(i) for i in np.argwhere(outside)[0])
        raise InputError(
            where,
            f"{name} holds {int(array[index])}, which does not fit in {name_after}",
            facts=f"at {list(index)}; {int(outside.sum())} of {array.size} values are out of "
            f"[{after.least}, {after.most}]; the module was converted under the assumption that all fit",
            next_step="convert it without --demote-i64, or give values that fit",
        )
    return array.astype(after.dtype)


# --- a demoted module under the signature of the original, so that both can be run on the same arguments ---


INNER = "hlo_lower_demoted"
"""What the entry point is called within; digits follow where the name is taken."""

SIGNATURE_ATTRIBUTES = ("arg_attrs", "res_attrs")


def with_original_signature(module_text: str, demotion: Demotion) -> str:
    """Put an entry point with 64-bit arguments and results around a demoted module.

        func.func public @main(%0: tensor<4xi64>) -> tensor<4xi64> {
          %1 = stablehlo.convert %0 : (tensor<4xi64>) -> tensor<4xi32>
          %2 = call @hlo_lower_demoted(%1)
          %3 = stablehlo.convert %2 : (tensor<4xi32>) -> tensor<4xi64>
          return %3
        }

    For verification against the original, on arguments that fit in 32 bits. Attributes of arguments and results
    (donation, shardings) move to the new entry point.

    Args:
      module_text: the demoted module.
      demotion: what `demote_i64` returned for it.
    """
    graph = read(module_text, contained=False)
    if not demotion.arguments and not demotion.results:
        return module_text
    function = graph.functions[demotion.entry]
    inner = graph.free_name(INNER)
    with mlir.active(graph.context):
        outer = _declare_entry(function, demotion)
        raw = function.node.raw
        for name in ("sym_visibility", *SIGNATURE_ATTRIBUTES):
            if name in raw.attributes:
                outer.node.raw.attributes[name] = raw.attributes[name]
                del raw.attributes[name]
        raw.attributes["sym_name"] = mlir.parse_attribute(f'"{inner}"')
        mlir.make_private(raw)
        _fill(outer, function, inner, demotion)
    return to_text(graph)


def _types(values: list[Value], changed: tuple[DemotedValue, ...]) -> list[mlir.RawType]:
    """The types of values, with the original ones for those that changed."""
    before = {told.number: told for told in changed}
    return [_type_before(value, before[i]) if i in before else value.raw.type for i, value in enumerate(values)]


def _type_before(value: Value, told: DemotedValue) -> mlir.RawType:
    return mlir.tensor_type(value.shape[:-1] if told.is_pair else value.shape, told.before)


def _declare_entry(function: Function, demotion: Demotion) -> Function:
    """A function of the original signature in front of another one, still without a return."""
    body = function.body
    inputs = _types(list(body.arguments), demotion.arguments)
    outputs = _types(list(body.terminator.operands), demotion.results)
    listed = [", ".join(map(str, types)) for types in (inputs, outputs)]
    attributes = {
        "sym_name": mlir.parse_attribute(f'"{demotion.entry}"'),
        "function_type": mlir.parse_attribute(f"({listed[0]}) -> ({listed[1]})"),
    }
    before = Builder.before(function.node)
    node = before.op("func.func", [], [], attributes, regions=1)
    mlir.append_block(node.raw, 0, inputs, function.node.raw.location)
    return Function(Node(node.raw))


def _fill(outer: Function, function: Function, inner: str, demotion: Demotion) -> None:
    build = Builder(mlir.insert_at_end(outer.body.raw), function.node.raw.location)
    body: Block = function.body
    changed = {told.number: told for told in demotion.arguments}
    given = [
        _cast(build, value, function.body.argument(i).raw.type, changed[i]) if i in changed else value
        for i, value in enumerate(outer.body.arguments)
    ]
    returned = body.terminator.operands
    callee = {"callee": mlir.symbol_attribute(inner)}
    call = build.op("func.call", given, [value.raw.type for value in returned], callee)
    changed = {told.number: told for told in demotion.results}
    results = [
        _cast(build, value, _type_before(value, changed[i]), changed[i]) if i in changed else value
        for i, value in enumerate(call.results)
    ]
    build.op("func.return", results, [])


def _cast(build: Builder, value: Value, raw_type: mlir.RawType, told: DemotedValue) -> Value:
    return written_out(build, value) if told.is_pair else build.op(told.cast, [value], [raw_type]).result()
