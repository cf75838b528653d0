"""A lowering that is replayed for a twin is the one that would have been built, and so is what is told of it."""

from itertools import pairwise

import pytest

import hlo_lower as hl
from hlo_lower.base.registry import CompositeLoweringRegistry
from hlo_lower.ir import mlir
from hlo_lower.lowering.engine import engine
from hlo_lower.lowering.engine.engine import Recipe
from hlo_lower.lowering.engine.kind import Stage
from hlo_lower.lowering.kinds import kinds_of

REGIONS = {
    "assign": "stablehlo.return %new : tensor<f32>",
    "add": "%s = stablehlo.add %old, %new : tensor<f32> stablehlo.return %s : tensor<f32>",
    "max": "%s = stablehlo.maximum %old, %new : tensor<f32> stablehlo.return %s : tensor<f32>",
    "captured": "%s = stablehlo.multiply %new, %k : tensor<f32> stablehlo.return %s : tensor<f32>",
    "two steps": "%t = stablehlo.abs %new : tensor<f32> %s = stablehlo.add %old, %t : tensor<f32> "
    "stablehlo.return %s : tensor<f32>",
}
ROWS = "update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1"
TYPES = "(tensor<8x4xf32>, tensor<3x1xi32>, tensor<3x4xf32>) -> tensor<8x4xf32>"

HEAD = "%o: tensor<8x4xf32>, %i: tensor<3x1xi32>, %u: tensor<3x4xf32>, %k: tensor<f32>"


def put(result, operand, updates, region, at=""):
    """One scatter of three rows at an index chain of its own."""
    body = REGIONS[region]
    return f"""
    %c{result} = stablehlo.constant dense<1> : tensor<3x1xi32>
    %i{result} = stablehlo.add %i, %c{result} : tensor<3x1xi32>
    %{result} = "stablehlo.scatter"(%{operand}, %i{result}, %{updates}) <{{
        scatter_dimension_numbers = #stablehlo.scatter<{ROWS}>}}> ({{
      ^bb0(%old: tensor<f32>, %new: tensor<f32>): {body}
    }}) : {TYPES} {at}"""


def in_a_row(region, count=4):
    """Scatters of which each writes into the result of the one before."""
    names = ["o", *(f"r{n}" for n in range(count))]
    body = "".join(put(new, old, "u", region) for old, new in pairwise(names))
    return f"func.func public @main({HEAD}) -> tensor<8x4xf32> {{{body}\n return %{names[-1]} : tensor<8x4xf32> }}"


def unused(region):
    """Scatters whose results nobody uses, so that one may be erased with what uses it."""
    body = "".join(put(f"r{n}", "o", "u", region) for n in range(3))
    return f"func.func public @main({HEAD}) -> tensor<8x4xf32> {{{body}\n return %r1 : tensor<8x4xf32> }}"


def all_over(region):
    """Scatters in two functions, in the body of a loop, and in both branches of an if."""
    branches = ", ".join(
        f"{{ {put(name, 'o', 'u', region)}\n stablehlo.return %{name} : tensor<8x4xf32> }}" for name in ("p", "q")
    )
    return f"""
  func.func public @main({HEAD}, %n: tensor<i32>, %b: tensor<i1>) -> tensor<8x4xf32> {{
    {put("r0", "o", "u", region)}
    %one = stablehlo.constant dense<1> : tensor<i32>
    %l:2 = stablehlo.while(%j = %n, %a = %r0) : tensor<i32>, tensor<8x4xf32>
      cond {{
        %t = stablehlo.compare LT, %j, %one : (tensor<i32>, tensor<i32>) -> tensor<i1>
        stablehlo.return %t : tensor<i1>
      }} do {{
        {put("r1", "a", "u", region)}
        {put("r2", "r1", "u", region)}
        %j2 = stablehlo.add %j, %one : tensor<i32>
        stablehlo.return %j2, %r2 : tensor<i32>, tensor<8x4xf32>
      }}
    %e = "stablehlo.if"(%b) ({branches}) : (tensor<i1>) -> tensor<8x4xf32>
    %f = func.call @inner(%e, %i, %u, %k) :
        (tensor<8x4xf32>, tensor<3x1xi32>, tensor<3x4xf32>, tensor<f32>) -> tensor<8x4xf32>
    %z = stablehlo.add %f, %l#1 : tensor<8x4xf32>
    return %z : tensor<8x4xf32>
  }}
  func.func private @inner({HEAD}) -> tensor<8x4xf32> {{
    {put("r3", "o", "u", region)}
    {put("r4", "r3", "u", region)}
    return %r4 : tensor<8x4xf32>
  }}"""


def located(region):
    """Scatters with locations of their own, whose regions have others."""
    body = in_a_row(region).replace(f": {TYPES} ", f': {TYPES} loc("model.py":7:1)')
    places = iter(range(100, 200))
    parts = body.split("stablehlo.add %old, %new : tensor<f32>")
    pieces = [f'stablehlo.add %old, %new : tensor<f32> loc("region.py":{next(places)}:3)' for _ in parts[1:]]
    return parts[0] + "".join(a + b for a, b in zip(pieces, parts[1:], strict=True))


SHAPES = {"in a row": in_a_row, "unused": unused, "all over": all_over, "located": located}


@pytest.fixture
def replayed(monkeypatch):
    """How often a lowering was replayed."""
    counted = []
    built_for = Recipe.built_for

    def counting(self, node):
        given = built_for(self, node)
        counted.append(given is not None)
        return given

    monkeypatch.setattr(Recipe, "built_for", counting)
    return counted


def told(lowered):
    """All that is said of a module that was lowered, evidence included."""
    facts = [[(fact.name, fact.value, fact.evidence) for fact in record.facts] for record in lowered.records]
    located = mlir.print_module(lowered.graph.module, locations=True)
    return lowered.text, located, lowered.records, facts


@pytest.mark.few(8)
@pytest.mark.parametrize("oob", ["xla", "spec"])
@pytest.mark.parametrize("region", [region for region in REGIONS if region != "captured"])
@pytest.mark.parametrize("shape", SHAPES)
def test_replayed_as_built(shape, region, oob, replayed, monkeypatch):
    """Text, every location, records and evidence are those of a module in which nothing is replayed."""
    agrees_with_what_is_built(f"module {{ {SHAPES[shape](region)} }}", replayed, monkeypatch, oob=oob)


@pytest.mark.parametrize("region", ["assign", "add"])
def test_what_stands_in_a_replayed_loop_is_where_its_scatter_is(region, replayed, monkeypatch):
    """An op in the region of what is replayed has the location that it has where nothing is replayed."""
    agrees_with_what_is_built(f"module {{ {in_a_row(region)} }}", replayed, monkeypatch, prefer=["while"])


def agrees_with_what_is_built(source, replayed, monkeypatch, **options):
    first = told(hl.lower(source, name="m.mlir", **options))
    assert any(replayed)
    del replayed[:]
    monkeypatch.setattr(engine, "recipe_of", lambda *_: None)
    assert told(hl.lower(source, name="m.mlir", **options)) == first
    assert not replayed


@pytest.mark.parametrize("shape", ["in a row", "unused"])
def test_what_a_region_captures_is_not_replayed(shape, replayed):
    """A value that is no operand of the first scatter stands for none of the twin, so that one is built."""
    lowered = hl.lower(f"module {{ {SHAPES[shape]('captured')} }}")
    assert lowered.scatters_left == 0
    assert not any(replayed)


def test_operands_that_are_one_value_are_no_twins_of_others(replayed):
    """Where updates and operand of the first one are the same value, only a scatter of which that holds is replayed."""
    types = TYPES.replace("8x4", "3x4")
    text = in_a_row("add", 3).replace("8x4", "3x4").replace("(%o, %ir0, %u)", "(%u, %ir0, %u)")
    assert types in text
    whole = hl.lower(f"module {{ {text} }}")
    assert whole.scatters_left == 0
    assert replayed == [True, False]  # backwards: the last one is built, the second one replayed, the first one built


def test_a_rule_of_somebody_else_is_not_replayed(replayed):
    """What a rule outside of the package looks at is not known, so each of its lowerings is built."""
    domains = {kind.name: kind.domains for kind in kinds_of(Stage.SCATTERS)}
    registry, calls = CompositeLoweringRegistry(domains), []

    def scatter_to_twice_its_operand(op):
        calls.append(op)
        return [op.build.elementwise("add", *op.scatter.operands, *op.scatter.operands)]

    registry.add("stablehlo.scatter", scatter_to_twice_its_operand, constraints={})
    assert hl.lower(f"module {{ {in_a_row('add')} }}", registry=registry).text.count("stablehlo.add") == 4
    assert len(calls) == 4
    assert not replayed
