"""Make the 64-bit integers of a module 32 bits wide, for consumers that have none."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from hlo_lower.base.errors import NotLoweredError
from hlo_lower.ir import mlir
from hlo_lower.ir.builder import Builder
from hlo_lower.ir.view import Function, Graph, Node, Value
from hlo_lower.lowering.integers64.checks import RunTimeChecks, give_result, with_result
from hlo_lower.lowering.integers64.demand import Demand, bounds_after, function_arguments, is_wide
from hlo_lower.lowering.integers64.demotion import NARROWER, After, DemotedValue, Demotion
from hlo_lower.lowering.types.storage import erase_same, recode, retype, with_avals
from hlo_lower.ops.cleanup import erase, erase_uncalled
from hlo_lower.ops.names import CONSTANT, CUSTOM_CALL


@dataclass
class _Wide:
    nodes: list[Node]
    callers: dict[str, list[Node]]
    naming: list[Node]
    count: int

    @classmethod
    def within(cls, graph: Graph) -> "_Wide":
        found = cls([], {}, [], 0)
        for node in graph.nodes():
            results = sum(map(is_wide, node.results))
            arguments = sum(is_wide(value) for block in node.blocks for value in block.arguments)
            found.count += results + arguments
            if node.body_name:
                found.callers.setdefault(node.body_name, []).append(node)
            if results or any(map(is_wide, node.operands)):
                found.nodes.append(node)
            if node.name == CUSTOM_CALL and "called_computations" in node.raw.attributes:
                found.naming.append(node)
        return found


def demote_i64(graph: Graph, *, checked: bool = False) -> Demotion:
    """Make every tensor of 64-bit integers one of 32-bit integers, in place, arguments and results included.

    Signed ones become i32, unsigned ones ui32. Each result is the same as before where what the returned `Demotion`
    tells as assumptions holds: arguments fit in 32 bits, and so do the values for which that could not be proved. A
    sum that leaves the type on the way, as `i + D` does for an index that is not negative, needs no assumption where
    what is selected from it fits; a constant that bounds values from outside (a clamp at the greatest i64, the start of
    a minimum) becomes the nearest 32-bit one; a comparison that such a constant decides becomes its outcome.
    Floats of 64 bits are not touched.

    Args:
      graph: the module.
      checked: whether each public function gets one more result, of type i1: whether all that is assumed and can be
        tested held in this run (`RunTimeChecks`); arguments are narrowed by whoever calls it. Where it is true the
        other results are as before; where it is false they may be, as it is told of each op that a value is made of.

    Raises:
      NotLoweredError: it would be wrong: an operation works on the bits of 64-bit integers, or a value that matters
        does not fit. The module is as it was then. Or a public function cannot get one more result.
    """
    wide = _Wide.within(graph)
    demotion, demand = _plan_demotion(graph, wide)
    return _demote(graph, wide, demotion, demand, checked=checked)


def demote_what_fits(graph: Graph) -> Demotion | None:
    """Make 64-bit integers 32 bits wide where nobody outside sees it and nothing is assumed.

    No function that is called or defined outside has a wide argument or result, and the analysis shows that each value
    fits. So the results are the same. JAX's random numbers count in ui64, for example. Returns None where the module
    stays as it is.
    """
    wide = _Wide.within(graph)
    if not wide.count or any(map(_is_wide_outside, graph.functions.values())):
        return None
    demotion, demand = _plan_demotion(graph, wide)
    return None if demand.refusals or demotion.assumptions else _demote(graph, wide, demotion, demand)


def _is_wide_outside(function: Function) -> bool:
    """Whether others rely on a 64-bit integer in a signature; a wide argument of a public function is an assumption."""
    if not function.has_body:
        return any(f"{name}>" in str(function.node.raw.attributes["function_type"]) for name in NARROWER)
    return function.is_public and any(map(is_wide, function.body.terminator.operands))


def _demote(graph: Graph, wide: _Wide, demotion: Demotion, demand: Demand, *, checked: bool = False) -> Demotion:
    checks = RunTimeChecks(graph, demand, wide.callers) if checked else None
    if demand.refusals:
        node, reason = next(iter(demand.refusals.items()))
        others = len(demand.refusals) - 1
        raise NotLoweredError(
            str(graph.location(node)),
            f"{node.name}: 64-bit integers cannot be made 32 bits wide: {reason}",
            facts=f"{others} more such operations" if others else "",
            next_step="convert without --demote-i64, for a target that accepts i64",
        )
    if checks is not None:
        demotion = _with_tests(graph, demotion, demand, checks)
    if not wide.count:
        if checked:
            assume_nothing(graph)
        return demotion
    with mlir.active(graph.context):
        for node in wide.nodes:
            if node.name == CONSTANT:
                _narrow_constant(node, nearest=node in demand.nearest)
        retype(graph, NARROWER)
        for node, outcome in demand.decided.items():
            _decide(node, outcome)
        erase_same(wide.nodes)
        if checks is not None:
            give_result(graph, checks.tested)
        uncalled = {name for node in demand.decided for name in erase(graph, node)}
    graph.forget()
    erase_uncalled(graph, uncalled)
    graph.forget()
    graph.exported = with_avals(graph, NARROWER)
    if checked:
        graph.exported = with_result(graph)
    return demotion


def assume_nothing(graph: Graph) -> None:
    """Give each public function the result of `checked` without any assumption: it is true."""
    give_result(graph, ())
    graph.exported = with_result(graph)


def _plan_demotion(graph: Graph, wide: _Wide) -> tuple[Demotion, Demand]:
    demand = Demand(graph, wide.nodes, wide.callers)
    if wide.count:
        for node in wide.naming:
            demand.refusals.setdefault(node, "it calls a function of the module, with types that are not known")
    main = graph.main
    arguments = tuple(_demoted_value("argument", number, value) for number, value in function_arguments(main))
    returned = enumerate(main.body.terminator.operands)
    results = tuple(_demoted_value("result", number, value) for number, value in returned if is_wide(value))
    demotion = Demotion(
        main.name,
        arguments,
        results,
        wide.count,
        (*_assumed_arguments(graph), *(_assumption(graph, node) for node in demand.assumed)),
    )
    return demotion, demand


def _demoted_value(what: str, number: int, value: Value) -> DemotedValue:
    return DemotedValue.of(what, number, value, After(NARROWER[value.element_type]))


def _assumed_arguments(graph: Graph) -> Iterator[str]:
    for function in graph.functions.values():
        if function.is_public and function.has_body:
            for number, value in function_arguments(function):
                low, high = bounds_after(value)
                told = _demoted_value("argument", number, value)
                yield f"{told.name} of @{function.name}: its values are in [{low}, {high}]"


def _assumption(graph: Graph, node: Node) -> str:
    low, high = bounds_after(node.result())
    return f"{node.name} at {graph.location(node)}: its results are in [{low}, {high}]"


def _with_tests(graph: Graph, demotion: Demotion, demand: Demand, checks: RunTimeChecks) -> Demotion:
    tested = [node for node in demand.assumed if node not in checks.untested]
    untested = [f"{_assumption(graph, node)} ({reason})" for node, reason in checks.untested.items()]
    assumptions = (*_assumed_arguments(graph), *untested)
    return replace(demotion, assumptions=assumptions, tested=tuple(_assumption(graph, node) for node in tested))


# --- changing the module ------------------------------------------------------------------------------------------


def _decide(node: Node, outcome: int) -> None:
    """Replace an operation by what it always comes out as. It is erased last: what it takes is still to be changed."""
    result = node.result()
    value = Builder.before(node).constant(outcome, result.static_shape, result.element_type)
    result.raw.replace_all_uses_with(value.raw)


def _narrow_constant(node: Node, *, nearest: bool) -> None:
    """Give a constant its 32-bit elements: the nearest ones, or the low halves."""
    result = node.result()
    values = node.constant()
    assert values is not None
    recode(node, np.clip(values, *bounds_after(result)) if nearest else values, NARROWER)
