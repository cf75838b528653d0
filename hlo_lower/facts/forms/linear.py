"""Linear forms: one element of an integer tensor as constant + sum of coefficient * symbol.

A form says what an element is at a symbolic place. The symbols are the positions that the place depends on (the scatter
dims p0, p1, ... of an index tensor) and elements that are not looked into. Sums hold modulo 2^width, as integer
arithmetic wraps around: `x + iota` in i8 is `x + p0` modulo 256 whatever x is (trap 41). Who uses a form has to show
that wrapping around does no harm, or that nothing wraps.

What wrapped around in a signed type of w bits, was converted to a wider one, and had m added there is another number
than what had m added before: `wrap_w(constant - m + terms) + m`. So w and m belong to what a form is, and two forms of
one type are one number only if they agree in both.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from hlo_lower.base.causes import Cause, Code
from hlo_lower.facts.values.evidence import Evidence, merge
from hlo_lower.facts.values.site import Site


@dataclass(frozen=True, slots=True)
class Position:
    """The coordinate along one scatter dim: 0 to its size - 1."""

    dim: int
    size: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Element:
    """An element that is not looked into: of a value, at coordinates that are forms themselves.

    Attributes:
      site: the tensor.
      coordinates: where in it.
      why: what it is, for a reason (an argument, the result of a gather); no part of its identity.
      source: the step that says so.
    """

    site: Site
    coordinates: tuple["Linear", ...]
    why: Cause | None = field(default=None, compare=False)
    source: Evidence | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Start:
    """The start of a `dynamic_slice` in one dim, after the op has clamped it.

    Attributes:
      site: the op's result.
      dim: the dim.
      last: the greatest that it can be; no part of its identity.
    """

    site: Site
    dim: int
    last: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Normalized:
    """A normalised negative index, `select(x < 0, x + offset, x)`, in a type of this width."""

    inner: "Linear"
    offset: int
    width: int


Symbol: TypeAlias = Position | Element | Start | Normalized


@dataclass(frozen=True, slots=True, eq=False)
class Linear:
    """constant + sum of coefficient * symbol, modulo 2^width.

    Attributes:
      constant: the constant part.
      terms: the symbols with their coefficients, none of them 0.
      width: bits in which the sum may have wrapped around; 0 where it is exact.
      moved: what was added, signs and all, after a conversion to a wider type than that of the width; 0 without one.
      evidence: the operations that it was read from.
    """

    constant: int
    terms: Mapping[Symbol, int] = field(default_factory=dict[Symbol, int])
    width: int = 0
    moved: int = 0
    evidence: Evidence | None = field(default=None, compare=False)
    _hash: int | None = field(default=None, init=False, repr=False)
    _dims: "frozenset[int] | None" = field(default=None, init=False, repr=False)

    def __hash__(self) -> int:
        if self._hash is None:  # once: forms within forms have exponentially many parts, and few different ones
            parts = (self.constant, frozenset(self.terms.items()), self.width, self.moved)
            object.__setattr__(self, "_hash", hash(parts))
        assert self._hash is not None
        return self._hash

    def __eq__(self, other: object) -> bool:
        """Whether they are the same number wherever both are elements of one type."""
        return other is self or (isinstance(other, Linear) and self._parts == other._parts)

    @property
    def _parts(self) -> tuple[object, ...]:
        return self.constant, self.terms, self.width, self.moved

    @property
    def drift(self) -> int:
        """How far what wrapped around in the width has been moved since."""
        return abs(self.moved)

    @property
    def dims(self) -> frozenset[int]:
        """The scatter dims that it depends on."""
        if self._dims is None:  # once, as the hash
            dims = frozenset(dim for symbol in self.terms for dim in _dims(symbol))
            object.__setattr__(self, "_dims", dims)
        assert self._dims is not None
        return self._dims

    @property
    def is_constant(self) -> bool:
        """Whether it is the same number everywhere."""
        return not self.terms

    def split(self) -> tuple[dict[Symbol, int], "Linear"]:
        """The terms that depend on a position, and the rest."""
        moving = {s: c for s, c in self.terms.items() if _dims(s)}
        rest = {s: c for s, c in self.terms.items() if s not in moving}
        return moving, Linear(self.constant, rest, self.width)

    def stride(self, dim: int) -> int | None:
        """How much it grows from one position along a scatter dim to the next; None where that is not one number."""
        if any(dim in _dims(s) for s in self.terms if not isinstance(s, Position)):
            return None
        return self.terms.get(Position(dim), 0)

    def plus(self, other: "Linear", sign: int = 1) -> "Linear":
        """This form plus, or minus, another of the same type."""
        terms = dict(self.terms)
        for symbol, coefficient in other.terms.items():
            terms[symbol] = terms.get(symbol, 0) + sign * coefficient
        return Linear(
            self.constant + sign * other.constant,
            {symbol: c for symbol, c in terms.items() if c},
            min(filter(None, (self.width, other.width)), default=0),
            self.moved + sign * other.moved,
            _sum_evidence(self, other),
        )

    def above(self, other: "Linear", width: int) -> int | None:
        """By how much this form is more than another, modulo 2^width, where that is one number everywhere.

        Args:
          other: the other form.
          width: bits of the type that both are elements of.
        """
        if self.terms != other.terms or self.width != other.width:
            return None
        apart, moved = self.constant - other.constant, self.moved - other.moved
        # What differs before a conversion to more bits may have wrapped around there in one of them alone.
        return apart if apart == moved or (not self.moved and not other.moved and self.width in (0, width)) else None

    def times(self, factor: int) -> "Linear":
        """This form times a number."""
        terms = {symbol: c * factor for symbol, c in self.terms.items()} if factor else {}
        return Linear(self.constant * factor, terms, self.width, self.moved * factor, self.evidence)

    def plus_in_wider_type(self, constant: "Linear") -> "Linear":
        """This form, of which a narrower type may have wrapped around, plus a constant in the wider type."""
        added = constant.constant
        return Linear(self.constant + added, self.terms, self.width, self.moved + added, self.evidence)

    def in_width(self, width: int) -> "Linear":
        """The same modulo fewer bits, or exact until now and from here on modulo these.

        Modulo no more bits than those that it wrapped around in, it does not matter what was added when.
        """
        if self.width and width > self.width:
            return self
        return Linear(self.constant, self.terms, width, 0, self.evidence)

    def because(self, evidence: Evidence | None) -> "Linear":
        """The same form with this evidence."""
        return Linear(self.constant, self.terms, self.width, self.moved, evidence)


ZERO = Linear(0)


def origin(coordinate: Linear) -> Linear:
    """A coordinate at position 0."""
    terms: dict[Symbol, int] = {s: c for s, c in coordinate.terms.items() if not isinstance(s, Position)}
    return Linear(coordinate.constant, terms, coordinate.width)


def positions(forms: Iterable[Linear]) -> set[int]:
    """The scatter dims that forms depend on."""
    return {dim for form in forms for dim in form.dims}


def _dims(symbol: Symbol) -> set[int]:
    match symbol:
        case Position():
            return {symbol.dim}
        case Element():
            return positions(symbol.coordinates)
        case Normalized():
            return positions([symbol.inner])
        case Start():
            return set()


def _sum_evidence(a: Linear, b: Linear) -> Evidence | None:
    steps = merge((a.evidence, b.evidence))
    return steps[0] if len(steps) == 1 else Evidence(Code.SUM(), None, steps) if steps else None
