"""Which loops count, and that they leave as `scf.for`."""

import jax
import jax.numpy as jnp
import pytest
from leaving import left_as_linalg
from untyped_mlir import module

import hlo_lower as hl
from hlo_lower.ir.reader import read
from hlo_lower.lowering.loops import CountedLoop, read_counted


def loop(*, compared="LT, %i, %m", added="%i, 1", kept="%m", limit=""):
    """A loop that counts, in one of its forms."""
    body = f"""%r:3 = while(%i = %a, %m = %n, %x = %f) cond {{ {limit} %p = compare {compared}; return %p }} do {{
      %next = add {added}; %y = add %x, %x; return %next, {kept}, %y
    }}"""
    return module("%a: i32, %n: i32, %f: f32", body, "%r#0, %r#1, %r#2")


LOOPS = {
    "below a carried limit": (loop(), CountedLoop(0, None, 1, False)),
    "one and the counter": (loop(added="1, %i"), CountedLoop(0, None, 1, False)),
    "below a constant": (loop(compared="LT, %i, 7"), CountedLoop(0, 7, None, False)),
    "LE": (loop(compared="LE, %i, %m"), None),
    "NE": (loop(compared="NE, %i, %m"), None),
    "by two": (loop(added="%i, 2"), None),
    "the limit below": (loop(compared="LT, %m, %i"), None),
    "another limit": (loop(kept="%next"), None),
    "another counter": (loop(added="%m, 1"), None),
    "a computed limit": (loop(compared="LT, %i, %l", limit="%l = add %m, %m;"), None),
}


@pytest.mark.parametrize("name", LOOPS)
def test_a_loop_that_counts_is_told_from_near_misses(name):
    """The limit is constant, or carried and returned as it is; the one may stand on either side."""
    text, expected = LOOPS[name]
    graph = read(text)
    [node] = [node for node in graph.main.body.nodes if node.name == "stablehlo.while"]
    assert read_counted(node) == expected


def test_scans_and_fori_loops_leave_as_scf_for():
    """JAX's own loops count, nested ones too; one that stops by its data is scf.while."""

    def loops(x, n):
        x, _ = jax.lax.scan(lambda c, a: (c + jax.lax.fori_loop(0, 3, lambda i, s: s + i, a), a), x, jnp.arange(5))
        x = jax.lax.fori_loop(0, n, lambda i, s: s * 2, x)
        return jax.lax.while_loop(lambda s: s * s < 100, lambda s: s + 1, x)

    text, report = left_as_linalg(hl.export(loops, jnp.int32(0), jnp.int32(3)))
    assert (report.counted_loops, report.other_loops, report.is_complete) == (3, 1, True), report.lines()
    assert (text.count("scf.for"), text.count("scf.while")) == (3, 1)


def test_the_counter_after_the_loop_is_the_limit_or_the_start():
    """A counter that is used behind its loop is the greater of the two, also where the loop never runs."""
    text, report = left_as_linalg(loop())
    assert report.counted_loops == 1
    assert "arith.maxsi" in text
