"""Custom calls as calls of what their declarations say that they compute, so that verification can judge them.

    rules.declare("acme.double", decomposition=lambda x: x + x)

    %r = stablehlo.custom_call @acme.double(%x)   ->   %r = func.call @acme.double.decomposition(%x)

This is done to what is compared, in both versions, and never to what is written. A composite has its decomposition in
the module; what a custom call computes is its author's word, which a verdict tells (`Verdict.assumed`).
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import jax

from hlo_lower.base.domains import Declared, UnfitError
from hlo_lower.base.errors import InputError
from hlo_lower.base.registry import CompositeLoweringRegistry
from hlo_lower.ir import mlir
from hlo_lower.ir.export.user_code import one_line
from hlo_lower.ir.reader import read
from hlo_lower.ir.view import Graph, Node
from hlo_lower.ir.writer import to_text
from hlo_lower.lowering.engine.op_facts import every_fact
from hlo_lower.lowering.plain.variants import of_custom_call
from hlo_lower.ops.names import CUSTOM_CALL

_FUNCTION = re.compile(r"func\.func\s+(?:(?:public|private)\s+)?@(\w[\w.$]*)")
_WIDE = frozenset({"i64", "ui64", "f64", "complex<f64>"})


@dataclass
class Stated:
    """Modules whose custom calls became calls of their decompositions.

    Attributes:
      registry: has the declarations.
      target: the name of the target, of which a declaration may speak alone.
      names: the custom calls that did.
    """

    registry: CompositeLoweringRegistry
    target: str
    names: dict[str, None] = field(default_factory=dict[str, None])

    def of(self, text: str) -> str:
        """A module as text, with calls of decompositions; as it is where nothing is stated of its custom calls.

        Raises:
          InputError: a decomposition cannot be traced or read, or gives other types than the custom call.
        """
        known = {name: one for name, one in self.registry.declarations.items() if one.decomposition is not None}
        if not any(name in text for name in known):
            return text
        graph = read(text)
        found: list[tuple[Node, Declared]] = []

        def visit(node: Node) -> None:
            if node.name == CUSTOM_CALL and mlir.call_target(node.raw) in known:
                found.append((node, known[mlir.call_target(node.raw)]))

        graph.walk(visit)
        made: dict[object, str] = {}
        replaced = [self._replaced(graph, node, declared, made) for node, declared in found]
        return to_text(graph) if any(replaced) else text

    def summary(self) -> str:
        """ "custom calls compute what is declared of acme.double, which is not verified"."""
        return f"custom calls compute what is declared of {', '.join(self.names)}, which is not verified"

    def _replaced(self, graph: Graph, node: Node, declared: Declared, made: dict[object, str]) -> bool:
        """Whether a custom call could be replaced; not one that is no variant, whose types JAX has not or are open."""
        if not all(value.is_static for value in (*node.operands, *node.results)):
            return False
        own = every_fact(node, self.target)
        try:
            values = declared.read(of_custom_call(node, declared), own)
        except UnfitError:
            return False
        parameters = {name: values[name] for name in declared.parameters}
        types = tuple(str(value.raw.type) for value in node.operands)
        results = tuple(str(value.raw.type) for value in node.results)
        key = (declared.op, types, results, tuple(parameters.items()))
        if key not in made:
            where = f"{graph.location(node)}: custom_call @{declared.op}"
            text = _text(where, declared, node, parameters)
            if text is None:
                return False
            made[key] = _merge_decomposition(graph, where, declared, text, types, results, len(made))
        with mlir.active(graph.module.context):
            mlir.put_instead(node.raw, "func.call", {"callee": mlir.symbol_attribute(made[key])})
            node.raw.erase()
        self.names[declared.op] = None
        return True


def _text(where: str, declared: Declared, node: Node, parameters: Mapping[str, Any]) -> str | None:
    """A decomposition as the text of a module; None where JAX has not a type of its operands."""
    if isinstance(declared.decomposition, str):
        return declared.decomposition
    function = cast(Callable[..., Any], declared.decomposition)
    dtypes = [mlir.dtype_of(value.element_type) for value in node.operands]
    if None in dtypes:
        return None
    specs = [
        jax.ShapeDtypeStruct(value.static_shape, cast(Any, dtype))
        for value, dtype in zip(node.operands, dtypes, strict=True)
    ]

    def decomposition(*operands: Any) -> Any:
        return function(*operands, **parameters)

    is_wide = any(value.element_type in _WIDE for value in (*node.operands, *node.results))
    try:
        with jax.enable_x64(is_wide):
            return cast(Any, jax).jit(decomposition, keep_unused=True).lower(*specs).as_text()
    except Exception as error:
        told = f"its decomposition raised {one_line(error)}"
        raise InputError(where, told, facts=f"declared at {declared.place}") from error


def _merge_decomposition(
    graph: Graph, where: str, declared: Declared, text: str, types: Sequence[str], results: Sequence[str], number: int
) -> str:
    """The name of a decomposition, whose functions were put at the end of a module under names of their own."""
    prefix = f"{declared.op}.decomposition{number or ''}"
    for name in _FUNCTION.findall(text):
        text = re.sub(rf"@{re.escape(name)}(?![\w.$])", f'@"{prefix}.{name}"', text)
    try:
        parsed = mlir.parse_module(text, graph.module.context)
    except mlir.MlirSyntaxError as error:
        told = f"its decomposition cannot be read: {one_line(error)}"
        raise InputError(where, told, facts=f"declared at {declared.place}") from None
    functions = [op.operation for op in parsed.body.operations if op.operation.name == "func.func"]
    public = [function for function in functions if mlir.is_public(function)]
    if len(public) != 1:
        told = f"its decomposition has {len(public)} public functions, not one"
        raise InputError(where, told, facts=f"declared at {declared.place}")
    block = public[0].regions[0].blocks[0]
    *_, end = block.operations
    has = tuple(str(a.type) for a in block.arguments), tuple(str(v.type) for v in end.operation.operands)
    if has != (tuple(types), tuple(results)):
        told = [f"({', '.join(given)}) -> ({', '.join(taken)})" for given, taken in (has, (types, results))]
        what = f"its decomposition is {told[0]}, and the custom call {told[1]}"
        raise InputError(where, what, facts=f"declared at {declared.place}")
    with mlir.active(graph.module.context):
        for function in functions:
            copy = mlir.clone_at(function, mlir.insert_at_end(graph.module.body), function.location)
            copy.attributes["sym_visibility"] = mlir.string_attribute("private")
    return mlir.symbol_name(public[0].attributes["sym_name"])
