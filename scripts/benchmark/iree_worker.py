"""The child process in which IREE compiles and runs: what crashes or hangs here ends only this process.

    python iree_worker.py compile IN.mlir OUT.vmfb TARGET_FLAGS...
    python iree_worker.py run JOB.json

A job names the modules, their arguments, and what is wanted; the answer is a JSON file beside it. Nothing of JAX is
imported here.
"""

import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmark.timing import interleave


def compile_module(source: str, output: str, flags: list[str]) -> None:
    """Compile StableHLO text to a module file; the message of a refusal goes to standard error."""
    from iree.compiler import tools

    try:
        tools.compile_file(source, output_file=output, input_type="stablehlo", extra_args=flags)
    except tools.CompilerToolError as error:
        sys.exit(str(error))


class IreeRunner:
    """A module on a device with its arguments there; a donated one is replaced by the result, call by call."""

    def __init__(self, config: Any, path: str, arguments: list[Any], donated: bool) -> None:
        from iree import runtime

        context = runtime.SystemContext(config=config)
        module = runtime.VmModule.copy_buffer(context.instance, Path(path).read_bytes())
        context.add_vm_module(module)
        self._main = context.modules[module.name]["main"]
        self._arguments, self._donated = arguments, donated

    def __call__(self) -> Any:
        """Run it once, to the end."""
        result = self._main(*self._arguments)
        if self._donated:
            self._arguments[0] = result
        return result


def run(job: dict[str, Any]) -> dict[str, Any]:
    """Run the modules of a job.

    A job: `device`, `modules` (name to path), `arguments` (an .npz of arrays in order), `donated`, and either `result`
    (one module is called, its result saved at that path, its time and memory told) or `rounds`, `budget`, `sample`.
    """
    from iree import runtime

    config = runtime.Config(job["device"])
    with np.load(job["arguments"]) as stored:
        given = [stored[name] for name in stored.files]
    shared = [runtime.asdevicearray(config.device, a) for a in given[int(job["donated"]) :]]
    runners = {}
    for name, path in job["modules"].items():
        own = [runtime.asdevicearray(config.device, given[0])] if job["donated"] else []
        runners[name] = IreeRunner(config, path, own + shared, job["donated"])
    if "result" in job:
        (runner,) = runners.values()
        return probe(config.device.allocator, runner, job["result"])
    timings = interleave(runners, job["rounds"], budget=job["budget"], sample=job["sample"])
    return {name: {"seconds": timing.seconds, "calls": timing.calls} for name, timing in timings.items()}


def probe(allocator: Any, runner: IreeRunner, path: str) -> dict[str, Any]:
    """Call once, save the result if there is a path, and tell the time and the memory beyond the arguments."""
    before = allocator.statistics
    start = time.perf_counter()
    result = runner()
    seconds = time.perf_counter() - start
    held = before["device_bytes_allocated"] - before["device_bytes_freed"]
    memory = allocator.statistics["device_bytes_peak"] - held if allocator.has_statistics else None
    if path:
        np.save(path, result.to_host())
    return {"seconds": seconds, "memory": memory}


if __name__ == "__main__":
    if sys.argv[1] == "compile":
        compile_module(sys.argv[2], sys.argv[3], sys.argv[4:])
    else:
        job_file = Path(sys.argv[2])
        answer = run(json.loads(job_file.read_text()))
        job_file.with_suffix(".answer.json").write_text(json.dumps(answer))
