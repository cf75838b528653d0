"""Counts, times and names as a reader expects them."""

from collections.abc import Mapping, Sequence

NOT_MEASURED = "not measured"


def plural(count: int, noun: str) -> str:
    """ "1 scatter", "5,449 ops"."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def listed(items: Sequence[str], most: int) -> str:
    """Items with commas between; of more than `most` the first ones and how many are left: "a, b and 3 more"."""
    left = len(items) - most
    return ", ".join(items[:most]) + (f" and {left:,} more" if left > 0 else "")


def by_count(counts: Mapping[str, int]) -> dict[str, int]:
    """Counts, the largest first, equal ones by name."""
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def tally(counts: Mapping[str, int]) -> str:
    """ "5 rms_norm, 2 attention": as `by_count`."""
    return ", ".join(f"{count} {name}" for name, count in by_count(counts).items())


def seconds(value: float | None) -> str:
    """ "0.05 s", "12 s", or "not measured"."""
    if value is None:
        return NOT_MEASURED
    return f"{value:.2f} s" if value < 1 else f"{value:.1f} s" if value < 10 else f"{value:,.0f} s"


def printable(text: str, keep: str = "") -> str:
    """The text with control characters shown as escapes: a name in a module must not steer a terminal."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in keep else repr(c)[1:-1] for c in text)
