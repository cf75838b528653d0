"""Names and attributes of named ops as a user gives them, looked at and made complete."""

import difflib
from collections.abc import Mapping, Sequence
from typing import Any, cast

from hlo_lower.base.arguments import is_listed, short_repr
from hlo_lower.base.errors import InputError
from hlo_lower.ops.vocabulary import BY_NAME, AttributeOfOp, OpInVocabulary

AXES = ("axis", "axes", "channel_axis")
"""Attributes that count the axes of the first operand."""


def checked_attributes(name: str, attributes: Mapping[str, Any]) -> tuple[OpInVocabulary, dict[str, Any]]:
    """A named op and its attributes, each of the right type, defaults filled in; axes as they were given.

    Raises:
      InputError: there is no such op, or an attribute is unknown, missing, or of a wrong type.
    """
    if not isinstance(name, str) or name not in BY_NAME:  # pyright: ignore[reportUnnecessaryIsInstance]  # a user's own
        close = difflib.get_close_matches(str(name).removeprefix("hl."), BY_NAME, n=1)
        raise InputError(
            "hl.named",
            f"there is no named op {short_repr(name)}",
            facts=f"there are {', '.join(BY_NAME)}",
            nearest=tuple(f"hl.named({found!r})" for found in close),
            next_step=f"write hl.named({(close or ['silu'])[0]!r}); docs/named-ops.md says what each computes",
        )
    op = BY_NAME[name]
    known = {attribute.name: attribute for attribute in op.attributes}
    for key in attributes:
        if key not in known:
            raise _wrong(op, f"{op.name} has no attribute {key!r}", close=difflib.get_close_matches(key, known, n=1))
    missing = [key for key, attribute in known.items() if attribute.default is None and key not in attributes]
    if missing:
        raise _wrong(op, f"{op.name} needs {' and '.join(missing)}")
    values = {key: attribute.default for key, attribute in known.items()} | dict(attributes)
    return op, {key: _value(op, known[key], value) for key, value in values.items()}


def placed_attributes(op: OpInVocabulary, attributes: Mapping[str, Any], ranks: Sequence[int]) -> dict[str, Any]:
    """Attributes for operands of these ranks: axes counted from 0, `weight` none where there is no weight.

    `operands` has the operands' names; texts that say nothing are left out.

    Raises:
      InputError: there are too many operands or too few, or the first has no such axis.
    """
    takes = op.takes.split(", ")
    if len(ranks) == len(op.or_takes.split(", ")) and op.or_takes:
        takes = op.or_takes.split(", ")
    least = sum(not operand.startswith("[") for operand in takes)
    if not least <= len(ranks) <= len(takes):
        raise InputError(
            f"hl.named({op.name!r})",
            f"{len(ranks)} operands",
            facts=f"{op.name} takes {op.takes}" + f", or {op.or_takes}" * bool(op.or_takes),
            next_step="give its operands in this order, each as one array; those in brackets are optional",
        )
    placed = dict(attributes)
    rank = ranks[0] + (op.name == "one_hot")  # the axis that it adds counts
    for key in AXES:
        if key in placed:
            several = placed[key] if key == "axes" else (placed[key],)
            counted = sorted(_normalize_axis(op, key, axis, rank) for axis in several)
            placed[key] = tuple(counted) if key == "axes" else counted[0]
    if placed.get("weight") == "plain" and len(ranks) == 1:
        placed["weight"] = "none"
    left_out = [operand for operand in takes if operand.startswith("[")][len(ranks) - least :]
    placed["operands"] = tuple(operand.strip("[]") for operand in takes if operand not in left_out)
    return {key: value for key, value in placed.items() if value != ""}


def _normalize_axis(op: OpInVocabulary, key: str, axis: int, rank: int) -> int:
    if -rank <= axis < rank:
        return axis % rank
    raise InputError(
        f"hl.named({op.name!r})",
        f"{key}={axis}, but there are {rank} axes",
        facts=f"axes of {op.takes.split(', ')[0]} are counted from 0, or from the end by negative numbers",
        next_step=f"write {key}=-1 for the last",
    )


def _value(op: OpInVocabulary, attribute: AttributeOfOp, value: Any) -> Any:
    """A value as the composite has it: a plain Python one."""
    if attribute.several:
        several: Any = value if is_listed(value) else (value,)
        return tuple(_number(op, attribute, number) for number in cast(Sequence[Any], several))
    if attribute.type is str and not attribute.choices and isinstance(value, str):
        return value
    if attribute.type is bool or attribute.choices:
        choices: tuple[Any, ...] = attribute.choices or (False, True)
        if any(type(value) is type(choice) and value == choice for choice in choices):
            return value
        close = difflib.get_close_matches(str(value), [str(choice) for choice in choices], n=1)
        raise _wrong(op, f"{attribute.name} is {short_repr(value)}, not one of its values", attribute, close)
    return _number(op, attribute, value)


def _number(op: OpInVocabulary, attribute: AttributeOfOp, value: Any) -> float | int:
    """A whole number where one is asked for, else any; NumPy's, too."""
    method = "__float__" if attribute.type is float else "__index__"
    if attribute.type is not str and not isinstance(value, (bool, str)) and hasattr(value, method):
        try:
            return attribute.type(value)
        except TypeError:  # a tracer, or an array of several numbers
            pass
    raise _wrong(op, f"{attribute.name} is {short_repr(value)}, not {_kind(attribute)}", attribute)


def _kind(attribute: AttributeOfOp) -> str:
    if attribute.choices:
        return " or ".join(repr(choice) for choice in attribute.choices)
    if attribute.several:
        return "whole numbers"
    return {float: "a number", int: "a whole number", bool: "True or False", str: "a text"}[attribute.type]


def _wrong(
    op: OpInVocabulary, what: str, attribute: AttributeOfOp | None = None, close: Sequence[str] = ()
) -> InputError:
    told = [f"{each.name} ({_kind(each)}: {each.meaning})" for each in ([attribute] if attribute else op.attributes)]
    example = f"{attribute.name}={_example(attribute)}" if attribute else _call(op)
    return InputError(
        "hl.named",
        what,
        facts=f"{'it is' if attribute else f'{op.name} has'} {'; '.join(told) or 'no attributes'}",
        nearest=tuple(close),
        next_step=f"write {example}",
    )


def _call(op: OpInVocabulary) -> str:
    needed = [f"{each.name}={_example(each)}" for each in op.attributes if each.default is None]
    return f"hl.named({', '.join([repr(op.name), *needed])})"


def _example(attribute: AttributeOfOp) -> str:
    if attribute.choices:
        return repr(attribute.choices[0])
    if attribute.name in AXES:
        return "-1"
    return {float: "1e-6", int: "8", bool: "True", str: "'f32'"}[attribute.type]
