"""Random programs of 64-bit integers, as text, and targets that compute on none of them."""

from dataclasses import dataclass, field

import numpy as np
from element_type_programs import same_bits, target_taking

import hlo_lower as hl
from hlo_lower import mlir
from hlo_lower.graph import Node
from hlo_lower.rewrite.kinds.element_type import WITH_BODIES
from hlo_lower.verify.devices import compile_anywhere

OTHERS = ("i1", "i8", "ui8", "i16", "ui16", "i32", "ui32", "f32", "f64")
CONVERTED = (*OTHERS, "bf16", "f16")
SHAPES = ((), (1,), (3,), (5,), (2, 3), (3, 2), (4, 2), (0,), (0, 3), (2, 1, 3), (12,))
EDGES = [0, 1, 2, 3, 5, 7, 31, 32, 33, 63, 64, 65, -1, -2, -3, -63, -64]
EDGES += [(1 << k) + e for k in (15, 16, 31, 32, 33, 48, 62, 63, 64) for e in (-2, -1, 0, 1, 2)]
EDGES += [-((1 << k) + e) for k in (31, 32, 62, 63) for e in (-1, 0, 1)]
EDGES += [5 << 32, (5 << 32) | 5, 0x00000001FFFFFFFF, 0xFFFFFFFF00000000, 0x7FFFFFFF80000000, 0x80000000FFFFFFFF]

BINARY = ("add", "subtract", "multiply", "divide", "remainder", "minimum", "maximum", "and", "or", "xor")
SHIFTS = ("shift_left", "shift_right_logical", "shift_right_arithmetic")
FOLDS = ("add", "minimum", "maximum", "and", "or", "xor", "multiply")
DIRECTIONS = ("EQ", "NE", "LT", "LE", "GT", "GE")


def bits_of(element):
    """How many bits an integer type has."""
    return int(element.lstrip("ui"))


def dtype_of(element):
    """The NumPy name of an element type."""
    if element == "i1":
        return "bool"
    return {"u": "uint", "i": "int", "f": "float"}[element[0]] + element.lstrip("uif")


def drawn(rng, shape, element):
    """An array of a type: edges and random numbers of every size among integers, all kinds of floats."""
    size = int(np.prod(shape))
    if element == "i1":
        return rng.integers(0, 2, shape).astype(bool)
    if element.startswith("f"):
        near = [0.0, -0.0, 0.5, -0.5, 1.5, np.nan, np.inf, -np.inf, 1e30, -1e30]
        near += [
            sign * (2.0**k + e) for k in (31, 32, 53, 62, 63, 64) for e in (-1024, -1, 0, 1, 4096) for sign in (1, -1)
        ]
        found = rng.choice(near, size) * np.where(rng.random(size) < 0.3, rng.random(size), 1)
        with np.errstate(all="ignore"):
            return found.reshape(shape).astype(dtype_of(element))
    bits = bits_of(element)
    edge = [int(n) % (1 << bits) for n in rng.choice(np.array(EDGES, object), size)]
    wide = [int(rng.integers(0, 1 << 64, dtype=np.uint64)) >> int(rng.integers(0, 64)) for _ in range(size)]
    wide = [(-n if rng.random() < 0.3 else n) % (1 << bits) for n in wide]
    picked = [a if rng.random() < 0.6 else b for a, b in zip(edge, wide, strict=True)]
    return np.array(picked, f"uint{bits}").view(dtype_of(element)).reshape(shape)


def tensor(shape, element):
    """A type as text."""
    return f"tensor<{''.join(f'{n}x' for n in shape)}{element}>"


@dataclass(frozen=True)
class V:
    """A value of a program."""

    name: str
    shape: tuple[int, ...]
    element: str

    @property
    def type(self):
        """Its type as text."""
        return tensor(self.shape, self.element)


@dataclass
class Program:
    """Ops as text, and what they may take."""

    rng: np.random.Generator
    element: str
    lines: list = field(default_factory=list)
    pool: list = field(default_factory=list)
    arguments: list = field(default_factory=list)
    names: list = field(default_factory=list)
    known: set = field(default_factory=set)
    count: int = 0

    def pick(self, many):
        """One of several."""
        return many[int(self.rng.integers(len(many)))]

    def chance(self, p=0.5):
        """Whether, by chance."""
        return self.rng.random() < p

    def fresh(self):
        """A name."""
        self.count += 1
        return f"%v{self.count}"

    def shape(self, *, some=False):
        """A shape; with elements if asked."""
        return self.pick([s for s in SHAPES if not some or 0 not in s])

    def argument(self, shape, element):
        """One more argument."""
        value = V(f"%a{len(self.arguments)}", tuple(shape), element)
        self.arguments.append(value)
        return value

    def constant(self, shape, element, values=None):
        """A constant, a splat or an array."""
        if values is None:
            is_splat = self.chance() or 0 in shape
            one = drawn(self.rng, () if is_splat else shape, element)
            values = np.broadcast_to(one, shape) if is_splat else one
        text = str(np.asarray(values).tolist()).lower() if 0 not in shape else ""
        if np.size(values) and (np.asarray(values) == np.asarray(values).reshape(-1)[0]).all():
            text = str(np.asarray(values).reshape(-1)[0].item()).lower()
        name = self.fresh()
        self.lines.append(f"  {name} = stablehlo.constant dense<{text}> : {tensor(shape, element)}")
        self.known.add(name)
        return V(name, tuple(shape), element)

    def value(self, shape=None, element=None, *, known=0.2):
        """A value of a shape and a type: one that is there, an argument, or a constant."""
        element = element or self.element
        found = [v for v in self.pool if v.element == element and (shape is None or v.shape == tuple(shape))]
        if found and self.chance(0.65):
            return self.pick(found)
        shape = self.shape() if shape is None else shape
        if not element.startswith(("f", "b")) and self.chance(known):
            return self.constant(shape, element)
        return self.argument(shape, element)

    def put(self, op, operands, shape, element, attributes="", body="", name=None):
        """An op in generic form, of one result."""
        name = name or self.fresh()
        told = ", ".join(v.name for v in operands)
        types = ", ".join(v.type for v in operands)
        self.lines.append(
            f'  {name} = "stablehlo.{op}"({told}){body} {attributes} : ({types}) -> {tensor(shape, element)}'
        )
        self.names.append(op)
        self.known |= {name} if all(v.name in self.known for v in operands) else set()
        made = V(name, tuple(shape), element)
        self.pool.append(made)
        return made

    def several(self, op, operands, results, attributes="", body=""):
        """An op of several results: (shape, element) of each."""
        name = self.fresh()
        told = ", ".join(v.name for v in operands)
        types = ", ".join(v.type for v in operands)
        of = ", ".join(tensor(*r) for r in results)
        self.lines.append(
            f'  {name}:{len(results)} = "stablehlo.{op}"({told}){body} {attributes} : ({types}) -> ({of})'
        )
        self.names.append(op)
        made = [V(f"{name}#{k}", tuple(shape), element) for k, (shape, element) in enumerate(results)]
        self.pool += made
        return made

    def text(self):
        """The module; every value is a result."""
        taken = ", ".join(f"{v.name}: {v.type}" for v in self.arguments)
        told = ", ".join(v.name for v in self.pool)
        types = ", ".join(v.type for v in self.pool)
        body = "\n".join(self.lines)
        return f"func.func public @main({taken}) -> ({types}) {{\n{body}\n  return {told} : {types}\n}}\n"


def ints(numbers):
    """An array attribute."""
    return f"array<i64{': ' if len(numbers) else ''}{', '.join(map(str, numbers))}>"


# --- ops: each adds to a program ---


def binary(p):
    """An elementwise op of two; XLA ends the process where it folds a division by zero."""
    x = p.value()
    op = p.pick(BINARY)
    y = p.value(x.shape)
    if op in ("divide", "remainder"):
        x = p.argument(x.shape, p.element)
    p.put(op, [x, y], x.shape, p.element)


def same(p):
    """An op of one value twice."""
    x = p.argument(p.shape(), p.element)
    p.put(p.pick(BINARY), [x, x], x.shape, p.element)


def quotient_by_known(p):
    """A quotient or remainder by constants: one number or many, broadcast or whole."""
    x = p.argument(p.shape(), p.element)
    near = np.array(
        [1, 2, 3, 7, 10, 1000, 32767, 32768, 65535, (1 << 32) + 5, 5, 1 << 40, (1 << 63) - 1, 1 << 63], object
    )
    small = p.chance()
    shape = () if p.chance(0.3) else x.shape
    picks = [int(p.pick(near)) for _ in range(int(np.prod(shape)) or 1)]
    picks = [picks[0]] * len(picks) if small else picks
    values = np.array([n % (1 << 64) for n in picks], np.uint64).view(dtype_of(p.element))
    d = p.constant(shape, p.element, values[: int(np.prod(shape))].reshape(shape))
    if shape != x.shape:
        d = p.put("broadcast_in_dim", [d], x.shape, p.element, f"{{broadcast_dimensions = {ints([])}}}")
    p.put(p.pick(("divide", "remainder")), [x, d], x.shape, p.element)


def unary(p):
    """An elementwise op of one."""
    names = ["negate", "not", "popcnt", "count_leading_zeros", *(["abs", "sign"] if p.element == "i64" else [])]
    op, x = p.pick(names), p.value()
    if op == "count_leading_zeros":  # of negative constants of i32 XLA folds it to -32
        x = p.argument(x.shape, p.element)
    p.put(op, [x], x.shape, p.element)


def shift(p):
    """A shift by what is known or not, 64 and more among it."""
    x = p.value()
    amounts = drawn_amounts(p, x.shape)
    p.put(p.pick(SHIFTS), [x, amounts], x.shape, p.element)


def drawn_amounts(p, shape):
    """By how much is shifted."""
    way = p.rng.random()
    if way < 0.35:
        return p.value(shape)
    counts = [0, 1, 15, 16, 17, 31, 32, 33, 47, 62, 63, 64, 65, 127, 1 << 32, (1 << 64) - 1, 1 << 63, (1 << 32) + 3]
    many = 1 if way < 0.8 else int(np.prod(shape)) or 1
    values = np.array([int(p.pick(counts)) for _ in range(many)], np.uint64).view(dtype_of(p.element))
    values = np.broadcast_to(values[0], shape) if many == 1 else values[: int(np.prod(shape))].reshape(shape)
    return p.constant(shape, p.element, values)


def compare(p, shape=None):
    """An order."""
    x = p.value(shape)
    y = p.value(x.shape)
    told = f"{{comparison_direction = #stablehlo<comparison_direction {p.pick(DIRECTIONS)}>}}"
    return p.put("compare", [x, y], x.shape, "i1", told)


def select(p):
    """A choice, the predicate one or as many."""
    x = p.value()
    y = p.value(x.shape)
    q = compare(p, x.shape if p.chance(0.7) else ())
    p.put("select", [q, x, y], x.shape, p.element)


def clamp(p):
    """Bounds that are scalars or as many; they may be the wrong way round."""
    x = p.value()
    low, high = (p.value(x.shape if p.chance() else ()) for _ in range(2))
    p.put("clamp", [low, x, high], x.shape, p.element)


def convert(p):
    """From 64 bits and back, through any type."""
    x, other = p.value(), p.pick((*CONVERTED, "i64", "ui64"))
    made = p.put("convert", [x], x.shape, other)
    if p.chance():
        p.put("convert", [made], x.shape, p.pick((p.element, "i64", "ui64")))


def convert_to(p):
    """From another type."""
    other = p.pick((*OTHERS, "f32", "f64", "i64", "ui64"))
    x = p.argument(p.shape(), other)
    if other == "f32" and p.chance(0.4):
        x = p.put("convert", [x], x.shape, p.pick(("bf16", "f16")))
    p.put("convert", [x], x.shape, p.element)


def bitcast(p):
    """The same bits in other types; narrower ones than halves XLA folds wrongly into those of halves."""
    x = p.value()
    other, more = p.pick([("i64", ()), ("ui64", ()), ("f64", ()), ("i32", (2,)), ("ui32", (2,))])
    made = p.put("bitcast_convert", [x], (*x.shape, *more), other)
    if p.chance():
        p.put("bitcast_convert", [made], x.shape, p.element)


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


def folding(p, op, element, name="b"):
    """A body of one op of both its arguments, or of what is not one."""
    t = tensor((), element)
    a, b = ("%x", "%y") if p.chance() else ("%y", "%x")
    if not op:
        return f" ({{\n  ^{name}(%x: {t}, %y: {t}):\n    stablehlo.return %y : {t}\n  }})"
    line = f'%r = "stablehlo.{op}"({a}, {b}) : ({t}, {t}) -> {t}'
    return f" ({{\n  ^{name}(%x: {t}, %y: {t}):\n    {line}\n    stablehlo.return %r : {t}\n  }})"


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


OPS = {
    "binary": (binary, 6),
    "same": (same, 1),
    "quotient_by_known": (quotient_by_known, 2),
    "unary": (unary, 3),
    "shift": (shift, 3),
    "compare": (compare, 2),
    "select": (select, 2),
    "clamp": (clamp, 2),
    "convert": (convert, 3),
    "convert_to": (convert_to, 2),
    "bitcast": (bitcast, 2),
    "reshape": (reshape, 1),
    "transpose": (transpose, 1),
    "broadcast": (broadcast, 1),
    "slices": (slices, 1),
    "concatenate": (concatenate, 1),
    "reverse": (reverse, 1),
    "pad": (pad, 1),
    "iota": (iota, 1),
    "dynamic_slice": (dynamic_slice, 2),
    "gather": (gather, 2),
    "scatter": (scatter, 2),
    "reduce": (reduce, 3),
    "windows": (windows, 2),
    "cumulative": (cumulative, 1),
    "extreme": (extreme, 1),
    "own_body": (own_body, 1),
    "sort": (sort, 1),
    "own_order": (own_order, 1),
    "matrices": (matrices, 1),
    "convolution": (convolution, 1),
    "while_loop": (while_loop, 1),
    "case": (case, 1),
}


def program(seed, names=tuple(OPS), steps=8):
    """A random program."""
    rng = np.random.default_rng(seed)
    p = Program(rng, str(rng.choice(["i64", "ui64"])))
    weights = np.array([OPS[name][1] for name in names], float)
    while len(p.names) < steps:
        OPS[str(rng.choice(names, p=weights / weights.sum()))][0](p)
        if p.chance(0.15):
            p.element = p.pick(("i64", "ui64"))
    return p


def in_bodies(graph):
    """The values of the ops in bodies of folds and sorts."""
    nodes = [Node(raw) for raw in mlir.walked(graph.module.operation)]
    within = (inner for n in nodes if n.name in WITH_BODIES for inner in mlir.walked(n.raw) if inner != n.raw)
    return [value for inner in within for value in Node(inner).results]


def differing(p, target, seeds=(0, 1)):
    """The values of a program that the lowered one gives other bits of, and what the target refuses of it still."""
    text = p.text()
    lowered = hl.lower(text, target=target, keep_unsupported=True)
    assert all(value.shape == () for value in in_bodies(lowered.graph)), "a target may take scalars alone in a body"
    native, ours = compile_anywhere([(text, "quick"), (lowered.as_given, "quick")])
    found = set()
    for seed in seeds:
        given = arguments_of(p, seed)
        results = zip(p.pool, native.run(given), ours.run(given), strict=True)
        found |= {v for v, one, other in results if not same_bits(np.asarray(one), np.asarray(other)).all()}
    return found, {one.op for one in lowered.refused}


def arguments_of(p, seed):
    """Numbers for a program."""
    rng = np.random.default_rng((seed, 1))
    return [drawn(rng, v.shape, v.element) for v in p.arguments]


TAKEN = ("i1", "i8", "ui8", "i16", "ui16", "i32", "ui32", "bf16", "f16", "f32", "f64")
WITHOUT = {
    "all": (),
    "no_loops": ("while",),
    "no_shifts": ("shift_left", "shift_right_logical", "shift_right_arithmetic"),
    "few_types": (),
    "no_bits": ("shift_left", "shift_right_logical", "popcnt", "count_leading_zeros"),
}


def no_64_bits(without="all"):
    """A target that computes on no integers of 64 bits, and has room for them."""
    types = ("i1", "i32", "f32") if without == "few_types" else TAKEN
    target = target_taking(*types, without=WITHOUT[without])
    taken = {**target.op_dtypes, "stablehlo.convert": [*types]}
    taken |= {f"stablehlo.{op}": ["i1"] for op in ("and", "or", "xor", "not") if without == "no_bits"}
    return hl.Target("npu", refused=target.refused, op_dtypes=taken)
