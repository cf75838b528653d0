"""Sizes that are not known: what the laws say at any of them is what XLA computes there, and nothing is derived that is
wrong at one of them."""

from itertools import product
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("z3")

from evaluated import Evaluated, bits_of, z3
from test_laws import drawn

from hlo_lower.ir import mlir
from hlo_lower.ir.shapes.bind import bind_module
from hlo_lower.verify.pull.derive import _law, _valid, _sizes
from hlo_lower.verify.pull.prover import Prover
from hlo_lower.verify.pull.sizes import extent
from hlo_lower.verify.read.program import Program
from hlo_lower.verify.run import Executable, read_signature

DYNAMIC = (Path(__file__).parent / "dynamic.mlir").read_text()
SHAPES = [dict(zip("nabm", sizes, strict=True)) for sizes in ((2, 3, 2, 4), (0, 1, 3, 2), (1, 0, 1, 0), (3, 2, 0, 1))]
"""Sizes: of x, of both dims of y, and of the updates."""


def bound(text, sizes):
    """A module at sizes by place, as text."""
    return mlir.print_module(bind_module(mlir.parse_module(text), sizes))


def prover_of(text, chain=1):
    """A prover of a module and itself."""
    programs = (Program(mlir.parse_module(text)),) * 2
    valid = _valid(programs, 60, "xla")
    found = Prover(programs, _law, seconds=60, oob="xla", chain=chain, sizes=_sizes, assumptions=valid.assumptions)
    found.invariant |= valid.invariant
    return found


def wrong_elements(text, choices):
    """Yield what the laws say otherwise than XLA computes, at some sizes."""
    prover = prover_of(text)
    rng = np.random.default_rng(0)
    values = prover.programs[0].entries["main"].returned
    shapes = [prover.type_of_function(0, value)[0] for value in values]
    places = [prover.positions.place(f"p{k}.", shape) for k, shape in enumerate(shapes)]
    terms = [prover.element(0, value, place) for value, place in zip(values, places, strict=True)]
    for sizes in choices:
        text_here = bound(text, sizes)
        inputs = [drawn(aval, rng) for aval in read_signature(mlir.parse_module(text_here)).arguments]
        evaluated = Evaluated(prover, inputs)
        for k, expected in enumerate(Executable(text_here, "quick").run(inputs)):
            shape = tuple(evaluated(extent(n), {}).as_long() for n in shapes[k])
            if shape != expected.shape:
                yield k, sizes, shape, expected.shape
                continue
            for at in product(*map(range, shape)):
                names = [term.decl().name() for term in places[k]]
                told = evaluated(terms[k], dict(zip(names, (z3.BitVecVal(n, 32) for n in at), strict=True)))
                if told.as_long() != bits_of(expected[at], told.size()):
                    yield k, sizes, at, expected[at]


def test_a_law_says_what_xla_computes_at_any_sizes():
    """Shapes and elements, of each op that takes its sizes from values, and of those that have any."""
    choices = [{"arg0.0": s["n"], "arg1.0": s["a"], "arg1.1": s["b"], "arg2.0": s["m"], "arg3.0": s["m"], "arg5.1": s["b"]} for s in SHAPES]
    assert list(wrong_elements(DYNAMIC, choices)) == []
