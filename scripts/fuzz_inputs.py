"""Give damaged inputs to both front doors, `hl.lower` and `hlo-lower convert`: no crash, no hang, no output.

    python scripts/fuzz_inputs.py --runs 2000 --seed 1
    python scripts/fuzz_inputs.py --runs 200 --models models/moe.py:capacity --seeds folder/of/modules --verify

A run is a seed: `--seed 17 --runs 1` repeats one. An input may come out of its mutation whole, and is converted then.
An input on which a door fails is written to --out with what happened; exit code 1 then.
"""

import collections
import os
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from absl import app, flags

import hlo_lower as hl
from hlo_lower.base.contained.supervisor import in_child
from hlo_lower.base.errors import EXIT_DIFFERS, EXIT_NOT_LOWERED, EXIT_OK
from hlo_lower.base.processes import Lost, in_processes
from hlo_lower.cli import main as command_line

MODELS = Path(__file__).parents[1] / "models"

_RUNS = flags.DEFINE_integer("runs", 2000, "Inputs to try.", lower_bound=1)
_SEED = flags.DEFINE_integer("seed", 0, "Seed of the first run; run i has seed + i.")
_OUT = flags.DEFINE_string("out", "fuzz_failing", "Folder for inputs that fail; made when there is one.")
_JOBS = flags.DEFINE_integer("jobs", 1, "Processes for each of the two doors.", lower_bound=1)
_SEEDS = flags.DEFINE_string("seeds", "", "Folder of modules to damage, besides the built-in ones and --models.")
_MODELS = flags.DEFINE_list(
    "models",
    [f"{MODELS}/sampling.py:greedy", f"{MODELS}/llama.py:decode"],
    "Models to damage, FILE.py:FN; by default two of the examples.",
)
_VERIFY = flags.DEFINE_bool("verify", False, "Verify what can be converted, as the command line does by default.")
_LIMIT = flags.DEFINE_float("limit", 150.0, "Seconds for an input; more is a hang.")

GOOD = ("converted", "clear error", "not lowered", "contained crash", "over a limit")
BAD = ("TRACEBACK", "CRASH", "HANG", "OUTPUT LEFT", "NO OUTPUT", "NO MESSAGE")
EVERY = 15.0
"""Seconds between lines of progress."""


def _outcome_of(message: str) -> str:
    """What an error message says that happened."""
    if "Traceback" in message or "internal error" in message:
        return "TRACEBACK"
    if "the process that read it died" in message:
        return "contained crash"
    if "was not read after" in message or "took more than" in message:
        return "over a limit"
    return "clear error" if message.strip() else "NO MESSAGE"


def library(data: bytes) -> tuple[str, str]:
    """What `hl.lower` makes of an input, in a process that stays."""
    try:
        _ = hl.lower(data, name="input").text
    except hl.NotLoweredError as error:
        return "not lowered", str(error)
    except hl.HloLowerError as error:
        return _outcome_of(str(error)), str(error)
    except Exception as error:
        return "TRACEBACK", f"{type(error).__name__}: {error}"
    return "converted", ""


def command(data: bytes, *, verify: bool) -> tuple[str, str]:
    """What `hlo-lower convert` makes of an input, in a child of this process, supervised as the program is.

    This process has read nothing: what has run JAX's compiler or parser has threads, which a fork does not survive.
    """
    with tempfile.TemporaryDirectory() as folder:
        source, output, said = (Path(folder) / name for name in ("input", "output.mlir", "said"))
        source.write_bytes(data)
        argv = ["convert", str(source), "-o", str(output), *([] if verify else ["--no-verify"])]
        messages: list[str] = []
        code = in_child(partial(_as_program, argv, str(said)), [str(source)], messages.append)
        message = (said.read_text(errors="replace") if said.exists() else "") + "".join(messages)
        left = sorted(set(os.listdir(folder)) - {"input", "said"})
    if code == EXIT_OK:
        return ("converted", "") if left == ["output.mlir"] else ("NO OUTPUT", str(left))
    if left:
        return "OUTPUT LEFT", f"{left}, exit code {code}\n{message}"
    outcome = _outcome_of(message)
    if "the process that worked on it died" in message:
        outcome = "CRASH"  # contained, but no fault of the parser
    if code in (EXIT_DIFFERS, EXIT_NOT_LOWERED) and outcome == "clear error":
        outcome = "not lowered"
    return outcome, message


def _as_program(argv: Sequence[str], said: str) -> int:
    """The life of the child: nothing of it reaches the streams of this program."""
    file = os.open(said, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(file, 1)
    os.dup2(file, 2)
    code = command_line(argv)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def get_ready() -> None:
    """Import what the doors need; nothing is read yet."""
    import hlo_lower.api.functions
    import hlo_lower.report  # noqa: F401


class Inputs(Sequence[bytes]):
    """The inputs, each made when it is asked for."""

    def __init__(self, seeds: dict[str, bytes], first: int, count: int) -> None:
        self.seeds, self.first, self.count = seeds, first, count

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, number: int) -> bytes:  # pyright: ignore[reportIncompatibleMethodOverride]
        return self.named(number)[1]

    def named(self, number: int) -> tuple[str, bytes]:
        """What an input is made of, and the input."""
        from mutations import mutated

        return mutated(self.first + number, self.seeds)


class Tally:
    """What happened, counted by door and outcome, told now and then; failures are written at once."""

    def __init__(self, inputs: Inputs) -> None:
        self.inputs = inputs
        self.counts: collections.Counter[tuple[str, str]] = collections.Counter()
        self.lock = threading.Lock()
        self.start = self.told = time.monotonic()

    def take(self, door: str, number: int, answer: "tuple[str, str] | Lost") -> None:
        """Count an outcome."""
        if isinstance(answer, Lost):
            answer = ("HANG" if "was not done" in answer.reason else "CRASH", answer.reason)
        outcome, message = answer
        with self.lock:
            self.counts[door, outcome] += 1
            if outcome in BAD:
                self._keep(door, number, outcome, message)
            elif outcome == "over a limit":
                print(f"seed {self.inputs.first + number}, {door}: {message.splitlines()[0]}", flush=True)
            if time.monotonic() - self.told > EVERY:
                self.told = time.monotonic()
                done = sum(self.counts.values())
                print(f"{done} of {2 * len(self.inputs)} done, {self.told - self.start:.0f} s", flush=True)

    def _keep(self, door: str, number: int, outcome: str, message: str) -> None:
        name, data = self.inputs.named(number)
        seed = self.inputs.first + number
        folder = Path(_OUT.value)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{seed}.input").write_bytes(data)
        (folder / f"{seed}.{door}.txt").write_text(f"{name}: {outcome}\n{message}\n")
        print(f"seed {seed} ({name}), {door}: {outcome}: {(message.splitlines() or [''])[0]}", flush=True)

    def table(self) -> str:
        """The counts, a line for each door."""
        shown = [outcome for outcome in (*GOOD, *BAD) if any(self.counts[door, outcome] for door in DOORS)]
        lines = [f"{'door':<8}" + "".join(f"{outcome:>17}" for outcome in shown)]
        lines += [f"{door:<8}" + "".join(f"{self.counts[door, outcome]:>17,}" for outcome in shown) for door in DOORS]
        return "\n".join(lines)

    @property
    def failures(self) -> int:
        """How many outcomes are failures."""
        return sum(count for (_, outcome), count in self.counts.items() if outcome in BAD)


DOORS = ("library", "command")


def seeds_of_flags() -> dict[str, bytes]:
    """What is damaged."""
    from mutations import model_seeds, small_seeds

    seeds = small_seeds() | model_seeds([name for name in _MODELS.value if name])
    if _SEEDS.value:
        seeds |= {file.name: file.read_bytes() for file in sorted(Path(_SEEDS.value).iterdir()) if file.is_file()}
    return seeds


def main(argv: Sequence[str]) -> int:
    """Run the seeds through both doors at once, print the counts; exit code 1 if something failed."""
    if len(argv) > 1:
        raise app.UsageError(f"unexpected argument {argv[1]}")
    inputs = Inputs(seeds_of_flags(), _SEED.value, _RUNS.value)
    tally = Tally(inputs)

    def through(door: str) -> None:
        call = library if door == "library" else partial(command, verify=_VERIFY.value)
        for number, answer in in_processes(call, inputs, jobs=_JOBS.value, timeout=_LIMIT.value, prepare=get_ready):
            tally.take(door, number, answer)

    with ThreadPoolExecutor(len(DOORS)) as both:
        list(both.map(through, DOORS))
    print(tally.table())
    failures = f"{tally.failures} failed" + (f", in {_OUT.value}/" if tally.failures else "")
    print(
        f"{len(inputs):,} inputs made of {len(inputs.seeds)} seeds, {time.monotonic() - tally.start:.0f} s: {failures}"
    )
    return EXIT_DIFFERS if tally.failures else EXIT_OK


if __name__ == "__main__":
    app.run(main)
