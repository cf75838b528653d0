"""`checked`: one more result says whether what narrowing assumes held; where it is true, all else is right."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from untyped_mlir import function, module

import hlo_lower as hl
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

LEAST, MOST = np.iinfo(np.int32).min, np.iinfo(np.int32).max
RANGES = {"i64": (LEAST, MOST), "ui64": (0, (1 << 32) - 1)}
VALUES = {
    "i64": [LEAST, LEAST + 1, -(1 << 16), -46341, -3, -1, 0, 1, 2, 46340, 46341, 1 << 16, MOST - 1, MOST],
    "ui64": [0, 1, 2, 65535, 65536, 1 << 31, (1 << 32) - 1],
}
DTYPES = {"i64": np.int64, "ui64": np.uint64}


def with_check(text):
    """A module narrowed with the check, under its own signature, and what that rests on."""
    graph = read(text, "module.mlir", contained=False)
    demotion = demote_i64(graph, checked=True)
    assert mlir.verify_module(graph.module) is None
    return with_original_signature(to_text(graph), demotion), demotion


def checked(text):
    """The same, to be run."""
    return Executable(with_check(text)[0], "exact")


def quotient(a, b):
    """Rounded towards zero; by zero all ones, which of signed numbers is -1."""
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1) if b else -1


BOTH, UNSIGNED = ("i64", "ui64"), ("ui64",)
EXACT = {
    "add %a, %b": (BOTH, lambda a, b: a + b),
    "subtract %a, %b": (BOTH, lambda a, b: a - b),
    "multiply %a, %b": (BOTH, lambda a, b: a * b),
    "divide %a, %b": (BOTH, quotient),
    "negate %a": (BOTH, lambda a, b: -a),
    "abs %a": (("i64",), lambda a, b: abs(a)),
    "not %a": (UNSIGNED, lambda a, b: (1 << 64) - 1 - a),
    "shift_left %a, 5": (BOTH, lambda a, b: a << 5),
}


@pytest.mark.parametrize(("op", "element"), [(op, element) for op, (on, _) in EXACT.items() for element in on])
def test_a_test_is_exact(op, element):
    """Of one op, at the edges of the type, it is true just where the exact result fits."""
    version, (low, high) = checked(module(f"%a: {element}, %b: {element}", f"%r = {op}")), RANGES[element]
    more = [1 << 26, (1 << 26) - 1, 1 << 27] if "%b" not in op else []
    for a in [*VALUES[element], *more]:
        for b in VALUES[element] if "%b" in op else [0]:
            exact = EXACT[op][1](a, b)
            exact = exact % (1 << 64) if element == "ui64" and (op == "negate %a" or b == 0) else exact
            assert bool(version.run([DTYPES[element](n) for n in (a, b)])[-1]) == (low <= exact <= high), (a, b)


@pytest.mark.parametrize("kind", ["f32", "f64", "bf16"])
@pytest.mark.parametrize("element", BOTH)
def test_a_conversion_from_floats_is_tested_as_a_float(element, kind):
    """It is true just where the number without its fraction fits; NaN does not."""
    version, (low, high) = checked(module(f"%x: {kind}", f"%r = convert %x -> {element}")), RANGES[element]
    ends = [low, high, low - 0.5, low - 1, high + 0.5, high + 1, 3.5, -0.5, 0, np.inf, -np.inf, np.nan, 1e30]
    given = [np.array(end).astype(mlir.dtype_of(kind)) for end in ends]
    given += [np.nextafter(x, np.array(d, x.dtype)) for x in given[:4] if kind != "bf16" for d in (-np.inf, np.inf)]
    for x in given:
        fits = bool(np.isfinite(float(x))) and low <= int(float(x)) <= high
        assert bool(version.run([x])[-1]) == fits, x


@pytest.mark.parametrize("count", [4, (1 << 15) + 5])
def test_a_sum_is_tested_by_digits(count):
    """A sum of many elements is true just where it fits, with digits of 16 bits, and of 8 for more of them."""
    total = "%c = constant 0 : i64; %r = reduce(%x init: %c) applies add across dimensions = [0]"
    version, rng = checked(module(f"%x: {count}xi64", total.replace("add", "stablehlo.add"))), np.random.default_rng(0)
    for end in (0, MOST, MOST + 1, LEAST, LEAST - 1):
        values = rng.integers(LEAST, MOST, count)
        values[: count // 2] = -values[-(count // 2) :]
        values[-2:] = 0
        for k in range(2):
            rest = end - int(values.sum())
            values[k] += np.clip(rest, -(1 << 30), 1 << 30) if abs(values[k]) < 1 << 30 else 0
        values = np.clip(values, LEAST, MOST)
        assert bool(version.run([values])[-1]) == (LEAST <= int(values.sum()) <= MOST)
    for first, second in ((MOST, 0), (MOST, 1), (LEAST, 0), (LEAST, -1), (MOST, LEAST)):
        one = np.array([first, second, *[0] * (count - 2)])
        assert bool(version.run([one])[-1]) == (LEAST <= first + second <= MOST)


def some(rng):
    """Four numbers of one size."""
    return rng.integers(-(1 << rng.integers(1, 32)), 1 << rng.integers(1, 32), 4).clip(LEAST, MOST)


def count(rng):
    """How often a loop runs."""
    return rng.integers(0, 40)


@jax.jit
def square(v):
    """A function of its own."""
    return v * v + 1


def nested(v):
    """A branch."""
    return lax.cond(v[0] > 5, lambda: v * v[1], lambda: v)


PROGRAMS = {
    "ring": (some, lambda x, y: (x * y + x - y, x * 3 - (y << jnp.int64(2)))),
    "sum": (some, lambda x, y: jnp.sum(x * y) + jnp.cumsum(x)[2]),
    "matrix": (some, lambda x, y: x.reshape(2, 2) @ y.reshape(2, 2)),
    "calls": (some, lambda x, y: square(x) + square(y + 1)),
    "loop": (count, lambda n, x: lax.fori_loop(0, n, lambda i, v: v * 2 + i, x)),
    "branch": (count, lambda n, x: lax.cond(n > 20, lambda v: v * v, lambda v: v - 1, x)),
    "scan": (some, lambda x, y: lax.scan(lambda c, v: (c + square(v), c * 2), y[0], x)),
    "nested": (count, lambda n, x: lax.fori_loop(0, n, lambda i, v: nested(v) + i, x)),
    "float": (count, lambda n, x: ((x.astype(jnp.float32) * n).astype(jnp.int64), (x + n) // 7)),
    "unsigned": (some, lambda x, y: (x - y).astype(jnp.uint64) * jnp.uint64(3)),
    "minimum": (some, lambda x, y: jnp.minimum(x + y, y) + jnp.maximum(x, y)),
}


def text_of(function, *shapes):
    """A function of 64-bit integers as text."""
    with jax.enable_x64(True):
        return jax.jit(function).lower(*(jax.ShapeDtypeStruct(shape, np.int64) for shape in shapes)).as_text()


@pytest.mark.parametrize("name", PROGRAMS)
def test_where_it_is_true_all_else_is_right(name):
    """On arguments of every size: true, and every result is that of 64 bits; and it is true and false, both."""
    first, program = PROGRAMS[name]
    rng, seen = np.random.default_rng(1), set()
    text = text_of(program, np.shape(first(rng)), (4,))
    after, demotion = with_check(text)
    assert all(told.startswith("argument") for told in demotion.assumptions), demotion.assumptions
    versions = [Executable(version, "exact") for version in (text, after)]
    for _ in range(60):
        arguments = [np.asarray(draw(rng), np.int64) for draw in (first, some)]
        expected, (*actual, held) = (version.run(arguments) for version in versions)
        seen.add(bool(held))
        if held:
            assert first_difference(expected, actual) is None, arguments
    assert seen == {True, False}


def test_a_wrong_test_is_caught(monkeypatch):
    """Where the test of an op is always true, the plain form is found to differ."""
    text = text_of(lambda x, y: (x + y, x * y, x.astype(jnp.uint64)), (4,), (4,))
    how = {"seed": 0, "runs": 3, "memory_budget": 1 << 30, "near": False, "checked": True}
    assert verify_plain(text, with_check(text)[0], **how).status == "equal"
    always = lambda build, node: build.constant(1, node.result().static_shape, "i1")  # noqa: E731
    monkeypatch.setattr(checks, "_TESTS", dict.fromkeys(checks._TESTS, always))
    assert verify_plain(text, with_check(text)[0], **how).status == "differs"


def test_what_cannot_be_tested_is_told():
    """A sum in a scatter, and what a constant that does not fit is part of, stay assumed, each with the reason."""
    text = text_of(lambda x: (jnp.zeros(4, jnp.int64).at[x % 2].add(x), x + (1 << 40)), (4,))
    _, demotion = with_check(text)
    told = [line.rpartition("(")[2] for line in demotion.assumptions if not line.startswith("argument")]
    assert told == ["it stands within a scatter)", "it uses a constant that does not fit)"]
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
    source, out = tmp_path / "in.mlir", tmp_path / "out.mlir"
    source.write_text(module("%a: 4xi64, %b: 4xi64", "%r = add %a, %b"))
    assert main(["convert", str(source), "-o", str(out), "--demote-i64", "--checked"]) == 0
    assert 'tensor<i1> {jax.result_info = "assumptions_hold"}' in out.read_text()
    assert "assumed, checked at run time" in capsys.readouterr().out


def test_a_public_function_that_a_composite_names_is_refused():
    """Its type cannot change, so that is an error and not a wrong module."""
    other = function("public @other", "%x: 4xi64", "return %x")
    call = '%r = composite "my.op" %x {decomposition = @other} -> 4xi64'
    with pytest.raises(hl.NotLoweredError, match="cannot get a result more"):
        with_check(module("%x: 4xi64", call, more=other))
