"""A lowering without its guard, and whether a case shows it."""

import pytest

import hlo_lower as hl
from hlo_lower.ops.axes.parts import DynamicTile
from hlo_lower.testing.fuzz.case import ARGUMENT_SETS
from hlo_lower.testing.fuzz.case_arguments import arguments_of
from hlo_lower.testing.fuzz.module_text import module_text
from hlo_lower.testing.fuzz.sensitivity import reference
from hlo_lower.verify.bounds.compare import first_difference
from hlo_lower.verify.judges.interpreter import InterpreterError, shared_interpreter


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
