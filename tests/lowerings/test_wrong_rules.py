"""The comparison of index programs is able to fail: each rule of runs, batches and constants, made wrong in one way.

A wrong variant replaces one step of the package; the same program passes without it, under the rule that is meant.
"""

from collections import namedtuple
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from rewrites import fault, results
from untyped_mlir import module, of

import hlo_lower as hl
from hlo_lower.facts.forms.affine import AffineAnalysis
from hlo_lower.facts.scatter import classify, constant_map
from hlo_lower.facts.scatter.layout import Arrangement
from hlo_lower.lowering.scatter import constant, many_windows, one_window
from hlo_lower.ops.axes.parts import ShiftedTile

MIXED = "%old, %new: %m = multiply %old, 3; %s = subtract %m, %new; return %s"
"""Neither commutative nor associative: any other order or count of updates gives other numbers."""
Program = namedtuple("Program", "text shapes")


def rows_at(lines, rows, size, given, argument="", body="assign"):
    """Rows of two numbers at %k, which the lines compute from an argument, and values of that."""
    arguments = [f"%o: {size}x2xi32", f"%u: {rows}x2xi32", *([f"%a: {argument}"] if argument else [])]
    text = f"{lines}\n%r = scatter(%o, %k, %u) <window=[1], inserted=[0], to=[0], ivd=1> {{{body}}}"
    return Program(module(", ".join(arguments), text), [(size, 2), (rows, 2)]), given


def run_of(size, rows, body="assign", offset=0, element="i32", direction="add"):
    """A run of rows at a runtime base, its negative indices normalised where there is an offset."""
    x = of([rows], element)
    lines = f"%b = broadcast_in_dim %a, dims = [] -> {x}; %p = iota dim = 0 : {x}; %v = {direction} %b, %p\n"
    lines += f"%n = compare LT, %v, 0, SIGNED; %w = add %v, {offset}; %k = select %n, %w, %v"
    bases = range(-rows - 1, size + rows + 1) if element == "i32" else [100, 120, 127, -100, -128, 0]
    given = [np.asarray(base, np.int32 if element == "i32" else np.int8) for base in bases]
    return rows_at(lines if offset else lines.partition("\n")[0].replace("%v", "%k"), rows, size, given, element, body)


def batch_of(count, size, body="assign"):
    """A number for each batch coordinate, at a runtime start."""
    x = f"{count}x1xi32"
    lines = f"%p = iota dim = 0 : {x}; %k = concatenate %p, %a, dim = 1"
    text = f"{lines}\n%r = scatter(%o, %k, %u) <inserted=[0, 1], to=[0, 1], ivd=1> {{{body}}}"
    rng = np.random.default_rng(0)
    given = [rng.integers(-2, size + 2, (count, 1)).astype(np.int32) for _ in range(4)]
    text = module(f"%o: {count}x{size}xi32, %u: {count}xi32, %a: {x}", text)
    return Program(text, [(count, size), (count,)]), given


def constant_of(values, size=12):
    """Rows at constant places."""
    return rows_at(f"%k = constant {list(values)} : {len(values)}xi32", len(values), size, [None])


ROW = rows_at("%k = reshape %a -> 1xi32", 1, 5, [np.asarray([start], np.int32) for start in range(-2, 7)], "1xi32")
CASES = {
    "shifted_rows": run_of(5, 3),
    "shifted_updated_rows": run_of(5, 3, MIXED),
    "reversed shifted_rows": run_of(5, 3, direction="subtract"),
    "wrapped_rows": run_of(5, 3, offset=5),
    "long wrapped_rows": run_of(3, 5, offset=3),
    "wrapped_updated_rows": run_of(5, 3, MIXED, offset=5),
    "unrolled": batch_of(3, 5),
    "select_per_batch": batch_of(18, 5, MIXED),
    "short_operand=99 guarded_short_set": ROW,
    "constant_slices": constant_of([5, 4, 3, 8, 9]),
    "strided_select": constant_of([1, 4, 7, 10]),
    "constant_gather": constant_of([(7 * k) % 37 for k in range(74)], 40),  # each row twice, in no even order
    "narrow while": run_of(20, 200, element="i8"),
}


def rule_of(name):
    """The rule that a program is for."""
    return name.split(" ")[-1]


def lowered(name):
    """A program lowered by that rule, at the costs under which it is taken."""
    return hl.lower(CASES[name][0].text, prefer=(rule_of(name), *(word for word in name.split(" ") if "=" in word)))


def difference(name):
    """The first arguments for which what is lowered differs from XLA's own scatter; None where there are none."""
    (before, shapes), values = CASES[name]
    after, rng = lowered(name), np.random.default_rng(1)
    for value in values:
        numbers = [rng.integers(-50, 50, shape).astype(np.int32) for shape in shapes]
        given = [*numbers, *([] if value is None else [value])]
        if not np.array_equal(*(results(one, *given, rounding="exact")[0] for one in (before, after))):
            return given
    return None


@pytest.mark.parametrize("name", CASES)
def test_the_right_rule_is_right(name):
    """Without a fault each program is lowered by the rule that it is for, and gives what XLA gives."""
    assert lowered(name).records[0].rule == rule_of(name)
    assert difference(name) is None


def parts_in_the_other_order(monkeypatch):
    right = Arrangement.parts.fget
    monkeypatch.setattr(Arrangement, "parts", property(lambda self: right(self)[::-1]))


@fault(one_window, "_write")
def second_window_always_written(right, *given):
    return right(*given[:-2], None, given[-1])


@fault(classify, "lay_out")
def second_window_left_out(right, *given, **how):
    layout = right(*given, **how)
    return replace(layout, runs=tuple(replace(run, is_wrapped=False) for run in layout.runs))


@fault(classify, "lay_out")
def reversal_ignored(right, *given, **how):
    layout = right(*given, **how)
    return replace(layout, runs=tuple(replace(run, is_reversed=False) for run in layout.runs))


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


@fault(classify, "solve")
def pieces_not_reversed(right, *given, **how):
    solved = right(*given, **how)
    return solved and replace(solved, pieces=tuple(replace(piece, is_reversed=False) for piece in solved.pieces))


@fault(constant.FlatRows, "spread")
def stride_off_by_one(right, self, v, axis, low, high, gap):
    return right(self, v, axis, low + 1, high - 1, gap)


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
    """A rule that is wrong in one way gives something else than XLA."""
    wrong(monkeypatch)
    assert difference(name) is not None
