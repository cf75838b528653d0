"""Layouts: runs, coordinates, repeated and loose positions, a hit and a near miss for each."""

import pytest
from placed import placed
from untyped_mlir import of

import hlo_lower as hl
from hlo_lower.base.english import phrase
from hlo_lower.facts.ranges.index_facts import IndexAnalysis
from hlo_lower.facts.scatter.canonical import canonicalize
from hlo_lower.facts.scatter.classify import classify
from hlo_lower.facts.scatter.facts import FloatMode, InBounds, OutOfBounds, Parts
from hlo_lower.ops.subset import Subset


def facts(lines, operand, shape=(3,), order=(0,), given="i32", **options):
    """The facts of a scatter at the columns %x, %y, ... that the lines define of the arguments %b, a scalar, %b0 and
    %b1, of the length of a scatter dim, and %v, of their shape."""
    columns = [name for name in ("%x", "%y", "%z") if f"{name} =" in lines]
    types = {"%b": (), "%b0": shape[:1], "%b1": shape[1:2], "%v": shape}
    arguments = ", ".join(f"{name}: {of(sizes, given)}" for name, sizes in types.items())
    text = placed(lines, columns, order, shape, operand, arguments=arguments, **{"index": given, **options})
    graph = hl.read(text)
    scatter = canonicalize(graph.scatters[0])
    return classify(scatter, IndexAnalysis(graph), OutOfBounds.XLA, FloatMode.EXACT)


def base(shape=(3,), dims=(), name="%x", element="i32"):
    """A runtime base, one for each position along dims."""
    given = f"%b{dims[0]}" if dims else "%b"
    return f"{name} = broadcast_in_dim {given}, dims = {list(dims)} -> {of(shape, element)}\n"


def run(shape=(3,), along=0, dims=(), op="add", name="%x", element="i32"):
    """base + iota along a scatter dim."""
    iota = f"{name}_i = iota dim = {along} : {of(shape, element)}\n"
    return base(shape, dims, f"{name}_b", element) + iota + f"{name} = {op} {name}_b, {name}_i\n"


def normalised(offset, *given, name="%x", **options):
    """A run of which what is negative is moved up."""
    lines = run(*given, name=f"{name}_n", **options)
    return lines + (
        f"{name}_p = compare LT, {name}_n, 0; {name}_m = add {name}_n, {offset}\n"
        f"{name} = select {name}_p, {name}_m, {name}_n\n"
    )


ROW_IOTA = "%x = iota dim = 0 : 3xi32\n"
TWO = {"order": (0, 1)}
CASES = {
    "base + iota is a run of rows, whose positions merge into the window": (
        run(), (8, 4), {},
        {"runs": [(0, 0, 3)], "window": (3, 4), "positions": 1, "subset": Subset.ROWS, "masked_dims": (0,),
         "parts": Parts.ONE},
    ),
    "a run down is reversed": (run(op="subtract"), (8,), {}, {"runs": [(0, 0, 3, "reversed")]}),
    "rows that leave others out are no run": (
        base(name="%a") + ROW_IOTA.replace("%x", "%i") + "%s = multiply %i, 2; %x = add %a, %s", (8,), {},
        {"runs": [], "loose": (0,)},
    ),
    "windows of two rows at consecutive starts overlap": (
        run(), (8, 4), {"window": (2, 4)}, {"runs": [], "loose": (0,)},
    ),
    # negative rows moved up by less than the extent land among the others (trap 39)
    "a wrapped run": (normalised(8), (8,), {}, {"runs": [(0, 0, 3, "wrapped")], "parts": Parts.SEVERAL}),
    "wrapped too little": (normalised(7), (8,), {}, {"runs": [], "parts": Parts.ONE}),
    "of a reversed run the two parts would come in the other order": (
        normalised(8, op="subtract"), (8,), {}, {"runs": [], "loose": (0,)},
    ),
    "iota over a whole dim merges where nothing else moves along it": (
        ROW_IOTA + base(name="%y"), (3, 8), TWO, {"runs": [(0, 0, 3)], "batch": (), "positions": 1},
    ),
    "iota over a whole dim is a batch where another start moves along it": (
        ROW_IOTA + "%y = negate %v", (3, 8), TWO, {"runs": [], "batch": ((0, 0),), "subset": Subset.BATCHED_TILE},
    ),
    "a batching dim is a coordinate without a column": (
        "%x = negate %v", (3, 8), {"order": (1,), "batching": (0,)},
        {"batch": ((0, 0),), "subset": Subset.BATCHED_TILE},
    ),
    "a batching dim along which no start moves is merged": (
        base(), (3, 8), {"order": (1,), "batching": (0,)}, {"runs": [(0, 0, 3)], "window": (3, 1)},
    ),
    "base[b] + iota is a run in each batch: ragged prefill": (
        "%x = iota dim = 0 : 3x2xi32\n" + run((3, 2), 1, (0,), name="%y"), (3, 8), {"shape": (3, 2), **TWO},
        {"runs": [(1, 1, 2)], "batch": ((0, 0),), "window": (1, 2), "kept_shape": (3,)},
    ),
    "of positions assigned to one place the last one counts": (
        base((4,)), (8, 2), {"shape": (4,)}, {"repeated": (0,), "loose": (), "subset": Subset.TILE},
    ),
    "of positions combined at one place each counts": (
        base((4,)), (8, 2), {"shape": (4,), "combiner": "add"},
        {"repeated": (), "loose": (0,), "subset": Subset.FILTER},
    ),
    # with K = 0 all positions write the one window at 0 (trap 11)
    "an empty index vector, assigned": ("", (8, 2), {"shape": (4,), "order": ()}, {"subset": Subset.FULL}),
    "an empty index vector, added": ("", (8, 2), {"shape": (4,), "order": (), "combiner": "add"}, {"loose": (0,)}),
    "16 * page[i] + iota: the rows of a page are one window, the pages are placed by data": (
        base((3, 16), (0,), "%p") + "%s = multiply %p, 16; %i = iota dim = 1 : 3x16xi32; %x = add %s, %i", (64, 4),
        {"shape": (3, 16)}, {"runs": [(0, 1, 16)], "loose": (0,), "window": (16, 4), "positions": 3},
    ),
    "rows of different pages may meet, so rows in front of loose pages are not merged": (
        run((4, 3), 0, (1,)), (8, 4), {"shape": (4, 3)}, {"runs": [], "loose": (0, 1)},
    ),
    "a diagonal at a runtime base moves in two dims along one position": (
        run((4,)) + run((4,), name="%y"), (8, 8), {"shape": (4,), **TWO}, {"runs": [], "loose": (0,)},
    ),
    "each wrapped run doubles the windows that are written": (
        normalised(8, (2, 3)) + normalised(8, (2, 3), 1, name="%y"), (8, 8), {"shape": (2, 3), **TWO},
        {"runs": [(0, 0, 2, "wrapped"), (1, 1, 3, "wrapped")]},
    ),
    "an iota over a part is no coordinate": (ROW_IOTA + "%y = negate %v", (4, 8), TWO, {"batch": (), "loose": (0,)}),
    "a run longer than its dim: rows outside are dropped": (
        run((9,)), (4,), {"shape": (9,)}, {"runs": [(0, 0, 9)], "window": (9,), "in_bounds": InBounds.UNKNOWN},
    ),
    # a run holds where what wraps around stays negative; of an unsigned type it lands inside again (trap 41)
    **{
        f"{rows} rows of {element} into {extent}": (
            run((rows,), element=element), (extent,), {"shape": (rows,), "given": element},
            {"runs": [(0, 0, rows)] if is_run else []},
        )
        for element, rows, extent, is_run in (
            ("i8", 20, 100, True), ("i8", 28, 100, True), ("i8", 29, 100, False),
            ("i8", 200, 20, False),  # base 120: 120 + 136 is 0, back in range
            ("ui8", 3, 8, False), ("ui32", 3, 8, False), ("i32", 200, 20, True), ("i64", 3, 8, True),
            ("ui8", 10, 300, False),  # where every ui8 lies inside, a base of 250 still goes on at 0
        )
    },
    "with a bounded base an unsigned run is one; its end may lie outside": (
        "%m = minimum %b, 20\n" + run((5,), element="ui8").replace("%b,", "%m,"), (22,),
        {"shape": (5,), "given": "ui8"}, {"runs": [(0, 0, 5)]},
    ),
    "an i8 run that is widened and moved up by 150 still wraps around within 300 rows": (
        run((10,), name="%n", element="i8") + "%w = convert %n -> 10xi32; %x = add %w, 150", (300,),
        {"shape": (10,), "given": "i8", "index": "i32"}, {"runs": []},
    ),
    "500 rows that are normalised in i32 and then converted to i8 wrap around more than once": (
        normalised(100, (500,), name="%w") + "%x = convert %w -> 500xi8", (100,), {"shape": (500,), "index": "i8"},
        {"runs": []},
    ),
}  # fmt: skip


@pytest.mark.parametrize(("lines", "operand", "options", "expected"), CASES.values(), ids=CASES)
def test_layouts(lines, operand, options, expected):
    """Runs are (operand dim, scatter dim, size, flags); other facts as the layout or the classification names them."""
    found = facts(lines, operand, **options)
    flags = ("reversed", "wrapped")
    runs = [
        (r.operand_dim, r.scatter_dim, r.size, *(word for word in flags if getattr(r, f"is_{word}")))
        for r in found.layout.runs
    ]
    values = {name: getattr(found.layout if hasattr(found.layout, name) else found, name) for name in expected}
    assert {**values, "runs": runs} == {"runs": runs, **expected}


def test_what_is_not_merged():
    """Two wrapped runs make four windows, and a third one is loose. An explicit batching dim along which no start
    moves, in front of added updates on one place, is not lost."""
    shape = (2, 3, 2)
    lines = "".join(normalised(8, shape, n, name=name) for n, name in enumerate(("%x", "%y", "%z")))
    found = facts(lines, (8, 8, 8), shape, (0, 1, 2)).layout
    assert (len(found.runs) <= 2, bool(found.loose)) == (True, True)
    found = facts(base((3, 2)), (3, 8), (3, 2), (1,), batching=(0,), combiner="add").layout
    assert found.loose == (1,)
    assert [(r.operand_dim, r.scatter_dim, r.size) for r in found.runs] == [(0, 0, 3)] or found.batch == ((0, 0),)


def test_the_layout_says_why():
    """Each column is put into words: a base and positions, or what places it."""
    [column] = facts(run(), (8,)).layout.why
    assert phrase(column) == "dim 0: a runtime base + p0"
    column, loose = facts("%x = reshape %v -> 3xi32", (8,)).layout.why
    assert phrase(column) == "dim 0: placed by argument 5 of @main"
    assert phrase(loose) == "p0 is loose: dim 0 is placed by argument 5 of @main"
