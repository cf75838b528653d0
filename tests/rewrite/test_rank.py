"""Ops on more dims than a target takes: the same bits on fewer, and wrong ones are found."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from rewrites import assert_same, results, swept

import hlo_lower as hl
from hlo_lower.base.change import Outcome
from hlo_lower.lowering import ranks

FEW = hl.Target("few", refused={"stablehlo.scatter": "lowered"}, max_rank={"*": 5})
SHAPE = (2, 3, 1, 2, 2, 3)
SIZE = int(np.prod(SHAPE))


def on(v):
    """Flat numbers on six dims."""
    return v.reshape(SHAPE)


def best(left, right):
    """The greater of two numbers with its place; of two that are equal the lower place."""
    is_left = (left[0] > right[0]) | ((left[0] == right[0]) & (left[1] < right[1]))
    return tuple(lax.select(is_left, a, b) for a, b in zip(left, right, strict=True))


def programs(seed):
    """Functions of flat arguments that do something on six dims, by name."""
    rng = np.random.default_rng(seed)
    order, some = (tuple(int(d) for d in rng.permutation(6)[:count]) for count in (6, 3))
    x, chosen, axis = rng.standard_normal(SIZE).astype(np.float32), rng.random(SIZE) < 0.5, int(rng.integers(6))
    low, high, gap = (rng.integers(n, 3, 6).tolist() for n in (-1, 0, 0))
    pads = [(lo, max(hi, -lo), g) for lo, hi, g in zip(low, high, gap, strict=True)]
    starts = [np.int32(s) for s in rng.integers(-1, 3, 6)]
    sizes = [int(rng.integers(1, n + 1)) for n in SHAPE]
    lows, update = [n - k for n, k in zip(SHAPE, sizes, strict=True)], np.ones(int(np.prod(sizes)), np.float32)
    at = np.int32([-1, 0, 1, 4, 2, 1])
    whole, zero, one, some = (x * 4).astype(np.int32), np.float32(0), np.float32(1), tuple(sorted(some))
    return {
        "elementwise": (lambda v, p: lax.select(on(p), on(v) * 2, lax.clamp(zero, on(v), one)), x, chosen),
        "transpose": (lambda v: lax.transpose(on(v), order), x),
        "broadcast": (lambda v: lax.broadcast_in_dim(v[:6].reshape(2, 3), (2, 2, 3, 3, 2, 1), (0, 3)), x),
        "reduce": (lambda v: lax.reduce(on(v), np.float32(-np.inf), lax.max, some), x),
        "sum of integers": (lambda v: lax.reduce(on(v), np.int32(0), lax.add, some), whole),
        "place": (lambda v: lax.reduce((on(v), on(lax.iota(np.int32, SIZE))), (-np.inf, 0), best, some)[1], x),
        "slice": (lambda v: lax.slice(on(v), lows, SHAPE, [1, 2, 1, 1, 2, 1]), x),
        "pad": (lambda v: lax.pad(on(v), np.float32(7), pads), x),
        "reverse": (lambda v: lax.rev(on(v), some), x),
        "concatenate": (lambda v: lax.concatenate([on(v), on(v) + 1], axis), x),
        "iota": (lambda v: on(v) + lax.broadcasted_iota(np.float32, SHAPE, axis), x),
        "read": (lambda v: lax.dynamic_slice(on(v), starts, sizes), x),
        "update": (lambda v, u: lax.dynamic_update_slice(on(v), u.reshape(sizes), starts), x, update),
        "dot": (lambda v: lax.dot_general(on(v), on(v), (((5, 1), (5, 1)), ((3, 0), (3, 0)))), whole),
        "dot of floats": (lambda v: lax.dot_general(on(v), on(v), (((5, 1), (5, 1)), ((3, 0), (3, 0)))), x),
        "gather": (lambda v, at: jnp.take(on(v), at.reshape(2, 1, 3), axis, mode="clip"), x, at),
        "function": (lambda v: jax.jit(lambda t: lax.rev(t, some))(on(v)) + on(v), x),
        "loop": (lambda v: lax.fori_loop(0, v.shape[0] // 50, lambda i, t: lax.rev(t, some) + i, on(v)), x),
        "branch": (lambda v: lax.cond(v[0] > 0, lambda t: t + 1, lambda t: lax.rev(t, some), on(v)), x),
        "constant": (lambda v: on(v) + np.arange(SIZE, dtype=np.float32).reshape(SHAPE), x),
    }  # fmt: skip


def flat(name, seed):
    """One of them as a module of flat results, and its arguments."""
    function, *values = programs(seed)[name]
    return hl.export(lambda *args: function(*args).reshape(-1), *values), values


@pytest.mark.parametrize("name", programs(0))
@pytest.mark.parametrize("seed", swept(range(12), 0))
def test_fewer_dims_are_the_same_bits(name, seed):
    """Of every family of ops; nothing of more dims is left but what is given and returned in them."""
    source, values = flat(name, seed)
    lowered = hl.lower(source, target=FEW)
    assert lowered.changes
    assert not lowered.refused, lowered.text
    assert_same(source, lowered, *values)


NOT_MOVED = "transpose_in_steps", lambda b, value, order: b.reshape(value, [value.static_shape[d] for d in order])
OTHER_BLOCKS = "_blocks", lambda shape, dim: (1, shape[dim], int(np.prod(shape)) // shape[dim])
WRONG = {"transpose": NOT_MOVED, "reduce": NOT_MOVED, "reverse": OTHER_BLOCKS, "concatenate": OTHER_BLOCKS}


@pytest.mark.parametrize("name", swept(WRONG, "reverse", "transpose"))
def test_a_wrong_shape_is_found(name, monkeypatch):
    """Dims that are not moved, or taken for others, are found by the verification."""
    source, _ = flat(name, 3)
    assert hl.verify(source, hl.lower(source, target=FEW)).ok
    monkeypatch.setattr(ranks, *WRONG[name])
    assert not hl.verify(source, hl.lower(source, target=FEW)).ok


def test_sums_of_floats_need_leave():
    """XLA adds a row in another order than several dims: they stay, with the reason, or are within the bound."""
    x = np.random.default_rng(0).standard_normal(3600).astype(np.float32)
    total = lambda v: lax.reduce(v.reshape(6, 5, 4, 6, 5, 1), np.float32(0), lax.add, (0, 1, 2))  # noqa: E731
    source = hl.export(lambda v: total(v).reshape(-1), x)
    [stays] = hl.lower(source, target=FEW).changes
    assert (stays.op, stays.outcome) == ("stablehlo.reduce", Outcome.LEFT)
    assert "--float-mode reassociate" in str(stays.why)
    allowed = hl.lower(source, target=FEW, float_mode="reassociate")
    assert not allowed.refused
    assert results(source, x)[0].tobytes() != results(allowed, x)[0].tobytes()
    assert hl.verify(source, allowed).ok
    assert not hl.verify(source, allowed.text, float_mode="exact").ok


def test_what_stays_is_told():
    """An argument of six dims, which the target cannot have."""
    lowered = hl.lower(hl.export(lambda x: x + 1, np.zeros(SHAPE, np.float32)), target=FEW)
    assert [(one.op, one.reason["note"]) for one in lowered.refused] == [
        ("stablehlo.reshape", "on 6 dims, more than 5"),
    ]


def test_a_function_that_a_composite_names_keeps_its_dims():
    """What a composite is given, and gives, has the types of its decomposition."""
    shape = "tensor<2x2x2x2x2x2xf32>"
    text = f"""
    func.func public @main(%x: {shape}) -> {shape} {{
      %y = stablehlo.composite "a.negate" %x {{decomposition = @inner}} : ({shape}) -> {shape}
      %r = call @inner(%y) : ({shape}) -> {shape}
      return %r : {shape}
    }}
    func.func private @inner(%d: {shape}) -> {shape} {{
      %n = stablehlo.negate %d : {shape}
      return %n : {shape}
    }}"""
    assert f"call @inner(%0) : ({shape}) -> {shape}" in hl.lower(text, target=FEW).text
