"""Layouts: runs, coordinates, repeated and loose positions, a hit and a near miss for each."""

import sys
from pathlib import Path

import numpy as np
import pytest

import hlo_lower as hl
from hlo_lower.base.english import told
from hlo_lower.facts.ranges.index_facts import IndexAnalysis
from hlo_lower.facts.scatter.canonical import canonicalize
from hlo_lower.facts.scatter.classify import classify
from hlo_lower.facts.scatter.facts import FloatMode, InBounds, OutOfBounds, Parts
from hlo_lower.ops.subset import Subset

sys.path.insert(0, str(Path(__file__).parents[1] / "lowerings"))
from index_programs import Program, case_of


def facts(program, columns, order, shape, operand, *, window=None, batching=(), combiner="assign", oob="xla"):
    """The facts of a scatter with computed columns; extent 1 in indexed dims and whole in the others by default."""
    fixed = {*order, *batching}
    window = window or tuple(1 if d in fixed else n for d, n in enumerate(operand))
    inserted = [d for d in sorted(order) if window[d] == 1]
    case = case_of(program, columns, order, shape, operand, window, combiner, inserted, batching=batching)
    graph = hl.read(case.text)
    scatter = canonicalize(graph.scatters[0])
    return classify(scatter, IndexAnalysis(graph), OutOfBounds(oob), FloatMode.EXACT)


def base(program, shape, dims=()):
    """A runtime base, one for each position along dims."""
    return program.broadcast(program.argument(tuple(shape[d] for d in dims)), shape, dims)


def run(program, shape, along=0, dims=(), op="add"):
    """base + iota along a scatter dim."""
    return program.elementwise(op, base(program, shape, dims), program.iota(shape, along))


def runs_of(found):
    """The runs in short: (operand dim, scatter dim, size, flags)."""
    flags = (("is_reversed", "reversed"), ("is_wrapped", "wrapped"))
    return [
        (r.operand_dim, r.scatter_dim, r.size, *(word for name, word in flags if getattr(r, name)))
        for r in found.layout.runs
    ]


def test_a_run_is_one_window():
    """base + iota is a run of rows, whose positions merge into the window."""
    program = Program("i32")
    found = facts(program, [run(program, (3,))], [0], (3,), (8, 4))
    assert runs_of(found) == [(0, 0, 3)]
    assert (found.layout.window, found.layout.positions, found.subset) == ((3, 4), 1, Subset.ROWS)
    assert (found.masked_dims, found.parts) == ((0,), Parts.ONE)


def test_a_run_down_is_reversed():
    """base - iota is a run whose first position writes the last row."""
    program = Program("i32")
    assert runs_of(facts(program, [run(program, (3,), op="subtract")], [0], (3,), (8,))) == [(0, 0, 3, "reversed")]


@pytest.mark.parametrize("stride", [2, -2])
def test_a_stride_is_no_run(stride):
    """Rows that leave others out in between are placed one by one."""
    program = Program("i32")
    strided = program.elementwise("multiply", program.iota((3,), 0), program.constant(np.full((3,), stride)))
    found = facts(program, [program.elementwise("add", base(program, (3,)), strided)], [0], (3,), (8,))
    assert (runs_of(found), found.layout.loose) == ([], (0,))


def test_a_window_of_rows_is_no_run():
    """Windows of two rows at consecutive starts overlap."""
    program = Program("i32")
    found = facts(program, [run(program, (3,))], [0], (3,), (8, 4), window=(2, 4))
    assert (runs_of(found), found.layout.loose) == ([], (0,))


@pytest.mark.parametrize(("offset", "expected"), [(8, True), (9, True), (7, False)])
def test_a_wrapped_run(offset, expected):
    """Negative rows moved up by the extent or more are a run in two parts; by less, they land among the others
    (trap 39)."""
    program = Program("i32")
    found = facts(program, [program.normalized(run(program, (3,)), offset)], [0], (3,), (8,))
    assert runs_of(found) == ([(0, 0, 3, "wrapped")] if expected else [])
    assert found.parts is (Parts.SEVERAL if expected else Parts.ONE)


def test_a_normalised_run_that_goes_down_is_loose():
    """Of a reversed run the two parts would come in the other order."""
    program = Program("i32")
    found = facts(program, [program.normalized(run(program, (3,), op="subtract"), 8)], [0], (3,), (8,))
    assert (runs_of(found), found.layout.loose) == ([], (0,))


def test_a_coordinate_is_a_run_or_a_batch():
    """iota over a whole dim merges where nothing else moves along it, and is a batch where another start does."""
    program = Program("i32")
    found = facts(program, [program.iota((3,), 0), base(program, (3,))], [0, 1], (3,), (3, 8))
    assert (runs_of(found), found.layout.batch, found.layout.positions) == ([(0, 0, 3)], (), 1)
    program = Program("i32")
    found = facts(program, [program.iota((3,), 0), program.argument((3,))], [0, 1], (3,), (3, 8))
    assert (runs_of(found), found.layout.batch, found.subset) == ([], ((0, 0),), Subset.BATCHED_TILE)


def test_an_iota_over_a_part_is_no_coordinate():
    """Rows 0 to 2 of four, placed by data in the other dim, are loose."""
    program = Program("i32")
    found = facts(program, [program.iota((3,), 0), program.argument((3,))], [0, 1], (3,), (4, 8))
    assert (found.layout.batch, found.layout.loose) == ((), (0,))


def test_explicit_batching_dims():
    """A batching dim is a coordinate without a column: a batch where the start moves along it, else merged."""
    program = Program("i32")
    found = facts(program, [program.argument((3,))], [1], (3,), (3, 8), batching=(0,))
    assert (found.layout.batch, found.subset) == (((0, 0),), Subset.BATCHED_TILE)
    program = Program("i32")
    found = facts(program, [base(program, (3,))], [1], (3,), (3, 8), batching=(0,))
    assert (runs_of(found), found.layout.window) == ([(0, 0, 3)], (3, 1))


def test_a_run_in_each_batch():
    """base[b] + iota is a run in one dim for each batch coordinate: ragged prefill."""
    program, shape = Program("i32"), (3, 2)
    found = facts(program, [program.iota(shape, 0), run(program, shape, 1, (0,))], [0, 1], shape, (3, 8))
    assert (runs_of(found), found.layout.batch) == ([(1, 1, 2)], ((0, 0),))
    assert (found.layout.window, found.layout.kept_shape) == ((1, 2), (3,))


@pytest.mark.parametrize("combiner", ["assign", "add"])
def test_repeated_positions(combiner):
    """Positions along which nothing moves write one place: assigned, the last one counts; combined, each does."""
    program, shape = Program("i32"), (4,)
    found = facts(program, [base(program, shape)], [0], shape, (8, 2), combiner=combiner)
    assigned = combiner == "assign"
    assert (found.layout.repeated, found.layout.loose) == (((0,), ()) if assigned else ((), (0,)))
    assert found.subset is (Subset.TILE if assigned else Subset.FILTER)


def test_an_empty_index_vector():
    """With K = 0 all positions write the one window at 0: assigned, the last one is all that is left (trap 11)."""
    program = Program("i32")
    assert facts(program, [], [], (4,), (8, 2)).subset is Subset.FULL
    program = Program("i32")
    assert facts(program, [], [], (4,), (8, 2), combiner="add").layout.loose == (0,)


def test_a_page_is_a_window_of_the_loop():
    """16 * page[i] + iota: the rows of a page are one window, the pages are placed by data."""
    program, shape = Program("i32"), (3, 16)
    start = program.elementwise("multiply", base(program, shape, (0,)), program.constant(np.full(shape, 16)))
    found = facts(program, [program.elementwise("add", start, program.iota(shape, 1))], [0], shape, (64, 4))
    assert (runs_of(found), found.layout.loose) == ([(0, 1, 16)], (0,))
    assert (found.layout.window, found.layout.positions) == ((16, 4), 3)


def test_a_run_that_shifts_with_a_loose_position_in_its_front_keeps_its_order():
    """iota + page[i] along (rows, pages): rows of different pages may meet, so the rows in front are not merged."""
    program, shape = Program("i32"), (4, 3)
    found = facts(program, [run(program, shape, 0, (1,))], [0], shape, (8, 4))
    assert (runs_of(found), found.layout.loose) == ([], (0, 1))


def test_two_dims_that_move_together_are_loose():
    """A diagonal at a runtime base moves in two dims along one position."""
    program, shape = Program("i32"), (4,)
    found = facts(program, [run(program, shape), run(program, shape)], [0, 1], shape, (8, 8))
    assert (runs_of(found), found.layout.loose) == ([], (0,))


def wrapped(count):
    """A scatter with so many wrapped runs, one along each scatter dim."""
    program, shape = Program("i32"), (2, 3, 2)[:count]
    columns = [program.normalized(run(program, shape, n), 8) for n in range(count)]
    return facts(program, columns, list(range(count)), shape, (8,) * count)


def test_two_wrapped_runs_merge_and_a_third_is_loose():
    """Each wrapped run doubles the windows that are written: two of them make four, and a third one is not merged."""
    assert runs_of(wrapped(2)) == [(0, 0, 2, "wrapped"), (1, 1, 3, "wrapped")]
    found = wrapped(3)
    assert len(found.layout.runs) <= 2
    assert found.layout.loose


@pytest.mark.parametrize(
    ("element", "rows", "extent", "expected"),
    [
        ("i8", 20, 100, True),
        ("i8", 28, 100, True),
        ("i8", 29, 100, False),
        ("i8", 200, 20, False),  # base 120: 120 + 136 is 0, back in range
        ("ui8", 3, 8, False),
        ("ui32", 3, 8, False),
        ("i32", 200, 20, True),
        ("i64", 3, 8, True),
    ],
)
def test_wrap_around_of_the_index_type(element, rows, extent, expected):
    """A run holds where what wraps around stays negative; of an unsigned type it lands inside again (trap 41)."""
    program = Program(element)
    found = facts(program, [run(program, (rows,))], [0], (rows,), (extent,))
    assert bool(found.layout.runs) == expected


def test_an_unsigned_run_that_cannot_wrap_around():
    """With a bounded base an unsigned run is one; its end may lie outside."""
    program, shape = Program("ui8"), (5,)
    start = program.elementwise("minimum", program.argument(()), program.constant(20))
    start = program.broadcast(start, shape, ())
    found = facts(program, [program.elementwise("add", start, program.iota(shape, 0))], [0], shape, (22,))
    assert runs_of(found) == [(0, 0, 5)]


def test_a_narrow_unsigned_index_of_a_long_dim_is_no_run():
    """Where every ui8 lies inside, a base of 250 still wraps around from 255 to 0."""
    program = Program("ui8")
    assert not facts(program, [run(program, (10,))], [0], (10,), (300,)).layout.runs


def test_a_narrow_signed_index_moved_into_a_long_dim_is_no_run():
    """An i8 run that is widened and moved up by 150 lies inside of 300 rows, and still wraps around within."""
    program = Program("i8")
    wide = program.convert(run(program, (10,)), "i32")
    moved = program.elementwise("add", wide, program.constant(np.full((10,), 150)))
    assert not facts(program, [moved], [0], (10,), (300,)).layout.runs


def test_an_index_that_is_narrowed_after_its_normalisation():
    """500 rows that are normalised in i32 and then converted to i8 wrap around more than once."""
    program, shape = Program("i32"), (500,)
    moved = program.normalized(run(program, shape), 100)
    assert not facts(program, [program.convert(moved, "i8")], [0], shape, (100,)).layout.runs


def test_a_run_longer_than_its_dim():
    """More rows than the operand has are a run; those outside are dropped."""
    program = Program("i32")
    found = facts(program, [run(program, (9,))], [0], (9,), (4,))
    assert (runs_of(found), found.layout.window, found.in_bounds) == ([(0, 0, 9)], (9,), InBounds.UNKNOWN)


def test_a_batch_coordinate_in_front_of_a_loose_position_is_kept():
    """An explicit batching dim along which no start moves, in front of added updates on one place, is not lost."""
    program, shape = Program("i32"), (3, 2)
    found = facts(program, [base(program, shape)], [1], shape, (3, 8), batching=(0,), combiner="add")
    assert found.layout.loose == (1,)
    assert runs_of(found) == [(0, 0, 3)] or found.layout.batch == ((0, 0),)


def test_the_layout_says_why():
    """Each column is put into words: a base and positions, or what places it."""
    program = Program("i32")
    [column] = facts(program, [run(program, (3,))], [0], (3,), (8,)).layout.why
    assert told(column) == "dim 0: a runtime base + p0"
    program = Program("i32")
    column, loose = facts(program, [program.argument((3,))], [0], (3,), (8,)).layout.why
    assert told(column) == "dim 0: placed by argument 2 of @main"
    assert told(loose) == "p0 is loose: dim 0 is placed by argument 2 of @main"
