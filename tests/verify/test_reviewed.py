"""Verification of what XLA's compiler must not be given, and of inputs that do not fit symbolic sizes."""

import subprocess
import sys

import numpy as np
import pytest

import hlo_lower as hl
from hlo_lower.ir import mlir
from hlo_lower.verify.judges.xla_defects import why_xla_aborts
from hlo_lower.verify.run import Executable

WHILE = """%z = stablehlo.constant dense<0> : tensor<i32>
    %three = stablehlo.constant dense<3> : tensor<i32>
    %w:2 = stablehlo.while(%j = %z, %q = %c) : tensor<i32>, tensor<f32>
    cond {
      %t = stablehlo.compare LT, %j, %three : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %t : tensor<i1>
    } do {
      %one = stablehlo.constant dense<1> : tensor<i32>
      %k = stablehlo.add %j, %one : tensor<i32>
      %p = stablehlo.add %q, %d : tensor<f32>
      stablehlo.return %k, %p : tensor<i32>, tensor<f32>
    }
    %s = stablehlo.add %w#1, %d : tensor<f32>"""
ADD = "%s = stablehlo.add %c, %d : tensor<f32>"


def case(branches: int) -> str:
    """A case on the current value: each branch returns one of the two."""
    regions = ", ".join(f"{{ stablehlo.return {'%c' if k % 2 else '%d'} : tensor<f32> }}" for k in range(branches))
    return f"""%b = stablehlo.convert %c : (tensor<f32>) -> tensor<i32>
    %s = "stablehlo.case"(%b) ({regions}) : (tensor<i32>) -> tensor<f32>"""


BRANCH = """%b = stablehlo.compare GT, %c, %d : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %s = "stablehlo.if"(%b) ({ stablehlo.return %c : tensor<f32> }, { stablehlo.return %d : tensor<f32> })
      : (tensor<i1>) -> tensor<f32>"""


def scatter(body: str, functions: str = "", n: str = "5", p: str = "2") -> str:
    """A module whose scatter has these ops, on %c and %d, as its update computation, which returns %s."""
    return f"""{functions}
func.func public @main(%a: tensor<{n}xf32>, %i: tensor<{p}x1xi32>, %u: tensor<{p}xf32>) -> tensor<{n}xf32> {{
  %r = "stablehlo.scatter"(%a, %i, %u) <{{scatter_dimension_numbers = #stablehlo.scatter<
      inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}}> ({{
  ^bb0(%c: tensor<f32>, %d: tensor<f32>):
    {body}
    stablehlo.return %s : tensor<f32>
  }}) : (tensor<{n}xf32>, tensor<{p}x1xi32>, tensor<{p}xf32>) -> tensor<{n}xf32>
  return %r : tensor<{n}xf32>
}}"""


def function(body: str) -> str:
    """A private function of two numbers."""
    return f"""func.func private @f(%c: tensor<f32>, %d: tensor<f32>) -> tensor<f32> {{
    {body}
    return %s : tensor<f32>
  }}"""


CALL = "%s = func.call @f(%c, %d) : (tensor<f32>, tensor<f32>) -> tensor<f32>"
COMPOSITE = '%s = stablehlo.composite "a.b" %c, %d {decomposition = @f} : (tensor<f32>, tensor<f32>) -> tensor<f32>'
APPLIED = {
    "map": ("{dimensions = array<i64: 0>}", "%o, %o", "tensor<5xf32>, tensor<5xf32>", "tensor<5xf32>"),
    "reduce": ("{dimensions = array<i64: 0>}", "%o, %x", "tensor<5xf32>, tensor<f32>", "tensor<f32>"),
    "reduce_window": ("{window_dimensions = array<i64: 2>}", "%o, %x", "tensor<5xf32>, tensor<f32>", "tensor<4xf32>"),
}
"""Other ops that apply ops to elements: attributes, operands, their types and the result's."""


def applied(op: str, body: str) -> str:
    """A module that applies these ops by another op than a scatter."""
    attributes, operands, types, result = APPLIED[op]
    return f"""func.func public @main(%o: tensor<5xf32>, %x: tensor<f32>) -> {result} {{
  %r = "stablehlo.{op}"({operands}) <{attributes}> ({{
  ^bb0(%c: tensor<f32>, %d: tensor<f32>):
    {body}
    stablehlo.return %s : tensor<f32>
  }}) : ({types}) -> {result}
  return %r : {result}
}}"""


ABORTS = {
    "while": scatter(WHILE),
    "case": scatter(case(3)),
    "while in a call": scatter(CALL, function(WHILE)),
    "while in a composite": scatter(COMPOSITE, function(WHILE)),
    **{f"while in a {op}": applied(op, WHILE) for op in APPLIED},
}
RUNS = {
    "plain": scatter(ADD),
    "if": scatter(BRANCH),
    "case of two": scatter(case(2)),
    "call": scatter(CALL, function(ADD)),
    **{f"if in a {op}": applied(op, BRANCH) for op in APPLIED},
}


def why(text: str) -> str:
    """What is known of a module."""
    return why_xla_aborts(mlir.parse_module(text))


@pytest.mark.parametrize("text", [pytest.param(text, id=name) for name, text in ABORTS.items()])
def test_control_flow_in_a_region_is_known(text):
    """A loop, and a case of three branches, within what is applied to elements is found, through calls, too."""
    assert why(text).startswith("its CPU compiler aborts on control flow in a region (stablehlo.")


@pytest.mark.parametrize("text", [pytest.param(text, id=name) for name, text in RUNS.items()])
def test_what_xla_takes_in_a_region_is_left_to_it(text):
    """Of `if`, a case of two branches and calls nothing is said, and XLA compiles and runs them."""
    assert why(text) == ""
    run = Executable(text, "exact")
    run.run([np.zeros(a.shape, a.dtype) for a in run.arguments])


def test_a_scatter_in_a_function_that_a_region_calls_is_known():
    """XLA makes a loop of a scatter of several updates; one of a single update it takes."""
    inner = """%o = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<f32>) -> tensor<3xf32>
    %at = stablehlo.constant dense<0> : tensor<{n}x1xi32>
    %v = stablehlo.broadcast_in_dim %d, dims = [] : (tensor<f32>) -> tensor<{n}xf32>
    %y = "stablehlo.scatter"(%o, %at, %v) <{{scatter_dimension_numbers = #stablehlo.scatter<
      inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}}> ({{
    ^bb0(%e: tensor<f32>, %g: tensor<f32>):
      %h = stablehlo.add %e, %g : tensor<f32>
      stablehlo.return %h : tensor<f32>
    }}) : (tensor<3xf32>, tensor<{n}x1xi32>, tensor<{n}xf32>) -> tensor<3xf32>
    %first = stablehlo.slice %y [0:1] : (tensor<3xf32>) -> tensor<1xf32>
    %s = stablehlo.reshape %first : (tensor<1xf32>) -> tensor<f32>"""
    found = [why(scatter(CALL, function(inner.format(n=n)))) for n in (1, 2)]
    assert found[0] == ""
    assert "stablehlo.scatter in stablehlo.scatter" in found[1]


VERIFY = """import sys
import hlo_lower as hl
from hlo_lower.verify.region_proofs import RegionProofs
RegionProofs.may_derive = False
text = sys.stdin.read()
lowered = hl.lower(text)
verdict = hl.verify(text, lowered)
print("ok" if verdict.ok else "not ok")
print("\\n".join(verdict.lines()))
"""


@pytest.mark.parametrize(
    "text",
    [
        ABORTS["while"],
        *(pytest.param(t, marks=pytest.mark.sweep) for t in (ABORTS["case"], scatter(WHILE, n="?", p="?"))),
    ],
    ids=["while", "case", "?"],
)
def test_where_xla_aborts_the_interpreter_judges(text):
    """Verification does not compile what XLA dies of: it says so, and the interpreter runs both versions."""
    done = subprocess.run([sys.executable, "-c", VERIFY], input=text, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-500:]
    lines = done.stdout.splitlines()
    assert lines[0] == "ok"
    assert any(line.endswith("judged by interpreter") for line in lines), lines
    assert any("left out: XLA: is no judge: its CPU compiler aborts on control flow" in line for line in lines)
    assert any(line.startswith("module not run:") and "XLA is no judge: its CPU" in line for line in lines)


WRONG = """import sys
from hlo_lower.verify import verify
import hlo_lower as hl
text = sys.stdin.read()
after = hl.lower(text.replace("dense<3> : tensor<i32>", "dense<2> : tensor<i32>")).text
print(*[region.status for region in verify(text, after).regions])
"""


@pytest.mark.sweep
def test_a_wrong_lowering_is_found_where_xla_aborts():
    """The interpreter tells a loop of two iterations from one of three."""
    text = ABORTS["while"]
    done = subprocess.run([sys.executable, "-c", WRONG], input=text, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.strip()) == (0, "differs"), done.stderr[-500:]


# --- inputs of a module with symbolic sizes ---


def arrays(operand=(3,), indices=(2, 1), updates=(2,)):
    """Inputs of these shapes."""
    return [np.ones(operand, np.float32), np.zeros(indices, np.int32), np.ones(updates, np.float32)]


@pytest.mark.parametrize(
    ("inputs", "told"),
    [
        (arrays(operand=(3, 1)), "input 0 does not fit"),
        (arrays(operand=()), "input 0 does not fit"),
        (arrays(indices=(4, 1)), "input 1 does not fit"),
        (arrays(updates=(3,)), "input 2 does not fit"),
        ([[1.0, 2.0], [[0], [1]], [1.0, 2.0]], "input 0 does not fit"),
        ([[[1.0], [2.0, 3.0]], [[0], [1]], [1.0, 2.0]], "input 0 is no array"),
    ],
)
def test_inputs_that_do_not_fit_symbolic_sizes(inputs, told):
    """An input of another rank, with another known size or of another type is refused by its number."""
    text = scatter(ADD, n="?")
    with pytest.raises(hl.InputError, match=told):
        hl.verify(text, hl.lower(text), inputs=inputs)


def test_inputs_whose_sizes_contradict_each_other():
    """Sizes that each fit alone, but not together, are refused, too."""
    text = scatter(ADD, n="?", p="?")
    with pytest.raises(hl.InputError, match="the inputs do not fit the module"):
        hl.verify(text, hl.lower(text), inputs=arrays(indices=(4, 1), updates=(2,)))


def test_inputs_that_fit_are_run():
    """Inputs that fit choose the sizes of the run."""
    text = scatter(ADD, n="?")
    verdict = hl.verify(text, hl.lower(text), inputs=arrays(operand=(7,)))
    assert verdict.ok
    assert verdict.module.status == "equal"
    assert "arg0.0=7" in verdict.module.how


def test_a_ragged_list_is_no_array():
    """A list that is no array is refused by its number where all sizes are known, too."""
    text = scatter(ADD)
    with pytest.raises(hl.InputError, match="input 0 is no array"):
        hl.verify(text, hl.lower(text), inputs=[[[1.0], [2.0, 3.0]], [[0], [1]], [1.0, 2.0]])
