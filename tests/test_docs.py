"""README, CONTRIBUTING, docs and docstrings keep their promises: links, commands, names, excerpts, tables, examples."""

import ast
import doctest
import inspect
import posixpath
import re
import shlex
import textwrap
import tomllib
from collections.abc import Generator
from importlib import import_module
from pathlib import Path

import jax
import numpy as np
import pytest
from decode_module import ROW
from rule_examples import TABLES

import hlo_lower as hl
from hlo_lower.cli import main
from hlo_lower.cli.parser import make_parser
from hlo_lower.ops.targets import read_target
from hlo_lower.ops.targets.native_scatter import KEPT_WORDS
from hlo_lower.ops.targets.target_file import KEEP_LISTS, KEYS

ROOT = Path(__file__).parents[1]
PAGES = {str(path.relative_to(ROOT)): path.read_text() for path in (*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"))}
PAGES |= {
    f"examples/{name}/README.md": (ROOT / f"examples/{name}/README.md").read_text()
    for name in ("plugin", "consumer", "composites")
}
README, TARGETS = PAGES["README.md"], PAGES["docs/targets.md"]
CODE = [p for folder in ("hlo_lower", "tests", "scripts", "models", "examples") for p in (ROOT / folder).rglob("*.py")]
CODE.remove(Path(__file__))

NAMED = "".join(path.read_text() for path in (*ROOT.glob("hlo_lower/cli/*.py"), *ROOT.glob("scripts/*.py")))
"""Where flags are named."""

PLACES = r"(?:hlo_lower|tests|docs|scripts|models|examples)/[\w./-]+"
"""Paths as text names them; one with capitals stands for many (tests/golden/RULE.mlir)."""

CITED = re.compile(r"\btraps?[ \n]+(\d+(?:(?:,| and| to|, and) \d+)*)|\btest_trap_(\d+)_", re.IGNORECASE)


def blocks(text, language, marker=""):
    """The code blocks of a language, without indentation; those that follow a marker if one is given."""
    found = re.findall(rf"{marker and f'<!-- {marker}.*?-->'}\s*^ *```{language}\n(.*?)^ *```$", text, re.DOTALL | re.M)
    return [textwrap.dedent(block) for block in found]


def without_blocks(text):
    """A text without its code blocks."""
    return re.sub(r"^ *```.*?^ *```$", "", text, flags=re.DOTALL | re.M)


def commands_of(text):
    """Each command line of a text, in code blocks and within sentences, redirections and comments left out."""
    lines = [line for block in blocks(text, "sh") for line in block.splitlines()]
    lines += re.findall(r"^\$ (.*)", text, re.M)
    lines += [c for c in re.findall(r"`([^`]+)`", without_blocks(text)) if c.startswith(("python scripts/", "bash "))]
    own = re.findall(r"`(hlo-lower \w+ [^`]+)`", without_blocks(text))
    lines += [c for c in own if "COMMAND" not in c and "LEVEL" not in c]
    parts = (part for line in lines for part in re.split(r" && ", line))
    return [shlex.split(part.partition(" >> ")[0].replace("\n", " "), comments=True) for part in parts if part.strip()]


def anchors_of(text):
    """The anchors of a page's headings, as they are made from the words."""
    headings = re.findall(r"^#+ (.*)$", without_blocks(text), re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_the_python_example_runs(capfd):
    """The Python example of the README, which is of at most 10 kB, runs as it stands and prints what the text says."""
    assert len(README.encode()) <= 10_000
    parts = blocks(README, "python", "example")
    assert len(parts) == 3
    exec(compile("".join(parts), "README.md", "exec"), {"__name__": "readme"})
    done = capfd.readouterr()
    assert done.err == ""
    rule = "guarded_dynamic_update_slice"
    installed, lines = "[1. 0. 1. 0.]", done.out.splitlines()
    assert [lines[0], *lines[-3:]] == [installed, f"Tile -> {rule}", "128.0", rule]
    assert re.fullmatch(r"hlo_lower: \d+ programs?, 1 lowered in [\d.]+ s", lines[1])


def test_the_two_commands_give_the_picture(tmp_path, monkeypatch, capsys):
    """The commands of the README in their order print the result that it shows, but for times and a cut column."""
    [block], [picture] = blocks(README, "sh", "example"), blocks(README, "", "result")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    (tmp_path / "models").symlink_to(ROOT / "models")
    for line in block.splitlines():
        capsys.readouterr()
        assert main(shlex.split(line, comments=True)[1:]) == 0
    printed = capsys.readouterr().out.splitlines()
    seconds = r"[\d.]+ s \+ [\d.]+ s$"
    shown = picture.splitlines()
    assert re.sub(seconds, "", printed[0]) == re.sub(seconds, "", shown[0])
    for line in shown[1:]:
        assert any(row.split()[: len(line.split())] == line.split() for row in printed), line


@pytest.mark.parametrize("table", TABLES)
def test_a_table_is_what_the_command_prints(table, capsys):
    """The end of docs/rules.md is what `hlo-lower rules stablehlo.scatter --format markdown` prints; so ops and laws.

    `python tests/rule_examples.py` writes them.
    """
    assert main([*TABLES[table], "--format", "markdown"]) == 0
    _, _, told = PAGES[f"docs/{table}.md"].partition(f"<!-- {table}")
    assert told.partition("-->")[2].strip() == capsys.readouterr().out.strip()


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page):
    """Each link within the repository is to a file or folder that exists, and its anchor to a heading."""
    for link in re.findall(r"\]\(([^)\s]+)\)", PAGES[page]):
        if "://" not in link:
            path, _, anchor = link.partition("#")
            where = (ROOT / page).parent / path if path else ROOT / page
            assert where.exists(), link
            assert not anchor or anchor in anchors_of(where.read_text()), link


@pytest.mark.parametrize("page", PAGES)
def test_commands_are_those_that_exist(page):
    """Each command line of hlo-lower parses; scripts and their flags, paths and extras that others name exist."""
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    for command in commands_of(PAGES[page]):
        while "=" in command[0]:
            del command[0]
        if command[0] == "hlo-lower":
            make_parser().parse_line(command[1:])  # ends the test where it does not parse
            continue
        for word in command:
            if re.fullmatch(PLACES, word) and word == word.lower():
                assert (ROOT / word).exists(), word
            for listed in re.findall(r"\.\[([\w,]+)\]", word):
                assert set(listed.split(",")) <= set(extras)
        if command[1:2] and re.fullmatch(r"scripts/\w+\.py", command[1]):
            source = (ROOT / command[1]).read_text()
            assert [f for f in command if f.startswith("--") and f'"{f[2:]}"' not in source] == []


@pytest.mark.parametrize("page", PAGES)
def test_names_in_text_exist(page):
    """Flags, paths, public names and modules that the text names are there."""
    plain = without_blocks(PAGES[page])
    for code in re.findall(r"`([^`]+)`", plain):
        for flag in re.findall(r"^--(?:no-)?([\w-]+)", code):
            assert any(f'"{start}{flag}"' in NAMED for start in ("--", "", "--no-")), code
        if re.fullmatch(PLACES, code) and code == code.lower():
            assert (ROOT / code).exists(), code
    for name in re.findall(r'(?<!["@])\bhl\.(\w+)', PAGES[page]):  # "hl.softmax" and @hl.softmax are composites
        assert hasattr(hl, name), name
    for dotted in re.findall(r"`(hlo_lower(?:\.\w+)+)", plain):
        module, _, name = dotted.rpartition(".")
        assert hasattr(import_module(module), name) or import_module(dotted)


@pytest.mark.parametrize("page", PAGES)
def test_excerpts_are_those_of_the_files(page):
    """Code that is marked as an excerpt stands in the file that is named."""
    text = PAGES[page]
    paths = re.findall(r"<!-- excerpt: (\S+) -->", text)
    excerpts = blocks(text, r"\w+", "excerpt")
    assert len(paths) == len(excerpts)
    for path, excerpt in zip(paths, excerpts, strict=True):
        assert excerpt in (ROOT / path).read_text()


def test_diffs_are_of_lines_that_stand_in_the_files():
    """Each line that a diff of CONTRIBUTING adds stands in the file that it names; what ends in "..." begins one."""
    for block in blocks(PAGES["CONTRIBUTING.md"], "diff"):
        for part in block.split("+++ b/")[1:]:
            path, *lines = part.splitlines()
            text = (ROOT / path).read_text()
            added = [
                line.removeprefix("+").removesuffix('..."""').rstrip(" .") for line in lines if line.startswith("+")
            ]
            assert [line for line in added if line not in text] == [], path


def test_every_trap_that_is_cited_is_explained():
    """Numbers in code and text are those of docs/traps.md, in order; code cites nothing that a reader does not have."""
    assert [str(path) for path in CODE if re.search(r"\b(DESIGN|TRAPS)\b", path.read_text())] == []
    explained = [int(n) for n in re.findall(r"^\*\*Trap (\d+):", PAGES["docs/traps.md"], re.M)]
    assert explained == list(range(1, len(explained) + 1))
    texts = [path.read_text() for path in CODE] + list(PAGES.values())
    cited = {int(n) for text in texts for found in CITED.findall(text) for n in re.findall(r"\d+", " ".join(found))}
    assert len(cited) > 50
    assert cited - set(explained) == set()


def test_every_key_of_target_files_is_explained(tmp_path):
    """The tables name the keys that the parser takes, the example has all of them, and it is read."""
    first, second = re.findall(r"^\| key .*?(?=\n\n)", TARGETS, re.DOTALL | re.M)
    assert set(re.findall(r"^\| `(\w+)`", first, re.M)) == set(KEYS)
    assert set(re.findall(r"^\| `(\w+)`", second, re.M)) == {*KEEP_LISTS, *KEPT_WORDS}
    [example] = blocks(TARGETS, "toml", "target")
    (tmp_path / "my_npu.toml").write_text(example)
    assert read_target(str(tmp_path / "my_npu.toml")).name == "my_npu"
    assert set(tomllib.loads(example)) == set(KEYS)
    assert set(tomllib.loads(example)["keep"][0]) == {*KEEP_LISTS, *KEPT_WORDS}


def test_every_package_has_a_line():
    """The architecture page names what is at the top of the package; words of the glossary stand in order."""
    named = set(re.findall(r"^\| `([\w.]+/?)` \|", PAGES["docs/architecture.md"], re.M))
    top = [path for path in (ROOT / "hlo_lower").iterdir() if not path.name.startswith("__")]
    there = {f"{path.name}/" if path.is_dir() else path.name for path in top if path.is_dir() or path.suffix == ".py"}
    assert named == there
    words = re.findall(r"^\| ([a-z][^|]*?) \|", PAGES["docs/glossary.md"], re.M)[1:]
    assert len(words) > 60
    assert words == sorted(set(words), key=str.lower)


def test_every_page_can_be_reached():
    """Links lead from the README to each page of docs, in a few steps."""
    reached, new = set(), {"README.md"}
    while new:
        reached |= new
        links = {(page, link) for page in new for link in re.findall(r"\]\(([^)#\s]+\.md)", PAGES[page])}
        new = {posixpath.normpath(posixpath.join(posixpath.dirname(page), link)) for page, link in links}
        new = (new & set(PAGES)) - reached
    assert {page for page in PAGES if page.startswith("docs/")} - reached == set()


PACKAGE = Path(hl.__file__).parent

ALIASES = {"Inputs", "Level", "Source", "TargetLike"}
"""Names for annotations, which are no objects with a docstring of their own."""

NAMES = sorted(set(hl.__all__) - ALIASES - {"__version__"})
FUNCTIONS = [name for name in NAMES if inspect.isfunction(getattr(hl, name))]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with the module that the examples read."""
    (tmp_path / "decode.mlir").write_text(ROW)
    monkeypatch.chdir(tmp_path)


def failures(docstring):
    """What running the examples of a docstring gives that it does not show."""
    globs = {"hl": hl, "np": np, "jax": jax}
    test = doctest.DocTestParser().get_doctest(textwrap.dedent(docstring), globs, "docstring", None, 0)
    assert test.examples, "no example"
    told = []
    doctest.DocTestRunner(verbose=False).run(test, out=told.append)
    return "".join(told)


@pytest.mark.few(11)
@pytest.mark.parametrize("name", NAMES)
def test_the_example_of_a_public_name_runs(name, folder):
    """Each public function and class has an example in its docstring, which gives what it shows."""
    docstring = inspect.cleandoc(getattr(hl, name).__doc__)
    assert "Example:\n" in docstring
    assert failures(docstring) == ""


def test_an_example_that_is_wrong_is_found(folder):
    """One that shows something else fails, and a docstring without one does."""
    assert "Expected:" in failures('>>> hl.lower("decode.mlir").scatters_left\n1')
    with pytest.raises(AssertionError, match="no example"):
        failures("Nothing runs here.")


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_says_what_it_takes_gives_and_raises(name):
    """Args, Returns and Raises stand in the docstring of each public function; what it has none of need not."""
    assert {"lower", "classify", "verify", "jit", "export", "read", "bind", "rules", "costs"} <= set(FUNCTIONS)
    docstring, signature = getattr(hl, name).__doc__, inspect.signature(getattr(hl, name))
    asked = ("Args:", "Raises:") if signature.parameters else ()
    asked += () if signature.return_annotation in (None, Generator[None]) else ("Returns:",)
    assert [part for part in asked if f"    {part}\n" not in docstring] == []


def misnamed(source):
    """What docstrings of functions tell of among their Args that is not a parameter, with the function's name."""
    found = []
    for node in ast.walk(ast.parse(source)):
        docstring = ast.get_docstring(node) if isinstance(node, ast.FunctionDef) else None
        if docstring is None or "Args:\n" not in docstring or node.args.kwarg:
            continue
        args = re.split(r"\n(?=\S)", docstring.split("Args:\n")[1])[0]
        told = re.findall(r"^  (?! )([\w, *]+?)(?: \([^)]*\))?:", args, re.MULTILINE)
        own = {a.arg for a in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs, node.args.vararg) if a}
        names = {name.strip(" *") for line in told for name in line.split(",")}
        found += [(node.name, name) for name in sorted(names - own)]
    return found


@pytest.mark.few(14)
@pytest.mark.parametrize("folder", sorted({path.parent for path in PACKAGE.rglob("*.py")}), ids=lambda path: path.name)
def test_what_is_documented_is_a_parameter(folder):
    """A parameter that was renamed has its new name in the docstring; one that is none would be found."""
    wrong = 'def bind(source, costs):\n    """Bind.\n\n    Args:\n      source: it.\n      sizes: those.\n    """\n'
    assert misnamed(wrong) == [("bind", "sizes")]
    assert [found for path in sorted(folder.glob("*.py")) for found in misnamed(path.read_text())] == []
