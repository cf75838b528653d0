"""Batcher's merge exchange: a sorting network for any number of rows (Knuth, The Art of Computer Programming 5.2.2 M).

In a stage (p, distance, is_odd) rows i and i + distance are compared, and exchanged where they are in the wrong order,
for all i below n - distance that lie in an even block of p rows, or in an odd one. About log2(n) ** 2 / 2 stages.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class ExchangeStage:
    """A stage.

    Attributes:
      block: p, a power of two.
      distance: of the rows that are compared, an odd multiple of p.
      is_odd: whether the upper ones lie in odd blocks of p rows, the lower ones in even blocks; else the other way.
    """

    block: int
    distance: int
    is_odd: bool


def stages_of(rows: int) -> list[ExchangeStage]:
    """The stages that sort so many rows, in order."""
    found: list[ExchangeStage] = []
    highest = 1 << max((rows - 1).bit_length() - 1, 0)
    block = highest if rows > 1 else 0
    while block:
        found.append(ExchangeStage(block, block, is_odd=False))
        step = highest
        while step > block:
            found.append(ExchangeStage(block, step - block, is_odd=True))
            step //= 2
        block //= 2
    return [stage for stage in found if stage.distance < rows]
