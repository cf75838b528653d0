"""The resident size that a module needs while it runs, measured in a fresh process."""

import os
import threading
import time

import numpy as np

from hlo_lower.base.processes import Lost, in_processes

INTERVAL = 0.001
"""Seconds between two looks."""


def resident(text: str) -> int | str:
    """Bytes by which the resident size grows over that before the first of two runs, or why there are none.

    Arguments and the compiled module are there before; results are counted.
    """
    [(_, answer)] = in_processes(_measure, [text], jobs=1)
    return answer.reason if isinstance(answer, Lost) else answer


def arguments(signature: "tuple[object, ...]", seed: int = 0) -> list[np.ndarray]:
    """Seeded arguments: small floats, and integers below 4."""
    rng = np.random.default_rng(seed)
    return [
        rng.integers(0, 4, a.shape).astype(a.dtype)
        if np.dtype(a.dtype).kind in "iub"
        else (rng.standard_normal(a.shape) / 8).astype(a.dtype)
        for a in signature
    ]


def _size() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def _measure(text: str) -> int:
    import jax

    from hlo_lower.verify.run import exported_from_module

    exported = exported_from_module(text)
    with jax.enable_x64(True):
        compiled = jax.jit(exported.call).lower(*exported.in_avals).compile()
        given = jax.block_until_ready([jax.device_put(a) for a in arguments(exported.in_avals)])
        base = most = _size()
        is_done = False

        def watch() -> None:
            nonlocal most
            while not is_done:
                most = max(most, _size())
                time.sleep(INTERVAL)

        thread = threading.Thread(target=watch)
        thread.start()
        for _ in range(2):
            jax.block_until_ready(compiled(*given))
        is_done = True
        thread.join()
    return most - base
