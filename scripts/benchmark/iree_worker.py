"""The child process in which IREE compiles and runs; see `worker`. Nothing of JAX is imported here."""

import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmark.worker import Loaded, arguments_of, main


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
        self._result: Any = None

    def __call__(self) -> None:
        """Run it once, to the end."""
        self._result = self._main(*self._arguments)
        if self._donated:
            self._arguments[0] = self._result

    def result(self) -> Any:
        """What the last call gave."""
        return self._result.to_host()


def load(job: dict[str, Any]) -> Loaded:
    """The modules of a job on its device; arguments that are not donated are shared."""
    from iree import runtime

    config = runtime.Config(job["device"])
    given = arguments_of(job)
    shared = [runtime.asdevicearray(config.device, a) for a in given[int(job["donated"]) :]]
    runners = {}
    for name, path in job["modules"].items():
        own = [runtime.asdevicearray(config.device, given[0])] if job["donated"] else []
        runners[name] = IreeRunner(config, path, own + shared, job["donated"])
    return Loaded(runners, config.device.allocator)


if __name__ == "__main__":
    main(compile_module, load)
