"""What a module's own file, and the source that it names, say of a scatter: its op as text, and the source line.

Files are read when a page is made. What is not there, or is not text, is left out.
"""

import re
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

from hlo_lower.facts.scatter.record import ScatterRecord
from hlo_lower.report.built_text import LOCATION
from hlo_lower.report.module import ModuleReport
from hlo_lower.report.place import split_place

MOST_LINES = 40
MOST_BYTES = 64_000_000

SCATTER = re.compile(r'"stablehlo\.scatter"\(')
"""How a scatter begins in every printed module: it has no other form."""


def scatter_texts(report: ModuleReport) -> list[str]:
    """The text of each scatter, in the order of the records; none where the file does not hold just these."""
    text = _read(report.file)
    starts = [match.start() for match in SCATTER.finditer(text)]
    if len(starts) != len(report.records):
        return []
    return ["\n".join(_op(text, start)) for start in starts]


def source_line(report: ModuleReport, record: ScatterRecord) -> str:
    """The line of the source that the module names, without blanks around; "" where it names none or it is not there.

    A relative name is looked for where the command runs, and beside the module.
    """
    number = split_place(record.location)[1]
    if not record.source or not number:
        return ""
    for folder in (Path(), Path(report.file).parent):
        lines = _read(str(folder / record.source)).split("\n")
        if 1 < int(number) + 1 <= len(lines):
            return lines[int(number) - 1].strip()
    return ""


def _op(text: str, start: int) -> Iterator[str]:
    """The lines of an op that begins at a place: from its results to its type, without what stands around it."""
    first = text.rfind("\n", 0, start) + 1
    lines = text[first : first + 400 * MOST_LINES].split("\n")
    indent = len(lines[0]) - len(lines[0].lstrip())
    depth = 0
    for number, line in enumerate(lines):
        bare = re.sub(r'"[^"]*"', "", line)
        depth += bare.count("{") - bare.count("}")
        yield LOCATION.sub("", line[indent:] if not line[:indent].strip() else line)
        if depth <= 0:
            return
        if number + 1 == MOST_LINES:
            yield "..."
            return


def _read(name: str) -> str:
    """A file's text; "" where it is not there, is too large, or is bytes."""
    path = Path(name).absolute()
    try:
        known = path.stat()
        return _text(path, known.st_mtime_ns) if path.is_file() and known.st_size <= MOST_BYTES else ""
    except (OSError, ValueError):
        return ""


@lru_cache(maxsize=8)
def _text(path: Path, written: int) -> str:  # when it was written is part of what is known of it
    return path.read_text()
