"""The comparison of index programs is able to fail: each rule of runs, batches and constants, made wrong in one way.

A wrong variant replaces one step of the package; the same program passes without it, under the rule that is meant.
"""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from index_programs import Program, case_of
from rewrites import fault

import hlo_lower as hl
from hlo_lower.facts.forms.affine import AffineAnalysis
from hlo_lower.facts.scatter import classify, constant_map
from hlo_lower.facts.scatter.layout import Arrangement
from hlo_lower.lowering.scatter import constant, many_windows, one_window
from hlo_lower.ops.axes.parts import ShiftedTile
from hlo_lower.verify.judges.definitions import combine_of, scatter
from hlo_lower.verify.run import Executable


def run_of(size, rows, combiner="assign", offset=0, element="i32", direction="add"):
    """A run of rows at a runtime base, its negative indices normalised where there is an offset."""
    program, shape = Program(element), (rows,)
    x = program.elementwise(direction, program.broadcast(program.argument(()), shape, ()), program.iota(shape, 0))
    if offset:
        x = program.normalized(x, offset)
    bases = range(-rows - 1, size + rows + 1) if element == "i32" else [100, 120, 127, -100, -128, 0]
    return case_of(program, [x], [0], shape, (size, 2), (1, 2), combiner), [[np.asarray(b)] for b in bases]


def batch_of(count, size, combiner="assign"):
    """A row for each batch coordinate, at a runtime start."""
    program, shape = Program("i32"), (count,)
    columns = [program.iota(shape, 0), program.argument(shape)]
    rng = np.random.default_rng(0)
    starts = [rng.integers(-2, size + 2, shape) for _ in range(4)]
    return case_of(program, columns, [0, 1], shape, (count, size), (1, 1), combiner), [[s] for s in starts]


def row_of(size):
    """One row at a runtime start, in bounds and out of them."""
    program = Program("i32")
    case = case_of(program, [program.argument((1,))], [0], (1,), (size, 2), (1, 2), "assign")
    return case, [[np.asarray([start])] for start in range(-2, size + 2)]


def constant_of(values, size=12, combiner="assign"):
    """Rows at constant places."""
    program = Program("i32")
    return case_of(program, [program.constant(values)], [0], (len(values),), (size, 2), (1, 2), combiner), [[]]


MANY = [(7 * k) % 37 for k in range(74)]  # each row twice, in no even order

CASES = {
    "shifted_rows": run_of(5, 3),
    "shifted_updated_rows": run_of(5, 3, "mixed"),
    "reversed shifted_rows": run_of(5, 3, direction="subtract"),
    "wrapped_rows": run_of(5, 3, offset=5),
    "long wrapped_rows": run_of(3, 5, offset=3),
    "wrapped_updated_rows": run_of(5, 3, "mixed", offset=5),
    "unrolled": batch_of(3, 5),
    "select_per_batch": batch_of(18, 5, "mixed"),
    "short_operand=99 guarded_short_set": row_of(5),
    "constant_slices": constant_of([5, 4, 3, 8, 9]),
    "strided_select": constant_of([1, 4, 7, 10]),
    "constant_gather": constant_of(MANY, 40),
    "narrow while": run_of(20, 200, element="i8"),
}


def rule_of(name):
    """The rule that a program is for."""
    return name.split(" ")[-1]


def preferred(name):
    """That rule, and the costs under which it is taken."""
    return (rule_of(name), *(word for word in name.split(" ") if "=" in word))


def difference(name):
    """The first arguments for which what is lowered differs from the reference; None where there are none."""
    case, given = CASES[name]
    graph = hl.read(case.text)
    combine = combine_of(graph.scatters[0].raw, {})
    lowered = hl.lower(case.text, prefer=preferred(name))
    executable = Executable(lowered.text, "exact")
    rng = np.random.default_rng(1)
    for values in given:
        arguments = [np.asarray(v).astype({"i8": np.int8}.get(case.program.given, np.int32)) for v in values]
        operand, updates = (rng.integers(-50, 50, shape).astype(np.int32) for shape in (case.operand, case.updates))
        index = case.program.run(arguments)[case.index]
        [expected] = scatter([operand], index, [updates], case.numbers, combine, [np.dtype(np.int32)], oob="xla")
        [found] = executable.run([operand, updates, *arguments])
        if not np.array_equal(found, expected):
            return values
    return None


@pytest.mark.few(4)
@pytest.mark.parametrize("name", CASES)
def test_the_right_rule_is_right(name):
    """Without a fault each program is lowered by the rule that it is for, and gives what the reference gives."""
    assert hl.lower(CASES[name][0].text, prefer=preferred(name)).records[0].rule == rule_of(name)
    assert difference(name) is None


# --- faults ---


def with_layout(monkeypatch, change):
    """Change each run that is found."""
    right = classify.lay_out

    def wrong(*given, **keywords):
        layout = right(*given, **keywords)
        return replace(layout, runs=tuple(change(run) for run in layout.runs))

    monkeypatch.setattr(classify, "lay_out", wrong)


def with_map(monkeypatch, change):
    """Change each map of constant windows."""
    right = classify.solve

    def wrong(*given, **keywords):
        solved = right(*given, **keywords)
        return None if solved is None else change(solved)

    monkeypatch.setattr(classify, "solve", wrong)


def parts_in_the_other_order(monkeypatch):
    right = Arrangement.parts.fget
    monkeypatch.setattr(Arrangement, "parts", property(lambda self: right(self)[::-1]))


@fault(one_window, "_write")
def second_window_always_written(right, *given):
    return right(*given[:-2], None, given[-1])


def second_window_left_out(monkeypatch):
    with_layout(monkeypatch, lambda run: replace(run, is_wrapped=False))


def reversal_ignored(monkeypatch):
    with_layout(monkeypatch, lambda run: replace(run, is_reversed=False))


@fault(ShiftedTile, "is_covered")
def mask_off_by_one(right, self, build):
    return right(replace(self, sizes=tuple(n - (d in self.shifts) for d, n in enumerate(self.sizes))), build)


@fault(ShiftedTile, "align")
def shift_in_the_other_direction(right, self, build, value):
    shifts = {d: build.elementwise("negate", s) for d, s in self.shifts.items()}
    return right(replace(self, shifts=shifts), build, value)


@fault(Arrangement, "first_of")
def last_row_taken_as_the_first(_right, self, build, run, last):
    return last


@fault(AffineAnalysis, "is_exact")
def wrap_around_ignored(_right, *_):
    return True


@fault(Arrangement, "indices")
def start_clamped(right, self, build, part):
    value = right(self, build, part)
    low, high = (build.constant(n, (), value.element_type) for n in (0, self.scatter.operand_shape[-1] - 1))
    return build.clamp(low, value, high)


@fault(many_windows, "slice_along")
def rows_of_another_coordinate(right, build, value, axis, start, size):
    return right(build, value, axis, value.static_shape[axis] - size - start, size)


def first_writer_kept(monkeypatch):
    def unique(from_behind, *, return_index):
        assert return_index
        written = np.unique(from_behind)
        return written, np.array([np.flatnonzero(from_behind == row)[-1] for row in written])

    monkeypatch.setattr(constant_map, "np", SimpleNamespace(**{**vars(np), "unique": unique}))


def pieces_not_reversed(monkeypatch):
    with_map(monkeypatch, lambda m: replace(m, pieces=tuple(replace(p, is_reversed=False) for p in m.pieces)))


@fault(constant.FlatRows, "spread")
def stride_off_by_one(right, self, v, axis, low, high, gap):
    return right(self, v, axis, low + 1, high - 1, gap)


@pytest.mark.few(4)
@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("shifted_rows", mask_off_by_one),
        ("shifted_rows", shift_in_the_other_direction),
        ("reversed shifted_rows", reversal_ignored),
        ("shifted_updated_rows", mask_off_by_one),
        ("long wrapped_rows", parts_in_the_other_order),
        ("wrapped_rows", second_window_left_out),
        ("wrapped_rows", last_row_taken_as_the_first),
        ("wrapped_updated_rows", second_window_always_written),
        ("wrapped_updated_rows", second_window_left_out),
        ("narrow while", wrap_around_ignored),
        ("unrolled", rows_of_another_coordinate),
        ("select_per_batch", start_clamped),
        ("short_operand=99 guarded_short_set", start_clamped),
        ("constant_slices", pieces_not_reversed),
        ("strided_select", stride_off_by_one),
        ("constant_gather", first_writer_kept),
    ],
    ids=lambda v: v if isinstance(v, str) else v.__name__,
)
def test_a_wrong_rule_is_caught(name, wrong, monkeypatch):
    """A rule that is wrong in one way gives something else than the reference."""
    wrong(monkeypatch)
    assert difference(name) is not None
