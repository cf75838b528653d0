"""What is claimed of random index programs holds on what they compute; and a proof that is wrong is found out."""

from dataclasses import replace
from functools import cache

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
FIRST = range(0, 300, BATCH)


def programs_from(first):
    return [program_of_seed(seed) for seed in range(first, first + BATCH)]


def batch(first):
    """Programs, and the indices and updates that each computed of each set of arguments."""
    programs = programs_from(first)
    arguments, lines = list[str](), list[str]()
    for p in programs:
        own = [f"%a{p.seed}_{k}" for k in range(len(p.lines.arguments))]
        arguments += [f"{name}: {a.type}" for name, a in zip(own, p.lines.arguments, strict=True)]
        lines.append(f"%r{p.seed}:2 = call @p{p.seed}({', '.join(own)}) -> ({p.indices.type}, {p.updates.type})")
    returned = ", ".join(f"%r{p.seed}#{k}" for p in programs for k in range(2))
    main = module(", ".join(arguments), "\n".join([*lines, f"return {returned}"]))
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


kept = cache(batch)


def test_claims_are_made():
    """Each kind of claim is made of some of the first programs, so that it is looked at."""
    wanted = {"in_bounds", "windows", "inside", "ranges", "runs", "coordinates", "repeated", "starts", "is_full"}
    wanted |= {"is_unique", "is_permutation", "is_sorted", "is_uniform", "run is_reversed", "run is_wrapped"}
    for first in FIRST:
        for claims in claimed(programs_from(first), "xla").values():
            wanted -= {name for name, value in vars(claims).items() if value not in (False, (), "unknown")}
            wanted -= {f"run {name}" for run in claims.runs for name, value in vars(run).items() if value is True}
        if not wanted:
            break
    assert wanted == set()


@pytest.mark.sweep
def test_claims_hold_when_the_programs_run():
    """Every claim of 300 programs holds under both policies, with hostile arguments."""
    assert [v for first in FIRST for v in violations(*kept(first))] == []


@pytest.mark.sweep
@pytest.mark.parametrize("begin", range(300, 20_300, 1000))
def test_claims_hold_of_many_programs(begin):
    """Every claim of 20,000 more programs holds."""
    for first in range(begin, begin + 1000, BATCH):
        assert violations(*batch(first)) == []


def sorted_along_loose_dims(proved):
    def along_loose(scatter, found, facts, rank):
        runs = tuple((run.operand_dim, run.scatter_dim) for run in found.runs)
        return proved(scatter, replace(found, batch=(*found.batch, *runs)), facts, rank)

    return along_loose


def coordinates_modulo(told):
    def congruent(column, n, scatter):
        form = column.form
        return told(replace(column, form=Linear(form.constant, form.terms, form.width)), n, scatter)

    return congruent


def elements_that_always_fit(told):
    def lenient(self, form, value):
        is_element = not form.constant and list(form.terms.values()) == [1]
        return (is_element and isinstance(next(iter(form.terms)), Element)) or told(self, form, value)

    return lenient


MUTANTS = {  # wrong proofs, what each stands in for, and how it is made of what is right
    "windows whose starts differ do not meet, wherever what repeats lies": (
        *(distinct, "_keeps_apart", lambda _: lambda found, column, scatter: found.gap >= 1),
    ),
    "the order is proved along the loose positions, as if the rows of a run were none of the writes": (
        *(distinct, "_prove_sorted", sorted_along_loose_dims),
    ),
    "two forms are one number where they are equal modulo 2^width": (
        *(Linear, "_parts", lambda _: property(lambda form: (form.constant, form.terms, form.width))),
    ),
    "what is congruent to a coordinate counts as it": (layout._Column, "is_coordinate", coordinates_modulo),
    "an element is a number of whatever type it was converted to": (
        *(AffineAnalysis, "is_exact", elements_that_always_fit),
    ),
    "a run of any step counts as one of step 1": (
        *(Linear, "stride", lambda told: lambda form, dim: (by := told(form, dim)) and (1 if by > 0 else -1)),
    ),
    "what is known along a tensor's dim counts at every coordinate": (
        *(Distinctness, "at_coordinate", lambda _: lambda self, whole, coordinate, size, axes: whole),
    ),
    "every form counts as exact": (AffineAnalysis, "is_exact", lambda _: lambda self, form, value: True),
}


@pytest.mark.few(2)
@pytest.mark.parametrize("wrong", MUTANTS)
def test_a_wrong_proof_is_found_out(wrong, monkeypatch):
    """With a proof that is wrong on purpose, a claim of one of the 300 programs fails."""
    owner, name, mutant = MUTANTS[wrong]
    monkeypatch.setattr(owner, name, mutant(getattr(owner, name)))
    assert any(violations(*kept(first)) for first in FIRST)
