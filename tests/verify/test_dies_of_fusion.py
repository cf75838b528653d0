"""Modules on which XLA's newer emitter ends the process."""

import numpy as np
import pytest
from untyped_mlir import module

from hlo_lower.verify.run import Executable

NARROWED = "%0 = convert %a -> 5x4xi32; %1 = convert %b -> 5x4xi32; %2 = OP %0, %1"


@pytest.mark.parametrize("rounding", ["exact", "quick", "default"])
@pytest.mark.parametrize(("op", "right"), [("or", np.bitwise_or), ("and", np.bitwise_and)])
def test_bits_of_narrowed_integers_are_run(op, right, rounding):
    """`or` and `and` of converted integers are compiled by the older emitter, and right."""
    a, b = np.arange(-10, 10).reshape(5, 4), 7 * np.arange(20).reshape(5, 4)
    text = module("%a: 5x4xi64, %b: 5x4xi64", NARROWED.replace("OP", op), "%2")
    [found] = Executable(text, rounding).run([a, b])
    assert found.tolist() == right(a, b).tolist()
