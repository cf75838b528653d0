"""The semantic traps of scatter, one test each, named by number: what is lowered computes what the definition says.

A one-scatter module is lowered, compiled and run on a few chosen indices; the NumPy reference or a value by hand
decides.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import jax
import ml_dtypes
import numpy as np
import pytest

import hlo_lower as hl
from hlo_lower.scatter.reference import ScatterNumbers, scatter
from hlo_lower.verify.compare import first_difference
from hlo_lower.verify.interpreter import Interpreter
from hlo_lower.verify.run import Executable

Policy = Literal["xla", "spec"]
POLICIES = pytest.mark.parametrize("oob", ["xla", "spec"])

DTYPES = {
    "i1": np.bool_,
    "i8": np.int8,
    "i16": np.int16,
    "i32": np.int32,
    "i64": np.int64,
    "ui8": np.uint8,
    "ui32": np.uint32,
    "ui64": np.uint64,
    "f16": np.float16,
    "f32": np.float32,
    "bf16": ml_dtypes.bfloat16,
    "complex<f32>": np.complex64,
}
BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda c, u: c | u if c.dtype == np.bool_ else c + u,
    "subtract": lambda c, u: c - u,
    "multiply": lambda c, u: c & u if c.dtype == np.bool_ else c * u,
    "maximum": np.maximum,
    "minimum": np.minimum,
}


def tensor(shape: tuple[int, ...], element: str) -> str:
    """A tensor type."""
    return f"tensor<{''.join(f'{size}x' for size in shape)}{element}>"


def region(combiner: str, element: str) -> str:
    """The body of an update computation on %c and %u."""
    if combiner == "assign":
        return f"stablehlo.return %u : tensor<{element}>"
    return f"""%n = stablehlo.{combiner} %c, %u : tensor<{element}>
        stablehlo.return %n : tensor<{element}>"""


@dataclass(frozen=True)
class Case:
    """A module of one scatter, its dimension numbers and its combiner."""

    operand: tuple[int, ...]
    indices: tuple[int, ...]
    updates: tuple[int, ...]
    dims: ScatterNumbers
    element: str = "f32"
    region_element: str = ""
    index: str = "i32"
    combiner: str = "assign"
    body: str = ""
    flags: str = ""

    def text(self) -> str:
        """The module."""
        d, inner = self.dims, self.region_element or self.element
        fields = ", ".join(
            f"{name} = {list(value)}" for name, value in vars(d).items() if name != "index_vector_dim" and value
        )
        arguments = [
            tensor(self.operand, self.element),
            tensor(self.indices, self.index),
            tensor(self.updates, self.element),
        ]
        result = tensor(self.operand, inner)
        numbers = f"#stablehlo.scatter<{fields}{', ' if fields else ''}index_vector_dim = {d.index_vector_dim}>"
        return f"""
module {{
  func.func @main(%op: {arguments[0]}, %i: {arguments[1]}, %up: {arguments[2]}) -> {result} {{
    %r = "stablehlo.scatter"(%op, %i, %up) <{{{self.flags} scatter_dimension_numbers = {numbers}}}> ({{
      ^bb0(%c: tensor<{inner}>, %u: tensor<{inner}>):
        {self.body or region(self.combiner, inner)}
    }}) : ({", ".join(arguments)}) -> {result}
    return %r : {result}
  }}
}}"""

    def combine(self, currents: list[Any], updates: list[Any]) -> list[Any]:
        """The combiner on arrays."""
        if self.combiner == "assign":
            return updates
        with np.errstate(all="ignore"):
            return [BINARY[self.combiner](c, u) for c, u in zip(currents, updates, strict=True)]

    def lowered(self, oob: Policy = "xla") -> Executable:
        """The module without its scatter, compiled."""
        result = hl.lower(self.text(), oob=oob)
        assert "stablehlo.scatter" not in result.text
        return Executable(result.text, "exact")

    def check(self, *indices: Any, oob: Policy = "xla") -> None:
        """Run on each of the index arrays what was lowered, and expect the reference's result bit for bit."""
        executable = self.lowered(oob)
        inner = np.dtype(DTYPES[self.region_element or self.element])
        for number, values in enumerate(indices):
            rng = np.random.default_rng(number)
            drawn = np.asarray(values).reshape(self.indices).astype(DTYPES[self.index])
            operand = some(rng, self.operand, self.element)
            updates = some(rng, self.updates, self.element)
            expected = scatter([operand], drawn, [updates], self.dims, self.combine, [inner], oob=oob)
            found = first_difference(expected, executable.run([operand, drawn, updates]))
            assert found is None, f"indices {drawn.tolist()}: {found}"


def some(rng: np.random.Generator, shape: tuple[int, ...], element: str) -> Any:
    """Random values of an element type."""
    dtype = np.dtype(DTYPES[element])
    if dtype.kind == "b":
        return np.asarray(rng.random(shape) < 0.5)
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        return np.asarray(rng.integers(info.min, info.max, shape, dtype, endpoint=True))
    if dtype.kind == "c":
        return np.asarray(rng.standard_normal(shape) + 1j * rng.standard_normal(shape)).astype(dtype)
    return np.asarray(rng.standard_normal(shape)).astype(dtype)


def numbers(window=(), inserted=(), batching=(), indices_batching=(), to_operand=(), ivd=1) -> ScatterNumbers:
    """Dimension numbers, empty where not given."""
    return ScatterNumbers(
        tuple(window), tuple(inserted), tuple(batching), tuple(indices_batching), tuple(to_operand), ivd
    )


def run(text: str, *arguments: Any, oob: Policy = "xla") -> list[Any]:
    """Lower a module and run it."""
    lowered = hl.lower(text, oob=oob)
    assert "stablehlo.scatter" not in lowered.text
    return Executable(lowered.text, "exact").run([np.asarray(a) for a in arguments])


def f32(values: Any) -> Any:
    """An array of float32."""
    return np.asarray(values, np.float32)


def i32(values: Any) -> Any:
    """An array of int32."""
    return np.asarray(values, np.int32)


def points(n: int, size: int, **changes: Any) -> Case:
    """N single elements into a vector."""
    return Case((size,), (n, 1), (n,), numbers(inserted=[0], to_operand=[0]), **changes)


def tile(window: int, size: int, **changes: Any) -> Case:
    """One window into a vector."""
    return Case((size,), (1,), (window,), numbers(window=[0], to_operand=[0], ivd=0), **changes)


def windows(n: int, window: int, size: int, **changes: Any) -> Case:
    """N windows into a vector."""
    return Case((size,), (n, 1), (n, window), numbers(window=[1], to_operand=[0]), **changes)


def rows(n: int, size: int, width: int, **changes: Any) -> Case:
    """N rows into a matrix."""
    return Case((size, width), (n, 1), (n, width), numbers(window=[1], inserted=[0], to_operand=[0]), **changes)


INT_MIN, INT_MAX = -(2**31), 2**31 - 1


@pytest.mark.parametrize(("oob", "written"), [("xla", False), ("spec", True)])
def test_trap_01_policy(oob, written):
    """XLA's policy drops an overhanging window whole, the specification's only what hangs over."""
    dims = numbers(window=[1, 2], inserted=[0], to_operand=[0, 1])
    text = Case((3, 3, 2), (1, 2), (1, 2, 2), dims).text()
    operand, updates = f32(np.zeros((3, 3, 2))), f32([[[1, 2], [3, 4]]])
    expected = operand.copy()
    if written:
        expected[0, 2] = [1, 2]
    [result] = run(text, operand, i32([[0, 2]]), updates, oob=oob)
    assert result.tolist() == expected.tolist()


@POLICIES
@pytest.mark.parametrize("combiner", ["assign", "add"])
def test_trap_02_no_clamping(combiner, oob):
    """A window out of bounds is dropped, not moved to the border as dynamic_update_slice would."""
    tile(2, 5, combiner=combiner).check([-3], [-2], [-1], [0], [3], [4], [5], [7], oob=oob)


@pytest.mark.parametrize("combiner", ["assign", "subtract"])
def test_trap_03_elements_of_one_window(combiner):
    """Under oob=spec one window keeps just the elements inside at every start, wider than half the operand or not."""
    tile(4, 5, combiner=combiner).check(*([s] for s in (*range(-6, 7), INT_MIN, INT_MAX)), oob="spec")


@POLICIES
def test_trap_04_rows_are_dropped_one_by_one(oob):
    """Of a run of rows those in range are written, also where the run starts below 0 or ends behind the operand."""
    runs = [np.asarray([s, s + 1, s + 2]) for s in (-4, -2, -1, 0, 2, 3, 4, 5)]
    rows(3, 5, 2).check(*runs, [INT_MIN, INT_MAX, 0], oob=oob)


RUN_LINES = """
    %base = stablehlo.broadcast_in_dim %b, dims = [] : (tensor<{e}>) -> tensor<{n}x1x{e}>
    %iota = stablehlo.iota dim = 0 : tensor<{n}x1x{e}>
    %x = stablehlo.add %base, %iota : tensor<{n}x1x{e}>"""
NORMALISED_LINES = """
    %zero = stablehlo.constant dense<0> : tensor<{n}x1x{e}>
    %by = stablehlo.constant dense<{size}> : tensor<{n}x1x{e}>
    %above = stablehlo.add %x, %by : tensor<{n}x1x{e}>
    %below = stablehlo.compare LT, %x, %zero, SIGNED : (tensor<{n}x1x{e}>, tensor<{n}x1x{e}>) -> tensor<{n}x1xi1>
    %y = stablehlo.select %below, %above, %x : tensor<{n}x1xi1>, tensor<{n}x1x{e}>"""


def check_run(
    rows_: int, size: int, bases: Any, *, rule: str, element: str = "i32", combiner: str = "assign", offset: int = 0
) -> None:
    """A run of rows at a runtime base: the rule that lowers it, and the reference's result under both policies."""
    case = rows(rows_, size, 2, index=element, combiner=combiner)
    lines = (RUN_LINES + (NORMALISED_LINES if offset else "")).format(n=rows_, e=element, size=offset)
    text = case.text().replace(f"%i: {tensor(case.indices, element)}", f"%b: tensor<{element}>")
    text = text.replace("%r = ", f"{lines}\n    %r = ", 1).replace("(%op, %i,", f"(%op, {'%y' if offset else '%x'},")
    for oob in ("xla", "spec"):
        lowered = hl.lower(text, oob=oob)
        assert lowered.records[0].rule == rule
        executable = Executable(lowered.text, "exact")
        for base in bases:
            with np.errstate(all="ignore"):
                base = np.asarray(base).astype(DTYPES[element])
                x = base + np.arange(rows_).astype(DTYPES[element])
                x = np.where(x < 0, x + np.asarray(offset, x.dtype), x) if offset else x
            rng = np.random.default_rng(0)
            operand, updates = some(rng, case.operand, "f32"), some(rng, case.updates, "f32")
            expected = scatter([operand], x[:, None], [updates], case.dims, case.combine, [np.dtype("f4")], oob=oob)
            found = first_difference(expected, executable.run([operand, base, updates]))
            assert found is None, f"base {base}, oob={oob}: {found}"


RULES_OF_RUNS = pytest.mark.parametrize(("combiner", "kind"), [("assign", "rows"), ("subtract", "updated_rows")])


@RULES_OF_RUNS
def test_trap_03_a_run_is_shifted_into_bounds(combiner, kind):
    """A run of rows at every base keeps just the rows inside, and no pad is as large as the operand."""
    check_run(4, 5, (*range(-6, 7), INT_MIN, INT_MAX), rule=f"shifted_{kind}", combiner=combiner)


@RULES_OF_RUNS
@pytest.mark.parametrize("size", [2, 3, 7])
def test_trap_04_a_run_longer_than_the_operand(combiner, kind, size):
    """One write of all rows drops them one by one, also where they are more than the operand has."""
    check_run(7, size, range(-9, 10), rule=f"shifted_{kind}", combiner=combiner)


@RULES_OF_RUNS
@pytest.mark.parametrize("offset", [0, 5])
@pytest.mark.parametrize("element", ["i32", "i64"])
def test_trap_09_a_run_next_to_the_end_of_its_type(combiner, kind, element, offset):
    """A base next to either end of its type, from which base + iota wraps around, writes what natively lies inside."""
    info = np.iinfo(DTYPES[element])
    ends = [info.min, info.min + 1, info.min + 3, info.max - 3, info.max - 1, info.max]
    rule = f"{'wrapped' if offset else 'shifted'}_{kind}"
    check_run(4, 5, ends, rule=rule, element=element, combiner=combiner, offset=offset)


@POLICIES
def test_trap_05_negative_indices(oob):
    """A negative index is out of bounds: it does not count from the end."""
    points(3, 4).check([-1, -4, 1], [-5, 3, -2], oob=oob)


@POLICIES
@pytest.mark.parametrize("index", ["ui8", "ui32", "ui64"])
def test_trap_06_unsigned_indices(index, oob):
    """The largest unsigned index is far out of bounds, not -1, for points and for a window."""
    largest = np.iinfo(DTYPES[index]).max
    values = np.asarray([[largest], [largest - 1], [3], [4]], DTYPES[index])
    tile(2, 5, index=index).check(*values, oob=oob)
    points(2, 4, index=index, combiner="add").check(values[[0, 2]], values[[2, 2]], oob=oob)


@POLICIES
@pytest.mark.parametrize(("index", "far"), [("i8", 127), ("ui8", 255), ("i16", 299)])
def test_trap_07_narrow_index_types(index, far, oob):
    """An operand dim larger than the index type can say is bounded in a wider one (openxla/xla#48718)."""
    tile(3, 300, index=index).check([0], [far], [far - 1], [np.iinfo(DTYPES[index]).min], oob=oob)
    points(2, 300, index=index).check([far, 5], [far, far], oob=oob)


@POLICIES
def test_trap_08_each_component_is_checked(oob):
    """An index with a component out of bounds is dropped even where its linearised position is inside."""
    dims = numbers(inserted=[0, 1], to_operand=[0, 1])
    wrong = [[[0, 4], [1, -1]], [[-1, 5], [2, 3]], [[1, 2], [3, -4]], [[2**30, 4], [2**30, 0]]]
    Case((3, 4), (2, 2), (2,), dims).check(*wrong, oob=oob)


@POLICIES
@pytest.mark.parametrize("index", ["i32", "i64"])
def test_trap_09_index_overflow(index, oob):
    """A start next to the end of its type is out of bounds; start plus window does not wrap."""
    info = np.iinfo(DTYPES[index])
    ends = [info.min, info.min + 1, info.max - 1, info.max]
    tile(3, 5, index=index).check(*([e] for e in ends), oob=oob)
    windows(2, 3, 5, index=index, combiner="add").check([ends[0], 1], [2, ends[3]], [ends[2], 4], oob=oob)


@POLICIES
@pytest.mark.parametrize(
    "case",
    [
        Case((3, 2), (1, 1), (1, 0), numbers(window=[1], inserted=[0], to_operand=[0])),
        points(0, 3),
        rows(2, 3, 0),
        Case((3, 0), (2, 1), (2, 0), numbers(window=[1], inserted=[0], to_operand=[0])),
        tile(0, 3, combiner="add"),
    ],
    ids=["window 0", "N 0", "rows of 0", "operand 0", "tile 0"],
)
def test_trap_10_nothing_to_write(case, oob):
    """A window without elements, no window, and an operand without elements leave the operand."""
    case.check(np.zeros(case.indices), np.ones(case.indices), oob=oob)


EMPTY_VECTOR = Case((3,), (4, 0), (4,), numbers(inserted=[0]), "i32", combiner="subtract")
IN_FRONT = Case((3, 4), (2, 5), (5,), numbers(inserted=[0, 1], to_operand=[0, 1], ivd=0))
IN_THE_MIDDLE = Case((3, 4), (2, 2, 3), (2, 3), numbers(inserted=[0, 1], to_operand=[0, 1], ivd=1))
IMPLICIT = Case((4,), (2, 3), (2, 3), numbers(inserted=[0], to_operand=[0], ivd=2), combiner="add")
NO_RANK = Case((4, 2), (), (2,), numbers(window=[0], inserted=[0], to_operand=[0], ivd=0))
SCALAR = Case((), (3, 0), (3,), numbers(), "i32", combiner="subtract")


@POLICIES
@pytest.mark.parametrize(
    "case",
    [EMPTY_VECTOR, IN_FRONT, IN_THE_MIDDLE, IMPLICIT, NO_RANK, SCALAR],
    ids=["K 0", "in front", "middle", "implicit", "rank 0 indices", "rank 0 operand"],
)
def test_trap_11_index_vector(case, oob):
    """The index vector may lie anywhere, be implicit or be empty; with K = 0 all updates land at 0 and compound."""
    rng = np.random.default_rng(0)
    case.check(*(rng.integers(-1, 5, case.indices) for _ in range(4)), oob=oob)


@POLICIES
@pytest.mark.parametrize(
    "case",
    [
        Case((4, 2, 3), (2, 3, 1), (2, 2, 3, 3), numbers([1, 3], [0], to_operand=[0], ivd=2)),
        Case((4, 5), (3, 2), (3, 2), numbers([1], [0], to_operand=[1, 0])),
        Case((3, 5), (4, 1), (4,), numbers(inserted=[0, 1], to_operand=[1])),
        Case((5, 4, 3), (2, 2), (2, 3, 2), numbers([1, 2], [1], to_operand=[2, 0]), combiner="add"),
    ],
    ids=["interleaved", "permuted", "pinned", "not the inserted ones"],
)
def test_trap_12_dimension_numbers(case, oob):
    """Scatter dims may interleave window dims, operand dims may be permuted, and an inserted dim without index is 0."""
    rng = np.random.default_rng(0)
    case.check(*(rng.integers(-1, 5, case.indices) for _ in range(4)), oob=oob)


@POLICIES
@pytest.mark.parametrize("ivd", [0, 1, 2, 3])
def test_trap_13_batching(ivd, oob):
    """A batch coordinate is the position's; batching dims may be permuted and lie behind the index vector."""
    where = [2, 3, 4]  # the positions: batch of operand dim 2, batch of operand dim 0, n
    batch = [0, 1]
    indices = (*where[:ivd], 1, *where[ivd:])
    in_indices = [b + 1 if b >= ivd else b for b in batch]
    dims = numbers([], [1], [0, 2], [in_indices[1], in_indices[0]], [1], ivd)
    rng = np.random.default_rng(0)
    case = Case((3, 5, 2), indices, (2, 3, 4), dims, combiner="subtract")
    case.check(*(rng.integers(-1, 6, indices) for _ in range(3)), oob=oob)


@POLICIES
@pytest.mark.parametrize("combiner", ["assign", "add"])
def test_trap_14_unique_claimed(combiner, oob):
    """The result does not rest on unique_indices: a false claim, and slots of -1, do not change it."""
    claimed = rows(4, 5, 2, combiner=combiner, flags="unique_indices = true,")
    claimed.check([-1, -1, -1, 3], [2, 2, 2, 2], [0, 4, 0, 5], oob=oob)
    assert hl.classify(hl.read(claimed.text()))[0].unique == "claimed"


def test_trap_15_sorted_claimed():
    """The result does not rest on indices_are_sorted."""
    case = Case((4, 5), (3, 2), (3,), numbers(inserted=[0, 1], to_operand=[1, 0]), flags="indices_are_sorted = true,")
    case.check([[0, 3], [1, 2], [0, 3]], [[4, 0], [3, 1], [0, 2]])


@POLICIES
def test_trap_16_the_last_assignment_wins(oob):
    """Of several assignments to one element the last in row-major order of positions stays."""
    points(5, 3).check([1, 1, 1, 1, 1], [0, 2, 0, 2, 0], oob=oob)
    windows(4, 3, 6).check([1, 2, 0, 1], [3, 3, 2, 4], oob=oob)


VARIADIC = """
module {{
  func.func @main(%a: tensor<4x{s}>, %b: tensor<4x{t}>, %i: tensor<6x1xi32>, %x: tensor<6x{s}>, %y: tensor<6x{t}>)
      -> (tensor<4x{s}>, tensor<4x{t}>) {{
    %r:2 = "stablehlo.scatter"(%a, %b, %i, %x, %y) <{{scatter_dimension_numbers = #stablehlo.scatter<
      inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}}> ({{
      ^bb0(%ca: tensor<{s}>, %cb: tensor<{t}>, %ua: tensor<{s}>, %ub: tensor<{t}>):
        {body}
    }}) : (tensor<4x{s}>, tensor<4x{t}>, tensor<6x1xi32>, tensor<6x{s}>, tensor<6x{t}>)
      -> (tensor<4x{s}>, tensor<4x{t}>)
    return %r#0, %r#1 : tensor<4x{s}>, tensor<4x{t}>
  }}
}}"""


def test_trap_17_one_winner_for_all_operands():
    """Operands of a variadic assignment take the same update."""
    text = VARIADIC.format(s="f32", t="i32", body="stablehlo.return %ua, %ub : tensor<f32>, tensor<i32>")
    order = np.arange(6)
    a, b = run(text, f32(-np.ones(4)), i32(-np.ones(4)), i32([[1], [3], [1], [1], [3], [9]]), f32(order), i32(order))
    assert [a.tolist(), b.tolist()] == [[-1, 3, -1, 4], [-1, 3, -1, 4]]


def test_trap_18_sums_keep_their_order():
    """Float sums are taken update by update, rounding each time; integer sums wrap."""
    indices = np.full((4, 1), 1, np.int32)
    for element, huge in (("f32", 1e8), ("bf16", 256.0), ("f16", 2048.0)):
        dtype = DTYPES[element]
        operand, updates = np.zeros(2, dtype), np.asarray([huge, 1, 1, -huge], dtype)
        [result] = run(points(4, 2, element=element, combiner="add").text(), operand, indices, updates)
        assert (element, result.tolist()) == (element, [0, 0])  # pairwise or in another order, not 0
    [result] = run(
        points(4, 2, element="i8", combiner="add").text(),
        np.zeros(2, np.int8),
        indices,
        np.asarray([100, 100, 100, 1], np.int8),
    )
    assert result.tolist() == [0, 45]


@POLICIES
def test_trap_19_a_dropped_nan_stays_out(oob):
    """NaN and infinity in updates that are dropped, or in other rows, reach nothing."""
    text = rows(3, 4, 2, combiner="add").text()
    operand = f32([[1, 2], [3, np.inf], [5, 6], [7, 8]])
    updates = f32([[np.nan, np.inf], [1, 1], [-np.inf, np.nan]])
    [result] = run(text, operand, i32([[-1], [2], [4]]), updates, oob=oob)
    assert result.tolist() == [[1, 2], [3, np.inf], [6, 7], [7, 8]]
    [result] = run(tile(2, 4, combiner="add").text(), f32([1, 2, 3, 4]), i32([9]), f32([np.nan, np.inf]), oob=oob)
    assert result.tolist() == [1, 2, 3, 4]


@POLICIES
def test_trap_20_signed_zeros(oob):
    """Untouched elements keep -0.0, and -0.0 + -0.0 stays -0.0; the interpreter is asked, as XLA makes x of x + 0."""
    negative = f32([-0.0, -0.0, -0.0])
    with Interpreter() as interpreter:
        for case, indices, updates, signs in (
            (points(2, 3, combiner="add"), [[1], [3]], [0.0, 0.0], [True, False, True]),
            (points(2, 3, combiner="add"), [[1], [1]], [-0.0, -0.0], [True, True, True]),
            (tile(2, 3, combiner="add"), [3], [0.0, 0.0], [True, True, True]),
            (tile(2, 3, combiner="add"), [0], [0.0, -0.0], [False, True, True]),
        ):
            text = hl.lower(case.text(), oob=oob).text
            [result] = interpreter.run(text, [negative, i32(indices), f32(updates)])
            assert np.signbit(result).tolist() == signs


@pytest.mark.parametrize("element", ["f32", "i8", "ui8", "i1"])
@pytest.mark.parametrize("combiner", ["maximum", "minimum"])
def test_trap_21_untouched_elements(combiner, element):
    """Elements that no update reaches are the operand's, not an identity of the combiner."""
    points(3, 6, element=element, combiner=combiner).check([1, 1, -1], [6, 7, 8])


BODIES = {
    "operand first": (
        "%n = stablehlo.subtract %c, %u : tensor<i32> stablehlo.return %n : tensor<i32>",
        [10, -5, 30],
    ),
    "update first": ("%n = stablehlo.subtract %u, %c : tensor<i32> stablehlo.return %n : tensor<i32>", [10, 25, 30]),
    "no-op": ("stablehlo.return %c : tensor<i32>", [10, 20, 30]),
    "constant": ("%k = stablehlo.constant dense<7> : tensor<i32> stablehlo.return %k : tensor<i32>", [10, 7, 30]),
    "only the current value": (
        "%n = stablehlo.add %c, %c : tensor<i32> stablehlo.return %n : tensor<i32>",
        [10, 80, 30],
    ),
    "only the update": ("%n = stablehlo.negate %u : tensor<i32> stablehlo.return %n : tensor<i32>", [10, -15, 30]),
    "nested": (
        """%p = stablehlo.compare GT, %u, %c : (tensor<i32>, tensor<i32>) -> tensor<i1>
        %m = stablehlo.multiply %c, %u : tensor<i32>
        %n = stablehlo.select %p, %m, %u : tensor<i1>, tensor<i32> stablehlo.return %n : tensor<i32>""",
        [10, 150, 30],
    ),
}


@pytest.mark.parametrize("name", BODIES)
def test_trap_22_update_computations(name):
    """The current value is the first argument, the update the second; a region runs once for each update."""
    body, expected = BODIES[name]
    text = points(2, 3, element="i32", body=body).text()
    [result] = run(text, i32([10, 20, 30]), i32([[1], [1]]), i32([10, 15]))
    assert result.tolist() == expected


def test_trap_22_argmin_and_calls():
    """A lexicographic argmin over two operands, computed in a function that the region calls, takes one pair."""
    body = """%p, %q = func.call @less(%ca, %cb, %ua, %ub)
          : (tensor<f32>, tensor<i32>, tensor<f32>, tensor<i32>) -> (tensor<f32>, tensor<i32>)
        stablehlo.return %p, %q : tensor<f32>, tensor<i32>""".replace("%p, %q = func", "%p:2 = func").replace(
        "return %p, %q", "return %p#0, %p#1"
    )
    text = VARIADIC.format(s="f32", t="i32", body=body).replace(
        "module {",
        """module {
  func.func private @less(%ca: tensor<f32>, %cb: tensor<i32>, %ua: tensor<f32>, %ub: tensor<i32>)
      -> (tensor<f32>, tensor<i32>) {
    %0 = stablehlo.compare LT, %ua, %ca : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %1 = stablehlo.compare EQ, %ua, %ca : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %2 = stablehlo.compare LT, %ub, %cb : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %3 = stablehlo.and %1, %2 : tensor<i1>
    %4 = stablehlo.or %0, %3 : tensor<i1>
    %5 = stablehlo.select %4, %ua, %ca : tensor<i1>, tensor<f32>
    %6 = stablehlo.select %4, %ub, %cb : tensor<i1>, tensor<i32>
    return %5, %6 : tensor<f32>, tensor<i32>
  }""",
        1,
    )
    values, numbers_ = f32([5, 3, 2, 2, 4, 0]), i32([9, 8, 7, 6, 5, 4])
    a, b = run(text, f32([4] * 4), i32([99] * 4), i32([[1], [1], [1], [1], [3], [4]]), values, numbers_)
    assert [a.tolist(), b.tolist()] == [[4, 2, 4, 4], [99, 6, 99, 5]]


CAPTURE = """
module {{
  func.func @main(%op: tensor<4xi32>, %i: tensor<{n}xi32>, %up: tensor<2xi32>, %x: tensor<i32>) -> tensor<4xi32> {{
    %k = {captured} : tensor<i32>
    %r = "stablehlo.scatter"(%op, %i, %up) <{{scatter_dimension_numbers = #stablehlo.scatter<
      {dims}>}}> ({{
      ^bb0(%c: tensor<i32>, %u: tensor<i32>):
        %m = stablehlo.multiply %c, %k : tensor<i32>
        %n = stablehlo.add %m, %u : tensor<i32>
        stablehlo.return %n : tensor<i32>
    }}) : (tensor<4xi32>, tensor<{n}xi32>, tensor<2xi32>) -> tensor<4xi32>
    return %r : tensor<4xi32>
  }}
}}"""
CAPTURE_POINTS = {"n": "2x1", "dims": "inserted_window_dims=[0], scatter_dims_to_operand_dims=[0], index_vector_dim=1"}
CAPTURE_TILE = {"n": "1", "dims": "update_window_dims=[0], scatter_dims_to_operand_dims=[0], index_vector_dim=0"}


@pytest.mark.parametrize("form", ["points", "tile"])
def test_trap_23_captured_constant(form):
    """A constant that the region takes from around it is carried into what replaces the scatter."""
    _check_capture(form, "stablehlo.constant dense<3>", 3)


@pytest.mark.parametrize("form", ["points", "tile"])
def test_trap_44_captured_value(form):
    """A runtime value that the region captures is carried along, although XLA refuses it in a scatter."""
    _check_capture(form, "stablehlo.add %x, %x", 10)


def _check_capture(form: str, captured: str, factor: int) -> None:
    operand, updates, x = i32([1, 2, 3, 4]), i32([10, 20]), i32(5)
    if form == "tile":
        text, index = CAPTURE.format(captured=captured, **CAPTURE_TILE), i32([1])
        expected = [1, 2 * factor + 10, 3 * factor + 20, 4]
    else:
        text, index = CAPTURE.format(captured=captured, **CAPTURE_POINTS), i32([[2], [2]])
        expected = [1, 2, (3 * factor + 10) * factor + 20, 4]
    [result] = run(text, operand, index, updates, x)
    assert result.tolist() == expected


@POLICIES
@pytest.mark.parametrize(("narrow", "wide"), [("i8", "i32"), ("bf16", "f32")])
@pytest.mark.parametrize("combiner", ["assign", "add", "subtract"])
def test_trap_24_promotion(narrow, wide, combiner, oob):
    """A region wider than the operand converts operand and updates first, and gives the wide type."""
    points(3, 4, element=narrow, region_element=wide, combiner=combiner).check([1, 1, 1], [0, -1, 4], oob=oob)
    tile(2, 4, element=narrow, region_element=wide, combiner=combiner).check([1], [3], [9], oob=oob)


@pytest.mark.parametrize(
    ("element", "combiner"),
    [("i1", "add"), ("i1", "multiply"), ("i1", "assign"), ("complex<f32>", "add"), ("complex<f32>", "assign")],
)
def test_trap_25_booleans_and_complex(element, combiner):
    """On i1, add is `or` and multiply is `and`; complex numbers add and are assigned."""
    points(6, 4, element=element, combiner=combiner).check([0, 1, 1, 2, 2, 2], [3, 3, 4, -1, 0, 0])
    tile(3, 4, element=element, combiner=combiner).check([0], [1], [2])


def test_trap_25_mixed_variadic():
    """A variadic scatter may mix types and combine each operand in its own way."""
    body = """%p = stablehlo.add %ca, %ua : tensor<f32>
        %q = stablehlo.maximum %cb, %ub : tensor<ui8>
        stablehlo.return %p, %q : tensor<f32>, tensor<ui8>"""
    text = VARIADIC.format(s="f32", t="ui8", body=body)
    small = np.asarray([1, 200, 3, 4, 250, 6], np.uint8)
    indices = i32([[0], [1], [1], [3], [4], [-1]])
    a, b = run(text, f32([1] * 4), np.full(4, 100, np.uint8), indices, f32([1, 2, 3, 4, 5, 6]), small)
    assert [a.tolist(), b.tolist()] == [[2, 6, 1, 5], [100, 200, 100, 100]]


def test_trap_26_masks():
    """Booleans are scattered as booleans."""
    points(3, 5, element="i1").check([1, 1, 4], [-1, 5, 0])
    tile(2, 5, element="i1").check([1], [4])


CLAMPED = """
module {{
  func.func @main(%op: tensor<8xf32>, %pos: tensor<i32>, %up: tensor<3xf32>) -> tensor<8xf32> {{
    %lo = stablehlo.constant dense<0> : tensor<i32>
    %hi = stablehlo.constant dense<{last}> : tensor<i32>
    %c = stablehlo.clamp %lo, %pos, %hi : tensor<i32>
    %i = stablehlo.reshape %c : (tensor<i32>) -> tensor<1xi32>
    %r = "stablehlo.scatter"(%op, %i, %up) <{{scatter_dimension_numbers = #stablehlo.scatter<
      update_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 0>}}> ({{
      ^bb0(%cur: tensor<f32>, %u: tensor<f32>):
        stablehlo.return %u : tensor<f32>
    }}) : (tensor<8xf32>, tensor<1xi32>, tensor<3xf32>) -> tensor<8xf32>
    return %r : tensor<8xf32>
  }}
}}"""


@pytest.mark.parametrize(("last", "in_bounds"), [(5, "always"), (6, "unknown")])
def test_trap_28_clamped_index(last, in_bounds):
    """A start clamped to [0, D - W] is proved inside and needs no guard; one more, and it needs one."""
    text = CLAMPED.format(last=last)
    lowered = hl.lower(text)
    assert lowered.records[0].in_bounds == in_bounds
    assert ("stablehlo.select" in lowered.text) == (in_bounds == "unknown")
    for position in (-5, 0, 5, 6, 7):
        start, expected = min(max(position, 0), last), np.zeros(8, np.float32)
        if start <= 5:
            expected[start : start + 3] = [1, 2, 3]
        [result] = run(text, np.zeros(8, np.float32), i32(position), f32([1, 2, 3]))
        assert result.tolist() == expected.tolist()


CACHE = """
module {{
  func.func @main(%cache: tensor<4x4096x16xf32> {{tf.aliasing_output = 0 : i32}}, %pos: tensor<1xi32>,
                  %row: tensor<4x16xf32>) -> tensor<4x4096x16xf32> {{
    %r = "stablehlo.scatter"(%cache, %pos, %row) <{{scatter_dimension_numbers = #stablehlo.scatter<
      update_window_dims = [0, 1], inserted_window_dims = [1], scatter_dims_to_operand_dims = [1],
      index_vector_dim = 0>}}> ({{
      ^bb0(%c: tensor<f32>, %u: tensor<f32>):
        {body}
    }}) : (tensor<4x4096x16xf32>, tensor<1xi32>, tensor<4x16xf32>) -> tensor<4x4096x16xf32>
    return %r : tensor<4x4096x16xf32>
  }}
}}"""


@POLICIES
@pytest.mark.parametrize("combiner", ["assign", "add"])
def test_trap_31_donated_cache_stays_in_place(combiner, oob):
    """A write into a donated buffer keeps its attribute, aliases the result and allocates nothing of its size."""
    lowered = hl.lower(CACHE.format(body=region(combiner, "f32")), oob=oob)
    assert "tf.aliasing_output = 0 : i32" in lowered.text
    arguments = [jax.ShapeDtypeStruct(a.shape, a.dtype) for a in lowered.exported.in_avals]
    compiled = jax.jit(lowered.exported.call, donate_argnums=0).lower(*arguments).compile()
    memory, buffer = compiled.memory_analysis(), 4 * 4096 * 16 * 4
    assert memory.alias_size_in_bytes == buffer
    assert memory.temp_size_in_bytes < buffer // 16


WHILE = """
module {
  func.func @main(%cache: tensor<6x2xf32>, %rows: tensor<4x2xf32>, %base: tensor<i32>) -> tensor<6x2xf32> {
    %zero = stablehlo.constant dense<0> : tensor<i32>
    %r:2 = stablehlo.while(%k = %zero, %c = %cache) : tensor<i32>, tensor<6x2xf32>
      cond {
        %n = stablehlo.constant dense<4> : tensor<i32>
        %p = stablehlo.compare LT, %k, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
        stablehlo.return %p : tensor<i1>
      } do {
        %one = stablehlo.constant dense<1> : tensor<i32>
        %row = stablehlo.dynamic_slice %rows, %k, %zero, sizes = [1, 2] : (tensor<4x2xf32>, tensor<i32>, tensor<i32>)
          -> tensor<1x2xf32>
        %at = stablehlo.add %base, %k : tensor<i32>
        %i = stablehlo.reshape %at : (tensor<i32>) -> tensor<1xi32>
        %w = "stablehlo.scatter"(%c, %i, %row) <{scatter_dimension_numbers = #stablehlo.scatter<
          update_window_dims = [0, 1], scatter_dims_to_operand_dims = [0], index_vector_dim = 0>}> ({
          ^bb0(%cur: tensor<f32>, %u: tensor<f32>):
            stablehlo.return %u : tensor<f32>
        }) : (tensor<6x2xf32>, tensor<1xi32>, tensor<1x2xf32>) -> tensor<6x2xf32>
        %next = stablehlo.add %k, %one : tensor<i32>
        stablehlo.return %next, %w : tensor<i32>, tensor<6x2xf32>
      }
    return %r#1 : tensor<6x2xf32>
  }
}"""


@POLICIES
def test_trap_32_scatter_in_a_while(oob):
    """A scatter into a loop-carried cache writes the carried value, and drops what the loop runs past."""
    executable = Executable(hl.lower(WHILE, oob=oob).text, "exact")
    rows_ = f32(np.arange(8).reshape(4, 2) + 1)
    for base in (-6, -2, 0, 2, 4, 7):
        expected = np.zeros((6, 2), np.float32)
        for k in range(4):
            if 0 <= base + k < 6:
                expected[base + k] = rows_[k]
        [result] = executable.run([np.zeros((6, 2), np.float32), rows_, i32(base)])
        assert result.tolist() == expected.tolist()


NESTED = """
module {
  func.func @main(%op: tensor<5xf32>, %i: tensor<1xi32>, %up: tensor<2xf32>, %which: tensor<i32>, %p: tensor<i1>)
      -> (tensor<5xf32>, tensor<5xf32>) {
    %r = "stablehlo.case"(%which) ({
      %a = func.call @write(%op, %i, %up) : (tensor<5xf32>, tensor<1xi32>, tensor<2xf32>) -> tensor<5xf32>
      stablehlo.return %a : tensor<5xf32>
    }, {
      %b = "stablehlo.if"(%p) ({
        %s = "stablehlo.scatter"(%op, %i, %up) <{scatter_dimension_numbers = #stablehlo.scatter<
          update_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 0>}> ({
          ^bb0(%c: tensor<f32>, %u: tensor<f32>):
            %n = stablehlo.add %c, %u : tensor<f32>
            stablehlo.return %n : tensor<f32>
        }) : (tensor<5xf32>, tensor<1xi32>, tensor<2xf32>) -> tensor<5xf32>
        stablehlo.return %s : tensor<5xf32>
      }, {
        stablehlo.return %op : tensor<5xf32>
      }) : (tensor<i1>) -> tensor<5xf32>
      stablehlo.return %b : tensor<5xf32>
    }) : (tensor<i32>) -> tensor<5xf32>
    return %r, %op : tensor<5xf32>, tensor<5xf32>
  }
  func.func private @write(%op: tensor<5xf32>, %i: tensor<1xi32>, %up: tensor<2xf32>) -> tensor<5xf32> {
    %s = "stablehlo.scatter"(%op, %i, %up) <{scatter_dimension_numbers = #stablehlo.scatter<
      update_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 0>}> ({
      ^bb0(%c: tensor<f32>, %u: tensor<f32>):
        stablehlo.return %u : tensor<f32>
    }) : (tensor<5xf32>, tensor<1xi32>, tensor<2xf32>) -> tensor<5xf32>
    return %s : tensor<5xf32>
  }
}"""


def test_trap_35_nested_regions_and_uses():
    """Scatters under case, if and call are lowered, and another use of the operand sees it as it was."""
    lowered = hl.lower(NESTED)
    assert (len(lowered.records), "stablehlo.scatter" in lowered.text) == (2, False)
    executable = Executable(lowered.text, "exact")
    operand, updates = f32([1, 2, 3, 4, 5]), f32([10, 20])
    for which, index, expected in (
        (0, 1, [1, 10, 20, 4, 5]),
        (0, 4, [1, 2, 3, 4, 5]),
        (1, 1, [1, 12, 23, 4, 5]),
        (1, -1, [1, 2, 3, 4, 5]),
    ):
        result, kept = executable.run([operand, i32([index]), updates, i32(which), np.asarray(True)])
        assert (result.tolist(), kept.tolist()) == (expected, operand.tolist())


FULL = """
module {{
  func.func @main(%op: tensor<4x{t}>, %up: tensor<4x{t}>) -> tensor<4x{w}> {{
    %i = stablehlo.constant dense<{start}> : tensor<1xi32>
    %r = "stablehlo.scatter"(%op, %i, %up) <{{scatter_dimension_numbers = #stablehlo.scatter<
      update_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 0>}}> ({{
      ^bb0(%c: tensor<{w}>, %u: tensor<{w}>):
        {body}
    }}) : (tensor<4x{t}>, tensor<1xi32>, tensor<4x{t}>) -> tensor<4x{w}>
    return %r : tensor<4x{w}>
  }}
}}"""


@pytest.mark.parametrize(
    ("t", "w", "start", "combiner", "rule", "expected"),
    [
        ("i32", "i32", 0, "assign", "scatter_to_updates", [10, 20, 30, 40]),
        ("i32", "i32", 1, "assign", "scatter_to_operand", [1, 2, 3, 4]),
        ("i32", "i32", 0, "add", "scatter_to_elementwise", [11, 22, 33, 44]),
        ("i8", "i32", 0, "assign", "scatter_to_updates", [10, 20, 30, 40]),
        ("i8", "i32", -1, "assign", "scatter_to_operand", [1, 2, 3, 4]),
    ],
)
def test_trap_36_full_overwrite(t, w, start, combiner, rule, expected):
    """A window as large as the operand replaces it only at start 0 and with an assignment; types are converted."""
    text = FULL.format(t=t, w=w, start=start, body=region(combiner, w))
    assert hl.lower(text).records[0].rule.removeprefix("scatter_to_") == rule.removeprefix("scatter_to_")
    dtype = DTYPES[t]
    [result] = run(text, np.asarray([1, 2, 3, 4], dtype), np.asarray([10, 20, 30, 40], dtype))
    assert (result.dtype, result.tolist()) == (np.dtype(DTYPES[w]), expected)


def test_trap_36_runtime_start():
    """A window as large as the operand at a runtime start is written at 0 only."""
    tile(4, 4).check([0], [1], [-1], [INT_MIN])
    tile(4, 4).check([0], [1], [-1], [INT_MIN], oob="spec")


CALLS = """
module {
  func.func @main(%op: tensor<6xf32>, %pos: tensor<i32>, %up: tensor<2xf32>) -> (tensor<6xf32>, tensor<6xf32>) {
    %lo = stablehlo.constant dense<0> : tensor<i32>
    %hi = stablehlo.constant dense<4> : tensor<i32>
    %inside = stablehlo.clamp %lo, %pos, %hi : tensor<i32>
    %a = func.call @write(%op, %inside, %up) : (tensor<6xf32>, tensor<i32>, tensor<2xf32>) -> tensor<6xf32>
    %b = func.call @write(%op, %SECOND, %up) : (tensor<6xf32>, tensor<i32>, tensor<2xf32>) -> tensor<6xf32>
    return %a, %b : tensor<6xf32>, tensor<6xf32>
  }
  func.func private @write(%op: tensor<6xf32>, %at: tensor<i32>, %up: tensor<2xf32>) -> tensor<6xf32> {
    %i = stablehlo.reshape %at : (tensor<i32>) -> tensor<1xi32>
    %s = "stablehlo.scatter"(%op, %i, %up) <{scatter_dimension_numbers = #stablehlo.scatter<
      update_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 0>}> ({
      ^bb0(%c: tensor<f32>, %u: tensor<f32>):
        stablehlo.return %u : tensor<f32>
    }) : (tensor<6xf32>, tensor<1xi32>, tensor<2xf32>) -> tensor<6xf32>
    return %s : tensor<6xf32>
  }
}"""


@pytest.mark.parametrize(("second", "in_bounds"), [("inside", "always"), ("pos", "unknown")])
def test_trap_40_call_sites(second, in_bounds):
    """Bounds that are proved at one call of a private function hold only if they are proved at every call."""
    lowered = hl.lower(CALLS.replace("SECOND", second))
    assert lowered.records[0].in_bounds == in_bounds
    executable = Executable(lowered.text, "exact")
    for position in (-3, 0, 4, 5, 9):
        results = executable.run([np.zeros(6, np.float32), i32(position), f32([1, 2])])
        for result, start in zip(results, (min(max(position, 0), 4), position), strict=True):
            start = min(max(position, 0), 4) if second == "inside" else start
            expected = np.zeros(6, np.float32)
            if 0 <= start <= 4:
                expected[start : start + 2] = [1, 2]
            assert result.tolist() == expected.tolist()


AFFINE = """
module {
  func.func @main(%op: tensor<200xf32>, %base: tensor<i8>, %up: tensor<140xf32>) -> tensor<200xf32> {
    %0 = stablehlo.iota dim = 0 : tensor<140xi8>
    %1 = stablehlo.broadcast_in_dim %base, dims = [] : (tensor<i8>) -> tensor<140xi8>
    %2 = stablehlo.add %0, %1 : tensor<140xi8>
    %i = stablehlo.reshape %2 : (tensor<140xi8>) -> tensor<140x1xi8>
    %r = "stablehlo.scatter"(%op, %i, %up) <{scatter_dimension_numbers = #stablehlo.scatter<
      inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
      ^bb0(%c: tensor<f32>, %u: tensor<f32>):
        stablehlo.return %u : tensor<f32>
    }) : (tensor<200xf32>, tensor<140x1xi8>, tensor<140xf32>) -> tensor<200xf32>
    return %r : tensor<200xf32>
  }
}"""


def test_trap_41_affine_indices_that_wrap():
    """base + iota in i8 wraps around; what wrapped to a negative number is dropped, what wrapped back is written."""
    executable = Executable(hl.lower(AFFINE).text, "exact")
    updates = f32(np.arange(140) + 1)
    for base in (-128, -20, 0, 100, 127):
        expected = np.zeros(200, np.float32)
        for k in range(140):
            at = (base + k + 128) % 256 - 128
            if at >= 0:
                expected[at] = updates[k]
        [result] = executable.run([np.zeros(200, np.float32), np.asarray(base, np.int8), updates])
        assert result.tolist() == expected.tolist()


@pytest.mark.parametrize("located", [True, False])
def test_trap_42_locations(located):
    """A module that came with locations leaves with them, the new operations too; one without stays without."""
    text = tile(2, 5).text()
    if located:
        text = text.replace("-> tensor<5xf32>\n    return", '-> tensor<5xf32> loc("llama.py":88:3)\n    return')
    lowered = hl.lower(text)
    assert ("loc(" in lowered.text) == located
    if located:
        assert ('"llama.py":88:3' in lowered.text, lowered.records[0].location) == (True, "llama.py:88")


@POLICIES
def test_trap_45_overlapping_windows(oob):
    """Where window dims precede scatter dims, a whole window is still written before the next position's."""
    dims = numbers(window=[0], to_operand=[0])
    case = Case((6,), (3, 1), (3, 3), dims)
    case.check([0, 1, 2], [2, 1, 0], [3, 3, 1], [-1, 0, 4], oob=oob)
    assign_and_subtract = Case((6,), (3, 1), (3, 3), dims, "i32", combiner="subtract")
    assign_and_subtract.check([0, 1, 2], [2, 2, -1], oob=oob)


TWICE = """
module {
  func.func @main(%a: tensor<4xf32>, %i: tensor<2x1xi32>, %x: tensor<2xf32>, %y: tensor<2xf32>)
      -> (tensor<4xf32>, tensor<4xf32>) {
    %r:2 = "stablehlo.scatter"(%a, %a, %i, %x, %y) <{scatter_dimension_numbers = #stablehlo.scatter<
      inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
      ^bb0(%ca: tensor<f32>, %cb: tensor<f32>, %ua: tensor<f32>, %ub: tensor<f32>):
        stablehlo.return %ua, %ub : tensor<f32>, tensor<f32>
    }) : (tensor<4xf32>, tensor<4xf32>, tensor<2x1xi32>, tensor<2xf32>, tensor<2xf32>)
      -> (tensor<4xf32>, tensor<4xf32>)
    return %r#0, %r#1 : tensor<4xf32>, tensor<4xf32>
  }
}"""


def test_trap_46_one_value_as_two_operands():
    """A variadic scatter into the same value twice has two results, although XLA returns the first one twice."""
    a, b = run(TWICE, f32([0, 0, 0, 0]), i32([[1], [2]]), f32([1, 2]), f32([3, 4]))
    assert [a.tolist(), b.tolist()] == [[0, 1, 2, 0], [0, 3, 4, 0]]
    assert hl.verify(TWICE, hl.lower(TWICE), level="scatter").ok


@RULES_OF_RUNS
@pytest.mark.parametrize(("rows_", "size", "offset"), [(3, 5, 5), (3, 5, 6), (7, 4, 4), (1, 4, 4)])
def test_trap_39_wrapped_runs(combiner, kind, rows_, size, offset):
    """A run whose negative rows are moved up one by one is written in two parts, in the order of its rows."""
    bases = range(-rows_ - size - 2, size + 2)
    rule = f"wrapped_{kind}"
    if rows_ == 1:  # no run: one window
        rule = "guarded_dynamic_update_slice" if combiner == "assign" else "guarded_updated_slice"
    check_run(rows_, size, bases, rule=rule, combiner=combiner, offset=offset)


CALLED = """
module {{
  func.func public @main(%a: tensor<6xf32>, %b: tensor<6xf32>, %up: tensor<3xf32>, %start: tensor<i32>)
      -> (tensor<6xf32>, tensor<6xf32>) {{
    %base = stablehlo.broadcast_in_dim %start, dims = [] : (tensor<i32>) -> tensor<3x1xi32>
    %iota = stablehlo.iota dim = 0 : tensor<3x1xi32>
    %up_ = stablehlo.add %base, %iota : tensor<3x1xi32>
    %down = stablehlo.subtract %base, %iota : tensor<3x1xi32>
    %r = func.call @write(%a, %up_, %up) : (tensor<6xf32>, tensor<3x1xi32>, tensor<3xf32>) -> tensor<6xf32>
    %s = func.call @write(%b, {second}, %up) : (tensor<6xf32>, tensor<3x1xi32>, tensor<3xf32>) -> tensor<6xf32>
    return %r, %s : tensor<6xf32>, tensor<6xf32>
  }}
  func.func private @write(%op: tensor<6xf32>, %i: tensor<3x1xi32>, %up: tensor<3xf32>) -> tensor<6xf32> {{
    %s = "stablehlo.scatter"(%op, %i, %up) <{{scatter_dimension_numbers = #stablehlo.scatter<
      inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}}> ({{
      ^bb0(%c: tensor<f32>, %u: tensor<f32>):
        stablehlo.return %u : tensor<f32>
    }}) : (tensor<6xf32>, tensor<3x1xi32>, tensor<3xf32>) -> tensor<6xf32>
    return %s : tensor<6xf32>
  }}
}}"""


@pytest.mark.parametrize(
    ("second", "step", "rule"), [("%up_", 1, "shifted_rows"), ("%iota", None, "shifted_rows"), ("%down", -1, "while")]
)
def test_trap_40_a_run_at_every_call(second, step, rule):
    """A callee's scatter is one of a run where each call passes a run that goes up; one call that does not ends it."""
    text = CALLED.format(second=second)
    lowered = hl.lower(text)
    assert lowered.records[0].rule == rule
    executable, updates = Executable(lowered.text, "exact"), [1, 2, 3]
    for start in (-2, 0, 2, 4, 5, INT_MAX):
        found = executable.run([f32(np.zeros(6)), f32(np.zeros(6)), f32(updates), i32(start)])
        for result, begin, by in zip(found, (start, 0 if step is None else start), (1, step or 1), strict=True):
            expected = [0.0] * 6
            for k, value in enumerate(updates):
                if 0 <= begin + by * k < 6:
                    expected[begin + by * k] = value
            assert result.tolist() == expected


@pytest.mark.parametrize(
    ("element", "rows_", "size", "rule"),
    [("i8", 200, 20, "while"), ("i8", 29, 100, "while"), ("i8", 28, 100, "shifted_rows"), ("ui8", 10, 100, "while")],
)
def test_trap_41_affine_wrap_around(element, rows_, size, rule):
    """base + iota in a narrow type is a run only where what wraps around cannot come back into the operand."""
    bases = [120, 127, 100, 99, 72, 0, 1] + ([-128, -1, -100] if element == "i8" else [255, 250])
    check_run(rows_, size, bases, rule=rule, element=element)


def test_trap_41_a_type_that_the_operand_is_longer_than():
    """All of ui8 lies inside of 300 rows, and a run at 250 still goes on at 0."""
    check_run(10, 300, [250, 0, 255], rule="while", element="ui8")
