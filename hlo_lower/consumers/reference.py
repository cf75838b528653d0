"""What XLA makes of a module on seeded inputs: what a consumer's results are compared with."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

import jax
import numpy as np

from hlo_lower.base.element_types import element_type_of
from hlo_lower.base.errors import InputError
from hlo_lower.consumers.consumer_outcome import Array, ConsumerRun
from hlo_lower.consumers.rounding import Rounding, rounding_of
from hlo_lower.ir import mlir
from hlo_lower.verify.bounds.rounding_bounds import OwnBounds
from hlo_lower.verify.judges.devices import devices_of
from hlo_lower.verify.judges.xla_defects import why_no_judge
from hlo_lower.verify.module_runs import RUN_REGIMES, arguments_from_inputs, draw, drives_of
from hlo_lower.verify.read.program import Program
from hlo_lower.verify.run import CannotRunError, Executable, Signature, parse_or_refuse, read_signature


@dataclass(frozen=True)
class Reference:
    """Arguments of a module, XLA's results, and how closely others have to agree with them."""

    runs: tuple[ConsumerRun, ...]  # arguments and results
    rounding: Rounding  # how results are compared
    # runs the module under XLA on other arguments; None where the user gave them
    again: Callable[[Sequence[Array], str], ConsumerRun] | None = field(default=None, compare=False)
    # runs that are others than those of the module as it was, or that are not there, and why
    notes: tuple[str, ...] = ()
    own_bounds: OwnBounds | None = field(default=None, compare=False)  # of the module as it was

    def all_notes(self) -> tuple[str, ...]:
        """The notes, and what the bounds that were used say little about."""
        return (*self.notes, *(self.own_bounds.notes if self.own_bounds is not None else ()))

    def for_signature_of(self, text: str) -> "Reference":
        """The same runs for a version with as many arguments and results, whose integers are narrower.

        Seeded arguments that do not fit become the ends of the narrower type, so that what is out of bounds stays
        there, and the module is run once more. A run whose results do not fit is left out; `notes` tells of both.
        CannotRunError if the signature differs in another way, or the values of no run fit.
        """
        try:
            signature = read_signature(parse_or_refuse(text, "after"))
        except InputError:  # no StableHLO, such as linalg: the consumer knows whether it can be read
            return self
        adapted: list[ConsumerRun] = []
        notes: list[str] = []
        for number, run in enumerate(self.runs, start=1):
            told = f"run {number}{run.what and f' ({run.what})'}"
            try:
                one = _fit_run(run, signature)
                if one is None and self.again is not None:
                    narrow = [_clip(a, s) for a, s in zip(run.arguments, signature.arguments, strict=True)]
                    one = _fit_run(self.again(narrow, run.what), signature)
                    notes.append(f"{told}: arguments beyond the narrower integers become their ends")
            except ValueError as error:
                raise CannotRunError(f"the two versions have different signatures: {error}") from None
            if one is None:
                notes = [note for note in notes if not note.startswith(told)]
                notes.append(f"{told}: left out, because its values do not fit the narrower integers")
            else:
                adapted.append(one)
        if not adapted:
            raise CannotRunError("its integers are narrower, and the values of no run fit")
        return replace(self, runs=tuple(adapted), notes=tuple(notes))


def reference_of(
    text: str,
    *,
    inputs: Sequence[Any] | Mapping[str, Any] | None = None,
    seed: int = 0,
    runs: int = len(RUN_REGIMES),
) -> Reference:
    """Run a module, its scatters as they were, under XLA.

    Seeded inputs lie in range in the first run, at the edges in the second, and out of bounds, too, in the third.
    CannotRunError if XLA does not run it or is known to be wrong about it, InputError if it does not parse or the
    inputs do not fit.
    """
    module = parse_or_refuse(text, "before")
    if reason := why_no_judge(module):
        raise CannotRunError(reason)
    if devices_of(text) > 1:
        raise CannotRunError("it is partitioned over several devices")
    signature = read_signature(module)
    if inputs is not None:
        sets = [("given", arguments_from_inputs(inputs, signature, module))]
    else:
        drives = drives_of(Program(module))
        sets = [(RUN_REGIMES[k % len(RUN_REGIMES)], draw(signature, drives, seed, k)) for k in range(max(runs, 1))]
    executable = Executable(text, "exact")
    own_bounds = OwnBounds(text, seed=seed)

    def run(arguments: Sequence[Array], what: str) -> ConsumerRun:
        expected = executable.run(arguments)
        return ConsumerRun(arguments, expected, what, cache(lambda: own_bounds.of(arguments, expected)))

    told = tuple(run(arguments, what) for what, arguments in sets)
    return Reference(
        told,
        rounding_of(mlir.parse_module(text)),
        run if inputs is None else None,
        own_bounds=own_bounds,
    )


def _fit_run(run: ConsumerRun, signature: Signature) -> ConsumerRun | None:
    """A run in the types of another signature, with complex arguments as parts; None if a value does not fit.

    Raises ValueError if the signature differs by more than the width of integers.
    """
    try:
        arguments = [_as(a, s, "argument") for a, s in zip(run.arguments, signature.arguments, strict=True)]
        expected = [_as(a, s, "result") for a, s in zip(run.expected or (), signature.results, strict=True)]
    except OverflowError:
        return None
    return replace(run, arguments=arguments, expected=expected)


def _clip(array: Array, wanted: jax.ShapeDtypeStruct) -> Array:
    """An argument of its own type, with all integers clipped to the wanted type."""
    dtype = np.dtype(wanted.dtype)
    if array.dtype.itemsize == dtype.itemsize or array.dtype.kind not in "iu" or dtype.kind not in "iu":
        return array
    own, limits = np.iinfo(array.dtype), np.iinfo(dtype)
    return np.clip(array, max(own.min, limits.min), min(own.max, limits.max)).astype(array.dtype)


def _as(array: Array, wanted: jax.ShapeDtypeStruct, what: str) -> Array:
    """An array in the type that is wanted; OverflowError if a value does not fit, ValueError if more differs than
    the width of an integer."""
    dtype = np.dtype(wanted.dtype)
    if array.dtype == dtype and array.shape == wanted.shape:
        return array
    if array.dtype.kind == "c" and wanted.shape == (*array.shape, 2) and dtype.itemsize * 2 == array.dtype.itemsize:
        parts: Array = np.stack([np.real(array), np.imag(array)], axis=-1)
        return parts if what == "argument" else array  # of what is computed the numbers are compared
    if array.shape != wanted.shape or min(element_type_of(one).integer_bits for one in (array.dtype, dtype)) < 2:
        told = f"{array.dtype}{list(array.shape)} and {dtype}{list(wanted.shape)}"
        raise ValueError(f"{what}s of {told}")
    narrow = array.astype(dtype)
    if not np.array_equal(narrow, array) and array.dtype.itemsize != dtype.itemsize:  # else the bits are stored
        raise OverflowError
    return narrow
