"""A counterexample once more, without the prover: XLA runs both modules, NumPy scatters by the specification."""

from collections.abc import Callable
from typing import Any

from numpy.typing import NDArray

from hlo_lower.ir import mlir
from hlo_lower.ops.names import SCATTER
from hlo_lower.testing.prove.proof_case import ProofCase
from hlo_lower.verify.bounds.compare import first_difference
from hlo_lower.verify.judges.reference.scatter import ScatterNumbers, scatter
from hlo_lower.verify.judges.reference.update_computation import combine_of
from hlo_lower.verify.proof.equal import scatters_into_a_scalar
from hlo_lower.verify.run import CannotRunError, Executable, Rounding, entry_function

Array = NDArray[Any]
Judge = Callable[[ProofCase, tuple[Array, ...], Rounding], list[Array] | None]
"""What the first version gives, by one of the judges; None where it is none."""

_ROUNDINGS: tuple[Rounding, ...] = ("quick", "unfused")


def confirmed(case: ProofCase, after: str, inputs: tuple[Array, ...]) -> str:
    """By which runs the two versions differ: "XLA", "NumPy", both or "nothing".

    Args:
      case: the first module.
      after: the second.
      inputs: the arguments.
    """
    judges = (("XLA", _by_xla), ("NumPy", _by_numpy))
    found = [name for name, judge in judges if any(_differs(judge, case, after, inputs, how) for how in _ROUNDINGS)]
    return " and ".join(found) or "nothing"


def _differs(judge: Judge, case: ProofCase, after: str, inputs: tuple[Array, ...], how: Rounding) -> bool:
    """Whether the second version gives something else than a judge of the first."""
    if how == "unfused" and any(scatters_into_a_scalar(text) for text in (case.text, after)):
        return False
    try:
        first, second = judge(case, inputs, how), Executable(after, how).run(inputs)
    except CannotRunError:
        return False
    return first is not None and first_difference(first, second) is not None


def _by_xla(case: ProofCase, inputs: tuple[Array, ...], how: Rounding) -> list[Array] | None:
    """XLA's results; none under "spec", of which it is no judge."""
    return None if case.oob == "spec" else Executable(case.text, how).run(inputs)


def _by_numpy(case: ProofCase, inputs: tuple[Array, ...], how: Rounding) -> list[Array] | None:
    """The reference's results: indices and updates as XLA computes them, scattered by NumPy."""
    module = mlir.parse_module(case.text)
    scatters, _ = mlir.named(module.operation, (SCATTER,))
    if len(scatters) != 1:
        return None
    [node], main = scatters, entry_function(module)
    count = len(node.results)
    *_, end = (operation.operation for operation in main.regions[0].blocks[0].operations)
    with mlir.active(module.context):
        read, point = list(node.operands)[count:], mlir.insert_before(end)
        mlir.create_operation(end.name, read, [], location=end.location, insertion_point=point)
        end.erase()
        mlir.set_signature(main)
    indices, *updates = Executable(mlir.print_module(module), how).run(inputs)
    dtypes = [mlir.dtype_of(mlir.tensor_element_name(result.type)) for result in node.results]
    known = [dtype for dtype in dtypes if dtype is not None]
    numbers = ScatterNumbers.of(node)
    return scatter(inputs[:count], indices, updates, numbers, combine_of(node, {}), known, oob=case.oob)
