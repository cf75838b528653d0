"""Records made by hand: reports are tested without any module."""

from dataclasses import replace

import pytest

from hlo_lower.report import ModuleReport
from hlo_lower.scatter.record import Fact, Rejection, ScatterRecord

RECORD = ScatterRecord(
    number=1,
    file="decode.mlir",
    function="main",
    location="llama.py:88",
    scope="jit(decode)/layer_0/scatter",
    kind="insert_slice",
    subset="Tile",
    writes="tile [:, :, pos, :] of 1x8x64x16",
    combiner="assign",
    operand_shape=(1, 8, 64, 16),
    indices_shape=(1,),
    updates_shape=(1, 8, 16),
    dtype="f32",
    oob="xla",
    in_bounds="always",
    bounds="proved (clamped)",
    unique="proved",
    rule="scatter_to_dynamic_update_slice",
    why="one window at a runtime start",
    why_not=(Rejection("scatter_to_loop", "dynamic_update_slice is more specific"),),
    facts=(
        Fact.known("in_bounds", "always", "clamp(0, pos, 63) at llama.py:87", "argument 3 of @main"),
        Fact.known("unique", "proved", "one window"),
    ),
)


@pytest.fixture
def record():
    """A factory of records: a clamped cache write, but for the fields that are given."""

    def make(number=1, **changes):
        return replace(RECORD, number=number, **changes)

    return make


@pytest.fixture
def decode(record):
    """Three cache writes of three layers, one of which needs a guard, and a scatter-max without a rule."""
    writes = [
        record(1),
        record(2, location="llama.py:89", bounds="guarded: argument pos", in_bounds="unknown"),
        record(3, scope="jit(decode)/layer_1/scatter"),
        record(
            4,
            kind="general",
            combiner="max",
            subset="Points",
            writes="3 points of 100",
            rule="",
            in_bounds="never",
            bounds="nothing in bounds",
            unique="claimed",
            facts=(),
            why="",
            why_not=(),
        ),
    ]
    return ModuleReport(
        "decode.mlir",
        5449,
        tuple(writes),
        scatters_left=1,
        verification="4 regions (2 distinct) as they stand; module 3 runs",
        convert_seconds=0.05,
        verify_seconds=4.1,
        verdict={"ok": True},
    )
