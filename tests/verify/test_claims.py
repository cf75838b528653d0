"""What the records of a lowered module claim of a scatter's indices is evaluated on driven indices."""

from dataclasses import replace

import pytest

import hlo_lower as hl
from hlo_lower.ir.mlir import make_context, parse_module
from hlo_lower.verify import claim_checks as claims_file
from hlo_lower.verify.claim_checks import Check, check_claims
from hlo_lower.verify.read.program import Program

SORTED = """%z = stablehlo.constant dense<0> : tensor<5x1xi32>
%hi = stablehlo.constant dense<7> : tensor<5x1xi32>
%in = stablehlo.clamp %z, %i, %hi : tensor<5x1xi32>
%j = "stablehlo.sort"(%in) <{dimension = 0 : i64, is_stable = true}> ({
^bb0(%a: tensor<i32>, %b: tensor<i32>):
  %less = stablehlo.compare LT, %a, %b, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
  stablehlo.return %less : tensor<i1>
}) : (tensor<5x1xi32>) -> tensor<5x1xi32>"""
COUNTED = "%j = stablehlo.iota dim = 0 : tensor<5x1xi32>"
CLAMPED = """%z = stablehlo.constant dense<0> : tensor<5x1xi32>
%hi = stablehlo.constant dense<7> : tensor<5x1xi32>
%j = stablehlo.clamp %z, %i, %hi : tensor<5x1xi32>"""
RIGHT = {"sorted": SORTED, "counted": COUNTED, "clamped": CLAMPED}


def claiming(text, **changes):
    """The lowered module, with other claims in the record of its scatter."""
    lowered = hl.lower(text)
    [record] = lowered.records
    assert record.claims is not None
    lowered.records = (replace(record, claims=replace(record.claims, **changes)),)
    return lowered


@pytest.mark.parametrize("name", RIGHT)
def test_right_claims_hold(scatter_text, name):
    """What is claimed of indices that are sorted, counted and clamped holds, and is told to have been looked at."""
    text = scatter_text(before=RIGHT[name], used="%o, %j, %u")
    lowered = hl.lower(text)
    [record] = lowered.records
    assert record.claims.in_bounds == "always"
    assert (record.claims.is_sorted, record.claims.is_unique) == {
        "sorted": (True, False),
        "counted": (False, True),
        "clamped": (False, False),
    }[name]
    verdict = hl.verify(text, lowered, level="regions")
    assert verdict.ok, verdict.lines()
    assert (verdict.claims.scatters, verdict.claims.broken) == ((1,), ())


WRONG = {
    "is_sorted": ("clamped", {"is_sorted": True, "placed": (0,)}),
    "is_unique": ("sorted", {"is_unique": True}),
    "in_bounds": ("", {"in_bounds": "always"}),
    "coordinates": ("clamped", {"coordinates": ((0, 0),)}),
    "ranges": ("clamped", {"ranges": ((0, 6),)}),
}


@pytest.mark.few(2)
@pytest.mark.parametrize("claim", WRONG)
def test_a_wrong_claim_makes_the_verdict_differ(scatter_text, claim):
    """Though both modules compute the same, the claim is told with the number of its scatter, and is the only one."""
    name, changes = WRONG[claim]
    text = scatter_text(before=RIGHT[name], used="%o, %j, %u") if name else scatter_text()
    verdict = hl.verify(text, claiming(text, **changes), level="regions")
    assert {region.status for region in verdict.regions} == {"equal"}
    assert (verdict.ok, verdict.differs, verdict.exit_code) == (False, True, 1)
    [told] = verdict.claims.broken
    assert told.startswith("scatter 1: claimed, and not so (")
    assert told.endswith(f"): {claim}")
    assert told in verdict.lines()
    assert "1 scatter not as claimed" in verdict.summary()


def test_without_records_nothing_is_claimed(scatter_text):
    """A second version that is text alone has no claims."""
    text = scatter_text()
    assert hl.verify(text, hl.lower(text).text, level="regions").claims is None


LOOP = """func.func public @main(%o: tensor<8xf32>, %i: tensor<5x1xi32>, %u: tensor<5xf32>) -> tensor<8xf32> {{
  %s = stablehlo.constant dense<0> : tensor<i32>
  %w:2 = stablehlo.while(%k = %s, %x = %o) : tensor<i32>, tensor<8xf32> cond {{
    %n = stablehlo.constant dense<3> : tensor<i32>
    %p = stablehlo.compare LT, %k, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  }} do {{
    %one = stablehlo.constant dense<1> : tensor<i32>
    %next = stablehlo.add %k, %one : tensor<i32>
    {scatter}
    stablehlo.return %next, %r : tensor<i32>, tensor<8xf32>
  }}
  {behind}
}}"""


def scattered(operand, result):
    """Points that are written."""
    return f"""{result} = "stablehlo.scatter"({operand}, %i, %u) <{{scatter_dimension_numbers = #stablehlo.scatter<
      inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}}> ({{
    ^bb0(%c: tensor<f32>, %d: tensor<f32>): stablehlo.return %d : tensor<f32>
    }}) : (tensor<8xf32>, tensor<5x1xi32>, tensor<5xf32>) -> tensor<8xf32>"""


def asked_of(text):
    """The numbers of the scatters that are looked at, and those that the check is asked of."""
    asked = []

    def broken(claims, scatter, values):
        assert scatter.name == "stablehlo.scatter"
        assert [v.shape for v in values] == [(5, 1), (5,)]
        asked.append(claims)
        return "all of it" if claims == 2 else ""

    check = Check({1: 1, 2: 2}, frozenset({1, 2}), broken)
    found = check_claims(Program(parse_module(text, make_context())), check, 0)
    return found, set(asked)


def test_scatters_in_loops_are_not_looked_at():
    """Of a scatter in a loop and one behind it, the second is looked at, under its own number."""
    text = LOOP.format(scatter=scattered("%x", "%r"), behind=f"{scattered('%w#1', '%y')}\n  return %y : tensor<8xf32>")
    found, asked = asked_of(text)
    assert (found.scatters, asked) == ((2,), {2})
    [told] = found.broken
    assert told.startswith("scatter 2: claimed, and not so (")


def test_scatters_behind_too_many_operations_are_not_looked_at(scatter_text, monkeypatch):
    """The same scatter is looked at with three operations before its indices, not with one more than the limit."""
    before = "\n".join(f"%i{k + 1} = stablehlo.not %i{k or ''} : tensor<5x1xi32>" for k in range(3))
    text = scatter_text(before=before, used="%o, %i3, %u")
    assert asked_of(text)[0].scatters == (1,)
    monkeypatch.setattr(claims_file, "MAX_OPS", 2)
    found, asked = asked_of(text)
    assert (found.scatters, found.broken, asked) == ((), (), set())


def slices(result, operand, updates, extent):
    """Windows of an extent, at the same five places whatever it is."""
    return f"""{result} = "stablehlo.scatter"({operand}, %i, {updates}) <{{
      scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1],
      scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}}> ({{
    ^bb0(%c: tensor<f32>, %d: tensor<f32>): stablehlo.return %d : tensor<f32>
    }}) : (tensor<8xf32>, tensor<5x1xi32>, tensor<5x{extent}xf32>) -> tensor<8xf32>"""


@pytest.mark.parametrize("extents", [(1, 3), (3, 1)])
def test_a_scatter_does_not_vouch_for_one_of_wider_windows(extents):
    """What is claimed alike of two scatters at the same places is evaluated of both: the wider one may reach out."""
    text = f"""func.func public @main(%o: tensor<8xf32>, %i: tensor<5x1xi32>, %u: tensor<5x{extents[0]}xf32>,
      %v: tensor<5x{extents[1]}xf32>) -> tensor<8xf32> {{
    {slices("%a", "%o", "%u", extents[0])}
    {slices("%b", "%a", "%v", extents[1])}
    return %b : tensor<8xf32>
    }}"""

    def broken(claims, scatter, values):
        return "reaches out" if "x3x" in str(scatter.operands[2].type) else ""

    check = Check({1: "inside", 2: "inside"}, frozenset(), broken)
    found = check_claims(Program(parse_module(text, make_context())), check, 0)
    assert found.scatters == (1, 2)
    [told] = found.broken
    assert told.startswith(f"scatter {extents.index(3) + 1}: claimed, and not so (")
