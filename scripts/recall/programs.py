"""All cases: the programs that hold a named op, by source, and the near misses."""

from collections.abc import Iterator

from recall import (
    activations,
    attention_layouts,
    attention_styles,
    channel_norms,
    layers,
    lookups,
    near_activations,
    near_attentions,
    near_caches,
    near_lookups,
    near_norms,
    near_rewritten,
    near_rotations,
    near_softmaxes,
    normalizations,
    rotations,
    softmaxes,
)
from recall.case import Case, Suite

FILES_OF_HITS = (
    *(attention_layouts, attention_styles, softmaxes, normalizations, channel_norms),
    *(activations, rotations, lookups, layers),
)
FILES_OF_MISSES = (
    *(near_softmaxes, near_norms, near_activations, near_rotations, near_attentions, near_lookups, near_caches),
    near_rewritten,
)


def _suites() -> Iterator[Suite]:
    for file in FILES_OF_HITS:
        yield from (value for value in vars(file).values() if isinstance(value, Suite))


HITS: tuple[Case, ...] = tuple(case for suite in _suites() for case in suite.cases)
"""Programs that hold what they expect."""

NEAR_MISSES: tuple[Case, ...] = tuple(near_softmaxes.NEAR.cases)
"""Programs that hold something else; all files of misses add to one suite, so they are imported above."""

assert FILES_OF_MISSES
