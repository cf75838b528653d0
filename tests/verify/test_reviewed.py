"""Verification of what XLA's compiler must not be given, and of inputs that do not fit symbolic sizes."""

import subprocess
import sys

import numpy as np
import pytest
from untyped_mlir import function, module

import hlo_lower as hl
from hlo_lower.ir import mlir
from hlo_lower.verify.judges.xla_defects import why_xla_aborts
from hlo_lower.verify.run import Executable

WHILE = """%z = constant 0 : i32; %three = constant 3 : i32
%w:2 = while(%j = %z, %q = %c) cond { %t = compare LT, %j, %three; return %t } do {
  %one = constant 1 : i32; %k = add %j, %one; %p = add %q, %d; return %k, %p }
%s = add %w#1, %d"""
ADD = "%s = add %c, %d"
IF = "%b = compare GT, %c, %d; %s = if(%b) { return %c } { return %d }"
CASE_OF_TWO = "%b = convert %c -> i32; %s = case(%b) { return %d } { return %c }"
CALL = "%s = call @f(%c, %d) -> f32"
COMPOSITE = '%s = stablehlo.composite "a.b" %c, %d {decomposition = @f} : (tensor<f32>, tensor<f32>) -> tensor<f32>'


def scatter(body: str, called: str = "", n: str = "5", p: str = "2") -> str:
    """A module whose update computation is these ops on %c and %d, which give %s, and may call another one."""
    line = f"%r = scatter(%a, %i, %u) <inserted=[0], to=[0], ivd=1> {{%c, %d: {body}; return %s}}"
    more = function("private @f", "%c: f32, %d: f32", called, "%s") if called else ""
    return module(f"%a: {n}xf32, %i: {p}x1xi32, %u: {p}xf32", line, "%r", more)


APPLIED = {
    "map": "map(%o, %o) <dimensions = array<i64: 0>> {%c, %d: BODY; return %s}",
    "reduce": "reduce(%o, %x) <dimensions = array<i64: 0>> {%c, %d: BODY; return %s} -> f32",
    "reduce_window": "reduce_window(%o, %x) <window_dimensions = array<i64: 2>> {%c, %d: BODY; return %s} -> 4xf32",
}


def applied(op: str, body: str) -> str:
    """A module that applies these ops to elements by another op than a scatter."""
    return module("%o: 5xf32, %x: f32", f"%r = {APPLIED[op]}".replace("BODY", body))


ABORTS = {
    "while": scatter(WHILE),
    "case": scatter(CASE_OF_TWO + " { return %d }"),
    "while in a call": scatter(CALL, WHILE),
    "while in a composite": scatter(COMPOSITE, WHILE),
    **{f"while in a {op}": applied(op, WHILE) for op in APPLIED},
}
RUNS = {
    "plain": scatter(ADD),
    "if": scatter(IF),
    "case of two": scatter(CASE_OF_TWO),
    "call": scatter(CALL, ADD),
    **{f"if in a {op}": applied(op, IF) for op in APPLIED},
}


def why(text: str) -> str:
    """What is known of a module."""
    return why_xla_aborts(mlir.parse_module(text))


@pytest.mark.parametrize("name", ABORTS)
def test_control_flow_in_a_region_is_known(name):
    """A loop, and a case of three branches, within what is applied to elements is found, through calls, too."""
    assert why(ABORTS[name]).startswith("its CPU compiler aborts on control flow in a region (stablehlo.")


@pytest.mark.parametrize("name", RUNS)
def test_what_xla_takes_in_a_region_is_left_to_it(name):
    """Of `if`, a case of two branches and calls nothing is said, and XLA compiles and runs them."""
    assert why(RUNS[name]) == ""
    run = Executable(RUNS[name], "exact")
    run.run([np.zeros(a.shape, a.dtype) for a in run.arguments])


INNER = """%o = broadcast_in_dim %c, dims = [] -> 3xf32; %at = constant 0 : NUMx1xi32
%v = broadcast_in_dim %d, dims = [] -> NUMxf32; %y = scatter(%o, %at, %v) <inserted=[0], to=[0], ivd=1> {add}
%first = slice %y [0:1]; %s = reshape %first -> f32"""


def test_a_scatter_in_a_function_that_a_region_calls_is_known():
    """XLA makes a loop of a scatter of several updates; one of a single update it takes."""
    found = [why(scatter(CALL, INNER.replace("NUM", str(n)))) for n in (1, 2)]
    assert found[0] == ""
    assert "stablehlo.scatter in stablehlo.scatter" in found[1]


def in_process(script: str, text: str) -> list[str]:
    """What a script prints of a module, in a process that XLA may end."""
    done = subprocess.run([sys.executable, "-c", script], input=text, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-500:]
    return done.stdout.splitlines()


VERIFY = """import sys
import hlo_lower as hl
from hlo_lower.verify.region_proofs import RegionProofs
RegionProofs.may_derive = False
text = sys.stdin.read()
verdict = hl.verify(text, hl.lower(text))
print("ok" if verdict.ok else "not ok", *verdict.lines(), sep="\\n")
"""


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(ABORTS["while"], id="while"),
        pytest.param(ABORTS["case"], marks=pytest.mark.sweep, id="case"),
        pytest.param(scatter(WHILE, n="?", p="?"), marks=pytest.mark.sweep, id="?"),
    ],
)
def test_where_xla_aborts_the_interpreter_judges(text):
    """Verification does not compile what XLA dies of: it says so, and the interpreter runs both versions."""
    lines = in_process(VERIFY, text)
    assert lines[0] == "ok"
    assert any(line.endswith("judged by interpreter") for line in lines), lines
    assert any("left out: XLA: is no judge: its CPU compiler aborts on control flow" in line for line in lines)
    assert any(line.startswith("module not run:") and "XLA is no judge: its CPU" in line for line in lines)


WRONG = """import sys
import hlo_lower as hl
text = sys.stdin.read()
after = hl.lower(text.replace("dense<3> : tensor<i32>", "dense<2> : tensor<i32>")).text
print(*[region.status for region in hl.verify(text, after).regions])
"""


@pytest.mark.sweep
def test_a_wrong_lowering_is_found_where_xla_aborts():
    """The interpreter tells a loop of two iterations from one of three."""
    assert in_process(WRONG, ABORTS["while"]) == ["differs"]


# --- inputs that do not fit ---


def arrays(operand=(3,), indices=(2, 1), updates=(2,)):
    """Inputs of these shapes."""
    return [np.ones(operand, np.float32), np.zeros(indices, np.int32), np.ones(updates, np.float32)]


RAGGED = [[[1.0], [2.0, 3.0]], [[0], [1]], [1.0, 2.0]]


@pytest.mark.parametrize(
    ("n", "p", "inputs", "told"),
    [
        ("?", "2", arrays(operand=(3, 1)), "input 0 does not fit"),
        ("?", "2", arrays(operand=()), "input 0 does not fit"),
        ("?", "2", arrays(indices=(4, 1)), "input 1 does not fit"),
        ("?", "2", arrays(updates=(3,)), "input 2 does not fit"),
        ("?", "2", [[1.0, 2.0], [[0], [1]], [1.0, 2.0]], "input 0 does not fit"),
        ("?", "2", RAGGED, "input 0 is no array"),
        ("5", "2", RAGGED, "input 0 is no array"),
        ("?", "?", arrays(indices=(4, 1)), "the inputs do not fit the module"),  # each fits alone
        ("5", "2", [1], "1 inputs for 3 arguments"),
    ],
)
def test_inputs_that_do_not_fit(n, p, inputs, told):
    """An input of another rank, with another known size or of another type is refused by its number."""
    text = scatter(ADD, n=n, p=p)
    with pytest.raises(hl.InputError, match=told):
        hl.verify(text, hl.lower(text), inputs=inputs)


def test_inputs_that_fit_are_run():
    """Inputs that fit choose the sizes of the run."""
    text = scatter(ADD, n="?")
    verdict = hl.verify(text, hl.lower(text), inputs=arrays(operand=(7,)))
    assert verdict.ok
    assert verdict.module.status == "equal"
    assert "arg0.0=7" in verdict.module.how
