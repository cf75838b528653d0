"""Terms of a prover as numbers: what its laws say of an element, computed by definitions of its own."""

from itertools import product
from math import prod

import numpy as np

from hlo_lower.base.element_types import element_type
from hlo_lower.verify.pull import folding
from hlo_lower.verify.pull.sizes import extent

z3 = __import__("z3")

FUNCTIONS = {"exponential": np.exp, "sine": np.sin, "cosine": np.cos} | {
    name: getattr(np, name)
    for name in ("add", "multiply", "divide", "maximum", "minimum", "tanh", "sqrt", "power", "floor")
}


def bits_of(value, bits):
    """A NumPy number as its bits."""
    return int.from_bytes(np.asarray(value).tobytes(), "little") & ((1 << bits) - 1)


def number_of(bits, dtype):
    """The NumPy number that bits are."""
    return np.frombuffer(int(bits).to_bytes(dtype.itemsize, "little"), dtype)[0]


class NotEvaluatedError(Exception):
    """What a symbol computes is not defined here."""


def signed(number, bits):
    """An unsigned number of so many bits as a signed one."""
    return number - (number >> (bits - 1) << bits)


def extracted(t):
    """Some bits of a number."""
    high, low = t.params()
    mask = (1 << high - low + 1) - 1
    return lambda a: a >> low & mask


def joined(t):
    """Numbers side by side, the first one on top."""
    shifts = [sum(c.size() for c in t.children()[k + 1 :]) for k in range(t.num_args())]
    return lambda *those: sum(a << shift for a, shift in zip(those, shifts, strict=True))


def below(t):
    """Whether a signed number is at most another one."""
    bits = t.arg(0).size()
    return lambda a, b: signed(a, bits) <= signed(b, bits)


def within(combine):
    """An op whose result is cut off to the width of the term."""

    def made(t):
        mask = (1 << t.size()) - 1
        return lambda *those: combine(those) & mask

    return made


ON_NUMBERS = {
    z3.Z3_OP_NOT: lambda _: lambda a: not a,
    z3.Z3_OP_AND: lambda _: lambda *those: all(those),
    z3.Z3_OP_OR: lambda _: lambda *those: any(those),
    z3.Z3_OP_ITE: lambda _: lambda test, a, b: a if test else b,
    z3.Z3_OP_EQ: lambda _: lambda a, b: a == b,
    z3.Z3_OP_ULEQ: lambda _: lambda a, b: a <= b,
    z3.Z3_OP_SLEQ: below,
    z3.Z3_OP_BADD: within(sum),
    z3.Z3_OP_BMUL: within(prod),
    z3.Z3_OP_BNOT: within(lambda those: ~those[0]),
    z3.Z3_OP_EXTRACT: extracted,
    z3.Z3_OP_CONCAT: joined,
}
"""The ops that are most frequent: of a term, what it computes of unsigned numbers and truths."""


def width(t):
    """The bits of a number; None of a truth."""
    return None if z3.is_bool(t) else t.size()


STEPS = {}
"""What `steps_of` found of terms, and these, which are held: terms of two contexts may have one number."""


def steps_of(term):
    """The parts of a term, operands first: each with a function that computes it and where its operands stand."""
    key = id(term.ctx), term.get_id()
    if key not in STEPS:
        if len(STEPS) > 512:
            STEPS.clear()
        STEPS[key] = term, made_steps(term)
    return STEPS[key][1]


def made_steps(term):
    """The same, made."""
    places, steps, stack = {}, [], [(term, term.children())]
    while stack:
        t, operands = stack[-1]
        missing = [c for c in operands if c.get_id() not in places]
        if t.get_id() not in places and missing:
            stack += [(c, c.children()) for c in missing]
            continue
        stack.pop()
        if t.get_id() not in places:
            places[t.get_id()] = len(steps)
            steps.append((way_of(t), [places[c.get_id()] for c in operands]))
    return steps


def way_of(t):
    """The function that computes a part of a term of its operands."""
    kind = t.decl().kind()
    if kind == z3.Z3_OP_UNINTERPRETED:
        name, widths = t.decl().name().split(":")[0], [width(t), *map(width, t.children())]
        return lambda evaluated, args, env: evaluated.symbol(name, widths, args, env)
    if not t.children():
        value = plain(t)
        return lambda *_: value
    on_numbers = ON_NUMBERS.get(kind)
    if on_numbers is not None:
        apply = on_numbers(t)
        return lambda _, args, env: apply(*args)
    return lambda _, args, env: plain(z3.simplify(t.decl()(*map(numeral, t.children(), args))))


def numeral(t, value):
    """A number or truth as a term of the sort of another one."""
    return z3.BoolVal(value) if isinstance(value, bool) else z3.BitVecVal(value, t.sort())


def plain(t):
    """A numeral or truth of z3 as Python's."""
    return z3.is_true(t) if z3.is_bool(t) else t.as_long()


class Evaluated:
    """Evaluates terms of a prover.

    Args:
      prover: whose occurrences are looked up.
      arguments: the arrays that the module is given.
    """

    def __init__(self, prover, arguments):
        self.arguments = arguments
        self.occurrences = prover.made
        self.sizes = prover.positions.sizes
        self.dims = {f"size {k}.{d}": n for k, array in enumerate(arguments) for d, n in enumerate(np.shape(array))}
        self.known = {}

    def __call__(self, term, env):
        """An unsigned number or a truth; `env` holds those of constants by name."""
        found = []
        for apply, places in steps_of(term):
            found.append(apply(self, [found[k] for k in places], env))
        return found[-1]

    def symbol(self, name, widths, args, env):
        """A symbol that is not one of z3's, of operands that are evaluated; its bits, and those of each operand."""
        if name in env:
            return env[name]
        if name in self.dims:
            return self.dims[name]
        if name.startswith("argument "):
            array, at = self.arguments[int(name.split()[1])], tuple(args)
            is_inside = all(k < n for k, n in zip(at, array.shape, strict=True))  # else it is not chosen
            value = array[at] if is_inside else array.dtype.type(0)
            return bool(value) if array.dtype == bool else bits_of(value, widths[0])
        if name in self.occurrences:  # a function of its arguments
            key = (name, *args)
            if key not in self.known:
                self.known[key] = self.folded(self.occurrences[name], widths[0], args, {})
            return self.known[key]
        return self.function(name, widths, args)

    def function(self, name, widths, args):
        """A float op by NumPy."""
        assert not name.startswith("at "), f"{name} is a variable in whose place nothing was written"
        op, *types = name.split()
        if op == "widen":
            return bits_of(np.uint16(args[0]).view(np.float16).astype(np.float32), 32)
        if op == "integer":
            value = np.asarray(signed(args[0], widths[1]), object).astype(element_type(types[-1]).dtype)
            return bits_of(value, widths[0])
        source = element_type({"narrow": "f32"}.get(op, types[0]))
        if source.bits < 8 or op not in {*FUNCTIONS, "narrow", "convert"}:
            raise NotEvaluatedError(name)
        values = [number_of(arg, source.dtype) for arg in args]
        with np.errstate(all="ignore"):
            if op in ("narrow", "convert"):
                value = np.asarray(values[0]).astype(element_type(types[-1]).dtype)
            else:
                value = FUNCTIONS[op](*values).astype(source.dtype)
        return bits_of(value, widths[0])

    def size(self, size):
        """What a size is, for these arguments."""
        return self(extent(size), {})

    def folded(self, one, bits, args, env):
        """A fold, step by step in row-major order."""
        env = {**env, **{c.decl().name(): a for c, a in zip(one.parameters, args, strict=True)}}
        kind = one.kind
        if kind[0] in ("sign of a zero", "positive sum"):  # any will do
            return False if kind[0] == "sign of a zero" else bits_of(np.float32(2), 32)
        places = [b.decl().name() for b in one.bound if b.decl().name() in self.sizes]
        rows = [
            {**env, **dict(zip(places, row, strict=True))}
            for row in product(*(range(self.size(self.sizes[place])) for place in places))
        ]
        if kind[0] == "fold":
            assert len(one.terms) == 2, "one accumulator"
            [carried] = [b.decl().name() for b in one.bound if b.decl().name() not in self.sizes]
            so_far = self(one.terms[0], env)
            for here in rows:
                so_far = self(one.terms[1], {**here, carried: so_far})
            return so_far
        if kind[0] == "greatest":
            found = (self(one.terms[0], here) for here in rows)
            return max((n - (n >> 31 << 32) for n in found), default=-1) % (1 << 32)
        if kind[0] in ("reduce", "combined"):
            single = kind[1]
            neutral = folding.neutral(single, element_type(kind[2]))
            so_far = self(one.terms[1], env) if kind[0] == "reduce" else plain(neutral)
            for here in rows:
                so_far = self.combined(single, kind[2], so_far, self(one.terms[0], here))
            return so_far
        if kind[0] == "dot_general":
            total, made = 0, element_type(kind[-1]).dtype
            types = [element_type(name).dtype for name in kind[1]]
            for here in rows:
                a, b = (number_of(self(x, here), its) for x, its in zip(one.terms, types, strict=True))
                with np.errstate(over="ignore"):
                    total = total + a.astype(made) * b.astype(made)
            return bits_of(total, bits)
        raise AssertionError(f"no evaluation of {kind}")

    @staticmethod
    def combined(op, element, a, b):
        """Two elements, combined by an op."""
        declared = element_type(element)
        if declared.bits == 1:
            return {"and": a and b, "or": a or b, "maximum": a or b, "minimum": a and b, "xor": a != b}[op]
        if declared.is_integer:
            x, y = (declared.wrap(v) for v in (a, b))
            found = {"add": x + y, "multiply": x * y, "maximum": max(x, y), "minimum": min(x, y), "and": x & y,
                     "or": x | y, "xor": x ^ y}[op]  # fmt: skip
            return found % (1 << declared.bits)
        bits = 32 if declared.bits <= 32 else 64
        dtype = np.dtype(f"f{bits // 8}")
        return bits_of(FUNCTIONS[op](number_of(a, dtype), number_of(b, dtype)), bits)
