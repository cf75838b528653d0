"""What is not computed is compared as it stands: public functions, signatures, attributes, effects, composites."""

import pytest
from two_programs import aligned, programs
from untyped_mlir import function, module

import hlo_lower as hl
from hlo_lower.verify import verify
from hlo_lower.verify.read.interface import composite_differences, effect_differences, interface_differences

PLAIN = module("%a: 8xf32, %b: 8xf32", "%r = add %a, %b")


def given(argument="", result="tensor<8xf32>", head="module @a"):
    """The module with attributes of an argument, a result, the function or the module."""
    text = PLAIN.replace("%b: tensor<8xf32>", f"%b: tensor<8xf32>{argument}")
    return f"{head} {{\n{text.replace('-> tensor<8xf32> {', f'-> {result} {{')}}}"


BARE, DONATED, PINNED = (given(a and f" {{{a}}}") for a in ("", "jax.buffer_donor = true", 'mhlo.memory_kind = "p"'))
SHARDED, SPLIT = (given(f' {{mhlo.sharding = "{{{how}}}"}}') for how in ("replicated", "devices=[2]0,1"))
X, Y = (given(result=f'(tensor<8xf32> {{jax.result_info = "{name}"}})') for name in "xy")
ONE_PART, TWO_PARTS = (given(head=f"module attributes {{mhlo.num_partitions = {n} : i32}}") for n in (1, 2))


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        (DONATED, DONATED, ""),
        (BARE, given(head="module @another"), ""),
        (DONATED, BARE, "@main: argument 1 loses jax.buffer_donor = "),
        (BARE, PINNED, "@main: argument 1 gains mhlo.memory_kind = "),
        (SHARDED, SPLIT, "@main: argument 1 has mhlo.sharding = "),
        (X, Y, '@main: result 0 has jax.result_info = "x", and "y" in the second version'),
        (ONE_PART, TWO_PARTS, "module has mhlo.num_partitions = 1"),
        (BARE, given(result='tensor<8xf32> attributes {thread = "host"}'), '@main: function gains thread = "host"'),
    ],
)
def test_attributes_are_compared(before, after, told):
    """What is lost, gained or another one is told with what it belongs to."""
    found = interface_differences(*programs(before, after))
    assert len(found) == bool(told)
    assert all(one.startswith(told) for one in found)


def test_every_public_function_is_verified():
    """A mistake in a public function beside @main is a region of that function."""
    texts = (PLAIN + function("public @f", "%a: 8xf32", f"%r = {op} %a") for op in ("negate", "abs"))
    verdict = verify(*texts, level="regions")
    assert [(r.function, r.status) for r in verdict.regions] == [("f", "differs")]


CALL = 'custom_call @tell(%a) {has_side_effect = true, backend_config = "WHAT"} -> ()'


@pytest.mark.parametrize(
    ("calls", "told"),
    [
        (CALL, ""),
        ("", "main: operations with effects: custom_call and none"),
        (f"{CALL}\n{CALL}", "main: operations with effects: custom_call and custom_call, custom_call"),
        (CALL.replace("WHAT", "ELSE"), "main: custom_call with other attributes"),
    ],
)
def test_effects_stay_in_number_and_order(calls, told):
    """An operation with effects may not vanish, come twice, or have other attributes."""
    bodies = f"{CALL}\n%r = negate %a", f"{calls}\n%r = abs %a"
    pairs = aligned(*(module("%a: 8xf32", body) for body in bodies))
    assert [what for pair in pairs for what in effect_differences(pair)] == ([told] if told else [])


GIVEN, ARGUMENTS = "%x: 8xf32, %y: 8xf32", "%a: 8xf32, %b: 8xf32"
FUNCTIONS = function("private @own", GIVEN, "%r = subtract %x, %y", "%r") + function(
    "private @turned", "%y: 8xf32, %x: 8xf32", "%r = subtract %x, %y", "%r"
)


def composite(result, operands="%a, %b", name="my.op", k=1, of="own"):
    """A composite of two operands."""
    attributes = f"{{composite_attributes = {{k = {k} : i32}}, decomposition = @{of}}}"
    kinds = "(tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>"
    return f'%{result} = stablehlo.composite "{name}" {operands} {attributes} : {kinds}\n'


def composed(body):
    """A module with both functions."""
    return module(ARGUMENTS, body, "%r", FUNCTIONS)


def told(before, after):
    """What composites became others."""
    return composite_differences(aligned(before, after))


SUBTRACTED = "%r = subtract %a, %b\n"
ONE, FIRST, SECOND, ALIKE = composite("r"), composite("s"), composite("t", "%b, %a"), composite("t")
LOCAL = composite("s", "%x, %b")
LOOPED = """%zero = constant 0 : i32; %three = constant 3 : i32; %one = constant 1 : i32
  %n, %r = while(%i = %zero, %x = %a) cond { %more = compare LT, %i, %three; return %more } do {
    %j = add %i, %one
    INNER
    return %j, %s }"""
TWICE = f"{FIRST}{SECOND}%r = multiply %s, %t"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        *((SUBTRACTED, ONE), (ONE, SUBTRACTED), (TWICE, TWICE.replace(FIRST, "%s = subtract %a, %b\n"))),
        (  # one is written out where another comes in elsewhere
            f"{FIRST}%t = subtract %b, %a; %r = add %s, %t",
            f"%s = subtract %a, %b\n{composite('t', '%b, %a', 'my.other')}%r = add %s, %t",
        ),
    ],
)
def test_a_composite_may_be_written_out_or_come_in(before, after):
    """Such versions are the same operations, so nothing is run and no region is told."""
    verdict = verify(composed(before), composed(after), level="regions")
    assert (verdict.ok, verdict.regions, verdict.interface) == (True, (), ())


WRONG = {
    "another name": (ONE, composite("r", name="my.other")),
    "another attribute": (ONE, composite("r", k=2)),
    "exchanged operands": (ONE, composite("r", "%b, %a", of="turned")),
    "one of two": (TWICE, TWICE.replace(SECOND, composite("t", "%b, %a", k=2))),
    "one of two alike": (f"{FIRST}{ALIKE}%r = add %s, %t", f"{FIRST}{composite('t', k=2)}%r = add %s, %t"),
    "in a loop": (LOOPED.replace("INNER", LOCAL), LOOPED.replace("INNER", composite("s", "%x, %b", k=2))),
}


@pytest.mark.parametrize("case", WRONG)
def test_none_may_become_another_one(case):
    """Each computes what it computed, and is another one to whoever knows it."""
    before, after = map(composed, WRONG[case])
    [what] = told(before, after)
    assert "the first version has none of th" in what
    assert told(before, before) == []
    assert verify(before, after, level="regions").exit_code == 1


def test_none_may_become_another_one_where_something_else_changed():
    """A region that is equal as it stands holds one that is not what it was."""
    before, (same, other) = composed(f"{FIRST}%r = add %s, %s"), (
        composed(f"%two = constant 2.0 : 8xf32\n{composite('s', k=k)}%r = multiply %s, %two") for k in (1, 2)
    )  # fmt: skip
    verdict = verify(before, other, level="regions")
    assert [region.status for region in verdict.regions] == ["equal"]
    assert "my.op" in verdict.interface[0]
    assert verify(before, same, level="regions").ok


@pytest.mark.parametrize("before", [SUBTRACTED, ONE])
def test_a_wrong_decomposition_differs(before):
    """Whether the first version has the composite or what it stands for."""
    verdict = verify(composed(before), composed(ONE).replace("subtract %x, %y", "subtract %y, %x", 1), level="regions")
    assert [region.status for region in verdict.regions] == ["differs"]


def test_composites_of_symbolic_sizes_are_compared():
    """With sizes they are written out; their attributes are compared before."""
    one, other, wrong = (composed(composite("r", k=k)).replace("8xf32", "?xf32") for k in (1, 2, 1))
    wrong = wrong.replace("stablehlo.subtract", "stablehlo.add")
    assert hl.verify(one, one).ok
    assert "my.op" in verify(one, other, level="regions").interface[0]
    assert [region.status for region in verify(one, wrong, level="regions").regions] == ["differs"]
