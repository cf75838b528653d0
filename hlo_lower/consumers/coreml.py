"""Core ML: `stablehlo-coreml` and `coremltools` convert. A package runs on macOS only; here its program runs in NumPy
as far as coremltools says what its ops compute."""

import re
import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any, cast

import numpy as np

from hlo_lower.consumers.consumer import Consumer, Runner
from hlo_lower.consumers.consumer_outcome import Array, RefusedError, RunsElsewhereError, cause_of, first_line
from hlo_lower.consumers.coreml_program import Program
from hlo_lower.ops.names import SCATTER

COREML = Consumer(
    "coreml",
    "Core ML (its program in NumPy)",
    driver=__name__,
    imports=("stablehlo_coreml", "coremltools"),
    package="stablehlo-coreml",
    extra="coreml",
    modules_per_process=50,
    environment={"TF_CPP_MIN_LOG_LEVEL": "3", "JAX_PLATFORMS": "cpu"},
    artifact=".mlpackage",
    settings={"compute_precision": ("FLOAT32", "FLOAT16"), "minimum_deployment_target": ("iOS18", "iOS26")},
)

_OP_OF_A_MESSAGE = (
    (re.compile(r"[Cc]ustom call.*?:? ([\w.]+)$"), "stablehlo.custom_call @{}"),
    (re.compile(r"[Ss]catter"), SCATTER),
    (re.compile(r"\b(?:stablehlo|mhlo|chlo)[._]\w+"), "{}"),
)
"""How the converter names what it does not take; it has no form for that."""


def load() -> None:
    """Import both converters, and let them take named ops by their composites."""
    from hlo_lower.consumers.coreml_named import register

    # coremltools imports TensorFlow where it is installed, three seconds, for models of TensorFlow: none comes here
    is_hidden = "tensorflow" not in sys.modules
    sys.modules.setdefault("tensorflow", cast(Any, None))
    try:
        for name in COREML.imports:
            import_module(name)
    finally:
        if is_hidden:
            del sys.modules["tensorflow"]
    register()


def compile_module(text: str) -> Runner:
    """Convert a module's text as far as a package that Core ML would load, floats as wide as they are; any error of a
    converter is a RefusedError. The runner runs its program in NumPy."""
    return _runner(_convert(text, {}), text)


def build(text: str, path: str, flags: Sequence[str]) -> Runner | None:
    """Convert text into a package; floats stay as wide as they are, unless the flags say otherwise. What is narrowed so
    is not run.

    Raises:
      RunsElsewhereError: floats are narrowed, so nothing can be compared.
    """
    settings = {name: value for name, _, value in (flag.partition("=") for flag in flags)}
    model = _convert(text, settings)
    model.save(path)
    if settings.get("compute_precision") == "FLOAT16":
        raise RunsElsewhereError("its floats are narrower than the module's")
    return _runner(model, text)


def _runner(model: Any, text: str) -> Runner:
    """Run a program's function called main, or the first one; a scalar, which is one of one element there, is one."""
    from hlo_lower.verify.run import parse_or_refuse, read_signature

    functions = model._mil_program.functions
    program = Program(functions.get("main") or next(iter(functions.values())))

    def run(arguments: Sequence[Array]) -> list[Array]:
        declared = read_signature(parse_or_refuse(text, "after")).results
        found = program.run(arguments)
        return [np.reshape(a, one.shape).astype(one.dtype) for a, one in zip(found, declared, strict=True)]

    return run


def _convert(text: str, settings: Mapping[str, str]) -> Any:
    from hlo_lower.ir import mlir

    ct: Any = import_module("coremltools")
    hlo: Any = import_module("stablehlo_coreml")
    target = getattr(ct.target, settings.get("minimum_deployment_target", "iOS18"))
    context = mlir.make_context()
    with mlir.active(context):
        module = mlir.parse_module(text, context)
        _hide_comparators(module)
        try:
            with mlir.numbered_once(module):  # its converter asks each value for its name
                program = hlo.convert(module, minimum_deployment_target=target)
            return ct.convert(
                program,
                source="milinternal",
                minimum_deployment_target=target,
                pass_pipeline=hlo.build_pass_pipeline(),
                compute_precision=getattr(ct.precision, settings.get("compute_precision", "FLOAT32")),
                skip_model_load=True,
            )
        except Exception as error:
            said = first_line(str(error)) or "no message"
            raise RefusedError(f"{type(error).__name__}: {said}", _cause(str(error))) from None


def _hide_comparators(module: Any) -> None:
    """Make functions beside `main` private that give truths, as the comparator of `jax.lax.approx_max_k` does: each
    public one becomes a program, which gives numbers only."""
    from hlo_lower.ir import mlir
    from hlo_lower.ir.view import Function, Node

    for raw in module.body.operations:
        if raw.operation.name == "func.func" and (function := Function(Node(raw.operation))).name != "main":
            gives = function.body.terminator.operands if function.has_body else ()
            if any(value.is_tensor and value.element_type == "i1" for value in gives):
                mlir.make_private(raw.operation)


def _cause(said: str) -> str:
    if cause := cause_of(said):
        return cause
    first = first_line(said)
    for pattern, told in _OP_OF_A_MESSAGE:
        if found := pattern.search(first):
            return told.format(found[1] if found.groups() else found[0])
    return ""
