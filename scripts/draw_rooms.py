"""Draw the rooms of the package, and which imports which, as the flowchart in docs/architecture.md.

    python scripts/draw_rooms.py            # print it
    python scripts/draw_rooms.py --write    # put it into the page

An arrow goes from a room to one that it imports. An arrow that follows from two others is left out.
"""

import ast
from collections.abc import Mapping, Set
from pathlib import Path

from absl import app, flags

_WRITE = flags.DEFINE_boolean("write", False, "Put the picture into the page.")

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "hlo_lower"
PAGE = ROOT / "docs" / "architecture.md"
BEGIN, END = "<!-- rooms -->\n", "<!-- end of rooms -->"


def imported(file: Path) -> set[str]:
    """The rooms that a file imports."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module if node.module != "hlo_lower" else f"hlo_lower.{node.names[0].name}")
        elif isinstance(node, ast.Import):
            found.update(name.name for name in node.names)
    parts = (name.split(".") for name in found if name.startswith("hlo_lower."))
    return {part[1] for part in parts if (PACKAGE / part[1]).is_dir()}


def arrows() -> dict[str, set[str]]:
    """For each room the rooms that it imports."""
    rooms = sorted(path.name for path in PACKAGE.iterdir() if (path / "__init__.py").exists())
    return {
        room: set[str]().union(*(imported(file) for file in (PACKAGE / room).rglob("*.py"))) - {room} for room in rooms
    }


def reduced(graph: Mapping[str, Set[str]]) -> dict[str, set[str]]:
    """The arrows that follow from no others."""

    def reached(room: str) -> set[str]:
        return set[str]().union(*({other} | reached(other) for other in graph[room]))

    return {room: {o for o in to if not any(o in reached(via) for via in to - {o})} for room, to in graph.items()}


def picture() -> str:
    """The flowchart."""
    graph = arrows()
    lines = [f"    {room} --> {other}" for room, to in reduced(graph).items() for other in sorted(to)]
    return "\n".join(["```mermaid", "flowchart TB", *lines, "```"]) + "\n"


def with_picture(page: str) -> str:
    """A page with the flowchart between its marks."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}{picture()}{END}{after}"


def main(_: list[str]) -> None:
    """Print the picture, or write it."""
    if _WRITE.value:
        PAGE.write_text(with_picture(PAGE.read_text()))
    else:
        print(picture(), end="")


if __name__ == "__main__":
    app.run(main)
