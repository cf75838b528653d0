"""The journal beside the table: a line for each module that is done, so that a run goes on where it was stopped."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hlo_lower.base.errors import InputError
from matrix.entry import Entry


class Journal:
    """Lines of JSON: the settings of the run, then an entry each. A line that was cut short is as if not written.

    Args:
      path: the file.
      settings: of this run; a journal with others is another run's.
      fresh: whether to begin anew.

    Raises:
      InputError: the file belongs to a run with other settings, or is no journal.
    """

    def __init__(self, path: Path, settings: Mapping[str, Any], *, fresh: bool = False) -> None:
        self._path = path
        self.entries: dict[str, Entry] = {}
        head = json.dumps({"settings": dict(settings)}, sort_keys=True)
        lines = [] if fresh or not path.exists() else path.read_text(errors="replace").splitlines()
        if not lines:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(head + "\n")
            return
        if lines[0] != head:
            raise InputError(
                str(path),
                "is the journal of a run with other settings",
                facts=_different(lines[0], settings),
                next_step="--fresh begins anew, another --out keeps both",
            )
        for line in lines[1:]:
            try:
                entry = Entry.from_json(json.loads(line))
            except (ValueError, TypeError, KeyError):
                continue  # cut short as the run was stopped
            self.entries[entry.module] = entry
        if not path.read_bytes().endswith(b"\n"):
            with path.open("a") as file:
                file.write("\n")

    def add(self, entry: Entry) -> None:
        """Write an entry; it is on the disk when this returns."""
        self.entries[entry.module] = entry
        with self._path.open("a") as file:
            file.write(json.dumps(entry.to_json()) + "\n")
            file.flush()
            os.fsync(file.fileno())


def _different(head: str, settings: Mapping[str, Any]) -> str:
    """The settings that are others, in a line."""
    try:
        before = json.loads(head)["settings"]
        pairs = [(key, before.get(key), settings.get(key)) for key in sorted({*before, *settings})]
        told = [f"{key} was {old}, is {new}" for key, old, new in pairs if old != new]
    except (ValueError, TypeError, KeyError, AttributeError):
        return "its first line holds no settings"
    return "; ".join(told) or "the same in another order"
