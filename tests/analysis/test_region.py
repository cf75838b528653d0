"""What a scatter's region computes: every combiner, and what comes near to it."""

import pytest
from untyped_mlir import module

from hlo_lower.facts.values.region import Combiner, classify_region
from hlo_lower.ir.reader import read


def region(body, element="f32", arity=1):
    """The facts of a region with the arguments %c0, ... (current) and %u0, ... (updates); %outer is captured."""
    operands, updates, current, new = ([f"%{n}{k}" for k in range(arity)] for n in "owcu")
    types = [*(f"{o}: 4x{element}" for o in operands), "%i: 1xi32", *(f"{w}: {element}" for w in updates)]
    values, arguments = ", ".join([*operands, "%i", *updates]), ", ".join([*current, *new])
    lines = f"%outer = constant 1 : {element}\n" if element[0] == "i" else "%outer = constant 2.0 : f32\n"
    lines += f"%r:{arity} = scatter({values}) <inserted=[0], to=[0]> {{ {arguments}:\n{body}\n}}\nreturn %r#0"
    graph = read(module(", ".join(types), lines))
    return classify_region(graph.scatters[0].blocks[0])


def one(op, operands="%c0, %u0", element="i32"):
    """The combiner of a region of one binary op."""
    return region(f"%s = {op} {operands}; return %s", element).common


@pytest.mark.parametrize("op", ["add", "multiply", "minimum", "maximum", "and", "or", "xor"])
def test_commutative_combiners(op):
    """Each is found in either order of its operands, and is not found on a value taken twice."""
    assert {one(op), one(op, "%u0, %c0")} == {Combiner[op.upper()[:3]]}
    assert (one(op, "%c0, %c0"), one(op, "%u0, %u0")) == (Combiner.UNARY, Combiner.ASSIGN)


def test_other_binary_ops():
    """Subtraction does not commute; on booleans add is or and multiply is and (trap 25)."""
    assert (one("subtract"), one("subtract", "%u0, %c0")) == (Combiner.SUB, Combiner.GENERAL)
    found = [one(op, element="i1") for op in ("add", "multiply", "maximum", "xor")]
    assert found == [Combiner.OR, Combiner.AND, Combiner.MAX, Combiner.XOR]


@pytest.mark.parametrize(
    ("body", "combiner"),
    [
        ("return %u0", Combiner.ASSIGN),
        ("%n = negate %u0; return %n", Combiner.ASSIGN),
        ("return %c0", Combiner.NO_OP),
        ("%n = negate %c0; return %n", Combiner.UNARY),
        ("%k = constant 1.0 : f32; return %k", Combiner.ASSIGN_CONSTANT),
        ("return %outer", Combiner.ASSIGN_CONSTANT),
        ("%s = add %c0, %u0; %n = negate %s; return %n", Combiner.GENERAL),
        ("%s = add %c0, %outer; return %s", Combiner.UNARY),
        ("%s = add %c0, %u0; return %u0", Combiner.ASSIGN),
        # a value that an inner region captures is a value that the result depends on
        ("%p = compare LT, %u0, %u0; %n = if(%p) { return %c0 } { return %u0 }\nreturn %n", Combiner.GENERAL),
    ],
)
def test_other_combiners(body, combiner):
    """What the result depends on decides: the update alone, the current value alone, neither, or both."""
    found = region(body)
    assert (combiner,) == found.combiners
    assert len(found.why) == 1


@pytest.mark.parametrize(
    ("first", "second", "combiners", "separable"),
    [
        ("%s", "%m", (Combiner.ADD, Combiner.MAX), True),
        ("%u0", "%u1", (Combiner.ASSIGN, Combiner.ASSIGN), True),
        ("%c0", "%u1", (Combiner.NO_OP, Combiner.ASSIGN), True),
        ("%u1", "%u0", (Combiner.ASSIGN, Combiner.ASSIGN), False),
        ("%c1", "%c0", (Combiner.GENERAL, Combiner.GENERAL), False),
        ("%s", "%s", (Combiner.ADD, Combiner.GENERAL), False),
    ],
)
def test_variadic_regions(first, second, combiners, separable):
    """Results that take from another operand are coupled; the current values come first (trap 22)."""
    found = region(f"%s = add %c0, %u0; %m = maximum %c1, %u1; return {first}, {second}", arity=2)
    assert (combiners, separable) == (found.combiners, found.separable)
    assert found.common is (combiners[0] if combiners[0] is combiners[1] else Combiner.GENERAL)
