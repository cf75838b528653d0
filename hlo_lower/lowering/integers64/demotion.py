"""What making 64-bit integers 32 bits wide rests on, and the check of arguments against it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hlo_lower.base.element_types import element_type, element_type_of
from hlo_lower.base.errors import InputError
from hlo_lower.ops.names import CONVERT

Array = NDArray[Any]

NARROWER = {"i64": "i32", "ui64": "ui32"}
"""The element types that go, and what they become."""


@dataclass(frozen=True)
class DemotedValue:
    """An argument or a result of the entry point whose element type changed.

    Attributes:
      number: its position among the arguments or the results.
      name: what a message calls it ("argument 2 (input_pos)").
      before, after: its element types ("i64", "i32").
      cast: the op that takes a value from one to the other: of the same number, or of the same bits, or what stands for
        the ops that take complex numbers apart.
      is_pair: whether the value has a last dim of 2 since: the parts of a complex number.
    """

    number: int
    name: str
    before: str
    after: str
    cast: str = CONVERT
    is_pair: bool = False


@dataclass(frozen=True)
class Demotion:
    """What became of the 64-bit integers of a module.

    Attributes:
      entry: the entry point's name.
      arguments, results: those of the entry point that are narrower now.
      values: how many tensors of 64-bit integers there were, those within functions included.
      assumptions: what is taken for granted, neither proved nor tested, a sentence each: arguments first, then
        operations.
      tested: what is assumed and tested at run time, a sentence each.
    """

    entry: str
    arguments: tuple[DemotedValue, ...]
    results: tuple[DemotedValue, ...]
    values: int
    assumptions: tuple[str, ...]
    tested: tuple[str, ...] = ()

    @property
    def is_needed(self) -> bool:
        """Whether there was any 64-bit integer."""
        return self.values > 0

    def summary(self) -> str:
        """One line for a report."""
        if not self.is_needed:
            return "no 64-bit integers"
        signature = f"{len(self.arguments)} arguments and {len(self.results)} results"
        return f"{self.values} tensors of 64-bit integers made 32 bits wide, {signature} of @{self.entry} among them"


def narrow_arguments(arguments: Sequence[Array], demotion: Demotion, where: str = "") -> list[Array]:
    """Check arguments of the original against what a demotion assumes of them, and convert them to what it takes.

    Args:
      arguments: one array per argument of the entry point, of the original types or of the new ones.
      demotion: what was assumed.
      where: what messages begin with: the file or the function that the arguments are for.

    Raises:
      InputError: a value does not fit; the message has the argument's name, the value and its index.
    """
    narrowed = list(arguments)
    for argument in demotion.arguments:
        if argument.number >= len(narrowed):
            raise InputError(where, f"{argument.name} is missing", facts=f"{len(narrowed)} arguments are given")
        narrowed[argument.number] = narrow_array(np.asarray(narrowed[argument.number]), argument.name, where)
    return narrowed


def narrow_array(array: Array, name: str, where: str = "") -> Array:
    """An array of 64-bit integers as one of 32 bits; any other array as it is.

    Raises:
      InputError: a value does not fit.
    """
    name_after = NARROWER.get(element_type_of(array.dtype).name)
    if name_after is None:
        return array
    after = element_type(name_after)
    outside = (array < after.least) | (array > after.most)
    if bool(outside.any()):
        index = tuple(int(i) for i in np.argwhere(outside)[0])
        raise InputError(
            where,
            f"{name} holds {int(array[index])}, which does not fit in {name_after}",
            facts=f"at {list(index)}; {int(outside.sum())} of {array.size} values are out of "
            f"[{after.least}, {after.most}]; the module was converted under the assumption that all fit",
            next_step="convert it without --demote-i64, or give values that fit",
        )
    return array.astype(after.dtype)
