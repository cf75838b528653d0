"""LiteRT: the converter (`litert-converter`) writes a file for it, TensorFlow's interpreter of such files runs it."""

import re
import sys
import warnings
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from importlib.util import find_spec, module_from_spec
from pathlib import Path
from typing import Any

import numpy as np

from hlo_lower.consumers.consumer import Consumer, Runner
from hlo_lower.consumers.consumer_outcome import Array, RefusedError, cause_of, first_line

BOTH = ("true", "false")
"""What a setting of the converter is that is a truth value."""

LITERT = Consumer(
    "litert",
    "LiteRT",
    driver=__name__,
    imports=("litert_converter", "tensorflow"),
    package="litert-converter",
    extra="litert",
    modules_per_process=25,
    environment={"TF_CPP_MIN_LOG_LEVEL": "3", "TF_ENABLE_ONEDNN_OPTS": "0", "CUDA_VISIBLE_DEVICES": ""},
    artifact=".tflite",
    settings={
        "canonicalizing_inf_as_min_max_float": BOTH,
        "enable_x64": BOTH,
        "model_origin_framework": (),
        "qdq_conversion_mode": ("NONE", "STATIC", "DYNAMIC", "STRICT"),
        "strict_qdq_mode": BOTH,
        "unsafe_fuse_dynamic_shaped_broadcast": BOTH,
        "unsafe_single_batch_rank_reduction": BOTH,
    },
)

SIGNATURE = "main"
_NODE = re.compile(r"builtin opcode '(\w+)'|\((\w+)\) failed to (?:prepare|invoke)|custom op:? '?([\w.]+)")
_SELECT = re.compile(r"^\s*(tf\.\w+)\(", re.MULTILINE)
"""An op of TensorFlow's own, which the runtime does not have."""


def load() -> None:
    """Import the converter and the interpreter."""
    import_module("litert_converter")
    _interpreter()


def _interpreter() -> Any:
    """The module of TensorFlow's interpreter. The package is put there without its `__init__`, which imports all of
    TensorFlow: four seconds of a process in which nothing else of it is used."""
    spec = find_spec("tensorflow") if "tensorflow" not in sys.modules else None
    if spec is not None:
        sys.modules["tensorflow"] = module_from_spec(spec)
    return import_module("tensorflow.lite.python.interpreter")


def compile_module(text: str) -> Runner:
    """Convert a module's text, and have the interpreter prepare what comes out; RefusedError if either says no."""
    return _make_runner(*convert_text(text))


def build(text: str, path: str, flags: Sequence[str]) -> Runner:
    """Convert text into a file, and have the interpreter prepare that; RefusedError if either says no."""
    binary, inputs, outputs = convert_text(text, flags)
    Path(path).write_bytes(binary)
    return _make_runner(Path(path).read_bytes(), inputs, outputs)


def _make_runner(binary: bytes, inputs: Sequence[str], outputs: Sequence[str]) -> Runner:
    interpreter = _interpreter().Interpreter
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that there is another interpreter
        try:
            runner = interpreter(model_content=binary).get_signature_runner(SIGNATURE)
        except (ValueError, RuntimeError) as error:
            raise _error_of(error) from None
    taken = set(runner.get_input_details())

    def run(arguments: Sequence[Array]) -> list[Array]:
        given = {name: array for name, array in zip(inputs, arguments, strict=True) if name in taken}
        try:
            results = runner(**given)
        except (ValueError, RuntimeError) as error:
            raise _error_of(error) from None
        return [np.array(results[name]) for name in outputs]

    return run


def convert_text(text: str, settings: Sequence[str] = ()) -> tuple[bytes, list[str], list[str]]:
    """Convert text to the bytes of a LiteRT file; return them with the names of its inputs and outputs.

    Settings (NAME=VALUE) are those of `LITERT.settings`.
    """
    api: Any = import_module("litert_converter.converter_api_ext")
    ir: Any = import_module("litert_converter.mlir.ir")
    passes: Any = import_module("litert_converter.mlir.passmanager")
    config = api.ConvertToTFLConfig()
    for name, _, value in (setting.partition("=") for setting in settings):
        setattr(config, name, value == BOTH[0] if value in BOTH else value)
    context = ir.Context()
    api.prepare_mlir_context(context)
    with context, ir.Location.unknown():
        try:
            module = ir.Module.parse(text)
            entry = _entry(ir, module)
            inputs = [f"argument_{number}" for number in range(len(entry.inputs))]
            outputs = [f"result_{number}" for number in range(len(entry.results))]
            api.set_signature(module.operation, SIGNATURE, inputs, outputs)
            api.run_convert_to_tfl_passes(module, passes.PassManager(), config)
            return bytes(api.export_flatbuffer_to_bytes(module.operation)), inputs, outputs
        except (ValueError, RuntimeError, ir.MLIRError) as error:
            raise _error_of(error) from None


def _entry(ir: Any, module: Any) -> Any:
    """The type of the function that is run; RefusedError if there is no @main, which the converter asks for."""
    for op in module.body.operations:
        with suppress(KeyError):
            if op.operation.name == "func.func" and ir.StringAttr(op.attributes["sym_name"]).value == "main":
                return ir.FunctionType(ir.TypeAttr(op.attributes["function_type"]).value)
    raise RefusedError("it has no function named main")


def _error_of(error: Exception) -> RefusedError:
    """The error behind a message: the MLIR op that it names, or the interpreter's own words."""
    said = str(error)
    found = _NODE.search(said)
    cause = cause_of(said) or (f"tflite.{(found[1] or found[2] or found[3]).lower()}" if found else "")
    if select := _SELECT.search(said):
        return RefusedError(f"needs {select[1]}, an operation of TensorFlow's own", select[1])
    errors = [line.split("error: ", 1)[1] for line in said.splitlines() if "error: " in line]
    return RefusedError(first_line(errors[0] if errors else said), cause)
