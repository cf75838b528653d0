"""Exports of real frameworks, where they are there: raised they are equal, and written out they are what they were."""

import pytest
from structural_text import structure
from test_corpus import MODULES, name, needs_corpus

import hlo_lower as hl


@pytest.mark.sweep
@needs_corpus
@pytest.mark.parametrize("path", MODULES, ids=name)
def test_raised_and_written_out_it_is_the_same(path):
    """Each op is there as often as before, and takes what it took."""
    before = hl.read(path.read_text())
    written_out = hl.inline_named(hl.raise_named(before).text)
    assert structure(before) == structure(written_out)


@pytest.mark.sweep
@needs_corpus
@pytest.mark.parametrize("path", MODULES, ids=name)
def test_a_raised_module_is_verified(path):
    """Verification, which knows nothing of what was found, shows or runs each part that became a composite."""
    before = path.read_text()
    raised = hl.raise_named(before)
    if raised.named:
        assert hl.verify(before, raised.text, level="regions").ok


def test_another_operand_is_another_structure():
    """The comparison sees an operand and an op that are others, and no names."""
    text = "func.func public @main(%a: tensor<4xf32>, %b: tensor<4xf32>) -> tensor<4xf32> {{\n"
    text += "%0 = stablehlo.{op} %{one}, %b : tensor<4xf32>\nreturn %0 : tensor<4xf32>\n}}"
    one, other, changed, renamed = (
        structure(hl.read(text.format(op=op, one=taken).replace("%0", new)))
        for op, taken, new in (("add", "a", "%0"), ("add", "b", "%0"), ("multiply", "a", "%0"), ("add", "a", "%sum"))
    )
    assert one == renamed
    assert one not in (other, changed)
