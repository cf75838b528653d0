"""An entry of a model file's `EXPORTS`: the example arguments of a function, and what it gives away.

A model file says what its functions take in a dict named `EXPORTS`, plain data that needs no import from here:

    def step(cache, row, position): ...

    EXPORTS = {
        "step": {
            "args": (jax.ShapeDtypeStruct((8, 4), "float32"), ...),  # one per positional argument; pytrees are fine
            "donate": (0,),                                          # optional: arguments the caller gives away
            "x64": True,                                             # optional: trace with 64-bit types on
            "shapes": ("n, 4", "4", "n", "n >= 2"),                  # optional: symbolic shapes, and constraints
        }
    }

Where the size is a parameter, the entry names a dataclass instance, `"args"` is a function of it, and the function
takes it as the keyword `config`; `"shapes"` may be a function of it, too:

    EXPORTS = {"step": {"args": step_args, "config": Config(), "presets": {"large": Config(layers=80)}}}

`--set layers=4` replaces a field of it and `--set preset=large` starts from another instance.
"""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from types import ModuleType
from typing import Any, cast

from hlo_lower.base.errors import InputError
from hlo_lower.ir.export.locations import source_file
from hlo_lower.ir.export.model_function import ExportTarget
from hlo_lower.ir.export.settings import configured
from hlo_lower.ir.export.user_code import user_errors

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
    config = configured(fields.get("config"), fields.get("presets", {}), settings, place)
    args = _of_config(fields["args"], config, where)
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


def _shapes(shapes: Any, where: str) -> tuple[str, ...] | None:
    """The symbolic shapes of an entry; None where it has none."""
    if shapes is None:
        return None
    if not isinstance(shapes, (tuple, list)) or not all(
        isinstance(text, str) for text in cast(Sequence[object], shapes)
    ):
        raise InputError(
            where=where,
            what='"shapes" is no tuple of texts',
            next_step='write one per argument, and constraints: "shapes": ("n, 4", "n", "n >= 2")',
        )
    return tuple(cast(Sequence[str], shapes))
