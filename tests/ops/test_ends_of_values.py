"""What is said to bound a value does so in random programs, and a broken rule is seen."""

import numpy as np
import pytest
from untyped_mlir import module

import hlo_lower as hl
from hlo_lower.ops import bounds, names
from hlo_lower.verify.judges.devices import compile_anywhere

SPECIAL = [0.0, -0.0, np.inf, -np.inf, np.nan, 1e30, -1e30, 1e-40]
UNARY = ("abs", "negate", "exponential", "sqrt", "tanh", "logistic", "sine", "sign")
BINARY = ("add", "subtract", "multiply", "divide", "maximum", "minimum")


def programs(element, seed):
    """The text of a random program whose results are all of its values, each once."""
    rng = np.random.default_rng(seed)
    is_float = element != "i32"
    unary = UNARY if is_float else ("abs", "negate", "sign")
    constants = ("2.0", "-3.0") if is_float else ("2", "5")
    lines = [f"%c{k} = constant {number} : 6x{element}" for k, number in enumerate(constants)]
    values = ["%x", "%y", "%c0", "%c1"]
    for number in range(12):
        a, b, c = (values[k] for k in rng.integers(0, len(values), 3))
        kind, name = rng.integers(0, 10), f"%v{number}"
        if kind < 3:
            lines.append(f"{name} = {rng.choice(unary)} {a}")
        elif kind < 7:
            op = rng.choice(BINARY if is_float else BINARY[:3] + BINARY[4:])
            lines.append(f"{name} = {op} {a}, {a if rng.random() < 0.3 else b}")
        elif kind == 7:
            lines.append(f"{name} = clamp {a}, {b}, {c}")
        elif kind == 8:
            is_above = f"%p{number} = compare GT, {a}, {rng.choice(['%c0', '%c1', b])}"
            lines.append(f"{is_above}; {name} = select %p{number}, {c}, {rng.choice([a, b])}")
        else:
            lines.append(f"%i{number} = iota dim = 0 : 6xi32; {name} = convert %i{number} -> 6x{element}")
        values.append(name)
    made = [value for value in values if value not in ("%x", "%y")]
    return module(f"%x: 6x{element}, %y: 6x{element}", "; ".join(lines), ", ".join(made))


def given(element, seed):
    """Arguments of such a program."""
    rng = np.random.default_rng(seed)
    if element == "i32":
        return [rng.choice([0, 1, -1, 7, 2**31 - 1, -(2**31), 1000], 6).astype(np.int32) for _ in range(2)]
    drawn = [np.where(rng.random(6) < 0.4, rng.choice(SPECIAL, 6), rng.normal(0, 30, 6)) for _ in range(2)]
    return [one.astype(np.float32) for one in drawn]


def outside(element, seed):
    """The values of a program that hold a number beyond their ends."""
    text = programs(element, seed)
    graph = hl.read(text)
    returned = list(graph.functions["main"].body.terminator.operands)
    ends = [bounds.ends_of(graph, value) for value in returned]
    [version] = compile_anywhere([(text, "exact")])
    found = []
    for turn in range(3):
        for value, (low, high), numbers in zip(returned, ends, version.run(given(element, seed + turn)), strict=True):
            wide = np.asarray(numbers, np.float64)
            wide = wide[~np.isnan(wide)]
            if ((wide < low) | (wide > high)).any():
                found.append((value.node, (low, high), wide))
    return found


@pytest.mark.parametrize("element", ["f32", "i32"])
@pytest.mark.parametrize("seed", [pytest.param(k, marks=pytest.mark.sweep if k > 9 else ()) for k in range(300)])
def test_no_number_lies_beyond_the_ends(element, seed):
    assert not outside(element, seed)


BROKEN = {
    names.SUBTRACT: lambda ends: (ends[0][0] - ends[1][0], ends[0][1] - ends[1][1]),
    names.MULTIPLY: lambda ends: (ends[0][0] * ends[1][0], ends[0][1] * ends[1][1]),
    names.ABS: lambda ends: (0.0, ends[0][1]),
    names.MAXIMUM: lambda ends: (max(ends[0][0], ends[1][0]), min(ends[0][1], ends[1][1])),
    names.CLAMP: lambda ends: (ends[0][0], ends[2][1]),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_rule_is_seen(name, monkeypatch):
    monkeypatch.setitem(bounds.RULES, name, BROKEN[name])
    assert any(outside(element, seed) for seed in range(40) for element in ("i32", "f32"))


@pytest.mark.parametrize(
    ("body", "ends"),
    [
        ("%a = abs %x; %c = constant 3.0 : 6xf32; %r = minimum %a, %c", (0, 3)),
        ("%m = multiply %x, %x; %c = constant 0.5 : 6xf32; %r = add %m, %c", (0.5, np.inf)),
        ("%c = constant 8.0 : 6xf32; %p = compare GT, %x, %c; %r = select %p, %c, %x", (-np.inf, 8)),
        ("%i = iota dim = 0 : 6xi32; %f = convert %i -> 6xf32; %r = reshape %f -> 2x3xf32", (0, 5)),
        ("%a = exponential %x; %s = logistic %x; %r = divide %s, %a", (0, np.inf)),
        ("%r = subtract %x, %x", (-np.inf, np.inf)),
    ],
)
def test_the_ends_of_some_values(body, ends):
    graph = hl.read(module("%x: 6xf32", body))
    assert bounds.ends_of(graph, graph.functions["main"].body.terminator.operand(0)) == ends


def test_an_integer_that_wraps_around_may_be_any():
    graph = hl.read(module("%x: 6xi32", "%i = iota dim = 0 : 6xi32; %a = add %i, %i; %b = add %a, %x; return %a, %b"))
    small, wide = graph.functions["main"].body.terminator.operands
    assert bounds.ends_of(graph, small) == (0, 10)
    assert bounds.ends_of(graph, wide) == (-(2**31), 2**31 - 1)


def test_a_value_that_is_far_behind_is_of_its_type():
    """No longer time is spent on it, either, where each value is read twice."""
    body = "; ".join(f"%v{k} = add %v{k - 1}, %v{k - 1}" for k in range(1, 90))
    graph = hl.read(module("%x: 6xf32", f"%v0 = abs %x; {body}; return %v89"))
    assert bounds.ends_of(graph, graph.functions["main"].body.terminator.operand(0)) == (-np.inf, np.inf)


CALLED = """
module {{
  func.func public @main(%x: tensor<6xf32>) -> (tensor<6xf32>, tensor<6xf32>) {{
    %two = stablehlo.constant dense<2.0> : tensor<6xf32>
    %eight = stablehlo.constant dense<8.0> : tensor<6xf32>
    %a = {first} : (tensor<6xf32>) -> tensor<6xf32>
    %b = call @inner(%eight) : (tensor<6xf32>) -> tensor<6xf32>
    return %a, %b : tensor<6xf32>, tensor<6xf32>
  }}
  func.func {kind} @inner(%d: tensor<6xf32>) -> tensor<6xf32> {{
    %n = stablehlo.negate %d : tensor<6xf32>
    return %n : tensor<6xf32>
  }}
}}
"""


@pytest.mark.parametrize(
    ("kind", "first", "ends"),
    [
        ("private", "call @inner(%two)", (-8, -2)),
        ("public", "call @inner(%two)", (-np.inf, np.inf)),
        ("private", 'stablehlo.composite "a.negate" %two {decomposition = @inner}', (-np.inf, np.inf)),
    ],
)
def test_an_argument_is_what_is_given_at_all_calls(kind, first, ends):
    graph = hl.read(CALLED.format(kind=kind, first=first))
    assert bounds.ends_of(graph, graph.functions["inner"].body.terminator.operand(0)) == ends
    assert bounds.ends_of(graph, graph.functions["main"].body.terminator.operand(1)) == ends
