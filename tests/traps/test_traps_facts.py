"""Traps of facts: where a proof holds, and from where it does not."""

import jax
import numpy as np
import pytest
from one_scatter import INT_MAX, POLICIES, f32, i32, run

import hlo_lower as hl
from hlo_lower.verify.run import Executable

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


def test_trap_28_modes_of_jax():
    """JAX clips before the scatter, so that it is in bounds; its other modes give one and the same module."""

    def write(mode):
        return lambda x, i, row: jax.lax.scatter(
            x,
            i,
            row,
            jax.lax.ScatterDimensionNumbers((0,), (), (0,)),
            mode=mode,
        )

    arguments = f32(np.zeros(8)), i32([0]), f32([1, 2, 3])
    texts = {}
    for mode in ("clip", "drop", "promise_in_bounds"):
        chosen = jax.lax.GatherScatterMode.from_any("fill" if mode == "drop" else mode)
        texts[mode] = jax.jit(write(chosen)).lower(*arguments).as_text()
    assert texts["drop"] == texts["promise_in_bounds"]
    lowered = {mode: hl.lower(text) for mode, text in texts.items()}
    assert [lowered[mode].records[0].in_bounds for mode in ("clip", "drop")] == ["always", "unknown"]
    for start, clipped in ((-4, 0), (2, 2), (7, 5)):
        for mode in ("clip", "drop"):
            expected = np.zeros(8, np.float32)
            if mode == "clip" or start == clipped:
                expected[clipped : clipped + 3] = [1, 2, 3]
            assert run(texts[mode], arguments[0], i32([start]), arguments[2])[0].tolist() == expected.tolist()


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

    starts = [[0], [4], [2], [2]] + ([] if mode == "promise" else [[-3], [5 - window + 1], [9]])
    x, i = f32([1, 2, 3, 4, 5]), i32([[min(s, 5 - window)] for (s,) in starts] if mode == "promise" else starts)
    weights = f32(np.arange(1, len(starts) * window + 1).reshape(-1, window))
    source = jax.jit(jax.grad(loss)).lower(x, i, weights)
    expected = np.zeros(5, np.float32)
    for (start,), row in zip(i.tolist(), weights, strict=True):
        start = min(max(start, 0), 5 - window) if mode == "clip" else start
        for k, weight in enumerate(row):
            # A window that reaches out was not read at all, which is XLA's policy; the other one adds what is inside.
            if 0 <= start + k < 5 and (0 <= start <= 5 - window or oob == "spec"):
                expected[start + k] += weight
    lowered = hl.lower(source, oob=oob)
    assert len(lowered.records) == 1
    [found] = Executable(lowered.text, "exact").run([x, i, weights][3 - len(lowered.exported.in_avals) :])
    assert found.tolist() == expected.tolist()
    if oob == "xla":
        assert found.tolist() == np.asarray(jax.grad(loss)(x, i, weights)).tolist()


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


CARRIED = """
module {
  func.func @main(%op: tensor<6xf32>, %pos: tensor<i32>, %up: tensor<2xf32>, %by: tensor<i32>) -> tensor<6xf32> {
    %zero = stablehlo.constant dense<0> : tensor<i32>
    %last = stablehlo.constant dense<4> : tensor<i32>
    %first = stablehlo.clamp %zero, %pos, %last : tensor<i32>
    %r:3 = stablehlo.while(%k = %zero, %at = %first, %c = %op) : tensor<i32>, tensor<i32>, tensor<6xf32>
      cond {
        %n = stablehlo.constant dense<3> : tensor<i32>
        %p = stablehlo.compare LT, %k, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
        stablehlo.return %p : tensor<i1>
      } do {
        %one = stablehlo.constant dense<1> : tensor<i32>
        %i = stablehlo.reshape %at : (tensor<i32>) -> tensor<1xi32>
        %w = "stablehlo.scatter"(%c, %i, %up) <{scatter_dimension_numbers = #stablehlo.scatter<
          update_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 0>}> ({
          ^bb0(%cur: tensor<f32>, %u: tensor<f32>):
            stablehlo.return %u : tensor<f32>
        }) : (tensor<6xf32>, tensor<1xi32>, tensor<2xf32>) -> tensor<6xf32>
        %k_next = stablehlo.add %k, %one : tensor<i32>
        %moved = stablehlo.add %at, %by : tensor<i32>
        %held = stablehlo.clamp %zero, %moved, %last : tensor<i32>
        stablehlo.return %k_next, NEXT, %w : tensor<i32>, tensor<i32>, tensor<6xf32>
      }
    return %r#2 : tensor<6xf32>
  }
}"""


@pytest.mark.parametrize(("following", "in_bounds"), [("%held", "always"), ("%at", "always"), ("%moved", "unknown")])
def test_trap_40_in_a_loop(following, in_bounds):
    """Bounds of a loop-carried index are those of its first value only if every iteration keeps them."""
    lowered = hl.lower(CARRIED.replace("NEXT", following))
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
    if rule == "while":  # no run: of the forms for any windows the loop is asked for
        assert hl.lower(text).records[0].rule != "shifted_rows"
    lowered = hl.lower(text, prefer=("while",) if rule == "while" else ())
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
