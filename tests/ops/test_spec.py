"""The declarations of ops: all of jaxlib's are there, and what the columns say holds where XLA runs the op."""

import importlib
import inspect

import numpy as np
import pytest
from untyped_mlir import module

from hlo_lower.ops import names
from hlo_lower.ops.purity import FUNCTIONS, PURE_OPS
from hlo_lower.ops.spec import (
    COMBINING,
    CONSTANTS,
    KEEPS_ELEMENTS,
    MOVES,
    OPS,
    Elements,
    Numbers,
    Role,
    Rounds,
    ops_with,
)
from hlo_lower.verify.judges.interpreter import shared_interpreter
from hlo_lower.verify.run import Executable

UNDECLARED = {
    "is broadcast to one shape by jaxlib before anything reads it": "broadcast_",
    "is an op that no exporter writes yet": "_asin_acos_kernel constant constant_like mulhi scan",
}
"""Ops of chlo without a declaration, or the beginnings of their names, by the reason."""


def ops_of(dialect):
    """The names of a dialect's ops."""
    classes = vars(importlib.import_module(f"jax.extend.mlir.dialects.{dialect}")).values()
    return {c.OPERATION_NAME for c in classes if inspect.isclass(c) and hasattr(c, "OPERATION_NAME")}


def test_every_op_is_declared():
    """The declared ops are those that jaxlib has, of chlo but those with a reason; each has a constant of its name."""
    reasons = tuple(f"chlo.{name}" for names in UNDECLARED.values() for name in names.split())
    newer = {"stablehlo.async_start", "stablehlo.async_done"}  # than jaxlib 0.9
    assert {op for op in OPS if op.startswith("stablehlo.")} == ops_of("stablehlo") | newer
    chlo = {op for op in OPS if op.startswith("chlo.")}
    assert chlo <= ops_of("chlo")
    assert {op for op in ops_of("chlo") - chlo if not op.startswith(reasons)} == set()
    written = {key: name for key, name in vars(names).items() if key.isupper()}
    assert set(written.values()) == {op for op in OPS if op.startswith("stablehlo.")}
    assert all(key == OPS[name].short_name.upper().replace("-", "_") for key, name in written.items())


def test_columns_agree_with_each_other():
    """An op that moves elements says which and how; what speaks with a host is not pure; what is pure is a function."""
    for op in OPS.values():
        assert (op.elements is not None) <= (op.role is Role.MOVES), op.name
        assert (op.moved != ()) >= (op.role is Role.MOVES), op.name
        assert not (op.is_pure and op.role in (Role.HOST, Role.DEVICES, Role.CALLS)), op.name
        assert op.arity is None or not op.moved or max(op.moved) < op.arity, op.name
        assert not (op.identity or op.keeps or op.image) or op.role is Role.ELEMENTWISE, op.name
    assert PURE_OPS < FUNCTIONS
    assert not PURE_OPS & ops_with(role=Role.CONTROL)
    assert not FUNCTIONS & ops_with(is_pure=False)


def run(text, *arguments):
    """What a module of one op gives, op by op."""
    return Executable(text, "exact").run(arguments)[0]


NUMBERS = {"0": 0, "1": 1, "-1": -1, "least": -128, "greatest": 127}


@pytest.mark.parametrize("name", sorted(COMBINING))
def test_the_identity_changes_nothing_and_order_does_not_matter(name):
    """On all pairs of bytes: a op identity is a, a op b is b op a, and (a op b) op c is a op (b op c)."""
    a, b = (part.reshape(-1).astype(np.int8) for part in np.meshgrid(np.arange(-128, 128), np.arange(-128, 128)))
    c = np.random.default_rng(0).permutation(a)
    program = Executable(module("%x: 65536xi8, %y: 65536xi8", f"%r = {name} %x, %y"), "exact")
    op = lambda x, y: program.run([x, y])[0]  # noqa: E731 - the op itself, as it is written in the laws
    np.testing.assert_array_equal(op(a, np.full_like(a, NUMBERS[OPS[name].identity])), a)
    np.testing.assert_array_equal(op(a, b), op(b, a))
    np.testing.assert_array_equal(op(op(a, b), c), op(a, op(b, c)))


@pytest.mark.parametrize("name", sorted(op.name for op in OPS.values() if op.keeps and op.name.startswith("stable")))
def test_odd_and_even_functions(name):
    """f(-x) is -f(x) of an odd function and f(x) of an even one, bit for bit, NaN aside."""
    text = module("%x: 4096xf32", f"%r = {name} %x")
    rng = np.random.default_rng(1)
    x = np.concatenate([rng.normal(size=4000), np.arange(-20, 20) / 2, [0.0, np.inf, 1e30, 1e-30]])
    x = np.resize(x, 4096).astype(np.float32)
    there, mirrored = run(text, x), run(text, -x)
    expected = -there if OPS[name].keeps == "odd" else there
    known = ~np.isnan(there)
    np.testing.assert_array_equal(mirrored[known].view(np.int32), expected[known].view(np.int32))


@pytest.mark.parametrize("name", sorted(op.name for op in OPS.values() if op.image))
def test_results_lie_in_the_image(name):
    """Of numbers of all magnitudes, infinities and subnormal numbers no result lies beyond an end, NaN aside."""
    bits = np.random.default_rng(2).integers(0, 1 << 32, 8192, dtype=np.uint32)
    found = run(module("%x: 8192xf32", f"%r = {name} %x"), bits.view(np.float32))
    low, high = OPS[name].image
    known = found[~np.isnan(found)]
    assert low <= known.min() <= known.max() <= high
    assert known.max() > high - 0.01 if high < np.inf else known.max() > 100


ON_INTEGERS = {
    **dict.fromkeys(
        ["add", "subtract", "multiply", "divide", "remainder", "maximum", "minimum", "and", "or", "xor"], "%x, %y"
    ),
    **dict.fromkeys(["shift_left", "shift_right_logical", "shift_right_arithmetic"], "%x, %y"),
    **dict.fromkeys(["negate", "not", "popcnt", "count_leading_zeros"], "%x"),
    "select": "%p, %x, %y",
    "clamp": "%x, %x, %y",
}


@pytest.mark.parametrize("name", ON_INTEGERS)
def test_the_sign_of_integers_changes_the_bits_of_a_result_or_not(name):
    """Of all pairs of 8 bits an op gives the same ones with and without a sign, as the column says, or some others."""
    x, y = (each.reshape(-1) for each in np.meshgrid(*[np.arange(256, dtype=np.uint8)] * 2))
    found = []
    for kind, dtype in (("ui8", np.uint8), ("i8", np.int8)):
        arguments = f"%x: 65536x{kind}, %y: 65536x{kind}"
        body = f"%p = compare EQ, %x, %y; %r = {name} {ON_INTEGERS[name]}"
        found.append(run(module(arguments, body), x.view(dtype), y.view(dtype)).view(np.uint8))
    assert (found[0] == found[1]).all() == OPS[f"stablehlo.{name}"].is_signless
    assert {f"stablehlo.{op}" for op in ON_INTEGERS} >= ops_with(is_signless=True) - CONSTANTS


MOVING = {
    "reshape": "%x -> 3x4xf32",
    "transpose": "%x, dims = [1, 0]",
    "reverse": "%x, dims = [1]",
    "broadcast_in_dim": "%x, dims = [0, 2] -> 2x3x6xf32",
    "slice": "%x [0:2, 1:4]",
    "concatenate": "%x, %x, dim = 0",
}


@pytest.mark.parametrize("name", MOVING)
def test_what_becomes_of_moved_elements(name):
    """Elements stand once, at several places, or are left out, as the column says."""
    x = np.arange(12, dtype=np.float32).reshape(2, 6)
    found, counts = np.unique(run(module("%x: 2x6xf32", f"%r = {name} {MOVING[name]}"), x), return_counts=True)
    assert set(found) <= set(x.reshape(-1))
    expected = {
        Elements.ALL_ONCE: found.size == 12 and set(counts) == {1},
        Elements.SPREAD: found.size == 12 and counts.min() >= 1,
        Elements.SOME: found.size < 12,
        Elements.JOINED: True,
    }
    assert expected[OPS[f"stablehlo.{name}"].elements]
    assert {"stablehlo.bitcast_convert"} == MOVES - KEEPS_ELEMENTS  # of bits another type makes other numbers


@pytest.mark.parametrize("name", ["add", "subtract", "multiply", "divide", "remainder", "reduce_precision", "sqrt"])
def test_what_is_rounded_once_has_one_right_result(name):
    """XLA and the interpreter give it bit for bit; so they do for square roots, which not every consumer rounds so."""
    unary = name in ("reduce_precision", "sqrt")
    assert OPS[f"stablehlo.{name}"].rounds is (Rounds.FREELY if name == "sqrt" else Rounds.ONCE)
    operands, more = ("%x" if unary else "%x, %y"), (", format = e5m7" if name == "reduce_precision" else "")
    text = module("%x: 4096xf32, %y: 4096xf32", f"%r = {name} {operands}{more}")
    arguments = [np.random.default_rng(k).lognormal(0, 3, 4096).astype(np.float32) for k in range(2)]
    [expected] = shared_interpreter().run(text, arguments)
    np.testing.assert_array_equal(run(text, *arguments), expected)


def test_what_is_never_rounded_has_integers_of_integers():
    """Arithmetic is rounded, and what only moves, chooses or compares is not."""
    assert {OPS[f"stablehlo.{op}"].rounds for op in ("add", "divide", "convert")} == {Rounds.ONCE}
    assert {OPS[f"stablehlo.{op}"].rounds for op in ("select", "maximum", "pad", "sort")} == {Rounds.NEVER}
    assert {OPS[f"stablehlo.{op}"].rounds for op in ("exponential", "dot_general", "reduce")} == {Rounds.FREELY}


@pytest.mark.parametrize("name", sorted(name for name in ops_with(role=Role.ELEMENTWISE) if OPS[name].numbers))
def test_which_numbers_an_op_gives(name):
    """Those of its operands, whole ones, whole ones of whole operands, or no middle between numbers of as many digits.

    Of all numbers in quarters to 32: with an eighth where they are to be the operands', of five digits for middles.
    """
    spec, x = OPS[name], np.arange(-128, 128, dtype=np.float32) / 4
    x += 0.125 * (spec.numbers is Numbers.OPERANDS)
    a, b = (part.reshape(-1) for part in np.meshgrid(x, x))
    if spec.numbers is Numbers.WHOLE_OF_WHOLE:
        a, b = np.floor(a), np.floor(b)
    if spec.numbers is Numbers.NO_MIDDLES:
        a, b = (x[_digits(x) <= 5] for x in (a, b))
        a, b = a[: min(len(a), len(b))], np.roll(b, 1)[: min(len(a), len(b))]
    operands = (a > b, a, b) if name == "stablehlo.select" else (a, b, b + 1)[: spec.arity]
    types = ", ".join(f"%x{k}: {len(a)}x{'i1' if x.dtype == bool else 'f32'}" for k, x in enumerate(operands))
    taken = ", ".join(f"%x{k}" for k in range(len(operands)))
    more = {"convert": f" -> {len(a)}xf16", "reduce_precision": ", format = e8m7"}.get(spec.short_name, "")
    given = run(module(types, f"%r = {spec.short_name} {taken}{more}"), *operands).astype(np.float32)
    given = given[np.isfinite(given)]
    if spec.numbers is Numbers.OPERANDS:
        assert set(np.abs(given)) <= set(np.abs(np.concatenate([x for x in operands if x.dtype != bool])))
    elif spec.numbers is Numbers.NO_MIDDLES:
        assert not np.any(_digits(given) == 6)
    else:
        assert set(given) == set(np.round(given))


def _digits(x):
    """How many binary digits each number has."""
    whole = np.abs(np.frexp(x)[0].astype(np.float64) * 2.0**24).astype(np.int64)
    return 24 - np.log2(np.maximum(whole & -whole, 1)).astype(int) * (whole > 0)
