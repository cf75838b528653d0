"""Records made by hand: reports are tested without any module."""

from dataclasses import replace

import pytest

from hlo_lower.base.causes import Code
from hlo_lower.facts.scatter.record import Fact, Rejection, ScatterRecord, Written
from hlo_lower.report.module import ModuleReport

RECORD = ScatterRecord(
    number=1,
    file="decode.mlir",
    function="main",
    location="llama.py:88",
    scope="jit(decode)/layer_0/scatter",
    kind="insert_slice",
    subset="Tile",
    writes=Written((1,), (":", ":", "pos", ":")),
    combiner="assign",
    operand_shape=(1, 8, 64, 16),
    indices_shape=(1,),
    updates_shape=(1, 8, 16),
    dtype="f32",
    oob="xla",
    in_bounds="always",
    bounds=Code.PROVED("clamped"),
    unique="proved",
    rule="scatter_to_dynamic_update_slice",
    form="one window at a runtime start",
    why=Code.CHOSEN("nothing", None, None),
    why_not=(Rejection("scatter_to_loop", (Code.LESS_SPECIFIC("dynamic_update_slice"),)),),
    facts=(
        Fact.known(
            *("in_bounds", "always"), Code.CLAMPED(0, 63).with_place("llama.py:87"), Code.ARGUMENT(3, "main", None)
        ),
        Fact.known("unique", "proved", Code.ONE_WINDOW()),
    ),
)
NO_RULE = {"rule": "", "form": "", "facts": (), "why": Code.NO_LOWERING("iree"), "why_not": (), "kind": "general"}
WITHOUT_RULE = NO_RULE | {
    "combiner": "max",
    "subset": "Points",
    "writes": Written((3,), ("i",)),
    "operand_shape": (100,),
    "in_bounds": "never",
    "bounds": Code.NOTHING_IN_BOUNDS(),
    "unique": "claimed",
}


@pytest.fixture
def record():
    """A factory of records: a clamped cache write, but for the fields that are given."""
    return lambda number=1, **changes: replace(RECORD, number=number, **changes)


@pytest.fixture
def of_one(record):
    """A factory of reports of a module with one record of such fields."""
    return lambda file="a.mlir", **changes: ModuleReport(file, 7, (record(**changes),))


@pytest.fixture
def decode(record):
    """Three cache writes of three layers, one of which needs a guard, and a scatter-max without a rule."""
    guarded = Code.GUARDED(Code.ARGUMENT(3, "main", "pos"))
    writes = (
        record(1),
        record(2, location="llama.py:89", bounds=guarded, in_bounds="unknown"),
        record(3, scope="jit(decode)/layer_1/scatter"),
        record(4, **WITHOUT_RULE),
    )
    verified = "4 regions (2 distinct) as they stand; module 3 runs"
    times = {"convert_seconds": 0.05, "verify_seconds": 4.1}
    return ModuleReport(
        "decode.mlir", 5449, writes, scatters_left=1, verification=verified, verdict={"ok": True}, **times
    )
