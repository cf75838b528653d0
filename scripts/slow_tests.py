"""Print the names of the tests that the default run leaves to `pytest -m slow`: the content of tests/slow.txt.

    pip install pytest-cov
    python -m pytest -m 'not sweep' --cov=hlo_lower --cov-context=test --cov-report= --junitxml=times.xml
    python scripts/slow_tests.py .coverage times.xml > tests/slow.txt

A test takes long that takes --alone seconds, or --case seconds and is a case of a test with several. The longest first,
each is left out if it runs fewer lines of the package that no other test runs than it takes seconds. One case of each
test with several stays, and so do the traps, the documents, and the tests of the extras.
"""

import re
import sys
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from absl import app, flags

_CASE = flags.DEFINE_float("case", 0.25, "Seconds from which a case of a test with several takes long.", 0)
_ALONE = flags.DEFINE_float("alone", 0.5, "Seconds from which a test takes long that has one case.", 0)

STAYS = re.compile("trap|test_docs|litert|coreml")

Line = tuple[str, int]


def times_of(path: Path) -> dict[str, float]:
    """The seconds that each test took, by its name, from a report of pytest in JUnit's form."""
    found = dict[str, float]()
    for case in ElementTree.parse(path).iter("testcase"):
        module, name = case.attrib["classname"], case.attrib["name"]
        found[f"{module.replace('.', '/')}.py::{name}"] = float(case.attrib["time"])
    return found


def lines_of(path: Path) -> dict[str, set[Line]]:
    """The lines of the package that each test ran, by its name, from what coverage.py has written."""
    coverage: Any = import_module("coverage")  # comes with pytest-cov
    data, found = coverage.CoverageData(str(path)), defaultdict[str, set[Line]](set)
    data.read()
    for file in data.measured_files():
        for line, contexts in data.contexts_by_lineno(file).items():
            for test in {context.rpartition("|")[0] for context in contexts if not context.endswith("|teardown")}:
                found[test].add((file, line))
    return found


def slow_tests(
    times: Mapping[str, float], lines: Mapping[str, Collection[Line]], case: float, alone: float
) -> list[str]:
    """The tests that are left out, sorted."""
    counts = Counter(line for test, of_it in lines.items() if test in times for line in of_it)
    cases = Counter(test.partition("[")[0] for test in times)
    staying, left = cases.copy(), list[str]()
    for test in sorted(lines.keys() & times.keys(), key=lambda one: (-times[one], one)):
        function = test.partition("[")[0]
        has_several = cases[function] > 1
        if times[test] < (case if has_several else alone) or STAYS.search(test):
            continue
        own = sum(counts[line] == 1 for line in lines[test])
        if own < times[test] and (staying[function] > 1 or not has_several):
            left.append(test)
            staying[function] -= 1
            counts.subtract(lines[test])
    return sorted(left)


def main(argv: list[str]) -> int:
    if len(argv) != 3:
        print(__doc__, file=sys.stderr)
        return 2
    print(*slow_tests(times_of(Path(argv[2])), lines_of(Path(argv[1])), _CASE.value, _ALONE.value), sep="\n")
    return 0


if __name__ == "__main__":
    app.run(main)
