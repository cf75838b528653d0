"""A file that appears whole or not at all, and that is known to be writable before the work is done."""

import os
import shutil
import stat
import sys
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

from hlo_lower.base.contained.status_board import temporary_file
from hlo_lower.base.errors import InputError

STANDARD = "-"


def check_writable(path: str) -> None:
    """Check that a file can be written there, without touching it; "-" is standard output.

    Raises:
      InputError: the folder does not exist or does not admit files, or the path names a folder or a file that is
        protected.
    """
    if path == STANDARD:
        return
    real = Path(os.path.realpath(path))
    if real.is_dir():
        raise InputError(path, "is a directory, cannot write a file there", next_step=f"name a file in it: {path}/OUT")
    folder, shown = real.parent, os.path.dirname(path) or "."
    if not folder.exists():
        raise InputError(path, f"the folder {shown} does not exist", next_step=f"make it: mkdir -p {shown}")
    if not folder.is_dir():
        raise InputError(path, f"{shown} is not a folder", next_step="name a file in a folder")
    if real.exists():
        if not os.access(real, os.W_OK):
            raise InputError(path, "the file is write-protected", next_step="name another file, or change its mode")
        if not stat.S_ISREG(real.stat().st_mode):
            return  # a device or a pipe is written to, not replaced
    if not os.access(folder, os.W_OK | os.X_OK):
        raise InputError(path, f"no permission to write in {shown}", next_step="name a file in another folder")


def check_package(path: str, suffix: str) -> None:
    """Check that a file, or a folder that is one thing, can be written there: as `check_writable`, but a folder of this
    suffix that is there may be replaced.

    Raises:
      InputError: as `check_writable`; or a folder is there that is none of these.
    """
    real = Path(os.path.realpath(path))
    if real.is_dir() and real.suffix == suffix and (real / MANIFEST).is_file():
        path = os.fspath(real.parent / f"{real.name}.new")  # which is written beside it
    check_writable(path)


MANIFEST = "Manifest.json"
"""What a folder holds that is one thing, as Core ML's packages are."""


def check_folder(path: str) -> None:
    """Check that a folder is there and admits files, or can be made, without making it.

    Raises:
      InputError: what is there is no folder, or does not admit files.
    """
    if not path:
        raise InputError("", "an empty name is not a folder", next_step="name a folder")
    real = Path(os.path.realpath(path))
    nearest = next(one for one in (real, *real.parents) if one.exists())
    if not nearest.is_dir():
        raise InputError(path, f"{nearest if nearest != real else path} is not a folder", next_step="name a folder")
    if not os.access(nearest, os.W_OK | os.X_OK):
        raise InputError(path, f"no permission to write in {nearest}", next_step="name another folder")


def make_folder(path: str) -> None:
    """Make a folder where it is missing.

    Raises:
      InputError: it cannot be made, or does not admit files.
    """
    check_folder(path)
    try:
        Path(path).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(
            path, f"the folder cannot be made: {error.strerror}", next_step="name another folder"
        ) from None


def write_whole(path: str, data: bytes) -> None:
    """Write a file through a temporary one beside it, which never stays; "-" is standard output.

    Raises:
      InputError: the file cannot be written (a full disk, a folder that has gone).
    """
    if path == STANDARD:
        sys.stdout.flush()
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
        return
    real = Path(os.path.realpath(path))
    try:
        if real.exists() and not real.is_file():
            real.write_bytes(data)
        else:
            _replace(real, data)
    except OSError as error:
        raise _not_written(path, error) from None


@contextmanager
def room_beside(path: str) -> Generator[str]:
    """A name beside a file, or a folder that is one thing, at which someone else makes it, for `put_in_place`. Nothing
    that is not put in place stays.

    Raises:
      InputError: there is no room (a full disk, a folder that has gone).
    """
    real = Path(os.path.realpath(path))
    room = _temporary(real)
    with temporary_file(os.fspath(room)):
        try:
            room.mkdir()
        except OSError as error:
            raise _not_written(path, error) from None
        try:
            yield os.fspath(room / real.name)
        finally:
            shutil.rmtree(room, ignore_errors=True)


def put_in_place(made: str, path: str) -> None:
    """Put what was made in a `room_beside` a path there, in the place of what is there.

    Raises:
      InputError: it cannot be put there; what was there stays.
    """
    real, former = Path(os.path.realpath(path)), Path(f"{made}.former")
    try:
        if real.is_dir():  # a folder is not replaced in one step
            os.replace(real, former)
        try:
            os.replace(made, real)
        except OSError:
            if former.exists():
                os.replace(former, real)
            raise
    except OSError as error:
        raise _not_written(path, error) from None


def _temporary(real: Path) -> Path:
    return real.with_name(f".{real.name[:200]}.{os.getpid()}.tmp")


def _not_written(path: str, error: OSError) -> InputError:
    return InputError(path, f"cannot be written: {error.strerror}", next_step="name another file")


def _replace(real: Path, data: bytes) -> None:
    temporary = _temporary(real)
    try:
        with temporary_file(os.fspath(temporary)):
            with open(temporary, "xb") as file:
                file.write(data)
                file.flush()
                if real.exists():
                    os.fchmod(file.fileno(), stat.S_IMODE(real.stat().st_mode))
            os.replace(temporary, real)
    except BaseException:
        with suppress(OSError):
            temporary.unlink()
        raise
