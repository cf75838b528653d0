"""Budgets: what an analysis costs is counted in steps, grows with the module and no faster, and ends in unknown."""

import os
import subprocess
import sys
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
import slow_modules as slow

import hlo_lower as hl
from hlo_lower.facts.forms import affine
from hlo_lower.facts.forms.affine import AffineAnalysis, fitted
from hlo_lower.facts.forms.linear import Linear, Position
from hlo_lower.facts.forms.places import Entry
from hlo_lower.facts.ranges import index_facts
from hlo_lower.facts.ranges.index_facts import IndexAnalysis
from hlo_lower.facts.values.budget import FORMS, RANGES, Budget
from hlo_lower.facts.values.site import Site
from hlo_lower.ir.reader import read

I32 = (-(2**31), 2**31 - 1)
PLACE = (Linear(0, {Position(0, 16): 1}), Linear(0))


def looked_at(text):
    """How many steps the interval and the form of a module's indices cost."""
    graph = read(text)
    intervals = IndexAnalysis(graph)
    forms = AffineAnalysis(intervals)
    before = intervals.budget.left, forms.budget.left
    indices = graph.scatters[0].operand(1)
    intervals.of(Site(indices))
    forms.of(Entry(Site(indices), PLACE))
    assert (intervals.budget.cuts, forms.budget.cuts) == (0, 0)
    return before[0] - intervals.budget.left, before[1] - forms.budget.left


@pytest.mark.parametrize("module", [slow.deep, slow.in_a_loop, slow.diamonds, slow.calls, slow.normalised, slow.masks])
def test_steps_grow_with_the_module(module):
    """Twice the length costs at most twice the steps, and a few: each thing is looked at once, also within loops and
    calls, however many ways lead to it."""
    for short, long in zip(looked_at(module(6)), looked_at(module(12)), strict=True):
        assert long <= 2 * short + 20


def test_calls_that_pass_the_same_share_a_frame():
    """f_k(x) = f_{k-1}(x) + f_{k-1}(x) is looked at through one frame a function."""
    graph = read(slow.calls(12))
    intervals = IndexAnalysis(graph)
    intervals.of(Site(graph.scatters[0].operand(1)))
    assert len(intervals.sources.frames) == 13


def test_calls_that_pass_something_else_have_frames_of_their_own():
    """What differs in an argument is two things, so both are looked at."""
    graph = read(slow.calls(3, slow.ANOTHER_ARGUMENT))
    intervals = IndexAnalysis(graph)
    intervals.of(Site(graph.scatters[0].operand(1)))
    assert len(intervals.sources.frames) == 1 + 2 + 4 + 8


def test_calls_of_what_differs_each_time_are_not_one():
    """Two calls of a function that draws random numbers are not the same value, whatever they are given."""
    drawn = """%l = stablehlo.constant dense<0> : tensor<i32>
%h = stablehlo.constant dense<9> : tensor<i32>
%s = stablehlo.constant dense<16> : tensor<1xi64>
%b = "stablehlo.rng"(%l, %h, %s) <{{rng_distribution = #stablehlo<rng_distribution UNIFORM>}}>
  : (tensor<i32>, tensor<i32>, tensor<1xi64>) -> {t}"""
    text = slow.calls(2, body=drawn).replace("stablehlo.add %b, %c", "stablehlo.subtract %b, %c")
    graph = read(text)
    intervals = IndexAnalysis(graph)
    forms = AffineAnalysis(intervals)
    assert not forms.of(Entry(Site(graph.scatters[0].operand(1)), PLACE)).is_constant
    assert len(intervals.sources.frames) == 1 + 2 + 4


@pytest.mark.parametrize("second", [slow.ANOTHER_ARGUMENT, slow.OF_THE_FIRST])
def test_beyond_the_budget_nothing_is_known(second, monkeypatch):
    """Exponentially many calls that all differ end in unknown after as many steps as one question may cost."""
    monkeypatch.setattr(index_facts, "RANGES", RANGES._replace(a_question=200))
    monkeypatch.setattr(affine, "FORMS", FORMS._replace(a_question=300))
    graph = read(slow.calls(40, second))
    intervals = IndexAnalysis(graph)
    forms = AffineAnalysis(intervals)
    indices, left = graph.scatters[0].operand(1), (intervals.budget.left, forms.budget.left)
    told = intervals.of(Site(indices))
    assert told.hull() == I32
    assert (intervals.budget.left, intervals.budget.cuts > 0) == (left[0] - 200, True)
    form = forms.of(Entry(Site(indices), PLACE))
    assert not form.is_constant
    assert (forms.budget.left, forms.budget.cuts > 0) == (left[1] - 300, True)


def test_a_question_beyond_its_budget_leaves_others_as_they_are(monkeypatch):
    """What is cut off answers the question but is no knowledge: the same value is known when it is asked for itself."""
    text = slow.calls(40, slow.ANOTHER_ARGUMENT, body="%z = stablehlo.constant dense<0> : {t}\n"
                      "%k = stablehlo.constant dense<3> : {t}\n%b = stablehlo.clamp %z, %a, %k : {t}")  # fmt: skip
    monkeypatch.setattr(index_facts, "RANGES", RANGES._replace(a_question=300))
    graph = read(text)
    asked_first = [IndexAnalysis(graph), IndexAnalysis(graph)]
    inner = graph.functions["f4"].body.terminator.operand(0)
    asked_first[0].of(Site(graph.scatters[0].operand(1)))
    assert asked_first[0].budget.cuts
    assert [analysis.of(Site(inner)).hull() for analysis in asked_first] == [(0, 48), (0, 48)]


def test_all_questions_together_have_a_budget():
    """A budget that is used up refuses every step, a question's share refuses it for that question alone."""
    budget = Budget(5, 3)
    assert [budget.begin() for _ in range(4)] == [True, True, True, False]
    assert budget.is_asked
    for _ in range(3):
        budget.end()
    assert not budget.is_asked
    assert [budget.begin() for _ in range(3)] == [True, True, False]
    assert (budget.left, budget.cuts) == (0, 2)


def test_values_that_depend_on_each_other_do_not_multiply():
    """Vectors of a loop that each become a sum of all of them cost no more than one question may, and the counter
    beside them is known."""
    graph = read(slow.entangled(40))
    intervals = IndexAnalysis(graph)
    indices, left = graph.scatters[0].operand(1), intervals.budget.left
    assert intervals.of(Site(indices)).hull() == I32
    assert left - intervals.budget.left <= RANGES.a_question
    assert intervals.budget.cuts
    counter = indices.node.operand(0).node.blocks[1].argument(0)
    assert intervals.of(Site(counter)).hull() == (0, I32[1] - 1)


@pytest.mark.parametrize("count", [4, 7])
def test_forms_of_values_that_depend_on_each_other_do_not_multiply(count):
    """Linear forms of such vectors are found within the budget of one question, however many there are."""
    graph = read(slow.entangled(count))
    forms = AffineAnalysis(IndexAnalysis(graph))
    left = forms.budget.left
    forms.of(Entry(Site(graph.scatters[0].operand(1)), PLACE))
    assert left - forms.budget.left <= 60 * count**2
    assert not forms.budget.cuts


def test_what_is_asked_first_does_not_matter():
    """Every value of a loop has the same interval and form in whatever order they are asked for."""
    graph = read(slow.in_a_loop(3))
    loop = graph.scatters[0].operand(1).node.operand(0).node
    values = [*loop.blocks[1].arguments, *loop.blocks[1].terminator.operands, *loop.results]

    def told(order):
        intervals = IndexAnalysis(graph)
        forms = AffineAnalysis(intervals)
        found = {v: (intervals.of(Site(v)).hull(), forms.of(Entry(Site(v), PLACE[: len(v.shape)]))) for v in order}
        return [found[v] for v in values]

    assert told(values) == told(values[::-1])


def test_an_outer_value_is_looked_at_once_for_all_proofs():
    """A proof about a loop assumes its argument; what lies outside of the loop does not depend on that."""

    def graph_of(count):
        return read(slow.scattered(slow.chain(count) + "\n" + slow.loop(
            f"%o = stablehlo.add %w0, %t{count - 1} : {slow.VECTOR}\n"
            f"%q = stablehlo.minimum %o, %ones : {slow.VECTOR}", ["%q"], ["%ones"]), "%w#1"))  # fmt: skip

    steps = []
    for count in (10, 40):
        graph = graph_of(count)
        intervals = IndexAnalysis(graph)
        before = intervals.budget.left
        intervals.of(Site(graph.scatters[0].operand(1)))
        steps.append(before - intervals.budget.left)
    assert steps[1] - steps[0] == 30


@pytest.mark.parametrize("value", [np.int8(3), np.uint64(2**64 - 1), np.bool_(True)])
def test_a_splat_is_fitted_at_any_shape(value):
    """Nothing of the shape of a constant of one value is made: a Tebi of elements is one number."""
    assert fitted(np.broadcast_to(value, (1 << 20, 1 << 20))) == (int(value), (0, 0))


def test_long_constants_are_fitted_in_parts(monkeypatch):
    """An even table is recognised part by part, and one that is uneven in its middle is not."""
    monkeypatch.setattr("hlo_lower.facts.forms.affine.MAX_PART", 7)
    values = 5 + 3 * np.arange(40).reshape(8, 5)
    assert fitted(values) == (5, (15, 3))
    values[4, 2] += 1
    assert fitted(values) is None


def test_trap_55_a_large_splat_is_one_number():
    """Indices cut out of a constant of 1 GiB are known, and take no memory of its size."""
    graph = read(slow.splat())
    assert IndexAnalysis(graph).of(Site(graph.scatters[0].operand(1))).hull() == (3, 3)
    tracemalloc.start()
    lowered = hl.lower(graph)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert lowered.scatters_left == 0
    assert peak < 64 << 20


SCRIPT = """
import jax, jax.numpy as jnp
import hlo_lower as hl
import slow_modules as slow

def histogram(key, n=50):
    def body(i, carry):
        key, h, at = carry
        key, sub = jax.random.split(key)
        return key, h.at[at].add(1), jax.random.randint(sub, (4,), 0, 16)
    return jax.lax.fori_loop(0, n, body, (key, jnp.zeros(16, jnp.int32), jnp.zeros(4, jnp.int32)))[1]

modules = [slow.deep(1000), slow.in_a_loop(60), slow.diamonds(60), slow.calls(60), slow.normalised(40), slow.masks(39),
           hl.export(histogram, jax.random.key(0))]
print([hl.lower(module).scatters_left for module in modules])
"""


def test_trap_54_modules_of_exponentially_many_ways_are_lowered():
    """Each is lowered, in a process that is ended after a time that no exponential walk would meet."""
    found_in = os.pathsep.join((str(Path(hl.__file__).parent.parent), str(Path(slow.__file__).parent)))
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        env={**os.environ, "PYTHONPATH": found_in},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert (done.stdout, done.returncode) == (f"{[0] * 7}\n", 0), done.stderr
