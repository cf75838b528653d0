"""Folds, sorts, products, loops and branches of 64-bit integers: each adds to a random program."""

import numpy as np
from halves_text import FOLDS, SHAPES, V, dtype_of, folding, ints, tensor


def reduce(p):
    """A fold along dims, from any start; of one element XLA ignores the start."""
    x = p.value(p.pick([s for s in SHAPES if s]))
    dims = [d for d in range(len(x.shape)) if p.chance(0.7)]
    if int(np.prod([x.shape[d] for d in dims])) == 1:
        return
    start, op = p.value(()), p.pick(FOLDS)
    shape = [n for d, n in enumerate(x.shape) if d not in dims]
    p.put("reduce", [x, start], shape, p.element, f"{{dimensions = {ints(dims)}}}", folding(p, op, p.element))


def windows(p):
    """A fold over windows: strides, dilations and padding."""
    x = p.value(p.pick([s for s in SHAPES if s and 0 not in s]))
    size = [int(p.rng.integers(1, 4)) for _ in x.shape]
    step = [int(p.rng.integers(1, 3)) for _ in x.shape]
    base, inner = ([2 if p.chance(0.2) else 1 for _ in x.shape] for _ in range(2))
    low, high = ([int(p.rng.integers(0, 3)) for _ in x.shape] for _ in range(2))
    shape = []
    for n, k, s, b, d, a, e in zip(x.shape, size, step, base, inner, low, high, strict=True):
        length, window = (n - 1) * b + 1 + a + e, (k - 1) * d + 1
        shape.append((length - window) // s + 1 if length >= window else 0)
    if 0 in shape:
        return
    op = p.pick(FOLDS)
    start = identity(p, op)  # another one XLA does not pad with
    padding = str([[a, e] for a, e in zip(low, high, strict=True)])
    told = (
        f"{{window_dimensions = {ints(size)}, window_strides = {ints(step)}, base_dilations = {ints(base)}, "
        f"window_dilations = {ints(inner)}, padding = dense<{padding}> : tensor<{len(low)}x2xi64>}}"
    )
    p.put("reduce_window", [x, start], shape, p.element, told, folding(p, op, p.element))


def cumulative(p):
    """Running sums, products or maxima: a window as long as the axis."""
    n = p.pick((3, 5, 12))
    x, op = p.value((n,)), p.pick(FOLDS)
    told = (
        f"{{window_dimensions = {ints([n])}, padding = dense<[[{n - 1}, 0]]> : tensor<1x2xi64>}}"
        if p.chance()
        else f"{{window_dimensions = {ints([n])}, padding = dense<[[0, {n - 1}]]> : tensor<1x2xi64>}}"
    )
    p.put("reduce_window", [x, identity(p, op)], (n,), p.element, told, folding(p, op, p.element))


def identity(p, op):
    """The number that changes nothing."""
    least, most = (0, (1 << 64) - 1) if p.element == "ui64" else (1 << 63, (1 << 63) - 1)
    number = {"add": 0, "or": 0, "xor": 0, "and": (1 << 64) - 1, "multiply": 1, "minimum": most, "maximum": least}[op]
    return p.constant((), p.element, np.array(number, np.uint64).view(dtype_of(p.element)))


def extreme(p):
    """Where the greatest number is: a fold of two results, the values of 64 bits, the places, or both."""
    rows = p.pick([(5,), (12,), (3, 2), (4, 2)])
    first = p.pick((p.element, "f32", "i32"))
    x = p.argument(rows, first)
    i = p.put("iota", [], rows, p.element, "{iota_dimension = 0 : i64}")
    zero, start = (
        p.constant((), p.element, np.array(0, dtype_of(p.element))),
        p.argument((), "i32" if first == "f32" else first),
    )
    start = p.put("convert", [start], (), "f32") if first == "f32" else start
    a, b = tensor((), first), tensor((), p.element)
    if first == "f32":  # of NaN and zeros it depends on the order
        x = p.put("convert", [p.argument(rows, "i32")], rows, "f32")
    how, tie = p.pick(("GT", "GE", "LT", "LE")), p.pick(("LT", "GT"))
    body = f""" ({{
  ^b(%x: {a}, %i: {b}, %y: {a}, %j: {b}):
    %f = stablehlo.compare {how}, %x, %y : ({a}, {a}) -> tensor<i1>
    %e = stablehlo.compare EQ, %x, %y : ({a}, {a}) -> tensor<i1>
    %t = stablehlo.compare {tie}, %i, %j : ({b}, {b}) -> tensor<i1>
    %g = stablehlo.select %e, %t, %f : tensor<i1>, tensor<i1>
    %p = stablehlo.select %g, %x, %y : tensor<i1>, {a}
    %q = stablehlo.select %g, %i, %j : tensor<i1>, {b}
    stablehlo.return %p, %q : {a}, {b}
  }})"""
    p.several(
        "reduce", [x, i, start, zero], [(rows[1:], first), (rows[1:], p.element)], f"{{dimensions = {ints([0])}}}", body
    )


def own_body(p):
    """A fold whose body is several ops, and in any order the same: (x + 1) (y + 1) - 1."""
    x, start, t = p.value(p.pick([(5,), (12,), (3, 2), (4, 2)])), p.value(()), tensor((), p.element)
    body = f""" ({{
  ^b(%x: {t}, %y: {t}):
    %r = stablehlo.multiply %x, %y : {t}
    %s = stablehlo.add %x, %y : {t}
    %u = stablehlo.add %r, %s : {t}
    stablehlo.return %u : {t}
  }})"""
    p.put("reduce", [x, start], x.shape[1:], p.element, f"{{dimensions = {ints([0])}}}", body)


def sort(p):
    """Rows in the order of a key of 64 bits, or of an f32 that 64 bits go along with."""
    rows = p.pick([(5,), (12,), (3, 2), (0, 3)])
    first = p.pick((p.element, p.element, "f32", "i32"))
    x = p.value(rows) if first == p.element else p.argument(rows, first)
    y, a, b = p.value(rows), tensor((), first), tensor((), p.element)
    how = p.pick(("LT", "GT"))
    kind = "FLOAT" if first == "f32" else "UNSIGNED" if first.startswith("u") else "SIGNED"
    tie = "UNSIGNED" if p.element.startswith("u") else "SIGNED"
    body = f""" ({{
  ^b(%x: {a}, %y: {a}, %i: {b}, %j: {b}):
    %f = stablehlo.compare {how}, %x, %y, {kind} : ({a}, {a}) -> tensor<i1>
    %e = stablehlo.compare EQ, %x, %y, {kind} : ({a}, {a}) -> tensor<i1>
    %t = stablehlo.compare LT, %i, %j, {tie} : ({b}, {b}) -> tensor<i1>
    %g = stablehlo.and %e, %t : tensor<i1>
    %o = stablehlo.or %f, %g : tensor<i1>
    stablehlo.return %o : tensor<i1>
  }})"""
    if first == "f32":  # NaN, and the zeros, have no place of their own
        x = p.put("convert", [p.argument(rows, "i32")], rows, "f32")
    p.several("sort", [x, y], [(rows, first), (rows, p.element)], "{dimension = 0 : i64, is_stable = true}", body)


def own_order(p):
    """Rows in the order of a key of 64 bits, told by the lesser of two, of which no columns are read."""
    rows = p.pick([(5,), (12,), (3, 2)])
    x, y, t = p.argument(rows, p.element), p.argument(rows, p.pick(("f32", p.element))), tensor((), p.element)
    u = tensor((), y.element)
    body = f""" ({{
  ^b(%x: {t}, %y: {t}, %i: {u}, %j: {u}):
    %a = stablehlo.minimum %x, %y : {t}
    %b = stablehlo.compare EQ, %a, %x : ({t}, {t}) -> tensor<i1>
    %c = stablehlo.compare NE, %x, %y : ({t}, {t}) -> tensor<i1>
    %o = stablehlo.and %b, %c : tensor<i1>
    stablehlo.return %o : tensor<i1>
  }})"""
    told = "{dimension = 0 : i64, is_stable = true}"
    p.several("sort", [x, y], [(rows, p.element), (rows, y.element)], told, body)


def matrices(p):
    """A product of matrices, in batches or not."""
    b, n, k, m = (int(p.rng.integers(1, 4)) for _ in range(4))
    batch = [b] if p.chance(0.3) else []
    x, y = p.value((*batch, n, k)), p.value((*batch, k, m))
    dims, at = ([0], 1) if batch else ([], 0)
    told = (
        f"{{dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = {dims}, rhs_batching_dimensions = {dims}, "
        f"lhs_contracting_dimensions = [{at + 1}], rhs_contracting_dimensions = [{at}]>}}"
    )
    p.put("dot_general", [x, y], (*batch, n, m), p.element, told)


def convolution(p):
    """A convolution of one dim, padded, strided, dilated, in groups or not."""
    groups, ch = p.pick((1, 1, 2)), p.pick((1, 2))
    n, w, stride, low = 6, p.pick((1, 2, 3)), p.pick((1, 2)), p.pick((0, 1))
    base, inner = (p.pick((1, 1, 2)) for _ in range(2))
    x, k = p.argument((2, ch * groups, n), p.element), p.value((2 * groups, ch, w))
    length = ((n - 1) * base + 1 + low - ((w - 1) * inner + 1)) // stride + 1
    told = (
        "{dimension_numbers = #stablehlo.conv<[b, f, 0]x[o, i, 0]->[b, f, 0]>, "
        f"window_strides = {ints([stride])}, padding = dense<[[{low}, 0]]> : tensor<1x2xi64>, "
        f"lhs_dilation = {ints([base])}, rhs_dilation = {ints([inner])}, "
        f"feature_group_count = {groups} : i64, batch_group_count = 1 : i64}}"
    )
    p.put("convolution", [x, k], (2, 2 * groups, length), p.element, told)


def while_loop(p):
    """A counter and a value of 64 bits, carried; how often is known or not."""
    x = p.value()
    t, s = x.type, tensor((), p.element)
    limit = p.constant((), p.element, np.array(int(p.rng.integers(0, 4)), dtype_of(p.element)))
    zero, one = (p.constant((), p.element, np.array(k, dtype_of(p.element))) for k in (0, 1))
    op, other = p.pick(("add", "subtract", "multiply", "xor", "minimum")), p.value(x.shape)
    name = p.fresh()
    p.lines += [
        f"  {name}:2 = stablehlo.while(%i = {zero.name}, %c = {x.name}) : {s}, {t}",
        "  cond {",
        f"    %q = stablehlo.compare LT, %i, {limit.name} : ({s}, {s}) -> tensor<i1>",
        "    stablehlo.return %q : tensor<i1>",
        "  } do {",
        f"    %n = stablehlo.add %i, {one.name} : {s}",
        f"    %d = stablehlo.{op} %c, {other.name} : {t}",
        f"    stablehlo.return %n, %d : {s}, {t}",
        "  }",
    ]
    p.names.append("while")
    p.pool += [V(f"{name}#0", (), p.element), V(f"{name}#1", x.shape, p.element)]


def case(p):
    """Branches that give values of 64 bits."""
    x = p.value()
    y, i, name = p.value(x.shape), p.argument((), "i32"), p.fresh()
    ops = [p.pick(("add", "multiply", "maximum", "xor", "divide")) for _ in range(2)]
    x = p.argument(x.shape, p.element)
    branches = ", ".join(
        f"{{\n    %r{k} = stablehlo.{op} {x.name}, {y.name} : {x.type}\n    stablehlo.return %r{k} : {x.type}\n  }}"
        for k, op in enumerate(ops)
    )
    p.lines.append(f'  {name} = "stablehlo.case"({i.name}) ({branches}) : (tensor<i32>) -> {x.type}')
    p.names.append("case")
    p.pool.append(V(name, x.shape, p.element))
