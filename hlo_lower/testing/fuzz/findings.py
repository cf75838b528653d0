"""Write a failing case down: its modules, its arguments, what is wrong, and the command that repeats it."""

from collections.abc import Callable
from pathlib import Path

import numpy as np

from hlo_lower.lowering.lowered import Lowered
from hlo_lower.testing.fuzz.case import ARGUMENT_SETS, Case
from hlo_lower.testing.fuzz.case_arguments import arguments_of
from hlo_lower.testing.fuzz.module_text import module_text
from hlo_lower.testing.fuzz.what_shows import Policy, reference

LOST = ("the process that worked on it died", "was not done")
"""How failures begin that ended a process (`hlo_lower.base.processes.Lost`)."""


def kind_of(failure: str) -> str:
    """What sort of failure it is, for shrinking: one sort does not become another."""
    return next((kind for kind in ("not lowered", *LOST) if failure.startswith(kind)), "differs")


def write_finding(
    folder: Path, name: str, case: Case, oob: Policy, failure: str, command: str, lower: Callable[[str], Lowered] | None
) -> None:
    """Write NAME.mlir, NAME.lowered.mlir, NAME.npz and NAME.txt.

    Args:
      folder: where; made if there is none.
      name: the files' stem.
      case: what failed.
      oob: the policy.
      failure: what is wrong.
      command: repeats it.
      lower: lowers it once more; None where that takes the process down.
    """
    folder.mkdir(parents=True, exist_ok=True)
    text = module_text([case])
    (folder / f"{name}.mlir").write_text(f"// oob={oob}: {failure.splitlines()[0]}\n{text}")
    lowered = ""
    if lower is not None:
        try:
            lowered = lower(text).text
        except Exception as error:  # it may be what failed
            lowered = f"// not lowered: {type(error).__name__}: {error}".replace("\n", "\n// ") + "\n"
    (folder / f"{name}.lowered.mlir").write_text(lowered)
    arrays: dict[str, np.ndarray] = {}
    for k in range(ARGUMENT_SETS):
        arguments = arguments_of(case, k)
        arrays |= {f"set{k}_argument{n}": _storable(a) for n, a in enumerate(arguments.all)}
        arrays |= {f"set{k}_expected{n}": _storable(a) for n, a in enumerate(reference(case, arguments, oob))}
    np.savez(folder / f"{name}.npz", **arrays)  # pyright: ignore[reportArgumentType] the keywords are arrays
    told = (failure, "", f"regimes: {', '.join(case.regimes)}", f"repeat:  {command}", "", str(case))
    (folder / f"{name}.txt").write_text("\n".join(told) + "\n")


def _storable(array: np.ndarray) -> np.ndarray:
    """The array, or its bits where its type is not NumPy's own."""
    known = array.dtype.kind in "iufcb" and array.dtype.name in np.sctypeDict
    return array if known else array.view(f"u{array.dtype.itemsize}")
