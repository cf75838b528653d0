"""The mask of an attention as a target adds it to the scores: made of ours, and ours recovered from it."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from math import prod

import numpy as np

from hlo_lower.base.causes import Cause, Code
from hlo_lower.base.element_types import element_type
from hlo_lower.ir import mlir
from hlo_lower.ir.axes import reduce_along
from hlo_lower.ir.builder import Builder
from hlo_lower.ir.view import Value
from hlo_lower.named.match.terms import Term, Terms
from hlo_lower.named.spell.adapters import Found
from hlo_lower.named.spell.axis_letters import AxisLetters, Layout, Move
from hlo_lower.ops.names import EXPONENTIAL, MAXIMUM
from hlo_lower.ops.spec import LAYOUT, PICKS, short

MOVES = short(LAYOUT | PICKS)
"""Ops whose result has no values but the first operand's."""

STEPS = 60
MOST = 4
"""Most different values."""


def values_of(term: Term, steps: int = STEPS) -> frozenset[float] | None:
    """The values that elements may have; None where they are not known, or too many."""
    if not steps:
        return None
    if (number := term.scalar) is not None:
        return frozenset({float(number)}) if np.asarray(number).dtype.kind in "fVb" else None
    if term.op == "constant":
        array = mlir.constant_value(term.node.raw)
        found = None if array is None or array.dtype.kind not in "fV" else np.unique(array.astype(np.float64))
        return None if found is None or len(found) > MOST or np.isnan(found).any() else frozenset(map(float, found))
    if term.op in MOVES:
        return values_of(term.operands[0], steps - 1)
    if term.op in ("select", "concatenate"):
        parts = [values_of(operand, steps - 1) for operand in term.operands[term.op == "select" :]]
        together = [value for part in parts if part is not None for value in part]
        return None if None in parts or len(set(together)) > MOST else frozenset(together)
    return None


def low_of_selects(terms: Terms, block: mlir.RawBlock) -> float | None:
    """The one number by which selects of a function hide scores; None where there is none, or several."""
    found: set[float] = set()
    for op in block.operations:
        for result in op.operation.results:
            term = terms.of(result)
            if term.op == "select":
                numbers = [operand.scalar for operand in term.operands[1:]]
                found |= {float(number) for number in numbers if number is not None and float(number) <= -1e4}
    return found.pop() if len(found) == 1 else None


LEAST = {name: element_type(name).least for name in ("f32", "bf16")} | {"f16": -(2.0**15)}
"""Added to a score it gives itself, whatever the score is, unless that is as large; of f16 a number that scores do not
make infinite, and that all those of a few units leave as it is."""


@dataclass(frozen=True)
class AddedMask:
    """A mask as the target adds it."""

    role: str  # the operand that it stands for; "" of a causal one
    kind: str  # "added", "zero_rows", "boolean" or "causal"
    element: str  # its element type
    move: Move | None  # of the operand to the target's axes; None of a causal one
    # the sizes of the letters of each of these, 1 where the mask does not have the letter
    split: tuple[tuple[int, ...], ...]
    full: tuple[tuple[int, ...], ...]  # the same, but all of an axis where it has one of its letters
    there: tuple[AxisLetters, AxisLetters]  # the target's axes of mask and result
    hidden: float  # what is added where a position is hidden
    hides: bool = False  # of a boolean one, whether it is true there
    window: int = 0  # of a causal one, as in the vocabulary

    def build_mask(self, build: Builder, value: Value | None) -> Value:
        """Build the mask to add to the scores."""
        if self.kind == "causal":
            return self._spread(build, self._of_positions(build))
        assert value is not None
        assert self.move is not None
        if self.kind == "zero_rows":
            least = build.float_splat(self.hidden, value.static_shape, self.element)
            value = build.maximum(value, least)
        elif self.kind == "boolean":
            value = self._hide_unseen(build, value)
        return self._spread(build, self.move(build, value))

    def recover(self, build: Builder, value: Value) -> Value:
        """Build the operand of ours from the added mask."""
        assert self.move is not None
        if self.split != self.full:
            split, full = flat(self.split), flat(self.full)
            value = build.slice(build.reshape(value, full), [0] * len(split), split)
        back = self.move.back(build, build.reshape(value, self.move.joined))
        shape = back.static_shape
        if self.kind == "added":
            return back
        zero = build.float_splat(0.0, shape, self.element)
        if self.kind == "boolean":
            return build.compare(back, "NE" if self.hides else "EQ", zero)
        infinite = build.broadcast(build.infinity(mlir.parse_type(self.element), is_negative=True), shape)
        return build.select(build.compare(back, "EQ", zero), back, infinite)

    def without_empty_rows(self, build: Builder, value: Value, mask: Value) -> Value:
        """A result, 0 in rows whose mask hides all: times exp(max) of the row; its last axis are elements."""
        axes = self.there[0].axes
        low = build.infinity(mlir.parse_type(self.element), is_negative=True)
        seen = build.elementwise(EXPONENTIAL, reduce_along(build, mask, low, axes.index("k"), MAXIMUM))
        rows = [axis for axis in axes if axis != "k"]
        moved = build.transpose(seen, [rows.index(axis) for axis in self.there[1].axes[:-1]])
        kept = [dim for dim, size in enumerate(moved.static_shape) if size != 1] or [0]
        flat = build.reshape(moved, [moved.static_shape[dim] for dim in kept])
        return build.multiply(value, build.broadcast(flat, value.static_shape, kept))

    def _spread(self, build: Builder, value: Value) -> Value:
        """A value of the letters that the mask has, with all of those of its axes."""
        if self.split != self.full:
            full = flat(self.full)
            value = build.broadcast(build.reshape(value, flat(self.split)), full, range(len(full)))
        return build.reshape(value, [prod(sizes) for sizes in self.full])

    def _hide_unseen(self, build: Builder, seen: Value) -> Value:
        shape = seen.static_shape
        zero = build.float_splat(0.0, shape, self.element)
        low = build.float_splat(self.hidden, shape, self.element)
        return build.select(seen, low, zero) if self.hides else build.select(seen, zero, low)

    def _of_positions(self, build: Builder) -> Value:
        shape = flat(self.split)
        row, key = (build.iota(shape, self.there[0].letters.index(letter), "i32") for letter in "qk")
        seen = build.compare(key, "LE", row)
        if self.window:
            first = build.subtract(row, build.constant(self.window, shape, "i32"))
            seen = build.and_(seen, build.compare(key, "GT", first))
        return self._hide_unseen(build, seen)


def flat(sizes: tuple[tuple[int, ...], ...]) -> tuple[int, ...]:
    """The sizes of all letters."""
    return tuple(chain(*sizes))


def mask_there(
    found: Found, layout: Layout, roles: dict[str, str], there: Sequence[AxisLetters], masks: Sequence[str]
) -> AddedMask | Cause | None:
    """The mask of an attention: our letters for each of the target's are `roles`, `there` are the target's query,
    key, value, mask and result. None where it has none, a cause where it cannot be added."""
    is_causal, element = bool(found.attributes["causal"]), found.operands["query"].element_type
    if not is_causal and not masks:
        return None
    have = roles["q"] + roles["k"] if is_causal else layout.operands[3].letters
    # positions are numbered along all of their letters
    axes = [[roles[x] for x in axis] if is_causal else [*"".join(roles[x] for x in axis)] for axis in there[3].axes]
    wanted = ["".join(letters for letters in axis if letters and letters[0] in have) for axis in axes]
    if sorted(have) != sorted("".join(wanted)) or layout.size(wanted[-1]) != layout.size(roles["k"]):
        return Code.NAMED_OP_LACKS("a mask of whole axes")
    split = tuple(tuple(layout.size(x) if x and x[0] in have else 1 for x in axis) for axis in axes)
    full = tuple(
        tuple(map(layout.size, axis)) if prod(sizes) > 1 else sizes for axis, sizes in zip(axes, split, strict=True)
    )
    sizes = split, full
    if is_causal:
        window = found.attributes.get("window", 0)
        assert isinstance(window, int)
        return AddedMask("", "causal", element, None, *sizes, (there[3], there[4]), LEAST[element], window=window)
    [role] = masks
    kind, hidden = _kind(found, role, element)
    if isinstance(kind, Cause):
        return kind
    move = Move.of(layout, layout.operands[3], wanted, found.operands[role].static_shape)
    hides = bool(found.attributes.get("mask_hides", False))
    return AddedMask(role, kind, element, move, *sizes, (there[3], there[4]), hidden, hides)


def _kind(found: Found, role: str, element: str) -> tuple[str | Cause, float]:
    """How a mask that is an operand is added, and what hides; why it cannot be."""
    value, empty = found.operands[role], found.attributes["empty_rows"]
    if value.element_type == "i1":
        low = low_of_selects(found.terms, found.function.regions[0].blocks[0])
        if low is None or empty != "nan":
            return Code.NAMED_OP_LACKS("one number that hides"), 0.0
        return "boolean", -np.inf if np.isinf(low) else LEAST[element]
    if value.element_type != element:
        return Code.NAMED_OP_LACKS("a mask of the query's element type"), 0.0
    if empty == "nan":
        return "added", 0.0
    known = values_of(found.terms.of(value.raw))
    if known is None or not known <= {0.0, -np.inf}:
        return Code.NAMED_OP_LACKS("a mask of which it is known that it is 0 or -inf"), 0.0
    return "zero_rows", LEAST[element]
