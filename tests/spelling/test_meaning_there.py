"""What is written for LiteRT and tt-mlir means there what stood in the module: its op in NumPy, on the composite's own
operands."""

import sys
from pathlib import Path

import numpy as np
import pytest
from test_spelled import TT_MLIR, WRITTEN, text_of

import hlo_lower as hl
from hlo_lower.verify.run import Executable

sys.path.insert(0, str(Path(__file__).parents[2] / "scripts"))

from recall.meaning import composites_of, drawn, entered


def attention_there(query, key, value, mask=None, *, scale, logit_cap=0.0):
    """`odml.scaled_dot_product_attention`: batch, positions, heads, elements; a head of keys for a run of queries."""
    groups = query.shape[2] // key.shape[2]
    key, value = (np.repeat(x, groups, axis=2) for x in (key, value))
    scores = np.einsum("btnh,bsnh->bnts", query, key) * scale
    if logit_cap:
        scores = logit_cap * np.tanh(scores / logit_cap)
    scores = scores if mask is None else scores + mask
    powers = np.exp(scores - scores.max(-1, keepdims=True))
    return np.einsum("bnts,bsnh->btnh", powers / powers.sum(-1, keepdims=True), value)


def masks(name, spec):
    """What the mask of a program may be: any numbers where they are added, else 0 or low, and each row sees itself."""
    rows, keys = np.indices(spec.shape[-2:])
    seen = keys <= rows if "causal" in name else (rows == keys) | (drawn(spec, 9)[0, 0] > 0)
    low = np.where(seen, 0, -1e9 if "finite" in name else -np.inf)
    return drawn(spec, 3) if "additive" in name else np.broadcast_to(low, spec.shape).astype(spec.dtype)


def heads_first(query, key, value, mask=None, *, scale, is_causal):
    """`tenstorrent.scaled_dot_product_attention`: PyTorch's, heads before positions."""
    assert not is_causal
    moved = (np.swapaxes(x, 1, 2) for x in (query, key, value))
    return np.swapaxes(attention_there(*moved, mask, scale=scale), 1, 2)


THERE = [("litert", name, attention_there) for name in WRITTEN] + [
    (TT_MLIR, name, heads_first) for name in ("groups", "a causal mask", "in the target's order")
]


@pytest.mark.few(3)
@pytest.mark.parametrize(("target", "name", "there"), THERE)
def test_an_attention_is_the_one_that_the_target_computes(target, name, there):
    """Query, key and value stand in their places, and scale, cap and mask do there what they do in the module."""
    function, shapes = WRITTEN[name]
    raised = hl.raise_named(text_of(function, *shapes), target=target).text
    [composite] = composites_of(raised)
    alone = Executable(entered(raised, composite.function), "exact")
    given = [drawn(spec, n) for n, spec in enumerate(alone.arguments[:3])]
    given += [masks(name, spec) for spec in alone.arguments[3:]]
    [found] = alone.run(given)
    wanted = there(*(np.asarray(x, np.float64) for x in given), **composite.attributes)
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5)
