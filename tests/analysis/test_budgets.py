"""Budgets: what an analysis costs is counted in steps, grows with the module and no faster, and ends in unknown."""

import os
import subprocess
import sys
import tracemalloc
from pathlib import Path

import pytest
import slow_modules as slow

import hlo_lower as hl
from hlo_lower.facts.forms import affine
from hlo_lower.facts.forms.affine import AffineAnalysis
from hlo_lower.facts.forms.linear import Linear, Position
from hlo_lower.facts.forms.places import Entry
from hlo_lower.facts.ranges import index_facts
from hlo_lower.facts.ranges.index_facts import IndexAnalysis
from hlo_lower.facts.values import budget
from hlo_lower.facts.values.budget import FORMS, RANGES, Budget
from hlo_lower.facts.values.site import Site
from hlo_lower.ir.reader import read

I32 = (-(2**31), 2**31 - 1)
PLACE = (Linear(0, {Position(0, 16): 1}), Linear(0))


def asked(text):
    """The two analyses of a module, and its indices."""
    graph = read(text)
    intervals = IndexAnalysis(graph)
    return intervals, AffineAnalysis(intervals), graph.scatters[0].operand(1)


def looked_at(text):
    """How many steps the interval and the form of a module's indices cost."""
    intervals, forms, indices = asked(text)
    before = intervals.budget.left, forms.budget.left
    intervals.of(Site(indices))
    forms.of(Entry(Site(indices), PLACE))
    assert (intervals.budget.cuts, forms.budget.cuts) == (0, 0)
    return before[0] - intervals.budget.left, before[1] - forms.budget.left


@pytest.mark.parametrize("module", [slow.deep, slow.in_a_loop, slow.diamonds, slow.calls, slow.normalised, slow.masks])
def test_steps_grow_with_the_module(module):
    """Twice the length costs at most twice the steps, and a few: each thing is looked at once, also within loops."""
    for short, long in zip(looked_at(module(6)), looked_at(module(12)), strict=True):
        assert long <= 2 * short + 20


@pytest.mark.parametrize("second", [slow.ANOTHER_ARGUMENT, slow.OF_THE_FIRST])
def test_beyond_the_budget_nothing_is_known(second, monkeypatch):
    """Exponentially many calls that all differ end in unknown after as many steps as one question may cost."""
    monkeypatch.setattr(index_facts, "RANGES", RANGES._replace(a_question=200))
    monkeypatch.setattr(affine, "FORMS", FORMS._replace(a_question=300))
    intervals, forms, indices = asked(slow.calls(12, second))
    left = intervals.budget.left, forms.budget.left
    assert intervals.of(Site(indices)).hull() == I32
    assert (intervals.budget.left, intervals.budget.cuts > 0) == (left[0] - 200, True)
    assert not forms.of(Entry(Site(indices), PLACE)).is_constant
    assert (forms.budget.left, forms.budget.cuts > 0) == (left[1] - 300, True)


def test_a_question_beyond_its_budget_leaves_others_as_they_are(monkeypatch):
    """What is cut off answers the question but is no knowledge: the same value is known when it is asked for itself."""
    monkeypatch.setattr(index_facts, "RANGES", RANGES._replace(a_question=300))
    graph = read(slow.calls(12, slow.ANOTHER_ARGUMENT, body="%r = clamp 0, %a, 3"))
    asked_first = [IndexAnalysis(graph), IndexAnalysis(graph)]
    inner = graph.functions["f4"].body.terminator.operand(0)
    asked_first[0].of(Site(graph.scatters[0].operand(1)))
    assert asked_first[0].budget.cuts
    assert [analysis.of(Site(inner)).hull() for analysis in asked_first] == [(0, 48), (0, 48)]


def test_all_questions_together_have_a_budget():
    """A budget that is used up refuses every step, a question's share refuses it for that question alone."""
    both = Budget(5, 3)
    assert [both.begin() for _ in range(4)] == [True, True, True, False]
    assert both.is_asked
    for _ in range(3):
        both.end()
    assert not both.is_asked
    assert [both.begin() for _ in range(3)] == [True, True, False]
    assert (both.left, both.cuts) == (0, 2)


def test_values_that_depend_on_each_other_do_not_multiply():
    """Vectors that each become a sum of all cost no more than one question may; the counter beside them is known."""
    intervals, _, indices = asked(slow.entangled(20))
    left = intervals.budget.left
    assert intervals.of(Site(indices)).hull() == I32
    assert left - intervals.budget.left <= RANGES.a_question
    assert intervals.budget.cuts
    counter = indices.node.operand(0).node.blocks[1].argument(0)
    assert intervals.of(Site(counter)).hull() == (0, I32[1] - 1)


@pytest.mark.parametrize("count", [3, 5])
def test_forms_of_values_that_depend_on_each_other_do_not_multiply(count):
    """Linear forms of such vectors are found within the budget of one question, however many there are."""
    _, forms, indices = asked(slow.entangled(count))
    left = forms.budget.left
    forms.of(Entry(Site(indices), PLACE))
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


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_a_run_that_a_loop_moves_stays_a_run(order):
    """Up by the counter, or by the other run and down again: runs behind the loop, whichever is asked for first."""
    body = """%a = broadcast_in_dim %i, dims = [] -> 16xi32
        %p = add %w0, %a; %q = add %w1, %w0; %d = subtract %q, %w0"""
    run = "%run = iota dim = 0 : 16xi32\n"
    _, forms, indices = asked(slow.scattered(run + slow.loop(body, ["%p", "%d"], ["%run", "%run"]), "%w#2"))
    for number in order:
        result = indices.node.operand(0).node.result(number + 1)
        assert forms.of(Entry(Site(result), PLACE[:1])).stride(0) == 1


def test_an_outer_value_is_looked_at_once_for_all_proofs():
    """A proof about a loop assumes its argument; what lies outside of the loop does not depend on that."""
    steps = []
    for count in (10, 40):
        body = f"%o = add %w0, %t{count - 1}; %q = minimum %o, %ones"
        text = slow.scattered(slow.chain(count) + "\n" + slow.loop(body, ["%q"], ["%ones"]), "%w#1")
        intervals, _, indices = asked(text)
        before = intervals.budget.left
        intervals.of(Site(indices))
        steps.append(before - intervals.budget.left)
    assert steps[1] - steps[0] == 30


@pytest.mark.parametrize("module", [slow.deep(400), slow.diamonds(60), slow.normalised(40)])
def test_providers_that_ask_each_other_share_a_stack(module, monkeypatch):
    """A form that ends where its chain is too long asks for a range there, and both together stay within the stack."""
    heights, begin = [], Budget.begin

    def measured(self):
        heights.append(self.stack.height)
        return begin(self)

    monkeypatch.setattr(Budget, "begin", measured)
    _, forms, indices = asked(module)
    forms.of(Entry(Site(indices), PLACE))
    assert 40 < max(heights) <= budget.HIGHEST
    assert forms.budget.stack.height == 0
    assert sys.getrecursionlimit() > 5 * budget.HIGHEST


def test_trap_55_a_large_splat_is_one_number():
    """Indices cut out of a constant of 1 GiB are known, and take no memory of its size."""
    hl.lower(slow.deep(2))  # what is done once in a process takes long under tracemalloc
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
    here = Path(__file__).parent
    path = os.pathsep.join(map(str, (Path(hl.__file__).parent.parent, here, here.parent)))
    environment = {**os.environ, "PYTHONPATH": path}
    done = subprocess.run([sys.executable, "-c", SCRIPT], env=environment, capture_output=True, text=True, timeout=300)
    assert (done.stdout, done.returncode) == (f"{[0] * 7}\n", 0), done.stderr
