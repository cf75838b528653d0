"""Constants of gigabytes: what would hold them many times is left out of a verification, and the verdict says so."""

import pytest
from two_programs import regions
from untyped_mlir import module

from hlo_lower.verify import run, verify
from hlo_lower.verify.align import piece
from hlo_lower.verify.align.piece import pieces_of
from hlo_lower.verify.read import meanings
from hlo_lower.verify.run import CannotRunError

SPLAT, DENSE = "1.0", "[0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]"
ENOUGH = 12 * 8 * 4
"""Bytes that a run takes for eight floats."""


def text(value, op="add"):
    """A module that adds a constant."""
    return module("%a: 8xf32", f"%k = constant {value} : 8xf32; %r = {op} %a, %k", "%r")


@pytest.mark.parametrize(
    ("value", "budget", "level", "status"),
    [
        (DENSE, ENOUGH, "auto", "equal"),
        (DENSE, ENOUGH - 1, "auto", "not run"),
        (DENSE, ENOUGH - 1, "full", "equal"),
        (SPLAT, ENOUGH - 1, "auto", "equal"),
    ],
)
def test_a_module_of_large_constants_is_not_run(value, budget, level, status):
    """What a run takes for them counts against the budget of memory; one number that is repeated takes nothing."""
    verdict = verify(text(value), text(value), level=level, memory_budget=budget)
    assert verdict.module is not None
    assert verdict.module.status == status
    assert ("constants" in verdict.module.reason) == (status == "not run")


def test_a_region_of_large_constants_is_not_cut_out(monkeypatch):
    """Its pieces would be printed and compiled; where constants are what both have in common, it is."""
    monkeypatch.setattr(meanings, "MAX_ELEMENTS", 4)
    monkeypatch.setattr(piece, "over_budget", lambda ops: run.over_budget(ops, ENOUGH - 1))
    [region] = regions(text(DENSE), text(DENSE, "subtract"))
    pieces_of(region)
    [region] = regions(text(DENSE), text(DENSE.replace("0.0", "9.0", 1)))
    with pytest.raises(CannotRunError, match=r"0\.0 GiB of constants"):
        pieces_of(region)
