"""A composite is what it stands for, and its name, attributes and operands are what a consumer sees."""

import pytest
from two_programs import F8, aligned, main

import hlo_lower as hl
from hlo_lower.verify import verify
from hlo_lower.verify.read.interface import composite_differences

OWN = f"func.func private @own(%x: {F8}, %y: {F8}) -> {F8} {{ %r = stablehlo.subtract %x, %y : {F8} return %r : {F8} }}"
TURNED = OWN.replace("@own(%x", "@turned(%x").replace("%x, %y :", "%y, %x :")
"""The same with its operands exchanged."""

ARGUMENTS = f"%a: {F8}, %b: {F8}"


def composite(result: str, operands: str, name: str = "my.op", k: int = 1, of: str = "own") -> str:
    """A composite of two operands."""
    attributes = f"{{composite_attributes = {{k = {k} : i32}}, decomposition = @{of}}}"
    return f'%{result} = stablehlo.composite "{name}" {operands} {attributes} : ({F8}, {F8}) -> {F8}\n'


def module(*lines: str) -> str:
    """A module with both functions."""
    return main(ARGUMENTS, "".join(lines), "%r", more=f"{OWN}\n{TURNED}")


def looped(inner: str) -> str:
    """A module whose loop makes %r of what it carries, %x."""
    return main(
        ARGUMENTS,
        f"""%zero = stablehlo.constant dense<0> : tensor<i32>
        %three = stablehlo.constant dense<3> : tensor<i32>
        %one = stablehlo.constant dense<1> : tensor<i32>
        %n, %r = stablehlo.while(%i = %zero, %x = %a) : tensor<i32>, {F8}
        cond {{
          %more = stablehlo.compare LT, %i, %three : (tensor<i32>, tensor<i32>) -> tensor<i1>
          stablehlo.return %more : tensor<i1>
        }} do {{
          %j = stablehlo.add %i, %one : tensor<i32>
          {inner}
          stablehlo.return %j, %s : tensor<i32>, {F8}
        }}""",
        "%r",
        more=f"{OWN}\n{TURNED}",
    )


def told(before: str, after: str) -> list[str]:
    """What composites became others."""
    return composite_differences(aligned(before, after))


PLAIN = f"%r = stablehlo.subtract %a, %b : {F8}\n"
NEXT = f"%r = stablehlo.tanh %s : {F8}\n"
TWICE = composite("s", "%a, %b") + composite("t", "%b, %a") + f"%r = stablehlo.multiply %s, %t : {F8}\n"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (PLAIN, composite("r", "%a, %b")),
        (composite("r", "%a, %b"), PLAIN),
        (composite("s", "%a, %b") + NEXT, composite("s", "%a, %b") + NEXT),
        (TWICE, TWICE.replace(composite("s", "%a, %b"), f"%s = stablehlo.subtract %a, %b : {F8}\n")),
    ],
)
def test_a_composite_may_be_written_out_or_come_in(before, after):
    """Such versions are the same operations, so nothing is run and no region is told."""
    verdict = verify(module(before), module(after), level="regions")
    assert (verdict.ok, verdict.regions, verdict.interface) == (True, (), ())


def test_one_may_be_written_out_where_another_comes_in_elsewhere():
    """What is lost at one value and what comes in at another are two changes."""
    before = composite("s", "%a, %b") + f"%t = stablehlo.subtract %b, %a : {F8}\n%r = stablehlo.add %s, %t : {F8}\n"
    after = (
        f"%s = stablehlo.subtract %a, %b : {F8}\n"
        + composite("t", "%b, %a", "my.other")
        + (f"%r = stablehlo.add %s, %t : {F8}\n")
    )
    assert verify(module(before), module(after), level="regions").ok


WRONG = {
    "another name": (composite("r", "%a, %b"), composite("r", "%a, %b", "my.other")),
    "another attribute": (composite("r", "%a, %b"), composite("r", "%a, %b", k=2)),
    "exchanged operands": (composite("r", "%a, %b"), composite("r", "%b, %a", of="turned")),
    "below another op": (composite("s", "%a, %b") + NEXT, composite("s", "%a, %b", k=2) + NEXT),
    "one of two": (TWICE, TWICE.replace(composite("t", "%b, %a"), composite("t", "%b, %a", k=2))),
    "one of two alike": (
        composite("s", "%a, %b") + composite("t", "%a, %b") + f"%r = stablehlo.add %s, %t : {F8}\n",
        composite("s", "%a, %b") + composite("t", "%a, %b", k=2) + f"%r = stablehlo.add %s, %t : {F8}\n",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_none_may_become_another_one(case):
    """Each computes what it computed, and is another one to whoever knows it."""
    before, after = map(module, WRONG[case])
    [what] = told(before, after)
    assert "the first version has none of th" in what
    assert verify(before, after, level="regions").exit_code == 1


@pytest.mark.parametrize("how", [{"k": 2}, {"name": "my.other"}])
def test_none_may_become_another_one_in_a_loop(how):
    """Bodies that compute the same are looked at for what their composites are."""
    before, after = (looped(composite("s", "%x, %b", **other)) for other in ({}, how))
    assert told(before, before) == []
    [what] = told(before, after)
    assert "none of this name and these attributes" in what


def test_none_may_become_another_one_where_something_else_changed():
    """A region that is equal as it stands holds one that is not what it was."""
    before = composite("s", "%a, %b") + f"%r = stablehlo.add %s, %s : {F8}\n"
    two = f"%two = stablehlo.constant dense<2.0> : {F8}\n"
    after = two + composite("s", "%a, %b", k=2) + f"%r = stablehlo.multiply %s, %two : {F8}\n"
    verdict = verify(module(before), module(after), level="regions")
    assert [region.status for region in verdict.regions] == ["equal"]
    assert "my.op" in verdict.interface[0]
    assert verify(module(before), module(after.replace("k = 2", "k = 1")), level="regions").ok


@pytest.mark.parametrize("wrong", ["subtract %y, %x", "add %x, %y"])
@pytest.mark.parametrize("before", [PLAIN, composite("r", "%a, %b")])
def test_a_wrong_decomposition_differs(before, wrong):
    """Whether the first version has the composite or what it stands for."""
    after = module(composite("r", "%a, %b")).replace("subtract %x, %y", wrong, 1)
    verdict = verify(module(before), after, level="regions")
    assert [region.status for region in verdict.regions] == ["differs"]


def open_module(k: int, op: str = "subtract") -> str:
    """A module of a symbolic size with a composite."""
    kind = "tensor<?xf32>"
    body = composite("r", "%a, %b", k=k).replace(F8, kind)
    own = OWN.replace(F8, kind).replace("subtract", op)
    return main(f"%a: {kind}, %b: {kind}", body, "%r", kind, own)


def test_composites_of_symbolic_sizes_are_compared():
    """With sizes they are written out; their attributes are compared before."""
    assert hl.verify(open_module(1), open_module(1)).ok
    assert "my.op" in verify(open_module(1), open_module(2), level="regions").interface[0]
    differing = verify(open_module(1), open_module(1, "add"), level="regions")
    assert [region.status for region in differing.regions] == ["differs"]
