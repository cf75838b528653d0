"""`hl.named`: an export has the composite with its attributes, numbers stay, and what is wrong is said."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import hlo_lower as hl

X, W = np.linspace(-2, 2, 64, dtype=np.float32).reshape(2, 4, 8), np.linspace(0.5, 1, 8, dtype=np.float32)


@hl.named("rms_norm", axes=-1, epsilon=1e-6)
def rms_norm(x, weight, *, epsilon):
    """The norm of the examples."""
    return x * lax.rsqrt((x * x).mean(-1, keepdims=True) + epsilon) * weight


def plain(x, weight):
    """The same without a name."""
    return x * lax.rsqrt((x * x).mean(-1, keepdims=True) + 1e-6) * weight


def composites(fn, *args):
    """The composites of an export: name, operands, attributes."""
    found = re.findall(
        r'composite "(\S+)" (\S+(?:, %\S+)*) \{composite_attributes = \{(.*?)\}', hl.export(fn, *args).mlir_module()
    )
    return [(name, operands.count("%"), attributes) for name, operands, attributes in found]


def attributes_of(fn, *args):
    """The attributes of the only composite of an export."""
    [(_, _, attributes)] = composites(fn, *args)
    return attributes


def test_an_export_has_the_composite():
    """Name, operands in order, and all attributes, those by default too; axes counted from 0."""
    told = 'axes = [2], epsilon = 9.9999999999999995E-7 : f64, operands = ["x", "weight"], weight = "plain"'
    assert [("hl.rms_norm", 2, told)] == composites(rms_norm, X, W)


def test_numbers_stay():
    """Eagerly and compiled, a named function gives what it gives without a name."""
    assert np.array_equal(plain(X, W), rms_norm(X, W))
    assert np.array_equal(jax.jit(plain)(X, W), jax.jit(rms_norm)(X, W))


def test_a_converted_export_has_the_plain_ops():
    """Lowering for a target that knows no composite writes the decomposition out, verified."""
    lowered = hl.lower(hl.export(rms_norm, X, W), target="iree", verify="regions")
    assert "stablehlo.composite" not in lowered.text
    assert "rsqrt" in lowered.text


def test_the_function_keeps_its_name_and_docstring():
    """It is wrapped as functools does."""
    assert (rms_norm.__name__, rms_norm.__doc__) == ("rms_norm", "The norm of the examples.")


def test_operands_may_be_keywords():
    """They are put in the order of the function's arguments."""
    assert [operands for _, operands, _ in composites(lambda x, w: rms_norm(weight=w, x=x), X, W)] == [2]


def test_a_weight_that_is_left_out_is_told():
    """One operand: the attribute says that there is no weight."""
    norm = hl.named("rms_norm", axes=(-1,), epsilon=np.float32(1e-6))(lambda x: plain(x, 1.0))
    assert 'weight = "none"' in attributes_of(norm, X)


def test_operands_that_are_left_out_have_no_name():
    """Those in brackets are left out from the last on: three operands of batch_norm are x, mean and variance."""
    norm = hl.named("batch_norm", epsilon=1e-3, channel_axis=-1)(lambda x, m, v: (x - m) / jnp.sqrt(v + 1e-3))
    assert 'operands = ["x", "mean", "variance"]' in attributes_of(norm, X, W, W)


def test_texts_that_say_nothing_are_left_out():
    """What has no value by default is not written."""
    assert (
        attributes_of(hl.named("softmax", axis=-1)(jax.nn.softmax), X)
        == 'axis = 2 : i64, empty_rows = "nan", operands = ["x"]'
    )


def test_several_axes_are_ascending():
    """However they are given."""
    norm = hl.named("layer_norm", axes=[-1, 1], epsilon=1e-5, weight="none")(lambda x: x)
    assert "axes = [1, 2]" in attributes_of(norm, X)


def test_the_axis_that_one_hot_adds_counts():
    """Its last axis is the operand's rank."""
    hot = hl.named("one_hot", depth=3, axis=-1)(lambda labels: jax.nn.one_hot(labels, 3))
    assert "axis = 1 : i64" in attributes_of(hot, np.arange(4))


def test_vmap_moves_axes():
    """Mapped over the first operand only, once or twice, the name stays, and its axes count the new ones."""
    once = jax.vmap(rms_norm, in_axes=(0, None))
    assert "axes = [2]" in attributes_of(once, X, W)
    assert "axes = [2]" in attributes_of(jax.vmap(once, in_axes=(1, None)), X, W)
    assert np.allclose(plain(X, W), jax.jit(once)(X, W))


def test_vmap_over_a_weight_takes_the_name_away():
    """A weight for each row is no rms_norm any more; the numbers stay."""
    weights = np.stack([W, 2 * W])
    mapped = jax.vmap(rms_norm)
    assert composites(mapped, X, weights) == []
    assert np.allclose(jax.vmap(plain)(X, weights), mapped(X, weights))


def test_vmap_gives_a_layout_one_letter_more():
    """An axis of its own in each tensor of an attention; the layout is left out where no letter is free."""
    for layout, more in (("bqh,bkh,bkv->bqv", "nbqh,nbkh,nbkv->nbqv"), ("bncdqh,bncdkh,bncdkv->bncdqv", "")):
        given = jnp.ones((1,) * layout.index("q") + (3, 4))
        attend = hl.named("attention", layout=layout)(lambda q, k, v: jax.nn.softmax(q @ jnp.swapaxes(k, -1, -2)) @ v)
        [found] = composites(jax.vmap(attend), *[given[None]] * 3)
        assert f'layout = "{more}"' in found[2]


def test_vmap_over_all_operands_of_attention_keeps_it():
    """Batch axes stand in front; no attribute counts axes, and the layout is empty."""
    attention = hl.named("attention", scale=0.5)(lambda q, k, v: jax.nn.softmax(q @ k.T * 0.5) @ v)
    assert len(composites(jax.vmap(attention), X, X, X)) == 1
    assert composites(jax.vmap(attention, in_axes=(0, None, None)), X, X[0], X[0]) == []


def test_a_derivative_goes_through_the_function():
    """Its gradient is that of the function without a name, alone and mapped."""
    named, unnamed = (lambda x, fn=fn: fn(x, W).sum() for fn in (rms_norm, plain))
    assert composites(jax.grad(named), X) == []
    assert np.allclose(jax.grad(unnamed)(X), jax.grad(named)(X))
    assert np.allclose(jax.grad(unnamed)(X), jax.vmap(jax.grad(named))(X))
    assert np.allclose(jax.grad(unnamed)(X), jax.grad(lambda x: jax.vmap(rms_norm, (0, None))(x, W).sum())(X))


def test_a_method_may_be_named():
    """The instance is no operand."""

    class Gate:
        @hl.named("silu")
        def silu(self, x):
            return jax.nn.silu(x)

    assert [(name, operands) for name, operands, _ in composites_without_attributes(Gate().silu, X)] == [("hl.silu", 1)]


def composites_without_attributes(fn, *args):
    """As composites, for an op that has none."""
    found = re.findall(r'composite "(\S+)" (%\S+)', hl.export(fn, *args).mlir_module())
    return [(name, operands.count("%"), "") for name, operands in found]


WRONG = {
    "no such op": (
        lambda: hl.named("rmsnorm"),
        "hl.named: there is no named op 'rmsnorm'",
        "nearest: hl.named('rms_norm')",
    ),
    "the prefix": (
        lambda: hl.named("hl.silu"),
        "hl.named: there is no named op 'hl.silu'",
        "nearest: hl.named('silu')",
    ),
    "no text": (
        lambda: hl.named(3),
        "hl.named: there is no named op 3",
        "next:    write hl.named('silu'); docs/named-ops.md says what each computes",
    ),
    "no such attribute": (
        lambda: hl.named("rms_norm", eps=1e-6, axes=-1),
        "hl.named: rms_norm has no attribute 'eps'",
        "nearest: epsilon",
    ),
    "missing": (
        lambda: hl.named("rms_norm"),
        "hl.named: rms_norm needs axes and epsilon",
        "next:    write hl.named('rms_norm', axes=-1, epsilon=1e-6)",
    ),
    "not a choice": (
        lambda: hl.named("gelu", approximate="tan"),
        "hl.named: approximate is 'tan', not one of its values",
        "nearest: tanh",
    ),
    "a bool for a choice": (
        lambda: hl.named("gelu", approximate=True),
        "hl.named: approximate is True, not one of its values",
        "facts:   it is approximate ('none' or 'tanh': as PyTorch calls it)",
    ),
    "a number for a bool": (
        lambda: hl.named("attention", causal=1),
        "hl.named: causal is 1, not one of its values",
        "next:    write causal=True",
    ),
    "a fraction for an axis": (
        lambda: hl.named("softmax", axis=1.5),
        "hl.named: axis is 1.5, not a whole number",
        "next:    write axis=-1",
    ),
    "a text for a number": (
        lambda: hl.named("rms_norm", axes=-1, epsilon="small"),
        "hl.named: epsilon is 'small', not a number",
        "next:    write epsilon=1e-6",
    ),
    "a number for a text": (
        lambda: hl.named("softmax", axis=-1, accumulate=32),
        "hl.named: accumulate is 32, not a text",
        "next:    write accumulate='f32'",
    ),
    "no function": (
        lambda: hl.named("silu")(3),
        "hl.named: 3 is not a function",
        'next:    decorate a function: hl.named("silu")(fn)',
    ),
    "too many operands": (
        lambda: rms_norm(X, W, W),
        "hl.named('rms_norm'): 3 operands",
        "facts:   rms_norm takes x, [weight]",
    ),
    "no such axis": (
        lambda: hl.named("softmax", axis=5)(jax.nn.softmax)(X),
        "hl.named('softmax'): axis=5, but there are 3 axes",
        "next:    write axis=-1 for the last",
    ),
    "an array from outside": (
        lambda: hl.named("silu")(lambda x: x * jnp.asarray(W))(X),
        "hl.named('silu'): the function takes an array that is none of its arguments: float32[8]",
        "next:    pass it as an argument, or make it inside of the function (jnp.arange, jnp.tril)",
    ),
    "a traced array from outside": (
        lambda: jax.jit(lambda x, w: hl.named("silu")(lambda x: x * w)(x))(X, W),
        "hl.named('silu'): the function takes an array that is none of its arguments: float32[8]",
        "facts:   the operands of silu are x",
    ),
    "an operand that must be a keyword": (
        lambda: hl.named("silu")(lambda *, x: x)(x=X),
        "hl.named('silu'): x given as a keyword",
        "facts:   operands of a composite have an order, and attributes are given to hl.named",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_is_wrong_is_said(case):
    """Each mistake is an InputError that says what there is, and what to write."""
    wrong, first, told = WRONG[case]
    with pytest.raises(hl.InputError) as caught:
        wrong()
    lines = str(caught.value).splitlines()
    assert first == lines[0]
    assert told in [line.strip() for line in lines]
