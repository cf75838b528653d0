"""Random bits that one version draws by an op are written out round by round, and derived."""

import re

import numpy as np
import pytest
from rule_examples import target
from untyped_mlir import module, of

import hlo_lower as hl
from hlo_lower.verify.align.drawn_bits import draws_written_out
from hlo_lower.verify.run import Executable

DERIVES = True
TARGET = target("npu", "rng_bit_generator")
FORMS = [("THREE_FRY", 2), ("PHILOX", 2), ("DEFAULT", 3)]
SHAPES = [(3, 5), (), (4,), (3, 4, 1), (2, 7)]


def drawn(algorithm, size, element="ui32", shape=(3, 2)):
    """A module that draws once."""
    s = of([size], "ui64")
    draw = f"rng_bit_generator %s, algorithm = {algorithm} : ({s}) -> ({s}, {of(shape, element)})"
    return module(f"%s: {s}", f"%a, %b = {draw}", "%a, %b")


CASES = [(*form, element, shape) for form in FORMS for element in ("ui8", "ui16", "ui32", "ui64") for shape in SHAPES]


@pytest.mark.few(6)
@pytest.mark.parametrize(("algorithm", "size", "element", "shape"), CASES)
def test_what_is_written_out_is_what_xla_draws(algorithm, size, element, shape):
    """The next state, too, and where counters run over the ends of their words."""
    text = drawn(algorithm, size, element, shape)
    [written, _] = draws_written_out([text, ""])
    ends = np.array([7, 2**32 - 1, 2**64 - 1], np.uint64)[:size]
    for state in (np.random.default_rng(0).integers(0, 2**64, size, np.uint64), np.full(size, 2**64 - 1, "u8"), ends):
        found = [Executable(one, "quick").run([state]) for one in (written, text)]
        for one, right in zip(*found, strict=True):
            np.testing.assert_array_equal(one, right)


def test_what_is_not_known_is_not_written_out():
    """Nothing is drawn, or the other version draws by an op as well."""
    assert draws_written_out([drawn("PHILOX", 2, shape=(0, 3)), ""]) is None
    assert draws_written_out([drawn("PHILOX", 2)] * 2) is None


@pytest.mark.parametrize(("algorithm", "size"), FORMS)
def test_rounds_are_derived_one_by_one(algorithm, size):
    """No region is only run, and all are small: what several share that is cheap does not make them one."""
    text = drawn(algorithm, size)
    verdict = hl.verify(text, hl.lower(text, target=TARGET), level="regions")
    assert verdict.ok
    assert all(region.how == "derived" for region in verdict.regions)


@pytest.mark.sweep
@pytest.mark.parametrize(
    ("algorithm", "constant"),
    [("THREE_FRY", "dense<466688986>"), ("THREE_FRY", "dense<17>"), ("PHILOX", "dense<2654435769>")],
)
@pytest.mark.parametrize("place", [0, -1])
def test_another_constant_in_one_round_is_seen(algorithm, constant, place):
    """By the regions alone."""
    text = drawn(algorithm, 2)
    lowered = hl.lower(text, target=TARGET).text
    at = [found.start() for found in re.finditer(re.escape(constant), lowered)][place]
    number = int(constant[6:-1])
    wrong = lowered[:at] + lowered[at:].replace(constant, f"dense<{number + 1}>", 1)
    assert not hl.verify(text, wrong, level="regions").ok
