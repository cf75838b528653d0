"""The modules that are mutated."""

from collections.abc import Sequence
from pathlib import Path

from hlo_lower.ir import mlir
from mutating.evaluator import BadInput, Module, Unsupported
from mutating.inputs import Inputs
from mutating.programs import PROGRAMS, program_text


def read_modules(folder: str, largest: int, only: Sequence[str]) -> dict[str, str]:
    """The small programs, and the files of a folder that the evaluator can run, by name."""
    texts = {name: program_text(name) for name in PROGRAMS if not only or name in only}
    paths = sorted(Path(folder).rglob("*.mlir")) if folder else []
    for path in paths:
        if path.stat().st_size <= largest:
            text = mlir.print_module(mlir.parse_module(path.read_text()))
            if _runs(text):
                texts[f"{path.parent.name}.{path.stem}"] = text
    return texts


def _runs(text: str) -> bool:
    """Whether the evaluator runs it on one of a few inputs."""
    try:
        module = Module(text)
        inputs = Inputs(module, 0)
    except (Unsupported, KeyError):
        return False
    for _ in range(20):
        try:
            module.run(inputs.draw())
            return True
        except BadInput:
            continue
        except (Unsupported, NotImplementedError):
            return False
    return False
