"""Rules that do not work, of every kind of op: one clear error for all, or the next best rule."""

import pytest

import hlo_lower as hl
from hlo_lower.base.english import listed
from hlo_lower.base.registry import DoesNotApply, When
from hlo_lower.ir import mlir
from hlo_lower.ir.extents import retyped
from hlo_lower.lowering.kinds import KINDS, new_registry

PLACE, WINDOW = "scatter_dims_to_operand_dims = [0]", "inserted_window_dims = [0]"
GATHER = "offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1"


def scatter(n):
    """A scatter of one element."""
    return f"""func.func public @main(%x: tensor<{n}xf32>, %i: tensor<1xi32>, %u: tensor<f32>) -> tensor<{n}xf32> {{
  %r = "stablehlo.scatter"(%x, %i, %u) <{{scatter_dimension_numbers = #stablehlo.scatter<{WINDOW}, {PLACE}>}}> ({{
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    stablehlo.return %b : tensor<f32>
  }}) : (tensor<{n}xf32>, tensor<1xi32>, tensor<f32>) -> tensor<{n}xf32>
  return %r : tensor<{n}xf32>
}}
"""


def gather(n):
    """A gather of three rows."""
    return f"""func.func public @main(%x: tensor<{n}x4xf32>, %i: tensor<3x1xi32>) -> tensor<3x4xf32> {{
  %r = "stablehlo.gather"(%x, %i) <{{dimension_numbers = #stablehlo.gather<{GATHER}>,
    slice_sizes = array<i64: 1, 4>}}> : (tensor<{n}x4xf32>, tensor<3x1xi32>) -> tensor<3x4xf32>
  return %r : tensor<3x4xf32>
}}
"""


def unary(op):
    """An op of one tensor, and a function that a composite may name."""
    return f"""func.func public @main(%x: tensor<4xf32>) -> tensor<4xf32> {{
  %r = {op}
  return %r : tensor<4xf32>
}}
func.func private @double(%x: tensor<4xf32>) -> tensor<4xf32> {{
  %r = stablehlo.add %x, %x : tensor<4xf32>
  return %r : tensor<4xf32>
}}
"""


def sort(n):
    """A sort of one key."""
    return f"""func.func public @main(%x: tensor<{n}xi32>) -> tensor<{n}xi32> {{
  %r = "stablehlo.sort"(%x) <{{dimension = 0 : i64, is_stable = true}}> ({{
  ^bb0(%a: tensor<i32>, %b: tensor<i32>):
    %c = stablehlo.compare LT, %a, %b, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  }}) : (tensor<{n}xi32>) -> tensor<{n}xi32>
  return %r : tensor<{n}xi32>
}}
"""


F = "tensor<4xf32>"
MODULES = {
    "stablehlo.scatter": (scatter("8"), {}),
    "stablehlo.scatter of dynamic shape": (scatter("?"), {}),
    "stablehlo.gather": (gather("8"), {"gather": "in_bounds"}),
    "stablehlo.gather of dynamic shape": (gather("?"), {"gather": "in_bounds"}),
    "stablehlo.reverse": (
        unary(f"stablehlo.reverse %x, dims = [0] : {F}"),
        {"refused": {"stablehlo.reverse": "none", "stablehlo.scatter": "lowered"}},
    ),
    "stablehlo.composite": (
        unary(f'stablehlo.composite "my.double" %x {{decomposition = @double}} : ({F}) -> {F}'),
        {"legalize": True},
    ),
    "stablehlo.custom_call": (
        unary(
            f"stablehlo.custom_call @mhlo.square(%x) {{mhlo.attributes = {{}}, mhlo.version = 1 : i64}} : ({F}) -> {F}"
        ),
        {"legalize": True},
    ),
    "stablehlo.sort": (sort(8), {"refused": {"stablehlo.sort": "none", "stablehlo.scatter": "lowered"}}),
    "control flow": (
        unary(f"stablehlo.optimization_barrier %x : {F}"),
        {"refused": {"stablehlo.optimization_barrier": "none", "stablehlo.scatter": "lowered"}},
    ),
    "op": (
        unary(f"stablehlo.round_nearest_afz %x : {F}"),
        {"refused": {"stablehlo.round_nearest_afz": "none", "stablehlo.scatter": "lowered"}},
    ),
    "linear algebra": (
        unary(f"stablehlo.cholesky %x, lower = true : {F}").replace("4xf32", "4x4xf32"),
        {"refused": {"stablehlo.cholesky": "none", "stablehlo.scatter": "lowered"}},
    ),
    "older op": (
        unary(f"stablehlo.broadcast %x, sizes = [] : ({F}) -> {F}"),
        {"refused": {"stablehlo.broadcast": "none", "stablehlo.scatter": "lowered"}},
    ),
    "op in a form": (
        unary(f"stablehlo.constant dense<0x7F800000> : {F}"),
        {"refused_forms": ["constant Inf"]},
    ),
    "op of many dims": (
        unary(f"stablehlo.abs %x : {F}").replace("4xf32", "4x1x1x1x1xf32"),
        {"max_rank": {"*": 4}},
    ),
    "chlo.": (unary(f"chlo.square %x : {F} -> {F}"), {"legalize": True}),
    "stablehlo. on integers": (
        unary(f"stablehlo.abs %x : {F}").replace("f32", "i8"),
        {"op_dtypes": {"stablehlo.abs": ["i32"]}},
    ),
    "stablehlo. on complex numbers": (
        unary(f"stablehlo.negate %x : {F}").replace("f32", "complex<f32>"),
        {"op_dtypes": {"stablehlo.negate": ["f32"]}},
    ),
    "stablehlo. on floats": (
        unary(f"stablehlo.abs %x : {F}").replace("f32", "bf16"),
        {"op_dtypes": {"stablehlo.abs": ["f32"]}},
    ),
}
"""For each kind a module with one op of it, and what a target says that wants it lowered."""


def op_of(kind):
    """The name of a kind's op, as it stands in its module."""
    begun = {"chlo.": "chlo.square", "stablehlo.": "stablehlo.abs"}
    others = {"control flow": "stablehlo.optimization_barrier", "op": "stablehlo.round_nearest_afz"}
    others |= {
        "op of many dims": "stablehlo.abs",
        "op in a form": "stablehlo.constant",
        "linear algebra": "stablehlo.cholesky",
        "older op": "stablehlo.broadcast",
    }
    others["stablehlo. on complex numbers"] = "stablehlo.negate"
    name = kind.partition(" ")[0]
    return others.get(kind) or begun.get(name, name)


def built_in_rules():
    """The built-in rules; that no two contradict each other is tested elsewhere, and takes its time."""
    registry = new_registry()
    for kind in KINDS:
        for family in kind.families:
            registry.extend(family)
    return registry


def registry_with(kind, lowering, when=None):
    """The built-in rules and one that beats each of those that fit the kind's module."""
    registry, values, domains = built_in_rules(), {}, {}

    def note(facts):
        values.update({fact: {facts[fact]} for fact in domains})
        return False

    domains = next(own.domains for own in KINDS if own.name == kind)

    def noting(op):
        return ()

    probe = built_in_rules()
    probe.lowers(kind, when=When("noting", note))(noting)
    hl.lower(MODULES[kind][0], target=target_of(kind), registry=probe)
    lowering.__name__ = "any_to_mine"
    registry.extend(rule_list(kind, lowering, values, when), origin="mine 1.0")
    return registry


def rule_list(kind, lowering, constraints, when):
    """A plug-in's list of one rule."""
    rules = hl.RuleList()
    rules.lowers(kind, form="mine", when=when or When("always", lambda facts: True), **constraints)(lowering)
    return rules


def target_of(kind, **more):
    """A target that wants the op of a kind lowered."""
    says = {"refused": {"stablehlo.scatter": "lowered"}, **MODULES[kind][1]}
    says["refused"] = {**says["refused"], **more}
    return hl.Target("npu", **says)


def test_every_kind_has_a_module():
    """A kind without one would not be tried."""
    assert {kind.name for kind in KINDS} == set(MODULES)


def wrong_shape(op):
    """One value more than there is of anything."""
    return [op.build.constant(0, (7,), "i8")]


BROKEN = {
    "raises": (lambda op: {}["key"], "raised KeyError: 'key'"),
    "a Python number": (lambda op: [3], "gives a Python int instead of tensor<"),
    "not iterable": (lambda op: 3, "gives a Python int instead of tensor<"),
    "a string": (lambda op: "xy", "gives a Python str instead of tensor<"),
    "None": (lambda op: None, "gives a Python NoneType instead of tensor<"),
    "nothing": (lambda op: (), "gives nothing instead of tensor<"),
    "too many": (lambda op: wrong_shape(op) * 2, "gives tensor<7xi8>, tensor<7xi8> instead of tensor<"),
    "another type": (wrong_shape, "gives tensor<7xi8> instead of tensor<"),
}


@pytest.mark.parametrize("how", BROKEN)
@pytest.mark.parametrize("kind", MODULES)
def test_a_rule_that_does_not_work_is_told_alike_for_every_kind(kind, how):
    """The error has four lines: where, which op and rule and what it did; its place; what to do. Nothing is lowered."""
    lowering, says = BROKEN[how]
    registry = registry_with(kind, lambda op: lowering(op))
    with pytest.raises(hl.NotLoweredError) as error:
        hl.lower(MODULES[kind][0], target=target_of(kind), registry=registry, name="m.mlir")
    what, facts, following = str(error.value).splitlines()
    assert what.startswith("m.mlir:")
    assert f"{op_of(kind)}" in what
    assert f": the rule any_to_mine {says}" in what
    assert facts.startswith("  facts:   the rule is at rewrite/test_broken_rules.py:")
    assert facts.endswith("(mine 1.0)")
    assert following.startswith("  next:    report it to whoever wrote the rule")
    assert error.value.exit_code == 3


@pytest.mark.parametrize("kind", MODULES)
def test_the_next_best_rule_is_taken_for_every_kind(kind):
    """Where a plug-in's rule builds what the target refuses, or says that it does not apply, the module comes out as
    without it."""
    text = MODULES[kind][0]
    # What is built of complex numbers may be lowered afterwards where there is a rule, as there is for popcnt.
    refused_op = "stablehlo.not" if "complex" in kind else "stablehlo.popcnt"

    def illegal(op):
        op.build.op(refused_op, [scalar := op.build.constant(0, (), "i8")], [scalar.raw.type])
        return results_of(op)

    def unwilling(op):
        op.build.constant(0, (), "i8")
        raise DoesNotApply("not today")

    target = target_of(kind, **{refused_op: "no kernel"})
    expected = hl.lower(text, target=target)
    for lowering in (illegal, unwilling):
        lowered = hl.lower(text, target=target, registry=registry_with(kind, lowering))
        assert lowered.text == expected.text
        if lowered.records:
            told = {other.rule: listed(other.reasons) for other in lowered.records[0].why_not}
            wanted = "emits stablehlo.popcnt, which npu refuses: no kernel"
            assert told["any_to_mine"] == (wanted if lowering is illegal else "not today")
    legal = hl.lower(text, target=target_of(kind), registry=registry_with(kind, illegal))
    assert refused_op.removeprefix("stablehlo.") in legal.text


def results_of(op):
    """Values of the types of what an op gives: all zeros, of a size that is known only as far as it is of the op."""
    node = getattr(op, "node", None) or getattr(op, "gather", None) or op.scatter
    node = getattr(node, "node", node)
    return [zeros_like(op.build, result) for result in node.results]


def zeros_like(build, result):
    """Zeros in the type of a result; of dynamic shape with 5 where the size is not known."""
    shape = [5 if size is None else size for size in result.shape]
    zeros = build.broadcast(build.zero(mlir.tensor_element(result.raw.type)), shape)
    return retyped(build, zeros, result.raw.type)


@pytest.mark.parametrize("kind", MODULES)
def test_a_condition_that_raises_is_told_alike_for_every_kind(kind):
    """A predicate of a plug-in's rule that fails is the rule's mistake, and names it."""
    registry = registry_with(kind, lambda op: (), when=When("rows <= 64", lambda facts: facts.no_such_fact <= 64))
    with pytest.raises(hl.NotLoweredError) as error:
        hl.lower(MODULES[kind][0], target=target_of(kind), registry=registry, name="m.mlir")
    assert "the rule any_to_mine raised AttributeError: " in error.value.what
    assert error.value.what.endswith("asked whether it fits")


@pytest.mark.parametrize("kind", MODULES)
def test_a_condition_decides_for_every_kind(kind):
    """A rule whose predicate does not hold is passed over; its text is among the reasons."""
    text, target = MODULES[kind][0], target_of(kind)
    registry = registry_with(kind, lambda op: 1 / 0, when=When("rows <= 64", lambda facts: False))
    lowered = hl.lower(text, target=target, registry=registry)
    assert lowered.text == hl.lower(text, target=target).text
    if lowered.records:
        assert {other.rule: listed(other.reasons) for other in lowered.records[0].why_not}[
            "any_to_mine"
        ] == "needs rows <= 64"
