"""IREE, where it is installed: right, wrong, refused, memory corrupted, and caches written out of bounds."""

from dataclasses import replace
from functools import cache
from pathlib import Path

import jax
import numpy as np
import pytest
from jax import lax
from untyped_mlir import module

import hlo_lower as hl
from hlo_lower.consumers import IREE
from hlo_lower.consumers.consumer_judge import Judge
from hlo_lower.consumers.iree import compile_module
from hlo_lower.consumers.reference import reference_of
from hlo_lower.consumers.verification import verify_on
from hlo_lower.ir import mlir
from hlo_lower.ir.export.load import load_function
from hlo_lower.ir.export.trace import exported_text
from hlo_lower.verify.run import entry_function

pytestmark = pytest.mark.skipif(not IREE.version(), reason="the extra iree is not installed")


@pytest.fixture(scope="module")
def judged():
    """What becomes of a module on the runs of a reference, in one process as long as it lives: its start is slow."""
    with Judge(replace(IREE, modules_per_process=50)) as judge:
        yield lambda text, reference: judge.judge(text, reference.runs, reference.rounding)


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


@cache
def converted_rows():
    """That module, lowered for IREE."""
    return hl.lower(ROWS, target="iree").text


def writing(*numbers):
    """XLA's results of the module where it writes these rows."""
    return reference_of(ROWS, inputs=[np.zeros((16, 8), np.float32), np.int32(numbers), np.ones((4, 8), np.float32)])


def test_right_wrong_and_refused(judged):
    """Rows in bounds are right, native and converted; a wrong result is told; a refusal names its cause; all types."""
    reference = writing(3, 0, 15, 7)
    assert judged(ROWS, reference).result == judged(converted_rows(), reference).result == "right"
    wrong = judged(hl.lower(rows("%j")).text, writing(3, 0, 12, 7))
    told = "run 1 (given): result 0 at [0, 0]: expected 1.0, got 0.0 (64 elements differ, bit for bit)"
    assert (wrong.result, wrong.message) == ("wrong", told)
    custom, parse = judged(CUSTOM, reference), judged("module {", reference)
    assert [(one.result, one.stage) for one in (custom, parse)] == [("refused", "compile")] * 2
    assert (custom.cause, bool(parse.message)) == ("stablehlo.custom_call @of_my_own", True)
    assert judged(TYPES, reference_of(TYPES, runs=1)).result == "right"


def test_a_scatter_of_a_value_into_itself_is_right_converted(judged):
    """Its own kernel of single elements does not compile where updates and operand are one value; converted it does."""
    text = rows(operand="%u", shape="4x1", flags=", unique_indices=true")
    elements = np.asarray([[1], [2], [3], [4]], np.float32)
    reference = reference_of(text, inputs=[np.zeros_like(elements), np.asarray([2, 0, 3, 1], np.int32), elements])
    converted = hl.lower(text, target="iree", prefer="safe_scatter")
    assert converted.records[0].rule == "safe_scatter"
    assert judged(text, reference).result == "refused"
    assert judged(converted.text, reference).result == "right"


PARTS = {
    "slice": ("%u = slice %a [0:4, 0:8]", True),
    "at a place": ("%s = slice %i [3:4]; %p = reshape %s -> i32; %u = dynamic_slice %a, %p, 0, sizes = [4, 8]", True),
    "returned by a loop": (
        """%s = slice %a [0:4, 0:8]; %n = constant 9 : i32; %z = constant 0 : i32
        %l:2 = while(%c = %z, %v = %s) cond { %p = compare LT, %c, %n; return %p } do { %m = add %c, 1; return %m, %v }
        %u = reshape %l#1 -> 4x8xf32""",
        True,
    ),
    "computed twice": ("%u = slice %twin [0:4, 0:8]", True),
    "computed": ("%s = slice %a [0:4, 0:8]; %u = negate %s", False),
    "of another": ("%u = slice %b [0:4, 0:8]", False),
}


@pytest.mark.parametrize("form", PARTS)
def test_rows_of_a_value_that_are_added_to_itself_are_right_converted(judged, form):
    """Its kernel reads what it wrote, where two writes meet; converted, the value that is written has a memory of its
    own, if updates may be a part of it, and only then."""
    updates, is_part = PARTS[form]
    lines = f"""%w = tanh %x; %twin = tanh %x; %a = reshape %w -> 16x8xf32
        {updates}
        %j = clamp 0, %i, 15; %k = reshape %j -> 4x1xi32
        %r = scatter(%a, %k, %u) <window=[1], inserted=[0], to=[0], ivd=1> {{add}}"""
    text = module("%x: 16x8xf32, %b: 16x8xf32, %i: 4xi32", lines)
    lowered = hl.lower(text, target="iree", prefer="safe_scatter")
    assert ("stablehlo.pad" in lowered.text) is is_part
    if form in ("returned by a loop", "computed"):
        numbers = np.random.default_rng(0).standard_normal((2, 16, 8)).astype(np.float32)
        reference = reference_of(text, inputs=[*numbers, np.int32([2, 2, 1, 1])])
        assert judged(lowered.text, reference).result == "right"
        assert (judged(text, reference).result == "wrong") is is_part


def test_barriers_are_taken_away():
    """What goes through a barrier in a loop is not waited for, at times; the numbers are the same without."""
    text = module("%x: 4xf32", "%r = optimization_barrier %x")
    lowered = hl.lower(text, target="iree")
    assert "optimization_barrier" not in lowered.text
    assert hl.verify(text, lowered).ok


def test_memory_that_is_corrupted_is_a_crash(judged):
    """Native rows out of bounds are written over other memory, which ends the process; converted they are dropped."""
    reference = writing(1 << 26, 1 << 27, -1, -(1 << 26))
    with Judge(IREE) as judge:
        native = judge.judge(ROWS, reference.runs, reference.rounding)
    assert (native.result, native.stage) == ("crashed", "run")
    assert judged(converted_rows(), reference).result == "right"


MODELS = Path(__file__).parents[2] / "models"
TINY = {"layers": 1, "hidden": 16, "heads": 4, "kv_heads": 2, "head_dim": 4, "ffn": 16, "vocab": 32, "max_length": 16}


@pytest.mark.sweep
@pytest.mark.parametrize(
    ("function", "counted", "position", "wide"),
    [
        ("torch_style_decode.py:index_put", "sequences", "positions", True),
        ("torch_style_decode.py:paged", "", "slot_mapping", True),
        ("ragged_decode.py:decode_rows", "", "positions", False),
        ("llama.py:decode", "", "position", False),
    ],
)
def test_caches_are_right_with_positions_past_the_end(judged, function, counted, position, wide):
    """With positions in range, past the end, far below 0; where they are int64 the step as it was is refused."""
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
    verdict = verify_on(IREE, ROWS, converted_rows())
    assert verdict.ok
    assert verdict.summary() == f"IREE (llvm-cpu, local-task) {IREE.version()}: right in 3 runs"
    assert verdict.lines()[1] == "  compared with XLA's results of the original: bit for bit"


ANGLES = np.float32([0.5, 3.0, -7.0, 100.0, -1e3, 1e5, -1e6, 2**31, 1e30, -3e38])


WITHIN = {"f32": "3.0e-7", "bf16": "4.0e-3"}
"""How far a sine may be from its number."""


def test_functions_of_large_angles_have_their_digits():
    """Of its own 0.03 is left at 10^6, and beyond 10^8 no number between -1 and 1."""
    given, arguments, lines, names = [], [], [], []
    for element, most in WITHIN.items():
        for op, function in (("sine", np.sin), ("cosine", np.cos)):
            name = f"{op}_{element}"
            x = ANGLES.astype(mlir.dtype_of(element))
            given += [x, function(x.astype(np.float64)).astype(np.float32)]
            arguments.append(f"%x_{name}: 10x{element}, %y_{name}: 10xf32")
            lines.append(f"""%f_{name} = {op} %x_{name}; %w_{name} = convert %f_{name} -> 10xf32
                %d_{name} = subtract %w_{name}, %y_{name}; %m_{name} = abs %d_{name}
                %r_{name} = compare LE, %m_{name}, {most}""")
            names.append(f"%r_{name}")
    text = module(", ".join(arguments), "\n".join(lines), ", ".join(names))
    are_near = [[r.all() for r in compile_module(one)(given)] for one in (text, hl.lower(text, target="iree").text)]
    assert are_near == [[False] * 4, [True] * 4]


def test_places_of_equal_numbers_are_in_their_order(judged):
    """IREE's own top_k gives those of equal numbers in any order, of each type."""
    given = [(np.arange(16) % 3).astype(element) for element in ("float32", "int32", "int8")]
    text = hl.export(lambda *values: [lax.top_k(x, 12) for x in values], *given).mlir_module()
    reference, lowered = reference_of(text, inputs=given), hl.lower(text, target="iree")
    assert "chlo.top_k" not in lowered.text
    found = judged(lowered.text, reference)
    assert found.result == "right", found.message


def test_a_part_of_a_value_written_into_it_is_read_before(judged):
    """IREE's copy reads what it has written: a window that is moved on, `x.at[:-1].set(x[1:])`, at each start."""
    text = module("%x: 6xf32, %i: i32", "%u = slice %x [1:5]; %r = dynamic_update_slice %x, %u, %i")
    x, starts = np.arange(6, dtype=np.float32), (-1, 0, 1, 2, 9)
    reference = reference_of(text, runs=1)
    runs = [reference.again([x, np.int32(start)], f"at {start}") for start in starts]
    found = judged(hl.lower(text, target="iree").text, replace(reference, runs=tuple(runs)))
    assert (found.result, found.runs) == ("right", len(starts)), found.message


OF_ITSELF = {
    "reversed": "%s = slice %a [1:2, 0:100] -> 1x100xf32; %u = reverse %s, dims = [1]",
    "added to its neighbours": """%s = slice %a [0:1, 0:100] -> 1x100xf32; %f = reverse %s, dims = [1]
        %o = slice %a [1:2, 0:100] -> 1x100xf32; %n = reverse %o, dims = [1]; %u = add %f, %n""",
    "multiplied": """%s = slice %a [1:2, 0:100] -> 1x100xf32
        %u = dot_general %s, %w, contracting_dims = [1] x [0] -> 1x100xf32""",
}
"""Updates that are computed from what they write over, of rows of %a."""


def of_itself(lines):
    """A module that writes the second row of what is computed anew."""
    return module(
        "%x: 2x100xf32, %w: 100x100xf32",
        f"%a = add %x, %x; {lines}; %o1 = constant 1 : i32; %o0 = constant 0 : i32\n"
        "%r = dynamic_update_slice %a, %u, %o1, %o0",
    )


@pytest.mark.parametrize("name", OF_ITSELF)
def test_an_update_that_is_computed_from_what_it_writes_over(judged, name):
    """IREE's kernel reads what it has written: `x.at[1].set(x[1][::-1])`, a stencil, a row times a matrix."""
    text = of_itself(OF_ITSELF[name])
    found = judged(hl.lower(text, target="iree").text, reference_of(text, runs=1))
    assert found.result == "right", found.message


@pytest.mark.parametrize(
    ("lines", "is_kept"),
    [
        ("%s = slice %a [1:2, 0:100] -> 1x100xf32; %u = exponential %s", True),
        ("%s = slice %a [0:1, 0:100] -> 1x100xf32; %u = reverse %s, dims = [1]", True),
        ("%s = slice %a [1:2, 0:100] -> 1x100xf32; %u = reverse %s, dims = [1]", False),
        ("%b = add %x, %x; %s = slice %b [1:2, 0:100] -> 1x100xf32; %u = reverse %s, dims = [1]", False),
        ("%b = add %x, %x; %s = slice %b [1:2, 0:100] -> 1x100xf32; %u = exponential %s", True),
        ("%b = add %x, %x; %u = reverse %b, dims = [1]", False),
        ("%c = constant 1.0 : 2x100xf32; %b = add %x, %c; %u = reverse %b, dims = [1]", True),
        (
            "%c = constant 1.0 : 2x100xf32; %b = add %x, %c; %s = slice %b [1:2, 0:100] -> 1x100xf32\n"
            "%u = reverse %s, dims = [1]",
            True,
        ),
    ],
)
def test_what_is_made_of_the_same_place_or_of_another_row_is_written_in_place(lines, is_kept):
    """Also seen without IREE."""
    assert ("stablehlo.dynamic_update_slice" in hl.lower(of_itself(lines), target="iree").text) is is_kept


CHAIN = "; ".join(f"%u{k + 1} = add %u{k}, %u{k}" for k in range(220))


@pytest.mark.parametrize(
    ("update", "start", "is_kept"),
    [
        ("%s = slice %x [0:4] -> 4xf32; %u = reverse %s, dims = [0]", 4, True),
        ("%s = slice %x [4:8] -> 4xf32; %u = reverse %s, dims = [0]", 0, True),
        ("%s = slice %x [1:5] -> 4xf32; %u = reverse %s, dims = [0]", 4, False),
        ("%s = slice %x [3:7] -> 4xf32; %u = reverse %s, dims = [0]", 0, False),
        ("%s = slice %x [0:4] -> 4xf32; %u = reverse %s, dims = [0]", 100, True),
        ("%s = slice %x [2:6] -> 4xf32; %u = reverse %s, dims = [0]", 100, False),
        ("%s = slice %x [2:6] -> 4xf32; %u = reverse %s, dims = [0]", -9, False),
        ("%s = slice %x [0:8:2] -> 4xf32; %u = negate %s", 4, False),
        (f"%u0 = slice %x [0:4] -> 4xf32; {CHAIN}; %u = reverse %u220, dims = [0]", 1, False),
    ],
    ids=[
        "behind",
        "in front",
        "one behind",
        "one in front",
        "clamped behind",
        "clamped onto it",
        "below",
        "apart",
        "far",
    ],
)
def test_a_place_is_where_an_update_is_clamped_to(update, start, is_kept):
    """Starts are clamped before windows are compared; what is too far behind is taken for a part. Seen without IREE."""
    text = module("%x: 8xf32", f"{update}; %o = constant {start} : i32; %r = dynamic_update_slice %x, %u, %o")
    assert ("stablehlo.dynamic_update_slice" in hl.lower(text, target="iree").text) is is_kept


def test_an_update_of_its_own_is_written_in_place():
    text = module("%x: 6xf32, %u: 4xf32, %i: i32", "%r = dynamic_update_slice %x, %u, %i")
    assert "stablehlo.dynamic_update_slice" in hl.lower(text, target="iree").text


def drawn(key, x):
    """Rows at random, by keys that are split: loops that pass three parts of a key on in turn."""
    return x[jax.vmap(lambda k: jax.random.randint(k, (2,), 0, 5))(jax.random.split(key, 4))[:, 0]]


@pytest.mark.sweep
def test_short_loops_that_pass_values_on_run(judged):
    """Its compiler moves a buffer away that it passes on three times, and then has none."""
    exported = hl.export(drawn, np.uint32([0, 7]), np.ones((8, 3), np.float32))
    text, reference = exported.mlir_module(), reference_of(exported.mlir_module(), runs=1)
    found = [judged(one, reference) for one in (text, hl.lower(exported, target="iree").text)]
    assert [one.result for one in found] == ["refused", "right"]
