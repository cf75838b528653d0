"""A piece of a region by its scatters' and gathers' definitions: the judge of the first one beside XLA, and what runs
a second one whose scatters XLA computes wrongly.

What stands between them runs through XLA; each scatter and each gather is computed in NumPy as the specification says,
scatters under the policy that is asked for. So the policy "spec", which XLA does not know, has a judge, and so have the
scatters on which XLA is known to be wrong. On the way it is counted where the windows of a run really lay.
"""

from collections import ChainMap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from hlo_lower.ir import mlir
from hlo_lower.ops import names
from hlo_lower.verify.align.align import Region
from hlo_lower.verify.align.piece import module_of, types_of
from hlo_lower.verify.judges.definitions import (
    Hits,
    ScatterNumbers,
    UnsupportedRegionError,
    check_region,
    combine_of,
    count_hits,
    gather,
    rounds_correctly,
    scatter,
)
from hlo_lower.verify.judges.devices import Runnable, piece_executable
from hlo_lower.verify.read.numbering import Number
from hlo_lower.verify.read.program import Op, ValueId, ops_within

Array = NDArray[Any]
Policy = Literal["xla", "spec"]

MAX_POSITIONS = 20_000
"""Scatter positions, or elements of a gather's result, up to which a Python loop is worth its time."""

STEPPED = (names.SCATTER, names.GATHER)


class NoReferenceError(Exception):
    """The piece has no reference, and why."""


@dataclass(frozen=True)
class Stepped:
    """Results of a piece, and where the windows of its scatters lay."""

    results: list[Array]
    hits: tuple[Hits, ...]


class Stepwise:
    """A piece of a region, step by step.

    Args:
      region: the region.
      oob: the policy.
      which: 0 for the first piece, 1 for the second.

    Raises:
      NoReferenceError: a scatter or gather stands in a region of another operation, is too large, or computes what
        NumPy does not.
      CannotRunError: XLA does not compile what stands between.
    """

    def __init__(self, region: Region, oob: Policy, which: int = 0) -> None:
        self._side, self._ops = region.sides[which]
        self._program = self._side.program
        self._functions = self._program.functions
        self._inputs = region.inputs
        self._types = types_of(region)
        self._oob: Policy = oob
        self._outputs = [(o.first, o.second)[which] for o in region.outputs]
        self._steps = [op for op in self._ops if op.name in STEPPED]
        self._check()
        if not self._steps:
            raise NoReferenceError("no scatter or gather in it")
        self.rounds_correctly = all(
            rounds_correctly(op.raw, self._functions) for op in self._steps if op.name == names.SCATTER
        )
        self._segments: dict[tuple[ValueId, ...], tuple[Runnable, list[Number]]] = {}

    def _check(self) -> None:
        if any(inner.name in STEPPED for op in self._ops for body in op.bodies for inner in ops_within(body.ops)):
            raise NoReferenceError("a scatter or gather in a region of another operation")
        for op in self._steps:
            result = self._program.type_of(op.results[0])
            operand = self._program.type_of(op.inputs[-1])
            if result is None or operand is None:
                raise NoReferenceError("a type that is not a tensor")
            if op.name == names.GATHER:
                count = prod(int(n or 0) for n in result.shape)
            else:
                window = set(mlir.scatter_dimension_numbers(op.raw).update_window_dims)
                count = prod(int(n or 0) for d, n in enumerate(operand.shape) if d not in window)
                try:
                    check_region(op.raw, self._functions)
                except UnsupportedRegionError as error:
                    raise NoReferenceError(str(error)) from None
            if count > MAX_POSITIONS:
                raise NoReferenceError(f"more than {MAX_POSITIONS} positions")

    def run(self, arguments: Sequence[Array]) -> Stepped:
        """The results for some arguments.

        Raises:
          UnsupportedRegionError: the region does what NumPy does not.
          CannotRunError: XLA does not run what stands between.
        """
        known: dict[Number, Array] = dict(zip(self._inputs, arguments, strict=True))
        hits: list[Hits] = []
        for op in self._steps:
            operands = self._values(op.inputs, known)
            if op.name == names.GATHER:
                sizes = mlir.integers_of(op.raw.attributes["slice_sizes"])
                found = [gather(operands[0], operands[1], mlir.gather_dimension_numbers(op.raw), sizes)]
            else:
                found, hit = self._run_scatter(op, operands)
                hits.append(hit)
            known.update((self._side.numbers[r], value) for r, value in zip(op.results, found, strict=True))
        return Stepped(self._values(tuple(self._outputs), known), tuple(hits))

    def _values(self, values: tuple[ValueId, ...], known: dict[Number, Array]) -> list[Array]:
        """Values, from those that are known by now."""
        numbers, have = self._side.numbers, ChainMap({}, known, self._side.table.known)
        missing = tuple(value for value in dict.fromkeys(values) if numbers[value] not in have)
        computed = self._compute_values(missing, known) if missing else []
        have.update((numbers[value], array) for value, array in zip(missing, computed, strict=True))
        return [np.asarray(have[numbers[value]]) for value in values]

    def _compute_values(self, values: tuple[ValueId, ...], known: Mapping[Number, Array]) -> list[Array]:
        """Compute the values between two steps with XLA. The values that they start from are the same in each run."""
        if values not in self._segments:
            ops, given = self._behind(values, known)
            types = [self._program.types[self._side.value_of[number]] for number in given]
            inputs = dict(enumerate(given))
            text = module_of(self._program, ops, inputs, self._side.numbers, values, types)
            self._segments[values] = piece_executable(text), given
        executable, given = self._segments[values]
        return executable.run([known[number] for number in given])

    def _behind(self, values: Sequence[ValueId], known: Mapping[Number, Array]) -> tuple[list[Op], list[Number]]:
        inside, found = set(self._ops), set[Op]()
        given: dict[Number, None] = {}
        pending = list(values)
        while pending:
            value = pending.pop()
            number, maker = self._side.numbers[value], self._program.makers[value]
            if number in known:
                given[number] = None
            elif maker is not None and maker in inside and maker not in found:
                found.add(maker)
                pending.extend(maker.reads)
        return [op for op in self._ops if op in found], list(given)

    def _run_scatter(self, op: Op, operands: Sequence[Array]) -> tuple[list[Array], Hits]:
        n, numbers = len(op.results), ScatterNumbers.of(op.raw)
        combine = combine_of(op.raw, self._functions)
        arguments = op.raw.regions[0].blocks[0].arguments
        dtypes = [mlir.dtype_of(mlir.tensor_element_name(arguments[i].type)) for i in range(n)]
        indices, updates = operands[n], operands[n + 1 :]
        known = [t for t in dtypes if t is not None]
        try:
            with np.errstate(under="raise"):
                found = scatter(operands[:n], indices, updates, numbers, combine, known, oob=self._oob)
        except FloatingPointError:
            raise UnsupportedRegionError("subnormal numbers, which XLA treats as zeros") from None
        return found, count_hits(operands[0].shape, indices, updates[0].shape, numbers)
