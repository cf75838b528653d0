"""Progress of long work: on standard error, and only where that is a terminal."""

import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager

from hlo_lower.base.arguments import silent

Tell = Callable[[str, int, int], None]


@contextmanager
def progress() -> Generator[Tell]:
    """Give a function that takes a stage, how much of it is done and how much there is; nothing stays on screen."""
    if not sys.stderr.isatty():
        yield silent
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    tasks: dict[str, TaskID] = {}
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:

        def tell(stage: str, done: int, total: int) -> None:
            if stage not in tasks:
                tasks[stage] = bar.add_task(stage, total=total)
            bar.update(tasks[stage], completed=done, total=total)

        yield tell
