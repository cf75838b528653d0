"""Read a module from whatever form it comes in."""

import errno
from contextlib import suppress
from graphlib import CycleError, TopologicalSorter
from os import PathLike
from pathlib import Path
from typing import Any, TypeAlias, cast

import jax.export
import jax.stages

from hlo_lower.base.arguments import short_repr
from hlo_lower.base.contained.prober import probe
from hlo_lower.base.contained.status_board import is_contained, reading
from hlo_lower.base.errors import InputError
from hlo_lower.base.foreign_files import FIRST_BYTES, check_is_module
from hlo_lower.ir import mlir
from hlo_lower.ir.suspicion import could_kill
from hlo_lower.ir.view import Graph, Node
from hlo_lower.ir.writer import to_bytecode, to_text

Source: TypeAlias = str | bytes | bytearray | PathLike[str] | jax.export.Exported | jax.stages.Lowered

OBJECT_NAME = "<module>"
FORMS = "path, text, bytes, jax.export.Exported, jax.stages.Lowered or hl.Graph"
LONGEST_NAME = 255
"""Characters of a file's name that a message repeats."""

MOST_NAMED = 6
"""Functions that a message names."""


def read(
    source: Source, name: str | None = None, *, contained: bool | None = None, is_structured: bool = False
) -> Graph:
    """Read a module and check that it can be converted.

    Args:
      source: a path; MLIR text (pretty or generic) as str; text, MLIR bytecode, a portable artifact or a serialized
        `jax.export.Exported` as bytes; an `Exported`; a `jax.stages.Lowered`. A str is a path if it has no line break
        and no brace, otherwise text.
      name: the name for messages and reports; by default the path, or "<module>".
      contained: try it in a child process first, which costs its start once (about two seconds) and reading twice:
        jaxlib aborts the process at some damaged modules, which is an error then. By default that is done for files
        and bytes that are not text, and for text that is nested very deeply or holds bytes as escapes; not for objects
        of JAX.
      is_structured: whether text in linalg and scf is read, too, which only `hl.tile(..., by_hand=hl.IntoLoop(...))`
        takes.

    Returns:
      The module as a graph, which `hl.lower`, `hl.classify`, `hl.bind` and `hl.verify` take as it is.

    Raises:
      InputError: it cannot be read, parsed or verified, is empty, or has no public function; the child died of it, or
        needed too much time or memory; or it is nothing that a module comes in.

    Example:
      >>> hl.read("decode.mlir").main.name
      'main'
    """
    _check_source(source)
    if not isinstance(name, str | None):  # pyright: ignore[reportUnnecessaryIsInstance]  # a user's own value
        raise InputError("name", f"{short_repr(name)} is not text", next_step='write name="decode.mlir"')
    exported: jax.export.Exported | None = None
    is_object = False
    if isinstance(source, jax.export.Exported):
        exported, data, is_object = source, source.mlir_module_serialized, True
    elif isinstance(source, jax.stages.Lowered):
        data, is_object = mlir.print_module(cast(Any, source.compiler_ir("stablehlo")), locations=True), True
    elif isinstance(source, PathLike) or (isinstance(source, str) and _is_path(source)):
        name = name or str(source)
        data = file_bytes(Path(source), name)
    else:
        data = bytes(source) if isinstance(source, bytearray) else source  # what Exported.serialize gives
    name = name or OBJECT_NAME
    if not data or data.isspace():
        raise InputError(name, "the input is empty", next_step="give a StableHLO module")
    if not is_object:
        check_is_module(name, data[:FIRST_BYTES].encode(errors="replace") if isinstance(data, str) else data)
    with reading(name, len(data)):
        data = _as_text(data)
        is_suspicious = not is_object and (isinstance(data, bytes) or could_kill(data))
        if contained is None:
            contained = is_suspicious and not is_contained()
        if contained and (error := probe(data, name)) is not None:
            raise error
        if isinstance(data, bytes) and not mlir.is_bytecode(data):
            exported, data = _read_exported(data, name)
        graph = _parse_graph(data, name, exported, is_structured=is_structured)
        if is_suspicious and is_contained() and isinstance(data, str):
            to_text(graph)  # which can die of what parsing survives: as long as it is known what this process reads
    return graph


def copy_graph(source: Graph, name: str | None = None) -> Graph:
    """Copy a graph, so that it can be changed.

    Where a module names no source, its places are lines of its own text: bytecode keeps them, and another text would
    give others. Of places that it does name bytecode drops where a range ends.
    """
    if source.is_structured:
        module = mlir.parse_module(to_bytecode(source), source.context)
        graph = Graph(module, name or source.name, has_locations=source.has_locations)
        graph.is_structured = True
        return graph
    form = to_text(source) if source.has_locations else to_bytecode(source)
    graph = read(form, name or source.name, contained=False)
    graph.has_locations, graph.exported = source.has_locations, source.exported
    return graph


def _check_source(source: object) -> None:
    """Check that a module is given in a form that can be read; what is close to one is told how it becomes one."""
    if isinstance(source, (str, bytes, bytearray, PathLike, jax.export.Exported, jax.stages.Lowered)):
        return
    next_step = "give its path or its text"
    if isinstance(source, Graph):
        next_step = "it is read already: hl.lower(graph), hl.classify(graph), hl.bind(graph, sizes) accept it"
    elif isinstance(getattr(source, "graph", None), Graph):
        next_step = "its .graph is the module, and its .text is the module as text"
    elif callable(source):
        name = getattr(source, "__name__", "f")
        name = name if name.isidentifier() else "f"
        next_step = f"hl.export({name}, *args) makes a module of a function"
    raise InputError(
        "",
        f"{short_repr(source)} is not a module",
        facts=f"it is of type {type(source).__name__}; a module is a {FORMS}",
        next_step=next_step,
    )


def text_of(source: Path | bytes, name: str) -> str:
    """The text of a module as it stands, in whatever dialect; of bytecode, which is read, as it is printed.

    Args:
      source: a file, or what was in it.
      name: the name for messages.

    Raises:
      InputError: it cannot be read.
    """
    data = source if isinstance(source, bytes) else file_bytes(source, name)
    try:
        return data.decode()
    except UnicodeDecodeError:
        return to_text(read(data, name))


def _parse_graph(
    data: str | bytes, name: str, exported: jax.export.Exported | None, *, is_structured: bool = False
) -> Graph:
    is_named = isinstance(data, str) and _names_no_stablehlo(data) and any(f"{name}." in data for name in STRUCTURED)
    is_structured = is_structured and is_named
    try:
        module = mlir.parse_module(data, mlir.structured_context() if is_structured else None)
    except mlir.MlirSyntaxError as error:
        raise _syntax_error(error, name, data) from None
    has_shardy = "sdy" in data if isinstance(data, str) else b"sdy" in data
    locations = _has_locations(module, data)
    graph = Graph(module, name, has_locations=locations, exported=exported, has_shardy=has_shardy)
    _check_names(graph)
    if not any(f.is_public and f.has_body for f in graph.functions.values()):
        found = ", ".join(f"@{f}" for f in graph.functions) or "none"
        raise InputError(
            name,
            "the module has no public function with a body",
            facts=f"functions: {found}",
            next_step="make the entry point public: func.func public @main(...)",
        )
    if circle := _circle_of_calls(graph):
        raise InputError(
            name,
            "functions call themselves, which StableHLO has no meaning for",
            facts=" calls ".join(f"@{function}" for function in circle[:MOST_NAMED]),
            next_step="write the loop as a stablehlo.while",
        )
    if not is_structured and _names_no_stablehlo(data) and _is_in_linalg(module):
        raise InputError(name, IN_LINALG[0], next_step=IN_LINALG[1])
    graph.is_structured = is_structured
    for raw in module.body.operations:
        outside = raw.operation.name != "func.func" and next(iter(_scatters_outside(raw.operation)), None)
        if outside:
            raise InputError(
                str(graph.location(outside)),
                "a stablehlo.scatter stands in no function",
                next_step="move it into a function: func.func public @main(...)",
            )
    return graph


STRUCTURED = ("linalg", "scf")
"""The dialects of which a module is, where it is no StableHLO any more."""


def _names_no_stablehlo(data: str | bytes) -> bool:
    return "stablehlo" not in data if isinstance(data, str) else b"stablehlo" not in data


IN_LINALG = (
    "the module is in linalg, which hlo_lower writes and does not read",
    "a consumer of linalg compares it with the original: hlo-lower verify --on iree BEFORE AFTER",
)
"""What such a module is told, and what to do."""


def _is_in_linalg(module: mlir.RawModule) -> bool:
    """Whether a module holds ops of scf or tensor and none of chlo: linalg without an op of that name."""
    dialects = {raw.name.partition(".")[0] for raw in mlir.operations_within(module.operation)}
    return bool(dialects & {"scf", "tensor"}) and "chlo" not in dialects


def _circle_of_calls(graph: Graph) -> list[str]:
    """Functions of which each calls the next and the last is the first again; none where there is no such circle."""
    callees: dict[str, set[str]] = {}
    for callee, nodes in graph.calls.items():
        for node in nodes:
            with suppress(ValueError):  # it stands in no function
                callees.setdefault(graph.function_of(node).name, set()).add(callee)
    try:
        TopologicalSorter({name: sorted(called) for name, called in callees.items()}).prepare()
    except CycleError as error:
        return list(reversed(error.args[1]))
    return []


def _scatters_outside(raw: mlir.RawOperation) -> list[Node]:
    """The scatters below an operation of a module that is no function, those in functions of inner modules left out."""
    found: list[Node] = []

    for node in (Node(inner) for inner in mlir.operations_within(raw) if inner.name == "stablehlo.scatter"):
        around = node.parent
        while around is not None and around.name != "func.func":
            around = around.parent
        if around is None:
            found.append(node)
    return found


def _check_names(graph: Graph) -> None:
    """Check that functions have names that are text: MLIR takes any bytes, the bindings do not."""
    try:
        _ = graph.functions
    except (UnicodeDecodeError, RuntimeError) as error:  # the latter is what a walk makes of the bindings' exception
        if isinstance(error, RuntimeError) and "conversion error" not in str(error):
            raise
        raise InputError(
            graph.name, "the name of a function is not UTF-8", next_step="rename it, or export the module again"
        ) from None


def _is_path(source: str) -> bool:
    return bool(source) and "\n" not in source and "{" not in source


def file_bytes(path: Path, name: str) -> bytes:
    """What is in a file.

    Raises:
      InputError: there is none, it is a folder, or it cannot be read.
    """
    try:
        if path.is_dir():
            raise InputError(name, "is a directory, not a module", next_step=f"name a file in it: {name}/*.mlir")
        with reading(name, path.stat().st_size):
            return path.read_bytes()
    except FileNotFoundError:
        raise InputError(name, "no such file", next_step="check the path") from None
    except OSError as error:
        long = error.errno == errno.ENAMETOOLONG
        next_step = "is this a module's text? A str without a line break is a path" if long else "check its permissions"
        where = short_repr(name) if len(name) > LONGEST_NAME else name
        raise InputError(where, f"cannot be read: {error.strerror}", next_step=next_step) from None
    except ValueError as error:  # a zero byte
        raise InputError(short_repr(name), f"is not a path: {error}", next_step="check the path") from None


def _as_text(data: str | bytes) -> str | bytes:
    """Text as str, and what is not text as bytes."""
    if isinstance(data, bytes) and not mlir.is_bytecode(data) and b"\0" not in data:
        try:
            return data.decode()
        except UnicodeDecodeError:
            pass
    return data


def _read_exported(data: bytes, name: str) -> tuple[jax.export.Exported, bytes]:
    try:
        exported = cast(Any, jax.export.deserialize)(bytearray(data))
    except Exception:  # flatbuffers raises whatever it stumbles over
        raise InputError(
            name,
            "is neither MLIR text, MLIR bytecode, a StableHLO portable artifact nor a serialized jax.export.Exported",
            facts=f"{len(data)} bytes, the first are {data[:8].hex(' ')}",
            next_step="export the module again, as text: jax.jit(f).lower(...).as_text(debug_info=True)",
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
    elif "Dialect `linalg' not found" in message:
        message, next_step = IN_LINALG
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
