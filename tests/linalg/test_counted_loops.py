"""Which loops count, and that they leave as `scf.for`."""

import jax
import jax.numpy as jnp
import pytest
from leaving import left_as_linalg

import hlo_lower as hl
from hlo_lower.ir.reader import read
from hlo_lower.lowering.loops import CountedLoop, read_counted

LOOP = """
func.func @main(%a: tensor<i32>, %n: tensor<i32>, %f: tensor<f32>) -> (tensor<i32>, tensor<i32>, tensor<f32>) {{
  %r:3 = stablehlo.while(%i = %a, %m = %n, %x = %f) : tensor<i32>, tensor<i32>, tensor<f32>
    cond {{
      {limit}
      %p = stablehlo.compare {direction}, {compared} : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %p : tensor<i1>
    }} do {{
      %one = stablehlo.constant dense<{step}> : tensor<i32>
      %next = stablehlo.add {added} : tensor<i32>
      %y = stablehlo.add %x, %x : tensor<f32>
      stablehlo.return %next, {kept}, %y : tensor<i32>, tensor<i32>, tensor<f32>
    }}
  return %r#0, %r#1, %r#2 : tensor<i32>, tensor<i32>, tensor<f32>
}}
"""

COUNTED = {"limit": "", "direction": "LT", "compared": "%i, %m", "step": "1", "added": "%i, %one", "kept": "%m"}


def counted(**changes: str) -> CountedLoop | None:
    """What counts in the loop with some parts replaced."""
    graph = read(LOOP.format(**COUNTED | changes))
    [loop] = [node for node in graph.main.body.nodes if node.name == "stablehlo.while"]
    return read_counted(loop)


def test_a_loop_below_a_carried_limit_counts():
    """The limit is a carried value that the body returns as it is; the one may stand on either side."""
    assert counted() == counted(added="%one, %i") == CountedLoop(0, None, 1, False)


def test_a_loop_below_a_constant_counts():
    """The limit is a constant, in the condition."""
    limit = "%limit = stablehlo.constant dense<7> : tensor<i32>"
    assert counted(limit=limit, compared="%i, %limit") == CountedLoop(0, 7, None, False)


@pytest.mark.parametrize(
    "changes",
    [
        {"direction": "LE"},
        {"direction": "NE"},
        {"step": "2"},
        {"compared": "%m, %i"},
        {"kept": "%next"},
        {"added": "%m, %one"},
        {"limit": "%limit = stablehlo.add %m, %m : tensor<i32>", "compared": "%i, %limit"},
    ],
    ids=lambda changes: " ".join(changes),
)
def test_near_misses_do_not_count(changes):
    """Another comparison, step, limit or counter is no counted loop."""
    assert counted(**changes) is None


def test_scans_and_fori_loops_leave_as_scf_for():
    """JAX's own loops count, nested ones too; one that stops by its data is scf.while."""

    def loops(x, n):
        x, _ = jax.lax.scan(lambda c, a: (c + jax.lax.fori_loop(0, 3, lambda i, s: s + i, a), a), x, jnp.arange(5))
        x = jax.lax.fori_loop(0, n, lambda i, s: s * 2, x)
        return jax.lax.while_loop(lambda s: s * s < 100, lambda s: s + 1, x)

    text, report = left_as_linalg(hl.export(loops, jnp.int32(0), jnp.int32(3)), named=True)
    assert (report.counted_loops, report.other_loops, report.is_complete) == (3, 1, True), report.lines()
    assert (text.count("scf.for"), text.count("scf.while")) == (3, 1)


def test_the_counter_after_the_loop_is_the_limit_or_the_start():
    """A counter that is used behind its loop is the greater of the two, also where the loop never runs."""
    text, report = left_as_linalg(LOOP.format(**COUNTED), named=True)
    assert report.counted_loops == 1
    assert "arith.maxsi" in text
