"""Two executors beside NumPy, in a child that they may end: XLA with neither simplifier nor fusion, and StableHLO's
interpreter."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import jax
import jax.export
import numpy as np

from hlo_lower.base.child import AnsweringChild, answer_all
from hlo_lower.ir import mlir

Array = np.ndarray[Any, Any]
OPTIONS = {
    "xla_backend_optimization_level": 0,
    "xla_allow_excess_precision": False,
    "xla_disable_hlo_passes": "algsimp,fusion,constant_folding,reshape-mover",
}


class OtherError(Exception):
    """It does not run there."""


def _run_by_xla(text: str, arguments: Sequence[Array]) -> list[Array]:
    """The results under XLA: the module in the place of a stand-in of the same signature."""
    context = mlir.shared_context(len(text))
    with mlir.active(context):
        module = mlir.parse_module(text, context)
        functions = [f for f in module.body.operations if f.operation.name == "func.func"]
        main = next(f for f in functions if mlir.symbol_name(f.operation.attributes["sym_name"]) == "main")
        types = [mlir.read_tensor_type(t) for t in main.type.results]
        artifact = mlir.module_portable_artifact(module)
    if any(t is None or not t.is_static for t in types) or "tensor<?" in text:
        raise OtherError("dynamic")
    shapes = [(tuple(t.shape), mlir.dtype_of(t.element_name)) for t in types if t]
    with jax.enable_x64(True):
        try:
            structs = [jax.ShapeDtypeStruct(a.shape, a.dtype) for a in arguments]
            zeros: Any = jax.jit(lambda *_: [jax.numpy.zeros(*s) for s in shapes], keep_unused=True)
            exported = replace(jax.export.export(zeros, platforms=["cpu"])(*structs), mlir_module_serialized=artifact)
            compiled = jax.jit(exported.call).lower(*structs).compile(compiler_options=OPTIONS)
            return [np.asarray(r) for r in compiled(*arguments)]
        except Exception as error:  # XLA's errors have no common public class
            raise OtherError(str(error)) from None


_deadly: set[tuple[str, str]] = set()


def results_by(name: str, text: str, arguments: Sequence[Array], seconds: float = 100.0) -> list[Array]:
    """The results under "XLA" or by "the interpreter".

    Raises:
      OtherError: it does not run there.
    """
    if (name, text) in _deadly:
        raise OtherError("it died on it")
    try:
        answer = AnsweringChild.of_this_process("mutating.others").ask((name, text, list(arguments)), seconds)
    except (TimeoutError, BrokenPipeError) as error:
        _deadly.add((name, text))
        raise OtherError(str(error)) from None
    if isinstance(answer, str):
        raise OtherError(answer)
    return answer


def _answer(request: tuple[str, str, list[Array]]) -> list[Array] | str:
    name, text, arguments = request
    try:
        return _run_by_xla(text, arguments) if name == "XLA" else [np.array(a) for a in mlir.interpret(text, arguments)]
    except Exception as error:  # whatever they raise is the answer
        return f"{type(error).__name__}: {error}"


if __name__ == "__main__":
    answer_all(_answer)
