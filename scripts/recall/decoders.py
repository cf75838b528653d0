"""Forty exports of decoders with two layers, and what each holds: layers times what one has, and what is around."""

import jax.numpy as jnp

from recall import decoder_manners, decoder_variants
from recall.case import Case, Finding, finds
from recall.decoder_gpt import PlainDecoder
from recall.decoder_llama import GatedDecoder
from recall.decoder_torch import ExportedDecoder

BF16, F16 = jnp.bfloat16, jnp.float16
LOOKUP = finds("embedding_lookup")


def _causal(times: int = 2, **attributes: object) -> Finding:
    return finds("attention", times, scale=0.25, causal=True, **attributes)


def _cached(**attributes: object) -> tuple[Finding, ...]:
    return finds("attention", 2, scale=0.25, **attributes), finds("kv_cache_update", 4)


def _rms(times: int, **attributes: object) -> Finding:
    return finds("rms_norm", times, **attributes)


def _layer(times: int) -> Finding:
    return finds("layer_norm", times, epsilon=1e-5)


HALVES = finds("rope", 4, pairs="halves")
SWIGLU, RELU = finds("swiglu", 2), finds("relu", 2)
TANH, EXACT = finds("gelu", 2, approximate="tanh"), finds("gelu", 2, approximate="none")

GATED = {
    "plain": (GatedDecoder(), (_causal(), _rms(5, epsilon=1e-6), HALVES, SWIGLU, LOOKUP)),
    "bf16_tied": (GatedDecoder(dtype=BF16, tied=True), (_causal(), _rms(5), HALVES, SWIGLU, LOOKUP)),
    "decode": (
        GatedDecoder(positions=1, cache=32, greedy=True),
        (*_cached(), _rms(5), HALVES, SWIGLU, LOOKUP, finds("argmax", axis=1)),
    ),
    "one_plus_softcap": (
        GatedDecoder(one_plus=True, gelu=True, softcap=50.0, tied=True, dtype=BF16),
        (_causal(softcap=50.0), _rms(9, weight="one_plus"), HALVES, TANH, LOOKUP),
    ),
    "window": (GatedDecoder(window=4, batch=1), (_causal(window=4), _rms(5), HALVES, SWIGLU, LOOKUP)),
    "qk_norm": (GatedDecoder(qk_norm=True), (_causal(), _rms(9), HALVES, SWIGLU, LOOKUP)),
    "scan": (
        GatedDecoder(scan=True),
        (finds("attention", scale=0.25), _rms(3), finds("rope", 2), finds("swiglu"), LOOKUP),
    ),
    "one_group_f16": (GatedDecoder(groups=1, dtype=F16), (_causal(), _rms(5), HALVES, SWIGLU, LOOKUP)),
    "all_groups_prefill": (
        GatedDecoder(groups=4, cache=32, dtype=BF16),
        (*_cached(), _rms(5), HALVES, SWIGLU, LOOKUP),
    ),
}
PLAIN = {
    "gpt2": (PlainDecoder(), (_causal(), _layer(5), TANH, LOOKUP)),
    "exact_bf16": (PlainDecoder(activation="gelu", dtype=BF16), (_causal(), _layer(5), EXACT, LOOKUP)),
    "norm_after": (PlainDecoder(order="after", activation="relu"), (_causal(), _layer(4), RELU, LOOKUP)),
    "parallel_interleaved": (
        PlainDecoder(order="parallel", places="interleaved"),
        (_causal(), _layer(3), finds("rope", 4, pairs="interleaved", size=8), TANH, LOOKUP),
    ),
    "two_norms_partial": (
        PlainDecoder(order="two", places="halves", activation="gelu"),
        (_causal(), _layer(5), finds("rope", 4, pairs="halves", size=8), EXACT, LOOKUP),
    ),
    "relu_mask_argument": (
        PlainDecoder(activation="relu", masked="argument"),
        (finds("attention", 2, scale=0.25, mask="additive"), _layer(5), RELU, LOOKUP),
    ),
    "decode": (PlainDecoder(positions=1, cache=32), (*_cached(mask="boolean"), _layer(5), TANH, LOOKUP)),
    "alibi": (PlainDecoder(places="alibi", masked="numbers"), (finds("attention", 2), _layer(6), TANH, LOOKUP)),
}
EXPORTED = {
    "llama": (ExportedDecoder(dtype=BF16), (finds("attention", 2, scale=0.25), _rms(5), HALVES, SWIGLU, LOOKUP)),
    "softcap_decode": (
        ExportedDecoder(positions=1, cache=32, softcap=30.0, tanh=True),
        (*_cached(softcap=30.0), _rms(5, epsilon=1e-5), HALVES, TANH, LOOKUP),
    ),
    "relative": (
        ExportedDecoder(relative=True),
        (finds("attention", 2, scale=1.0, mask="additive"), _rms(5), RELU, LOOKUP),
    ),
}

DECODERS: tuple[Case, ...] = tuple(
    Case(f"decoders/{manner}_{name}", "decoders", decoder, decoder.arguments(), expected)
    for manner, table in (("gated", GATED), ("plain", PLAIN), ("exported", EXPORTED))
    for name, (decoder, expected) in table.items()
)

VARIANTS: tuple[Case, ...] = (*decoder_variants.VARIANTS.cases, *decoder_manners.VARIANTS.cases)
"""Twenty more, each in the manner of another family or library."""
