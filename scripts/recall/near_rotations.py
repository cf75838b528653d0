"""What is no rotation of pairs: another half, another sign, another table."""

import jax.numpy as jnp

from recall.case import f32, finds
from recall.near_softmaxes import NEAR

X, TABLE, HALF = f32(2, 4, 8, 16), f32(8, 16), f32(8, 8)
NO_ROPE = finds("rope")


def halves(x):
    return jnp.split(x, 2, axis=-1)


def joined(a, b):
    return jnp.concatenate([a, b], axis=-1)


@NEAR.case(X, TABLE, TABLE, refuses=NO_ROPE)
def rope_wrong_half_negated(x, cos, sin):
    a, b = halves(x)
    return x * cos + joined(b, -a) * sin


@NEAR.case(X, TABLE, TABLE, refuses=NO_ROPE)
def rope_halves_not_exchanged(x, cos, sin):
    a, b = halves(x)
    return x * cos + joined(-a, b) * sin


@NEAR.case(X, TABLE, TABLE, refuses=NO_ROPE)
def rope_nothing_negated(x, cos, sin):
    a, b = halves(x)
    return x * cos + joined(b, a) * sin


@NEAR.case(X, TABLE, TABLE, refuses=NO_ROPE)
def rope_both_negated(x, cos, sin):
    a, b = halves(x)
    return x * cos + joined(-b, -a) * sin


@NEAR.case(X, TABLE, TABLE, refuses=NO_ROPE)
def rope_split_at_a_quarter(x, cos, sin):
    return x * cos + joined(-x[..., 4:], x[..., :4]) * sin


@NEAR.case(X, X, TABLE, TABLE, refuses=NO_ROPE)
def rope_turned_is_another_tensor(x, y, cos, sin):
    a, b = halves(y)
    return x * cos + joined(-b, a) * sin


@NEAR.case(X, TABLE, TABLE, refuses=NO_ROPE)
def rope_subtracted(x, cos, sin):
    a, b = halves(x)
    return x * cos * joined(-b, a) * sin


@NEAR.case(X, HALF, HALF, refuses=NO_ROPE)
def rope_second_half_by_the_first_formula(x, cos, sin):
    a, b = halves(x)
    return joined(a * cos - b * sin, b * cos - a * sin)


@NEAR.case(X, HALF, HALF, refuses=NO_ROPE)
def rope_interleaved_one_sign_wrong(x, cos, sin):
    even, odd = x[..., 0::2], x[..., 1::2]
    return jnp.stack([even * cos + odd * sin, odd * cos + even * sin], -1).reshape(x.shape)


@NEAR.case(X, HALF, HALF, refuses=NO_ROPE)
def rope_interleaved_cosine_for_sine(x, cos, sin):
    even, odd = x[..., 0::2], x[..., 1::2]
    return jnp.stack([even * cos - odd * sin, odd * sin + even * sin], -1).reshape(x.shape)


@NEAR.case(X, HALF, HALF, refuses=(finds("rope", pairs="halves"), finds("rope", pairs="interleaved")))
def rope_interleaved_in_halves_out(x, cos, sin):
    even, odd = x[..., 0::2], x[..., 1::2]
    return joined(even * cos - odd * sin, odd * cos + even * sin)


@NEAR.case(f32(2, 8, 8, 16), TABLE, TABLE, refuses=NO_ROPE)
def rope_tables_along_two_axes(x, cos, sin):
    a, b = halves(x)
    return x * cos[:, None] + joined(-b, a) * sin
