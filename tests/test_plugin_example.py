"""examples/plugin works: found through its own entry point, with its own tests, and importing one module of ours."""

import ast
import importlib.util
import sys
import tomllib
from pathlib import Path

import pytest

from hlo_lower.lowering import kinds

EXAMPLE = Path(__file__).parents[1] / "examples" / "plugin"


@pytest.fixture
def its_tests(tmp_path, monkeypatch):
    """Its test module, with the distribution on the path as its pyproject.toml describes it."""
    project = tomllib.loads((EXAMPLE / "pyproject.toml").read_text())["project"]
    info = tmp_path / f"{project['name'].replace('-', '_')}-{project['version']}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n")
    points = "\n".join(f"{name} = {value}" for name, value in project["entry-points"][kinds.GROUP].items())
    (info / "entry_points.txt").write_text(f"[{kinds.GROUP}]\n{points}\n")
    monkeypatch.delenv(kinds.WITHOUT, raising=False)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.syspath_prepend(str(EXAMPLE))
    kinds._registry.cache_clear()
    spec = importlib.util.spec_from_file_location("its_tests", EXAMPLE / "tests" / "test_point_select.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    yield module
    kinds._registry.cache_clear()
    sys.modules.pop("point_select", None)


def test_its_own_tests_pass(its_tests, monkeypatch):
    """The rule is taken under both policies and is equal, declines large operands, and a wrong variant is found."""
    for oob in ("xla", "spec"):
        its_tests.test_a_point_is_selected(oob)
    its_tests.test_a_large_operand_keeps_its_place()
    its_tests.test_a_wrong_comparison_is_found()
    its_tests.test_without_the_plugin_there_is_no_lowering(monkeypatch)
    assert len([name for name in vars(its_tests) if name.startswith("test_")]) == 4


def test_it_imports_only_the_public_module():
    """A plug-in need not know where things are in the package."""
    tree = ast.parse((EXAMPLE / "point_select" / "__init__.py").read_text())
    imported = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert {name for name in imported if name.startswith("hlo_lower")} == {"hlo_lower.plugin"}
    assert not [node for node in ast.walk(tree) if isinstance(node, ast.Import)]
