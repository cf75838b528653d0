"""Small modules with one scatter, as text."""

import pytest

POINTS = "inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1"
TILE = "update_window_dims = [0], scatter_dims_to_operand_dims = [0]"
ASSIGN = "stablehlo.return %d : tensor<{e}>"
ADD = "%s = stablehlo.add %c, %d : tensor<{e}> stablehlo.return %s : tensor<{e}>"


def scatter_module(
    operand: str = "8xf32",
    indices: str = "5x1xi32",
    updates: str = "5xf32",
    numbers: str = POINTS,
    body: str = ASSIGN,
    *,
    before: str = "",
    used: str = "%o, %i, %u",
    returned: str = "%r",
    more: str = "",
) -> str:
    """A module whose main scatters %u into %o at %i.

    Args:
      operand, indices, updates: their types.
      numbers: the dimension numbers.
      body: the region, of element type {e}, on current %c and update %d.
      before: ops before the scatter.
      used: what is scattered instead of the arguments.
      returned: what is returned instead of the scatter's result.
      more: further arguments.
    """
    o, i, u = (f"tensor<{t}>" for t in (operand, indices, updates))
    element = operand.rsplit("x", 1)[-1]
    return f"""func.func public @main(%o: {o}, %i: {i}, %u: {u}{more}) -> {o} {{
  {before}
  %r = "stablehlo.scatter"({used}) <{{scatter_dimension_numbers = #stablehlo.scatter<{numbers}>}}> ({{
  ^bb0(%c: tensor<{element}>, %d: tensor<{element}>):
    {body.format(e=element)}
  }}) : ({o}, {i}, {u}) -> {o}
  return {returned} : {o}
}}"""


@pytest.fixture(scope="session")
def scatter_text():
    """The function that writes the modules."""
    return scatter_module


@pytest.fixture(autouse=True)
def _by_runs(request):
    """What is tested here is what runs show; a module with `DERIVES = True` has derivations, too."""
    if not getattr(request.module, "DERIVES", False):
        request.getfixturevalue("judged_by_runs")
