"""Every code is reached, and is put into words."""

import pytest
from every_cause import CASES, REDUCED, causes_of

import hlo_lower as hl
from hlo_lower.base import english
from hlo_lower.base.causes import Code
from hlo_lower.report.module import ModuleReport
from hlo_lower.report.text import render_text


@pytest.mark.few(29)
@pytest.mark.parametrize("name", CASES)
def test_a_program_reaches_its_codes(name):
    """The codes that a program is there for are in its records."""
    assert set() == set(CASES[name].codes) - {cause.code for cause in causes_of(name)}


def test_no_code_is_without_a_program():
    """Each code is one that some program is there for."""
    assert set(Code) == {code for case in CASES.values() for code in case.codes}


def test_every_code_has_words():
    """Each code is put into English, and no sentence is without a code."""
    assert set(Code) == set(english.WORDS)
    assert set(Code) >= set(english.KINDS)


def test_an_index_of_a_region_is_no_argument_of_a_function():
    """It is counted under the op that holds the region, and not under "argument", which a caller gives."""
    [record] = hl.classify(hl.read(REDUCED))
    total = ModuleReport("m.mlir", 7, (record,)).totals()
    assert total.guard_causes == {Code.ARGUMENT_OF("reduce"): 1}
    assert "argument of reduce" in render_text([ModuleReport("m.mlir", 7, (record,))] * 2)
