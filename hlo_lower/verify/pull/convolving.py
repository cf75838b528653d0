"""The law of a convolution: an element is a fold of products over the positions of the kernel and its input features.

    convolution(%x, %k) [b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1]
    ->
    at [b, o, s, t] the sum over h, w, i of x[b, i, s + h, t + w] * k[o, i, h, w]

The layout says where an element stands, and not which products are summed: they are numbered by the spatial dims, in
their order, and then by the feature, whatever the layout. What lies in the padding, or between dilated elements, is 0.
"""

from collections.abc import Sequence

from hlo_lower.ir import mlir
from hlo_lower.verify.pull.congruence import same_function
from hlo_lower.verify.pull.folding import sum_of_products
from hlo_lower.verify.pull.moving import integers, undilate
from hlo_lower.verify.pull.prover import At, Pull
from hlo_lower.verify.pull.sizes import are_known
from hlo_lower.verify.pull.solver import z3
from hlo_lower.verify.pull.terms import Term, literal, number


def convolution(at: At) -> Pull:
    """A fold over the kernel and the input features, of the group's part of the features or of the batch."""
    raw, element = at.op.raw, at.element
    attributes, types = mlir.attributes_of(raw), [at.operand_type(k) for k in (0, 1)]
    groups, batches = (mlir.integer_of(attributes[f"{name}_group_count"]) for name in ("feature", "batch"))
    given, kernel = (tuple(size for size in shape if isinstance(size, int)) for shape, _ in types)
    is_static = (len(given), len(kernel)) == tuple(len(shape) for shape, _ in types) and are_known(at.shape)
    is_plain = is_static and 0 not in (*given, *kernel, *at.shape) and all(its.name == element.name for _, its in types)
    if not is_plain or element.is_complex or element.bits == 1:
        return (yield from same_function(at))
    numbers, spatial = mlir.convolution_dimension_numbers(raw), mlir.convolution_spatial_dimensions(raw)
    ones = (1,) * len(spatial)
    strides, holes, steps = (
        integers(at, name) if name in attributes else ones
        for name in ("window_strides", "lhs_dilation", "rhs_dilation")
    )
    edges = mlir.dense_integers(attributes["padding"]) if "padding" in attributes else (0,) * (2 * len(spatial))
    turned = (
        tuple(map(bool, attributes["window_reversal"])) if "window_reversal" in attributes else (False,) * len(spatial)
    )
    sizes = [*(kernel[dim] for _, dim, _ in spatial), kernel[numbers.kernel_input_feature]]
    deep = at.deeper()
    along, bound = deep.bound_place(sizes)

    def position(k: int) -> Term:
        return at.place[spatial[k][2]] * number(strides[k]) + along[k] * number(steps[k]) - number(edges[2 * k])

    extents = [given[dim] for dim, _, _ in spatial]
    test, places = undilate([position(k) for k in range(len(spatial))], extents, holes)
    features = kernel[numbers.kernel_output_feature] // max(groups, batches)
    group = z3.UDiv(at.place[numbers.output_feature], number(features))
    feature, row = along[-1], at.place[numbers.output_batch]
    if groups > 1:
        feature = group * number(sizes[-1]) + feature
    if batches > 1:
        row = group * number(given[numbers.input_batch] // batches) + row
    first, second = [number(0)] * len(given), [number(0)] * len(kernel)
    first[numbers.input_batch], first[numbers.input_feature] = row, feature
    second[numbers.kernel_output_feature] = at.place[numbers.output_feature]
    second[numbers.kernel_input_feature] = along[-1]
    for k, (mine, its, _) in enumerate(spatial):
        first[mine] = places[k]
        second[its] = number(sizes[k] - 1) - along[k] if turned[k] else along[k]
    terms = [(yield from _or_zero(deep, test, first)), (yield deep.operand(1, second))]
    return sum_of_products(at, deep, terms, bound, sizes)


def _or_zero(at: At, test: Term, place: Sequence[Term]) -> Pull:
    """An element of the input, 0 where there is none."""
    test, element = z3.simplify(test), at.operand_type(0)[1]
    zero = literal(0, element)
    if z3.is_false(test):
        return zero
    found = yield at.operand(0, place)
    return found if z3.is_true(test) else at.prover.choose(at, test, found, zero)
