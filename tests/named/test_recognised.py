"""What is recognised: nothing in near misses, what is listed in programs that hold it, and never what it is not."""

import re
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import pytest
from jax import lax

import hlo_lower as hl

sys.path.insert(0, str(Path(__file__).parents[2] / "scripts"))

from recall.case import Case, boolean, f32, i32
from recall.counted import CORPUS, counted_modules
from recall.decoders import DECODERS, VARIANTS
from recall.finder import find, raised
from recall.meaning import composites_of, wrong_meanings
from recall.mutants import mutants
from recall.programs import HITS, NEAR_MISSES
from recall.scores import Recall, recall_of

MISSED = Path(__file__).with_name("missed.txt")
"""Programs in which something is not found, or with other attributes; running this file writes it anew."""


FOUND_WRONGLY: set[str] = set()
"""Known gaps."""


MEANT_WRONGLY: set[str] = set()
"""Known gaps."""


def missed() -> str:
    """The programs of that file, a line each."""
    recall = recall_of([*HITS, *DECODERS, *VARIANTS], (), find)
    return "".join(f"{name}: {told.split('(')[0]}\n" for name, told in recall.missed)


def test_nothing_is_found_in_near_misses():
    """In no near miss is found what it nearly is, but for known gaps; one that is closed leaves the list."""
    recall = recall_of((), NEAR_MISSES, find)
    assert {name for name, _ in recall.false_positives} == FOUND_WRONGLY


@pytest.mark.sweep
def test_what_is_missed_is_listed():
    """A program in which an op is missed is in the list; one in which it is found is not."""
    assert MISSED.read_text() == missed()


@pytest.mark.sweep
@pytest.mark.parametrize("case", [*HITS, *DECODERS, *VARIANTS], ids=lambda case: case.name)
def test_what_is_found_is_what_it_is_named(case):
    """The decomposition of each composite computes its op on random operands, by the op's definition."""
    assert list(wrong_meanings(raised(case.text()))) == []


@pytest.mark.sweep
@pytest.mark.parametrize("module", counted_modules(), ids=lambda module: module.path)
def test_counted_modules_hold_no_more_than_was_counted(module):
    """What is found in a module of a framework was counted there, and computes what it is named."""
    file = CORPUS / module.path
    if not file.is_file():
        pytest.skip("the corpus is not there")
    recall, text = Recall(), file.read_text()
    recall.add_counted(module.path, "counted", module.expected, find(text))
    assert recall.surplus == []
    assert (module.path in MEANT_WRONGLY) == bool(list(wrong_meanings(raised(text))))


SQUARE, ROW = f32(4, 4, 4), f32(4)
"""All axes alike: a wrong axis has a right type."""


def softmax(x):
    e = jnp.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def layer_norm(x, w, b):
    centred = x - x.mean(-1, keepdims=True)
    return centred * lax.rsqrt((centred * centred).mean(-1, keepdims=True) + 0.1) * w + b


def rms_norm(x, w):
    return x * lax.rsqrt((x * x).mean(1, keepdims=True) + 0.1) * (1 + w)


def gelu(x):
    return 0.5 * x * (1 + jnp.tanh(0.7978845608 * (x + 0.044715 * x * x * x)))


def batch_norm(x, w, b, mean, variance):
    return (x - mean) * lax.rsqrt(variance + 0.1) * w + b


def logsumexp(x):
    m = x.max(2)
    return m + jnp.log(jnp.exp(x - m[..., None]).sum(2))


def linear(x, w, b):
    return x @ w + b


def embedding_lookup(table, tokens):
    return jnp.take(table, tokens, axis=0)


def take_along_axis(x, positions):
    return jnp.take_along_axis(x, positions, axis=1)


def one_hot(labels):
    return jax.nn.one_hot(labels, 4)


def argmax(x):
    return jnp.argmax(x, axis=1)


def top_k(x):
    negated, positions = lax.sort((-x, lax.broadcasted_iota(jnp.int32, x.shape, 1)), dimension=1, num_keys=1)
    return -negated[:, :2], positions[:, :2]


def cumsum(x):
    return lax.associative_scan(jnp.add, x, axis=1)


def kv_cache_update(cache, new, positions):
    return jax.vmap(lambda c, n, p: lax.dynamic_update_slice(c, n, (p, 0)))(cache, new, positions)


CHANGED = {
    function.__name__: Case(function.__name__, "square", function, arguments)
    for function, arguments in (
        (softmax, (SQUARE,)),
        (logsumexp, (SQUARE,)),
        (layer_norm, (SQUARE, ROW, ROW)),
        (rms_norm, (SQUARE, ROW)),
        (batch_norm, (SQUARE, ROW, ROW, ROW, ROW)),
        (gelu, (SQUARE,)),
        (linear, (f32(4, 4), f32(4, 4), ROW)),
        (embedding_lookup, (f32(4, 4), i32(4, 4))),
        (take_along_axis, (f32(4, 4), i32(4, 4))),
        (one_hot, (i32(4),)),
        (argmax, (f32(4, 4),)),
        (top_k, (f32(4, 4),)),
        (cumsum, (f32(4, 4),)),
        (kv_cache_update, (SQUARE, f32(4, 1, 4), i32(4))),
    )
}


EVEN, VECTOR = f32(4, 4, 8, 8), f32(8)


def heads(q, k, v):
    """Batch, heads, positions, elements; as many of the first two."""
    return jnp.einsum("bhqk,bhkd->bhqd", jax.nn.softmax(jnp.einsum("bhqd,bhkd->bhqk", q, k)), v)


def values_with_heads_first(q, k, v):
    return jnp.einsum("bhqk,hbkd->bhqd", jax.nn.softmax(jnp.einsum("bhqd,bhkd->bhqk", q, k)), v)


def groups(q, k, v):
    """Positions before groups; as many of both."""
    return jnp.einsum("bkgts,bskh->bkgth", jax.nn.softmax(jnp.einsum("btkgh,bskh->bkgts", q, k)), v)


def groups_and_positions_exchanged(q, k, v):
    return jnp.einsum("bkgts,bskh->bkgth", jax.nn.softmax(jnp.einsum("bgkth,bskh->bkgts", q, k)), v)


def groups_repeated(q, k, v):
    """Query i shares key i // 4."""
    return heads(q, jnp.repeat(k, 4, axis=1), jnp.repeat(v, 4, axis=1))


def groups_tiled(q, k, v):
    """Query i shares key i % 2."""
    return heads(q, jnp.tile(k, (1, 4, 1, 1)), jnp.tile(v, (1, 4, 1, 1)))


def mask_of_keys(q, k, v, seen):
    """As many queries as keys."""
    return jax.nn.softmax(jnp.where(seen[None], q @ k.T, -1e9)) @ v


def mask_of_queries(q, k, v, seen):
    return jax.nn.softmax(jnp.where(seen[:, None], q @ k.T, -1e9)) @ v


def mask(q, k, v, seen):
    return jax.nn.softmax(jnp.where(seen, q @ k.T, -1e9)) @ v


def mask_transposed(q, k, v, seen):
    return jax.nn.softmax(jnp.where(seen.T, q @ k.T, -1e9)) @ v


def weights_of_empty_rows(q, k, v, hidden):
    return jax.nn.softmax(q @ k.T + hidden) @ v


def no_weights_of_empty_rows(q, k, v, hidden):
    scores = q @ k.T + hidden
    return jnp.where(jnp.all(scores == -jnp.inf, -1, keepdims=True), 0.0, jax.nn.softmax(scores)) @ v


ROWS_OF_8 = (f32(8, 8), f32(8, 8), f32(8, 8))
GROUPED = (f32(2, 4, 2, 4, 8), f32(2, 6, 2, 8), f32(2, 6, 2, 8))
APART = {
    "values with heads first": (heads, values_with_heads_first, (EVEN, EVEN, EVEN)),
    "groups and positions": (groups, groups_and_positions_exchanged, GROUPED),
    "groups tiled": (groups_repeated, groups_tiled, (f32(2, 8, 8, 16), f32(2, 2, 8, 16), f32(2, 2, 8, 16))),
    "mask of keys or queries": (mask_of_keys, mask_of_queries, (*ROWS_OF_8, boolean(8))),
    "mask transposed": (mask, mask_transposed, (*ROWS_OF_8, boolean(8, 8))),
    "empty rows": (weights_of_empty_rows, no_weights_of_empty_rows, (*ROWS_OF_8, f32(8, 8))),
}
"""Pairs of attentions that take the same operands and compute something else."""

ALIKE: frozenset[str] = frozenset()
"""Known gaps: pairs whose composites are alike, so that who knows the name computes one for the other."""


def attention_composites(function, arguments):
    """What a consumer sees of the attentions of a function: operands' places, attributes, types."""
    text = raised(Case(function.__name__, "pairs", function, arguments).text())
    lines = [line.partition("=")[2] for line in text.splitlines() if '"hl.attention"' in line]
    return [re.sub(r"decomposition = @\S+|loc\(.*", "", line) for line in lines]


@pytest.mark.parametrize("pair", APART)
def test_what_is_not_the_same_attention_is_told_apart(pair):
    """Composites on the same operands that compute something else have other attributes."""
    one, other, arguments = APART[pair]
    found = attention_composites(one, arguments), attention_composites(other, arguments)
    assert (pair in ALIKE) == (found[0] == found[1] != [])


def test_a_wrong_meaning_is_seen():
    """The judge of meanings is not satisfied by another epsilon, or by operands in other roles."""
    text = raised(CHANGED["layer_norm"].text())
    assert [composite.op for composite in composites_of(text)] == ["layer_norm"]
    assert list(wrong_meanings(text)) == []
    for old, new in (("epsilon = 0.1000", "epsilon = 0.2000"), ('"weight", "bias"', '"bias", "weight"')):
        assert old in text
        assert len(list(wrong_meanings(text.replace(old, new)))) == 1


@pytest.mark.sweep
@pytest.mark.parametrize("name", CHANGED)
def test_what_is_found_in_a_mutant_is_what_it_is_named(name):
    """With one op changed, what is still found computes its op; most mutants hold none."""
    text, told = CHANGED[name].text(), []
    assert name in [composite.op for composite in composites_of(raised(text))]
    for changed, mutant in mutants(text):
        try:
            module = raised(mutant)
        except hl.InputError:  # types that do not fit: no module
            continue
        told += [f"{changed}: {wrong}" for wrong in wrong_meanings(module)]
    assert told == []


if __name__ == "__main__":
    MISSED.write_text(missed())
