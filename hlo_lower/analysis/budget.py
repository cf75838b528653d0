"""Budgets: how many steps an analysis may make before what is left is unknown.

A fact costs steps, and some modules would have it cost more of them than anybody waits for: a value that is reached in
exponentially many ways, each through other calls. So steps are counted, for each question that is asked and for all of
them together, and beyond the budget the answer is *unknown*, which is always right. Steps are counted and not timed:
the same module gets the same answers everywhere.
"""


class Budget:
    """What is left of the steps of an analysis.

    A question opens with its first step and ends when that one does; what it asks on the way belongs to it.

    Attributes:
      left: steps that are left for all questions.
      cuts: how often a step was refused. What was found while one was refused may be less than what could be known, so
        it answers the question but is not kept for others.
    """

    def __init__(self, in_all: int, a_question: int) -> None:
        self.left = in_all
        self.cuts = 0
        self._a_question = a_question
        self._here = 0
        self._open = 0

    @property
    def is_asked(self) -> bool:
        """Whether a question is open."""
        return self._open > 0

    def begin(self) -> bool:
        """Begin a step, to be ended by `end`; False where there is none left."""
        if not self._open:
            self._here = min(self._a_question, self.left)
        if self._here <= 0:
            self.cuts += 1
            return False
        self._here -= 1
        self.left -= 1
        self._open += 1
        return True

    def end(self) -> None:
        """End a step."""
        self._open -= 1
