"""The registry on an op that does not exist: it knows op names, facts and rules, and nothing of StableHLO."""

import inspect
import random
import re
from enum import Enum
from itertools import combinations, product

import pytest
from decode_module import POINT

import hlo_lower as hl
from hlo_lower.base.causes import Code
from hlo_lower.base.english import join_phrases
from hlo_lower.base.errors import RegistryError
from hlo_lower.base.registry import CompositeLoweringRegistry, ConditionError, NoRuleError, When
from hlo_lower.facts.scatter.facts import Arity
from hlo_lower.lowering.gather import DYNAMIC_GATHER
from hlo_lower.lowering.kinds import KINDS, default_registry, new_registry
from hlo_lower.lowering.scatter import one_window
from hlo_lower.lowering.single_ops.plain_op import Numbers
from hlo_lower.ops.names import GATHER
from hlo_lower.ops.subset import Subset

SCATTER = "stablehlo.scatter"


Size = Enum("Size", {"SMALL": "small", "MEDIUM": "medium", "LARGE": "large"})
Color = Enum("Color", {"RED": "red", "BLUE": "blue"})
DOMAINS = {"size": Size, "color": Color}


def lowering(name):
    """A lowering of this name."""

    def function(op):
        return name

    function.__name__ = name
    return function


class Toy(CompositeLoweringRegistry):
    """A registry for the op `toy.paint`, whose rules and facts are words: "dark size=small|medium", "small red"."""

    def __init__(self, *rules):
        super().__init__({"toy.paint": DOMAINS})
        for rule in rules:
            self.rule(rule)

    def rule(self, words, *, when=None, **constraints):
        """Add a rule."""
        name, *accepted = words.split()
        for fact, values in (one.split("=") for one in accepted):
            constraints[fact] = {DOMAINS[fact](value) for value in values.split("|")}
        return self.add("toy.paint", lowering(name), form=name, when=when, constraints=constraints)

    def told(self, words, without=(), **more):
        """The name of the rule that is chosen for facts, and of the others the reasons why not."""
        size, color = words.split()
        choice = self.select("toy.paint", {"size": Size(size), "color": Color(color), **more}, without)
        return choice.rule.name, {rule.name: join_phrases(why) for rule, why in choice.rejected}

    def nearest(self, words, without=()):
        """The nearest rules where none fits, with what they lack."""
        with pytest.raises(NoRuleError, match=r"no lowering for toy\.paint") as error:
            self.told(words, without)
        return [(rule.name, join_phrases(lack)) for rule, lack in error.value.nearest]


CHOSEN = {
    "the smaller set wins": (
        ["anything", "not_large size=small|medium", "small size=small"],
        {"small red": "small", "medium red": "not_large", "large red": "anything"},
    ),
    "one more constraint wins": (
        ["small size=small", "small_red size=small color=red"],
        {"small red": "small_red", "small blue": "small"},
    ),
    "a third rule settles two that cross": (
        ["small size=small", "red color=red", "small_red size=small color=red"],
        {"small red": "small_red", "large red": "red", "small blue": "small"},
    ),
    "rules that never fit the same facts do not compete": (
        ["small_red size=small color=red", "large_blue size=large color=blue"],
        {"small red": "small_red", "large blue": "large_blue"},
    ),
}


@pytest.mark.parametrize(("rules", "expected"), CHOSEN.values(), ids=CHOSEN)
def test_the_most_specific_rule_is_chosen(rules, expected):
    """A rule whose sets lie within another's, one strictly, is chosen before it."""
    toy = Toy(*rules)
    toy.check()
    assert {facts: toy.told(facts)[0] for facts in expected} == expected


def test_an_ambiguity_names_both_places():
    """Two unbeaten rules are an error with both, their places and the facts; unchecked, they are one at selection."""
    toy = Toy()
    small, red = toy.rule("small size=small"), toy.rule("red color=red")
    with pytest.raises(RegistryError) as error:
        toy.check()
    message = str(error.value)
    assert re.search(r"red \(.*test_registry\.py:\d+\) and small \(.*test_registry\.py:\d+\)", message)
    for told in (small.place, red.place, "color=red", "size=small"):
        assert told in message
    with pytest.raises(RegistryError, match=r"red .* and small .*both fit"):
        toy.told("small red")
    toy.rule("small_red size=small color=red", when=FEW)  # which settles it only where it always fits
    with pytest.raises(RegistryError, match=r"red .* and small .*are both most specific"):
        toy.check()
    with pytest.raises(RegistryError, match=r"any_color .* and anything "):  # accepting all is as good as nothing
        Toy("anything", "any_color color=red|blue").check()


FEW = When("rows <= 64", lambda facts: facts["rows"] <= 64)
WRONG = {
    "same name": ("small color=red", {}, "small has the name of small at "),
    "same constraints": ("other size=small", {}, "other has the constraints of small at "),
    "unknown fact": ("other", {"weight": {Size.SMALL}}, "weight, which is not a fact of toy.paint; known: size, color"),
    "another fact's": ("other", {"size": {Color.RED}}, "size must be some of large|medium|small, not 'red'"),
    "no value": ("other", {"size": set()}, "size must be some of large|medium|small, not ''"),
    "no condition": ("other", {"when": lambda facts: True}, "when is a When(text, holds), not <function"),
    "same with a condition": ("other color=blue", {"when": FEW}, "other has the constraints of few"),
    "emits": ("other", {"emits": ("stablehlo.add",)}, "emits is no longer declared"),
    "spared": ("other", {"spared": {}}, "spared is no longer declared"),
}


@pytest.mark.parametrize(("words", "how", "message"), WRONG.values(), ids=WRONG)
def test_a_wrong_registration_is_refused_at_once(words, how, message):
    """A duplicate, an unknown fact, a value outside of its domain or a condition without text, with the place."""
    toy = Toy("small size=small")
    toy.rule("few color=blue", when=FEW)
    with pytest.raises(RegistryError) as error:
        toy.rule(words, **how)
    assert message in str(error.value)
    assert re.match(r".*test_registry\.py:\d+: ", str(error.value))


def test_nothing_fits_names_the_three_nearest():
    """NoRuleError lists at most three rules, those that lack least first, each with what it lacks."""
    toy = Toy("far size=small color=red", "a size=small", "b size=medium", "c color=red")
    lacks = ("a", "size=large, needs small"), ("b", "size=large, needs medium"), ("c", "color=blue, needs red")
    assert toy.nearest("large blue") == [*lacks]
    assert Toy().nearest("small red") == []
    with pytest.raises(RegistryError, match=r"f lowers toy\.erase, which has no domains; known: toy\.paint"):
        Toy().lowers("toy.erase")(lowering("f"))


def test_every_other_rule_is_rejected_with_a_reason():
    """A choice says of each other rule what it lacks or what beat it; one that turned out not to do is no candidate."""
    toy = Toy("loop")
    assert toy.told("small red") == ("loop", {})  # which is not kept once a more specific rule comes
    toy.rule("fast size=small")
    toy.rule("large size=large")
    without = (("fast", Code.REFUSES_OPS("narrow", ("toy.fast",), None)),)
    lacks, refused = "size=small, needs large", "emits toy.fast, which narrow rejects"
    assert toy.told("small red") == ("fast", {"loop": "less specific than fast", "large": lacks})
    assert toy.told("small red", without) == ("loop", {"large": lacks, "fast": refused})
    assert toy.told("medium red", without)[1]["fast"] == f"size=medium, needs small; {refused}"
    unfit = [("loop", "no control flow"), ("fast", "size=medium, needs small"), ("large", "size=medium, needs large")]
    assert toy.nearest("medium red", (("loop", Code.SAID("no control flow")),)) == unfit


def test_a_condition_on_sizes():
    """A rule with one beats the same without where it holds; it widens nothing, and one that raises names its rule."""
    toy = Toy("loop size=small", "anything")
    toy.rule("unrolled size=small", when=FEW)
    toy.check()
    assert [toy.told("small red", rows=rows)[0] for rows in (64, 65, 1)] == ["unrolled", "loop", "unrolled"]
    assert toy.told("small red", rows=65)[1]["unrolled"] == "needs rows <= 64"
    assert {rule.classes() for rule in toy.rules("toy.paint")} >= {"size=small", "size=small, rows <= 64"}
    assert toy.told("large red")[0] == "anything"  # without asking the condition, which would raise
    with pytest.raises(ConditionError) as error:
        toy.told("small red")
    assert (error.value.rule.name, type(error.value.error)) == ("unrolled", KeyError)


def test_disjoint_conditions_stand_beside_each_other():
    """Rules of one class, each with its condition, are chosen by which of them holds; two that hold are an error."""
    toy = Toy("anything")
    toy.rule("few size=small", when=FEW)
    toy.rule("many size=small", when=When("rows > 64", lambda facts: facts["rows"] > 64))
    toy.rule("one_red size=small|large color=red", when=When("rows == 1", lambda facts: facts["rows"] == 1))
    toy.check()
    assert [toy.told("small blue", rows=rows)[0] for rows in (64, 65)] == ["few", "many"]
    with pytest.raises(RegistryError) as error:
        toy.told("small red", rows=1)
    fits = r"few \(.*: size=small, rows <= 64\) and one_red \(.*, rows == 1\) both fit size=small, color=red"
    assert re.search(fits, str(error.value))


def test_every_op_has_dtype_layout_and_target():
    """They are facts like others; of those without a list of values any text is one, and rules may cross there."""
    toy = Toy("anything", "small size=small")
    toy.rule("for_npu", target="npu")
    assert [toy.told("large red", target=target)[0] for target in ("npu", "cpu")] == ["for_npu", "anything"]
    with pytest.raises(RegistryError, match=r"for_npu .* and small .* are both most specific for target=npu, size=sm"):
        toy.check()
    toy.rule("small_there size=small", target=["npu", "other"])
    with pytest.raises(RegistryError, match=r"for_npu .* and small_there .* most specific for target=npu, size=small"):
        toy.check()
    toy.rule("small_on_npu size=small", target="npu")
    toy.check()
    for fact, value in (("dtype", "float32"), ("target", ""), ("layout", None)):
        with pytest.raises(RegistryError, match=rf"wrong: {fact} must be "):
            toy.rule("wrong", **{fact: value})


def test_a_value_is_known_by_its_text():
    """A constraint is a member, its text or its name, alone or among several; another enum's member is none."""
    for value in (Size.SMALL, "small", "SMALL", {"small", Size.SMALL}, (Size.SMALL,)):
        assert Toy().rule("r", size=value).constraints == {"size": {Size.SMALL}}
    assert Toy().rule("r", size=Size).constraints == {"size": {*Size}}
    other = Enum("Other", {"SMALL": "small"})
    with pytest.raises(RegistryError, match=r"size must be some of large\|medium\|small, not 'small'"):
        Toy().rule("r", size=other.SMALL)


def clip():
    """A registry with one composite: a side and a sign that rules constrain, and a bound that they read."""
    registry = Toy()
    registry.declare("toy.clip", side=Enum("Side", ["LOW", "HIGH"]), is_signed=bool, bound=int, defaults={"bound": 0})
    registry.register("toy.clip", lowering("low"), side="low")
    registry.register("toy.clip", lowering("signed"), side={"low"}, is_signed=True)
    registry.register("toy.clip", lowering("zero"), side=2, when=When("of 0", lambda facts: facts["bound"] == 0))
    registry.register("toy.clip", lowering("other"), side=2, when=When("not of 0", lambda facts: facts["bound"] != 0))
    registry.check()
    return registry


FOUND = {
    "the most specific": ({"side": "low", "is_signed": True}, "signed"),
    "by the text of a truth value": ({"side": 1, "is_signed": "false"}, "low"),
    "by a default that a condition asks for": ({"side": "HIGH"}, "zero"),
    "by a value that a condition asks for": ({"side": "HIGH", "bound": "7"}, "other"),
    "what does not matter may be named": ({"side": "HIGH", "bound": 7, "dtype": "f32", "target": "npu"}, "other"),
}


@pytest.mark.parametrize(("values", "name"), FOUND.values(), ids=FOUND)
def test_a_rule_is_looked_up_without_a_module(values, name):
    """The values of a variant, as members or texts, give its rule; what is not named has its default."""
    assert clip().lookup("toy.clip", **values).name == name


MISTAKES = {
    "it depends": ({"side": "low"}, "which rule of toy.clip it is with side=LOW, bound=0 depends on more: "),
    "a parameter": (
        {"sides": "low"},
        "lookup constrains sides, which is not a fact of toy.clip; known: side, is_signed",
    ),
    "a value": ({"side": "middle"}, "lookup: side must be some of HIGH|LOW, not 'middle'"),
    "a type": ({"side": "HIGH", "bound": "x"}, "lookup bound must be any int, not 'x'"),
    "two values": ({"side": {"low", "high"}}, "lookup: side is one value, not 'HIGH|LOW'"),
}


@pytest.mark.parametrize(("values", "says"), MISTAKES.values(), ids=MISTAKES)
def test_a_look_up_that_is_a_mistake(values, says):
    """It says what may be written."""
    with pytest.raises(RegistryError, match=re.escape(says)):
        clip().lookup("toy.clip", **values)


def test_a_look_up_that_finds_nothing():
    """The message lists the nearest rules, each with what it lacks, and all that are registered by what they accept."""
    registry = clip()
    registry.declare("toy.scale", factor={2, 4}, axis={"rows", "columns"})
    registry.register("toy.scale", lowering("doubled"), factor=2, axis="rows")
    with pytest.raises(NoRuleError) as error:
        registry.lookup("toy.scale", factor=4, axis="rows")
    first, nearest, known = str(error.value).splitlines()
    assert first == "no lowering for toy.scale with factor=4, axis=rows"
    assert re.fullmatch(r"  nearest: doubled \(.*test_registry.py:\d+\): factor=4, needs 2", nearest)
    assert known == "  registered: factor=2, axis=rows (doubled)"


UNDECLARED = {
    "no values": ({"mode": ()}, "mode has no values"),
    "of another type": (
        {"mode": dict},
        "mode must be an Enum, values, bool, or one of int, float, str, tuple, not dict",
    ),
    "one text twice": ({"mode": {1, "1"}}, "mode has two values of the text '1'"),
    "of an argument's name": ({"when": {"now"}}, "no parameter can be called when"),
    "a default outside": ({"mode": "a", "defaults": {"mode": "b"}}, "the default of mode must be a, not 'b'"),
    "a default of nothing": (
        {"mode": "a", "defaults": {"mod": "a"}},
        "mod has a default, but is not a parameter; param",
    ),
    "no way out": ({"mode": "a", "otherwise": "ignore"}, "otherwise must be 'error' or 'call', not 'ignore'"),
    "of any element type": ({"dtype": str}, "dtype is a fact of every op; leave it out, or give some of its values"),
    "of no element type": ({"dtype": "float32"}, "dtype must be some of bf16|"),
    "again": ({"mode": "b"}, "toy.known is declared otherwise at "),
}


@pytest.mark.parametrize(("how", "says"), UNDECLARED.values(), ids=UNDECLARED)
def test_a_wrong_declaration_is_refused_at_once(how, says):
    """It says where it stands and what may be written; the same declaration again changes nothing."""
    registry = Toy()
    for _ in range(2):
        registry.declare("toy.known", mode="a")
    with pytest.raises(RegistryError) as error:
        registry.declare("toy.known", **how)
    assert says in str(error.value)
    assert re.match(r".*test_registry\.py:\d+: toy.known", str(error.value))


def test_rules_that_no_kind_reads_are_an_error():
    """Of a registry of one's own: a composite that nobody declared, an op that is declared, rules that contradict."""
    unread, op, ambiguous = new_registry(), new_registry(), new_registry()
    own = CompositeLoweringRegistry({"my.expand_clone": {"size": Size}})
    own.register("my.expand_clone", lowering("clone"), size="small")
    op.declare("stablehlo.fft", size=Size)
    ambiguous.declare("my.clip", size=Size, color=Color)
    ambiguous.register("my.clip", lowering("small"), size="small")
    ambiguous.register("my.clip", lowering("red"), color="red")
    for registry, says in (
        (own, r"registry: no kind of op reads the rules of my\.expand_clone: clone \(.*test_registry\.py:\d+\)"),
        (op, r"test_registry\.py:\d+: stablehlo\.fft is an op; only composites have parameters"),
        (ambiguous, r"red \(.* and small \(.* are both most specific for color=red, size=small"),
    ):
        with pytest.raises(hl.InputError, match=says):
            hl.lower(POINT, registry=registry)
    unread.declare("my.clip", size=Size)
    with pytest.raises(RegistryError, match=r"f lowers my\.clop, which .* declared first: rules\.declare\('my\.clop'"):
        unread.register("my.clop", lowering("f"), size="small")


@pytest.mark.parametrize("seed", range(2))
def test_the_order_of_registration_does_not_matter(seed):
    """Rules that are registered in any order are chosen alike, with the same reasons."""
    rules = ["anything", "small size=small", "red color=red", "small_red size=small color=red"]
    rules.append("blue_not_small size=medium|large color=blue")
    toy, other = Toy(*rules), Toy(*random.Random(seed).sample(rules, len(rules)))
    toy.check()
    other.check()
    for facts in (f"{size.value} {color.value}" for size, color in product(Size, Color)):
        (chosen, rejected), (same, again) = toy.told(facts), other.told(facts)
        assert (chosen, list(rejected.items())) == (same, list(again.items()))


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


def test_no_rule_is_an_error_of_four_lines():
    """Without a rule, lowering fails with the place, the facts, the nearest rules and what to type next."""
    registry = new_registry()
    registry.lowers("stablehlo.scatter", subset={Subset.EMPTY})(one_window.scatter_to_operand)
    with pytest.raises(hl.NotLoweredError) as error:
        hl.lower(POINT, registry=registry, name="m.mlir")
    lines = str(error.value).splitlines()
    assert lines[0] == "m.mlir:2:6: stablehlo.scatter: no lowering for target stablehlo"
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
