"""The program and the package as a process sees them: what a parser kills, and names that are imported when used."""

import os
import subprocess
import sys

import pytest

import hlo_lower as hl
from hlo_lower.base.former_names import FORMER
from hlo_lower.cli import main

LOCATION_OF_BYTES = r"""func.func public @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  return %x : tensor<4xf32> loc("\FF":1:1)
}
"""


def run(*argv, **how):
    """Run Python in a process of its own."""
    return subprocess.run([sys.executable, *argv], capture_output=True, text=True, check=False, **how)


def test_a_module_that_kills_the_parser(folder):
    """The module and the signal are named; neither the output nor a temporary file appears; an old output stays."""
    (folder / "bad.mlir").write_text(LOCATION_OF_BYTES)
    (folder / "out.mlir").write_text("kept")
    before = sorted(os.listdir(folder))
    done = run(*["-m", "hlo_lower", "convert", "bad.mlir", "-o", "out.mlir", "--report", "r.json"])
    assert (done.returncode, done.stdout) == (2, "")
    assert "bad.mlir: the process that read it died: signal SIGABRT\n" in done.stderr
    assert done.stderr.splitlines()[-1].startswith("  next:    ")
    assert (before, (folder / "out.mlir").read_text()) == (sorted(os.listdir(folder)), "kept")
    done = run(*["-m", "hlo_lower", "report", "-"], input=LOCATION_OF_BYTES)
    assert (done.returncode, done.stdout) == (2, "")
    assert "\n-: the process that read it died: signal SIGABRT\n" in f"\n{done.stderr}"


def test_help_and_usage_need_no_child(monkeypatch):
    """What is answered by the parser is answered at once."""
    monkeypatch.setattr(os, "fork", lambda: pytest.fail("forked"))
    monkeypatch.setattr(sys, "argv", ["hlo-lower", "--version"])
    assert main() == 0


def test_names_of_the_package():
    """What `__all__` promises is listed, and is there; another name is an attribute error."""
    assert set(hl.__all__) <= set(dir(hl))
    assert [name for name in hl.__all__ if not hasattr(hl, name)] == []
    with pytest.raises(AttributeError, match="module 'hlo_lower' has no attribute 'verfy'"):
        _ = hl.verfy


@pytest.mark.few(1)
@pytest.mark.parametrize(("former", "new"), FORMER.items())
def test_former_names_of_modules_still_work(former, new):
    """Both ways of importing give what the new module has, and a warning that names it."""
    package, _, name = former.rpartition(".")
    done = run(
        "-c",
        f"import warnings; warnings.simplefilter('error', DeprecationWarning)\n"
        f"try:\n    import {former}\nexcept DeprecationWarning as warning:\n    print(warning)\n"
        f"warnings.simplefilter('ignore'); import importlib; new = importlib.import_module('{new}')\n"
        f"from {package} import {name} as module\n"
        "public = next(n for n in dir(new) if n[0] != '_'); print(getattr(module, public) is getattr(new, public))",
    )
    assert done.stdout == f"{former} is {new} now\nTrue\n"


def test_functions_keep_their_names_from_subpackages_in_any_order():
    """hl.verify and hl.export are functions before and after the subpackages of the same names are imported."""
    checks = "assert callable(hl.verify) and callable(hl.export); from hlo_lower.verify import Verdict"
    done = run(
        "-c",
        f"import hlo_lower.verify.run, hlo_lower.ir.export.load; import hlo_lower as hl; {checks}\n"
        "import sys; [sys.modules.pop(name) for name in [*sys.modules] if name.startswith('hlo_lower')]\n"
        f"import hlo_lower as hl; {checks}; import hlo_lower.verify.run, hlo_lower.ir.export; {checks}",
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_help_version_and_usage_do_not_wait_for_jax():
    """A command line that does no work imports neither jax nor numpy nor rich."""
    done = run(
        "-c",
        "import sys; from hlo_lower.cli import main\n"
        "codes = [main(argv) for argv in (['--help'], ['--version'], ['convert', '--help'], ['explode'], [])]\n"
        "assert codes == [0, 0, 0, 2, 2], codes\n"
        "assert not {'jax', 'numpy', 'rich'} & set(sys.modules), 'slow imports'",
    )
    assert done.returncode == 0, done.stderr
