"""What `unique_indices` promises, and of whom: it holds of the first version's scatters where they are run."""

import pytest

pytest.importorskip("z3")

from hlo_lower.verify.pull import derive

ARGUMENTS = "%o: tensor<3xi8>, %i: tensor<2x1xi8>, %u: tensor<2xi8>, %p: tensor<i1>"


def scattered(indices):
    """A scatter whose flag says that no row is written twice."""
    return f"""%r = "stablehlo.scatter"(%o, {indices}, %u) <{{scatter_dimension_numbers = #stablehlo.scatter<
  inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, unique_indices = true}}> ({{
^bb0(%a: tensor<i8>, %b: tensor<i8>):
  %s = stablehlo.add %a, %b : tensor<i8>
  stablehlo.return %s : tensor<i8>
}}) : (tensor<3xi8>, tensor<2x1xi8>, tensor<2xi8>) -> tensor<3xi8>"""


def module(body, returned):
    """A module of one function."""
    head = f"func.func public @main({ARGUMENTS}) -> tensor<3xi8>"
    return f"{head} {{\n{body}\nreturn {returned} : tensor<3xi8>\n}}\n"


def branched(otherwise):
    """A scatter where a condition holds, and something else where it does not."""
    other = f"{{\n{otherwise}\nstablehlo.return %w : tensor<3xi8>\n}}"
    body = f"{{\n{scattered('%i')}\nstablehlo.return %r : tensor<3xi8>\n}}"
    return module(f'%c = "stablehlo.if"(%p) ({body}, {other}) : (tensor<i1>) -> tensor<3xi8>', "%c")


SAME_TWICE = """%k = stablehlo.slice %i [0:1, 0:1] : (tensor<2x1xi8>) -> tensor<1x1xi8>
%j = stablehlo.concatenate %k, %k, dim = 0 : (tensor<1x1xi8>, tensor<1x1xi8>) -> tensor<2x1xi8>
"""
UNLESS_BOTH_ZERO = """%x = stablehlo.slice %i [0:1, 0:1] : (tensor<2x1xi8>) -> tensor<1x1xi8>
%y = stablehlo.slice %i [1:2, 0:1] : (tensor<2x1xi8>) -> tensor<1x1xi8>
%b = stablehlo.or %x, %y : tensor<1x1xi8>
%z = stablehlo.constant dense<0> : tensor<1x1xi8>
%e = stablehlo.compare EQ, %b, %z : (tensor<1x1xi8>, tensor<1x1xi8>) -> tensor<1x1xi1>
%q = stablehlo.reshape %e : (tensor<1x1xi1>) -> tensor<i1>
%n = stablehlo.negate %o : tensor<3xi8>
%w = stablehlo.select %q, %n, %o : tensor<i1>, tensor<3xi8>"""


def test_a_false_promise_of_the_second_version_proves_nothing():
    """Its scatter writes one row twice and says that it does not; the first version keeps the operand."""
    assert not derive(module("", "%o"), module(SAME_TWICE + scattered("%j"), "%r"), trust_flags=True)


SECOND_ROW = """%k = stablehlo.slice %i [1:2, 0:1] : (tensor<2x1xi8>) -> tensor<1x1xi8>
%v = stablehlo.slice %u [1:2] : (tensor<2xi8>) -> tensor<1xi8>
%first = stablehlo.slice %i [0:1, 0:1] : (tensor<2x1xi8>) -> tensor<1x1xi8>
%w = stablehlo.slice %u [0:1] : (tensor<2xi8>) -> tensor<1xi8>
%j = stablehlo.concatenate %k, %first, dim = 0 : (tensor<1x1xi8>, tensor<1x1xi8>) -> tensor<2x1xi8>
%t = stablehlo.concatenate %v, %w, dim = 0 : (tensor<1xi8>, tensor<1xi8>) -> tensor<2xi8>
"""


def test_a_promise_of_the_first_version_is_used_where_flags_are_trusted():
    """Of rows that are written once the order does not matter, though a row less another one is not the reverse."""
    lessened = [scattered(i).replace("stablehlo.add %a, %b", "stablehlo.subtract %b, %a") for i in ("%i", "%j")]
    turned = SECOND_ROW + lessened[1].replace("(%o, %j, %u)", "(%o, %j, %t)")
    for first, second in (((module(lessened[0], "%r")), module(turned, "%r")),):
        assert derive(first, second, trust_flags=True)
        assert not derive(first, second)


def test_a_promise_holds_where_its_scatter_is_run():
    """In the other branch nothing is promised of the indices."""
    first = branched("%w = stablehlo.reverse %o, dims = [] : tensor<3xi8>")
    assert derive(first, first, trust_flags=True)
    assert not derive(first, branched(UNLESS_BOTH_ZERO), trust_flags=True)
