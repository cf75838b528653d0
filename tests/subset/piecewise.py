"""Ops computed piece by piece along each axis of their rule, and compared with the op as it stands."""

from collections.abc import Sequence
from math import gcd

import numpy as np
from op_cases import OpCase

import hlo_lower as hl
from hlo_lower.facts.memory.dataflow import Dataflow
from hlo_lower.ir.writer import to_text
from hlo_lower.ops.axes.cut import OpAxes, SubsetRules
from hlo_lower.tile.emit.emit_loops import Sizes, emit
from hlo_lower.tile.emit.phases import Loop, LoopPlan
from hlo_lower.tile.find.labels import Core, Labels
from hlo_lower.verify.run import Executable


def steps_of(node, axis) -> int:
    """The greatest number of steps that the dims of an axis share."""
    operands = [(v, d) for v, d in zip(node.operands, axis.operands, strict=True) if d is not None]
    results = [(v, d) for v, d in zip(node.results, axis.results, strict=True) if d is not None]
    return gcd(*(v.static_shape[d] for v, d in (*operands, *results)))


def variants(case: OpCase, rules: SubsetRules) -> list[tuple[int, int, bool]]:
    """Axes, sizes of tiles, and whether unrolled: one that leaves a rest, and one that divides, in turn."""
    program = Dataflow(hl.read(case.text(1)), rules)
    node = program.nodes[-1]
    axes = rules.of(node)
    assert isinstance(axes, OpAxes), axes
    assert case.axes == len(axes.axes)
    found = []
    for number, axis in enumerate(axes.axes):
        steps = steps_of(node, axis)
        sizes = sorted({1, max(1, steps - 1), max(1, steps // 2)})
        found += [(number, size, (number + k) % 2 == 0) for k, size in enumerate(sizes)]
    return found


def tile_one(text: str, place: int, variant: tuple[int, int, bool], rules: SubsetRules) -> str:
    """The module with one of its ops computed in a loop along one axis."""
    number, size, is_unrolled = variant
    graph = hl.read(text)
    program = Dataflow(graph, rules)
    node = [node for node in program.nodes if node.name == program.terminator.operand(0).node.name][place]
    axis = rules.of(node).axes[number]
    labels = Labels(Core(node.result(), 1, frozenset(), frozenset()), steps=steps_of(node, axis))
    labels.axes[node] = axis
    loop = Loop([node], [], [node]) if axis.combine else Loop([node], list(node.results), [])
    labels.dims.update({v: d for v, d in zip(node.results, axis.results, strict=True) if d is not None})
    emit(program, LoopPlan(labels, (loop,)), Sizes(size, 1 << 30, is_unrolled))
    return to_text(graph)


def differing(case: OpCase, rules: SubsetRules, seed: int = 0) -> list[tuple[int, int, bool]]:
    """The variants of a case that give something else than the op itself."""
    wanted = variants(case, rules)
    text = case.text(1 + len(wanted))
    for place, variant in reversed(list(enumerate(wanted, 1))):
        text = tile_one(text, place, variant, rules)
    executable = Executable(text, "exact")
    rng = np.random.default_rng(seed)
    results = executable.run([drawn(rng, a) for a in executable.arguments])
    count = case.count
    first, rest = results[:count], results[count:]
    groups = [rest[k : k + count] for k in range(0, len(rest), count)]
    return [v for v, group in zip(wanted, groups, strict=True) if not same(first, group)]


def drawn(rng: np.random.Generator, argument: object) -> np.ndarray:
    """Small whole numbers, some out of bounds of the cases' dims; exact in every float type."""
    dtype = np.dtype(argument.dtype)
    if dtype == np.bool_:
        return rng.integers(0, 2, argument.shape).astype(bool)
    return rng.integers(0 if dtype.kind == "u" else -2, 7, argument.shape).astype(dtype)


def same(expected: Sequence[np.ndarray], actual: Sequence[np.ndarray]) -> bool:
    """Whether arrays are equal bit for bit."""
    return all(np.array_equal(e, a) for e, a in zip(expected, actual, strict=True))
