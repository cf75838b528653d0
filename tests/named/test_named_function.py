"""`hl.named`: an export has the composite with its attributes, numbers stay, and what is wrong is said."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import hlo_lower as hl

X, W = np.linspace(-2, 2, 64, dtype=np.float32).reshape(2, 4, 8), np.linspace(0.5, 1, 8, dtype=np.float32)


def plain(x, weight, *, epsilon=1e-6):
    """The norm of the examples."""
    return x * lax.rsqrt((x * x).mean(-1, keepdims=True) + epsilon) * weight


rms_norm = hl.named("rms_norm", axes=-1, epsilon=1e-6)(plain)


def composites(fn, *args):
    """The composites of an export: name, how many operands, attributes."""
    text = hl.export(fn, *args).mlir_module()
    found = re.findall(r'composite "(\S+)" (%\S+(?:, %\S+)*) \{(?:composite_attributes = \{(.*?)\})?', text)
    return [(name, operands.count("%"), attributes) for name, operands, attributes in found]


def attributes_of(fn, *args):
    """The attributes of the only composite of an export."""
    [(_, _, attributes)] = composites(fn, *args)
    return attributes


def test_an_export_has_the_composite():
    """Name, operands in order, and all attributes, those by default too; axes counted from 0. Operands may be keywords,
    and the function keeps its name and docstring."""
    told = 'axes = [2], epsilon = 9.9999999999999995E-7 : f64, operands = ["x", "weight"], weight = "plain"'
    for fn in (rms_norm, lambda x, w: rms_norm(weight=w, x=x)):
        assert composites(fn, X, W) == [("hl.rms_norm", 2, told)]
    assert (rms_norm.__name__, rms_norm.__doc__) == ("plain", "The norm of the examples.")


def test_numbers_stay():
    """Eagerly and compiled, a named function gives what it gives without a name; for a target that knows no composite
    the ops are written out, the same and verified.

    XLA compiles the named one as a whole and the plain one op by op, and rounds a fused product and sum once: what may
    differ between machines is the last bits. That the ops are the same is checked as text.
    """
    for one, other in [(plain, rms_norm), (jax.jit(plain), jax.jit(rms_norm))]:
        np.testing.assert_array_max_ulp(one(X, W), other(X, W), maxulp=4)
    texts = [hl.lower(hl.export(fn, X, W), target="iree", verify="regions").text for fn in (jax.jit(plain), rms_norm)]
    ops = [re.findall(r"stablehlo\.\w+", text) for text in texts]
    assert ops[0] == ops[1]
    assert "stablehlo.composite" not in ops[1]


ATTRIBUTES = {  # a named op, its attributes, operands, and what stands among the attributes of the composite
    "a weight that is left out": ("rms_norm", {"axes": (-1,), "epsilon": np.float32(1e-6)}, [X], 'weight = "none"'),
    "operands in brackets are left out from the last on": (
        *("batch_norm", {"epsilon": 1e-3, "channel_axis": -1}, [X, W, W]),
        'operands = ["x", "mean", "variance"]',
    ),
    "several axes": ("layer_norm", {"axes": [-1, 1], "epsilon": 1e-5, "weight": "none"}, [X], "s = [1, 2]"),
    "what has no value by default is not written": (
        *("softmax", {"axis": -1}, [X]),
        '^axis = 2 : i64, empty_rows = "nan", operands = ["x"]$',
    ),
    "one table": ("rope", {"pairs": "interleaved", "axes": ()}, [X, X], 'operands = ["x", "rotation"]'),
}


@pytest.mark.parametrize("what", ATTRIBUTES)
def test_attributes(what):
    """Attributes are written as the vocabulary has them."""
    name, attributes, arguments, told = ATTRIBUTES[what]
    fn = hl.named(name, **attributes)(lambda *args: sum(jnp.sum(a) for a in args) + args[0])
    found = attributes_of(fn, *arguments)
    assert re.search(re.sub(r"([\[\]])", r"\\\1", told), found), found


def test_vmap_moves_axes():
    """Mapped over the first operand only, once or twice, the name stays, and its axes count the new ones. A weight for
    each row is no rms_norm any more; the numbers stay."""
    once = jax.vmap(rms_norm, in_axes=(0, None))
    assert "axes = [2]" in attributes_of(once, X, W)
    assert "axes = [2]" in attributes_of(jax.vmap(once, in_axes=(1, None)), X, W)
    assert np.allclose(plain(X, W), jax.jit(once)(X, W))
    weights = np.stack([W, 2 * W])
    assert composites(jax.vmap(rms_norm), X, weights) == []
    assert np.allclose(jax.vmap(plain)(X, weights), jax.vmap(rms_norm)(X, weights))


def test_vmap_of_attention():
    """An axis of its own in each tensor gives a layout one letter more; the layout is left out where no letter is free.
    Over all operands the name stays without one, over the queries alone it goes."""
    for layout, more in (("bqh,bkh,bkv->bqv", "nbqh,nbkh,nbkv->nbqv"), ("bncdqh,bncdkh,bncdkv->bncdqv", "")):
        given = jnp.ones((1,) * layout.index("q") + (3, 4))
        attend = hl.named("attention", layout=layout)(lambda q, k, v: jax.nn.softmax(q @ jnp.swapaxes(k, -1, -2)) @ v)
        assert f'layout = "{more}"' in attributes_of(jax.vmap(attend), *[given[None]] * 3)
    attention = hl.named("attention", scale=0.5)(lambda q, k, v: jax.nn.softmax(q @ k.T * 0.5) @ v)
    assert len(composites(jax.vmap(attention), X, X, X)) == 1
    assert composites(jax.vmap(attention, in_axes=(0, None, None)), X, X[0], X[0]) == []


def test_what_is_named():
    """Of a method the instance is no operand; the axis that one_hot adds counts."""
    gate = type("Gate", (), {"silu": hl.named("silu")(lambda self, x: jax.nn.silu(x))})()
    assert [found[:2] for found in composites(gate.silu, X)] == [("hl.silu", 1)]
    hot = hl.named("one_hot", depth=3, axis=-1)(lambda labels: jax.nn.one_hot(labels, 3))
    assert "axis = 1 : i64" in attributes_of(hot, np.arange(4))


def test_a_derivative_goes_through_the_function():
    """Its gradient is that of the function without a name, alone and mapped."""
    named, unnamed = (lambda x, fn=fn: fn(x, W).sum() for fn in (rms_norm, plain))
    assert composites(jax.grad(named), X) == []
    expected = jax.grad(unnamed)(X)
    mapped = jax.grad(lambda x: jax.vmap(rms_norm, (0, None))(x, W).sum())
    for gradient in (jax.grad(named), jax.vmap(jax.grad(named)), mapped):
        assert np.allclose(expected, gradient(X))


SILU = hl.named("silu")
OUTSIDE = ": the function uses an array that is not one of its arguments: float32[8]"
INSIDE = "pass it as an argument, or make it inside of the function (jnp.arange, jnp.tril)"
WRONG = [  # what is behind hl.named in the first line, and another line
    (lambda: hl.named("rmsnorm"), ": there is no named op 'rmsnorm'", "nearest: hl.named('rms_norm')"),
    (lambda: hl.named("hl.silu"), ": there is no named op 'hl.silu'", "nearest: hl.named('silu')"),
    (lambda: hl.named(3), ": there is no named op 3", "next:    write hl.named('silu'); docs/named-ops.md says"),
    (lambda: hl.named("rms_norm", eps=1e-6, axes=-1), ": rms_norm has no attribute 'eps'", "nearest: epsilon"),
    (lambda: hl.named("rms_norm"), ": rms_norm needs axes and epsilon", "hl.named('rms_norm', axes=-1, epsilon=1e-6)"),
    (lambda: hl.named("gelu", approximate="tan"), ": approximate is 'tan', not one of its values", "nearest: tanh"),
    (lambda: hl.named("gelu", approximate=True), ": approximate is True, not one of its values", "'none' or 'tanh'"),
    (lambda: hl.named("attention", causal=1), ": causal is 1, not one of its values", "next:    write causal=True"),
    (lambda: hl.named("softmax", axis=1.5), ": axis is 1.5, not a whole number", "next:    write axis=-1"),
    (lambda: hl.named("rms_norm", axes=-1, epsilon="s"), ": epsilon is 's', not a number", "write epsilon=1e-6"),
    (lambda: hl.named("softmax", axis=-1, accumulate=32), ": accumulate is 32, not a text", "write accumulate='f32'"),
    (lambda: SILU(3), ": 3 is not a function", 'next:    decorate a function: hl.named("silu")(fn)'),
    (lambda: rms_norm(X, W, W), "('rms_norm'): 3 operands", "facts:   rms_norm takes x, [weight]"),
    (
        lambda: hl.named("softmax", axis=5)(jax.nn.softmax)(X),
        "('softmax'): axis=5, but there are 3 axes",
        "axis=-1 for",
    ),
    (lambda: SILU(lambda x: x * jnp.asarray(W))(X), f"('silu'){OUTSIDE}", INSIDE),
    (lambda: jax.jit(lambda x, w: SILU(lambda x: x * w)(x))(X, W), f"('silu'){OUTSIDE}", "the operands of silu are x"),
    (lambda: SILU(lambda *, x: x)(x=X), "('silu'): x given as a keyword", "operands of a composite have an order, and"),
]


@pytest.mark.parametrize(("wrong", "first", "told"), WRONG, ids=[first.strip(": ") for _, first, _ in WRONG])
def test_what_is_wrong_is_said(wrong, first, told):
    """Each mistake is an InputError that says what there is, and what to write."""
    with pytest.raises(hl.InputError) as caught:
        wrong()
    lines = str(caught.value).splitlines()
    assert lines[0] == f"hl.named{first}"
    assert any(told in line for line in lines[1:])


def test_of_open_sizes_it_is_a_call_of_that_name():
    """JAX cannot lower a composite there: a warning says so, numbers stay, and at known sizes the op is found."""
    silu = hl.named("silu")(lambda x: x * jax.nn.sigmoid(x))
    open_x = jax.ShapeDtypeStruct(jax.export.symbolic_shape("b, 8"), jnp.float32)
    with pytest.warns(UserWarning, match=r"hl\.named\('silu'\): JAX cannot lower a composite of open sizes"):
        exported = jax.export.export(jax.jit(lambda x: silu(x) + 1))(open_x)
    text = exported.mlir_module()
    assert ("composite" in text, "call @hl.silu(" in text) == (False, True)
    x = np.linspace(-3, 3, 16, dtype=np.float32).reshape(2, 8)
    np.testing.assert_allclose(exported.call(x), x / (1 + np.exp(-x)) + 1, rtol=1e-6)
    bound = hl.bind(text, {"b": 2})
    assert [op.name for op in hl.raise_named(bound).named] == ["silu"]
