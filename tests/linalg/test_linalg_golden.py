"""Golden files: what leaves in linalg, as CHECK lines beside the input; the first line says how."""

from pathlib import Path

import pytest
from filecheck.matcher import Matcher
from filecheck.options import Options
from leaving import left_as_linalg

GOLDEN = sorted((Path(__file__).parent / "golden").glob("*.mlir"))


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.stem)
def test_a_module_leaves_in_its_canonical_form(path, tmp_path, capsys):
    """The CHECK lines match what comes out, and no operation of another dialect is left."""
    told = path.read_text().splitlines()[0].removeprefix("// options: ").split()
    text, report = left_as_linalg(path, named="named=True" in told, parallel="parallel=True" in told)
    assert report.is_complete, report.lines()
    output = tmp_path / "linalg.mlir"
    output.write_text(text)
    options = Options(match_filename=str(path), input_file=str(output))
    assert Matcher.from_opts(options).run() == 0, capsys.readouterr().err + text
