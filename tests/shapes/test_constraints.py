"""What a module says of its sizes besides its shapes: read, checked, and kept to by the sizes that are tried."""

import jax
import jax.export
import jax.numpy as jnp
import pytest

import hlo_lower as hl
from hlo_lower.ir.shapes.bind import instances
from hlo_lower.ir.shapes.candidates import candidates
from hlo_lower.ir.shapes.constraints import check_constraints, completed, constraints_in, holds, readable
from hlo_lower.ir.shapes.given_sizes import SizesError
from hlo_lower.ir.shapes.specification import Specification, specification_of
from hlo_lower.ir.writer import to_text


def scaled(pool, table, offsets):
    """A pool, scaled by what depends on the other arguments."""
    return pool * (table.sum() + offsets.sum())


SHAPES = ("blocks * size, 4", "batch, blocks", "size")


def specification(*constraints):
    """What the text of a module says that was exported with constraints."""
    exported = hl.export(scaled, shapes=[*SHAPES, *constraints])
    found = specification_of(hl.read(to_text(hl.read(exported))).module)
    assert found is not None
    return found


def test_constraints_are_read_from_the_text():
    """The text alone tells the declared constraints, each once, without those that JAX derives from them."""
    found = specification("size % 16 == 0", "blocks > 1", "batch < 9", "blocks <= 2*batch", "size == size")
    told = ["size % 16 == 0", "blocks >= 2", "batch <= 8", "blocks <= 2*batch"]
    assert told == [readable(constraint) for constraint in found.constraints]
    assert found.lines()[-1] == f"where {', '.join(told)}"


def test_constraints_of_a_scope_of_jaxs_are_read_too():
    """A module that JAX exported with a scope of its own, without our spaces and signs, tells the same."""
    scope = jax.export.SymbolicScope(["mod(s,16)==0", "s<=64"])
    spec = jax.ShapeDtypeStruct(jax.export.symbolic_shape("s", scope=scope), jnp.float32)
    found = specification_of(hl.read(jax.export.export(jax.jit(jnp.sin))(spec)).module)
    assert found is not None
    assert [readable(c) for c in found.constraints] == ["s % 16 == 0", "s <= 64"]


def test_what_only_looks_derived_is_kept():
    """A quotient or a negative divisor without the remainder that implies it is a constraint of its own."""
    messages = [f"symbolic shape constraint {c}. Expected 'x'" for c in ("mod(s, -4) == 0", "3*floordiv(s, 3) == s")]
    assert constraints_in([*messages, "another message"]) == ("mod(s, -4) == 0", "3*floordiv(s, 3) == s")


@pytest.mark.parametrize(
    ("constraint", "value"),
    [
        *((constraint, True) for constraint in ("s >= 5", "s <= 5", "s > 4", "mod(s, 5) == 0", "t >= 99")),
        *((constraint, True) for constraint in ("no constraint", "8 // (s - 5) >= 99")),
        *((constraint, False) for constraint in ("s >= 6", "s < 5", "mod(s, 2) == 0")),
    ],
)
def test_a_constraint_holds_or_does_not(constraint, value):
    """Only what is known to fail fails; jaxlib looks at the rest."""
    assert holds(constraint, {"s": 5}) is value


@pytest.mark.parametrize(
    ("constraint", "told"),
    [
        ("mod(size, 16) == 0", "size % 16 == 0 does not hold for size=12: size % 16 is 12"),
        ("size >= blocks + 12", "size >= blocks + 12 does not hold for blocks=3, size=12: blocks + 12 is 15"),
        ("blocks >= 4", "blocks >= 4 does not hold for blocks=3"),
        ("size == 2*blocks", "size == 2*blocks does not hold for blocks=3, size=12: 2*blocks is 6"),
    ],
)
def test_the_constraint_that_fails_is_named(constraint, told):
    """The message has the constraint as a person writes it, the sizes, and what its side is."""
    with pytest.raises(SizesError) as caught:
        check_constraints(["blocks >= 1", constraint], {"size": 12, "blocks": 3}, "")
    assert told == caught.value.what


@pytest.mark.parametrize("sizes", [{"size": 12, "blocks": 2, "batch": 2}, {"arg2.0": 12, "arg0.0": 24, "arg1.0": 2}])
def test_binding_honours_constraints(sizes):
    """A size that a constraint refuses is refused by name, from an Exported and from its text, given by name or place;
    a size that it allows is taken."""
    exported = hl.export(scaled, shapes=[*SHAPES, "size % 16 == 0"])
    for source in (exported, to_text(hl.read(exported))):
        with pytest.raises(hl.InputError, match="size % 16 == 0 does not hold for size=12"):
            hl.bind(source, sizes)
        right = {name: {12: 16, 24: 32}.get(size, size) for name, size in sizes.items()}
        assert "tensor<32x4xf32>" in to_text(hl.bind(source, right))


DIMS = (("blocks*size", "4"), ("batch", "blocks"), ("size",))


@pytest.mark.parametrize(
    ("sizes", "blocks"),
    [
        ({"arg0.0": 96, "size": 16}, 6),
        ({"arg0.0": 96, "arg2.0": 16}, 6),
        ({"arg1.1": 3}, 3),
        ({"arg0.0": 96}, None),
        ({"batch": 4}, None),
    ],
)
def test_sizes_follow_from_dims(sizes, blocks):
    """A dim given by its place gives the one name in it that is not known."""
    assert completed(DIMS, sizes).get("blocks") == blocks


@pytest.mark.parametrize(
    ("dims", "sizes", "what"),
    [
        (DIMS, {"arg0.0": 100, "size": 16}, "blocks*size = 100 (arg0.0) holds for no whole number blocks for size=16"),
        # `mode` and `minutes` are names, though they begin like functions
        ((("2*mode + 1",),), {"arg0.0": 8}, "2*mode + 1 = 8 (arg0.0) holds for no whole number mode"),
    ],
)
def test_an_equation_without_a_solution_is_named(dims, sizes, what):
    """A product that is no multiple of its known factor is refused, with the equation."""
    with pytest.raises(SizesError) as caught:
        completed(dims, sizes)
    assert caught.value.what == what


def test_inconsistent_sizes_are_refused_with_the_equation():
    """Sizes that contradict a product are refused, with what it is; a dim and its remainder fit each other."""
    told = r"blocks\*size = 96 \(arg0\.0\) does not hold: it is 80 for blocks=5, size=16"
    with pytest.raises(hl.InputError, match=told):
        hl.bind(hl.export(scaled, shapes=SHAPES), {"blocks": 5, "size": 16, "batch": 2, "arg0.0": 96})
    exported = hl.export(lambda x, y: x.sum() + y, shapes=["b % 100", "b", "b >= 2"])
    assert "tensor<105xf32>" in to_text(hl.bind(exported, {"arg0.0": 5, "arg1.0": 105}))


def test_sizes_to_try_keep_to_the_constraints():
    """What verification tries satisfies every constraint, and there are several such choices, not all the same."""
    found = specification("size % 16 == 0", "blocks >= batch + 20", "batch % 3 == 1")
    tried = list(candidates(found))
    assert len(tried) > 5
    assert all(t["size"] % 16 == 0 and t["blocks"] >= t["batch"] + 20 and t["batch"] % 3 == 1 for t in tried)
    assert all(len({t[name] for t in tried}) > 1 for name in ("size", "blocks", "batch"))
    exported = hl.export(scaled, shapes=[*SHAPES, "size % 16 == 0", "blocks >= batch + 20", "batch % 3 == 1"])
    assert len(instances(found, hl.read(exported).module, 2)) == 2


def test_sizes_to_try_without_constraints_and_where_nothing_fits():
    """The first choice is of different small primes, as it is for a module that names no dims; where no size fits,
    none is tried, and it ends."""
    assert next(candidates(specification())) == {"blocks": 3, "size": 2, "batch": 5}
    bare = Specification(("tensor<?x?xf32>",), (("arg0.0", "arg0.1"),), ("f32",), is_given=False)
    assert next(candidates(bare)) == {"arg0.0": 3, "arg0.1": 2}
    assert list(candidates(specification("size % 5000 == 0", "size >= 1"))) == []


@pytest.mark.parametrize("dim", ["mod(b, 100)", "b % 100", "min(b, 8)", "max(b, 4)", "b // 3", "b^2", "b*b"])
def test_a_size_follows_only_from_what_is_linear(dim):
    """A dim that can have one value for several sizes gives no size, whichever dim comes first."""
    assert "b" not in completed(((dim,),), {"arg0.0": 5})
    assert completed(((dim,), ("b",)), {"arg0.0": 5, "arg1.0": 105})["b"] == 105
    assert completed((("b",), (dim,)), {"arg0.0": 105, "arg1.0": 5})["b"] == 105
