"""Write modules of small PyTorch programs, as torch_xla and torchax export them, for `scripts/named_routes.py`.

    python scripts/torch_modules.py FOLDER

It is run in an environment of its own, with torch and torch_xla, or torch, jax, flax and torchax (of versions that fit
each other: torch 2.9.0, torch_xla 2.9.0 and torchax 0.0.13 with jax 0.10), and needs nothing of this project. What is
not there is left out. A module is FOLDER/torch_xla/bf16/gelu.mlir; what an exporter refuses is printed.
"""

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from recall.torch_programs import PROGRAMS, Program

TYPES = {"f32": torch.float32, "bf16": torch.bfloat16, "f16": torch.float16}


def by_torch_xla(program: Any) -> str:
    """The module of an exported program by torch_xla."""
    from torch_xla.stablehlo import exported_program_to_stablehlo

    return exported_program_to_stablehlo(program).get_stablehlo_text("forward")


def by_torchax(program: Any) -> str:
    """The same by torchax, which exports through JAX."""
    from torchax.export import exported_program_to_stablehlo

    return exported_program_to_stablehlo(program)[1].mlir_module()


EXPORTERS: dict[str, Callable[[Any], str]] = {"torch_xla": by_torch_xla, "torchax": by_torchax}


def exported(program: Program, dtype: torch.dtype) -> Any:
    """A program as `torch.export` traces it with floats of a type."""

    class Module(torch.nn.Module):
        def forward(self, *args: Any) -> Any:
            return program.function(*args)

    args = [
        torch.zeros(shape[0], dtype=torch.int64) if shape[-1] == "i" else torch.zeros(shape, dtype=dtype)
        for shape in program.shapes
    ]
    return torch.export.export(Module(), tuple(args))


def main(argv: Sequence[str]) -> int:
    if len(argv) != 2:
        print("usage: python scripts/torch_modules.py FOLDER", file=sys.stderr)
        return 2
    Path(argv[1]).mkdir(parents=True, exist_ok=True)
    rows = "".join(f"{program.function.__name__}\t{program.row}\n" for program in PROGRAMS)
    (Path(argv[1]) / "rows.tsv").write_text(rows)
    for route, export in EXPORTERS.items():
        try:
            __import__(route)
        except ImportError as error:
            print(f"{route} is left out: {error}")
            continue
        for name, dtype in TYPES.items():
            folder = Path(argv[1]) / route / name
            folder.mkdir(parents=True, exist_ok=True)
            for program in PROGRAMS:
                file = folder / f"{program.function.__name__}.mlir"
                try:
                    file.write_text(export(exported(program, dtype)))
                except Exception as error:  # exporters raise whatever they stumble over
                    print(f"{file}: {type(error).__name__}: {str(error).splitlines()[0][:100]}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
