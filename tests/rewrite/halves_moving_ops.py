"""Ops that move elements of 64 bits, or go by indices of 64 bits: each adds to a random program."""

import numpy as np
from halves_text import SHAPES, folding, ints


def reshape(p):
    """Another shape of as many elements."""
    x = p.value()
    n = int(np.prod(x.shape))
    same_size = [s for s in (*SHAPES, (n,), (1, n), (n, 1)) if int(np.prod(s)) == n]
    p.put("reshape", [x], p.pick(same_size), p.element)


def transpose(p):
    """Dims in another order."""
    x = p.value()
    order = [int(k) for k in p.rng.permutation(len(x.shape))]
    p.put("transpose", [x], [x.shape[k] for k in order], p.element, f"{{permutation = {ints(order)}}}")


def broadcast(p):
    """More dims, and sizes of 1 spread."""
    x = p.value()
    if len(x.shape) > 3:
        return
    shape = [p.pick((2, 3)) if n == 1 and p.chance() else n for n in x.shape]
    dims = list(range(len(shape)))
    at = int(p.rng.integers(len(shape) + 1))
    shape.insert(at, p.pick((1, 2)))
    dims = [d + (d >= at) for d in dims]
    p.put("broadcast_in_dim", [x], shape, p.element, f"{{broadcast_dimensions = {ints(dims)}}}")


def slices(p):
    """Every second element, or fewer."""
    x = p.value()
    starts = [int(p.rng.integers(n + 1)) for n in x.shape]
    limits = [int(p.rng.integers(s, n + 1)) for s, n in zip(starts, x.shape, strict=True)]
    strides = [int(p.rng.integers(1, 4)) for _ in x.shape]
    shape = [-(-(e - s) // k) for s, e, k in zip(starts, limits, strides, strict=True)]
    told = f"{{start_indices = {ints(starts)}, limit_indices = {ints(limits)}, strides = {ints(strides)}}}"
    p.put("slice", [x], shape, p.element, told)


def concatenate(p):
    """Several along a dim."""
    x = p.value(p.pick([s for s in SHAPES if s]))
    others = [p.value(x.shape) for _ in range(int(p.rng.integers(3)))]
    dim = int(p.rng.integers(len(x.shape)))
    shape = list(x.shape)
    shape[dim] *= 1 + len(others)
    p.put("concatenate", [x, *others], shape, p.element, f"{{dimension = {dim} : i64}}")


def reverse(p):
    """Dims from the end."""
    x = p.value()
    dims = [d for d in range(len(x.shape)) if p.chance()]
    p.put("reverse", [x], x.shape, p.element, f"{{dimensions = {ints(dims)}}}")


def pad(p):
    """Edges, taken away too, and elements between."""
    x, one = p.value(), p.value(())
    low = [int(p.rng.integers(-min(1, n), 3)) for n in x.shape]
    high = [int(p.rng.integers(0, 3)) for _ in x.shape]
    inner = [int(p.rng.integers(0, 2)) for _ in x.shape]
    shape = [n + a + b + max(n - 1, 0) * k for n, a, b, k in zip(x.shape, low, high, inner, strict=True)]
    if min(shape, default=0) < 0:
        return
    told = f"{{edge_padding_low = {ints(low)}, edge_padding_high = {ints(high)}, interior_padding = {ints(inner)}}}"
    p.put("pad", [x, one], shape, p.element, told)


def iota(p):
    """Positions."""
    shape = p.pick([s for s in SHAPES if s])
    p.put("iota", [], shape, p.element, f"{{iota_dimension = {int(p.rng.integers(len(shape)))} : i64}}")


def dynamic_slice(p):
    """A window at indices of any integer type, of elements of any type."""
    element, x = p.element, None
    if p.chance(0.3):
        x = p.argument(p.pick([s for s in SHAPES if s and 0 not in s]), p.pick(("f32", "i32", "i8")))
        element = x.element
    x = x or p.value(p.pick([s for s in SHAPES if s and 0 not in s]))
    kind = index_type(p, x.element)
    indices = [p.value((), kind) for _ in x.shape]  # constants of ui64 XLA folds as signed ones
    indices = [p.argument((), kind) if kind == "ui64" and i.name in p.known else i for i in indices]
    sizes = [int(p.rng.integers(1, n + 1)) for n in x.shape]
    if p.chance():
        p.put("dynamic_slice", [x, *indices], sizes, element, f"{{slice_sizes = {ints(sizes)}}}")
    else:
        p.put("dynamic_update_slice", [x, p.value(sizes, element), *indices], x.shape, element)


def index_type(p, element):
    """The type of indices: of 64 bits where what is moved is not."""
    return p.element if element not in ("i64", "ui64") else p.pick(("i64", "ui64", "i32", "ui32"))


def indices_of(p, count, element):
    """Index vectors; constants of ui64 XLA folds as signed ones."""
    i = p.value((count, 1), index_type(p, element))
    return p.argument(i.shape, i.element) if i.element == "ui64" and i.name in p.known else i


def gather(p):
    """Rows by indices."""
    rows = p.pick([(3, 2), (4, 2), (5,), (12,), (2, 3)])
    x = p.value(rows) if p.chance(0.7) else p.argument(rows, p.pick(("f32", "i32")))
    n = int(p.rng.integers(0, 4))
    i = indices_of(p, n, x.element)
    told = f"offset_dims = {list(range(1, len(rows)))}, collapsed_slice_dims = [0], start_index_map = [0]"
    told = f"#stablehlo.gather<{told}, index_vector_dim = 1>, slice_sizes = {ints([1, *rows[1:]])}"
    p.put("gather", [x, i], (n, *rows[1:]), x.element, f"{{dimension_numbers = {told}}}")


def scatter(p):
    """Rows by indices, set or combined."""
    rows = p.pick([(3, 2), (4, 2), (5,), (12,), (2, 3)])
    x = p.value(rows) if p.chance(0.7) else p.argument(rows, p.pick(("i32", "i8")))
    n = int(p.rng.integers(1, 4))
    i = indices_of(p, n, x.element)
    u = p.value((n, *rows[1:]), x.element)
    op = p.pick(("add", "minimum", "maximum", "and", "or", "xor", "multiply", ""))
    told = f"update_window_dims = {list(range(1, len(rows)))}, inserted_window_dims = [0]"
    told = f"{told}, scatter_dims_to_operand_dims = [0], index_vector_dim = 1"
    told = f"{{scatter_dimension_numbers = #stablehlo.scatter<{told}>}}"
    p.put("scatter", [x, i, u], rows, x.element, told, folding(p, op, x.element))
