"""What a module says of its sizes besides its shapes, and the sizes that follow from others.

JAX writes each constraint into the message of the shape assertion that checks it, so they are read from the module
alone. An assertion that `mod(s, 16)` is 0 comes with others that say the same in forms that JAX reasons with.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache

from hlo_lower.ir.shapes.expressions import Expression, ExpressionError, rewritten, substitute, whole
from hlo_lower.ir.shapes.given_sizes import SizesError
from hlo_lower.ir.shapes.written_shapes import COMPARISONS, WrittenConstraint, read_written

_CONSTRAINT = re.compile(r"symbolic shape constraint (.*?)\. Expected '", re.DOTALL)
_REMAINDER = re.compile(r"mod\((?P<value>.*),(?P<divisor>\d+)\)==0")


def constraints_in(messages: Sequence[str]) -> tuple[str, ...]:
    """The constraints that the messages of shape assertions tell, as JAX writes them; not those that follow from
    another one's form."""
    told = [found[1] for message in messages if (found := _CONSTRAINT.search(message))]
    implied: set[str] = set()
    for text in told:
        if found := _REMAINDER.fullmatch(_closed_up(text)):
            value, divisor = found["value"], found["divisor"]
            implied.add(f"{divisor}*floordiv({value},{divisor})=={value}")
            implied.add(f"mod({value},-{divisor})==0")
            implied.add(f"-{divisor}*floordiv({value},-{divisor})=={value}")
    return tuple(dict.fromkeys(text for text in told if _closed_up(text) not in implied))


def _closed_up(text: str) -> str:
    return text.replace(" ", "")


def names_of(constraint: str) -> set[str]:
    """The names that a constraint is about."""
    read = _read(constraint)
    return set() if read is None else {*read.left.symbols, *read.right.symbols}


def readable(constraint: str) -> str:
    """A constraint in the notation that a person writes: "s % 16 == 0"."""
    read = _read(constraint)
    if read is None:
        return constraint
    return f"{rewritten(str(read.left))} {read.comparison} {rewritten(str(read.right))}"


def substituted_constraint(constraint: str, sizes: Mapping[str, int]) -> str:
    """A constraint with sizes for some of its names."""
    read = _read(constraint)
    if read is None:
        return constraint
    return f"{substitute(str(read.left), sizes)} {read.comparison} {substitute(str(read.right), sizes)}"


def holds(constraint: str, sizes: Mapping[str, int]) -> bool:
    """Whether a constraint holds; it does where it cannot be told, for want of a size."""
    read = _read(constraint)
    try:
        return read is None or COMPARISONS[read.comparison](read.left.value(sizes), read.right.value(sizes))
    except ExpressionError:
        return True


def check_constraints(constraints: Sequence[str], sizes: Mapping[str, int], facts: str) -> None:
    """Refuse sizes for which a constraint does not hold, or a side of it has no value.

    Raises:
      SizesError: it names the constraint, the sizes, and what its sides are.
    """
    for constraint in constraints:
        read = _read(constraint)
        if read is None:
            continue
        for side in (read.left, read.right):
            _check_value(constraint, side, sizes)
        if holds(constraint, sizes):
            continue
        names = sorted({*read.left.symbols, *read.right.symbols})
        sides = [f"{rewritten(str(s))} is {s.value(sizes)}" for s in (read.left, read.right) if len(str(s)) > 1]
        sides = [side for side in sides if side.split(" is ")[0] not in (*names, side.split(" is ")[-1])]
        raise SizesError(
            f"{readable(constraint)} does not hold for {sizes_text(names, sizes)}"
            + "".join(f": {s}" for s in sides[:1]),
            facts=facts,
            next_step="choose sizes for which this holds",
        )


def _check_value(constraint: str, side: Expression, sizes: Mapping[str, int]) -> None:
    """Refuse sizes for which a side of a constraint has no value; one that lacks a size is looked at when it has it."""
    if any(name not in sizes for name in side.symbols):
        return
    try:
        side.value(sizes)
    except ExpressionError as error:
        given = f" for {sizes_text(side.symbols, sizes)}" if side.symbols else ""
        raise SizesError(
            f"{readable(constraint)} has no value{given}: {error}", next_step="choose sizes for which this holds"
        ) from None


def sizes_text(names: Sequence[str], sizes: Mapping[str, int]) -> str:
    """Sizes for a reader: "b=4, s=16"."""
    return ", ".join(f"{name}={sizes[name]}" for name in names)


def complete_sizes(dims: Sequence[Sequence[str] | None], sizes: Mapping[str, int]) -> dict[str, int]:
    """Add the sizes that follow: a dim given by its place is an equation, solved where one name of it is not known.

    Args:
      dims: the dims of each argument, expressions.
      sizes: sizes of names and of places ("arg1.0").

    Raises:
      SizesError: an equation has no whole number for its name.
    """
    found = dict(sizes)
    equations = [
        (dim, f"arg{n}.{i}")
        for n, argument in enumerate(dims)
        for i, dim in enumerate(argument or ())
        if f"arg{n}.{i}" in sizes and dim != f"arg{n}.{i}"
    ]
    while True:
        solved = next(_solutions(equations, found), None)
        if solved is None:
            return found
        found[solved[0]] = solved[1]


def _solutions(equations: Sequence[tuple[str, str]], sizes: Mapping[str, int]) -> Iterator[tuple[str, int]]:
    """The names that an equation gives, linear in the one name that is not known."""
    for dim, place in equations:
        read = whole(dim)
        unknown = [name for name in read.symbols if name not in sizes]
        if len(unknown) != 1:
            continue
        name = unknown[0]
        if not read.is_linear_in(name):
            continue
        try:
            at = [read.value({**sizes, name: value}) for value in (1, 2, 3)]
        except ExpressionError:
            continue
        slope = at[1] - at[0]
        if slope == 0:
            continue
        times, rest = divmod(sizes[place] - at[0], slope)
        if rest == 0:
            yield name, times + 1
        else:
            known = [n for n in read.symbols if n != name]
            given = f" for {sizes_text(known, sizes)}" if known else ""
            raise SizesError(
                f"{rewritten(dim)} = {sizes[place]} ({place}) holds for no whole number {name}{given}",
                facts=f"{rewritten(dim)} is {at[0]}, {at[1]}, {at[2]}, ... for {name} = 1, 2, 3, ...",
                next_step="choose sizes for which this holds",
            )


@cache
def _read(constraint: str) -> WrittenConstraint | None:
    """A constraint of a module; None where it is no constraint that can be read."""
    try:
        read = read_written(constraint)
    except ExpressionError:
        return None
    return read if isinstance(read, WrittenConstraint) else None
