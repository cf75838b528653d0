"""The page that text reports are written on."""

import io

from rich.console import Console


def new_page(width: int, *, color: bool) -> Console:
    """An empty page of this many columns, with ANSI colors or without; what is written on it is taken literally."""
    return Console(
        file=io.StringIO(),
        width=width,
        force_terminal=color,
        color_system="standard" if color else None,
        highlight=False,
        emoji=False,
        markup=False,
        legacy_windows=False,
    )
