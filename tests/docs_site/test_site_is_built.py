"""The site of the documents: every page is in its contents, it is built without a warning, and answers questions."""

import os
import re
import subprocess
import sys
import tomllib
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "scripts"))

from docs_site.api_pages import api_page  # noqa: E402
from docs_site.assemble import CONTENTS, ROOT_PAGES, SOURCES, assemble  # noqa: E402  # the folder of scripts comes first
from docs_site.flowchart import BLOCK, ranks_of, read  # noqa: E402
from docs_site.gallery import OTHERS, group_of  # noqa: E402

import hlo_lower as hl  # noqa: E402

LOADED = re.compile(r'<(?:script|link)[^>]*(?:src|href)="(https?:[^"]*)"')
"""What a page loads from somewhere else."""

CODE = re.compile(r"^```.*?^```$", re.DOTALL | re.M)
QUESTIONS = tomllib.loads((Path(__file__).parent / "questions.toml").read_text())["question"]
PAGE = re.sub(r"\s+", " ", (ROOT / "docs" / "questions.md").read_text())


def section(where):
    """The text from a heading on to the next one of its level or above."""
    path, _, anchor = where.partition("#")
    text = (ROOT / path).read_text()
    without_code = CODE.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), text)
    headings = list(re.finditer(r"^(#+) (.*)$", without_code, re.M))
    for number, found in enumerate(headings):
        if re.sub(r"[^\w\- ]", "", found[2].lower()).replace(" ", "-") == anchor:
            after = [other.start() for other in headings[number + 1 :] if len(other[1]) <= len(found[1])]
            return text[found.start() : min([*after, len(text)])]
    raise AssertionError(f"no heading {where}")


@pytest.mark.parametrize("question", QUESTIONS, ids=range(1, len(QUESTIONS) + 1))
def test_a_question_is_answered_where_it_says(question):
    """The section of the answer has its words, and the page of questions asks it and leads there. There are twelve."""
    assert question["words"] in section(question["where"])
    assert f"**{question['asks']}**" in PAGE
    answer = PAGE.split(f"**{question['asks']}**")[1].split("**")[0]
    assert Path(question["where"].partition("#")[0]).name in answer
    assert len(QUESTIONS) == len(re.findall(r" \d+\. \*\*", PAGE)) == 12


def test_every_page_is_in_the_contents():
    """Each page of docs, the notebook, those at the root and the generated ones stand in the contents, once."""
    pages = [page for listed in CONTENTS.values() for page in listed]
    own = {path.relative_to(ROOT / "docs").with_suffix("").as_posix() for path in (ROOT / "docs").rglob("*.md")}
    others = {Path(name).stem for name in ROOT_PAGES.values()} - {"index"}
    assert len(pages) == len(set(pages))
    assert set(pages) == own | others | {"tutorials/notebook", "gallery/index", "api"}


def test_the_reference_has_keywords_and_what_rules_build_with():
    """Keywords that a function takes by a type stand there with their types, and the builder of rules."""
    page = api_page()
    assert "- `demote_i64`: `bool | None`" in page.partition("### Keywords of `hl.classify`, `hl.lower`")[2]
    assert ".. autoclass:: hlo_lower.plugin.Builder" in page


def test_every_group_of_the_gallery_has_its_rules():
    """Rules stand with those of their family; what has no group of its own is an op besides scatters."""
    groups = {rule.name: group_of(rule) for rule in hl.rules()}
    assert groups["one_hot_dot"] == "many-windows"
    assert groups["guarded_dynamic_update_slice"] == "one-window"
    scatters = [rule.name for rule in hl.rules() if "_to_" not in rule.name]
    assert [name for name in scatters if groups[name] == OTHERS[0]] == []


def test_the_flowcharts_of_the_documents_are_read():
    """Each node of a chart is drawn, below what leads to it; an arrow back does not push it down."""
    charts = BLOCK.findall((ROOT / "docs" / "architecture.md").read_text())
    nodes, arrows = read(next(chart for chart in charts if "legal{" in chart))
    ranks = ranks_of(list(nodes), arrows)
    assert nodes["legal"].startswith("lowering/engine/legality")
    assert ranks["forms"] < ranks["decided"] < ranks["build"] < ranks["legal"]
    assert [arrow.words for arrow in arrows if (arrow.start, arrow.end) == ("twin", "decided")] == ["yes"]
    assert all(
        ranks[arrow.start] < ranks[arrow.end] for arrow in arrows if (arrow.start, arrow.end) != ("legal", "decided")
    )


@pytest.mark.sweep
@pytest.mark.docs
@pytest.mark.skipif(find_spec("sphinx") is None or find_spec("myst_nb") is None, reason="needs the extra docs")
def test_the_site_is_built_without_a_warning(tmp_path):
    """The command of CONTRIBUTING ends with 0; each rule has a section, each public name an entry; nothing is loaded
    from a network."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "http_proxy": "http://localhost:9", "COLUMNS": "100"}
    command = [sys.executable, str(ROOT / "scripts" / "build_docs.py"), "--out", str(tmp_path / "site")]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    gallery = "".join(path.read_text() for path in (tmp_path / "site" / "gallery").glob("*.html"))
    assert [rule.name for rule in hl.rules() if f'id="{rule.name.replace("_", "-")}"' not in gallery] == []
    api = (tmp_path / "site" / "api.html").read_text()
    assert [name for name in hl.__all__ if not name.startswith("__") and name not in api] == []
    notebook = (tmp_path / "site" / "tutorials" / "notebook.html").read_text()
    assert "wrapped_rows" in notebook
    assert "<svg" in notebook
    assert [url for page in (tmp_path / "site").rglob("*.html") for url in LOADED.findall(page.read_text())] == []


@pytest.mark.sweep
def test_links_out_of_docs_become_pages(tmp_path):
    """What a page links to in the repository is a page of the site, and no link leads out of it."""
    assert assemble(tmp_path / "pages") == len(hl.rules())
    for page in (tmp_path / "pages").rglob("*.md"):
        if SOURCES in page.parts:
            continue
        for link in re.findall(r"\]\(([^)\s]+)\)", CODE.sub("", page.read_text())):
            path = link.partition("#")[0]
            if path and "://" not in path and not path.endswith("api.md"):
                assert (page.parent / path).exists(), (page, link)
