"""Run a folder of modules through a consumer, native and converted, and write the table.

    python scripts/consumer_matrix.py --on iree --out iree.json ../modules
    python scripts/consumer_matrix.py --on iree --out iree.json --only 'jax/at_*' --jobs 2 ../modules
    python scripts/consumer_matrix.py --on litert --out litert.json --option demote_i64=True ../modules

Each module is run under XLA on three seeded sets of arguments (positions in range, at the edges, out of bounds); the
consumer compiles and runs both versions on the same arguments, in processes of their own with limits of time and
memory, and is right where it computes the same. What crashes, hangs or corrupts memory is an entry of the table.

--out names the JSON; the table stands beside it (.md), and the journal (.jsonl), to which each module is written as it
is done: stop the run at any time, the same command goes on. What another version of this tool made is not reported but
done anew; --changed converts it anew and judges it only where the converted text is another by now. The journal of
another version of the consumer, of another target, way of judging, or options is refused. Exit code 1 if a module was
lost (right natively, not right converted), 2 for bad usage, else 0.
"""

import json
import os
import sys
from ast import literal_eval
from collections.abc import Sequence
from dataclasses import replace
from fnmatch import fnmatch
from pathlib import Path
from time import monotonic
from typing import Any

from absl import app, flags
from matrix.entry import Entry
from matrix.journal import Journal
from matrix.made_by import judge, target_digest, tool
from matrix.module import Work, digest_of, judge_module
from matrix.table import table_json, table_lines

from hlo_lower.api.many.files import Selected, select
from hlo_lower.base.errors import EXIT_BAD_INPUT, EXIT_DIFFERS, EXIT_OK, HloLowerError, InputError
from hlo_lower.base.processes import Lost, in_processes
from hlo_lower.consumers import consumer_named
from hlo_lower.ops.targets import TARGETS, target_of

_ON = flags.DEFINE_string("on", "iree", "The consumer: iree, litert, coreml, or one of an installed distribution.")
_OUT = flags.DEFINE_string("out", None, "The JSON; the table and the journal stand beside it. ON_matrix.json.")
_TARGET = flags.DEFINE_string("target", None, "What modules are converted for; by default the consumer's own target.")
_OPTION = flags.DEFINE_multi_string("option", [], "A further keyword of hlo_lower.lower: float_mode='reassociate'.")
_JOBS = flags.DEFINE_integer("jobs", 1, "Modules at a time.", lower_bound=1)
_LIMIT = flags.DEFINE_float("limit", 180, "Seconds for a version of a module.", 0.1)
_MEMORY = flags.DEFINE_float("memory", 8, "GiB of memory for the consumer's process.", 0.01)
_RUNS = flags.DEFINE_integer("runs", 3, "Sets of arguments.", lower_bound=1)
_SEED = flags.DEFINE_integer("seed", 0, "Of the arguments.", lower_bound=0)
_ONLY = flags.DEFINE_multi_string("only", [], "Only modules whose name fits: 'jax/at_*'. Repeat for more.")
_SKIP = flags.DEFINE_multi_string("skip", [], "No modules whose name fits.")
_FRESH = flags.DEFINE_boolean("fresh", False, "Begin anew, whatever the journal holds.")
_CHANGED = flags.DEFINE_boolean(
    "changed",
    False,
    "Of modules that another version of the tool made, judge only those whose converted text is another.",
)

EXIT_INTERRUPTED = 130
LANE_LIMIT = 900.0
"""Seconds for XLA and the conversion of a module, beyond those for its two versions."""


def works_of(paths: Sequence[str], target: str, options: dict[str, Any]) -> list[Work]:
    """The modules that are asked for.

    Raises:
      InputError: there are none, or two of the same name.
    """
    found: dict[str, Work] = {}
    made_by = tool()
    for selected in select(paths):
        name = name_of(selected, paths)
        if selected.error is not None:
            raise selected.error
        if not Path(str(selected.source)).is_file():
            raise InputError(selected.file, "no such file or folder")
        if _ONLY.value and not any(fnmatch(name, pattern) for pattern in _ONLY.value):
            continue
        if any(fnmatch(name, pattern) for pattern in _SKIP.value):
            continue
        if name in found:
            raise InputError(str(selected.source), f"is the second module named {name}", next_step="name one folder")
        found[name] = Work(
            str(selected.source),
            name,
            _ON.value,
            target,
            options,
            _SEED.value,
            _RUNS.value,
            _LIMIT.value,
            int(_MEMORY.value * 2**30),
            tool=made_by,
        )
    if not found:
        raise InputError("", "no module fits --only and --skip")
    return list(found.values())


def name_of(selected: Selected, paths: Sequence[str]) -> str:
    """A module's name in the table: its path below the folder that was named, without the suffix."""
    path = Path(str(selected.source))
    for top in map(Path, paths):
        if top.is_dir() and path.is_relative_to(top):
            return path.relative_to(top).with_suffix("").as_posix()
    return path.stem


def options_of(given: Sequence[str]) -> dict[str, Any]:
    """The keywords that --option gives.

    Raises:
      InputError: one is not KEY=VALUE with a Python literal.
    """
    options: dict[str, Any] = {}
    for one in given:
        key, equals, value = one.partition("=")
        try:
            options[key] = literal_eval(value)
        except (ValueError, SyntaxError):
            equals = ""
        if not equals or not key.isidentifier():
            raise InputError("", f"--option {one}: not KEY=VALUE", next_step="--option float_mode='\"reassociate\"'")
    return options


class Progress:
    """A line for each module on standard error, with the time that is left by the pace so far."""

    def __init__(self, total: int) -> None:
        self._total, self._done, self._start = total, 0, monotonic()

    def __call__(self, entry: Entry) -> None:
        """Tell of a module that is done."""
        self._done += 1
        left = (monotonic() - self._start) / self._done * (self._total - self._done)
        told = entry.not_judged and f"not judged: {entry.not_judged[:60]}"
        if entry.native is not None and entry.converted is not None:
            told = f"{entry.native.result} -> {entry.converted.result}{'  LOST' if entry.is_lost else ''}"
        print(f"{self._done:>4} of {self._total}  {left / 60:5.1f} min left  {entry.module}: {told}", file=sys.stderr)


def run(paths: Sequence[str]) -> int:
    """Judge what is not done yet, and write the table, also where this is stopped.

    Raises:
      HloLowerError: see the flags.
    """
    consumer = consumer_named(_ON.value)
    consumer.require()
    own = consumer.name if any(target.name == consumer.name for target in TARGETS) else "stablehlo"
    target, options = _TARGET.value or own, options_of(_OPTION.value)
    target_of(target)
    works = works_of(paths, target, options)
    settings = {
        "consumer": consumer.name,
        "version": consumer.version(),
        "target": target,
        "target file": target_digest(target),
        "judge": judge(),
        "options": options,
        "seed": _SEED.value,
        "runs": _RUNS.value,
        "limit": _LIMIT.value,
        "memory": _MEMORY.value,
    }
    out = Path(_OUT.value or f"{consumer.name}_matrix.json")
    journal = Journal(out.with_suffix(".jsonl"), settings, fresh=_FRESH.value)
    todo = [w for w in works if _is_to_do(w, journal.entries.get(w.module))]
    if _CHANGED.value:
        todo = [replace(w, before=journal.entries.get(w.module)) for w in todo]
    tell, stopped = Progress(len(todo)), False
    limit = LANE_LIMIT + 4 * _LIMIT.value
    try:
        for number, answer in in_processes(judge_module, todo, jobs=_JOBS.value, timeout=limit):
            work = todo[number]
            if isinstance(answer, Lost):
                entry = Entry(work.module, digest_of(work.text), not_judged=answer.reason, tool=work.tool)
            else:
                entry = answer
            journal.add(entry)
            tell(entry)
    except KeyboardInterrupt:
        stopped = True
    entries = [e for w in works if not _is_to_do(w, e := journal.entries.get(w.module)) and e is not None]
    left = len(works) - len(entries)
    lines = table_lines(consumer, consumer.version(), entries, left)
    written(out.with_suffix(".md"), "\n".join(lines) + "\n")
    written(out, json.dumps(table_json(consumer, settings, entries, left), indent=1) + "\n")
    print("\n".join(lines))
    if stopped:
        print(f"stopped; the same command goes on with the {left} modules that are left", file=sys.stderr)
        return EXIT_INTERRUPTED
    return EXIT_DIFFERS if any(entry.is_lost for entry in entries) else EXIT_OK


def _is_to_do(work: Work, entry: Entry | None) -> bool:
    """Whether there is no entry for a module as it is now, by the tool as it is now."""
    return entry is None or (entry.digest, entry.tool) != (digest_of(work.text), work.tool)


def written(path: Path, text: str) -> None:
    """Write a file as a whole, or not at all."""
    part = path.with_name(f".{path.name}.part")
    part.write_text(text)
    os.replace(part, path)


def main(argv: Sequence[str]) -> int:
    """Run, with messages in the place of tracebacks."""
    if len(argv) < 2:
        raise app.UsageError("name a folder of modules: scripts/consumer_matrix.py --on iree FOLDER")
    try:
        return run(argv[1:])
    except HloLowerError as error:
        print(error, file=sys.stderr)
        return EXIT_BAD_INPUT


if __name__ == "__main__":
    app.run(main)
