"""Windows that move along a dim: which positions of the operand a run of results reads, and the operand there.

Results i to i + n of windows of `reach` positions that move by `stride` read positions b to b + L of the operand:
`b = i * stride - low`, `L = (n - 1) * stride + reach`. Neighbouring runs overlap: that is the halo. What of them lies
outside the operand is padding.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from hlo_lower.ir.builder import Builder
from hlo_lower.ir.view import Value
from hlo_lower.ops.axes.dynamic_tile import DynamicTile
from hlo_lower.ops.axes.materialize import INDEX


@dataclass(frozen=True)
class MovingWindow:
    """The windows along a dim.

    Attributes:
      size: positions that a window reads.
      stride: how far the next one is.
      dilation: how far apart its positions are.
      low: positions of padding in front of the operand.
    """

    size: int
    stride: int
    dilation: int
    low: int

    @property
    def reach(self) -> int:
        """Positions from its first to its last."""
        return (self.size - 1) * self.dilation + 1

    def read(self, build: Builder, operand: Value, dim: int, start: Value, count: int, fill: Value) -> Value:
        """What `count` windows read, from that at a scalar start on: positions outside are `fill`.

        The nearest positions that lie inside are read, S of the L; padded by L on either side they hold the ones that
        are wanted at L - shift, where shift, in [-S, L], is how far they were moved.
        """
        length = (count - 1) * self.stride + self.reach
        shape = operand.static_shape
        begin = _moved(build, start, self.stride, -self.low)
        zero = build.constant(0, (), INDEX)
        starts = tuple(begin if d == dim else zero for d in range(len(shape)))
        sizes = tuple(length if d == dim else n for d, n in enumerate(shape))
        shifted = DynamicTile(shape, starts, sizes, masked=(dim,)).shifted(build)
        inside = shifted.tile.materialize(build, operand)
        margin = [length if d == dim else 0 for d in range(len(shape))]
        padded = build.pad(inside, fill, margin, margin)
        place = build.subtract(build.constant(length, (), INDEX), shifted.shifts[dim])
        return build.dynamic_slice(padded, [place if d == dim else zero for d in range(len(shape))], sizes)


def _moved(build: Builder, start: Value, factor: int, by: int) -> Value:
    """A start times a factor, moved."""
    if factor != 1:
        start = build.multiply(start, build.constant(factor, (), INDEX))
    return build.add(start, build.constant(by, (), INDEX)) if by else start


def without_padding(padding: Sequence[int], at: int) -> str:
    """The text of a padding attribute, low and high of each dim, with none at one."""
    pairs = [[0, 0] if d == at else list(padding[2 * d : 2 * d + 2]) for d in range(len(padding) // 2)]
    return f"dense<{pairs}> : tensor<{len(pairs)}x2xi64>"
