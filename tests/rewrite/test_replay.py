"""A lowering that is replayed for a twin is the one that would have been built, and so is what is told of it."""

import re
from itertools import count, pairwise

import pytest
from untyped_mlir import function, module

import hlo_lower as hl
from hlo_lower.base.registry import CompositeLoweringRegistry
from hlo_lower.ir import mlir
from hlo_lower.lowering.engine import engine
from hlo_lower.lowering.engine.engine import Recipe
from hlo_lower.lowering.engine.kind import Stage
from hlo_lower.lowering.kinds import kinds_of

REGIONS = {
    "assign": "assign",
    "add": "add",
    "max": "maximum",
    "two steps": "%old, %new: %t = abs %new; %s = add %old, %t; return %s",
}
HEAD = "%o: 8x4xf32, %i: 3x1xi32, %u: 3x4xf32, %k: f32"


def put(result, operand, region):
    """One scatter of three rows at an index chain of its own."""
    numbers = "window=[1], inserted=[0], to=[0], ivd=1"
    body = REGIONS.get(region, region)
    return f"%i{result} = add %i, 1\n%{result} = scatter(%{operand}, %i{result}, %u) <{numbers}> {{{body}}}\n"


def in_a_row(region, times=4, head=HEAD):
    """Scatters of which each writes into the result of the one before."""
    names = ["o", *(f"r{n}" for n in range(times))]
    return module(head, "".join(put(new, old, region) for old, new in pairwise(names)), f"%{names[-1]}")


def unused(region):
    """Scatters whose results nobody uses, so that one may be erased with what uses it."""
    return module(HEAD, "".join(put(f"r{n}", "o", region) for n in range(3)), "%r1")


def all_over(region):
    """Scatters in two functions, in the body of a loop, and in both branches of an if."""
    inner = function("private @inner", HEAD, put("r3", "o", region) + put("r4", "r3", region), "%r4")
    branches = " ".join(f"{{{put(name, 'o', region)} return %{name}}}" for name in ("p", "q"))
    body = f"""{put("r0", "o", region)}
    %l:2 = while(%j = %n, %a = %r0) cond {{ %t = compare LT, %j, 1; return %t }} do {{
      {put("r1", "a", region)} {put("r2", "r1", region)} %j2 = add %j, 1; return %j2, %r2
    }}
    %e = if(%b) {branches}
    %f = call @inner(%e, %i, %u, %k) -> 8x4xf32; %z = add %f, %l#1"""
    return module(f"{HEAD}, %n: i32, %b: i1", body, "%z", inner)


def located(region):
    """Scatters with locations of their own, whose regions have others."""
    number = count(100)
    text = re.sub(r"(-> \(?tensor<8x4xf32>\)?)\n", r'\1 loc("model.py":7:1)\n', in_a_row(region))
    return re.sub(r"(\^bb0.*\n.*: tensor<f32>)\n", lambda m: f'{m[1]} loc("region.py":{next(number)}:3)\n', text)


SHAPES = {"in a row": in_a_row, "unused": unused, "all over": all_over, "located": located}


@pytest.fixture
def replayed(monkeypatch):
    """How often a lowering was replayed."""
    counted, built_for = [], Recipe.built_for

    def counting(self, node):
        given = built_for(self, node)
        counted.append(given is not None)
        return given

    monkeypatch.setattr(Recipe, "built_for", counting)
    return counted


def told(lowered):
    """All that is said of a module that was lowered, evidence included."""
    facts = [[(fact.name, fact.value, fact.evidence) for fact in record.facts] for record in lowered.records]
    return lowered.text, mlir.print_module(lowered.graph.module, locations=True), lowered.records, facts


CASES = [(shape, region, {"oob": oob}) for shape in SHAPES for region in REGIONS for oob in ("xla", "spec")]


@pytest.mark.parametrize(
    ("shape", "region", "options"),
    [*(("in a row", region, {"prefer": ["while"]}) for region in ("assign", "add")), *CASES],
    ids=str,
)
def test_replayed_as_built(shape, region, options, replayed, monkeypatch):
    """Text, every location, records and evidence are those of a module in which nothing is replayed; an op in the
    region of what is replayed, or in its loop, has the location that it has there."""
    source = SHAPES[shape](region)
    first = told(hl.lower(source, name="m.mlir", **options))
    assert any(replayed)
    del replayed[:]
    monkeypatch.setattr(engine, "recipe_of", lambda *_: None)
    assert told(hl.lower(source, name="m.mlir", **options)) == first
    assert not replayed


@pytest.mark.parametrize("shape", ["in a row", "unused"])
def test_what_a_region_captures_is_not_replayed(shape, replayed):
    """A value that is no operand of the first scatter stands for none of the twin, so that one is built."""
    lowered = hl.lower(SHAPES[shape]("%old, %new: %s = multiply %new, %k; return %s"))
    assert lowered.scatters_left == 0
    assert not any(replayed)


def test_operands_that_are_one_value_are_no_twins_of_others(replayed):
    """Where updates and operand of the first one are the same value, only a scatter of which that holds is replayed."""
    text = in_a_row("add", 3, HEAD.replace("8x4", "3x4"))
    assert hl.lower(text.replace("(%o, %ir0, %u)", "(%u, %ir0, %u)")).scatters_left == 0
    assert replayed == [True, False]  # backwards: the last one is built, the second one replayed, the first one built


def test_a_rule_of_somebody_else_is_not_replayed(replayed):
    """What a rule outside of the package looks at is not known, so each of its lowerings is built."""
    registry, calls = CompositeLoweringRegistry({kind.name: kind.domains for kind in kinds_of(Stage.SCATTERS)}), []

    def scatter_to_twice_its_operand(op):
        calls.append(op)
        return [op.build.elementwise("add", *op.scatter.operands, *op.scatter.operands)]

    registry.add("stablehlo.scatter", scatter_to_twice_its_operand, constraints={})
    assert hl.lower(in_a_row("add"), registry=registry).text.count("stablehlo.add") == 4
    assert len(calls) == 4
    assert not replayed
