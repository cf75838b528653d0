"""Which ops are functions of their operands, against the ops that jaxlib has."""

import importlib
import inspect

import hlo_lower as hl
from hlo_lower.ops.purity import FUNCTIONS, PURE_OPS


def ops_of(dialect):
    """The names of a dialect's ops."""
    classes = vars(importlib.import_module(f"jax.extend.mlir.dialects.{dialect}")).values()
    return {c.OPERATION_NAME for c in classes if inspect.isclass(c) and hasattr(c, "OPERATION_NAME")}


OTHERS = {
    "speaks with a host or another device": "after_all all_gather all_reduce all_to_all async_done async_start "
    "collective_broadcast collective_permute create_token cross-replica-sum infeed outfeed recv reduce_scatter send",
    "reads a state": "partition_id replica_id rng",
    "is what it calls": "composite custom_call",
    "is made of another op before anything is lowered": "broadcast dot einsum set_dimension_size torch_index_select "
    "unary_einsum",
    "is of types that are not read": "uniform_dequantize uniform_quantize",
}
"""Ops of StableHLO that do not count, by the reason."""


def test_every_op_is_told():
    """Each op of StableHLO is a function, or has a reason not to count as one."""
    ops = ops_of("stablehlo")
    others = {f"stablehlo.{name}" for names in OTHERS.values() for name in names.split()}
    assert not others & FUNCTIONS
    assert {op for op in ops if op not in FUNCTIONS} <= others


def test_ops_of_chlo_are_chlos():
    """Each op of chlo in the table is one that jaxlib has."""
    assert {op for op in PURE_OPS if op.startswith("chlo.")} <= ops_of("chlo")


def test_what_a_lowering_leaves_dead_goes():
    """The update of a scatter that keeps what is there is computed no more, by whatever pure op it was."""
    text = """func.func public @main(%o: tensor<8xf32>, %i: tensor<1xi32>, %u: tensor<f32>) -> tensor<8xf32> {
  %t = OP %u : tensor<f32>
  %r = "stablehlo.scatter"(%o, %i, %t) ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      stablehlo.return %a : tensor<f32>
  }) {scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0], scatter_dims_to_operand_dims = [0]>}
    : (tensor<8xf32>, tensor<1xi32>, tensor<f32>) -> tensor<8xf32>
  return %r : tensor<8xf32>
}"""
    for op in ("stablehlo.tanh", "stablehlo.exponential", "stablehlo.cosine", "stablehlo.cbrt"):
        assert op not in hl.lower(text.replace("OP", op)).stablehlo
