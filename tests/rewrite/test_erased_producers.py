"""An op that is to be lowered may go with the only one that read it, and what takes its place is looked at again."""

import hlo_lower as hl

SOFTMAX = """func.func public @main(%x: tensor<3x5xbf16>) -> tensor<3x5xbf16> {
  %low = stablehlo.constant dense<0xFF80> : tensor<bf16>
  %most = stablehlo.broadcast_in_dim %low, dims = [] : (tensor<bf16>) -> tensor<3x5xbf16>
  %y = stablehlo.maximum %x, %most : tensor<3x5xbf16>
  return %y : tensor<3x5xbf16>
}"""


def test_a_constant_whose_reader_takes_another_type_is_lowered_in_that():
    """LiteRT refuses infinite constants, and bf16: the reader of the first constant gets one of f32."""
    lowered = hl.lower(SOFTMAX, target="litert")
    assert "0xFF80" not in lowered.text
    assert lowered.refused == ()
    assert hl.verify(SOFTMAX, lowered, level="regions").ok
