"""A binary search for every row at once, in sorted row numbers."""

from dataclasses import dataclass

from hlo_lower.ir.axes import take_rows
from hlo_lower.ir.builder import Builder
from hlo_lower.ir.view import Value


@dataclass(frozen=True)
class Found:
    """Where a search ended.

    Attributes:
      place: for each row [B, D] a place in [0, N).
      key: what stands there.
    """

    place: Value
    key: Value

    def hit(self, build: Builder) -> Value:
        """Whether what stands at its place is the row itself, [B, D]."""
        return build.compare(self.key, "EQ", build.iota(self.place.static_shape, 1, self.key.element_type))

    def count(self, build: Builder) -> Value:
        """How many keys are at most the row, [B, D]."""
        shape, element = self.place.static_shape, self.place.element_type
        through = build.add(self.place, build.constant(1, shape, element))
        reached = build.compare(self.key, "LE", build.iota(shape, 1, element))
        return build.select(reached, through, build.constant(0, shape, element))

    def of(self, build: Builder, values: Value) -> Value:
        """Of other values, [B, N, ...], what stands at the places."""
        return take_rows(build, values, self.place)


def last_at_most(build: Builder, keys: Value, rows: int) -> Found:
    """For each row d in [0, rows) the last place whose key is at most d; 0 where all keys are greater.

    Args:
      build: where to build.
      keys: [B, N], ascending along N; N is at least 1.
      rows: D.

    The place is built from its highest binary digit down: a digit is set if the place with it is still in [0, N) and
    its key at most d. Keys ascend, so all places up to one that is found have keys of at most d.
    """
    b, n = keys.static_shape
    element, shape = keys.element_type, (b, rows)
    own = build.iota(shape, 1, element)
    place = build.constant(0, shape, element)
    digit = 1 << max((n - 1).bit_length() - 1, 0)
    while digit and n > 1:
        further = build.add(place, build.constant(digit, shape, element))
        last = build.constant(n - 1, shape, element)
        within = build.compare(further, "LE", last)
        key = take_rows(build, keys, build.minimum(further, last))
        ahead = build.and_(within, build.compare(key, "LE", own))
        place = build.select(ahead, further, place)
        digit >>= 1
    return Found(place, take_rows(build, keys, place))
