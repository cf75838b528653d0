"""A program that uses the package, to be checked by its types alone."""

from pathlib import Path
from typing import assert_type

import hlo_lower as hl


def lowered_text(path: Path) -> str:
    """The text of a module, lowered and verified."""
    lowered = hl.lower(path, target="iree", oob="spec")
    assert_type(lowered.text, str)
    verdict = hl.verify(path, lowered, level="regions", runs=1)
    assert_type(verdict.ok, bool)
    records = hl.classify(path)
    rules = [record.rule for record in records]
    assert_type(rules, list[str])
    return lowered.text


@hl.jit
def double(x: int) -> int:
    """Twice a number."""
    return x + x


assert_type(double(3), int)
