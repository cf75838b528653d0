"""Both whole modules, compiled when they are first asked for: what a region's difference means for what is returned."""

from collections.abc import Mapping
from time import monotonic
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hlo_lower.ir import mlir
from hlo_lower.verify.bounds.rounding_bounds import OwnBounds
from hlo_lower.verify.drive.index_regimes import ordinary
from hlo_lower.verify.judges.devices import Runnable, piece_executable
from hlo_lower.verify.judges.xla_errors import why_xla_errs_in
from hlo_lower.verify.read.large_constants import module_over_budget
from hlo_lower.verify.run import CannotRunError, entry_function, read_signature

Array = NDArray[Any]

TRIES = 48
"""Parts of an argument that are tried as zeros, to make a counterexample smaller."""

MINIMISED = 10.0
"""Seconds for that."""


class WholeModules:
    """Two modules of one signature and static shapes.

    Args:
      before, after: their texts.
    """

    def __init__(self, before: str, after: str) -> None:
        self._texts = before, after
        self._versions: tuple[Runnable, Runnable] | None = None
        self._arguments: tuple[Any, ...] = ()
        self._failed = False
        self._bounds = OwnBounds(before)

    def differ(self, name: str, inputs: Mapping[int, Array]) -> bool | None:
        """Whether the two return something else, beyond how far roundings go; None where they cannot be run.

        Args:
          name: the public function.
          inputs: some of its arguments, by place; the others are drawn.
        """
        versions = self._compiled(name)
        if versions is None:
            return None
        rng = np.random.default_rng(0)
        arguments = [
            inputs.get(place, ordinary(rng, a.shape, np.dtype(a.dtype))) for place, a in enumerate(self._arguments)
        ]
        try:
            results = [version.run(arguments) for version in versions]
            return self._bounds.difference(results[0], results[1], arguments) is not None
        except CannotRunError:
            return None

    def minimised(self, name: str, inputs: Mapping[int, Array]) -> dict[int, Array]:
        """Arguments on which the two differ, with zeros wherever they still do: whole ones first, then parts of them.

        Args:
          name: the public function.
          inputs: arguments, by place, all of them.
        """
        found = dict(inputs)
        if not self.differ(name, found):
            return found
        until = monotonic() + MINIMISED
        for place, array in inputs.items():
            pending = [(0, array.size)]
            for _ in range(TRIES):
                if not pending or monotonic() > until:
                    break
                start, end = pending.pop()
                tried = found[place].copy()
                tried.reshape(-1)[start:end] = 0
                if self.differ(name, {**found, place: tried}):
                    found[place] = tried
                elif end - start > 1:
                    middle = (start + end) // 2
                    pending += [(middle, end), (start, middle)]
        return found

    def _compiled(self, name: str) -> tuple[Runnable, Runnable] | None:
        if self._versions is None and not self._failed:
            try:
                module = mlir.parse_module(self._texts[0])
                if mlir.symbol_name(entry_function(module).attributes["sym_name"]) != name:
                    return None
                if module_over_budget(module) or any(why_xla_errs_in(mlir.parse_module(text)) for text in self._texts):
                    self._failed = True
                    return None
                self._arguments = read_signature(module).arguments
                first, second = map(piece_executable, self._texts)
                self._versions = first, second
            except CannotRunError:
                self._failed = True
        return self._versions
