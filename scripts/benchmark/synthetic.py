"""A made-up module of any length: cache updates, sums into tables and elementwise ops, each with its own location."""

from collections.abc import Iterator

SHAPES = 40
"""Caches, each of another shape, that the blocks take turns with."""

MIXED = ("add", "multiply", "maximum", "subtract")


def synthetic_module(operations: int, scatters: int) -> str:
    """StableHLO text of one function with about so many operations, those in regions not counted.

    Every second scatter writes a row of a cache at a position that counts from the end when it is negative, the others
    add the rows of some tokens to a table. What fills the space between them is elementwise.
    """
    filler = max(1, operations // scatters - 8)
    blocks = "".join(line for number in range(scatters) for line in _block(number, filler))
    arguments, results = [], []
    for shape in range(SHAPES):
        cache, row, table, rows = _types(shape)
        arguments += [f"%c{shape}: {cache}", f"%r{shape}: {row}", f"%t{shape}: {table}", f"%u{shape}: {rows}"]
        results += [(f"%c{_last(shape, 0, scatters)}", cache), (f"%t{_last(shape, 1, scatters)}", table)]
    given = ", ".join([*arguments, "%position: tensor<i32>", "%tokens: tensor<6xi32>"])
    types = ", ".join(kind for _, kind in results)
    values = ", ".join(value for value, _ in results)
    return (
        f"module @synthetic {{\n  func.func public @main({given}) -> ({types}) {{\n{blocks}"
        f"    return {values} : {types}\n  }}\n}}\n"
    )


def _types(shape: int) -> tuple[str, str, str, str]:
    heads, length, width = 2 + shape % 3, 32 + shape, 4 + shape % 7
    vocab = 50 + shape
    return (
        f"tensor<{heads}x{length}x{width}xf32>",
        f"tensor<{heads}x{width}xf32>",
        f"tensor<{vocab}x{width}xf32>",
        f"tensor<6x{width}xf32>",
    )


def _last(shape: int, parity: int, scatters: int) -> str:
    """What the last block of a shape is called, or the argument where there is none: `name_number` or `shape`."""
    numbers = range(2 * shape + parity, scatters, 2 * SHAPES)
    return f"{shape}_{numbers[-1]}" if numbers else f"{shape}"


def _before(shape: int, number: int) -> str:
    earlier = number - 2 * SHAPES
    return f"{shape}_{earlier}" if earlier >= 0 else f"{shape}"


def _block(number: int, filler: int) -> Iterator[str]:
    """The lines of one block: indices, elementwise ops on the updates, the scatter."""
    shape, is_sum = number // 2 % SHAPES, number % 2 == 1
    cache, row, table, rows = _types(shape)
    operand, updates, source = (table, rows, f"%u{shape}") if is_sum else (cache, row, f"%r{shape}")
    index, given = ("tensor<6xi32>", "%tokens") if is_sum else ("tensor<i32>", "%position")
    flags = index.replace("i32", "i1")
    size = 50 + shape if is_sum else 32 + shape
    line = 0

    def at(text: str) -> str:
        nonlocal line
        line += 1
        return f'    {text} loc("blocks.py":{number + 1}:{line})\n'

    n = f"_{number}"
    yield at(f"%zero{n} = stablehlo.constant dense<0> : {index}")
    yield at(f"%size{n} = stablehlo.constant dense<{size}> : {index}")
    yield at(f"%low{n} = stablehlo.compare LT, {given}, %zero{n}, SIGNED : ({index}, {index}) -> {flags}")
    yield at(f"%up{n} = stablehlo.add {given}, %size{n} : {index}")
    yield at(f"%i{n} = stablehlo.select %low{n}, %up{n}, {given} : {flags}, {index}")
    starts = "tensor<6x1xi32>" if is_sum else "tensor<1xi32>"
    yield at(f"%s{n} = stablehlo.reshape %i{n} : ({index}) -> {starts}")
    value = source
    for step in range(filler):
        yield at(f"%x{n}_{step} = stablehlo.{MIXED[(number + step) % 4]} {value}, {source} : {updates}")
        value = f"%x{n}_{step}"
    yield from _scatter(number, shape, is_sum, operand, starts, updates, value)


def _scatter(
    number: int, shape: int, is_sum: bool, operand: str, starts: str, updates: str, value: str
) -> Iterator[str]:
    name = "t" if is_sum else "c"
    dims = (
        "update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1"
        if is_sum
        else "update_window_dims = [0, 1], inserted_window_dims = [1], scatter_dims_to_operand_dims = [1]"
    )
    combined = "%sum" if is_sum else "%new"
    yield f'    %{name}{shape}_{number} = "stablehlo.scatter"(%{name}{_before(shape, number)}, %s_{number}, {value})'
    yield f" <{{scatter_dimension_numbers = #stablehlo.scatter<{dims}>}}> ({{\n"
    yield "    ^bb0(%old: tensor<f32>, %new: tensor<f32>):\n"
    if is_sum:
        yield "      %sum = stablehlo.add %old, %new : tensor<f32>\n"
    yield f"      stablehlo.return {combined} : tensor<f32>\n"
    yield f'    }}) : ({operand}, {starts}, {updates}) -> {operand} loc("blocks.py":{number + 1}:99)\n'
