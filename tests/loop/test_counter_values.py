"""What integers of a loop's body are, iteration by iteration: as NumPy has them, or unknown."""

import numpy as np
import pytest

from hlo_lower.ir import mlir
from hlo_lower.ir.view import Graph
from hlo_lower.lowering.linalg.loops import CounterValues

BODY = """\
func.func @main(%from: index, %data: i32) {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c5 = arith.constant 5 : index
  %n = arith.constant 7 : i32
  %m = arith.constant -3 : i32
  %big = arith.constant 2147483647 : i32
  %true = arith.constant true
  %t = arith.constant dense<4> : tensor<i32>
  scf.for %k = %c0 to %c5 step %c1 {{
    %i = arith.index_cast %k : index to i32
    %low = arith.addi %i, %m : i32
    %less = arith.cmpi slt, %i, %n : i32
    {value}
  }}
  return
}}
"""

K = np.arange(5)

KNOWN = {
    "%v = arith.muli %i, %n : i32": K * 7,
    "%v = arith.select %less, %low, %n : i32": K - 3,
    "%p = arith.cmpi slt, %low, %m : i32 %v = arith.select %p, %n, %low : i32": K - 3,
    "%p = arith.cmpi ult, %i, %n : i32 %v = arith.select %p, %i, %n : i32": K,
    "%v = arith.index_castui %i : i32 to index": K,
    "%e = tensor.from_elements %low : tensor<i32> %v = tensor.extract %e[] : tensor<i32>": K - 3,
    "%v = tensor.extract %t[] : tensor<i32>": K * 0 + 4,
    "%e = arith.extui %less : i1 to i32 %v = arith.addi %e, %low : i32": K - 2,
}

UNKNOWN = (
    "%v = arith.addi %i, %data : i32",
    "%v = arith.addi %i, %big : i32",
    "%v = arith.index_castui %low : i32 to index",
    "%v = arith.minui %low, %n : i32",
    "%p = arith.cmpi ult, %low, %n : i32 %v = arith.select %p, %i, %n : i32",
    "%v = arith.extsi %less : i1 to i32",
    "%v = arith.index_cast %less : i1 to index",
    "%v = arith.maxsi %less, %true : i1",
    "%v = arith.divsi %i, %n : i32",
    "%v = arith.index_cast %from : index to i32",
)


def value_of(text):
    """What the value %v of the body is."""
    context = mlir.make_context()
    mlir.run_pass(mlir.parse_module("module {}", context).operation, "builtin.module(stablehlo-legalize-to-linalg)")
    body = BODY.format(value=text.replace(" %v =", "\n%v ="))
    graph = Graph(mlir.parse_module(body, context), "body", has_locations=False)
    [loop] = [node for node in graph.main.body.nodes if node.name == "scf.for"]
    [block] = loop.blocks
    *_, last, _ = block.nodes
    return CounterValues.of_range(block.argument(0), range(5)).of(last.result())


@pytest.mark.parametrize("text", KNOWN)
def test_numbers_of_all_iterations(text):
    """Computed as the ops say, at the ends of their types, too."""
    assert np.array_equal(value_of(text), KNOWN[text])


@pytest.mark.parametrize("text", UNKNOWN)
def test_what_is_not_known(text):
    """Data, numbers that wrap around, negative ones read without a sign, and i1 read with one."""
    assert value_of(text) is None


def test_loops_that_are_too_long():
    """A loop of more iterations than are looked at has no values; neither has one without any."""
    assert CounterValues.of_range(None, range(1 << 40)) is None
    assert CounterValues.of_range(None, range(0)) is None
