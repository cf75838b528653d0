"""What is written for Core ML: named ops in the place of forms that its passes do not find, of the same meaning."""

import sys
from dataclasses import replace
from math import pi, sqrt
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from mil_in_numpy import handled
from test_meaning_there import masks
from test_spelled import QKV, B, H, S, composites, grouped, in_place, text_of
from test_spelled import WRITTEN as ATTENDED

import hlo_lower as hl
from hlo_lower.consumers.coreml_named import HANDLERS
from hlo_lower.named.spell.added_mask import AddedMask
from hlo_lower.ops.targets import target_of
from hlo_lower.ops.targets.named_op import SpelledAttribute
from hlo_lower.verify.run import Executable

sys.path.insert(0, str(Path(__file__).parents[2] / "scripts"))

from recall.meaning import composites_of, drawn, entered

X, W = (2, 3, 8), (8,)


def centred(x, axes=-1):
    """Without its mean, and the mean of what is left, squared."""
    left = x - x.mean(axes, keepdims=True)
    return left, (left * left).mean(axes, keepdims=True)


def by_root(x, w, b):
    """A layer norm that divides."""
    left, variance = centred(x)
    return left / jnp.sqrt(variance + 1e-3) * w + b


def of_two_axes(x, w):
    """A layer norm of two axes with a weight."""
    left, variance = centred(x, (1, 2))
    return left * jax.lax.rsqrt(variance + 1e-5) * w


def fast_variance(x, w, b):
    """A layer norm whose variance is a difference of means."""
    mean = x.mean(-1, keepdims=True)
    variance = jnp.maximum((x * x).mean(-1, keepdims=True) - mean * mean, 0.0)
    return (x - mean) * (jax.lax.rsqrt(variance + 1e-5) * w) + b


WRITTEN = {
    "layer norm by a root": ("layer_norm", by_root, (X, W, W)),
    "layer norm of two axes": ("layer_norm", of_two_axes, (X, X[1:])),
    "layer norm, fast": ("layer_norm", fast_variance, (X, W, W)),
    "layer norm without weights": ("layer_norm", lambda x: centred(x)[0] * jax.lax.rsqrt(centred(x)[1] + 1e-5), (X,)),
    "gelu": ("gelu", lambda x: jax.nn.gelu(x, approximate=False), (X,)),
    "gelu by tanh": ("gelu", jax.nn.gelu, (X,)),
    "gelu by a sigmoid": ("gelu", lambda x: x * jax.nn.sigmoid(2 * sqrt(2 / pi) * (x + 0.044715 * x**3)), (X,)),
    "silu": ("silu", jax.nn.silu, (X,)),
}


WRITTEN |= {
    name: ("scaled_dot_product_attention", *program)
    for name, program in {
        **{name: ATTENDED[name] for name in ATTENDED if name != "a soft cap"},
        "longer values": (grouped(), (QKV[0], QKV[1], (B, 2, S, 2 * H))),
        "heads of one key, in a batch": (in_place, ((2, S, 4, H), *((2, S, 1, H),) * 2)),
        "a mask for each head": (grouped(lambda s, m: s + m), (*QKV, (B, 4, S, S))),
    }.items()
}


def mask_there(name, spec):
    """A mask as it stands there: the same for each of the queries that share a key, unless each head has its own."""
    batch, heads, rows, keys = spec.shape
    groups = 1 if heads > 1 else rows // S
    one = masks(name, jax.ShapeDtypeStruct((batch, heads, rows // groups, keys), spec.dtype))
    return np.tile(one, (1, 1, groups, 1))


def found_and_wanted(raised, name):
    """What the decomposition of the one composite of a module gives, and what its handler makes there."""
    [composite] = composites_of(raised)
    alone = Executable(entered(raised, composite.function), "exact")
    given = [mask_there(name, spec) if n == 3 else drawn(spec, n) for n, spec in enumerate(alone.arguments)]
    [found] = alone.run(given)
    return np.asarray(found), handled(raised, given)


@pytest.mark.parametrize("name", WRITTEN)
def test_what_is_written_is_the_op_of_core_ml(name):
    """Operands stand in their places and attributes mean there what the module computes."""
    op, function, shapes = WRITTEN[name]
    raised = hl.raise_named(text_of(function, *shapes), target="coreml").text
    assert composites(raised) == [f"coreml.{op}"]
    np.testing.assert_allclose(*found_and_wanted(raised, name), rtol=1e-4, atol=1e-5)


WRONG = {
    "layer norm by a root": {"epsilon": SpelledAttribute(value=0.5, type="f32")},
    "layer norm, fast": {"operands": ("x", "[bias]", "[weight]")},
    "gelu": {"mode": SpelledAttribute(value="TANH_APPROXIMATION")},
    "groups": {"scale": SpelledAttribute(value=1.0, type="f32")},
    "an additive mask": {"scale": SpelledAttribute(of="softcap", type="f32")},
    "a causal mask": {"layout": "bn(qg)h,bnkh,bnkv,bn(gq)k->bn(qg)v"},
    "a boolean mask": {},
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_entry_is_found(name, monkeypatch):
    """The comparison can fail: another epsilon, scale, order of operands or of positions, another form of gelu; and a
    mask that hides what is to be seen, and is recovered just so, which leaves the module as it was."""
    op, function, shapes = WRITTEN[name]
    coreml, changed = target_of("coreml"), dict(WRONG[name])
    [right] = [one for one in coreml.named if one.composite == f"coreml.{op}"]
    keys = {key: changed.pop(key) for key in ("operands", "layout") if key in changed}
    wrong = replace(right, attributes={**right.attributes, **changed}, **keys)
    if not WRONG[name]:
        build_mask, recover = AddedMask.build_mask, AddedMask.recover
        monkeypatch.setattr(
            AddedMask, "build_mask", lambda m, *given: build_mask(replace(m, hides=not m.hides), *given)
        )
        monkeypatch.setattr(AddedMask, "recover", lambda m, *given: recover(replace(m, hides=not m.hides), *given))
    raised = hl.raise_named(text_of(function, *shapes), target=replace(coreml, named=(wrong,))).text
    found, wanted = found_and_wanted(raised, name)
    assert not np.allclose(found, wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.sweep
@pytest.mark.parametrize("name", ["layer norm by a root", "rows that see nothing are 0"])
def test_nothing_else_is_computed(name):
    """The module with the composite is the one without, bit for bit."""
    _, function, shapes = WRITTEN[name]
    before = text_of(function, *shapes)
    assert hl.verify(before, hl.raise_named(before, target="coreml").text, level="regions").ok


def test_what_is_not_written_and_what_is_kept():
    """MIL's norm is of the last axes: one of the first is written out, and a reason is told. A conversion for Core ML
    leaves the composites as they are; each has its handler."""
    raised = hl.raise_named(text_of(lambda x: centred(x, 0)[0] / jnp.sqrt(centred(x, 0)[1] + 1e-5), X), target="coreml")
    assert composites(raised.text) == []
    assert any("the last axes" in str(one.why) for one in raised.spelled)
    raised = hl.raise_named(text_of(by_root, X, W, W), target="coreml")
    assert composites(hl.lower(raised.text, target="coreml").text) == ["coreml.layer_norm"]
    coreml = target_of("coreml")
    assert {one.composite for one in coreml.named} == set(HANDLERS) <= set(coreml.composites)
