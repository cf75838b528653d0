"""`mhlo` operations in the form of custom calls, as torch_xla and older JAX export them, made `chlo` operations.

    %1 = stablehlo.custom_call @mhlo.erf(%0) {mhlo.attributes = {}, mhlo.version = 1 : i64}   ->   %1 = chlo.erf %0

XLA encodes operations that StableHLO has not as custom calls of version 1, the operation's attributes in a dictionary.
A custom call has no decomposition, so its name is all that says what it computes; whatever else stands on one that the
encoding does not have (a side effect, a configuration, a called function, an attribute) may say more, and it is left.
"""

from collections.abc import Mapping

from hlo_lower import mlir
from hlo_lower.graph import Node
from hlo_lower.legalize.chlo import replaced

CUSTOM_CALL = "stablehlo.custom_call"
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

KNOWN: Mapping[str, str] = {**UNARY, TOP_K: "chlo.top_k"}
"""The `chlo` operation of every custom call that is known."""

OWN = frozenset(
    {"call_target_name", "backend_config", "has_side_effect", "called_computations", "api_version"}
    | {"operand_layouts", "result_layouts", "output_operand_aliases", ENCODED, VERSION}
)
"""The attributes that make it a custom call; others (shardings) go over."""

UNSAID = {"backend_config": ('""', "{}"), "has_side_effect": ("false",), "called_computations": ("[]",)}
"""Attributes of a custom call that say nothing where they have these values."""

NUMERICS = frozenset({"result_accuracy"})
"""Encoded attributes that ask for an accuracy, which `chlo` operations have by default."""

NOTES = frozenset({"Sharding", "SPMDFullToShardShape", "SPMDShardToFullShape", "annotate_device_placement"})
"""Custom calls that only say where a tensor is to live."""


def target_name(node: Node) -> str:
    """What a custom call calls."""
    return mlir.symbol_name(node.raw.attributes["call_target_name"])


def to_chlo(node: Node) -> str | None:
    """Replace a known `mhlo` custom call by its `chlo` operation.

    Returns:
      None where it is replaced, else why not.
    """
    name = target_name(node)
    if name not in KNOWN:
        return "no operation of StableHLO or CHLO is known for it"
    attributes = mlir.attributes_of(node.raw)
    encoded = mlir.entries_of(attributes[ENCODED]) if ENCODED in attributes else {}
    version = mlir.integer_of(attributes[VERSION]) if VERSION in attributes else 1
    if version != 1:
        return f"its encoding is of version {version}, known is 1"
    told = [key for key, values in UNSAID.items() if key in attributes and str(attributes[key]) not in values]
    told += sorted(set(encoded) - NUMERICS - (KNOWN_OF_TOP_K if name == TOP_K else set()))
    if told:
        return f"its {told[0]} is not known to leave it what its name says"
    if name in UNARY:
        fits = len(node.operands) == 1 and [r.raw.type for r in node.results] == [node.operand(0).raw.type]
        own: dict[str, mlir.RawAttribute] = {}
        if not fits:
            return "it does not take one tensor and give one of the same type"
    else:
        if len(node.operands) != 1 or len(node.results) != 2 or "k" not in encoded:
            return "it does not take one tensor and k, and give values and indices"
        if "largest" in encoded and str(encoded["largest"]) != "true":
            return "it looks for the smallest values, which chlo.top_k has no form for"
        own = {"k": encoded["k"]}
    known = {*KNOWN_OF_TOP_K, *NUMERICS}
    extra = {key: value for key, value in {**encoded, **attributes}.items() if key not in OWN | known}
    replaced(node, KNOWN[name], {**own, **extra})
    return None
