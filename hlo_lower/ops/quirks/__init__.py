"""Quirks of consumers: each a `Quirk` in a file of this folder, which is all that makes it known.

`QUIRKS` is found by looking: files by name, and what a file holds in its order. Of the forms of one op the first that
fits is lowered first; passes at one place of the pipeline run in this order. The words of target files, their checks,
the facts of rules, the passes and `hlo-lower ops --forms` are made of it.
"""

from importlib import import_module
from pkgutil import iter_modules

from hlo_lower.ops.quirks.quirk import Quirk


def _find_quirks() -> tuple[Quirk, ...]:
    """The quirks of all files here.

    Raises:
      ValueError: two have one word.
    """
    files = sorted(file.name for file in iter_modules(__path__) if file.name != "quirk")
    modules = [import_module(f"{__name__}.{file}") for file in files]
    quirks = [value for module in modules for value in vars(module).values() if isinstance(value, Quirk)]
    by_word = {quirk.word: quirk for quirk in quirks}
    if len(by_word) < len(quirks):
        twice = sorted({quirk.word for quirk in quirks if by_word[quirk.word] is not quirk})
        raise ValueError(f"two quirks have one word: {', '.join(twice)}")
    return tuple(quirks)


QUIRKS = _find_quirks()
"""All of them, in order."""

WORDS = tuple(quirk.word for quirk in QUIRKS)
"""What `refused_forms` of a target may name."""
