"""Lower random legal scatters and compare each with the NumPy reference and with XLA's own scatter.

    python scripts/difftest.py --runs 10000 --seed 1 --jobs 2 --out difftest
    python scripts/difftest.py --runs 10000 --seed 1 --jobs 2 --out difftest --resume
    python scripts/difftest.py --runs 50 --oob spec --prefer last_writer
    python scripts/difftest.py --seed 17 --runs 1

A run is a seed, so the last line repeats one. Consecutive seeds go through all kinds of subsets and combiners; --runs
counts from --seed. --out holds the state of the run, which --resume goes on with, summary.json, and for each failure
the module, its lowered form, the arguments, and the smallest module that was found to fail alike.

At the end it prints how many scatters were in each cell (kind of subset and combiner, as `classify` says), who judged
them, why XLA did not judge the others, and in how many an overhang, a drop or a duplicate changes the result.
The exit code is 1 if a scatter failed, 2 if --out holds another run.
"""

import os
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from time import monotonic

from absl import app, flags

from hlo_lower.base.errors import EXIT_BAD_INPUT, EXIT_DIFFERS, EXIT_OK, InputError
from hlo_lower.testing import Campaign, report_lines

_RUNS = flags.DEFINE_integer("runs", 100, "Scatters to try.", lower_bound=1)
_SEED = flags.DEFINE_integer("seed", 0, "Seed of the first run; run i has seed + i.", lower_bound=0)
_OOB = flags.DEFINE_enum("oob", "xla", ["xla", "spec"], "What happens to updates out of bounds.")
_JOBS = flags.DEFINE_integer("jobs", min(os.cpu_count() or 1, 8), "Processes.", lower_bound=1)
_OUT = flags.DEFINE_string("out", "difftest_out", "Folder for the state, the summary and what fails.")
_PREFER = flags.DEFINE_multi_string("prefer", [], "Take this rule wherever it is right; as hlo-lower convert.")
_FLOAT_MODE = flags.DEFINE_enum(
    "float_mode", "exact", ["exact", "reassociate"], "Whether float sums keep their order; else a bound judges them."
)
_RESUME = flags.DEFINE_boolean("resume", False, "Go on with the run whose state is in --out.")

EXIT_INTERRUPTED = 130
"""As a shell says it of a program that Ctrl-C ended."""

SECONDS_BETWEEN_LINES = 60
"""Where the progress is no terminal's."""


class Progress:
    """Done, failed, rate and time left: one line that is written anew on a terminal, a line a minute elsewhere."""

    def __init__(self) -> None:
        self._first: int | None = None
        self._last = monotonic()
        self._is_terminal = sys.stderr.isatty()

    def __call__(self, done: int, failed: int, runs: int, seconds: float, new: int) -> None:
        """See `campaign.Tell`."""
        if not self._is_terminal and monotonic() - self._last < SECONDS_BETWEEN_LINES:
            return
        self._last = monotonic()
        rate = new / max(seconds, 1e-9)
        left = (runs - done) / rate if rate else 0.0
        line = f"{done:,} of {runs:,} done, {failed} failed, {rate:.1f} a second, {left / 60:.1f} min left"
        if self._is_terminal:
            print(f"\r{line:<79}", end="" if done < runs else "\n", file=sys.stderr, flush=True)
        else:
            print(line, file=sys.stderr, flush=True)


def main(argv: Sequence[str]) -> int:
    """Run the seeds and print the report; exit code 1 if one failed."""
    if len(argv) > 1:
        raise app.UsageError(f"unexpected argument {argv[1]}")
    how = (_OOB.value, _JOBS.value, Path(_OUT.value), tuple(_PREFER.value), _FLOAT_MODE.value)
    campaign = Campaign(_SEED.value, _RUNS.value, *how, show=partial(print, flush=True))
    try:
        campaign.run(resume=_RESUME.value, tell=Progress())
    except InputError as error:
        print(error, file=sys.stderr)
        return EXIT_BAD_INPUT
    except KeyboardInterrupt:
        print(f"\nstopped; --resume goes on with the run in {_OUT.value}/", file=sys.stderr)
        return EXIT_INTERRUPTED
    for line in report_lines(campaign.summary()):
        print(line)
    return EXIT_DIFFERS if campaign.failures else EXIT_OK


if __name__ == "__main__":
    app.run(main)
