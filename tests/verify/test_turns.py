"""The integers that nested loops meet are known where constants and turns alone decide: by taking these turns."""

import jax
import jax.numpy as jnp
import pytest
from jax import lax

import hlo_lower as hl

ROWS = "stablehlo.constant dense<3> : tensor<i32>"
"""How often the outer loop of `triangle` turns."""


def triangle(x):
    """A write to x[j, j - 1 - i] for each i below j, for j of 1, 2 and 3."""

    def row(j, x):
        def column(state):
            i, x = state
            return i + 1, x.at[j, j - 1 - i].set(7.0, mode="promise_in_bounds")

        return lax.while_loop(lambda state: state[0] < j, column, (jnp.int32(0), x))[1]

    return lax.fori_loop(1, 4, row, x)


@pytest.mark.sweep
@pytest.mark.parametrize(("rows", "is_inside"), [(3, True), (4, False)])
def test_an_index_between_two_counters_is_known(rows, is_inside):
    """A write without a guard is right in rows 1 to 3 of four, and is not in a row 4, which one more turn meets."""
    given = jax.jit(triangle).lower(jnp.zeros((4, 4))).as_text()
    unguarded = hl.lower(given).text
    assert "stablehlo.select" not in unguarded.split("dynamic_update_slice")[0].rsplit("concatenate", 1)[1]
    assert given.count(ROWS) == unguarded.count(ROWS) == 1
    turned = [text.replace(ROWS, ROWS.replace("<3>", f"<{rows}>")) for text in (given, unguarded)]
    assert hl.verify(*turned, level="regions").ok == is_inside
