"""Random programs of 64-bit integers as text, targets that compute on none of them, and what differs."""

from dataclasses import dataclass, field

import numpy as np
from element_type_programs import same_bits, target_taking

import hlo_lower as hl
from hlo_lower.ir import mlir
from hlo_lower.ir.view import Node
from hlo_lower.lowering.types.element_type import WITH_BODIES
from hlo_lower.verify.judges.devices import compile_anywhere

# --- numbers, values, and how ops are written ---

OTHERS = ("i1", "i8", "ui8", "i16", "ui16", "i32", "ui32", "f32", "f64")
CONVERTED = (*OTHERS, "bf16", "f16")
SHAPES = ((), (1,), (3,), (5,), (2, 3), (3, 2), (4, 2), (0,), (0, 3), (2, 1, 3), (12,))
ROWS = ((5,), (12,), (3, 2), (4, 2))
EDGES = [0, 1, 2, 3, 5, 7, 31, 32, 33, 63, 64, 65, -1, -2, -3, -63, -64]
EDGES += [(1 << k) + e for k in (15, 16, 31, 32, 33, 48, 62, 63, 64) for e in (-2, -1, 0, 1, 2)]
EDGES += [-((1 << k) + e) for k in (31, 32, 62, 63) for e in (-1, 0, 1)]
EDGES += [5 << 32, (5 << 32) | 5, 0x00000001FFFFFFFF, 0xFFFFFFFF00000000, 0x7FFFFFFF80000000, 0x80000000FFFFFFFF]
SHIFTED_BY = (0, 1, 15, 16, 17, 31, 32, 33, 47, 62, 63, 64, 65, 127, 1 << 32, (1 << 64) - 1, 1 << 63, (1 << 32) + 3)
DIVISORS = (1, 2, 3, 7, 10, 1000, 32767, 32768, 65535, (1 << 32) + 5, 5, 1 << 40, (1 << 63) - 1, 1 << 63)
FLOAT_EDGES = [0.0, -0.0, 0.5, -0.5, 1.5, np.nan, np.inf, -np.inf, 1e30, -1e30]
FLOAT_EDGES += [s * (2.0**k + e) for k in (31, 32, 53, 62, 63, 64) for e in (-1024, -1, 0, 1, 4096) for s in (1, -1)]
FOLDS = ("add", "minimum", "maximum", "and", "or", "xor", "multiply")
BINARY = (*FOLDS, "subtract", "divide", "remainder")
UNARY = ("negate", "not", "popcnt", "count_leading_zeros")
DIRECTIONS = ("EQ", "NE", "LT", "LE", "GT", "GE")
SHIFTS = ("shift_left", "shift_right_logical", "shift_right_arithmetic")


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
        found = rng.choice(FLOAT_EDGES, size) * np.where(rng.random(size) < 0.3, rng.random(size), 1)
        with np.errstate(all="ignore"):
            return found.reshape(shape).astype(dtype_of(element))
    edge = [int(n) for n in rng.choice(np.array(EDGES, object), size)]
    wide = [int(rng.integers(0, 1 << 64, dtype=np.uint64)) >> int(rng.integers(0, 64)) for _ in range(size)]
    wide = [-n if rng.random() < 0.3 else n for n in wide]
    picked = [a if rng.random() < 0.6 else b for a, b in zip(edge, wide, strict=True)]
    return whole(picked, element).reshape(shape)


def whole(numbers, element):
    """Python integers as those of a type."""
    width = int(element.lstrip("ui"))
    return np.array([int(n) % (1 << width) for n in numbers], f"uint{width}").view(dtype_of(element))


def tensor(shape, element):
    """A type as text."""
    return f"tensor<{''.join(f'{n}x' for n in shape)}{element}>"


def ints(numbers):
    """An array attribute."""
    return f"array<i64{': ' if len(numbers) else ''}{', '.join(map(str, numbers))}>"


def region(taken, *lines):
    """A region: its arguments, and ops of which the last one gives the result."""
    of = lines[-1].partition(" = ")[0], lines[-1].rpartition("-> " if "->" in lines[-1] else " : ")[2]
    return " ({\n  ^b(" + taken + "):\n    " + "\n    ".join(lines) + f"\n    stablehlo.return {of[0]} : {of[1]}\n  }})"


def folding(p, op, element):
    """A region of one op of both its arguments, in either order, or of the second argument alone."""
    t, (a, b) = tensor((), element), ("%x", "%y") if p.chance() else ("%y", "%x")
    if op:
        return region(f"%x: {t}, %y: {t}", f"%r = stablehlo.{op} {a}, {b} : {t}")
    return f" ({{\n  ^b(%x: {t}, %y: {t}):\n    stablehlo.return %y : {t}\n  }})"


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
    """Ops as text, and what they may take: values so far, arguments, those that are known to XLA."""

    rng: np.random.Generator
    element: str
    lines: list = field(default_factory=list)
    pool: list = field(default_factory=list)
    arguments: list = field(default_factory=list)
    names: list = field(default_factory=list)
    known: set = field(default_factory=set)

    def pick(self, many):
        """One of several."""
        return many[int(self.rng.integers(len(many)))]

    def chance(self, p=0.5):
        """Whether, by chance."""
        return self.rng.random() < p

    def numbers(self, low, high, like):
        """A number for each dim of a shape."""
        return [int(self.rng.integers(low, high)) for _ in like]

    def fresh(self):
        """A name."""
        return f"%v{len(self.lines)}"

    def some_shape(self, *, rank=0, empty=True):
        """A shape of so many dims or more."""
        return self.pick([s for s in SHAPES if len(s) >= rank and (empty or 0 not in s)])

    def argument(self, shape=None, element=None):
        """One more argument."""
        shape = self.some_shape() if shape is None else shape
        self.arguments.append(V(f"%a{len(self.arguments)}", tuple(shape), element or self.element))
        return self.arguments[-1]

    def constant(self, shape, values=None):
        """A constant, a splat or an array."""
        if values is None:
            is_splat = self.chance() or 0 in shape
            one = drawn(self.rng, () if is_splat else shape, self.element)
            values = np.broadcast_to(one, shape) if is_splat else one
        flat = np.asarray(values).reshape(-1)
        text = str(flat[0] if len({*flat.tolist()}) == 1 else np.reshape(values, shape).tolist() if flat.size else "")
        value = V(self.fresh(), tuple(shape), self.element)
        self.lines.append(f"  {value.name} = stablehlo.constant dense<{text}> : {value.type}")
        self.known.add(value.name)
        return value

    def number(self, value):
        """A constant scalar."""
        return self.constant((), whole([value], self.element))

    def value(self, shape=None, element=None):
        """A value of a shape and a type: one that is there, an argument, or a constant."""
        element = element or self.element
        found = [v for v in self.pool if v.element == element and (shape is None or v.shape == tuple(shape))]
        if found and self.chance(0.65):
            return self.pick(found)
        shape = self.some_shape() if shape is None else shape
        if element == self.element and self.chance(0.2):
            return self.constant(shape)
        return self.argument(shape, element)

    def put(self, op, operands, shape, element=None, attributes="", body=""):
        """An op in generic form, of one result."""
        return self.several(op, operands, [(shape, element or self.element)], attributes, body)[0]

    def several(self, op, operands, results, attributes="", body=""):
        """An op of several results: (shape, element) of each."""
        name, count = self.fresh(), len(results)
        told, types = ", ".join(v.name for v in operands), ", ".join(v.type for v in operands)
        of = ", ".join(tensor(*r) for r in results)
        head = f"{name}:{count}" if count > 1 else name
        self.lines.append(f'  {head} = "stablehlo.{op}"({told}){body} {{{attributes}}} : ({types}) -> ({of})')
        return self.made(op, [name] if count == 1 else [f"{name}#{k}" for k in range(count)], operands, results)

    def made(self, op, names, operands, results):
        """Note what an op gives."""
        found = [V(name, tuple(shape), element) for name, (shape, element) in zip(names, results, strict=True)]
        self.names.append(op)
        self.pool += found
        self.known |= {v.name for v in found} if all(v.name in self.known for v in operands) else set()
        return found

    def text(self):
        """The module; every value is a result."""
        taken = ", ".join(f"{v.name}: {v.type}" for v in self.arguments)
        told, types = ", ".join(v.name for v in self.pool), ", ".join(v.type for v in self.pool)
        body = "\n".join(self.lines)
        return f"func.func public @main({taken}) -> ({types}) {{\n{body}\n  return {told} : {types}\n}}\n"


OPS = {}
"""By name a function that adds to a program, and how often it is drawn."""


def op(weight):
    """Note one of `OPS`."""

    def noted(function):
        OPS[function.__name__] = function, weight
        return function

    return noted


# --- elementwise ops and conversions ---


@op(15)
def elementwise(p):
    """An op of one, of two, or of one twice; an order, a choice, or bounds that may be the wrong way round."""
    signed = ("abs", "sign") if p.element == "i64" else ()
    name = p.pick((*BINARY, *UNARY, *signed, *("compare", "select", "clamp") * 2))
    x = p.value()
    if name in ("divide", "remainder", "count_leading_zeros"):  # of constants XLA folds these wrongly, or dies
        x = p.argument(x.shape)
    y, told = p.value(x.shape), f"comparison_direction = #stablehlo<comparison_direction {p.pick(DIRECTIONS)}>"
    operands = [x, p.pick((x, y, y))] if name in (*BINARY, "compare") else [x]
    if name == "select":
        q = p.value(x.shape if p.chance(0.7) else ())
        operands = [p.put("compare", [q, p.value(q.shape)], q.shape, "i1", told), x, y]
    if name == "clamp":
        low, high = (p.value(x.shape if p.chance() else ()) for _ in range(2))
        operands = [low, x, high]
    p.put(name, operands, x.shape, *(("i1", told) if name == "compare" else ()))


@op(2)
def quotient_by_known(p):
    """A quotient or remainder by constants: one number or many, broadcast or whole."""
    x = p.argument()
    shape = () if p.chance(0.3) else x.shape
    d = p.constant(shape, many_or_one(p, DIVISORS, shape, is_one=p.chance()))
    if shape != x.shape:
        d = p.put("broadcast_in_dim", [d], x.shape, None, f"broadcast_dimensions = {ints([])}")
    p.put(p.pick(("divide", "remainder")), [x, d], x.shape)


def many_or_one(p, numbers, shape, *, is_one):
    """Some of several numbers in a shape, all different or all the same."""
    size = int(np.prod(shape))
    return whole([p.pick(numbers)] * size if is_one else [p.pick(numbers) for _ in range(size)], p.element)


@op(3)
def shift(p):
    """A shift by what is known or not, 64 and more among it."""
    x, way = p.value(), p.rng.random()
    by = p.value(x.shape) if way < 0.35 else p.constant(x.shape, many_or_one(p, SHIFTED_BY, x.shape, is_one=way < 0.8))
    p.put(p.pick(SHIFTS), [x, by], x.shape)


@op(3)
def convert(p):
    """From 64 bits and back, through any type."""
    x = p.value()
    made = p.put("convert", [x], x.shape, p.pick((*CONVERTED, "i64", "ui64")))
    if p.chance():
        p.put("convert", [made], x.shape, p.pick((p.element, "i64", "ui64")))


@op(2)
def convert_to(p):
    """From another type."""
    x = p.argument(None, p.pick((*OTHERS, "f32", "f64", "i64", "ui64")))
    if x.element == "f32" and p.chance(0.4):
        x = p.put("convert", [x], x.shape, p.pick(("bf16", "f16")))
    p.put("convert", [x], x.shape)


@op(2)
def bitcast(p):
    """The same bits in other types; narrower ones than halves XLA folds wrongly into those of halves."""
    x = p.value()
    other, more = p.pick([("i64", ()), ("ui64", ()), ("f64", ()), ("i32", (2,)), ("ui32", (2,))])
    made = p.put("bitcast_convert", [x], (*x.shape, *more), other)
    if p.chance():
        p.put("bitcast_convert", [made], x.shape)


# --- moves, and moves by indices ---


@op(8)
def moved(p):
    """Dims in another order, from the end, or others; every second element, or fewer; several along a dim; edges."""
    x = p.value()
    n, rank, strides = int(np.prod(x.shape)), len(x.shape), p.numbers(1, 4, x.shape)
    order, shapes = p.rng.permutation(rank).tolist(), [s for s in (*SHAPES, (1, n), (n, 1)) if int(np.prod(s)) == n]
    starts = [int(p.rng.integers(k + 1)) for k in x.shape]
    limits = [int(p.rng.integers(s, k + 1)) for s, k in zip(starts, x.shape, strict=True)]
    sliced = [-(-(e - s) // k) for s, e, k in zip(starts, limits, strides, strict=True)]
    bounds = f"start_indices = {ints(starts)}, limit_indices = {ints(limits)}, strides = {ints(strides)}"
    low, high, inner = (p.numbers(*of, x.shape) for of in ((-1, 3), (1, 3), (0, 2)))
    padded = [k + a + b + max(k - 1, 0) * i for k, a, b, i in zip(x.shape, low, high, inner, strict=True)]
    edges = f"edge_padding_low = {ints(low)}, edge_padding_high = {ints(high)}, interior_padding = {ints(inner)}"
    many, at, spread = (
        [x, p.value(x.shape), x],
        p.pick(range(rank + 1)),
        [p.pick((2, 3)) if k == 1 else k for k in x.shape],
    )
    joined = [k * len(many) if d == at else k for d, k in enumerate(x.shape)]
    dims = [d + (d >= at) for d in range(rank)]
    forms = [
        ("reshape", [x], p.pick(shapes), ""),
        ("transpose", [x], [x.shape[k] for k in order], f"permutation = {ints(order)}"),
        ("reverse", [x], x.shape, f"dimensions = {ints(order[: p.pick(range(rank + 1))])}"),
        ("slice", [x], sliced, bounds),
        ("pad", [x, p.value(())], padded, edges),
        ("broadcast_in_dim", [x], [*spread[:at], p.pick((1, 2)), *spread[at:]], f"broadcast_dimensions = {ints(dims)}"),
    ]
    if at < rank:
        forms.append(("concatenate", many, joined, f"dimension = {at} : i64"))
        forms.append(("iota", [], x.shape, f"iota_dimension = {at} : i64"))
    name, operands, shape, told = p.pick(forms)
    p.put(name, operands, shape, None, told)


def indices(p, shapes, moved):
    """Indices, of 64 bits where what is moved is not; constants of ui64 XLA folds as signed ones."""
    kind = p.element if moved not in ("i64", "ui64") else p.pick(("i64", "ui64", "i32", "ui32"))
    found = [p.value(shape, kind) for shape in shapes]
    return [p.argument(i.shape, kind) if kind == "ui64" and i.name in p.known else i for i in found]


@op(2)
def dynamic_slice(p):
    """A window at indices of any integer type, of elements of any type."""
    shape = p.some_shape(rank=1, empty=False)
    x = p.argument(shape, p.pick(("f32", "i32", "i8"))) if p.chance(0.3) else p.value(shape)
    at = indices(p, [()] * len(shape), x.element)
    sizes = [int(p.rng.integers(1, n + 1)) for n in shape]
    if p.chance():
        p.put("dynamic_slice", [x, *at], sizes, x.element, f"slice_sizes = {ints(sizes)}")
    else:
        p.put("dynamic_update_slice", [x, p.value(sizes, x.element), *at], shape, x.element)


@op(2)
def gather(p):
    """Rows by indices."""
    rows, n = p.pick((*ROWS, (2, 3))), int(p.rng.integers(0, 4))
    x = p.value(rows) if p.chance(0.7) else p.argument(rows, p.pick(("f32", "i32")))
    told = f"offset_dims = {list(range(1, len(rows)))}, collapsed_slice_dims = [0], start_index_map = [0]"
    told = f"dimension_numbers = #stablehlo.gather<{told}, index_vector_dim = 1>, slice_sizes = {ints([1, *rows[1:]])}"
    p.put("gather", [x, *indices(p, [(n, 1)], x.element)], (n, *rows[1:]), x.element, told)


@op(2)
def scatter(p):
    """Rows by indices, set or combined."""
    rows, n = p.pick((*ROWS, (2, 3))), int(p.rng.integers(1, 4))
    x = p.value(rows) if p.chance(0.7) else p.argument(rows, p.pick(("i32", "i8")))
    operands = [x, *indices(p, [(n, 1)], x.element), p.value((n, *rows[1:]), x.element)]
    told = f"update_window_dims = {list(range(1, len(rows)))}, inserted_window_dims = [0]"
    told = f"#stablehlo.scatter<{told}, scatter_dims_to_operand_dims = [0], index_vector_dim = 1>"
    body = folding(p, p.pick((*FOLDS, "")), x.element)
    p.put("scatter", operands, rows, x.element, f"scatter_dimension_numbers = {told}", body)


# --- folds, sorts, products, loops and branches ---


@op(3)
def reduce(p):
    """A fold along dims, from any start; of one element XLA ignores the start."""
    x = p.value(p.some_shape(rank=1))
    dims = [d for d in range(len(x.shape)) if p.chance(0.7)]
    if int(np.prod([x.shape[d] for d in dims])) == 1:
        return
    shape = [n for d, n in enumerate(x.shape) if d not in dims]
    p.put("reduce", [x, p.value(())], shape, None, f"dimensions = {ints(dims)}", folding(p, p.pick(FOLDS), p.element))


def identity(p, name):
    """The number that changes nothing; from another one XLA does not pad."""
    least, most = (0, -1) if p.element == "ui64" else (1 << 63, (1 << 63) - 1)
    return p.number({"and": -1, "multiply": 1, "minimum": most, "maximum": least}.get(name, 0))


def padding(pairs):
    """An attribute of what stands before and behind each dim."""
    return f"padding = dense<{[[*pair] for pair in pairs]}> : tensor<{len(pairs)}x2xi64>"


@op(3)
def windows(p):
    """A fold over windows: strides, dilations and padding, or running: a window as long as the axis."""
    x, name = p.value(p.some_shape(rank=1, empty=False)), p.pick(FOLDS)
    size, step, low, high = (p.numbers(*of, x.shape) for of in ((1, 4), (1, 3), (0, 3), (0, 3)))
    base, inner = ([2 if p.chance(0.2) else 1 for _ in x.shape] for _ in range(2))
    if len(x.shape) == 1 and p.chance():
        size, step, (low, high) = x.shape, [1], p.pick([([x.shape[0] - 1], [0]), ([0], [x.shape[0] - 1])])
    lengths = [(n - 1) * b + 1 + a + e for n, b, a, e in zip(x.shape, base, low, high, strict=True)]
    rest = [n - (k - 1) * d - 1 for n, k, d in zip(lengths, size, inner, strict=True)]
    told = f"window_dimensions = {ints(size)}, window_strides = {ints(step)}, base_dilations = {ints(base)}"
    told = f"{told}, window_dilations = {ints(inner)}, {padding([*zip(low, high, strict=True)])}"
    if min(rest) >= 0:
        shape = [n // s + 1 for n, s in zip(rest, step, strict=True)]
        p.put("reduce_window", [x, identity(p, name)], shape, None, told, folding(p, name, p.element))


def key(p, shape, element):
    """An argument to be ordered by; of f32 a whole number, as NaN and the zeros have no place of their own."""
    if element != "f32":
        return p.argument(shape, element)
    return p.put("convert", [p.argument(shape, "i32")], shape, "f32")


@op(1)
def extreme(p):
    """Where the greatest number is: a fold of two results, the values of 64 bits, the places, or both."""
    rows, first = p.pick(ROWS), p.pick((p.element, "f32", "i32"))
    operands = [key(p, rows, first), p.put("iota", [], rows, None, "iota_dimension = 0 : i64")]
    operands += [key(p, (), first), p.number(0)]
    a, b = tensor((), first), tensor((), p.element)
    body = f""" ({{
  ^b(%x: {a}, %i: {b}, %y: {a}, %j: {b}):
    %f = stablehlo.compare {p.pick(("GT", "GE", "LT", "LE"))}, %x, %y : ({a}, {a}) -> tensor<i1>
    %e = stablehlo.compare EQ, %x, %y : ({a}, {a}) -> tensor<i1>
    %t = stablehlo.compare {p.pick(("LT", "GT"))}, %i, %j : ({b}, {b}) -> tensor<i1>
    %g = stablehlo.select %e, %t, %f : tensor<i1>, tensor<i1>
    %p = stablehlo.select %g, %x, %y : tensor<i1>, {a}
    %q = stablehlo.select %g, %i, %j : tensor<i1>, {b}
    stablehlo.return %p, %q : {a}, {b}
  }})"""
    p.several("reduce", operands, [(rows[1:], first), (rows[1:], p.element)], f"dimensions = {ints([0])}", body)


@op(1)
def own_body(p):
    """A fold whose body is several ops, and in any order the same: (x + 1) (y + 1) - 1."""
    x, t = p.value(p.pick(ROWS)), tensor((), p.element)
    steps = [f"%r = stablehlo.multiply %x, %y : {t}", f"%s = stablehlo.add %x, %y : {t}"]
    body = region(f"%x: {t}, %y: {t}", *steps, f"%u = stablehlo.add %r, %s : {t}")
    p.put("reduce", [x, p.value(())], x.shape[1:], None, f"dimensions = {ints([0])}", body)


STABLE = "dimension = 0 : i64, is_stable = true"


@op(1)
def sort(p):
    """Rows in the order of a key of 64 bits, or of an f32 that 64 bits go along with."""
    rows, first = p.pick([(5,), (12,), (3, 2), (0, 3)]), p.pick((p.element, p.element, "f32", "i32"))
    x = p.value(rows) if first == p.element else key(p, rows, first)
    a, b = tensor((), first), tensor((), p.element)
    kind, tie = ({"f": "FLOAT", "u": "UNSIGNED"}.get(of[0], "SIGNED") for of in (first, p.element))
    body = region(
        f"%x: {a}, %y: {a}, %i: {b}, %j: {b}",
        f"%f = stablehlo.compare {p.pick(('LT', 'GT'))}, %x, %y, {kind} : ({a}, {a}) -> tensor<i1>",
        f"%e = stablehlo.compare EQ, %x, %y, {kind} : ({a}, {a}) -> tensor<i1>",
        f"%t = stablehlo.compare LT, %i, %j, {tie} : ({b}, {b}) -> tensor<i1>",
        "%g = stablehlo.and %e, %t : tensor<i1>",
        "%o = stablehlo.or %f, %g : tensor<i1>",
    )
    p.several("sort", [x, p.value(rows)], [(rows, first), (rows, p.element)], STABLE, body)


@op(1)
def own_order(p):
    """Rows in the order of a key of 64 bits, told by the lesser of two, of which no columns are read."""
    rows = p.pick([(5,), (12,), (3, 2)])
    x, y, t = p.argument(rows), p.argument(rows, p.pick(("f32", p.element))), tensor((), p.element)
    body = region(
        f"%x: {t}, %y: {t}, %i: {tensor((), y.element)}, %j: {tensor((), y.element)}",
        f"%a = stablehlo.minimum %x, %y : {t}",
        f"%b = stablehlo.compare EQ, %a, %x : ({t}, {t}) -> tensor<i1>",
        f"%c = stablehlo.compare NE, %x, %y : ({t}, {t}) -> tensor<i1>",
        "%o = stablehlo.and %b, %c : tensor<i1>",
    )
    p.several("sort", [x, y], [(rows, p.element), (rows, y.element)], STABLE, body)


@op(1)
def matrices(p):
    """A product of matrices, in batches or not."""
    b, n, k, m = p.numbers(1, 4, range(4))
    batch = [b] if p.chance(0.3) else []
    at, dims = len(batch), [*range(len(batch))]
    told = f"lhs_batching_dimensions = {dims}, rhs_batching_dimensions = {dims}, "
    told += f"lhs_contracting_dimensions = [{at + 1}], rhs_contracting_dimensions = [{at}]"
    operands = [p.value((*batch, n, k)), p.value((*batch, k, m))]
    p.put("dot_general", operands, (*batch, n, m), None, f"dot_dimension_numbers = #stablehlo.dot<{told}>")


@op(1)
def convolution(p):
    """A convolution of one dim, padded, strided, dilated, in groups or not."""
    groups, ch, w, stride, low = (p.pick(of) for of in ((1, 1, 2), (1, 2), (1, 2, 3), (1, 2), (0, 1)))
    base, inner = (p.pick((1, 1, 2)) for _ in range(2))
    x, k = p.argument((2, ch * groups, 6)), p.value((2 * groups, ch, w))
    length = (5 * base + low - (w - 1) * inner) // stride + 1
    told = (
        f"dimension_numbers = #stablehlo.conv<[b, f, 0]x[o, i, 0]->[b, f, 0]>, {padding([(low, 0)])}, "
        f"window_strides = {ints([stride])}, lhs_dilation = {ints([base])}, rhs_dilation = {ints([inner])}, "
        f"feature_group_count = {groups} : i64, batch_group_count = 1 : i64"
    )
    p.put("convolution", [x, k], (2, 2 * groups, length), None, told)


@op(1)
def while_loop(p):
    """A counter and a value of 64 bits, carried; how often is known or not."""
    x = p.value()
    t, s, other = x.type, tensor((), p.element), p.value(x.shape)
    limit, zero, one = (p.number(k) for k in (int(p.rng.integers(0, 4)), 0, 1))
    name = p.fresh()
    p.lines.append(f"""  {name}:2 = stablehlo.while(%i = {zero.name}, %c = {x.name}) : {s}, {t} cond {{
    %q = stablehlo.compare LT, %i, {limit.name} : ({s}, {s}) -> tensor<i1>
    stablehlo.return %q : tensor<i1>
  }} do {{
    %n = stablehlo.add %i, {one.name} : {s}
    %d = stablehlo.{p.pick(("add", "subtract", "multiply", "xor", "minimum"))} %c, {other.name} : {t}
    stablehlo.return %n, %d : {s}, {t}
  }}""")
    p.made("while", [f"{name}#0", f"{name}#1"], [x, other], [((), p.element), (x.shape, p.element)])


@op(1)
def case(p):
    """Branches that give values of 64 bits."""
    y, i = p.value(), p.argument((), "i32")
    x, name = p.argument(y.shape), p.fresh()
    ops = [p.pick(("add", "multiply", "maximum", "xor", "divide")) for _ in range(2)]
    of = [f"%r = stablehlo.{one} {x.name}, {y.name} : {x.type}\n    stablehlo.return %r : {x.type}" for one in ops]
    branches = ", ".join(f"{{\n    {body}\n  }}" for body in of)
    p.lines.append(f'  {name} = "stablehlo.case"({i.name}) ({branches}) : (tensor<i32>) -> {x.type}')
    p.made("case", [name], [x], [(x.shape, p.element)])


# --- programs, targets, and what differs ---


def program(seed, names=(), steps=8):
    """A random program."""
    rng = np.random.default_rng(seed)
    p, names = Program(rng, str(rng.choice(["i64", "ui64"]))), names or tuple(OPS)
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
        rng = np.random.default_rng((seed, 1))
        given = [drawn(rng, v.shape, v.element) for v in p.arguments]
        results = zip(p.pool, native.run(given), ours.run(given), strict=True)
        found |= {v for v, one, other in results if not same_bits(np.asarray(one), np.asarray(other)).all()}
    return found, {one.op for one in lowered.refused}


TAKEN = ("i1", "i8", "ui8", "i16", "ui16", "i32", "ui32", "bf16", "f16", "f32", "f64")
WITHOUT = {
    "all": (),
    "no_loops": ("while",),
    "no_shifts": SHIFTS,
    "few_types": (),
    "no_bits": ("shift_left", "shift_right_logical", "popcnt", "count_leading_zeros"),
}
ON_64_BITS = ("add", "multiply", "compare", "iota", "select", "broadcast_in_dim", "slice", "concatenate", "reduce")
"""Ops that a consumer may take on signed integers of 64 bits, where it knows no others of that width."""


def no_unsigned_64_bits():
    """A target without room for unsigned integers of 64 bits, without shifts, that takes signed ones on a few ops."""
    also = {name: [*TAKEN, "i64"] for name in ("convert", "bitcast_convert", *ON_64_BITS)}
    return target_taking(*TAKEN, without=SHIFTS, also=also, refused_dtypes={"ui64": "none"})


def no_64_bits(without="all"):
    """A target that computes on no integers of 64 bits, and has room for them."""
    types = ("i1", "i32", "f32") if without == "few_types" else TAKEN
    also = {name: ["i1"] for name in ("and", "or", "xor", "not") if without == "no_bits"}
    return target_taking(*types, without=WITHOUT[without], also={"convert": [*types], **also})
