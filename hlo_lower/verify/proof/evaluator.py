"""The symbolic evaluator: a module's functions on tensors of terms, operation by operation, by one table."""

from collections.abc import Callable, Mapping, Sequence

from hlo_lower.ops.spec import ELEMENTWISE, short
from hlo_lower.verify.proof import control_flow, elementwise, moving, ordering, reductions, slicing
from hlo_lower.verify.proof.beyond import Beyond
from hlo_lower.verify.proof.gathering import gather
from hlo_lower.verify.proof.operation import Operation, Scope
from hlo_lower.verify.proof.scattering import scatter
from hlo_lower.verify.proof.tensors import Tensor, as_tensor, scalar
from hlo_lower.verify.proof.terms import Term
from hlo_lower.verify.proof.world import World
from hlo_lower.verify.read.meanings import MOVES
from hlo_lower.verify.read.program import Body, Op, Program

_WHOLE = (
    *("convolution", "fft", "cholesky", "triangular_solve", "rng_bit_generator", "reduce_window"),
    *("select_and_scatter", "batch_norm_inference", "batch_norm_training", "batch_norm_grad", "chlo.top_k"),
)
"""Pure operations that are not looked into."""

OPERATIONS: Mapping[str, Callable[[Operation], list[Tensor]]] = {
    **{name.removeprefix("stablehlo."): elementwise.elementwise for name in ELEMENTWISE},
    **dict.fromkeys(_WHOLE, reductions.whole),
    "compare": elementwise.compare,
    "select": elementwise.select,
    "convert": elementwise.convert,
    "bitcast_convert": elementwise.bitcast_convert,
    "constant": moving.constant,
    "iota": moving.iota,
    **dict.fromkeys(short(frozenset(MOVES)), moving.moved),
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
    "composite": control_flow.call,
    "func.call": control_flow.call,
}
"""What each operation computes; of one that is not here nothing is known."""


class Evaluator:
    """Evaluates bodies of a program in a setting.

    Args:
      program: the module, its calls and composites inlined.
      world: the setting.
    """

    def __init__(self, program: Program, world: World) -> None:
        self.program, self.world = program, world

    def body(self, body: Body, arguments: Sequence[Tensor], scope: Scope) -> list[Tensor]:
        """What a body returns, given its arguments and what stands outside of it.

        Raises:
          Beyond: it holds what is not known.
        """
        values = {**scope, **dict(zip(body.arguments, arguments, strict=True))}
        for op in body.ops:
            values.update(zip(op.results, self._results(op, values), strict=True))
        return [values[v] for v in body.returned]

    def scalars(self, body: Body, arguments: Sequence[Term], scope: Scope) -> list[Term]:
        """The same for a region of scalars."""
        return [tensor[()] for tensor in self.body(body, [scalar(term) for term in arguments], scope)]

    def _results(self, op: Op, values: Scope) -> list[Tensor]:
        self.world.left()
        operation = Operation(op, tuple(values[v] for v in op.inputs), values, self)
        compute = OPERATIONS.get(operation.name)
        if compute is None:
            raise Beyond(op.name)
        return list(map(as_tensor, compute(operation)))
