"""Where alike scatters stand, in as few words as tell it."""

import pytest

from hlo_lower.report.place import Group, where


@pytest.mark.parametrize(
    ("places", "expected"),
    [
        (["llama.py:8"], "llama.py:8"),
        (["llama.py:8", "llama.py:8"], "llama.py:8"),
        (["llama.py:8", "llama.py:9", "llama.py:8"], "llama.py:8, 9"),
        (["llama.py:8", "llama.py:9", "llama.py:20"], "llama.py:8 ... 20"),
        (["llama.py:8", "moe.py:3"], "llama.py:8 and 1 more"),
        (["decode.mlir:8"], "line 8"),
        (["decode.mlir:8", "decode.mlir:9"], "lines 8, 9"),
        (["unknown"], "unknown"),
        ([f"{'x' * 40}.py:7"], f"{'x' * 13}...{'x' * 13}.py:7"),
    ],
)
def test_source_lines(record, places, expected):
    """One line, two lines, a range of lines, several files; a module's own lines go without its name."""
    group = Group(tuple(record(number, location=place, scope="") for number, place in enumerate(places)))
    assert expected == where(group)


@pytest.mark.parametrize(
    ("layers", "expected"),
    [
        (["layer_0"], "layer 0"),
        (["layer_0", "layer_0"], "layer 0"),
        (["layer_0", "layer_1", "layer_2"], "layers 0-2"),
        (["layer_0", "layer_2"], "layers 0, 2"),
        (["layer_0", "layer_2", "layer_4", "layer_7"], "layers 0 ... 7"),
        (["layer_0/attention", "layer_1/attention"], "layers 0-1/attention"),
        (["layer_0/attention", "layer_0/moe"], "layer 0/attention and 1 more"),
        (["encoder", "decoder"], "encoder and 1 more"),
    ],
)
def test_layers(record, layers, expected):
    """A run of layers is a range; names that differ otherwise are counted."""
    group = Group(tuple(record(number, scope=f"jit(f)/{layer}/scatter") for number, layer in enumerate(layers)))
    assert f"llama.py:88 {expected}" == where(group)
