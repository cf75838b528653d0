"""Arguments of public functions, looked at: one of a wrong type or value is an `InputError` that says what it may be.

Each function takes the name of the argument for its message, and gives the value as it is meant.
"""

import difflib
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from math import inf
from typing import Any, TypeVar, cast

from hlo_lower.base.errors import InputError

T = TypeVar("T")

LONGEST = 60
"""Letters of a value that a message shows."""


def short_repr(value: object) -> str:
    """A value's `repr` in one line for a message; a long one is cut."""
    text = " ".join(repr(value).split())
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}..."


def one_of(name: str, value: T, choices: Sequence[object]) -> T:
    """A value that must be one of a few, of the same type: `True` is not 1."""
    if any(type(value) is type(choice) and value == choice for choice in choices):
        return value
    told = [repr(choice) for choice in choices]
    texts = [choice for choice in choices if isinstance(choice, str)]
    close = difflib.get_close_matches(value, texts, n=1) if isinstance(value, str) else []
    raise InputError(
        name,
        f"{short_repr(value)} is not one of its values",
        facts=f"{name} is {', '.join(told[:-1])} or {told[-1]}",
        nearest=tuple(f"{name}={choice!r}" for choice in close),
        next_step=f"write {name}={(close or list(choices))[0]!r}, or leave it out",
    )


def whole(name: str, value: object, least: int) -> int:
    """A whole number, NumPy's too, that is not below the least."""
    if not isinstance(value, bool) and hasattr(value, "__index__"):
        try:
            number = cast(Any, value).__index__()
        except TypeError:  # an array of several numbers has the method, and no number
            number = least - 1
        if number >= least:
            return number
    raise InputError(
        name,
        f"{short_repr(value)} is not a whole number from {least}",
        facts=f"it is of type {type(value).__name__}",
        next_step=f"write {name}={max(least, 1)}, or leave it out",
    )


def seconds(name: str, value: object) -> float:
    """A number of seconds above 0."""
    if not isinstance(value, bool) and isinstance(value, (int, float)) and 0 < value < inf:
        return value
    raise InputError(
        name,
        f"{short_repr(value)} is not a number of seconds above 0",
        facts=f"it is of type {type(value).__name__}",
        next_step=f"write {name}=60, or leave it out",
    )


def is_named(value: object) -> bool:
    """Whether a value is a mapping of which each key is a text."""
    return isinstance(value, Mapping) and all(isinstance(key, str) for key in cast(Mapping[object, object], value))


def is_listed(value: object) -> bool:
    """Whether a value is a sequence of values, not of letters or bytes."""
    return isinstance(value, Sequence) and not isinstance(value, (str, bytes))


def texts(name: str, value: object, example: str) -> tuple[str, ...]:
    """Texts as a tuple; a str is one of them, not its letters."""
    found: Any = (value,) if isinstance(value, str) else value
    if isinstance(found, Iterable) and not isinstance(found, (bytes, Mapping)):
        listed = tuple(cast(Iterable[Any], found))
        if all(isinstance(text, str) for text in listed):
            return listed
    raise InputError(
        name,
        f"{short_repr(value)} is neither a text nor a list of texts",
        facts=f"it is of type {type(value).__name__}",
        next_step=f"write {name}={[example]!r}",
    )


def function(name: str, value: T, next_step: str) -> T:
    """What can be called."""
    if callable(value):
        return value
    raise InputError(
        name,
        f"{short_repr(value)} is not a function",
        facts=f"it is of type {type(value).__name__}",
        next_step=next_step,
    )


def known_names(where: str, names: Collection[str], choices: Sequence[str]) -> None:
    """Check that keywords are among those that there are."""
    for name in names:
        if name not in choices:
            close = difflib.get_close_matches(name, choices, n=1)
            raise InputError(
                where,
                f"there is no option {name!r}",
                facts=f"options are {', '.join(choices)}",
                nearest=tuple(close),
                next_step=f"write {close[0]}=..." if close else "leave it out",
            )


def likely(name: str, choices: Sequence[str]) -> str:
    """What a mistyped name was most likely meant to be; the first choice where nothing is near."""
    return (*difflib.get_close_matches(name, choices, n=1), *choices)[0]


def no_rule(where: str, name: str, names: Iterable[str], more: str = "") -> InputError:
    """The error that no rule has a name, with those that are near."""
    known = sorted(names)
    return InputError(
        where,
        f"no rule named {name!r}",
        facts=f"there are {len(known)} rules{more}",
        nearest=tuple(difflib.get_close_matches(name, known, n=3)),
        next_step="hlo-lower rules",
    )


def progress(value: Callable[[str, int, int], None] | None) -> None:
    """Check what is told of progress."""
    if value is not None:
        function("progress", value, "give a function of a stage, the amount done and the total: print")


def silent(stage: str, done: int, total: int) -> None:
    """Be told of progress, and tell no one."""


def split_keywords(keywords: Mapping[str, Any], names: Collection[str]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Split keywords into those of these names and the others."""
    own = {name: value for name, value in keywords.items() if name in names}
    return own, {name: value for name, value in keywords.items() if name not in own}
