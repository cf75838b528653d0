"""[tool.hlo_lower] in pyproject.toml: what it sets, which commands take it, and what is wrong in it."""

import pytest
from decode_module import SCATTER

from hlo_lower.cli import main


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A folder below a pyproject.toml; call it with the text of the table."""
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "decode.mlir").write_text(SCATTER)
    monkeypatch.chdir(tmp_path / "src")

    def write(text, table="[tool.hlo_lower]\n"):
        (tmp_path / "pyproject.toml").write_text(table + text)
        return tmp_path

    return write


def test_settings_are_the_defaults_of_the_commands_and_the_command_line_goes_before_them(project, capsys):
    project('target = "iree"\nfloat-mode = "reassociate"\njobs = 2\nprefer = ["while"]')
    assert main(["report", "decode.mlir"]) == 0
    assert "target iree" in capsys.readouterr().out
    assert main(["report", "decode.mlir", "--target", "coreml"]) == 0
    assert "target coreml" in capsys.readouterr().out
    assert main(["settings"]) == 0
    told = capsys.readouterr().out
    assert "target = 'iree'   report, convert, verify" in told
    assert "jobs = 2   report, convert, verify, tile" in told


def test_a_file_of_a_target_is_found_from_the_folder_of_the_settings(project, capsys):
    folder = project('target = "npu.toml"')
    (folder / "npu.toml").write_text('description = "ours"\n')
    assert main(["report", "decode.mlir"]) == 0
    assert "target npu" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('targt = "iree"', "targt: no command that reads settings has such an option\n  nearest: target"),
        ('verify = "bogus"', "verify: 'bogus' is not one of auto, regions, full, off"),
        ('jobs = "a"', "jobs: 'a': 'a' is not a number from 1"),
        ("legalize = 3", "legalize: 3 is neither true nor false"),
        ('target = ["a", "b"]', "target: it has one value, not a list"),
        ("target = {}", "target: {} is not a value of --target"),
        ("x = ", "it cannot be read: "),
        ('output = "m.mlir"', "output: no command"),
    ],
)
def test_what_is_wrong_is_an_error_that_names_file_and_key(project, capsys, text, told):
    path = project(text) / "pyproject.toml"
    assert main(["report", "decode.mlir"]) == 2
    error = capsys.readouterr().err
    assert error.startswith(str(path))
    assert told in error


def test_a_project_without_settings_sets_nothing(project, capsys):
    project('name = "x"', "[project]\n")
    assert main(["settings"]) == 0
    assert "no [tool.hlo_lower] in a pyproject.toml here or above" in capsys.readouterr().out
    assert main(["report", "decode.mlir"]) == 0
    assert "target stablehlo" in capsys.readouterr().out
