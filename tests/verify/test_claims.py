"""What the records of a lowered module claim of a scatter's indices is evaluated on driven indices."""

from dataclasses import replace

import pytest
from two_programs import scattering
from untyped_mlir import module

import hlo_lower as hl
from hlo_lower.ir.mlir import make_context, parse_module
from hlo_lower.verify import claim_checks as claims_file
from hlo_lower.verify.claim_checks import Check, check_claims
from hlo_lower.verify.read.program import Program

CLAMPED = "%z = constant 0 : 5x1xi32; %hi = constant 7 : 5x1xi32; %j = clamp %z, %i, %hi"
SORTED = """%z = constant 0 : 5x1xi32; %hi = constant 7 : 5x1xi32; %in = clamp %z, %i, %hi
%j = sort(%in) <dimension = 0 : i64, is_stable = true> {%a, %b: %less = compare LT, %a, %b, SIGNED; return %less}"""


def written(before="", indices="%j"):
    """A module that writes points at indices that are computed before."""
    return scattering(before=before, used=f"%o, {indices}, %u")


@pytest.mark.parametrize(
    ("before", "is_sorted", "is_unique"), [(SORTED, True, False), ("%j = iota dim = 0 : 5x1xi32", False, True)]
)
def test_right_claims_hold(before, is_sorted, is_unique):
    """What is claimed of indices that are sorted and counted holds, and is told to have been looked at."""
    text = written(before)
    lowered = hl.lower(text)
    [record] = lowered.records
    assert record.claims.in_bounds == "always"
    assert (record.claims.is_sorted, record.claims.is_unique) == (is_sorted, is_unique)
    verdict = hl.verify(text, lowered, level="regions")
    assert verdict.ok, verdict.lines()
    assert (verdict.claims.scatters, verdict.claims.broken) == ((1,), ())
    assert hl.verify(text, lowered.text, level="regions").claims is None  # text alone has none


WRONG = {
    "is_sorted": (written(CLAMPED), {"is_sorted": True, "placed": (0,)}),
    "is_unique": (written(SORTED), {"is_unique": True}),
    "in_bounds": (written(indices="%i"), {"in_bounds": "always"}),
    "coordinates": (written(CLAMPED), {"coordinates": ((0, 0),)}),
    "ranges": (written(CLAMPED), {"ranges": ((0, 6),)}),
}


@pytest.mark.few(2)
@pytest.mark.parametrize("claim", WRONG)
def test_a_wrong_claim_makes_the_verdict_differ(claim):
    """Though both modules compute the same, the claim is told with the number of its scatter, and is the only one."""
    text, changes = WRONG[claim]
    lowered = hl.lower(text)
    [record] = lowered.records
    lowered.records = (replace(record, claims=replace(record.claims, **changes)),)
    verdict = hl.verify(text, lowered, level="regions")
    assert {region.status for region in verdict.regions} == {"equal"}
    assert (verdict.ok, verdict.differs, verdict.exit_code) == (False, True, 1)
    [told] = verdict.claims.broken
    assert told.startswith("scatter 1: claimed, and not so (")
    assert (told.startswith("scatter 1: claimed, and not so ("), told.endswith(f"): {claim}")) == (True, True)
    assert "1 scatter not as claimed" in verdict.summary()


def checked(text, claims, broken, numbers=frozenset()):
    """What a check finds in a module."""
    return check_claims(Program(parse_module(text, make_context())), Check(claims, numbers, broken), 0)


def asked_of(text):
    """The numbers of the scatters that are looked at, and those that the check is asked of."""
    asked = []

    def broken(claims, scatter, values):
        assert scatter.name == "stablehlo.scatter"
        assert [v.shape for v in values] == [(5, 1), (5,)]
        asked.append(claims)
        return "all of it" if claims == 2 else ""

    return checked(text, {1: 1, 2: 2}, broken, frozenset({1, 2})), set(asked)


LOOP = """%s = constant 0 : i32
%w:2 = while(%k = %s, %x = %o) cond { %n = constant 3 : i32; %p = compare LT, %k, %n; return %p } do {
  %one = constant 1 : i32; %next = add %k, %one
  %r = scatter(%x, %i, %u) <inserted=[0], to=[0], ivd=1> {%c, %d: return %d}
  return %next, %r }
%y = scatter(%w#1, %i, %u) <inserted=[0], to=[0], ivd=1> {%c, %d: return %d}"""


def test_scatters_in_loops_are_not_looked_at():
    """Of a scatter in a loop and one behind it, the second is looked at, under its own number."""
    found, asked = asked_of(module("%o: 8xf32, %i: 5x1xi32, %u: 5xf32", LOOP, "%y"))
    assert (found.scatters, asked) == ((2,), {2})
    [told] = found.broken
    assert told.startswith("scatter 2: claimed, and not so (")


def test_scatters_behind_too_many_operations_are_not_looked_at(monkeypatch):
    """The same scatter is looked at with three operations before its indices, not with one more than the limit."""
    text = written("%i1 = not %i; %i2 = not %i1; %i3 = not %i2", "%i3")
    assert asked_of(text)[0].scatters == (1,)
    monkeypatch.setattr(claims_file, "MAX_OPS", 2)
    found, asked = asked_of(text)
    assert (found.scatters, found.broken, asked) == ((), (), set())


@pytest.mark.parametrize("extents", [(1, 3), (3, 1)])
def test_a_scatter_does_not_vouch_for_one_of_wider_windows(extents):
    """What is claimed alike of two scatters at the same places is evaluated of both: the wider one may reach out."""
    scatter = "scatter({}, %i, {}) <window=[1], to=[0], ivd=1> {{assign}}"
    given = "%o: 8xf32, %i: 5x1xi32, %u: 5x{}xf32, %v: 5x{}xf32".format(*extents)
    body = f"%a = {scatter.format('%o', '%u')}\n%b = {scatter.format('%a', '%v')}"

    def broken(claims, scatter, values):
        return "reaches out" if "x3x" in str(scatter.operands[2].type) else ""

    found = checked(module(given, body, "%b"), {1: "inside", 2: "inside"}, broken)
    assert found.scatters == (1, 2)
    [told] = found.broken
    assert told.startswith(f"scatter {extents.index(3) + 1}: claimed, and not so (")


def test_no_indices_are_looked_at_twice():
    """Runs that give the indices of an earlier one say nothing more: each that is looked at is another one."""
    looked_at = []

    def broken(_claims, _scatter, values):
        looked_at.append(b"".join(value.tobytes() for value in values))
        return ""

    assert checked(written(CLAMPED), {1: 1}, broken).scatters == (1,)
    assert len(set(looked_at)) == len(looked_at) > 20


@pytest.mark.usefixtures("judged_by_runs")
def test_runs_in_which_a_trusted_promise_is_broken_do_not_count():
    """Updates from the last to the first write the same where rows are unique, as the first version promises."""
    unique = written(indices="%i").replace("index_vector_dim = 1>}>", "index_vector_dim = 1>, unique_indices = true}>")
    assert "unique_indices = true" in unique
    turned = scattering(before="%j = reverse %i, dims = [0]; %v = reverse %u, dims = [0]", used="%o, %j, %v")
    assert hl.verify(unique, turned, level="regions").differs
    trusted = hl.verify(unique, turned, trust_flags=True, level="regions")
    assert trusted.ok, trusted.lines()
    other = scattering(before="%p = negate %o", used="%p, %i, %u")
    assert hl.verify(unique, other, trust_flags=True, level="regions").differs
