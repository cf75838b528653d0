"""Arithmetic of elements: integers exactly, floats by one symbol an operation and the float laws.

`Arithmetic.compute` takes the terms of an op's operands at one position; `compare` and `convert` are ops with types of
their own. A float whose bits are IEEE 754's is compared, negated and made absolute exactly.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from hlo_lower.base.element_types import HALF_FLOATS, ElementType
from hlo_lower.ops.spec import OPS
from hlo_lower.verify.pull.parts import part_of
from hlo_lower.verify.pull.solver import z3
from hlo_lower.verify.pull.terms import (
    COMMUTING,
    IEEE,
    Term,
    apply_symbol,
    choose,
    element_of,
    is_truth,
    literal,
    number,
    resize,
    sort_of,
    value_of,
)

F32 = element_of("f32")

INTEGER = "integer of 65 bits"
"""The symbol that makes an integer a float, before the float's type."""

_FOLDED: dict[str, Callable[[Any, Any], Any]] = {
    "add": np.add,
    "subtract": np.subtract,
    "multiply": np.multiply,
    "divide": np.divide,
}
_NEUTRAL = {"add": -0.0, "multiply": 1.0, "divide": 1.0, "power": 1.0, "maximum": -np.inf, "minimum": np.inf}
_PARTWISE = frozenset({"add", "subtract", "negate"})
_MIRRORED = {"GT": "LT", "GE": "LE"}
_WIDENED = {"f32": ("widen f16:", "f16"), "f64": ("convert f32 f64:", "f32")}
"""The symbols that widen a number to a type, and from which."""


def is_nan(term: Term, element: ElementType) -> Term:
    """Whether a float of IEEE 754 is NaN."""
    exponent = z3.Extract(element.bits - 2, element.mantissa, term)
    return z3.And(exponent == number(-1, element.exponent), z3.Extract(element.mantissa - 1, 0, term) != 0)


def is_finite(term: Term, element: ElementType) -> Term:
    """Whether a float of IEEE 754 is neither NaN nor infinite."""
    return z3.Extract(element.bits - 2, element.mantissa, term) != number(-1, element.exponent)


def _widened(half: Term) -> Term:
    """f16 as f32."""
    return apply_symbol("widen f16", [half], sort_of(F32))


class Arithmetic:
    """Computes with terms.

    Args:
      use: told the name of each law that is used.
      know: told what holds of a symbol that is applied to variables, whatever these are.

    Attributes:
      adds_known: whether x + 0 is written as x, and as 0 where x is -0, and x + inf as inf, and as NaN where x is -inf
        or NaN; else they stay sums.
      reassociated: whether x + 0 is written as x, whatever the sign of a zero becomes.
    """

    def __init__(self, use: Callable[[str], None], know: Callable[[Term, Term], None]) -> None:
        self._use, self._know = use, know
        self._told: dict[tuple[str, str], None] = {}
        self._negated: dict[int, tuple[Term, Term]] = {}
        self._absolute: dict[int, tuple[Term, Term]] = {}
        self._inside: dict[tuple[str | int, ...], tuple[Term, list[Term]]] = {}
        self._among: dict[int, tuple[Term, bool]] = {}
        self._upper: dict[int, tuple[Term, Term | None]] = {}
        self._narrowed: dict[tuple[int, str], tuple[Term, Term]] = {}
        self._halves: set[tuple[str, str]] = set()
        self.adds_known = self.reassociated = False

    # --- any op on elements ---

    def compute(self, name: str, args: Sequence[Term], element: ElementType) -> Term:
        """An elementwise op whose operands and result are of one type; `name` may hold attributes behind a space."""
        if is_truth(element):
            found = _of_truths(name, args)
        elif element.is_integer:
            found = _of_integers(name, args, element)
        elif element.is_complex:
            found = self._of_complex(name, args, element)
        else:
            return self.float(name, args, element)
        return self.symbol(name, args, element) if found is None else found

    def symbol(self, name: str, args: Sequence[Term], element: ElementType) -> Term:
        """An op of which nothing is known but that it is a function."""
        return apply_symbol(f"{name} {element.name}", [z3.simplify(arg) for arg in args], sort_of(element))

    def clamp(self, low: Term, value: Term, high: Term, element: ElementType) -> Term:
        """min(max(value, low), high)."""
        return self.compute("minimum", [self.compute("maximum", [value, low], element), high], element)

    def _of_complex(self, name: str, args: Sequence[Term], element: ElementType) -> Term | None:
        if name not in _PARTWISE:
            return None
        self._use("complex parts")
        part = element_of(element.part)
        parts = [self.compute(name, [half(arg, k) for arg in args], part) for k in (0, 1)]
        return z3.Concat(parts[1], parts[0])

    # --- floats ---

    @staticmethod
    def one_nan(term: Term, element: ElementType) -> Term:
        """A float of IEEE 754 with one NaN for all of them."""
        quiet = ((1 << element.exponent + 1) - 1) << (element.mantissa - 1)
        return z3.If(is_nan(term, element), number(quiet, element.bits), term)

    def negate(self, term: Term, element: ElementType) -> Term:
        """-x, exactly; --x is x."""
        term = z3.simplify(term)
        bare = self._undo_negation(term)
        if not bare.eq(term):
            self._use("signs")
            return bare
        if z3.is_app_of(term, z3.Z3_OP_ITE) and any(z3.is_bv_value(term.arg(side)) for side in (1, 2)):
            return choose(term.arg(0), self.negate(term.arg(1), element), self.negate(term.arg(2), element))
        found = z3.simplify(term ^ number(1 << (element.bits - 1), element.bits))
        if not z3.is_bv_value(found):
            self._negated[found.get_id()] = found, term
        return found

    def absolute(self, term: Term, element: ElementType) -> Term:
        """|x|, exactly; of -x the same."""
        term = self._undo_negation(z3.simplify(term))
        if term.get_id() in self._absolute:
            return term
        found = z3.simplify(term & number((1 << (element.bits - 1)) - 1, element.bits))
        self._absolute[found.get_id()] = found, term
        return found

    def _undo_negation(self, term: Term) -> Term:
        """x of -x, also where a place was written into -x."""
        known = self._negated.get(term.get_id())
        if known is None and _is_negation(term):
            known = self._negated[term.get_id()] = term, term.arg(1).arg(0)
        return term if known is None else known[1]

    def float(self, name: str, args: Sequence[Term], element: ElementType) -> Term:
        """An op on floats of one type."""
        args = [z3.simplify(arg) for arg in args]
        if element.name in IEEE and name == "negate":
            return self.negate(args[0], element)
        if element.name in IEEE and name == "abs":
            return self.absolute(args[0], element)
        if element.name in HALF_FLOATS:
            self._use("half floats")
            return self.narrow(self.float(name, [self.widen(arg, element) for arg in args], F32), element)
        if element.name not in IEEE:
            return self.symbol(name, args, element)
        laws = (
            self._fold_constants,
            self._difference,
            self._logistic,
            self._parity,
            self._signs,
            self._neutral,
            self._power_of_two,
            self._root,
            self._choice,
            self._bits_of_sum,
        )
        for law in laws:
            found = law(name, args, element)
            if found is not None:
                return found
        if name in COMMUTING:
            args = sorted(args, key=lambda term: (z3.is_bv_value(term), term.decl().name(), part_of(term).look))
        if name == "add" and self.reassociated:
            self._know_sums(element)
        if name == "divide" and z3.is_bv_value(args[0]):
            self._know_quotients(element)
        if name in ("rsqrt", "log"):
            self._know_of_zeros(name, element)
        return self.symbol(name, args, element)

    def _know_of_zeros(self, name: str, element: ElementType) -> None:
        """Note that one divided by the root of a zero is an infinity of its sign, and its logarithm -inf."""
        if (name, element.name) not in self._told:
            self._told[name, element.name] = None
            self._use("root of zero" if name == "rsqrt" else "logarithm of zero")
            x = z3.Const(f"x of {element.name}", sort_of(element))
            found, sign = self.symbol(name, [x], element), number(1 << (element.bits - 1), element.bits)
            infinity = literal(np.inf, element) | (x & sign if name == "rsqrt" else sign)
            self._know(found, z3.Implies(x & ~sign == 0, found == infinity))

    def _know_quotients(self, element: ElementType) -> None:
        """Note that a number other than 0, divided by a zero, is an infinity, of the sign that both signs give."""
        if ("divide", element.name) not in self._told:
            self._told["divide", element.name] = None
            self._use("division by zero")
            x, y = (z3.Const(f"{name} of {element.name}", sort_of(element)) for name in "xy")
            found, magnitude = self.symbol("divide", [x, y], element), number(~(1 << (element.bits - 1)), element.bits)
            is_number = z3.And(z3.Not(is_nan(x, element)), x & magnitude != 0)
            infinity = literal(np.inf, element) | ((x ^ y) & ~magnitude)
            self._know(found, z3.Implies(z3.And(is_number, y & magnitude == 0), found == infinity))

    def _know_sums(self, element: ElementType) -> None:
        """Note that x + -0 is x, wherever the zero comes from."""
        if ("add", element.name) not in self._told:
            self._told["add", element.name] = None
            x, y = (z3.Const(f"{name} of {element.name}", sort_of(element)) for name in "xy")
            found, zero = self.symbol("add", [x, y], element), literal(-0.0, element)
            self._know(found, z3.And(z3.Implies(y == zero, found == x), z3.Implies(x == zero, found == y)))

    def _fold_constants(self, name: str, args: Sequence[Term], element: ElementType) -> Term | None:
        compute, values = _FOLDED.get(name), [value_of(arg, element) for arg in args]
        if compute is None or any(value is None for value in values):
            return None
        self._use("constants")
        with np.errstate(all="ignore"):
            return literal(compute(*values), element)

    def _difference(self, name: str, args: Sequence[Term], element: ElementType) -> Term | None:
        if name != "subtract":
            return None
        self._use("difference")
        return self.float("add", [args[0], self.negate(args[1], element)], element)

    def _logistic(self, name: str, args: Sequence[Term], element: ElementType) -> Term | None:
        if name != "logistic":
            return None
        self._use("logistic")
        one = literal(1.0, element)
        spread = self.float("add", [self.float("exponential", [self.negate(args[0], element)], element), one], element)
        return self.float("divide", [one, spread], element)

    def _parity(self, name: str, args: Sequence[Term], element: ElementType) -> Term | None:
        """Odd and even functions as functions of |x|: f(-x) = -f(x), f(0) = 0, or f(-x) = f(x)."""
        spec = OPS.get(f"stablehlo.{name}") or OPS.get(f"chlo.{name}")
        exponent = value_of(args[1], element) if name == "power" else None
        is_even = exponent is not None and np.isfinite(exponent) and exponent % 2 == 0
        if not is_even and (spec is None or not spec.keeps):
            return None
        bare = self.absolute(args[0], element)
        if bare.eq(args[0]):
            return None
        if is_even or (spec is not None and spec.keeps == "even"):
            self._use("even")
            return self.float(name, [bare, *args[1:]], element)
        self._use("odd")
        found = self.symbol(name, [bare], element)
        if (name, element.name) not in self._told:
            self._told[name, element.name] = None
            x = z3.Const(f"x of {element.name}", sort_of(element))
            of_x = self.symbol(name, [x], element)
            self._know(of_x, z3.Implies(x == 0, of_x == 0))
            self._know(of_x, z3.Implies(is_nan(x, element), is_nan(of_x, element)))
            if name == "cbrt":
                self._use("root of infinity")
                infinity = literal(np.inf, element)
                self._know(of_x, z3.Implies(x == infinity, of_x == infinity))
        sign = z3.Extract(element.bits - 1, element.bits - 1, args[0])
        return z3.If(sign == 1, self.negate(found, element), found)

    def _signs(self, name: str, args: Sequence[Term], element: ElementType) -> Term | None:
        if name not in ("multiply", "divide"):
            return None
        bare = [self._without_sign(arg, element) for arg in args]
        turned = sum(not a.eq(b) for a, b in zip(args, bare, strict=True))
        if not turned:
            return None
        self._use("signs")
        found = self.float(name, bare, element)
        return self.negate(found, element) if turned % 2 else found

    def _without_sign(self, term: Term, element: ElementType) -> Term:
        """x of -x, and |c| of a constant."""
        value = value_of(term, element)
        if value is not None and np.signbit(value) and not np.isnan(value):
            return literal(-value, element)
        return self._undo_negation(term)

    def _neutral(self, name: str, args: Sequence[Term], element: ElementType) -> Term | None:
        if name in ("maximum", "minimum") and args[0].eq(args[1]):
            self._use("extreme of one")
            return args[0]
        neutral = _NEUTRAL.get(name)
        if neutral is None:
            return None
        for term, other in ((args[1], args[0]), (args[0], args[1]))[: 1 if name in ("divide", "power") else 2]:
            value = value_of(term, element)
            if value is not None and np.isnan(value) and name in ("maximum", "minimum"):
                self._use("NaN of an extreme")
                return literal(np.nan, element)
            is_any_zero = name == "add" and self.reassociated
            if value is not None and value == neutral and (is_any_zero or np.signbit(value) == np.signbit(neutral)):
                self._use("neutral" if np.signbit(value) == np.signbit(neutral) else "reassociated")
                return other
            if name == "add" and self.adds_known and value == 0:
                self._use("neutral")
                minus = literal(-0.0, element)
                return z3.simplify(choose(other == minus, literal(0.0, element), other))
            if name == "add" and self.adds_known and value is not None and np.isinf(value):
                self._use("infinity")
                lost = z3.Or(is_nan(other, element), other == literal(-value, element))
                return z3.simplify(choose(lost, literal(np.nan, element), term))
        return None

    def _power_of_two(self, name: str, args: Sequence[Term], element: ElementType) -> Term | None:
        value = value_of(args[1], element) if name == "divide" else None
        if value is None or value == 0 or not np.isfinite(value):
            return None
        fraction, exponent = np.frexp(value)
        if abs(fraction) != 0.5 or not -100 < exponent < 100:
            return None
        self._use("power of two")
        return self.float("multiply", [args[0], literal(element.dtype.type(1) / value, element)], element)  # pyright: ignore

    def _root(self, name: str, args: Sequence[Term], element: ElementType) -> Term | None:
        is_root = name == "divide" and args[1].decl().name().startswith(f"sqrt {element.name}:")
        if not is_root or value_of(args[0], element) != 1:
            return None
        self._use("root")
        return self.float("rsqrt", args[1].children(), element)

    def _bits_of_sum(self, name: str, args: Sequence[Term], element: ElementType) -> Term | None:
        """2^e + m * 2^(e - M), m a whole number below 2^M, M the bits of a mantissa: those of m behind those of 2^e."""
        if name != "add" or element.dtype is None:
            return None
        for term, other in (args, args[::-1]):
            power = value_of(other, element)
            if power is None or not 2.0**-100 < power < 2.0**100 or np.frexp(power)[0] != 0.5:
                continue
            if not term.decl().name().startswith(f"multiply {element.name}:"):
                continue
            whole, unit = term.children()
            is_unit = value_of(unit, element) == power * 2.0**-element.mantissa
            if not is_unit or not whole.decl().name().startswith(f"{INTEGER} {element.name}:"):
                continue
            self._use("bits of a sum")
            bits, most = whole.arg(0), 1 << element.mantissa
            is_below = z3.And(bits >= 0, bits < number(most, bits.size()))
            own = self.symbol(name, [term, other], element)
            return choose(is_below, other + resize(bits, element.bits, is_signed=True), own)
        return None

    def _choice(self, name: str, args: Sequence[Term], element: ElementType) -> Term | None:
        if name not in COMMUTING:
            return None
        for k, term in enumerate(args):
            if not z3.is_app_of(term, z3.Z3_OP_ITE):
                continue
            rest = [*args[:k], *args[k + 1 :]]
            if any(z3.is_bv_value(term.arg(side)) for side in (1, 2)) or (
                all(map(z3.is_bv_value, rest)) and self.is_among_constants(term)
            ):
                self._use("choice inside")
                key = name, element.name, k, *(arg.get_id() for arg in args)
                if key not in self._inside:  # a choice within is met on many ways
                    sides = [self.float(name, [*args[:k], term.arg(j), *args[k + 1 :]], element) for j in (1, 2)]
                    self._inside[key] = choose(term.arg(0), *sides), list(args)
                return self._inside[key][0]
        return None

    def is_among_constants(self, term: Term) -> bool:
        """Whether a term is a constant, or a choice among such terms."""
        if not z3.is_app_of(term, z3.Z3_OP_ITE):
            return z3.is_bv_value(term)
        known = self._among.get(term.get_id())
        if known is None:
            found = self.is_among_constants(term.arg(1)) and self.is_among_constants(term.arg(2))
            known = self._among[term.get_id()] = term, found
        return known[1]

    # --- between floats ---

    def widen(self, term: Term, element: ElementType) -> Term:
        """f16 or bf16 as f32, exactly."""
        term = z3.simplify(term)
        value, negated = value_of(term, element), self._negated.get(term.get_id())
        if value is not None:
            return literal(np.float32(value), F32)
        if negated is not None:
            return self.negate(self.widen(negated[1], element), F32)
        if z3.is_app_of(term, z3.Z3_OP_ITE) and any(z3.is_bv_value(term.arg(side)) for side in (1, 2)):
            return choose(term.arg(0), self.widen(term.arg(1), element), self.widen(term.arg(2), element))
        if term.decl().name().startswith(f"narrow {element.name}:") and self._is_half(term.arg(0), element):
            self._use("round trip")
            return term.arg(0)
        if element.name == "bf16":
            return z3.Concat(term, number(0, 16))
        if ("widen", "f16") not in self._told:
            self._told["widen", "f16"] = None
            x = z3.Const("x of f16", sort_of(element))
            zero = z3.Implies(x & number(0x7FFF, 16) == 0, _widened(x) == z3.Concat(x, number(0, 16)))
            self._know(_widened(x), zero)
        return _widened(term)

    def know_half(self, term: Term, element: ElementType) -> None:
        """Note that an f32 is a number of f16 or bf16, as an extreme of such ones is, wherever it is taken."""
        self._halves.add((term.decl().name(), element.name))

    def _is_half(self, term: Term, element: ElementType) -> bool:
        """Whether an f32 is seen to be a number of f16 or bf16: a constant, a widened one, or an extreme of such."""
        value, name = value_of(term, F32), term.decl().name()
        if value is not None:
            return bool(self.widen(self.narrow(term, element), element).eq(term))
        if name.split(":")[0] in ("maximum f32", "minimum f32"):
            return all(self._is_half(part, element) for part in term.children())
        is_widened = name.startswith("widen f16:") if element.name == "f16" else self._upper_half(term) is not None
        return is_widened or (name, element.name) in self._halves

    def narrow(self, term: Term, element: ElementType) -> Term:
        """f32 rounded to f16 or bf16; what was widened is what it was."""
        return self._narrow(z3.simplify(term), element)

    def _narrow(self, term: Term, element: ElementType) -> Term:
        """The same of what is simplified, as its parts then are: each of them once, however often it stands there."""
        known = self._narrowed.get((term.get_id(), element.name))
        if known is None:
            known = self._narrowed[term.get_id(), element.name] = term, self._narrow_anew(term, element)
        return known[1]

    def _narrow_anew(self, term: Term, element: ElementType) -> Term:
        if element.name == "f16" and term.decl().name().startswith("widen f16:"):
            self._use("round trip")
            return term.arg(0)
        upper = self._upper_half(term) if element.name == "bf16" else None
        if upper is not None:
            self._use("round trip")
            return upper
        if z3.is_app_of(term, z3.Z3_OP_ITE):
            return choose(term.arg(0), self._narrow(term.arg(1), element), self._narrow(term.arg(2), element))
        negated = self._negated.get(term.get_id())
        if negated is not None:
            self._use("signs")
            return self.negate(self.narrow(negated[1], element), element)
        value = value_of(term, F32)
        if value is not None and element.dtype is not None:
            with np.errstate(all="ignore"):
                return literal(np.asarray(value).astype(element.dtype), element)
        return apply_symbol(f"narrow {element.name}", [term], sort_of(element))

    def _upper_half(self, term: Term) -> Term | None:
        """The bf16 that an f32 was widened from, or the choice among several; None where that is not seen.

        The term is simplified.
        """
        known = self._upper.get(term.get_id())
        if known is None:
            found: Term | None = None
            if z3.is_app_of(term, z3.Z3_OP_ITE):
                left, right = self._upper_half(term.arg(1)), self._upper_half(term.arg(2))
                found = choose(term.arg(0), left, right) if left is not None and right is not None else None
            elif _is_widened(term):
                found = z3.simplify(z3.Extract(31, 16, term))
            known = self._upper[term.get_id()] = term, found
        return known[1]

    def convert(self, term: Term, source: ElementType, target: ElementType) -> Term:
        """An element in another type."""
        if source == target:
            return term
        if source.is_complex or target.is_complex:
            return self._convert_complex(term, source, target)
        if is_truth(target):
            zero = number(0, source.bits)
            return z3.Not(self.compare("EQ", term, zero, source)) if source.is_float else term != zero
        if is_truth(source):
            one = number(1, target.bits) if target.is_integer else literal(1, target)
            return choose(term, one, number(0, target.bits))
        if source.is_integer and target.is_integer:
            return resize(term, target.bits, is_signed=source.is_signed)
        if source.is_integer:
            return self._float_of(z3.simplify(term), source, target)
        if not target.is_float:
            return apply_symbol(f"convert {source.name} {target.name}", [z3.simplify(term)], sort_of(target))
        return self._refloat(z3.simplify(term), source, target)

    def _convert_complex(self, term: Term, source: ElementType, target: ElementType) -> Term:
        self._use("complex parts")
        part = element_of(target.part)
        if not target.is_complex:
            return self.convert(half(term, 0), element_of(source.part), target)
        if not source.is_complex:
            return z3.Concat(number(0, part.bits), self.convert(term, source, part))
        parts = [self.convert(half(term, k), element_of(source.part), part) for k in (0, 1)]
        return z3.Concat(parts[1], parts[0])

    def _float_of(self, term: Term, source: ElementType, target: ElementType) -> Term:
        """An integer as a float: by its value, so that its width does not matter."""
        if z3.is_bv_value(term) and target.dtype is not None:
            value = term.as_signed_long() if source.is_signed else term.as_long()
            if abs(value) < 1 << (53 if target.name in ("f32", "f64") else 24):  # rounded once
                return literal(np.float64(value), target)
        wide = z3.simplify(resize(term, 65, is_signed=source.is_signed))
        if target.name in HALF_FLOATS and source.bits <= 16:  # exact in f32, so it is rounded once
            return self.narrow(apply_symbol(f"{INTEGER} f32", [wide], sort_of(F32)), target)
        return apply_symbol(f"{INTEGER} {target.name}", [wide], sort_of(target))

    def _refloat(self, term: Term, source: ElementType, target: ElementType) -> Term:
        if source.name in HALF_FLOATS and target == F32:
            return self.widen(term, source)
        if source == F32 and target.name in HALF_FLOATS:
            return self.narrow(term, target)
        value = value_of(term, source)
        if value is not None and target.dtype is not None and source.name in IEEE and target.name in IEEE:
            with np.errstate(all="ignore"):
                return literal(np.asarray(value).astype(target.dtype), target)
        if source.name in HALF_FLOATS and target.name == "f64":
            return self._refloat(self.widen(term, source), F32, target)
        back = f"convert {target.name} {source.name}:"
        if source.holds(target) and term.decl().name().startswith(back):
            self._use("round trip")
            return term.arg(0)
        return apply_symbol(f"convert {source.name} {target.name}", [term], sort_of(target))

    # --- comparisons ---

    def compare(self, direction: str, a: Term, b: Term, element: ElementType, kind: str = "") -> Term:
        """The result of `compare`."""
        if direction in _MIRRORED:
            return self.compare(_MIRRORED[direction], b, a, element, kind)
        if direction == "NE":
            return z3.Not(self.compare("EQ", a, b, element, kind))
        if is_truth(element):
            return {"EQ": a == b, "LT": z3.And(z3.Not(a), b), "LE": z3.Or(z3.Not(a), b)}[direction]
        if element.is_integer:
            if direction == "EQ":
                return a == b
            if element.is_unsigned:
                return z3.ULT(a, b) if direction == "LT" else z3.ULE(a, b)
            return a < b if direction == "LT" else a <= b
        if element.is_complex and direction == "EQ":
            self._use("complex parts")
            part = element_of(element.part)
            return z3.And([self.compare("EQ", half(a, k), half(b, k), part) for k in (0, 1)])
        if element.name not in IEEE:
            return apply_symbol(f"compare {element.name} {direction} {kind}", [a, b], z3.BoolSort())
        if kind == "TOTALORDER":
            halves = [self._upper_half(z3.simplify(term)) if element == F32 else None for term in (a, b)]
            if halves[0] is not None and halves[1] is not None:
                self._use("round trip")
                return self.compare(direction, halves[0], halves[1], element_of("bf16"), kind)
            x, y = _totally_ordered(a, element), _totally_ordered(b, element)
            return {"EQ": a == b, "LT": x < y, "LE": x <= y}[direction]
        narrower = self._as_narrower(direction, z3.simplify(a), z3.simplify(b), element)
        if narrower is not None:
            self._use("round trip")
            return self.compare(direction, *narrower)
        numbers = z3.And(z3.Not(is_nan(a, element)), z3.Not(is_nan(b, element)))
        x, y = _order_key(a, element), _order_key(b, element)
        return z3.And(numbers, {"EQ": x == y, "LT": x < y, "LE": x <= y}[direction])

    @staticmethod
    def _as_narrower(direction: str, a: Term, b: Term, element: ElementType) -> tuple[Term, Term, ElementType] | None:
        """Two numbers as those of a narrower type, of which at least one was widened and the other one may be any
        constant: between two numbers of that type, it is taken for the one to which they stand likewise."""
        prefix, name = _WIDENED.get(element.name, ("", ""))
        if not name or not any(term.decl().name().startswith(prefix) for term in (a, b)):
            return None
        narrow, found = element_of(name), list[Term]()
        for term in (a, b):
            value = value_of(term, element)
            if value is not None:
                is_below = None if direction == "EQ" else (term is a) == (direction == "LT")
                found.append(literal(_rounded(value, narrow, is_below), narrow))
            elif term.decl().name().startswith(prefix):
                found.append(term.arg(0))
        return (found[0], found[1], narrow) if len(found) == 2 else None


def _rounded(value: Any, element: ElementType, is_below: bool | None) -> Any:
    """A number in a narrower type; of one that this has not the number below it, or above it, or NaN."""
    assert element.dtype is not None
    with np.errstate(all="ignore"):
        near = np.asarray(value).astype(element.dtype)[()]
        if near == value or np.isnan(value):
            return near
        if is_below is None:
            return element.dtype.type(np.nan)
        is_right = (near < value) == is_below
        return near if is_right else np.nextafter(near, element.dtype.type(-np.inf if is_below else np.inf))


def half(term: Term, which: int) -> Term:
    """The real part (0) or the imaginary part (1) of a complex number."""
    bits = term.size() // 2
    return z3.simplify(z3.Extract(bits * (which + 1) - 1, bits * which, term))


def _is_negation(term: Term) -> bool:
    """Whether a term is another one of its width with the sign turned, as z3 writes that."""
    if not z3.is_app_of(term, z3.Z3_OP_CONCAT) or term.num_args() != 2:
        return False
    sign, rest = term.children()
    if not z3.is_app_of(sign, z3.Z3_OP_BNOT) or not z3.is_app_of(rest, z3.Z3_OP_EXTRACT):
        return False
    sign, bits = sign.arg(0), term.size()
    is_of_one = z3.is_app_of(sign, z3.Z3_OP_EXTRACT) and sign.arg(0).eq(rest.arg(0))
    return is_of_one and (rest.arg(0).size(), sign.params(), rest.params()) == (bits, [bits - 1] * 2, [bits - 2, 0])


def _is_widened(term: Term) -> bool:
    """Whether the lower half of an f32 is zeros."""
    last = term.arg(term.num_args() - 1) if z3.is_app_of(term, z3.Z3_OP_CONCAT) else term
    return z3.is_bv_value(last) and last.size() >= 16 and last.as_long() % (1 << 16) == 0


def _order_key(term: Term, element: ElementType) -> Term:
    """An integer whose signed comparison orders floats; both zeros become 0."""
    magnitude = term & number((1 << (element.bits - 1)) - 1, element.bits)
    return z3.If(z3.Extract(element.bits - 1, element.bits - 1, term) == 1, -magnitude, magnitude)


def _totally_ordered(term: Term, element: ElementType) -> Term:
    """A number of which signed comparison is the total order: of negative ones all bits but the sign turned."""
    magnitude = number((1 << (element.bits - 1)) - 1, element.bits)
    return z3.If(z3.Extract(element.bits - 1, element.bits - 1, term) == 1, term ^ magnitude, term)


def _of_truths(name: str, args: Sequence[Term]) -> Term | None:
    if name in ("and", "multiply", "minimum"):
        return z3.And(*args)
    if name in ("or", "add", "maximum"):
        return z3.Or(*args)
    if name in ("xor", "subtract"):
        return z3.Xor(*args)
    return z3.Not(args[0]) if name == "not" else None


def _of_integers(name: str, args: Sequence[Term], element: ElementType) -> Term | None:
    """An op on integers that wrap around; None of one that is a symbol."""
    bits, is_signed = element.bits, element.is_signed
    x, y = args[0], args[-1]
    zero, ones = number(0, bits), number(-1, bits)

    def less(a: Term, b: Term) -> Term:
        return a < b if is_signed else z3.ULT(a, b)

    table: dict[str, Callable[[], Term]] = {
        "add": lambda: x + y,
        "subtract": lambda: x - y,
        "multiply": lambda: x * y,
        "and": lambda: x & y,
        "or": lambda: x | y,
        "xor": lambda: x ^ y,
        "not": lambda: ~x,
        "negate": lambda: -x,
        "divide": lambda: z3.If(y == 0, ones, x / y if is_signed else z3.UDiv(x, y)),
        "remainder": lambda: z3.If(y == 0, x, z3.SRem(x, y) if is_signed else z3.URem(x, y)),
        "maximum": lambda: z3.If(less(x, y), y, x),
        "minimum": lambda: z3.If(less(x, y), x, y),
        "abs": lambda: z3.If(less(x, zero), -x, x),
        "sign": lambda: z3.If(x == 0, zero, z3.If(less(x, zero), ones, number(1, bits))),
        "shift_left": lambda: z3.If(z3.ULT(y, bits), x << y, zero),
        "shift_right_logical": lambda: z3.If(z3.ULT(y, bits), z3.LShR(x, y), zero),
        "shift_right_arithmetic": lambda: x >> y,
    }
    return table[name]() if name in table else None
