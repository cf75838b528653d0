"""`checked`: one more result says whether what narrowing assumes held; where it is true, all else is right."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import hlo_lower as hl
from hlo_lower.base.errors import NotLoweredError
from hlo_lower.cli import main
from hlo_lower.ir import mlir
from hlo_lower.ir.reader import read
from hlo_lower.ir.writer import to_text
from hlo_lower.lowering.integers64 import checks
from hlo_lower.lowering.integers64.demote import demote_i64
from hlo_lower.lowering.integers64.demotion import with_original_signature
from hlo_lower.verify import verify_plain
from hlo_lower.verify.bounds.compare import first_difference
from hlo_lower.verify.run import Executable

INT32 = np.iinfo(np.int32)
EDGES = [INT32.min, INT32.min + 1, -(1 << 16), -46341, -3, -1, 0, 1, 2, 46340, 46341, 1 << 16, INT32.max - 1, INT32.max]
UNSIGNED = [0, 1, 2, 65535, 65536, 1 << 31, (1 << 32) - 1]
RANGES = {"i64": (INT32.min, INT32.max), "ui64": (0, (1 << 32) - 1)}


def with_check(text):
    """A module narrowed with the check, under its own signature, and what that rests on."""
    graph = read(text, "module.mlir", contained=False)
    demotion = demote_i64(graph, checked=True)
    assert mlir.verify_module(graph.module) is None
    return with_original_signature(to_text(graph), demotion), demotion


def module(ops, element="i64", arguments=2, shape=""):
    """A module of some ops on arguments %a0, %a1, with the result %r."""
    one = f"tensor<{shape}{element}>"
    given = ", ".join(f"%a{k}: {one}" for k in range(arguments))
    return f"func.func public @main({given}) -> {one} {{\n{ops}\n  return %r : {one}\n}}"


BINARY = {
    "add": lambda a, b: a + b,
    "subtract": lambda a, b: a - b,
    "multiply": lambda a, b: a * b,
    "divide": lambda a, b: None if b == 0 else abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1),
}


@pytest.mark.parametrize("element", ["i64", "ui64"])
@pytest.mark.parametrize("name", BINARY)
def test_a_test_is_exact(name, element):
    """Of one op of two arguments, at the edges of the type, it is true just where the exact result fits."""
    text, _ = with_check(module(f"  %r = stablehlo.{name} %a0, %a1 : tensor<{element}>", element))
    version, (low, high) = Executable(text, "exact"), RANGES[element]
    values, dtype = (EDGES, np.int64) if element == "i64" else (UNSIGNED, np.uint64)
    for a in values:
        for b in values:
            exact = BINARY[name](a, b)
            if exact is None:  # by zero: all ones, which signed is -1
                exact = -1 if element == "i64" else (1 << 64) - 1
            held = version.run([dtype(a), dtype(b)])[-1]
            assert bool(held) == (low <= exact <= high), (a, b)


@pytest.mark.parametrize(
    ("name", "element", "exact"),
    [
        ("negate", "i64", lambda a: -a),
        ("abs", "i64", abs),
        ("negate", "ui64", lambda a: -a % (1 << 64)),
        ("not", "ui64", lambda a: (1 << 64) - 1 - a),
        ("shift_left", "i64", lambda a: a << 5),
        ("shift_left", "ui64", lambda a: a << 5),
    ],
)
def test_a_test_of_one_operand_is_exact(name, element, exact):
    """The same of ops of one operand, and of shifts by a constant."""
    shift = f"  %c = stablehlo.constant dense<5> : tensor<{element}>\n" if name == "shift_left" else ""
    rest = ", %c" if shift else ""
    text, _ = with_check(module(f"{shift}  %r = stablehlo.{name} %a0{rest} : tensor<{element}>", element, 1))
    version, (low, high) = Executable(text, "exact"), RANGES[element]
    values, dtype = (EDGES, np.int64) if element == "i64" else (UNSIGNED, np.uint64)
    for a in [*values, 1 << 26, (1 << 26) - 1, 1 << 27]:
        assert bool(version.run([dtype(a)])[-1]) == (low <= exact(a) <= high), a


@pytest.mark.parametrize("kind", ["f32", "f64", "bf16"])
@pytest.mark.parametrize("element", ["i64", "ui64"])
def test_a_conversion_from_floats_is_tested_as_a_float(element, kind):
    """It is true just where the number without its fraction fits; NaN does not."""
    low, high = RANGES[element]
    text = (
        f"func.func public @main(%x: tensor<{kind}>) -> tensor<{element}> {{\n"
        f"  %r = stablehlo.convert %x : (tensor<{kind}>) -> tensor<{element}>\n  return %r : tensor<{element}>\n}}"
    )
    version = Executable(with_check(text)[0], "exact")
    dtype = mlir.dtype_of(kind)
    ends = [low, high, low - 0.5, low - 1, high + 0.5, high + 1, 3.5, -0.5, 0, np.inf, -np.inf, np.nan, 1e30]
    given = [np.array(end).astype(dtype) for end in ends]
    given += [np.nextafter(x, np.array(d, x.dtype)) for x in given[:4] if kind != "bf16" for d in (-np.inf, np.inf)]
    for x in given:
        fits = bool(np.isfinite(float(x))) and low <= int(float(x)) <= high
        assert bool(version.run([x])[-1]) == fits, x


@pytest.mark.parametrize("count", [4, (1 << 15) + 5])
def test_a_sum_is_tested_by_digits(count):
    """A sum of many elements is true just where it fits, with digits of 16 bits, and of 8 for more of them."""
    sizes = f"tensor<{count}xi64>"
    text = (
        f"func.func public @main(%x: {sizes}) -> tensor<i64> {{\n  %c = stablehlo.constant dense<0> : tensor<i64>\n"
        "  %r = stablehlo.reduce(%x init: %c) applies stablehlo.add across dimensions = [0] : "
        f"({sizes}, tensor<i64>) -> tensor<i64>\n  return %r : tensor<i64>\n}}"
    )
    version, rng = Executable(with_check(text)[0], "exact"), np.random.default_rng(0)
    found = set()
    for end in (0, INT32.max, INT32.max + 1, INT32.min, INT32.min - 1):
        values = rng.integers(INT32.min, INT32.max, count)
        values[: count // 2] = -values[-(count // 2) :]
        part = values[: count // 2 * 2 - 2].sum()
        rest = end - int(part)
        values[-2:] = 0
        for k in range(2):
            values[k] += np.clip(rest, -(1 << 30), 1 << 30) if abs(values[k]) < 1 << 30 else 0
            rest = end - int(values.sum())
        values = np.clip(values, INT32.min, INT32.max)
        exact = int(values.sum())
        held = bool(version.run([values])[-1])
        assert held == (INT32.min <= exact <= INT32.max)
        found.add(held)
    one = np.zeros(count, np.int64)
    for first, second in ((INT32.max, 0), (INT32.max, 1), (INT32.min, 0), (INT32.min, -1), (INT32.max, INT32.min)):
        one[:2] = first, second
        assert bool(version.run([one])[-1]) == (INT32.min <= first + second <= INT32.max)


def programs():
    """Functions of 64-bit integers whose values may leave i32, in control flow, and draws of their arguments."""
    some = lambda rng: rng.integers(-(1 << rng.integers(1, 32)), 1 << rng.integers(1, 32), 4).clip(INT32.min, INT32.max)  # noqa: E731
    square = jax.jit(lambda v: v * v + 1)
    yield "ring", lambda x, y: (x * y + x - y, x * 3 - (y << jnp.int64(2))), (some, some)
    yield "sum", lambda x, y: jnp.sum(x * y) + jnp.cumsum(x)[2], (some, some)
    yield "matrix", lambda x, y: x.reshape(2, 2) @ y.reshape(2, 2), (some, some)
    yield "calls", lambda x, y: square(x) + square(y + 1), (some, some)
    count = lambda rng: rng.integers(0, 40)  # noqa: E731
    yield "loop", lambda n, x: lax.fori_loop(0, n, lambda i, v: v * 2 + i, x), (count, some)
    yield "branch", lambda n, x: lax.cond(n > 20, lambda v: v * v, lambda v: v - 1, x), (count, some)
    yield "scan", lambda x, y: lax.scan(lambda c, v: (c + square(v), c * 2), y[0], x), (some, some)
    nested = lambda v: lax.cond(v[0] > 5, lambda: v * v[1], lambda: v)  # noqa: E731
    yield "nested", lambda n, x: lax.fori_loop(0, n, lambda i, v: nested(v) + i, x), (count, some)
    yield "float", lambda n, x: ((x.astype(jnp.float32) * n).astype(jnp.int64), (x + n) // 7), (count, some)
    yield "unsigned", lambda x, y: (x - y).astype(jnp.uint64) * jnp.uint64(3), (some, some)
    yield "minimum", lambda x, y: jnp.minimum(x + y, y) + jnp.maximum(x, y), (some, some)


@pytest.mark.parametrize(("function", "draws"), [p[1:] for p in programs()], ids=[p[0] for p in programs()])
def test_where_it_is_true_all_else_is_right(function, draws):
    """On arguments of every size: true, and every result is that of 64 bits; and it is true and false, both."""
    with jax.enable_x64(True):
        rng = np.random.default_rng(1)
        text = jax.jit(function).lower(*(np.asarray(draw(rng), np.int64) for draw in draws)).as_text()
    after, demotion = with_check(text)
    assert all(told.startswith("argument") for told in demotion.assumptions), demotion.assumptions
    versions = [Executable(version, "exact") for version in (text, after)]
    seen = set()
    for _ in range(60):
        arguments = [np.asarray(draw(rng), np.int64) for draw in draws]
        expected, (*actual, held) = (version.run(arguments) for version in versions)
        seen.add(bool(held))
        if held:
            assert first_difference(expected, actual) is None, arguments
    assert seen == {True, False}


def test_a_wrong_test_is_caught(monkeypatch):
    """Where the test of an op is always true, the plain form is found to differ."""
    with jax.enable_x64(True):
        shape = jax.ShapeDtypeStruct((4,), np.int64)
        text = jax.jit(lambda x, y: (x + y, x * y, x.astype(jnp.uint64))).lower(shape, shape).as_text()
    right, _ = with_check(text)
    how = {"seed": 0, "runs": 3, "memory_budget": 1 << 30, "near": False, "checked": True}
    assert verify_plain(text, right, **how).status == "equal"
    always = lambda build, node: build.constant(1, node.result().static_shape, "i1")  # noqa: E731
    monkeypatch.setattr(checks, "_TESTS", dict.fromkeys(checks._TESTS, always))
    wrong, _ = with_check(text)
    assert verify_plain(text, wrong, **how).status == "differs"


def test_what_cannot_be_tested_is_told():
    """A sum in a scatter, and what a constant that does not fit is part of, stay assumed, each with the reason."""
    with jax.enable_x64(True):
        shape = jax.ShapeDtypeStruct((4,), np.int64)
        text = jax.jit(lambda x: (jnp.zeros(4, jnp.int64).at[x % 2].add(x), x + (1 << 40))).lower(shape).as_text()
    _, demotion = with_check(text)
    told = [line for line in demotion.assumptions if not line.startswith("argument")]
    assert [line.rpartition("(")[2] for line in told] == [
        "it stands within a scatter)",
        "it is made of a constant that does not fit)",
    ]
    assert demotion.tested == ()


def test_lower_verify_and_jit_know_the_result():
    """`hl.lower` and `hl.verify` agree, an `Exported` and `hl.jit` give a pair; without assumptions it is true."""
    with jax.enable_x64(True):
        arguments = [jax.ShapeDtypeStruct((8,), np.float32), jax.ShapeDtypeStruct((), np.int64)]
        exported = jax.export.export(jax.jit(lambda x, i: {"a": x * 2, "b": i + i}))(*arguments)
    lowered = hl.lower(exported, demote_i64=True, checked=True)
    assert any(line.startswith("assumed, checked at run time: stablehlo.add") for line in lowered.notes)
    for index, expected in ((3, True), (1 << 30, False)):
        result, held = lowered.exported.call(np.zeros(8, np.float32), np.int32(index))
        assert (bool(held), set(result)) == (expected, {"a", "b"})
    verdict = hl.verify(exported, lowered, level="regions")
    assert verdict.ok
    assert "where its last result is true" in verdict.plain.how
    put = hl.jit(lambda x, i: x.at[i].set(1.0), checked=True)
    written, held = put(np.zeros(8, np.float32), 3)
    assert (float(written.sum()), bool(held)) == (1.0, True)
    with jax.disable_jit():
        assert bool(put(jnp.zeros(8), 3)[1])


def test_the_command_writes_it(tmp_path, capsys):
    """`convert --checked` writes the result, and tells what it is about."""
    source = tmp_path / "in.mlir"
    source.write_text(module("  %r = stablehlo.add %a0, %a1 : tensor<4xi64>", shape="4x"))
    out = tmp_path / "out.mlir"
    assert main(["convert", str(source), "-o", str(out), "--demote-i64", "--checked"]) == 0
    assert 'tensor<i1> {jax.result_info = "assumptions_hold"}' in out.read_text()
    assert "assumed, checked at run time" in capsys.readouterr().out


def test_a_public_function_that_a_composite_names_is_refused():
    """Its type cannot change, so that is an error and not a wrong module."""
    text = (
        "func.func public @main(%x: tensor<4xi64>) -> tensor<4xi64> {\n"
        '  %r = stablehlo.composite "my.op" %x {decomposition = @other} : (tensor<4xi64>) -> tensor<4xi64>\n'
        "  return %r : tensor<4xi64>\n}\n"
        "func.func public @other(%x: tensor<4xi64>) -> tensor<4xi64> {\n  return %x : tensor<4xi64>\n}"
    )
    with pytest.raises(NotLoweredError, match="cannot get a result more"):
        with_check(text)
