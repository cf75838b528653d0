"""Two dims of a fold are one only where its terms hold their row-major number alone; one order of what commutes."""

from collections import Counter
from itertools import combinations, product

import numpy as np
import pytest
import z3

from hlo_lower.verify.pull.floats import _is_negation  # pyright: ignore[reportPrivateUsage]
from hlo_lower.verify.pull.occurrences import IN_ORDER, Made, in_one_order, with_joined_dims
from hlo_lower.verify.pull.parts import terms_anew
from hlo_lower.verify.pull.positions import Positions

SIZES = (2, 3, 4, 6)


def free():
    """A position of the place that is asked for: of z3's present context."""
    return z3.BitVec("p", 32)


def values(made):
    """What a fold combines, in row-major order, at one place."""
    found = []
    for numbers in product(*map(range, made.sizes)):
        given = [(name, z3.BitVecVal(value, 32)) for name, value in zip(made.bound, numbers, strict=True)]
        found.append(
            tuple(str(z3.simplify(z3.substitute(term, (free(), z3.BitVecVal(5, 32)), *given))) for term in made.terms)
        )
    return found


def random_fold(rng, kind):
    """A fold over two or three dims of functions of sums of multiples of their positions, most as loops over tiles
    write them."""
    positions, sizes = Positions(), [int(rng.choice(SIZES)) for _ in range(rng.integers(2, 4))]
    bound = positions.place("k", sizes)
    g = z3.Function("g:32", *[z3.BitVecSort(32)] * 2)
    strides = [int(np.prod(sizes[d + 1 :])) for d in range(len(sizes))]

    def number():
        factors = [strides, strides, [2 * s for s in strides], [1] * len(sizes), [-s for s in strides]][rng.integers(5)]
        off = [int(rng.choice((0, 0, 0, 0, 1, 1 << 31))) * (rng.integers(8) == 0) for _ in sizes]
        parts = [name * (factor + more) for name, factor, more in zip(bound, factors, off, strict=True)]
        some = [part for part in parts if rng.integers(8)] or parts
        return z3.simplify(sum(some, free() * int(rng.integers(3)) + int(rng.integers(3))))

    terms = []
    for _ in range(rng.integers(1, 3)):
        inner = number()
        terms.append(z3.simplify(g(inner) + g(number()) if rng.integers(2) else g(g(inner)) + inner))
    return positions, Made(kind, tuple(terms), tuple(bound), tuple(sizes))


@pytest.mark.parametrize("kind", [("combined", "add", "f32"), ("dot_general", IN_ORDER)], ids=["any order", "in order"])
def test_joined_dims_combine_the_same(kind):
    """The same terms as often, and in the same order where that counts; some folds are joined, others are not."""
    rng, joined = np.random.default_rng(1), Counter()
    with terms_anew():
        for _ in range(40):
            positions, made = random_fold(rng, kind)
            found = with_joined_dims(made, positions.variable)
            joined[len(made.sizes) - len(found.sizes)] += 1
            before, after = values(made), values(found)
            assert (before == after) if IN_ORDER in kind else (Counter(before) == Counter(after)), (made, found)
    assert min(joined[k] for k in (0, 1, 2)) > 1, joined


@pytest.mark.parametrize(
    ("outer", "inner", "is_one"),
    [(4, 1, True), (8, 2, True), (3, 1, False), (5, 1, False), (4, 2, False), (1, 4, False), (-4, -1, True)],
    ids=str,
)
def test_only_the_number_of_both_joins_them(outer, inner, is_one):
    """Of tiles of 4: not of those that overlap, leave one out, or are read with a stride."""
    with terms_anew():
        positions = Positions()
        t, k = positions.place("k", (3, 4))
        g = z3.Function("g:32", *[z3.BitVecSort(32)] * 2)
        made = Made(("dot_general", IN_ORDER), (g(z3.simplify(t * outer + k * inner + free())),), (t, k), (3, 4))
        assert (len(with_joined_dims(made, positions.variable).sizes) == 1) is is_one
        apart = Made(made.kind, (made.terms[0] + k,), (t, k), (3, 4))
        assert with_joined_dims(apart, positions.variable) is apart


def test_one_order_keeps_what_is_computed():
    """Terms of what commutes and what does not, shuffled: the same operands, and one order of all that are shuffled."""
    rng = np.random.default_rng(2)

    def told(term):
        operands = [told(child) for child in term.children()]
        name = term.decl().name()
        return (name, *(sorted(operands, key=str) if name.startswith("add") else operands))

    def random_term(depth, leaves):
        if not depth or rng.integers(6) == 0:
            return leaves[rng.integers(len(leaves))]
        return (add, add, minus)[rng.integers(3)](random_term(depth - 1, leaves), random_term(depth - 1, leaves))

    def holds(term):
        return term.eq(k) or any(map(holds, term.children()))

    def shuffled(term):
        operands = [shuffled(child) for child in term.children()]
        is_turned = term.decl().name().startswith("add") and holds(term) and rng.integers(2)
        return term.decl()(*(operands[::-1] if is_turned else operands)) if operands else term

    with terms_anew():
        word, k = z3.BitVecSort(32), z3.BitVec("b0 of 8", 32)
        add, minus = (z3.Function(f"{name} f32:32,32", word, word, word) for name in ("add", "subtract"))
        leaves = [z3.Function(f"argument {n}:32", word, word)(at) for n, at in enumerate((k, k + 1, 2 * k, free()))]
        for _ in range(60):
            term = random_term(4, leaves)
            [one], [other] = in_one_order([term], [k]), in_one_order([shuffled(term)], [k])
            assert told(one) == told(other) == told(term)
        for one, other in combinations(leaves, 2):
            assert in_one_order([add(one, other)], [k])[0].eq(in_one_order([add(other, one)], [k])[0])


def test_only_a_turned_sign_is_a_negation():
    """A sign and the rest of the same number, of its width: no other bits, no other number, no more of them."""
    with terms_anew():
        x, y, wide = z3.BitVec("x", 32), z3.BitVec("y", 32), z3.BitVec("w", 33)

        def of(sign, rest):
            return z3.Concat(~z3.Extract(31, 31, sign), z3.Extract(30, 0, rest))

        assert _is_negation(of(x, x))
        assert _is_negation(z3.simplify(x ^ z3.BitVecVal(1 << 31, 32)))
        others = [
            *(of(x, y), z3.Concat(~z3.Extract(30, 30, x), z3.Extract(30, 0, x)), of(wide, wide), ~x),
            *(
                z3.Concat(z3.Extract(31, 31, x), z3.Extract(30, 0, x)),
                z3.Concat(~z3.Extract(31, 31, x), z3.Extract(31, 1, x)),
            ),
        ]
        assert not any(map(_is_negation, others))
