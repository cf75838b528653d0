"""How many of JAX's own tests pass on a backend that refuses ops, natively and with `hl.install`.

    git clone --depth 1 --branch jax-v0.10.2 https://github.com/jax-ml/jax
    python scripts/jax_tests.py --target iree jax/tests/lax_numpy_indexing_test.py

Each file runs three times on the CPU: as it is ("plain"), where JAX refuses what a backend would refuse ("refused",
`hlo_lower.testing.refusing`), and there with `hl.install` ("installed"). What counts is what passes plainly.
The file is its own plug-in of pytest, which sets that up in the process of the tests.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ET
from collections import Counter
from contextlib import ExitStack
from pathlib import Path

MODES = ("plain", "refused", "installed")
MODE, TARGET = "HLO_LOWER_JAX_TESTS", "HLO_LOWER_JAX_TESTS_TARGET"
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


def outcomes(file, target, mode, seconds, extra):
    """What became of each test of a file that ran: "" where it passed, else the first line of its error."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        environment = {**os.environ, MODE: mode, TARGET: target, "JAX_PLATFORMS": "cpu"}
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
    line = next((line for line in lines if "refuses" in line), lines[0])
    return re.sub(r"; at .*| at \S+:\d+.*|\b\d+ ", "", line)[:LONGEST_REASON]


def main():
    """Run the files and print a row for each, then why tests fail."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", type=Path, help="test files of JAX, of the release that is installed")
    parser.add_argument("--target", required=True, help="a built-in target, or a target file")
    parser.add_argument("--seconds", type=int, default=1800, help="for one run of one file (default: 1800)")
    parser.add_argument("--select", default="", help="only tests that fit, as pytest -k")
    asked = parser.parse_args()
    extra = ["-k", asked.select] if asked.select else []
    total, reasons = Counter(), Counter()
    print(f"{'file':36} {'pass':>6} {'refused':>8} {'installed':>10}")
    for file in asked.files:
        runs = {}
        for mode in MODES:
            runs[mode], why = outcomes(file.resolve(), asked.target, mode, asked.seconds, extra)
            if runs[mode] is None:
                print(f"{file.name:36} {mode}: {why}", flush=True)
                break
        else:
            good = [name for name, told in runs["plain"].items() if not told]
            row = Counter(pass_=len(good))
            for mode in MODES[1:]:
                row[mode] = sum(runs[mode].get(name) == "" for name in good)
            print(f"{file.name:36} {row['pass_']:>6,} {row['refused']:>8,} {row['installed']:>10,}", flush=True)
            for name in good:
                if told := runs["installed"].get(name, "it did not run"):
                    reasons[told] += 1
            total += row
    print(f"{'all':36} {total['pass_']:>6,} {total['refused']:>8,} {total['installed']:>10,}")
    for told, count in reasons.most_common(40):
        print(f"  {count:>5,}  {told}")


if __name__ == "__main__":
    main()
