"""Laws of the ops that take their sizes from values: those of the ops with known sizes, at sizes that are terms."""

from hlo_lower.ir import mlir
from hlo_lower.verify.pull import moving
from hlo_lower.verify.pull.beyond import Beyond
from hlo_lower.verify.pull.moving import chosen_of
from hlo_lower.verify.pull.prover import At, Pull
from hlo_lower.verify.pull.shapes import given_sizes
from hlo_lower.verify.pull.sizes import extent, is_one
from hlo_lower.verify.pull.solver import z3
from hlo_lower.verify.pull.terms import POSITION, Term, number, resize


def get_dimension_size(at: At) -> Pull:
    """The size of the dim."""
    yield from ()
    size = at.operand_type(0)[0][mlir.integer_of(at.op.raw.attributes["dimension"])]
    return resize(extent(size), at.element.bits, is_signed=True)


def real_dynamic_slice(at: At) -> Pull:
    """operand[start + p * stride]."""
    place: list[Term] = []
    is_signed = at.operand_type(1)[1].is_signed
    for d, (term, size) in enumerate(zip(at.place, at.operand_type(0)[0], strict=True)):
        start, stride = (yield at.operand(1, [number(d)])), (yield at.operand(3, [number(d)]))
        start, stride = (resize(one, POSITION, is_signed=is_signed) for one in (start, stride))
        place.append(number(0) if is_one(size) else start + term * stride)
    return (yield at.operand(0, place))


def dynamic_pad(at: At) -> Pull:
    """operand[p - low] where that lies inside, else the padding value; without interior padding."""
    shape, wide = at.operand_type(0)[0], 2 * POSITION
    tests, place = list[Term](), list[Term]()
    for d, (term, size) in enumerate(zip(at.place, shape, strict=True)):
        inner = z3.simplify((yield at.operand(4, [number(d)])))
        if not z3.is_bv_value(inner) or inner.as_long():
            raise Beyond("interior padding of a dynamic_pad")
        element = at.operand_type(2)[1]
        low = resize((yield at.operand(2, [number(d)])), max(wide, element.bits + 1), is_signed=element.is_signed)
        moved = z3.simplify(z3.ZeroExt(low.size() - POSITION, term) - low)
        tests.append(z3.ULT(moved, extent(size, low.size())))
        place.append(number(0) if is_one(size) else z3.simplify(z3.Extract(POSITION - 1, 0, moved)))
    return (yield from chosen_of(at, z3.And(tests), at.operand(0, place), at.operand(1, ())))


def dynamic_gather(at: At) -> Pull:
    """operand[start index of the position + offset]; starts are clamped so that the slice lies inside."""
    return (yield from moving.gather_slices(at, [at.prover.size(size) for size in given_sizes(at, 2)[0]]))
