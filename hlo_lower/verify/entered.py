"""Which branches and loop bodies of a piece its runs entered: what no run entered, no run says anything of.

Looked at are the control operations of the piece's own body; those within a loop or a branch are regions of their own
where both modules have the loop.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hlo_lower.verify.program import Op, ValueId, location_of

Array = NDArray[Any]

BRANCHING = ("stablehlo.if", "stablehlo.case")


@dataclass
class Entered:
    """What the runs of a piece entered.

    Attributes:
      ops: its control operations.
      branches: for each of them that chooses a branch, the numbers of the branches that were entered.
      changed: the loops of which some run changed what they carry.
    """

    ops: tuple[Op, ...]
    branches: dict[Op, set[int]] = field(default_factory=dict[Op, set[int]])
    changed: set[Op] = field(default_factory=set[Op])

    @classmethod
    def of(cls, ops: Iterable[Op]) -> "Entered":
        """What is to be watched of a piece."""
        return cls(tuple(op for op in ops if op.name in BRANCHING or op.name == "stablehlo.while"))

    def values(self) -> list[ValueId]:
        """The values that tell it, in the order in which `add` takes their contents."""
        return [value for op in self.ops for value in _told_by(op)]

    def add(self, contents: Sequence[Array]) -> None:
        """Look at a run.

        Args:
          contents: what it has at `values`.
        """
        left = list(contents)
        for op in self.ops:
            own, left = left[: len(_told_by(op))], left[len(_told_by(op)) :]
            if op.name in BRANCHING:
                self.branches.setdefault(op, set()).add(_branch(op, own[0]))
            elif any(a.tobytes() != b.tobytes() for a, b in zip(own[::2], own[1::2], strict=True)):
                self.changed.add(op)

    def missed(self) -> Iterator[str]:
        """What no run entered, a line each."""
        for op in self.ops:
            where = location_of(op.raw)
            if op.name in BRANCHING:
                left = [n for n in range(len(op.bodies)) if n not in self.branches.get(op, ())]
                if left:
                    yield f"the {op.short_name} at {where}: no run took branch {' or '.join(map(str, left))}"
            elif op not in self.changed:
                yield f"the loop at {where}: no run changed what it carries"


def _told_by(op: Op) -> list[ValueId]:
    """The predicate or index of a choice; what a loop carries, before and behind it in turn."""
    if op.name in BRANCHING:
        return [op.inputs[0]]
    return [value for pair in zip(op.inputs, op.results, strict=True) for value in pair]


def _branch(op: Op, chosen: Array) -> int:
    """The branch that an index chooses: out of range the last one; the first one of an `if` is for true."""
    number = int(np.asarray(chosen).reshape(()))
    if op.name == "stablehlo.if":
        return 0 if number else 1
    return number if 0 <= number < len(op.bodies) else len(op.bodies) - 1
