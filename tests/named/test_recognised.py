"""What is recognised: nothing in near misses, what is listed in programs that hold it, and never what it is not."""

import sys
from pathlib import Path

import jax.numpy as jnp
import pytest
from jax import lax

import hlo_lower as hl

sys.path.insert(0, str(Path(__file__).parents[2] / "scripts"))

from recall.case import Case, f32
from recall.counted import CORPUS, counted_modules
from recall.decoders import DECODERS
from recall.finder import find, raised
from recall.meaning import composites_of, wrong_meanings
from recall.mutants import mutants
from recall.programs import HITS, NEAR_MISSES
from recall.scores import Recall, recall_of

MISSED = Path(__file__).with_name("missed.txt")
"""Programs in which something is not found, or with other attributes; running this file writes it anew."""


def missed() -> str:
    """The programs of that file, a line each."""
    recall = recall_of([*HITS, *DECODERS], (), find)
    return "".join(f"{name}: {told.split('(')[0]}\n" for name, told in recall.missed)


def test_nothing_is_found_in_near_misses():
    """In no near miss is found what it nearly is."""
    recall = recall_of((), NEAR_MISSES, find)
    assert recall.false_positives == []


@pytest.mark.sweep
def test_what_is_missed_is_listed():
    """A program in which an op is missed is in the list; one in which it is found is not."""
    assert MISSED.read_text() == missed()


@pytest.mark.sweep
@pytest.mark.parametrize("case", [*HITS, *DECODERS], ids=lambda case: case.name)
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
    assert list(wrong_meanings(raised(text))) == []


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


CHANGED = {
    function.__name__: Case(function.__name__, "square", function, arguments)
    for function, arguments in (
        (softmax, (SQUARE,)),
        (logsumexp, (SQUARE,)),
        (layer_norm, (SQUARE, ROW, ROW)),
        (rms_norm, (SQUARE, ROW)),
        (batch_norm, (SQUARE, ROW, ROW, ROW, ROW)),
        (gelu, (SQUARE,)),
    )
}


def test_a_wrong_meaning_is_seen():
    """The judge of meanings is not satisfied by another epsilon, or by operands in other roles."""
    text = raised(CHANGED["layer_norm"].text())
    assert [composite.op for composite in composites_of(text)] == ["layer_norm"]
    assert list(wrong_meanings(text)) == []
    for old, new in (("epsilon = 1.000000e-01", "epsilon = 2.000000e-01"), ('"weight", "bias"', '"bias", "weight"')):
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
