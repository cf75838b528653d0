"""What values look like: numbers that see through conversions between floats.

A target that has no bf16 moves and computes f32, with a conversion before and after each op. Such an op has another
value number than the bf16 op that it stands for, but looks the same: a look tells where a number was rounded to a
narrow type, and not in which type it stands. A look is a guess, which a region has to show.
"""

from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import NamedTuple

import numpy as np

from hlo_lower.base.element_types import element_type
from hlo_lower.ops.names import CONVERT
from hlo_lower.ops.spec import NEVER_ROUNDED
from hlo_lower.verify.read.numbering import Number, Table
from hlo_lower.verify.read.program import Body, Op, Program, ValueId

Look = Hashable


def is_float_conversion(program: Program, op: Op) -> bool:
    """Whether an op converts one float type to another."""
    if op.name != CONVERT:
        return False
    tensors = [program.type_of(value) for value in (op.inputs[0], op.results[0])]
    return all(tensor is not None and element_type(tensor.element_name).is_float for tensor in tensors)


def is_widening(program: Program, op: Op) -> bool:
    """Whether an op converts floats of at most 16 bits to a wider type."""
    return bool(
        is_float_conversion(program, op)
        and _narrow_type(program, op.inputs[0])
        and not _narrow_type(program, op.results[0])
    )


def behind_conversions(program: Program, value: ValueId, raw_type: object) -> ValueId | None:
    """The value of a type that conversions between floats make a value of; None where there is none."""
    while program.types[value] != raw_type:
        maker = program.makers[value]
        if maker is None or not is_float_conversion(program, maker):
            return None
        value = maker.inputs[0]
    return value


def loose_type(program: Program, value: ValueId) -> Hashable:
    """The type of a value, where all float types are one."""
    tensor = program.type_of(value)
    if tensor is None or not element_type(tensor.element_name).is_float:
        return program.types[value]
    return tuple(tensor.shape), "float"


class _Kind(NamedTuple):
    """What an op does to looks, whatever its operands are."""

    op: Op
    is_conversion: bool
    never_rounds: bool
    read_types: tuple[str, ...]
    narrow: tuple[str, ...]
    keys: tuple[Hashable, ...]


class Looks:
    """The looks of the values of a body.

    Args:
      program: where they stand.
      live: the ops of the body that matter.
      numbers: of all values that are visible.
      table: of the numbers.
    """

    def __init__(self, program: Program, live: Iterable[Op], numbers: Mapping[ValueId, Number], table: Table) -> None:
        self._program, self._numbers, self._table = program, numbers, table
        self._kinds = [self._kind(op) for op in live]
        self._own: dict[ValueId, Look] = {}
        self._narrow: dict[Look, str] = {}
        self.values: dict[tuple[Look, Hashable], list[ValueId]] = {}

    def of(self, value: ValueId) -> Look:
        """The look of a value."""
        found = self._own.get(value)
        return self._numbers[value] if found is None else found

    def look(self, is_matched: Callable[[ValueId], bool], matched: dict[Look, Look]) -> None:
        """Look at all values, with the numbers that they have by now.

        Args:
          is_matched: whether the other module has a value's number.
          matched: the numbers of what is matched, by how it is computed: of both bodies, filled here.
        """
        self._own, self._narrow, self.values = {}, {}, {}
        for kind in self._kinds:
            for place, value in enumerate(kind.op.results):
                look = self._own[value] = self._look_of_result(kind, place, value, is_matched, matched)
                self.values.setdefault((look, self._program.types[value]), []).append(value)

    def _kind(self, op: Op) -> _Kind:
        inner = tuple(tuple(each.name for each in body.ops) for body in op.bodies)
        keys: list[Hashable] = []
        for place, value in enumerate(op.results):
            known = self._table.known.get(self._numbers[value])
            if known is not None and known.size and not any(known.strides):
                keys.append(("looks", float(np.asarray(known.flat[0], np.float64)), known.shape))
            else:
                kind = loose_type(self._program, value)
                keys.append(self._table.of(("looks", op.name, op.attributes, inner, kind, place)))
        return _Kind(
            op,
            is_float_conversion(self._program, op),
            op.name in NEVER_ROUNDED,
            tuple(_narrow_type(self._program, value) for value in op.reads),
            tuple(_narrow_type(self._program, value) for value in op.results),
            tuple(keys),
        )

    def _look_of_result(
        self,
        kind: _Kind,
        place: int,
        value: ValueId,
        is_matched: Callable[[ValueId], bool],
        matched: dict[Look, Look],
    ) -> Look:
        """The look of one result of an op. `_narrow` records looks that are, or once were, in a narrow type."""
        narrow = kind.narrow[place]
        if kind.is_conversion:
            look = self.of(kind.op.inputs[0])
            if kind.read_types[0]:
                self._narrow[look] = kind.read_types[0]
            if narrow and self._narrow.get(look) != narrow:
                look = self._table.of(("looks", narrow, look))
        else:
            key, reads = kind.keys[place], [self.of(value) for value in kind.op.reads]
            look = self._table.of(("looks", key, *reads))
            if kind.never_rounds:
                types = {self._narrow.get(look) or own for look, own in zip(reads, kind.read_types, strict=True)}
                narrow = narrow or (types.pop() if len(types) == 1 else "")
            elif narrow:
                look = self._table.of(("looks", narrow, look))
            if is_matched(value):
                matched.setdefault(look, self._numbers[value])
        look = matched.get(look, look)
        if narrow:
            self._narrow[look] = narrow
        return look


def _narrow_type(program: Program, value: ValueId) -> str:
    """The element type of a value if it is a float of at most 16 bits, else ""."""
    tensor = program.type_of(value)
    element = element_type(tensor.element_name) if tensor is not None else None
    return element.name if element is not None and element.is_float and element.bits <= 16 else ""


def has_float_conversions(program: Program, body: Body) -> bool:
    """Whether a body converts floats to floats."""
    return any(is_float_conversion(program, op) for op in body.ops)
