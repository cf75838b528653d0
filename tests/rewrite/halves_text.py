"""Random programs of 64-bit integers as text: numbers, values, and what ops are written with."""

from dataclasses import dataclass, field

import numpy as np

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


def folding(p, op, element, name="b"):
    """A body of one op of both its arguments, or of what is not one."""
    t = tensor((), element)
    a, b = ("%x", "%y") if p.chance() else ("%y", "%x")
    if not op:
        return f" ({{\n  ^{name}(%x: {t}, %y: {t}):\n    stablehlo.return %y : {t}\n  }})"
    line = f'%r = "stablehlo.{op}"({a}, {b}) : ({t}, {t}) -> {t}'
    return f" ({{\n  ^{name}(%x: {t}, %y: {t}):\n    {line}\n    stablehlo.return %r : {t}\n  }})"
