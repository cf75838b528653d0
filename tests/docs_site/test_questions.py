"""The twelve questions of a newcomer are answered, each at the place that is named."""

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
QUESTIONS = tomllib.loads((Path(__file__).parent / "questions.toml").read_text())["question"]
PAGE = (ROOT / "docs" / "questions.md").read_text()


def section(where):
    """The text from a heading on to the next one of its level or above."""
    path, _, anchor = where.partition("#")
    text = (ROOT / path).read_text()
    headings = list(re.finditer(r"^(#+) (.*)$", re.sub(r"^```.*?^```$", _blank, text, flags=re.DOTALL | re.M), re.M))
    for number, found in enumerate(headings):
        if re.sub(r"[^\w\- ]", "", found[2].lower()).replace(" ", "-") == anchor:
            after = [other.start() for other in headings[number + 1 :] if len(other[1]) <= len(found[1])]
            return text[found.start() : min([*after, len(text)])]
    raise AssertionError(f"no heading {where}")


def _blank(match):
    return re.sub(r"[^\n]", " ", match[0])


@pytest.mark.parametrize("question", QUESTIONS, ids=range(1, len(QUESTIONS) + 1))
def test_a_question_is_answered_where_it_says(question):
    """The section of the answer has its words, and the page of questions asks it and leads there."""
    assert question["words"] in section(question["where"])
    asked = re.sub(r"\s+", " ", PAGE)
    assert f"**{question['asks']}**" in asked
    answer = asked.split(f"**{question['asks']}**")[1].split("**")[0]
    assert Path(question["where"].partition("#")[0]).name in answer


def test_there_are_twelve():
    """None was left out."""
    assert len(QUESTIONS) == 12
    assert len(re.findall(r"^\d+\. \*\*", PAGE, re.M)) == 12
