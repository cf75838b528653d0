"""The view over a module: functions, calls, def-use, regions, types."""

from pathlib import Path

import pytest

from hlo_lower.ir.reader import read

MODULE = Path(__file__).with_name("loop_with_scatter.mlir").read_text()


@pytest.fixture(scope="module")
def graph():
    """The module, read once."""
    return read(MODULE)


def test_functions_are_found_in_order(graph):
    """Functions are known by name, with visibility and whether they have a body; main is the first public one where
    none is called main."""
    found = [(name, f.is_public, f.has_body) for name, f in graph.functions.items()]
    assert found == [("main", True, True), ("twice", False, True), ("declared", False, False)]
    assert graph.main.name == "main"
    assert read(MODULE.replace("@main", "@serve")).main.name == "serve"


def test_calls_are_found_by_callee(graph):
    """The calls of a function are its func.call nodes in program order."""
    first, second = graph.calls_of("twice")
    assert second.operands == first.results
    assert graph.calls_of("main") == ()
    assert first.callee == "twice"


def test_a_scatter_in_a_nested_region_is_found(graph):
    """It is listed, and its function is the one around the loop; two views of it are equal and hash alike; a constant
    that it takes is read as NumPy."""
    [scatter] = graph.scatters
    assert scatter.parent.name == "stablehlo.while"
    assert graph.function_of(scatter).name == "main"
    other = next(iter(scatter.operand(0).users))
    assert scatter == other
    assert len({scatter, other}) == 1
    assert scatter.operand(1).node.constant().tolist() == [0]


def test_def_use(graph):
    """A value knows what defines it, its position and what uses it."""
    call = graph.calls_of("twice")[0]
    x = graph.main.body.argument(0)
    assert (None, 0, [call]) == (x.node, x.number, list(x.users))
    [returned, counter] = graph.main.body.terminator.operands
    assert (returned.node.name, returned.number, counter.number) == ("stablehlo.while", 1, 0)
    assert returned.node == counter.node
    assert returned.block is None
    assert graph.main.body == x.block
    assert [a.is_used for a in graph.main.body.arguments] == [True, True, False]


def test_types(graph):
    """Shape, element type, whether static; a dynamic size is None and has no static shape."""
    arguments = graph.main.body.arguments
    told = [(value.shape, value.element_type, value.is_static) for value in arguments]
    assert told == [((4,), "f32", True), ((), "i32", True), ((None,), "ui8", False)]
    with pytest.raises(ValueError, match="dynamic shape"):
        _ = arguments[2].static_shape


def test_walk_visits_every_node_once_in_program_order(graph):
    """The walk sees as many nodes as op_count says, nested ones after the op that holds them."""
    names = []
    graph.walk(lambda node: names.append(node.name))
    assert graph.op_count == len(names)
    assert names.index("stablehlo.while") < names.index("stablehlo.compare") < names.index("stablehlo.scatter")
