"""What the dims of a module are called, and binding them."""

import jax
import jax.export
import jax.numpy as jnp
import numpy as np
import pytest

import hlo_lower as hl
from hlo_lower.ir.shapes.bind import instances
from hlo_lower.ir.shapes.given_sizes import SizesError, parse_sizes
from hlo_lower.ir.shapes.specification import specification_of
from hlo_lower.ir.writer import to_text


def updated(cache, rows, index):
    """Rows written into a cache."""
    return cache.at[index].set(rows)


@pytest.fixture(scope="module")
def exported():
    """`updated`, with a cache of 2*s + 1 rows of b numbers."""
    s, b = jax.export.symbolic_shape("s, b")
    cache, rows = (jax.ShapeDtypeStruct((length, b), jnp.float32) for length in (2 * s + 1, s))
    return jax.export.export(jax.jit(updated))(cache, rows, jax.ShapeDtypeStruct((s,), jnp.int32))


POSITIONAL = """func.func public @main(%n: tensor<i32>, %o: tensor<?x4xf32>, %u: tensor<?x4xf32>)
    -> (tensor<?x4xf32>, tensor<i32>) {
  %r = stablehlo.add %o, %u : tensor<?x4xf32>
  return %r, %n : tensor<?x4xf32>, tensor<i32>
}
"""


def test_names_come_from_an_exported(exported):
    """The dims of an Exported's arguments are its own symbolic dims."""
    graph = hl.read(exported)
    given = [aval.shape for aval in exported.in_avals]
    found = specification_of(graph.module, given)
    assert found is not None
    assert found.dims == (("2*s + 1", "b"), ("s", "b"), ("s",))
    assert (found.is_given, set(found.symbols)) == (True, {"s", "b"})


def test_names_come_from_the_text(exported):
    """The text alone tells them, too: its shape assertions hold the specification."""
    text = to_text(hl.read(exported))
    found, known = (
        specification_of(hl.read(source).module, given) for source, given in ((text, None), (exported, None))
    )
    assert found == known
    assert set(found.symbols) == {"s", "b"}


def test_without_names_a_dim_is_its_place():
    """Where nothing names a dim, its place does."""
    found = specification_of(hl.read(POSITIONAL).module)
    assert (found.is_given, found.symbols, found.scalars) == (False, ("arg1.0", "arg2.0"), ("arg0",))


def test_binding_gives_a_static_module(exported):
    """A bound module computes what the function does, and its Exported is called like the first one."""
    bound = hl.bind(exported, {"s": 3, "b": 2})
    assert "?" not in to_text(bound)
    cache, rows = np.zeros((7, 2), np.float32), np.ones((3, 2), np.float32)
    index = np.array([6, 0, 2], np.int32)
    result = bound.exported.call(cache, rows, index)
    assert np.array_equal(result, updated(jnp.asarray(cache), rows, index))


def test_the_source_of_a_binding_is_left_as_it_is(exported):
    """Binding makes another graph."""
    graph = hl.read(exported)
    before = to_text(graph)
    hl.bind(graph, {"s": 3, "b": 2})
    assert to_text(graph) == before


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
        (
            {"arg0.0": 9, "b": 2, "arg1.0": 3, "arg2.0": 3},
            "s = 3 (arg1.0) does not hold: it is 4",
        ),
    ],
)
def test_sizes_that_do_not_fit(exported, sizes, told):
    """Sizes that are missing, unknown or contradictory are refused with the equation that fails."""
    with pytest.raises(hl.InputError) as error:
        hl.bind(exported, sizes)
    assert told in str(error.value)
    assert "2*s + 1" in str(error.value) or "choose sizes" in str(error.value)


def test_no_sizes_at_all(exported):
    """A binding without a size for any name says which there are."""
    with pytest.raises(hl.InputError, match="no size is given for s, b"):
        hl.bind(exported, {})


def test_places_that_contradict_each_other():
    """What jaxlib refuses without an assertion is told in its words."""
    with pytest.raises(hl.InputError, match="do not fit the module"):
        hl.bind(POSITIONAL, {"arg1.0": 3, "arg2.0": 5})


def test_a_module_without_main():
    """Binding needs an entry point of that name, and says so."""
    with pytest.raises(hl.InputError, match="no function @main"):
        hl.bind(POSITIONAL.replace("@main", "@step"), {"arg1.0": 3})


def test_sizes_of_the_command_line():
    """Sizes are NAME=SIZE, separated by commas."""
    assert parse_sizes("b=4, s=16,arg1.0=7") == {"b": 4, "s": 16, "arg1.0": 7}


@pytest.mark.parametrize("text", ["", "b", "b=", "b=4,,s=1", "b=4,b=4", "1b=3", "b=x"])
def test_sizes_that_are_none(text):
    """Anything else is refused."""
    with pytest.raises(SizesError):
        parse_sizes(text)


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


@pytest.mark.parametrize("size", [-1, 2.5, True, None, 10**25])
def test_what_is_no_size_is_refused_by_its_name(size):
    """From Python a size is a whole number that fits into 64 bits; anything else is named."""
    text = "func.func @main(%a: tensor<?xf32>) -> tensor<?xf32> { return %a : tensor<?xf32> }"
    with pytest.raises(hl.InputError, match=r"arg0\.0 = .* is no size"):
        hl.bind(text, {"arg0.0": size})


def added(rows, at):
    """One added at a place."""
    return rows.at[at].add(1.0)


def test_a_symbol_that_is_called_like_an_argument():
    """A symbol "arg1" is bound, and the scalar argument 1, which has no name then, keeps its value."""
    rows = jax.ShapeDtypeStruct(jax.export.symbolic_shape("arg1"), jnp.float32)
    exported = jax.export.export(jax.jit(added))(rows, jax.ShapeDtypeStruct((), jnp.int32))
    bound = hl.bind(exported, {"arg1": 5})
    result = bound.exported.call(np.zeros(5, np.float32), np.int32(2))
    assert np.array_equal(result, [0, 0, 1, 0, 0])


SCALAR = """func.func @main(%a: tensor<?xf32>, %n: tensor<{e}>) -> (tensor<?xf32>, tensor<{e}>) {{
  return %a, %n : tensor<?xf32>, tensor<{e}>
}}"""


@pytest.mark.parametrize(
    ("element", "value", "limits"),
    [
        *(("i8", value, "-128 to 127") for value in (128, 300, -129, 2.5, True, None)),
        ("ui8", 256, "0 to 255"),
        ("ui8", -1, "0 to 255"),
        ("i32", 1 << 31, "-2147483648 to 2147483647"),
    ],
)
def test_a_scalar_argument_takes_what_its_type_holds(element, value, limits):
    """A value outside of the argument's type is refused with the range, not wrapped into it."""
    with pytest.raises(hl.InputError, match=r"arg1 = .* is no value of") as error:
        hl.bind(SCALAR.format(e=element), {"arg0.0": 3, "arg1": value})
    assert limits in str(error.value)


@pytest.mark.parametrize(("element", "value"), [("i8", -128), ("i8", 127), ("ui8", 255), ("ui64", (1 << 64) - 1)])
def test_a_scalar_argument_at_the_ends_of_its_type(element, value):
    """The least and the greatest value of a type are taken."""
    text = to_text(hl.bind(SCALAR.format(e=element), {"arg0.0": 3, "arg1": value}))
    assert f"dense<{value}> : tensor<{element}>" in text


def test_an_op_beside_main_without_a_name():
    """A module in the module, which has no name, is not taken for a function."""
    text = "module { module { func.func private @other() { return } } " + SCALAR.format(e="i8") + "}"
    assert "tensor<3xf32>" in to_text(hl.bind(text, {"arg0.0": 3}))


def test_a_second_public_function_of_dynamic_shape_is_named():
    """Only @main is given sizes; a message about another function says which one it is."""
    main = SCALAR.format(e="i8")
    with pytest.raises(hl.InputError, match="public function @aux has dynamic shapes"):
        hl.bind(f"module {{ {main} {main.replace('@main', '@aux')} }}", {"arg0.0": 3})


def test_a_size_of_thousands_of_digits():
    """It is refused in a short message."""
    for text in ("b=" + "1" * 5000, "b" * 5000):
        with pytest.raises(SizesError) as error:
            parse_sizes(text)
        assert len(str(error.value)) < 80


@pytest.mark.parametrize("sizes", ["s=3", None, [("s", 3)], {1: 3}, {None: 3}, {"s": 3.0}, {"s": True}, {"s": "3"}])
def test_what_is_no_mapping_of_names_to_numbers(exported, sizes):
    """It is an error of input, whatever a caller gives."""
    with pytest.raises(hl.InputError, match=r"is no mapping|is no name|is no size"):
        hl.bind(exported, sizes)


def test_numbers_of_numpy_are_sizes(exported):
    """What Python takes as an index is a size."""
    assert "tensor<7x2xf32>" in to_text(hl.bind(exported, {"s": np.int64(3), "b": np.int32(2)}))


def test_a_computed_size_that_no_array_has(exported):
    """A dim that comes out at 2^63 or more is refused."""
    with pytest.raises(hl.InputError, match="which is no size"):
        hl.bind(exported, {"s": 1 << 62, "b": 2})


def test_what_may_stand_after_the_equals_sign():
    """A value of an argument may be below zero; digits are ASCII."""
    assert parse_sizes("arg1=-7") == {"arg1": -7}
    for text in ("b=\u0663", "b=--1", "b=-"):
        with pytest.raises(SizesError, match="is no NAME=SIZE"):
            parse_sizes(text)


SIZE_AS_NUMBER = """func.func public @main(%b: tensor<i64>, %o: tensor<?x4xf32>) -> tensor<?x4xf32> {
  %rows = stablehlo.reshape %b : (tensor<i64>) -> tensor<1xi64>
  %four = stablehlo.constant dense<4> : tensor<1xi64>
  %shape = stablehlo.concatenate %rows, %four, dim = 0 : (tensor<1xi64>, tensor<1xi64>) -> tensor<2xi64>
  %one = stablehlo.constant dense<1.0> : tensor<f32>
  %ones = stablehlo.dynamic_broadcast_in_dim %one, %shape, dims = [] : (tensor<f32>, tensor<2xi64>) -> tensor<?x4xf32>
  %r = stablehlo.add %o, %ones : tensor<?x4xf32>
  return %r : tensor<?x4xf32>
}
"""


def test_a_size_that_a_module_takes_as_a_number_is_found():
    """Where shapes are computed from an integer argument, the sizes to try it with hold a value for that, too."""
    module = hl.read(SIZE_AS_NUMBER).module
    found = specification_of(module)
    assert found is not None
    assert instances(found, module, 2) == [{"arg1.0": 3, "arg0": 3}, {"arg1.0": 19, "arg0": 19}]
