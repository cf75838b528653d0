"""scripts/frozen_texts.py: what changed of what the converter writes."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "scripts"))

import frozen_texts

GOLDEN = Path(__file__).parents[1] / "golden" / "last_writer.mlir"


def test_what_changed_is_named():
    """A text that is another one, one that is new and one that is gone, each by its name."""
    before, after = {"a": "1", "b": "2", "c": "3"}, {"a": "1", "b": "4", "d": "5"}
    assert frozen_texts.changes(before, after) == ["changed: b", "new: d", "gone: c"]
    assert frozen_texts.changes(before, before) == []


def test_a_refusal_is_a_text(tmp_path):
    """Each module is lowered for each target and raised; what is refused is told by its message."""
    (tmp_path / "quantized.mlir").write_text((GOLDEN.parent / "refused_quantized.mlir").read_text())
    works = dict(frozen_texts.works(tmp_path))
    names = [f"lowered quantized {target}" for target in frozen_texts.TARGETS]
    assert [name for name in works if " quantized" in name] == [*names, "raised quantized"]
    assert frozen_texts.written(works[names[0]]).startswith("NotLoweredError: ")


def test_another_text_has_another_hash():
    """The options in a golden file's first line count."""
    options = frozen_texts.options_of(GOLDEN)
    texts = [frozen_texts.lowered(GOLDEN, "stablehlo", o) for o in (options, options, {**options, "prefer": ["while"]})]
    first, again, other = map(frozen_texts.hashed, texts)
    assert (first == again, first == other) == (True, False)
