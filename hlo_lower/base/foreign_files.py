"""Files that are no StableHLO module: missing ones, and models of other tools, told before anything is imported.

A command checks the files that it names here first, so that a typing error does not cost the import of JAX.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from hlo_lower.base.errors import InputError
from hlo_lower.base.whole_files import STANDARD

FIRST_BYTES = 64
"""How much of a file is looked at."""

LIKE_MLIR = (b"module", b"builtin.module", b"#", b"//", b"ML\xefR")
"""How MLIR begins: then only the suffix of Python counts, whose comments begin so too."""


class Foreign(NamedTuple):
    """A form that is not read, how its files are known, and what to do with one."""

    what: str
    suffixes: tuple[str, ...]
    magic: bytes
    """What the file begins with, or b"" where only the suffix tells."""
    at: int
    next_step: str


PYTORCH = "export the program as StableHLO with torchax: docs/tutorials/pytorch.md"
SOURCE = "export the model that it came from as StableHLO; hlo-lower reads no other format"

FORMS = (
    Foreign("is a Python program", (".py",), b"", 0, "hlo-lower export {name}:FUNCTION -o module.mlir"),
    Foreign("is an ONNX model", (".onnx",), b"", 0, SOURCE),
    Foreign(
        "is a TFLite model", (".tflite",), b"TFL3", 4, f"{SOURCE}; convert -o OUT.tflite --target litert writes one"
    ),
    Foreign("is compiled for IREE", (".vmfb",), b"", 0, f"{SOURCE}; convert -o OUT.vmfb --target iree writes one"),
    Foreign("is a PyTorch file", (".pt", ".pt2", ".pth"), b"", 0, PYTORCH),
    Foreign(
        "is HLO text",
        (".hlo",),
        b"HloModule",
        0,
        "write StableHLO: jax.jit(f).lower(*args).as_text(), or XLA's hlo-translate --hlo-to-mlir",
    ),
)
"""The forms by which people come; the first that fits is told."""


def check_is_module(name: str, start: bytes) -> None:
    """Check that what a file begins with is none of the other forms.

    Raises:
      InputError: it is, with what to do.
    """
    start = start[:FIRST_BYTES].lstrip()
    for form in FORMS:
        is_magic = bool(form.magic) and start[form.at :].startswith(form.magic)
        is_suffix = name.lower().endswith(form.suffixes) and (not start.startswith(LIKE_MLIR) or ".py" in form.suffixes)
        if is_magic or is_suffix:
            raise InputError(name, f"{form.what}, not StableHLO", next_step=form.next_step.format(name=name))


def check_files(names: Sequence[str]) -> None:
    """Check that files are there and of no other form; folders, pipes and "-" are not looked at.

    Raises:
      InputError: for the first that is not.
    """
    for name in names:
        path = Path(name)
        try:
            if name == STANDARD or (path.exists() and not path.is_file()):  # what is read of a pipe is gone
                continue
            with path.open("rb") as file:
                start = file.read(FIRST_BYTES)
        except FileNotFoundError:
            raise InputError(name, "no such file", next_step="check the path") from None
        except (OSError, ValueError):  # told where the module is read
            continue
        check_is_module(name, start)
