"""The drawings of the documents: what a scatter of each subset writes, made by the function that reports use.

Run as a script it writes them anew:

    python tests/report/test_subset_pictures.py
"""

from pathlib import Path

import pytest

import hlo_lower as hl
from hlo_lower.report.picture import svg_of

DOCS = Path(__file__).resolve().parents[2] / "docs"
BATCH = "input_batching_dims = [0], scatter_indices_batching_dims = [0], "

PROGRAMS = {
    "Full": ("16x8", "0", "16x8", "update_window_dims = [0, 1]", ""),
    "Tile": ("16x8", "2", "4x8", "update_window_dims = [0, 1], scatter_dims_to_operand_dims = [0, 1]", ""),
    "Point": ("16x8", "2", "", "inserted_window_dims = [0, 1], scatter_dims_to_operand_dims = [0, 1]", ""),
    "BatchedTile": ("6x16", "6x1", "6", f"{BATCH}inserted_window_dims = [1], scatter_dims_to_operand_dims = [1]", "1"),
    "Rows": (
        *("16x8", "4x1", "4x8"),
        "update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0]",
        "run",
    ),
    "Filter": (
        *("16x8", "4x1", "4x8"),
        "update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0]",
        "1",
    ),
    "Points": ("16x8", "5x2", "5", "inserted_window_dims = [0, 1], scatter_dims_to_operand_dims = [0, 1]", "1"),
    "Windows": (
        *("16x8", "3x2", "3x4x2"),
        "update_window_dims = [1, 2], scatter_dims_to_operand_dims = [0, 1]",
        "1",
    ),
}
"""Shapes of operand, indices and updates, dimension numbers, and the dim of the index vector; "run": base + iota."""


def module(subset):
    """A scatter-add of a subset."""
    operand, indices, updates, numbers, vector = PROGRAMS[subset]
    axis = "1" if vector == "run" else vector or "0"
    given = f"tensor<{indices}xi32>" if vector != "run" else "tensor<i32>"
    made = "%j" if vector == "run" else "%i"
    run = f"""
      %iota = stablehlo.iota dim = 0 : tensor<{indices}xi32>
      %base = stablehlo.broadcast_in_dim %i, dims = [] : (tensor<i32>) -> tensor<{indices}xi32>
      %j = stablehlo.add %iota, %base : tensor<{indices}xi32>"""
    update = f"tensor<{updates}xf32>" if updates else "tensor<f32>"
    types = f"(tensor<{operand}xf32>, tensor<{indices}xi32>, {update}) -> tensor<{operand}xf32>"
    return f"""func.func @main(%x: tensor<{operand}xf32>, %i: {given}, %u: {update}) -> tensor<{operand}xf32> {{
      {run if vector == "run" else ""}
      %0 = "stablehlo.scatter"(%x, {made}, %u) <{{
          scatter_dimension_numbers = #stablehlo.scatter<{numbers}, index_vector_dim = {axis}>}}> ({{
      ^bb0(%a: tensor<f32>, %b: tensor<f32>):
        %s = stablehlo.add %a, %b : tensor<f32>
        stablehlo.return %s : tensor<f32>
      }}) : {types}
      return %0 : tensor<{operand}xf32>
    }}"""


def drawn(subset):
    """The drawing of a scatter of a subset."""
    [record] = hl.classify(module(subset))
    assert record.subset == subset
    return svg_of(record, alone=True) + "\n"


def path_of(subset):
    """Where it stands."""
    return DOCS / "figures" / f"writes_{subset.lower()}.svg"


@pytest.mark.parametrize("subset", PROGRAMS)
def test_the_documents_show_what_reports_draw(subset):
    """The figure is what the function gives for a scatter of that subset, and a document shows it."""
    assert path_of(subset).read_text() == drawn(subset)
    assert f"(figures/{path_of(subset).name})" in (DOCS / "glossary.md").read_text()


if __name__ == "__main__":
    for name in PROGRAMS:
        path_of(name).write_text(drawn(name))
