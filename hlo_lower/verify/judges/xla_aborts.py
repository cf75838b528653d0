"""Where XLA's CPU compiler ends the process (`Check failed`, SIGABRT) instead of refusing a module (jaxlib 0.10.2).

It does so on control flow within the computation that an op applies to elements: a while loop, a case of three
branches and more, and what it expands into loops or calls (a scatter of several updates, a select_and_scatter, a
Cholesky decomposition, a triangular solve, an FFT, a product of matrices). It takes `if` there, a case of two branches,
sorts and reductions. It also dies of a function without a body, of a call back into Python, an address in the
process that traced the module, and of a known integer divided by a known zero (SIGFPE). What is fed from or to a host
it waits for without end. Nothing can be caught, so this is read off the module before anything is compiled; it
says so of a few that XLA's simplifier would have saved, too (a loop of one iteration, a result that is not used).
"""

from math import prod

from hlo_lower.base.element_types import element_type
from hlo_lower.ir import mlir
from hlo_lower.verify.read.constant_folding import Array, settled
from hlo_lower.verify.read.program import CALLS, inlined_operations

_APPLIES = frozenset(
    f"stablehlo.{name}" for name in ("scatter", "map", "reduce", "reduce_window", "select_and_scatter", "sort")
)
"""Ops that apply their regions to elements."""

_ABORTS = frozenset(
    f"stablehlo.{name}" for name in ("while", "select_and_scatter", "cholesky", "triangular_solve", "fft")
)
_PRODUCTS = frozenset(f"stablehlo.{name}" for name in ("dot", "dot_general", "einsum"))
_TAKEN_BRANCHES = 2

_DIVIDES = frozenset({"stablehlo.divide", "stablehlo.remainder"})
_WAITS = frozenset(f"stablehlo.{name}" for name in ("infeed", "outfeed", "send", "recv"))

MAX_INLINED = 2e5
"""Operations, calls inlined, up to which a module is compiled: XLA takes hours for more, and all memory for many."""


def why_xla_aborts(module: mlir.RawModule) -> str:
    """Why XLA must not compile a module, "" if nothing is known that it dies of."""
    ops, _ = mlir.named(module.operation, {"func.func", "stablehlo.custom_call", *_APPLIES, *_WAITS, *_DIVIDES})
    functions = {mlir.symbol_name(op.attributes["sym_name"]): op for op in ops if op.name == "func.func"}
    if any(map(mlir.calls_python, ops)):
        return "the module calls back into the Python process that traced it (pure_callback, debug.print)"
    if waiting := [op for op in ops if op.name in _WAITS]:
        return f"{waiting[0].name} waits for a host that is not there"
    known: dict[mlir.RawValue, Array | None] = {}
    if any(_divides_by_zero(op, known) for op in ops if op.name in _DIVIDES):
        return "it ends the process where a constant is divided by a constant 0"
    without = [name for name, function in functions.items() if not len(function.regions[0].blocks)]
    if without:
        return f"@{without[0]} has no body"
    inlined = inlined_operations(module)
    if inlined > MAX_INLINED:
        return f"it inlines the module's calls, which are {inlined:.2g} operations"
    entered: set[str] = set()
    for op in (op for op in ops if op.name in _APPLIES):
        found = _found_within(op, functions, entered)
        if found:
            return f"its CPU compiler aborts on control flow in a region ({found} in {op.name})"
    return ""


def dies_of_fusion(module: mlir.RawModule) -> bool:
    """Whether XLA's newer emitter may die (SIGSEGV) of a module: it fuses `and` and `or` of signed integers with what
    narrows them (`or(convert a, convert b)`, jaxlib 0.10.2); its older one takes the same module.

    Calls are inlined and barriers removed before, so that the two need not stand beside each other.
    """
    found, _ = mlir.named(module.operation, ("stablehlo.and", "stablehlo.or", "stablehlo.convert"))
    narrowing = [op for op in found if op.name == "stablehlo.convert" and _narrows(op)]
    return bool(narrowing) and any(_signed_bits(op.results[0]) > 1 for op in found if op.name != "stablehlo.convert")


def _narrows(convert: mlir.RawOperation) -> bool:
    return 1 < _signed_bits(convert.results[0]) < _signed_bits(convert.operands[0])


def _signed_bits(value: mlir.RawValue) -> int:
    """Bits of a signed integer; 0 of any other element."""
    declared = element_type(mlir.tensor_element_name(value.type))
    return 0 if declared.is_unsigned else declared.integer_bits


def _found_within(op: mlir.RawOperation, functions: dict[str, mlir.RawOperation], entered: set[str]) -> str:
    """The op in an op's regions, or in a function that they call, that XLA dies of, or ""."""
    pending = [op]
    while pending:
        for inner in mlir.walked(pending.pop())[1:]:
            if _is_control_flow(inner):
                return inner.name
            if inner.name in CALLS:
                name = mlir.symbol_name(inner.attributes[CALLS[inner.name]])
                if name in functions and name not in entered:
                    entered.add(name)
                    pending.append(functions[name])
    return ""


def _divides_by_zero(op: mlir.RawOperation, known: dict[mlir.RawValue, Array | None]) -> bool:
    """Whether integers that are known are divided by a 0 that is known."""
    if not element_type(mlir.tensor_element_name(op.results[0].type)).is_integer:
        return False
    divisor = settled(op.operands[1], known, _made)
    return divisor is not None and not divisor.all() and settled(op.operands[0], known, _made) is not None


def _made(value: mlir.RawValue) -> tuple[mlir.RawOperation, list[mlir.RawValue]] | None:
    maker = mlir.producer(value)
    return (maker, list(maker.operands)) if maker and len(maker.results) == 1 and not len(maker.regions) else None


def _is_control_flow(op: mlir.RawOperation) -> bool:
    if op.name == "stablehlo.case":
        return len(op.regions) > _TAKEN_BRANCHES
    if op.name in _PRODUCTS:
        return bool(mlir.tensor_shape(op.results[0].type))
    if op.name == "stablehlo.scatter":
        window = mlir.scatter_dimension_numbers(op).update_window_dims
        updates = mlir.tensor_shape(op.operands[len(op.results) + 1].type)
        return prod(2 if size is None else size for d, size in enumerate(updates) if d not in window) > 1
    return op.name in _ABORTS
