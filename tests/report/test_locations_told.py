"""A module without source locations is told to be one, with what gives them; and that does give them."""

from pathlib import Path

import jax
import numpy as np
import pytest

import hlo_lower as hl
from hlo_lower.report.explain import explain
from hlo_lower.report.json_report import report_data
from hlo_lower.report.module import ModuleReport
from hlo_lower.report.text import render_text

ADVICE = "as_text(debug_info=True)"
HERE = Path(__file__).name


def write(cache, index):
    return cache.at[index].set(1.0)


def reported(source):
    """The text of a report, and the explanation of its one scatter."""
    records = hl.classify(hl.read(source, "m.mlir"))
    return render_text([ModuleReport("m.mlir", 7, tuple(records))], width=200), explain(records[0])


@pytest.fixture(scope="module")
def lowered():
    """A scatter, lowered by JAX."""
    return jax.jit(write).lower(np.zeros(8, np.float32), 3)


def test_a_module_without_locations_is_told_how_to_get_them(lowered):
    """The summary of a report and the explanation of a scatter name the argument of as_text."""
    text, explained = reported(lowered.as_text())
    assert f"  locations: none in the module, lines are those of its text; export again with {ADVICE}" in text
    assert f"  source:  the module names none, the line is its own; export again with {ADVICE}" in explained


def test_the_advice_works(lowered):
    """Exported that way, the place is the line of the program, and nothing is advised any more."""
    text, explained = reported(lowered.as_text(debug_info=True))
    line = Path(__file__).read_text().splitlines().index("    return cache.at[index].set(1.0)") + 1
    assert f"{HERE}:{line}" in text
    assert f"at {HERE}:{line} in @main" in explained[0]
    assert ADVICE not in text + "".join(explained)


def test_several_modules_are_counted():
    """Of several modules the total says how many have none; those without scatters have nothing to locate."""
    lowered = jax.jit(write).lower(np.zeros(8, np.float32), 3)
    own, other = (hl.classify(hl.read(lowered.as_text(debug_info=located), "m")) for located in (False, True))
    reports = [ModuleReport("m", 7, tuple(own)), ModuleReport("m", 7, tuple(other)), ModuleReport("empty.mlir", 1)]
    assert "locations: none in 1 of 3 modules" in render_text(reports, width=200)
    assert report_data(reports)["totals"]["unlocated"] == 1


@pytest.mark.parametrize("form", ["object", "bytearray", "bytes"])
def test_an_exported_function_keeps_its_locations(form):
    """`jax.export` gives them, as an object and as the bytearray that `serialize` returns."""
    exported = jax.export.export(jax.jit(write))(np.zeros(8, np.float32), 3)
    source = {"object": exported, "bytearray": exported.serialize(), "bytes": bytes(exported.serialize())}[form]
    assert hl.classify(hl.read(source, contained=False))[0].location.startswith(HERE)
