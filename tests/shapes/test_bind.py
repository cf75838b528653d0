"""What the dims of a module are called, what it says of them besides its shapes, and binding them, all or some."""

import re

import jax
import jax.export
import jax.numpy as jnp
import numpy as np
import pytest
from untyped_mlir import module

import hlo_lower as hl
from hlo_lower.ir.shapes.bind import instances
from hlo_lower.ir.shapes.candidates import candidates
from hlo_lower.ir.shapes.constraints import check_constraints, complete_sizes, constraints_in, holds, readable
from hlo_lower.ir.shapes.expressions import substitute
from hlo_lower.ir.shapes.given_sizes import SizesError, parse_sizes
from hlo_lower.ir.shapes.specification import Specification, specification_of
from hlo_lower.ir.writer import to_text


def updated(cache, rows, index):
    """Rows written into a cache."""
    return cache.at[index].set(rows)


def spec(shape, kind=jnp.float32):
    """The spec of an argument of symbolic shape."""
    return jax.ShapeDtypeStruct(shape, kind)


def told_by(source):
    """What a module says of its sizes."""
    found = specification_of(hl.read(source).module)
    assert found is not None
    return found


@pytest.fixture(scope="module")
def exported():
    """`updated`, with a cache of 2*s + 1 rows of b numbers."""
    s, b = jax.export.symbolic_shape("s, b")
    return jax.export.export(jax.jit(updated))(spec((2 * s + 1, b)), spec((s, b)), spec((s,), jnp.int32))


POSITIONAL = module("%n: i32, %o: ?x4xf32, %u: ?x4xf32", "%r = add %o, %u; return %r, %n")


def scalar(element):
    """A module of a vector and of a number of a type."""
    return module(f"%a: ?xf32, %n: {element}", "return %a, %n")


def test_what_dims_are_called(exported):
    """The dims of an Exported's arguments are its own symbolic dims; the text alone tells them by its assertions; where
    nothing names a dim, its place does."""
    found = specification_of(hl.read(exported).module, [aval.shape for aval in exported.in_avals])
    assert found == told_by(to_text(hl.read(exported)))
    assert (found.dims, found.is_given) == ((("2*s + 1", "b"), ("s", "b"), ("s",)), True)
    assert set(found.symbols) == {"s", "b"}
    found = told_by(POSITIONAL)
    assert (found.is_given, found.symbols, found.scalars) == (False, ("arg1.0", "arg2.0"), ("arg0",))


def test_binding_gives_a_static_module(exported):
    """A bound module computes what the function does, and its Exported is called like the first one; the source is
    left as it is, and numbers of NumPy are sizes. Bound by place, an integer argument becomes a constant."""
    graph = hl.read(exported)
    before = to_text(graph)
    assert "?" not in to_text(hl.bind(graph, {"s": np.int64(3), "b": np.int32(2)}))
    assert to_text(graph) == before
    cache, rows, index = np.zeros((7, 2), "f4"), np.ones((3, 2), "f4"), np.array([6, 0, 2], "i4")
    found = hl.bind(exported, {"s": 3, "b": 2}).exported.call(cache, rows, index)
    assert np.array_equal(found, updated(jnp.asarray(cache), rows, index))
    text = to_text(hl.bind(POSITIONAL, {"arg1.0": 3, "arg2.0": 3, "arg0": 9}))
    assert all(told in text for told in ("tensor<3x4xf32>", "dense<9> : tensor<i32>", "%arg0: tensor<i32>"))


def test_a_symbol_that_is_called_like_an_argument():
    """A symbol "arg1" is bound, and the scalar argument 1, which has no name then, keeps its value."""
    added = jax.jit(lambda rows, at: rows.at[at].add(1.0))
    exported = jax.export.export(added)(spec(jax.export.symbolic_shape("arg1")), spec((), jnp.int32))
    result = hl.bind(exported, {"arg1": 5}).exported.call(np.zeros(5, np.float32), np.int32(2))
    assert np.array_equal(result, [0, 0, 1, 0, 0])


@pytest.mark.parametrize(
    ("sizes", "told"),
    [
        ({"arg0.0": 7, "arg1.1": 2, "arg2.0": 4}, "s = 4 (arg2.0) does not hold: it is 3"),
        ({"s": 3, "b": 2, "t": 1}, "no size called t"),
        ({"s": 0, "b": 2}, "s = 0: every name is a size of 1 or more"),
        ({"arg0.0": 8, "b": 2, "arg1.0": 3, "arg2.0": 3}, "2*s + 1 = 8 (arg0.0) holds for no whole number s"),
        ({}, "no size is given for s, b"),
        ({"s": 1 << 62, "b": 2}, "which is not a size"),
        *((sizes, "") for sizes in ("s=3", None, [("s", 3)], {1: 3}, {None: 3}, {"s": 3.0}, {"s": True}, {"s": "3"})),
    ],
)
def test_sizes_that_do_not_fit(exported, sizes, told):
    """Sizes that are missing, unknown, contradictory or too large are refused with the equation that fails, and so is
    what is not a mapping of names to numbers."""
    with pytest.raises(hl.InputError) as error:
        hl.bind(exported, sizes)
    assert told in str(error.value)
    assert re.search(
        r"2\*s \+ 1|choose sizes" if told else "is not a mapping|is not a name|is not a size", str(error.value)
    )
    if sizes is not None and not told:
        for call in (lambda b: hl.lower(exported, bind=b), lambda b: hl.verify(exported, exported, bind=b)):
            with pytest.raises(hl.InputError):
                call(sizes)


MAIN = scalar("i8")
AUX = MAIN.replace("public @main", "@aux")
OF_TYPE = "is not a value of(.|\n)*{} to {}"


@pytest.mark.parametrize(
    ("text", "sizes", "told"),
    [
        # what jaxlib refuses without an assertion is told in its words
        (POSITIONAL, {"arg1.0": 3, "arg2.0": 5}, "do not fit the module"),
        (POSITIONAL.replace("@main", "@step"), {"arg1.0": 3}, "no function @main"),
        # only @main is given sizes; a message about another function says which one it is
        (f"module {{ {MAIN} {AUX} }}", {"arg0.0": 3}, "public function @aux has dynamic shapes"),
        # from Python a size is a whole number that fits into 64 bits
        *((MAIN, {"arg0.0": size}, r"arg0\.0 = .* is not a size") for size in (-1, 2.5, True, None, 10**25)),
        # a value outside of the argument's type is refused with the range, not wrapped into it
        *((MAIN, {"arg0.0": 3, "arg1": n}, f"arg1 = .* {OF_TYPE.format(-128, 127)}") for n in (128, -129, 2.5, True)),
        *((scalar("ui8"), {"arg0.0": 3, "arg1": n}, OF_TYPE.format(0, 255)) for n in (256, -1)),
        (scalar("i32"), {"arg0.0": 3, "arg1": 1 << 31}, OF_TYPE.format(-2147483648, 2147483647)),
    ],
)
def test_what_is_refused_is_named(text, sizes, told):
    """Each message says which size or function it is about."""
    with pytest.raises(hl.InputError, match=told):
        hl.bind(text, sizes)


def test_what_is_taken():
    """The least and the greatest value of a type; and a module in the module, which has no name, is not a function."""
    for element, value in (("i8", -128), ("i8", 127), ("ui8", 255), ("ui64", (1 << 64) - 1)):
        text = to_text(hl.bind(scalar(element), {"arg0.0": 3, "arg1": value}))
        assert f"dense<{value}> : tensor<{element}>" in text
    text = "module { module { func.func private @other() { return } } " + MAIN + "}"
    assert "tensor<3xf32>" in to_text(hl.bind(text, {"arg0.0": 3}))


def test_sizes_of_the_command_line():
    """Sizes are NAME=SIZE, separated by commas; a value of an argument may be below zero. Anything else is refused, in
    a short message; digits are ASCII."""
    assert parse_sizes("b=4, s=16,arg1.0=7") == {"b": 4, "s": 16, "arg1.0": 7}
    assert parse_sizes("arg1=-7") == {"arg1": -7}
    none = ("", "b", "b=", "b=4,,s=1", "b=4,b=4", "1b=3", "b=x", "b=\u0663", "b=--1", "b=" + "1" * 5000, "b" * 5000)
    for text in none:
        with pytest.raises(SizesError) as error:
            parse_sizes(text)
        assert len(str(error.value)) < 80


@pytest.mark.parametrize("length", [1, 3])
def test_a_lowered_exported_is_called_at_any_size(exported, length):
    """What is lowered without sizes stays an Exported with symbolic shapes, for whatever arrays it is called with."""
    lowered = hl.lower(exported)
    assert lowered.records[0].rule == "dynamic_shape_runtime_while"
    cache, rows = np.zeros((2 * length + 1, 5), np.float32), np.ones((length, 5), np.float32)
    index = np.arange(length, dtype=np.int32) - 1
    assert np.array_equal(lowered.exported.call(cache, rows, index), updated(jnp.asarray(cache), rows, index))


def test_a_size_that_a_module_takes_as_a_number_is_found():
    """Where shapes are computed from an integer argument, the sizes to try it with hold a value for that, too."""
    lines = """%rows = reshape %b -> 1xi64; %four = constant [4] : 1xi64; %shape = concatenate %rows, %four, dim = 0
        %one = constant 1.0 : f32; %ones = dynamic_broadcast_in_dim %one, %shape, dims = [] -> ?x4xf32
        %r = add %o, %ones"""
    text = module("%b: i64, %o: ?x4xf32", lines)
    found = instances(told_by(text), hl.read(text).module, 2)
    assert found == [{"arg1.0": 3, "arg0": 3}, {"arg1.0": 19, "arg0": 19}]


def paged(pool, slots, rows, owners, offsets):
    """Rows written into a pool of pages, by slot; slots outside are dropped."""
    return pool.at[slots].set(rows, mode="drop")


SHAPES = (
    *("blocks * size, 4", "i32[n]", "n, 4", "blocks", "size"),
    *("size % 16 == 0", "blocks * size > n", "n <= 64"),
)


@pytest.fixture(scope="module")
def pool():
    """`paged`, exported."""
    return hl.export(paged, shapes=SHAPES)


def unnumbered(graph):
    """The lines of a module without the numbers of its values, which depend on the order of its constants."""
    return sorted(re.sub(r"%\w+", "%", line) for line in to_text(graph).splitlines())


def test_some_names_are_bound(pool):
    """Shapes, constraints and the Exported's signature have the size in them, from the Exported and from its text; what
    is bound partly and then wholly is the module that is bound at once."""
    assert substitute("max(n, mod(size - n, 3)) + size^2*n", {"size": 16}) == "max(n, mod(16 - n, 3)) + 16^2*n"
    assert substitute("mod(size, 4)", {"size": 16}) == "0"
    dims = (("blocks*16", "4"), ("n",), ("n", "4"), ("blocks",), ("16",))
    for source in (pool, to_text(hl.read(pool))):
        found = told_by(to_text(hl.bind(source, {"size": 16})))
        assert (found.dims, [*map(readable, found.constraints)]) == (dims, ["blocks*16 >= n + 1", "n <= 64"])
    part = hl.bind(pool, {"size": 16})
    assert [tuple(map(str, aval.shape)) for aval in part.exported.in_avals] == [("16*blocks", "4"), *dims[1:]]
    once = unnumbered(hl.bind(pool, {"blocks": 3, "size": 16, "n": 5}))
    assert once == unnumbered(hl.bind(part, {"blocks": 3, "n": 5}))
    assert once == unnumbered(hl.bind(to_text(part), {"blocks": 3, "n": 5}))
    assert once != unnumbered(hl.bind(part, {"blocks": 3, "n": 6}))


def test_a_partly_bound_function_is_called(pool):
    """It computes what the function does, at any size of the names left open, and lowered too."""
    for called in (hl.bind(pool, {"size": 16}).exported, hl.lower(pool, bind={"size": 16}).exported):
        for blocks in (2, 3):
            cache, rows = np.zeros((16 * blocks, 4), np.float32), np.ones((3, 4), np.float32)
            slots = np.array([16 * blocks - 1, -1, 16 * blocks], np.int32)
            given = cache, slots, rows, np.zeros(blocks, np.float32), np.zeros(16, np.float32)
            assert np.array_equal(called.call(*given), paged(jnp.asarray(cache), *given[1:]))
        shapes = (33, 4), (3,), (3, 4), (2,), (16,)
        with pytest.raises(ValueError, match=r"Shape mismatch|do not match|inconsistency|constraint"):
            jax.eval_shape(called.call, *(spec(s, "int32" if s == (3,) else "float32") for s in shapes))


@pytest.mark.parametrize(
    ("first", "then", "reason"),
    [
        ({"size": 12}, {}, "size % 16 == 0 does not hold for size=12"),
        ({"size": 16}, {"blocks": 2, "n": 32}, "blocks*16 >= n + 1 does not hold for blocks=2, n=32: blocks*16 is 32"),
        ({"size": 16}, {"blocks": 2, "n": 8, "arg0.0": 48}, "16*blocks = 48 (arg0.0) does not hold: it is 32"),
        ({"arg0.0": 48}, {}, "no size is given for blocks, size, n"),
    ],
)
def test_what_does_not_hold_is_refused_at_the_step_that_tells(pool, first, then, reason):
    """A constraint on bound names is checked at once, and one on others as soon as they are bound."""
    with pytest.raises(hl.InputError) as caught:
        hl.bind(hl.bind(pool, first), then)
    assert reason in str(caught.value)


TEXT = "Input shapes do not match"


def test_messages_of_assertions(pool):
    """One that says nothing of its condition is checked by jaxlib's own value; quotes and backslashes stay; and powers
    of powers without end name nothing."""
    text = to_text(hl.read(pool))
    with pytest.raises(hl.InputError, match="an assertion of the module fails: "):
        hl.bind(text.replace("symbolic shape constraint", "thing"), {"size": 12})
    assert r"a \22b\22 " in to_text(hl.bind(text.replace(TEXT, r"a \22b\22 \5C " + TEXT), {"size": 16}))
    tower = "(" * 20 + "n" + ")^8" * 20
    with pytest.raises(hl.InputError, match="no size called n"):
        hl.bind(text.replace("args[1].shape = (n,)", f"args[1].shape = ({tower},)"), {"n": 4})


@pytest.mark.sweep
def test_a_partly_bound_module_is_verified(pool):
    """The sizes that it is verified at are those of the names left open, and the verification can fail."""
    lowered = hl.lower(pool, bind={"size": 16})
    verdict = hl.verify(pool, lowered)
    assert verdict.ok
    assert ("blocks=" in verdict.lines()[-1], "size=" in verdict.lines()[-1]) == (True, False)
    wrong = lowered.text.replace("stablehlo.add", "stablehlo.subtract")
    assert not hl.verify(hl.bind(pool, {"size": 16}), wrong).ok


def test_a_text_that_is_bound_in_part_is_verified_at_the_same_sizes():
    """Sizes that the second version has already are no error for it; the names that it has open are bound."""
    source = hl.export(lambda pool, rows, at: pool.at[at].set(rows), shapes=["n, m", "m", "i32[]"])
    lowered = hl.lower(source, bind={"m": 3})
    assert hl.verify(source, lowered.text, bind={"n": 4, "m": 3}).ok
    with pytest.raises(hl.InputError):
        hl.verify(source, lowered.text, bind={"n": 4, "m": 3, "q": 1})


def constrained(*constraints):
    """A pool, scaled by what depends on the other arguments, exported with constraints."""
    scaled = lambda pool, table, offsets: pool * (table.sum() + offsets.sum())  # noqa: E731
    return hl.export(scaled, shapes=["blocks * size, 4", "batch, blocks", "size", *constraints])


def test_constraints_are_read_from_the_text():
    """The text alone tells the declared constraints, each once, without those that JAX derives from them; a scope of
    JAX's own, without our spaces and signs, tells the same. What only looks derived is kept."""
    given = ("size % 16 == 0", "blocks > 1", "batch < 9", "blocks <= 2*batch", "size == size")
    found = told_by(to_text(hl.read(constrained(*given))))
    told = ["size % 16 == 0", "blocks >= 2", "batch <= 8", "blocks <= 2*batch"]
    assert (told, f"where {', '.join(told)}") == ([*map(readable, found.constraints)], found.lines()[-1])
    scope = jax.export.SymbolicScope(["mod(s,16)==0", "s<=64"])
    found = told_by(jax.export.export(jax.jit(jnp.sin))(spec(jax.export.symbolic_shape("s", scope=scope))))
    assert [*map(readable, found.constraints)] == ["s % 16 == 0", "s <= 64"]
    messages = [f"symbolic shape constraint {c}. Expected 'x'" for c in ("mod(s, -4) == 0", "3*floordiv(s, 3) == s")]
    assert constraints_in([*messages, "another message"]) == ("mod(s, -4) == 0", "3*floordiv(s, 3) == s")


def test_a_constraint_holds_or_does_not():
    """Only what is known to fail fails; jaxlib looks at the rest."""
    right = ("s >= 5", "s <= 5", "s > 4", "mod(s, 5) == 0", "t >= 99", "no constraint", "8 // (s - 5) >= 99")
    assert [one for one in (*right, "s >= 6", "s < 5", "mod(s, 2) == 0") if holds(one, {"s": 5})] == [*right]


@pytest.mark.parametrize(
    ("constraint", "told"),
    [
        ("mod(size, 16) == 0", "size % 16 == 0 does not hold for size=12: size % 16 is 12"),
        ("size >= blocks + 12", "size >= blocks + 12 does not hold for blocks=3, size=12: blocks + 12 is 15"),
        ("blocks >= 4", "blocks >= 4 does not hold for blocks=3"),
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
    exported = constrained("size % 16 == 0")
    for source in (exported, to_text(hl.read(exported))):
        with pytest.raises(hl.InputError, match="size % 16 == 0 does not hold for size=12"):
            hl.bind(source, sizes)
        right = {name: {12: 16, 24: 32}.get(size, size) for name, size in sizes.items()}
        assert "tensor<32x4xf32>" in to_text(hl.bind(source, right))


DIMS = (("blocks*size", "4"), ("batch", "blocks"), ("size",))


@pytest.mark.parametrize("dim", ["mod(b, 100)", "b % 100", "min(b, 8)", "max(b, 4)", "b // 3", "b^2", "b*b"])
def test_a_size_follows_only_from_what_is_linear(dim):
    """A dim that can have one value for several sizes gives no size, whichever dim comes first."""
    assert "b" not in complete_sizes(((dim,),), {"arg0.0": 5})
    assert complete_sizes(((dim,), ("b",)), {"arg0.0": 5, "arg1.0": 105})["b"] == 105
    assert complete_sizes((("b",), (dim,)), {"arg0.0": 105, "arg1.0": 5})["b"] == 105


def test_sizes_follow_from_dims():
    """A dim given by its place gives the one name in it that is not known; an equation without a solution, and sizes
    that contradict a product, are named; `mode` is a name, though it begins like a function."""
    for sizes in ({"arg0.0": 96, "size": 16}, {"arg0.0": 96, "arg2.0": 16}, {"arg1.1": 6}):
        assert complete_sizes(DIMS, sizes)["blocks"] == 6
    for sizes in ({"arg0.0": 96}, {"batch": 4}):
        assert "blocks" not in complete_sizes(DIMS, sizes)
    for dims, sizes, what in (
        (DIMS, {"arg0.0": 100, "size": 16}, "blocks*size = 100 (arg0.0) holds for no whole number blocks for size=16"),
        ((("2*mode + 1",),), {"arg0.0": 8}, "2*mode + 1 = 8 (arg0.0) holds for no whole number mode"),
    ):
        with pytest.raises(SizesError) as caught:
            complete_sizes(dims, sizes)
        assert caught.value.what == what
    told = r"blocks\*size = 96 \(arg0\.0\) does not hold: it is 80 for blocks=5, size=16"
    with pytest.raises(hl.InputError, match=told):
        hl.bind(constrained(), {"blocks": 5, "size": 16, "batch": 2, "arg0.0": 96})
    exported = hl.export(lambda x, y: x.sum() + y, shapes=["b % 100", "b", "b >= 2"])
    assert "tensor<105xf32>" in to_text(hl.bind(exported, {"arg0.0": 5, "arg1.0": 105}))


def test_sizes_to_try():
    """What verification tries satisfies every constraint, and there are several such choices, not all the same. The
    first ones are different small primes, as for a module that names no dims; where no size fits, none is tried."""
    exported = constrained("size % 16 == 0", "blocks >= batch + 20", "batch % 3 == 1")
    found = told_by(to_text(hl.read(exported)))
    tried = list(candidates(found))
    assert len(tried) > 5
    assert all(t["size"] % 16 == 0 and t["blocks"] >= t["batch"] + 20 and t["batch"] % 3 == 1 for t in tried)
    assert all(len({t[name] for t in tried}) > 1 for name in ("size", "blocks", "batch"))
    assert len(instances(found, hl.read(exported).module, 2)) == 2
    assert next(candidates(told_by(constrained()))) == {"blocks": 3, "size": 2, "batch": 5}
    bare = Specification(("tensor<?x?xf32>",), (("arg0.0", "arg0.1"),), ("f32",), is_given=False)
    assert next(candidates(bare)) == {"arg0.0": 3, "arg0.1": 2}
    assert list(candidates(told_by(constrained("size % 5000 == 0", "size >= 1")))) == []
