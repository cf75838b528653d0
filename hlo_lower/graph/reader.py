"""Read a module from whatever form it comes in."""

from os import PathLike
from pathlib import Path
from typing import Any, TypeAlias, cast

import jax.export
import jax.stages

from hlo_lower import mlir
from hlo_lower.errors import InputError
from hlo_lower.graph.view import Graph

Source: TypeAlias = str | bytes | PathLike[str] | jax.export.Exported | jax.stages.Lowered

OBJECT_NAME = "<module>"


def read(source: Source, name: str | None = None) -> Graph:
    """Read a module and check that it can be converted.

    Args:
      source: a path; MLIR text (pretty or generic) as str; text, MLIR bytecode, a portable artifact or a serialized
        `jax.export.Exported` as bytes; an `Exported`; a `jax.stages.Lowered`. A str is a path if it has no line break
        and no brace, otherwise text.
      name: the name for messages and reports; by default the path, or "<module>".

    Raises:
      InputError: it cannot be read, parsed or verified, is empty, or has no public function.
    """
    exported: jax.export.Exported | None = None
    if isinstance(source, jax.export.Exported):
        exported, data = source, source.mlir_module_serialized
    elif isinstance(source, jax.stages.Lowered):
        data = mlir.print_module(cast(Any, source.compiler_ir("stablehlo")), locations=True)
    elif isinstance(source, PathLike) or (isinstance(source, str) and _is_path(source)):
        name = name or str(source)
        data = _read_file(Path(source), name)
    else:
        data = source
    name = name or OBJECT_NAME
    if not data.strip():
        raise InputError(name, "the input is empty", next_step="give a StableHLO module")
    if isinstance(data, bytes) and not mlir.is_bytecode(data):
        exported, data = _text_or_exported(data, name)
    context = mlir.make_context()
    try:
        module = mlir.parse_module(data, context)
    except mlir.MlirSyntaxError as error:
        raise _syntax_error(error, name, data) from None
    graph = Graph(module, name, has_locations=_has_locations(module, data), exported=exported)
    if not any(f.is_public and f.has_body for f in graph.functions.values()):
        found = ", ".join(f"@{f}" for f in graph.functions) or "none"
        raise InputError(
            name,
            "the module has no public function with a body",
            facts=f"functions: {found}",
            next_step="make the entry point public: func.func public @main(...)",
        )
    return graph


def _is_path(source: str) -> bool:
    return bool(source) and "\n" not in source and "{" not in source


def _read_file(path: Path, name: str) -> bytes:
    if path.is_dir():
        raise InputError(name, "is a directory, not a module", next_step=f"name a file in it: {name}/*.mlir")
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise InputError(name, "no such file", next_step="check the path") from None
    except OSError as error:
        raise InputError(name, f"cannot be read: {error.strerror}", next_step="check its permissions") from None


def _text_or_exported(data: bytes, name: str) -> tuple[jax.export.Exported | None, str | bytes]:
    try:
        text = data.decode()
        if "\0" not in text:
            return None, text
    except UnicodeDecodeError:
        pass
    try:
        exported = cast(Any, jax.export.deserialize)(bytearray(data))
    except Exception:  # flatbuffers raises whatever it stumbles over
        raise InputError(
            name,
            "is neither MLIR text, MLIR bytecode, a StableHLO portable artifact nor a serialized jax.export.Exported",
            facts=f"{len(data)} bytes, the first are {data[:8].hex(' ')}",
            next_step="export the module again, as text: jax.jit(f).lower(...).as_text()",
        ) from None
    return exported, exported.mlir_module_serialized


def _syntax_error(error: mlir.MlirSyntaxError, name: str, data: str | bytes) -> InputError:
    first = error.diagnostics[0]
    where = f"{name}:{first.line}:{first.column}" if first.line else name
    message = first.message
    next_step = "fix the module there, or export it again"
    if "unregistered dialect" in message:
        message = "an operation of an unknown dialect"
        next_step = "legalize it first: hlo_lower reads the dialects that jaxlib registers (func, stablehlo, chlo, ...)"
    elif message.startswith("custom op") and first.line <= 1:
        next_step = "is this MLIR? A module begins with `module` or `#loc`"
    elif "unregistered operation" in message:
        next_step = "the operation may be of a newer StableHLO: export the module for an older version"
    elif not first.line:
        next_step = "the file may be cut off, or of a newer StableHLO: export it again"
    return InputError(where, message, facts=_source_line(data, first.line), next_step=next_step)


def _source_line(data: str | bytes, line: int) -> str:
    """The line that an error is about, cut to a readable length; "" where there is none."""
    if isinstance(data, bytes) or line < 1:
        return ""
    text = data.split("\n", line)[line - 1].strip()
    return text if len(text) <= 100 else f"{text[:100]} ..."


def _has_locations(module: mlir.RawModule, data: str | bytes) -> bool:
    """Whether the input came with locations: jaxlib gives text without any the places in its own buffer."""
    if isinstance(data, str) and "loc(" not in data:
        return False

    def is_located(raw: mlir.RawOperation) -> bool:
        (file, _, _), names = mlir.read_location(raw.location)
        return file not in ("", mlir.PARSE_BUFFER) or bool(names)

    return mlir.any_operation(module.operation, is_located)
