"""Layers that are alike: each needs as much, so that a loop in one of them alone leaves the peak where it is."""

import hlo_lower as hl
from hlo_lower.tile.entry import tile
from hlo_lower.tile.plan_search import Beyond
from hlo_lower.verify import Assumed, verify

LAYER = """\
  %s{k} = stablehlo.dot_general {x}, {x}, contracting_dims = [1] x [1]
    : (tensor<64x2xf32>, tensor<64x2xf32>) -> tensor<64x64xf32>
  %e{k} = stablehlo.exponential %s{k} : tensor<64x64xf32>
  %y{k} = stablehlo.dot_general %e{k}, {x}, contracting_dims = [1] x [0]
    : (tensor<64x64xf32>, tensor<64x2xf32>) -> tensor<64x2xf32>
  %x{k} = stablehlo.tanh %y{k} : tensor<64x2xf32>
"""
LAYERS = "".join(LAYER.format(k=k, x=f"%x{k - 1}" if k else "%x") for k in range(3))
TEXT = (
    f"func.func public @main(%x: tensor<64x2xf32>) -> tensor<64x2xf32> {{\n{LAYERS}  return %x2 : tensor<64x2xf32>\n}}"
)


def test_layers_that_are_alike_are_all_tiled(estimated):
    """Each gets its loop, though the first two gain nothing by themselves; and nothing else is computed."""
    found = tile(TEXT, max_temp=8 << 10)
    assert found.reached, found.summary()
    assert len(found.loops) == 3
    assert verify(TEXT, found.text, Assumed(reassociated=True), level="regions").ok


def test_without_looking_beyond_the_peak_none_is(estimated, monkeypatch):
    """What is taken then is what gains at once, which none does."""
    monkeypatch.setattr(Beyond, "is_level", lambda one, other: False)
    assert tile(TEXT, max_temp=8 << 10).loops == ()


def test_loops_that_lead_to_nothing_are_not_kept(estimated):
    """Where one layer cannot be tiled the module stays as it is: loops that leave the peak are worth nothing."""
    whole = "stablehlo.custom_call @f(%s1) : (tensor<64x64xf32>) -> tensor<64x64xf32>"
    text = TEXT.replace("stablehlo.exponential %s1 : tensor<64x64xf32>", whole)
    found = tile(hl.read(text), max_temp=8 << 10)
    assert not found.reached
    assert found.loops == ()
