"""Sizes that everything is measured at: `full`, as models have them, `medium`, and `small`, to try the command out."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Sizes:
    """The sizes of the suite; the defaults are `full`.

    Attributes:
      heads, length, width: the single cache, float32 [1, heads, length, width].
      prompt, long_prompt: rows of a prefill into it.
      batch: sequences of the ragged and of the paged decode step.
      kv_heads, ragged_length: the ragged cache, float32 [batch, kv_heads, ragged_length, width].
      pages, page: the paged cache, float32 [pages, page, kv_heads, width].
      vocab, hidden, tokens: an embedding table, and how many tokens are looked up in it.
      moe_tokens, experts, top_k, moe_hidden: tokens that are routed to top_k experts each.
      counted, bins: what a bincount counts, and into how many bins.
      layers: of the decoder that is converted and stepped.
      operations, scatters: of the synthetic module.
      sample: seconds that a round lasts at least.
    """

    heads: int = 32
    length: int = 4096
    width: int = 128
    prompt: int = 512
    long_prompt: int = 2048
    batch: int = 64
    kv_heads: int = 8
    ragged_length: int = 1024
    pages: int = 1024
    page: int = 16
    vocab: int = 32_000
    hidden: int = 2048
    tokens: int = 2048
    moe_tokens: int = 8192
    experts: int = 64
    top_k: int = 2
    moe_hidden: int = 1024
    counted: int = 1_000_000
    bins: int = 1024
    layers: int = 80
    operations: int = 200_000
    scatters: int = 5_000
    sample: float = 0.1


SCALES = {
    "full": Sizes(),
    "medium": Sizes(
        heads=8,
        length=1024,
        width=64,
        prompt=64,
        long_prompt=256,
        batch=16,
        kv_heads=4,
        ragged_length=256,
        pages=256,
        page=16,
        vocab=4096,
        hidden=256,
        tokens=256,
        moe_tokens=512,
        experts=16,
        moe_hidden=128,
        counted=30_000,
        bins=256,
        layers=8,
        operations=8000,
        scatters=200,
        sample=0.02,
    ),
    "small": Sizes(
        heads=2,
        length=64,
        width=8,
        prompt=8,
        long_prompt=16,
        batch=4,
        kv_heads=2,
        ragged_length=16,
        pages=16,
        page=4,
        vocab=100,
        hidden=16,
        tokens=20,
        moe_tokens=32,
        experts=4,
        moe_hidden=8,
        counted=1000,
        bins=16,
        layers=1,
        operations=800,
        scatters=20,
        sample=0.001,
    ),
}
