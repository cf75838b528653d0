"""Traps of facts: where a proof holds, and from where it does not; runs of rows, shifted, wrapped, next to the ends."""

import jax
import numpy as np
import pytest
from one_scatter import (
    INT_MAX,
    INT_MIN,
    POLICIES,
    array,
    dtype_of,
    f32,
    i32,
    ops_of_size,
    points,
    rows,
    run,
    some,
    tile,
    written,
)
from untyped_mlir import function, module

import hlo_lower as hl
from hlo_lower.verify.bounds.compare import first_difference
from hlo_lower.verify.run import Executable

PUT = "scatter({}, %i, %up) <window=[0], to=[0]> {{assign}}"


@pytest.mark.parametrize(("last", "in_bounds"), [(5, "always"), (6, "unknown")])
def test_trap_28_clamped_index(last, in_bounds):
    """A start clamped to [0, D - W] is proved inside and needs no guard; one more, and it needs one."""
    text = tile(3, 8).text(lines=f"%c = clamp 0, %pos, {last}; %i = reshape %c -> 1xi32", given=", %pos: i32")
    lowered = hl.lower(text)
    assert lowered.records[0].in_bounds == in_bounds
    assert ("stablehlo.select" in lowered.text) == (in_bounds == "unknown")
    for position in (-5, 0, 5, 6, 7):
        [result] = run(text, np.zeros(8, np.float32), i32(position), f32([1, 2, 3]))
        assert result.tolist() == written(8, min(max(position, 0), last), [1, 2, 3])


def test_trap_28_modes_of_jax():
    """JAX clips before the scatter, so that it is in bounds; its other modes give one and the same module."""
    dims, arguments = jax.lax.ScatterDimensionNumbers((0,), (), (0,)), (f32(np.zeros(8)), i32([0]), f32([1, 2, 3]))
    texts = {}
    for mode in ("clip", "fill", "promise_in_bounds"):
        chosen = jax.lax.GatherScatterMode.from_any(mode)
        write = jax.jit(lambda x, i, row, mode=chosen: jax.lax.scatter(x, i, row, dims, mode=mode))
        texts[mode] = write.lower(*arguments).as_text()
    assert texts["fill"] == texts["promise_in_bounds"]
    assert [hl.lower(texts[mode]).records[0].in_bounds for mode in ("clip", "fill")] == ["always", "unknown"]
    for start, clipped in ((-4, 0), (2, 2), (7, 5)):
        for mode, at in (("clip", clipped), ("fill", start)):
            assert run(texts[mode], arguments[0], i32([start]), arguments[2])[0].tolist() == written(8, at, [1, 2, 3])


GATHERS = {"clip": "clip", "fill": "fill", "promise": "promise_in_bounds"}


@pytest.mark.few(3)
@POLICIES
@pytest.mark.parametrize("mode", GATHERS)
@pytest.mark.parametrize("window", [1, 2])
def test_trap_37_the_transpose_of_a_gather(window, mode, oob):
    """The gradient of a gather is a scatter of the gather's mode: a clipped index adds where the gather read, another
    one out of bounds adds nothing; what is lowered is what XLA computes."""
    dims = jax.lax.GatherDimensionNumbers((1,), (), (0,))
    chosen = jax.lax.GatherScatterMode.from_any(GATHERS[mode])

    def loss(x, i, weights):
        return (jax.lax.gather(x, i, dims, (window,), mode=chosen, fill_value=0.0) * weights).sum()

    starts = [0, min(4, 5 - window), 2, 2] if mode == "promise" else [0, 4, 2, 2, -3, 5 - window + 1, 9]
    x, i = f32([1, 2, 3, 4, 5]), i32(starts)[:, None]
    weights = f32(np.arange(1, len(starts) * window + 1).reshape(-1, window))
    source = jax.jit(jax.grad(loss)).lower(x, i, weights)
    expected = np.zeros(5, np.float32)
    for start, row in zip(starts, weights.tolist(), strict=True):
        # A window that reaches out was not read at all, which is XLA's policy; the other one adds what is inside.
        expected += f32(written(5, min(max(start, 0), 5 - window) if mode == "clip" else start, row, oob))
    lowered = hl.lower(source, oob=oob)
    assert len(lowered.records) == 1
    [found] = Executable(lowered.text, "exact").run([x, i, weights][3 - len(lowered.exported.in_avals) :])
    assert found.tolist() == expected.tolist()
    if oob == "xla":
        assert found.tolist() == np.asarray(jax.grad(loss)(x, i, weights)).tolist()


@pytest.mark.parametrize(("second", "in_bounds"), [("%inside", "always"), ("%pos", "unknown")])
def test_trap_40_call_sites(second, in_bounds):
    """Bounds that are proved at one call of a private function hold only if they are proved at every call."""
    calls = f"""%inside = clamp 0, %pos, 4
        %a = call @write(%op, %inside, %up) -> 6xf32; %b = call @write(%op, {second}, %up) -> 6xf32; return %a, %b"""
    write = f"%i = reshape %at -> 1xi32; %r = {PUT.format('%op')}"
    text = module("%op: 6xf32, %pos: i32, %up: 2xf32", calls)
    lowered = hl.lower(text + function("private @write", "%op: 6xf32, %at: i32, %up: 2xf32", write))
    assert lowered.records[0].in_bounds == in_bounds
    executable = Executable(lowered.text, "exact")
    for position in (-3, 0, 4, 5, 9):
        results = executable.run([np.zeros(6, np.float32), i32(position), f32([1, 2])])
        inside = min(max(position, 0), 4)
        starts = inside, inside if second == "%inside" else position
        assert [r.tolist() for r in results] == [written(6, start, [1, 2]) for start in starts]


CARRIED = f"""%zero = constant 0 : i32; %first = clamp 0, %pos, 4
    %r:3 = while(%k = %zero, %at = %first, %c = %op) cond {{
      %p = compare LT, %k, 3; return %p
    }} do {{
      %i = reshape %at -> 1xi32; %w = {PUT.format("%c")}
      %next = add %k, 1; %moved = add %at, %by; %held = clamp 0, %moved, 4; return %next, FOLLOWING, %w
    }}
    return %r#2"""


@pytest.mark.parametrize(("following", "in_bounds"), [("%held", "always"), ("%at", "always"), ("%moved", "unknown")])
def test_trap_40_in_a_loop(following, in_bounds):
    """Bounds of a loop-carried index are those of its first value only if every iteration keeps them."""
    text = module("%op: 6xf32, %pos: i32, %up: 2xf32, %by: i32", CARRIED.replace("FOLLOWING", following))
    lowered = hl.lower(text)
    assert lowered.records[0].in_bounds == in_bounds
    executable = Executable(lowered.text, "exact")
    for position, by in ((-2, 2), (0, 3), (4, -3), (9, 1), (1, INT_MAX)):
        at, expected = min(max(position, 0), 4), np.zeros(6, np.float32)
        for _ in range(3):
            if 0 <= at <= 4:
                expected[at : at + 2] = [1, 2]
            moved = (at + by + 2**31) % 2**32 - 2**31
            at = {"%held": min(max(moved, 0), 4), "%at": at, "%moved": moved}[following]
        [result] = executable.run([f32(np.zeros(6)), i32(position), f32([1, 2]), i32(by)])
        assert result.tolist() == expected.tolist()


@pytest.mark.parametrize(
    ("second", "step", "rule"), [("%rise", 1, "shifted_rows"), ("%iota", None, "shifted_rows"), ("%down", -1, "while")]
)
def test_trap_40_a_run_at_every_call(second, step, rule):
    """A callee's scatter is one of a run where each call passes a run that goes up; one call that does not ends it."""
    calls = f"""%base = broadcast_in_dim %start, dims = [] -> 3x1xi32; %iota = iota dim = 0 : 3x1xi32
        %rise = add %base, %iota; %down = subtract %base, %iota
        %r = call @write(%a, %rise, %up) -> 6xf32; %s = call @write(%b, {second}, %up) -> 6xf32; return %r, %s"""
    text = module("%a: 6xf32, %b: 6xf32, %up: 3xf32, %start: i32", calls)
    text += points(3, 6).text().replace("public @main", "private @write")
    if rule == "while":  # no run: of the forms for any windows the loop is asked for
        assert hl.lower(text).records[0].rule != "shifted_rows"
    lowered = hl.lower(text, prefer=("while",) if rule == "while" else ())
    assert lowered.records[0].rule == rule
    executable, updates = Executable(lowered.text, "exact"), [1, 2, 3]
    for start in (-2, 0, 2, 4, 5, INT_MAX):
        found = executable.run([f32(np.zeros(6)), f32(np.zeros(6)), f32(updates), i32(start)])
        for result, begin, by in zip(found, (start, 0 if step is None else start), (1, step or 1), strict=True):
            at = {begin + by * k: value for k, value in enumerate(updates)}
            assert result.tolist() == [at.get(k, 0.0) for k in range(6)]


# --- runs of rows ---

RUN = "%base = broadcast_in_dim %b, dims = [] -> $t; %iota = iota dim = 0 : $t; %x = add %base, %iota\n"
NORMALISED = "%above = add %x, $by; %below = compare LT, %x, 0, SIGNED; %i = select %below, %above, %x"


def run_text(case, element="i32", offset=0):
    """The module of a case with base + iota as its indices, normalised where an offset is given."""
    lines = RUN + NORMALISED if offset else RUN.replace("%x", "%i")
    lines = lines.replace("$t", f"{case.indices[0]}x1x{element}").replace("$by", str(offset))
    return case.text(lines=lines, given=f", %b: {element}")


def check_run(rows_, size, bases, *, rule, element="i32", combiner="assign", offset=0):
    """A run of rows at a runtime base: the rule that lowers it, and the reference's result under both policies."""
    case = rows(rows_, size, 2, index=element, combiner=combiner)
    text = run_text(case, element, offset)
    for oob in ("xla", "spec"):
        lowered = hl.lower(text, oob=oob, prefer=("while",) if rule == "while" else ())
        if rule == "while":  # no run: of the forms for any windows the loop is asked for
            assert hl.lower(text, oob=oob).records[0].subset != "Rows"
        assert lowered.records[0].rule == rule
        executable = Executable(lowered.text, "exact")
        for base in bases:
            base = array(base, element)
            with np.errstate(all="ignore"):
                x = base + array(np.arange(rows_), element)
                x = np.where(x < 0, x + np.asarray(offset, x.dtype), x) if offset else x
            rng = np.random.default_rng(0)
            operand, updates = some(rng, case.operand, "f32"), some(rng, case.updates, "f32")
            expected = case.expected(operand, x[:, None], updates, oob)
            found = first_difference(expected, executable.run([operand, base, updates]))
            assert found is None, f"base {base}, oob={oob}: {found}"


RULES_OF_RUNS = pytest.mark.parametrize(("combiner", "kind"), [("assign", "rows"), ("subtract", "updated_rows")])


@RULES_OF_RUNS
def test_trap_03_a_run_is_shifted_into_bounds(combiner, kind):
    """A run of rows at every base keeps just the rows inside, by shifting the updates: nothing of the operand's size is
    made besides the write."""
    check_run(4, 5, (*range(-6, 7), INT_MIN, INT_MAX), rule=f"shifted_{kind}", combiner=combiner)
    lowered = hl.lower(run_text(rows(4, 5000, 2, combiner=combiner)), oob="spec")
    assert lowered.records[0].rule == f"shifted_{kind}"
    assert ops_of_size(lowered.text, 5000) == ["stablehlo.dynamic_update_slice"]


@RULES_OF_RUNS
@pytest.mark.parametrize("size", [2, 3, 7])
def test_trap_04_a_run_longer_than_the_operand(combiner, kind, size):
    """One write of all rows drops them one by one, also where they are more than the operand has."""
    bases = (*range(-9, 10), INT_MIN, INT_MIN + 6, INT_MAX - 6, INT_MAX)
    check_run(7, size, bases, rule=f"shifted_{kind}", combiner=combiner)


@RULES_OF_RUNS
@pytest.mark.parametrize("offset", [0, 5])
@pytest.mark.parametrize("element", ["i32", "i64"])
def test_trap_09_a_run_next_to_the_end_of_its_type(combiner, kind, element, offset):
    """A base next to either end of its type, from which base + iota wraps around, writes what natively lies inside."""
    info = np.iinfo(dtype_of(element))
    ends = [info.min, info.min + 1, info.min + 3, info.max - 3, info.max - 1, info.max]
    rule = f"{'wrapped' if offset else 'shifted'}_{kind}"
    check_run(4, 5, ends, rule=rule, element=element, combiner=combiner, offset=offset)


@RULES_OF_RUNS
@pytest.mark.parametrize(("rows_", "size", "offset"), [(3, 5, 5), (3, 5, 6), (7, 4, 4), (1, 4, 4)])
def test_trap_39_wrapped_runs(combiner, kind, rows_, size, offset):
    """A run whose negative rows are moved up one by one is written in two parts, in the order of its rows."""
    rule = f"wrapped_{kind}"
    if rows_ == 1:  # no run: one window
        rule = "guarded_dynamic_update_slice" if combiner == "assign" else "guarded_updated_slice"
    check_run(rows_, size, range(-rows_ - size - 2, size + 2), rule=rule, combiner=combiner, offset=offset)


def test_trap_41_affine_indices_that_wrap():
    """base + iota in i8 wraps around; what wrapped to a negative number is dropped, what wrapped back is written."""
    executable = Executable(hl.lower(run_text(points(140, 200, index="i8"), "i8")).text, "exact")
    updates = np.arange(140) + 1.0
    for base in (-128, -20, 0, 100, 127):
        at = {(base + k + 128) % 256 - 128: value for k, value in enumerate(updates.tolist())}
        [result] = executable.run([np.zeros(200, np.float32), np.asarray(base, np.int8), f32(updates)])
        assert result.tolist() == [at.get(k, 0.0) for k in range(200)]


@pytest.mark.parametrize(
    ("element", "rows_", "size", "bases", "rule"),
    [
        ("i8", 200, 20, [-128, -1, -100], "while"),
        ("i8", 29, 100, [-128, -1, -100], "while"),
        ("i8", 28, 100, [-128, -1, -100], "shifted_rows"),
        ("ui8", 10, 100, [255, 250], "while"),
        (
            "ui8",
            10,
            300,
            [255, 250],
            "while",
        ),  # all of ui8 lies inside of 300 rows, and a run at 250 still goes on at 0
    ],
)
def test_trap_41_affine_wrap_around(element, rows_, size, bases, rule):
    """base + iota in a narrow type is a run only where what wraps around cannot come back into the operand."""
    check_run(rows_, size, [120, 127, 100, 99, 72, 0, 1, *bases], rule=rule, element=element)
