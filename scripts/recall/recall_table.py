"""The table of recall: by op, by source, near misses; as text or Markdown."""

from collections.abc import Iterator, Mapping

from recall.scores import Recall, Score


def table_lines(recall: Recall, markdown: bool) -> Iterator[str]:
    """The tables, then all that was missed or found wrongly."""
    yield from _table("op", recall.by_op, recall.total, markdown)
    yield ""
    yield from _table("source", recall.by_source, recall.total, markdown)
    yield ""
    wrong = len({name for name, _ in recall.false_positives})
    yield f"near misses: {recall.near_misses - wrong} of {recall.near_misses} refused"
    for title, listed in (
        ("found in a near miss", recall.false_positives),
        ("missed, or other attributes", recall.missed),
        ("more than counted", recall.surplus),
    ):
        if listed:
            yield ""
            yield f"{title}:"
            yield from (f"{'- ' if markdown else '  '}{name}: {told}" for name, told in listed)


def _table(title: str, scores: Mapping[str, Score], total: Score, markdown: bool) -> Iterator[str]:
    rows = [(title, "there", "found", "recall", "with attributes")]
    for name, score in [*scores.items(), ("all", total)]:
        rows.append((name, str(score.expected), str(score.found), f"{score.recall:.1%}", str(score.exact)))
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for number, row in enumerate(rows):
        cells = [
            cell.rjust(width) if column else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        yield f"| {' | '.join(cells)} |" if markdown else "  ".join(cells).rstrip()
        if markdown and not number:
            yield f"| {' | '.join('---:' if column else '---' for column in range(len(row)))} |"
