"""Programs that are wrong on purpose: a module with one op changed, as often as there are ways to change one.

A recogniser may still find the op in a mutant, where what was changed lies outside of it or makes no difference; then
what it found has to be that op (`recall.meaning`).
"""

import re
from collections.abc import Iterator

OTHER_OPS = {
    "add": ("subtract", "multiply"),
    "subtract": ("add",),
    "multiply": ("add", "divide"),
    "divide": ("multiply",),
    "maximum": ("minimum", "add"),
    "minimum": ("maximum",),
    "rsqrt": ("sqrt", "logistic"),
    "sqrt": ("rsqrt", "abs"),
    "exponential": ("exponential_minus_one", "tanh"),
    "tanh": ("logistic", "sine"),
    "logistic": ("tanh",),
    "log": ("log_plus_one", "sqrt"),
    "negate": ("abs",),
    "cosine": ("sine",),
    "sine": ("cosine",),
    "and": ("or",),
}
"""What stands in the place of an op: of the same operands and types."""

SWAPPED = ("subtract", "divide", "power", "concatenate", "maximum", "compare LT,", "compare GE,", "compare EQ,")
"""Ops of which the first two operands change places."""

DIRECTIONS = {"LT": "LE", "LE": "LT", "GT": "GE", "GE": "GT", "EQ": "NE", "NE": "EQ"}


def mutants(text: str) -> Iterator[tuple[str, str]]:
    """Each with what was changed, by line; some are no modules at all (types that do not fit)."""
    lines = text.splitlines()
    for number, line in enumerate(lines):
        for changed in _changed(line):
            yield f"line {number + 1}: {changed.strip()}", "\n".join([*lines[:number], changed, *lines[number + 1 :]])
        for other in _moved(lines, number):
            yield f"line {number + 1}: {other[number].strip()}", "\n".join(other)


def _changed(line: str) -> Iterator[str]:
    for op, others in OTHER_OPS.items():
        for spelled in (f"= stablehlo.{op} %", f"applies stablehlo.{op} across"):
            if spelled in line:
                yield from (line.replace(op, other, 1) for other in others)
    for op in SWAPPED:
        swapped = re.sub(rf"(stablehlo\.{op} )(%[\w#]+), (%[\w#]+)", r"\1\3, \2", line)
        if swapped != line:
            yield swapped
    if direction := re.search(r"compare (LT|LE|GT|GE|EQ|NE),", line):
        yield line.replace(f"compare {direction[1]},", f"compare {DIRECTIONS[direction[1]]},")
    if constant := re.search(r"constant dense<(-?\d+\.\d+E?e?[+-]?\d*)>", line):
        value = float(constant[1])
        for other in (value * 1.01 if value else 0.01, value + 1, -value if value else 2.0):
            yield line.replace(f"dense<{constant[1]}>", f"dense<{other:.9e}>")
    if "across dimensions = [" in line or ("broadcast_in_dim" in line and "dims = [" in line):
        for dim, other in (("0", "1"), ("1", "0"), ("1", "2"), ("2", "1"), ("2", "3"), ("3", "2")):
            yield re.sub(rf"(dim\w* = \[(?:\d, )*){dim}\]", rf"\g<1>{other}]", line)


def _moved(lines: list[str], number: int) -> Iterator[list[str]]:
    """An operand replaced by an argument of the function of the same type."""
    line = lines[number]
    found = re.search(
        r"= stablehlo\.(?:add|subtract|multiply|divide|exponential) (%\w+)(, %\w+)? : (tensor<\S+>)", line
    )
    arguments = re.findall(r"(%arg\d+): (tensor<[^>]+>)", next(_functions_above(lines, number), ""))
    for name, kind in arguments if found else ():
        if found and kind == found[3] and name != found[1]:
            yield [*lines[:number], line.replace(f" {found[1]}", f" {name}", 1), *lines[number + 1 :]]


def _functions_above(lines: list[str], number: int) -> Iterator[str]:
    return (line for line in reversed(lines[:number]) if "func.func" in line)
