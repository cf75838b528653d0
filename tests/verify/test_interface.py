"""What is not computed is compared as it stands: public functions, signatures, attributes, effects, composites."""

import pytest
from two_programs import aligned, programs
from untyped_mlir import function, module

import hlo_lower as hl
from hlo_lower.verify import verify
from hlo_lower.verify.read.interface import composite_differences, effect_differences, interface_differences

PLAIN = module("%a: 8xf32, %b: 8xf32", "%r = add %a, %b")


def differences(before: str, after: str) -> list[str]:
    """How two interfaces differ."""
    return interface_differences(*programs(before, after))


@pytest.mark.parametrize("attribute", ["tf.aliasing_output = 0 : i32", 'mhlo.memory_kind = "pinned_host"'])
def test_an_attribute_of_an_argument_is_not_lost_or_gained(attribute):
    """Each is told with the argument and what it was; the same on both sides is no difference."""
    other = PLAIN.replace("%b: tensor<8xf32>", f"%b: tensor<8xf32> {{{attribute}}}")
    name = attribute.split(" ")[0]
    assert differences(other, other) == []
    [lost], [gained] = differences(other, PLAIN), differences(PLAIN, other)
    assert lost.startswith(f"@main: argument 1 loses {name} = ")
    assert gained.startswith(f"@main: argument 1 gains {name} = ")


def test_other_attributes_are_told():
    """Those of a result with both values; the module's own and a function's; names of modules are not compared."""

    def with_result(behind):
        return PLAIN.replace("-> tensor<8xf32> {", f"-> {behind} {{")

    results = (with_result(f'(tensor<8xf32> {{jax.result_info = "{name}"}})') for name in ("x", "y"))
    assert differences(*results) == ['@main: result 0 has jax.result_info = "x", and "y" in the second version']
    head = "module @{} attributes {{mhlo.num_partitions = {} : i32}}"
    [told] = differences(*(f"{head.format(*how)} {{\n{PLAIN}}}" for how in (("a", 1), ("b", 2))))
    assert told.startswith("module has mhlo.num_partitions = 1")
    other = with_result('tensor<8xf32> attributes {execution_thread = "host"}')
    assert differences(PLAIN, other) == ['@main: function gains execution_thread = "host"']


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
