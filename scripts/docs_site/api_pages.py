"""The API reference: every public name of the package by its docstring, grouped by what it is."""

import inspect
from collections.abc import Callable, Sequence
from typing import Any, get_args, get_type_hints

import hlo_lower as hl

KINDS: Sequence[tuple[str, Callable[[Any], bool], str]] = (
    ("Functions", inspect.isfunction, "autofunction"),
    ("Errors", lambda found: inspect.isclass(found) and issubclass(found, Exception), "autoexception"),
    ("Values", inspect.isclass, "autoclass"),
    ("Types for annotations", lambda _found: True, ""),
)
"""Titles, which names stand there (the first that fits), and the directive that shows one."""


def api_page() -> str:
    """The page: `hl.NAME` for each name of `hlo_lower.__all__`."""
    parts = [
        "# API reference",
        "Everything that `import hlo_lower as hl` gives, from the docstrings; their examples run as tests. In Python "
        "`help(hl.lower)` shows the same. [Usage](usage.md#from-python) is the way in.",
    ]
    left = [name for name in hl.__all__ if not name.startswith("__")]
    for title, fits, directive in KINDS:
        names = [name for name in left if fits(getattr(hl, name))]
        left = [name for name in left if name not in names]
        members = "\n   :members:" if directive == "autoclass" else ""
        shown = "\n\n".join(f".. {directive}:: hlo_lower.{name}{members}" for name in names)
        aliases = "\n".join(f"- `hl.{name}`: `{getattr(hl, name)}`" for name in names)
        parts += [f"## {title}", f"```{{eval-rst}}\n{shown}\n```" if directive else aliases]
    parts += ["## Keywords", *_keywords(), "## What rules build with", BUILDER]
    return "\n\n".join(parts) + "\n"


BUILDER = """`op.build` of [a rule](adding-a-rule.md) is one of these (`hlo_lower.plugin.Builder`).

```{eval-rst}
.. autoclass:: hlo_lower.plugin.Builder
   :members:
```"""


def _keywords() -> list[str]:
    """For each function that takes keywords of a type, these with their types; functions of the same ones together."""
    takers: dict[type, list[str]] = {}
    for name in hl.__all__:
        found = getattr(hl, name)
        parameters = inspect.signature(found).parameters.values() if inspect.isfunction(found) else ()
        for one in parameters:
            held = get_args(one.annotation) if one.kind is inspect.Parameter.VAR_KEYWORD else ()
            if held:
                takers.setdefault(held[0], []).append(f"`hl.{name}`")
    lists = {
        names[0]: (names, [f"- `{key}`: `{_type(told)}`" for key, told in get_type_hints(kind).items()])
        for kind, names in takers.items()
    }
    return [f"### Keywords of {', '.join(names)}\n\n" + "\n".join(lines) for names, lines in lists.values()]


def _type(told: Any) -> str:
    return inspect.formatannotation(told).replace("hlo_lower.", "").replace("collections.abc.", "")
