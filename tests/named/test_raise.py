"""Raising: what becomes of a module, that nothing of it is lost, and that writing out again gives it back."""

import re
from collections import Counter
from pathlib import Path

import jax
import jax.numpy as jnp
import pytest
from test_corpus import MODULES, name, needs_corpus
from untyped_mlir import module

import hlo_lower as hl
from hlo_lower.ir import mlir
from hlo_lower.ir.reader import read
from hlo_lower.ir.writer import to_text
from hlo_lower.named.match.axis_atoms import Atom, View, dealt, leaves
from hlo_lower.named.match.matches import Match
from hlo_lower.named.match.terms import Terms
from hlo_lower.named.take_out.region import BlockOrder, region_of
from hlo_lower.ops.purity import Functional

HERE = Path(__file__).parent
X, W = jax.ShapeDtypeStruct((2, 4, 8), jnp.float32), jax.ShapeDtypeStruct((8,), jnp.float32)
WIDE, TALL = jax.ShapeDtypeStruct((2, 6, 4), jnp.float32), jax.ShapeDtypeStruct((8, 4), jnp.float32)


def text_of(function, *arguments):
    """The module of a function."""
    return jax.jit(function).lower(*arguments).as_text()


def attended(x):
    """Attention of a value to itself."""
    return jax.nn.softmax(jnp.einsum("bqh,bkh->bqk", x, x) * 0.5) @ x


def scaled(x):
    """RMS norm without a weight."""
    return x * jax.lax.rsqrt(jnp.mean(x * x, -1, keepdims=True) + 1e-6)


def rms(x, w):
    """RMS norm."""
    return w * scaled(x)


def two_norms_and_a_softmax(x, w):
    """Two norms that are the same but for what they take, then a softmax."""
    return jax.nn.softmax(rms(rms(x, w) + 1, w), axis=-1)


NORMS = text_of(two_norms_and_a_softmax, X, W)


def structure(graph):
    """For each function, how often each op stands there.

    An op is told by its name, attributes, types and regions and by what its operands are, all the way up; what is made
    of constants alone counts once, however often it stands there.
    """
    bodies = {name: function.body.raw for name, function in graph.functions.items() if function.has_body}
    arguments = {name: enumerate(body.arguments) for name, body in bodies.items()}
    return {
        name: _of_block(body, {value: (("argument", number), False) for number, value in arguments[name]})
        for name, body in bodies.items()
    }


def _of_block(block, known):
    found = Counter()
    for op in block.operations:
        told, is_constant = _told(op.operation, known)
        found[told] = 1 if is_constant else found[told] + 1
    return found


def _told(operation, known):
    """What an op computes, as a number; and whether it is made of constants alone."""
    taken, inner = [known[value] for value in operation.operands], []
    for region in operation.regions:
        for block in region.blocks:
            known.update({value: (("inner", number), False) for number, value in enumerate(block.arguments)})
            inner.append(tuple(sorted(_of_block(block, known).items())))
    types = [str(result.type) for result in operation.results]
    told = hash((operation.name, *_attributes(operation), *types, *(one for one, _ in taken), *inner))
    is_constant = len(types) > 0 and not inner and all(constant for _, constant in taken)
    known.update({value: ((told, number), is_constant) for number, value in enumerate(operation.results)})
    return told, is_constant


def _attributes(operation):
    """The attributes as text; the bindings have no form for constants of complex numbers."""
    if operation.name == "stablehlo.constant":
        return [str(operation).split(" = ", 1)[1]]
    return sorted(f"{name} = {attribute}" for name, attribute in mlir.attributes_of(operation).items())


def composites(text):
    """The names of the composites in a text."""
    return re.findall(r'composite "hl\.(\w+)"', text)


def test_composites_stand_in_the_place_of_named_ops():
    """What is the same but for its operands shares a function, and constants are attributes. The graph of a caller is
    left as it is, and in the decompositions nothing is raised again."""
    graph = hl.read(NORMS)
    before, raised = to_text(graph), hl.raise_named(graph)
    assert before == to_text(graph)
    assert composites(raised.text) == ["rms_norm", "rms_norm", "softmax"]
    assert raised.text.count("func.func private") == 2
    assert 'axes = [2], epsilon = 9.9999999747524271E-7 : f64, operands = ["x", "weight"]' in raised.text
    assert repr(raised) == "<Raised <module>: 3 named ops: 2 rms_norm, 1 softmax>"
    assert hl.raise_named(raised.text).text == raised.text
    assert hl.verify(NORMS, raised.text, level="regions").ok


PROGRAMS = {
    "norms": (two_norms_and_a_softmax, X, W),
    "silu in a function": (lambda x, w: jax.nn.silu(x) + jax.nn.silu(x * w), X, W),
    "a value in between is a result": (lambda x, w: (rms(x, w), jnp.mean(x * x, -1)), X, W),
    "gradients": (jax.grad(lambda x, w: (two_norms_and_a_softmax(x, w) ** 2).sum()), X, W),
    "attention": (attended, X),
    "attention in a function": (lambda x: jax.nn.dot_product_attention(*[x[:, :, None]] * 3), X),
}


@pytest.mark.parametrize("what", PROGRAMS)
def test_written_out_again_it_is_the_same(what):
    """Raised and written out, a module has the ops that it had; in between it is valid, and holds composites. A softmax
    within an attention is a composite of its decomposition."""
    before = text_of(*PROGRAMS[what])
    raised = hl.raise_named(before)
    assert composites(raised.text)
    assert structure(hl.read(before)) == structure(hl.inline_named(raised.text))
    if what == "attention":
        assert [(found.name, found.inner) for found in raised.named] == [("attention", ("softmax",))]
        assert sorted(composites(raised.text)) == ["attention", "softmax"]


def test_only_those_that_are_asked_for():
    """Other names are left as they are, and an unknown one is an error that says which there are; a near miss is
    reported with its place and a cause."""
    assert composites(hl.raise_named(NORMS, only=["softmax"]).text) == ["softmax"]
    with pytest.raises(hl.InputError, match="'softmaxx': no named op of that name") as error:
        hl.raise_named(NORMS, only=["softmaxx"])
    assert "write 'softmax'" in str(error.value)
    assert "rms_norm" in error.value.facts
    other_axes = text_of(lambda x: (e := jnp.exp(x - x.max(0, keepdims=True))) / e.sum(-1, keepdims=True), X)
    [miss] = hl.raise_named(other_axes).misses
    assert (miss.name, miss.why.code.code) == ("softmax", "other_axes")


def transposed_anew(x):
    """A softmax whose operand is transposed for each use of it."""
    power = jnp.exp(x.T - x.T.max(-1, keepdims=True))
    return (power / jnp.exp(x.T - x.T.max(-1, keepdims=True)).sum(-1)[:, None]).T


VERIFIED = {  # a module, and what is told of the named ops in it
    "an operand that is computed several times is one": (
        lambda: text_of(transposed_anew, TALL),
        lambda one: (one.name, one.inputs) == ("softmax", {"x": "4x8xf32"}),
    ),
    "an op in between comes behind the composite": (
        (HERE / "other_between.mlir").read_text,
        lambda one: one.further == 1,
    ),
    "a weight that is made of the normalized value is no operand": (
        lambda: text_of(lambda x: (y := scaled(x)) * y.sum((0, 1)), X),
        lambda one: one.attributes["weight"] == "none",
    ),
    "a constant that one named op keeps and another takes out": (
        (HERE / "kept_and_taken_out.mlir").read_text,
        lambda one: one.name == "layer_norm",
    ),
    "constants that stand in the second version alone": (
        (HERE / "dropout_of_constants.mlir").read_text,
        lambda one: one.name == "dropout",
    ),
}


@pytest.mark.parametrize("what", VERIFIED)
def test_what_is_raised_is_verified(what):
    source, is_right = VERIFIED[what]
    raised = hl.raise_named(source())
    [named] = raised.named
    assert is_right(named)
    assert "sine" not in raised.text or raised.text.index("composite") < raised.text.index("sine")
    assert hl.verify(source(), raised.text, level="regions").ok


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (lambda x: x.reshape(2, 3, 2, 4), ["a", "bc", "d"]),
        (lambda x: x.transpose(0, 2, 1).reshape(8, 6), ["a0", "b", "a1"]),
        (lambda x: jnp.broadcast_to(x[:, None], (2, 5, 6, 4)), ["a", "c", "d"]),
        (lambda x: jnp.repeat(x, 3, axis=1), ["a", "b0", "c"]),
        (lambda x: x.reshape(12, 4).reshape(2, 6, 4), ["a", "b", "c"]),
    ],
)
def test_axis_atoms_go_where_layout_puts_them(function, expected):
    """Each axis of the operand is made of the atoms of the result's axes, a, b, ..., that stand for it, in order."""
    graph = hl.read(text_of(function, WIDE))
    top = View.of(Terms(graph).of(graph.main.body.terminator.raw.operands[0]))
    root, letters = top.root(), {}
    for dim, letter in zip(range(len(top.axes)), "abcdefgh", strict=False):
        atoms = top.axis(dim)
        letters |= {atom: f"{letter}{number}" if len(atoms) > 1 else letter for number, atom in enumerate(atoms)}
    assert root.term.op == "argument"
    assert expected == ["".join(letters[atom] for atom in root.axis(dim)) for dim in range(len(root.axes))]


def test_axis_atoms_are_split_once_for_all_who_have_them():
    """A split atom is two wherever it stands; six and four elements as four and six have no common atoms: there the
    view ends."""
    atoms = (Atom(4), Atom(6))
    assert dealt(atoms, (6, 4)) is None
    assert [atom.extent for atom in leaves(atoms)] == [4, 6]
    atom = Atom(12)
    [axis] = dealt([atom], (12,))
    assert [len(part) for part in dealt([atom], (3, 4))] == [1, 1]
    assert [part.extent for part in leaves(axis)] == [3, 4]


@pytest.mark.sweep
@needs_corpus
@pytest.mark.parametrize("path", MODULES, ids=name)
def test_a_raised_module_of_a_framework_is_the_same(path):
    """Written out, each op is there as often as before, and takes what it took; verification, which knows nothing of
    what was found, shows or runs each part that became a composite."""
    text = path.read_text()
    raised = hl.raise_named(text)
    assert structure(hl.read(text)) == structure(hl.inline_named(raised.text))
    if raised.named:
        assert hl.verify(text, raised.text, level="regions").ok


def test_another_operand_is_another_structure():
    """The comparison sees an operand and an op that are others, and no names."""
    changes = ("add", "%a", "%0"), ("add", "%b", "%0"), ("multiply", "%a", "%0"), ("add", "%a", "%sum")
    one, other, changed, renamed = (
        structure(hl.read(module("%a: 4xf32, %b: 4xf32", f"{new} = {op} {first}, %b", new)))
        for op, first, new in changes
    )
    assert one == renamed
    assert one not in (other, changed)


def test_an_input_that_a_covered_op_makes_beside_another_result_keeps_a_region_in_place():
    """What a sort gives first is covered, what it gives second is an input: the sort cannot be taken out."""
    text = module(
        "%x: 4xf32, %y: 4xf32",
        """%s:2 = sort(%x, %y) <dimension = 0 : i64> {%a, %b, %c, %d: %p = compare LT, %a, %b; return %p}
        %r = add %s#0, %s#1; %q = add %x, %s#1; %t = add %q, %s#1""",
        "%r, %t",
    )
    graph = read(text)
    terms, order = Terms(graph), BlockOrder(mlir.body_of(graph.main.node.raw))
    first, second = (terms.of(value) for value in graph.main.body.terminator.raw.operands)
    sorted_second, is_function = first.operands[1], Functional(graph)
    x, y = map(terms.of, graph.main.body.raw.arguments)
    assert region_of(Match("swiglu", {"x": x, "y": y, "z": sorted_second}, [first]), order, is_function) is None
    near = Match("swiglu", {"x": x, "z": sorted_second}, [second])
    assert [op.name for op in region_of(near, order, is_function).operations] == ["stablehlo.add"] * 2
