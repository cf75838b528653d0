"""The attributes of a composite are those of the vocabulary, whoever writes it: `raise`, or `hl.named` in a model."""

import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import pytest

import hlo_lower as hl
from hlo_lower.ir import mlir
from hlo_lower.ir.reader import read
from hlo_lower.ops.vocabulary import BY_NAME

sys.path.insert(0, str(Path(__file__).parents[2] / "scripts"))

from recall import layers, lookups, softmaxes
from recall.case import Case, Suite, f32, i32
from recall.decoders import DECODERS
from recall.finder import raised
from recall.meaning import composites_of, wrong_meanings
from recall.programs import HITS

SOME = [
    case
    for file in (layers, lookups, softmaxes)
    for suite in vars(file).values()
    if isinstance(suite, Suite)
    for case in suite.cases[:1]
]
"""Programs of each library."""


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
    """Each with one of its values, and all that have no empty default."""
    assert [(case.name, list(found)) for case in SOME if (found := [*foreign(raised(case.text()))])] == []


@pytest.mark.sweep
@pytest.mark.parametrize("case", [*HITS, *DECODERS], ids=lambda case: case.name)
def test_attributes_and_operands_of_all_programs_are(case):
    """The same of every program."""
    assert list(foreign(raised(case.text()))) == []


def attributes_in(text):
    """The attributes of the only composite of a module, as they are written."""
    graph = read(text)
    with mlir.active(graph.context):
        [composite] = mlir.named(graph.module.operation, {"stablehlo.composite"})[0]
        return str(composite.attributes["composite_attributes"]), str(composite.attributes["version"])


PROGRAMS = {case.name.split("/")[1]: case.function for case in HITS}
X, ROW = f32(4, 8), f32(8)


def norm(x, w):
    return x * jax.lax.rsqrt((x * x).mean(-1, keepdims=True) + 0.25) * w


NAMED = {
    "rms_norm": (norm, (X, ROW), {"axes": -1, "epsilon": 0.25}),
    "softmax": (lambda x: jax.nn.softmax(x, axis=0), (X,), {"axis": 0}),
    "linear": (lambda x, w, b: x @ w + b, (X, f32(8, 8), ROW), {}),
    "embedding_lookup": (lambda t, p: t[p], (X, i32(3)), {"negative": "from_end", "outside": "clamp"}),
    "top_k": (lambda x: jax.lax.top_k(x, 2), (X,), {"k": 2, "axis": -1}),
}


@pytest.mark.parametrize("name", NAMED)
def test_a_named_function_and_what_is_found_in_it_have_the_same_attributes(name):
    """`hl.named` and `raise` write floats, whole numbers, lists and defaults alike."""
    function, arguments, attributes = NAMED[name]
    found = raised(Case(name, "plain", function, arguments).text())
    named = jax.jit(hl.named(name, **attributes)(function)).lower(*arguments).as_text()
    assert attributes_in(found) == attributes_in(named)


def test_a_rotation_by_complex_numbers_has_one_table():
    """`rope` takes x, cos, sin, or x and rotation; the operands are told by how many there are."""
    turn = hl.named("rope", pairs="interleaved", axes=())(lambda x, rotation: x * rotation.real)
    assert '["x", "rotation"]' in jax.jit(turn).lower(X, f32(8)).as_text()


CACHE = f32(2, 8, 4, 3), f32(2, 2, 4, 3), i32(2)

WRONG = (
    (
        "embedding_lookup",
        PROGRAMS["embedding_lookup_by_take"],
        (f32(8, 4), i32(6)),
        'outside = "fill"',
        'outside = "clamp"',
    ),
    ("take_along_axis", PROGRAMS["take_along_axis"], (X, i32(4, 3)), 'negative = "from_end"', 'negative = "outside"'),
    ("one_hot", PROGRAMS["one_hot_first_axis"], (i32(10),), "axis = 0", "axis = 1"),
    ("top_k", PROGRAMS["top_k"], (X,), "largest = true", "largest = false"),
    ("cumsum", PROGRAMS["cumsum_by_windows"], (f32(8, 8),), "axis = 1", "axis = 0"),
    ("linear", PROGRAMS["linear_plain"], (f32(4, 4), f32(4, 4), f32(4)), "transposed = false", "transposed = true"),
    ("kv_cache_update", PROGRAMS["kv_cache_update_mapped"], CACHE, 'outside = "clamp"', 'outside = "drop"'),
)


@pytest.mark.parametrize(("op", "function", "arguments", "old", "new"), WRONG, ids=[row[0] for row in WRONG])
def test_another_attribute_is_another_meaning(op, function, arguments, old, new):
    """The judge of meanings knows each attribute: with another value the decomposition is not what it is named."""
    text = raised(Case(op, "plain", function, arguments).text())
    assert list(wrong_meanings(text)) == []
    assert old in text
    assert len(list(wrong_meanings(text.replace(old, new)))) == 1


def test_inputs_have_the_shapes_that_attributes_count():
    """A transpose of an operand that others take as well is within the composite: the layout is that of its operand."""

    def attend(q, k, v):
        turned = jnp.transpose(k, (0, 2, 1))
        return jax.nn.softmax(q @ turned) @ v, turned

    [attention] = hl.raise_named(jax.jit(attend).lower(*[f32(2, 4, 6)] * 3)).named
    layouts = attention.attributes["layout"].split("->")[0].split(",")
    assert [len(kind.split("x")) - 1 for kind in attention.inputs.values()] == [len(layout) for layout in layouts]
    assert attention.further == 1
