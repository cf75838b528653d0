"""Writes with strides: a composite that every oracle runs, and that leaves as `tensor.insert_slice`."""

import jax.numpy as jnp
import numpy as np
import pytest
from leaving import LINALG, left_as_linalg

import hlo_lower as hl

OPERAND, ROWS = np.arange(36, dtype=np.float32).reshape(9, 4), np.full((3, 4), 100.0, np.float32)
WRITES = {
    "rows": lambda x, y: x.at[1::3].set(y),
    "reversed": lambda x, y: x.at[::-3].set(y),
    "added": lambda x, y: x.at[::4].add(y),
    "columns": lambda x, y: x.T.at[:, 2::3].multiply(y.T),
    "diagonal": lambda x, y: x.at[jnp.arange(4), jnp.arange(4)].min(y[0]),
}


@pytest.mark.few(3)
@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
def test_a_strided_write_is_verified_before_it_leaves(write):
    """The composite computes what the scatter does, in every regime and over the whole module, and leaves as one op."""
    exported = hl.export(write, OPERAND, ROWS)
    lowered = hl.lower(exported, target=LINALG)
    assert [record.rule for record in lowered.records] == ["strided_insert_slice"]
    assert "stablehlo.composite" in lowered.stablehlo
    verdict = hl.verify(exported, lowered.stablehlo)
    assert verdict.ok, verdict.lines()
    text, report = left_as_linalg(exported, named=False)
    assert report.is_complete, report.lines()
    assert text.count("tensor.insert_slice") == 1
    assert [record.rule for record in hl.lower(exported).records] == ["strided_select"]


def test_a_wrong_place_in_the_composite_is_found():
    """Another stride in the decomposition does not verify: the check can fail."""
    exported = hl.export(WRITES["rows"], OPERAND, ROWS)
    text = hl.lower(exported, target=LINALG).stablehlo
    wrong = text.replace("low = [1, 0], high = [1, 0], interior", "low = [0, 0], high = [2, 0], interior")
    assert wrong != text
    assert not hl.verify(exported, wrong, level="full").ok


def test_equal_writes_share_a_decomposition():
    """Two writes at the same places of the same types name one function."""
    exported = hl.export(lambda x, y: x.at[1::3].set(y).at[1::3].add(y), OPERAND, ROWS)
    text = hl.lower(exported, target=LINALG).stablehlo
    assert (text.count("stablehlo.composite"), text.count("func.func private")) == (2, 1)
