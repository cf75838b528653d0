"""The laws by name: what a derivation rests on, beside the definition of each op."""

from dataclasses import dataclass
from typing import Literal

Kind = Literal["floats", "folds", "congruence", "sizes", "evaluation"]


@dataclass(frozen=True)
class Law:
    """A law that is more than the definition of an op.

    Attributes:
      name: as a verdict names it.
      kind: what it is about.
      says: one sentence.
      holds: "exactly" (by IEEE 754 or by the specification, NaN bits aside), or "by definition" where it says how the
        consumers that we know compute, which the specification leaves open.
    """

    name: str
    kind: Kind
    says: str
    holds: Literal["exactly", "by definition"] = "exactly"


_LAWS = (
    Law("commutes", "floats", "a + b = b + a; so do multiply, maximum, minimum, and the factors of a dot_general"),
    Law("constants", "floats", "add, subtract, multiply and divide of two constants give the nearest number"),
    Law(
        "neutral", "floats", "x * 1 = x / 1 = x^1 = x + -0 = x - 0 = max(x, -inf) = min(x, inf) = x; x + 0 = x, 0 of -0"
    ),
    Law("extreme of one", "floats", "max(x, x) = min(x, x) = x"),
    Law("infinity", "floats", "x + inf = inf, and NaN if x is NaN or -inf; likewise -inf"),
    Law("difference", "floats", "x - y = x + (-y)"),
    Law("power of two", "floats", "x / 2^k = x * 2^-k if both are normal numbers"),
    Law(
        "bits of a sum", "floats", "2^e + m * 2^(e - M) has the bits of 2^e + m if M is the mantissa's and 0 <= m < 2^M"
    ),
    Law("signs", "floats", "(-x) * y = -(x * y); (-x) / y = x / (-y) = -(x / y); --x = x; |-x| = |x|"),
    Law("odd", "floats", "f(-x) = -f(x), f(0) = 0, f(NaN) = NaN if f is odd, as sine is", "by definition"),
    Law("even", "floats", "f(-x) = f(x) if f is even: cosine, x^c for an even c", "by definition"),
    Law("logistic", "floats", "logistic(x) = 1 / (exp(-x) + 1)", "by definition"),
    Law(
        "quadrants",
        "floats",
        "a sine, cosine or tangent of x is one of what 2/pi, exact to 2^-61, leaves of x, by quadrant: of every f32 "
        "within 3 units in the last place, a tangent within 5",
        "by definition",
    ),
    Law("division by zero", "floats", "x / 0 is an infinity of the sign of both if x is a number other than 0"),
    Law("root of zero", "floats", "rsqrt(0) is inf, rsqrt(-0) is -inf"),
    Law("root of infinity", "floats", "cbrt(inf) is inf"),
    Law("logarithm of zero", "floats", "log(0) and log(-0) are -inf"),
    Law("root", "floats", "rsqrt(x) = 1 / sqrt(x)", "by definition"),
    Law(
        "round trip", "floats", "a number that is widened and converted back is what it was, and compares as that does"
    ),
    Law(
        "half floats",
        "floats",
        "f16 and bf16 are computed in f32 and rounded, which is exact for + - * / and the root; "
        "reduce and dot_general keep their sums in f32",
        "by definition",
    ),
    Law(
        "rounded once",
        "floats",
        "where floats may be added in another order, a reduce or a scatter may keep sums and products of f16 and bf16 "
        "in f32",
        "by definition",
    ),
    Law("one NaN", "floats", "a result that is NaN is equal to any NaN"),
    Law(
        "NaN of arithmetic",
        "floats",
        "of a NaN that an operation computes IEEE 754 leaves the bits open, its sign included; where these would "
        "decide, it is the positive one",
        "by definition",
    ),
    Law("complex parts", "floats", "sums, differences, negation and equality of complex numbers are those of parts"),
    Law("choice inside", "floats", "x + (c ? y : k) = c ? x + y : x + k; so for multiply, maximum, minimum"),
    Law("fold", "folds", "two folds are equal if they start alike and their steps are equal at every position"),
    Law(
        "order of a fold",
        "folds",
        "reduce, dot_general, convolution and scatter combine in row-major order; several dims may be counted as one",
        "by definition",
    ),
    Law(
        "any order",
        "folds",
        "a scatter or a reduce may combine its elements in any order, which the specification leaves open",
        "by definition",
    ),
    Law(
        "nested folds",
        "folds",
        "a fold in any order of folds in any order is one fold over the positions of both; positions may be counted "
        "in another order, or in parts",
    ),
    Law(
        "reassociated",
        "folds",
        "if sums of floats may be in any order, nested ones are one sum, and x + 0 is x",
        "by definition",
    ),
    Law(
        "finite first",
        "folds",
        "a sum that has any order may add finite floats first, then infinities; NaN counts as both",
        "by definition",
    ),
    Law(
        "product of 0 and 1",
        "folds",
        "a dot_general of 0s and 1s with finite numbers is the sum of those that meet a 1, in any order, except "
        "for the sign of a zero",
        "by definition",
    ),
    Law(
        "NaN of an extreme",
        "folds",
        "a maximum or minimum of many floats is NaN if one of them is, else that of the others",
    ),
    Law("counted loop", "folds", "a loop from a to b by 1 whose body writes each position from itself is a fold"),
    Law("last writer", "folds", "a fold that assigns gives what the last step that writes to a position wrote"),
    Law(
        "one step",
        "folds",
        "a fold in which at most one step does something is that step applied to the start",
    ),
    Law("start again", "folds", "a maximum, minimum, and, or of a start may leave out elements that are the start"),
    Law(
        "chunks of a list",
        "folds",
        "a sum over chunks of a sorted list, from how many of it come before x to how many come before y, is one over "
        "all that do not come before x and do before y",
    ),
    Law("ranks", "folds", "a stable sort puts at k the element that k others precede"),
    Law(
        "order of an order",
        "folds",
        "a stable sort of sorted rows is one by its own keys, and then by those of the sort before",
    ),
    Law(
        "numbers in order",
        "folds",
        "what a sort makes of the numbers below n holds each of them once, whatever its comparator says",
        "by definition",
    ),
    Law(
        "one number of a dim",
        "folds",
        "a fold whose steps do nothing but at one number of a dim is one over its other dims",
    ),
    Law("promise", "folds", "if flags are trusted, `unique_indices` means that an element is written at most once"),
    Law("written out", "folds", "a loop of few turns is its turns, each if the condition has held so far"),
    Law("same function", "congruence", "an op gives the same result for the same operands, attributes and bodies"),
    Law(
        "sizes",
        "sizes",
        "a dim of unknown size has any size below 2^31 for which the first version is valid, its shape assertions "
        "hold, and its scatters have fewer than 2^31 windows and updates; there the second version is valid too",
        "by definition",
    ),
    Law(
        "every input",
        "evaluation",
        "two pieces that compute each element from at most 16 bits of inputs at its place are equal if XLA and "
        "StableHLO's interpreter find them equal for all values of these bits",
        "by definition",
    ),
    Law(
        "no input",
        "evaluation",
        "integers that depend on no input are those that both XLA and StableHLO's interpreter compute",
        "by definition",
    ),
)

LAWS = {law.name: law for law in _LAWS}
"""The laws, by name."""
