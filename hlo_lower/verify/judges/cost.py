"""How dear a module is for XLA, told from its text before it is compiled.

Nothing stops XLA within a process. So what surely ends soon is compiled and run here, and all else in a child that can
be ended (`hlo_lower.verify.judges.devices`): loops whose end is not a constant, loops of many turns, large values,
long texts. The numbers are rough and on the high side; a factor of ten decides nothing but where it runs.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf, log2, prod, sqrt

from hlo_lower.ir import mlir
from hlo_lower.verify.align.counters import counter_at
from hlo_lower.verify.judges.xla_aborts import MAX_INLINED
from hlo_lower.verify.read.program import Op, Program, TooLargeError, ValueId, inlined_operations

OPERATIONS, SOON = 4_000, 4.0
"""Operations, calls inlined, and seconds of a run up to which a module is small. XLA takes as many seconds for a chain
of 4,000 operations, six times as many for one of 10,000."""

LONGEST = 1 << 24
"""Characters of a small module: XLA computes what constants decide, a hundred times slower than it runs."""

PER_ELEMENT, PER_PRODUCT, PER_OPERATION = 5e-9, 2e-10, 1e-6
"""Seconds for an element that is read or written, for two that are multiplied in a product, for an operation."""


@dataclass(frozen=True)
class Cost:
    """What XLA has to do.

    Attributes:
      operations: that are compiled, calls inlined.
      seconds: of a run; inf where a loop may not end.
      length: of the text, in which large constants stand.
    """

    operations: float
    seconds: float
    length: int = 0

    @property
    def is_small(self) -> bool:
        """Whether compilation and a run surely end soon."""
        return self.operations <= OPERATIONS and self.seconds <= SOON and self.length <= LONGEST

    @property
    def told(self) -> str:
        """For a reader."""
        return f"{self.operations:.3g} operations, calls inlined, in a run of about {self.seconds:.2g} s,"


def cost_of(text: str) -> Cost:
    """The cost of a module."""
    module = mlir.parse_module(text)
    count = inlined_operations(module)
    if count > MAX_INLINED:
        return Cost(count, inf)
    try:
        program = Program(module)
    except TooLargeError:
        return Cost(inf, inf)
    seconds = sum(seconds_of(program, body.live()) for body in program.entries.values())
    return Cost(count, seconds, len(text))


def seconds_of(program: Program, ops: Sequence[Op]) -> float:
    """How long operations take, those in their regions included, each as often as loops of constant ends turn."""
    total = 0.0
    for op in ops:
        if op.name == "stablehlo.while":
            turns = _turns(program, op)
            total += turns and turns * sum(PER_OPERATION + seconds_of(program, body.ops) for body in op.bodies)
        elif op.name in ("stablehlo.if", "stablehlo.case"):
            total += sum(seconds_of(program, body.ops) for body in op.bodies)
        else:
            total += PER_OPERATION + _seconds(program, op)
    return total


def _turns(program: Program, loop: Op) -> float:
    """How often a loop turns; inf where no counter says it."""

    def integer(value: ValueId) -> int | None:
        maker = program.makers[value]
        known = mlir.constant_value(maker.raw) if maker is not None and maker.name == "stablehlo.constant" else None
        return int(known[()]) if known is not None and known.shape == () and known.dtype.kind in "iu" else None

    counters = (counter_at(program, integer, loop, place) for place in range(len(loop.inputs)))
    return min((counter.trips for counter in counters if counter is not None and counter.end is not None), default=inf)


def _seconds(program: Program, op: Op) -> float:
    shapes = [_shape(program, value) for value in (*op.inputs, *op.results)]
    sizes = [prod(shape) for shape in shapes]
    length = max((max(shape, default=1) for shape in shapes), default=1)
    elements = PER_ELEMENT * sum(sizes)
    match op.short_name:
        case "dot_general" | "dot" | "convolution":
            kernel = 1
            if op.short_name == "convolution":
                kernel = prod(shapes[1][dims[1]] for dims in mlir.convolution_spatial_dimensions(op.raw))
            return elements + PER_PRODUCT * sqrt(prod(sizes) * kernel)
        case "reduce_window" | "select_and_scatter":
            given = op.raw.attributes
            window = mlir.integers_of(given["window_dimensions"]) if "window_dimensions" in given else ()
            return elements * prod(window)
        case "sort" | "fft":
            return elements * 4 * log2(length + 1)
        case "scatter":
            return elements + 300 * PER_ELEMENT * sizes[len(op.results)]
        case "cholesky" | "triangular_solve" | "custom_call":
            return elements * length
        case _:
            return elements * max(1, sum(len(body.ops) for body in op.bodies))


def _shape(program: Program, value: ValueId) -> tuple[int, ...]:
    tensor = program.type_of(value)
    return () if tensor is None else tuple(int(n or 0) for n in tensor.shape)
