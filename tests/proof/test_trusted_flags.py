"""What `unique_indices` promises, and of whom: it holds of the first version's scatters where they are run."""

import pytest

pytest.importorskip("z3")

from untyped_mlir import module

from hlo_lower.verify.proof import prove_equal

ARGUMENTS = "%o: 3xi8, %i: 2x1xi8, %u: 2xi8, %p: i1"
SCATTERED = "%r = scatter(%o, {}, %u) <points, unique_indices = true> {{add}}"
"""A scatter whose flag says that no row is written twice."""
UNLESS_BOTH_ZERO = """%x = slice %i [0:1, 0:1]; %y = slice %i [1:2, 0:1]; %b = or %x, %y; %z = constant 0 : 1x1xi8
%e = compare EQ, %b, %z; %q = reshape %e -> i1; %n = negate %o; %w = select %q, %n, %o"""


def branched(otherwise):
    """A scatter where a condition holds, and something else where it does not."""
    body = f"%c = if(%p) {{ {SCATTERED.format('%i')}; return %r }} {{ {otherwise}; return %w }}"
    return module(ARGUMENTS, body, "%c")


def test_a_false_promise_of_the_second_version_proves_nothing():
    """Its scatter writes one row twice and says that it does not; the first version keeps the operand."""
    twice = "%k = slice %i [0:1, 0:1]; %j = concatenate %k, %k, dim = 0 -> 2x1xi8\n" + SCATTERED.format("%j")
    assert not prove_equal(module(ARGUMENTS, "", "%o"), module(ARGUMENTS, twice, "%r"), trust_flags=True)


def test_a_promise_holds_where_its_scatter_is_run():
    """In the other branch nothing is promised of the indices."""
    first = branched("%w = reverse %o, dims = []")
    assert prove_equal(first, first, trust_flags=True)
    assert not prove_equal(first, branched(UNLESS_BOTH_ZERO), trust_flags=True)
