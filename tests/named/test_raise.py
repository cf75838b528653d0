"""Raising: what becomes of a module, that nothing of it is lost, and that writing out again gives it back."""

import re
from collections import Counter

import jax
import jax.numpy as jnp
import pytest

import hlo_lower as hl
from hlo_lower.ir.writer import to_text

X, W = jax.ShapeDtypeStruct((2, 4, 8), jnp.float32), jax.ShapeDtypeStruct((8,), jnp.float32)


def attended(x):
    """Attention of a value to itself."""
    return jax.nn.softmax(jnp.einsum("bqh,bkh->bqk", x, x) * 0.5) @ x


def text_of(function, *arguments):
    """The module of a function."""
    return jax.jit(function).lower(*arguments).as_text()


def rms(x, w):
    """RMS norm."""
    return w * (x * jax.lax.rsqrt(jnp.mean(x * x, -1, keepdims=True) + 1e-6))


def lines(text):
    """The ops of a module without the names of values and functions, constants left out; how many of each."""
    stripped = (re.sub(r"[%@][\w.#:]+", "%", line.strip()) for line in text.splitlines())
    return Counter(line for line in stripped if "stablehlo.constant" not in line)


def composites(text):
    """The names of the composites in a text."""
    return re.findall(r'composite "hl\.(\w+)"', text)


def two_norms_and_a_softmax(x, w):
    """Two norms that are the same but for what they take, then a softmax."""
    return jax.nn.softmax(rms(rms(x, w) + 1, w), axis=-1)


def test_composites_stand_in_the_place_of_named_ops():
    """What is the same but for its operands shares a function, and constants are attributes."""
    raised = hl.raise_named(text_of(two_norms_and_a_softmax, X, W))
    assert composites(raised.text) == ["rms_norm", "rms_norm", "softmax"]
    assert raised.text.count("func.func private") == 2
    assert 'axes = [2], epsilon = 9.9999999747524271E-7 : f64, operands = ["x", "weight"]' in raised.text
    assert repr(raised) == "<Raised <module>: 3 named ops: 2 rms_norm, 1 softmax>"


PROGRAMS = {
    "norms": (two_norms_and_a_softmax, (X, W)),
    "silu in a function": (lambda x, w: jax.nn.silu(x) + jax.nn.silu(x * w), (X, W)),
    "a value in between is a result": (lambda x, w: (rms(x, w), jnp.mean(x * x, -1)), (X, W)),
    "gradients": (jax.grad(lambda x, w: (two_norms_and_a_softmax(x, w) ** 2).sum()), (X, W)),
    "attention": (attended, (X,)),
    "attention in a function": (lambda x: jax.nn.dot_product_attention(*[x[:, :, None]] * 3), (X,)),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_written_out_again_it_is_the_same(name):
    """Raised and written out, a module has the ops that it had; in between it is valid, and holds composites."""
    function, arguments = PROGRAMS[name]
    before = text_of(function, *arguments)
    raised = hl.raise_named(before).text
    assert composites(raised)
    assert lines(before) == lines(to_text(hl.inline_named(raised)))


def test_a_raised_module_computes_the_same():
    """Verification finds a raised module equal, bit for bit."""
    before = text_of(two_norms_and_a_softmax, X, W)
    verdict = hl.verify(before, hl.raise_named(before).text, level="regions")
    assert verdict.ok


def test_the_graph_of_a_caller_is_left_as_it_is():
    """What is raised is a copy."""
    graph = hl.read(text_of(two_norms_and_a_softmax, X, W))
    before = to_text(graph)
    hl.raise_named(graph)
    assert before == to_text(graph)


def test_an_operand_that_is_computed_several_times_is_one():
    """A softmax whose operand is transposed anew for each use of it takes the first transpose."""

    def function(x):
        power = jnp.exp(x.T - x.T.max(-1, keepdims=True))
        return (power / jnp.exp(x.T - x.T.max(-1, keepdims=True)).sum(-1)[:, None]).T

    before = jax.jit(function).lower(jax.ShapeDtypeStruct((8, 4), jnp.float32)).as_text()
    raised = hl.raise_named(before)
    assert [(one.name, one.inputs) for one in raised.named] == [("softmax", {"x": "4x8xf32"})]
    assert hl.verify(before, raised.text, level="regions").ok


def test_raising_twice_is_raising_once():
    """In the decompositions of composites nothing is raised again."""
    once = hl.raise_named(text_of(two_norms_and_a_softmax, X, W)).text
    assert once == hl.raise_named(once).text


def test_the_largest_wins_and_holds_the_smaller():
    """A softmax within an attention is a composite of its decomposition."""
    raised = hl.raise_named(text_of(attended, X))
    [found] = raised.named
    assert (found.name, found.inner) == ("attention", ("softmax",))
    assert sorted(composites(raised.text)) == ["attention", "softmax"]


def test_only_those_that_are_asked_for():
    """Other names are left as they are, and an unknown one is an error that says which there are."""
    text = text_of(two_norms_and_a_softmax, X, W)
    assert composites(hl.raise_named(text, only=["softmax"]).text) == ["softmax"]
    with pytest.raises(hl.InputError, match="'softmaxx': no named op of that name") as error:
        hl.raise_named(text, only=["softmaxx"])
    assert "write 'softmax'" in str(error.value)
    assert "rms_norm" in error.value.facts


def test_ops_in_between_are_moved_behind():
    """An op that stands among those of a named op and takes one of them comes behind the composite."""
    text = """
    func.func public @main(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<f32>) {
      %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
      %zero = stablehlo.constant dense<0.0> : tensor<f32>
      %m = stablehlo.reduce(%x init: %low) applies stablehlo.maximum across dimensions = [0]
        : (tensor<4xf32>, tensor<f32>) -> tensor<f32>
      %other = stablehlo.sine %m : tensor<f32>
      %mb = stablehlo.broadcast_in_dim %m, dims = [] : (tensor<f32>) -> tensor<4xf32>
      %d = stablehlo.subtract %x, %mb : tensor<4xf32>
      %e = stablehlo.exponential %d : tensor<4xf32>
      %s = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [0]
        : (tensor<4xf32>, tensor<f32>) -> tensor<f32>
      %sb = stablehlo.broadcast_in_dim %s, dims = [] : (tensor<f32>) -> tensor<4xf32>
      %r = stablehlo.divide %e, %sb : tensor<4xf32>
      return %r, %other : tensor<4xf32>, tensor<f32>
    }"""
    raised = hl.raise_named(text)
    assert [one.further for one in raised.named] == [1]
    assert raised.text.index("composite") < raised.text.index("sine")
    assert hl.verify(text, raised.text, level="regions").ok


def test_an_input_that_depends_on_the_op_is_refused():
    """A weight that is made of the normalized value cannot be an operand: the norm ends before it."""

    def function(x):
        normed = x * jax.lax.rsqrt(jnp.mean(x * x, -1, keepdims=True) + 1e-6)
        return normed * normed.sum((0, 1))

    raised = hl.raise_named(text_of(function, X))
    assert [one.attributes["weight"] for one in raised.named] == ["none"]
    assert hl.verify(text_of(function, X), raised.text, level="regions").ok


def test_a_near_miss_says_what_it_lacks():
    """The report has each near miss with its place and a cause."""

    def function(x):
        e = jnp.exp(x - x.max(0, keepdims=True))
        return e / e.sum(-1, keepdims=True)

    [miss] = hl.raise_named(text_of(function, X)).misses
    assert (miss.name, miss.why.code.code) == ("softmax", "other_axes")


def test_a_raised_product_of_constants_is_verified():
    """What a composite of constants takes may stand in the second version alone: they are equal all the same."""
    text = """
    func.func public @main() -> tensor<6xf32> {
      %one = stablehlo.constant dense<1.0> : tensor<f32>
      %number = stablehlo.constant dense<1.5> : tensor<f32>
      %ones = stablehlo.broadcast_in_dim %one, dims = [] : (tensor<f32>) -> tensor<6xf32>
      %numbers = stablehlo.broadcast_in_dim %number, dims = [] : (tensor<f32>) -> tensor<6xf32>
      %same = stablehlo.multiply %ones, %numbers : tensor<6xf32>
      return %same : tensor<6xf32>
    }"""
    raised = hl.raise_named(text)
    assert [one.name for one in raised.named] == ["dropout"]
    assert hl.verify(text, raised.text, level="regions").ok
