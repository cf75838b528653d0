"""What the evaluations of both modules share: the policy, what may be assumed, how much time is left."""

from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any, Literal

from hlo_lower.verify.proof.beyond import Beyond
from hlo_lower.verify.proof.elements import ProofType, element_of
from hlo_lower.verify.proof.solver import z3
from hlo_lower.verify.proof.terms import Term, either, is_known, opposite
from hlo_lower.verify.read.numbering import Table

_LOGIC = "QF_UFBV"
"""Bit-vectors and uninterpreted functions, without quantifiers."""


@dataclass
class World:
    """The setting of one proof.

    Attributes:
      timeout_s: for everything, from now on.
      oob: what a scatter does with windows that reach out: drop them ("xla"), or their outside elements ("spec").
      trusts_flags: whether `unique_indices = true` may be assumed of the scatters that are evaluated.
      floats_as_bits: whether floats are bit-vectors, not elements of uninterpreted sorts.
      assumptions: what holds of the arguments.
      table: value numbers, by which regions of both modules are told apart.
    """

    timeout_s: float
    oob: Literal["xla", "spec"] = "xla"
    trusts_flags: bool = False
    floats_as_bits: bool = False
    assumptions: list[Any] = field(default_factory=list[Any])
    table: Table = field(default_factory=Table)
    _path: list[Any] = field(default_factory=list[Any])
    _start: float = field(default_factory=perf_counter)

    def element(self, name: str) -> ProofType:
        """An element type by its printed name.

        Raises:
          Beyond: it is of none of the kinds that are known.
        """
        return element_of(name, floats_as_bits=self.floats_as_bits)

    def left(self) -> float:
        """Seconds that are left.

        Raises:
          Beyond: none are.
        """
        found = self.timeout_s - (perf_counter() - self._start)
        if found <= 0:
            raise Beyond(f"more than {self.timeout_s:g} s")
        return found

    @contextmanager
    def under(self, condition: Term) -> Generator[None]:
        """While a condition holds: what is evaluated inside counts only then."""
        if is_known(condition):
            yield
            return
        self._path.append(condition)
        try:
            yield
        finally:
            self._path.pop()

    def assume(self, conditions: Sequence[Term]) -> None:
        """Take it that conditions hold of the arguments, where what is evaluated here counts."""
        excluded = [opposite(condition) for condition in self._path]
        self.assumptions += [either(*excluded, condition) for condition in conditions]

    def is_possible(self, condition: Term) -> bool:
        """Whether a truth may hold here, for any arguments; also where the solver does not know."""
        if is_known(condition):
            return bool(condition)
        solver = self.solver()
        solver.add(*self._path, condition)
        return solver.check() != z3.unsat

    def solver(self) -> Any:
        """A solver that knows the assumptions and has the time that is left.

        Raises:
          Beyond: no time is.
        """
        return self._limited(z3.SolverFor(_LOGIC), self.left())

    def solvers(self) -> Iterator[Any]:
        """Solvers to be asked one after the other, as long as none has an answer.

        Most questions are answered at once. Sums in another order are easy once every choice is taken out of them (a
        sum of sums is a sum in normal form), which makes other questions large; so that is tried in between.

        Raises:
          Beyond: no time is left.
        """
        yield self._limited(z3.SolverFor(_LOGIC), min(2.0, self.left() * 0.15))
        steps = ("simplify", "propagate-values", "cofactor-term-ite", "simplify", "smt")
        yield self._limited(z3.Then(*steps).solver(), self.left() * 0.3)
        yield self.solver()

    def _limited(self, solver: Any, seconds: float) -> Any:
        """A solver that knows the assumptions and gives up after a time."""
        solver.set("timeout", max(1, int(seconds * 1000)))
        solver.add(*self.assumptions)
        return solver
