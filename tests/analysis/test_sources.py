"""What sites come from, and how the providers that walk them share their budget."""

import sys

import numpy as np
import pytest
import slow_modules as slow

import hlo_lower as hl
from hlo_lower.facts.forms.affine import AffineAnalysis
from hlo_lower.facts.forms.linear import Linear, Position
from hlo_lower.facts.forms.places import Entry
from hlo_lower.facts.ranges.index_facts import IndexAnalysis
from hlo_lower.facts.values import budget
from hlo_lower.facts.values.site import Site
from hlo_lower.facts.values.sources import Carried, OneOf, Same, Sources, Unknown
from hlo_lower.ir.reader import read

MODULE = """
func.func public @main(%a: tensor<4xi32>, %c: tensor<i32>) -> tensor<4xi32> {
  %0 = func.call @twice(%a) : (tensor<4xi32>) -> tensor<4xi32>
  %1 = func.call @twice(%0) : (tensor<4xi32>) -> tensor<4xi32>
  %2 = stablehlo.optimization_barrier %1 : tensor<4xi32>
  %3 = "stablehlo.case"(%c) ({
    stablehlo.return %2 : tensor<4xi32>
  }, {
    stablehlo.return %a : tensor<4xi32>
  }) : (tensor<i32>) -> tensor<4xi32>
  %4:2 = stablehlo.while(%i = %3, %j = %c) : tensor<4xi32>, tensor<i32>
   cond {
    %p = stablehlo.compare LT, %j, %c : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  } do {
    %n = stablehlo.negate %i : tensor<4xi32>
    stablehlo.return %n, %j : tensor<4xi32>, tensor<i32>
  }
  return %4#0 : tensor<4xi32>
}
func.func private @twice(%x: tensor<4xi32>) -> tensor<4xi32> {
  %y = stablehlo.add %x, %x : tensor<4xi32>
  return %y : tensor<4xi32>
}"""


def test_each_site_comes_from_what_it_is():
    """Results of calls, barriers, branches and loops, and the arguments of functions and bodies, have their sources."""
    graph = read(MODULE)
    sources = Sources(graph)
    result = Site(graph.main.body.terminator.operand(0))
    loop = sources.of(result)
    assert isinstance(loop, Carried)
    assert (loop.number, loop.inside, loop.is_kept, loop.beside(1).is_kept) == (0, None, False, True)
    assert loop.following.node.operand(0) == loop.argument.value
    inside = sources.of(loop.argument)
    assert (inside.initial, inside.inside) == (loop.initial, loop.loop.blocks[1])
    branches = sources.of(loop.initial)
    assert isinstance(branches, OneOf)
    barrier, argument = branches.sites
    assert isinstance(sources.of(argument), Unknown)
    second = sources.of(barrier)
    body = sources.of(second.site)
    assert isinstance(second, Same)
    assert (body.site.node.name, body.site.frame.call) == ("stablehlo.add", second.site.node)
    within = sources.of(body.site.to(body.site.node.operand(0)))
    assert within.site.node.callee == "twice"
    assert within.site.frame is None
    anywhere = sources.of(Site(graph.functions["twice"].body.argument(0)))
    assert [site.value for site in anywhere.sites] == [argument.value, within.site.value]
    assert sources.followed(barrier) == body.site
    assert sources.of(body.site) == body.site.node


def test_a_branch_of_dynamic_shape_is_a_branch():
    """Indices that are an iota in one branch, and in the other of a size that is not known, are not distinct."""
    text = """func.func public @main(%i: tensor<i32>, %a: tensor<4xf32>, %u: tensor<4xf32>) -> tensor<4xf32> {
  %x = "stablehlo.case"(%i) ({
    %r = stablehlo.iota dim = 0 : tensor<4xi32>
    stablehlo.return %r : tensor<4xi32>
  }, {
    %n = stablehlo.constant dense<4> : tensor<1xi32>
    %r = stablehlo.dynamic_broadcast_in_dim %i, %n, dims = [] : (tensor<i32>, tensor<1xi32>) -> tensor<?xi32>
    stablehlo.return %r : tensor<?xi32>
  }) : (tensor<i32>) -> tensor<4xi32>
  %j = stablehlo.reshape %x : (tensor<4xi32>) -> tensor<4x1xi32>
  %s = "stablehlo.scatter"(%a, %j, %u) <{scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0],
    scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
  ^bb0(%p: tensor<f32>, %q: tensor<f32>):
    stablehlo.return %q : tensor<f32>
  }) : (tensor<4xf32>, tensor<4x1xi32>, tensor<4xf32>) -> tensor<4xf32>
  return %s : tensor<4xf32>
}"""
    assert hl.classify(text)[0].unique == "unknown"


@pytest.mark.parametrize("module", [slow.deep(400), slow.diamonds(60), slow.normalised(40)])
def test_providers_that_ask_each_other_share_a_stack(module, monkeypatch):
    """A form that ends where its chain is too long asks for a range there, and both together stay within the stack."""
    heights = []
    begin = budget.Budget.begin

    def measured(self):
        heights.append(self.stack.height)
        return begin(self)

    monkeypatch.setattr(budget.Budget, "begin", measured)
    graph = read(module)
    forms = AffineAnalysis(IndexAnalysis(graph))
    forms.of(Entry(Site(graph.scatters[0].operand(1)), (Linear(0, {Position(0, 16): 1}), Linear(0))))
    assert 40 < max(heights) <= budget.HIGHEST
    assert forms.budget.stack.height == 0
    assert sys.getrecursionlimit() > 5 * budget.HIGHEST


def test_beyond_the_memory_one_range_is_kept(monkeypatch):
    """Of tensors that no longer fit in the budget of memory the hull is kept, which is true of each element."""
    text = """func.func public @main() -> tensor<8xi32> {
  %a = stablehlo.iota dim = 0 : tensor<8xi32>
  %b = stablehlo.add %a, %a : tensor<8xi32>
  return %b : tensor<8xi32>
}"""
    found = []
    for most in (64, 12):
        monkeypatch.setattr(budget, "MAX_KEPT", most)
        graph = read(text)
        ranges = IndexAnalysis(graph)
        value = graph.main.body.terminator.operand(0)
        ranges.of(Site(value))
        found.append(ranges.of(Site(value)))
        assert ranges.of(Site(value.node.operand(0))).hull() == (0, 7)
    assert [told.hull() for told in found] == [(0, 14), (0, 14)]
    assert np.array_equal(found[0].lo, np.arange(0, 16, 2))
    assert found[1].lo.size == 1
