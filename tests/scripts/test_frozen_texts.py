"""scripts/frozen_texts.py: what changed of what the converter writes."""

import json
from pathlib import Path

REFUSED = (Path(__file__).parents[1] / "golden" / "refused_quantized.mlir").read_text()


def test_what_changed_is_named(script, tmp_path):
    """A module that is another one, one that is new, one that is gone, each by its name; a refusal is a text, too."""
    for name in ("refused", "kept"):
        (tmp_path / f"{name}.mlir").write_text(REFUSED)
    options = ("--corpus", ".", "--only", "raised,lowered", "--jobs", "1")
    first = script("frozen_texts.py", *options, "--write", "texts.json")
    assert (first.returncode, first.stdout) == (0, "21 texts\n"), first.stderr
    texts = json.loads((tmp_path / "texts.json").read_text())
    assert len({told for name, told in texts.items() if name.startswith("lowered refused")}) == 1

    decode = tmp_path / "decode.mlir"
    (tmp_path / "new.mlir").write_text(decode.read_text())
    decode.write_text(decode.read_text().replace("f32", "f16"))
    (tmp_path / "refused.mlir").unlink()
    second = script("frozen_texts.py", *options, "--compare", "texts.json", "--keep", "changed")
    assert second.returncode == 1
    for line in ("changed: lowered decode iree", "new: lowered new iree", "gone: lowered refused iree"):
        assert line in second.stdout.splitlines()
    assert "kept" not in second.stdout
    assert "f16" in (tmp_path / "changed" / "lowered-decode-iree.mlir").read_text()
