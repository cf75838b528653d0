"""A target of one's own as a TOML file: the fields of `Target` as keys.

name = "my_npu"                                    # default: the file's name
description = "the compiler of my NPU"
ops = ["stablehlo.add", "stablehlo.select"]        # only these; without it all but the refused ones
dtypes = ["f32", "bf16", "i32", "i1"]              # only these; i1 is what a compare gives

[refused]                                          # operations, each with the reason
"stablehlo.while" = "no control flow"

[refused_dtypes]                                   # element types, each with the reason
i64 = "32-bit addresses"

[op_dtypes]                                        # what an operation is taken on, if that is less than dtypes
"stablehlo.dot_general" = ["i32"]

[sizes]                                            # what forms cost there (`hlo-lower rules` lists the entries)
few_windows = 64
"""

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from hlo_lower.errors import InputError
from hlo_lower.scatter.sizes import SIZES, SizeTable
from hlo_lower.targets.names import check_names
from hlo_lower.targets.target import Target

LISTS = ("ops", "dtypes")
REASONS = ("refused", "refused_dtypes")
KEYS = ("name", "description", *LISTS, *REASONS, "op_dtypes", "sizes")


def read_target(path: str) -> Target:
    """Read a target from a TOML file.

    Raises:
      InputError: the file cannot be read, is not TOML, has an unknown key or a value of the wrong type, or names an
        operation or an element type that does not exist.
    """
    content = _parsed(path)
    for key in content:
        if key not in KEYS:
            raise InputError(path, f"unknown key {key!r}", facts=f"keys are {', '.join(KEYS)}")
    fields: dict[str, Any] = {"name": Path(path).stem}
    for key in ("name", "description"):
        if key in content:
            fields[key] = _text(path, key, content[key])
    for key in LISTS:
        if key in content:
            fields[key] = _names(path, key, content[key])
    for key in REASONS:
        fields[key] = {
            name: _text(path, f"{key}: {name}", reason) for name, reason in _table(path, key, content).items()
        }
    fields["op_dtypes"] = {
        op: _names(path, f"op_dtypes: {op}", dtypes) for op, dtypes in _table(path, "op_dtypes", content).items()
    }
    fields["sizes"] = _sizes(path, _table(path, "sizes", content))
    target = Target(**fields)
    check_names(target, path)
    return target


def _sizes(path: str, entries: Mapping[str, Any]) -> SizeTable:
    """The table of sizes with these entries."""
    table = SIZES
    for name, value in entries.items():
        try:
            table = table.with_entry(name, value)
        except ValueError as error:
            raise InputError(path, f"sizes: {error}", next_step="hlo-lower rules lists the entries") from None
    return table


def _parsed(path: str) -> Mapping[str, Any]:
    try:
        return tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InputError(path, "no such target file", next_step="check the path") from None
    except OSError as error:
        raise InputError(path, f"cannot be read: {error.strerror}", next_step="name a TOML file") from None
    except tomllib.TOMLDecodeError as error:
        raise InputError(path, f"not a TOML file: {error}", next_step='strings stand in quotes: name = "npu"') from None
    except UnicodeDecodeError:
        raise InputError(path, "not a TOML file: it is not UTF-8 text", next_step="name a TOML file") from None


def _text(path: str, key: str, value: object) -> str:
    if not isinstance(value, str):
        raise InputError(path, f"{key}: a string is wanted, not {value!r}", next_step='write it in quotes: "..."')
    if not value and key == "name":
        raise InputError(path, "name: it is empty", next_step="leave it out, and the file's name is the target's")
    return value


def _names(path: str, key: str, value: object) -> frozenset[str]:
    names = cast(list[Any], value) if isinstance(value, list) else None
    if names is None or not all(isinstance(name, str) for name in names):
        raise InputError(path, f"{key}: a list of strings is wanted, not {value!r}", next_step='write ["...", "..."]')
    return frozenset(names)


def _table(path: str, key: str, content: Mapping[str, Any]) -> dict[str, Any]:
    """A table with names as keys; `stablehlo.while = ...` without quotes is a table in it, and meant as one name."""
    table = content.get(key, {})
    if not isinstance(table, dict):
        raise InputError(path, f"{key}: a table is wanted, not {table!r}", next_step=f"write it as [{key}]")
    flat: dict[str, Any] = {}
    for name, value in cast(dict[str, Any], table).items():
        inner = cast(dict[str, Any], value) if isinstance(value, dict) else None
        flat.update({name: value} if inner is None else {f"{name}.{op}": found for op, found in inner.items()})
    return flat
