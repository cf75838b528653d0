"""The gallery: a page for each group of rules, with what a rule takes, why it is equal, a picture, before and after."""

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import hlo_lower as hl
from docs_site.golden import Example, example

GROUPS: Mapping[str, tuple[str, Sequence[str]]] = {
    "one-window": ("Scatters of one window, or of a run of rows", ("one_window",)),
    "many-windows": ("Scatters of many windows", ("many_windows", "constant", "numbered_rows", "safe_scatter")),
    "dynamic-shapes": ("Scatters of dynamic shape", ("dynamic_shape",)),
    "gathers": ("Gathers and reverses", ("gather", "reverse")),
    "sorts": ("Sorts", ("sort",)),
    "control-flow": ("Control flow", ("control",)),
    "linear-algebra": ("Linear algebra", ("matrices",)),
    "element-types": ("Element types and refused forms", ("element_type", "refused_forms")),
    "portable": ("Composites, custom calls and chlo", ("composite", "custom_call", "chlo")),
}
"""By its page: the title of a group, and the files in `lowering/` that hold its rules."""

OTHERS = "other-ops", "Other ops"
"""The group of every rule that is in no other."""

FENCE = "`" * 6


def group_of(rule: hl.RuleRow) -> str:
    """The page of a rule."""
    file = rule.place.partition(":")[0].rpartition("/")[2].removesuffix(".py")
    return next((page for page, (_, files) in GROUPS.items() if file in files), OTHERS[0])


def write_gallery(folder: Path) -> int:
    """Write the pages of the gallery, and its pictures, into a folder; the number of rules."""
    folder.mkdir(parents=True)
    rules = hl.rules()
    pages: dict[str, list[hl.RuleRow]] = {page: [] for page in (*GROUPS, OTHERS[0])}
    for rule in rules:
        pages[group_of(rule)].append(rule)
    titles = {page: title for page, (title, _) in GROUPS.items()} | dict([OTHERS])
    pictured: dict[str, list[str]] = {}
    for page, members in pages.items():
        texts = [f"# {titles[page]}"]
        for rule in members:
            found = example(rule.name)
            picture = _picture(folder, rule.name, found)
            pictured.setdefault(page, []).append(picture)
            texts += _rule(rule, found, picture)
        (folder / f"{page}.md").write_text("\n\n".join(texts) + "\n")
    (folder / "index.md").write_text(_index(pages, titles, pictured))
    return len(rules)


def _picture(folder: Path, name: str, found: Example | None) -> str:
    """The file of a rule's picture; "" where it has none."""
    if found is None or not found.picture:
        return ""
    (folder / f"{name}.svg").write_text(found.picture)
    return f"{name}.svg"


def _rule(rule: hl.RuleRow, found: Example | None, picture: str) -> Iterator[str]:
    """The section of a rule."""
    yield f"## {rule.name}"
    yield f"Takes {_plain(rule.classes)}. Becomes `{rule.form}`." + f" In `hlo_lower/{rule.place}`."
    if picture:
        yield f"![What this scatter writes]({picture})"
    yield from _proof(rule.proof)
    if found is None:
        yield "It changes no text, so there is nothing to show."
        return
    asked = f", asked for with `{found.asked}`" if found.asked else ""
    yield f"Before{asked}:"
    yield f"```mlir\n{found.before}\n```"
    yield "After:"
    yield f"```mlir\n{found.after}\n```"


def _plain(text: str) -> str:
    return text.replace("|", ", ").replace("*", r"\*").replace("<", "&lt;")


def _proof(text: str) -> Iterator[str]:
    """A rule's docstring as paragraphs; what is indented is code."""
    for block in re.split(r"\n\s*\n", text.strip()):
        if block.startswith("    "):
            yield f"{FENCE}text\n" + "\n".join(line.removeprefix("    ") for line in block.splitlines()) + f"\n{FENCE}"
        else:
            yield re.sub(r"(?<![`\w])([%@*<][^\s`]*)", r"`\1`", re.sub(r"`[^`]+`|[^`]+", _escaped, block))


def _escaped(part: re.Match[str]) -> str:
    return part[0] if part[0].startswith("`") else re.sub(r"([*_<\[|])", r"\\\1", part[0])


def _index(
    pages: Mapping[str, Sequence[hl.RuleRow]], titles: Mapping[str, str], pictured: Mapping[str, Sequence[str]]
) -> str:
    """The first page: each group with its rules, and the pictures of those that have one."""
    parts = [
        "# Gallery of rules",
        "Each rule with what it takes, why the result is equal, a drawing of what its scatter writes, and a module "
        "before and after. The modules are the golden ones that the tests hold each rule to. "
        "[The table](../rules.md#the-table) has all of them on one page.",
    ]
    for page, members in pages.items():
        parts.append(f"## {titles[page]}")
        parts.append(", ".join(f"[{rule.name}]({page}.md#{_anchor(rule.name)})" for rule in members))
        shown = [(rule, file) for rule, file in zip(members, pictured[page], strict=True) if file]
        if shown:
            parts.append(":::{container} pictures")
            parts += [f"[![{rule.name}]({file})]({page}.md#{_anchor(rule.name)})\n{rule.name}" for rule, file in shown]
            parts.append(":::")
    listed = "\n".join(pages)
    return "\n\n".join([*parts, f"```{{toctree}}\n:hidden:\n\n{listed}\n```"]) + "\n"


def _anchor(name: str) -> str:
    return name
