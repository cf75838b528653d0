"""StableHLO's reference interpreter in a child process, because an op that it does not support aborts the process."""

from collections import Counter
from collections.abc import Sequence
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from hlo_lower.base.child import AnsweringChild, answer_all
from hlo_lower.base.element_types import element_type
from hlo_lower.ir import mlir
from hlo_lower.ops import names
from hlo_lower.verify.patience import patience
from hlo_lower.verify.read.program import Op, Program, ValueId, ops_within

Array = NDArray[Any]

TIME_LIMIT = 30.0
"""Seconds for one run; the first one includes the start of the child."""


class InterpreterError(Exception):
    """The interpreter refused the module, died on it or took too long."""


class Interpreter(AnsweringChild):
    """A child that interprets modules one after the other."""

    def __init__(self) -> None:
        super().__init__("hlo_lower.verify.judges.interpreter")

    def run(self, text: str, arguments: Sequence[Array]) -> list[Array]:
        """The results of a module's @main.

        Raises:
          InterpreterError: it cannot be interpreted; the child has been replaced if it died.
        """
        left = patience()
        if left.deadline.is_over:
            raise InterpreterError(left.deadline.reason)
        limit = min(TIME_LIMIT, max(left.left, 1.0))
        try:
            ok, answer = self.ask((text, list(arguments)), limit, left.deadline.seconds)
        except TimeoutError:
            if left.deadline.is_over:
                raise InterpreterError(left.deadline.reason) from None
            left.charge(limit)
            raise InterpreterError(f"no answer in {limit:.0f} s") from None
        except BrokenPipeError:
            raise InterpreterError("the interpreter died on it (an op that it does not support)") from None
        if not ok:
            raise InterpreterError(str(answer))
        return cast(list[Array], answer)


def shared_interpreter() -> Interpreter:
    """The interpreter of this process, whose child serves every verification."""
    return Interpreter.of_this_process()


def _interpret(request: tuple[str, list[Array]]) -> tuple[bool, Any]:
    from hlo_lower.ir import mlir

    try:
        return True, [np.array(a) for a in mlir.interpret(*request)]
    except Exception as error:  # whatever the bindings raise is the answer
        return False, f"{type(error).__name__}: {error}"


if __name__ == "__main__":
    answer_all(_interpret)


def why_interpreter_errs(program: Program, ops: Sequence[Op], outputs: Sequence[ValueId], policy: str) -> str:
    """Why the interpreter is not a judge of some operations, "" if nothing is known.

    Args:
      program: that they are of.
      ops: the operations; those in their regions are looked at, too.
      outputs: what is returned of them.
      policy: what scatters do out of bounds, "xla" or "spec".
    """
    every = ops_within(ops)
    if any(op.name == names.COMPARE and _is_total(program, op) for op in every):
        return "it compares by IEEE 754 where floats are to be totally ordered"
    scatters = [op for op in every if op.name == names.SCATTER]
    if not scatters:
        return ""
    reads = Counter(outputs)
    for op in every:
        reads.update(op.inputs)
        for body in op.bodies:
            reads.update(body.returned)
    for op in scatters:
        indices = program.type_of(op.inputs[len(op.results)])
        if indices is not None and element_type(indices.element_name).is_unsigned:
            return "it reads unsigned indices as signed"
        if any(reads[operand] > 1 for operand in op.inputs[: len(op.results)]):
            return "it updates an operand in place that is read elsewhere"
        if policy == "xla" and mlir.scatter_dimension_numbers(op.raw).update_window_dims:
            return "it drops single elements, not whole windows"
    return ""


def _is_total(program: Program, op: Op) -> bool:
    """Whether a comparison is one of floats by their total order."""
    kind = dict(op.attributes).get("compare_type")
    compared = program.type_of(op.inputs[0])
    return "TOTALORDER" in str(kind) and (compared is None or "f" in compared.element_name)
