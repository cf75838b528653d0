"""The main job: a decoder step loses its scatters and computes what it computed."""

import re
from pathlib import Path

import numpy as np

import hlo_lower as hl
from hlo_lower.ir.export.load import load_function
from hlo_lower.verify.run import Executable

DECODE = f"{Path(__file__).parent.parent}/models/llama.py:decode"


def test_every_cache_update_is_one_slice_update_and_gives_what_xla_gives():
    """Of a step of two tiny layers each update is one slice update without a loop, its guard smaller than the cache.

    It is what native scatter gives, bit for bit: inside, at the end, one past it, negative, far out.
    """
    exported = load_function(DECODE, {"layers": "2"}).export()
    lowered = hl.lower(exported)
    assert [r.kind for r in lowered.records] == ["insert_slice"] * 4
    ops = re.findall(r"stablehlo\.(scatter|dynamic_update_slice|while)\b", lowered.text)
    assert ops == ["dynamic_update_slice"] * 4
    selects = re.findall(r"stablehlo\.select .*tensor<([0-9x]+)xf32>", lowered.text)
    assert ("2x2x1x16" in selects, "2x2x64x16" in selects) == (True, False)
    executables = [Executable(text, "exact") for text in (exported.mlir_module_serialized, lowered.bytecode())]
    rng = np.random.default_rng(0)
    for position in (0, 5, 63, 64, -1, -64, -65, 2**31 - 1, -(2**31)):
        arguments = [
            np.full(aval.shape, 7 if aval.shape else position, np.int32)
            if aval.dtype == np.int32
            else np.asarray(rng.standard_normal(aval.shape), np.float32)
            for aval in executables[0].arguments
        ]
        expected, actual = ([result.tobytes() for result in one.run(arguments)] for one in executables)
        assert expected == actual, position
