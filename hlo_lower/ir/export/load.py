"""From a command line to a function: "models/llama.py:decode" or "package.module:function"."""

import inspect
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from hlo_lower.base.errors import InputError
from hlo_lower.ir.export.model_file import EXPORTS, HOW, ExportTarget, entries_of, target_of
from hlo_lower.ir.export.user_code import importable, load_file, load_module


def load_function(
    spec: str, settings: Mapping[str, str] | None = None, shapes: Sequence[str] | None = None
) -> ExportTarget:
    """Load a function named "FILE.py:function" or "package.module:function", with its example arguments.

    Args:
      spec: a path, or a module that can be imported from here or the current folder, and a function of it.
      shapes: what it is going to be exported with: of all arguments, where the file names none.
      settings: fields of the file's config and their values as typed ({"layers": "80"}); "preset" picks its start.

    Raises:
      InputError: no such file, module or function; the file does not run; no example arguments; a setting that does not
        exist or does not fit.
    """
    place, _, function = spec.rpartition(":")
    if not place or not function.isidentifier():
        raise InputError(
            where=spec,
            what="not the name of a function in a file or module",
            nearest=("models/llama.py:decode", "package.module:function"),
        )
    path = Path(os.path.abspath(place))
    is_file = place.endswith(".py") or os.sep in place or path.is_file()
    folders = (str(path.parent),) if is_file else (os.getcwd(),)
    with importable(folders):
        module = load_file(path, place) if is_file else load_module(place)
        fn = getattr(module, function, None)
        entries = entries_of(module, place)
        if not callable(fn):
            raise _no_such_function(module, place, function, entries)
        if function not in entries and shapes:
            return target_of(spec, place, fn, {"args": ()}, settings or {}, module, folders)
        if function not in entries:
            raise InputError(
                where=place,
                what=f"{function} has no example arguments",
                facts=f"{EXPORTS} names {', '.join(entries)}" if entries else f"the file has no {EXPORTS}",
                next_step=f'--shapes "f32[8, 4]" "i32[]" says them; or add to it: {HOW.replace("FUNCTION", function)}',
            )
        return target_of(spec, place, fn, entries[function], settings or {}, module, folders)


def _no_such_function(module: ModuleType, place: str, function: str, entries: Mapping[str, Any]) -> InputError:
    defined = [name for name, value in vars(module).items() if _is_own_function(value, module)]
    ordered = [*entries, *(name for name in defined if name not in entries)]
    what = f"{function} is not a function" if hasattr(module, function) else f"no function {function}"
    return InputError(
        where=place,
        what=what,
        facts=f"functions there: {', '.join(ordered)}" if ordered else "it has no functions",
        next_step=f"hlo-lower export {place}:{ordered[0]} -o OUT" if ordered else "",
    )


def _is_own_function(value: Any, module: ModuleType) -> bool:
    return callable(value) and not inspect.isclass(value) and getattr(value, "__module__", None) == module.__name__
