"""Which ops are functions of their operands: given equal ones they give equal results, each time that they run.

An op with a side effect is none, and neither is one that reads a state: two `stablehlo.rng` with equal operands are two
numbers. Only ops that are known to be functions count; of an op that nobody knows nothing follows. The random bits of
`rng_bit_generator` are one: it is given its state.
"""

from hlo_lower.ir import mlir
from hlo_lower.ir.view import Block, Graph, Node

_UNARY = (
    *("abs", "cbrt", "ceil", "convert", "cosine", "count_leading_zeros", "exponential", "exponential_minus_one"),
    *("floor", "imag", "is_finite", "log", "log_plus_one", "logistic", "negate", "not", "popcnt", "real"),
    *("reduce_precision", "round_nearest_afz", "round_nearest_even", "rsqrt", "sign", "sine", "sqrt", "tan", "tanh"),
)
_BINARY = (
    *("add", "and", "atan2", "compare", "complex", "divide", "maximum", "minimum", "multiply", "or", "power"),
    *("remainder", "shift_left", "shift_right_arithmetic", "shift_right_logical", "subtract", "xor"),
)
_CHLO = (
    *("acos", "acosh", "asin", "asinh", "atan", "atanh", "bessel_i1e", "conj", "cosh", "digamma", "erf", "erf_inv"),
    *("erfc", "is_inf", "is_neg_inf", "is_pos_inf", "lgamma", "next_after", "polygamma", "sinh", "square", "tan"),
    "zeta",
)
ELEMENTWISE = frozenset(
    [f"stablehlo.{name}" for name in (*_UNARY, *_BINARY, "select", "clamp")] + [f"chlo.{name}" for name in _CHLO]
)
"""Ops that compute each element of the result from the elements at the same place."""

_MOVING = (
    *("bitcast_convert", "broadcast_in_dim", "concatenate", "constant", "dynamic_broadcast_in_dim", "dynamic_gather"),
    *("dynamic_iota", "dynamic_pad", "dynamic_reshape", "dynamic_slice", "dynamic_update_slice", "gather"),
    *(
        "get_dimension_size",
        "get_tuple_element",
        "iota",
        "optimization_barrier",
        "pad",
        "real_dynamic_slice",
        "reshape",
    ),
    *("return", "reverse", "slice", "transpose", "tuple"),
)
_COMPUTING = (
    *("batch_norm_grad", "batch_norm_inference", "batch_norm_training", "cholesky", "convolution", "dot_general"),
    *("dynamic_conv", "fft", "map", "reduce", "reduce_window", "rng_bit_generator", "select_and_scatter", "sort"),
    "triangular_solve",
)
PURE_OPS = ELEMENTWISE | {
    *(f"stablehlo.{op}" for op in (*_MOVING, *_COMPUTING)),
    *("chlo.top_k", "chlo.ragged_dot", "builtin.unrealized_conversion_cast"),
}
"""Those of them that end and have no record of their own: erasing one whose results nobody uses changes nothing."""

FUNCTIONS = (
    PURE_OPS
    | {f"stablehlo.{op}" for op in ("case", "if", "while", "scatter")}
    | {"sdy.sharding_constraint", "func.return"}
)
"""Ops that are, as far as what stands in their regions is."""

PLACEMENT_NOTES = ("Sharding", "annotate_device_placement")
"""Custom calls that return what they take."""


class Functional:
    """Answers for the ops of one graph, each function of it looked at once."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._known: dict[str, bool] = {}

    def __call__(self, node: Node) -> bool:
        """Whether a node, with what it calls and what stands in its regions, is a function of its operands."""
        if node.name in FUNCTIONS and not node.has_regions:
            return True
        if node.body_name:
            return self._body(node.body_name)
        called: set[str] = set()
        return (
            _is_known(node)
            and _holds(node.blocks if node.has_regions else (), called)
            and all(self._body(name) for name in sorted(called))
        )

    def _body(self, name: str) -> bool:
        """The same of all that a function runs, the functions included that it calls."""
        if name not in self._known:
            reached, pending, holds = {name}, [name], True
            while pending and holds:
                current = pending.pop()
                if current in self._known:
                    holds = self._known[current]
                    continue
                function, called = self._graph.functions.get(current), set[str]()
                holds = function is not None and function.has_body and _holds((function.body,), called)
                pending += sorted(called - reached)
                reached |= called
            self._known[name] = holds
        return self._known[name]


def _holds(blocks: tuple[Block, ...] | list[Block], called: set[str]) -> bool:
    """Whether all ops in blocks are known to be functions; the functions that they call are collected."""
    pending = list(blocks)
    while pending:
        for node in pending.pop().nodes:
            if node.body_name:
                called.add(node.body_name)
            elif not _is_known(node):
                return False
            pending.extend(node.blocks if node.has_regions else ())
    return True


def _is_known(node: Node) -> bool:
    if node.name == "stablehlo.custom_call":
        return mlir.call_target(node.raw) in PLACEMENT_NOTES
    return node.name in FUNCTIONS
