"""Scatters of dynamic shape as text, bound to sizes; which sizes of one may be 0."""

from itertools import combinations

import numpy as np

import hlo_lower as hl
from hlo_lower.ir import view
from hlo_lower.ir.shapes.bind import bind_module
from hlo_lower.ir.view import Graph
from hlo_lower.ir.writer import to_text
from hlo_lower.verify.judges.definitions import ScatterNumbers

BODIES = {
    "assign": "stablehlo.return %u : tensor<{e}>",
    "add": "%s = stablehlo.add %c, %u : tensor<{e}>\n    stablehlo.return %s : tensor<{e}>",
    "mixed": "%k = stablehlo.constant dense<3> : tensor<{e}>\n    %m = stablehlo.multiply %c, %k : tensor<{e}>\n"
    "    %s = stablehlo.subtract %m, %u : tensor<{e}>\n    stablehlo.return %s : tensor<{e}>",
}
COMBINE = {"assign": lambda c, u: u, "add": lambda c, u: [c[0] + u[0]], "mixed": lambda c, u: [c[0] * 3 - u[0]]}


def tensor(shape, element):
    """`tensor<?x4xi32>`: -1 is a size that is known at run time."""
    return f"tensor<{'x'.join(['?' if d < 0 else str(d) for d in shape] + [element])}>"


def module_of(operand, indices, updates, dims, *, combiner="assign", index="i32"):
    """A scatter of i32 with these shapes, all as arguments."""
    o, i, u = tensor(operand, "i32"), tensor(indices, index), tensor(updates, "i32")
    told = ", ".join(
        f"{name} = {list(value)}" if isinstance(value, tuple) else f"{name} = {value}"
        for name, value in vars(dims).items()
    )
    return f"""func.func public @main(%o: {o}, %i: {i}, %up: {u}) -> {o} {{
  %r = "stablehlo.scatter"(%o, %i, %up) <{{scatter_dimension_numbers = #stablehlo.scatter<{told}>}}> ({{
  ^bb0(%c: tensor<i32>, %u: tensor<i32>):
    {BODIES[combiner].format(e="i32")}
  }}) : ({o}, {i}, {u}) -> {o}
  return %r : {o}
}}
"""


def numbers(window_dims, inserted, to_operand, index_vector_dim):
    """Dimension numbers without batches."""
    return ScatterNumbers(window_dims, inserted, (), (), to_operand, index_vector_dim)


ROWS = numbers((1,), (0,), (0,), 1)
"""Rows of the operand, the index vector last."""
BATCHES = ScatterNumbers((2,), (1,), (0,), (0,), (1,), 2)

CASES = {
    "rows": ((-1, 4), (-1, 1), (-1, 4), ROWS, [(5, 4), (3, 1), (3, 4)]),
    "rows of run-time length": ((-1, -1), (-1, 1), (-1, -1), ROWS, [(5, 4), (3, 1), (3, 3)]),
    "one row": ((-1, 4), (1,), (4,), numbers((0,), (0,), (0,), 0), [(5, 4), (1,), (4,)]),
    "windows": ((-1, 6), (-1, 2), (-1, 2, 3), numbers((1, 2), (), (0, 1), 1), [(5, 6), (4, 2), (4, 2, 3)]),
    "run-time windows": ((-1, 6), (2, 1), (2, -1, 6), numbers((1, 2), (), (0,), 1), [(5, 6), (2, 1), (2, 3, 6)]),
    "points": ((-1, -1), (-1, -1, 2), (-1, -1), numbers((), (0, 1), (1, 0), 2), [(5, 4), (3, 2, 2), (3, 2)]),
    "batches": ((-1, 7, 4), (-1, 2, 1), (-1, 2, 4), BATCHES, [(3, 7, 4), (3, 2, 1), (3, 2, 4)]),
    "index vector first": ((-1, 5), (1, -1), (3, -1), numbers((0,), (1,), (1,), 0), [(4, 5), (1, 6), (3, 6)]),
    "implicit index vector": ((-1,), (-1,), (-1,), numbers((), (0,), (0,), 1), [(5,), (6,), (6,)]),
    "no index": ((-1, 4), (-1, 0), (-1, 2, 4), numbers((1, 2), (), (), 1), [(5, 4), (3, 0), (3, 2, 4)]),
    "scalar operand": ((), (-1, 0), (-1,), numbers((), (), (), 1), [(), (4, 0), (4,)]),
}


def bound(text, shapes):
    """A module with the sizes of these argument shapes."""
    graph = hl.read(text)
    types = [value.raw.type for value in graph.functions["main"].body.arguments]
    given = [view.mlir.tensor_shape(t) for t in types]
    sizes = {
        f"arg{n}.{i}": size
        for n, (known, shape) in enumerate(zip(given, shapes, strict=True))
        for i, (d, size) in enumerate(zip(known, shape, strict=True))
        if d is None
    }
    return to_text(Graph(bind_module(graph.module, sizes), "bound", has_locations=False))


def arguments(rng, shapes, index, operand):
    """Random tensors, and indices around both ends of the operand."""
    o, u = (rng.integers(-99, 99, shape).astype(np.int32) for shape in (shapes[0], shapes[2]))
    values = rng.integers(-3, max((*operand, 1)) + 2, shapes[1])
    if rng.random() < 0.3 and values.size:
        values.flat[0] = np.iinfo(index).max if rng.random() < 0.5 else np.iinfo(index).min
    return o, np.clip(values, np.iinfo(index).min, np.iinfo(index).max).astype(index), u


def zero_shapes(name, most=9):
    """The shapes of a case with 0 for one or more of its open sizes, at most this many of them, where that is legal."""
    operand, _, updates, numbers, sizes = CASES[name]
    windows = set(numbers.update_window_dims)
    kept = [d for d in range(len(operand)) if d not in {*numbers.inserted_window_dims, *numbers.input_batching_dims}]
    window_of = dict(zip(kept, numbers.update_window_dims, strict=True))
    scatter_dims = [d for d in range(len(updates)) if d not in windows]
    index_dims = [d for d in range(len(sizes[1])) if d != numbers.index_vector_dim]
    index_of = dict(zip(scatter_dims, index_dims, strict=True))
    batch_of = dict(zip(numbers.scatter_indices_batching_dims, numbers.input_batching_dims, strict=True))
    open_sizes = [(0, d) for d, size in enumerate(operand) if size < 0 and d not in numbers.input_batching_dims]
    open_sizes += [(2, d) for d, size in enumerate(updates) if size < 0]
    for count in range(1, min(most, len(open_sizes)) + 1):
        for chosen in combinations(open_sizes, count):
            shapes = [list(shape) for shape in sizes]
            for argument, d in chosen:
                shapes[argument][d] = 0
                if argument == 2 and d in index_of:
                    shapes[1][index_of[d]] = 0
                    if index_of[d] in batch_of:
                        shapes[0][batch_of[index_of[d]]] = 0
            if all(shapes[2][u] <= shapes[0][d] for d, u in window_of.items()):
                yield tuple(map(tuple, shapes))
