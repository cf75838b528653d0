"""What is recognised: nothing in near misses, what is listed in programs that hold it, and never what it is not; its
attributes are those of the vocabulary, whoever writes them, and say which axis."""

import re
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path

import jax
import jax.numpy as jnp
import pytest
from jax import lax

import hlo_lower as hl
from hlo_lower.ir import mlir
from hlo_lower.ir.reader import read
from hlo_lower.ops.vocabulary import BY_NAME

sys.path.insert(0, str(Path(__file__).parents[2] / "scripts"))

from recall import layers, lookups, softmaxes
from recall.case import Case, Suite, boolean, f32, i32
from recall.counted import CORPUS, counted_modules
from recall.decoders import DECODERS, VARIANTS
from recall.finder import find, raised
from recall.meaning import composites_of, wrong_meanings
from recall.mutants import mutants
from recall.programs import HITS, NEAR_MISSES
from recall.scores import Recall, recall_of

MISSED = Path(__file__).with_name("missed.txt")
"""Programs in which something is not found, or with other attributes; running this file writes it anew."""

SWEPT = pytest.mark.sweep


def raised_of(function, arguments):
    """The raised module of a function."""
    return raised(Case("one", "plain", function, tuple(arguments)).text())


def found_in(text, op):
    """The attributes of each composite of an op."""
    return [composite.attributes for composite in composites_of(text) if composite.op == op]


def missed():
    """The programs of that file, a line each."""
    recall = recall_of([*HITS, *DECODERS, *VARIANTS], (), find)
    return "".join(f"{name}: {told.split('(')[0]}\n" for name, told in recall.missed)


def test_nothing_is_found_in_near_misses():
    """In no near miss is found what it nearly is."""
    assert recall_of((), NEAR_MISSES, find).false_positives == []


@SWEPT
def test_what_is_missed_is_listed():
    """A program in which an op is missed is in the list; one in which it is found is not."""
    assert MISSED.read_text() == missed()


@SWEPT
@pytest.mark.parametrize("case", [*HITS, *DECODERS, *VARIANTS], ids=lambda case: case.name)
def test_what_is_found_is_what_it_is_named(case):
    """The decomposition of each composite computes its op on random operands, by the op's definition."""
    text = raised(case.text())
    assert list(wrong_meanings(text)) == []
    assert list(foreign(text)) == []


@SWEPT
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


def foreign(text):
    """Attributes and operands of a module's composites that the vocabulary does not have, or lacks."""
    for composite in composites_of(text):
        op = BY_NAME[composite.op]
        known = {attribute.name: attribute for attribute in op.attributes}
        for name, value in composite.attributes.items():
            one = known.get(name)
            if one is None or (one.choices and value not in one.choices) or one.several != isinstance(value, list):
                yield composite.op, name, value
        yield from ((composite.op, n) for n, a in known.items() if n not in composite.attributes and a.default != "")
        taken = {name.strip("[]") for name in f"{op.takes}, {op.or_takes}".split(", ")}
        yield from ((composite.op, name) for name in composite.operands if name not in taken)


def test_attributes_and_operands_are_in_the_vocabulary():
    """Each with one of its values, and all that have no empty default, in a program of each library."""
    suites = [suite for file in (layers, lookups, softmaxes) for suite in vars(file).values()]
    some = [case for suite in suites if isinstance(suite, Suite) for case in suite.cases[:1]]
    assert [(case.name, told) for case in some if (told := [*foreign(raised(case.text()))])] == []


@pytest.mark.parametrize("name", ["jax.nn/softmax_where", "numpy-like/attention_divided_after_the_product"])
def test_what_is_found_in_f32_is_found_in_bf16(name):
    """Where JAX sums bf16 in f32 as well, and writes -inf of both."""
    case = next(case for case in HITS if case.name == name)
    narrow = [
        jax.ShapeDtypeStruct(x.shape, jnp.bfloat16 if x.dtype == jnp.float32 else x.dtype) for x in case.arguments
    ]
    assert recall_of([replace(case, arguments=tuple(narrow))], (), find).missed == []


SQUARE, CUBE, ROW, HEADS, SQUARES = f32(8, 8), f32(6, 6, 6), f32(4), f32(2, 2, 6, 6, 8), f32(4, 4, 4)
"""Axes of which several are alike: a wrong axis has a right type."""


def normed(axis, epsilon=1e-6):
    """A norm along an axis."""
    return lambda x: x * lax.rsqrt((x * x).mean(axis, keepdims=True) + epsilon)


def centred(axis, epsilon=1e-5):
    """The same less the mean."""
    return lambda x: (x - x.mean(axis, keepdims=True)) * lax.rsqrt(x.var(axis, keepdims=True) + epsilon)


def top_k(x):
    negated, positions = lax.sort((-x, lax.broadcasted_iota(jnp.int32, x.shape, 1)), dimension=1, num_keys=1)
    return -negated[:, :2], positions[:, :2]


PROGRAMS = {case.name.split("/")[1]: case.function for case in HITS}
NAMED = {
    "rms_norm": (lambda x, w: normed(-1, 0.25)(x) * w, (f32(4, 8), f32(8)), {"axes": -1, "epsilon": 0.25}),
    "embedding_lookup": (lambda t, p: t[p], (f32(4, 8), i32(3)), {"negative": "from_end", "outside": "clamp"}),
    "top_k": (lambda x: lax.top_k(x, 2), (f32(4, 8),), {"k": 2, "axis": -1}),
}


def written_in(text):
    """The attributes of the only composite of a module, as they are written."""
    graph = read(text)
    with mlir.active(graph.context):
        [composite] = mlir.find_named(graph.module.operation, {"stablehlo.composite"})[0]
        return str(composite.attributes["composite_attributes"]), str(composite.attributes["version"])


@pytest.mark.parametrize("name", NAMED)
def test_a_named_function_and_what_is_found_in_it_have_the_same_attributes(name):
    """`hl.named` and `raise` write floats, whole numbers, lists and defaults alike."""
    function, arguments, attributes = NAMED[name]
    named = jax.jit(hl.named(name, **attributes)(function)).lower(*arguments).as_text()
    assert written_in(raised_of(function, arguments)) == written_in(named)


def layer_norm(x, w, b):
    centred = x - x.mean(-1, keepdims=True)
    return centred * lax.rsqrt((centred * centred).mean(-1, keepdims=True) + 0.1) * w + b


CACHE = f32(2, 8, 4, 3), f32(2, 2, 4, 3), i32(2)
OTHER = [  # an op, a program, its arguments, an attribute or the operands, and others
    ("embedding_lookup", "embedding_lookup_by_take", (f32(8, 4), i32(6)), 'outside = "fill"', 'outside = "clamp"'),
    ("take_along_axis", "take_along_axis", (f32(4, 8), i32(4, 3)), 'negative = "from_end"', 'negative = "outside"'),
    ("one_hot", "one_hot_first_axis", (i32(10),), "axis = 0", "axis = 1"),
    ("top_k", "top_k", (f32(4, 8),), "largest = true", "largest = false"),
    ("cumsum", "cumsum_by_windows", (SQUARE,), "axis = 1", "axis = 0"),
    ("linear", "linear_plain", (f32(4, 4), f32(4, 4), ROW), "transposed = false", "transposed = true"),
    ("kv_cache_update", "kv_cache_update_mapped", CACHE, 'outside = "clamp"', 'outside = "drop"'),
    ("layer_norm", layer_norm, (SQUARES, ROW, ROW), "epsilon = 0.1000", "epsilon = 0.2000"),
    ("layer_norm", layer_norm, (SQUARES, ROW, ROW), '"weight", "bias"', '"bias", "weight"'),
]


@pytest.mark.parametrize(("op", "program", "arguments", "old", "new"), OTHER)
def test_another_attribute_is_another_meaning(op, program, arguments, old, new):
    """The judge of meanings knows each attribute: with another value, or with operands in other roles, the
    decomposition is not what it is named."""
    text = raised_of(PROGRAMS.get(program, program), arguments)
    assert [composite.op for composite in composites_of(text)] == [op]
    assert list(wrong_meanings(text)) == []
    assert old in text
    assert len(list(wrong_meanings(text.replace(old, new)))) == 1


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


AXES = {  # arguments, and two programs
    "attention": ((HEADS, f32(2, 2, 6, 8), f32(2, 2, 6, 8)), grouped(SEEN), grouped(SEEN[:, None, :])),
    "rope": ((f32(6, 6, 8), f32(6, 4), f32(6, 4)), turned(0), turned(1)),
    "softmax": ((SQUARE,), *(partial(jax.nn.softmax, axis=axis) for axis in (0, 1))),
    "log_softmax": ((SQUARE,), *(partial(jax.nn.log_softmax, axis=axis) for axis in (0, 1))),
    "logsumexp": ((SQUARE,), *(partial(jax.nn.logsumexp, axis=axis) for axis in (0, 1))),
    "rms_norm": ((SQUARE,), normed(0), normed(1)),
    "layer_norm": ((SQUARE,), centred(0), centred(1)),
    "cumsum": ((SQUARE,), *(partial(jnp.cumsum, axis=axis) for axis in (0, 1))),
    "argmax": ((SQUARE,), *(partial(jnp.argmax, axis=axis) for axis in (0, 1))),
    "linear": ((SQUARE, SQUARE, f32(8)), lambda x, w, b: x @ w + b, lambda x, w, b: x @ w.T + b),
    "one_hot": ((i32(8),), *(partial(jax.nn.one_hot, num_classes=8, axis=axis) for axis in (0, 1))),
    "take_along_axis": ((SQUARE, i32(8, 8)), *(partial(jnp.take_along_axis, axis=axis) for axis in (0, 1))),
}


@pytest.mark.few(6)
@pytest.mark.parametrize("op", AXES)
def test_attributes_say_which_axis(op):
    """Where sizes are equal, each of two programs is found, computes what its attributes say, and has other ones than
    the other."""
    arguments, *functions = AXES[op]
    texts = [raised_of(function, arguments) for function in functions]
    one, other = (found_in(text, op) for text in texts)
    assert [] != one != other != []
    assert [list(wrong_meanings(text)) for text in texts] == [[], []]


def test_what_attributes_and_inputs_of_attention_say():
    """Of two causal masks the narrower one, of three positions, is the attribute. A transpose of an operand that others
    take as well is within the composite: the layout is that of its operand."""

    def windowed(q, k, v):
        near = jnp.triu(SEEN, -2) & SEEN
        return jax.nn.softmax(jnp.where(near, jnp.where(SEEN, q @ k.T, -jnp.inf), -jnp.inf)) @ v

    def transposed(q, k, v):
        turned = jnp.transpose(k, (0, 2, 1))
        return jax.nn.softmax(q @ turned) @ v, turned

    text = raised_of(windowed, [f32(6, 8)] * 3)
    [attention] = found_in(text, "attention")
    assert (attention["causal"], attention["window"], list(wrong_meanings(text))) == (True, 3, [])
    [attention] = hl.raise_named(jax.jit(transposed).lower(*[f32(2, 4, 6)] * 3)).named
    layouts = attention.attributes["layout"].split("->")[0].split(",")
    assert [len(kind.split("x")) - 1 for kind in attention.inputs.values()] == [len(layout) for layout in layouts]
    assert attention.further == 1


ALONG_THE_OTHER = {
    "the weight of rms_norm": (lambda x, w: normed(1)(x) * w[:, None], SQUARE, f32(8)),
    "the weight of layer_norm": (lambda x, w: centred(1)(x) * w[:, None], SQUARE, f32(8)),
    "a weight of two axes": (lambda x, w: normed((1, 2))(x) * w.T, CUBE, f32(6, 6)),
    "a bias": (lambda x, w, b: x @ w + b[:, None], SQUARE, SQUARE, f32(8)),
    "a softmax of what is seen": (lambda x, s: jax.nn.softmax(x, where=s[:, None] > 0, axis=1), SQUARE, f32(8)),
    "a mask of keys": (lambda q, k, v, m: jax.nn.softmax(q @ k.T + m[:, None]) @ v, *[SQUARE] * 3, f32(8)),
    "a cache": (lambda c, n, p: lax.dynamic_update_slice(c, n, (0, p)), SQUARE, f32(8, 1), i32()),
    "rows of a table": (lambda t, p: jnp.take(t.T, p, axis=0, mode="clip"), SQUARE, i32(8)),
    "the largest": (lambda x: lax.top_k(x.T, 3)[0].T, SQUARE),
}


@pytest.mark.parametrize("what", ALONG_THE_OTHER)
def test_an_operand_along_the_other_axis_is_seen(what):
    """What is found of a program whose operand runs along the other one of two equal axes is what it is named."""
    function, *arguments = ALONG_THE_OTHER[what]
    assert list(wrong_meanings(raised_of(function, arguments))) == []


def heads(q, k, v, of_values="bhkd"):
    """Batch, heads, positions, elements; as many of the first two."""
    return jnp.einsum(f"bhqk,{of_values}->bhqd", jax.nn.softmax(jnp.einsum("bhqd,bhkd->bhqk", q, k)), v)


def groups(q, k, v, of_queries="btkgh"):
    """Positions before groups; as many of both."""
    return jnp.einsum("bkgts,bskh->bkgth", jax.nn.softmax(jnp.einsum(f"{of_queries},bskh->bkgts", q, k)), v)


def masked(q, k, v, seen):
    return jax.nn.softmax(jnp.where(seen, q @ k.T, -1e9)) @ v


def no_weights_of_empty_rows(q, k, v, added):
    scores = q @ k.T + added
    return jnp.where(jnp.all(scores == -jnp.inf, -1, keepdims=True), 0.0, jax.nn.softmax(scores)) @ v


EVEN, ROWS_OF_8, SHARED = f32(4, 4, 8, 8), [SQUARE] * 3, f32(2, 2, 8, 16)
APART = {  # pairs of attentions that take the same operands and compute something else
    "values with heads first": (heads, lambda q, k, v: heads(q, k, v, "hbkd"), EVEN, EVEN, EVEN),
    "groups and positions": (
        *(groups, lambda q, k, v: groups(q, k, v, "bgkth")),
        *(f32(2, 4, 2, 4, 8), f32(2, 6, 2, 8), f32(2, 6, 2, 8)),
    ),
    "groups tiled": (
        lambda q, k, v: heads(q, jnp.repeat(k, 4, axis=1), jnp.repeat(v, 4, axis=1)),
        lambda q, k, v: heads(q, jnp.tile(k, (1, 4, 1, 1)), jnp.tile(v, (1, 4, 1, 1))),
        *(f32(2, 8, 8, 16), SHARED, SHARED),
    ),
    "mask of keys or queries": (
        lambda q, k, v, seen: masked(q, k, v, seen[None]),
        lambda q, k, v, seen: masked(q, k, v, seen[:, None]),
        *(*ROWS_OF_8, boolean(8)),
    ),
    "mask transposed": (masked, lambda q, k, v, seen: masked(q, k, v, seen.T), *ROWS_OF_8, boolean(8, 8)),
    "empty rows": (lambda q, k, v, m: jax.nn.softmax(q @ k.T + m) @ v, no_weights_of_empty_rows, *ROWS_OF_8, SQUARE),
}


@pytest.mark.parametrize("pair", APART)
def test_what_is_not_the_same_attention_is_told_apart(pair):
    """What a consumer sees, operands' places, attributes, types, tells apart composites that compute something else."""
    one, other, *arguments = APART[pair]
    found = []
    for function in (one, other):
        lines = [line.partition("=")[2] for line in raised_of(function, arguments).splitlines()]
        lines = [line for line in lines if '"hl.attention"' in line]
        found.append([re.sub(r"decomposition = @\S+|loc\(.*", "", line) for line in lines])
    assert found[0] != found[1] or found[0] == []


CHANGED = {
    "softmax": (lambda x: (e := jnp.exp(x - x.max(-1, keepdims=True))) / e.sum(-1, keepdims=True), SQUARES),
    "logsumexp": (lambda x: (m := x.max(2)) + jnp.log(jnp.exp(x - m[..., None]).sum(2)), SQUARES),
    "layer_norm": (layer_norm, SQUARES, ROW, ROW),
    "rms_norm": (lambda x, w: normed(1, 0.1)(x) * (1 + w), SQUARES, ROW),
    "batch_norm": (lambda x, w, b, m, v: (x - m) * lax.rsqrt(v + 0.1) * w + b, SQUARES, *[ROW] * 4),
    "gelu": (lambda x: 0.5 * x * (1 + jnp.tanh(0.7978845608 * (x + 0.044715 * x * x * x))), SQUARES),
    "linear": (lambda x, w, b: x @ w + b, f32(4, 4), f32(4, 4), ROW),
    "embedding_lookup": (lambda table, tokens: jnp.take(table, tokens, axis=0), f32(4, 4), i32(4, 4)),
    "take_along_axis": (lambda x, positions: jnp.take_along_axis(x, positions, axis=1), f32(4, 4), i32(4, 4)),
    "one_hot": (lambda labels: jax.nn.one_hot(labels, 4), i32(4)),
    "argmax": (lambda x: jnp.argmax(x, axis=1), f32(4, 4)),
    "top_k": (top_k, f32(4, 4)),
    "cumsum": (lambda x: lax.associative_scan(jnp.add, x, axis=1), f32(4, 4)),
    "kv_cache_update": (
        jax.vmap(lambda c, n, p: lax.dynamic_update_slice(c, n, (p, 0))),
        *(SQUARES, f32(4, 1, 4), i32(4)),
    ),
}


@SWEPT
@pytest.mark.parametrize("name", CHANGED)
def test_what_is_found_in_a_mutant_is_what_it_is_named(name):
    """With one op changed, what is still found computes its op; most mutants hold none."""
    function, *arguments = CHANGED[name]
    text, told = Case(name, "square", function, tuple(arguments)).text(), []
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
