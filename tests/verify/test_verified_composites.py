"""A composite is what it stands for, and its name, attributes and operands are what a consumer sees."""

import pytest
from two_programs import aligned
from untyped_mlir import function, module

import hlo_lower as hl
from hlo_lower.verify import verify
from hlo_lower.verify.read.interface import composite_differences

GIVEN, ARGUMENTS = "%x: 8xf32, %y: 8xf32", "%a: 8xf32, %b: 8xf32"
FUNCTIONS = function("private @own", GIVEN, "%r = subtract %x, %y") + function(
    "private @turned", "%y: 8xf32, %x: 8xf32", "%r = subtract %x, %y"
)


def composite(result, operands="%a, %b", name="my.op", k=1, of="own"):
    """A composite of two operands."""
    attributes = f"{{composite_attributes = {{k = {k} : i32}}, decomposition = @{of}}}"
    kinds = "(tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>"
    return f'%{result} = stablehlo.composite "{name}" {operands} {attributes} : {kinds}\n'


def composed(body):
    """A module with both functions."""
    return module(ARGUMENTS, body, "%r", FUNCTIONS)


def looped(inner):
    """A loop that makes %r of what it carries, %x."""
    return f"""%zero = constant 0 : i32; %three = constant 3 : i32; %one = constant 1 : i32
      %n, %r = while(%i = %zero, %x = %a) cond {{ %more = compare LT, %i, %three; return %more }} do {{
        %j = add %i, %one
        {inner}
        return %j, %s }}"""


def told(before, after):
    """What composites became others."""
    return composite_differences(aligned(before, after))


PLAIN, NEXT = "%r = subtract %a, %b\n", "%r = tanh %s\n"
ONE, FIRST, SECOND, ALIKE = composite("r"), composite("s"), composite("t", "%b, %a"), composite("t")
TWICE = f"{FIRST}{SECOND}%r = multiply %s, %t"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (PLAIN, ONE),
        (ONE, PLAIN),
        (FIRST + NEXT, FIRST + NEXT),
        (TWICE, TWICE.replace(FIRST, "%s = subtract %a, %b\n")),
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
    "below another op": (FIRST + NEXT, composite("s", k=2) + NEXT),
    "one of two": (TWICE, TWICE.replace(SECOND, composite("t", "%b, %a", k=2))),
    "one of two alike": (f"{FIRST}{ALIKE}%r = add %s, %t", f"{FIRST}{composite('t', k=2)}%r = add %s, %t"),
    "another attribute in a loop": (looped(composite("s", "%x, %b")), looped(composite("s", "%x, %b", k=2))),
    "another name in a loop": (looped(composite("s", "%x, %b")), looped(composite("s", "%x, %b", name="my.other"))),
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


@pytest.mark.parametrize("wrong", ["subtract %y, %x", "add %x, %y"])
@pytest.mark.parametrize("before", [PLAIN, ONE])
def test_a_wrong_decomposition_differs(before, wrong):
    """Whether the first version has the composite or what it stands for."""
    verdict = verify(composed(before), composed(ONE).replace("subtract %x, %y", wrong, 1), level="regions")
    assert [region.status for region in verdict.regions] == ["differs"]


def test_composites_of_symbolic_sizes_are_compared():
    """With sizes they are written out; their attributes are compared before."""
    one, other, wrong = (composed(composite("r", k=k)).replace("8xf32", "?xf32") for k in (1, 2, 1))
    wrong = wrong.replace("stablehlo.subtract", "stablehlo.add")
    assert hl.verify(one, one).ok
    assert "my.op" in verify(one, other, level="regions").interface[0]
    assert [region.status for region in verify(one, wrong, level="regions").regions] == ["differs"]
