"""The modules that files and folders name: each once, in an order that does not depend on the file system."""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import cast

from hlo_lower.base.arguments import is_listed, short_repr
from hlo_lower.base.errors import InputError

SUFFIXES = (".mlir", ".mlirbc", ".stablehlo", ".vhlo", ".portable", ".exported", ".jax_exported", ".jax")
"""Files of a folder that are taken as modules, in whatever case the suffix is written."""

SNIFFED = (".bc", ".bin")
"""Suffixes that other formats use too (LLVM bitcode, raw weights): taken where the content is MLIR bytecode."""

BYTECODE = b"ML\xefR"
TOP = "."


@dataclass(frozen=True)
class Selected:
    """A module to be read, or what was named and cannot be."""

    file: str  # its name in reports: the path as it was given, within a folder continued from there; "-" has no path
    # its folder: relative to the folder that was given, "." for that one itself; where several paths were given the
    # folder as its report names it
    group: str
    source: Path | bytes  # a path, or the content
    error: InputError | None = None  # why there is nothing to read


def select(paths: Sequence[str | PathLike[str] | Selected]) -> tuple[Selected, ...]:
    """Find the modules that paths name: files as they are, whatever their suffix, and folders searched to the bottom.

    A folder gives its files that end in one of SUFFIXES, or in one of SNIFFED if they begin as MLIR bytecode does,
    sorted by name, before its sorted subfolders. Hidden files and folders (".git") are skipped. Links are followed; a
    file or folder that is reached twice, also through a loop of links, is taken the first time. What is selected
    already (the bytes of standard input) is kept.

    Raises:
      InputError: the only path is a folder without a module, or one that cannot be listed.
    """
    _check_paths(paths)
    found: list[Selected] = []
    taken: set[str] = set()
    alone = len(paths) == 1
    for path in paths:
        for module in [path] if isinstance(path, Selected) else _at(Path(path), os.fspath(path), alone=alone):
            real = "" if isinstance(module.source, bytes) else os.path.realpath(module.source)
            if not real or real not in taken:
                found.append(module)
                taken.add(real)
    if alone and len(found) == 1 and found[0].error is not None:
        raise found[0].error
    return tuple(found)


def _check_paths(paths: object) -> None:
    """Check that paths are given, and not the text of a module, which has none."""
    given = cast(Sequence[object], paths) if is_listed(paths) else [paths]
    for path in given:
        is_text = isinstance(path, str) and ("\n" in path or "\0" in path)
        if is_text or not isinstance(path, (str, PathLike, Selected)):
            raise InputError(
                "paths",
                f"{short_repr(path)} is not a path",
                facts="it is the text of a module" if is_text else f"it is of type {type(path).__name__}",
                next_step="hl.classify accepts a module in any form; this accepts files and folders",
            )


def _at(path: Path, given: str, *, alone: bool) -> list[Selected]:
    if path.is_dir():
        return _in_folder(path, alone=alone)
    return [Selected(_printable(given), _printable(path.parent.as_posix()), path)]


def _in_folder(top: Path, *, alone: bool) -> list[Selected]:
    """The modules below a folder, and an entry with an error for each folder that cannot be listed, or for none."""
    found: list[Selected] = []
    for folder, files in _folders(top):
        group = folder.relative_to(top) if alone else folder
        if isinstance(files, InputError):
            found.append(Selected(files.where, _printable(group.as_posix()), folder, files))
            continue
        found += [Selected(_printable(file.as_posix()), _printable(group.as_posix()), file) for file in files]
    if not found:
        shown = _printable(os.fspath(top))
        error = InputError(
            shown,
            "is a directory without a module in it",
            facts=f"modules end in {', '.join(SUFFIXES)}; in {', '.join(SNIFFED)} if they are MLIR bytecode",
            next_step="name a file, whatever it ends in, or a folder that holds modules",
        )
        found.append(Selected(shown, _printable((Path(TOP) if alone else top).as_posix()), top, error))
    return found


def _folders(top: Path) -> Iterator[tuple[Path, list[Path] | InputError]]:
    """Each folder, from the top, with its modules; each real one once, so that a loop of links has an end."""
    seen: set[str] = set()
    stack = [top]
    while stack:
        folder = stack.pop()
        real = os.path.realpath(folder)
        if real in seen:
            continue
        seen.add(real)
        try:
            with os.scandir(folder) as listed:
                entries = sorted((entry for entry in listed if not entry.name.startswith(".")), key=lambda e: e.name)
        except OSError as error:
            told = f"the folder cannot be listed: {error.strerror}"
            yield folder, InputError(_printable(folder.as_posix()), told, next_step="check its permissions")
            continue
        yield folder, [folder / entry.name for entry in entries if _is_module(entry)]
        stack += [folder / entry.name for entry in reversed(entries) if entry.is_dir()]


def _is_module(entry: os.DirEntry[str]) -> bool:
    """By suffix, and by content where the suffix does not tell; a link to nowhere is one that cannot be read."""
    suffix = os.path.splitext(entry.name)[1].lower()
    if suffix not in SUFFIXES + SNIFFED or not (entry.is_file() or (entry.is_symlink() and not entry.is_dir())):
        return False
    return suffix in SUFFIXES or _begins_as_bytecode(entry.path)


def _begins_as_bytecode(path: str) -> bool:
    try:
        with open(path, "rb") as file:
            return file.read(len(BYTECODE)) == BYTECODE
    except OSError:
        return False


def _printable(path: str) -> str:
    """A path as text that any report can hold; bytes that are not UTF-8 become escapes."""
    return os.fsencode(path).decode(errors="backslashreplace")
