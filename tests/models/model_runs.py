"""What the tests of the model programs share: a model's module, its exports, and functions of it that are compiled."""

from functools import cache, partial
from pathlib import Path

import jax
import numpy as np

from hlo_lower.ir.export.load import load_function
from hlo_lower.ir.export.trace import exported_text

MODELS = Path(__file__).parents[2] / "models"
FILES = {  # an export of each
    "llama.py": "decode",
    "ragged_decode.py": "decode_rows",
    "index_copy.py": "decode",
    "scan_layers.py": "decode_carry",
    "moe.py": "capacity",
    "train_step.py": "sgd",
    "sampling.py": "greedy",
    "sharded_decode.py": "decode",
    "torch_style_decode.py": "index_put",
    "paged_attention.py": "decode",
}
QUICKLY = {"xla_backend_optimization_level": 0}  # compile time is all of these tests' time


def model(file):
    """The module of a model program."""
    return load_function(f"{MODELS}/{file}:{FILES[file]}").module


def target_of(function, **settings):
    """What `hlo-lower export` takes: `target_of("moe.py:capacity", tokens=8)`."""
    return load_function(f"{MODELS}/{function}", {key: str(value) for key, value in settings.items()})


def text_of(function, shapes=None, **settings):
    """The text of an export, with symbolic shapes where they are given."""
    return exported_text(target_of(function, **settings).export(shapes))


@cache
def jitted(function, config):
    """A function of a model, compiled once for all tests."""
    return jax.jit(partial(function, config=config), compiler_options=QUICKLY)


def assert_close(actual, expected, rtol=1e-4, atol=1e-4):
    """Check that arrays, or trees of them, are equal but for rounding."""
    for one, other in zip(jax.tree.leaves(actual), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(one, other, rtol=rtol, atol=atol)
