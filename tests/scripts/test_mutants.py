"""Mutants of modules: how their truth is found, and that the judge is right about some of them."""

import sys
from pathlib import Path

import numpy as np
import pytest
from untyped_mlir import module

sys.path.insert(0, str(Path(__file__).parents[2] / "scripts"))

from mutating import campaign, judging, making, truth
from mutating.evaluator import Module
from mutating.making import Mutant, mutant
from mutating.programs import PROGRAMS, program_text

INDEXED = module(
    "%x: 8xf32, %i: 3xi32",
    """%c0 = constant 0 : 3xi32; %c8 = constant 8 : 3xi32
    %low = maximum %i, %c0; %p = compare LT, %low, %c0; %s = add %low, %c8; %j = select %p, %s, %low
    %k = reshape %j -> 3x1xi32
    %r = gather(%x, %k) <dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0], start_index_map = [0],
        index_vector_dim = 1>, slice_sizes = array<i64: 1>> -> 3xf32""",
)


def changed(old, new):
    """The module with one thing changed in its `maximum` or before, as a mutant."""
    assert old in INDEXED
    key = next(key for key, node in Module(INDEXED).nodes().items() if node.name == "stablehlo.maximum")
    return Mutant("indexed", "by_hand", 0, f"{old} -> {new}", key, "stablehlo.maximum", INDEXED.replace(old, new))


@pytest.fixture
def by_numpy_alone(monkeypatch):
    """No second executor: it would have to be started."""
    monkeypatch.setattr(truth, "_confirmed", lambda *_: "")


def test_the_truth_of_a_mutant(by_numpy_alone):
    """A clip to the other side shows in a run, what is never reached is equal, a threshold is found by halving."""
    found = truth.truth_of(changed("maximum", "minimum"), INDEXED)
    assert (found.truth, found.why.rsplit("; ", 1)[1]) == ("differs", "by NumPy alone")
    results = [Module(text).run(found.witness)[0] for text in (INDEXED, INDEXED.replace("maximum", "minimum"))]
    assert not np.array_equal(*results, equal_nan=True)
    assert truth.truth_of(changed("dense<8>", "dense<9>"), INDEXED).truth == "equal"  # no index is negative
    before = module("%x: f32", "%t = tanh %x; %c = constant 0.7512345 : f32; %r = compare GT, %t, %c")
    other = mutant("tanh", before, "constant_ulp", 3)
    assert truth.truth_of(other, before, seconds=6.0).truth == "differs"


@pytest.mark.sweep
def test_the_evaluator_agrees_with_the_interpreter():
    """Each small program gives what StableHLO's interpreter gives, within rounding."""
    from mutating.inputs import Inputs
    from mutating.others import OtherError, results_by

    for name in PROGRAMS:
        text = program_text(name)
        own = Module(text)
        drawn = Inputs(own, 0).draw()
        arguments = [np.ones(t.shape, a.dtype) for t, a in zip(own.main.types, drawn, strict=True)]
        try:
            expected = results_by("the interpreter", text, arguments)
        except OtherError:
            continue
        for one, other in zip(own.run(arguments), expected, strict=True):
            np.testing.assert_allclose(one.astype("float64"), other.astype("float64"), rtol=0.02, err_msg=name)


def test_some_mutants(by_numpy_alone, monkeypatch):
    """The judge is wrong about none of them."""
    monkeypatch.setattr(campaign, "judged", judging.judge)
    modules = {name: program_text(name) for name in ("relu6", "pads")}
    campaign.begin(modules, {}, 0.5)
    records = [campaign.tried(*planned)[0] for planned in making.planned(modules, 6, 5)]
    assert [record.line() for record in records if campaign.wrong(record)] == []
    assert "differs" in {record.truth for record in records}
    assert "wrong equal: 0" in campaign.report_lines(records)


@pytest.mark.sweep
def test_a_run_goes_on(script):
    """A run that is resumed has the table of the first one; another one does not write over it."""
    how = ("--runs", "8", "--seed", "3", "--out", "out", "--only", "promised,digitize,pads")
    done = script("mutants.py", *how)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "wrong equal: 0\nfalse alarm: 0\ncrash: 0\nhang: 0\n" in done.stdout
    again = script("mutants.py", *how, "--resume")
    assert (again.returncode, again.stdout) == (0, done.stdout)
    assert script("mutants.py", *how).returncode == 2
