"""Named ops as a target's composites: which are written, with which attributes, and that nothing else is computed."""

import re

import jax
import jax.numpy as jnp
import pytest

import hlo_lower as hl

F32 = jnp.float32
B, S, H = 1, 6, 8


def text_of(function, *shapes):
    """The module of a function of tensors of f32."""
    return jax.jit(function).lower(*(jax.ShapeDtypeStruct(shape, F32) for shape in shapes)).as_text()


def composites(text):
    """The names of the composites in a text."""
    return re.findall(r'composite "([\w.]+)"', text)


def weights(q, k, mask=None, scale=0.5):
    """The softmax of the scores, heads before positions."""
    scores = jnp.einsum("bnth,bnsh->bnts", q, k) * scale
    return jax.nn.softmax(scores if mask is None else mask(scores), axis=-1)


def repeated(x, groups):
    """Heads of keys, each for a group of queries."""
    b, n, s, h = x.shape
    return jnp.broadcast_to(x[:, :, None], (b, n, groups, s, h)).reshape(b, n * groups, s, h)


def grouped(mask=None):
    """Attention of four heads of queries to two of keys that are repeated."""

    def function(q, k, v, *masks):
        apply = None if mask is None else lambda scores: mask(scores, *masks)
        return jnp.einsum("bnts,bnsh->bnth", weights(q, repeated(k, 2), apply), repeated(v, 2))

    return function


def seen(scores):
    """Where no position sees a later one."""
    rows, keys = scores.shape[-2:]
    return jnp.arange(keys)[None, :] <= jnp.arange(rows)[:, None]


def in_place(q, k, v):
    """Attention whose operands stand in the order of the target."""
    return jnp.einsum("bnts,bsnh->btnh", jax.nn.softmax(jnp.einsum("btnh,bsnh->bnts", q, k) * 0.5, axis=-1), v)


def safe(q, k, v, mask):
    """As PyTorch computes it: rows that see nothing are 0."""
    scores = jnp.einsum("bnth,bnsh->bnts", q, repeated(k, 2)) * 0.5 + mask
    hidden = jnp.all(scores == -jnp.inf, axis=-1, keepdims=True)
    return jnp.einsum("bnts,bnsh->bnth", jnp.where(hidden, 0.0, jax.nn.softmax(scores, axis=-1)), repeated(v, 2))


QKV = ((B, 4, S, H), (B, 2, S, H), (B, 2, S, H))
ORDERED = ((2, S, 4, H), (2, S, 4, H), (2, S, 4, H))
MASK = (1, 1, S, S)

WRITTEN = {
    "groups": (grouped(), QKV),
    "groups, decode": (grouped(), ((B, 4, 1, H), *QKV[1:])),
    "an additive mask": (grouped(lambda s, m: s + m), (*QKV, MASK)),
    "a boolean mask": (grouped(lambda s, m: jnp.where(m > 0, s, -jnp.inf)), (*QKV, MASK)),
    "a mask of a finite number": (grouped(lambda s, m: jnp.where(m > 0, s, -1e9)), (*QKV, MASK)),
    "a causal mask": (grouped(lambda s: jnp.where(seen(s), s, -jnp.inf)), QKV),
    "a soft cap": (grouped(lambda s: 50.0 * jnp.tanh(s / 50.0)), QKV),
    "in the target's order": (in_place, ORDERED),
    "rows that see nothing are 0": (
        lambda q, k, v, flags: safe(q, k, v, jnp.where(flags > 0, 0.0, -jnp.inf)),
        (*QKV, MASK),
    ),
}


LONG = "rows that see nothing are 0"


@pytest.mark.parametrize("name", [pytest.param(n, marks=[pytest.mark.sweep] * (n == LONG)) for n in WRITTEN])
def test_attention_is_written_and_computes_the_same(name):
    """Its operands are those that LiteRT wants, and the module is equal, bit for bit."""
    function, shapes = WRITTEN[name]
    before = text_of(function, *shapes)
    raised = hl.raise_named(before, target="litert")
    assert composites(raised.text) == ["odml.scaled_dot_product_attention"]
    assert hl.verify(before, raised.text, level="regions").ok
    assert ("logit_cap" in raised.text) == (name == "a soft cap")


REFUSED = {
    "slower": (lambda q, k, v: jnp.einsum("bnts,bnsh->bnth", weights(q, k), v), (QKV[0], QKV[0], QKV[0])),
    "longer values": (grouped(), (QKV[0], QKV[1], (B, 2, S, 2 * H))),
    "one head, a batch of two": (in_place, ((2, S, 1, H),) * 3),
    "rows that see nothing, of an unknown mask": (safe, (*QKV, MASK)),
}


@pytest.mark.parametrize("name", REFUSED)
def test_attention_that_it_does_not_take_is_written_out(name):
    """Plain ops are left, and a reason is told."""
    function, shapes = REFUSED[name]
    raised = hl.raise_named(text_of(function, *shapes), target="litert")
    assert composites(raised.text) == []
    assert [one.name for one in raised.spelled if one.name == "attention" and one.why is not None]


def test_attributes_have_the_target_s_spelling():
    """The scale is of f32, and gelu says which it is."""
    text = hl.raise_named(text_of(grouped(), *QKV), target="litert").text
    assert "{scale = 5.000000e-01 : f32}" in text
    gelu = hl.raise_named(text_of(lambda x: jax.nn.gelu(x, approximate=False), (4, 8)), target="litert")
    assert '"aten.gelu.default"' in gelu.text
    assert 'approximate = "none"' in gelu.text
    assert gelu.summary() == "1 of 1 named ops written: 1 aten.gelu.default (XNNPACK)"


def test_a_mask_that_is_spoilt_is_seen():
    """Verification tells a decomposition that recovers another mask."""
    before = text_of(WRITTEN["a boolean mask"][0], *QKV, MASK)
    text = hl.raise_named(before, target="litert").text
    spoilt = re.sub(r"(compare\s+)EQ", r"\1NE", text)
    assert spoilt != text
    assert not hl.verify(before, spoilt, level="regions").ok


def norm(x, w):
    """RMS norm."""
    return x * jax.lax.rsqrt(jnp.mean(x * x, -1, keepdims=True) + 1e-6) * w


TT_MLIR = "examples/targets/tt_mlir.toml"


def test_a_target_of_a_file_has_sizes_in_the_place_of_axes():
    """tt-mlir's norm has the sizes of the last axes, and its attention never leaves is_causal to its default."""
    before = text_of(norm, (2, 3, 8), (8,))
    raised = hl.raise_named(before, target=TT_MLIR)
    assert "normalized_shape = dense<8> : tensor<1xi64>" in raised.text
    assert hl.verify(before, raised.text, level="regions").ok
    causal = text_of(grouped(lambda s: jnp.where(seen(s), s, -jnp.inf)), *QKV)
    text = hl.raise_named(causal, target=TT_MLIR).text
    assert "is_causal = false" in text
    assert hl.verify(causal, text, level="regions").ok


def other(name, function, **attributes):
    """A function whose call is a composite of somebody else's name."""
    return lambda *a: jax.lax.composite(lambda *a, **_: function(*a), name=name)(*a, **attributes)


def test_composites_of_others():
    """They are read where they are seen to be that op: the name is not believed, and one that computes another thing
    stays what it was; what the target does not take is not written out."""
    true = text_of(other("odml.rms_norm", norm, epsilon=1e-6), (4, 8), (8,))
    false = text_of(other("odml.rms_norm", lambda x, w: x * w, epsilon=1e-6), (4, 8), (8,))
    assert composites(hl.raise_named(true).text) == ["hl.rms_norm"]
    assert composites(hl.raise_named(false).text) == ["odml.rms_norm"]
    after = hl.raise_named(true, target="litert").text
    assert composites(after) == ["odml.rms_norm"]
    assert hl.verify(true, after, level="regions").ok


GELU = 'op = "gelu"\ncomposite = "a"'
ATTENTION = 'op = "attention"\ncomposite = "a"\noperands = '
ADAPTED = 'adapter = "attention"'


@pytest.mark.parametrize(
    ("entry", "told"),
    [
        (GELU.replace("gelu", "gelus") + "\noperands = []", "no named op 'gelus'"),
        (f'{GELU}\noperands = ["x"]\nadapter = "b"', "'b' is none"),
        (f'{GELU}\noperands = ["x"]\nwhere.c = [1]', "unknown key 'c'"),
        (f'{GELU}\noperands = ["x"]\nattributes.a = "b"', "no attribute 'b'"),
        (GELU, "it has no operands"),
        (f'{ATTENTION}["query", "value", "key"]\n{ADAPTED}', "operands: query, value, key"),
        (f'{ATTENTION}["query", "key", "value"]\n{ADAPTED}', "layout: '' is none"),
        (f'{ATTENTION}["query"]\nrefuses = ["b"]', "refuses: 'b' is none"),
    ],
)
def test_an_entry_that_says_nothing_is_an_error(tmp_path, entry, told):
    """A word that does not exist would take nothing, silently."""
    path = tmp_path / "npu.toml"
    path.write_text(f"[[named]]\n{entry}")
    with pytest.raises(hl.InputError, match=told):
        hl.raise_named("func.func public @main() { return }", target=str(path))


def group_norm(x):
    """Two groups of channels, channels second."""
    parted = x.reshape(2, 2, 2, 3, 3)
    centred = parted - parted.mean((2, 3, 4), keepdims=True)
    return (centred * jax.lax.rsqrt((centred**2).mean((2, 3, 4), keepdims=True) + 1e-5)).reshape(x.shape)


def test_channels_are_moved_to_the_end_and_back(tmp_path):
    """A group norm whose channels are not last is transposed, and its decomposition computes what stood there."""
    path = tmp_path / "gpu.toml"
    path.write_text(
        '[[named]]\nop = "group_norm"\ncomposite = "odml.group_norm"\noperands = ["x"]\nadapter = "channels_last"\n'
        'attributes.channel_axis = "channel_axis"\nattributes._TENSOR_V1_reduction_axes = { value = 1 }\n'
    )
    before = text_of(group_norm, (2, 4, 3, 3))
    after = hl.raise_named(before, target=str(path)).text
    assert composites(after) == ["odml.group_norm"]
    assert "channel_axis = 3" in after
    assert "dims = [0, 2, 3, 1]" in after
    assert hl.verify(before, after, level="regions").ok
