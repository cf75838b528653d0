"""Measure a class under XLA, on the CPU or on a GPU of this process."""

import time
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from benchmark.outcome import Entry, Outcome, difference, repeated
from benchmark.timing import interleave
from benchmark.versions import Prepared, Version
from hlo_lower.verify.run import exported_from_module


class XlaRunner:
    """A compiled version that feeds a donated buffer back to itself, as a decoder does: no copy of it is timed.

    Attributes:
      compile_seconds: how long `jax.jit` took to lower and compile it.
      memory: XLA's own account of the compiled call: bytes of temporaries and of results, without the results that
        take the place of a donated argument.
    """

    def __init__(self, prepared: Prepared, version: Version, device: Any) -> None:
        donated = prepared.case.donated
        with jax.default_device(device):
            # A donated array has to be XLA's own: one that lies in NumPy's memory would be copied in the call.
            self._arguments = [
                jnp.array(a, copy=True) if donated and i == 0 else jax.device_put(a, device)
                for i, a in enumerate(prepared.arguments)
            ]
            call = exported_from_module(version.text).call
            start = time.perf_counter()
            self._compiled = jax.jit(call, donate_argnums=(0,) if donated else ()).lower(*self._arguments).compile()
            self.compile_seconds = time.perf_counter() - start
        self._donated = donated
        analysis: Any = self._compiled.memory_analysis()
        self.memory = int(analysis.temp_size_in_bytes + analysis.output_size_in_bytes - analysis.alias_size_in_bytes)

    def __call__(self) -> None:
        """Run it once, to the end."""
        self._run()

    def result(self) -> NDArray[Any]:
        """The result of one call. For the right result of a donating version this has to be the first one."""
        return np.array(self._run())

    def _run(self) -> Any:
        (result,) = self._compiled(*self._arguments)
        jax.block_until_ready(result)
        if self._donated:
            self._arguments[0] = result
        return result


def dispatch_in_line() -> None:
    """Have JAX run each call in the thread that makes it; to be called before the first array is made.

    JAX does so by itself for a program of less than 1,000 operations on elements, by XLA's count, and hands others to a
    thread: a row that is selected where a native scatter copies it (0 operations) would be charged with that.
    """
    jax.config.update("jax_cpu_enable_async_dispatch", False)


def devices() -> list[Any]:
    """The CPU, and the first GPU if there is one."""
    found = [jax.devices("cpu")[0]]
    try:
        return [*found, jax.devices("gpu")[0]]
    except RuntimeError:
        return found


def measure(prepared: Prepared, device: Any, *, rounds: int, budget: float, sample: float) -> Outcome:
    """Check each version once, then time those that are right, interleaved."""
    case, on_cpu = prepared.case, device.platform == "cpu"
    runners: dict[str, XlaRunner] = {}
    failed: dict[str, Entry] = {}
    for version in prepared.versions:
        name = version.candidate
        if version.same_as:
            continue
        if version.refused:
            failed[name] = Entry(name, version.rules, note=version.refused)
            continue
        try:
            runner = XlaRunner(prepared, version, device)
            wrong = difference(case, name, runner.result(), prepared.reference, ordered=on_cpu)
        except Exception as error:  # XLA's errors have no common public class
            failed[name] = Entry(name, version.rules, note=f"refused: {_first_line(error)}")
            continue
        if wrong:
            failed[name] = Entry(name, version.rules, note=f"wrong results: {wrong}", wrong=True)
        else:
            runners[name] = runner
    timings = interleave(runners, rounds, budget=budget, sample=sample)
    entries: list[Entry] = []
    for version in prepared.versions:
        name = version.candidate
        if version.same_as:
            entries.append(repeated(version, entries))
        elif name in failed:
            entries.append(failed[name])
        else:
            runner = runners[name]
            entries.append(Entry(name, version.rules, timings[name], runner.compile_seconds, runner.memory))
    return Outcome(case, f"XLA {device.platform}", tuple(entries))


def _first_line(error: Exception) -> str:
    return (str(error) or type(error).__name__).splitlines()[0][:200]
