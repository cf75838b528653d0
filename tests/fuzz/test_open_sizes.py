"""Fuzzed scatters of dynamic shape: lowered without their sizes, judged with them."""

import numpy as np
import pytest
from opened_sizes import open_sizes, with_open_sizes

from hlo_lower.testing import case_of_seed
from hlo_lower.testing.fuzz.judging import judge
from hlo_lower.testing.fuzz.module_text import module_text


def test_sizes_are_left_open():
    """Types of signatures and scatters lose sizes, of 0 as well; those of other ops do not."""
    text = """func.func public @main(%o: tensor<5x4xf32>, %e: tensor<0x3xf32>) -> tensor<5x4xf32> {
  %k = stablehlo.constant dense<1.0> : tensor<7xf32>
  return %o : tensor<5x4xf32>
}
"""
    found = {open_sizes(text, np.random.default_rng(seed)) for seed in range(20)}
    assert len({t.splitlines()[0] for t in found}) > 3
    assert all("tensor<7xf32>" in t for t in found)
    assert {"tensor<0x" in t for t in found} == {True, False}


@pytest.mark.parametrize("oob", ["xla", pytest.param("spec", marks=pytest.mark.sweep)])
def test_fuzzed_scatters_of_dynamic_shape(oob):
    """No case differs from the reference, whichever of its sizes are left open."""
    assert failures(oob, range(60)) == []


@pytest.mark.sweep
@pytest.mark.parametrize("oob", ["xla", "spec"])
def test_many_fuzzed_scatters_of_dynamic_shape(oob):
    """The same at length."""
    assert failures(oob, range(1_000, 3_000)) == []


def failures(oob, seeds, size=10):
    """What fails, one message for each case."""
    cases = [case_of_seed(seed) for seed in seeds]
    told = []
    for k in range(0, len(cases), size):
        batch = cases[k : k + size]
        assert "?x" in open_sizes(module_text(batch), np.random.default_rng(k))
        judged = judge(batch, with_open_sizes(oob, k), oob)
        told += [f"{o.name}: {o.failure}" for o in judged.outcomes if o.failure]
    return told
