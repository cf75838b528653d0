"""Terms of a prover as numbers: what its laws say of an element, computed by definitions of its own."""

from itertools import product

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


def number_of(numeral, dtype):
    """The NumPy number that the bits of a numeral are."""
    return np.frombuffer(numeral.as_long().to_bytes(dtype.itemsize, "little"), dtype)[0]


class NotEvaluatedError(Exception):
    """What a symbol computes is not defined here."""


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
        self.dims = {
            f"size {k}.{d}": z3.BitVecVal(n, 32)
            for k, array in enumerate(arguments)
            for d, n in enumerate(np.shape(array))
        }
        self.known = {}

    def __call__(self, term, env):
        """A numeral or truth of z3; `env` holds numerals of constants by name."""
        known, stack = {}, [term]
        while stack:
            t = stack[-1]
            missing = [c for c in t.children() if c.get_id() not in known]
            if t.get_id() not in known and missing:
                stack += missing
                continue
            stack.pop()
            if t.get_id() not in known:
                known[t.get_id()] = t, self.applied(t, [known[c.get_id()][1] for c in t.children()], env)
        return known[term.get_id()][1]

    def applied(self, t, args, env):
        """A term whose operands are evaluated."""
        if t.decl().kind() != z3.Z3_OP_UNINTERPRETED:
            return z3.simplify(t.decl()(*args)) if args else t
        name = t.decl().name().split(":")[0]
        if name in env:
            return env[name]
        if name in self.dims:
            return self.dims[name]
        if name.startswith("argument "):
            array, at = self.arguments[int(name.split()[1])], tuple(a.as_long() for a in args)
            is_inside = all(k < n for k, n in zip(at, array.shape, strict=True))  # else it is not chosen
            value = array[at] if is_inside else array.dtype.type(0)
            return z3.BoolVal(bool(value)) if array.dtype == bool else z3.BitVecVal(bits_of(value, t.size()), t.size())
        if name in self.occurrences:  # a function of its arguments
            key = (name, *(str(arg) for arg in args))
            if key not in self.known:
                self.known[key] = self.folded(self.occurrences[name], t, args, {})
            return self.known[key]
        return self.function(name, t, args)

    def function(self, name, t, args):
        """A float op by NumPy."""
        assert not name.startswith("at "), f"{name} is a variable in whose place nothing was written"
        op, *types = name.split()
        if op == "widen":
            value = np.uint16(args[0].as_long()).view(np.float16).astype(np.float32)
            return z3.BitVecVal(bits_of(value, 32), 32)
        if op == "integer":
            value = np.asarray(args[0].as_signed_long(), object).astype(element_type(types[-1]).dtype)
            return z3.BitVecVal(bits_of(value, t.size()), t.size())
        source = element_type({"narrow": "f32"}.get(op, types[0]))
        if source.bits < 8 or op not in {*FUNCTIONS, "narrow", "convert"}:
            raise NotEvaluatedError(name)
        values = [number_of(arg, source.dtype) for arg in args]
        with np.errstate(all="ignore"):
            if op in ("narrow", "convert"):
                value = np.asarray(values[0]).astype(element_type(types[-1]).dtype)
            else:
                value = FUNCTIONS[op](*values).astype(source.dtype)
        return z3.BitVecVal(bits_of(value, t.size()), t.size())

    def size(self, size):
        """What a size is, for these arguments."""
        return self(extent(size), {}).as_long()

    def folded(self, one, t, args, env):
        """A fold, step by step in row-major order."""
        env = {**env, **{c.decl().name(): a for c, a in zip(one.parameters, args, strict=True)}}
        kind = one.kind
        if kind[0] in ("sign of a zero", "positive sum"):  # any will do
            return z3.BoolVal(False) if kind[0] == "sign of a zero" else z3.BitVecVal(bits_of(np.float32(2), 32), 32)
        places = [b.decl().name() for b in one.bound if b.decl().name() in self.sizes]
        rows = [
            {**env, **dict(zip(places, (z3.BitVecVal(n, 32) for n in row), strict=True))}
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
            return z3.BitVecVal(max([self(one.terms[0], here).as_signed_long() for here in rows], default=-1), 32)
        if kind[0] in ("reduce", "combined"):
            single = kind[1]
            so_far = self(one.terms[1], env) if kind[0] == "reduce" else folding.neutral(single, element_type(kind[2]))
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
            return z3.BitVecVal(bits_of(total, t.size()), t.size())
        raise AssertionError(f"no evaluation of {kind}")

    @staticmethod
    def combined(op, element, a, b):
        """Two elements, combined by an op."""
        declared = element_type(element)
        if declared.bits == 1:
            return z3.simplify(
                {"and": z3.And, "or": z3.Or, "maximum": z3.Or, "minimum": z3.And, "xor": z3.Xor}[op](a, b)
            )
        if declared.is_integer:
            x, y = (declared.wrapped(v.as_long()) for v in (a, b))
            found = {"add": x + y, "multiply": x * y, "maximum": max(x, y), "minimum": min(x, y), "and": x & y,
                     "or": x | y, "xor": x ^ y}[op]  # fmt: skip
            return z3.BitVecVal(found, declared.bits)
        dtype = np.dtype(np.float32 if declared.bits <= 32 else np.float64)
        return z3.BitVecVal(bits_of(FUNCTIONS[op](number_of(a, dtype), number_of(b, dtype)), a.size()), a.size())
