"""cumsum, cumprod, cummax, cummin, cumlogsumexp: result i combines the elements up to and including i, along an axis.

    reduce_window       a window as long as the axis, padded by all but one before it (behind it: from the end on)
    associative scan    pairs, pairs of pairs, and back, as `jax.lax.associative_scan` writes it
    x @ triangle        of ones: cumsum along the last axis

It is that and nothing else: of a reduce_window the numbers are compared; a scan is followed element by element, each
standing for the set of elements of x that it combines, so that result i has to be the set of 0 to i; a triangle of
iotas is computed. Attributes: `axis`, `reverse`.
"""

import numpy as np

from hlo_lower.base.element_types import type_range
from hlo_lower.ir import mlir
from hlo_lower.named.match.matches import Found, Match, matchers
from hlo_lower.named.match.pointwise import all_of, varying_dims
from hlo_lower.named.match.terms import Term, above
from hlo_lower.ops.names import ADD, DOT_GENERAL, OR, REDUCE_WINDOW

NAMES = {"add": "cumsum", "multiply": "cumprod", "maximum": "cummax", "minimum": "cummin"}

NEUTRAL = {"cumsum": 0.0, "cumprod": 1.0, "cummax": -np.inf, "cummin": np.inf, "cumlogsumexp": -np.inf}

LONGEST = 4096
"""Longest axis of a scan that is followed, and largest side of a triangle."""

MOST = 1000
"""Most ops of a scan that are looked at for what is scanned."""


@matchers.finds(*NEUTRAL, at=(REDUCE_WINDOW,))
def running_window(anchor: Term) -> Found:
    """A `reduce_window` whose windows reach from the first element to each."""
    if len(anchor.node.raw.results) != 1:
        return None
    x, start = anchor.operands
    long = [dim for dim, size in enumerate(anchor.integers("window_dimensions")) if size != 1]
    name = _name(anchor)
    if len(long) != 1 or not name or anchor.shape != x.shape or not _is_neutral(start, NEUTRAL[name]):
        return None
    [axis] = long
    size = x.shape[axis]
    attributes = anchor.node.raw.attributes
    for key in ("window_strides", "base_dilations", "window_dilations"):
        if key in attributes and set(anchor.integers(key)) != {1}:
            return None
    if anchor.integers("window_dimensions")[axis] != size or "padding" not in attributes:
        return None
    padding = mlir.dense_integers(attributes["padding"])
    pairs = list(zip(padding[::2], padding[1::2], strict=True))
    before = pairs.pop(axis)
    if any(pair != (0, 0) for pair in pairs) or before not in ((size - 1, 0), (0, size - 1)):
        return None
    return Match(name, {"x": x}, [anchor], {"axis": axis, "reverse": before[0] == 0})


def _is_neutral(start: Term, number: float) -> bool:
    if np.isfinite(number) or start.is_float:
        return start.is_number(number)
    ends = type_range(start.element)
    return ends is not None and start.is_number(ends[number > 0])


def _name(window: Term) -> str:
    """The named op for the op that combines a window; "" for other ops."""
    block = window.node.raw.regions[0].blocks[0]
    operations = [op.operation for op in block.operations]
    if len(operations) == 2 and set(operations[0].operands) == set(block.arguments):
        return NAMES.get(operations[0].name.removeprefix("stablehlo."), "")
    return "cumlogsumexp" if _is_logaddexp(operations[-1].operands[0], *block.arguments) else ""


def _is_logaddexp(value: mlir.RawValue, a: mlir.RawValue, b: mlir.RawValue) -> bool:
    """Whether a value is max(a, b) + log1p(exp(-|a - b|)), or a + b where a - b is NaN."""
    made = _op_and_operands(value)
    if made[0] == "select":
        test, total, value = made[1:]
        less = _op_and_operands(test)
        if less[0] != "compare" or less[1] != less[2] or _op_and_operands(less[1]) != ("subtract", a, b):
            return False
        if _op_and_operands(total) != ("add", a, b):
            return False
        made = _op_and_operands(value)
    if made[0] != "add" or _op_and_operands(made[1]) not in (("maximum", a, b), ("maximum", b, a)):
        return False
    at = made[2]
    for name in ("log_plus_one", "exponential", "negate", "abs"):
        made = _op_and_operands(at)
        if made[0] != name:
            return False
        at = made[1]
    return _op_and_operands(at) in (("subtract", a, b), ("subtract", b, a))


def _op_and_operands(value: mlir.RawValue) -> tuple[object, ...]:
    operation = mlir.producer(value)
    return ("",) if operation is None else (operation.name.removeprefix("stablehlo."), *operation.operands)


@matchers.finds("cumsum", at=(DOT_GENERAL,))
def product_with_triangle(anchor: Term) -> Found:
    """x times a triangle of ones."""
    x, triangle = anchor.operands
    if len(triangle.shape) != 2 or triangle.shape[0] != triangle.shape[1] or anchor.shape != x.shape:
        return None
    numbers = mlir.dot_dimension_numbers(anchor.node.raw)
    if len(numbers.lhs_batching_dimensions) or list(numbers.lhs_contracting_dimensions) != [len(x.shape) - 1]:
        return None
    size = triangle.shape[0]
    if not 1 < size <= LONGEST or varying_dims(triangle) != frozenset((0, 1)):
        return None
    ones = all_of(triangle)
    if ones is None:
        return None
    ones = ones.T if list(numbers.rhs_contracting_dimensions) == [1] else ones
    for reverse, wanted in ((False, np.triu(np.ones(ones.shape))), (True, np.tril(np.ones(ones.shape)))):
        if np.array_equal(ones, wanted):
            return Match("cumsum", {"x": x}, [anchor], {"axis": len(x.shape) - 1, "reverse": reverse})
    return None


@matchers.finds("cumsum", "cumprod", "cummax", "cummin", at=(ADD, OR))
def scan_by_halves(anchor: Term) -> Found:
    """A sum that interleaves two halves of a scan."""
    first, second = anchor.operands
    if first.op != "pad" or second.op != "pad" or first.operands[0].op not in ("concatenate", "reverse"):
        return None
    long = [dim for dim, (n, m) in enumerate(zip(anchor.shape, first.operands[0].shape, strict=True)) if n != m]
    if len(long) != 1 or not 1 < anchor.shape[long[0]] <= LONGEST:
        return None
    [axis] = long
    x = _scanned_value(anchor)
    if x is None:
        return None
    scan = _Scan(x, axis)
    sets = scan.sets(anchor)
    if sets is None or scan.combiner not in NAMES:
        return None
    size = x.shape[axis]
    upwards = [(2 << place) - 1 for place in range(size)]
    if sets == upwards:
        return Match(NAMES[scan.combiner], {"x": x}, [anchor], {"axis": axis, "reverse": False})
    return None


def _scanned_value(result: Term) -> Term | None:
    """The value that is sliced, of the result's shape."""
    ops = ("slice", "pad", "concatenate", *NAMES, "or")
    for term in above(result, lambda term: term.operands if term.op in ops else (), MOST):
        if term.op == "slice" and term.operands[0].shape == result.shape:
            return term.operands[0]
    return None


class _Scan:
    """What the parts of a scan are made of: for each place the elements, as bits of a number; 0: none."""

    def __init__(self, x: Term, axis: int) -> None:
        self.axis, self.combiner = axis, ""
        self._known: dict[int, list[int] | None] = {id(x): [1 << place for place in range(x.shape[axis])]}

    def sets(self, term: Term) -> list[int] | None:
        """The elements of a value; None where it is made of others, or combines one twice."""
        if id(term) not in self._known:
            self._known[id(term)] = self._sets(term)
        return self._known[id(term)]

    def _sets(self, term: Term) -> list[int] | None:
        if term.op == "pad":
            inner = self.sets(term.operands[0])
            return None if inner is None or not term.operands[1].is_number(0) else self._pad(term, inner)
        parts = [self.sets(operand) for operand in term.operands]
        if not parts or any(part is None for part in parts):
            return None
        known = [part for part in parts if part is not None]
        if term.op == "slice":
            first, last, step = (term.integers(k)[self.axis] for k in ("start_indices", "limit_indices", "strides"))
            whole = all(
                n == m
                for d, (n, m) in enumerate(zip(term.shape, term.operands[0].shape, strict=True))
                if d != self.axis
            )
            return known[0][first:last:step] if whole else None
        if term.op == "concatenate" and term.node.integer("dimension") == self.axis:
            return [one for part in known for one in part]
        if len(known) == 2 and term.op in (*NAMES, "or"):
            return self._combine(term.op, *known)
        return None

    def _pad(self, term: Term, inner: list[int]) -> list[int] | None:
        low, high, between = (
            term.integers(key) for key in ("edge_padding_low", "edge_padding_high", "interior_padding")
        )
        axis = self.axis
        if any(any(amounts[:axis] + amounts[axis + 1 :]) for amounts in (low, high, between)):
            return None
        if min(low[axis], high[axis]) < 0:
            return None
        found = [0] * low[axis]
        for number, one in enumerate(inner):
            found += [one] if number == len(inner) - 1 else [one, *[0] * between[axis]]
        return found + [0] * high[axis]

    def _combine(self, op: str, first: list[int], second: list[int]) -> list[int] | None:
        found: list[int] = []
        for a, b in zip(first, second, strict=True):
            if not a or not b:
                if op not in ("add", "or"):
                    return None
                found.append(a or b)
                continue
            if op == "or" or self.combiner not in ("", op) or (a & b and op in ("add", "multiply")):
                return None
            self.combiner = op
            found.append(a | b)
        return found
