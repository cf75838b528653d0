"""What the evaluations of both modules share: the policy, what may be assumed, how much time is left."""

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any, Literal

from hlo_lower.verify.proof.beyond import Beyond
from hlo_lower.verify.proof.elements import Element, element_of
from hlo_lower.verify.proof.solver import z3
from hlo_lower.verify.proof.terms import Term, is_known


@dataclass
class World:
    """The setting of one proof.

    Attributes:
      timeout_s: for everything, from now on.
      oob: what a scatter does with windows that reach out: drop them ("xla"), or their outside elements ("spec").
      trusts_flags: whether `unique_indices = true` may be assumed of every scatter.
      floats_as_bits: whether floats are bit-vectors, not elements of uninterpreted sorts.
      assumptions: what holds of the arguments.
    """

    timeout_s: float
    oob: Literal["xla", "spec"] = "xla"
    trusts_flags: bool = False
    floats_as_bits: bool = False
    assumptions: list[Any] = field(default_factory=list[Any])
    _path: list[Any] = field(default_factory=list[Any])
    _start: float = field(default_factory=perf_counter)

    def element(self, name: str) -> Element:
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
        found = z3.SolverFor("QF_UFBV")
        found.set("timeout", max(1, int(self.left() * 1000)))
        found.add(*self.assumptions)
        return found
