"""What XLA makes of a module on seeded inputs: what a consumer's results are compared with."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import jax
import numpy as np

from hlo_lower import mlir
from hlo_lower.consumers.outcome import Array, Run
from hlo_lower.consumers.rounding import Rounding, rounding_of
from hlo_lower.errors import InputError
from hlo_lower.verify.devices import devices_of
from hlo_lower.verify.module import RUN_REGIMES, draw, drives_of, given
from hlo_lower.verify.module_index import ModuleIndex
from hlo_lower.verify.run import CannotRunError, Executable, parse_or_refuse, read_signature
from hlo_lower.verify.xla_aborts import why_xla_aborts
from hlo_lower.verify.xla_errors import why_xla_errs


@dataclass(frozen=True)
class Reference:
    """Arguments of a module, XLA's results, and how closely others have to agree with them."""

    runs: tuple[Run, ...]
    rounding: Rounding

    def for_signature_of(self, text: str) -> "Reference":
        """The same runs for a version whose integers are narrower: those whose values all fit.

        Args:
          text: a version of the module, with as many arguments and results, of the same shapes.

        Raises:
          CannotRunError: its signature differs in another way, or the values of no run fit.
        """
        try:
            signature = read_signature(parse_or_refuse(text, "after"))
        except InputError:  # no StableHLO, such as linalg: the consumer knows whether it can be read
            return self
        adapted: list[Run] = []
        for run in self.runs:
            try:
                arguments = [_as(a, s, "argument") for a, s in zip(run.arguments, signature.arguments, strict=True)]
                expected = [_as(a, s, "result") for a, s in zip(run.expected or (), signature.results, strict=True)]
            except OverflowError:
                continue
            except ValueError as error:
                raise CannotRunError(f"the two versions have different signatures: {error}") from None
            adapted.append(replace(run, arguments=arguments, expected=expected))
        if not adapted:
            raise CannotRunError("its integers are narrower, and the values of no run fit")
        return replace(self, runs=tuple(adapted))


def reference_of(
    text: str,
    *,
    inputs: Sequence[Any] | Mapping[str, Any] | None = None,
    seed: int = 0,
    runs: int = len(RUN_REGIMES),
) -> Reference:
    """Run a module under XLA.

    Args:
      text: the module, its scatters as they were.
      inputs: its arguments, by position or by name; by default seeded ones, whose positions lie in range in the first
        run, at the edges in the second, and out of bounds, too, in the third.
      seed, runs: of the seeded inputs.

    Raises:
      CannotRunError: XLA does not run it, or is known to be wrong about it.
      InputError: it does not parse, or the inputs do not fit.
    """
    module = parse_or_refuse(text, "before")
    index = ModuleIndex(module)
    for number, scatter in enumerate(index.scatters, start=1):
        if reason := why_xla_errs(index, scatter):
            raise CannotRunError(f"XLA is no judge of {index.place(number)}: it {reason}")
    if reason := why_xla_aborts(module):
        raise CannotRunError(f"XLA is no judge: {reason}")
    if devices_of(text) > 1:
        raise CannotRunError("it is partitioned over several devices")
    signature = read_signature(module)
    if inputs is not None:
        sets = [("given", given(inputs, signature, index))]
    else:
        drives = drives_of(module)
        sets = [(RUN_REGIMES[k % len(RUN_REGIMES)], draw(signature, drives, seed, k)) for k in range(max(runs, 1))]
    executable = Executable(text, "exact")
    told = tuple(Run(arguments, executable.run(arguments), what) for what, arguments in sets)
    return Reference(told, rounding_of(mlir.parse_module(text, mlir.make_context())))


def _as(array: Array, wanted: jax.ShapeDtypeStruct, what: str) -> Array:
    """An array in the type that is wanted.

    Raises:
      OverflowError: a value does not fit.
      ValueError: it is another shape, or not a matter of how wide an integer is.
    """
    dtype = np.dtype(wanted.dtype)
    if array.dtype == dtype and array.shape == wanted.shape:
        return array
    if array.shape != wanted.shape or not {array.dtype.kind, dtype.kind} <= set("iu"):
        told = f"{array.dtype}{list(array.shape)} and {dtype}{list(wanted.shape)}"
        raise ValueError(f"{what}s of {told}")
    narrow = array.astype(dtype)
    if not np.array_equal(narrow, array):
        raise OverflowError
    return narrow
