"""Rules that do not work, of every kind of op: one clear error for all, or the next best rule."""

import re
from dataclasses import replace

import pytest
from rule_examples import EXAMPLES

import hlo_lower as hl
from hlo_lower.base.english import join_phrases
from hlo_lower.base.registry import DoesNotApply, When
from hlo_lower.ir import mlir
from hlo_lower.ir.extents import refine_shape
from hlo_lower.lowering.kinds import KINDS, new_registry
from hlo_lower.ops.targets import target_of


def built_in_rules():
    """The built-in rules; that no two contradict each other is tested elsewhere, and takes its time."""
    registry = new_registry()
    for kind in KINDS:
        for family in kind.families:
            registry.extend(family)
    return registry


DOMAINS = {kind.name: kind.domains for kind in KINDS}
KIND_OF = {rule.short_name: kind for kind in KINDS for rule in built_in_rules().rules(kind.name)}
EXAMPLE_OF = {KIND_OF[example.rule].name: example for example in reversed(EXAMPLES) if "prefer" not in example.told}
"""For each kind its first example that asks for no rule."""
PARTS = hl.Target("npu", refused={"stablehlo.scatter": "lowered"}, op_dtypes={"stablehlo.multiply": ["f32"]})
"""A target that multiplies no complex numbers, and takes the complex zeros that a broken rule gives."""
each_kind = pytest.mark.parametrize("kind", DOMAINS)


def registry_with(kind, lowering, when=None):
    """The built-in rules and a plug-in's one that beats each of those that fit the kind's module."""
    values, probe = {}, built_in_rules()

    def note(facts):
        values.update({fact: {facts[fact]} for fact in DOMAINS[kind]})
        return False

    def noting(op):
        return ()

    probe.lowers(kind, when=When("noting", note))(noting)
    lower(kind, registry=probe)
    lowering.__name__ = "any_to_mine"
    rules, registry = hl.RuleList(), built_in_rules()
    rules.lowers(kind, form="mine", when=when or When("always", lambda facts: True), **values)(lowering)
    registry.extend(rules, origin="mine 1.0")
    return registry


def lower(kind, *refused, **options):
    """The example of a kind lowered, for its target or one that refuses more."""
    given = EXAMPLE_OF[kind].options
    target = PARTS if "complex" in kind else target_of(given["target"])
    target = replace(target, refused={**target.refused, **dict.fromkeys(refused, "no kernel")})
    return hl.lower(EXAMPLE_OF[kind].path, **{**given, "target": target, **options})


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


@pytest.mark.parametrize(
    ("kind", "how"),
    [(kind.name, how) for kind in KINDS for how in BROKEN if kind is KINDS[0] or how in ("raises", "another type")],
)
def test_a_rule_that_does_not_work_is_told_alike_for_every_kind(kind, how):
    """The error has four lines: where, which op and rule and what it did; its place; what to do. Nothing is lowered."""
    lowering, says = BROKEN[how]
    registry, own = registry_with(kind, lambda op: lowering(op)), KIND_OF[EXAMPLE_OF[kind].rule]
    with pytest.raises(hl.NotLoweredError) as error:
        lower(kind, registry=registry, name="m.mlir")
    what, facts, following = str(error.value).splitlines()
    where, _, told = what.partition(": ")
    assert re.fullmatch(r"m.mlir:\d+:\d+", where)
    assert told.startswith(tuple(own.ops or (own.op,)))
    assert f": the rule any_to_mine {says}" in told
    assert re.fullmatch(r"  facts:   the rule is at rewrite/test_broken_rules.py:.*\(mine 1.0\)", facts)
    otherwise = "; --skip '#1' leaves this scatter" if "scatter" in kind else ""
    assert following == f"  next:    report it to whoever wrote the rule{otherwise}"
    assert error.value.exit_code == 3


def zeros_of(op):
    """Zeros of the types of what an op gives; of dynamic shape with 5 where the size is not known."""
    node = getattr(op, "node", None) or getattr(op, "gather", None) or getattr(op, "sort", None) or op.scatter
    build, found = op.build, []
    for result in getattr(node, "node", node).results:
        shape = [5 if size is None else size for size in result.shape]
        zeros = build.broadcast(build.zero(mlir.tensor_element(result.raw.type)), shape)
        found.append(refine_shape(build, zeros, result.raw.type))
    return found


@each_kind
def test_the_next_best_rule_is_taken_for_every_kind(kind):
    """Where a plug-in's rule builds what the target refuses, or says that it does not apply, the module comes out as
    without it."""
    # What is built of complex numbers may be lowered afterwards where there is a rule, as there is for popcnt.
    refused_op = "stablehlo.not" if "complex" in kind else "stablehlo.popcnt"

    def illegal(op):
        op.build.op(refused_op, [scalar := op.build.constant(0, (), "i8")], [scalar.raw.type])
        return zeros_of(op)

    def unwilling(op):
        op.build.constant(0, (), "i8")
        raise DoesNotApply("not today")

    expected = lower(kind, refused_op).text
    for lowering, wanted in ((illegal, f"emits {refused_op}, which npu rejects: no kernel"), (unwilling, "not today")):
        lowered = lower(kind, refused_op, registry=registry_with(kind, lowering))
        assert lowered.text == expected
        if lowered.records:
            told = {other.rule: join_phrases(other.reasons) for other in lowered.records[0].why_not}
            assert told["any_to_mine"].replace("stablehlo rejects", "npu rejects") == wanted
    legal = lower(kind, registry=registry_with(kind, illegal))
    assert refused_op.removeprefix("stablehlo.") in legal.text


@each_kind
def test_a_condition_decides_for_every_kind(kind):
    """A rule whose predicate does not hold is passed over, with its text among the reasons; one whose predicate fails
    is the rule's mistake, and names it."""
    lowered = lower(kind, registry=registry_with(kind, lambda op: 1 / 0, when=When("rows <= 64", lambda facts: False)))
    assert lowered.text == lower(kind).text
    for record in lowered.records:
        assert {other.rule: join_phrases(other.reasons) for other in record.why_not}[
            "any_to_mine"
        ] == "needs rows <= 64"
    registry = registry_with(kind, lambda op: (), when=When("rows <= 64", lambda facts: facts.no_such_fact <= 64))
    with pytest.raises(hl.NotLoweredError) as error:
        lower(kind, registry=registry)
    assert "the rule any_to_mine raised AttributeError: " in error.value.what
    assert error.value.what.endswith("asked whether it fits")
