"""Source locations that name no machine: JAX is told to write one line per op, in a file named from here."""

import inspect
import os
import re
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import jax

OWN_ROOT = str(Path(__file__).parents[3])  # JAX places the call of the exported function itself in trace.py
_jax: Any = jax  # its annotations leave config partly unknown


@contextmanager
def portable_locations(folder: str | None) -> Generator[None]:
    """Make JAX write one source line per op, in a file named from where it is imported or started.

    A location then names neither the machine's folders nor the frames of whoever called the export.
    """
    changed: dict[str, Any] = {
        "jax_include_full_tracebacks_in_locations": False,
        "jax_hlo_source_file_canonicalization_regex": _roots_pattern(folder),
    }
    before = {option: getattr(jax.config, option) for option in changed}
    try:
        for option, value in changed.items():
            _jax.config.update(option, value)
        yield
    finally:
        for option, value in before.items():
            _jax.config.update(option, value)


def _roots_pattern(folder: str | None) -> str:
    """A pattern of the folders that are cut off a file's name: the longest that holds the file wins.

    These are the current folder, those that Python imports from and, for a model file outside them, its own.
    """
    here = {os.getcwd(), os.path.realpath(os.getcwd())}
    roots = here | {OWN_ROOT} | {os.path.abspath(entry) for entry in sys.path if entry}
    if folder is not None and folder not in here and any(holds(root, folder) for root in here):
        roots.discard(folder)  # a model file's folder is on the import path; its name is still the one seen from here
    if folder is not None and not any(holds(root, folder) for root in roots):
        roots.add(folder)
    ordered = sorted((root.rstrip(os.sep) + os.sep for root in roots), key=lambda root: (-len(root), root))
    return "^(?:" + "|".join(re.escape(root) for root in ordered) + ")"


def holds(root: str, folder: str) -> bool:
    """Whether a folder is root or below it."""
    return folder == root or folder.startswith(root.rstrip(os.sep) + os.sep)


def source_file(fn: Callable[..., Any]) -> str | None:
    """The file that defines a function, under its decorators; None where it has no Python code."""
    code = getattr(inspect.unwrap(fn), "__code__", None)
    return None if code is None else str(code.co_filename)


def source_folder(fn: Callable[..., Any]) -> str | None:
    """The folder of that file; None where it is not known."""
    file = source_file(fn)
    return os.path.dirname(file) if file is not None and os.path.isabs(file) else None
