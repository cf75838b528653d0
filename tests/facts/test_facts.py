"""What is claimed of random index programs holds on what they compute; and a proof that is wrong is found out."""

from collections import Counter
from dataclasses import replace

import pytest
from facts_programs import program_of_seed
from untyped_mlir import module

import hlo_lower
from hlo_lower.facts.distinct.distinctness import Distinctness
from hlo_lower.facts.forms.affine import AffineAnalysis
from hlo_lower.facts.forms.linear import Element, Linear
from hlo_lower.facts.scatter import distinct, layout
from hlo_lower.facts.scatter.predicates import apply, broken
from hlo_lower.verify.run import Executable

BATCH, SETS = 50, 6
"""Programs that are compiled as one module, and sets of hostile arguments that each is run with."""


def batch(first):
    """Programs, and the indices and updates that each computed of each set of arguments."""
    programs = [program_of_seed(seed) for seed in range(first, first + BATCH)]
    arguments, lines, returned = list[str](), list[str](), list[str]()
    for p in programs:
        given, name = p.lines.arguments, f"%r{p.seed}"
        arguments += [f"%a{p.seed}_{k}: {a.type}" for k, a in enumerate(given)]
        own = ", ".join(f"%a{p.seed}_{k}" for k in range(len(given)))
        lines.append(f"{name}:2 = call @p{p.seed}({own}) -> ({p.indices.type}, {p.updates.type})")
        returned += [f"{name}#0", f"{name}#1"]
    main = module(", ".join(arguments), "\n".join([*lines, f"return {', '.join(returned)}"]))
    executable = Executable(main + "".join(p.computing() for p in programs), "quick")
    ran = []
    for number in range(SETS):
        found = executable.run([v for p in programs for v in p.inputs(number)])
        ran += [(p, number, found[2 * k], found[2 * k + 1]) for k, p in enumerate(programs)]
    return programs, ran


def claimed(programs, oob):
    """What is claimed of each program, by its seed."""
    records = hlo_lower.classify(hlo_lower.read("\n".join(p.scattering for p in programs)), oob=oob)
    claims = {int(record.function.removeprefix("p")): record.claims for record in records}
    return {seed: told for seed, told in claims.items() if told is not None}


def violations(programs, ran):
    """The claims that do not hold in some run: of which program, under which policy, with which arguments."""
    found = []
    for oob in ("xla", "spec"):
        claims = claimed(programs, oob)
        for p, number, indices, updates in ran:
            at = apply(p.numbers, p.operand_shape, p.updates.shape, indices)
            found += [(p.seed, oob, number, name) for name in broken(claims[p.seed], at, (updates,))]
    return found


@pytest.fixture(scope="module")
def batches():
    """300 programs."""
    return [batch(first) for first in range(0, 300, BATCH)]


@pytest.mark.sweep
def test_claims_hold_when_the_programs_run(batches):
    """Every claim of 300 programs holds under both policies, with hostile arguments."""
    assert [v for b in batches for v in violations(*b)] == []


def test_claims_are_made(batches):
    """Each kind of claim is made of some of the programs, so that it is looked at."""
    told = Counter()
    for programs, _ in batches:
        for claims in claimed(programs, "xla").values():
            told.update({name: 1 for name, value in vars(claims).items() if value not in (False, (), "unknown")})
            told.update(f"run {name}" for run in claims.runs for name, value in vars(run).items() if value is True)
    everything = ("in_bounds", "windows", "inside", "ranges", "runs", "coordinates", "repeated", "starts", "is_full")
    everything += ("is_unique", "is_permutation", "is_sorted", "is_uniform", "run is_reversed", "run is_wrapped")
    assert [name for name in everything if not told[name]] == []


@pytest.mark.sweep
@pytest.mark.parametrize("begin", range(300, 20_300, 1000))
def test_claims_hold_of_many_programs(begin):
    """Every claim of 20,000 more programs holds."""
    for first in range(begin, begin + 1000, BATCH):
        assert violations(*batch(first)) == []


# --- wrong on purpose: each is made of what is right ---


def sorted_along_loose_dims(proved):
    """The order is proved along the loose positions, as if the rows of a run were none of the writes."""

    def along_loose(scatter, found, facts, rank):
        runs = tuple((run.operand_dim, run.scatter_dim) for run in found.runs)
        return proved(scatter, replace(found, batch=(*found.batch, *runs)), facts, rank)

    return along_loose


def forms_without_what_was_added(_):
    """Two forms are one number where they are equal modulo 2^width."""
    return property(lambda form: (form.constant, form.terms, form.width))


def coordinates_modulo(told):
    """What is congruent to a coordinate counts as the coordinate."""

    def congruent(column, n, scatter):
        form = column.form
        return told(replace(column, form=Linear(form.constant, form.terms, form.width)), n, scatter)

    return congruent


def elements_that_always_fit(told):
    """An element counts as a number of whatever type it was converted to."""

    def lenient(self, form, value):
        is_element = not form.constant and list(form.terms.values()) == [1]
        return (is_element and isinstance(next(iter(form.terms)), Element)) or told(self, form, value)

    return lenient


def sums_that_never_wrap(_):
    """Every form counts as exact."""
    return lambda self, form, value: True


def windows_without_extent(_):
    """Starts that differ count as windows that do not meet, wherever what repeats lies."""
    return lambda found, column, scatter: found.gap >= 1


def positions_that_stay(_):
    """What is known along a tensor's dim counts at every coordinate."""
    return lambda self, whole, coordinate, size, axes: whole


def runs_of_any_stride(told):
    """A run of step 2 counts as one of step 1."""

    def small(form, dim):
        stride = told(form, dim)
        return stride and (1 if stride > 0 else -1)

    return small


MUTANTS = {
    sorted_along_loose_dims: (distinct, "_sorted"),
    forms_without_what_was_added: (Linear, "_parts"),
    coordinates_modulo: (layout._Column, "is_coordinate"),
    elements_that_always_fit: (AffineAnalysis, "is_exact"),
    sums_that_never_wrap: (AffineAnalysis, "is_exact"),
    windows_without_extent: (distinct, "_keeps_apart"),
    positions_that_stay: (Distinctness, "picked"),
    runs_of_any_stride: (Linear, "stride"),
}
"""Wrong proofs, and what each stands in for."""


@pytest.mark.few(2)
@pytest.mark.parametrize(
    "mutant",
    [
        pytest.param(mutant, id=mutant.__name__, marks=pytest.mark.sweep if number % 3 == 2 else [])
        for number, mutant in enumerate(MUTANTS)
    ],
)
def test_a_wrong_proof_is_found_out(batches, mutant, monkeypatch):
    """With a proof that is wrong on purpose, a claim of one of the 300 programs fails."""
    owner, name = MUTANTS[mutant]
    monkeypatch.setattr(owner, name, mutant(getattr(owner, name)))
    assert any(violations(*b) for b in batches)
