"""Whether a module and its mutant are the same function, found out without the judge.

A difference is a witness: arguments on which the two give other results in NumPy, confirmed by XLA without its
simplifier, or by StableHLO's interpreter. Equal is said only by construction. The rest is unknown.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from time import process_time

import numpy as np

from mutating.elementwise import is_float
from mutating.evaluator import Array, BadInput, Module, Node, Unsupported
from mutating.inputs import Inputs, aimed
from mutating.making import Mutant
from mutating.numbering import result_numbers
from mutating.operators import EQUAL, PROMISES
from mutating.others import OtherError, results_by
from mutating.windows import scatter_windows


@dataclass
class Truth:
    """What is known of a mutant.

    Attributes:
      truth: "differs", "equal" or "unknown".
      why: how that is known.
      witness: arguments on which the two differ.
    """

    truth: str
    why: str
    witness: list[Array] = field(default_factory=list)


DRAWS = 300
QUICK, DEEP = 2.0, 14.0
"""Seconds of a processor to seek a witness: of each mutant, and of one that `verify` lets pass."""

AIMED = 0.5
"""The part of the time for inputs that are aimed at a comparison."""


def truth_of(mutant: Mutant, before: str, *, seconds: float = QUICK) -> Truth:
    """The truth of a mutant."""
    try:
        first, second = Module(before), Module(mutant.text)
    except Unsupported as error:
        return Truth("unknown", f"no evaluator: {error}")
    if mutant.operator in EQUAL:
        return _checked_equal(mutant, first, second, before)
    if mutant.operator in PROMISES:
        return _promise(mutant, first, second, seconds)
    if mutant.key not in first.dependent() and not mutant.op.endswith("return"):
        return Truth("equal", "no result depends on the op")
    compared = mutant.operator == "compare_type" and mutant.what.startswith("compared as")
    if compared and first.nodes()[mutant.key].attributes["comparison_direction"] in ("EQ", "NE"):
        return Truth("equal", "equal bits are equal in either type")
    if result_numbers(first) == result_numbers(second):
        return Truth("equal", "what differs depends on no argument, and comes out the same")
    inputs = Inputs(first, mutant.seed)
    drawn = refused = 0
    unconfirmed: list[Truth] = []
    for arguments in _all(first, mutant, inputs, seconds):
        drawn += 1
        try:
            found = _difference(first.run(arguments), second.run(arguments))
        except BadInput:
            refused += 1
            continue
        except (Unsupported, NotImplementedError) as error:
            return Truth("unknown", f"no evaluator: {error}")
        if found:
            confirmed = _confirmed(before, mutant.text, arguments)
            if confirmed:
                return Truth("differs", f"{found}; {confirmed}", arguments)
            unconfirmed.append(Truth("differs", f"{found}; by NumPy alone", arguments))
            if len(unconfirmed) >= 3:
                break
    if unconfirmed:
        return unconfirmed[0]
    return Truth("unknown", f"no witness in {drawn} runs, {refused} of them refused")


def _all(module: Module, mutant: Mutant, inputs: Inputs, seconds: float) -> Iterator[list[Array]]:
    start = process_time()
    for _ in range(DRAWS):
        if process_time() > start + seconds * (1 - AIMED):
            break
        yield inputs.draw()
    start = process_time()
    keys = [mutant.key] if mutant.op == "stablehlo.compare" else _compares(module)
    for key in keys:
        for arguments in aimed(module, key, inputs, mutant.seed):
            if process_time() > start + seconds * AIMED:
                return
            yield arguments


def _compares(module: Module) -> list[int]:
    return [key for key, node in module.nodes().items() if node.name == "stablehlo.compare" and not node.scalar][:6]


def _difference(first: Sequence[Array], second: Sequence[Array]) -> str:
    """The first difference in words, or nothing. NaN is NaN."""
    for number, (a, b) in enumerate(zip(first, second, strict=True)):
        if a.shape != b.shape:
            return f"result {number} has shape {a.shape} and {b.shape}"
        if not a.size:
            continue
        differ = _differ(a, b)
        if differ.any():
            at = int(np.flatnonzero(differ.reshape(-1))[0])
            x, y = a.reshape(-1)[at], b.reshape(-1)[at]
            sign = " (only signs of zeros)" if not (a.reshape(-1) != b.reshape(-1))[differ.reshape(-1)].any() else ""
            return f"result {number} at {at}: {x} and {y}{sign}"
    return ""


def _differ(a: Array, b: Array) -> Array:
    if a.dtype.kind == "c":
        return _differ(a.real, b.real) | _differ(a.imag, b.imag)
    if is_float(a.dtype):
        return ~((a == b) & (np.signbit(a) == np.signbit(b)) | np.isnan(a) & np.isnan(b))
    return np.asarray(a != b)


def _confirmed(before: str, after: str, arguments: list[Array]) -> str:
    for name in ("the interpreter", "XLA"):
        try:
            if _difference(results_by(name, before, arguments), results_by(name, after, arguments)):
                return f"so says {name}"
        except OtherError:
            continue
    return ""


def _checked_equal(mutant: Mutant, first: Module, second: Module, before: str) -> Truth:
    """Equal by construction; looked at all the same."""
    inputs = Inputs(first, mutant.seed)
    for _ in range(10):
        arguments = inputs.draw()
        try:
            found = _difference(first.run(arguments), second.run(arguments))
        except (BadInput, Unsupported):
            continue
        if found:
            return Truth("unknown", f"made to be equal, but {found}", arguments)
    return Truth("equal", "by construction")


def _overlap(one: Sequence[tuple[int, int]], other: Sequence[tuple[int, int]]) -> bool:
    return all(a < d and c < b for (a, b), (c, d) in zip(one, other, strict=True))


def _promise(mutant: Mutant, first: Module, second: Module, seconds: float) -> Truth:
    if mutant.operator == "precision_lowered":
        return Truth("differs", "less precision is asked for")
    inputs, until = Inputs(first, mutant.seed), process_time() + seconds
    windows_seen: list[int] = []
    broken: list[str] = []

    def watch(node: Node, values: list[Array], results: list[Array]) -> None:
        numbers = node.attributes.get("scatter_dimension_numbers") or node.attributes.get("dimension_numbers")
        if node.name == "stablehlo.scatter":
            count = (len(values) - 1) // 2
            windows = scatter_windows(numbers, values[0].shape, values[count], values[-1].shape)
            places = [place for _, place in windows]
            windows_seen.append(len(places))
            kept = [tuple((s.start, s.stop) for s in place) for place in places if place]
            if mutant.operator == "promise_unique":
                if any(_overlap(one, other) for one, other in combinations(kept, 2)):
                    broken.append("two updates write one place")
                return
        if mutant.operator == "promise_sorted":
            indices = values[(len(values) - 1) // 2 if node.name == "stablehlo.scatter" else 1]
            vector = numbers.get("index_vector_dim", 0)
            rows = indices[..., None] if vector == indices.ndim else np.moveaxis(indices, vector, -1)
            flat = [tuple(int(v) for v in row) for row in rows.reshape(-1, rows.shape[-1])]
            if flat != sorted(flat):
                broken.append("indices are not sorted")

    stability = mutant.operator == "sort_stability"
    first.watched = {} if stability else {mutant.key: watch}
    second.last_first = {mutant.key} if stability else set()
    for _ in range(DRAWS):
        if process_time() > until:
            break
        arguments = inputs.draw()
        try:
            results = first.run(arguments)
            found = _difference(results, second.run(arguments)) if stability else ""
        except BadInput:
            continue
        except Unsupported as error:
            return Truth("unknown", f"no evaluator: {error}")
        if found:
            return Truth("differs", f"ties the other way: {found}", arguments)
        if broken:
            return Truth("differs", f"the promise is broken: {broken[0]}", arguments)
    if mutant.operator == "promise_unique" and max(windows_seen, default=2) < 2 and "?" not in mutant.text:
        return Truth("equal", "there is one window")
    return Truth("unknown", "no input breaks the promise")
