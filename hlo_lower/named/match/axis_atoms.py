"""Axis atoms: an axis is an ordered product of atoms, and layout only moves, splits and merges them.

Atoms are made where a match begins: one for each axis that is longer than 1. Going up from a value to what it is made
of, each op of layout says where the atoms go: a transpose permutes axes, a broadcast drops the atoms that its operand
does not have, and a reshape deals the same atoms out in row-major order, splitting one where it has to. So whatever an
export does to put heads before positions, or batch and heads into one axis, the question "is this sum over the same
rows" is whether two lists of atoms are the same.

    [B*N, T]  <- reshape <-  [B, N, T]      atoms  (b n) t   ->   b, n, t

This asks which atoms an axis is made of. `subset.families.shape.outermost` asks where two shapes are cut alike, and
`analysis.places` where one position goes; neither keeps the axes of a whole.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from hlo_lower.named.match.terms import Term
from hlo_lower.ops.spec import RESHAPING, short

LAYOUT = short(RESHAPING)
"""Ops that give elements other places."""

CASTS = frozenset({"convert"})


@dataclass(eq=False)
class Atom:
    """A factor of an axis."""

    extent: int  # how many positions it has; more than 1
    parts: "tuple[Atom, ...]" = ()  # the two that it was split into, the outer first; () while it is whole

    def __repr__(self) -> str:
        return f"{id(self) % 997}:{self.extent}"

    def split(self, inner: int) -> None:
        """Split it in two, the inner one of this extent."""
        self.parts = Atom(self.extent // inner), Atom(inner)


Axis = tuple[Atom, ...]


def leaves(atoms: Iterable[Atom]) -> Axis:
    """Atoms as they are split now."""
    found: list[Atom] = []
    for atom in atoms:
        found += leaves(atom.parts) if atom.parts else [atom]
    return tuple(found)


def fresh(shape: Iterable[int]) -> tuple[Axis, ...]:
    """An atom of its own for each axis that is longer than 1."""
    return tuple((Atom(size),) if size > 1 else () for size in shape)


@dataclass(frozen=True)
class View:
    """A value, and the atoms that each of its axes is made of."""

    term: Term  # the value
    # for each axis its atoms, the outermost first; an atom that is not there is one that it does not depend on
    axes: tuple[Axis, ...]

    @classmethod
    def of(cls, term: Term) -> "View":
        """A value with atoms of its own."""
        return cls(term, fresh(term.shape))

    def on(self, term: Term) -> "View":
        """Another value of the same shape, with the same atoms."""
        return View(term, self.axes)

    def axis(self, dim: int) -> Axis:
        """The atoms of one axis, as they are split now."""
        return leaves(self.axes[dim])

    @property
    def atoms(self) -> Axis:
        """All of its atoms, in row-major order."""
        return leaves(atom for axis in self.axes for atom in axis)

    def beneath(self) -> "View | None":
        """The operand of an op of layout; None where it is another op, or axes that cannot be told apart."""
        term = self.term
        if term.op == "transpose":
            axes: list[Axis] = [()] * len(self.axes)
            for i, d in enumerate(term.integers("permutation")):
                axes[d] = self.axes[i]
            return View(term.operands[0], tuple(axes))
        if term.op == "broadcast_in_dim":
            operand = term.operands[0]
            places = term.integers("broadcast_dimensions")
            return View(
                operand, tuple(self.axes[d] if n > 1 else () for d, n in zip(places, operand.shape, strict=True))
            )
        if term.op == "reshape":
            operand = term.operands[0]
            axes_of = dealt(self.atoms, operand.shape)
            return None if axes_of is None else View(operand, axes_of)
        return None

    def under(self) -> "View | None":
        """The operand of an op of layout, or of a conversion."""
        return View(self.term.operands[0], self.axes) if self.term.op in CASTS else self.beneath()

    def root(self, *, casts: bool = True, until: Term | None = None) -> "View":
        """What it is made of, beneath all layout, and beneath conversions; or down to a term that is looked for."""
        view = self
        while view.term is not until and (below := view.under() if casts else view.beneath()) is not None:
            view = below
        return view


def dealt(atoms: Sequence[Atom], shape: Sequence[int]) -> tuple[Axis, ...] | None:
    """Atoms in row-major order as axes of these sizes, split where they have to be; None where they cannot be.

    Broadcasting drops atoms only where it is looked through, so the product of the sizes is that of the extents.
    """
    pending, axes = list(reversed(leaves(atoms))), list[Axis]()
    for size in shape:
        left, axis = size, list[Atom]()
        while left > 1:
            if not pending:
                return None
            atom = pending.pop()
            if left % atom.extent == 0:
                axis.append(atom)
                left //= atom.extent
                continue
            if atom.extent % left:
                return None
            atom.split(atom.extent // left)
            axis.append(atom.parts[0])
            pending.append(atom.parts[1])
            left = 1
        axes.append(tuple(axis))
    return None if pending else tuple(axes)


def are_same(one: Iterable[Atom], other: Iterable[Atom]) -> bool:
    """Whether two lists of atoms are the same, in the same order."""
    return leaves(one) == leaves(other)
