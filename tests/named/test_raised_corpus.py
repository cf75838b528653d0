"""Exports of real frameworks, where they are there: raised and written out they are what they were."""

import pytest
from named.structural_text import structure
from test_corpus import MODULES, name, needs_corpus

import hlo_lower as hl

UNVERIFIED = {}
"""Modules of which verification needs more than regions."""


@pytest.mark.sweep
@needs_corpus
@pytest.mark.parametrize("path", MODULES, ids=name)
def test_raised_and_written_out_it_is_the_same(path):
    """Each op is there as often as before, and takes what it took."""
    before = hl.read(path.read_text())
    raised = hl.raise_named(path.read_text())
    written_out = hl.inline_named(raised.text)
    assert structure(before) == structure(written_out)
