"""Where sizes are equal attributes say which axis: two programs that compute different things have other attributes."""

import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "scripts"))

from recall.case import Case, f32, i32
from recall.finder import raised
from recall.meaning import composites_of, wrong_meanings

SQUARE, CUBE, HEADS = f32(8, 8), f32(6, 6, 6), f32(2, 2, 6, 6, 8)
SEEN = jnp.tril(jnp.ones((6, 6), bool))


def grouped(mask):
    """Attention of groups of queries, as many as there are positions."""

    def attend(q, k, v):
        scores = jnp.where(mask, jnp.einsum("bngth,bnsh->bngts", q, k), -jnp.inf)
        return jnp.einsum("bngts,bnsh->bngth", jax.nn.softmax(scores), v)

    return attend


def turned(along):
    """A rotation by tables along an axis of two that are alike."""

    def rope(x, cos, sin):
        a, b = jnp.split(x, 2, -1)
        cos, sin = (jnp.expand_dims(table, 1 - along) for table in (cos, sin))
        return jnp.concatenate([a * cos - b * sin, b * cos + a * sin], -1)

    return rope


def normed(axis):
    """A norm of the rows or the columns of a square."""
    return lambda x: x * jax.lax.rsqrt((x * x).mean(axis, keepdims=True) + 1e-6)


def centred(axis):
    """The same less the mean."""
    return lambda x: (x - x.mean(axis, keepdims=True)) * jax.lax.rsqrt(x.var(axis, keepdims=True) + 1e-5)


def windowed(q, k, v):
    """A causal mask, and one of a window of three positions behind it."""
    near = jnp.triu(SEEN, -2) & SEEN
    scores = jnp.where(near, jnp.where(SEEN, q @ k.T, -jnp.inf), -jnp.inf)
    return jax.nn.softmax(scores) @ v


PAIRS = (
    ("attention", (HEADS, f32(2, 2, 6, 8), f32(2, 2, 6, 8)), grouped(SEEN), grouped(SEEN[:, None, :])),
    ("rope", (f32(6, 6, 8), f32(6, 4), f32(6, 4)), turned(0), turned(1)),
    ("softmax", (SQUARE,), lambda x: jax.nn.softmax(x, 0), lambda x: jax.nn.softmax(x, 1)),
    ("log_softmax", (SQUARE,), lambda x: jax.nn.log_softmax(x, 0), lambda x: jax.nn.log_softmax(x, 1)),
    ("logsumexp", (SQUARE,), lambda x: jax.nn.logsumexp(x, 0), lambda x: jax.nn.logsumexp(x, 1)),
    ("rms_norm", (SQUARE,), normed(0), normed(1)),
    ("layer_norm", (SQUARE,), centred(0), centred(1)),
    ("cumsum", (SQUARE,), lambda x: jnp.cumsum(x, 0), lambda x: jnp.cumsum(x, 1)),
    ("argmax", (SQUARE,), lambda x: jnp.argmax(x, 0), lambda x: jnp.argmax(x, 1)),
    ("linear", (SQUARE, SQUARE, f32(8)), lambda x, w, b: x @ w + b, lambda x, w, b: x @ w.T + b),
    ("one_hot", (i32(8),), lambda p: jax.nn.one_hot(p, 8, axis=0), lambda p: jax.nn.one_hot(p, 8, axis=1)),
    (
        "take_along_axis",
        (SQUARE, i32(8, 8)),
        lambda x, p: jnp.take_along_axis(x, p, 0),
        lambda x, p: jnp.take_along_axis(x, p, 1),
    ),
)


@pytest.mark.parametrize(("op", "arguments", "one", "other"), PAIRS, ids=[row[0] for row in PAIRS])
def test_attributes_say_which_axis(op, arguments, one, other):
    """Each of the two is found, computes what its attributes say, and has other ones than the other."""
    texts = [raised(Case(op, "plain", function, arguments).text()) for function in (one, other)]
    found = [[c.attributes for c in composites_of(text) if c.op == op] for text in texts]
    assert all(found)
    assert found[0] != found[1]
    assert [list(wrong_meanings(text)) for text in texts] == [[], []]


def test_a_window_in_a_causal_mask_stays():
    """Of two causal masks the narrower one is the attribute."""
    text = raised(Case("attention", "plain", windowed, (f32(6, 8),) * 3).text())
    [attention] = [c for c in composites_of(text) if c.op == "attention"]
    assert (attention.attributes["causal"], attention.attributes["window"]) == (True, 3)
    assert list(wrong_meanings(text)) == []


ALONG_THE_OTHER = {
    "the weight of rms_norm": (lambda x, w: normed(1)(x) * w[:, None], (SQUARE, f32(8))),
    "the weight of layer_norm": (lambda x, w: centred(1)(x) * w[:, None], (SQUARE, f32(8))),
    "a weight of two axes": (lambda x, w: normed((1, 2))(x) * w.T, (CUBE, f32(6, 6))),
    "a bias": (lambda x, w, b: x @ w + b[:, None], (SQUARE, SQUARE, f32(8))),
    "a softmax of what is seen": (lambda x, s: jax.nn.softmax(x, where=s[:, None] > 0, axis=1), (SQUARE, f32(8))),
    "a mask of keys": (lambda q, k, v, m: jax.nn.softmax(q @ k.T + m[:, None]) @ v, (SQUARE,) * 3 + (f32(8),)),
    "a cache": (lambda c, n, p: jax.lax.dynamic_update_slice(c, n, (0, p)), (SQUARE, f32(8, 1), i32())),
    "rows of a table": (lambda t, p: jnp.take(t.T, p, axis=0, mode="clip"), (SQUARE, i32(8))),
    "the largest": (lambda x: jax.lax.top_k(x.T, 3)[0].T, (SQUARE,)),
}


@pytest.mark.parametrize("what", ALONG_THE_OTHER)
def test_an_operand_along_the_other_axis_is_seen(what):
    """What is found of a program whose operand runs along the other one of two equal axes is what it is named."""
    function, arguments = ALONG_THE_OTHER[what]
    assert list(wrong_meanings(raised(Case(what, "plain", function, arguments).text()))) == []
