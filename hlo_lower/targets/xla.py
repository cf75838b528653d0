"""XLA on a CPU, as `jax.jit` uses it."""

from hlo_lower.scatter.sizes import SizeTable
from hlo_lower.targets.target import Target

XLA = Target(
    "xla",
    "XLA on a CPU: every op but scatter; loops are cheap, and write in place",
    refused={"stablehlo.scatter": "it is what is to be lowered"},
    sizes=SizeTable(window=2_000, loop=100, copy_element=0, step=2_000, compare=0.2, reduce=0.3, sort_pair=0),
)
