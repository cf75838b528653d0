"""The one form is judged: each rewrite is derived, and a wrong one is told to differ."""

import pytest
from open_spellings import CLIP
from spellings import FIRST, POINTWISE
from untyped_mlir import module

import hlo_lower as hl
from hlo_lower.lowering.linalg import moved_forms, one_form

TURNED = "%t = transpose %x, dims = [1, 0, 2] -> 3x3x3xf32; %r = transpose %t, dims = [0, 2, 1] -> 3x3x3xf32"
SPREAD = "%t = broadcast_in_dim %v, dims = [1] -> 3x4xf32; %r = broadcast_in_dim %t, dims = [0, 2] -> 3x4x4xf32"
LAYER = (
    "%f = reshape %x -> 6x4xf32; %y = dot_general %f, %w, contracting_dims = [1] x [0] -> 6x5xf32; "
    "%b = broadcast_in_dim %v, dims = [1] -> 6x5xf32; %s = add %b, %y; %r = reshape %s -> 2x3x5xf32"
)
SUM = (
    "%t = transpose %x, dims = [1, 0, 2] -> 3x3x3xf32; %z = constant 0.0 : f32; "
    "%r = reduce(%t init: %z) applies stablehlo.add across dimensions = [0]"
)
MAXIMUM = (
    "%y = reshape %x -> 2x12x5xf32; %z = constant 0xFF800000 : f32; "
    "%a = reduce(%y init: %z) applies stablehlo.maximum across dimensions = [1]; "
    "%r = reduce(%a init: %z) applies stablehlo.maximum across dimensions = [1]"
)
CONVOLVED = (
    "%t = transpose %x, dims = [0, 3, 1, 2] -> 1x2x5x5xf32; "
    f"%y = convolution(%t, %k) {FIRST} -> 1x2x5x5xf32; %r = transpose %y, dims = [0, 2, 3, 1] -> 1x5x5x2xf32"
)
CLIP = CLIP.replace("?x8", "?x4").replace("constant 8", "constant 4")
SOURCES = {
    "transposes": ("%x: 3x3x3xf32", TURNED),
    "broadcasts": ("%v: 4xf32", SPREAD),
    "a layer": ("%x: 2x3x4xf32, %w: 4x5xf32, %v: 5xf32", LAYER),
    "relu": (
        "%x: 4xf32",
        "%z = constant 0.0 : 4xf32; %p = compare LE, %x, %z; %r = select %p, %z, %x",
    ),
    "a sum": ("%x: 3x3x3xf32", SUM),
    "a maximum": ("%x: 2x3x4x5xf32", MAXIMUM),
    "a convolution": ("%x: 1x5x5x2xf32, %k: 2x2x3x3xf32", CONVOLVED),
    "a convolution of one element": (
        "%x: 2x3x4x5xf32, %k: 6x3x1x1xf32",
        f"%r = convolution(%x, %k) {POINTWISE} -> 2x6x4x5xf32",
    ),
    "a layer of open sizes": (
        "%x: ?x3x4xf32, %w: 4x5xf32",
        """%d = get_dimension_size %x, dim = 0; %n = constant 3 : i32; %m = multiply %d, %n; %m1 = reshape %m -> 1xi32
        %e = constant 4 : 1xi32; %s = concatenate %m1, %e, dim = 0; %f = dynamic_reshape %x, %s -> ?x4xf32
        %y = dot_general %f, %w, contracting_dims = [1] x [0] -> ?x5xf32; %d1 = reshape %d -> 1xi32
        %t = constant [3, 5] : 2xi32; %u = concatenate %d1, %t, dim = 0; %r = dynamic_reshape %y, %u -> ?x3x5xf32""",
    ),
    "a sum of open sizes": (
        "%x: ?x3x4xf32",
        """%d = get_dimension_size %x, dim = 0; %d1 = reshape %d -> 1xi32; %e = constant 12 : 1xi32
        %s = concatenate %d1, %e, dim = 0; %f = dynamic_reshape %x, %s -> ?x12xf32; %z = constant 0.0 : f32
        %r = reduce(%f init: %z) applies stablehlo.add across dimensions = [1]""",
    ),
    "a clip of open sizes": ("%x: ?x4xf32", CLIP + "%m = maximum %x, %b; %r = minimum %m, %c"),
    "logistic": (
        "%x: 4xf32",
        "%o = constant 1.0 : 4xf32; %n = negate %x; %e = exponential %n; %s = add %e, %o; %r = divide %o, %s",
    ),
}


TESTED = ("relu", "a maximum", "a convolution")


def verdict_of(name):
    """What verification says of a small module for linalg."""
    source = module(*SOURCES[name])
    return hl.verify(source, hl.lower(source, target="linalg"), level="regions")


@pytest.mark.parametrize("name", SOURCES)
def test_each_rewrite_is_derived(name):
    """For all inputs, and the verdict says so beside what it says of the module; what a maximum gives is tested."""
    verdict = verdict_of(name)
    assert verdict.ok
    assert set(verdict.one_form.counts()) <= ({"derived", "tested"} if name in TESTED else {"derived"})
    told = f"one form: {sum(verdict.one_form.counts().values())} rewrite"
    assert told in verdict.summary()
    assert verdict.to_json()["one_form"]["ok"]


def _wrong_transpose(build, node):
    """The inner permutation after the outer one."""
    inner = moved_forms.static_maker(node.operand(0), "stablehlo.transpose")
    if inner is None:
        return None
    last, first = node.integers("permutation"), inner.integers("permutation")
    order = [last[dim] for dim in first]
    return build.transpose(inner.operand(0), order)


def _wrong_broadcast(build, node):
    """One dim of two of the same extent for the other."""
    inner = moved_forms.static_maker(node.operand(0), "stablehlo.broadcast_in_dim")
    return None if inner is None else build.broadcast(inner.operand(0), node.result().static_shape, [1])


def _wrong_bias(build, node):
    """A sum of the layer twice, without the bias."""
    first, second = node.operands
    return build.add(second, second) if first != second else None


def _wrong_relu(build, node):
    """The greater one for the lesser."""
    _, zero, value = node.operands
    return build.minimum(value, zero)


def _wrong_sum(build, node):
    """Along the dim of this number of what was not turned."""
    turn = moved_forms.static_maker(node.operand(0), "stablehlo.transpose")
    if turn is None:
        return None
    return build.copy_on(node, [turn.operand(0), node.operand(1)], [node.result().raw.type], {}).result()


def _wrong_convolution(build, node):
    """Of the input with its rows as columns, which is as large."""
    if moved_forms.static_maker(node.operand(0), "stablehlo.transpose") is None:
        return None
    turned = build.transpose(node.operand(0).node.operand(0), [0, 3, 2, 1])
    return build.copy_on(node, [turned, node.operand(1)], [node.result().raw.type], {}).result()


def _wrong_clip(build, node):
    """Between the bounds in each other's place."""
    inner = moved_forms.maker_named(node.operand(0), "stablehlo.maximum")
    bounds = [moved_forms.scalar_at(build, one) for one in (node.operand(1), inner.operand(1))]
    return build.clamp(bounds[0], inner.operand(0), bounds[1])


WRONG = {
    "stablehlo.reduce": ("a sum", _wrong_sum),
    "stablehlo.convolution": ("a convolution", _wrong_convolution),
    "stablehlo.minimum": ("a clip of open sizes", _wrong_clip),
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
