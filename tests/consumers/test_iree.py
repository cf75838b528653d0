"""IREE, where it is installed: right, wrong, refused, memory corrupted, and caches written out of bounds."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from untyped_mlir import module

import hlo_lower as hl
from hlo_lower.consumers import IREE
from hlo_lower.consumers.consumer_judge import Judge
from hlo_lower.consumers.reference import reference_of
from hlo_lower.consumers.verification import verify_on
from hlo_lower.ir import mlir
from hlo_lower.ir.export.load import load_function
from hlo_lower.ir.export.trace import exported_text
from hlo_lower.verify.run import entry_function

pytestmark = pytest.mark.skipif(not IREE.version(), reason="the extra iree is not installed")

MODELS = Path(__file__).parents[2] / "models"
TINY = {"layers": 1, "hidden": 16, "heads": 4, "kv_heads": 2, "head_dim": 4, "ffn": 16, "vocab": 32, "max_length": 16}


def rows(at="%i", operand="%a", shape="16x8", flags=""):
    """A module that writes rows."""
    lines = f"""%one = constant 1 : 4xi32; %j = add %i, %one; %k = reshape {at} -> 4x1xi32
        %r = scatter({operand}, %k, %u) <window=[1], inserted=[0], to=[0], ivd=1{flags}> {{assign}}"""
    width = shape.split("x")[1]
    return module(f"%a: {shape}xf32, %i: 4xi32, %u: 4x{width}xf32", lines)


ROWS = rows()
CUSTOM = module("%a: 4xf32", "%r = custom_call @of_my_own(%a) -> 4xf32")
TYPES = module(
    "%a: 2xbf16, %b: 3xi1, %c: i64, %d: 2xui32, %e: 0xf32, %f: 2xf16",
    "%0 = not %b; %1 = add %c, %c; %2 = not %d; return %a, %0, %1, %2, %e, %f",
)


def judged(text, reference):
    """The outcome of a module on the runs of a reference."""
    with Judge(IREE) as judge:
        return judge.judge(text, reference.runs, reference.rounding)


def arguments_of(rows):
    """Arguments of ROWS that write these rows."""
    return [np.zeros((16, 8), np.float32), np.int32(rows), np.ones((4, 8), np.float32)]


def test_rows_in_bounds_are_right_native_and_converted():
    """Both versions compute what XLA does, bit for bit."""
    reference = reference_of(ROWS, inputs=arguments_of([3, 0, 15, 7]))
    assert judged(ROWS, reference).result == "right"
    assert judged(hl.lower(ROWS, target="iree").text, reference).result == "right"


def test_a_scatter_of_a_value_into_itself_is_right_converted():
    """Its own kernel of single elements does not compile where updates and operand are one value; converted it does."""
    text = rows(operand="%u", shape="4x1", flags=", unique_indices=true")
    elements = np.asarray([[1], [2], [3], [4]], np.float32)
    reference = reference_of(text, inputs=[np.zeros_like(elements), np.asarray([2, 0, 3, 1], np.int32), elements])
    converted = hl.lower(text, target="iree", prefer="safe_scatter")
    assert converted.records[0].rule == "safe_scatter"
    assert judged(text, reference).result == "refused"
    assert judged(converted.text, reference).result == "right"


def test_barriers_are_taken_away():
    """What goes through a barrier in a loop is not waited for, at times; the numbers are the same without."""
    text = module("%x: 4xf32", "%r = optimization_barrier %x")
    lowered = hl.lower(text, target="iree")
    assert "optimization_barrier" not in lowered.text
    assert hl.verify(text, lowered).ok


def test_memory_that_is_corrupted_is_a_crash():
    """Native rows out of bounds are written over other memory, which ends the process; converted they are dropped."""
    reference = reference_of(ROWS, inputs=arguments_of([1 << 26, 1 << 27, -1, -(1 << 26)]))
    native = judged(ROWS, reference)
    assert (native.result, native.stage) == ("crashed", "run")
    assert judged(hl.lower(ROWS, target="iree").text, reference).result == "right"


def test_a_wrong_result_is_caught():
    """A module that writes other rows is wrong, and the message says where."""
    outcome = judged(hl.lower(rows("%j")).text, reference_of(ROWS, inputs=arguments_of([3, 0, 12, 7])))
    assert outcome.result == "wrong"
    assert outcome.message == (
        "run 1 (given): result 0 at [0, 0]: expected 1.0, got 0.0 (64 elements differ, bit for bit)"
    )


def test_refusals():
    """The cause of a refusal is the op that the compiler names; its own message of a parse error comes through."""
    custom, parse = (judged(text, reference_of(ROWS)) for text in (CUSTOM, "module {"))
    assert [(one.result, one.stage) for one in (custom, parse)] == [("refused", "compile")] * 2
    assert custom.cause == "stablehlo.custom_call @of_my_own"
    assert parse.message


def test_every_type_goes_in_and_comes_out():
    """Arguments and results of narrow floats, booleans, unsigned and wide integers, and of no elements."""
    assert judged(TYPES, reference_of(TYPES)).result == "right"


EXPORTS = [
    ("torch_style_decode.py:index_put", "sequences", "positions", True),
    pytest.param("torch_style_decode.py:paged", "", "slot_mapping", True, marks=pytest.mark.sweep),
    pytest.param("ragged_decode.py:decode_rows", "", "positions", False, marks=pytest.mark.sweep),
    pytest.param("llama.py:decode", "", "position", False, marks=pytest.mark.sweep),
]


@pytest.mark.sweep
@pytest.mark.parametrize(
    ("function", "counted", "position", "wide"), EXPORTS, ids=lambda v: v if isinstance(v, str) and ":" in v else ""
)
def test_caches_are_right_with_positions_past_the_end(function, counted, position, wide):
    """Converted, a step computes what XLA does with positions in range, past the end and far below 0; where positions
    are int64 the compiler does not take the step as it was."""
    settings = {key: str(value) for key, value in TINY.items()}
    text = exported_text(load_function(f"{MODELS}/{function}", settings).export())
    converted = hl.lower(text, target="iree")
    assert not converted.scatters_left
    arguments = entry_function(mlir.parse_module(text)).regions[0].blocks[0].arguments
    reference, names = reference_of(text, runs=1), [mlir.value_name(a) for a in arguments]
    given = list(reference.runs[0].arguments)
    if counted:
        given[names.index(counted)] = np.arange(given[names.index(counted)].size)
    place, runs = names.index(position), []
    for value in (1, 16, 1000, -1000):
        arguments = [np.full_like(a, value) if k == place else a for k, a in enumerate(given)]
        runs.append(reference.again(arguments, f"{position} {value}"))
    outcome = judged(converted.text, replace(reference, runs=tuple(runs)))
    assert (outcome.result, outcome.runs) == ("right", 4), outcome
    if wide:
        assert judged(text, reference).result == "refused"


def test_verify_on_says_what_it_compared():
    """The verdict of a converted module: three runs, bit for bit, on this version of IREE."""
    verdict = verify_on(IREE, ROWS, hl.lower(ROWS, target="iree").text)
    assert verdict.ok
    assert verdict.summary() == f"IREE (llvm-cpu, local-task) {IREE.version()}: right in 3 runs"
    assert verdict.lines()[1] == "  compared with XLA's results of the original: bit for bit"
