"""Scatter modules as text."""

import pytest


def scatter_module(
    operand="8x4xf32",
    indices="1xi32",
    updates="4xf32",
    dims="update_window_dims = [0], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0]",
    ivd=0,
    body="stablehlo.return %u : $t",
    producers="",
    index="%i",
    functions="",
    region="",
):
    """A public @main of operand %o, indices %i and updates %up with one scatter.

    Args:
      operand, indices, updates: types without `tensor<>`.
      dims: the dimension numbers but for the index vector dim.
      ivd: the index vector dim.
      body: the region of the current value %c and the update %u; $t is their type.
      producers: lines before the scatter.
      index: the value that the scatter takes as indices.
      functions: further functions.
      region: element type of the region, by default the operand's.
    """
    element = region or operand.split("x")[-1] if not operand.endswith(">") else "complex<f32>"
    result = operand[: len(operand) - len(operand.split("x")[-1])] + element if region else operand
    scalar = f"tensor<{element}>"
    return f"""func.func public @main(%o: tensor<{operand}>, %i: tensor<{indices}>, %up: tensor<{updates}>)
    -> tensor<{result}> {{
  {producers}
  %r = "stablehlo.scatter"(%o, {index}, %up) <{{scatter_dimension_numbers = #stablehlo.scatter<{dims},
    index_vector_dim = {ivd}>}}> ({{
  ^bb0(%c: {scalar}, %u: {scalar}):
    {body.replace("$t", scalar)}
  }}) : (tensor<{operand}>, tensor<{indices}>, tensor<{updates}>) -> tensor<{result}>
  return %r : tensor<{result}>
}}
{functions}
"""


@pytest.fixture(scope="session")
def module():
    """The function above."""
    return scatter_module
