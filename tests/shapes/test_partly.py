"""Binding some of the names, with the others left open."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import hlo_lower as hl
from hlo_lower.ir.shapes.constraints import readable
from hlo_lower.ir.shapes.expressions import substituted
from hlo_lower.ir.shapes.specification import specification_of
from hlo_lower.ir.writer import to_text


def paged(pool, slots, rows, owners, offsets):
    """Rows written into a pool of pages, by slot; slots outside are dropped."""
    return pool.at[slots].set(rows, mode="drop")


SHAPES = (
    *("blocks * size, 4", "i32[n]", "n, 4", "blocks", "size"),
    *("size % 16 == 0", "blocks * size > n", "n <= 64"),
)


@pytest.fixture(scope="module")
def exported():
    """`paged`, exported."""
    return hl.export(paged, shapes=SHAPES)


def told(graph):
    """The dims of the arguments and the constraints, from the text of a module alone."""
    found = specification_of(hl.read(to_text(graph)).module)
    assert found is not None
    return found.dims, [readable(constraint) for constraint in found.constraints]


def unnumbered(graph):
    """The lines of a module without the numbers of its values, which depend on the order of its constants."""
    return sorted(re.sub(r"%\w+", "%", line) for line in to_text(graph).splitlines())


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("blocks*size + 1", "blocks*16 + 1"),
        ("mod(size, 4)", "0"),
        ("n", "n"),
        ("size^2*n", "16^2*n"),
        ("max(n, mod(size - n, 3))", "max(n, mod(16 - n, 3))"),
    ],
)
def test_sizes_are_put_into_an_expression(text, found):
    """What has a size is replaced by it, and what has none stays, in JAX's notation."""
    assert found == substituted(text, {"size": 16})


def test_some_names_are_bound(exported):
    """Shapes, constraints and the Exported's signature have the size in them, from the Exported and from its text."""
    dims = (("blocks*16", "4"), ("n",), ("n", "4"), ("blocks",), ("16",))
    for source in (exported, to_text(hl.read(exported))):
        bound = hl.bind(source, {"size": 16})
        assert told(bound) == (dims, ["blocks*16 >= n + 1", "n <= 64"])
    signature = hl.bind(exported, {"size": 16}).exported.in_avals
    assert [tuple(map(str, aval.shape)) for aval in signature] == [("16*blocks", "4"), *dims[1:]]


def test_binding_in_two_steps_is_binding_at_once(exported):
    """What is bound partly and then wholly is the module that is bound at once."""
    sizes = {"blocks": 3, "size": 16, "n": 5}
    once = unnumbered(hl.bind(exported, sizes))
    part = hl.bind(exported, {"size": 16})
    assert once == unnumbered(hl.bind(part, {"blocks": 3, "n": 5}))
    assert once == unnumbered(hl.bind(to_text(part), {"blocks": 3, "n": 5}))
    assert once != unnumbered(hl.bind(part, {"blocks": 3, "n": 6}))


def test_a_partly_bound_function_is_called(exported):
    """It computes what the function does, at any size of the names left open, and lowered too."""
    for function in (hl.bind(exported, {"size": 16}).exported, hl.lower(exported, bind={"size": 16}).exported):
        for blocks in (2, 3):
            pool, rows = np.zeros((16 * blocks, 4), np.float32), np.ones((3, 4), np.float32)
            slots = np.array([16 * blocks - 1, -1, 16 * blocks], np.int32)
            rest = np.zeros(blocks, np.float32), np.zeros(16, np.float32)
            assert np.array_equal(function.call(pool, slots, rows, *rest), paged(jnp.asarray(pool), slots, rows, *rest))
    with pytest.raises(ValueError, match=r"Shape mismatch|do not match|inconsistency|constraint"):
        jax.eval_shape(
            function.call,
            *(
                jax.ShapeDtypeStruct(s, t)
                for s, t in (
                    ((33, 4), "float32"),
                    ((3,), "int32"),
                    ((3, 4), "float32"),
                    ((2,), "float32"),
                    ((16,), "float32"),
                )
            ),
        )


@pytest.mark.parametrize(
    ("first", "then", "reason"),
    [
        ({"size": 12}, {}, "size % 16 == 0 does not hold for size=12"),
        ({"n": 65}, {}, "n <= 64 does not hold for n=65"),
        ({"size": 16}, {"blocks": 2, "n": 32}, "blocks*16 >= n + 1 does not hold for blocks=2, n=32: blocks*16 is 32"),
        ({"size": 16}, {"blocks": 2, "n": 8, "arg0.0": 48}, "16*blocks = 48 (arg0.0) does not hold: it is 32"),
        ({"arg0.0": 48}, {}, "no size is given for blocks, size, n"),
    ],
)
def test_what_does_not_hold_is_refused_at_the_step_that_tells(exported, first, then, reason):
    """A constraint on bound names is checked at once, and one on others as soon as they are bound."""
    with pytest.raises(hl.InputError) as caught:
        hl.bind(hl.bind(exported, first), then)
    assert reason in str(caught.value)


def test_an_assertion_without_a_constraint_is_checked():
    """A module whose assertion says in its message nothing of its condition is checked by jaxlib's own value."""
    text = to_text(hl.read(hl.export(paged, shapes=SHAPES))).replace("symbolic shape constraint", "thing")
    with pytest.raises(hl.InputError, match="an assertion of the module fails: "):
        hl.bind(text, {"size": 12})


@pytest.mark.sweep
def test_a_partly_bound_module_is_verified(exported):
    """The sizes that it is verified at are those of the names left open, and the verification can fail."""
    lowered = hl.lower(exported, bind={"size": 16})
    verdict = hl.verify(exported, lowered)
    assert verdict.ok
    assert "blocks=" in verdict.lines()[-1]
    assert "size=" not in verdict.lines()[-1]
    wrong = lowered.text.replace("stablehlo.add", "stablehlo.subtract")
    assert not hl.verify(hl.bind(exported, {"size": 16}), wrong).ok


def test_a_text_that_is_bound_in_part_is_verified_at_the_same_sizes():
    """Sizes that the second version has already are no error for it; the names that it has open are bound."""

    def write(pool, rows, at):
        return pool.at[at].set(rows)

    source = hl.export(write, shapes=["n, m", "m", "i32[]"])
    lowered = hl.lower(source, bind={"m": 3})
    assert hl.verify(source, lowered.text, bind={"n": 4, "m": 3}).ok
    with pytest.raises(hl.InputError):
        hl.verify(source, lowered.text, bind={"n": 4, "m": 3, "q": 1})


TEXT = "Input shapes do not match"


def test_a_message_may_have_any_letters(exported):
    """Quotes and backslashes in an assertion's message stay as they are when some names are bound."""
    text = to_text(hl.read(exported)).replace(TEXT, r"a \22b\22 \5C " + TEXT)
    assert r"a \22b\22 " in to_text(hl.bind(text, {"size": 16}))


def test_a_tower_of_powers_in_a_message_names_nothing(exported):
    """A module whose message has powers of powers without end has no names for its sizes."""
    tower = "(" * 20 + "n" + ")^8" * 20
    text = to_text(hl.read(exported)).replace("args[1].shape = (n,)", f"args[1].shape = ({tower},)")
    with pytest.raises(hl.InputError, match="no size called n"):
        hl.bind(text, {"n": 4})


@pytest.mark.parametrize("sizes", ["n=8", [("n", 8)], {1: 2}, {"n": "8"}, {"n": True}])
def test_sizes_that_are_no_mapping_from_names_are_refused_everywhere(sizes):
    """Lowering and verifying say what is wrong with them, as binding does."""
    source = hl.export(lambda x: x + 1, shapes=["n"])
    for call in (hl.bind, lambda s, b: hl.lower(s, bind=b), lambda s, b: hl.verify(s, s, bind=b)):
        with pytest.raises(hl.InputError):
            call(source, sizes)
