"""How many of JAX's own tests pass on a backend that refuses ops, natively and with `hl.install`.

    git clone --depth 1 --branch jax-v0.10.2 https://github.com/jax-ml/jax
    python scripts/jax_tests.py --target mps --target tt --every 5 jax/tests/lax_numpy_indexing_test.py

Each file runs on the CPU as it is ("plain"), and for each target twice more: where JAX refuses what such a backend
would refuse ("refused", `hlo_lower.testing.refusing`), and there with `hl.install` ("installed"). What counts is what
passes plainly.
The file is its own plug-in of pytest, which sets that up in the process of the tests.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ET
from collections import Counter, defaultdict
from contextlib import ExitStack
from functools import partial
from pathlib import Path

MODES = ("plain", "refused", "installed")
MODE, TARGET, EVERY = "HLO_LOWER_JAX_TESTS", "HLO_LOWER_JAX_TESTS_TARGET", "HLO_LOWER_JAX_TESTS_EVERY"
LONGEST_REASON = 110

_open = ExitStack()
"""What holds as long as the process."""


def pytest_configure():
    """What pytest calls first: refuse, and install, as the environment says."""
    mode = os.environ[MODE]
    if mode == "plain":
        return
    import hlo_lower as hl
    from hlo_lower.testing import refusing

    _open.enter_context(refusing(os.environ[TARGET]))
    if mode == "installed":
        hl.install(os.environ[TARGET], stats_at_exit=True)


def pytest_unconfigure():
    """What pytest calls last: put JAX back, while its modules are there."""
    _open.close()


def pytest_collection_modifyitems(config, items):
    """Keep every so many-th test of a file, as the environment says."""
    every = int(os.environ[EVERY])
    config.hook.pytest_deselected(items=[item for number, item in enumerate(items) if number % every])
    items[:] = items[::every]


def outcomes(file, target, mode, seconds, every, extra):
    """What became of each test of a file that ran: "" where it passed, else the first line of its error."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        environment = {**os.environ, MODE: mode, TARGET: target, EVERY: str(every), "JAX_PLATFORMS": "cpu"}
        environment["PYTHONPATH"] = os.pathsep.join([str(Path(__file__).parent), str(Path(__file__).parents[1])])
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-p",
            "jax_tests",
            "-p",
            "no:cacheprovider",
            "--rootdir",
            str(file.parent),
        ]
        command += ["-c", os.devnull, f"--junitxml={report}", str(file), *extra]
        try:
            done = subprocess.run(
                command, env=environment, capture_output=True, text=True, timeout=seconds, check=False
            )
        except subprocess.TimeoutExpired:
            return None, f"more than {seconds} s"
        if not report.exists():
            return None, (done.stdout + done.stderr).strip().splitlines()[-1]
        found = {}
        for case in ET.parse(report).getroot().iter("testcase"):
            if case.find("skipped") is None:
                wrong = [e for e in case if e.tag in ("failure", "error")]
                found[f"{case.get('classname')}::{case.get('name')}"] = (
                    reason(wrong[0].get("message", "")) if wrong else ""
                )
        return found, ""


def reason(message):
    """The line of an error that says most: what is refused, without places and numbers."""
    lines = [line.strip() for line in message.splitlines() if line.strip()] or ["?"]
    line = next((line for line in lines if "rejects" in line), lines[0])
    return re.sub(r"; at .*| at \S+:\d+.*|\b\d+ ", "", line)[:LONGEST_REASON]


def main():
    """Run the files and print a row for each and each target, then which tests fail there, and why."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", type=Path, help="test files of JAX, of the release that is installed")
    parser.add_argument(
        "--target",
        dest="targets",
        action="append",
        required=True,
        help="built-in, or a target file; repeatable",
    )
    parser.add_argument("--every", type=int, default=1, help="run every so many-th test of a file (default: all)")
    parser.add_argument("--seconds", type=int, default=1800, help="for one run of one file (default: 1800)")
    parser.add_argument("--select", default="", help="only tests that fit, as pytest -k")
    asked = parser.parse_args()
    extra = ["-k", asked.select] if asked.select else []
    total = {target: Counter() for target in asked.targets}
    failed = defaultdict(list)
    print(f"{'file':40} {'target':10} {'pass':>6} {'refused':>8} {'installed':>10}", flush=True)
    for file in asked.files:
        run = partial(outcomes, file.resolve(), seconds=asked.seconds, every=asked.every, extra=extra)
        plain, why = run(target="", mode="plain")
        if plain is None:
            print(f"{file.name:40} plain: {why}", flush=True)
            continue
        good = [name for name, told in plain.items() if not told]
        for target in asked.targets:
            runs = {mode: run(target=target, mode=mode) for mode in MODES[1:]}
            if late := [f"{mode}: {why}" for mode, (found, why) in runs.items() if found is None]:
                print(f"{file.name:40} {target:10} {', '.join(late)}", flush=True)
                continue
            row = Counter({mode: sum(found.get(name) == "" for name in good) for mode, (found, _) in runs.items()})
            row["plain"] = len(good)
            print_row(file.name, target, row)
            for name in good:
                if told := runs["installed"][0].get(name, "it did not run"):
                    failed[target, told].append(name.rpartition(".")[2])
            total[target] += row
    for target, row in total.items():
        print_row("all", target, row)
    for (target, told), names in sorted(failed.items(), key=lambda entry: (entry[0][0], -len(entry[1]))):
        print(f"  {target} {len(names):>5,}  {told}  ({', '.join(names[:3])}{', ...' if len(names) > 3 else ''})")


def print_row(name, target, row):
    """Print how many tests pass in each mode."""
    counts = (row[mode] for mode in MODES)
    print("{:40} {:10} {:>6,} {:>8,} {:>10,}".format(name, target, *counts), flush=True)


if __name__ == "__main__":
    main()
