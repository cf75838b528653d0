"""The symbolic evaluator: a module's functions on tensors of terms, operation by operation, by one table."""

from collections.abc import Callable, Mapping, Sequence

from hlo_lower import mlir
from hlo_lower.verify.proof import control_flow, elementwise, moving, ordering, reductions, slicing
from hlo_lower.verify.proof.beyond import Beyond
from hlo_lower.verify.proof.gathering import gather
from hlo_lower.verify.proof.operation import Operation, Scope
from hlo_lower.verify.proof.scattering import scatter
from hlo_lower.verify.proof.tensors import Tensor, as_tensor, scalar
from hlo_lower.verify.proof.terms import Term
from hlo_lower.verify.proof.world import World

DEEPEST_CALL = 32

_WHOLE = (
    *("convolution", "fft", "cholesky", "triangular_solve", "rng_bit_generator", "reduce_window"),
    *("select_and_scatter", "batch_norm_inference", "batch_norm_training", "batch_norm_grad", "chlo.top_k"),
)
"""Pure operations that are not looked into."""

OPERATIONS: Mapping[str, Callable[[Operation], list[Tensor]]] = {
    **dict.fromkeys(elementwise.FLOAT_OPERATIONS, elementwise.elementwise),
    **dict.fromkeys(_WHOLE, reductions.whole),
    "compare": elementwise.compare,
    "select": elementwise.select,
    "convert": elementwise.convert,
    "bitcast_convert": elementwise.bitcast_convert,
    "constant": moving.constant,
    "iota": moving.iota,
    "reshape": moving.reshape,
    "transpose": moving.transpose,
    "reverse": moving.reverse,
    "broadcast_in_dim": moving.broadcast_in_dim,
    "slice": moving.slice_,
    "concatenate": moving.concatenate,
    "pad": moving.pad,
    "optimization_barrier": moving.unchanged,
    "custom_call": moving.custom_call,
    "get_dimension_size": moving.get_dimension_size,
    "dynamic_slice": slicing.dynamic_slice,
    "dynamic_update_slice": slicing.dynamic_update_slice,
    "gather": gather,
    "scatter": scatter,
    "reduce": reductions.reduce,
    "dot_general": reductions.dot_general,
    "map": reductions.map_,
    "sort": ordering.sort,
    "while": control_flow.while_,
    "if": control_flow.if_,
    "case": control_flow.case,
    "composite": control_flow.composite,
    "func.call": control_flow.call,
}
"""What each operation computes; of one that is not here nothing is known."""

_RETURNS = ("func.return", "stablehlo.return")


class Evaluator:
    """A module, to be evaluated in a setting.

    Args:
      module: the parsed module.
      world: the setting.
    """

    def __init__(self, module: mlir.RawModule, world: World) -> None:
        self.world = world
        functions = [op.operation for op in module.body.operations if op.operation.name == "func.func"]
        self._functions = {mlir.symbol_name(f.attributes["sym_name"]): f for f in functions}
        self._depth = 0

    def call(self, name: str, arguments: Sequence[Tensor]) -> list[Tensor]:
        """The results of a function.

        Raises:
          Beyond: the module does not have its body, it calls itself, or it holds what is not known.
        """
        function = self._functions.get(name)
        if function is None or not function.regions[0].blocks:
            raise Beyond(f"@{name}, of which there is no body")
        if self._depth == DEEPEST_CALL:
            raise Beyond("calls that are nested too deep")
        self._depth += 1
        try:
            return self.block(function.regions[0].blocks[0], arguments, {})
        finally:
            self._depth -= 1

    def block(self, block: mlir.RawBlock, arguments: Sequence[Tensor], scope: Scope) -> list[Tensor]:
        """What a block returns, given its arguments and what stands outside of it."""
        values = dict(scope)
        values.update(zip(block.arguments, arguments, strict=True))
        for op in block.operations:
            raw = op.operation
            if raw.name in _RETURNS:
                return [values[v] for v in raw.operands]
            values.update(zip(raw.results, self._results(raw, values), strict=True))
        raise Beyond("a block that does not return")

    def scalars(self, block: mlir.RawBlock, arguments: Sequence[Term], scope: Scope) -> list[Term]:
        """The same for a region of scalars."""
        return [tensor[()] for tensor in self.block(block, [scalar(term) for term in arguments], scope)]

    def _results(self, raw: mlir.RawOperation, values: Scope) -> list[Tensor]:
        self.world.left()
        operation = Operation(raw, tuple(values[v] for v in raw.operands), values, self)
        compute = OPERATIONS.get(operation.name)
        if compute is None:
            raise Beyond(str(raw.name))
        return list(map(as_tensor, compute(operation)))
