"""Level two: what a run of the whole module says, what it must not say, and where XLA is no judge."""

import pytest

from hlo_lower.base.errors import InputError
from hlo_lower.ir import mlir
from hlo_lower.verify import verify
from hlo_lower.verify.judges.xla_defects import why_xla_errs
from hlo_lower.verify.module_runs import blind, drives_of
from hlo_lower.verify.read.program import Program, scatters_on_path
from hlo_lower.verify.run import CannotRunError, Executable

ADD = "%s = stablehlo.add %c, %d : tensor<{e}> stablehlo.return %s : tensor<{e}>"
EMPTY = "func.func public @main(%o: tensor<8xf32>) -> tensor<8xf32> { return %o : tensor<8xf32> }"

PAIR = """func.func public @main({arguments}%i: tensor<5x1xi32>, %u: tensor<5xf32>, %v: tensor<5xf32>)
    -> (tensor<8xf32>, tensor<8xf32>) {{
  {before}
  %r:2 = "stablehlo.scatter"({operands}, %i, %u, %v) <{{scatter_dimension_numbers = #stablehlo.scatter<
      inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}}> ({{
  ^bb0(%c: tensor<f32>, %e: tensor<f32>, %d: tensor<f32>, %f: tensor<f32>):
    stablehlo.return %d, %f : tensor<f32>, tensor<f32>
  }}) : (tensor<8xf32>, tensor<8xf32>, tensor<5x1xi32>, tensor<5xf32>, tensor<5xf32>) -> (tensor<8xf32>, tensor<8xf32>)
  return %r#0, %r#1 : tensor<8xf32>, tensor<8xf32>
}}"""

TWO = """func.func public @main(%o: tensor<8xf32>, %i: tensor<1xi32>, %j: tensor<1xi32>, %u: tensor<f32>)
    -> (tensor<8xf32>, tensor<8xf32>) {
  %a = "stablehlo.scatter"(%o, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<
      inserted_window_dims = [0], scatter_dims_to_operand_dims = [0]>}> ({
  ^bb0(%c: tensor<f32>, %d: tensor<f32>):
    stablehlo.return %d : tensor<f32>
  }) : (tensor<8xf32>, tensor<1xi32>, tensor<f32>) -> tensor<8xf32>
  %b = "stablehlo.scatter"(%o, %j, %u) <{scatter_dimension_numbers = #stablehlo.scatter<
      inserted_window_dims = [0], scatter_dims_to_operand_dims = [0]>}> ({
  ^bb0(%c: tensor<f32>, %d: tensor<f32>):
    stablehlo.return %d : tensor<f32>
  }) : (tensor<8xf32>, tensor<1xi32>, tensor<f32>) -> tensor<8xf32>
  return %a, %b : tensor<8xf32>, tensor<8xf32>
}"""


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (("-> tensor<8xf32> {\n", "-> tensor<8xf64> {\n"), "tensor<8xf64>"),
        (("(%o: tensor<8xf32>", "(%x: tensor<1xi1>, %o: tensor<8xf32>"), "tensor<1xi1>, tensor<8xf32>"),
        (("@main", "@other"), "@main is public in the first version only"),
    ],
)
def test_another_signature_is_a_difference(scatter_text, change, told):
    """A second version with other arguments or results, or another entry point, differs."""
    before = scatter_text()
    after = before.replace(*change, 1)
    if told == "tensor<8xf64>":
        after = after.replace(
            "return %r : tensor<8xf32>",
            "%q = stablehlo.convert %r : (tensor<8xf32>) -> tensor<8xf64> return %q : tensor<8xf64>",
        )
    verdict = verify(before, after)
    assert (verdict.ok, verdict.differs, bool(verdict.interface)) == (False, True, True)
    assert told in "\n".join(verdict.lines())


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("%r =", "%x = stablehlo.custom_call @nowhere(%o) : (tensor<8xf32>) -> tensor<8xf32> %r ="),
        ("public @main", "private @main"),
    ],
)
def test_a_second_version_that_does_not_run_is_a_difference(scatter_text, old, new):
    """Where the first version runs, the second one has to: what XLA refuses is not passed over."""
    before = scatter_text()
    after = before.replace(old, new).replace('"(%o,', '"(%x,' if "nowhere" in new else '"(%o,')
    verdict = verify(before, after)
    assert verdict.module is not None
    assert (verdict.ok, verdict.module.status) == (False, "differs")


def test_a_first_version_that_does_not_run_is_told(scatter_text):
    """A first version that XLA refuses gives no verdict on the module, with the reason."""
    text = scatter_text().replace(
        "return %r", "%x = stablehlo.custom_call @nowhere(%r) : (tensor<8xf32>) -> tensor<8xf32> return %x"
    )
    verdict = verify(text, text)
    assert verdict.module is not None
    assert verdict.module.status == "not run"
    assert "nowhere" in verdict.module.reason


def test_a_scatter_that_reaches_no_result_is_not_exercised(scatter_text):
    """A result that does not depend on the scatter says nothing about it."""
    text = scatter_text(returned="%o")
    verdict = verify(text, text)
    assert verdict.module is not None
    told = "\n".join(verdict.module.not_exercised)
    assert "scatter 1" in told
    assert "no result depends on it" in told


def test_what_never_reaches_a_result_is_no_difference(scatter_text):
    """A scatter that is written wrongly and whose result is not selected is taken as unequal, and what is returned is
    equal; where it is selected that is a difference."""
    hidden = """%k = stablehlo.constant dense<{}> : tensor<8xi1>
  %q = stablehlo.select %k, %r, %o : tensor<8xi1>, tensor<8xf32> return %q"""
    for chosen in ("false", "true"):
        before, after = (
            scatter_text(body=body).replace("return %r", hidden.format(chosen))
            for body in (ADD, ADD.replace("add", "maximum"))
        )
        assert verify(before, after).ok == (chosen == "false")


def test_results_that_are_mostly_nan_exercise_little(scatter_text):
    """A result of NaN is named with its share."""
    text = scatter_text().replace(
        "return %r",
        """%k = stablehlo.constant dense<0x7FC00000> : tensor<8xf32>
  %q = stablehlo.add %r, %k : tensor<8xf32> return %q""",
    )
    verdict = verify(text, text)
    assert verdict.module is not None
    assert any("100% of it is NaN" in told for told in verdict.module.not_exercised)


def test_over_the_budget_it_is_not_run(scatter_text):
    """Beyond the memory budget level "auto" says why it did not run the module, and "full" runs it."""
    text = scatter_text()
    auto = verify(text, text, memory_budget=10)
    full = verify(text, text, memory_budget=10, level="full")
    assert auto.module is not None
    assert full.module is not None
    assert (auto.module.status, full.module.status) == ("not run", "equal")
    assert "--verify full" in auto.module.reason


def test_inputs_that_do_not_fit_are_refused(scatter_text):
    """Inputs of another number are the user's mistake."""
    text = scatter_text()
    with pytest.raises(InputError, match="1 inputs for 3 arguments"):
        verify(text, text, inputs=[1])


def test_blinded_scatters_give_their_operand(scatter_text):
    """The blinded module holds no scatter."""
    blinded = blind(scatter_text(body=ADD))
    assert blinded is not None
    assert "scatter" not in blinded


def test_the_path_of_a_result_holds_its_scatters_only():
    """Each of two results depends on its own scatter."""
    program = Program(mlir.parse_module(TWO))
    main = program.entries["main"]
    assert [[place.number for place in scatters_on_path(program, main, k)] for k in range(2)] == [[1], [2]]


def test_the_index_arguments_of_all_scatters_are_driven():
    """The arguments that place windows are known with their columns, through what computes the indices, too."""
    drives = drives_of(Program(mlir.parse_module(TWO)))
    assert {place: [(c.size, c.window) for c in found] for place, found in drives.columns.items()} == {
        1: [(8, 1)],
        2: [(8, 1)],
    }
    assert not drives.may_overhang


# --- where XLA is no judge ---

ZEROS = "%{0} = stablehlo.constant dense<0.0> : tensor<8xf32> "
BROADCAST = """%z{0} = stablehlo.constant dense<0.0> : tensor<f32>
  %{0} = stablehlo.broadcast_in_dim %z{0}, dims = [] : (tensor<f32>) -> tensor<8xf32> """


@pytest.mark.parametrize(
    ("arguments", "before", "operands", "wrong"),
    [
        ("%a: tensor<8xf32>, %b: tensor<8xf32>, ", "", "%a, %b", False),
        ("%a: tensor<8xf32>, ", "", "%a, %a", True),
        ("", ZEROS.format("a") + ZEROS.format("b"), "%a, %b", True),
        ("", ZEROS.format("a") + ZEROS.format("b").replace("0.0", "1.0"), "%a, %b", False),
        ("", ZEROS.format("a") + BROADCAST.format("b"), "%a, %b", True),
        ("%a: tensor<8xf32>, ", ZEROS.format("b"), "%a, %b", False),
    ],
)
def test_a_variadic_scatter_of_one_value_twice_is_not_run(arguments, before, operands, wrong):
    """XLA corrupts its memory where two operands become one value; such a module is judged scatter by scatter."""
    text = PAIR.format(arguments=arguments, before=before, operands=operands)
    module = mlir.parse_module(text)
    assert wrong == bool(why_xla_errs(module)[0])
    if wrong:
        verdict = verify(text, text)
        assert verdict.module is not None
        assert (verdict.ok, verdict.module.status, verdict.regions) == (True, "not run", ())
        assert "corrupts memory" in verdict.module.reason


@pytest.mark.parametrize(("operands", "wrong"), [("%a, %b", False), ("%a, %a", True), ("%b, %k", True)])
def test_a_variadic_scatter_is_looked_at_through_calls(operands, wrong):
    """Operands that only a caller makes the same value are found: the argument itself, or behind a barrier."""
    types = "tensor<8xf32>, tensor<8xf32>, tensor<5x1xi32>, tensor<5xf32>, tensor<5xf32>"
    inner = PAIR.format(arguments="%a: tensor<8xf32>, %b: tensor<8xf32>, ", before="", operands="%a, %b")
    text = f"""func.func public @main(%a: tensor<8xf32>, %b: tensor<8xf32>, %i: tensor<5x1xi32>, %u: tensor<5xf32>)
        -> (tensor<8xf32>, tensor<8xf32>) {{
      %k = stablehlo.optimization_barrier %b : tensor<8xf32>
      %r:2 = func.call @pair({operands}, %i, %u, %u) : ({types}) -> (tensor<8xf32>, tensor<8xf32>)
      return %r#0, %r#1 : tensor<8xf32>, tensor<8xf32>
    }}
    {inner.replace("public @main", "private @pair")}"""
    assert ["corrupts memory" in why for why in why_xla_errs(mlir.parse_module(text))] == [wrong]


@pytest.mark.parametrize(
    ("types", "numbers", "wrong"),
    [
        (("8xf32", "5x1xi8", "5xf32"), None, ""),
        (("200xf32", "5x1xi8", "5xf32"), None, "narrow index type"),
        (("200xf32", "5x1xui8", "5xf32"), None, ""),
        (("300xf32", "5x1xui8", "5xf32"), None, "narrow index type"),
        (("8xf32", "5x0xi32", "5xf32"), "inserted_window_dims = [0], index_vector_dim = 1", "empty index vector"),
        (("8xf32", "1x0xi32", "1xf32"), "inserted_window_dims = [0], index_vector_dim = 1", ""),
    ],
)
def test_where_xla_is_known_to_err(scatter_text, types, numbers, wrong):
    """The known errors are recognised, and their near misses are not."""
    module = mlir.parse_module(scatter_text(*types, numbers) if numbers else scatter_text(*types))
    assert wrong in why_xla_errs(module)[0]
    assert bool(wrong) == bool(why_xla_errs(module)[0])


def test_what_calls_back_into_python_is_not_run():
    """JAX's callbacks are addresses in the process that traced them: any other one would die of running them."""
    text = """func.func public @main(%x: tensor<2xf32>) -> tensor<2xf32> {
      %0 = stablehlo.custom_call @xla_ffi_python_cpu_callback(%x) {mhlo.backend_config = {index = 0 : ui64}}
        : (tensor<2xf32>) -> tensor<2xf32>
      %1 = stablehlo.add %0, %0 : tensor<2xf32>
      return %1 : tensor<2xf32>
    }"""
    doubled = text.replace("stablehlo.add %0, %0", "stablehlo.multiply %0, %two").replace(
        "%1 =", "%two = stablehlo.constant dense<2.0> : tensor<2xf32>\n %1 ="
    )
    verdict = verify(text, doubled)
    assert verdict.module is not None
    assert "calls back into the Python process" in verdict.module.reason
    with pytest.raises(CannotRunError, match="calls back"):
        Executable(text, "exact")
