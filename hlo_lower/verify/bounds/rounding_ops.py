"""Which ops round, and how many terms an element of their results is the sum of."""

import re
from math import ceil, prod, sqrt

from hlo_lower.base.element_types import element_type
from hlo_lower.ir import mlir
from hlo_lower.verify.bounds.perturbed_floats import MOST, float_format
from hlo_lower.verify.read.program import CALLS

EXACT = frozenset(
    f"stablehlo.{name}"
    for name in (
        *("constant", "iota", "reshape", "transpose", "broadcast_in_dim", "slice", "dynamic_slice", "reverse"),
        *("dynamic_update_slice", "concatenate", "pad", "gather", "select", "compare", "return", "sort", "clamp"),
        *("while", "case", "if", "optimization_barrier", "get_dimension_size", "real_dynamic_slice", "bitcast_convert"),
        *("dynamic_reshape", "dynamic_broadcast_in_dim", "dynamic_iota", "dynamic_pad", "dynamic_gather", "is_finite"),
        *("abs", "negate", "sign", "floor", "ceil", "round_nearest_afz", "round_nearest_even", "maximum", "minimum"),
        *("real", "imag", "complex", "broadcast", "tuple", "get_tuple_element", "torch_index_select", "rng"),
        *("all_gather", "all_to_all", "collective_permute", "collective_broadcast", "rng_bit_generator"),
    )
) | {"func.call", "func.return", "chlo.top_k"}
"""Ops that make no float that is rounded."""

PLAIN = frozenset(f"stablehlo.{name}" for name in ("add", "subtract", "multiply", "divide", "remainder", "convert"))
"""Ops that every compiler rounds correctly, if it does not contract them."""

REDUCED = frozenset(f"stablehlo.{name}" for name in ("sine", "cosine", "tan", "exponential"))
"""Functions whose argument is reduced first, by some consumers with a rounding of its own."""

APPLYING = frozenset(
    f"stablehlo.{name}"
    for name in ("reduce", "reduce_window", "scatter", "select_and_scatter", "map", "sort", "all_reduce")
) | {"stablehlo.reduce_scatter"}
"""Ops whose regions are not entered."""

ENTERED = frozenset(f"stablehlo.{name}" for name in ("while", "case", "if"))
"""Ops whose regions are disturbed with what is around them."""

PRODUCTS = frozenset(f"stablehlo.{name}" for name in ("dot_general", "dot", "convolution", "dynamic_conv"))
_CONTRACTED = re.compile(r"lhs_contracting_dimensions = \[([^\]]+)\]")


def entered(function: mlir.RawOperation) -> list[mlir.RawOperation]:
    """The ops of a function, those in the regions of control flow too, those in regions that are applied not."""
    found: list[mlir.RawOperation] = []
    pending = [op.operation for region in function.regions for block in region.blocks for op in block.operations]
    while pending:
        op = pending.pop()
        found.append(op)
        if op.name in ENTERED:
            pending += [
                inner.operation for region in op.regions for block in region.blocks for inner in block.operations
            ]
    return found


def callee_text(op: mlir.RawOperation) -> str:
    key = CALLS.get(op.name)
    return "" if key is None else str(op.attributes[key]).removeprefix("@")


def callee_of(op: mlir.RawOperation) -> str:
    """The function that an op calls, or ""."""
    key = CALLS.get(op.name)
    return "" if key is None else mlir.symbol_name(op.attributes[key])


def is_rounding(op: mlir.RawOperation) -> bool:
    return op.name not in EXACT and any(float_format(v.type) for v in op.results)


def narrows(convert: mlir.RawOperation) -> bool:
    """Whether a conversion goes from a float type to one of a shorter mantissa."""
    source, to = float_format(convert.operands[0].type), float_format(convert.results[0].type)
    return bool(source and to) and element_type(source).mantissa > element_type(to).mantissa


def summed_operands(op: mlir.RawOperation) -> list[int]:
    """Which operands are terms of sums."""
    count = len(op.operands)
    if op.name in PRODUCTS:
        return [0, 1]
    if op.name in ("stablehlo.reduce", "stablehlo.reduce_window"):
        return list(range(count // 2))
    if op.name == "stablehlo.scatter":
        return list(range(count // 2 + 1, count))
    if op.name == "stablehlo.fft":
        return [0]
    return [1] if op.name == "stablehlo.select_and_scatter" else []


def terms_of(op: mlir.RawOperation) -> int:
    """How many terms an element of the result may be the sum of; 1 where it is no sum."""
    shapes = [[int(s or 0) for s in mlir.tensor_shape(v.type)] for v in op.operands if mlir.is_ranked_tensor(v.type)]
    if op.name == "stablehlo.dot_general":
        found = _CONTRACTED.search(str(op.attributes["dot_dimension_numbers"]))
        return max(prod(shapes[0][int(d)] for d in found[1].split(",")) if found else 1, 2)
    if op.name == "stablehlo.dot":
        return max(shapes[0][-1] if shapes[0] else 1, 2)
    if op.name in ("stablehlo.convolution", "stablehlo.dynamic_conv"):
        return max(prod(shapes[1]), 2)
    if op.name == "stablehlo.reduce":
        return prod(shapes[0]) // max(prod(int(s or 0) for s in mlir.tensor_shape(op.results[0].type)), 1)
    if op.name == "stablehlo.reduce_window":
        return max(prod(mlir.integers_of(op.attributes["window_dimensions"])), 2)
    if op.name == "stablehlo.fft":
        return max(prod(mlir.integers_of(op.attributes["fft_length"])), 2)
    if op.name == "stablehlo.scatter":
        return max(prod(shapes[len(shapes) // 2]) + 1, 2)
    return 2 if op.name == "stablehlo.select_and_scatter" else 1


def most_of(op: mlir.RawOperation, raw_type: mlir.RawType, terms: int) -> int:
    """Units in the last place that a value of an op is moved by, at most."""
    most = MOST[float_format(raw_type)]
    if terms > 1:
        return max(most.plain, min(ceil(most.term * sqrt(terms)), most.sum))
    return most.plain if op.name in PLAIN or op.name in APPLYING else most.function
