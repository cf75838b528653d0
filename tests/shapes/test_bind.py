"""What the dims of a module are called, and binding them, all or some."""

import re

import jax
import jax.export
import jax.numpy as jnp
import numpy as np
import pytest
from untyped_mlir import module

import hlo_lower as hl
from hlo_lower.ir.shapes.bind import instances
from hlo_lower.ir.shapes.constraints import readable
from hlo_lower.ir.shapes.expressions import substituted
from hlo_lower.ir.shapes.given_sizes import SizesError, parse_sizes
from hlo_lower.ir.shapes.specification import specification_of
from hlo_lower.ir.writer import to_text


def updated(cache, rows, index):
    """Rows written into a cache."""
    return cache.at[index].set(rows)


def spec(shape, kind=jnp.float32):
    """The spec of an argument of symbolic shape."""
    return jax.ShapeDtypeStruct(shape, kind)


@pytest.fixture(scope="module")
def exported():
    """`updated`, with a cache of 2*s + 1 rows of b numbers."""
    s, b = jax.export.symbolic_shape("s, b")
    return jax.export.export(jax.jit(updated))(spec((2 * s + 1, b)), spec((s, b)), spec((s,), jnp.int32))


POSITIONAL = module("%n: i32, %o: ?x4xf32, %u: ?x4xf32", "%r = add %o, %u; return %r, %n")


def scalar(element):
    """A module of a vector and of a number of a type."""
    return module(f"%a: ?xf32, %n: {element}", "return %a, %n")


def test_names_come_from_an_exported_or_its_text(exported):
    """The dims of an Exported's arguments are its own symbolic dims; the text alone tells them by its assertions."""
    given = [aval.shape for aval in exported.in_avals]
    found = specification_of(hl.read(exported).module, given)
    assert found == specification_of(hl.read(to_text(hl.read(exported))).module)
    assert found.dims == (("2*s + 1", "b"), ("s", "b"), ("s",))
    assert (found.is_given, set(found.symbols)) == (True, {"s", "b"})


def test_without_names_a_dim_is_its_place():
    """Where nothing names a dim, its place does."""
    found = specification_of(hl.read(POSITIONAL).module)
    assert (found.is_given, found.symbols, found.scalars) == (False, ("arg1.0", "arg2.0"), ("arg0",))


def test_binding_gives_a_static_module(exported):
    """A bound module computes what the function does, and its Exported is called like the first one; the source is
    left as it is, and numbers of NumPy are sizes."""
    graph = hl.read(exported)
    before = to_text(graph)
    bound = hl.bind(graph, {"s": np.int64(3), "b": np.int32(2)})
    assert to_text(graph) == before
    assert "?" not in to_text(bound)
    bound = hl.bind(exported, {"s": 3, "b": 2})
    cache, rows = np.zeros((7, 2), np.float32), np.ones((3, 2), np.float32)
    index = np.array([6, 0, 2], np.int32)
    assert np.array_equal(bound.exported.call(cache, rows, index), updated(jnp.asarray(cache), rows, index))


def test_binding_by_place_and_by_value():
    """Dims are bound by place, and an integer argument becomes a constant that its value does not change."""
    text = to_text(hl.bind(POSITIONAL, {"arg1.0": 3, "arg2.0": 3, "arg0": 9}))
    assert "tensor<3x4xf32>" in text
    assert "dense<9> : tensor<i32>" in text
    assert "%arg0: tensor<i32>" in text


@pytest.mark.parametrize(
    ("sizes", "told"),
    [
        ({"arg0.0": 7, "arg1.1": 2, "arg2.0": 4}, "s = 4 (arg2.0) does not hold: it is 3"),
        ({"s": 3, "b": 2, "t": 1}, "no size called t"),
        ({"s": 0, "b": 2}, "s = 0: every name is a size of 1 or more"),
        ({"s": 3, "b": 2, "arg1.0": 4}, "s = 4 (arg1.0) does not hold: it is 3"),
        ({"arg0.0": 8, "b": 2, "arg1.0": 3, "arg2.0": 3}, "2*s + 1 = 8 (arg0.0) holds for no whole number s"),
        ({"arg0.0": 9, "b": 2, "arg1.0": 3, "arg2.0": 3}, "s = 3 (arg1.0) does not hold: it is 4"),
        ({}, "no size is given for s, b"),
        ({"s": 1 << 62, "b": 2}, "which is no size"),
    ],
)
def test_sizes_that_do_not_fit(exported, sizes, told):
    """Sizes that are missing, unknown, contradictory or too large are refused with the equation that fails."""
    with pytest.raises(hl.InputError) as error:
        hl.bind(exported, sizes)
    assert told in str(error.value)
    assert "2*s + 1" in str(error.value) or "choose sizes" in str(error.value)


@pytest.mark.parametrize("sizes", ["s=3", None, [("s", 3)], {1: 3}, {None: 3}, {"s": 3.0}, {"s": True}, {"s": "3"}])
def test_what_is_no_mapping_of_names_to_numbers(exported, sizes):
    """It is an error of input, whatever a caller gives, to whatever function."""
    with pytest.raises(hl.InputError, match=r"is no mapping|is no name|is no size"):
        hl.bind(exported, sizes)
    if sizes is not None:
        for call in (lambda b: hl.lower(exported, bind=b), lambda b: hl.verify(exported, exported, bind=b)):
            with pytest.raises(hl.InputError):
                call(sizes)


MAIN = scalar("i8")
AUX = MAIN.replace("public @main", "@aux")


@pytest.mark.parametrize(
    ("text", "sizes", "told"),
    [
        # what jaxlib refuses without an assertion is told in its words
        (POSITIONAL, {"arg1.0": 3, "arg2.0": 5}, "do not fit the module"),
        (POSITIONAL.replace("@main", "@step"), {"arg1.0": 3}, "no function @main"),
        # only @main is given sizes; a message about another function says which one it is
        (f"module {{ {MAIN} {AUX} }}", {"arg0.0": 3}, "public function @aux has dynamic shapes"),
        (f"module {{ {MAIN} {AUX.replace('@aux', 'public @aux')} }}", {"arg0.0": 3}, "function @aux has dynamic"),
        # from Python a size is a whole number that fits into 64 bits
        *((MAIN, {"arg0.0": size}, r"arg0\.0 = .* is no size") for size in (-1, 2.5, True, None, 10**25)),
        # a value outside of the argument's type is refused with the range, not wrapped into it
        *(
            (MAIN, {"arg0.0": 3, "arg1": value}, "arg1 = .* is no value of(.|\n)*-128 to 127")
            for value in (128, 300, -129, 2.5, True, None)
        ),
        (scalar("ui8"), {"arg0.0": 3, "arg1": 256}, "arg1 = .* is no value of(.|\n)*0 to 255"),
        (scalar("ui8"), {"arg0.0": 3, "arg1": -1}, "arg1 = .* is no value of(.|\n)*0 to 255"),
        (scalar("i32"), {"arg0.0": 3, "arg1": 1 << 31}, "is no value of(.|\n)*-2147483648 to 2147483647"),
    ],
)
def test_what_is_refused_is_named(text, sizes, told):
    """Each message says which size or function it is about."""
    with pytest.raises(hl.InputError, match=told):
        hl.bind(text, sizes)


@pytest.mark.parametrize(("element", "value"), [("i8", -128), ("i8", 127), ("ui8", 255), ("ui64", (1 << 64) - 1)])
def test_a_scalar_argument_at_the_ends_of_its_type(element, value):
    """The least and the greatest value of a type are taken."""
    text = to_text(hl.bind(scalar(element), {"arg0.0": 3, "arg1": value}))
    assert f"dense<{value}> : tensor<{element}>" in text


def test_an_op_beside_main_without_a_name():
    """A module in the module, which has no name, is not taken for a function."""
    text = "module { module { func.func private @other() { return } } " + MAIN + "}"
    assert "tensor<3xf32>" in to_text(hl.bind(text, {"arg0.0": 3}))


def test_sizes_of_the_command_line():
    """Sizes are NAME=SIZE, separated by commas; a value of an argument may be below zero."""
    assert parse_sizes("b=4, s=16,arg1.0=7") == {"b": 4, "s": 16, "arg1.0": 7}
    assert parse_sizes("arg1=-7") == {"arg1": -7}


@pytest.mark.parametrize(
    "text",
    [*("", "b", "b=", "b=4,,s=1", "b=4,b=4", "1b=3", "b=x", "b=\u0663", "b=--1", "b=-", "b=" + "1" * 5000, "b" * 5000)],
    ids=lambda text: text[:10],
)
def test_sizes_that_are_none(text):
    """Anything else is refused, in a short message; digits are ASCII."""
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


@pytest.mark.sweep
def test_verification_knows_the_sizes_that_were_bound(exported):
    """A module that was bound and lowered is verified against the source at the same sizes."""
    lowered = hl.lower(exported, bind={"s": 3, "b": 2})
    verdict = hl.verify(exported, lowered)
    assert verdict.ok
    assert {region.status for region in verdict.regions} == {"equal"}
    wrong = lowered.text.replace("stablehlo.compare  EQ", "stablehlo.compare  NE").replace("compare EQ", "compare NE")
    assert wrong != lowered.text
    assert not hl.verify(exported, wrong, bind={"s": 3, "b": 2}).ok


def test_a_symbol_that_is_called_like_an_argument():
    """A symbol "arg1" is bound, and the scalar argument 1, which has no name then, keeps its value."""
    added = jax.jit(lambda rows, at: rows.at[at].add(1.0))
    exported = jax.export.export(added)(spec(jax.export.symbolic_shape("arg1")), spec((), jnp.int32))
    result = hl.bind(exported, {"arg1": 5}).exported.call(np.zeros(5, np.float32), np.int32(2))
    assert np.array_equal(result, [0, 0, 1, 0, 0])


def test_a_size_that_a_module_takes_as_a_number_is_found():
    """Where shapes are computed from an integer argument, the sizes to try it with hold a value for that, too."""
    lines = """%rows = reshape %b -> 1xi64; %four = constant [4] : 1xi64; %shape = concatenate %rows, %four, dim = 0
        %one = constant 1.0 : f32; %ones = dynamic_broadcast_in_dim %one, %shape, dims = [] -> ?x4xf32
        %r = add %o, %ones"""
    read = hl.read(module("%b: i64, %o: ?x4xf32", lines)).module
    found = specification_of(read)
    assert found is not None
    assert instances(found, read, 2) == [{"arg1.0": 3, "arg0": 3}, {"arg1.0": 19, "arg0": 19}]


# --- some of the names, with the others left open ---


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


def told_of(graph):
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


def test_some_names_are_bound(pool):
    """Shapes, constraints and the Exported's signature have the size in them, from the Exported and from its text."""
    dims = (("blocks*16", "4"), ("n",), ("n", "4"), ("blocks",), ("16",))
    for source in (pool, to_text(hl.read(pool))):
        assert told_of(hl.bind(source, {"size": 16})) == (dims, ["blocks*16 >= n + 1", "n <= 64"])
    signature = hl.bind(pool, {"size": 16}).exported.in_avals
    assert [tuple(map(str, aval.shape)) for aval in signature] == [("16*blocks", "4"), *dims[1:]]


def test_binding_in_two_steps_is_binding_at_once(pool):
    """What is bound partly and then wholly is the module that is bound at once."""
    once = unnumbered(hl.bind(pool, {"blocks": 3, "size": 16, "n": 5}))
    part = hl.bind(pool, {"size": 16})
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
        ({"n": 65}, {}, "n <= 64 does not hold for n=65"),
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
    assert "blocks=" in verdict.lines()[-1]
    assert "size=" not in verdict.lines()[-1]
    wrong = lowered.text.replace("stablehlo.add", "stablehlo.subtract")
    assert not hl.verify(hl.bind(pool, {"size": 16}), wrong).ok


def test_a_text_that_is_bound_in_part_is_verified_at_the_same_sizes():
    """Sizes that the second version has already are no error for it; the names that it has open are bound."""
    source = hl.export(lambda pool, rows, at: pool.at[at].set(rows), shapes=["n, m", "m", "i32[]"])
    lowered = hl.lower(source, bind={"m": 3})
    assert hl.verify(source, lowered.text, bind={"n": 4, "m": 3}).ok
    with pytest.raises(hl.InputError):
        hl.verify(source, lowered.text, bind={"n": 4, "m": 3, "q": 1})
