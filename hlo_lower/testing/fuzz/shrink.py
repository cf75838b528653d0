"""Shrink a failing case: make its choices fewer and smaller as long as it fails in the same way.

A case is what a generator makes of a list of choices, so shorter and smaller lists of choices give simpler cases, all
of them legal. This is how hypothesis shrinks; here it works from the choices of one seed, and in other processes, so
that a crash can be shrunk, too.
"""

from collections.abc import Callable, Generator, Sequence
from itertools import islice

from hlo_lower.testing.fuzz.case import Case, replayed_case

Fails = Callable[[Sequence[Case]], Sequence[bool]]
"""Which of some cases fail in the same way."""

MOST_TRIALS = 400
AT_A_TIME = 12


def shrink(case: Case, choices: Sequence[int], fails: Fails, most: int = MOST_TRIALS) -> tuple[Case, tuple[int, ...]]:
    """The simplest case that was found to fail in at most so many trials, and its choices; `fails` tells which of
    several cases fail."""
    best, best_case, trials = tuple(choices), case, 0
    seen = {best}
    progress = True
    while progress and trials < most:
        progress, place = False, 0
        # After a step the candidates go on where they were: the bold ones that failed are likely to fail again.
        while trials < most and (batch := list(islice(_simpler(best), place, place + AT_A_TIME))):
            place += len(batch)
            fresh: list[tuple[tuple[int, ...], Case]] = []
            for candidate in batch:
                found, used = replayed_case(list(candidate), case)
                if used not in seen and _order(used) < _order(best):
                    seen.add(used)
                    fresh.append((used, found))
            if not fresh:
                continue
            trials += len(fresh)
            failing = [item for item, failed in zip(fresh, fails([c for _, c in fresh]), strict=True) if failed]
            if failing:
                best, best_case = min(failing, key=lambda item: _order(item[0]))
                place -= len(batch)
                progress = True
    return best_case, best


def _order(choices: Sequence[int]) -> tuple[int, int, tuple[int, ...]]:
    """Fewer choices before smaller ones."""
    while choices and choices[-1] == 0:
        choices = choices[:-1]
    return len(choices), sum(choices), tuple(choices)


def _simpler(choices: tuple[int, ...]) -> Generator[tuple[int, ...]]:
    """Candidates, the boldest first: cut the end, zero or delete runs of choices, lower single ones."""
    n = len(choices)
    yield ()
    for keep in sorted({n // 8, n // 4, n // 2, 3 * n // 4}):
        yield choices[:keep]
    width = max(n // 2, 1)
    while width:
        for start in range(0, n, width):
            if any(choices[start : start + width]):
                yield (*choices[:start], *(0,) * len(choices[start : start + width]), *choices[start + width :])
        for start in range(0, n, width):
            yield (*choices[:start], *choices[start + width :])
        width //= 2
    for place, value in enumerate(choices):
        for lower in sorted({value // 2, value - 1} - {value}):
            if lower > 0:
                yield (*choices[:place], lower, *choices[place + 1 :])
