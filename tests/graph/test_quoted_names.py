"""Functions whose names have to be quoted, as `jit(lambda)` makes them, are called and kept like others."""

import hlo_lower as hl
from hlo_lower.ir import mlir

TEXT = """\
func.func public @main(%p: tensor<i32>, %x: tensor<4xf32>) -> tensor<4xf32> {
  %r = "stablehlo.case"(%p) ({
    %a = func.call @"<lambda>"(%x) : (tensor<4xf32>) -> tensor<4xf32>
    stablehlo.return %a : tensor<4xf32>
  }, {
    stablehlo.return %x : tensor<4xf32>
  }) : (tensor<i32>) -> tensor<4xf32>
  return %r : tensor<4xf32>
}
func.func private @"<lambda>"(%x: tensor<4xf32>) -> tensor<4xf32> {
  %y = stablehlo.add %x, %x : tensor<4xf32>
  return %y : tensor<4xf32>
}
"""


def test_a_function_with_a_quoted_name_is_kept_where_it_is_called():
    """Branches become selects, and the function that one of them calls is not taken for one that nothing names."""
    target = hl.Target("npu", refused={"stablehlo.scatter": "lowered", "stablehlo.case": "none"})
    lowered = hl.lower(TEXT, target=target)
    assert lowered.refused == ()
    assert hl.verify(TEXT, lowered, level="full").ok


def test_symbols_are_named_without_quotes():
    """Plain ones and quoted ones."""
    module = mlir.parse_module(TEXT)
    calls = [op for op in mlir.walked(module.operation) if op.name == "func.call"]
    assert [mlir.symbols_in(op) for op in calls] == [{"<lambda>"}]
