"""From a Python function to StableHLO: which function, with which arguments, and text that is the same everywhere.

A model file says what its functions take in a dict named `EXPORTS`, plain data that needs no import from here:

    def step(cache, row, position): ...

    EXPORTS = {
        "step": {
            "args": (jax.ShapeDtypeStruct((8, 4), "float32"), ...),  # one per positional argument; pytrees are fine
            "donate": (0,),                                          # optional: arguments the caller gives away
        }
    }

Where the size is a parameter, the entry names a dataclass instance, `"args"` is a function of it, and the function
takes it as the keyword `config`:

    EXPORTS = {"step": {"args": step_args, "config": Config(), "presets": {"large": Config(layers=80)}}}

`--set layers=4` replaces a field of it and `--set preset=large` starts from another instance.
"""

import dataclasses
import difflib
import importlib
import importlib.util
import inspect
import itertools
import os
import re
import sys
import traceback
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType, TracebackType
from typing import Any, cast

import jax
import jax.export

from hlo_lower import mlir
from hlo_lower.errors import InputError

EXPORTS = "EXPORTS"
ENTRY_KEYS = ("args", "config", "presets", "donate")
EXPORT_PLATFORMS = ("cpu",)

_jax: Any = jax  # its annotations leave jit, tree and config partly unknown
_serial = itertools.count()


# --- tracing ----------------------------------------------------------------------------------------------------


def export(
    fn: Callable[..., Any],
    *args: Any,
    shapes: Sequence[str] | None = None,
    donate: Sequence[int] = (),
    static: Mapping[str, Any] | None = None,
    name: str | None = None,
    platforms: Sequence[str] | None = None,
) -> jax.export.Exported:
    """Trace a function and export it as StableHLO, with source locations that name no machine.

    Args:
      fn: a Python function, or one under `jax.jit`, which then keeps its own donation.
      *args: per positional argument a pytree of arrays, scalars or `jax.ShapeDtypeStruct`; only shapes and
        dtypes count.
      shapes: symbolic shapes ("b, 2*s+1, 64"), one per positional argument or one per leaf of them, in order. "..."
        keeps the dims that it stands for, "_" keeps one. Equal names are equal sizes. dtypes are those of args.
      donate: positions of the arguments that the caller gives away; the module says so (`tf.aliasing_output`).
      static: keyword arguments that are not traced (a config).
      name: the module is called `jit_<name>`; by default the function's name.
      platforms: platforms to lower for ("cpu", "cuda", ...); by default JAX's default backend.

    Raises:
      InputError: the function raises while it is traced (the cause is chained), or shapes do not fit args.
    """
    label = name or str(getattr(fn, "__name__", "function"))
    specs = _specs(fn, args, shapes)
    _check_widths(label, specs)
    with _portable_locations(_source_folder(fn)):
        try:
            jitted = _jitted(fn, donate, static or {}, label)
            exporter = jax.export.export(jitted, platforms=platforms)
            return exporter(*specs)
        except InputError:
            raise
        except Exception as error:
            raise InputError(
                where=_user_line(error, _source_file(fn)) or label,
                what=f"tracing {label} failed: {_one_line(error)}",
                facts=f"arguments {', '.join(_describe(spec) for spec in specs)}",
            ) from error


def exported_text(exported: jax.export.Exported) -> str:
    """The module of an `Exported` as text with its source locations, as jaxlib prints it."""
    context = mlir.make_context()
    module = mlir.parse_module(bytes(exported.mlir_module_serialized), context)
    return mlir.print_module(module, locations=True)


def _jitted(fn: Callable[..., Any], donate: Sequence[int], static: Mapping[str, Any], label: str) -> Any:
    if hasattr(fn, "lower") and hasattr(fn, "trace") and not donate and not static:
        return fn

    def traced(*args: Any) -> Any:
        return fn(*args, **static)

    # A fresh function each time: JAX caches what it traced by function, and with it the source locations.
    traced.__name__ = traced.__qualname__ = label
    if (signature := _positional_signature(fn)) is not None:
        traced.__signature__ = signature  # pyright: ignore[reportFunctionMemberAccess]
    return _jax.jit(traced, donate_argnums=tuple(donate))


def _positional_signature(fn: Callable[..., Any]) -> inspect.Signature | None:
    """The signature without keyword-only parameters: JAX takes the names of the arguments from it."""
    try:
        signature = inspect.signature(fn)
    except (TypeError, ValueError):
        return None
    kept = [p for p in signature.parameters.values() if p.kind is not p.KEYWORD_ONLY and p.kind is not p.VAR_KEYWORD]
    return signature.replace(parameters=kept, return_annotation=inspect.Signature.empty)


def _specs(fn: Callable[..., Any], args: Sequence[Any], shapes: Sequence[str] | None) -> tuple[Any, ...]:
    if shapes is None:
        return tuple(args)
    flat: list[tuple[list[Any], Any]] = [_jax.tree.flatten(arg) for arg in args]
    leaves = [leaf for arg_leaves, _ in flat for leaf in arg_leaves]
    if len(shapes) == len(args):
        per_leaf = [shape for shape, (arg_leaves, _) in zip(shapes, flat, strict=True) for _ in arg_leaves]
    else:
        per_leaf = list(shapes)
    label = str(getattr(fn, "__name__", "function"))
    if len(per_leaf) != len(leaves):
        raise InputError(
            where=label,
            what=f"{len(shapes)} shapes for {len(args)} arguments",
            facts=f"arguments {', '.join(_describe(arg) for arg in args)}",
            next_step='give one shape per argument, "..." for those that stay as they are',
        )
    scope = jax.export.SymbolicScope()
    symbolic: list[Any] = []
    for leaf, shape in zip(leaves, per_leaf, strict=True):
        like, dtype = jax.numpy.shape(leaf), _dtype(leaf)
        try:
            dims = jax.export.symbolic_shape(shape, scope=scope, like=like)
        except Exception as error:
            raise InputError(
                where=label,
                what=f'shape "{shape}" does not fit {_describe(leaf)}: {_one_line(error)}',
                next_step='write the dims with commas between them, names for sizes left open: --shapes "b, 2*s+1, 64"',
            ) from error
        symbolic.append(jax.ShapeDtypeStruct(dims, dtype))
    remaining = iter(symbolic)
    return tuple(_jax.tree.unflatten(tree, [next(remaining) for _ in arg_leaves]) for arg_leaves, tree in flat)


def _check_widths(label: str, specs: Sequence[Any]) -> None:
    """Refuse specs of 64 bits that JAX would narrow without a word."""
    for leaf in jax.tree.leaves(specs):
        if isinstance(leaf, jax.ShapeDtypeStruct) and jax.dtypes.canonicalize_dtype(leaf.dtype) != leaf.dtype:
            raise InputError(
                where=label,
                what=f"an argument is {_describe(leaf)}, and JAX runs with 64-bit types off",
                next_step="set JAX_ENABLE_X64=1, or ask for 32 bits",
            )


def _dtype(leaf: Any) -> Any:
    return leaf.dtype if hasattr(leaf, "dtype") else jax.dtypes.result_type(leaf)


def _describe(arg: Any) -> str:
    """`float32[8,4]` for a leaf, the number of leaves for a pytree."""
    leaves = jax.tree.leaves(arg)
    if len(leaves) != 1:
        return f"a tree of {len(leaves)} arrays"
    try:
        return f"{_dtype(leaves[0])}[{','.join(str(d) for d in jax.numpy.shape(leaves[0]))}]"
    except TypeError:
        return type(leaves[0]).__name__


# --- source locations -------------------------------------------------------------------------------------------


@contextmanager
def _portable_locations(folder: str | None) -> Generator[None]:
    """Make JAX write one source line per op, in a file named from where it is imported or started.

    A location then names neither the machine's folders nor the frames of whoever called the export.
    """
    changed: dict[str, Any] = {
        "jax_include_full_tracebacks_in_locations": False,
        "jax_hlo_source_file_canonicalization_regex": _roots_pattern(folder),
    }
    before = {option: getattr(jax.config, option) for option in changed}
    try:
        for option, value in changed.items():
            _jax.config.update(option, value)
        yield
    finally:
        for option, value in before.items():
            _jax.config.update(option, value)


def _roots_pattern(folder: str | None) -> str:
    """A pattern of the folders that are cut off a file's name: the longest that holds the file wins.

    These are the current folder, those that Python imports from and, for a model file outside them, its own.
    """
    here = {os.getcwd(), os.path.realpath(os.getcwd())}
    roots = here | {os.path.abspath(entry) for entry in sys.path if entry}
    if folder is not None and folder not in here and any(_holds(root, folder) for root in here):
        roots.discard(folder)  # a model file's folder is on the import path; its name is still the one seen from here
    if folder is not None and not any(_holds(root, folder) for root in roots):
        roots.add(folder)
    ordered = sorted((root.rstrip(os.sep) + os.sep for root in roots), key=lambda root: (-len(root), root))
    return "^(?:" + "|".join(re.escape(root) for root in ordered) + ")"


def _holds(root: str, folder: str) -> bool:
    return folder == root or folder.startswith(root.rstrip(os.sep) + os.sep)


def _source_file(fn: Callable[..., Any]) -> str | None:
    code = getattr(inspect.unwrap(fn), "__code__", None)
    return None if code is None else str(code.co_filename)


def _source_folder(fn: Callable[..., Any]) -> str | None:
    file = _source_file(fn)
    return os.path.dirname(file) if file is not None and os.path.isabs(file) else None


# --- from a command line to a function --------------------------------------------------------------------------


@dataclass(frozen=True)
class ExportTarget:
    """A function of a model file, and what it is exported with.

    Attributes:
      spec: as it was asked for ("models/llama.py:decode").
      fn: the function.
      args: example arguments.
      donate: positions of the arguments that are given away.
      static: keyword arguments that are not traced: the config, where the file has one.
      module: the file as a module.
      folders: where its imports are looked for.
    """

    spec: str
    fn: Callable[..., Any]
    args: tuple[Any, ...]
    donate: tuple[int, ...]
    static: Mapping[str, Any]
    module: ModuleType
    folders: tuple[str, ...]

    def export(self, shapes: Sequence[str] | None = None) -> jax.export.Exported:
        """Export it for CPU, whatever the machine has, so that the text is the same everywhere.

        Raises:
          InputError: as `export`.
        """
        with _importable(self.folders):
            return export(
                self.fn,
                *self.args,
                shapes=shapes,
                donate=self.donate,
                static=self.static,
                name=self.spec.rpartition(":")[2],
                platforms=EXPORT_PLATFORMS,
            )


def load_function(spec: str, settings: Mapping[str, str] | None = None) -> ExportTarget:
    """Load a function named "FILE.py:function" or "package.module:function", with its example arguments.

    Args:
      spec: a path, or a module that can be imported from here or the current folder, and a function of it.
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
    with _importable(folders):
        module = _load_file(path, place) if is_file else _load_module(place)
        fn = getattr(module, function, None)
        entries = _entries(module, place)
        if not callable(fn):
            raise _no_such_function(module, place, function, entries)
        if function not in entries:
            raise InputError(
                where=place,
                what=f"{function} has no example arguments",
                facts=f"{EXPORTS} names {', '.join(entries)}" if entries else f"the file has no {EXPORTS}",
                next_step=f"add to it: {_HOW.replace('FUNCTION', function)}",
            )
        return _target(spec, place, fn, entries[function], settings or {}, module, folders)


@contextmanager
def _importable(folders: Sequence[str]) -> Generator[None]:
    added = [folder for folder in folders if folder not in sys.path]
    sys.path[:0] = added
    try:
        yield
    finally:
        for folder in added:
            if folder in sys.path:
                sys.path.remove(folder)


def _load_file(path: Path, place: str) -> ModuleType:
    if path.is_dir():
        raise InputError(
            where=place, what="a folder, not a Python file", next_step=f"name a file in it: {place}/FILE.py:fn"
        )
    if not path.is_file():
        beside = sorted(p.name for p in path.parent.glob("*.py")) if path.parent.is_dir() else []
        close = difflib.get_close_matches(path.name, beside, n=3)
        raise InputError(where=place, what="no such file", nearest=tuple(str(Path(place).parent / p) for p in close))
    if path.suffix != ".py":
        raise InputError(where=place, what="not a Python file", facts=f'its name ends in "{path.suffix}", not ".py"')
    unique = f"hlo_lower_export_{next(_serial)}_{path.stem}"
    found = importlib.util.spec_from_file_location(unique, path)
    assert found is not None
    assert found.loader is not None
    module = importlib.util.module_from_spec(found)
    sys.modules[unique] = module  # dataclasses look their module up
    with _user_errors(place, str(path)):
        try:
            found.loader.exec_module(module)
        except BaseException:
            del sys.modules[unique]
            raise
    return module


def _load_module(place: str) -> ModuleType:
    with _user_errors(place, None):
        try:
            return importlib.import_module(place)
        except ModuleNotFoundError as error:
            if error.name is None or not (place == error.name or place.startswith(f"{error.name}.")):
                raise
            raise InputError(
                where=place,
                what=f"no module named {error.name}",
                facts="looked in the current folder and where Python imports from",
                next_step=f"name a file by its path: {place.replace('.', '/')}.py:FUNCTION",
            ) from None


@contextmanager
def _user_errors(place: str, file: str | None) -> Generator[None]:
    """Turn what running a user's file raises into one message with the file and the line."""
    try:
        yield
    except InputError:
        raise
    except SyntaxError as error:
        line = f":{error.lineno}" if error.lineno else ""
        where = _shown(error.filename) if error.filename else place
        raise InputError(where=f"{where}{line}", what=f"not valid Python: {_one_line(error)}") from error
    except (Exception, SystemExit) as error:
        where = _user_line(error, file) or place
        raise InputError(where=where, what=f"running the file failed: {_one_line(error)}") from error


def _entries(module: ModuleType, place: str) -> Mapping[str, Any]:
    entries = getattr(module, EXPORTS, {})
    if isinstance(entries, Mapping):
        return cast(Mapping[str, Any], entries)
    raise InputError(
        where=place, what=f"{EXPORTS} is not a dict", facts=f"it is of type {type(entries).__name__}", next_step=_HOW
    )


_HOW = f'{EXPORTS} = {{"FUNCTION": {{"args": (jax.ShapeDtypeStruct((8, 4), "float32"),), "donate": (0,)}}}}'


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


# --- an entry of EXPORTS ----------------------------------------------------------------------------------------


def _target(
    spec: str,
    place: str,
    fn: Callable[..., Any],
    entry: Any,
    settings: Mapping[str, str],
    module: ModuleType,
    folders: tuple[str, ...],
) -> ExportTarget:
    function = spec.rpartition(":")[2]
    where = f"{place}: {EXPORTS}[{function!r}]"
    if not isinstance(entry, Mapping) or "args" not in entry:
        raise InputError(where=where, what='not a dict with "args"', next_step=_HOW)
    fields = cast(Mapping[str, Any], entry)
    if unknown := sorted(set(fields) - set(ENTRY_KEYS)):
        raise InputError(where=where, what=f"unknown key {unknown[0]!r}", facts=f"keys are {', '.join(ENTRY_KEYS)}")
    if not (fields.get("config") is None or dataclasses.is_dataclass(fields["config"])):
        raise InputError(where=where, what='"config" is not an instance of a dataclass')
    donate = fields.get("donate", ())
    config = _configured(fields.get("config"), fields.get("presets", {}), settings, place)
    args = fields["args"]
    if callable(args):
        with _user_errors(where, _source_file(args)):
            args = args() if config is None else args(config)
    if not isinstance(args, (tuple, list)):
        raise InputError(
            where=where,
            what=f'"args" is a {type(args).__name__}, not a tuple',
            next_step='write "args": (ARG,)',
        )
    return ExportTarget(
        spec=spec,
        fn=fn,
        args=tuple(cast(Sequence[Any], args)),
        donate=(donate,) if isinstance(donate, int) else tuple(donate),
        static={} if config is None else {"config": config},
        module=module,
        folders=folders,
    )


def _configured(config: Any, presets: Mapping[str, Any], settings: Mapping[str, str], place: str) -> Any:
    """The config with the settings in place; None where the file has none."""
    if config is None:
        if settings:
            raise InputError(where=place, what=f"no config to set {next(iter(settings))} in", next_step='add "config"')
        return None
    wanted = dict(settings)
    preset = wanted.pop("preset", None)
    if preset is not None:
        if preset not in presets:
            raise InputError(
                where=f"--set preset={preset}", what="no such preset", facts=f"presets: {', '.join(presets) or 'none'}"
            )
        config = presets[preset]
    fields = {field.name: getattr(config, field.name) for field in dataclasses.fields(config)}
    values: dict[str, Any] = {}
    for key, text in wanted.items():
        if key not in fields:
            shown = ", ".join(f"{name}={value}" for name, value in fields.items())
            raise InputError(
                where=f"--set {key}={text}", what=f"{place} has no such setting", facts=f"settings: {shown}"
            )
        values[key] = _parsed(key, text, fields[key])
    try:
        return dataclasses.replace(config, **values)
    except (TypeError, ValueError) as error:
        shown = " ".join(f"--set {key}={text}" for key, text in wanted.items())
        raise InputError(where=shown, what=str(error)) from error


_TRUTH = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}


def _parsed(key: str, text: str, current: Any) -> Any:
    """The value that a person typed, of the type that the field has now."""
    try:
        if isinstance(current, bool):
            return _TRUTH[text.lower()]
        if isinstance(current, int):
            return int(text)
        if isinstance(current, float):
            return float(text)
    except (ValueError, KeyError):
        kind = {bool: "true or false", int: "a whole number", float: "a number"}[type(current)]
        raise InputError(
            where=f"--set {key}={text}", what=f"{text!r} is not {kind}", facts=f"{key} is {current} by default"
        ) from None
    if isinstance(current, str) or current is None:
        return text
    raise InputError(
        where=f"--set {key}={text}", what=f"{key} is of type {type(current).__name__}: it cannot be set here"
    )


# --- a user's exception in one line -----------------------------------------------------------------------------


def _one_line(error: BaseException) -> str:
    """`ValueError: what it says`, the first line that says something."""
    text = error.msg if isinstance(error, SyntaxError) else str(error)
    first = next((line.strip() for line in text.splitlines() if line.strip()), "")
    return f"{type(error).__name__}: {first}" if first else type(error).__name__


def _user_line(error: BaseException, file: str | None) -> str:
    """`file.py:12`, the innermost line in the user's file that the exception passed; "" if there is none.

    Without a file, the innermost line outside Python's own and installed packages.
    """
    lines = [frame for frame in _frames(error.__traceback__) if _is_users(frame.filename, file)]
    return f"{_shown(lines[-1].filename)}:{lines[-1].lineno}" if lines else ""


def _frames(trace: TracebackType | None) -> Sequence[traceback.FrameSummary]:
    return traceback.extract_tb(trace) if trace is not None else ()


def _is_users(filename: str, file: str | None) -> bool:
    if file is not None:
        return filename == file
    own = str(Path(__file__).parent)
    return not (filename.startswith((own, "<", str(Path(os.__file__).parent))) or "site-packages" in filename)


def _shown(filename: str) -> str:
    """A file's name as seen from the current folder, where it is below it."""
    here = os.getcwd()
    return os.path.relpath(filename, here) if _holds(here, os.path.dirname(filename)) else filename


__all__ = ["ExportTarget", "export", "exported_text", "load_function"]
