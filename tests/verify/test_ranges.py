"""Intervals of values: random programs never leave them, and what a comparison cannot come out as is known."""

import numpy as np
import pytest

from hlo_lower.ir import mlir
from hlo_lower.verify.drive.ranges import Ranges
from hlo_lower.verify.read.program import Program
from hlo_lower.verify.run import Executable

BINARY = {
    "i": ("add", "subtract", "multiply", "maximum", "minimum", "and", "or", "xor"),
    "f": ("add", "subtract", "multiply", "maximum", "minimum", "divide"),
}
UNARY = {
    "i": ("negate", "abs", "not", "sign"),
    "f": ("negate", "abs", "exponential", "tanh", "sqrt", "logistic", "floor"),
}
SHIFTS = ("shift_left", "shift_right_logical", "shift_right_arithmetic")


def program(rng, element):
    """A random program over tensors of four numbers that returns all that it computes."""
    kind = "f" if element.startswith(("f", "bf")) else "i"
    made = f"tensor<4x{element}>"
    lines, values, truths = [], ["%x", "%y"], []

    def add(text):
        values.append(f"%v{len(lines)}")
        lines.append(f"{values[-1]} = stablehlo.{text}")

    for n in (0, 1, 5, 8, 100):
        add(f"constant dense<{n if kind == 'i' else float(n)}> : {made}")
    add(f"iota dim = 0 : {made}")
    for k in range(24):
        a, b, c = (values[rng.integers(len(values))] for _ in range(3))
        match int(rng.integers(8 if kind == "i" else 6)):
            case 0:
                add(f"{rng.choice(UNARY[kind]) if element[0] != 'u' else 'not'} {a} : {made}")
            case 1:
                add(f"clamp {a}, {b}, {c} : {made}")
            case 2:
                test = rng.choice(["LT", "LE", "GT", "GE", "EQ", "NE"])
                truths.append(f"%p{k}")
                lines.append(f"%p{k} = stablehlo.compare {test}, {a}, {b} : ({made}, {made}) -> tensor<4xi1>")
                for name in ("and", "or", "not", "compare EQ,", "compare NE,")[: rng.integers(6)]:
                    first, second = (truths[-1 - rng.integers(min(len(truths), 3))] for _ in range(2))
                    kinds = "(tensor<4xi1>, tensor<4xi1>) -> tensor<4xi1>" if "," in name else "tensor<4xi1>"
                    operands = first if name == "not" else f"{first}, {second}"
                    truths.append(f"%p{k}_{len(truths)}")
                    lines.append(f"{truths[-1]} = stablehlo.{name} {operands} : {kinds}")
                add(f"select {truths[-1]}, {rng.choice([a, b, c])}, {c} : tensor<4xi1>, {made}")
                if rng.random() < 0.5:
                    moved = rng.choice(["transpose", "broadcast_in_dim"])
                    square = f"tensor<2x2x{element}>"
                    add(f"reshape {a} : ({made}) -> {square}")
                    add(f"{moved} {values.pop()}, dims = [1, 0] : ({square}) -> {square}")
                    add(f"reshape {values.pop()} : ({square}) -> {made}")
                    add(f"select {truths[-1]}, {values[-1]}, {c} : tensor<4xi1>, {made}")
            case 3:
                add(f"slice {a} [1:3] : ({made}) -> tensor<2x{element}>")
                part = values.pop()
                add(f"concatenate {part}, {part}, dim = 0 : (tensor<2x{element}>, tensor<2x{element}>) -> {made}")
            case 6:
                add(f"{rng.choice(SHIFTS)} {a}, {values[2 + rng.integers(4)]} : {made}")
            case 7:
                add(f"{rng.choice(['divide', 'remainder'])} {a}, {values[3 + rng.integers(4)]} : {made}")
            case _:
                add(f"{rng.choice(BINARY[kind])} {a}, {b} : {made}")
    returned = values[2:]
    results = ", ".join([made] * len(returned))
    body = "\n".join([*lines, f"return {', '.join(returned)} : {results}"])
    return f"func.func public @main(%x: {made}, %y: {made}) -> ({results}) {{\n{body}\n}}"


@pytest.mark.parametrize("element", ["i8", "i32", "ui8", "f32", "f16"])
@pytest.mark.parametrize("seed", range(3))
def test_no_value_leaves_its_interval(element, seed):
    """Every value of random programs lies in its interval, or is NaN."""
    rng = np.random.default_rng([seed, len(element), ord(element[-1])])
    text = program(rng, element)
    ranges = Ranges(Program(mlir.parse_module(text)), {})
    body = ranges.program.entries["main"]
    dtype = ranges.program.dtype_of(body.arguments[0])
    run = Executable(text, "exact")
    for turn in range(12):
        wide = rng.integers(-128, 128, (2, 4)) * (1 if turn % 2 else 0.01 if dtype.kind == "f" else 1)
        results = run.run([row.astype(dtype) for row in np.asarray(wide)])
        for value, result in zip(body.returned, results, strict=True):
            low, high = ranges.of(value)
            wide_result = np.asarray(result, np.float64 if dtype.kind == "f" else object)
            inside = (wide_result >= low) & (wide_result <= high) | (wide_result != wide_result)
            assert np.all(inside), f"{value}: {result} is not in {low} to {high}\n{text}"


REMAINDER = """func.func public @main(%i: tensor<3xi32>) -> tensor<3xi32> {
%n = stablehlo.constant dense<4> : tensor<3xi32>
%z = stablehlo.constant dense<0> : tensor<3xi32>
%r = stablehlo.remainder %i, %n : tensor<3xi32>
%is_not_zero = stablehlo.compare NE, %r, %z : (tensor<3xi32>, tensor<3xi32>) -> tensor<3xi1>
%is_less = stablehlo.compare LT, %r, %z : (tensor<3xi32>, tensor<3xi32>) -> tensor<3xi1>
%is_negative = stablehlo.compare LT, %n, %z : (tensor<3xi32>, tensor<3xi32>) -> tensor<3xi1>
%other_sign = stablehlo.compare NE, %is_less, %is_negative : (tensor<3xi1>, tensor<3xi1>) -> tensor<3xi1>
%p = stablehlo.and %other_sign, %is_not_zero : tensor<3xi1>
%more = stablehlo.add %r, %n : tensor<3xi32>
%m = stablehlo.select %p, %more, %r : tensor<3xi1>, tensor<3xi32>
return %m : tensor<3xi32>
}"""


def test_a_remainder_of_the_sign_of_the_divisor_is_not_negative():
    """As Python takes remainders, which JAX writes with a choice by two conditions."""
    ranges = Ranges(Program(mlir.parse_module(REMAINDER)), {})
    assert ranges.of(ranges.program.entries["main"].returned[0]) == (0, 3)


CLAMPED = """func.func public @main(%i: tensor<i32>) -> tensor<i1> {
%z = stablehlo.constant dense<0> : tensor<i32>
%n = stablehlo.constant dense<7> : tensor<i32>
%c = stablehlo.clamp %z, %i, %n : tensor<i32>
%p = stablehlo.compare LT, %c, %z : (tensor<i32>, tensor<i32>) -> tensor<i1>
return %p : tensor<i1>
}"""


def test_what_is_clamped_is_never_less():
    """A clamped number may be equal to its bound and greater, and is never less."""
    ranges = Ranges(Program(mlir.parse_module(CLAMPED)), {})
    *_, compare = ranges.program.entries["main"].ops
    assert [ranges.may_be(compare, what) for what in ("equal", "greater", "less")] == [True, True, False]


KEPT = """func.func public @main(%x: tensor<8xf32>) -> tensor<8xf32> {
%z = stablehlo.constant dense<0> : tensor<i32>
%one = stablehlo.constant dense<1> : tensor<i32>
%n = stablehlo.constant dense<3> : tensor<i32>
%m = stablehlo.constant dense<MOST> : tensor<i32>
%at = stablehlo.iota dim = 0 : tensor<4xi32>
%0:3 = stablehlo.while(%i = %z, %v = %x, %k = %at) : tensor<i32>, tensor<8xf32>, tensor<4xi32>
cond {
  %p = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
  stablehlo.return %p : tensor<i1>
} do {
  %a = stablehlo.dynamic_slice %k, %i, sizes = [1] : (tensor<4xi32>, tensor<i32>) -> tensor<1xi32>
  %s = stablehlo.reshape %a : (tensor<1xi32>) -> tensor<i32>
  %c = stablehlo.clamp %z, %s, %m : tensor<i32>
  %q = stablehlo.compare EQ, %c, %s : (tensor<i32>, tensor<i32>) -> tensor<i1>
  %d = stablehlo.negate %v : tensor<8xf32>
  %w = stablehlo.select %q, %d, %v : tensor<i1>, tensor<8xf32>
  %j = stablehlo.add %i, %one : tensor<i32>
  stablehlo.return %j, %w, %k : tensor<i32>, tensor<8xf32>, tensor<4xi32>
}
return %0#1 : tensor<8xf32>
}"""


@pytest.mark.parametrize(("most", "may_be"), [(2, True), (3, False), (7, False)])
def test_what_a_loop_keeps_lies_where_it_began(most, may_be):
    """A clamp to bounds that hold anyway moves nothing, also for what a loop carries unchanged."""
    ranges = Ranges(Program(mlir.parse_module(KEPT.replace("MOST", str(most)))), {})
    [loop] = (op for op in ranges.program.entries["main"].ops if op.name == "stablehlo.while")
    [compare] = (op for op in loop.bodies[1].ops if op.name == "stablehlo.compare")
    assert ranges.may_be(compare, "equal")
    assert ranges.may_be(compare, "different") == may_be


ALONG = """func.func public @main(%x: tensor<f32>) -> tensor<f32> {
%z = stablehlo.constant dense<0> : tensor<i32>
%0:4 = stablehlo.while(%i = %z, %j = %z, %k = %z, %v = %x) : tensor<i32>, tensor<i32>, tensor<i32>, tensor<f32>
cond {
  %n = stablehlo.constant dense<10> : tensor<i32>
  %p = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
  stablehlo.return %p : tensor<i1>
} do {
  %one = stablehlo.constant dense<1> : tensor<i32>
  %ni = stablehlo.add %i, %one : tensor<i32>
  %nj = stablehlo.add %j, %one : tensor<i32>
  %q = stablehlo.compare LT, %j, %z : (tensor<i32>, tensor<i32>) -> tensor<i1>
  %r = stablehlo.compare LT, %k, %z : (tensor<i32>, tensor<i32>) -> tensor<i1>
  stablehlo.return %ni, %nj, %k, %v : tensor<i32>, tensor<i32>, tensor<i32>, tensor<f32>
}
return %0#3 : tensor<f32>
}"""


def test_what_goes_along_with_a_counter_has_its_values():
    """A loop's second counter, which no condition reads, and what a loop carries unchanged are known in its body."""
    ranges = Ranges(Program(mlir.parse_module(ALONG)), {})
    loop = ranges.program.entries["main"].ops[-1]
    body = loop.bodies[1]
    assert [ranges.of(v) for v in body.arguments[:2]] == [(0, 9), (0, 9)]
    compares = [op for op in body.ops if op.short_name == "compare"]
    assert not any(ranges.may_be(op, "less") for op in compares)


SEARCHED = """func.func public @main(%x: tensor<4xf32>, %y: tensor<4xf32>) -> tensor<4xi1> {
%low = stablehlo.constant dense<0> : tensor<4xui32>
%high = stablehlo.constant dense<8> : tensor<4xui32>
%two = stablehlo.constant dense<2> : tensor<4xui32>
%d = stablehlo.subtract %high, %low : tensor<4xui32>
%h = stablehlo.divide %d, %two : tensor<4xui32>
%m = stablehlo.add %low, %h : tensor<4xui32>
%p = stablehlo.compare LT, %x, %y : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
OTHER
%low1 = stablehlo.select %p, %low, %m : tensor<4xi1>, tensor<4xui32>
%high1 = stablehlo.select %q, %m, %high : tensor<4xi1>, tensor<4xui32>
%r = stablehlo.compare LT, %low1, %high1 : (tensor<4xui32>, tensor<4xui32>) -> tensor<4xi1>
return %r : tensor<4xi1>
}"""


@pytest.mark.parametrize(
    ("other", "expected"),
    [
        ("%q = stablehlo.or %p, %p : tensor<4xi1>", [True, False, False]),
        ("%q = stablehlo.not %p : tensor<4xi1>", [True, True, False]),
        ("%q = stablehlo.reverse %p, dims = [0] : tensor<4xi1>", [True, True, False]),
    ],
)
def test_bounds_that_one_truth_value_moves_do_not_meet(other, expected):
    """The bounds of a binary search stay apart, as one comparison moves either; of another element's they may meet."""
    ranges = Ranges(Program(mlir.parse_module(SEARCHED.replace("OTHER", other))), {})
    *_, compare = ranges.program.entries["main"].ops
    assert [ranges.may_be(compare, what) for what in ("less", "equal", "greater")] == expected


ORDERED = """func.func public @main(%x: tensor<4xf32>) -> tensor<4xi1> {
%nan = stablehlo.constant dense<NAN> : tensor<4xf32>
%p = stablehlo.compare NE, %x, %x : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
%y = stablehlo.select %p, %nan, %x : tensor<4xi1>, tensor<4xf32>
%b = stablehlo.bitcast_convert %y : (tensor<4xf32>) -> tensor<4xi32>
%c = stablehlo.constant dense<-1> : tensor<4xi32>
%q = stablehlo.compare LE, %b, %c : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi1>
return %q : tensor<4xi1>
}"""


@pytest.mark.parametrize(("nan", "may_be"), [("0x7FC00000", False), ("0xFFFFFFFF", True)])
def test_bits_of_floats_with_one_nan_are_no_other_nan(nan, may_be):
    """Where one NaN takes the place of all, the bits of a float are those of no other one."""
    ranges = Ranges(Program(mlir.parse_module(ORDERED.replace("NAN", nan))), {})
    *_, compare = ranges.program.entries["main"].ops
    assert ranges.may_be(compare, "less")
    assert ranges.may_be(compare, "equal") == may_be


LARGEST = """func.func public @main(%x: tensor<4xf32>) -> tensor<i1> {
%least = stablehlo.constant dense<INIT> : tensor<f32>
%m = stablehlo.reduce(%x init: %least) applies stablehlo.maximum across dimensions = [0]
  : (tensor<4xf32>, tensor<f32>) -> tensor<f32>
%b = stablehlo.broadcast_in_dim %m, dims = [] : (tensor<f32>) -> tensor<4xf32>
%p = stablehlo.compare EQ, %x, %b : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
%i = stablehlo.iota dim = 0 : tensor<4xi32>
%n = stablehlo.constant dense<4> : tensor<4xi32>
%s = stablehlo.select %p, %i, %n : tensor<4xi1>, tensor<4xi32>
%most = stablehlo.constant dense<2147483647> : tensor<i32>
%j = stablehlo.reduce(%s init: %most) applies stablehlo.minimum across dimensions = [0]
  : (tensor<4xi32>, tensor<i32>) -> tensor<i32>
%four = stablehlo.constant dense<4> : tensor<i32>
%q = stablehlo.compare EQ, %j, %four : (tensor<i32>, tensor<i32>) -> tensor<i1>
return %q : tensor<i1>
}"""


@pytest.mark.parametrize(
    ("init", "no_nan", "may_be"), [("0xFF800000", True, False), ("0xFF800000", False, True), ("0.0", True, True)]
)
def test_some_element_is_the_largest_one_unless_one_is_nan(init, no_nan, may_be):
    """The place of the largest element is one of the places where no NaN comes and no start is larger than all."""
    ranges = Ranges(Program(mlir.parse_module(LARGEST.replace("INIT", init))), {}, no_nan=no_nan)
    *_, compare = ranges.program.entries["main"].ops
    assert ranges.may_be(compare, "equal") == may_be


MOVED = {
    "broadcast": "%s, sizes = [2] : (tensor<4xi32>) -> tensor<2x4xi32>",
    "broadcast_in_dim": "%s, dims = [1] : (tensor<4xi32>) -> tensor<2x4xi32>",
    "reshape": "%s : (tensor<4xi32>) -> tensor<2x2xi32>",
    "reverse": "%s, dims = [0] : tensor<4xi32>",
    "slice": "%s [1:3] : (tensor<4xi32>) -> tensor<2xi32>",
    "dynamic_slice": "%s, %i, sizes = [2] : (tensor<4xi32>, tensor<i32>) -> tensor<2xi32>",
}


@pytest.mark.parametrize("op", MOVED)
def test_what_is_moved_lies_where_it_lay(op):
    """An op that gives elements of one operand leaves their interval; one that computes them does not."""
    text = f"""func.func public @main(%x: tensor<4xi32>, %i: tensor<i32>) -> tensor<*xi32> {{
      %a = stablehlo.constant dense<3> : tensor<4xi32>
      %b = stablehlo.constant dense<5> : tensor<4xi32>
      %s = stablehlo.clamp %a, %x, %b : tensor<4xi32>
      %r = stablehlo.{op} {MOVED[op]}
      return %r : tensor<*xi32>
    }}""".replace("tensor<*xi32>", MOVED[op].rpartition("-> ")[2].rpartition(" : ")[2])
    ranges = Ranges(Program(mlir.parse_module(text)), {})
    [result] = ranges.program.entries["main"].returned
    assert ranges.of(result) == (3, 5)


def test_the_root_of_a_negative_zero_may_be_divided_by():
    """1 / sqrt(-0.0) is -inf: that a reciprocal root lies below 0 may come, and that a root does may not."""
    text = """func.func public @main(%x: tensor<4xf32>) -> tensor<4xi1> {
      %r = stablehlo.rsqrt %x : tensor<4xf32>
      %z = stablehlo.constant dense<0.0> : tensor<4xf32>
      %l = stablehlo.compare LT, %r, %z : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
      return %l : tensor<4xi1>
    }"""
    for op, expected in (("rsqrt", True), ("sqrt", False)):
        ranges = Ranges(Program(mlir.parse_module(text.replace("rsqrt", op))), {})
        [compare] = [op for op in ranges.program.entries["main"].ops if op.short_name == "compare"]
        assert ranges.may_be(compare, "less") is expected
    negative_zero = np.full(4, -0.0, np.float32)
    assert Executable(text, "exact").run([negative_zero])[0].all()


def turning(rng, element):
    """A random loop that carries three vectors of integers beside its counter, and returns them."""
    made, lines, values = f"tensor<3x{element}>", [], ["%a", "%b", "%c"]
    for k, n in enumerate((0, 1, 5, 100)):
        lines.append(f"%n{k} = stablehlo.constant dense<{n}> : {made}")
        values.append(f"%n{k}")
    for k in range(int(rng.integers(2, 9))):
        x, y, z = (values[rng.integers(len(values))] for _ in range(3))
        name = str(rng.choice(["clamp", "remainder", *BINARY["i"]]))
        operands = (
            f"{x}, {y}, {z}" if name == "clamp" else f"{x}, %n{rng.integers(1, 4)}" if name[0] == "r" else f"{x}, {y}"
        )
        lines.append(f"%v{k} = stablehlo.{name} {operands} : {made}")
        values.append(f"%v{k}")
        if rng.random() < 0.4:
            test = rng.choice(["LT", "LE", "GT", "GE", "EQ", "NE"])
            lines.append(f"%p{k} = stablehlo.compare {test}, {x}, {y} : ({made}, {made}) -> tensor<3xi1>")
            lines.append(f"%s{k} = stablehlo.select %p{k}, %v{k}, {z} : tensor<3xi1>, {made}")
            values.append(f"%s{k}")
    back = ", ".join(str(values[-1 - rng.integers(min(6, len(values)))]) for _ in range(3))
    starts = [str(rng.choice(["%x", "%y", "%n0", "%n2"])) for _ in range(3)]
    bound = int(rng.integers(1, 6))
    limit = str(rng.choice(["%x", "%n3", "%n1"]))
    body = "\n".join(lines)
    kinds = f"tensor<i32>, {made}, {made}, {made}"
    outside = "\n".join(f"%n{k} = stablehlo.constant dense<{n}> : {made}" for k, n in enumerate((0, 1, 5, 100)))
    return f"""func.func public @main(%x: {made}, %y: {made}) -> ({made}, {made}, {made}) {{
{outside}
%zero = stablehlo.constant dense<0> : tensor<i32>
%bound = stablehlo.constant dense<{bound}> : tensor<i32>
%one = stablehlo.constant dense<1> : tensor<i32>
%r:4 = stablehlo.while(%i = %zero, %a = {starts[0]}, %b = {starts[1]}, %c = {starts[2]}) : {kinds}
cond {{
  %no = stablehlo.constant dense<true> : tensor<i1>
  %few = stablehlo.compare LT, %i, %bound : (tensor<i32>, tensor<i32>) -> tensor<i1>
  %each = stablehlo.compare LE, %a, {limit} : ({made}, {made}) -> tensor<3xi1>
  %all = stablehlo.reduce(%each init: %no) applies stablehlo.and across dimensions = [0]
    : (tensor<3xi1>, tensor<i1>) -> tensor<i1>
  %go = stablehlo.and %few, %all : tensor<i1>
  stablehlo.return {rng.choice(["%few", "%go"])} : tensor<i1>
}} do {{
{body.replace("%n", "%k")}
%j = stablehlo.add %i, %one : tensor<i32>
stablehlo.return %j, {back.replace("%n", "%k")} : {kinds}
}}
return %r#1, %r#2, %r#3 : {made}, {made}, {made}
}}"""


@pytest.mark.parametrize("element", ["i8", "ui8", "i32"])
@pytest.mark.parametrize("seed", [*range(3), *(pytest.param(seed, marks=pytest.mark.sweep) for seed in range(3, 300))])
def test_nothing_that_a_loop_carries_leaves_its_interval(element, seed):
    """Neither after the loop nor, as the next trip begins with it, within."""
    rng = np.random.default_rng([seed, len(element), ord(element[-1])])
    text = turning(rng, element)
    ranges = Ranges(Program(mlir.parse_module(text)), {})
    body = ranges.program.entries["main"]
    dtype, run = ranges.program.dtype_of(body.arguments[0]), Executable(text, "quick")
    for turn in range(12):
        given = rng.integers(-128, 128, (2, 3)) if turn % 2 else rng.integers(-2, 9, (2, 3))
        for value, result in zip(body.returned, run.run([row.astype(dtype) for row in given]), strict=True):
            low, high = ranges.of(value)
            assert np.all((result >= low) & (result <= high)), f"{result} is not in {low} to {high}\n{text}"


PICKED = """func.func public @main(%x: tensor<6xi32>) -> tensor<i32> {
%z = stablehlo.constant dense<0> : tensor<i32>
%one = stablehlo.constant dense<1> : tensor<i32>
%five = stablehlo.constant dense<5> : tensor<i32>
%r = stablehlo.while(%i = %z) : tensor<i32>
cond {
  %a = stablehlo.dynamic_slice %x, %i, sizes = [1] : (tensor<6xi32>, tensor<i32>) -> tensor<1xi32>
  %s = stablehlo.reshape %a : (tensor<1xi32>) -> tensor<i32>
  %p = stablehlo.compare NE, %s, %z : (tensor<i32>, tensor<i32>) -> tensor<i1>
  stablehlo.return %p : tensor<i1>
} do {
  %a = stablehlo.dynamic_slice %x, %i, sizes = [1] : (tensor<6xi32>, tensor<i32>) -> tensor<1xi32>
  %s = stablehlo.reshape %a : (tensor<1xi32>) -> tensor<i32>
  %j = NEXT : tensor<i32>
  stablehlo.return %j : tensor<i32>
}
return %r : tensor<i32>
}"""


@pytest.mark.parametrize(
    ("following", "interval"),
    [
        ("stablehlo.clamp %one, %s, %five", (0, 5)),
        ("stablehlo.minimum %s, %five", (-(2**31), 5)),
        ("stablehlo.add %i, %one", (-(2**31), 2**31 - 1)),
    ],
)
def test_what_a_loop_carries_is_what_went_in_or_came_out(following, interval):
    """A clamped number lies in the clamp and where it began; one that grows with each trip may be any."""
    ranges = Ranges(Program(mlir.parse_module(PICKED.replace("NEXT", following))), {})
    assert ranges.of(ranges.program.entries["main"].returned[0]) == interval


LIMITED = PICKED.replace("stablehlo.compare NE, %s, %z", "stablehlo.compare LT, %i, %five")


def test_what_the_condition_says_holds_in_the_body_and_not_behind_the_loop():
    """While it is below 5 a trip begins at 0 to 4; the loop may end with 9."""
    text = LIMITED.replace("NEXT", "stablehlo.clamp %one, %s, %nine").replace("%r =", f"{NINE}\n%r =")
    ranges = Ranges(Program(mlir.parse_module(text)), {})
    body = ranges.program.entries["main"]
    [loop] = (op for op in body.ops if op.name == "stablehlo.while")
    assert ranges.of(body.returned[0]) == (0, 9)
    assert ranges.of(loop.bodies[1].arguments[0]) == (0, 4)


NINE = "%nine = stablehlo.constant dense<9> : tensor<i32>"
