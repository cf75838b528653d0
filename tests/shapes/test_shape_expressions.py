"""Written shapes and constraints: what `hl.export(fn, shapes=...)` takes, and where it points when it does not."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import hlo_lower as hl
from hlo_lower.cli.main_program import main
from hlo_lower.ir.export.argument_specs import element_type
from hlo_lower.ir.export.load import load_function
from hlo_lower.ir.writer import to_text


def first(*arguments):
    """The first argument."""
    return arguments[0]


def array(*shape):
    """The spec of an argument."""
    return jax.ShapeDtypeStruct(shape, jnp.float32)


def shapes_of(exported):
    """The shapes of an exported function's arguments, as JAX prints them."""
    return [f"{aval.dtype}({', '.join(map(str, aval.shape))})" for aval in exported.in_avals]


def refusal(*args, shapes, fn=first):
    """The message with which an export is refused."""
    with pytest.raises(hl.InputError) as caught:
        hl.export(fn, *args, shapes=shapes)
    return str(caught.value)


ACCEPTED = [
    ("s, b, s * b, (s + 1)^2", "s, b, b*s, s^2 + 2*s + 1"),
    ("s, (s + 15) // 16, mod(s, 4)", "s, floordiv(s + 15, 16), mod(s, 4)"),
    ("s, b, min(s, b, 7), max(b, 2, s, 9)", "s, b, min(min(s, b), 7), max(max(max(b, 2), s), 9)"),
    ("s, s // 2 * 2, -(-s // 2)", "s, 2*floordiv(s, 2), - floordiv(- s, 2)"),
    *(("(s, 4)", "s, 4"), ("s,", "s"), ("", ""), ("()", "")),
]


@pytest.mark.parametrize(("text", "dims"), ACCEPTED, ids=[text for text, _ in ACCEPTED])
def test_a_shape_is_read_as_jaxs_dims(text, dims):
    """Operators, functions of several arguments and parentheses become JAX's own dims."""
    [told] = shapes_of(hl.export(first, shapes=[text]))
    assert sorted(told.removeprefix("float32(").removesuffix(")").split(", ")) == sorted(dims.split(", "))


def test_what_a_shape_does_not_name():
    """`_` keeps a dim, `...` the dims from there on, and both the element types; f32 is meant without one."""
    args = array(3, 4), jax.ShapeDtypeStruct((5, 6, 7), jnp.int32), array()
    exported = hl.export(first, *args, shapes=["b * 2, _", "b, ...", "..."])
    assert shapes_of(exported) == ["float32(2*b, 4)", "int32(b, 6, 7)", "float32()"]
    texts = ["bf16[b * 2, d]", "int32[b]", "i1[b]", "bool[]", "ui8[4]", "b, d", " f16 [ (b, 4) ] "]
    types = ["bfloat16(2*b, d)", "int32(b)", "bool(b)", "bool()", "uint8(4)", "float32(b, d)", "float16(b, 4)"]
    assert types == shapes_of(hl.export(first, shapes=texts))
    assert shapes_of(hl.export(first, array(3, 4), shapes=["f32[b, ...]"])) == ["float32(b, 4)"]
    none = ("f33", "f4", "u8", "int", "object", "float128", "zeros", "datetime64", "F32")
    assert [name for name in none if element_type(name) is not None] == []


def test_constraints_stand_among_the_shapes():
    """What compares is a constraint: it is no argument, and JAX reasons with it; an equation, either way round, puts
    its right side for its left one everywhere."""

    def halves(x, y):
        return x.reshape(-1, 16), jax.lax.slice(y, (0,), (4,))

    exported = hl.export(halves, shapes=["s % 16 == 0", "s", "t", "t > 3", "s <= 100", "t < 2 * s"])
    assert shapes_of(exported) == ["float32(s)", "float32(t)"]
    assert [aval.shape[1:] for aval in exported.out_avals] == [(16,), ()]
    for equation in ("t == 2*s", "2*s == t"):
        exported = hl.export(jnp.add, shapes=["t", "2*s", equation])
        assert shapes_of(exported)[0] == shapes_of(exported)[1]


RULE = (
    "a shape has names, whole numbers, + - * // % ^, parentheses, min(...), max(...), mod(a, b), "
    'floordiv(a, b), "..." and "_"; a constraint compares: "s >= 1", "s % 16 == 0"'
)
PRODUCT, POINTS = "total * block_size, 64", "    total * block_size, 64\n    ^^^^^^^^^^^^^^^^^^\n"
CANNOT = "cannot be computed from the arguments' shapes"
GIVE, ALONE = "  next:    give", "as a dim of an argument, alone or times a number"
SAID = {
    "argument 1: this parenthesis is not closed": (
        ["batch, heads", "batch * (heads, head_dim"],
        f"    batch * (heads, head_dim\n            ^\n  next:    {RULE}",
    ),
    "argument 0: this divisor may be zero": (
        ["s, 64 // (s - 1)"],
        '    s, 64 // (s - 1)\n              ^^^^^\n  next:    add the constraint "s - 1 >= 1"',
    ),
    f"argument 1: block_size and total {CANNOT}": (
        ["b", PRODUCT],
        f"{POINTS}  facts:   arguments float32[b], float32[block_size*total,64]\n"
        f"{GIVE} each of block_size and total {ALONE}",
    ),
    f"argument 0: total {CANNOT}": (
        [PRODUCT, "block_size"],
        f"{POINTS}  facts:   arguments float32[block_size*total,64], float32[block_size]\n"
        f"{GIVE} total {ALONE}; "
        'or write n for total * block_size, with the constraint "n % block_size == 0"',
    ),
}


@pytest.mark.parametrize("told", SAID)
def test_a_message_names_the_argument_shows_the_place_and_says_what_helps(told):
    """What cannot be read, a divisor that may be 0, and sizes that cannot be computed: the whole message."""
    shapes, rest = SAID[told]
    assert refusal(shapes=shapes) == f"first: {told}\n{rest}"


def test_with_what_is_asked_for_all_is_well():
    """The constraints and dims that those messages ask for are taken."""
    for constraint in ("s - 1 >= 1", "s >= 2", "s > 1"):
        exported = hl.export(first, shapes=["s, 64 // (s - 1)", constraint])
        assert shapes_of(exported) == ["float32(s, floordiv(64, s - 1))"]
    assert hl.export(first, shapes=[PRODUCT, "block_size", "total"])
    assert hl.export(first, shapes=["n, 64", "block_size", "n % block_size == 0"])


@pytest.mark.parametrize(
    ("fn", "shapes", "constraint"),
    [
        (lambda x: jax.lax.slice(x, (0,), (4,)), ["s"], "s >= 4"),
        (lambda x: x.reshape(-1, 16), ["2*s + 2"], "(2*s + 2) % 16 == 0"),
        (lambda x, y: x if x.shape[0] >= 2 * y.shape[0] else y, ["s", "b"], "s >= 2*b"),
    ],
)
def test_a_comparison_without_an_answer(fn, shapes, constraint):
    """Where tracing needs to know more of the sizes, the message names the constraint that says it; with that the
    function is exported."""
    told = f'  next:    if that holds for all sizes, say so: add the constraint "{constraint}" to the shapes'
    assert refusal(shapes=shapes, fn=fn).endswith(told)
    assert hl.export(fn, shapes=[*shapes, constraint])


OF, NO_EQUATION = "argument 0, float32[3,4]", "this equation contradicts the others"
REFUSED = [
    (["b, 5"], f"{OF}: dim 1 of the argument is 4, not 5", "   ^"),
    (["b"], f"{OF}: 1 dims, fewer than the 2 that the argument has", "^"),
    (["b, 4, c"], f"{OF}: 3 dims, more than the 2 that the argument has", "^^^^^^^"),
    (["b, _, _"], f"{OF}: the argument has only 2 dims", "      ^"),
    (["..., 4"], "argument 0: ... stands for all the dims from there on: nothing comes after it", "^^^"),
    (["i32[b, _]"], f"{OF}: the argument is of float32", "^^^"),
    ([" f33[b, _]"], f"{OF}: f33 is not an element type", " ^^^"),
    (["f32[b, _"], "argument 0: '[' is not a character of a shape", "   ^"),
    (["b, -b - 3"], f"{OF}: a size cannot be below 0", "   ^^^^^^"),
    (["b, 4 // (2 - 2)"], "argument 0: this divisor is zero", "         ^^^^^"),
    (["b,, c"], "argument 0: a name or a number is missing here", "  ^"),
    (["b, 4", "b >= 1 >= 0"], "constraint: a constraint compares once: write two of them", "       ^^"),
    (["b, 4", "b = 2"], "constraint: = is not a comparison here: an equation is written ==", "  ^"),
    (["b, 4", "b != 2"], "constraint: != is not a comparison here: a constraint has ==, >=, <=, >, <", "  ^^"),
    (["b, 4", "b >= 2, b"], "constraint: a constraint stands alone: no comma", "      ^"),
    (["b, 4", "b >="], "constraint: a name or a number is missing here", "    ^"),
    (["b, 4", "b >= t"], "constraint: t is in no shape", "     ^"),
    (["b, 4", "b < 1"], "constraint: this never holds", "^^^^^"),
    (["b, 4", "b + 1 == 0"], "constraint: this never holds", "^^^^^^^^^^"),
    (["b, c", "b == c", "c == 4"], f"constraint: {NO_EQUATION}", "^^^^^^"),
]


@pytest.mark.parametrize(("shapes", "told", "carets"), REFUSED, ids=[shapes[-1] for shapes, *_ in REFUSED])
def test_a_shape_or_constraint_that_does_not_fit(shapes, told, carets):
    """Each message says what is wrong and has the carets under the place in the last text."""
    lines = [f"first: {told}", f"    {shapes[-1]}", f"    {carets}"]
    assert refusal(array(3, 4), shapes=shapes).split("\n")[:3] == lines


def test_other_refusals():
    """`_` and `...` need arguments; a name of which an equation leaves no dim is told as that; a single text, and what
    is not text, are told apart from a shape that is wrong; a square is a multiple of nothing that is known."""
    assert "... keeps what an argument has, and no arguments are given" in refusal(shapes=["b, ..."])
    assert "s is in no argument's shape any more" in refusal(shapes=["2*s", "3*t", "2*s == 3*t"])
    assert hl.export(first, shapes=["2*s", "3*t", "s", "2*s == 3*t"])
    assert "shapes=['b, 4']" in refusal(array(3, 4), shapes="b, 4")
    assert "4 is not text" in refusal(array(3, 4), shapes=[4])
    assert "or write n" not in refusal(shapes=["b*b"])


MODEL = """\
import jax
from dataclasses import dataclass

@dataclass(frozen=True)
class Config:
    block: int = 16
    dtype: str = "f32"

def args(config):
    return tuple(jax.ShapeDtypeStruct(shape, "float32") for shape in ((64, 4), (4,)))

def shapes(config):
    return "total * block, 4", "total", "block == config.block"

EXPORTS = {"step": {"args": args, "config": Config(), "shapes": shapes},
           "plain": {"args": (jax.ShapeDtypeStruct((8,), "float32"),), "shapes": ["n", "n >= 2"]}}

def step(pool, owners, *, config):
    return pool * 2

def plain(x):
    return x
"""


def test_a_model_states_its_own_shapes(tmp_path, monkeypatch, capsys):
    """The entry's shapes are used, as they are or as a function of the config, unless others are asked for; a
    constraint of --shapes is honoured by --bind, and a mistake writes no file."""
    (tmp_path / "model.py").write_text(MODEL)
    monkeypatch.chdir(tmp_path)
    plain = load_function("model.py:plain")
    assert (shapes_of(plain.export()), shapes_of(plain.export(["..."]))) == (["float32(n)"], ["float32(8)"])
    of_config = load_function("model.py:step", {"block": "8"}).export()
    assert shapes_of(of_config) == ["float32(8*total, 4)", "float32(total)"]
    assert main(["export", "model.py:plain", "-o", "out.mlir", "--shapes", "2 * (n + 1)", "n % 4 == 0"]) == 0
    assert main(["convert", "out.mlir", "-o", "bound.mlir", "--bind", "n=8"]) == 0
    assert "tensor<18xf32>" in (tmp_path / "bound.mlir").read_text()
    assert main(["convert", "out.mlir", "-o", "wrong.mlir", "--bind", "n=6"]) == 2
    assert "n % 4 == 0 does not hold for n=6: n % 4 is 2" in capsys.readouterr().err
    assert main(["export", "model.py:plain", "-o", "wrong.mlir", "--shapes", "2 * (n + 1"]) == 2
    assert "    2 * (n + 1\n        ^\n" in capsys.readouterr().err
    assert main(["export", "model.py:step", "-o", "out.mlir", "--shapes", "config.block * n, _", "n // 4"]) == 0
    assert main(["convert", "out.mlir", "-o", "bound.mlir", "--bind", "n=8"]) == 0
    assert "tensor<128x4xf32>" in (tmp_path / "bound.mlir").read_text()
    for shapes, told, carets in (
        (["n, config.blok", "n"], "config has no blok", "^^^^^^^^^^^"),
        (["n, model.block", "n"], "there is no model", "^^^^^^^^^^^"),
        (["n, config.block.real.imag.x", "n"], "config has no x", "^" * 24),
        (["n, config.dtype", "n"], "config.dtype is 'f32', and no whole number", "^" * 12),
    ):
        assert main(["export", "model.py:step", "-o", "wrong.mlir", "--shapes", *shapes]) == 2
        lines = [
            f"step: {told}",
            f"    {shapes[0]}",
            f"       {carets}",
            "  facts:   config=Config(block=16, dtype='f32')",
        ]
        assert capsys.readouterr().err.splitlines()[-4:] == lines
    assert not (tmp_path / "wrong.mlir").exists()


B, H = hl.dims("b, h")
OBJECTS = [
    ([(B * H + 1, 4), (B,), (H,)], ["b*h + 1, 4", "b", "h"]),
    ([((B + 1) * H, "min(b, 4)", np.int64(3)), (B,), f"f32[{H}]"], ["b*h + h, min(b, 4), 3", "b", "h"]),
    ([(2 + B, 3 * H, B**2), (B,), (H,)], ["b + 2, 3*h, b^2", "b", "h"]),
    ([(100 - B, 8 // H, 9 % B, H % 5), [B], (H,), B <= 100], ["100 - b, 8 // h, 9 % b, h % 5", "b", "h", "b <= 100"]),
    ([(-(-B // 2), B - 1), (B,), (H,), B > 1, H < 9], ["-(-b // 2), b - 1", "b", "h", "b > 1", "h < 9"]),
    ([(), (B,), (H,), H == 2 * B], ["", "b", "h", "h == 2*b"]),
]


@pytest.mark.parametrize(("shapes", "texts"), OBJECTS, ids=[texts[0] for _, texts in OBJECTS])
def test_dims_are_objects_too(shapes, texts):
    """Arithmetic of dims, numbers and texts in tuples, and comparisons, are what a text of it is."""
    assert shapes_of(hl.export(first, shapes=shapes)) == shapes_of(hl.export(first, shapes=texts))


def test_dims_in_tuples_keep_and_are_constrained():
    """`...` and "_" keep what the argument has; a comparison is a constraint, and so is what a scope of JAX says."""
    compared = B > 1, B >= H, B < 2, B <= 3, B == H + 1
    assert [*map(str, compared)] == ["b > 1", "b >= h", "b < 2", "b <= 3", "b == h + 1"]
    kept = hl.export(first, array(3, 4, 5), array(2), shapes=[(B + 1, ...), ("_",), B >= 2])
    assert shapes_of(kept) == ["float32(b + 1, 4, 5)", "float32(2)"]

    def divided(x, y):
        return x.reshape(-1, 16) if y.shape[0] >= 8 else y

    for constraints in ((), (H % 16 == 0,), (B >= 8,)):
        with pytest.raises(hl.InputError, match="add the constraint"):
            hl.export(divided, shapes=[(H,), (B,), *constraints])
    assert hl.export(divided, shapes=[(H,), (B,), H % 16 == 0, B >= 8])
    b, h = jax.export.symbolic_shape("b, h", constraints=["b >= 8", "mod(h, 16) == 0"])
    assert shapes_of(hl.export(divided, shapes=[(h,), (b,)])) == ["float32(h)", "float32(b)"]


WRONG_OBJECTS = [
    ([B, (H,)], "b is a dim and no shape"),
    ([(B, 1.5), (H,)], "1.5 is not a dim"),
    ([(B, True), (H,)], "True is not a dim"),
    ([(B, B >= 1), (H,)], "<Constraint b >= 1> is not a dim"),
]


@pytest.mark.parametrize(("shapes", "told"), WRONG_OBJECTS, ids=[told for _, told in WRONG_OBJECTS])
def test_what_is_no_dim(shapes, told):
    """A message says what is none, and how one is written."""
    assert told in refusal(array(3, 4), array(2), shapes=shapes)


def test_what_dims_refuse():
    """A comparison is no truth value, as min would need; names are given as one text."""
    with pytest.raises(hl.InputError, match=r'write it as a text; so are min and max: "min\(b, 4\)"'):
        min(B, 4)
    for text in ("b, 2*h", "", "b h", "b, _", 3, "b >= 1"):
        with pytest.raises(hl.InputError, match=r"hl\.dims"):
            hl.dims(text)
    with pytest.raises(TypeError):
        B + 1.5


def paged(pool, slots, rows, owners, offsets):
    """Rows written into a pool of pages, by slot; slots outside are dropped."""
    return pool.at[slots].set(rows, mode="drop") + (owners.sum() + offsets.sum()) * 0


PAGED = (
    *("total_pool_blocks * block_size, heads, head_dim", "i32[batch]", "batch, heads, head_dim"),
    *("total_pool_blocks", "block_size", "block_size % 16 == 0", "batch <= total_pool_blocks"),
)


@pytest.mark.sweep
def test_a_paged_pool_is_converted_unbound_and_bound():
    """A pool whose length is a product is lowered and verified as it is, at sizes that the constraints allow, and with
    its sizes bound, from the Exported and from its text; the verification can fail."""
    pool = hl.export(paged, shapes=PAGED)
    lowered = hl.lower(pool)
    verdict = hl.verify(pool, lowered)
    assert verdict.ok
    assert re.search("block_size=(16|32)", "\n".join(verdict.lines()))
    sizes = {"total_pool_blocks": 3, "block_size": 16, "heads": 2, "head_dim": 4, "batch": 3}
    for source in (pool, to_text(hl.read(pool))):
        bound = hl.lower(source, bind=sizes)
        assert hl.verify(source, bound).ok
        assert "tensor<48x2x4xf32>" in bound.text
        assert "?x" not in bound.text
    rest = np.array([47, -1, 48], np.int32), np.ones((3, 2, 4), np.float32), np.zeros(3, "f"), np.zeros(16, "f")
    cache = np.zeros((48, 2, 4), np.float32)
    result = np.asarray(hl.lower(pool, bind=sizes).exported.call(cache, *rest))
    expected = np.asarray(paged(jnp.asarray(cache), *rest))
    assert np.flatnonzero(result.sum((1, 2))).tolist() == np.flatnonzero(expected.sum((1, 2))).tolist()
    in_bounds = list(re.finditer(r"compare +EQ(?=, %\d+, %\d+)", lowered.text))[-1]
    wrong = f"{lowered.text[: in_bounds.end() - 2]}NE{lowered.text[in_bounds.end() :]}"
    assert not hl.verify(pool, wrong).ok
