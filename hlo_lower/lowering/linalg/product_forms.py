"""Products in one form while a module is StableHLO: of the factors before they are reshaped, the result reshaped.

    %f = reshape %x : 2x3x4 -> 6x4                          %y = dot_general %x, %w : 2x3x4 by 4x5 -> 2x3x5
    %y = dot_general %f, %w : 6x4 by 4x5 -> 6x5     ->      %r = reshape %y -> 6x5

Equal, to the bit: products are summed in the order of the dims that are summed, as before.
"""

from collections.abc import Sequence

from hlo_lower.ir import mlir
from hlo_lower.ir.builder import Builder
from hlo_lower.ir.view import Node, Value
from hlo_lower.lowering.linalg.convolution_forms import letters_of, source_of
from hlo_lower.lowering.linalg.moved_forms import groups_of, maker_named
from hlo_lower.lowering.linalg.open_sizes import RESHAPES, reshape, sizes_of
from hlo_lower.ops.names import DOT_GENERAL


def product_of_sources(build: Builder, node: Node) -> Value | None:
    """Of factors that are reshaped, without the reshapes, its result reshaped; without batches of one."""
    numbers = mlir.dot_dimension_numbers(node.raw)
    batching = list(numbers.lhs_batching_dimensions), list(numbers.rhs_batching_dimensions)
    summed = list(numbers.lhs_contracting_dimensions), list(numbers.rhs_contracting_dimensions)
    if any(0 in value.shape for value in node.operands):
        return None
    made = _without_batches_of_one(build, node, batching, summed)
    for sides in ((1,), (0,), (0, 1)):
        made = made or _without_own_ones(build, node, batching, summed, sides)
    for sides in ((0, 1), (0,), (1,)):
        made = made or _on_sources(build, node, batching, summed, sides)
    return made


def product_of_convolution(build: Builder, node: Node) -> Value | None:
    """The product that a convolution is whose kernel has one element for each pair of channels."""
    value, (given, own, made) = node.operand(0), letters_of(node)
    kernel, weights = source_of(node.operand(1), own)
    spatial = [letter for letter in weights if letter not in "io"]
    if any(kernel.shape[weights.index(letter)] != 1 for letter in spatial) or 0 in (*value.shape, *kernel.shape):
        return None
    ones = (1,) * len(spatial)
    is_plain = all(node.integers(name, ones) == ones for name in ("window_strides", "lhs_dilation"))
    is_plain &= not any(node.padding(len(spatial)))
    is_grouped = any(mlir.integer_of(node.raw.attributes[f"{kind}_group_count"]) != 1 for kind in ("batch", "feature"))
    if not is_plain or is_grouped:
        return None
    channels = [letter for letter in weights if letter in "io"]
    matrix = reshape(build, kernel, [sizes_of(kernel)[weights.index(letter)] for letter in channels])
    summed = f"lhs_contracting_dimensions = [{given.index('f')}], rhs_contracting_dimensions = [{channels.index('i')}]"
    attributes = {"dot_dimension_numbers": mlir.parse_attribute(f"#stablehlo.dot<{summed}>")}
    if (precision := node.attribute("precision_config")) is not None:
        attributes["precision_config"] = precision
    order = [*(letter for letter in given if letter != "f"), "f"]
    size = dict(zip(made, node.result().shape, strict=True))
    raw_type = mlir.tensor_type([size[letter] for letter in order], node.result().element_type)
    found = build.op(DOT_GENERAL, [value, matrix], [raw_type], attributes).result()
    return build.transpose(found, [order.index(letter) for letter in made])


Sides = tuple[Sequence[int], Sequence[int]]


def _without_batches_of_one(build: Builder, node: Node, batching: Sides, summed: Sides) -> Value | None:
    """Of a second factor that was given them by a reshape: they are dims of the first one alone."""
    left, right = node.operands
    pairs = list(zip(*batching, strict=True))
    long = [pair for pair in pairs if left.shape[pair[0]] != 1]
    gone = {pair[1] for pair in pairs if pair not in long}
    kept = [dim for dim in range(len(right.shape)) if dim not in gone]
    maker, sizes = maker_named(right, *RESHAPES), sizes_of(right)
    if maker is None or not gone or sizes_of(maker.operand(0)) != tuple(sizes[dim] for dim in kept):
        return None
    first_batching, second_batching = [a for a, _ in long], [kept.index(b) for _, b in long]
    second_summed = [kept.index(dim) for dim in summed[1]]
    factors = left, maker.operand(0)
    return _product_in_shape(build, node, factors, (first_batching, second_batching), (summed[0], second_summed))


def _without_own_ones(build: Builder, node: Node, batching: Sides, summed: Sides, sides: Sequence[int]) -> Value | None:
    """Of factors without their own dims of extent 1, on these sides, where the product is read without them."""
    wanted = {sizes_of(user.result()) if user.name in RESHAPES else None for user in node.result().users}
    factors, numbers, kept = list(node.operands), [list(batching), list(summed)], list[list[int]]()
    for side, factor in enumerate(factors):
        paired = (*batching[side], *summed[side])
        is_kept = [dim in paired or size != 1 or side not in sides for dim, size in enumerate(factor.shape)]
        kept.append([dim for dim, one in enumerate(is_kept) if one])
    if all(len(own) == len(factor.shape) for own, factor in zip(kept, factors, strict=True)):
        return None
    own = [sizes_of(factor) for factor in factors]
    free = [own[side][dim] for side in (0, 1) for dim in kept[side] if dim not in (*batching[side], *summed[side])]
    if wanted != {(*(own[0][dim] for dim in batching[0]), *free)}:
        return None
    for side in (0, 1):
        factors[side] = reshape(build, factors[side], [own[side][dim] for dim in kept[side]])
        for pairs in numbers:
            pairs[side] = [kept[side].index(dim) for dim in pairs[side]]
    first, second = ((pairs[0], pairs[1]) for pairs in numbers)
    return _product_in_shape(build, node, (factors[0], factors[1]), first, second)


def _on_sources(build: Builder, node: Node, batching: Sides, summed: Sides, sides: Sequence[int]) -> Value | None:
    """The product of what is reshaped to its factors, on these sides, where dims that are paired are so before, too."""
    factors = list(node.operands)
    of_dim: list[dict[int, list[int]]] = []
    for side, factor in enumerate(node.operands):
        shape = sizes_of(factor)
        of_dim.append({dim: [dim] for dim in range(len(shape))})
        if side not in sides:
            continue
        maker = maker_named(factor, *RESHAPES)
        groups = None if maker is None else groups_of(sizes_of(maker.operand(0)), shape)
        if maker is None or groups is None:
            return None
        factors[side] = maker.operand(0)
        of_dim[side] = {}
        paired = {*batching[side], *summed[side]}
        for before, after in groups:
            within = [dim for dim in after if dim in paired]
            if within and (not before or any(shape[dim] != 1 for dim in after if dim not in within[:1])):
                return None  # one dim becomes several, of which some are paired; or one of extent 1 is
            of_dim[side] |= dict.fromkeys(within, before)
    numbers: list[tuple[list[int], list[int]]] = []
    own = [sizes_of(factor) for factor in factors]
    for first, second in (batching, summed):
        dims: tuple[list[int], list[int]] = ([], [])
        for left, right in zip(first, second, strict=True):
            before = of_dim[0][left], of_dim[1][right]
            sizes = [[own[side][dim] for dim in before[side]] for side in (0, 1)]
            if sizes[0] != sizes[1]:  # then perhaps but for dims of extent 1, which are left to the result
                before = [[d for d in before[k] if own[k][d] != 1] or before[k][:1] for k in (0, 1)]
                sizes = [[own[side][dim] for dim in before[side]] for side in (0, 1)]
            if sizes[0] != sizes[1]:
                return None
            dims[0].extend(before[0])
            dims[1].extend(before[1])
        numbers.append(dims)
    return _product_in_shape(build, node, (factors[0], factors[1]), numbers[0], numbers[1])


def _product_in_shape(
    build: Builder, node: Node, factors: tuple[Value, Value], batching: Sides, summed: Sides
) -> Value | None:
    """The product over these dims in the shape of another one."""
    attributes = mlir.dot_attributes(node.raw, batching, summed, is_turned=False)
    if attributes is None:
        return None
    free = [
        [size for dim, size in enumerate(factor.shape) if dim not in (*batching[side], *summed[side])]
        for side, factor in enumerate(factors)
    ]
    shape = [*(factors[0].shape[dim] for dim in batching[0]), *free[0], *free[1]]
    result, is_read_reshaped = node.result().shape, all(user.name in RESHAPES for user in node.result().users)
    of_units = [size for size in shape if size != 1] == [size for size in result if size != 1]
    if of_units and len(shape) > len(result) and not is_read_reshaped:
        return None  # it would have dims of extent 1 that nothing reads
    made = build.op(DOT_GENERAL, factors, [mlir.tensor_type(shape, node.result().element_type)], attributes).result()
    return reshape(build, made, sizes_of(node.result()))
