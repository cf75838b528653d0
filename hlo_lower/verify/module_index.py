"""Scatters, functions and calls of a module, and the ways to a function."""

from dataclasses import dataclass

from hlo_lower import mlir
from hlo_lower.verify.program import is_public, location_of

MAX_CALL_PATHS = 8
"""Ways to one function that are looked at."""

MAX_NESTED = 32
"""Calls within calls that are followed."""


@dataclass(frozen=True)
class ScatterPosition:
    """Where a scatter is: its number in program order from 1, its function, and its source or module position."""

    number: int
    function: str
    location: str

    def __str__(self) -> str:
        return f"scatter {self.number} at {self.location} in @{self.function}"


class ModuleIndex:
    """Scatters, functions and calls of a module."""

    def __init__(self, module: mlir.RawModule) -> None:
        self.module = module
        self.scatters: list[mlir.RawOperation] = []
        self.functions: dict[str, mlir.RawOperation] = {}
        self.calls: dict[str, list[mlir.RawOperation]] = {}
        mlir.walk(module.operation, self._visit)

    def _visit(self, op: mlir.RawOperation) -> None:
        if op.name == "stablehlo.scatter":
            self.scatters.append(op)
        elif op.name == "func.func":
            self.functions[mlir.symbol_name(op.attributes["sym_name"])] = op
        elif op.name == "func.call":
            self.calls.setdefault(mlir.symbol_name(op.attributes["callee"]), []).append(op)

    def place(self, number: int) -> ScatterPosition:
        """The place of the scatter of this number."""
        op = self.scatters[number - 1]
        return ScatterPosition(number, mlir.symbol_name(function_of(op).attributes["sym_name"]), location_of(op))

    def call_paths(self, function: mlir.RawOperation) -> list[tuple[mlir.RawOperation, ...]]:
        """Ways from a public function to this one, innermost call first; at most one more than `MAX_CALL_PATHS`."""
        paths: list[tuple[mlir.RawOperation, ...]] = []

        def extend(current: mlir.RawOperation, path: tuple[mlir.RawOperation, ...]) -> None:
            name = mlir.symbol_name(current.attributes["sym_name"])
            if len(paths) > MAX_CALL_PATHS:
                return
            calls = [] if is_public(current) or len(path) > MAX_NESTED else self.calls.get(name, [])
            if not calls:
                paths.append(path)
            for call in calls:
                extend(function_of(call), (*path, call))

        extend(function, ())
        return paths


def function_of(op: mlir.RawOperation) -> mlir.RawOperation:
    """The function around an operation."""
    current = op
    while current.name != "func.func":
        current = current.parent.operation
    return current
