"""Equality at one symbolic position: what two modules compute is the same, whatever the sizes.

An output is asked for one element, at a position of variables. Each op has a law that says of which elements of its
operands an element of its result is made (`pull`), so nothing is unrolled and the size of a tensor does not matter.
Integers and truths are exact bit-vectors, floats are their bits with one function symbol an operation and a few named
laws; what combines over positions (reduce, dot_general, scatter, counted loops) is a fold, and two folds are the same
where what they combine is the same.

    derive(before_text, after_text, seconds=4.0) -> Derivation      "derived" with its laws, or "open" with the reason

What is asked for at several places is pulled once, at variables, and each place is written in: else the first of many
layers would be pulled at thousands of places.

`terms` and `floats` hold elements, `parts` what stands within them, `positions` and `ranges` the arithmetic of places,
`occurrences` what stands for a fold. The laws are in `moving`, `elementwise`, `folding`, `sorting`, `loops` and
`congruence`, their names in `laws`. `prover` evaluates and asks z3.
"""

from hlo_lower.verify.pull.derive import NOTHING, Derivation, derive
from hlo_lower.verify.pull.laws import LAWS, Law

__all__ = ["LAWS", "NOTHING", "Derivation", "Law", "derive"]
