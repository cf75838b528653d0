"""The modules that are mutated."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import hlo_lower as hl
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


def lowered(modules: Mapping[str, str], targets: Sequence[str]) -> tuple[dict[str, str], dict[str, str]]:
    """What modules become for targets and the evaluator can run, and the modules themselves, both by one name."""
    after, before = dict[str, str](), dict[str, str]()
    for name, text in modules.items():
        for target in targets:
            try:
                found = hl.lower(text, target=target).text
            except hl.HloLowerError:
                continue
            if _runs(found):
                after[f"{name}.{target}"], before[f"{name}.{target}"] = found, text
    return after, before


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
