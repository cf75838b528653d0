"""Time the verified conversion of a folder of modules twice: with an empty cache of verdicts, then with the filled one.

    python scripts/bench_many.py zoo/ --target iree            # one process: what it takes of a processor
    python scripts/bench_many.py zoo/ --target iree --jobs 2   # two processes: modules a second of the clock

The second run writes into another folder, so that the journal of the first one says nothing. A figure is of the clock,
and for one process of its processors, children included; the first module, which loads XLA, is not counted.
"""

import os
import resource
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence

from absl import app, flags

import hlo_lower as hl

_TARGET = flags.DEFINE_string("target", "stablehlo", "The target.")
_JOBS = flags.DEFINE_integer("jobs", 1, "Processes.", lower_bound=1)
_VERIFY = flags.DEFINE_enum("verify", "auto", ["auto", "regions", "full", "off"], "How each module is verified.")


def processor_seconds() -> float:
    """Of this process and of the children that have ended."""
    return sum(
        used.ru_utime + used.ru_stime
        for used in map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    )


def main(argv: Sequence[str]) -> None:
    """Convert twice and print both figures."""
    if len(argv) < 2:
        sys.exit("name a folder: scripts/bench_many.py FOLDER")
    with tempfile.TemporaryDirectory() as place:
        for number in (1, 2):
            marks: list[tuple[float, float]] = []
            reports = hl.convert_modules(
                list(argv[1:]),
                os.path.join(place, str(number)),
                target=_TARGET.value,
                verify=_VERIFY.value,
                jobs=_JOBS.value,
                cache=os.path.join(place, "verdicts"),
                progress=lambda *_, marks=marks: marks.append((time.perf_counter(), processor_seconds())),
            )
            counted = max(len(reports) - 1, 1)
            clock, processor = (end - start for start, end in zip(marks[0], marks[-1], strict=True))
            codes = ", ".join(f"{count} with exit code {code}" for code, count in sorted(codes_of(reports).items()))
            used = f", {processor / counted:.2f} s of a processor each" if _JOBS.value == 1 else ""
            print(f"run {number}: {len(reports)} modules, {counted / max(clock, 1e-9):.2f} a second{used}; {codes}")


def codes_of(reports: Sequence[hl.ModuleReport]) -> Counter[int]:
    """How many modules have each exit code."""
    return Counter(report.exit_code for report in reports)


if __name__ == "__main__":
    app.run(main)
