"""The tutorials run as they stand: their files, commands, Python, and what they are said to print."""

import re

import pytest
from page_steps import ROOT, check_printed, run_page, steps_of

TUTORIALS = sorted((ROOT / "docs" / "tutorials").glob("*.md"))
QUICK = ("own-target", "composites")
"""Those that take a few seconds; the others are in the sweep."""


@pytest.mark.parametrize(
    "path",
    [pytest.param(path, id=path.stem, marks=[] if path.stem in QUICK else [pytest.mark.sweep]) for path in TUTORIALS],
)
def test_a_tutorial_runs(path, tmp_path, monkeypatch, install_example):
    """Every command ends with 0 and prints what the page shows; what is not installed is left out and named."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("COLUMNS", "100")
    (tmp_path / "models").symlink_to(ROOT / "models")
    for name in re.findall(r"<!-- installed: (\w+) -->", path.read_text()):
        install_example(name)
    ran, missing = run_page(path.read_text(), tmp_path)
    assert ran >= 4
    if missing:
        pytest.skip(f"ran {ran} steps; not installed: {', '.join(sorted(missing))}")


def test_a_command_that_fails_is_found(tmp_path):
    """A page fails whose command ends with another code, or that shows what was not printed in that order."""
    page = "```sh\nhlo-lower report a.mlir\n```\n\n<!-- prints -->\n```text\n{}\n```\n"

    def report(words):
        print(f"{words[1]}   7 ops,  0 scatters   0.1 s + 2 s")
        return 0 if words[1] == "a.mlir" else 2

    assert run_page(page.format("a.mlir   7 ops"), tmp_path, report) == (1, set())
    with pytest.raises(AssertionError, match="8 ops"):
        run_page(page.format("a.mlir   8 ops"), tmp_path, report)
    with pytest.raises(AssertionError, match=r"b\.mlir: 2"):
        run_page(page.replace("a.mlir", "b.mlir"), tmp_path, report)
    with pytest.raises(AssertionError, match=r"a\.mlir: 0"):
        run_page(f"<!-- exits: 2 -->\n{page}", tmp_path, report)
    check_printed("one ...\ntwo 3 s + 4 s", "one and more\n  two 5 s + 6 s\n")
    with pytest.raises(AssertionError):
        check_printed("two\none", "one\ntwo\n")


def test_there_are_seven_tutorials_with_marks_that_are_known():
    """Six pages and a notebook; a mark with a typing error would leave a block out."""
    names = {"jax-to-iree", "pytorch", "paged-decode", "train-step", "own-target", "composites"}
    assert {path.stem for path in TUTORIALS} == names
    assert (ROOT / "docs" / "tutorials" / "notebook.ipynb").exists()
    known = ("file: ", "given: ", "prints", "needs: ", "example", "exits: ", "installed: ", "excerpt: ")
    marks = [step.mark for path in TUTORIALS for step in steps_of(path.read_text()) if step.mark]
    assert [mark for mark in marks if not mark.startswith(known)] == []
    assert len(marks) > 20
    assert (ROOT / "docs" / "tutorials" / "torch_step.mlir").exists()
