"""The table of forms: each meaning becomes what its row says, and the document has the table."""

from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from test_linalg_named import CONVOLUTIONS, convolved

import hlo_lower as hl
from hlo_lower.cli.main_program import main
from hlo_lower.ir import mlir
from hlo_lower.lowering.linalg.forms import FORMS
from hlo_lower.report.rules_table import render_linalg_markdown

PAGE = Path(__file__).parents[2] / "docs" / "linalg.md"
MARK = "<!-- forms: tests/linalg/test_linalg_forms.py compares; run, it writes this anew -->\n"

X, Y, T, V = (4, 8), (8, 5), (2, 4, 8), (8,)


def rms_norm(x, w):
    """Over the last axis."""
    return x * jax.lax.rsqrt((x * x).mean(-1, keepdims=True) + 1e-6) * w


def layer_norm(x, w, b):
    """Over the last axis."""
    d = x - x.mean(-1, keepdims=True)
    return d * jax.lax.rsqrt((d * d).mean(-1, keepdims=True) + 1e-6) * w + b


def attention(q, k, v):
    """Batch, heads, positions, elements."""
    return jnp.einsum("bhst,bhtd->bhsd", jax.nn.softmax(jnp.einsum("bhsd,bhtd->bhst", q, k), -1), v)


def outer(a, b):
    """All products of two vectors."""
    return jax.lax.dot_general(a, b, (((), ()), ((), ())))


EXAMPLES = {  # a function, and the shapes of its arguments: of floats, or an array of another type
    "elementwise op": (jnp.add, X, X),
    "elementwise op of a value and a number": (lambda x: x * 3, X),
    "relu": (jax.nn.relu, X),
    "relu6, a clip between numbers": (jax.nn.relu6, X),
    "conversion": (lambda x: x.astype(jnp.bfloat16), X),
    "masked select": (lambda x, y, z: jnp.where(~y, x, z), X, np.ones(X, bool), X),
    "logistic": (jax.nn.sigmoid, X),
    "bias, whatever is broadcast": (lambda b: jnp.broadcast_to(b[None, :, None], (4, 8, 3)), V),
    "transpose": (jnp.transpose, X),
    "dims of extent 1 that move": (lambda x: x.transpose(1, 0, 2), (1, 4, 8)),
    "reduction": (lambda x: x.sum(1), X),
    "linear of rank 2": (lambda x, w: x @ w.T, X, (5, 8)),
    "linear of another rank": (lambda x, w: (x.reshape(8, 8) @ w).reshape(2, 4, 5), T, Y),
    "batched product of matrices": (lambda a, b: a @ b.swapaxes(1, 2), T, (2, 5, 8)),
    "product over heads, any other einsum": (
        lambda q, k: jnp.einsum("bshd,bthd->bhst", q, k),
        (2, 3, 4, 5),
        (2, 6, 4, 5),
    ),
    "product of a matrix and a vector": (jnp.matmul, X, V),
    "product of vectors": (jnp.dot, V, V),
    "product of mixed types": (jnp.matmul, np.ones(X, jnp.bfloat16), Y),
    "outer product": (outer, V, V),
    "convolution, channels last": CONVOLUTIONS["linalg.conv_2d_nhwc_hwcf"],
    "convolution of another kernel": convolved("NHWC OHWI NHWC", (1, 8, 9, 3), (4, 3, 2, 3), window_strides=(1, 1)),
    "convolution of a kernel 1 x 1": (
        lambda x, w: jax.lax.conv_general_dilated(
            x, w[None, None], (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
        ),
        (2, 8, 9, 3),
        (3, 4),
    ),
    "convolution of another layout": convolved("CHWN IHWO CHWN", (3, 8, 9, 1), (3, 3, 2, 4), window_strides=(1, 1)),
    "pooling": (
        lambda x: jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (1, 3, 2, 1), (1, 1, 1, 1), "VALID"),
        (1, 8, 9, 3),
    ),
    "softmax of f32, f64": (jax.nn.softmax, X),
    "softmax of bf16, f16, computed in f32": (
        lambda x: jax.nn.softmax(x.astype(jnp.float32)).astype(jnp.float16),
        np.ones(X, np.float16),
    ),
    "softmax of bf16, f16, rounded within": (jax.nn.softmax, np.ones(X, jnp.bfloat16)),
    "layer norm": (layer_norm, X, V, V),
    "rms norm": (rms_norm, X, V),
    "gelu, silu, swiglu": (jax.nn.gelu, X),
    "attention": (attention, *[(2, 3, 4, 5)] * 3),
    "iota": (lambda: jax.lax.broadcasted_iota(jnp.int32, X, 1),),
    "reversal": (lambda x: x[::-1], X),
    "gather, embedding lookup": (
        lambda x, i: x.at[i].get(mode="promise_in_bounds", wrap_negative_indices=False),
        X,
        np.ones(3, np.int32),
    ),
    "slice": (lambda x: x[1:3], X),
    "pad": (lambda x: jax.lax.pad(x, 0.0, [(1, 1, 0), (0, 0, 0)]), X),
    "concatenation": (lambda x, y: jnp.concatenate([x, y]), X, X),
    "write of a window": (lambda x, u: x.at[1:3].set(u), X, (2, 8)),
    "loop that counts": (lambda x: jax.lax.fori_loop(0, 9, lambda i, s: s + i, x), np.int32(0)),
    "loop that ends by its data": (lambda x: jax.lax.while_loop(lambda s: s * s < 99, lambda s: s + s, x), np.int32(1)),
    "branch": (lambda p, x: jax.lax.cond(p, lambda v: v + 1, lambda v: v - 1, x), np.bool_(1), np.int32(1)),
}
ASIDE = ("tensor.empty", "linalg.fill", "tensor.extract", "tensor.from_elements")
"""What makes room, or reads a scalar."""


def ops_of(text):
    """The ops of @main in linalg, those within their regions left out, each once."""
    context = mlir.make_context()
    with mlir.active(context):
        empty = mlir.parse_module("module {}", context)
        mlir.run_pass(empty.operation, "builtin.module(stablehlo-legalize-to-linalg)")  # it loads the dialect
        functions = mlir.parse_module(text, context).body.operations
        [main_function] = [f for f in functions if mlir.symbol_name(f.attributes["sym_name"]) == "main"]
        names = [op.operation.name.removeprefix("func.") for op in main_function.regions[0].blocks[0].operations]
    plain = [name for name in names if not name.startswith(("arith.", "math.", "return")) and name not in ASIDE]
    return tuple(dict.fromkeys(plain))


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.meaning)
def test_a_meaning_becomes_what_its_row_says(form):
    """The ops of a module of it are those of the row, in this order."""
    function, *given = EXAMPLES[form.meaning]
    arguments = [np.ones(one, np.float32) if isinstance(one, tuple) else one for one in given]
    text = hl.lower(jax.jit(function).lower(*arguments).as_text(), target="linalg").text
    assert ops_of(text) == form.ops, text


def test_the_tables_are_the_same(capsys):
    """docs/linalg.md has the table that the command prints behind the rules of the target."""
    assert renewed(PAGE.read_text()) == PAGE.read_text()
    assert main(["rules", "--target", "linalg", "--format", "markdown"]) == 0
    assert capsys.readouterr().out.endswith(render_linalg_markdown(FORMS))
    assert main(["rules", "--format", "markdown"]) == 0
    assert "linalg.map" not in capsys.readouterr().out


def renewed(text):
    """The page with its table as it should be."""
    before, _, after = text.partition(MARK)
    return f"{before}{MARK}\n{render_linalg_markdown(FORMS)}\n{after[after.index('## ') :]}"


if __name__ == "__main__":
    PAGE.write_text(renewed(PAGE.read_text()))
