"""Lifting a region to windows: elementwise ops, captured values, calls, and what goes through stablehlo.map."""

import numpy as np
import pytest

import hlo_lower as hl
from hlo_lower.verify.run import Executable

OPERAND = np.arange(1, 9, dtype=np.float32)
UPDATES = np.array([2.0, 0.5, -1.0], np.float32)


def run(body, functions="", outer="", rank=1):
    """Lower a window of 3 at 4 (or a loop over 3 points at 4, 5 and 4) with this region; the text and the result."""
    window, index, at = ("update_window_dims = [0], ", "1", "[4]") if rank == 1 else ("", "3x1", "[[4], [5], [4]]")
    inserted, ivd = ("", 0) if rank == 1 else ("inserted_window_dims = [0], ", 1)
    text = f"""func.func public @main(%o: tensor<8xf32>, %up: tensor<3xf32>, %k: tensor<f32>) -> tensor<8xf32> {{
  %i = stablehlo.constant dense<{at}> : tensor<{index}xi32>
  {outer}
  %r = "stablehlo.scatter"(%o, %i, %up) <{{scatter_dimension_numbers = #stablehlo.scatter<{window}{inserted}
    scatter_dims_to_operand_dims = [0], index_vector_dim = {ivd}>}}> ({{
  ^bb0(%c: tensor<f32>, %u: tensor<f32>):
    {body}
  }}) : (tensor<8xf32>, tensor<{index}xi32>, tensor<3xf32>) -> tensor<8xf32>
  return %r : tensor<8xf32>
}}
{functions}
"""
    lowered = hl.lower(text).text
    [result] = Executable(lowered, "exact").run([OPERAND, UPDATES, np.float32(10)])
    return lowered, result


def expected(combine, rank=1):
    """The reference for the same."""
    result = OPERAND.copy()
    for n, place in enumerate((4, 5, 6) if rank == 1 else (4, 5, 4)):
        result[place] = combine(result[place], UPDATES[n])
    return result.tolist()


F = "tensor<f32>"
HALF = f"%h = stablehlo.constant dense<0.5> : {F}"
CALLEE = f"""func.func private @mean(%a: {F}, %b: {F}) -> {F} {{
  {HALF}
  %s = stablehlo.add %a, %b : {F}
  %r = stablehlo.multiply %s, %h : {F}
  return %r : {F}
}}"""
NOTE = f'%{{}} = stablehlo.custom_call @Sharding({{}}) {{{{mhlo.sharding = "{{{{replicated}}}}"}}}} : ({F}) -> {F}'
"""Where a scalar is to live: a name for it, and the scalar."""
IF = f"""%p = stablehlo.compare GT, %u, %c : ({F}, {F}) -> tensor<i1>
    %n = "stablehlo.if"(%p) ({{
      stablehlo.return %u : {F}
    }}, {{
      %m = stablehlo.negate %c : {F}
      stablehlo.return %m : {F}
    }}) : (tensor<i1>) -> {F}
    stablehlo.return %n : {F}"""


@pytest.mark.parametrize("rank", [1, 0], ids=["window", "loop"])
@pytest.mark.parametrize(
    ("body", "outer", "combine", "mapped"),
    [
        (
            f"{HALF}\n%m = stablehlo.multiply %u, %h : {F}\n%s = stablehlo.add %c, %m : {F}\nstablehlo.return %s : {F}",
            "",
            lambda c, u: c + u / 2,
            False,
        ),
        (
            f"%p = stablehlo.compare GT, %u, %h : ({F}, {F}) -> tensor<i1>\n"
            f"%s = stablehlo.select %p, %u, %c : tensor<i1>, {F}\nstablehlo.return %s : {F}",
            HALF,
            lambda c, u: u if u > 0.5 else c,
            False,
        ),
        (
            f"%s = stablehlo.add %c, %n : {F}\nstablehlo.return %s : {F}",
            f"%n = stablehlo.negate %k : {F}",
            lambda c, u: c - 10,
            False,
        ),
        (
            f"%s = func.call @mean(%c, %u) : ({F}, {F}) -> {F}\nstablehlo.return %s : {F}",
            "",
            lambda c, u: (c + u) / 2,
            False,
        ),
        (
            f"{NOTE.format('d', '%c')}\n{NOTE.format('v', '%u')}\n%s = stablehlo.add %d, %v : {F}\n"
            f"{NOTE.format('t', '%s')}\n%b = stablehlo.optimization_barrier %t : {F}\nstablehlo.return %b : {F}",
            "",
            lambda c, u: c + u,
            False,
        ),
        (IF, "", lambda c, u: u if u > c else -c, True),
        (
            f"{NOTE.format('w', '%c')}\n{IF.replace('negate %c', 'negate %w')}",
            "",
            lambda c, u: u if u > c else -c,
            True,
        ),
        (
            IF.replace("negate %c", "add %c, %h"),
            HALF,
            lambda c, u: u if u > c else c + np.float32(0.5),
            True,
        ),
    ],
    ids=[
        *("constant inside", "captured constant", "captured value", "call", "notes", "if", "if with a note"),
        "if with a captured constant",
    ],
)
def test_a_region_is_applied_to_each_element(body, outer, combine, mapped, rank):
    """Elementwise regions become ops on windows; others go through stablehlo.map; the result is the region's."""
    text, result = run(body, CALLEE, outer, rank)
    assert result.tolist() == expected(combine, rank)
    assert ("stablehlo.map" in text) is mapped
    assert "Sharding" not in text
