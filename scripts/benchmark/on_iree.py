"""IREE as it is measured."""

from benchmark.in_children import FOLDER, Measured
from hlo_lower.consumers.iree import DEVICE, FLAGS, IREE

ON_IREE = Measured(
    f"IREE llvm-cpu {DEVICE}",
    IREE,
    FOLDER / "iree_worker.py",
    flags=FLAGS,
    suffix="vmfb",
    device=DEVICE,
    counting_device="local-sync",  # the same code on one thread; of local-task the allocator counts only a part
)
