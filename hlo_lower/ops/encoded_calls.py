"""Custom calls that encode an operation of `mhlo`, as torch_xla and older JAX export them, and what each of them is.

    stablehlo.custom_call @mhlo.erf(%0) {mhlo.attributes = {}, mhlo.version = 1 : i64}   is   chlo.erf %0

XLA encodes operations that StableHLO has not as custom calls of version 1, the operation's attributes in a dictionary.
A custom call has no decomposition, so its name is all that says what it computes; whatever else stands on one that the
encoding does not have (a side effect, a configuration, a called function, an attribute) may say more, and then its
meaning is not known.
"""

from collections.abc import Mapping

from hlo_lower.base.causes import Cause, Code
from hlo_lower.ir import mlir
from hlo_lower.ir.view import Node
from hlo_lower.ops import top_k_calls

ENCODED = "mhlo.attributes"
VERSION = "mhlo.version"

UNARY: Mapping[str, str] = {
    f"mhlo.{name}": f"chlo.{name}"
    for name in (
        *("acos", "acosh", "asin", "asinh", "atan", "atanh", "bessel_i1e", "cosh", "digamma", "erf", "erf_inv"),
        *("erfc", "lgamma", "sinh", "square", "tan"),
    )
}
"""Elementwise operations of one operand without attributes, by the name of the custom call."""

TOP_K = "mhlo.topk"
KNOWN_OF_TOP_K = frozenset({"k", "largest"})

KNOWN: Mapping[str, str] = {**UNARY, **dict.fromkeys((TOP_K, *top_k_calls.NAMES), "chlo.top_k")}
"""The `chlo` operation of every custom call that is known."""

UNSAID = {"backend_config": ('""', "{}"), "has_side_effect": ("false",), "called_computations": ("[]",)}
"""Attributes of a custom call that say nothing where they have these values."""

NUMERICS = frozenset({"result_accuracy"})
"""Encoded attributes that ask for an accuracy, which `chlo` operations have by default."""


def attributes_of(node: Node) -> tuple[Mapping[str, mlir.RawAttribute], Mapping[str, mlir.RawAttribute]]:
    """The attributes of a custom call, and those of the operation that it encodes."""
    raw = mlir.attributes_of(node.raw)
    return raw, mlir.entries_of(raw[ENCODED]) if ENCODED in raw else {}


def why_unknown(node: Node) -> Cause | None:
    """Why a custom call may be something else than its name says; None where it is what it says."""
    name = mlir.call_target(node.raw)
    attributes, encoded = attributes_of(node)
    if name == "shape_assertion":
        return Code.CALLS_CHECK_OF_SIZE()
    if mlir.calls_python(node.raw):
        return Code.CALLS_PYTHON()
    if name in top_k_calls.NAMES:
        return top_k_calls.why_no_top_k(node)
    if name not in KNOWN:
        return Code.CALLS_UNKNOWN()
    version = mlir.integer_of(attributes[VERSION]) if VERSION in attributes else 1
    if version != 1:
        return Code.ENCODED_OTHERWISE(version)
    told = [key for key, values in UNSAID.items() if key in attributes and str(attributes[key]) not in values]
    told += sorted(set(encoded) - NUMERICS - (KNOWN_OF_TOP_K if name == TOP_K else set()))
    if told:
        return Code.NAME_IN_DOUBT(told[0])
    if name in UNARY:
        fits = len(node.operands) == 1 and [r.raw.type for r in node.results] == [node.operand(0).raw.type]
        return None if fits else Code.NOT_UNARY()
    if len(node.operands) != 1 or len(node.results) != 2 or "k" not in encoded:
        return Code.NOT_TOP_K()
    is_least = "largest" in encoded and str(encoded["largest"]) != "true"
    return Code.TOP_K_OF_SMALLEST() if is_least else None
