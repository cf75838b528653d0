"""A lowering without its guard, and whether a case shows it."""

import pytest

import hlo_lower as hl
from hlo_lower.subset.dynamic_tile import DynamicTile
from hlo_lower.testing.case import ARGUMENT_SETS
from hlo_lower.testing.case_arguments import arguments_of
from hlo_lower.testing.module_text import module_text
from hlo_lower.testing.what_shows import reference
from hlo_lower.verify.compare import first_difference
from hlo_lower.verify.interpreter import InterpreterError, shared_interpreter


@pytest.fixture
def unguarded(monkeypatch):
    """A fault: a window out of bounds is written at the nearest place, as `dynamic_update_slice` clamps."""
    monkeypatch.setattr(DynamicTile, "inside", lambda self, build: (self, None))


@pytest.fixture
def differs():
    """Tell whether a lowered case gives other results than the reference, by the interpreter, which starts at once."""

    def told(case):
        lowered = hl.lower(module_text([case])).text
        for k in range(ARGUMENT_SETS):
            arguments = arguments_of(case, k)
            try:
                found = shared_interpreter().run(lowered, arguments.all)
            except InterpreterError:
                return False
            if first_difference(reference(case, arguments, "xla"), found) is not None:
                return True
        return False

    return told
