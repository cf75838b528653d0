"""The packages of examples/ as if they were installed: on the import path, with the entry points of their pyproject."""

import importlib.util
import sys
import tomllib
from pathlib import Path

from hlo_lower.lowering import kinds

EXAMPLES = Path(__file__).parents[1] / "examples"


def put_on_path(name, folder, monkeypatch):
    """Put an example on the path; a folder gets what pip would write of it."""
    project = tomllib.loads((EXAMPLES / name / "pyproject.toml").read_text())["project"]
    info = folder / f"{project['name'].replace('-', '_')}-{project['version']}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n")
    points = "\n".join(f"{name} = {value}" for name, value in project["entry-points"][kinds.GROUP].items())
    (info / "entry_points.txt").write_text(f"[{kinds.GROUP}]\n{points}\n")
    monkeypatch.delenv(kinds.WITHOUT, raising=False)
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.syspath_prepend(str(EXAMPLES / name))
    kinds._registry.cache_clear()


def forget(name):
    """Forget what was imported of an example, and the rules with it."""
    kinds._registry.cache_clear()
    for folder in (EXAMPLES / name).iterdir():
        sys.modules.pop(folder.name, None)


def own_tests_of(name):
    """The test module of an example that is on the path."""
    [file] = (EXAMPLES / name / "tests").glob("test_*.py")
    spec = importlib.util.spec_from_file_location("its_tests", file)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
