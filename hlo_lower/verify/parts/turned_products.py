"""Products whose free dims are exchanged afterwards are written as products of the factors in the other order.

    transpose(dot_general(%a, %b)) : [n, m]   ->   dot_general(%b, %a) : [n, m]

Right: a product does not depend on the order of its factors, and the free dims of the first one come first. It is done
to both pieces, so that neither has to know in which form the other one has it.
"""

from hlo_lower import mlir


def turn_products(module: mlir.RawModule) -> None:
    """Turn the products of a module; those that nothing reads any more are left in it."""
    found: list[mlir.RawOperation] = []

    def visit(op: mlir.RawOperation) -> None:
        if op.name == "stablehlo.transpose":
            found.append(op)

    mlir.walk(module.operation, visit)
    for transpose in found:
        _turn(transpose)


def _turn(transpose: mlir.RawOperation) -> None:
    dot = mlir.producer(transpose.operands[0])
    if dot is None or dot.name != "stablehlo.dot_general":
        return
    numbers = mlir.dot_dimension_numbers(dot)
    batch = len(numbers.lhs_batching_dimensions)
    left = len(mlir.tensor_shape(dot.operands[0].type)) - batch - len(numbers.lhs_contracting_dimensions)
    rank = len(mlir.tensor_shape(dot.results[0].type))
    exchanged = (*range(batch), *range(batch + left, rank), *range(batch, batch + left))
    attributes = mlir.turned_dot_attributes(dot)
    if mlir.integers_of(transpose.attributes["permutation"]) != exchanged or attributes is None:
        return
    turned = mlir.create_operation(
        dot.name,
        [dot.operands[1], dot.operands[0]],
        [transpose.results[0].type],
        attributes,
        location=dot.location,
        insertion_point=mlir.insert_before(transpose),
    )
    transpose.results[0].replace_all_uses_with(turned.results[0])
