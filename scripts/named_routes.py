"""Print how many named ops are recognised by the route on which a module came, and by the type of its floats.

    python scripts/named_routes.py
    python scripts/torch_modules.py FOLDER            # in an environment with torch
    python scripts/named_routes.py --torch FOLDER --format markdown

Three routes begin at JAX, with the programs of `scripts/recall` for each type of float that they take: `hl.export`,
that with `plain_stablehlo`, and `jax.jit(f).lower(...).as_text()`. Those of PyTorch are what `scripts/torch_modules.py`
wrote. What is missed is listed. A program that cannot be traced with a type is left out. Exit code 1 where one is
missed, else 0.
"""

import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
from absl import app, flags
from recall.case import Case, Finding, finds
from recall.finder import find, fits
from recall.programs import HITS

import hlo_lower as hl
from hlo_lower.base.errors import EXIT_BAD_INPUT, EXIT_DIFFERS, EXIT_OK

_TORCH = flags.DEFINE_string("torch", "", "Folder that scripts/torch_modules.py wrote.")
_FORMAT = flags.DEFINE_enum("format", "text", ["text", "markdown"], "Of the table.")

ROWS = {
    "softmax": finds("softmax"),
    "layer norm": finds("layer_norm"),
    "rms norm": finds("rms_norm"),
    "gelu, exact": finds("gelu", approximate="none"),
    "gelu, tanh": finds("gelu", approximate="tanh"),
    "silu": finds("silu"),
    "swiglu": finds("swiglu"),
    "attention": finds("attention"),
    "linear": finds("linear"),
    "embedding lookup": finds("embedding_lookup"),
    "rope": finds("rope"),
}

TYPES = {"f32": jnp.float32, "bf16": jnp.bfloat16, "f16": jnp.float16}

ROUTES: dict[str, Callable[..., Any]] = {
    "hl.export": hl.export,
    "plain_stablehlo": lambda function, *args: hl.export(function, *args, plain_stablehlo=True),
    "jit.lower": lambda function, *args: jax.jit(function).lower(*args).as_text(),
}


def of_type(case: Case, dtype: Any) -> tuple[Any, ...]:
    """The arguments of a case with floats of a type."""

    def typed(spec: Any) -> Any:
        return jax.ShapeDtypeStruct(spec.shape, dtype if jnp.issubdtype(spec.dtype, jnp.floating) else spec.dtype)

    return jax.tree.map(typed, case.arguments)


def jax_modules() -> Iterator[tuple[str, str, str, str, Any, int]]:
    """Of each module its row, route, type, name, itself, and how many of the row's op it holds."""
    for case in HITS:
        rows = [(row, f.times) for f in case.expected for row, wanted in ROWS.items() if fits(_whole(f), wanted)]
        for element, dtype in TYPES.items() if rows else ():
            for route, made_by in ROUTES.items():
                try:
                    module = made_by(case.function, *of_type(case, dtype))
                except Exception:  # JAX raises whatever it stumbles over
                    continue
                yield from ((row, route, element, case.name, module, times) for row, times in rows)


def _whole(found: Finding) -> Finding:
    """A finding with the attribute that tells rows apart, which it asks for or not."""
    return Finding(found.op, {"approximate": "none", **found.attributes}) if found.op == "gelu" else found


def torch_modules(folder: Path) -> Iterator[tuple[str, str, str, str, Any, int]]:
    """The same of the modules of a folder."""
    rows = dict(line.split("\t") for line in (folder / "rows.tsv").read_text().splitlines())
    for file in sorted(folder.glob("*/*/*.mlir")):
        route, element = file.parts[-3:-1]
        yield rows[file.stem], route, element, file.stem, str(file), 1


def table(there: Counter[tuple[str, str, str]], found: Counter[tuple[str, str, str]]) -> Iterator[list[str]]:
    """The lines of the table: for each route how many of how many, in each type."""
    routes = list(dict.fromkeys(route for _, route, _ in there))
    yield [f"op, in {', '.join(TYPES)}", *routes]
    for row in (*ROWS, "all"):
        rows = [row] if row in ROWS else ROWS
        keys = [[[(one, route, element) for one in rows] for element in TYPES] for route in routes]
        counts = [[(sum(found[k] for k in of), sum(there[k] for k in of)) for of in by_type] for by_type in keys]
        yield [row, *(", ".join(f"{seen}/{held}" for seen, held in by_type) for by_type in counts)]


def main(argv: Sequence[str]) -> int:
    if len(argv) > 1:
        print(f"{argv[1]}: the programs are its own; --torch names a folder of modules", file=sys.stderr)
        return EXIT_BAD_INPUT
    there, found, missed = Counter[tuple[str, str, str]](), Counter[tuple[str, str, str]](), list[str]()
    modules = [*jax_modules(), *(torch_modules(Path(_TORCH.value)) if _TORCH.value else ())]
    for row, route, element, name, module, times in modules:
        key = row, route, element
        seen = min(times, sum(fits(one, ROWS[row]) for one in find(module)))
        there[key] += times
        found[key] += seen
        if seen < times:
            missed.append(f"{name}, {route}, {element}: {seen} of {times} {row}")
    lines = list(table(there, found))
    for number, cells in enumerate(lines):
        print(
            f"| {' | '.join(cells)} |"
            if _FORMAT.value == "markdown"
            else "  ".join(c.ljust(25) for c in cells).rstrip()
        )
        if _FORMAT.value == "markdown" and not number:
            print(f"| --- |{' ---: |' * (len(cells) - 1)}")
    print("\n".join(["", *(missed or ["nothing is missed"])]))
    return EXIT_DIFFERS if missed else EXIT_OK


if __name__ == "__main__":
    app.run(main)
