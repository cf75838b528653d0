"""IREE on a CPU (llvm-cpu), release 3.13."""

from hlo_lower.scatter.sizes import SizeTable
from hlo_lower.targets.target import Target

IREE = Target(
    "iree",
    "IREE on a CPU (llvm-cpu 3.13): every op but scatter; a loop copies what it writes to, large masks are kept",
    refused={"stablehlo.scatter": "it is what is to be lowered"},
    sizes=SizeTable(few_windows=64, copy_element=1, compare=0.5, mask_elements=1 << 20),
)
