"""A demoted module under the signature of the original, so that both can be run on the same arguments."""

from hlo_lower.ir import mlir
from hlo_lower.ir.builder import Builder
from hlo_lower.ir.reader import read
from hlo_lower.ir.view import Block, Function, Graph, Node, Value
from hlo_lower.ir.writer import to_text
from hlo_lower.lowering.integers64.demotion import DemotedValue, Demotion
from hlo_lower.lowering.types.carried.pairs import written_out

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
    inner = _free_name(graph)
    with mlir.active(graph.context):
        outer = _declared(function, demotion)
        raw = function.node.raw
        for name in ("sym_visibility", *SIGNATURE_ATTRIBUTES):
            if name in raw.attributes:
                outer.node.raw.attributes[name] = raw.attributes[name]
                del raw.attributes[name]
        raw.attributes["sym_name"] = mlir.parse_attribute(f'"{inner}"')
        raw.attributes["sym_visibility"] = mlir.parse_attribute('"private"')
        _fill(outer, function, inner, demotion)
    return to_text(graph)


def _free_name(graph: Graph) -> str:
    names = (INNER, *(f"{INNER}_{i}" for i in range(len(graph.functions))))
    return next(name for name in names if name not in graph.functions)


def _types(values: list[Value], changed: tuple[DemotedValue, ...]) -> list[mlir.RawType]:
    """The types of values, with the original ones for those that changed."""
    before = {told.number: told for told in changed}
    return [_type_before(value, before[i]) if i in before else value.raw.type for i, value in enumerate(values)]


def _type_before(value: Value, told: DemotedValue) -> mlir.RawType:
    return mlir.tensor_type(value.shape[:-1] if told.is_pair else value.shape, told.before)


def _declared(function: Function, demotion: Demotion) -> Function:
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
    """Convert, call, convert back."""
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
