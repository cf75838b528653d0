"""A target as a file, TOML or JSON: the fields of `Target` as keys. The built-in ones are such files beside this one.

name = "my_npu"                                    # default: the file's name
description = "the compiler of my NPU"
ops = ["stablehlo.add", "stablehlo.select"]        # only these; without it all but the refused ones
dtypes = ["f32", "bf16", "i32", "i1"]              # only these; i1 is what a compare gives
dialect = "stablehlo"                              # what the module leaves in; or "linalg"
index_type = "i32"                                 # starts and counters; default: as wide as the indices
float_mode = "exact"                               # where the user names none; or "reassociate"
legalize = true                                    # chlo, known mhlo custom calls, composites; default: false
composites = ["odml.softmax", "chlo.erf"]          # but for these
demote_i64 = false                                 # 64-bit integers made 32 bits wide
gather = "in_bounds"                               # starts are clamped before; default: every gather is right

[refused]                                          # operations, each with the reason
"stablehlo.while" = "no control flow"

[refused_dtypes]                                   # element types, each with the reason
i64 = "32-bit addresses"

[op_dtypes]                                        # what an operation is taken on, if that is less than dtypes
"stablehlo.dot_general" = ["i32"]

[max_rank]                                         # the most dims of a tensor, by operation
"*" = 5                                            # of all others

[[keep]]                                           # scatters that it takes as they are; see `NativeScatter`
combiners = ["assign"]
dtypes = ["i8"]

[[named]]                                          # what it calls named ops; see `named_entries`
op = "gelu"
composite = "aten.gelu.default"
operands = ["x"]

[costs]                                            # what forms cost there (`hlo-lower rules` lists the entries)
few_windows = 64
"""

import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, cast

from hlo_lower.base.errors import InputError
from hlo_lower.ops.targets.costs import COSTS, CostTable
from hlo_lower.ops.targets.named_entries import named_entries
from hlo_lower.ops.targets.native_scatter import COMBINERS, KEPT_WORDS, NativeScatter
from hlo_lower.ops.targets.target import DIALECTS, FLOAT_MODES, GATHERS, INDEX_TYPES, Target

TEXTS = ("name", "description")
WORDS = {"dialect": DIALECTS, "index_type": INDEX_TYPES, "float_mode": FLOAT_MODES, "gather": GATHERS}
LISTS = ("ops", "dtypes", "composites", "refused_forms")
FLAGS = ("legalize", "demote_i64")
REASONS = ("refused", "refused_dtypes")
KEYS = (*TEXTS, *LISTS, *WORDS, *FLAGS, *REASONS, "op_dtypes", "keep", "named", "max_rank", "costs")

KEEP_LISTS = ("combiners", "dtypes", "index_dtypes")

LEAST_RANK = 4
"""What rules need that do with fewer dims."""

JSON_SUFFIX = ".json"


def read_target_unchecked(path: str) -> Target:
    """Read a target from a TOML file, or a JSON file if its name ends in ".json".

    That its operations and element types exist is not checked.

    Raises:
      InputError: the file cannot be read, is not TOML or JSON, or has an unknown key or a value of the wrong type.
    """
    content = _parse_file(path)
    for key in content:
        if key not in KEYS:
            raise InputError(path, f"unknown key {key!r}", facts=f"keys are {', '.join(KEYS)}")
    fields: dict[str, Any] = {"name": Path(path).stem}
    for key in TEXTS:
        if key in content:
            fields[key] = _text(path, key, content[key])
    for key in LISTS:
        if key in content:
            fields[key] = _names(path, key, content[key])
    for key, words in WORDS.items():
        if key in content:
            fields[key] = _word(path, key, content[key], words)
    for key in FLAGS:
        if key in content:
            fields[key] = _flag(path, key, content[key])
    for key in REASONS:
        fields[key] = {
            name: _text(path, f"{key}: {name}", reason) for name, reason in _table(path, key, content).items()
        }
    fields["op_dtypes"] = {
        op: _names(path, f"op_dtypes: {op}", dtypes) for op, dtypes in _table(path, "op_dtypes", content).items()
    }
    fields["max_rank"] = _table(path, "max_rank", content)
    for op, most in fields["max_rank"].items():
        if not isinstance(most, int) or isinstance(most, bool) or most < LEAST_RANK:
            told = f"max_rank: {op}: a number of dims, {LEAST_RANK} or more, is wanted, not {most!r}"
            raise InputError(path, told, next_step='write "*" = 5')
    fields["keep"] = _native_scatters(path, content.get("keep", []))
    fields["named"] = named_entries(path, content.get("named", []))
    fields["costs"] = _costs(path, _table(path, "costs", content))
    return Target(**fields)


def _native_scatters(path: str, entries: object) -> tuple[NativeScatter, ...]:
    """Read the scatters that the target keeps."""
    tables = cast(list[Any], entries) if isinstance(entries, list) else None
    if tables is None or not all(isinstance(entry, dict) for entry in tables):
        told = "a list of tables is wanted"
        raise InputError(path, f"keep: {told}, not {entries!r}", next_step="begin each with [[keep]]")
    return tuple(_native(path, f"keep {number}", entry) for number, entry in enumerate(tables, start=1))


def _native(path: str, where: str, entry: Mapping[str, Any]) -> NativeScatter:
    keys = (*KEEP_LISTS, *KEPT_WORDS)
    fields: dict[str, Any] = {}
    for key, value in entry.items():
        if key not in keys:
            raise InputError(path, f"{where}: unknown key {key!r}", facts=f"keys are {', '.join(keys)}")
        if key in KEPT_WORDS:
            fields[key] = _word(path, f"{where}: {key}", value, KEPT_WORDS[key])
            continue
        fields[key] = _names(path, f"{where}: {key}", value)
        if not fields[key]:
            raise InputError(path, f"{where}: {key}: it is empty", next_step="leave it out, or name what is kept")
    for combiner in sorted(fields.get("combiners", ())):
        if combiner not in COMBINERS:
            known = f"combiners are {', '.join(COMBINERS)}"
            raise InputError(path, f"{where}: there is no combiner {combiner!r}", facts=known)
    return NativeScatter(**fields)


def _costs(path: str, entries: Mapping[str, Any]) -> CostTable:
    """The table of costs with these entries."""
    table = COSTS
    for name, value in entries.items():
        try:
            table = table.with_entry(name, value)
        except ValueError as error:
            raise InputError(path, f"costs: {error}", next_step="hlo-lower rules lists the entries") from None
    return table


def _parse_file(path: str) -> Mapping[str, Any]:
    form = "JSON" if path.endswith(JSON_SUFFIX) else "TOML"
    try:
        text = Path(path).read_text(encoding="utf-8")
        return tomllib.loads(text) if form == "TOML" else _parsed_json(path, text)
    except FileNotFoundError:
        raise InputError(path, "no such target file", next_step="check the path") from None
    except OSError as error:
        raise InputError(path, f"cannot be read: {error.strerror}", next_step="name a TOML or JSON file") from None
    except tomllib.TOMLDecodeError as error:
        raise InputError(path, f"not a TOML file: {error}", next_step='strings stand in quotes: name = "npu"') from None
    except UnicodeDecodeError:
        told = f"not a {form} file: it is not UTF-8 text"
        raise InputError(path, told, next_step="name a TOML or JSON file") from None


def _parsed_json(path: str, text: str) -> Mapping[str, Any]:
    import json  # not at the top: the built-in targets are TOML

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        """An object; a name that comes twice would silently lose its first value, and TOML refuses it."""
        for name in (names := [name for name, _ in pairs]):
            if names.count(name) > 1:
                raise InputError(path, f"not a target: {name!r} stands twice", next_step="keep one of them")
        return dict(pairs)

    try:
        content = json.loads(text, object_pairs_hook=once)
    except (ValueError, RecursionError) as error:
        next_step = 'strings stand in quotes: {"name": "npu"}'
        raise InputError(path, f"not a JSON file: {error}", next_step=next_step) from None
    if not isinstance(content, dict):
        told = f"a JSON object is wanted, not {type(content).__name__}"
        raise InputError(path, told, next_step='write {"name": "npu", ...}')
    return cast(dict[str, Any], content)


def _text(path: str, key: str, value: object) -> str:
    if not isinstance(value, str):
        raise InputError(path, f"{key}: a string is wanted, not {value!r}", next_step='write it in quotes: "..."')
    if not value and key == "name":
        raise InputError(path, "name: it is empty", next_step="leave it out, and the file's name is the target's")
    return value


def _word(path: str, key: str, value: object, words: tuple[str, ...]) -> str:
    """One of a few words."""
    if not isinstance(value, str) or value not in words:
        known = " or ".join(f'"{word}"' for word in words if word)
        raise InputError(path, f"{key}: {known} is wanted, not {value!r}", next_step=f"write one of these: {known}")
    return value


def _flag(path: str, key: str, value: object) -> bool:
    if not isinstance(value, bool):
        raise InputError(path, f"{key}: true or false is wanted, not {value!r}", next_step="write it without quotes")
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


NAMES = ("stablehlo", "xla", "iree", "litert", "coreml", "mps", "tt", "metal", "linalg")
"""The built-in targets, in the order in which they are listed."""


@cache
def built_in_target(name: str) -> Target:
    """The built-in target of one of `NAMES`.

    Its file is part of the package, so that it names operations and element types that exist is left to the tests.
    """
    return read_target_unchecked(str(Path(__file__).with_name(f"{name}.toml")))
