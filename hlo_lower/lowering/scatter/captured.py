"""What a scatter's region takes from around it, brought into the body of a loop.

Some consumers refuse a region that captures values, so constants are made again inside and everything else is carried
through the loop unchanged (traps 23 and 44).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hlo_lower.ir.builder import Builder
from hlo_lower.ir.regions import captured_values
from hlo_lower.ir.view import Block, Value
from hlo_lower.ops.names import CONSTANT


@dataclass(frozen=True)
class Captured:
    """The captured values of a region.

    Attributes:
      constants: those that are constants.
      carried: all others, to be invariant values of the loop.
    """

    constants: tuple[Value, ...]
    carried: tuple[Value, ...]

    def inside(self, build: Builder, taken: Sequence[Value]) -> Mapping[Value, Value]:
        """For each captured value the one to take in the loop's body, given those that came through for `carried`."""
        replaced = dict(zip(self.carried, taken, strict=True))
        for value in self.constants:
            assert value.node is not None
            replaced[value] = build.clone(value.node, [], [value.raw.type]).results[0]
        return replaced


def captured_by(region: Block) -> Captured:
    """What a region captures."""
    values = captured_values(region)
    constants = [v for v in values if v.node is not None and v.node.name == CONSTANT]
    return Captured(tuple(constants), tuple(v for v in values if v not in constants))
