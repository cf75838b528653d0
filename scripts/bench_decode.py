"""Measure a decode step of real width on a consumer: milliseconds a token, native beside converted, interleaved.

    python scripts/bench_decode.py --on iree --layers 4                     # Llama 3.2 1B's sizes, a cache of 4,096
    python scripts/bench_decode.py --on litert --layers 16 --dtype bfloat16
    python scripts/bench_decode.py --on iree --preset tiny --layers 2       # whether it works

Both versions are of models/llama.py and run in one process on the same drawn weights, each with a cache of its own: on
IREE it is what the step before gave. A version that the consumer refuses is told with the reason.

Exit code 1: the logits of the two versions are not close.
"""

import re
import time
from collections.abc import Sequence
from importlib import import_module
from typing import Any

import numpy as np
from absl import app, flags, logging
from benchmark.decoder import MODEL
from benchmark.timing import interleave

import hlo_lower as hl
from hlo_lower.consumers.consumer_outcome import RefusedError
from hlo_lower.consumers.iree import DEVICE, FLAGS
from hlo_lower.consumers.litert import convert_text
from hlo_lower.ir.export.load import load_function
from hlo_lower.verify.run import exported_from_module

_ON = flags.DEFINE_enum("on", "iree", ["iree", "litert"], "The consumer.")
_PRESET = flags.DEFINE_string("preset", "llama_1b", "Sizes of models/llama.py.")
_LAYERS = flags.DEFINE_integer("layers", 4, "Layers.", lower_bound=1)
_DTYPE = flags.DEFINE_string("dtype", "float32", "Of weights and cache.")
_ROUNDS = flags.DEFINE_integer("rounds", 5, "Rounds.", lower_bound=1)

FAR = 1e-2
"""Of the largest logit: further apart the two versions are not close."""

Array = np.ndarray[Any, Any]


def drawn(text: str) -> list[Array]:
    """Arguments: small floats, and 1 for tokens and the position."""
    rng = np.random.default_rng(0)
    found: list[Array] = []
    for one in exported_from_module(text).in_avals:
        is_integer = np.dtype(one.dtype).kind in "iu"
        values = np.ones(one.shape) if is_integer else rng.standard_normal(one.shape, np.float32) / 64
        found.append(np.asarray(values).astype(one.dtype))
    return found


def caches_of(text: str) -> dict[int, int]:
    """The places of arguments that are given away, and of the results that take their storage."""
    entry = next(line for line in text.splitlines() if "func.func public @main" in line)
    found = re.findall(r"%arg(\d+): tensor<[^>]*> \{[^}]*tf\.aliasing_output = (\d+)", entry)
    return {int(argument): int(result) for argument, result in found}


class OnIree:
    """A step in IREE, which is given the caches that the one before gave."""

    shared: Sequence[Any] = ()
    config: Any = None

    def __init__(self, text: str, arguments: Sequence[Array], caches: dict[int, int]) -> None:
        tools, runtime = import_module("iree.compiler.tools"), import_module("iree.runtime")
        try:
            binary = tools.compile_str(text, input_type="stablehlo", extra_args=list(FLAGS))
        except tools.CompilerToolError as error:
            raise RefusedError(str(error).splitlines()[0]) from None
        if OnIree.config is None:
            OnIree.config = runtime.Config(DEVICE)
            OnIree.shared = [runtime.asdevicearray(OnIree.config.device, one) for one in arguments]
        context = runtime.SystemContext(config=OnIree.config)
        module = runtime.VmModule.copy_buffer(context.instance, binary)
        context.add_vm_module(module)
        self._main = context.modules[module.name]["main"]
        self._given, self._caches = list(OnIree.shared), caches
        for place in caches:
            self._given[place] = runtime.asdevicearray(OnIree.config.device, arguments[place])
        self._results: Sequence[Any] = ()

    def __call__(self) -> None:
        """Run it."""
        self._results = self._main(*self._given)
        for place, result in self._caches.items():
            self._given[place] = self._results[result]

    def logits(self) -> Array:
        """Those of the last step."""
        return np.asarray(self._results[0].to_host())


class OnLitert:
    """A step in LiteRT's interpreter, on the arguments that are set once."""

    def __init__(self, text: str, arguments: Sequence[Array], _: dict[int, int]) -> None:
        binary, _, outputs = convert_text(text)
        self._interpreter = import_module("tensorflow").lite.Interpreter(model_content=binary)
        self._interpreter.allocate_tensors()
        runner = self._interpreter.get_signature_runner()
        for name, details in runner.get_input_details().items():  # arguments that are not used are not there
            self._interpreter.set_tensor(details["index"], arguments[int(name.rsplit("_", 1)[1])])
        self._logits = runner.get_output_details()[outputs[0]]["index"]

    def __call__(self) -> None:
        """Run it."""
        self._interpreter.invoke()

    def logits(self) -> Array:
        """Those of the last step."""
        return np.asarray(self._interpreter.get_tensor(self._logits))


def main(_: Sequence[str]) -> int:
    """Measure and show."""
    logging.set_verbosity(logging.WARNING)  # IREE's driver tells each command
    settings = {"preset": _PRESET.value, "layers": str(_LAYERS.value), "dtype": _DTYPE.value}
    native = load_function(f"{MODEL}:decode", settings).export().mlir_module()
    texts = {"native": native, "converted": hl.lower(native, target=_ON.value).text}
    arguments, caches = drawn(native), caches_of(native)
    steps: dict[str, OnIree | OnLitert] = {}
    for name, text in texts.items():
        start = time.perf_counter()
        try:
            steps[name] = (OnIree if _ON.value == "iree" else OnLitert)(text, arguments, caches)
        except RefusedError as error:
            print(f"{name}: refused: {error}")
            continue
        steps[name]()
        print(f"{name}: compiled, and one step run, in {time.perf_counter() - start:.0f} s", flush=True)
    logits = [step.logits().astype(np.float64) for step in steps.values()]
    is_close = all(np.abs(one - logits[0]).max() <= FAR * np.abs(logits[0]).max() for one in logits)
    times = interleave(dict(steps), _ROUNDS.value)
    told = ", ".join(f"{name} {timing.median * 1e3:.1f} ms" for name, timing in times.items())
    ratio = f", {times['converted'].median / times['native'].median:.2f} of native" if len(times) == 2 else ""
    what = f"{_PRESET.value}, {_LAYERS.value} layers, {_DTYPE.value}, {_ON.value}"
    print(f"{what}: a token takes {told}{ratio}; logits are {'close' if is_close else 'not close'}")
    return 0 if is_close else 1


if __name__ == "__main__":
    app.run(main)
