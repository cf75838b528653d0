"""Compile a module of linalg on IREE and run it; `iree-opt` for what its passes make of one."""

import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hlo_lower.consumers.iree import FORALL, LOOPS

compiler = pytest.importorskip("iree.compiler")
runtime = pytest.importorskip("iree.runtime")

FLAGS = (
    "--iree-hal-target-backends=llvm-cpu",
    "--iree-llvmcpu-target-cpu=host",
    "--iree-input-demote-f64-to-f32=false",  # by default it changes types
    FORALL[1],
    LOOPS[1],
)


def compiled(text: str, input_type: str = "none") -> Callable[[Sequence[np.ndarray]], list[np.ndarray]]:
    """What runs @main; input type "none" takes linalg on tensors as it is, and no StableHLO at all."""
    binary = compiler.compile_str(text, input_type=input_type, extra_args=list(FLAGS))
    config = runtime.Config("local-sync")
    module: Any = runtime.load_vm_module(runtime.VmModule.copy_buffer(config.vm_instance, binary), config)

    def run(arguments: Sequence[np.ndarray]) -> list[np.ndarray]:
        told = module["main"](*(signless(a) for a in arguments))
        results = told if isinstance(told, list | tuple) else [told]
        return [np.array(r.to_host() if hasattr(r, "to_host") else r) for r in results]

    return run


def run_on_iree(text: str, arguments: Sequence[np.ndarray], input_type: str = "none") -> list[np.ndarray]:
    """The results of @main, see `compiled`."""
    return compiled(text, input_type)(arguments)


def signless(array: np.ndarray) -> np.ndarray:
    """The same bits without a sign, which is how linalg has them."""
    array = np.asarray(array)
    return array.view(f"i{array.dtype.itemsize}") if array.dtype.kind == "u" else array


def generalized(text: str) -> str:
    """The module after `iree-opt --linalg-generalize-named-ops`."""
    return printed(text, "--linalg-generalize-named-ops")


def printed(text: str, *passes: str) -> str:
    """The module as `iree-opt` prints it, after passes."""
    program = Path(compiler.__file__).parent / "_mlir_libs" / "iree-opt"
    done = subprocess.run([program, *passes, "-"], input=text, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout
