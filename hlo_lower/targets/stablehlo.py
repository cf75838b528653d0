"""Any consumer of the StableHLO specification."""

from hlo_lower.targets.target import Target

STABLEHLO = Target(
    "stablehlo",
    "any consumer of the StableHLO specification: every op but scatter",
    refused={"stablehlo.scatter": "it is what is to be lowered"},
)
