"""What a release consists of: types that others check, files of CI and hooks whose commands exist, and versions."""

import re
import shlex
import subprocess
import sys
import tomllib
from importlib.util import find_spec
from pathlib import Path

import pytest

from hlo_lower.cli.parser import make_parser

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
SAMPLE = Path(__file__).with_name("typed_project")
WRONG = [n for n, line in enumerate((SAMPLE / "misuses.py").read_text().splitlines(), 1) if line.startswith("hl.")]


def checked(checker, file):
    """The lines in which a type checker finds errors."""
    how = {
        "pyright": ["pyright", "--pythonpath", sys.executable],
        "mypy": ["mypy", "--strict", "--no-error-summary", "--follow-imports=silent", "--cache-dir=/dev/null"],
    }[checker]
    done = subprocess.run([sys.executable, "-m", *how, file.name], cwd=SAMPLE, capture_output=True, text=True)
    assert done.stderr == "" or checker == "pyright", done.stderr
    return sorted({int(n) for n in re.findall(rf"{file.name}:(\d+)(?::\d+)?[: -]+error", done.stdout)})


@pytest.mark.sweep
@pytest.mark.parametrize("checker", ["pyright", "mypy"])
def test_a_project_that_uses_the_package_is_checked_by_its_types(checker):
    """A right use has no error, and each wrong one has: what the package gives is typed, and not Any."""
    if find_spec(checker) is None:
        pytest.skip(f"{checker} is not installed")
    assert checked(checker, SAMPLE / "uses.py") == []
    assert checked(checker, SAMPLE / "misuses.py") == WRONG


WITH_COMMANDS = (".github/workflows/test.yml", "action.yml", ".pre-commit-hooks.yaml", "Containerfile")


@pytest.mark.parametrize("file", WITH_COMMANDS)
def test_commands_of_hooks_and_workflows_exist(file):
    """Each command line of hlo-lower in them parses, variables aside."""
    found = re.findall(r"hlo-lower (?:report|export|convert) [^\n]*", (ROOT / file).read_text())
    assert found
    for line in found:
        words = [word for word in shlex.split(line)[1:] if word != "$OPTIONS"]
        words += ["a.mlir"] if file == ".pre-commit-hooks.yaml" else []
        make_parser().parse_line(words)


def test_versions_agree_and_files_of_a_release_are_there():
    """The version is the same in the project and the citation; the sdist holds the tests and what these read."""
    assert f"version: {PROJECT['version']}\n" in (ROOT / "CITATION.cff").read_text()
    assert f"the version is {PROJECT['version']}" in (ROOT / "CHANGELOG.md").read_text()
    held = set(re.sub(r"^(graft|include) ", "", (ROOT / "MANIFEST.in").read_text(), flags=re.M).split())
    assert {"tests", "docs", "examples", "models", "scripts"} <= held
    assert [file for file in WITH_COMMANDS if Path(file).parts[0] not in held] == []
    tested = re.search(r"python: \[(.*)\]", (ROOT / ".github/workflows/test.yml").read_text())[1]
    listed = [one.removeprefix("Programming Language :: Python :: ") for one in PROJECT["classifiers"]]
    assert set(re.findall(r"[\d.]+", tested)) >= {one for one in listed if re.fullmatch(r"3\.\d+", one)}
