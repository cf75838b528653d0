"""What a matcher finds: a named op, or what was almost one and what it lacked; and the table of all matchers."""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from hlo_lower.base.causes import Cause
from hlo_lower.named.match.terms import Term

AttributeValue: TypeAlias = bool | int | float | str | tuple[int, ...] | tuple[str, ...]
"""An attribute of a named op: an epsilon, axes, the names of its operands."""


@dataclass(eq=False, slots=True)
class Match:
    """A named op that was found."""

    name: str  # without "hl."
    inputs: Mapping[str, Term]  # its operands by their roles, in order: {"x": ..., "weight": ...}
    # what it gives; values in between that others take as well follow them (`hlo_lower.named.take_out.region`).
    # attributes: its attributes.
    results: Collection[Term]
    attributes: Mapping[str, AttributeValue] = field(default_factory=dict[str, AttributeValue])


@dataclass(frozen=True, eq=False)
class NearMiss:
    """A value with the parts of a named op that is none."""

    name: str  # of the op that it almost is
    why: Cause  # what it lacks
    at: Term  # the value at which that was seen


Found: TypeAlias = Match | NearMiss | None
Matcher: TypeAlias = Callable[[Term], Found]


@dataclass
class Matchers:
    """Matchers by the op that they begin at.

    A matcher begins at a rare op (an exponential, a reciprocal square root), goes up to what it is made of and down to
    what is made of it. It is called for each op of these names, in program order, and answers None at once for most.
    """

    by_anchor: dict[str, list[Matcher]] = field(default_factory=dict[str, list[Matcher]])
    names: dict[Matcher, tuple[str, ...]] = field(default_factory=dict[Matcher, tuple[str, ...]])

    def finds(self, *names: str, at: Iterable[str]) -> Callable[[Matcher], Matcher]:
        """Register a matcher that begins at these ops; "func.call stablehlo.multiply" is a call of what gives a
        multiply's result."""

        def register(matcher: Matcher) -> Matcher:
            self.names[matcher] = names
            for op in at:
                self.by_anchor.setdefault(op, []).append(matcher)
            return matcher

        return register

    @property
    def all_names(self) -> tuple[str, ...]:
        """The names of all ops that are found, in order."""
        return tuple(sorted({name for names in self.names.values() for name in names}))


matchers = Matchers()
"""All matchers of `hlo_lower.named`."""
