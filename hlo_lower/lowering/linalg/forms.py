"""The form that each meaning has in linalg, as data: what `hlo-lower rules --target linalg` and docs/linalg.md print.

`tests/linalg/test_linalg_forms.py` lowers a module of each and compares the ops.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class LinalgForm:
    """What something becomes in linalg.

    Attributes:
      meaning: what it is, whoever wrote it.
      ops: the ops of linalg and its kin that stand for it, beside `tensor.empty`, `linalg.fill` and constants; "call"
        is of a function that keeps a name.
      how: a remark on them.
    """

    meaning: str
    ops: tuple[str, ...]
    how: str = ""


GROUP = "attribute `hl.named` has name, operands and attributes; plain ops with `--linalg-groups inlined`"

FORMS = (
    LinalgForm("elementwise op", ("linalg.map",), "`{ arith.addf }`"),
    LinalgForm("elementwise op of a value and a number", ("linalg.map",), "the number is a scalar in the body"),
    LinalgForm("relu", ("linalg.map",), "maximum of x and the scalar 0"),
    LinalgForm("relu6, a clip between numbers", ("linalg.map",), "both bounds are scalars in one body"),
    LinalgForm("conversion", ("linalg.map",), "`{ arith.extf }`; no op to the same type"),
    LinalgForm("masked select", ("linalg.map",), "select, with the predicate not negated"),
    LinalgForm("logistic", ("linalg.map",), "its four ops in one body"),
    LinalgForm("bias, whatever is broadcast", ("linalg.broadcast",), "one step, from a value without dims of 1"),
    LinalgForm("transpose", ("linalg.transpose",), "unless a product reads or returns it"),
    LinalgForm("dims of extent 1 that move", ("tensor.collapse_shape", "tensor.expand_shape")),
    LinalgForm("reduction", ("linalg.reduce",), "over any dims"),
    LinalgForm("linear of rank 2", ("linalg.matmul",), "`indexing_maps` if a factor is transposed"),
    LinalgForm("linear of another rank", ("linalg.contract",), "without a reshape of x"),
    LinalgForm("batched product of matrices", ("linalg.batch_matmul",), "as for rank 2"),
    LinalgForm("product over heads, any other einsum", ("linalg.contract",)),
    LinalgForm("product of a matrix and a vector", ("linalg.matvec",)),
    LinalgForm("product of vectors", ("linalg.dot",)),
    LinalgForm("product of mixed types", ("linalg.matmul",), "the op widens its factors"),
    LinalgForm("outer product", ("linalg.generic",)),
    LinalgForm("convolution, channels last", ("linalg.conv_2d_nhwc_hwcf",), "also channels first, and groups"),
    LinalgForm(
        "convolution of another kernel",
        ("linalg.transpose", "linalg.conv_2d_nhwc_hwcf"),
        "OHWI, OIHW beside channels last; in and out of the other layout by a transpose",
    ),
    LinalgForm("convolution of a kernel 1 x 1", ("linalg.contract",), "a product of channels, unless it has steps"),
    LinalgForm("convolution of another layout", ("linalg.generic",), "as CHWN"),
    LinalgForm("pooling", ("linalg.pooling_nhwc_max",), "also channels first, minimum, sum"),
    LinalgForm("softmax of f32, f64", ("linalg.softmax",)),
    LinalgForm("softmax of bf16, f16, computed in f32", ("linalg.map", "linalg.softmax"), "between two conversions"),
    LinalgForm("softmax of bf16, f16, rounded within", ("call",), "`@hl.softmax`, because linalg's rounds elsewhere"),
    LinalgForm("layer norm", ("call",), f"`@hl.layer_norm`; {GROUP}"),
    LinalgForm("rms norm", ("call",), "`@hl.rms_norm`"),
    LinalgForm("gelu, silu, swiglu", ("call",), "`@hl.gelu` and so on; also rope and the other norms"),
    LinalgForm("attention", ("call",), "`@hl.attention`, with its softmax in it"),
    LinalgForm("iota", ("linalg.map",), "with `linalg.index`"),
    LinalgForm("reversal", ("linalg.generic",)),
    LinalgForm("gather, embedding lookup", ("tensor.expand_shape", "linalg.generic"), "with `tensor.extract`"),
    LinalgForm("slice", ("tensor.extract_slice",)),
    LinalgForm("pad", ("tensor.pad",)),
    LinalgForm("concatenation", ("tensor.concat",)),
    LinalgForm("write of a window", ("tensor.insert_slice",), "in an `scf.if` that tests its place"),
    LinalgForm("loop that counts", ("scf.for",), "`--linalg-loops forall`: `scf.forall` if iterations are independent"),
    LinalgForm("loop that ends by its data", ("scf.while",)),
    LinalgForm("branch", ("scf.if",)),
)  # fmt: skip
"""What becomes of what, in named ops."""
