"""The binary search of the sorted forms against NumPy's."""

import numpy as np
import pytest

from hlo_lower.ir import mlir
from hlo_lower.ir.builder import Builder
from hlo_lower.ir.reader import read
from hlo_lower.ir.writer import to_text
from hlo_lower.lowering.scatter.numbered_rows import last_at_most
from hlo_lower.verify.run import Executable

ROWS = 7


@pytest.mark.few(4)
@pytest.mark.parametrize("batches", [1, 3])
@pytest.mark.parametrize("n", [1, 2, 3, 4, 7, 8, 9])
def test_the_last_place_whose_key_is_at_most_the_row(n, batches):
    """It is one before where searchsorted would put the row on the right; 0, and its key, where all are greater."""
    given, found = f"tensor<{batches}x{n}xi32>", f"tensor<{batches}x{ROWS}xi32>"
    graph = read(f"""func.func public @main(%k: {given}, %c: {given}) -> ({found}, {found}, {found}) {{
  %r:3 = stablehlo.custom_call @x() : () -> ({found}, {found}, {found})
  return %r#0, %r#1, %r#2 : {found}, {found}, {found}
}}""")
    keys, column = graph.main.body.arguments
    stand_in = graph.main.body.terminator.operand(0).node
    with mlir.active(graph.context):
        build = Builder.before(stand_in)
        told = last_at_most(build, keys, ROWS)
        for old, new in zip(stand_in.results, (told.place, told.key, told.of(build, column)), strict=True):
            old.raw.replace_all_uses_with(new.raw)
        stand_in.raw.erase()
    executable, rng = Executable(to_text(graph), "exact"), np.random.default_rng(n)
    for low, high in ((0, ROWS + 1), (0, 2), (ROWS, ROWS + 1), (3, 5), (-1, ROWS)):
        drawn = np.sort(rng.integers(low, high, (batches, n)), axis=1).astype(np.int32)
        other = rng.integers(0, 99, (batches, n)).astype(np.int32)
        places = np.stack([np.searchsorted(row, np.arange(ROWS), side="right") for row in drawn])
        places = np.maximum(places - 1, 0)
        expected = [places, np.take_along_axis(drawn, places, 1), np.take_along_axis(other, places, 1)]
        for result, right in zip(executable.run([drawn, other]), expected, strict=True):
            assert result.tolist() == right.tolist()
