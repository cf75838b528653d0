"""Custom calls as calls of what their declarations say that they compute, so that verification can judge them.

    rules.declare("acme.double", decomposition=lambda x: x + x)

    %r = stablehlo.custom_call @acme.double(%x)   ->   %r = func.call @acme.double.decomposition(%x)

This is done to what is compared, in both versions; to what is written only where a declaration says that a variant
without a rule is called (`otherwise="call"`). A composite has its decomposition in
the module; what a custom call computes is its author's word, which a verdict tells (`Verdict.assumed`).
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import jax
import jax.export

from hlo_lower.base.causes import Code
from hlo_lower.base.change import Change, Outcome
from hlo_lower.base.domains import Declared, UnfitError
from hlo_lower.base.errors import InputError
from hlo_lower.base.registry import CompositeLoweringRegistry
from hlo_lower.ir import mlir
from hlo_lower.ir.export.user_code import one_line
from hlo_lower.ir.reader import read
from hlo_lower.ir.view import Graph, Node, Value
from hlo_lower.ir.writer import to_text
from hlo_lower.lowering.engine.op_facts import every_fact
from hlo_lower.lowering.plain.variants import of_custom_call
from hlo_lower.ops.names import CUSTOM_CALL
from hlo_lower.ops.targets.target import Target

_FUNCTION = re.compile(r"func\.func\s+(?:(?:public|private)\s+)?@(\w[\w.$]*)")
ASSERTION = "shape_assertion"
"""What JAX calls to test the sizes of a module's arguments."""

_WIDE = frozenset({"i64", "ui64", "f64", "complex<f64>"})


@dataclass
class Stated:
    """Modules whose custom calls became calls of their decompositions.

    Attributes:
      registry: has the declarations.
      target: of which a declaration may speak alone.
      names: the custom calls that did.
    """

    registry: CompositeLoweringRegistry
    target: Target
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
        return to_text(graph) if self._replace(graph, known) else text

    def call(self, graph: Graph) -> list[Change]:
        """Make calls, in a module that is lowered, of those that are declared to be called without a rule, in place.

        Raises:
          InputError: as of `of`.
        """
        known = {
            name: one
            for name, one in self.registry.declarations.items()
            if one.decomposition is not None and one.is_called and one.is_for(self.target.name)
        }
        known = {name: one for name, one in known.items() if name not in self.target.composites}
        changes: list[Change] = []
        for name, where in self._replace(graph, known):
            became = Code.BECAME("a call of its stated decomposition", "", None)
            changes.append(Change(Outcome.LEGALIZED, f"{CUSTOM_CALL} @{name}", became, where))
        graph.forget()
        return changes

    def _replace(self, graph: Graph, known: Mapping[str, Declared]) -> list[tuple[str, str]]:
        """Replace custom calls, in place; the names of those that could be, and where they stood."""
        calls = [node for node in graph.nodes() if node.name == CUSTOM_CALL]
        found = [(node, known[name]) for node in calls if (name := mlir.call_target(node.raw)) in known]
        made: dict[object, str] = {}
        places = [(declared.op, str(graph.location(node))) for node, declared in found]
        replaced = [self._replaced(graph, node, declared, made) for node, declared in found]
        return [place for place, is_replaced in zip(places, replaced, strict=True) if is_replaced]

    def summary(self) -> str:
        """ "custom calls compute what is declared of acme.double, which is not verified"."""
        return f"custom calls compute what is declared of {', '.join(self.names)}, which is not verified"

    def _replaced(self, graph: Graph, node: Node, declared: Declared, made: dict[object, str]) -> bool:
        """Whether a custom call could be replaced; not one that is no variant, or whose types JAX has not."""
        if any(mlir.tensor_encoding(value.raw.type) for value in (*node.operands, *node.results) if value.is_tensor):
            return False
        own = every_fact(node, self.target.name)
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

    def decomposition(*operands: Any) -> Any:
        return function(*operands, **parameters)

    jitted = cast(Any, jax).jit(decomposition, keep_unused=True)
    is_wide = any(value.element_type in _WIDE for value in (*node.operands, *node.results))
    failed: Exception | None = None
    for shapes in _shapes(node.operands):
        specs = [jax.ShapeDtypeStruct(shape, cast(Any, dtype)) for shape, dtype in zip(shapes, dtypes, strict=True)]
        try:
            with mlir.enable_x64(is_wide):
                if all(value.is_static for value in node.operands):
                    return jitted.lower(*specs).as_text()
                return _without_assertions(str(jax.export.export(jitted)(*specs).mlir_module()))
        except Exception as error:
            failed = error
    assert failed is not None
    told = f"its decomposition raised {one_line(failed)}"
    raise InputError(where, told, facts=f"declared at {declared.place}") from failed


def _shapes(operands: Sequence[Value]) -> Iterator[list[tuple[Any, ...]]]:
    """The shapes to trace with: of open dims each another one; then, where that fails, the same ones of those at one
    place from the end."""
    if all(value.is_static for value in operands):
        yield [value.static_shape for value in operands]
        return
    for are_alike in (False, True):
        scope, count = jax.export.SymbolicScope(), 0
        shapes: list[tuple[Any, ...]] = []
        for value in operands:
            told: list[str] = []
            for dim, size in enumerate(value.shape):
                number = len(value.shape) - dim if are_alike else count
                count += size is None
                told.append(f"d{number}" if size is None else str(size))
            shapes.append(tuple(jax.export.symbolic_shape(", ".join(told), scope=scope)))
        yield shapes


def _without_assertions(text: str) -> str:
    """A module that JAX exported, which does not test the sizes of its arguments: the custom call does not, either."""
    module = mlir.parse_module(text)
    for op in mlir.find_named(module.operation, {CUSTOM_CALL})[0]:
        if mlir.call_target(op) == ASSERTION:
            op.erase()
    return mlir.print_module(module)


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
            mlir.make_private(copy)
    return mlir.symbol_name(public[0].attributes["sym_name"])
