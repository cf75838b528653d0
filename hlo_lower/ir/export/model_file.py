"""A model file: its functions, the entries of its `EXPORTS`, and settings as a person types them."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from types import ModuleType
from typing import Any, cast

import jax
import jax.export

from hlo_lower.base.errors import InputError
from hlo_lower.ir import mlir
from hlo_lower.ir.export.locations import source_file
from hlo_lower.ir.export.trace import export
from hlo_lower.ir.export.user_code import importable, user_errors
from hlo_lower.ir.shapes.dims import Constraint, Shape


def apply_settings(config: Any, presets: Mapping[str, Any], settings: Mapping[str, str], place: str) -> Any:
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
        values[key] = _parse_setting(key, text, fields[key])
    try:
        return dataclasses.replace(config, **values)
    except (TypeError, ValueError) as error:
        shown = " ".join(f"--set {key}={text}" for key, text in wanted.items())
        raise InputError(where=shown, what=str(error)) from error


_TRUTH = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}


def _parse_setting(key: str, text: str, current: Any) -> Any:
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


EXPORT_PLATFORMS = ("cpu",)


@dataclass(frozen=True)
class ExportTarget:
    """A function of a model file, and what it is exported with.

    Attributes:
      spec: as it was asked for ("models/llama.py:decode").
      fn: the function.
      args: example arguments.
      donate: positions of the arguments that are given away.
      static: keyword arguments that are not traced: the config, where the file has one.
      x64: whether it is traced with 64-bit types, whatever `JAX_ENABLE_X64` says; without, as JAX is set.
      module: the file as a module.
      folders: where its imports are looked for.
      shapes: symbolic shapes and constraints that it is exported with; None leaves the shapes of args.
    """

    spec: str
    fn: Callable[..., Any]
    args: tuple[Any, ...]
    donate: tuple[int, ...]
    static: Mapping[str, Any]
    x64: bool
    module: ModuleType
    folders: tuple[str, ...]
    shapes: tuple[Shape, ...] | None = None

    def export(self, shapes: Sequence[Shape] | None = None, *, plain_stablehlo: bool = False) -> jax.export.Exported:
        """Export it for CPU, whatever the machine has, so that the text is the same everywhere.

        Args:
          shapes: symbolic shapes and constraints in place of its own.
          plain_stablehlo: write chlo ops out (`hl.export`).

        Raises:
          InputError: as `export`.
        """
        with importable(self.folders), mlir.enable_x64(True) if self.x64 else nullcontext():
            return export(
                self.fn,
                *self.args,
                shapes=self.shapes if shapes is None else shapes,
                donate=self.donate,
                static=self.static,
                name=self.spec.rpartition(":")[2],
                platforms=EXPORT_PLATFORMS,
                plain_stablehlo=plain_stablehlo,
            )


EXPORTS = "EXPORTS"
ENTRY_KEYS = ("args", "config", "presets", "donate", "x64", "shapes")
HOW = f'{EXPORTS} = {{"FUNCTION": {{"args": (jax.ShapeDtypeStruct((8, 4), "float32"),), "donate": (0,)}}}}'


def entries_of(module: ModuleType, place: str) -> Mapping[str, Any]:
    """The `EXPORTS` of a module; empty where it has none."""
    entries = getattr(module, EXPORTS, {})
    if isinstance(entries, Mapping):
        return cast(Mapping[str, Any], entries)
    raise InputError(
        where=place, what=f"{EXPORTS} is not a dict", facts=f"it is of type {type(entries).__name__}", next_step=HOW
    )


def target_of(
    spec: str,
    place: str,
    fn: Callable[..., Any],
    entry: Any,
    settings: Mapping[str, str],
    module: ModuleType,
    folders: tuple[str, ...],
) -> ExportTarget:
    """Read the entry of a function, with the settings in its config.

    Raises:
      InputError: the entry is not as the module's docstring says, or a setting does not fit.
    """
    function = spec.rpartition(":")[2]
    where = f"{place}: {EXPORTS}[{function!r}]"
    if not isinstance(entry, Mapping) or "args" not in entry:
        raise InputError(where=where, what='not a dict with "args"', next_step=HOW)
    fields = cast(Mapping[str, Any], entry)
    if unknown := sorted(set(fields) - set(ENTRY_KEYS)):
        raise InputError(where=where, what=f"unknown key {unknown[0]!r}", facts=f"keys are {', '.join(ENTRY_KEYS)}")
    if not (fields.get("config") is None or dataclasses.is_dataclass(fields["config"])):
        raise InputError(where=where, what='"config" is not an instance of a dataclass')
    if not isinstance(fields.get("x64", False), bool):
        raise InputError(where=where, what='"x64" is neither True nor False')
    donate = fields.get("donate", ())
    config = apply_settings(fields.get("config"), fields.get("presets", {}), settings, place)
    args = _of_config(fields["args"], config, where)
    if not isinstance(args, (tuple, list)):
        raise InputError(
            where=where, what=f'"args" is a {type(args).__name__}, not a tuple', next_step='write "args": (ARG,)'
        )
    return ExportTarget(
        spec=spec,
        fn=fn,
        args=tuple(cast(Sequence[Any], args)),
        donate=(donate,) if isinstance(donate, int) else tuple(donate),
        static={} if config is None else {"config": config},
        x64=fields.get("x64", False),
        module=module,
        folders=folders,
        shapes=_shapes(_of_config(fields.get("shapes"), config, where), where),
    )


def _of_config(value: Any, config: Any, where: str) -> Any:
    """A value of an entry, or, where it is a function of the config, what that gives."""
    if not callable(value):
        return value
    with user_errors(where, source_file(value)):
        return value() if config is None else value(config)


def _shapes(shapes: Any, where: str) -> tuple[Shape, ...] | None:
    """The symbolic shapes of an entry; None where it has none."""
    if shapes is None:
        return None
    if not isinstance(shapes, (tuple, list)) or not all(
        isinstance(shape, (str, tuple, list, Constraint)) for shape in cast(Sequence[object], shapes)
    ):
        raise InputError(
            where=where,
            what='"shapes" is not a tuple of shapes',
            next_step='write one per argument, and constraints: "shapes": ("n, 4", "n", "n >= 2")',
        )
    return tuple(cast(Sequence[Shape], shapes))
