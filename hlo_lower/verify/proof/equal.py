"""Prove that two modules are equal, or find arguments for which they are not, and run those."""

from collections.abc import Sequence
from dataclasses import replace
from time import perf_counter
from typing import Any, Literal

from numpy.typing import NDArray

from hlo_lower.ir import mlir
from hlo_lower.verify.bounds.compare import first_difference
from hlo_lower.verify.proof import solver
from hlo_lower.verify.proof.beyond import Beyond
from hlo_lower.verify.proof.counterexample import DRAWS, Drawing
from hlo_lower.verify.proof.proof_result import ProofResult
from hlo_lower.verify.proof.query import Answer, ask
from hlo_lower.verify.proof.world import World
from hlo_lower.verify.read.program import Program, TooLargeError
from hlo_lower.verify.run import CannotRunError, Executable, Rounding, parse_or_refuse

Array = NDArray[Any]

_ROUNDINGS: tuple[Rounding, ...] = ("quick", "unfused")
"""How a difference is run: as XLA compiles, and without its simplifier, which makes 0 of 0 * NaN."""


def prove_equal(
    before_text: str,
    after_text: str,
    *,
    timeout_s: float = 10.0,
    oob: Literal["xla", "spec"] = "xla",
    trust_flags: bool = False,
) -> ProofResult:
    """Prove that two modules compute the same for all arguments, as far as that can be decided.

    Both are evaluated symbolically: integers as bit-vectors, floats as elements of uninterpreted sorts with one
    function symbol for each operation. So a proof holds bit for bit, for every float and its NaN; and float
    computations that are done in another order are neither proved nor, unless they differ when run, refuted.

    Args:
      before_text, after_text: two modules with a function @main of the same signature, of small static shapes.
      timeout_s: seconds for everything; the solver may take a little longer.
      oob: what a scatter of either module does out of bounds: see `hlo_lower.lower`.
      trust_flags: whether it may be assumed of scatters with `unique_indices = true` that no element is written twice.

    Returns:
      "proved"; "refuted" with inputs on which the modules, run by XLA, differ; "doubted" with inputs of a difference
      that did not show when it was run, as XLA made one module of the other, or as it rests on an operation that is not
      interpreted; or "unknown" with the reason: an operation that is not known, a loop that may not end, a tensor too
      large, no time left.

    Raises:
      InputError: z3 is not installed, or a text does not parse.
    """
    start = perf_counter()
    with solver.alone():
        try:
            found = _proved(before_text, after_text, timeout_s, oob, trust_flags=trust_flags)
        except Beyond as reason:
            found = ProofResult("unknown", str(reason))
    return replace(found, seconds=perf_counter() - start)


def _proved(
    before: str, after: str, timeout_s: float, oob: Literal["xla", "spec"], *, trust_flags: bool
) -> ProofResult:
    context = mlir.shared_context(len(before) + len(after))
    first, second = (_read(text, context) for text in (before, after))
    looks_at_bits = any("bitcast_convert" in text for text in (before, after))
    world = World(timeout_s, oob, trust_flags, floats_as_bits=looks_at_bits)
    answer = ask(first, second, world)
    if answer.model is None:
        return ProofResult("proved")
    is_ours = oob == "spec" and "stablehlo.scatter" in before
    return _confirmed(answer, before, after, is_ours=is_ours)


def _read(text: str, context: mlir.RawContext) -> Program:
    try:
        return Program(parse_or_refuse(text, "prove", context))
    except TooLargeError as error:
        raise Beyond(str(error)) from None


def _confirmed(answer: Answer, before: str, after: str, *, is_ours: bool) -> ProofResult:
    """Run what the solver found: only a difference that shows is one.

    Args:
      answer: with a model.
      before, after: the modules.
      is_ours: whether XLA is no judge of the first one, so that its results are taken from the model.
    """
    try:
        for rounding in _ROUNDINGS:
            second = Executable(after, rounding)
            first = None if is_ours else Executable(before, rounding)
            for number in range(DRAWS):
                drawing = Drawing(answer.model, number)
                inputs = [drawing.argument(a) for a in answer.arguments]
                expected = [drawing.expected(t) for t in answer.before] if first is None else first.run(inputs)
                difference = _difference(expected, second.run(inputs))
                if difference:
                    return ProofResult("refuted", difference, tuple(inputs))
            if any(scatters_into_a_scalar(text) for text in (before, after)):
                break  # XLA's compiler ends the process on such a one without its simplifier
        why = "does not show when it is run"
    except CannotRunError as error:
        why = f"cannot be run: {error}"
    drawing = Drawing(answer.model, 0)
    return ProofResult("doubted", f"a difference that {why}", tuple(drawing.argument(a) for a in answer.arguments))


def scatters_into_a_scalar(text: str) -> bool:
    """Whether a module has a scatter whose operand has rank 0."""

    def is_one(operation: mlir.RawOperation) -> bool:
        return operation.name == "stablehlo.scatter" and not mlir.tensor_shape(operation.results[0].type)

    return mlir.any_operation(mlir.parse_module(text).operation, is_one)


def _difference(expected: Sequence[Array | None], found: Sequence[Array]) -> str:
    """Where the first difference is, or ""."""
    for number, (a, b) in enumerate(zip(expected, found, strict=True)):
        if a is not None and first_difference([a], [b]) is not None:
            return f"result {number}: {a.tolist()} and {b.tolist()}"
    return ""
