"""The `[[named]]` entries of a target file.

[[named]]
op = "attention"                                   # ours
composite = "odml.scaled_dot_product_attention"    # the target's
operands = ["query", "key", "value", "[mask]"]     # in this order; in brackets what may be left out
dtypes = ["f32"]                                   # default: all
ranks = [4]                                        # of the first operand; default: all
adapter = "attention"                              # default: none
layout = "bq(ng)h,bknh,bknh,b(ng)qk->bq(ng)h"      # of an attention: query, key, value, mask and result
refuses = ["one head in a batch"]                  # of an attention; default: nothing
gains = ["keys_in_place"]                          # default: always
delegate = "XNNPACK"                               # what runs it
run = false                                        # not run there; default: true
where.empty_rows = ["nan"]                         # values of our attributes that it takes; default: all
attributes.scale = "scale"                         # the value of ours
attributes.logit_cap = { of = "softcap", type = "f32", omit = 0.0 }
attributes.approximate = { of = "approximate", words = { none = false, tanh = true } }
attributes.num_groups = { value = 1 }
"""

from collections.abc import Mapping
from typing import Any, cast

from hlo_lower.base.errors import InputError
from hlo_lower.ops.targets.named_op import NamedOp, SpelledAttribute
from hlo_lower.ops.vocabulary import BY_NAME

REQUIRED = ("op", "composite", "operands")
KEYS = (*REQUIRED, "attributes", "where", "dtypes", "ranks", "delegate", "adapter", "layout", "refuses", "gains", "run")
ATTRIBUTE_KEYS = ("of", "value", "type", "omit", "words")
TYPES = ("", "f32", "f64", "i64", "i32", "i1", "str", "i64s")


def named_entries(path: str, entries: object) -> tuple[NamedOp, ...]:
    """The named ops of a target file.

    Raises:
      InputError: an entry has an unknown key, lacks one, or has a value of the wrong type.
    """
    tables = cast(list[Any], entries) if isinstance(entries, list) else None
    if tables is None or not all(isinstance(entry, dict) for entry in tables):
        told = f"named: a list of tables is wanted, not {entries!r}"
        raise InputError(path, told, next_step="begin each with [[named]]")
    return tuple(_entry(path, f"named {number}", entry) for number, entry in enumerate(tables, start=1))


def _entry(path: str, where: str, entry: Mapping[str, Any]) -> NamedOp:
    _check_keys(path, where, entry, KEYS)
    for key in REQUIRED:
        if key not in entry:
            raise InputError(path, f"{where}: it has no {key}", next_step=f"every entry has {', '.join(REQUIRED)}")
    op = BY_NAME.get(entry["op"]) if isinstance(entry["op"], str) else None
    if op is None:
        raise InputError(
            path, f"{where}: there is no named op {entry['op']!r}", facts=f"named ops are {', '.join(BY_NAME)}"
        )
    lists = {key: tuple(_list(path, f"{where}: {key}", entry[key])) for key in _LISTS if key in entry}
    texts = {key: _check_type(path, f"{where}: {key}", entry[key], str) for key in _TEXTS if key in entry}
    flags = {"run": _check_type(path, f"{where}: run", entry["run"], bool)} if "run" in entry else {}
    known = {attribute.name for attribute in op.attributes}
    attributes = {
        name: _attribute(path, f"{where}: attributes.{name}", given, known)
        for name, given in _table(path, where, entry, "attributes").items()
    }
    taken = {
        name: tuple(_list(path, f"{where}: where.{name}", given))
        for name, given in _table(path, where, entry, "where").items()
    }
    _check_keys(path, f"{where}: where", taken, sorted(known))
    return NamedOp(**texts, **lists, **flags, attributes=attributes, where=taken)


_LISTS = ("operands", "dtypes", "ranks", "refuses", "gains")
_TEXTS = ("op", "composite", "delegate", "adapter", "layout")


def _attribute(path: str, where: str, given: object, known: set[str]) -> SpelledAttribute:
    """One attribute: the name of ours, or a table."""
    fields = {"of": given} if isinstance(given, str) else given
    if not isinstance(fields, dict):
        raise InputError(path, f"{where}: a name or a table is wanted, not {given!r}")
    fields = cast(dict[str, Any], fields)
    _check_keys(path, where, fields, ATTRIBUTE_KEYS)
    if ("of" in fields) == ("value" in fields):
        raise InputError(path, f"{where}: it has either of or value", next_step='write { of = "epsilon" }')
    if fields.get("of", "") not in {"", *known}:
        told = f"{where}: there is no attribute {fields['of']!r}"
        raise InputError(path, told, facts=f"attributes are {', '.join(sorted(known))}")
    if fields.get("type", "") not in TYPES:
        raise InputError(path, f"{where}: type is one of {', '.join(TYPES[1:])}, not {fields['type']!r}")
    return SpelledAttribute(**fields)


def _check_keys(path: str, where: str, entry: Mapping[str, Any], known: "tuple[str, ...] | list[str]") -> None:
    for key in entry:
        if key not in known:
            raise InputError(path, f"{where}: unknown key {key!r}", facts=f"keys are {', '.join(known)}")


def _table(path: str, where: str, entry: Mapping[str, Any], key: str) -> dict[str, Any]:
    return cast(dict[str, Any], _check_type(path, f"{where}: {key}", entry.get(key, {}), dict))


def _list(path: str, where: str, value: object) -> list[Any]:
    return cast(list[Any], _check_type(path, where, value, list))


def _check_type(path: str, where: str, value: object, kind: type) -> Any:
    if not isinstance(value, kind):
        words = {str: "a string", bool: "true or false", dict: "a table", list: "a list"}
        raise InputError(path, f"{where}: {words[kind]} is wanted, not {value!r}")
    return value
