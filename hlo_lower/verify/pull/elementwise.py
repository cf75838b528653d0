"""Laws of ops that compute each element from the elements at the same place, and of those that make values."""

import hashlib
from collections.abc import Sequence

import numpy as np

from hlo_lower.base.element_types import ElementType
from hlo_lower.ir import mlir
from hlo_lower.verify.pull.beyond import Beyond
from hlo_lower.verify.pull.floats import half, is_finite
from hlo_lower.verify.pull.moving import chosen_of
from hlo_lower.verify.pull.prover import At, Pull
from hlo_lower.verify.pull.sizes import LIMIT
from hlo_lower.verify.pull.solver import z3
from hlo_lower.verify.pull.terms import (
    IEEE,
    POSITION,
    Term,
    apply_symbol,
    choose,
    chosen_at,
    element_of,
    is_truth,
    literal,
    number,
    resize,
    sort_of,
)

INFINITIES = {"is_inf": (np.inf, -np.inf), "is_pos_inf": (np.inf,), "is_neg_inf": (-np.inf,)}
"""The infinities that an op of chlo tells."""

TABLED = 128
"""Elements of a constant up to which each is looked at."""


def _word(at: At, attribute: str) -> str:
    attributes = at.op.raw.attributes
    return mlir.enum_value(attributes[attribute]) if attribute in attributes else ""


def elementwise(at: At) -> Pull:
    """result[p] = f(operand[p], ...); an operand of rank 0 is the same everywhere."""
    name, element, attributes = at.op.short_name, at.element, at.op.raw.attributes
    args: list[Term] = []
    for k in range(len(at.op.inputs)):
        args.append((yield at.operand(k, None if at.operand_type(k)[0] else ())))
    first = at.operand_type(0)[1]
    if name == "compare":
        return at.numbers.compare(_word(at, "comparison_direction"), args[0], args[1], first, _word(at, "compare_type"))
    if name in ("convert", "divide", "remainder") and all(_is_position(at, arg, first) for arg in args):
        if name != "convert":
            return _quotient(name, args, element)
        if element.is_integer and element.bits > first.bits:
            return resize(args[0], element.bits, is_signed=False)
    if name == "convert":
        return at.numbers.convert(args[0], first, element)
    if name == "clamp":
        return at.numbers.clamp(args[0], args[1], args[2], element)
    if name in ("real", "imag"):
        if first.is_complex:
            return half(args[0], int(name == "imag"))
        return args[0] if name == "real" else number(0, element.bits)
    if name == "complex":
        return z3.Concat(args[1], args[0])
    if name == "is_finite" and first.name in IEEE:
        return is_finite(args[0], first)
    if name in INFINITIES and first.name in IEEE:
        return z3.Or([args[0] == literal(value, first) for value in INFINITIES[name]])
    if name == "square" and not element.is_complex:
        return at.numbers.compute("multiply", [args[0], args[0]], element)
    told = [name]
    if name == "reduce_precision":
        told += [str(attributes["exponent_bits"]), str(attributes["mantissa_bits"])]
    if "result_accuracy" in attributes and "DEFAULT" not in str(attributes["result_accuracy"]):
        told.append(str(attributes["result_accuracy"]))
    if len(told) > 1 or element != first or at.op.name.startswith("chlo."):
        return apply_symbol(f"{' '.join(told)} {first.name} {element.name}", args, sort_of(element))
    return at.numbers.compute(name, args, element)


def _is_position(at: At, term: Term, element: ElementType) -> bool:
    """Whether an integer of a module of symbolic sizes is known to be none that is negative, or 2^31 or more."""
    is_wide = at.prover.is_open and element.is_integer and element.bits >= POSITION
    ends = at.positions.ranges.ends(term) if is_wide else None
    return ends is not None and ends[0] >= 0 and ends[1] < LIMIT


def _quotient(name: str, args: Sequence[Term], element: ElementType) -> Term:
    """A quotient or remainder of positions, in the bits of a position."""
    x, y = (z3.simplify(z3.Extract(POSITION - 1, 0, arg)) for arg in args)
    found = z3.simplify(z3.UDiv(x, y) if name == "divide" else z3.URem(x, y))
    of_zero = number(-1, element.bits) if name == "divide" else args[0]
    return choose(z3.simplify(y == 0), of_zero, resize(found, element.bits, is_signed=False))


def select(at: At) -> Pull:
    """result[p] = predicate[p] ? on_true[p] : on_false[p]; only what may be selected is asked for."""
    test = yield at.operand(0, None if at.operand_type(0)[0] else ())
    return (yield from chosen_of(at, test, at.operand(1), at.operand(2)))


def barrier(at: At) -> Pull:
    """result = operand."""
    return (yield at.operand(at.result))


def iota(at: At) -> Pull:
    """result[p] = p[iota_dimension], as a number of the element type."""
    yield from ()
    term, element = at.place[mlir.integer_of(at.op.raw.attributes["iota_dimension"])], at.element
    if element.is_complex:
        return apply_symbol(f"iota {element.name}", [term], sort_of(element))
    return at.numbers.convert(term, element_of("i32"), element)


def constant(at: At) -> Pull:
    """result[p] = value[p]: compared value by value if they are few or an arithmetic row, else by their bytes."""
    yield from ()
    value = mlir.constant_value(at.op.raw, is_complex=True)
    if value is None:
        raise Beyond(f"a constant of type {at.element.name}")
    return table(at, np.asarray(value))


def table(at: At, value: "np.ndarray[tuple[int, ...], np.dtype[np.generic]]") -> Term:
    """An element of an array at the place that is asked for."""
    element = at.element
    if value.size == 0:
        return literal(0, element)
    if value.size == 1 or not any(s for s, n in zip(value.strides, value.shape, strict=True) if n > 1):
        return literal(value.flat[0], element)
    where = at.positions.linear(at.place, value.shape)
    if z3.is_bv_value(where) and where.as_long() < value.size:
        return literal(value.flat[where.as_long()], element)
    flat = np.ascontiguousarray(value).reshape(-1)
    as_bytes = flat.view(np.uint8).reshape(flat.size, -1)
    if (as_bytes == as_bytes[0]).all():
        return literal(flat[0], element)
    if flat.size <= TABLED:
        return chosen_at([literal(value, element) for value in flat], where)
    if (few := _few(flat, as_bytes, where, element)) is not None:
        return few
    return _row(at, flat, where, element) or apply_symbol(
        f"table {element.name} {hashlib.sha256(as_bytes.tobytes()).hexdigest()}", [where], sort_of(element)
    )


def _few(
    flat: "np.ndarray[tuple[int], np.dtype[np.generic]]",
    as_bytes: "np.ndarray[tuple[int, int], np.dtype[np.uint8]]",
    where: Term,
    element: ElementType,
) -> Term | None:
    """One value almost everywhere, and others at a few places: zeros that were written to."""
    _, firsts, numbers, counts = np.unique(as_bytes, axis=0, return_index=True, return_inverse=True, return_counts=True)
    common = int(np.argmax(counts))
    others = np.flatnonzero(numbers.reshape(-1) != common)
    if others.size > TABLED:
        return None
    found = literal(flat[firsts[common]], element)
    for place in reversed(others.tolist()):
        found = choose(where == number(place), literal(flat[place], element), found)
    return found


def _row(
    at: At, flat: "np.ndarray[tuple[int], np.dtype[np.generic]]", where: Term, element: ElementType
) -> Term | None:
    """An arithmetic row of integers: an iota that was folded."""
    if not element.is_integer or is_truth(element):
        return None
    numbers = flat.astype(object)
    step = numbers[1] - numbers[0]
    if any(numbers[1:] - numbers[:-1] != step):
        return None
    return at.numbers.convert(where, element_of("i32"), element) * number(step, element.bits) + literal(
        flat[0], element
    )


def bitcast_convert(at: At) -> Pull:
    """The same bits: as they are, as parts of wider elements, or put together from narrower ones, lowest bits first."""
    (shape, first), element = at.operand_type(0), at.element
    if is_truth(first) or is_truth(element) or first.is_complex or element.is_complex:
        raise Beyond("bits of truths or complex numbers")
    if first.bits == element.bits:
        return (yield at.operand(0))
    if first.bits > element.bits:
        whole, parts = (yield at.operand(0, at.place[:-1])), first.bits // element.bits
        pieces = [z3.Extract(element.bits * (k + 1) - 1, element.bits * k, whole) for k in range(parts)]
        return chosen_at(pieces, at.place[-1])
    terms: list[Term] = []
    for k in range(shape[-1]):
        terms.append((yield at.operand(0, [*at.place, number(k)])))
    return z3.Concat(*terms[::-1])
