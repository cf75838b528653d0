"""Fuzz scatters of dynamic shape: sizes of a case are left open, it is lowered without them, and they are bound again.

What is lowered is judged like any other case then, so that a bound that is taken from the wrong dim, or at the wrong
time, shows as a wrong result. Sizes of 0 are left open, too.
"""

import re
from collections.abc import Callable

import numpy as np

from hlo_lower.ir import mlir
from hlo_lower.ir.binding import bind
from hlo_lower.ir.reader import read
from hlo_lower.lowering.lowered import Lowered
from hlo_lower.lowering.options import Options
from hlo_lower.lowering.pipeline import lower
from hlo_lower.testing.fuzz.sensitivity import Policy

_TYPE = re.compile(r"tensor<(?:\d+x)+[^<>]*(?:<[^<>]*>)?>")
_PASSIVE = ("func.func", "return", "}) :", "module")
"""Beginnings of lines whose types may be changed: signatures, what returns, and the scatter's own."""


def with_open_sizes(oob: Policy, seed: int) -> Callable[[str], Lowered]:
    """Lower a module with some of its sizes unknown, and give them back afterwards.

    Args:
      oob: the policy.
      seed: of the choice of sizes.
    """
    options = Options(oob=oob)

    def lowered(text: str) -> Lowered:
        opened = open_sizes(text, np.random.default_rng(seed))
        found = lower(opened, options=options, name="fuzzed")
        sizes = _sizes(text, opened)
        if sizes:
            found.graph = bind(found.graph, sizes)
        return found

    return lowered


def open_sizes(text: str, rng: np.random.Generator) -> str:
    """A module with some of its sizes unknown: of each tensor type that stands only in signatures and on scatters."""
    fixed = {t for line in text.splitlines() if not _is_passive(line) for t in _TYPE.findall(line)}
    replaced: dict[str, str] = {}
    for found in sorted(set(_TYPE.findall(text)) - fixed):
        *sizes, element = found.removeprefix("tensor<").split("x", found.count("x"))
        hidden = [("?" if rng.random() < 0.6 else s) if s.isdigit() else s for s in sizes]
        replaced[found] = "tensor<" + "x".join((*hidden, element))
    return _TYPE.sub(lambda match: replaced.get(match[0], match[0]), text)


def _is_passive(line: str) -> bool:
    told = line.strip()
    return told.startswith(_PASSIVE) or "func.call" in told or '"stablehlo.scatter"' in told


def _sizes(text: str, opened: str) -> dict[str, int]:
    """The sizes of @main's arguments that were left open."""
    shapes = [_argument_shapes(source) for source in (text, opened)]
    return {
        f"arg{n}.{d}": size
        for n, (known, left) in enumerate(zip(*shapes, strict=True))
        for d, (size, open_size) in enumerate(zip(known, left, strict=True))
        if open_size is None and size is not None
    }


def _argument_shapes(text: str) -> list[tuple[int | None, ...]]:
    graph = read(text)  # an argument lives as long as its module
    return [mlir.tensor_shape(a.raw.type) for a in graph.functions["main"].body.arguments]
