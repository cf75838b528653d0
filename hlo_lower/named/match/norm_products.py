"""What a norm multiplies: the value, what it divides by, and a weight, in any order and in any layout."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from hlo_lower.named.match.arithmetic import plus, uncast
from hlo_lower.named.match.axis_atoms import LAYOUT, Axis, View, leaves
from hlo_lower.named.match.terms import Term

STEPS = 40
"""Most ops that are looked at below a root."""

PASSED = LAYOUT | {"convert", "multiply", "divide"}
"""What lies between a root and the product that it goes into."""


@dataclass(frozen=True)
class Factor:
    """A factor of a product.

    Attributes:
      view: the factor, with the atoms of the product.
      divides: whether it divides.
    """

    view: View
    divides: bool


def products_below(root: Term) -> Iterator[Term]:
    """Products that a root goes into, the nearest first."""
    pending, steps, seen = [root], STEPS, set[int]()
    while pending and steps:
        for user in pending.pop(0).users:
            steps -= 1
            if user.op not in PASSED or id(user) in seen:
                continue
            seen.add(id(user))
            pending.append(user)
            if user.op in ("multiply", "divide"):
                yield user


def factors(view: View, is_whole: Callable[[View], bool], depth: int = 10) -> list[Factor] | None:
    """The factors of a product; None where one is a number but 1.

    Args:
      view: the product.
      is_whole: whether a value is a factor that is not taken apart.
      depth: how many ops are taken apart, one above the other.
    """
    found: list[Factor] = []
    pending = [(view, False, depth)]
    while pending:
        at, divides, left = pending.pop(0)
        term = at.term
        if is_whole(at) or not left:
            found.append(Factor(at, divides))
        elif term.op in ("multiply", "divide"):
            pending.append((at.on(term.operands[0]), divides, left - 1))
            pending.append((at.on(term.operands[1]), divides != (term.op == "divide"), left - 1))
        elif term.op in LAYOUT or term.op == "convert":
            below = at.under()
            if below is None:
                return None
            pending.append((below, divides, left))
        elif (number := term.scalar) is not None:
            if float(number) != 1:
                return None
        else:
            found.append(Factor(at, divides))
    return found


@dataclass(frozen=True)
class Parameter:
    """A weight or bias: the operand, its atoms, and whether 1 is added to it."""

    term: Term
    atoms: Axis
    one_plus: bool = False


def parameter(view: View, within: Axis, *, may_add_one: bool = False) -> Parameter | None:
    """A weight or bias that depends on nothing but these atoms, in their order; beneath layout and conversions."""
    root = view.root()
    atoms = root.atoms
    if not atoms or not set(atoms) <= set(leaves(within)):
        return None
    if [atom for atom in leaves(within) if atom in atoms] != list(atoms):
        return None
    if may_add_one:
        below = plus(root.term, 1)
        if below is not None:
            inner = root.on(below).root()
            return Parameter(uncast(inner.term), atoms, True)
    return Parameter(uncast(root.term), atoms)
