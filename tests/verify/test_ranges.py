"""Intervals of values: random programs never leave them, and what a comparison cannot come out as is known."""

import numpy as np
import pytest
from untyped_mlir import module

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
DIRECTIONS = ["LT", "LE", "GT", "GE", "EQ", "NE"]


def program(rng, element):
    """A random program over tensors of four numbers that returns all that it computes."""
    kind = "f" if element.startswith(("f", "bf")) else "i"
    lines, values, truths = [], ["%x", "%y"], []

    def add(text):
        values.append(f"%v{len(lines)}")
        lines.append(f"{values[-1]} = {text}")

    for n in (0, 1, 5, 8, 100):
        add(f"constant {n if kind == 'i' else float(n)} : 4x{element}")
    add(f"iota dim = 0 : 4x{element}")
    for k in range(24):
        a, b, c = (values[rng.integers(len(values))] for _ in range(3))
        match int(rng.integers(8 if kind == "i" else 6)):
            case 0:
                add(f"{rng.choice(UNARY[kind]) if element[0] != 'u' else 'not'} {a}")
            case 1:
                add(f"clamp {a}, {b}, {c}")
            case 2:
                truths.append(f"%p{k}")
                lines.append(f"%p{k} = compare {rng.choice(DIRECTIONS)}, {a}, {b}")
                for name in ("and", "or", "not", "compare EQ,", "compare NE,")[: rng.integers(6)]:
                    first, second = (truths[-1 - rng.integers(min(len(truths), 3))] for _ in range(2))
                    truths.append(f"%p{k}_{len(truths)}")
                    lines.append(f"{truths[-1]} = {name} {first if name == 'not' else f'{first}, {second}'}")
                add(f"select {truths[-1]}, {rng.choice([a, b, c])}, {c}")
                if rng.random() < 0.5:
                    moved = rng.choice(["transpose", "broadcast_in_dim"])
                    add(f"reshape {a} -> 2x2x{element}")
                    add(f"{moved} {values.pop()}, dims = [1, 0] -> 2x2x{element}")
                    add(f"reshape {values.pop()} -> 4x{element}")
                    add(f"select {truths[-1]}, {values[-1]}, {c}")
            case 3:
                add(f"slice {a} [1:3]")
                part = values.pop()
                add(f"concatenate {part}, {part}, dim = 0 -> 4x{element}")
            case 6:
                add(f"{rng.choice(SHIFTS)} {a}, {values[2 + rng.integers(4)]}")
            case 7:
                add(f"{rng.choice(['divide', 'remainder'])} {a}, {values[3 + rng.integers(4)]}")
            case _:
                add(f"{rng.choice(BINARY[kind])} {a}, {b}")
    return module(f"%x: 4x{element}, %y: 4x{element}", "\n".join(lines), ", ".join(values[2:]))


def ranges_of(text, **how):
    """The intervals of a module, and its body."""
    ranges = Ranges(Program(mlir.parse_module(text)), {}, **how)
    return ranges, ranges.program.entries["main"]


def check_runs(text, drawn, rounding):
    """Every result of a module lies in its interval, or is NaN."""
    ranges, body = ranges_of(text)
    dtype, run = ranges.program.dtype_of(body.arguments[0]), Executable(text, rounding)
    for turn in range(12):
        rows = [np.asarray(row).astype(dtype) for row in drawn(turn, dtype)]
        for value, result in zip(body.returned, run.run(rows), strict=True):
            low, high = ranges.of(value)
            wide = np.asarray(result, np.float64 if dtype.kind == "f" else object)
            inside = (wide >= low) & (wide <= high) | (wide != wide)
            assert np.all(inside), f"{value}: {result} is not in {low} to {high}\n{text}"


@pytest.mark.parametrize("element", ["i8", "i32", "ui8", "f32", "f16"])
@pytest.mark.parametrize("seed", range(3))
def test_no_value_leaves_its_interval(element, seed):
    """Every value of random programs lies in its interval, or is NaN."""
    rng = np.random.default_rng([seed, len(element), ord(element[-1])])

    def drawn(turn, dtype):
        return rng.integers(-128, 128, (2, 4)) * (1 if turn % 2 else 0.01 if dtype.kind == "f" else 1)

    check_runs(program(rng, element), drawn, "exact")


def turning(rng, element, is_nested=False):
    """A random loop that carries three vectors of integers beside its counter, and returns them; another one may stand
    before what its body computes."""
    kind = f"3x{element}"
    constants = [f"%NAME{k} = constant {n} : {kind}" for k, n in enumerate((0, 1, 5, 100))]
    lines, values = [], ["%a", "%b", "%c", "%k0", "%k1", "%k2", "%k3"]
    for k in range(int(rng.integers(2, 9))):
        x, y, z = (values[rng.integers(len(values))] for _ in range(3))
        name = str(rng.choice(["clamp", "remainder", *BINARY["i"]]))
        second = f"%k{rng.integers(1, 4)}" if name == "remainder" else y
        lines.append(f"%v{k} = {name} {x}, {second}{f', {z}' if name == 'clamp' else ''}")
        values.append(f"%v{k}")
        if rng.random() < 0.4:
            lines.append(f"%p{k} = compare {rng.choice(DIRECTIONS)}, {x}, {y}; %s{k} = select %p{k}, %v{k}, {z}")
            values.append(f"%s{k}")
    back = ", ".join(str(values[-1 - rng.integers(min(6, len(values)))]) for _ in range(3))
    if is_nested:
        line = f"{rng.choice(BINARY['i'])} %e, {rng.choice(['%d', '%k1', '%b', '%f'])}"
        given = rng.choice(["%e, %u, %d", "%t, %d, %f"])
        inner = [str(rng.choice(["%a", "%b", "%c", "%k0", "%k2", "%v0"])) for _ in range(3)]
        lines[1:1] = [
            f"""%w:4 = while(%h = %zero, %d = {inner[0]}, %e = {inner[1]}, %f = {inner[2]}) cond {{
              %m = compare LT, %h, %bound; return %m }} do {{
              %t = {line}; %u = minimum %t, %f; %g = add %h, %one; return %g, {given} }}""",
            "%v1n = maximum %w#1, %w#2",
        ]
        back = f"{back.rpartition(', ')[0]}, {rng.choice(['%v1n', '%w#3'])}"
    a, b, c = (str(rng.choice(["%x", "%y", "%n0", "%n2"])) for _ in range(3))
    bound, limit = int(rng.integers(1, 6)), str(rng.choice(["%x", "%n3", "%n1"]))
    body = f"""{"; ".join(constants).replace("NAME", "n")}
    %zero = constant 0 : i32; %bound = constant {bound} : i32; %one = constant 1 : i32
    %r:4 = while(%i = %zero, %a = {a}, %b = {b}, %c = {c}) cond {{
      %no = constant true : i1; %few = compare LT, %i, %bound; %each = compare LE, %a, {limit}
      %all = reduce(%each init: %no) applies stablehlo.and across dimensions = [0]; %go = and %few, %all
      return {rng.choice(["%few", "%go"])} }} do {{
      {"; ".join([*constants, *lines]).replace("NAME", "k")}
      %j = add %i, %one; return %j, {back} }}"""
    return module(f"%x: {kind}, %y: {kind}", body, "%r#1, %r#2, %r#3")


@pytest.mark.parametrize("element", ["i8", "ui8", "i32"])
@pytest.mark.parametrize("seed", [*range(3), *(pytest.param(seed, marks=pytest.mark.sweep) for seed in range(3, 300))])
def test_nothing_that_a_loop_carries_leaves_its_interval(element, seed):
    """Neither after the loop nor, as the next trip begins with it, within."""
    rng = np.random.default_rng([seed, len(element), ord(element[-1])])

    def drawn(turn, _):
        return rng.integers(-128, 128, (2, 3)) if turn % 2 else rng.integers(-2, 9, (2, 3))

    check_runs(turning(rng, element, is_nested=seed % 2 == 1), drawn, "quick")


def test_what_a_loop_carries_is_found_by_induction():
    """What is chosen of it stays within, and what is handed on from turn to turn comes late."""
    text = module(
        "%x: 8xi32, %q: 8xi1",
        """%zero = constant 0 : i32; %one = constant 1 : i32; %nine = constant 9 : i32; %s = constant -1 : 8xi32
        %far = constant 100 : 8xi32
        %r:7 = while(%i = %zero, %a = %s, %b = %s, %c = %s, %d = %s, %e = %s, %f = %s) cond {
          %p = compare LT, %i, %nine; return %p } do {
          %j = add %i, %one; %n = broadcast_in_dim %j, dims = [] -> 8xi32
          %g = reverse %a, dims = [0]; %h = select %q, %g, %n
          return %j, %h, %far, %b, %c, %d, %e }""",
        "%r#1, %r#6",
    )
    ranges, body = ranges_of(text)
    assert [ranges.of(value) for value in body.returned] == [(-1, 9), (-(2**31), 2**31 - 1)]


REMAINDER = """%n = constant 4 : 3xi32; %z = constant 0 : 3xi32; %a = remainder %i, %n
%is_not_zero = compare NE, %a, %z; %is_less = compare LT, %a, %z; %is_negative = compare LT, %n, %z
%other_sign = compare NE, %is_less, %is_negative; %p = and %other_sign, %is_not_zero; %more = add %a, %n
%r = select %p, %more, %a"""
PICKED = """%z = constant 0 : i32; %one = constant 1 : i32; %five = constant 5 : i32; %nine = constant 9 : i32
%r = while(%i = %z) cond {
  %a = dynamic_slice %x, %i, sizes = [1]; %s = reshape %a -> i32; %p = compare NE, %s, %z; return %p
} do { %a = dynamic_slice %x, %i, sizes = [1]; %s = reshape %a -> i32; %j = NEXT; return %j }"""
LIMITED = PICKED.replace("compare NE, %s, %z", "compare LT, %i, %five").replace("NEXT", "clamp %one, %s, %nine")
MOVED = "%a = constant 3 : 4xi32; %b = constant 5 : 4xi32; %s = clamp %a, %x, %b; %r = "


@pytest.mark.parametrize(
    ("arguments", "body", "interval"),
    [
        pytest.param("%i: 3xi32", REMAINDER, (0, 3), id="a remainder with the divisor's sign, as JAX writes Python's"),
        pytest.param("%x: 6xi32", PICKED.replace("NEXT", "clamp %one, %s, %five"), (0, 5), id="a loop that clamps"),
        pytest.param("%x: 6xi32", PICKED.replace("NEXT", "minimum %s, %five"), (-(2**31), 5), id="a loop of minima"),
        pytest.param("%x: 6xi32", PICKED.replace("NEXT", "add %i, %one"), (-(2**31), 2**31 - 1), id="a growing one"),
        pytest.param("%x: 6xi32", LIMITED, (0, 9), id="a condition does not hold behind its loop"),
        *(
            pytest.param("%x: 4xi32, %i: i32", f"{MOVED}{move}", (3, 5), id=f"moved by {move.split()[0]}")
            for move in (
                *("broadcast %s, sizes = [2] -> 2x4xi32", "broadcast_in_dim %s, dims = [1] -> 2x4xi32"),
                *("reshape %s -> 2x2xi32", "reverse %s, dims = [0]", "slice %s [1:3]"),
                "dynamic_slice %s, %i, sizes = [2]",
            )
        ),
    ],
)
def test_the_interval_of_a_result_is_known(arguments, body, interval):
    ranges, main = ranges_of(module(arguments, body))
    assert ranges.of(main.returned[0]) == interval
    if body == LIMITED:  # while the counter is below 5 a trip begins at 0 to 4
        assert ranges.of(next(op for op in main.ops if op.bodies).bodies[1].arguments[0]) == (0, 4)


EXTREME = "%x1 = clamp %a, %x, %b; %m = reduce(%x1 init: %s) applies stablehlo.{} across dimensions = [0]"


@pytest.mark.parametrize(
    ("extreme", "shape", "start", "interval"),
    [
        ("maximum", "4x", "-7", (0, 3)),
        ("maximum", "4x", "2", (2, 3)),
        ("minimum", "4x", "2", (0, 2)),
        ("maximum", "0x", "-7", (-(1 << 31), (1 << 31) - 1)),
    ],
)
def test_an_extreme_lies_beyond_its_elements(extreme, shape, start, interval):
    """Where there is one: what a mask leaves out is 0, and so is the largest size of it, whatever it begins with."""
    given = (("a", f"0 : {shape}i32"), ("b", f"3 : {shape}i32"), ("s", f"{start} : i32"))
    constants = "".join(f"%{k} = constant {n}; " for k, n in given)
    ranges, main = ranges_of(module(f"%x: {shape}i32", constants + EXTREME.format(extreme), "%m"))
    assert ranges.of(main.returned[0]) == interval


MASKED = """%i = iota dim = 0 : 4xi32; %k = constant LAST : 4xi32; %p = compare GT, %i, %k
%z = constant 0.0 : 4xf32; %y = select %p, %x, %z; %a = abs %y; %s = constant 0xFF800000 : f32
%m = reduce(%a init: %s) applies stablehlo.maximum across dimensions = [0]; %n = constant 0.0 : f32
%r = compare EQ, %m, %n"""


@pytest.mark.parametrize(("last", "interval"), [(3, (1, 1)), (2, (0, 1))])
def test_what_a_mask_leaves_out_is_no_nan(last, interval):
    """The size of a column below the last row is 0; of one with an element it may be anything, also NaN."""
    ranges, main = ranges_of(module("%x: 4xf32", MASKED.replace("LAST", str(last))))
    assert ranges.of(main.returned[0]) == interval


SEARCHED = """%low = constant 0 : 4xui32; %high = constant 8 : 4xui32; %two = constant 2 : 4xui32
%d = subtract %high, %low; %h = divide %d, %two; %m = add %low, %h; %p = compare LT, %x, %y; %q = OTHER
%low1 = select %p, %low, %m; %high1 = select %q, %m, %high; %r = compare LT, %low1, %high1"""
ORDERED = """%nan = constant NAN : 4xf32; %p = compare NE, %x, %x; %y = select %p, %nan, %x
%b = bitcast_convert %y -> 4xi32; %c = constant -1 : 4xi32; %r = compare LE, %b, %c"""
LARGEST = """%least = constant INIT : f32
%m = reduce(%x init: %least) applies stablehlo.maximum across dimensions = [0]
%b = broadcast_in_dim %m, dims = [] -> 4xf32; %p = compare EQ, %x, %b; %i = iota dim = 0 : 4xi32
%n = constant 4 : 4xi32; %s = select %p, %i, %n; %most = constant 2147483647 : i32
%j = reduce(%s init: %most) applies stablehlo.minimum across dimensions = [0]
%four = constant 4 : i32; %r = compare EQ, %j, %four"""
SEARCH, FLOATS = "%x: 4xf32, %y: 4xf32", "%x: 4xf32"


@pytest.mark.parametrize(
    ("arguments", "body", "may_be", "no_nan"),
    [
        pytest.param(
            "%i: i32",
            "%z = constant 0 : i32; %n = constant 7 : i32; %c = clamp %z, %i, %n; %r = compare LT, %c, %z",
            {"equal": True, "greater": True, "less": False},
            False,
            id="what is clamped is never less",
        ),
        *(  # bounds of a binary search stay apart where one comparison moves either; of another's they may meet
            (SEARCH, SEARCHED.replace("OTHER", other), {"less": True, "equal": may, "greater": False}, False)
            for other, may in (("or %p, %p", False), ("not %p", True), ("reverse %p, dims = [0]", True))
        ),
        *(  # where one NaN takes the place of all, the bits of a float are those of no other one
            (FLOATS, ORDERED.replace("NAN", nan), {"less": True, "equal": may}, False)
            for nan, may in (("0x7FC00000", False), ("0xFFFFFFFF", True))
        ),
        *(  # the place of the largest element is one of the places where no NaN comes and no start is larger than all
            (FLOATS, LARGEST.replace("INIT", init), {"equal": may}, no_nan)
            for init, no_nan, may in (("0xFF800000", True, False), ("0xFF800000", False, True), ("0.0", True, True))
        ),
        *(  # 1 / sqrt(-0.0) is -inf
            (FLOATS, f"%a = {op} %x; %z = constant 0.0 : 4xf32; %r = compare LT, %a, %z", {"less": may}, False)
            for op, may in (("rsqrt", True), ("sqrt", False))
        ),
    ],
)
def test_what_a_comparison_cannot_come_out_as_is_known(arguments, body, may_be, no_nan):
    ranges, main = ranges_of(module(arguments, body), no_nan=no_nan)
    *_, compare = main.ops
    assert {what: ranges.may_be(compare, what) for what in may_be} == may_be


KEPT = """%z = constant 0 : i32; %one = constant 1 : i32; %n = constant 3 : i32; %m = constant MOST : i32
%at = iota dim = 0 : 4xi32
%r:3 = while(%i = %z, %v = %x, %k = %at) cond { %p = compare LT, %i, %n; return %p } do {
  %a = dynamic_slice %k, %i, sizes = [1]; %s = reshape %a -> i32; %c = clamp %z, %s, %m; %q = compare EQ, %c, %s
  %d = negate %v; %w = select %q, %d, %v; %j = add %i, %one; return %j, %w, %k }"""


@pytest.mark.parametrize(("most", "may_be"), [(2, True), (3, False), (7, False)])
def test_what_a_loop_keeps_lies_where_it_began(most, may_be):
    """A clamp to bounds that hold anyway moves nothing, also for what a loop carries unchanged."""
    ranges, main = ranges_of(module("%x: 8xf32", KEPT.replace("MOST", str(most)), "%r#1"))
    [compare] = (op for op in main.ops[-1].bodies[1].ops if op.name == "stablehlo.compare")
    assert ranges.may_be(compare, "equal")
    assert ranges.may_be(compare, "different") == may_be


def test_a_part_of_a_constant_holds_its_own_numbers():
    """A number of a table, though others stand beside it."""
    text = module("%x: 1xi32", "%c = constant [13, 15, 26, 6] : 4xi32; %k = slice %c [1:2]; %r = add %x, %k", "%k, %r")
    ranges, body = ranges_of(text)
    assert ranges.of(body.returned[0]) == (15, 15)
