"""What sites come from, what is kept of them within the memory, and how long what rests on an assumption stays."""

import numpy as np
from untyped_mlir import function, module

import hlo_lower as hl
from hlo_lower.facts.ranges.index_facts import IndexAnalysis
from hlo_lower.facts.values import budget
from hlo_lower.facts.values.site import Site
from hlo_lower.facts.values.sources import Carried, OneOf, Same, Sources, Unknown
from hlo_lower.ir.reader import read

MODULE = """%0 = call @twice(%a) -> 4xi32; %1 = call @twice(%0) -> 4xi32; %2 = optimization_barrier %1
%3 = case(%c) { return %2 } { return %a }
%4:2 = while(%i = %3, %j = %c) cond { %p = compare LT, %j, %c; return %p
} do { %n = negate %i; return %n, %j }
return %4#0"""


def test_each_site_comes_from_what_it_is():
    """Results of calls, barriers, branches and loops, and the arguments of functions and bodies, have their sources."""
    graph = read(module("%a: 4xi32, %c: i32", MODULE) + function("private @twice", "%x: 4xi32", "%r = add %x, %x"))
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
    assert sources.resolve(barrier) == body.site
    assert sources.of(body.site) == body.site.node


def test_a_branch_of_dynamic_shape_is_a_branch():
    """Indices that are an iota in one branch, and in the other of a size that is not known, are not distinct."""
    lines = """%x = case(%i) { %r = iota dim = 0 : 4xi32; return %r
        } { %n = constant [4] : 1xi32; %q = dynamic_broadcast_in_dim %i, %n, dims = [] -> ?xi32; return %q }
        %j = reshape %x -> 4x1xi32; %s = scatter(%a, %j, %u) <inserted=[0], to=[0], ivd=1> {assign}; return %s"""
    text = module("%i: i32, %a: 4xf32, %u: 4xf32", lines).replace("(tensor<?xi32>)", "(tensor<4xi32>)")
    assert hl.classify(text)[0].unique == "unknown"


def test_beyond_the_memory_one_range_is_kept(monkeypatch):
    """Of tensors that no longer fit in the budget of memory the hull is kept, which is true of each element."""
    found = []
    for most in (64, 12):
        monkeypatch.setattr(budget, "MAX_KEPT", most)
        graph = read(module("", "%a = iota dim = 0 : 8xi32; %r = add %a, %a"))
        ranges = IndexAnalysis(graph)
        value = graph.main.body.terminator.operand(0)
        ranges.of(Site(value))
        found.append(ranges.of(Site(value)))
        assert ranges.of(Site(value.node.operand(0))).hull() == (0, 7)
    assert [told.hull() for told in found] == [(0, 14), (0, 14)]
    assert np.array_equal(found[0].lo, np.arange(0, 16, 2))
    assert found[1].lo.size == 1
