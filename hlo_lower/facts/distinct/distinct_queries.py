"""What the rules of `reordered`, `mapped` and `chosen` may ask: `Distinctness`, as they see it."""

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from hlo_lower.facts.distinct.axis_facts import AxisFacts
from hlo_lower.facts.forms.linear import Position
from hlo_lower.facts.forms.places import Entry, Place
from hlo_lower.facts.values.site import Site
from hlo_lower.ir.view import Node, Value

if TYPE_CHECKING:
    from hlo_lower.facts.distinct.distinctness import Distinctness

Axes: TypeAlias = tuple[Position, ...]


class Entries(NamedTuple):
    """Elements of a tensor.

    Attributes:
      site: the tensor.
      place: where in it: a form for each of its dims.
      axes: the positions that vary, the slowest first; the others, and whatever else is in the place, stay.
    """

    site: Site
    place: Place
    axes: Axes

    @property
    def entry(self) -> Entry:
        """One of them."""
        return Entry(self.site, self.place)

    @property
    def varying(self) -> set[int]:
        """The numbers of the positions that vary."""
        return {axis.dim for axis in self.axes}

    def to(self, value: Value, place: Place | None = None, axes: Axes | None = None) -> "Entries":
        """Elements of another tensor of the same function; at the same place, along the same axes."""
        return Entries(self.site.to(value), self.place if place is None else place, self.axes if axes is None else axes)

    def of(self, entry: Entry) -> "Entries":
        """Elements at another entry, along the same axes."""
        return Entries(*entry, self.axes)

    def operand(self, value: Value) -> "Entries":
        """The elements of an operand of an elementwise op; a scalar has one for all."""
        return self.to(value) if value.shape else self.to(value, ())


DistinctQueries: TypeAlias = "Distinctness"

Rule: TypeAlias = Callable[[DistinctQueries, Node, Entries], AxisFacts]
"""What is known of elements of an op's result: the analysis, the node, the elements."""
