"""The one form is judged: each rewrite is derived, and a wrong one is told to differ."""

import pytest
from untyped_mlir import module

import hlo_lower as hl
from hlo_lower.lowering.linalg import moved_forms, one_form

TURNED = "%t = transpose %x, dims = [1, 0, 2] -> 3x3x3xf32; %r = transpose %t, dims = [0, 2, 1] -> 3x3x3xf32"
SPREAD = "%t = broadcast_in_dim %v, dims = [1] -> 3x4xf32; %r = broadcast_in_dim %t, dims = [0, 2] -> 3x4x4xf32"
LAYER = (
    "%f = reshape %x -> 6x4xf32; %y = dot_general %f, %w, contracting_dims = [1] x [0] -> 6x5xf32; "
    "%b = broadcast_in_dim %v, dims = [1] -> 6x5xf32; %s = add %b, %y; %r = reshape %s -> 2x3x5xf32"
)
SOURCES = {
    "transposes": ("%x: 3x3x3xf32", TURNED),
    "broadcasts": ("%v: 4xf32", SPREAD),
    "a layer": ("%x: 2x3x4xf32, %w: 4x5xf32, %v: 5xf32", LAYER),
    "relu": (
        "%x: 4xf32",
        "%z = constant 0.0 : 4xf32; %p = compare LE, %x, %z; %r = select %p, %z, %x",
    ),
    "logistic": (
        "%x: 4xf32",
        "%o = constant 1.0 : 4xf32; %n = negate %x; %e = exponential %n; %s = add %e, %o; %r = divide %o, %s",
    ),
}


def verdict_of(name):
    """What verification says of a small module for linalg."""
    source = module(*SOURCES[name])
    return hl.verify(source, hl.lower(source, target="linalg"), level="regions")


@pytest.mark.parametrize("name", SOURCES)
def test_each_rewrite_is_derived(name):
    """For all inputs, and the verdict says so beside what it says of the module; what a maximum gives is tested."""
    verdict = verdict_of(name)
    assert verdict.ok
    assert verdict.one_form.counts().keys() == {"tested" if name == "relu" else "derived"}
    told = f"one form: {sum(verdict.one_form.counts().values())} rewrite"
    assert told in verdict.summary()
    assert verdict.to_json()["one_form"]["ok"]


def _wrong_transpose(build, node):
    """The inner permutation after the outer one."""
    inner = moved_forms.made_by(node.operand(0), "stablehlo.transpose")
    if inner is None:
        return None
    last, first = node.integers("permutation"), inner.integers("permutation")
    order = [last[dim] for dim in first]
    return build.transpose(inner.operand(0), order)


def _wrong_broadcast(build, node):
    """One dim of two of the same extent for the other."""
    inner = moved_forms.made_by(node.operand(0), "stablehlo.broadcast_in_dim")
    return None if inner is None else build.broadcast(inner.operand(0), node.result().static_shape, [1])


def _wrong_bias(build, node):
    """A sum of the layer twice, without the bias."""
    first, second = node.operands
    return build.add(second, second) if first != second else None


def _wrong_relu(build, node):
    """The greater one for the lesser."""
    _, zero, value = node.operands
    return build.minimum(value, zero)


WRONG = {
    "stablehlo.transpose": ("transposes", _wrong_transpose),
    "stablehlo.broadcast_in_dim": ("broadcasts", _wrong_broadcast),
    "stablehlo.add": ("a layer", _wrong_bias),
    "stablehlo.select": ("relu", _wrong_relu),
}


@pytest.mark.parametrize("op", WRONG)
def test_a_wrong_rewrite_is_refused(op, monkeypatch):
    """The verdict differs, in the one form alone; so `convert` writes nothing."""
    name, rule = WRONG[op]
    monkeypatch.setitem(one_form._RULES, op, (rule,))
    verdict = verdict_of(name)
    assert (verdict.differs, verdict.exit_code) == (True, 1), verdict.lines()
    assert any("one form: differs" in line for line in verdict.lines()), verdict.lines()
    assert not any(region.status == "differs" for region in verdict.regions)
