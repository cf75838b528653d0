"""What is dead goes."""

import hlo_lower as hl


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
