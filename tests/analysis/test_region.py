"""What a scatter's region computes: every combiner, and what comes near to it."""

import pytest

from hlo_lower.facts.values.region import Combiner, classify_region
from hlo_lower.ir.reader import read


def region(body, element="f32", arity=1, outer=""):
    """The facts of a region with the arguments %c0, ... (current) and %u0, ... (updates)."""
    t = f"tensor<{element}>"
    many = [f"%c{k}" for k in range(arity)] + [f"%u{k}" for k in range(arity)]
    operands, updates = [f"%o{k}" for k in range(arity)], [f"%w{k}" for k in range(arity)]
    big = f"tensor<4x{element}>"
    types = [big] * arity + ["tensor<1xi32>"] + [t] * arity
    arguments = [*(f"{o}: {big}" for o in operands), "%i: tensor<1xi32>", *(f"{w}: {t}" for w in updates)]
    results = ", ".join([big] * arity)
    head = "%r" if arity == 1 else f"%r:{arity}"
    returned = ", ".join("%r" if arity == 1 else f"%r#{k}" for k in range(arity))
    graph = read(
        f"""func.func public @main({", ".join(arguments)}) -> ({results}) {{
  {outer.replace("$t", t)}
  {head} = "stablehlo.scatter"({", ".join([*operands, "%i", *updates])}) <{{scatter_dimension_numbers =
    #stablehlo.scatter<inserted_window_dims = [0], scatter_dims_to_operand_dims = [0]>}}> ({{
  ^bb0({", ".join(f"{m}: {t}" for m in many)}):
    {body.replace("$t", t)}
  }}) : ({", ".join(types)}) -> ({results})
  return {returned} : {results}
}}
"""
    )
    return classify_region(graph.scatters[0].blocks[0])


def one(op, left="%c0", right="%u0", element="f32"):
    """The combiner of a region of one binary op."""
    return region(f"%s = stablehlo.{op} {left}, {right} : $t\nstablehlo.return %s : $t", element).common


@pytest.mark.parametrize(
    ("op", "combiner"),
    [
        ("add", Combiner.ADD),
        ("multiply", Combiner.MUL),
        ("minimum", Combiner.MIN),
        ("maximum", Combiner.MAX),
        ("and", Combiner.AND),
        ("or", Combiner.OR),
        ("xor", Combiner.XOR),
    ],
)
def test_commutative_combiners(op, combiner):
    """Each is found in either order of its operands, and is not found on a value taken twice."""
    assert (combiner, combiner) == (one(op, element="i32"), one(op, "%u0", "%c0", element="i32"))
    assert (
        one(op, "%c0", "%c0", element="i32"),
        one(op, "%u0", "%u0", element="i32"),
    ) == (Combiner.UNARY, Combiner.ASSIGN)


def test_subtraction_does_not_commute():
    """Current minus update is sub; update minus current is not."""
    assert (one("subtract"), one("subtract", "%u0", "%c0")) == (Combiner.SUB, Combiner.GENERAL)


def test_on_booleans_add_is_or_and_multiply_is_and():
    """i1 has no other arithmetic (trap 25)."""
    assert (one("add", element="i1"), one("multiply", element="i1")) == (Combiner.OR, Combiner.AND)
    assert (one("maximum", element="i1"), one("xor", element="i1")) == (Combiner.MAX, Combiner.XOR)


@pytest.mark.parametrize(
    ("body", "combiner"),
    [
        ("stablehlo.return %u0 : $t", Combiner.ASSIGN),
        ("%n = stablehlo.negate %u0 : $t\nstablehlo.return %n : $t", Combiner.ASSIGN),
        ("stablehlo.return %c0 : $t", Combiner.NO_OP),
        ("%n = stablehlo.negate %c0 : $t\nstablehlo.return %n : $t", Combiner.UNARY),
        ("%k = stablehlo.constant dense<1.0> : $t\nstablehlo.return %k : $t", Combiner.ASSIGN_CONSTANT),
        ("stablehlo.return %outer : $t", Combiner.ASSIGN_CONSTANT),
        ("%d = stablehlo.divide %c0, %u0 : $t\nstablehlo.return %d : $t", Combiner.GENERAL),
        (
            "%s = stablehlo.add %c0, %u0 : $t\n%n = stablehlo.negate %s : $t\nstablehlo.return %n : $t",
            Combiner.GENERAL,
        ),
        ("%s = stablehlo.add %c0, %outer : $t\nstablehlo.return %s : $t", Combiner.UNARY),
        ("%s = stablehlo.add %c0, %u0 : $t\nstablehlo.return %u0 : $t", Combiner.ASSIGN),
    ],
)
def test_other_combiners(body, combiner):
    """What the result depends on decides: the update alone, the current value alone, neither, or both."""
    found = region(body, outer="%outer = stablehlo.constant dense<2.0> : $t")
    assert (combiner,) == found.combiners
    assert len(found.why) == 1


def test_a_dependence_through_a_nested_region_counts():
    """A value that an inner region captures is a value that the result depends on."""
    body = """%p = stablehlo.compare LT, %u0, %u0 : ($t, $t) -> tensor<i1>
    %n = "stablehlo.if"(%p) ({
      stablehlo.return %c0 : $t
    }, {
      stablehlo.return %u0 : $t
    }) : (tensor<i1>) -> $t
    stablehlo.return %n : $t"""
    assert region(body).combiners == (Combiner.GENERAL,)


TWO = "%s = stablehlo.add %c0, %u0 : $t\n%m = stablehlo.maximum %c1, %u1 : $t\nstablehlo.return {}, {} : $t, $t"


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
    found = region(TWO.format(first, second), arity=2)
    assert (combiners, separable) == (found.combiners, found.separable)
    assert found.common is (combiners[0] if combiners[0] is combiners[1] else Combiner.GENERAL)
