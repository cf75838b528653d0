"""What becomes of an op: a rule lowers it, it is kept, or there is no lowering that the target takes."""

from dataclasses import dataclass
from typing import TypeAlias

from hlo_lower.base.causes import Cause
from hlo_lower.base.errors import NotLoweredError
from hlo_lower.base.registry import Choice, Facts, Rule


@dataclass(frozen=True)
class Chosen:
    """A rule lowers it.

    Attributes:
      facts: what is known of it, in the form that the rule is for.
      choice: the rule, and why each other one was not taken.
    """

    facts: Facts
    choice: Choice


@dataclass(frozen=True)
class Kept:
    """It stays as it is, and why: the target takes it, or it was asked for."""

    why: Cause


@dataclass(frozen=True)
class Refused:
    """It has no lowering.

    Attributes:
      error: for whoever cannot go on without one.
      why: what it lacks.
      nearest: the rules that lack least, each with what it lacks.
    """

    error: NotLoweredError
    why: Cause
    nearest: tuple[tuple[Rule, tuple[Cause, ...]], ...] = ()


Decision: TypeAlias = Chosen | Kept | Refused
