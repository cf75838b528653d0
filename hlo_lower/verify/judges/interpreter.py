"""StableHLO's reference interpreter in a child process, because an op that it does not support aborts the process."""

from collections.abc import Sequence
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from hlo_lower.base.child import AnsweringChild, answer_all
from hlo_lower.verify.judges.patience import patience

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
        limit = min(TIME_LIMIT, max(left.left, 1.0))
        try:
            ok, answer = self.ask((text, list(arguments)), limit)
        except TimeoutError:
            left.charge(limit)
            raise InterpreterError(f"no answer in {limit:.0f} s") from None
        except BrokenPipeError:
            raise InterpreterError("the interpreter died on it (an op that it does not support)") from None
        if not ok:
            raise InterpreterError(str(answer))
        return cast(list[Array], answer)


def shared_interpreter() -> Interpreter:
    """The interpreter of this process, whose child serves every verification."""
    return Interpreter.shared()


def _interpreted(request: tuple[str, list[Array]]) -> tuple[bool, Any]:
    from hlo_lower.ir import mlir

    try:
        return True, [np.array(a) for a in mlir.interpret(*request)]
    except Exception as error:  # whatever the bindings raise is the answer
        return False, f"{type(error).__name__}: {error}"


if __name__ == "__main__":
    answer_all(_interpreted)
