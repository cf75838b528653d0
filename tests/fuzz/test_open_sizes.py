"""Fuzzed scatters of dynamic shape: sizes are left open, it is lowered without them, and they are bound again.

What is lowered is judged like any other case then, so that a bound that is taken from the wrong dim, or at the wrong
time, shows as a wrong result. Sizes of 0 are left open, too.
"""

import re

import numpy as np
import pytest
from untyped_mlir import module

from hlo_lower.ir import mlir
from hlo_lower.ir.binding import bind
from hlo_lower.ir.reader import read
from hlo_lower.lowering.options import Options
from hlo_lower.lowering.pipeline import lower
from hlo_lower.testing import case_of_seed, judge, module_text

TYPE = re.compile(r"tensor<(?:\d+x)+[^<>]*(?:<[^<>]*>)?>")
PASSIVE = ("func.func", "return", "}) :", "module")
"""Beginnings of lines whose types may be changed: signatures, what returns, and the scatter's own."""


def open_sizes(text, seed):
    """A module with some of its sizes unknown: of each tensor type that stands only in signatures and on scatters."""
    rng, others = np.random.default_rng(seed), []
    for line in map(str.strip, text.splitlines()):
        if not line.startswith(PASSIVE) and "func.call" not in line and '"stablehlo.scatter"' not in line:
            others += TYPE.findall(line)
    replaced = {}
    for found in sorted(set(TYPE.findall(text)) - set(others)):
        *sizes, element = found.removeprefix("tensor<").split("x", found.count("x"))
        hidden = [("?" if rng.random() < 0.6 else s) if s.isdigit() else s for s in sizes]
        replaced[found] = "tensor<" + "x".join((*hidden, element))
    return TYPE.sub(lambda match: replaced.get(match[0], match[0]), text)


def shapes_of(text):
    """The shapes of @main's arguments."""
    graph = read(text)  # an argument lives as long as its module
    return [mlir.tensor_shape(a.raw.type) for a in graph.functions["main"].body.arguments]


def with_open_sizes(oob, seed):
    """A function that lowers a module with some of its sizes unknown, and gives them back afterwards."""

    def lowered(text):
        opened = open_sizes(text, seed)
        found = lower(opened, options=Options(oob=oob), name="fuzzed")
        pairs = enumerate(zip(shapes_of(text), shapes_of(opened), strict=True))
        dims = ((n, d, *sizes) for n, pair in pairs for d, sizes in enumerate(zip(*pair, strict=True)))
        sizes = {f"arg{n}.{d}": size for n, d, size, left in dims if left is None and size is not None}
        found.graph = bind(found.graph, sizes) if sizes else found.graph
        return found

    return lowered


def failures(oob, seeds, size=10):
    """What fails, one message for each case."""
    cases, told = [case_of_seed(seed) for seed in seeds], []
    for k in range(0, len(cases), size):
        batch = cases[k : k + size]
        assert "?x" in open_sizes(module_text(batch), k)
        told += [f"{o.name}: {o.failure}" for o in judge(batch, with_open_sizes(oob, k), oob).outcomes if o.failure]
    return told


def test_sizes_are_left_open():
    """Types of signatures and scatters lose sizes, of 0 as well; those of other ops do not."""
    text = module("%o: 5x4xf32, %e: 0x3xf32", "%k = constant 1.0 : 7xf32; return %o")
    found = {open_sizes(text, seed) for seed in range(20)}
    assert len({t.splitlines()[0] for t in found}) > 3
    assert all("tensor<7xf32>" in t for t in found)
    assert {"tensor<0x" in t for t in found} == {True, False}


@pytest.mark.parametrize("oob", ["xla", pytest.param("spec", marks=pytest.mark.sweep)])
def test_fuzzed_scatters_of_dynamic_shape(oob):
    """No case differs from the reference, whichever of its sizes are left open."""
    assert failures(oob, range(40)) == []


@pytest.mark.sweep
@pytest.mark.parametrize("oob", ["xla", "spec"])
def test_many_fuzzed_scatters_of_dynamic_shape(oob):
    """The same at length."""
    assert failures(oob, range(1_000, 3_000)) == []
