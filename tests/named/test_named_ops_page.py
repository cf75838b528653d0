"""docs/named-ops.md has every named op with its operands, its attributes and what it computes."""

from collections import Counter
from pathlib import Path

from hlo_lower.ops.vocabulary import NAMED_OPS

PATH = Path(__file__).parents[2] / "docs" / "named-ops.md"
MARK = "<!-- ops: tests/named/test_named_ops_page.py compares; run, it writes this anew -->\n"


def attribute_cell(attribute):
    """`axis` (int): the axis; with its default and choices."""
    default = "" if attribute.default is None else f"={attribute.default}"
    kind = " or ".join(attribute.choices) or f"{attribute.type.__name__}{'s' if attribute.several else ''}"
    return f"`{attribute.name}{default}` ({kind}): {attribute.meaning}"


def shared():
    """The attributes that several ops have in the same words, each with how many have it."""
    found = Counter(attribute_cell(attribute) for op in NAMED_OPS for attribute in op.attributes)
    return [cell for cell, count in found.items() if count > 1]


def table():
    """What several ops have in common, and a row for each op, which gives the meaning of its own attributes."""
    common = shared()
    rows = ["Attributes that several ops have, in the table by their names:", "", *(f"- {cell}" for cell in common), ""]
    rows += ["| op | operands | computes | attributes |", "|---|---|---|---|"]
    for op in NAMED_OPS:
        cells = [attribute_cell(attribute) for attribute in op.attributes]
        attributes = "<br>".join(cell.partition(" (")[0] if cell in common else cell for cell in cells)
        takes = f"`{op.takes}`" + f"<br>or `{op.or_takes}`" * bool(op.or_takes)
        rows.append(f"| `{op.name}` | {takes} | {op.definition.replace('*', chr(92) + '*')} | {attributes} |")
    return "\n".join(rows) + "\n"


def renewed(text):
    """The page with its table as it should be."""
    before, _, after = text.partition(MARK)
    return f"{before}{MARK}\n{table()}\n{after[after.index('## ') :]}"


def test_every_named_op_is_on_the_page():
    """The table is that of the vocabulary."""
    assert renewed(PATH.read_text()) == PATH.read_text()


if __name__ == "__main__":
    PATH.write_text(renewed(PATH.read_text()))
