"""Scatters of dynamic shape: lowered as they are or after their sizes are bound, and right also at sizes of 0."""

import re
from itertools import combinations
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest
from untyped_mlir import module, of

import hlo_lower as hl
from hlo_lower.ir import mlir
from hlo_lower.ir.shapes.bind import bind_module
from hlo_lower.ir.view import Graph
from hlo_lower.ir.writer import to_text
from hlo_lower.verify.drive.sample_sizes import sizes_of_module
from hlo_lower.verify.judges.definitions import ScatterNumbers, scatter
from hlo_lower.verify.regions import RegionJudge
from hlo_lower.verify.run import Executable

BODIES = {
    "assign": "assign",
    "add": "add",
    "mixed": "%c, %u: %k = constant 3 : i32; %m = multiply %c, %k; %s = subtract %m, %u; return %s",
}
COMBINE = {"assign": lambda c, u: u, "add": lambda c, u: [c[0] + u[0]], "mixed": lambda c, u: [c[0] * 3 - u[0]]}


def module_of(operand, indices, updates, dims, *, body="assign", index="i32", more="", lines="", at="%i"):
    """A scatter of i32 with these shapes, all as arguments: -1 is a size that is known at run time."""
    shapes = [["?" if size < 0 else size for size in shape] for shape in (operand, indices, updates)]
    o, i, u = (of(shape, element) for shape, element in zip(shapes, ("i32", index, "i32"), strict=True))
    values = {name: list(value) if isinstance(value, tuple) else value for name, value in vars(dims).items()}
    numbers = f"#stablehlo.scatter<{', '.join(f'{name} = {value}' for name, value in values.items())}>"
    line = f"%r = scatter(%o, {at}, %up) <scatter_dimension_numbers = {numbers}> {{{BODIES.get(body, body)}}}"
    return module(f"%o: {o}, %i: {i}, %up: {u}{more}", f"{lines}\n{line}")


def numbers(window_dims, inserted, to_operand, index_vector_dim):
    """Dimension numbers without batches."""
    return ScatterNumbers(window_dims, inserted, (), (), to_operand, index_vector_dim)


ROWS = numbers((1,), (0,), (0,), 1)
"""Rows of the operand, the index vector last."""
BATCHES = ScatterNumbers((2,), (1,), (0,), (0,), (1,), 2)

CASES = {
    "rows": ((-1, 4), (-1, 1), (-1, 4), ROWS, [(5, 4), (3, 1), (3, 4)]),
    "rows of run-time length": ((-1, -1), (-1, 1), (-1, -1), ROWS, [(5, 4), (3, 1), (3, 3)]),
    "one row": ((-1, 4), (1,), (4,), numbers((0,), (0,), (0,), 0), [(5, 4), (1,), (4,)]),
    "windows": ((-1, 6), (-1, 2), (-1, 2, 3), numbers((1, 2), (), (0, 1), 1), [(5, 6), (4, 2), (4, 2, 3)]),
    "run-time windows": ((-1, 6), (2, 1), (2, -1, 6), numbers((1, 2), (), (0,), 1), [(5, 6), (2, 1), (2, 3, 6)]),
    "points": ((-1, -1), (-1, -1, 2), (-1, -1), numbers((), (0, 1), (1, 0), 2), [(5, 4), (3, 2, 2), (3, 2)]),
    "batches": ((-1, 7, 4), (-1, 2, 1), (-1, 2, 4), BATCHES, [(3, 7, 4), (3, 2, 1), (3, 2, 4)]),
    "index vector first": ((-1, 5), (1, -1), (3, -1), numbers((0,), (1,), (1,), 0), [(4, 5), (1, 6), (3, 6)]),
    "implicit index vector": ((-1,), (-1,), (-1,), numbers((), (0,), (0,), 1), [(5,), (6,), (6,)]),
    "no index": ((-1, 4), (-1, 0), (-1, 2, 4), numbers((1, 2), (), (), 1), [(5, 4), (3, 0), (3, 2, 4)]),
    "scalar operand": ((), (-1, 0), (-1,), numbers((), (), (), 1), [(), (4, 0), (4,)]),
}


def bound(text, shapes):
    """A module with the sizes of these argument shapes."""
    graph = hl.read(text)
    given = [mlir.tensor_shape(value.raw.type) for value in graph.functions["main"].body.arguments]
    pairs = [
        (n, *pair) for n, (known, shape) in enumerate(zip(given, shapes, strict=True)) for pair in enumerate(shape)
    ]
    sizes = {f"arg{n}.{i}": size for n, i, size in pairs if given[n][i] is None}
    return to_text(Graph(bind_module(graph.module, sizes), "bound", has_locations=False))


def arguments(rng, shapes):
    """Random tensors, and indices around both ends of the operand."""
    o, u = (rng.integers(-99, 99, shape).astype(np.int32) for shape in (shapes[0], shapes[2]))
    values = rng.integers(-3, max((*shapes[0], 1)) + 2, shapes[1]).astype(np.int32)
    if rng.random() < 0.3 and values.size:
        values.flat[0] = 2**31 - 1 if rng.random() < 0.5 else -(2**31)
    return o, values, u


def reference(o, i, u, dims, combiner="assign", oob="xla"):
    """What the scatter of a module is."""
    return scatter([o], i, [u], dims, COMBINE[combiner], [np.dtype(np.int32)], oob=oob)[0]


def assert_right(name, oob, combiner, choices, draws, level="quick"):
    """Check that a case that is lowered without sizes holds no scatter, and is right at each choice of them."""
    operand, indices, updates, dims, _ = CASES[name]
    lowered = hl.lower(module_of(operand, indices, updates, dims, body=combiner), oob=oob)
    assert "stablehlo.scatter" not in lowered.text
    rng = np.random.default_rng(len(name))
    for shapes in choices:
        executable = Executable(bound(lowered.text, shapes), level)
        for _ in range(draws):
            given = arguments(rng, shapes)
            assert np.array_equal(executable.run(given)[0], reference(*given, dims, combiner, oob)), shapes


def zero_shapes(name):
    """The shapes of a case with 0 for one or more of its open sizes, where that is legal."""
    operand, _, updates, numbers, sizes = CASES[name]
    windows = set(numbers.update_window_dims)
    kept = [d for d in range(len(operand)) if d not in {*numbers.inserted_window_dims, *numbers.input_batching_dims}]
    window_of = dict(zip(kept, numbers.update_window_dims, strict=True))
    scatter_dims = [d for d in range(len(updates)) if d not in windows]
    index_dims = [d for d in range(len(sizes[1])) if d != numbers.index_vector_dim]
    index_of = dict(zip(scatter_dims, index_dims, strict=True))
    batch_of = dict(zip(numbers.scatter_indices_batching_dims, numbers.input_batching_dims, strict=True))
    open_sizes = [(0, d) for d, size in enumerate(operand) if size < 0 and d not in numbers.input_batching_dims]
    open_sizes += [(2, d) for d, size in enumerate(updates) if size < 0]
    for count in range(1, len(open_sizes) + 1):
        for chosen in combinations(open_sizes, count):
            shapes = [list(shape) for shape in sizes]
            for argument, d in chosen:
                shapes[argument][d] = 0
                if argument == 2 and d in index_of:
                    shapes[1][index_of[d]] = 0
                    if index_of[d] in batch_of:
                        shapes[0][batch_of[index_of[d]]] = 0
            if all(shapes[2][u] <= shapes[0][d] for d, u in window_of.items()):
                yield tuple(map(tuple, shapes))


POLY = Path(__file__).parents[2] / "shared/corpus/modules/jax_poly"
COMBINERS = ["assign", "add"], ["mixed"]
GRID = [(name, oob, c) for name in CASES for oob in ("xla", "spec") for c in COMBINERS[len(name) % 2]]


@pytest.mark.few(9)
@pytest.mark.parametrize(("name", "oob", "combiner"), GRID)
def test_what_is_lowered_without_sizes_is_right_with_them(name, oob, combiner):
    """The lowered module holds no scatter; with any sizes it computes what the reference does."""
    assert_right(name, oob, combiner, [CASES[name][4]], 6, "exact")


INDICES = {"i8": "int8", "ui8": "uint8", "ui32": "uint32", "i64": "int64", "ui64": "uint64"}


@pytest.mark.parametrize(("index", "dtype"), INDICES.items())
def test_index_types(index, dtype):
    """Bounds are built from sizes in a type that holds them, and no index changes its meaning (traps 6 and 7)."""
    shapes = [(200, 2), (5, 1), (5, 2)]
    lowered = hl.lower(module_of((-1, 2), (-1, 1), (-1, 2), ROWS, index=index))
    executable = Executable(bound(lowered.text, shapes), "exact")
    top = int(np.iinfo(dtype).max)
    i = np.array([[0], [top], [min(top, 199)], [min(top, 200)], [top - 1]], dtype)
    o, u = np.zeros((200, 2), np.int32), np.arange(1, 11, dtype=np.int32).reshape(5, 2)
    assert np.array_equal(executable.run([o, i, u])[0], reference(o, i, u, ROWS))


def test_trap_29_bounds_are_those_of_the_actual_size():
    """One lowered module is right at each size: a row that exists in the longer operand is dropped in the shorter."""
    lowered, results = hl.lower(module_of((-1, 2), (1, 1), (1, 2), ROWS)), {}
    for length in (3, 6):
        executable = Executable(bound(lowered.text, [(length, 2), (1, 1), (1, 2)]), "exact")
        o, i, u = np.zeros((length, 2), np.int32), np.array([[4]], np.int32), np.ones((1, 2), np.int32)
        results[length] = executable.run([o, i, u])[0].sum()
    assert results == {3: 0, 6: 2}


def test_trap_29_a_bounded_dimension_keeps_its_padding():
    """The size of a bounded dynamic dim is read from the tensor, never taken from its bound, and the bound stays."""
    text = module_of((-1, 2), (1, 1), (1, 2), ROWS)
    lowered = hl.lower(text.replace("tensor<?x2xi32>", "tensor<?x2xi32, #stablehlo.bounds<8, ?>>"))
    assert "get_dimension_size" in lowered.text
    assert "-> tensor<?x2xi32, #stablehlo.bounds<8, ?>>" in lowered.text
    assert "dense<7>" not in lowered.text


@pytest.mark.parametrize(
    ("shapes", "dims", "known", "proved"),
    [
        # whatever the sizes are, no window is larger than its operand
        (((-1, 4), (1,), (-1, 4)), ScatterNumbers((0, 1), (), (), (), (0,), 0), "", "unknown"),
        (((-1, 4), (1,), (-1, 4)), ScatterNumbers((0, 1), (), (), (), (0,), 0), "0 : 1xi32", "always"),
        # both the index and the size of its dim are known
        (((-1, 5), (2, 1), (-1, 2)), ScatterNumbers((0,), (1,), (), (), (1,), 1), "[[0], [4]] : 2x1xi32", "always"),
        (((-1, 5), (2, 1), (-1, 2)), ScatterNumbers((0,), (1,), (), (), (1,), 1), "[[0], [5]] : 2x1xi32", "unknown"),
    ],
)
def test_a_start_that_is_known_needs_no_guard(shapes, dims, known, proved):
    """A start of zero, and one that lies in a dim of known size, are proved, whatever else is dynamic."""
    text = module_of(*shapes, dims, **({"lines": f"%z = constant {known}", "at": "%z"} if known else {}))
    lowered = hl.lower(text)
    assert lowered.records[0].in_bounds == proved
    assert ("stablehlo.select" in lowered.text) == (proved == "unknown")


def test_a_captured_value_is_carried_into_the_loop():
    """What a region takes from around it comes into the loop's body, broadcast to windows of run-time extent."""
    body = "%c, %u: %s = add %k, %u; return %s"
    text = module_of((-1, -1), (-1, 1), (-1, -1), ROWS, body=body, more=", %k: i32")
    executable = Executable(bound(hl.lower(text).text, [(5, 4), (3, 1), (3, 4), ()]), "exact")
    o, i, u = np.zeros((5, 4), np.int32), np.array([[1], [9], [1]], np.int32), np.arange(12).reshape(3, 4)
    expected = o.copy()
    expected[1] = u[2] + 7
    assert np.array_equal(executable.run([o, i, u.astype(np.int32), np.asarray(7, np.int32)])[0], expected)


def test_variadic_and_promoting():
    """A variadic scatter with coupled results, and one whose region is wider than its operand."""
    text = module(
        "%a: ?xi32, %b: ?xf32, %i: ?x1xi32, %x: ?xi32, %y: ?xf32",
        """%r:2 = scatter(%a, %b, %i, %x, %y) <inserted=[0], to=[0], ivd=1> {^bb0(%c: i64, %d: f32, %u: i64, %v: f32):
          %p = compare LT, %d, %v; %m = select %p, %u, %c; %n = maximum %d, %v; return %m, %n
        } -> (?xi64, ?xf32)
        return %r#0, %r#1""",
    )
    executable = Executable(bound(hl.lower(text).text, [(4,), (4,), (6, 1), (6,), (6,)]), "exact")
    a, b = np.zeros(4, np.int32), np.zeros(4, np.float32)
    i = np.array([[0], [0], [3], [4], [0], [-1]], np.int32)
    x, y = np.arange(1, 7, dtype=np.int32), np.array([3, 5, -1, 9, 4, 9], np.float32)
    found = executable.run([a, b, i, x, y])
    assert (found[0].tolist(), found[1].tolist()) == ([2, 0, 0, 0], [5, 0, 0, 0])
    assert found[0].dtype == np.int64


def test_a_verdict_says_for_which_sizes_it_holds(monkeypatch):
    """All of them where they are derived at once; what is derived at chosen ones is tested, and no proof."""
    text = module_of((-1, 4), (1, 1), (1, 4), ROWS)
    lowered = hl.lower(text)
    verdict = hl.verify(text, lowered, level="regions", require="derived")
    assert (verdict.exit_code, verdict.summary()) == (0, "1 region derived for all sizes")
    assert ", derived for all sizes (laws: " in verdict.lines()[0]
    assert verdict.to_json()["regions"][0]["sizes"] == "all"
    monkeypatch.setattr(RegionJudge, "derived_for_all_sizes", lambda *_: None)
    verdict = hl.verify(text, lowered, level="regions", require="derived")
    told = {(region.how, region.sizes, region.basis) for region in verdict.regions}
    assert (verdict.exit_code, told) == (4, {("derived", "chosen", "tested")})
    assert all(", derived at these sizes" in line for line in verdict.lines())


def test_a_wrong_guard_is_found():
    """Both levels say at which sizes they compared, and a guard that lets a start above the bound pass is caught."""
    text = module_of((-1, 4), (-1, 1), (-1, 4), ROWS)
    lowered = hl.lower(text).text
    verdict = hl.verify(text, lowered)
    assert verdict.ok
    assert (verdict.module.status, "arg0.0=" in verdict.module.how) == ("equal", True)
    other = re.sub(r"compare +EQ", "compare GE", lowered)  # jax 0.9 prints two spaces
    assert other != lowered
    assert not hl.verify(text, other).ok


@pytest.mark.sweep
@pytest.mark.skipif(not POLY.is_dir(), reason="the corpus is not here")
@pytest.mark.parametrize("source", sorted(POLY.glob("*.mlir")) if POLY.is_dir() else [], ids=lambda p: p.stem)
@pytest.mark.parametrize("oob", ["xla", "spec"])
def test_every_exported_module_with_symbolic_sizes(source, oob):
    """All of them convert and verify without sizes, the whole module at two choices of them."""
    assert hl.verify(source, hl.lower(source, oob=oob)).ok


def test_a_size_that_another_operand_knows_is_found():
    """Of two operands one may have a static shape: then verification takes its sizes for the other."""
    line = "%r:2 = scatter(%a, %b, %i, %u, %w) <window=[1], to=[0], ivd=1> {add}"
    text = module("%a: ?xf32, %b: 5xi32, %i: 2x1xi32, %u: 2x?xf32, %w: 2x3xi32", line, "%r#0, %r#1")
    verdict = hl.verify(text, hl.lower(text))
    assert verdict.ok
    assert {region.status for region in verdict.regions} == {"equal"}
    assert {number for region in verdict.regions for number in region.scatters} == {1}


POINT_ARGUMENTS = "%x: ?xf32, %u: f32, %i: 1xi32"
POINT = module(POINT_ARGUMENTS, "%r = scatter(%x, %i, %u) <inserted=[0], to=[0], ivd=0> {assign}")
RIGHT_ABOVE_0 = module(
    POINT_ARGUMENTS,
    """%s = reshape %i -> i32; %size = get_dimension_size %x, dim = 0; %last = subtract %size, 1
    %place = clamp 0, %s, %last; %inside = compare EQ, %place, %s
    %old = dynamic_slice %x, %place, sizes = [1]; %w = reshape %u -> 1xf32; %new = select %inside, %w, %old
    %r = dynamic_update_slice %x, %new, %place""",
)
"""The same but where the operand has no element: there is no slice of size 1 of it, and a start of -1 is inside."""


@pytest.mark.few(3)
@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("oob", ["xla", "spec"])
@pytest.mark.parametrize("combiner", COMBINE)
def test_trap_10_sizes_of_0_at_run_time(name, oob, combiner):
    """A module lowered without sizes is right where some of them are 0: no positions, empty windows or operands."""
    choices = list(zero_shapes(name))
    assert choices
    assert_right(name, oob, combiner, choices, 2)


def test_a_slice_without_its_first_row():
    """Of `x[1:]` of an x of one row there is none: what is lowered runs there as the original does."""
    write, x = (lambda x, i, v: x[1:].at[i].set(v)), jnp.zeros(4, jnp.float32)
    exported = hl.export(write, x, jnp.int32(0), jnp.float32(0), shapes=["s", "", ""])
    lowered = hl.lower(exported)
    for size, places in ((1, (0, -1, 5)), (3, (0, 1, 2, -1, -2, -3))):
        x = np.arange(size, dtype=np.float32)
        for i in places:
            given = (x, np.int32(i), np.float32(7))
            assert np.array_equal(lowered.exported.call(*given), exported.call(*given))
    assert {"s": 1} in sizes_of_module(hl.read(exported).module, None, "module")


def test_verification_tries_sizes_of_0():
    """Open sizes are tried above 0 and at it: a version that is right at every size but 0 is found out."""
    operand, indices, updates, numbers, _ = CASES["rows of run-time length"]
    tried = sizes_of_module(hl.read(module_of(operand, indices, updates, numbers)).module, None, "module")
    assert {0 in sizes.values() for sizes in tried} == {True, False}
    sizes = sizes_of_module(hl.read(POINT).module, None, "module")
    assert {"arg0.0": 0} in sizes
    verdict = hl.verify(POINT, RIGHT_ABOVE_0)
    assert (verdict.ok, verdict.exit_code) == (False, 1)
    assert "arg0.0=0" in "\n".join(verdict.lines())
