"""Laws of ops that move elements: result[p] is an element of an operand at a place that p says."""

from collections.abc import Generator, Sequence
from dataclasses import replace
from functools import partial

from hlo_lower.base.element_types import ElementType
from hlo_lower.ir import mlir
from hlo_lower.ops import names
from hlo_lower.ops.spec import ELEMENTWISE
from hlo_lower.verify.pull.beyond import Beyond
from hlo_lower.verify.pull.prover import Ask, At, Bound, Frame, Pull
from hlo_lower.verify.pull.sizes import Extent, extent, is_empty, is_one, is_same
from hlo_lower.verify.pull.solver import z3
from hlo_lower.verify.pull.terms import POSITION, Place, Term, choose, number
from hlo_lower.verify.read.program import ValueId

MOST_READ_BACK = 64
"""Values of which an update is made that are looked at for slices of its window."""

AT_THEIR_PLACE = ELEMENTWISE | {names.SELECT, names.BITCAST_CONVERT}
"""Ops that make an element of those at its place, or of the one of an operand of rank 0, where shapes are the same."""


def integers(at: At, attribute: str) -> tuple[int, ...]:
    """An attribute of integers."""
    return mlir.integers_of(at.op.raw.attributes[attribute])


def chosen_of(at: At, test: Term, yes: Ask, no: Ask, where: Sequence[tuple[Term, Term]] = ()) -> Pull:
    """`yes` where the test holds, else `no`; only what may be selected is asked for.

    Args:
      at: where.
      test: the test.
      yes, no: the elements.
      where: terms that are equal where the test holds: of each pair the second one is written for the first.
    """
    test = z3.simplify(test)
    if z3.is_true(test) or z3.is_false(test):
        return (yield yes if z3.is_true(test) else no)
    first = z3.substitute((yield yes), *where)
    return at.prover.choose(at, test, first, (yield no))


def reshape(at: At) -> Pull:
    """The element with the same row-major number."""
    shape = at.shape
    to = at.operand_type(0)[0]
    return (
        yield at.operand(0, [number(0)] * len(to) if is_empty(shape) else at.positions.reshape(at.place, shape, to))
    )


def broadcast_in_dim(at: At) -> Pull:
    """operand[p[broadcast_dimensions]], 0 in dims of size 1."""
    sizes, dims = at.operand_type(0)[0], integers(at, "broadcast_dimensions")
    place: list[Term] = []
    for size, dim in zip(sizes, dims, strict=True):
        term = number(0) if is_one(size) else at.place[dim]
        if not is_one(size) and not is_same(size, at.shape[dim]):  # it is 1 or as large as the result
            term = choose(z3.simplify(extent(size) == 1), number(0), term)
        place.append(term)
    return (yield at.operand(0, place))


def transpose(at: At) -> Pull:
    """Dim d of the result is dim permutation[d] of the operand."""
    place = list(at.place)
    for dim, source in enumerate(integers(at, "permutation")):
        place[source] = at.place[dim]
    return (yield at.operand(0, place))


def slice_(at: At) -> Pull:
    """operand[start + p * stride]."""
    starts, strides = integers(at, "start_indices"), integers(at, "strides")
    place = [number(a) + term * number(s) for term, a, s in zip(at.place, starts, strides, strict=True)]
    return (yield at.operand(0, place))


def reverse(at: At) -> Pull:
    """operand[size - 1 - p] in the reversed dims."""
    turned = integers(at, "dimensions")
    sized = enumerate(zip(at.place, at.shape, strict=True))
    place = [extent(n) - number(1) - t if d in turned else t for d, (t, n) in sized]
    return (yield at.operand(0, place))


def concatenate(at: At) -> Pull:
    """The operand in whose part p lies, counted from its start."""
    dim = mlir.integer_of(at.op.raw.attributes["dimension"])
    end, parts = number(0), list[tuple[int, Term, Extent]]()
    for k in range(len(at.op.inputs)):
        size = at.operand_type(k)[0][dim]
        if not is_empty([size]):
            parts.append((k, end, size))
        end = z3.simplify(end + extent(size))
    found: Term = None
    for k, begin, size in reversed(parts):
        test = None if found is None else z3.simplify(z3.ULT(at.place[dim], begin + extent(size)))
        if test is not None and z3.is_false(test):
            continue
        place = list(at.place)
        place[dim] = number(0) if is_one(size) else at.place[dim] - begin
        term = yield at.operand(k, place)
        found = term if test is None else choose(test, term, found)
    return found


def pad(at: At) -> Pull:
    """operand[(p - low) / (interior + 1)] where that divides and lies inside, else the padding value."""
    shape = at.operand_type(0)[0]
    lows, inners = integers(at, "edge_padding_low"), integers(at, "interior_padding")
    if is_empty(shape):
        return (yield at.operand(1, ()))
    moved = [term - number(low) for term, low in zip(at.place, lows, strict=True)]
    test, place = undilate(moved, shape, [inner + 1 for inner in inners])
    return (yield from chosen_of(at, test, at.operand(0, place), at.operand(1, ())))


def undilate(place: Sequence[Term], shape: Sequence[Extent], steps: Sequence[int]) -> tuple[Term, list[Term]]:
    """Whether an element of the operand stands at this place after interior padding, and at which place of the operand.

    Raises:
      Beyond: spread out it has 2^31 positions or more in a dim.
    """
    tests, found = list[Term](), list[Term]()
    for term, size, step in zip(place, shape, steps, strict=True):
        if step > 1:
            last = (size - 1) * step
            if last >= 1 << (POSITION - 1):
                raise Beyond("a dim of 2^31 positions")
            tests += [z3.URem(term, number(step)) == 0, z3.ULE(term, number(last))]
            term = z3.UDiv(term, number(step))
        tests.append(z3.ULT(term, extent(size)))
        found.append(number(0) if is_one(size) else term)
    return z3.And(tests), found


def _starts(at: At, first: int, room: Sequence[Term]) -> Generator[Ask, Term, list[Term]]:
    found: list[Term] = []
    for k, most in enumerate(room):
        start, most = number(0), z3.simplify(most)
        if not z3.is_bv_value(most) or most.as_long():
            start = at.clamp_start((yield at.operand(first + k, ())), at.operand_type(first + k)[1], most)
        found.append(start)
    return found


def dynamic_slice(at: At) -> Pull:
    """operand[clamp(0, start, size - slice size) + p]."""
    sizes = integers(at, "slice_sizes")
    room = [extent(n) - number(m) for n, m in zip(at.operand_type(0)[0], sizes, strict=True)]
    starts = yield from _starts(at, 1, room)
    return (yield at.operand(0, [a + t for a, t in zip(starts, at.place, strict=True)]))


def dynamic_update_slice(at: At) -> Pull:
    """update[p - start] where that lies inside the update, else operand[p]; starts are clamped.

    In an update made of slices of the same window, a slice of x is x[p].
    """
    shape, sizes = at.operand_type(0)[0], at.operand_type(1)[0]
    if is_empty(sizes):
        return (yield at.operand(0))
    room = [extent(n) - extent(m) for n, m in zip(shape, sizes, strict=True)]
    starts = yield from _starts(at, 2, room)
    offsets = [z3.simplify(t - a) for t, a in zip(at.place, starts, strict=True)]
    within = zip(at.place, starts, offsets, sizes, shape, strict=True)
    tests = [t == a if is_one(m) else z3.ULT(o, extent(m)) for t, a, o, m, n in within if not is_same(m, n)]
    place = [number(0) if is_one(m) else t for t, m in zip(offsets, sizes, strict=True)]
    where = [(a, t) for a, t, m in zip(starts, at.place, sizes, strict=True) if is_one(m) and not z3.is_bv_value(a)]
    update = Ask((yield from _read_back(at, starts, room)), at.depth, at.op.inputs[1], place)
    return (yield from chosen_of(at, z3.And(tests), update, at.operand(0), where))


def _read_back(at: At, starts: Sequence[Term], room: Sequence[Term]) -> Generator[Ask, Term, Frame]:
    """A frame in which a slice of the window that an update is written to is asked for at the place that is written.

    dynamic_slice(x, start)[p - start] = x[p]: for slices of which the update is made element by element.

    Args:
      at, starts, room: where, the window's clamped starts, and how large each may be.
    """
    program = at.prover.programs[at.frame.side]
    (shape, _), (sizes, _) = at.operand_type(0), at.operand_type(1)

    def is_like(value: ValueId, *shapes: Sequence[Extent]) -> bool:
        its = at.type(value)[0]
        return any(len(its) == len(other) and all(map(is_same, its, other)) for other in shapes)

    home, bound, has_slice = program.homes[at.op.inputs[1]], dict[ValueId, Bound](), False
    pending, seen = [at.op.inputs[1]], set[ValueId]()
    while pending and len(seen) < MOST_READ_BACK:
        value = pending.pop()
        maker = program.makers[value]
        if value in seen or maker is None or program.homes[value] is not home:
            continue
        seen.add(value)
        bound[value] = partial(at.value, value)
        if maker.name in AT_THEIR_PLACE and all(is_like(one, sizes, ()) for one in (value, *maker.inputs)):
            del bound[value]
            pending += maker.inputs
        elif maker.name == names.DYNAMIC_SLICE and is_like(value, sizes) and is_like(maker.inputs[0], shape):
            begins = yield from _starts(At(at.prover, at.frame, at.depth, maker, 0, ()), 1, room)
            if all(a.eq(b) for a, b in zip(begins, starts, strict=True)):
                bound[value] = partial(_anywhere, at.value(maker.inputs[0], at.place))
                has_slice = True
    if not has_slice or pending:
        return at.frame
    return replace(at.frame, bound={**at.frame.bound, **bound}, known={}, asked={})


def _anywhere(ask: Ask, _: Place) -> Ask:
    return ask


def index_at(at: At, operand: int, batch: Sequence[Term], vector: int, component: int) -> tuple[Ask, ElementType]:
    """A component of the index vector of a position, and its type."""
    shape, element = at.operand_type(operand)
    place = [*batch] if vector == len(shape) else [*batch[:vector], number(component), *batch[vector:]]
    return at.operand(operand, place), element


def torch_index_select(at: At) -> Pull:
    """operand[..., index[batch, ...], ...]: the dims of the index replace one dim; it is clamped."""
    attributes = at.op.raw.attributes
    dim, batch = (mlir.integer_of(attributes[name]) for name in ("dim", "batch_dims"))
    (shape, _), (indices, element) = at.operand_type(0), at.operand_type(1)
    end = dim + len(indices) - batch
    index = yield at.operand(1, [*at.place[:batch], *at.place[dim:end]])
    row = number(0) if is_one(shape[dim]) or is_empty(shape) else at.clamp_start(index, element, extent(shape[dim]) - 1)
    return (yield at.operand(0, [*at.place[:dim], row, *at.place[end:]]))


def gather(at: At) -> Pull:
    """operand[start index of the position + offset]; starts are clamped so that the slice lies inside."""
    return (yield from gather_slices(at, integers(at, "slice_sizes")))


def gather_slices(at: At, sizes: Sequence[Extent]) -> Pull:
    """The element of a gather for slices of these sizes."""
    numbers, shape = mlir.gather_dimension_numbers(at.op.raw), at.operand_type(0)[0]
    batch = [t for d, t in enumerate(at.place) if d not in numbers.offset_dims]
    offsets = iter([at.place[d] for d in numbers.offset_dims])
    place: list[Term] = []
    for dim, size in enumerate(shape):
        term = number(0)
        if dim in numbers.operand_batching_dims:
            axis = numbers.start_indices_batching_dims[numbers.operand_batching_dims.index(dim)]
            term = batch[axis - (numbers.index_vector_dim < axis)]
        elif dim not in numbers.collapsed_slice_dims:
            term = next(offsets)
        if dim in numbers.start_index_map and not is_same(size, sizes[dim]):
            component = numbers.start_index_map.index(dim)
            ask, element = index_at(at, 1, batch, numbers.index_vector_dim, component)
            term = term + at.clamp_start((yield ask), element, extent(size) - extent(sizes[dim]))
        place.append(term)
    return (yield at.operand(0, place))
