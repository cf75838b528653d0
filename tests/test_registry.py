"""The registry on an op that does not exist: it knows op names, facts and rules, and nothing of StableHLO."""

import inspect
import random
import re
from enum import Enum
from itertools import combinations, product
from types import SimpleNamespace

import pytest

import hlo_lower as hl
from hlo_lower.base.causes import Code
from hlo_lower.base.english import listed
from hlo_lower.base.errors import RegistryError
from hlo_lower.base.registry import CompositeLoweringRegistry, ConditionError, NoRuleError, RuleList, When
from hlo_lower.facts.scatter.facts import (
    Arity,
    Dialect,
    Drops,
    InBounds,
    Offsets,
    Parts,
    ScatterFacts,
    Strategy,
    Windows,
)
from hlo_lower.facts.values.region import Combiner
from hlo_lower.lowering.gather import DYNAMIC_GATHER
from hlo_lower.lowering.kinds import KINDS, default_registry, new_registry
from hlo_lower.lowering.scatter import one_window
from hlo_lower.lowering.scatter.many_windows import scatter_to_while
from hlo_lower.lowering.single_ops.plain_op import Numbers
from hlo_lower.ops.names import GATHER
from hlo_lower.ops.subset import MANY_WINDOWS, Subset
from hlo_lower.ops.targets.costs import COSTS

SCATTER = "stablehlo.scatter"


class Size(Enum):
    """A fact with three values."""

    SMALL = "small"
    MEDIUM = "medium"
    LARGE = "large"


class Color(Enum):
    """A fact with two values."""

    RED = "red"
    BLUE = "blue"


SMALL, MEDIUM, LARGE, RED, BLUE = Size.SMALL, Size.MEDIUM, Size.LARGE, Color.RED, Color.BLUE


def lowering(name):
    """A lowering of this name."""

    def function(op):
        return name

    function.__name__ = name
    return function


@pytest.fixture
def registry():
    """A registry without rules for the op `toy.paint` with two facts."""
    return CompositeLoweringRegistry({"toy.paint": {"size": Size, "color": Color}})


@pytest.fixture
def add(registry):
    """Adds a rule by name."""

    def add_rule(name, *, when=None, **constraints):
        return registry.add("toy.paint", lowering(name), form=name, when=when, constraints=constraints)

    return add_rule


def chosen(registry, size, color, without=(), **more):
    """The name of the rule for these facts."""
    return registry.select("toy.paint", {"size": size, "color": color, **more}, without).rule.name


SMALL_, RED_ = {"size": {SMALL}}, {"color": {RED}}


@pytest.mark.parametrize(
    ("rules", "expected"),
    [
        pytest.param(
            {"anything": {}, "not_large": {"size": {SMALL, MEDIUM}}, "small": SMALL_},
            {(SMALL, RED): "small", (MEDIUM, RED): "not_large", (LARGE, RED): "anything"},
            id="the smaller set wins",
        ),
        pytest.param(
            {"small": SMALL_, "small_red": SMALL_ | RED_},
            {(SMALL, RED): "small_red", (SMALL, BLUE): "small"},
            id="one more constraint wins",
        ),
        pytest.param(
            {"small": SMALL_, "red": RED_, "small_red": SMALL_ | RED_},
            {(SMALL, RED): "small_red", (LARGE, RED): "red", (SMALL, BLUE): "small"},
            id="a third rule settles two that cross",
        ),
        pytest.param(
            {"small_red": SMALL_ | RED_, "large_blue": {"size": {LARGE}, "color": {BLUE}}},
            {(SMALL, RED): "small_red", (LARGE, BLUE): "large_blue"},
            id="rules that never fit the same facts do not compete",
        ),
    ],
)
def test_the_most_specific_rule_is_chosen(registry, add, rules, expected):
    """A rule whose sets lie within another's, one strictly, is chosen before it."""
    for name, constraints in rules.items():
        add(name, **constraints)
    registry.check()
    assert {facts: chosen(registry, *facts) for facts in expected} == expected


def test_a_constraint_that_accepts_all_is_as_good_as_none(registry, add):
    """A set equal to the domain makes a rule no more specific, so two such rules are ambiguous."""
    add("anything")
    add("any_color", color=set(Color))
    with pytest.raises(RegistryError, match=r"any_color .* and anything "):
        registry.check()


def test_an_ambiguity_names_both_places(registry, add):
    """Two unbeaten rules are an error with both, their places and the facts; unchecked, they are one at selection."""
    small, red = add("small", size={SMALL}), add("red", color={RED})
    with pytest.raises(RegistryError) as error:
        registry.check()
    message = str(error.value)
    assert re.search(r"red \(.*test_registry\.py:\d+\) and small \(.*test_registry\.py:\d+\)", message)
    for told in (small.place, red.place, "color=red", "size=small"):
        assert told in message
    with pytest.raises(RegistryError, match=r"red .* and small .*both fit"):
        chosen(registry, SMALL, RED)


@pytest.mark.parametrize(
    ("name", "constraints", "message"),
    [
        ("small", {"color": {RED}}, "small has the name of small at "),
        ("other", {"size": {SMALL}}, "other has the constraints of small at "),
        ("other", {"weight": {SMALL}}, "constrains weight, which is no fact of toy.paint; known: size, color"),
        ("other", {"size": {RED}}, "size must be some of large|medium|small, not 'red'"),
        ("other", {"size": set()}, "size must be some of large|medium|small, not ''"),
    ],
    ids=["same name", "same constraints", "unknown fact", "value of another fact", "no value"],
)
def test_a_wrong_registration_is_refused_at_once(add, name, constraints, message):
    """A duplicate, an unknown fact or a value outside of its domain raises, with the place, when it is registered."""
    add("small", size={SMALL})
    with pytest.raises(RegistryError) as error:
        add(name, **constraints)
    assert message in str(error.value)
    assert re.match(r".*test_registry\.py:\d+: ", str(error.value))


def test_nothing_fits_names_the_three_nearest(registry, add):
    """NoRuleError lists at most three rules, those that lack least first, each with what it lacks."""
    add("far", size={SMALL}, color={RED})
    add("a", size={SMALL})
    add("b", size={MEDIUM})
    add("c", color={RED})
    with pytest.raises(NoRuleError) as error:
        chosen(registry, LARGE, BLUE)
    assert [rule.name for rule, _ in error.value.nearest] == ["a", "b", "c"]
    assert [listed(lack) for _, lack in error.value.nearest] == [
        "size=large, needs small",
        "size=large, needs medium",
        "color=blue, needs red",
    ]


def test_nothing_registered_is_an_error_without_nearest(registry):
    """An op without rules has no nearest rule either; a rule for an op that has no facts lists those that have."""
    with pytest.raises(NoRuleError, match=r"no lowering for toy\.paint") as error:
        chosen(registry, SMALL, RED)
    assert error.value.nearest == ()
    with pytest.raises(RegistryError, match=r"f lowers toy\.erase, which has no domains; known: toy\.paint"):
        registry.lowers("toy.erase")(lowering("f"))


def test_every_other_rule_is_rejected_with_a_reason(registry, add):
    """A choice says of each rule that was not taken what it lacks or what beat it."""
    add("anything")
    add("small", size={SMALL})
    add("large", size={LARGE})
    choice = registry.select("toy.paint", {"size": SMALL, "color": RED})
    assert {rule.name: listed(reasons) for rule, reasons in choice.rejected} == {
        "anything": "less specific than small",
        "large": "size=small, needs large",
    }


def test_a_rule_that_turned_out_not_to_do_is_no_candidate(registry, add):
    """The next best one is chosen, and the reason is told behind facts that do not fit; or it is the nearest's lack."""
    add("loop")
    add("fast", size={SMALL})
    without = (("fast", Code.REFUSES_OPS("narrow", ("toy.fast",), None)),)
    assert (chosen(registry, SMALL, RED), chosen(registry, SMALL, RED, without)) == ("fast", "loop")
    refused = "emits toy.fast, which narrow refuses"
    for size, told in ((SMALL, refused), (LARGE, f"size=large, needs small; {refused}")):
        rejected = registry.select("toy.paint", {"size": size, "color": RED}, without).rejected
        assert [(rule.name, listed(why)) for rule, why in rejected] == [("fast", told)]
    with pytest.raises(NoRuleError) as error:
        chosen(registry, LARGE, RED, (("loop", Code.SAID("no control flow")),))
    assert [listed(lack) for _, lack in error.value.nearest] == ["no control flow", "size=large, needs small"]


FEW = When("rows <= 64", lambda facts: facts["rows"] <= 64)


def test_a_condition_on_sizes(registry, add):
    """A rule with one beats the same without where it holds, and is rejected with its text where it does not."""
    add("loop", size={SMALL})
    add("unrolled", size={SMALL}, when=FEW)
    registry.check()
    assert [chosen(registry, SMALL, RED, rows=rows) for rows in (64, 65, 1)] == ["unrolled", "loop", "unrolled"]
    rejected = registry.select("toy.paint", {"size": SMALL, "color": RED, "rows": 65}).rejected
    assert [(rule.name, listed(why)) for rule, why in rejected] == [("unrolled", "needs rows <= 64")]
    assert [rule.classes() for rule in registry.rules("toy.paint")] == ["size=small", "size=small, rows <= 64"]


def test_a_condition_does_not_widen(registry, add):
    """Facts that a rule does not accept stay so, and its condition is not asked; one that raises names its rule."""
    add("loop")
    add("unrolled", size={SMALL}, when=FEW)
    assert chosen(registry, LARGE, RED) == "loop"
    with pytest.raises(ConditionError) as error:
        chosen(registry, SMALL, RED)
    assert (error.value.rule.name, type(error.value.error)) == ("unrolled", KeyError)


def test_two_rules_that_only_a_condition_settles(registry, add):
    """A third rule settles two that cross only where it always fits."""
    add("small", size={SMALL})
    add("red", color={RED})
    add("small_red", size={SMALL}, color={RED}, when=FEW)
    with pytest.raises(RegistryError, match=r"red .* and small .*are both most specific"):
        registry.check()


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"when": lambda facts: True}, r"when is a When\(text, holds\), not <function"),
        ({"when": FEW, "size": {SMALL}}, "other has the constraints of few"),
        ({"emits": ("stablehlo.add",)}, "emits is no longer declared"),
        ({"spared": {}}, "spared is no longer declared"),
    ],
)
def test_what_a_registration_says_wrongly_beside_constraints(add, how, message):
    """A condition has a text; two conditions on the same constraints could not be told apart; `emits` is gone."""
    add("few", when=FEW, size={SMALL})
    with pytest.raises(RegistryError, match=message):
        add("other", **how)


@pytest.mark.parametrize("seed", range(5))
def test_the_order_of_registration_does_not_matter(seed):
    """Rules that are registered in any order are chosen alike, with the same reasons."""
    entries = [
        ("anything", {}),
        ("small", {"size": {SMALL}}),
        ("red", {"color": {RED}}),
        ("small_red", {"size": {SMALL}, "color": {RED}}),
        ("blue_not_small", {"size": {MEDIUM, LARGE}, "color": {BLUE}}),
    ]

    def build(order):
        registry = CompositeLoweringRegistry({"toy.paint": {"size": Size, "color": Color}})
        for name, constraints in order:
            registry.add("toy.paint", lowering(name), constraints=constraints)
        registry.check()
        choices = {
            facts: registry.select("toy.paint", dict(zip(("size", "color"), facts, strict=True)))
            for facts in product(Size, Color)
        }
        return {
            facts: (choice.rule.name, [(rule.name, reason) for rule, reason in choice.rejected])
            for facts, choice in choices.items()
        }

    shuffled = random.Random(seed).sample(entries, len(entries))
    assert build(entries) == build(shuffled)


def test_a_rule_added_later_is_seen(registry, add):
    """A choice that was made before is not kept once a more specific rule comes."""
    add("anything")
    assert chosen(registry, SMALL, RED) == "anything"
    add("small", size={SMALL})
    assert chosen(registry, SMALL, RED) == "small"


def test_lowers_is_a_decorator_that_gives_the_function_back(registry):
    """A decorated lowering stays the function that it was."""
    function = lowering("paint_to_nothing")
    assert registry.lowers("toy.paint", size={SMALL})(function) is function
    [rule] = registry.rules("toy.paint")
    assert ("paint_to_nothing", function, "size=small") == (rule.name, rule.lowering, rule.classes())


# --- the built-in rules ---


def occurring_facts(told_apart):
    """The combinations of facts that a scatter can have, without contradictions, as far as rules tell them apart."""
    needed = {"subset", "windows", "in_bounds", "drops", *told_apart}
    combiners = [Combiner.ASSIGN, Combiner.ADD, Combiner.NO_OP]
    windows = [w for w in Windows if w is not Windows.OUTSIDE]
    domains = {**ScatterFacts.domains, "combiner": combiners, "windows": windows}
    for values in product(*(list(domain) if fact in needed else list(domain)[:1] for fact, domain in domains.items())):
        facts = dict(zip(domains, values, strict=True))
        if facts["in_bounds"] is InBounds.NEVER and facts["subset"] is not Subset.EMPTY:
            continue
        if (facts["in_bounds"] is InBounds.UNKNOWN) is (facts["drops"] is Drops.NOTHING):
            continue
        if (facts["windows"] is Windows.INSIDE) is not (facts["in_bounds"] is InBounds.ALWAYS):
            continue
        is_run_in_parts = facts["subset"] is Subset.ROWS and facts["parts"] is Parts.SEVERAL
        forms = (Strategy.FEW_WINDOWS, Strategy.OWN_SCATTER) if is_run_in_parts else (Strategy.FEW_WINDOWS,)
        if facts["subset"] not in MANY_WINDOWS and facts["strategy"] not in forms:
            continue
        strided = facts["strategy"] is Strategy.STRIDED
        if (strided and facts["offsets"] is not Offsets.CONSTANT) or (
            facts["dialect"] is Dialect.LINALG and not strided
        ):
            continue
        yield facts


SHORT = COSTS.with_entry("short_operand", 9)


class Sized(dict):
    """Facts by name, as conditions ask for them: of a row of nine elements, with a short operand or none by turns."""

    operand_shape, layout = (9,), SimpleNamespace(window=(1,))

    def __init__(self, facts, number):
        super().__init__(facts)
        self.costs = (COSTS, SHORT)[number % 2]

    def __getattr__(self, name):
        return self[name]


def test_every_combination_that_occurs_has_one_most_specific_rule():
    """Of the rules that fit, one is most specific, and chosen; each rule is so for some facts."""
    registry = default_registry()
    rules = registry.rules(SCATTER)
    domains = {fact: frozenset(values) for fact, values in ScatterFacts.domains.items()}
    beaten_by = {rule.name: [o.name for o in rules if o.beats(rule, domains)] for rule in rules}
    reached = set()
    for number, named in enumerate(occurring_facts({fact for rule in rules for fact in rule.constraints})):
        facts = Sized(named, number)
        fitting = {
            rule.name: rule
            for rule in rules
            if all(facts[name] in accepted for name, accepted in rule.constraints.items())
            and (rule.when is None or rule.when.holds(facts))
        }
        unbeaten = [rule for name, rule in fitting.items() if not any(o in fitting for o in beaten_by[name])]
        assert len(unbeaten) == 1
        if number % 63 == 0:
            assert [registry.select(SCATTER, facts).rule] == unbeaten
        reached.add(unbeaten[0].name)
    assert {rule.name for rule in rules} == reached


def test_the_families_can_be_registered_in_any_order():
    """The built-in rules are the same set, and unambiguous, whatever family comes first; each registry is fresh."""
    first = default_registry()
    expected = [(rule.name, rule.classes()) for rule in first.rules(SCATTER)]
    first.add(SCATTER, lowering("mine"), constraints={"arity": {Arity.COUPLED}})
    assert expected == [(rule.name, rule.classes()) for rule in default_registry().rules(SCATTER)]
    for seed in range(3):
        registry, families = new_registry(), [family for kind in KINDS for family in kind.families]
        for family in random.Random(seed).sample(families, len(families)):
            registry.extend(family)
        registry.check()
        assert expected == [(rule.name, rule.classes()) for rule in registry.rules(SCATTER)]


def test_every_built_in_rule_says_why_it_is_equal():
    """Each lowering's docstring argues that nothing changes, and each rule has a form and a place in its file."""
    registry = default_registry()
    for rule in (rule for op in registry.ops for rule in registry.rules(op)):
        text = inspect.getdoc(rule.lowering) or ""
        is_bounded = Numbers.BOUNDED in rule.constraints.get("numbers", ()) and "units in the last place" in text
        assert is_bounded or re.search(r"\bequal|proof stands", text, re.IGNORECASE), rule.name
        assert rule.form, rule.name
        assert re.fullmatch(r"lowering/(\w+/){0,2}\w+\.py:\d+", rule.place), rule.place
    for rule in (*registry.rules(SCATTER), *registry.rules(GATHER), *registry.rules(DYNAMIC_GATHER)):
        assert rule.name.startswith(("scatter_to_", "gather_to_", "dynamic_shape_gather_to_"))


MODULE = """
func.func public @main(%o: tensor<8xi32>, %i: tensor<1xi32>, %u: tensor<i32>) -> tensor<8xi32> {
  %r = "stablehlo.scatter"(%o, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0],
    scatter_dims_to_operand_dims = [0]>}> ({
  ^bb0(%a: tensor<i32>, %b: tensor<i32>):
    stablehlo.return %b : tensor<i32>
  }) : (tensor<8xi32>, tensor<1xi32>, tensor<i32>) -> tensor<8xi32>
  return %r : tensor<8xi32>
}
"""


def test_a_rule_from_outside_beats_a_built_in():
    """A user's rule list that extends a fresh registry is used by hl.lower where it is more specific."""

    def scatter_to_my_form(op):
        return scatter_to_while(op)

    point = {"subset": {Subset.POINT}, "in_bounds": {InBounds.UNKNOWN}, "drops": {Drops.WINDOWS}}
    crossing = RuleList()
    crossing.lowers(SCATTER, **point, arity={Arity.SINGLE})(scatter_to_my_form)
    registry = default_registry()
    registry.extend(crossing)
    with pytest.raises(RegistryError, match=r"scatter_to_guarded_\w+ .* and scatter_to_my_form "):
        registry.check()  # narrower in the arity, wider in the combiner

    narrow = RuleList()
    narrow.lowers(SCATTER, **point, combiner={Combiner.ASSIGN})(scatter_to_my_form)
    registry = default_registry()
    registry.extend(narrow)
    registry.check()
    lowered = hl.lower(MODULE, registry=registry)
    assert [record.rule for record in lowered.records] == ["my_form"]
    assert "stablehlo.while" in lowered.text
    assert "stablehlo.while" not in hl.lower(MODULE).text
    assert [record.rule for record in hl.classify(hl.read(MODULE), registry=registry)] == ["my_form"]


def test_no_rule_is_an_error_of_four_lines():
    """Without a rule, lowering fails with the place, the facts, the nearest rules and what to type next."""
    registry = new_registry()
    registry.lowers("stablehlo.scatter", subset={Subset.EMPTY})(one_window.scatter_to_operand)
    with pytest.raises(hl.NotLoweredError) as error:
        hl.lower(MODULE, registry=registry, name="m.mlir")
    lines = str(error.value).splitlines()
    assert lines[0] == "m.mlir:3:8: stablehlo.scatter: no lowering for target stablehlo"
    facts = "subset=Point combiner=assign dtype=i32 offsets=runtime in_bounds=unknown unique=proved oob=xla"
    assert lines[1] == f"  facts:   {facts}"
    assert "nearest: scatter_to_operand (lowering/scatter/one_window.py:" in lines[2]
    assert lines[2].endswith("subset=Point, needs Empty")
    assert lines[3] == "  next:    hlo-lower report --explain 1 m.mlir"


def test_no_rule_of_ours_is_settled_by_a_third_one():
    """Of two rules that fit the same facts one beats the other, so one is most specific whichever a target refuses."""
    registry = default_registry()
    for kind in KINDS:
        domains = {fact: frozenset(values) for fact, values in kind.domains.items()}
        for one, other in combinations(registry.rules(kind.name), 2):
            shared = [one.constraints.get(f, domains[f]) & other.constraints.get(f, domains[f]) for f in domains]
            if all(shared) and not one.beats(other, domains) and not other.beats(one, domains):
                raise AssertionError(f"{one.name} and {other.name}")
