"""What the tests of the model programs share: a model's module, and an export of it that is lowered and verified."""

from pathlib import Path

import pytest

import hlo_lower as hl
from hlo_lower.ir.export.load import load_function
from hlo_lower.ir.export.trace import exported_text

MODELS = Path(__file__).parents[2] / "models"


@pytest.fixture
def exported_as_text():
    """The text of an export: `exported_as_text("moe.py:capacity", tokens=8)`, or with symbolic shapes."""

    def run(function, shapes=None, **settings):
        target = load_function(f"{MODELS}/{function}", {key: str(value) for key, value in settings.items()})
        return exported_text(target.export(shapes))

    return run


@pytest.fixture
def lowered_and_verified():
    """The records of an export whose scatters were all lowered, each verified in all regimes.

    The whole module is run where level says so: that takes most of the time, and the marker `sweep` is for it.
    """

    def run(function, level="regions", **settings):
        exported = load_function(f"{MODELS}/{function}", {key: str(value) for key, value in settings.items()}).export()
        scatters = len(hl.read(exported).scatters)
        lowered = hl.lower(exported)
        assert scatters == len(lowered.records)
        assert not hl.read(lowered.text).scatters
        verdict = hl.verify(exported, lowered, level=level, runs=1)
        assert verdict.ok, verdict
        return lowered.records

    return run
