"""Print how many named ops are recognised: by op and by source, and what is found in programs that only look like them.

    python scripts/named_recall.py
    python scripts/named_recall.py --only 'attention|rope' --format markdown
    python scripts/named_recall.py --corpus ../shared/corpus/modules

Four kinds of programs are looked at: small ones that hold an op, in the manner of many libraries; near misses, which do
not; exports of forty decoders with two layers; and modules of frameworks whose ops were counted by reading, where they
are there. What is missed is listed with what was found in its place. Exit code 1 if anything is found in a near miss or
less than --goal is found, else 0.
"""

import re
import sys
from collections.abc import Sequence
from pathlib import Path

from absl import app, flags
from recall.case import Case
from recall.counted import CORPUS, counted_modules
from recall.decoders import DECODERS, VARIANTS
from recall.finder import find
from recall.programs import HITS, NEAR_MISSES
from recall.recall_table import table_lines
from recall.scores import recall_of

from hlo_lower.base.errors import EXIT_BAD_INPUT, EXIT_DIFFERS, EXIT_OK

_ONLY = flags.DEFINE_string("only", "", "A regular expression of names of cases and modules; others are left out.")
_FORMAT = flags.DEFINE_enum("format", "text", ["text", "markdown"], "Of the tables.")
_CORPUS = flags.DEFINE_string(
    "corpus", str(CORPUS), "Folder of the modules that were counted; none: they are left out."
)
_GOAL = flags.DEFINE_float("goal", 0.95, "Share that is to be found.", 0, 1)


def chosen(cases: Sequence[Case]) -> list[Case]:
    """Those whose names fit."""
    return [case for case in cases if re.search(_ONLY.value, case.name)]


def main(argv: Sequence[str]) -> int:
    if len(argv) > 1:
        print(f"{argv[1]}: the programs are its own; name them by --only", file=sys.stderr)
        return EXIT_BAD_INPUT
    recall = recall_of(chosen([*HITS, *DECODERS, *VARIANTS]), chosen(NEAR_MISSES), find)
    for module in counted_modules():
        file = Path(_CORPUS.value) / module.path
        if file.is_file() and re.search(_ONLY.value, module.path):
            recall.add_counted(module.path, "counted modules", module.expected, find(file.read_text()))
    for line in table_lines(recall, markdown=_FORMAT.value == "markdown"):
        print(line)
    return EXIT_DIFFERS if recall.false_positives or recall.total.recall < _GOAL.value else EXIT_OK


if __name__ == "__main__":
    app.run(main)
