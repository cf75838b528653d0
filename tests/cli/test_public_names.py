"""The names of `hlo_lower`: imported when first used, and the same whatever was imported before."""

import subprocess
import sys

import pytest

import hlo_lower as hl
from hlo_lower.base.former_names import FORMER


def run(program):
    """Run a Python program in a process of its own."""
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)


def test_dir_lists_every_public_name():
    """What `__all__` promises is listed, and is there."""
    assert set() == set(hl.__all__) - set(dir(hl))
    assert [name for name in hl.__all__ if not hasattr(hl, name)] == []


def test_a_name_that_is_not_there_is_an_attribute_error():
    """Not a silent None, and not an import error."""
    with pytest.raises(AttributeError, match="module 'hlo_lower' has no attribute 'verfy'"):
        _ = hl.verfy


@pytest.mark.few(2)
@pytest.mark.parametrize(("former", "new"), FORMER.items())
def test_former_names_of_modules_still_work(former, new):
    """Both ways of importing give what the new module has, and a warning that names it."""
    package, _, name = former.rpartition(".")
    program = (
        f"import warnings; warnings.simplefilter('error', DeprecationWarning)\n"
        f"try:\n    import {former}\nexcept DeprecationWarning as warning:\n    print(warning)\n"
        f"warnings.simplefilter('ignore'); import importlib; new = importlib.import_module('{new}')\n"
        f"from {package} import {name} as module\n"
        "public = next(n for n in dir(new) if n[0] != '_'); print(getattr(module, public) is getattr(new, public))"
    )
    assert run(program).stdout == f"{former} is {new} now\nTrue\n"


def test_functions_keep_their_names_from_subpackages_in_any_order():
    """hl.verify and hl.export are functions before and after the subpackages of the same names are imported."""
    imports = (
        "import hlo_lower.verify.run, hlo_lower.ir.export.load",
        "from hlo_lower.ir.export.load import load_function",
        "",
    )
    checks = "assert callable(hl.verify) and callable(hl.export); from hlo_lower.verify import Verdict"
    program = "; ".join(
        "[sys.modules.pop(name) for name in [*sys.modules] if name.startswith('hlo_lower')]; "
        f"{before or 'pass'}; import hlo_lower as hl; {checks}; "
        f"import hlo_lower.verify.run, hlo_lower.ir.export; {checks}"
        for before in imports
    )
    done = run(f"import sys; {program}")
    assert (done.returncode, done.stderr) == (0, "")


def test_help_version_and_usage_do_not_wait_for_jax():
    """A command line that does no work imports neither jax nor numpy nor rich."""
    program = (
        "import sys; from hlo_lower.cli import main\n"
        "codes = [main(argv) for argv in (['--help'], ['--version'], ['convert', '--help'], ['explode'], [])]\n"
        "assert codes == [0, 0, 0, 2, 2], codes\n"
        "assert not {'jax', 'numpy', 'rich'} & set(sys.modules), 'slow imports'"
    )
    done = run(program)
    assert done.returncode == 0, done.stderr
