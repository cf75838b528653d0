"""Settings as a person types them, put into the dataclass that configures a model."""

import dataclasses
from collections.abc import Mapping
from typing import Any

from hlo_lower.base.errors import InputError


def configured(config: Any, presets: Mapping[str, Any], settings: Mapping[str, str], place: str) -> Any:
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
