"""Positions that a piece counts from no input are written as constants, where both judges compute the same."""

import numpy as np
import pytest
from untyped_mlir import module

from hlo_lower.ir import mlir
from hlo_lower.verify import verify
from hlo_lower.verify.judges import without_inputs
from hlo_lower.verify.judges.interpreter import InterpreterError, shared_interpreter
from hlo_lower.verify.judges.without_inputs import with_computed_positions
from hlo_lower.verify.pull import derive

DERIVES = True

COUNTED = """%i = iota dim = 0 : 4x4xi32; %j = iota dim = 1 : 4x4xi32; %t = compare GE, %i, %j
%f = reshape %t -> 16xi1; %n = convert %f -> 16xi32; %z = constant 0 : i32
%w = reduce_window(%n, %z) <window_dimensions = array<i64: 16>, padding = dense<[[15, 0]]>
  : tensor<1x2xi64>> {add} -> 16xi32"""

TRIL = """module {{
  func.func public @main(%x: tensor<4x4xf32>, %u: tensor<10xf32>) -> tensor<4x4xf32> {{
    %i = stablehlo.iota dim = 0 : tensor<4x4xi32>
    %j = stablehlo.iota dim = 1 : tensor<4x4xi32>
    %t = stablehlo.compare GE, %i, %j : (tensor<4x4xi32>, tensor<4x4xi32>) -> tensor<4x4xi1>
    %flat = stablehlo.reshape %t : (tensor<4x4xi1>) -> tensor<16xi1>
    %not = stablehlo.not %flat : tensor<16xi1>
    %key = stablehlo.convert %not : (tensor<16xi1>) -> tensor<16xi32>
    %number = stablehlo.iota dim = 0 : tensor<16xi32>
    %sorted:2 = "stablehlo.sort"(%key, %number) <{{dimension = 0 : i64, is_stable = true}}> ({{
    ^bb0(%a: tensor<i32>, %b: tensor<i32>, %c: tensor<i32>, %d: tensor<i32>):
      %lt = stablehlo.compare LT, %a, %b : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %lt : tensor<i1>
    }}) : (tensor<16xi32>, tensor<16xi32>) -> (tensor<16xi32>, tensor<16xi32>)
    %first = stablehlo.slice %sorted#1 [0:10] : (tensor<16xi32>) -> tensor<10xi32>
    %four = stablehlo.constant dense<4> : tensor<10xi32>
    %row = stablehlo.divide %first, %four : tensor<10xi32>
    %column = stablehlo.remainder %first, %four : tensor<10xi32>
    %rows = stablehlo.reshape %row : (tensor<10xi32>) -> tensor<10x1xi32>
    %columns = stablehlo.reshape %column : (tensor<10xi32>) -> tensor<10x1xi32>
    %at = stablehlo.concatenate %rows, %columns, dim = 1 : (tensor<10x1xi32>, tensor<10x1xi32>) -> tensor<10x2xi32>
    %r = "stablehlo.scatter"(%x, %at, %u) <{{scatter_dimension_numbers = #stablehlo.scatter<
        inserted_window_dims = [0, 1], scatter_dims_to_operand_dims = [0, 1], index_vector_dim = 1>}}> ({{
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      stablehlo.return %b : tensor<f32>
    }}) : (tensor<4x4xf32>, tensor<10x2xi32>, tensor<10xf32>) -> tensor<4x4xf32>
    return %r : tensor<4x4xf32>
  }}
}}""".format()


def rows(*starts):
    """Each row of a lower triangle written at a place."""
    lines, before = ["%z = constant 0 : i32"], "%x"
    for n, start in enumerate(starts, 1):
        begin = n * (n - 1) // 2
        lines += [f"%s{n} = slice %u [{begin}:{begin + n}]", f"%u{n} = reshape %s{n} -> 1x{n}xf32"]
        name = "%r" if n == len(starts) else f"%x{n}"
        lines += [f"%c{n} = constant {start} : i32", f"{name} = dynamic_update_slice {before}, %u{n}, %c{n}, %z"]
        before = name
    return module("%x: 4x4xf32, %u: 10xf32", "\n".join(lines))


def computed(text):
    """The module with computed positions."""
    return with_computed_positions(text, shared_interpreter())


def test_a_triangle_is_its_rows():
    """Positions by a sort of iotas on one side, rows at constant places on the other."""
    verdict = verify(TRIL, rows(0, 1, 2, 3), level="regions", require="derived")
    assert verdict.exit_code == 0, verdict.lines()
    assert "no input" in verdict.regions[0].laws
    assert not derive(computed(TRIL), rows(0, 1, 3, 2))


def test_what_is_written_is_what_is_computed():
    """Counted integers become constants where a float, or an operation with an input, reads them."""
    text = module("%x: 16xi32", f"{COUNTED}; %m = add %w, %x; %k = multiply %w, %w; %r = subtract %m, %k")
    found = computed(text)
    assert found is not None
    constants = [
        mlir.constant_value(op)
        for op in mlir.operations_within(mlir.parse_module(found).operation)
        if op.name == "stablehlo.constant"
    ]
    count = np.cumsum(np.tril(np.ones((4, 4), np.int32)).reshape(-1))
    assert any(np.array_equal(one, count) for one in constants)
    assert any(np.array_equal(one, count * count) for one in constants)
    x = np.arange(16, dtype=np.int32)
    for one in (text, found):
        [given] = mlir.interpret(one, [x])
        assert np.array_equal(given, count + x - count * count)


@pytest.mark.parametrize(
    "body",
    [
        "%i = iota dim = 0 : 16xi32; %r = add %x, %i",  # nothing is counted
        COUNTED.replace("constant 0 : i32", "slice %x [0:1]; %z = reshape %zero -> i32").replace(
            "%z = slice", "%zero = slice"
        )
        + "; %r = add %w, %x",
        "%p = iota dim = 0 : 16xf32; %e = exponential %p; %f = convert %e -> 16xi32; %z = constant 0 : i32\n"
        "%s = reduce(%f, %z) <dimensions = array<i64: 0>> {add} -> i32\n"
        "%b = broadcast_in_dim %s, dims = [] -> 16xi32; %r = add %x, %b",  # rounded by each in its own way
        "%z = constant 0 : i32; %k = while(%i = %z) cond { %c = compare LT, %i, 3; return %c } do { %n = add %i, 1\n"
        "  return %n }; %b = broadcast_in_dim %k, dims = [] -> 16xi32\n"
        "%s = reduce(%b, %z) <dimensions = array<i64: 0>> {add} -> i32\n"
        "%d = broadcast_in_dim %s, dims = [] -> 16xi32; %r = add %x, %d",  # a loop may not end
        "%p = partition_id : ui32; %f = convert %p -> i32; %b = broadcast_in_dim %f, dims = [] -> 16xi32\n"
        "%z = constant 0 : i32; %s = reduce(%b, %z) <dimensions = array<i64: 0>> {add} -> i32\n"
        "%c = broadcast_in_dim %s, dims = [] -> 16xi32; %r = add %x, %c",  # another one on each device
    ],
)
def test_what_is_not_computed(body):
    """Without counting, from an input, from rounded floats, by a loop, and from what is not the same everywhere."""
    assert computed(module("%x: 16xi32", body)) is None


def test_both_judges_are_asked(monkeypatch):
    """Where the interpreter says another thing, or nothing, the piece stays as it is."""
    text = module("%x: 16xi32", f"{COUNTED}; %r = add %w, %x")
    assert computed(text) is not None

    class Other:
        def run(self, *_):
            return [np.zeros(16, np.int32)]

    class Silent:
        def run(self, *_):
            raise InterpreterError("no answer")

    assert [with_computed_positions(text, one) for one in (Other(), Silent())] == [None, None]
    for name, most in (("MOST_ELEMENTS", 15), ("MOST_WORK", 255)):
        with monkeypatch.context() as patch:
            patch.setattr(without_inputs, name, most)
            assert computed(text) is None
