"""Products are written in one form, whatever the order of their factors is.

    transpose(dot_general(%a, %b)) : [n, m]   ->   dot_general(%b, %a) : [n, m]
    dot_general(broadcast(%x) : [b, k, s], %w : [b, k, s, n])   ->   dot_general(%x : [b, s], %w), batching over b alone

Right: a product does not depend on the order of its factors, and the free dims of the first one come first. A factor
that is repeated along a batching dim has there the same elements for each of the other's. It is done to both pieces, so
that neither has to know in which form the other one has it.
"""

from hlo_lower.ir import mlir
from hlo_lower.verify.read.program import Op, ValueId


def turn_products(module: mlir.RawModule) -> None:
    """Write the products of a module in one form; those that nothing reads any more are left in it."""
    found, _ = mlir.named(module.operation, ("stablehlo.transpose", "stablehlo.dot_general"))
    dots = [op for op in found if op.name == "stablehlo.dot_general"]
    for op in found:
        if op.name == "stablehlo.transpose":
            _turn(op)
    for dot in dots:
        _unbatch(dot)


def add_turned(module: mlir.RawModule) -> None:
    """Put the product of the same factors in the other order, which nothing reads, behind each one of a batch: a loop
    may add up its tiles, and transpose the sum (`turned`)."""
    dots: list[mlir.RawOperation] = []
    mlir.walk(module.operation, lambda op: dots.append(op) if op.name == "stablehlo.dot_general" else None)
    for dot in dots:
        attributes = mlir.turned_dot_attributes(dot)
        if attributes is not None and mlir.dot_dimension_numbers(dot).lhs_batching_dimensions:
            shape = mlir.tensor_shape(dot.results[0].type)
            kind = mlir.tensor_type([shape[d] for d in _exchanged(dot)], mlir.tensor_element(dot.results[0].type))
            factors, point = [dot.operands[1], dot.operands[0]], mlir.insert_before(dot)
            mlir.create_operation(dot.name, factors, [kind], attributes, location=dot.location, insertion_point=point)


def turned(dot: Op, order: tuple[int, ...]) -> ValueId | None:
    """The product of the same factors in the other order, of which a product is the transpose by `order`."""
    with mlir.active(dot.raw.context):
        attributes = mlir.turned_dot_attributes(dot.raw)
    exchanged = _exchanged(dot.raw)
    if attributes is None or order != tuple(exchanged.index(dim) for dim in range(len(order))):
        return None
    same = (op for op in dot.parent.ops if op.name == dot.name and op.inputs == dot.inputs[::-1])
    found = (op for op in same if all(op.raw.attributes[name] == value for name, value in attributes.items()))
    return next((op.results[0] for op in found), None)


def _exchanged(dot: mlir.RawOperation) -> tuple[int, ...]:
    """The dims of a product as they stand once its factors are exchanged."""
    numbers = mlir.dot_dimension_numbers(dot)
    batch, rank = len(numbers.lhs_batching_dimensions), len(mlir.tensor_shape(dot.results[0].type))
    left = len(mlir.tensor_shape(dot.operands[0].type)) - len(numbers.lhs_contracting_dimensions)
    return (*range(batch), *range(left, rank), *range(batch, left))


def _turn(transpose: mlir.RawOperation) -> None:
    """Exchange the factors of a transposed product, if the dims move less then: nowhere, if can be."""
    dot = mlir.producer(transpose.operands[0])
    if dot is None or dot.name != "stablehlo.dot_general":
        return
    shape = mlir.tensor_shape(dot.results[0].type)
    exchanged = _exchanged(dot)
    before = mlir.integers_of(transpose.attributes["permutation"])
    permutation = tuple(exchanged.index(dim) for dim in before)
    attributes = mlir.turned_dot_attributes(dot)
    if permutation >= before or attributes is None:
        return
    point = mlir.insert_before(transpose)
    kind = mlir.tensor_type([shape[dim] for dim in exchanged], mlir.tensor_element(dot.results[0].type))
    factors = [dot.operands[1], dot.operands[0]]
    new = mlir.create_operation(dot.name, factors, [kind], attributes, location=dot.location, insertion_point=point)
    if permutation != tuple(range(len(shape))):
        new = mlir.create_operation(
            transpose.name,
            [new.results[0]],
            [transpose.results[0].type],
            {"permutation": mlir.dense_i64(permutation)},
            location=transpose.location,
            insertion_point=point,
        )
    transpose.results[0].replace_all_uses_with(new.results[0])


def _unbatch(dot: mlir.RawOperation) -> None:
    """Put a factor without free dims first, and take it as it is before it is repeated along batching dims."""
    numbers = mlir.dot_dimension_numbers(dot)
    batching = [list(numbers.lhs_batching_dimensions), list(numbers.rhs_batching_dimensions)]
    summed = [list(numbers.lhs_contracting_dimensions), list(numbers.rhs_contracting_dimensions)]
    ranks = [len(mlir.tensor_shape(value.type)) for value in dot.operands]
    small = next((k for k in (0, 1) if ranks[k] == len(batching[k]) + len(summed[k])), None)
    if small is None:
        return
    large, value = 1 - small, dot.operands[small]
    pairs = list(zip(batching[small], batching[large], strict=True))
    repeat = mlir.producer(value)
    if repeat is not None and repeat.name == "stablehlo.broadcast_in_dim":
        kept = list(mlir.integers_of(repeat.attributes["broadcast_dimensions"]))
        shape = mlir.tensor_shape(value.type)
        is_plain = [shape[dim] for dim in kept] == list(mlir.tensor_shape(repeat.operands[0].type))
        left = [pair for pair in pairs if pair[0] in kept]
        if (
            is_plain
            and set(summed[small]) <= set(kept)
            and _order(left, ranks, summed, large) == _order(pairs, ranks, summed, large)
        ):
            value = repeat.operands[0]
            pairs = [(kept.index(one), other) for one, other in left]
            summed[small] = [kept.index(dim) for dim in summed[small]]
    attributes = mlir.dot_attributes(
        dot,
        ([one for one, _ in pairs], [other for _, other in pairs]),
        (summed[small], summed[large]),
        is_turned=small == 1,
    )
    if attributes is None or (small == 0 and value == dot.operands[0]):
        return
    new = mlir.create_operation(
        dot.name,
        [value, dot.operands[large]],
        [dot.results[0].type],
        attributes,
        location=dot.location,
        insertion_point=mlir.insert_before(dot),
    )
    dot.results[0].replace_all_uses_with(new.results[0])


def _order(pairs: list[tuple[int, int]], ranks: list[int], summed: list[list[int]], large: int) -> list[int]:
    """The dims of the larger factor in the order in which the product has them."""
    batch = [other for _, other in pairs]
    return [*batch, *(dim for dim in range(ranks[large]) if dim not in (*batch, *summed[large]))]
