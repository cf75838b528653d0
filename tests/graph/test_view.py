"""The view over a module: functions, calls, def-use, regions, types."""

import pytest

from hlo_lower.ir.reader import read

MODULE = """
module @m {
  func.func public @main(%x: tensor<4xf32>, %n: tensor<i32>, %d: tensor<?xui8>) -> (tensor<4xf32>, tensor<i32>) {
    %a = call @twice(%x) : (tensor<4xf32>) -> tensor<4xf32>
    %b = call @twice(%a) : (tensor<4xf32>) -> tensor<4xf32>
    %c:2 = stablehlo.while(%i = %n, %v = %b) : tensor<i32>, tensor<4xf32>
    cond {
      %limit = stablehlo.constant dense<3> : tensor<i32>
      %less = stablehlo.compare LT, %i, %limit : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %less : tensor<i1>
    } do {
      %one = stablehlo.constant dense<1> : tensor<i32>
      %next = stablehlo.add %i, %one : tensor<i32>
      %z = stablehlo.constant dense<0> : tensor<1xi32>
      %u = stablehlo.constant dense<1.0> : tensor<f32>
      %w = "stablehlo.scatter"(%v, %z, %u) <{scatter_dimension_numbers = #stablehlo.scatter<
        inserted_window_dims = [0], scatter_dims_to_operand_dims = [0]>}> ({
      ^bb0(%p: tensor<f32>, %q: tensor<f32>):
        stablehlo.return %q : tensor<f32>
      }) : (tensor<4xf32>, tensor<1xi32>, tensor<f32>) -> tensor<4xf32>
      stablehlo.return %next, %w : tensor<i32>, tensor<4xf32>
    }
    return %c#1, %c#0 : tensor<4xf32>, tensor<i32>
  }
  func.func private @twice(%x: tensor<4xf32>) -> tensor<4xf32> {
    %r = stablehlo.add %x, %x : tensor<4xf32>
    return %r : tensor<4xf32>
  }
  func.func private @declared(tensor<4xf32>) -> tensor<4xf32>
}
"""


@pytest.fixture(scope="module")
def graph():
    """The module, read once."""
    return read(MODULE)


def test_functions_are_found_in_order(graph):
    """Functions are known by name, with visibility and whether they have a body."""
    assert [(name, f.is_public, f.has_body) for name, f in graph.functions.items()] == [
        ("main", True, True),
        ("twice", False, True),
        ("declared", False, False),
    ]
    assert graph.main.name == "main"


def test_main_is_the_first_public_function_where_none_is_called_main():
    """A module whose entry point has another name has a main, too."""
    assert read(MODULE.replace("@main", "@serve")).main.name == "serve"


def test_calls_are_found_by_callee(graph):
    """The calls of a function are its func.call nodes in program order."""
    first, second = graph.calls_of("twice")
    assert second.operands == first.results
    assert graph.calls_of("main") == ()
    assert first.callee == "twice"


def test_a_scatter_in_a_nested_region_is_found(graph):
    """A scatter in a loop's body is listed, and its function is the one around the loop."""
    [scatter] = graph.scatters
    assert scatter.parent.name == "stablehlo.while"
    assert graph.function_of(scatter).name == "main"


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


def test_an_unused_value(graph):
    """A value that nobody uses says so."""
    assert [a.is_used for a in graph.main.body.arguments] == [True, True, False]


def test_types(graph):
    """Shape, element type, whether static; a dynamic size is None and has no static shape."""
    x, n, d = graph.main.body.arguments
    assert [(v.shape, v.element_type, v.is_static) for v in (x, n, d)] == [
        ((4,), "f32", True),
        ((), "i32", True),
        ((None,), "ui8", False),
    ]
    with pytest.raises(ValueError, match="dynamic shape"):
        _ = d.static_shape


def test_walk_visits_every_node_once_in_program_order(graph):
    """The walk sees as many nodes as op_count says, nested ones after the op that holds them."""
    names = []
    graph.walk(lambda node: names.append(node.name))
    assert graph.op_count == len(names)
    assert names.index("stablehlo.while") < names.index("stablehlo.compare") < names.index("stablehlo.scatter")


def test_nodes_and_values_compare_by_what_they_stand_for(graph):
    """Two views of one op are equal and hash alike."""
    one, two = graph.scatters[0], next(iter(graph.scatters[0].operand(0).users))
    assert one == two
    assert len({one, two}) == 1


def test_a_constant_is_read_as_numpy(graph):
    """A constant gives its array, other attributes their integers."""
    constant = graph.scatters[0].operand(1).node
    assert constant.constant().tolist() == [0]
