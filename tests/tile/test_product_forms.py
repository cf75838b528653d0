"""Products get the form of which least is copied, bit for bit, and the judge knows both forms of one product."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from random_graphs import are_equal

import hlo_lower as hl
from hlo_lower.ir.writer import to_text
from hlo_lower.tile.prepare.normalize import inline_calls
from hlo_lower.tile.prepare.product_forms import copied_bytes_of_product, factors_of, settle_products
from hlo_lower.verify.pull import derive


def both_forms(function, *shapes):
    """A module of a product of integers, or of an equation as einsum writes it; and in the form that copies least."""
    if isinstance(function, str):
        function = lambda a, b, equation=function: jnp.einsum(equation, a, b)  # noqa: E731
    graph = hl.read(jax.jit(function).lower(*(jax.ShapeDtypeStruct(s, jnp.int32) for s in shapes)).as_text())
    inline_calls(graph)
    before = to_text(graph)
    settle_products(graph)
    return before, to_text(graph)


def copies(text):
    """Bytes that the products of a module copy."""
    graph = hl.read(text)
    dots = [node for node in graph.main.body.nodes if node.name == "stablehlo.dot_general"]
    return sum(copied_bytes_of_product(*factors_of(dot)) for dot in dots)


SETTLED = {  # the product, and the bytes that are copied in the other form
    "weights of attention": ("hts,shd->thd", (4, 8, 8), (8, 4, 2), 256),
    "gathered weights of experts": ("td,tkdf->tkf", (8, 3), (8, 2, 3, 32), 0),
    "these, the other way round": ("tkdf,td->tkf", (8, 2, 3, 32), (8, 3), 0),
    "of a matrix of one column": ("td,tkdf->tkf", (8, 3), (8, 2, 3, 1), 0),
    "the gradient of attention": ("hts,htd->hsd", (4, 8, 32), (4, 8, 2), 256),
    "a transpose that goes": (lambda a, b: jnp.einsum("td,dv->tv", a, b).T, (8, 3), (3, 5), 0),
}
KEPT = {
    "rows on both sides": ("btd,bkdf->btkf", (2, 5, 3), (2, 2, 3, 4)),
    "without a batch": ("td,kdf->tkf", (8, 3), (2, 3, 4)),
    "a small factor": ("hts,htd->hsd", (4, 8, 2), (4, 8, 16)),
    "of large factors": (lambda a, b: jnp.einsum("hdt,hts->hds", a, b).swapaxes(1, 2), (4, 2, 8), (4, 8, 9)),
}


@pytest.mark.parametrize("what", SETTLED)
def test_least_is_copied(what):
    """Both forms give the same, and no more than the small factor is copied in the second one."""
    *product, left = SETTLED[what]
    before, after = both_forms(*product)
    assert after != before
    assert copies(after) == left < max(copies(before), 1)
    assert are_equal(before, after, "quick", 1)
    assert derive(before, after)


def test_a_product_stays_where_nothing_is_gained():
    for what, product in KEPT.items():
        before, after = both_forms(*product)
        assert before == after, what


@pytest.mark.parametrize("seed", [*range(3), *(pytest.param(s, marks=pytest.mark.sweep) for s in range(3, 40))])
def test_random_products(seed):
    """Whatever the dims of a product are, in whatever order, its settled form gives the same and is shown to."""
    rng = np.random.default_rng(seed)
    for _ in range(8):
        names = iter("abcdefgh")
        ends = (0, 3), (0, 3), (0, 3), (1, 3)
        batch, first, second, summed = ([next(names) for _ in range(rng.integers(*pair))] for pair in ends)
        size = {name: int(rng.integers(1, 5)) for name in "abcdefgh"}
        terms = ["".join(rng.permutation([*batch, *own, *summed])) for own in (first, second)]
        result = rng.permutation([*batch, *first, *second]) if rng.random() < 0.7 else [*batch, *first, *second]
        shapes = ([size[name] for name in term] for term in terms)
        before, after = both_forms(f"{terms[0]},{terms[1]}->{''.join(result)}", *shapes)
        assert copies(after) <= copies(before)
        assert derive(before, after)
        assert after == before or are_equal(before, after, "quick", seed)


def test_other_products_are_told_apart():
    """A factor that is repeated along another dim, or a result whose dims stand otherwise, is another product."""
    for product, pattern, instead in (
        (("td,tkdf->tkf", (4, 4), (4, 4, 4, 64)), r"dims = \[0, 2\]", "dims = [1, 2]"),
        (("hts,shd->thd", (4, 4, 4), (4, 4, 1)), r"(transpose .*dims = )\[1, 0, 2\]", r"\1[0, 1, 2]"),
    ):
        before, after = both_forms(*product)
        wrong = re.sub(pattern, instead, after)
        assert wrong != after
        assert not derive(before, wrong)


def test_tiles_of_a_turned_product_are_shown(estimated):
    """A loop adds up a product of the other form, and what it gives is transposed; otherwise it is another one."""

    def gradient(q, k, g):
        return jnp.einsum("hts,htd->hsd", jnp.exp(jnp.einsum("htd,hsd->hts", q, k)), g)

    rows, keys = jax.ShapeDtypeStruct((2, 64, 2), jnp.float32), jax.ShapeDtypeStruct((2, 32, 2), jnp.float32)
    before = jax.jit(gradient).lower(rows, keys, rows).as_text()
    after = hl.tile(before, max_temp="9KiB").text
    assert "2x2x32xf32" in after.split("stablehlo.while")[1]
    assert derive(before, after, reassociated=True)
    assert not derive(before, after)
    wrong = re.sub(r"(transpose .*dims = )\[0, 2, 1\](.*2x2x32)", r"\1[1, 2, 0]\2", after)
    assert wrong != after
    assert not derive(before, wrong, reassociated=True)
