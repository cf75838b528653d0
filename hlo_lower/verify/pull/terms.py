"""Elements as terms of z3: truths, and bit-vectors of the width of their type, floats and complex numbers too.

The bits of a complex number are those of its real part below those of its imaginary part.
"""

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np

from hlo_lower.base.element_types import ElementType, element_type
from hlo_lower.verify.pull.beyond import Beyond
from hlo_lower.verify.pull.parts import Part, parts_of
from hlo_lower.verify.pull.solver import z3

Term: TypeAlias = Any
Place: TypeAlias = Sequence[Term]
"""A position: a bit-vector of `POSITION` bits for each dim."""

POSITION = 32
"""Bits of a position; a tensor of 2^31 elements or more is beyond."""

SIZE = "size "
"""How the symbols of sizes begin that are not known."""

IEEE = frozenset({"f16", "bf16", "f32", "f64"})
"""Floats whose bits are looked into: sign, exponent and mantissa as in IEEE 754."""


@lru_cache(maxsize=256)
def element_of(name: str) -> ElementType:
    """An element type by its printed name.

    Raises:
      Beyond: its elements have no bits that are known.
    """
    found = element_type(name)
    if not found.bits:
        raise Beyond(f"elements of type {name}")
    return found


def is_truth(element: ElementType) -> bool:
    """Whether elements are terms of the sort Bool."""
    return element.bits == 1


def sort_of(element: ElementType) -> Any:
    """The sort of an element's term."""
    return z3.BoolSort() if is_truth(element) else z3.BitVecSort(element.bits)


def number(value: int, bits: int = POSITION) -> Term:
    """A numeral."""
    return z3.BitVecVal(int(value), bits)


def literal(value: Any, element: ElementType) -> Term:
    """A NumPy number as a term.

    Raises:
      Beyond: NumPy has no such numbers.
    """
    if is_truth(element):
        return z3.BoolVal(bool(value))
    if element.is_integer:
        return number(int(value), element.bits)
    if element.dtype is None or element.dtype.itemsize * 8 != element.bits:
        raise Beyond(f"a constant of type {element.name}")
    return number(int.from_bytes(np.asarray(value, element.dtype).tobytes(), "little"), element.bits)


def value_of(term: Term, element: ElementType) -> Any:
    """The NumPy float that a term is; None where it is not known."""
    if not z3.is_bv_value(term) or element.dtype is None or element.dtype.itemsize * 8 != element.bits:
        return None
    return np.frombuffer(term.as_long().to_bytes(element.bits // 8, "little"), element.dtype)[0]


def apply_symbol(symbol: str, arguments: Sequence[Term], sort: Any) -> Term:
    """Apply a function symbol; the sorts are part of its name."""
    if not arguments:
        return z3.Const(symbol, sort)
    sorts = [argument.sort() for argument in arguments]
    told = ",".join(str(s.size()) if z3.is_bv_sort(s) else str(s) for s in sorts)
    return z3.Function(f"{symbol}:{told}", *sorts, sort)(*arguments)


def resize(term: Term, bits: int, *, is_signed: bool) -> Term:
    """An integer in another width: cut off, or extended by its sign or by zeros."""
    width = term.size()
    if bits <= width:
        return term if bits == width else z3.Extract(bits - 1, 0, term)
    return z3.SignExt(bits - width, term) if is_signed else z3.ZeroExt(bits - width, term)


def choose(test: Term, yes: Term, no: Term) -> Term:
    """`yes` if the test holds, else `no`."""
    if z3.is_true(test) or yes.eq(no):
        return yes
    return no if z3.is_false(test) else z3.If(test, yes, no)


def choice_of(term: Term, no: Term) -> tuple[Term, Term] | None:
    """The test of a choice that gives `no` where it does not hold, and what it gives where it holds; else None."""
    if not z3.is_app_of(term, z3.Z3_OP_ITE):
        return None
    test, *sides = term.children()
    if sides[1].eq(no):
        return test, sides[0]
    return (z3.simplify(z3.Not(test)), sides[1]) if sides[0].eq(no) else None


def chosen_at(terms: Sequence[Term], which: Term) -> Term:
    """The term that stands at a position; the last one at any that is too large."""
    found = terms[-1]
    for k in range(len(terms) - 2, -1, -1):
        found = choose(z3.simplify(which == number(k)), terms[k], found)
    return found


def applications_in(terms: Iterable[Term]) -> list[Term]:
    """The applications of function symbols within some terms, and the constants, each once."""
    return [part.term for part in parts_of(terms) if part.name]


def is_application(term: Term) -> bool:
    """Whether a term is a function symbol applied, or a constant symbol."""
    return term.decl().kind() == z3.Z3_OP_UNINTERPRETED


def remainders_in(parts: Sequence[Part]) -> list[Term]:
    """That x rem y = x - (x / y) * y, for each remainder among some terms whose quotient is among them, too."""
    quotient_of = {
        z3.Z3_OP_BSREM: z3.Z3_OP_BSDIV,
        z3.Z3_OP_BUREM: z3.Z3_OP_BUDIV,
        z3.Z3_OP_BSREM_I: z3.Z3_OP_BSDIV_I,
        z3.Z3_OP_BUREM_I: z3.Z3_OP_BUDIV_I,
    }
    kinds = set(quotient_of.values())
    quotients = {(part.kind, *part.operands): part.term for part in parts if part.kind in kinds}
    found: list[Term] = []
    for part in parts:
        quotient = quotients.get((quotient_of.get(part.kind, -1), *part.operands))
        if quotient is not None:
            found.append(part.term == part.term.arg(0) - quotient * part.term.arg(1))
    return found


def symbols_of(terms: Iterable[Term]) -> tuple[dict[str, Term], set[str]]:
    """The constants within some terms, and the names of the function symbols without their sorts."""
    constants, functions = dict[str, Term](), set[str]()
    for part in parts_of(terms):
        if part.operands and part.name:
            functions.add(part.name.split(":")[0])
        elif part.name:
            constants[part.name] = part.term
    return constants, functions


def has_variable(term: Term, *variables: Term) -> bool:
    """Whether one of some variables stands in a term."""
    constants, _ = symbols_of([term])
    return any(variable.decl().name() in constants for variable in variables)


COMMUTING = frozenset({"add", "multiply", "maximum", "minimum"})
"""Elementwise ops on floats whose operands may be exchanged."""
