"""The pages of the site in one folder: those of docs/, those at the root, and what is generated."""

import re
import shutil
from os.path import normpath, relpath
from pathlib import Path

from docs_site.api_pages import api_page
from docs_site.flowchart import drawn
from docs_site.gallery import write_gallery
from hlo_lower.ops.quirks import QUIRKS
from hlo_lower.report.ops_table import render_forms_markdown

ROOT = Path(__file__).parents[2]
ROOT_PAGES = {"README.md": "index.md", "CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changes.md"}
SOURCES = "source"
"""The folder of files of the repository that pages link to."""

LINK = re.compile(r"(?<=\]\()([^)\s]+)(?=\))")
LANGUAGES = {".py": "python", ".toml": "toml", ".md": "markdown", ".mlir": "mlir", ".sh": "sh"}

CONTENTS = {
    "Start": ("install", "questions"),
    "Tutorials": (
        *("tutorials/jax-to-iree", "tutorials/pytorch", "tutorials/paged-decode", "tutorials/train-step"),
        *("tutorials/own-target", "tutorials/composites", "tutorials/notebook"),
    ),
    "Guides": ("usage", "jax-backends", "it-differs", "time-and-memory", "tiling", "named-ops", "targets", "linalg"),
    "Reference": (
        "rules",
        "ops",
        "laws",
        "gallery/index",
        "verification",
        "other-tools",
        "consumers",
        "api",
        "json-schema",
        "glossary",
        "traps",
    ),
    "Extending": (*("architecture", "adding-a-rule", "adding-a-kind", "adding-a-consumer", "contributing", "changes"),),
}
"""Every page, by the caption that it stands under."""


def assemble(folder: Path) -> int:
    """Gather the pages of the site into an empty folder; the number of rules in the gallery."""
    shutil.copytree(ROOT / "docs", folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
    for own, name in ROOT_PAGES.items():
        shutil.copy(ROOT / own, folder / name)
    linked: set[Path] = set()
    for page in sorted(folder.rglob("*.md")):
        page.write_text(drawn(_relinked(page.read_text(), page, folder, linked)))
    _write_sources(folder, linked)
    targets = folder / "targets.md"
    targets.write_text(targets.read_text().replace("<!-- forms -->", render_forms_markdown(QUIRKS)))
    (folder / "api.md").write_text(api_page())
    rules = write_gallery(folder / "gallery")
    with (folder / "index.md").open("a") as index:
        for caption, pages in CONTENTS.items():
            listed = "\n".join(pages)
            index.write(f"\n```{{toctree}}\n:hidden:\n:caption: {caption}\n\n{listed}\n```\n")
    return rules


def _home(page: Path, folder: Path) -> Path:
    """Where a page of the site stands in the repository."""
    name = page.relative_to(folder).as_posix()
    own = next((own for own, at in ROOT_PAGES.items() if at == name), None)
    return ROOT / own if own else ROOT / "docs" / name


def _relinked(text: str, page: Path, folder: Path, linked: set[Path]) -> str:
    """Links between the repository's files, as links between pages of the site; files that are none get one."""

    def moved(match: re.Match[str]) -> str:
        path, hash_sign, anchor = match[1].partition("#")
        if "://" in path or not path:
            return match[1]
        target = Path(normpath(_home(page, folder).parent / path))
        return relpath(folder / _place(target, linked), page.parent) + hash_sign + anchor

    return LINK.sub(moved, text)


def _place(target: Path, linked: set[Path]) -> str:
    """Where a file of the repository stands in the site."""
    name = target.relative_to(ROOT).as_posix()
    if name in ROOT_PAGES:
        return ROOT_PAGES[name]
    if name.startswith("docs/"):
        return name.removeprefix("docs/")
    linked.add(target)
    return _page_of(target)


def _page_of(target: Path) -> str:
    return f"{SOURCES}/{target.relative_to(ROOT).as_posix()}.md"


def _write_sources(folder: Path, linked: set[Path]) -> None:
    """A page for each file that a page links to, and for each folder with the files in it."""
    for target in sorted(linked):
        page = folder / _page_of(target)
        page.parent.mkdir(parents=True, exist_ok=True)
        files = [target]
        if target.is_dir():
            inside = (path for path in target.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
            files = sorted(path for path in inside if path.suffix in LANGUAGES)
        texts = [f"---\norphan: true\n---\n\n# {target.relative_to(ROOT)}"]
        for file in files:
            title = [f"## {file.relative_to(target)}"] if target.is_dir() else []
            texts += [*title, f"``````{LANGUAGES.get(file.suffix, 'text')}\n{file.read_text()}\n``````"]
        page.write_text("\n\n".join(texts) + "\n")
