"""--prefer on the command line and prefer= in Python: a rule by its name, an entry of the table of sizes."""

import pytest

import hlo_lower as hl

MANY = """func.func public @main(%o: tensor<8x4xf32>, %i: tensor<6x1xi32>, %up: tensor<6x4xf32>) -> tensor<8x4xf32> {
  %r = "stablehlo.scatter"(%o, %i, %up) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1],
    inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
  ^bb0(%c: tensor<f32>, %u: tensor<f32>):
    stablehlo.return %u : tensor<f32>
  }) : (tensor<8x4xf32>, tensor<6x1xi32>, tensor<6x4xf32>) -> tensor<8x4xf32>
  return %r : tensor<8x4xf32>
}
"""


WHOLE = "a whole number above 0 is wanted"


@pytest.mark.parametrize(
    ("told", "says"),
    [
        ("fastest", "no rule named 'fastest'"),
        ("", "no rule named ''"),
        ("few=3", "no cost named 'few'"),
        *((f"few_windows={n}", f"few_windows: {WHOLE}") for n in ("0", "-1", "2.5", "many", "")),
        *((f"element={n}", "element: a number above 0 is wanted") for n in ("0", "nan", "inf", "1e30")),
    ],
)
def test_what_cannot_be_preferred_is_exit_code_2(told, says, folder, refused):
    """The message names it, no traceback is printed, and nothing is written."""
    (folder / "many.mlir").write_text(MANY)
    refused(f"convert many.mlir -o out.mlir --prefer '{told}'", "", says)
    with pytest.raises(hl.InputError) as error:
        hl.lower(MANY, prefer=[told])
    assert says in str(error.value)


@pytest.mark.parametrize("rule", ["while", "last_writer", "sorted_last_writer", "unrolled"])
def test_a_preferred_rule_is_taken(rule, folder, command):
    """Of several the first that is right counts; it is verified, also by a judge of two texts that knows no rule."""
    (folder / "many.mlir").write_text(MANY)
    options = f"--prefer compare_reduce --prefer {rule} --prefer while"
    result = command(f"convert many.mlir -o out.mlir {options} --verify regions")
    assert (result.code, result.err) == (0, "")
    assert rule in result.out
    assert [record.rule for record in hl.lower(MANY, prefer=("compare_reduce", rule)).records] == [rule]
    result = command("verify many.mlir out.mlir --runs 1")
    assert (result.code, result.err) == (0, "")
    assert rule != "while" or "1 region derived" in result.out


def test_an_entry_of_the_table_is_taken():
    """Windows get ops of their own up to the number that is given, and its cost, whole or not, decides."""
    free = ("window=1", "element=0.001")
    assert hl.lower(MANY, prefer=("few_windows=6", *free)).records[0].rule == "unrolled"
    assert hl.lower(MANY, prefer=("few_windows=5", *free)).records[0].rule != "unrolled"
    assert hl.lower(MANY, prefer=("loop=0.5",)).scatters_left == 0


def test_reassociated_sums_verify():
    """A right lowering under float_mode=reassociate is not accused for rounding otherwise."""
    text = MANY.replace("stablehlo.return %u", "%n = stablehlo.add %c, %u : tensor<f32>\n    stablehlo.return %n")
    options = {"float_mode": "reassociate", "prefer": ("compare_reduce",)}
    lowered = hl.lower(text, **options)
    assert hl.verify(text, lowered).ok
    wrong = lowered.text.replace("EQ", "LE")
    assert wrong != lowered.text
    verdict = hl.verify(text, wrong, float_mode="reassociate")
    assert verdict.module.status == "differs"
    assert {region.status for region in verdict.regions} == {"differs"}
