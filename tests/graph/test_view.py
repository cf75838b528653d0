"""Nodes as keys: the same one is found whatever was changed in it meanwhile."""

import pytest

import hlo_lower as hl
from hlo_lower.ir.view import Node

TEXT = """func.func @main(%a: tensor<4xf32>, %b: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.add %a, %a {note = 1 : i32} : tensor<4xf32>
  %1 = stablehlo.add %a, %a {note = 1 : i32} : tensor<4xf32>
  return %0 : tensor<4xf32>
}"""


def set_operand(graph, node):
    """Another value is read."""
    node.raw.operands[0] = graph.main.body.argument(1).raw


def drop_attribute(_graph, node):
    """An attribute is gone."""
    del node.raw.attributes["note"]


@pytest.mark.parametrize(("place", "change"), [(0, set_operand), (0, drop_attribute), (2, set_operand)])
def test_a_node_that_is_changed_is_still_found(place, change):
    """By the object that was put in, and by another one of the same operation; the one that looks alike is another."""
    graph = hl.read(TEXT)
    before = [*graph.main.body.nodes]
    known = {before[place]: "it"}
    change(graph, before[place])
    after = [*graph.main.body.nodes]
    assert [known.get(node) for node in after] == ["it" if k == place else None for k in range(3)]
    assert known[before[place]] == "it"


def test_a_function_that_is_renamed_is_still_found():
    """An operation without results, with a body."""
    graph = hl.read(TEXT)
    node = graph.main.node
    known = {node}
    with node.raw.context:
        node.raw.attributes["sym_name"] = type(node.raw.attributes["sym_name"]).get("other")
    assert Node(node.raw) in known
