"""Axis atoms: followed through layout, split by reshapes, dropped by broadcasts."""

import jax
import jax.numpy as jnp
import pytest

import hlo_lower as hl
from hlo_lower.named.match.axis_atoms import Atom, View, dealt, leaves
from hlo_lower.named.match.terms import Terms

X = jax.ShapeDtypeStruct((2, 6, 4), jnp.float32)


def view_of(function):
    """What a function returns, with atoms of its own, and what that is beneath layout."""
    graph = hl.read(jax.jit(function).lower(X).as_text())
    top = View.of(Terms(graph).of(graph.main.body.terminator.raw.operands[0]))
    return top, top.root()


def named(top, view):
    """The atoms of each axis of a view by the letters of the top's axes: "ab"."""
    letters = {}
    for dim, letter in zip(range(len(top.axes)), "abcdefgh", strict=False):
        for number, atom in enumerate(top.axis(dim)):
            letters[atom] = f"{letter}{number}" if len(top.axis(dim)) > 1 else letter
    return ["".join(letters[atom] for atom in view.axis(dim)) for dim in range(len(view.axes))]


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (lambda x: x.transpose(2, 0, 1), ["b", "c", "a"]),
        (lambda x: x.reshape(12, 4), ["a0", "a1", "b"]),
        (lambda x: x.reshape(2, 3, 2, 4), ["a", "bc", "d"]),
        (lambda x: x.transpose(0, 2, 1).reshape(8, 6), ["a0", "b", "a1"]),
        (lambda x: jnp.broadcast_to(x[:, None], (2, 5, 6, 4)), ["a", "c", "d"]),
        (lambda x: jnp.repeat(x, 3, axis=1), ["a", "b0", "c"]),
        (lambda x: x.reshape(12, 4).reshape(2, 6, 4), ["a", "b", "c"]),
    ],
)
def test_atoms_go_where_layout_puts_them(function, expected):
    """Each axis of the operand is made of the atoms of the result that stand for it, in order."""
    top, root = view_of(function)
    assert root.term.op == "argument"
    assert expected == named(top, root)


def test_axes_that_cannot_be_told_apart_are_not():
    """Six and four elements as four and six have no common atoms: the view ends there."""
    atoms = (Atom(4), Atom(6))
    assert dealt(atoms, (6, 4)) is None
    assert [atom.extent for atom in leaves(atoms)] == [4, 6]


def test_an_atom_is_split_once_for_all_who_have_it():
    """A split atom is two wherever it stands."""
    atom = Atom(12)
    [axis] = dealt([atom], (12,))
    assert [len(part) for part in dealt([atom], (3, 4))] == [1, 1]
    assert [part.extent for part in leaves(axis)] == [3, 4]
