"""The main job: a decoder step loses its scatters and computes what it computed."""

import re
from pathlib import Path

import numpy as np
import pytest

import hlo_lower as hl
from hlo_lower.ir.export.load import load_function
from hlo_lower.verify.run import Executable

ROOT = Path(__file__).parent.parent
LAYERS = 2


@pytest.fixture(scope="module")
def exported():
    """A decode step of two tiny layers."""
    return load_function(f"{ROOT}/models/llama.py:decode", {"layers": str(LAYERS)}).export()


@pytest.fixture(scope="module")
def lowered(exported):
    """The same without scatters."""
    return hl.lower(exported)


def ops(text, name):
    """How often an op occurs in a module."""
    return len(re.findall(rf"stablehlo\.{name}\b", text))


def test_every_cache_update_is_one_slice_update(lowered):
    """Each update is one dynamic_update_slice without a loop; its guard is smaller than the cache."""
    assert [r.kind for r in lowered.records] == ["insert_slice"] * 2 * LAYERS
    assert ops(lowered.text, "scatter") == 0
    assert ops(lowered.text, "dynamic_update_slice") == 2 * LAYERS
    assert ops(lowered.text, "while") == 0
    selects = re.findall(r"stablehlo\.select .*tensor<([0-9x]+)xf32>", lowered.text)
    assert ("2x2x1x16" in selects, "2x2x64x16" in selects) == (True, False)


@pytest.fixture(scope="module")
def executables(exported, lowered):
    """Both versions, compiled to be compared bit for bit."""
    return Executable(exported.mlir_module_serialized, "exact"), Executable(lowered.bytecode(), "exact")


@pytest.mark.parametrize("position", [0, 5, 63, 64, -1, -64, -65, 2**31 - 1, -(2**31)])
def test_every_position_gives_what_xla_gives(executables, position):
    """Inside, at the end, one past it, negative, far out: the step computes what native scatter does, bit for bit."""
    native, converted = executables
    rng = np.random.default_rng(0)
    arguments = []
    for aval in native.arguments:
        if aval.dtype == np.int32:
            arguments.append(np.full(aval.shape, position if aval.shape == () else 7, np.int32))
        else:
            arguments.append(np.asarray(rng.standard_normal(aval.shape), np.float32))
    for expected, actual in zip(native.run(arguments), converted.run(arguments), strict=True):
        assert expected.tobytes() == actual.tobytes()
