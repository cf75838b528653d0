"""The law of sizes: how large the result of each op is, and for which sizes the op is valid.

Sizes are terms of 32 bits that are less than 2^31. What a shape computation gives has the bits of its type and wraps as
these do; an op that takes a size from it is valid where that is no negative number and less than 2^31.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from hlo_lower.ir import mlir
from hlo_lower.ops import names
from hlo_lower.ops.spec import ELEMENTWISE
from hlo_lower.verify.pull.beyond import Beyond
from hlo_lower.verify.pull.congruence import SHARDING
from hlo_lower.verify.pull.moving import integers
from hlo_lower.verify.pull.prover import At, Frame
from hlo_lower.verify.pull.sizes import LIMIT, Extent, Shape, extent, is_one, is_same
from hlo_lower.verify.pull.solver import z3
from hlo_lower.verify.pull.terms import POSITION, Term, element_of, number, resize


@dataclass(frozen=True)
class Sized:
    """The sizes of the results of an op.

    Attributes:
      results: for each result its sizes.
      valid: what holds where the op is valid.
    """

    results: Sequence[Sequence[Term]]
    valid: list[Term] = field(default_factory=list[Term])


def sizes_of(at: At) -> Sized:
    """The sizes of the results of an op.

    Raises:
      Beyond: the op has no law of sizes.
    """
    law = LAWS_OF_SIZES.get(at.op.name)
    if law is None or (at.op.name == names.CUSTOM_CALL and mlir.call_target(at.op.raw) != SHARDING):
        raise Beyond(f"sizes of {at.op.short_name}")
    return law(at)


def read_shape_operand(at: At, operand: int) -> tuple[list[Term], Term, bool]:
    """The integers of a shape operand, whether all of them are valid sizes, and whether they are signed."""
    [count], element = at.operand_type(operand)
    whole = at.op.inputs[0] if at.op.name == names.DYNAMIC_GATHER else at.op.results[0]
    result = at.prover.programs[at.frame.side].type_of(whole)
    found: list[Term] = []
    if result is None or not is_same(count, len(result.shape)):
        raise Beyond("a shape of another number of dims")
    for k in range(len(result.shape)):
        found.append(z3.simplify(at.prover.pull(at.operand(operand, [number(k)]))))
    bits = max(element.bits, POSITION)
    wide = [resize(term, bits, is_signed=element.is_signed) for term in found]
    return found, z3.And([z3.ULT(term, number(LIMIT, bits)) for term in wide]), element.is_signed


def given_sizes(at: At, operand: int) -> tuple[list[Term], list[Term]]:
    """The sizes that an operand of one dim holds, and that they are sizes."""
    found, are_sizes, is_signed = read_shape_operand(at, operand)
    return [resize(term, POSITION, is_signed=is_signed) for term in found], [are_sizes]


def _terms(shape: Sequence[Extent]) -> list[Term]:
    return [extent(size) for size in shape]


def _equal(one: Sequence[Extent], other: Sequence[Extent]) -> list[Term]:
    pairs = zip(one, other, strict=True)
    return [extent(a) == extent(b) for a, b in pairs if not is_same(a, b)]


def _at_most(one: Sequence[Extent], other: Sequence[Extent]) -> list[Term]:
    pairs = zip(one, other, strict=True)
    return [z3.ULE(extent(a), extent(b)) for a, b in pairs if not is_same(a, b)]


def _result(at: At) -> list[Term]:
    """The sizes that the type of the result says, which are all known."""
    tensor = at.prover.programs[at.frame.side].type_of(at.op.results[0])
    if tensor is None or not tensor.is_static:
        raise Beyond(f"sizes of {at.op.short_name}")
    return [number(size or 0) for size in tensor.shape]


def _without(shape: Sequence[Extent], dims: Sequence[int]) -> list[Extent]:
    return [size for d, size in enumerate(shape) if d not in dims]


def _alike(at: At) -> Sized:
    """All operands and results have one shape; an operand of rank 0 is the same everywhere."""
    shapes = [at.operand_type(k)[0] for k in range(len(at.op.inputs))]
    full = [shape for shape in shapes if shape]
    first = full[0] if full else ()
    return Sized([_terms(first)] * len(at.op.results), [test for other in full[1:] for test in _equal(first, other)])


def _each(at: At) -> Sized:
    """Each result has the shape of the operand of its number, and they are all alike."""
    first = at.operand_type(0)[0]
    valid = [test for k in range(1, len(at.op.inputs)) for test in _equal(first, at.operand_type(k)[0])]
    return Sized([_terms(first)] * len(at.op.results), valid)


def _as_it_is(at: At) -> Sized:
    return Sized([_terms(at.operand_type(k)[0]) for k in range(len(at.op.results))])


def _bits(at: At) -> Sized:
    result = at.prover.programs[at.frame.side].type_of(at.op.results[0])
    if result is None or at.operand_type(0)[1].bits != element_of(result.element_name).bits:
        raise Beyond("bits in parts of a tensor of dynamic shape")
    return _alike(at)


def _scalar(at: At) -> Sized:
    return Sized([list[Term]() for _ in at.op.results])


def _iota(at: At) -> Sized:
    sizes, valid = given_sizes(at, 0)
    return Sized([sizes], valid)


def _broadcast(at: At) -> Sized:
    """Each dim of the operand is 1, or as large as the result."""
    is_open = at.op.name == names.DYNAMIC_BROADCAST_IN_DIM
    sizes, valid = given_sizes(at, 1) if is_open else (_result(at), [])
    for size, dim in zip(at.operand_type(0)[0], integers(at, "broadcast_dimensions"), strict=True):
        if not is_one(size):
            valid.append(z3.Or(extent(size) == 1, extent(size) == sizes[dim]))
    return Sized([sizes], valid)


def _reshape(at: At) -> Sized:
    """Both have as many elements: dims that both have at an end are alike, and the others have equal products."""
    is_open = at.op.name == names.DYNAMIC_RESHAPE
    sizes, valid = given_sizes(at, 1) if is_open else (_result(at), [])
    mine = [term for term in _terms(at.operand_type(0)[0]) if not _is_number_one(term)]
    theirs = [term for term in map(z3.simplify, sizes) if not _is_number_one(term)]
    shared: list[Term] = []
    for end in (0, -1):
        while mine and theirs and mine[end].eq(theirs[end]):
            shared.append(mine.pop(end))
            theirs.pop(end)
    if mine or theirs:
        bits = POSITION * (max(len(mine), len(theirs)) + 1)
        products = [number(1, bits), number(1, bits)]
        for k, terms in enumerate((mine, theirs)):
            for term in sorted(terms, key=str):
                products[k] = products[k] * z3.ZeroExt(bits - POSITION, term)
        valid.append(z3.Or(*(term == 0 for term in shared), products[0] == products[1]))
    return Sized([sizes], valid)


def _is_number_one(term: Term) -> bool:
    return z3.is_bv_value(term) and term.as_long() == 1


def _transpose(at: At) -> Sized:
    shape = at.operand_type(0)[0]
    return Sized([[extent(shape[d]) for d in integers(at, "permutation")]])


def _slice(at: At) -> Sized:
    shape = at.operand_type(0)[0]
    names_ = ("start_indices", "limit_indices", "strides")
    rows = list(zip(*(integers(at, name) for name in names_), strict=True))
    sizes = [number(-((a - b) // s)) for a, b, s in rows]
    return Sized([sizes], _at_most([b for _, b, _ in rows], shape))


def _real_dynamic_slice(at: At) -> Sized:
    """0 <= start <= limit <= size, 0 < stride; what is before the start is no length, as it wraps."""
    shape, valid, found = at.operand_type(0)[0], list[Term](), list[Term]()
    (starts, first, is_signed), (limits, second, _), (strides, third, _) = (
        read_shape_operand(at, k) for k in (1, 2, 3)
    )
    valid += [first, second, third]
    for start, limit, stride, size in zip(starts, limits, strides, shape, strict=True):
        length = z3.simplify(limit - start)
        wide = resize(limit, max(limit.size(), POSITION), is_signed=is_signed)
        whole, reach = extent(size, wide.size()), resize(length, wide.size(), is_signed=False)
        valid += [z3.ULE(wide, whole), z3.ULE(reach, whole), stride != 0]
        if not _is_number_one(stride):
            length = z3.If(length == 0, length, z3.UDiv(length - 1, stride) + 1)
        found.append(resize(length, POSITION, is_signed=False))
    return Sized([found], valid)


def _dynamic_slice(at: At) -> Sized:
    sizes = integers(at, "slice_sizes")
    return Sized([list(map(number, sizes))], _at_most(sizes, at.operand_type(0)[0]))


def _dynamic_update_slice(at: At) -> Sized:
    shape = at.operand_type(0)[0]
    return Sized([_terms(shape)], _at_most(at.operand_type(1)[0], shape))


def _concatenate(at: At) -> Sized:
    dim = mlir.integer_of(at.op.raw.attributes["dimension"])
    shapes = [at.operand_type(k)[0] for k in range(len(at.op.inputs))]
    valid = [test for other in shapes[1:] for test in _equal(_without(shapes[0], [dim]), _without(other, [dim]))]
    bits = 2 * POSITION
    total = number(0, bits)
    for shape in shapes:
        total = total + extent(shape[dim], bits)
    sizes = _terms(shapes[0])
    sizes[dim] = z3.simplify(z3.Extract(POSITION - 1, 0, total))
    return Sized([sizes], [*valid, z3.ULT(total, number(LIMIT, bits))])


def _pad(at: At) -> Sized:
    """low + size + (size - 1) * interior + high, where that is no negative number."""
    shape, bits = at.operand_type(0)[0], 4 * POSITION
    if at.op.name == names.DYNAMIC_PAD:
        columns, are_sizes = list[list[Term]](), list[Term]()
        for k in (2, 3, 4):
            terms, is_size, is_signed = read_shape_operand(at, k)
            columns.append([resize(term, bits, is_signed=is_signed) for term in terms])
            are_sizes.append(is_size)
        valid = [are_sizes[2]]
        lows, highs, inners = columns
    else:
        told = ("edge_padding_low", "edge_padding_high", "interior_padding")
        lows, highs, inners = ([number(n, bits) for n in integers(at, name)] for name in told)
        valid = []
    found: list[Term] = []
    for size, low, high, inner in zip(shape, lows, highs, inners, strict=True):
        own = extent(size, bits)
        holes = z3.simplify(z3.If(own == 0, own, (own - 1) * inner))
        whole = z3.simplify(low + own + holes + high)
        valid.append(z3.ULT(whole, number(LIMIT, bits)))
        found.append(z3.simplify(z3.Extract(POSITION - 1, 0, whole)))
    return Sized([found], valid)


def _gather(at: At) -> Sized:
    """Slices are no larger than the operand; dims of a batch are alike."""
    numbers, shape = mlir.gather_dimension_numbers(at.op.raw), at.operand_type(0)[0]
    indices = at.operand_type(1)[0]
    if at.op.name == names.DYNAMIC_GATHER:
        sizes, valid = given_sizes(at, 2)
    else:
        sizes, valid = list(map(number, integers(at, "slice_sizes"))), list[Term]()
    valid += [z3.ULE(size, extent(whole)) for size, whole in zip(sizes, shape, strict=True)]
    left_out = (*numbers.collapsed_slice_dims, *numbers.operand_batching_dims)
    valid += [z3.ULE(sizes[d], number(1)) for d in left_out]
    for mine, theirs in zip(numbers.operand_batching_dims, numbers.start_indices_batching_dims, strict=True):
        valid += _equal([shape[mine]], [indices[theirs]])
    valid += _components(indices, numbers.index_vector_dim, len(numbers.start_index_map))
    batch = iter(_terms(_without(indices, [numbers.index_vector_dim])))
    offsets = iter([size for d, size in enumerate(sizes) if d not in left_out])
    rank = len(numbers.offset_dims) + len(_without(indices, [numbers.index_vector_dim]))
    return Sized([[next(offsets if d in numbers.offset_dims else batch) for d in range(rank)]], valid)


def _components(indices: Shape, dim: int, count: int) -> list[Term]:
    """That an index vector has as many components as it names dims."""
    return _equal([indices[dim] if dim < len(indices) else 1], [count])


def _scatter(at: At) -> Sized:
    """Windows are no larger than the operand, updates have the positions of the indices, and batches are alike."""
    count, numbers = len(at.op.results), mlir.ScatterNumbers.of(at.op.raw)
    shapes = [at.operand_type(k)[0] for k in range(len(at.op.inputs))]
    shape, indices, updates = shapes[0], shapes[count], shapes[count + 1]
    valid = [test for other in shapes[1:count] for test in _equal(shape, other)]
    valid += [test for other in shapes[count + 2 :] for test in _equal(updates, other)]
    whole = _without(shape, (*numbers.inserted_window_dims, *numbers.input_batching_dims))
    valid += _at_most([updates[d] for d in numbers.update_window_dims], whole)
    valid += _equal(_without(updates, numbers.update_window_dims), _without(indices, [numbers.index_vector_dim]))
    for mine, theirs in zip(numbers.input_batching_dims, numbers.scatter_indices_batching_dims, strict=True):
        valid += _equal([shape[mine]], [indices[theirs]])
    valid += _components(indices, numbers.index_vector_dim, len(numbers.scatter_dims_to_operand_dims))
    return Sized([_terms(shapes[k]) for k in range(count)], valid)


def _reduce(at: At) -> Sized:
    count, dims = len(at.op.results), integers(at, "dimensions")
    shapes = [at.operand_type(k)[0] for k in range(count)]
    valid = [test for other in shapes[1:] for test in _equal(shapes[0], other)]
    return Sized([_terms(_without(shape, dims)) for shape in shapes], valid)


def _dot_general(at: At) -> Sized:
    numbers = mlir.dot_dimension_numbers(at.op.raw)
    batching = [list(map(int, d)) for d in (numbers.lhs_batching_dimensions, numbers.rhs_batching_dimensions)]
    contracting = [list(map(int, d)) for d in (numbers.lhs_contracting_dimensions, numbers.rhs_contracting_dimensions)]
    shapes = [at.operand_type(k)[0] for k in (0, 1)]
    valid = list[Term]()
    for dims in (batching, contracting):
        valid += _equal(*([shape[d] for d in own] for shape, own in zip(shapes, dims, strict=True)))
    free = [_without(shape, (*batching[k], *contracting[k])) for k, shape in enumerate(shapes)]
    return Sized([_terms([*(shapes[0][d] for d in batching[0]), *free[0], *free[1]])], valid)


def _top_k(at: At) -> Sized:
    shape, most = at.operand_type(0)[0], mlir.integer_of(at.op.raw.attributes["k"])
    found = [*_terms(shape[:-1]), number(most)]
    return Sized([found, found], _at_most([most], shape[-1:]))


def _while(at: At) -> Sized:
    """A loop whose rounds keep the sizes of what they carry gives what went in its sizes."""
    if at.op not in at.prover.invariant:
        raise Beyond("a loop that may change the size of what it carries")
    return _as_it_is(at)


def _branches(at: At) -> Sized:
    """All branches give the same sizes."""
    found: list[list[Term]] = []
    for k in range(len(at.op.results)):
        shapes = [at.prover.type_in(Frame(at.frame.side, b, {}, at.frame), b.returned[k])[0] for b in at.op.bodies]
        if not all(is_same(a, b) for other in shapes[1:] for a, b in zip(shapes[0], other, strict=True)):
            raise Beyond("branches that give other sizes")
        found.append(_terms(shapes[0]))
    return Sized(found)


LAWS_OF_SIZES: Mapping[str, Callable[[At], Sized]] = {
    **dict.fromkeys(sorted(ELEMENTWISE), _alike),
    names.SELECT: _alike,
    names.MAP: _alike,
    names.REVERSE: _alike,
    names.OPTIMIZATION_BARRIER: _as_it_is,
    names.CUSTOM_CALL: _as_it_is,
    names.BITCAST_CONVERT: _bits,
    names.GET_DIMENSION_SIZE: _scalar,
    names.DYNAMIC_IOTA: _iota,
    names.BROADCAST_IN_DIM: _broadcast,
    names.DYNAMIC_BROADCAST_IN_DIM: _broadcast,
    names.RESHAPE: _reshape,
    names.DYNAMIC_RESHAPE: _reshape,
    names.TRANSPOSE: _transpose,
    names.SLICE: _slice,
    names.REAL_DYNAMIC_SLICE: _real_dynamic_slice,
    names.DYNAMIC_SLICE: _dynamic_slice,
    names.DYNAMIC_UPDATE_SLICE: _dynamic_update_slice,
    names.CONCATENATE: _concatenate,
    names.PAD: _pad,
    names.DYNAMIC_PAD: _pad,
    names.GATHER: _gather,
    names.DYNAMIC_GATHER: _gather,
    names.SCATTER: _scatter,
    names.REDUCE: _reduce,
    names.DOT_GENERAL: _dot_general,
    names.SORT: _each,
    "chlo.top_k": _top_k,
    names.WHILE: _while,
    names.IF: _branches,
    names.CASE: _branches,
}
"""The law of sizes of each op; any other op of dynamic shape is beyond."""
