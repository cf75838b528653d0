"""What IREE's own allocator says that a call takes beyond its arguments, results included."""

import json
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

import hlo_lower as hl
from benchmark.on_iree import ON_IREE
from benchmark.resident import arguments
from hlo_lower.consumers.iree import FLAGS
from hlo_lower.verify.run import exported_from_module

MIDDLE = {
    "cross_entropy": (512, 128, 8000),
    "attention": (2, 1024, 32),
    "attention_gradient": (2, 1024, 32),
    "experts": (128, 64, 128, 8),
    "int8_table": (8192, 64, 256),
    "prefill": (1, 512, 128, 4),
    "cached_attention": (8, 4, 960, 64, 64),
    "pair_block": (48, 32, 2),
}
"""Sizes of the workloads at which IREE compiles and runs them in seconds."""

LIMIT = 120.0
"""Seconds in which IREE compiles a module, or runs it."""


def iree_peak(text: str) -> int | str:
    """Bytes that one call takes, the module converted for IREE; or why that is not known."""
    given = arguments(exported_from_module(text).in_avals)
    converted = hl.lower(text, target="iree").text
    with TemporaryDirectory(prefix="iree_peak_") as name:
        folder = Path(name)
        (folder / "a.mlir").write_text(converted)
        np.savez(folder / "arguments.npz", *given)
        job = {"device": ON_IREE.counting_device, "modules": {"a": "a.vmfb"}, "arguments": "arguments.npz"}
        (folder / "job.json").write_text(json.dumps({**job, "donated": False, "result": ""}))
        for work in (["compile", "a.mlir", "a.vmfb", *FLAGS], ["run", "job.json"]):
            command = [sys.executable, str(ON_IREE.worker), *work]
            try:
                done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=LIMIT, check=False)
            except subprocess.TimeoutExpired:
                return f"{work[0]}: not done within {LIMIT:g} s"
            if done.returncode:
                return f"{work[0]}: {(done.stderr.strip().splitlines() or ['exit code'])[-1][:200]}"
        memory = json.loads((folder / "job.answer.json").read_text())["memory"]
    return "not counted" if memory is None else int(memory)
