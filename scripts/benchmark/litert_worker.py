"""The child process in which LiteRT's converter and interpreter work; see `worker`."""

import sys
import warnings
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmark.worker import Loaded, arguments_of, main


def compile_module(source: str, output: str, _flags: list[str]) -> None:
    """Convert StableHLO text to a file of LiteRT; the message of a refusal goes to standard error."""
    from hlo_lower.consumers.consumer_outcome import RefusedError
    from hlo_lower.consumers.litert import convert_text

    try:
        binary, _, _ = convert_text(Path(source).read_text())
    except RefusedError as error:
        sys.exit(f"error: {error.message}")
    Path(output).write_bytes(binary)


class LitertRunner:
    """A module in an interpreter of its own. A call runs it on the arguments that were set at first: none is copied."""

    def __init__(self, path: str, arguments: list[Any]) -> None:
        import tensorflow

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that there is another interpreter
            self._interpreter = tensorflow.lite.Interpreter(model_path=path)
        self._interpreter.allocate_tensors()
        runner = self._interpreter.get_signature_runner()
        for name, details in runner.get_input_details().items():  # arguments that are not used are not there
            self._interpreter.set_tensor(details["index"], arguments[int(name.rsplit("_", 1)[1])])
        (result,) = runner.get_output_details().values()
        self._result = result["index"]

    def __call__(self) -> None:
        """Run it once, to the end."""
        self._interpreter.invoke()

    def result(self) -> Any:
        """What the last call gave."""
        return self._interpreter.get_tensor(self._result)


def load(job: dict[str, Any]) -> Loaded:
    """The modules of a job."""
    given = arguments_of(job)
    return Loaded({name: LitertRunner(path, given) for name, path in job["modules"].items()})


if __name__ == "__main__":
    main(compile_module, load)
