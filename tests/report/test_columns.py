"""Widths of a table's columns."""

import pytest

from hlo_lower.report.page import column_widths


@pytest.mark.parametrize(
    ("columns", "page", "expected"),
    [
        ([["ab cd"], ["efg"]], 80, ([5, 3], True)),
        ([["ab cd"], ["efg"]], 10, ([5, 3], True)),
        ([["ab cd"], ["efg"]], 9, ([2, 3], True)),
        ([["ab cd"], ["efg"]], 7, ([2, 3], True)),
        ([["ab cd"], ["efgh"]], 7, ([2, 3], False)),
        ([["a b", "ccc"], ["x\nyyyy"]], 80, ([3, 4], True)),
        ([["", ""], ["x"]], 80, ([1, 1], True)),
        ([["a b c", "a b d", "a b e"], ["x y"]], 7, ([3, 1], True)),
    ],
)
def test_words_come_first(columns, page, expected):
    """Each column gets its longest word, then what saves most lines; where the words do not fit, the widest is cut."""
    assert expected == column_widths(columns, page)


@pytest.mark.parametrize("page", range(1, 60))
def test_the_page_is_never_exceeded(page):
    """The widths and the gaps fit the page, as long as there is a column's width for each."""
    columns = [["one two three"], ["four"], ["five sixteen"]]
    widths, _ = column_widths(columns, page)
    assert sum(widths) + 4 <= max(page, 7)
