"""Folds of which one number along a dim decides where anything is done: as loops, and as rows of one matrix."""

import numpy as np
import pytest

from hlo_lower.ir import mlir
from hlo_lower.ir.shapes.bind import bind_module
from hlo_lower.verify.pull import derive, folding
from hlo_lower.verify.run import Executable

ROWS, EACH, SIZE = 12, 4, 6
ALIASES = f"""!C = tensor<i64>
!S = tensor<i32>
!E = tensor<1x1xf32>
!X = tensor<{ROWS}x{SIZE}xf32>
!I = tensor<{ROWS}x{EACH}xi32>
!I3 = tensor<{ROWS}x{EACH}x1xi32>
!U = tensor<{ROWS}x{EACH}xf32>
!T = tensor<{ROWS}x{EACH}xi1>
!F = tensor<{ROWS * SIZE}xf32>
!V = tensor<{ROWS * EACH}xf32>
!J = tensor<{ROWS * EACH}x1xi32>
"""


def function(body):
    """A module of numbers, columns of theirs, and what is added there."""
    return f"{ALIASES}func.func @main(%x: !X, %i: !I, %u: !U) -> !X {{\n{body}\n}}"


IN_ROWS = function("""
  %i3 = stablehlo.reshape %i : (!I) -> !I3
  %r = "stablehlo.scatter"(%x, %i3, %u) ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %s = stablehlo.add %a, %b : tensor<f32>
      stablehlo.return %s : tensor<f32>
  }) {scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [1], input_batching_dims = [0],
        scatter_indices_batching_dims = [0], scatter_dims_to_operand_dims = [1], index_vector_dim = 2>}
    : (!X, !I3, !U) -> !X
  return %r : !X""")


def loop(by=EACH, rest=EACH, number="%k", row="%q", read="%q, %m", last=SIZE - 1):
    """The same, one window after the other: which number a turn has, its row, and where it reads."""
    names = {"zero": 0, "one": 1, "count": ROWS * EACH, "by": by, "rest": rest, "end": ROWS * EACH - 1}
    numbers = "\n".join(f"%{n} = stablehlo.constant dense<{v}> : !C" for n, v in names.items())
    text = f"""
  %low = stablehlo.constant dense<0> : !S
  %high = stablehlo.constant dense<{last}> : !S
  %w:2 = stablehlo.while(%k = %zero, %v = %x) : !C, !X
    cond {{
      %t = stablehlo.compare LT, %k, %count, SIGNED : (!C, !C) -> tensor<i1>
      stablehlo.return %t : tensor<i1>
    }} do {{
      %turned = stablehlo.subtract %end, %k : !C
      %quotient = stablehlo.divide {number}, %by : !C
      %left = stablehlo.remainder {number}, %rest : !C
      %q = stablehlo.convert %quotient : (!C) -> !S
      %m = stablehlo.convert %left : (!C) -> !S
      %j = stablehlo.dynamic_slice %i, {read}, sizes = [1, 1] : (!I, !S, !S) -> tensor<1x1xi32>
      %at = stablehlo.reshape %j : (tensor<1x1xi32>) -> !S
      %start = stablehlo.clamp %low, %at, %high : !S
      %is = stablehlo.compare EQ, %start, %at, SIGNED : (!S, !S) -> tensor<i1>
      %new = stablehlo.dynamic_slice %u, {read}, sizes = [1, 1] : (!U, !S, !S) -> !E
      %old = stablehlo.dynamic_slice %v, {row}, %start, sizes = [1, 1] : (!X, !S, !S) -> !E
      %sum = stablehlo.add %old, %new : !E
      %some = stablehlo.select %is, %sum, %old : tensor<i1>, !E
      %next = stablehlo.dynamic_update_slice %v, %some, {row}, %start : (!X, !E, !S, !S) -> !X
      %more = stablehlo.add %k, %one : !C
      stablehlo.return %more, %next : !C, !X
    }}
  return %w#1 : !X"""
    return function(numbers + text)


def flat(size=SIZE, filler="-0.0", least=0, turned=""):
    """The same as rows of one matrix: what reaches out adds nothing to its first number."""
    order = f"%v3 = stablehlo.reverse %v2, dims = [{turned}] : !V" if turned else ""
    return function(f"""
  %flat = stablehlo.reshape %x : (!X) -> !F
  %low = stablehlo.constant dense<{least}> : !I
  %high = stablehlo.constant dense<{SIZE - 1}> : !I
  %zero = stablehlo.constant dense<0> : !I
  %size = stablehlo.constant dense<{size}> : !I
  %none = stablehlo.constant dense<{filler}> : !U
  %a = stablehlo.compare GE, %i, %low, SIGNED : (!I, !I) -> !T
  %b = stablehlo.compare LE, %i, %high, SIGNED : (!I, !I) -> !T
  %is = stablehlo.and %a, %b : !T
  %row = stablehlo.iota dim = 0 : !I
  %begin = stablehlo.multiply %row, %size : !I
  %sum = stablehlo.add %begin, %i : !I
  %at = stablehlo.select %is, %sum, %zero : !T, !I
  %v = stablehlo.select %is, %u, %none : !T, !U
  %at2 = stablehlo.reshape %at : (!I) -> !J
  %v2 = stablehlo.reshape %v : (!U) -> !V
  {order}
  %r = "stablehlo.scatter"(%flat, %at2, %v{3 if turned else 2}) ({{
    ^bb0(%c: tensor<f32>, %d: tensor<f32>):
      %s = stablehlo.add %c, %d : tensor<f32>
      stablehlo.return %s : tensor<f32>
  }}) {{scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0], scatter_dims_to_operand_dims = [0],
        index_vector_dim = 1>}} : (!F, !J, !V)
        -> !F
  %back = stablehlo.reshape %r : (!F) -> !X
  return %back : !X""")


EQUAL = {
    "a loop": loop(),
    "a loop over columns first": loop(by=ROWS, rest=ROWS, row="%m", read="%m, %q"),
    "rows of one matrix": flat(),
}

DIFFERENT = {
    "turns in the other order": loop(number="%turned"),
    "fewer in each row": loop(by=EACH - 1),
    "more in each row": loop(by=EACH + 2),
    "columns first, in the other order": loop(by=ROWS, rest=ROWS, row="%m", read="%m, %q", number="%turned"),
    "a remainder by another number": loop(rest=EACH - 1),
    "columns that are all in one row": loop(row="%low"),
    "a column less": loop(last=SIZE - 2),
    "rows that overlap": flat(SIZE - 1),
    "rows with gaps": flat(SIZE + 1),
    "fillers that lose a sign": flat(filler="0.0"),
    "what stands before a row": flat(least=-1),
    "updates in the other order": flat(turned="0"),
}


def are_equal(first, second):
    """Whether two modules give the same bits on drawn numbers, columns outside and signs of zeros among them."""
    versions = [Executable(text, "exact") for text in (first, second)]
    for seed in range(4):
        rng = np.random.default_rng(seed)
        x = (rng.normal(size=(ROWS, SIZE)) * 10.0 ** rng.integers(-6, 6, (ROWS, SIZE))).astype(np.float32)
        x[rng.random(x.shape) < 0.3] = -0.0
        u = (rng.normal(size=(ROWS, EACH)) * 10.0 ** rng.integers(-6, 6, (ROWS, EACH))).astype(np.float32)
        i = rng.integers(-2, SIZE + 2, versions[0].arguments[1].shape).astype(np.int32)
        one, other = (version.run([x, i, u])[0] for version in versions)
        if one.tobytes() != other.tobytes():
            return False
    return True


@pytest.mark.parametrize("name", EQUAL)
def test_steps_at_one_number_are_a_fold_over_the_others(name):
    """A row is written in those turns alone that have its number."""
    found = derive(IN_ROWS, EQUAL[name])
    assert (found.status, "one number of a dim" in found.laws) == ("derived", True)
    assert are_equal(IN_ROWS, EQUAL[name])


@pytest.mark.few(5)
@pytest.mark.parametrize("name", DIFFERENT)
def test_what_differs_is_not_derived(name):
    """Though most turns do nothing there, too."""
    assert not are_equal(IN_ROWS, DIFFERENT[name])
    assert not derive(IN_ROWS, DIFFERENT[name], seconds=0.5)


def test_it_is_asked_whether_the_others_do_nothing(monkeypatch):
    """Else what stands before a row is derived, which the row before it has."""
    before = DIFFERENT["what stands before a row"]
    monkeypatch.setattr(folding, "_implies", lambda *_: True)
    assert derive(IN_ROWS, before).status == "derived"


ANY = f"func.func @main(%x: tensor<?x{SIZE}xf32>, %i: tensor<?x{EACH}x1xi32>, %u: tensor<?x{EACH}xf32>)"
ANY_IN_ROWS = f"""{ANY} -> tensor<?x{SIZE}xf32> {{
  %some = stablehlo.slice %x [0:1, 0:{SIZE}] : (tensor<?x{SIZE}xf32>) -> tensor<1x{SIZE}xf32>
  %r = "stablehlo.scatter"(%x, %i, %u) ({{
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %s = stablehlo.add %a, %b : tensor<f32>
      stablehlo.return %s : tensor<f32>
  }}) {{scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [1], input_batching_dims = [0],
        scatter_indices_batching_dims = [0], scatter_dims_to_operand_dims = [1], index_vector_dim = 2>}}
    : (tensor<?x{SIZE}xf32>, tensor<?x{EACH}x1xi32>, tensor<?x{EACH}xf32>) -> tensor<?x{SIZE}xf32>
  return %r : tensor<?x{SIZE}xf32>
}}"""


def any_loop(by=EACH, times=EACH, row="%q"):
    """`loop` over the rows of any number of them."""
    return f"""{ANY} -> tensor<?x{SIZE}xf32> {{
  %zero = stablehlo.constant dense<0> : tensor<i64>
  %one = stablehlo.constant dense<1> : tensor<i64>
  %by = stablehlo.constant dense<{by}> : tensor<i64>
  %times = stablehlo.constant dense<{times}> : tensor<i64>
  %low = stablehlo.constant dense<0> : tensor<i32>
  %high = stablehlo.constant dense<{SIZE - 1}> : tensor<i32>
  %rows = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?x{SIZE}xf32>) -> tensor<i32>
  %n = stablehlo.convert %rows : (tensor<i32>) -> tensor<i64>
  %count = stablehlo.multiply %n, %times : tensor<i64>
  %w:2 = stablehlo.while(%k = %zero, %v = %x) : tensor<i64>, tensor<?x{SIZE}xf32>
    cond {{
      %t = stablehlo.compare LT, %k, %count, SIGNED : (tensor<i64>, tensor<i64>) -> tensor<i1>
      stablehlo.return %t : tensor<i1>
    }} do {{
      %quotient = stablehlo.divide %k, %by : tensor<i64>
      %left = stablehlo.remainder %k, %by : tensor<i64>
      %q = stablehlo.convert %quotient : (tensor<i64>) -> tensor<i32>
      %m = stablehlo.convert %left : (tensor<i64>) -> tensor<i32>
      %j = stablehlo.dynamic_slice %i, %q, %m, %low, sizes = [1, 1, 1]
        : (tensor<?x{EACH}x1xi32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x1x1xi32>
      %at = stablehlo.reshape %j : (tensor<1x1x1xi32>) -> tensor<i32>
      %start = stablehlo.clamp %low, %at, %high : tensor<i32>
      %is = stablehlo.compare EQ, %start, %at, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      %new = stablehlo.dynamic_slice %u, %q, %m, sizes = [1, 1]
        : (tensor<?x{EACH}xf32>, tensor<i32>, tensor<i32>) -> tensor<1x1xf32>
      %old = stablehlo.dynamic_slice %v, {row}, %start, sizes = [1, 1]
        : (tensor<?x{SIZE}xf32>, tensor<i32>, tensor<i32>) -> tensor<1x1xf32>
      %sum = stablehlo.add %old, %new : tensor<1x1xf32>
      %some = stablehlo.select %is, %sum, %old : tensor<i1>, tensor<1x1xf32>
      %next = stablehlo.dynamic_update_slice %v, %some, {row}, %start
        : (tensor<?x{SIZE}xf32>, tensor<1x1xf32>, tensor<i32>, tensor<i32>) -> tensor<?x{SIZE}xf32>
      %more = stablehlo.add %k, %one : tensor<i64>
      stablehlo.return %more, %next : tensor<i64>, tensor<?x{SIZE}xf32>
    }}
  return %w#1 : tensor<?x{SIZE}xf32>
}}"""


@pytest.mark.parametrize(
    ("after", "is_equal"),
    [
        (any_loop(), True),
        (any_loop(by=EACH - 1), False),
        (any_loop(times=EACH - 1), False),
        (any_loop(row="%m"), False),
    ],
    ids=["as many", "fewer in each row", "fewer turns", "rows taken for columns"],
)
def test_it_holds_for_any_number_of_rows(after, is_equal):
    """The size of the outer dim is the number of turns divided by that of the inner one."""
    sizes = {"arg0.0": ROWS, "arg1.0": ROWS, "arg2.0": ROWS}
    bound = [mlir.print_module(bind_module(mlir.parse_module(text), sizes)) for text in (ANY_IN_ROWS, after)]
    assert are_equal(*bound) == is_equal
    assert bool(derive(ANY_IN_ROWS, after)) == is_equal
