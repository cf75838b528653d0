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


@pytest.mark.few(3)
@POLICIES
@pytest.mark.parametrize("mode", ["clip", "fill", "promise_in_bounds"])
@pytest.mark.parametrize("window", [1, 2])
def test_trap_37_the_transpose_of_a_gather(window, mode, oob):
    """The gradient of a gather is a scatter of its mode: a clipped index adds where the gather read, others nothing."""
    dims = jax.lax.GatherDimensionNumbers((1,), (), (0,))
    chosen = jax.lax.GatherScatterMode.from_any(mode)

    def loss(x, i, weights):
        return (jax.lax.gather(x, i, dims, (window,), mode=chosen, fill_value=0.0) * weights).sum()

    starts = [0, min(4, 5 - window), 2, 2] if mode[0] == "p" else [0, 4, 2, 2, -3, 5 - window + 1, 9]
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


def of_runs(what, bases, rows_=4, size=5, kind="shifted", **how):
    """Runs that each of two rules lowers."""
    rules = ("assign", "rows"), ("subtract", "updated_rows")
    return [(f"{what}, {c}", rows_, size, bases, f"{kind}_{rule}", {"combiner": c, **how}) for c, rule in rules]


def ends(element):
    """Next to the ends of a type."""
    low, high = np.iinfo(dtype_of(element)).min, np.iinfo(dtype_of(element)).max
    return [low, low + 1, low + 3, high - 3, high - 1, high]


LONG = (*range(-9, 10), INT_MIN, INT_MIN + 6, INT_MAX - 6, INT_MAX)
NEXT = "trap 41: what wraps around in a narrow type cannot come back into the operand, or it is no run"
ALL_BASES = (120, 127, 100, 99, 72, 0, 1, -128, -1, -100)
ONE_WINDOW = "trap 39: one row is no run"
RUNS = [
    *of_runs("trap 03: of a run the rows inside are kept", (*range(-6, 7), INT_MIN, INT_MAX)),
    *(r for n in (2, 3, 7) for r in of_runs(f"trap 04: a run longer than an operand of {n}", LONG, 7, n)),
    *(r for e in ("i32", "i64") for r in of_runs(f"trap 09: next to the ends of {e}", ends(e), element=e)),
    *of_runs("trap 09: next to the ends, and moved up", ends("i64"), kind="wrapped", element="i64", offset=5),
    *(
        r
        for rows_, size, offset in ((3, 5, 5), (3, 5, 6), (7, 4, 4))
        for r in of_runs(
            f"trap 39: {rows_} rows, negative ones moved up by {offset}, are written in two parts",
            *(range(-rows_ - size - 2, size + 2), rows_, size, "wrapped"),
            offset=offset,
        )
    ),
    (ONE_WINDOW, 1, 4, range(-7, 6), "guarded_dynamic_update_slice", {"offset": 4}),
    (f"{NEXT}: 200 of i8", 200, 20, ALL_BASES, "while", {"element": "i8"}),
    (f"{NEXT}: 29 of i8", 29, 100, ALL_BASES, "while", {"element": "i8"}),
    (f"{NEXT}: 28 of i8", 28, 100, ALL_BASES, "shifted_rows", {"element": "i8"}),
    (f"{NEXT}: ui8", 10, 300, (0, 99, 250, 255), "while", {"element": "ui8"}),
]


@pytest.mark.parametrize(("rows_", "size", "bases", "rule", "how"), [pytest.param(*r[1:], id=r[0]) for r in RUNS])
def test_each_run_is_lowered_by_its_rule(rows_, size, bases, rule, how):
    check_run(rows_, size, bases, rule=rule, **how)


@pytest.mark.parametrize(("combiner", "kind"), [("assign", "rows"), ("subtract", "updated_rows")])
def test_trap_03_nothing_of_the_operands_size_is_made_besides_the_write(combiner, kind):
    lowered = hl.lower(run_text(rows(4, 5000, 2, combiner=combiner)), oob="spec")
    assert lowered.records[0].rule == f"shifted_{kind}"
    assert ops_of_size(lowered.text, 5000) == ["stablehlo.dynamic_update_slice"]


def test_trap_41_affine_indices_that_wrap():
    """base + iota in i8 wraps around; what wrapped to a negative number is dropped, what wrapped back is written."""
    executable = Executable(hl.lower(run_text(points(140, 200, index="i8"), "i8")).text, "exact")
    updates = np.arange(140) + 1.0
    for base in (-128, -20, 0, 100, 127):
        at = {(base + k + 128) % 256 - 128: value for k, value in enumerate(updates.tolist())}
        [result] = executable.run([np.zeros(200, np.float32), np.asarray(base, np.int8), f32(updates)])
        assert result.tolist() == [at.get(k, 0.0) for k in range(200)]
