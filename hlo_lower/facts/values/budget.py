"""Budgets: how many steps an analysis may make, and how much it may keep, before what is left is unknown.

A fact costs steps, and some modules would have it cost more of them than anybody waits for: a value that is reached in
exponentially many ways, each through other calls. So steps are counted, for each question that is asked and for all of
them together, and beyond the budget the answer is *unknown*, which is always right. Steps are counted and not timed:
the same module gets the same answers everywhere.
"""

from typing import NamedTuple

FOLLOWED = 40
"""Most producers that are followed by what looks for one thing alone: a step, a remainder, a known mask."""


MAX_KEPT = 1 << 28
"""Most bounds of single elements that are kept of one module: 256 Mi, 2 GiB. Beyond, of each tensor one range is."""

HIGHEST = 180
"""Most steps that are open at once, those of all providers together: about five frames of Python's stack each."""

MAX_POSITIONS = 1 << 20
"""Most positions that are compared one by one: 1 Mi."""


class Allowance(NamedTuple):
    """What a provider may spend.

    Attributes:
      in_all: steps for all questions.
      a_question: steps for one question.
      deepest: the longest chain of producers that is followed, by recursion.
      an_operation: more steps for all questions, for each operation of the module: so the time that they take grows
        with the module and no faster.
    """

    in_all: int
    a_question: int
    deepest: int
    an_operation: int = 0


RANGES = Allowance(50_000, 2_000, 100, 20)
"""Of the intervals of one module: values."""

FORMS = Allowance(8_000, 4_000, 100)
"""Of the linear forms for one scatter: elements at places."""

DISTINCTNESS = Allowance(2_400, 600, 60)
"""Of the elements along positions for one scatter."""


class Stack:
    """How many steps are open, of all providers that ask each other; their recursion is one."""

    def __init__(self) -> None:
        self.height = 0


class Budget:
    """What is left of an allowance.

    A question opens with its first step and ends when that one does; what it asks on the way belongs to it.

    Attributes:
      left: steps that are left for all questions.
      cuts: how often a step was refused. What was found while one was refused may be less than what could be known, so
        it answers the question but is not kept for others.
      kept: how many numbers may still be kept.
      deepest: the longest chain of producers.
      stack: shared with the budgets of the providers that this one's provider asks.
    """

    def __init__(self, in_all: int, a_question: int, deepest: int = 100, stack: Stack | None = None) -> None:
        self.left = in_all
        self.cuts = 0
        self.kept = MAX_KEPT
        self.deepest = deepest
        self.stack = stack or Stack()
        self._a_question = a_question
        self._here = 0
        self._open = 0

    @classmethod
    def of(cls, allowance: Allowance, operations: int = 0, stack: Stack | None = None) -> "Budget":
        """A budget for a module of so many operations."""
        in_all = allowance.in_all + allowance.an_operation * operations
        return cls(in_all, allowance.a_question, allowance.deepest, stack)

    @property
    def is_asked(self) -> bool:
        """Whether a question is open."""
        return self._open > 0

    @property
    def depth(self) -> int:
        """How many producers have been followed to the one in hand."""
        return self._open - 1

    @property
    def is_too_deep(self) -> bool:
        """Whether another step would make the chain of producers too long."""
        return self._open > self.deepest

    def begin(self) -> bool:
        """Begin a step, to be ended by `end`; False where there is none left."""
        if not self._open:
            self._here = min(self._a_question, self.left)
        if self._here <= 0 or self.stack.height >= HIGHEST:
            self.cuts += 1
            return False
        self._here -= 1
        self.left -= 1
        self._open += 1
        self.stack.height += 1
        return True

    def end(self) -> None:
        """End a step."""
        self._open -= 1
        self.stack.height -= 1
