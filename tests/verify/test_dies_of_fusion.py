"""Modules on which XLA's newer emitter ends the process."""

import numpy as np
import pytest

from hlo_lower.verify.run import Executable

NARROWED = """func.func public @main(%a: tensor<5x4xi64>, %b: tensor<5x4xi64>) -> tensor<5x4xi32> {
  %0 = stablehlo.convert %a : (tensor<5x4xi64>) -> tensor<5x4xi32>
  %1 = stablehlo.convert %b : (tensor<5x4xi64>) -> tensor<5x4xi32>
  %2 = stablehlo.OP %0, %1 : tensor<5x4xi32>
  return %2 : tensor<5x4xi32>
}"""


@pytest.mark.parametrize("rounding", ["exact", "quick", "default"])
@pytest.mark.parametrize(("op", "right"), [("or", np.bitwise_or), ("and", np.bitwise_and)])
def test_bits_of_narrowed_integers_are_run(op, right, rounding):
    """`or` and `and` of converted integers are compiled by the older emitter, and right."""
    a, b = np.arange(-10, 10).reshape(5, 4), 7 * np.arange(20).reshape(5, 4)
    [found] = Executable(NARROWED.replace("OP", op), rounding).run([a, b])
    assert found.tolist() == right(a, b).tolist()
