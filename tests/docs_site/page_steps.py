"""A tutorial as steps: the files that it writes, the commands and the Python that it runs, and what they print.

Marks in a page, each before the block that it speaks of:

    <!-- file: NAME -->      the block is that file, in the folder where everything runs
    <!-- given: PATH -->     a file of the repository that the commands find there, by its name
    <!-- prints -->          each line is one of what the block before printed; "..." stands for anything
    <!-- needs: NAME -->     commands that are left out where an extra or a package is not installed
    <!-- exits: CODE -->     commands that end with this exit code
    <!-- installed: NAME --> a package of examples/ that whoever runs the page has installed before
    <!-- example -->         Python that runs; `needs: NAME` may stand behind it
"""

import contextlib
import io
import re
import shlex
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from hlo_lower.cli import main

ROOT = Path(__file__).parents[2]
IMPORTS = {"iree": "iree", "litert": "litert_converter", "coreml": "coremltools", "torchax": "torchax"}
"""What has to be importable, by the name that a page needs."""

STEP = re.compile(r"(?:^<!-- (.*?) -->\n)?^```(\w*)\n(.*?)^```$", re.DOTALL | re.M)
TIMES = re.compile(r"[\d.]+ s \+ [\d.]+ s")


@dataclass(frozen=True)
class Step:
    """A block of a page: the mark before it, its language, and its text."""

    mark: str
    language: str
    text: str

    @property
    def needs(self):
        """The package that it needs; "" where it needs none."""
        found = re.search(r"needs: (\w+)", self.mark)
        return IMPORTS[found[1]] if found else ""


def steps_of(page):
    """The blocks of a page in their order."""
    return [Step(mark or "", language, text) for mark, language, text in STEP.findall(page)]


def run_page(page, folder, run=main):
    """Run a page in a folder, which is the working directory.

    Returns:
      How many commands and pieces of Python ran, and the names of what was not installed.
    """
    ran, missing, printed, namespace = 0, set(), None, {"__name__": "tutorial"}
    for step in steps_of(page):
        if step.needs and find_spec(step.needs) is None:
            missing.add(step.needs)
            printed = None
        elif found := re.match(r"file: (\S+)", step.mark):
            (folder / found[1]).write_text(step.text)
        elif step.mark.startswith("installed: "):
            continue
        elif step.mark == "prints":
            assert printed is not None, step.text
            check_printed(step.text, printed)
        elif step.language == "python" and step.mark.startswith("example"):
            exec(compile(step.text, "tutorial", "exec"), namespace)
            ran += 1
        elif step.language == "sh":
            if found := re.match(r"given: (\S+)", step.mark):
                (folder / Path(found[1]).name).write_text((ROOT / found[1]).read_text())
            printed = ""
            exits = int(found[1]) if (found := re.match(r"exits: (\d+)", step.mark)) else 0
            for command in step.text.splitlines():
                printed += output_of(command, run, exits)
                ran += 1
    return ran, missing


def output_of(command, run, exits=0):
    """What a command of hlo-lower prints, which has to end with an exit code."""
    words = shlex.split(command, comments=True)
    assert words[0] == "hlo-lower", command
    caught = io.StringIO()
    with contextlib.redirect_stdout(caught), contextlib.redirect_stderr(caught):
        code = run(words[1:])
    assert code == exits, f"{command}: {code}\n{caught.getvalue()}"
    return caught.getvalue()


def check_printed(shown, printed):
    """Each line that is shown begins one of what was printed, in that order; blanks and times are not compared."""
    lines = iter([plain(line) for line in printed.splitlines()])
    for line in shown.splitlines():
        begin, dots, _ = plain(line).partition("...")
        assert any(own.startswith(begin.strip()) if dots else own.startswith(begin) for own in lines), (line, printed)


def plain(line):
    """A line with single blanks."""
    return " ".join(TIMES.sub("", line).split())
