"""Where the scatters of a module are, and which of them a result depends on."""

from dataclasses import dataclass

from hlo_lower.ir import mlir
from hlo_lower.verify.read.program import Body, Op, Program, location_of, ops_within


@dataclass(frozen=True)
class ScatterPosition:
    """Where a scatter is: its number in program order from 1, its function, and its source or module position."""

    number: int
    function: str
    location: str

    def __str__(self) -> str:
        return f"scatter {self.number} at {self.location} in @{self.function}"


def scatters_of(module: mlir.RawModule) -> list[mlir.RawOperation]:
    """The scatters of a module, in the order in which they are printed."""
    return mlir.named(module.operation, ("stablehlo.scatter",))[0]


def position_of(scatter: mlir.RawOperation, number: int) -> ScatterPosition:
    """The position of the scatter of this number."""
    around = scatter
    while around.name != "func.func":
        around = around.parent.operation
    return ScatterPosition(number, mlir.symbol_name(around.attributes["sym_name"]), location_of(scatter))


def scatters_on_path(program: Program, body: Body, result: int) -> tuple[ScatterPosition, ...]:
    """The scatters that a result of a public function depends on, through calls and regions."""
    found: dict[int, mlir.RawOperation] = {}
    seen: set[Op] = set()
    pending = [body.returned[result]]
    while pending:
        op = program.makers[pending.pop()]
        if op is not None and op not in seen:
            seen.add(op)
            scatters = (inner.raw for inner in ops_within([op]) if inner.name == "stablehlo.scatter")
            found.update((program.scatter_numbers[raw], raw) for raw in scatters)
            pending.extend(op.reads)
    return tuple(position_of(found[number], number) for number in sorted(found))
