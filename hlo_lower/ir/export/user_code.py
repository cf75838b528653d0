"""A user's Python: its folder made importable, its file or module run, and what it raises told in one line."""

import difflib
import importlib
import importlib.util
import itertools
import os
import sys
import traceback
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType, TracebackType

from hlo_lower.base.errors import InputError
from hlo_lower.ir.export.locations import holds

_serial = itertools.count()


@contextmanager
def importable(folders: Sequence[str]) -> Generator[None]:
    """Put folders on the import path for a while."""
    added = [folder for folder in folders if folder not in sys.path]
    sys.path[:0] = added
    try:
        yield
    finally:
        for folder in added:
            if folder in sys.path:
                sys.path.remove(folder)


def load_file(path: Path, place: str) -> ModuleType:
    """Run a Python file as a module of its own; place is how the user named it."""
    if path.is_dir():
        raise InputError(
            where=place, what="a folder, not a Python file", next_step=f"name a file in it: {place}/FILE.py:fn"
        )
    if not path.is_file():
        beside = sorted(p.name for p in path.parent.glob("*.py")) if path.parent.is_dir() else []
        close = difflib.get_close_matches(path.name, beside, n=3)
        near = tuple(str(Path(place).parent / p) for p in close)
        raise InputError(where=place, what="no such file", nearest=near, next_step="check the path")
    if path.suffix != ".py":
        raise InputError(where=place, what="not a Python file", facts=f'its name ends in "{path.suffix}", not ".py"')
    unique = f"hlo_lower_export_{next(_serial)}_{path.stem}"
    found = importlib.util.spec_from_file_location(unique, path)
    assert found is not None
    assert found.loader is not None
    module = importlib.util.module_from_spec(found)
    sys.modules[unique] = module  # dataclasses look their module up
    with user_errors(place, str(path)):
        try:
            found.loader.exec_module(module)
        except BaseException:
            del sys.modules[unique]
            raise
    return module


def load_module(place: str) -> ModuleType:
    """Import a module by its dotted name."""
    with user_errors(place, None):
        try:
            return importlib.import_module(place)
        except ModuleNotFoundError as error:
            if error.name is None or not (place == error.name or place.startswith(f"{error.name}.")):
                raise
            raise InputError(
                where=place,
                what=f"no module named {error.name}",
                facts="looked in the current folder and where Python imports from",
                next_step=f"name a file by its path: {place.replace('.', '/')}.py:FUNCTION",
            ) from None


@contextmanager
def user_errors(place: str, file: str | None) -> Generator[None]:
    """Turn what running a user's file raises into one message with the file and the line."""
    try:
        yield
    except InputError:
        raise
    except SyntaxError as error:
        line = f":{error.lineno}" if error.lineno else ""
        where = _short_path(error.filename) if error.filename else place
        raise InputError(where=f"{where}{line}", what=f"not valid Python: {one_line(error)}") from error
    except (Exception, SystemExit) as error:
        where = user_line(error, file) or place
        raise InputError(where=where, what=f"running the file failed: {one_line(error)}") from error


def one_line(error: BaseException) -> str:
    """`ValueError: what it says`, the first line that says something."""
    text = error.msg if isinstance(error, SyntaxError) else str(error)
    first = next((line.strip() for line in text.splitlines() if line.strip()), "")
    return f"{type(error).__name__}: {first}" if first else type(error).__name__


def user_line(error: BaseException, file: str | None) -> str:
    """`file.py:12`, the innermost line in the user's file that the exception passed; "" if there is none.

    Without a file, the innermost line outside Python's own and installed packages.
    """
    lines = [frame for frame in _frames(error.__traceback__) if _is_users(frame.filename, file)]
    return f"{_short_path(lines[-1].filename)}:{lines[-1].lineno}" if lines else ""


def _frames(trace: TracebackType | None) -> Sequence[traceback.FrameSummary]:
    return traceback.extract_tb(trace) if trace is not None else ()


def _is_users(filename: str, file: str | None) -> bool:
    if file is not None:
        return filename == file
    own = str(Path(__file__).parents[2])
    return not (filename.startswith((own, "<", str(Path(os.__file__).parent))) or "site-packages" in filename)


def _short_path(filename: str) -> str:
    """A file's name as seen from the current folder, where it is below it."""
    here = os.getcwd()
    return os.path.relpath(filename, here) if holds(here, os.path.dirname(filename)) else filename
