"""Where XLA is not a judge: what its compiler dies of, what it gets wrong, and what it leaves out of an op."""

import subprocess
import sys

import numpy as np
import pytest
from two_programs import scattering
from untyped_mlir import function, module

import hlo_lower as hl
from hlo_lower.ir import mlir
from hlo_lower.verify.judges.xla_defects import takes_starts_again, why_xla_aborts, why_xla_errs, write_out_omitted
from hlo_lower.verify.module_runs import verify_plain
from hlo_lower.verify.run import COMPILER_OPTIONS, CannotRunError, Executable

WHILE = """%z = constant 0 : i32; %three = constant 3 : i32
%w:2 = while(%j = %z, %q = %c) cond { %t = compare LT, %j, %three; return %t } do {
  %one = constant 1 : i32; %k = add %j, %one; %p = add %q, %d; return %k, %p }
%s = add %w#1, %d"""
ADD = "%s = add %c, %d"
IF = "%b = compare GT, %c, %d; %s = if(%b) { return %c } { return %d }"
CASE_OF_TWO = "%b = convert %c -> i32; %s = case(%b) { return %d } { return %c }"
CALL = "%s = call @f(%c, %d) -> f32"
COMPOSITE = '%s = stablehlo.composite "a.b" %c, %d {decomposition = @f} : (tensor<f32>, tensor<f32>) -> tensor<f32>'
INNER = """%o = broadcast_in_dim %c, dims = [] -> 3xf32; %at = constant 0 : NUMx1xi32
%v = broadcast_in_dim %d, dims = [] -> NUMxf32; %y = scatter(%o, %at, %v) <inserted=[0], to=[0], ivd=1> {add}
%first = slice %y [0:1]; %s = reshape %first -> f32"""
APPLIED = {
    "map": "map(%o, %o) <dimensions = array<i64: 0>> {%c, %d: BODY; return %s}",
    "reduce": "reduce(%o, %x) <dimensions = array<i64: 0>> {%c, %d: BODY; return %s} -> f32",
    "reduce_window": "reduce_window(%o, %x) <window_dimensions = array<i64: 2>> {%c, %d: BODY; return %s} -> 4xf32",
}


def scatter(body, called="", n="5", p="2"):
    """A module whose update computation is these ops on %c and %d, which give %s, and may call another one."""
    line = f"%r = scatter(%a, %i, %u) <inserted=[0], to=[0], ivd=1> {{%c, %d: {body}; return %s}}"
    more = function("private @f", "%c: f32, %d: f32", called, "%s") if called else ""
    return module(f"%a: {n}xf32, %i: {p}x1xi32, %u: {p}xf32", line, "%r", more)


def applied(op, body):
    """A module that applies these ops to elements by another op than a scatter."""
    return module("%o: 5xf32, %x: f32", f"%r = {APPLIED[op]}".replace("BODY", body))


LOOPS = [scatter(WHILE), scatter(CASE_OF_TWO + " { return %d }"), scatter(WHILE, n="?", p="?")]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        *((text, "stablehlo.") for text in (*LOOPS[:2], scatter(CALL, WHILE), scatter(COMPOSITE, WHILE))),
        *((applied(op, WHILE), "stablehlo.while") for op in APPLIED),
        *((text, "") for text in (scatter(IF), scatter(CASE_OF_TWO), scatter(CALL, ADD), applied("reduce", IF))),
    ],
)
def test_control_flow_in_what_is_applied_to_elements_is_known(text, why):
    """A loop, and a case of three branches, is found, through calls, too; what XLA takes is compiled and runs."""
    found = why_xla_aborts(mlir.parse_module(text))
    assert found.startswith(f"its CPU compiler aborts on control flow in a region ({why}" if why else "")
    assert bool(found) == bool(why)
    if not why:
        run = Executable(text, "exact")
        run.run([np.zeros(a.shape, a.dtype) for a in run.arguments])


@pytest.mark.parametrize("updates", "12")
def test_a_scatter_in_a_function_that_a_region_calls_is_known(updates):
    """XLA makes a loop of it, of one of a single update only if it does not simplify."""
    text = scatter(CALL, INNER.replace("NUM", updates))
    assert "stablehlo.scatter in stablehlo.scatter" in why_xla_aborts(mlir.parse_module(text))


VERIFY = """import sys
import hlo_lower as hl
from hlo_lower.verify.region_proofs import RegionProofs
RegionProofs.may_derive = False
text = sys.stdin.read()
wrong = hl.lower(text.replace("dense<3> : tensor<i32>", "dense<2> : tensor<i32>")).text
verdict = hl.verify(text, hl.lower(text))
print(verdict.ok, [r.status for r in hl.verify(text, wrong).regions], *verdict.lines(), sep="\\n")
"""


@pytest.mark.parametrize("text", [LOOPS[0], *(pytest.param(t, marks=pytest.mark.sweep) for t in LOOPS[1:])])
def test_where_xla_aborts_the_interpreter_judges(text):
    """XLA is not given what it dies of, which is told; the interpreter tells a loop of two turns from one of three."""
    done = subprocess.run([sys.executable, "-c", VERIFY], input=text, capture_output=True, text=True, check=True)
    is_ok, statuses, *lines = done.stdout.splitlines()
    assert is_ok == "True"
    assert statuses == "['differs']" or "dense<3>" not in text
    assert any(line.endswith("judged by interpreter") for line in lines), lines
    assert any("left out: XLA: is not a judge: its CPU compiler aborts on control flow" in line for line in lines)
    assert any(line.startswith("module not run:") and "XLA is not a judge: its CPU" in line for line in lines)


SCATTERED = "%r:2 = scatter({}, %i, %u, %v) <inserted=[0], to=[0], ivd=1> {{%c, %e, %d, %f: return %d, %f}}"
ZEROS = "%{0} = constant 0.0 : 8xf32;"
BROADCAST = "%z{0} = constant 0.0 : f32; %{0} = broadcast_in_dim %z{0}, dims = [] -> 8xf32;"
GIVEN = "%a: 8xf32, %b: 8xf32, %i: 5x1xi32, %u: 5xf32, %v: 5xf32"
PAIR = function("private @pair", GIVEN, SCATTERED.format("%a, %b"), "%r#0, %r#1")
CALLING = "%k = optimization_barrier %b; %r:2 = call @pair({}, %i, %u, %u) -> (8xf32, 8xf32)"


def variadic(operands, before="", line=SCATTERED):
    """A module that scatters into two operands, computed before, in @main or in a function that it calls."""
    return module(GIVEN, before + line.format(operands), "%r#0, %r#1", PAIR)


CORRUPTED = "corrupts memory"
EMPTY = "inserted=[0], ivd=1"


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        (variadic("%a, %b"), ""),
        (variadic("%a, %a"), CORRUPTED),
        (variadic("%x, %y", ZEROS.format("x") + ZEROS.format("y")), CORRUPTED),
        (variadic("%x, %y", ZEROS.format("x") + ZEROS.format("y").replace("0.0", "1.0")), ""),
        (variadic("%x, %y", ZEROS.format("x") + BROADCAST.format("y")), CORRUPTED),
        # operands that only a caller makes the same value: the argument itself, or behind a barrier
        (variadic("%a, %b", line=CALLING), ""),
        (variadic("%a, %a", line=CALLING), CORRUPTED),
        (variadic("%b, %k", line=CALLING), CORRUPTED),
        *((scattering(f"{n}xf32", f"5x1x{kind}"), "") for n, kind in ((8, "i8"), (200, "ui8"))),
        *((scattering(f"{n}xf32", f"5x1x{kind}"), "narrow index type") for n, kind in ((200, "i8"), (300, "ui8"))),
        (scattering("8xf32", "5x0xi32", "5xf32", EMPTY), "empty index vector"),
        (scattering("8xf32", "1x0xi32", "1xf32", EMPTY), ""),
    ],
)
def test_where_xla_is_known_to_err(text, wrong):
    """The known errors are recognised, and their near misses are not; such a module is judged scatter by scatter."""
    [why, *_] = why_xla_errs(mlir.parse_module(text))
    assert wrong in why
    assert bool(wrong) == bool(why)
    if wrong == CORRUPTED and "call @pair" not in text:
        verdict = hl.verify(text, text)
        assert (verdict.ok, verdict.module.status, verdict.regions) == (True, "not run", ())
        assert CORRUPTED in verdict.module.reason


def test_what_calls_back_into_python_is_not_run():
    """JAX's callbacks are addresses in the process that traced them: any other one would die of running them."""
    call = "%0 = custom_call @xla_ffi_python_cpu_callback(%x) {mhlo.backend_config = {index = 0 : ui64}} -> 2xf32"
    text = module("%x: 2xf32", f"{call}; %r = add %0, %0")
    assert "calls back into the Python process" in hl.verify(text, text).module.reason
    with pytest.raises(CannotRunError, match="calls back"):
        Executable(text, "exact")


def folded(shape):
    """A minimum along the first dim, from a start that is an argument."""
    body = "%r = reduce(%x init: %s) applies stablehlo.minimum across dimensions = [0]"
    return module(f"%x: {shape}xi32, %s: i32", body)


TWO = module(
    "%x: 1x3xi32, %y: 1x3xf32, %s: i32, %t: f32",
    """%r:2 = reduce(%x, %y, %s, %t) <dimensions = array<i64: 0>> {
      %a, %b, %c, %d: %e = subtract %a, %c; return %e, %b } -> (3xi32, 3xf32)""",
    "%r#0, %r#1",
)
PIECES = module(
    "%x: 1x1xi32, %y: 1x1xi32, %s: i32",
    """%p = concatenate %x, %y, dim = 0
    %r = reduce(%p init: %s) applies stablehlo.minimum across dimensions = [0]""",
)
ZERO = "%z = constant {0} : {1}; %s = broadcast_in_dim %z, dims = [] -> 8x{1}; %r = add %x, %s"
NARROWED = "%0 = convert %a -> 5x4xi32; %1 = convert %b -> 5x4xi32; %r = {} %0, %1"
SIX, WIDE = np.arange(6, dtype=np.int32), np.arange(-10, 10).reshape(5, 4)
ZEROS = {"f32": "0.0", "complex<f32>": "(0.0, 0.0)"}
GROUPED = """%r = convolution(%x, %k) dim_numbers = [f, b, 0]x[i, 0, o]->[0, b, f], window = {}
  {batch_group_count = 3 : i64, feature_group_count = 1 : i64} -> 3x1x6xf32""".replace("\n", " ")
KERNEL = np.ones((2, 2, 6), np.float32)
KERNEL[:, :, 2:4] = np.inf
CUT = """%r = convolution(%x, %k) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {{pad = {}}}
  {{batch_group_count = 1 : i64, feature_group_count = 1 : i64}} -> 1x6x6x2x{}""".replace("\n", " ")
ENDING = np.full((1, 6, 6, 2), 8.0)
ENDING[:, -1] = 4
BOTH_ENDING = np.full((1, 6, 6, 2), 8.0)
BOTH_ENDING[:, -1] = 0
BOTH_ENDING[:, -2] = 4
BOTH_ENDING[:, :, -1] /= 2
DILATED = ENDING.swapaxes(1, 2) / 2  # of each two rows one is a zero in between
MINUS = {
    "f64": ("0.0", np.full(8, -0.0)),
    "complex<f32>": ("(0.0, 0.0)", np.full(8, complex(-0.0, -0.0), np.complex64)),
}


@pytest.mark.parametrize(
    ("text", "given", "expected"),
    [
        # a reduction begins with its start, also of one element, of pieces of one element, and of two types
        (folded("1x3"), [SIX[None, :3], np.int32(-4)], [np.full(3, -4)]),
        (folded("2x3"), [SIX.reshape(2, 3), np.int32(1)], [[0, 1, 1]]),
        (PIECES, [np.array([[5]], np.int32), np.array([[3]], np.int32), np.int32(-4)], [np.full(1, -4)]),
        (TWO, [SIX[None, :3], np.ones((1, 3), np.float32), np.int32(5), np.float32(7)], [[5, 4, 3], [7, 7, 7]]),
        # its simplifier divides what it knows, and dies of 0 / 0, where the spec leaves open what that gives
        (module("%x: 3xi32", "%z = subtract %x, %x; %r = divide %z, %z"), None, [np.full(3, -1)]),
        (module("%x: 3xi32", "%z = constant 0 : 3xi32; %r = remainder %z, %z"), None, [np.zeros(3)]),
        # leading zeros of constants below 0, and starts beyond the half of an unsigned type, which are no negative ones
        *(
            (module("", f"%c = constant [-5, 3, 0] : 3x{kind}; %r = count_leading_zeros %c"), [], [[0, bits - 2, bits]])
            for kind, bits in (("i8", 8), ("i32", 32))
        ),
        *(
            (
                module("%x: 4xi32", f"%i = constant {start} : {kind}; %r = dynamic_slice %x, %i, sizes = [2]"),
                [SIX[:4]],
                [[2, 3]],
            )
            for kind, start in (("ui8", 255), ("ui32", 1 << 31), ("ui64", (1 << 64) - 1))
        ),
        (
            module("%x: 4xi32, %u: 1xi32", "%i = constant 200 : ui8; %r = dynamic_update_slice %x, %u, %i"),
            [SIX[:4], np.full(1, 9, np.int32)],
            [[0, 1, 2, 9]],
        ),
        # -0.0 and 0.0 are 0.0, in both parts of complex numbers, too
        *((module(f"%x: 8x{t}", ZERO.format(zero, t)), [x], [np.zeros(8)]) for t, (zero, x) in MINUS.items()),
        # a feature is made of its own group of the batch, not of others times 0
        (
            module("%x: 2x3x4xf32, %k: 2x2x6xf32", GROUPED),
            [np.full((2, 3, 4), 2, np.float32), KERNEL],
            [np.broadcast_to([8.0, 8, np.inf, np.inf, 8, 8], (3, 1, 6))],
        ),
        # a convolution reads the zeros behind its operand, not beyond them, where elements are cut off in front of it
        *(
            (
                module(f"%x: 1x7x7x2x{kind}, %k: 2x2x2x2x{kind}", CUT.format(pad, kind)),
                [np.ones((1, 7, 7, 2), dtype), np.ones((2, 2, 2, 2), dtype)],
                [right],
            )
            for kind, dtype in (("f32", np.float32), ("f16", np.float16))
            for pad, right in (
                ("[[-1, 1], [0, 0]]", ENDING),
                ("[[0, 0], [-1, 1]]", ENDING.swapaxes(1, 2)),
                ("[[-1, 1], [-2, 2]]", BOTH_ENDING.swapaxes(1, 2)),
                ("[[-7, 1], [-1, 1]], lhs_dilate = [2, 1]", DILATED),
            )
        ),
        # a pad that takes elements away, also of those that it puts between
        *(
            (
                module(
                    "%x: 4xi32, %v: i32", f"%r = pad %x, %v, low = [{a}], high = [{b}], interior = [{n}] -> {size}xi32"
                ),
                [SIX[:4], np.int32(9)],
                [right],
            )
            for a, b, n, size, right in (
                (-1, 0, 0, 3, [1, 2, 3]),
                (-1, 1, 1, 7, [9, 1, 9, 2, 9, 3, 9]),
                (1, -2, 1, 6, [9, 0, 9, 1, 9, 2]),
                (-2, -3, 1, 2, [1, 9]),
                (-2, -2, 0, 0, []),
            )
        ),
        # its compiler dies on a scatter into a scalar where its simplifier is off
        *(
            (module(f"%x: f32, %i: {i}xi32, %u: {u}f32", f"%r = scatter(%x, %i, %u) <ivd={ivd}> {{add}}"), None, [4.0])
            for i, u, ivd in (("0", "", 0), ("1x0", "1x", 1))
        ),
        # `or` and `and` of converted integers are compiled by the older emitter
        *(
            (
                module("%a: 5x4xi64, %b: 5x4xi64", NARROWED.format(op)),
                [WIDE, 7 * WIDE + 70],
                [right(WIDE, 7 * WIDE + 70)],
            )
            for op, right in (("or", np.bitwise_or), ("and", np.bitwise_and))
        ),
    ],
)
@pytest.mark.parametrize("rounding", ["exact", "quick", "default"])
def test_what_is_run_is_what_the_op_says(text, given, expected, rounding):
    """In each way of compiling it, bit for bit."""
    run = Executable(text, rounding)
    found = run.run(given or [np.full(a.shape, 2, a.dtype) for a in run.arguments])
    for one, right in zip(found, expected, strict=True):
        assert one.tobytes() == np.asarray(right, one.dtype).tobytes()


def test_a_slice_cuts_off_each_dim_that_is_padded_behind():
    """Not each run shows it: beyond an operand there may be zeros."""
    text = module("%x: 1x7x7x2xf32, %k: 2x2x2x2xf32", CUT.format("[[-1, 1], [-2, 2]]", "f32"))
    parsed = mlir.parse_module(text)
    with mlir.active(parsed.context):
        write_out_omitted(parsed)
    written = str(parsed.operation)
    assert "[0:1, 1:7, 2:7, 0:2]" in written
    assert "pad = [[0, 1], [0, 2]]" in written


@pytest.mark.parametrize("rounding", COMPILER_OPTIONS)
def test_a_transpose_is_compiled_once(rounding):
    """Without its simplifier XLA writes one that stands before another op a hundred times."""
    x = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    executable = Executable(module("%x: 2x3x4xf32", "%t = transpose %x, dims = [2, 0, 1]; %r = add %t, %t"), rounding)
    [found] = executable._compiled._compiled.hlo_modules()
    assert found.to_string().count(" transpose(") <= 2
    assert np.array_equal(executable.run([x])[0], 2 * x.transpose(2, 0, 1))


@pytest.mark.parametrize("dtype", ["f32", "complex<f32>"])
def test_what_two_versions_share_is_summed_in_one_order(dtype):
    """Also where one of them alone has a reduction whose start is no identity, for which XLA leaves a pass out."""
    total = f"""%zero = constant {ZEROS[dtype]} : {dtype}
    %sum = reduce(%x init: %zero) applies stablehlo.add across dimensions = [1]
    %start = constant START : i32; %counted = reduce(%k init: %start) applies stablehlo.add across dimensions = [0]"""
    text = module(f"%x: 8x200x{dtype}, %k: 5xi32", f"{total}\n%r = subtract %counted, %start", "%sum, %r")
    first, second = (text.replace("START", start) for start in ("0", "5"))
    verdicts = (
        hl.verify(first, second).module,
        verify_plain(first, second, seed=0, runs=3, memory_budget=1 << 20, near=False),
    )
    assert [(one.status, one.how[:11]) for one in verdicts] == [("equal", "bit for bit")] * 2


@pytest.mark.parametrize(
    ("source", "made", "number", "expected"),
    [
        *(("f64", "bf16", 1 + 2**-8 + 2**-40, 1 + 2**-7), ("f64", "f16", -(1 + 2**-11 + 2**-40), -(1 + 2**-10))),
        *(("f64", "bf16", 1 + 2**-8, 1.0), ("i32", "bf16", 2**24 + 2**16 + 1, 2.0**24 + 2**17)),
        *(("ui64", "bf16", 2**63 + 2**55, 2.0**63), ("i16", "f8E5M2", 2305, 2560.0), ("i64", "bf16", -1, -1.0)),
        ("f64", "bf16", np.inf, np.inf),
    ],
)
def test_a_conversion_rounds_once(source, made, number, expected):
    """XLA goes by way of f32 or f16; what lies at a tie or beside it shows that."""
    executable = Executable(module(f"%x: 2x{source}", f"%r = convert %x -> 2x{made}"), "exact")
    [found] = executable.run([np.full(2, number, a.dtype) for a in executable.arguments])
    assert found.astype(np.float64).tolist() == [expected] * 2


PLACE = """%s = constant 2.0 : f32; %t = constant 7 : i32
%r:2 = reduce(%x, %k, %s, %t) <dimensions = array<i64: 1>> {
  %a, %b, %c, %d: %p = compare GE, %a, %c; %m = select %p, %a, %c; %n = select %p, %b, %d; return %m, %n
} -> (3xf32, 3xi32)
return %r#0, %r#1"""
WITHOUT_PLACE = "%m = reshape %x -> 3xf32; %n = reshape %k -> 3xi32; return %m, %n"
CONVOLVED = """%r = convolution(%x, KERNEL) dim_numbers = [b, 0, 1, 2, f]x[o, 0, 1, i, 2]->[b, 0, 1, 2, f],
  window = {reverse = [REVERSED, false, false]} {batch_group_count = 1 : i64, feature_group_count = 2 : i64}
  -> 8x1x1x1x2xf32""".replace("\n", " ")
PLAIN_KERNEL = CONVOLVED.replace("REVERSED", "false")
ADDED = (
    "%e = exponential %y; %m = multiply %x, %e; %z = constant 0.0 : f32; %s = broadcast_in_dim %z, dims = [] -> 8xf32"
)
PROMOTING = """%z = constant 2.5 : f32; %r = "stablehlo.reduce"(%x, %z) <{dimensions = array<i64: 0>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %c = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %c : tensor<f32> }) : (tensor<1x8xf16>, tensor<f32>) -> tensor<8xf32>"""
VERSIONS = {
    "a place that begins with constants": ("%x: 3x1xf32, %k: 3x1xi32", PLACE, PLACE, True),
    "without them": ("%x: 3x1xf32, %k: 3x1xi32", PLACE, WITHOUT_PLACE, False),
    "the least number": ("%x: 3x1xf32, %k: 3x1xi32", PLACE, PLACE.replace("GE", "LE"), False),
    "a kernel that is reversed before": (
        *("%x: 8x2x2x2x2xf32, %k: 2x2x2x1x2xf32", CONVOLVED.replace("KERNEL", "%k").replace("REVERSED", "true")),
        *(f"%t = reverse %k, dims = [1]; {PLAIN_KERNEL.replace('KERNEL', '%t')}", True),
    ),
    "without the reversal": (
        *("%x: 8x2x2x2x2xf32, %k: 2x2x2x1x2xf32", CONVOLVED.replace("KERNEL", "%k").replace("REVERSED", "true")),
        *(PLAIN_KERNEL.replace("KERNEL", "%k"), False),
    ),
    # XLA does not compile it, so XLA cannot leave the start out
    "a promoting reduction": ("%x: 1x8xf16", PROMOTING, "%w = convert %x -> 1x8xf32; %r = reshape %w -> 8xf32", False),
    # it keeps the sign of a zero; XLA would run both alike, and what is not exact no other judge looks at
    **{
        f"zero that is not added in {order}": ("%x: 8xf32, %y: 8xf32", f"{ADDED}; %r = add {order}", ADDED, False)
        for order in ("%m, %s", "%s, %m")
    },
}


@pytest.mark.parametrize("name", VERSIONS)
def test_a_version_without_what_xla_leaves_out_is_another(name):
    arguments, *bodies, is_same = VERSIONS[name]
    before, after = (module(arguments, b, "%m" if b is ADDED else "%r") for b in bodies)
    assert hl.verify(before, after).ok == is_same
    assert hl.verify(after, before).ok == is_same
    assert hl.verify(before, before, level="regions").ok


def arrays(operand=(3,), indices=(2, 1), updates=(2,)):
    """Inputs of these shapes."""
    return [np.ones(operand, np.float32), np.zeros(indices, np.int32), np.ones(updates, np.float32)]


RAGGED = [[[1.0], [2.0, 3.0]], [[0], [1]], [1.0, 2.0]]


@pytest.mark.parametrize(
    ("n", "p", "inputs", "told"),
    [
        ("?", "2", arrays(operand=(3, 1)), "input 0 does not fit"),
        ("?", "2", arrays(indices=(4, 1)), "input 1 does not fit"),
        ("?", "2", [[1.0, 2.0], [[0], [1]], [1.0, 2.0]], "input 0 does not fit"),
        *((n, "2", RAGGED, "input 0 is not an array") for n in ("5", "?")),
        ("?", "?", arrays(indices=(4, 1)), "the inputs do not fit the module"),  # each fits alone
        ("5", "2", [1], "1 inputs for 3 arguments"),
        ("?", "2", arrays(operand=(7,)), ""),
    ],
)
def test_inputs_that_do_not_fit(n, p, inputs, told):
    """An input of another rank, size or type is refused by its number; inputs that fit choose the sizes of the run."""
    text = scatter(ADD, n=n, p=p)
    if told:
        with pytest.raises(hl.InputError, match=told):
            hl.verify(text, hl.lower(text), inputs=inputs)
        return
    verdict = hl.verify(text, hl.lower(text), inputs=inputs)
    assert (verdict.ok, verdict.module.status) == (True, "equal")
    assert "arg0.0=7" in verdict.module.how


SUM = """%zero = constant 0. : f32; %low = constant -1 : i32
%s = reduce(%x, %zero) <dimensions = array<i64: 1>> {add} -> 8xf32"""
LEAST = "%m = reduce(%n, %low) <dimensions = array<i64: 0>> {%c, %d: %o = OP; return %o} -> i32"


@pytest.mark.parametrize(
    ("line", "again"),
    [("maximum %c, %d", False), ("minimum %d, %c", False), ("maximum %c, %c", True), ("add %c, %d", True)],
)
def test_a_start_that_shows_where_it_is_taken_in_again(line, again):
    """Not of a maximum, which is the same however often."""
    text = module("%x: 8x64xf32, %n: 4xi32", f"{SUM}; {LEAST.replace('OP', line)}", "%s, %m")
    assert takes_starts_again(mlir.parse_module(text)) is again


def test_a_maximum_from_another_start_leaves_the_sums_beside_it():
    """Both versions add in one order, of which only one has such a maximum, as of the last write of a scatter."""
    first = module("%x: 8x64xf32, %n: 1xi32", f"{SUM}; %k = reshape %n -> i32; %m = maximum %k, %low", "%s, %m")
    second = module("%x: 8x64xf32, %n: 1xi32", f"{SUM}; {LEAST.replace('OP', 'maximum %c, %d')}", "%s, %m")
    assert hl.verify(first, second).ok
