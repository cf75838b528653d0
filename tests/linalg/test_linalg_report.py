"""What a module in linalg still holds, and what was taken off, is told by name and number."""

import pytest
from leaving import left_as_linalg
from rewrites import main

import hlo_lower as hl
from hlo_lower.ir import mlir
from hlo_lower.ir.reader import read
from hlo_lower.lowering.linalg.lower import to_linalg

U, F = "tensor<4xui32>", "tensor<4xf32>"
LEFT = main(
    f"%a: {U}, %b: {F}",
    f"""%0 = stablehlo.custom_call @my_kernel(%a) : ({U}) -> {U}
  %1 = stablehlo.custom_call @my_kernel(%0) : ({U}) -> {U}
  %2 = stablehlo.maximum %1, %a : {U}
  %3:2 = "stablehlo.sort"(%2, %b) <{{dimension = 0 : i64}}> ({{
  ^bb0(%x: tensor<ui32>, %y: tensor<ui32>, %p: tensor<f32>, %q: tensor<f32>):
    %c = stablehlo.compare LE, %x, %y : (tensor<ui32>, tensor<ui32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  }}) : ({U}, {F}) -> ({U}, {F})""",
    f"%3#0, %3#1 : {U}, {F}",
)
SHARDED = """
module @sharded attributes {mhlo.num_partitions = 2 : i32} {
  sdy.mesh @mesh = <["x"=2]>
  func.func @main(%a: tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>, tf.aliasing_output = 0 : i32},
                  %b: tensor<4xf32> {mhlo.sharding = "{replicated}"}) -> (tensor<4xf32> {jax.result_info = "r"}) {
    %0 = stablehlo.add %a, %b {mhlo.frontend_attributes = {note = "x"}} : tensor<4xf32>
    return %0 : tensor<4xf32>
  }
}
"""
PARTS = f"""%0 = stablehlo.composite "my.op" %a {{decomposition = @twice}} : ({F}) -> {F}
  %1 = chlo.erf %0 : {F} -> {F}
  %2 = stablehlo.optimization_barrier %1 : {F}"""
WITH_PARTS = main(f"%a: {F}, %p: tensor<i1>", PARTS, f"%2 : {F}")
WITH_PARTS += f"func.func private @twice(%a: {F}) -> {F} {{ %0 = stablehlo.add %a, %a : {F} return %0 : {F} }}"
E, N, REDUCED = "tensor<0x3xi32>", "tensor<4xi32>", "stablehlo.reduce({} init: %zero) applies stablehlo.add across"
OTHER_WORDS = main(
    f"%s: tensor<ui32>, %t: tensor<1xui32>, %e: {E}, %a: {N}",
    f"""%zero = stablehlo.constant dense<0> : tensor<i32>
  %0 = stablehlo.broadcast_in_dim %s, dims = [] : (tensor<ui32>) -> tensor<4x8xui32>
  %1 = stablehlo.broadcast_in_dim %t, dims = [2] : (tensor<1xui32>) -> tensor<1x3x1xui32>
  %2 = {REDUCED.format("%e")} dimensions = [0] : ({E}, tensor<i32>) -> tensor<3xi32>
  %3 = {REDUCED.format("%a")} dimensions = [] : ({N}, tensor<i32>) -> {N}""",
    f"%0, %1, %2, %3 : tensor<4x8xui32>, tensor<1x3x1xui32>, tensor<3xi32>, {N}",
)


@pytest.mark.parametrize("named", [True, False])
def test_what_the_pass_leaves_is_reported(named):
    """Operations of other dialects are told by name, custom calls with their target, and keep their unsigned types; the
    sort is left because LE is no strict order."""
    text, report = left_as_linalg(LEFT, named=named)
    counts = dict(report.left)
    assert counts.pop("builtin.unrealized_conversion_cast") > 0
    assert counts == {"stablehlo.custom_call @my_kernel": 2, "stablehlo.sort": 1}
    assert not report.is_complete
    assert report.signless == ("ui32",)
    assert "@main(%arg0: tensor<4xi32>, " in text
    assert "@my_kernel(%0) : (tensor<4xui32>) -> tensor<4xui32>" in text
    assert "left: " in report.summary()
    assert "signless now: ui32" in report.lines()


def test_shardings_are_removed_and_counted():
    """Attributes that only StableHLO's readers know go, with the meshes; donation stays."""
    text, report = left_as_linalg(SHARDED, named=True)
    names = ("mhlo.frontend_attributes", "mhlo.num_partitions", "mhlo.sharding", "sdy.mesh", "sdy.sharding")
    assert dict(report.removed) == dict.fromkeys(names, 1)
    assert report.is_complete
    assert "tf.aliasing_output = 0 : i32" in text
    assert "sdy" not in text
    assert "mhlo" not in text


def test_composites_and_chlo_become_plain_first():
    """Composites are called, chlo is expanded, a barrier is what goes into it: nothing of them is left."""
    text, report = left_as_linalg(WITH_PARTS, named=True)
    assert report.is_complete, report.lines()
    assert "call @twice" in text


@pytest.mark.parametrize("named", [True, False])
def test_what_jaxlib_does_not_take_is_said_in_other_words(named):
    """Broadcasts of one unsigned element and reductions of or over nothing, which jaxlib's pass breaks or leaves."""
    text, report = left_as_linalg(OTHER_WORDS, named=named)
    assert report.is_complete, report.lines()
    assert "-> (tensor<4x8xi32>, tensor<1x3x1xi32>, tensor<3xi32>, tensor<4xi32>)" in text


def test_a_pass_that_fails_is_a_clear_error(monkeypatch):
    """Where jaxlib's pass fails, the error names the module, the pass and what to do."""

    def fail(*_):
        raise mlir.PassError("it fails")

    monkeypatch.setattr(mlir, "run_pass", fail)
    graph = read("func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> { return %a : tensor<4xf32> }", "here.mlir")
    with pytest.raises(hl.NotLoweredError) as error:
        to_linalg(graph, named=True)
    assert str(error.value).splitlines() == [
        "here.mlir: stablehlo-legalize-to-linalg{enable-primitive-ops=true}: it fails",
        "  next:    --target stablehlo writes the module without linalg",
    ]
