"""What commands read: modules from files or standard input, and arrays to run them on."""

import io
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hlo_lower.base.errors import InputError
from hlo_lower.base.whole_files import STANDARD

if TYPE_CHECKING:
    from hlo_lower.api.many.files import Selected


def module_source(name: str) -> Path | bytes:
    """A module as `hl.read` takes it: a path, or the bytes of standard input for "-"."""
    return sys.stdin.buffer.read() if name == STANDARD else Path(name)


def selected_modules(names: Sequence[str]) -> "tuple[Selected, ...]":
    """The modules that files, folders and "-" name (see `hlo_lower.api.many.select`)."""
    from hlo_lower.api.many.files import Selected, select

    standard = (Selected(STANDARD, ".", sys.stdin.buffer.read()) for _ in range(names.count(STANDARD)))
    return select([next(standard) if name == STANDARD else name for name in names])


def arrays_of(file: str) -> list[Any] | dict[str, Any]:
    """The arrays of an .npz file, or InputError: a list where they are positional (arr_0, arr_1, ...), else by name."""
    import numpy as np

    try:
        with np.load(file, allow_pickle=False) as loaded:
            arrays: dict[str, Any] = dict(loaded)
    except FileNotFoundError:
        raise InputError(file, "no such file", next_step="check the path") from None
    except Exception as error:  # zipfile, zlib and numpy each have their own
        told = (str(error).splitlines() or [type(error).__name__])[0]
        raise InputError(file, f"is not an .npz file of arrays: {told}", next_step="write it with np.savez") from None
    if all(re.fullmatch(r"arr_\d+", key) for key in arrays):
        return [arrays[f"arr_{number}"] for number in range(len(arrays))]
    return arrays


def archive_of(arrays: Mapping[int, Any]) -> bytes:
    """An .npz file of a function's arguments, by place, as `arrays_of` reads it."""
    import numpy as np

    file = io.BytesIO()
    np.savez(file, **{f"arr_{place}": arrays[place] for place in sorted(arrays)})
    return file.getvalue()
