"""Change one thing in a module, find out without the judge whether it is the same function, and ask `verify`.

    python scripts/mutants.py --runs 1000 --seed 0 --jobs 2 --out mutants
    python scripts/mutants.py --runs 1000 --seed 0 --jobs 2 --out mutants --resume
    python scripts/mutants.py --rejudge 0,4 --out mutants      # those that verify let pass, with the code as it is now
    python scripts/mutants.py --runs 5000 --derive --lowered litert,iree --out laws     # of the laws alone

With --lowered the mutants are of what a module becomes for a target, and are compared with the module. With --derive
the laws alone are on trial: 0 is "derived" and 4 is "open".

Modules are small programs of `mutating/programs.py` and, with --modules, files of a folder. Each mutant has one
mutation (`mutating/operators.py`); operators take turns. The truth comes from an evaluator in NumPy on inputs aimed at
what was changed, confirmed by XLA without its simplifier or by StableHLO's interpreter (`mutating/truth.py`).

--out holds a journal, a line for each mutant, and in found/ the pairs where `verify` is wrong: exit code 0 of two that
differ, 1 of two that are equal, a traceback, a crash or a hang. At the end the table is printed: operators, the truth,
and the exit codes. The exit code is 1 where `verify` said 0 of two that differ.
"""

import json
import os
import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from functools import partial
from multiprocessing import get_context
from pathlib import Path

from absl import app, flags
from mutating.campaign import Record, begin, rejudged, report_lines, tried, wrong
from mutating.making import planned
from mutating.modules import lowered, read_modules
from mutating.operators import PROMISES

_RUNS = flags.DEFINE_integer("runs", 200, "Mutants to make.", lower_bound=1)
_SEED = flags.DEFINE_integer("seed", 0, "Seed of the first mutant; mutant i has seed + i.", lower_bound=0)
_JOBS = flags.DEFINE_integer("jobs", 1, "Processes.", lower_bound=1)
_OUT = flags.DEFINE_string("out", "mutants_out", "Folder for the journal and for what verify gets wrong.")
_RESUME = flags.DEFINE_boolean("resume", False, "Go on with the journal in --out.")
_MODULES = flags.DEFINE_string("modules", "", "A folder of modules to mutate, too.")
_LARGEST = flags.DEFINE_integer("largest", 16_000, "Bytes above which a file of --modules is left out.")
_ONLY = flags.DEFINE_list("only", [], "Of the small programs only these.")
_REJUDGE = flags.DEFINE_list("rejudge", [], "Make no mutants; judge again those of these exit codes.")
_LOWERED = flags.DEFINE_list("lowered", [], "Targets: mutate what the modules become for them.")
_DERIVE = flags.DEFINE_boolean("derive", False, "Ask whether they are derived to be equal, not `verify`.")
_SECONDS = flags.DEFINE_float(
    "seconds", 14.0, "Of a processor, to seek a witness for one mutant that verify lets pass."
)

HERE = Path(__file__).resolve().parent


def main(argv: Sequence[str]) -> int:
    """Make the mutants, judge them and print the table."""
    if len(argv) > 1:
        raise app.UsageError(f"unexpected argument {argv[1]}")
    out = Path(_OUT.value)
    journal = out / "journal.jsonl"
    if journal.exists() and not (_RESUME.value or _REJUDGE.value):
        print(f"{journal} exists; --resume goes on with it", file=sys.stderr)
        return 2
    (out / "found").mkdir(parents=True, exist_ok=True)
    records: dict[int, Record] = {}
    if journal.exists():
        for line in journal.read_text().splitlines():  # of one mutant the last line counts
            record = Record(**json.loads(line))
            records[record.seed] = record
    modules = read_modules(_MODULES.value, _LARGEST.value, _ONLY.value)
    modules, before = lowered(modules, _LOWERED.value) if _LOWERED.value else (modules, {})
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(HERE), os.environ.get("PYTHONPATH")]))
    start = partial(begin, derives=_DERIVE.value)
    with ProcessPoolExecutor(_JOBS.value, get_context("spawn"), start, (modules, before, _SECONDS.value)) as pool:
        if _REJUDGE.value:
            codes = {int(code) for code in _REJUDGE.value}
            tasks = [pool.submit(rejudged, record) for record in records.values() if record.code in codes]
        else:
            plan = planned(modules, _RUNS.value, _SEED.value)
            if _DERIVE.value:  # promises are judged beside what is computed
                plan = [mutant for mutant in plan if mutant[0] not in PROMISES]
            tasks = [pool.submit(tried, *mutant) for mutant in plan if mutant[1] not in records]
        with journal.open("a") as file:
            for done, task in enumerate(as_completed(tasks), 1):
                record, texts = task.result()
                records[record.seed] = record
                file.write(f"{json.dumps(vars(record))}\n")
                file.flush()
                _keep(out, record, texts)
                if done % 20 == 0 or wrong(record):
                    print(f"{done} of {len(tasks)}: {record.line()}", file=sys.stderr, flush=True)
    for line in report_lines(list(records.values())):
        print(line)
    return int(any(wrong(record) == "wrong equal" for record in records.values()))


def _keep(out: Path, record: Record, texts: tuple[str, str]) -> None:
    """Write the pair where the verdict is wrong, or where 0 was said and nobody knows better."""
    if wrong(record) or (record.code == 0 and record.truth == "unknown"):
        for side, text in zip("ab", texts, strict=True):
            (out / "found" / f"{record.name}_{side}.mlir").write_text(text)


if __name__ == "__main__":
    app.run(main)
