"""A module as the judge reads it: calls inlined, values numbered by what matters to them, constants folded."""

import numpy as np
import pytest
from two_programs import numbers, programs
from untyped_mlir import function, module

from hlo_lower.ops import names
from hlo_lower.ops.spec import COMBINING, OPS
from hlo_lower.verify.align.align import Side
from hlo_lower.verify.read import program as program_file
from hlo_lower.verify.read.meanings import INTEGERS, is_splat
from hlo_lower.verify.read.numbering import Table
from hlo_lower.verify.read.program import TooLargeError, ops_within
from hlo_lower.verify.run import Executable


def read(body, returned, more="", arguments="%a: 8xf32"):
    """A module as it is read, and its entry."""
    [program] = programs(module(arguments, body, returned, more))
    return program, program.entries["main"]


def called(name, body):
    """A private function of %x that returns %y."""
    return function(f"private @{name}", "%x: 8xf32", body, "%y")


NEGATED = called("f", "%y = negate %x")
CALL = "%{0} = call @f(%{1}) -> 8xf32; "
DRAW = """%n = constant 8 : 1xi64; %lo = constant 0.0 : f32; %hi = constant 1.0 : f32
%y = rng %lo, %hi, %n, distribution = UNIFORM -> 8xf32"""


def test_calls_are_inlined_and_the_same_one_once():
    """Two calls on one value are one operation, one on another value is another."""
    _, entry = read(CALL.format("p", "a") + CALL.format("q", "a") + CALL.format("r", "p"), "%p, %q, %r", NEGATED)
    assert [op.short_name for op in entry.ops] == ["negate", "negate"]
    assert entry.returned[0] == entry.returned[1] != entry.returned[2]


def test_calls_fifteen_deep_stay_small():
    """A function that calls the next one twice on one value has one operation inlined, not 2^15."""
    more = "".join(
        called(f"f{k}", f"%p = call @f{k + 1}(%x) -> 8xf32; %q = call @f{k + 1}(%x) -> 8xf32; %y = add %p, %q")
        for k in range(15)
    )
    program, _ = read("%r = call @f0(%a) -> 8xf32", "%r", more + called("f15", "%y = negate %x"))
    assert program.op_count == 16


def test_a_function_with_effects_is_inlined_for_each_call():
    """Two calls of a function that draws random numbers are two draws."""
    _, entry = read(CALL.format("p", "a") + CALL.format("q", "a"), "%p", called("f", DRAW))
    assert [op.has_effects for op in entry.ops if op.short_name == "rng"] == [True, True]
    assert [op.short_name for op in entry.live()].count("rng") == 2


def test_captures_are_what_regions_take_from_around():
    """A branch captures the values of the body around it that it reads, each once, and reads them as operands."""
    body = "%r = if(%p) { %x = add %a, %a; return %x } { return %b }"
    _, entry = read(body, "%r", arguments="%p: i1, %a: 8xf32, %b: 8xf32")
    [op] = entry.ops
    assert op.reads == entry.arguments  # %a once, though it is read twice
    assert [inner.short_name for inner in ops_within(entry.ops)] == ["if", "add"]


def test_dead_operations_do_not_live():
    """What nothing returned depends on is left out, what has effects is not."""
    assert [op.short_name for op in read("%x = add %a, %a; %r = negate %a", "%r")[1].live()] == ["negate"]


def test_a_module_of_too_many_operations_is_refused(monkeypatch):
    """Beyond the limit, calls inlined, the module is not read."""
    monkeypatch.setattr(program_file, "MAX_OPS", 2)
    with pytest.raises(TooLargeError, match="more than 2 operations"):
        read("%x = negate %a; %y = negate %x; %r = negate %y", "%r")


BOTH = "%a: 8xf32, %b: 8xf32"
X, Y, LAST = "%x = add %a, %b", "%y = multiply %a, %b", "%r = subtract %x, %y"
NEGATION, ONE = "%r = negate %a", "%k = constant 1.0 : 8xf32"
SPLAT = "%s = constant 1.0 : f32; %k = broadcast_in_dim %s, dims = [] -> 8xf32"


def both(first, second, arguments=BOTH, returned="%r"):
    """The numbers of what two modules return."""
    return numbers(*(module(arguments, body, returned) for body in (first, second)))


@pytest.mark.parametrize(
    ("first", "second", "is_same"),
    [
        pytest.param(f"{X}; {Y}; {LAST}", f"{Y}; {X}; {LAST}", True, id="order"),
        pytest.param(
            f"{X}; {Y}; {LAST}", f"{X}; {Y}; {LAST}".replace("%a, %b", "%b, %a"), True, id="operands of a sum"
        ),
        pytest.param(f"{X}; %r = subtract %x, %x", f"{X}; %y = add %a, %b; {LAST}", True, id="duplicates"),
        pytest.param(NEGATION, f"{X}; {NEGATION}", True, id="dead code"),
        pytest.param(X.replace("%x", "%r"), f"{X}; %r = add %a, %b", True, id="names"),
        pytest.param(f"{ONE}; %r = add %a, %k", f"{SPLAT}; %r = add %a, %k", True, id="how a constant is made"),
        pytest.param("%r = subtract %a, %b", "%r = subtract %b, %a", False, id="operands of a difference"),
        pytest.param("%r = add %a, %b", "%r = maximum %a, %b", False, id="another operation"),
        pytest.param("%r = reverse %a, dims = [0]", "%r = reverse %a, dims = []", False, id="an attribute"),
        pytest.param(
            *(f"%k = constant {zero} : 8xf32; %r = add %a, %k" for zero in ("0.0", "-0.0")), False, id="signs of zeros"
        ),
    ],
)
def test_what_matters_and_what_does_not(first, second, is_same):
    one, other = both(first, second)
    assert (one == other) == is_same


@pytest.mark.parametrize(
    ("direction", "mirrored"), [("LT", "GT"), ("LE", "GE"), ("GT", "LT"), ("EQ", "EQ"), ("NE", "NE")]
)
def test_a_mirrored_comparison_is_the_same(direction, mirrored):
    """a < b is b > a, and not b < a unless the comparison is symmetric."""
    compared = f"{direction}, %a, %b", f"{mirrored}, %b, %a", f"{direction}, %b, %a"
    first, second, third = numbers(*(module(BOTH, f"%r = compare {how}", "%r") for how in compared))
    assert first == second
    assert (first == third) == (direction == mirrored)


RNG = "rng %lo, %hi, %n, distribution = UNIFORM -> 8xf32"
DRAWS = f"%n = constant 8 : 1xi64; %lo = constant 0.0 : f32; %hi = constant 1.0 : f32; %x = {RNG}; %y = {RNG}"


def test_two_draws_are_never_equal():
    """Each draw has a number of its own within a module, that of the draw at the same place in the other one."""
    first, second = both(DRAWS, DRAWS, "", "%x, %y")
    assert first[0] != first[1]
    assert first == second


@pytest.mark.parametrize("effect", ["true", "false"])
def test_calls_with_effects_are_never_equal(effect):
    """A custom call with a side effect is not its twin; one without is."""
    call = f"custom_call @f(%a) {{has_side_effect = {effect}}} -> 8xf32"
    [found] = numbers(module("%a: 8xf32", f"%x = {call}; %y = {call}", "%x, %y"))
    assert (found[0] == found[1]) == (effect == "false")


def test_regions_are_functions_of_what_they_capture():
    """The same branches on the same captures have one number; other captures or branches have another."""
    branches = (
        ("%x = add %a, %b; return %x", "return %a"),
        ("%y = add %a, %b; return %y", "return %a"),
        ("%x = add %a, %b; return %x", "return %b"),
    )
    texts = (module(f"%p: i1, {BOTH}", f"%r = if(%p) {{ {one} }} {{ {other} }}", "%r") for one, other in branches)
    first, second, third = numbers(*texts)
    assert first == second != third


@pytest.mark.parametrize(
    ("shape", "dim", "is_same"),
    [("8x1", 1, True), ("8x1", -1, True), ("8x0", 1, True), ("8x1", 0, False), ("8x2", 1, False)],
)
def test_a_sort_of_one_element_gives_what_it_takes(shape, dim, is_same):
    """Along a dim of size 1 or 0 there is nothing to sort, whatever compares; along one of 2 there is."""
    body = f"""%r = sort(%a) <dimension = {dim} : i64, is_stable = true> {{
      %x, %y: %p = compare LT, %x, %y, FLOAT; return %p}}"""
    sorted_, given = numbers(*(module(f"%a: {shape}xf32", body, returned) for returned in ("%r", "%a")))
    assert (sorted_ == given) is is_same


AB = """%a = constant [[1, -2, 3], [2147483647, 5, -2147483648]] : 2x3xi32
%b = constant [[7, -2, 0], [1, 6, -1]] : 2x3xi32
"""


def known(body):
    """The folded value of %r."""
    [program] = programs(module("", body, "%r"))
    table = Table()
    side = Side(program, program.entries["main"], 0, {}, table)
    return table.known.get(side.numbers[side.roots[0]])


BINARY = "add", "subtract", "multiply", "minimum", "maximum", "and", "or", "xor"
FOLDED = [
    *(f"%r = {name} %a, %b" for name in BINARY),
    *("%r = not %a", "%r = clamp %b, %a, %b", "%r = compare LE, %a, %b"),
    *("%r = convert %a -> 2x3xi8", "%r = convert %a -> 2x3xf64", "%r = convert %b -> 2x3xf16"),
    *("%r = convert %b -> 2x3xbf16", "%r = convert %b -> 2x3xf32", "%c = constant -127 : i32; %r = convert %c -> f32"),
    *("%r = bitcast_convert %b -> 2x3xf32", "%c = constant -8388608 : i32; %r = bitcast_convert %c -> f32"),
    *("%r = transpose %a, dims = [1, 0]", "%r = reshape %a -> 6xi32", "%r = reverse %a, dims = [1]"),
    *("%r = slice %a [0:2, 0:3:2]", "%r = concatenate %a, %b, dim = 1 -> 2x6xi32"),
    *("%r = broadcast_in_dim %a, dims = [1, 2] -> 2x2x3xi32", "%r = iota dim = 1 : 2x3xui8"),
    "%p = compare LT, %a, %b; %r = select %p, %a, %b",
]


@pytest.mark.parametrize("body", FOLDED)
def test_what_is_folded_is_what_xla_computes(body):
    """Integers that are computed and numbers that are moved, wrap-around and the ends of the type included."""
    value = known(AB + body)
    assert value is not None
    [expected] = Executable(module("", AB + body, "%r"), "quick").run([])
    assert (value.dtype, value.shape) == (expected.dtype, expected.shape)
    assert value.tobytes() == np.asarray(expected).tobytes()


OF_KIND = {"i8": set(INTEGERS), "ui8": INTEGERS.keys() - {names.ABS, names.SIGN}, "i1": {*COMBINING, names.NOT}}


@pytest.mark.few(9)
@pytest.mark.parametrize(("kind", "name"), [(kind, name) for kind, found in OF_KIND.items() for name in sorted(found)])
def test_meanings_are_those_of_xla(kind, name):
    """On all pairs of bytes and of truth values, with a third operand for a clamp: division by 0 and -1 included."""
    values = {"i8": np.arange(-128, 128), "ui8": np.arange(256), "i1": np.arange(2)}[kind]
    pairs = np.meshgrid(values, values, indexing="ij")
    dtype = {"i8": np.int8, "ui8": np.uint8, "i1": np.bool_}[kind]
    given = [np.ravel(part).astype(dtype) for part in (*pairs, pairs[1][::-1])][: OPS[name].arity]
    operands = [f"%a{k}" for k in range(len(given))]
    arguments = ", ".join(f"{a}: {given[0].size}x{kind}" for a in operands)
    [expected] = Executable(module(arguments, f"%r = {name} {', '.join(operands)}", "%r"), "quick").run(given)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(np.asarray(INTEGERS[name](*given)).astype(dtype), expected)


@pytest.mark.parametrize(
    ("body", "is_known"),
    [
        *((f"{AB}%z = constant 0 : 2x3xi32; %r = {op} %a, %z", False) for op in ("divide", "remainder")),  # left open
        *((f"{AB}%r = {op} %a, %a", True) for op in ("divide", "remainder")),
        ("%a = constant 1.5 : 3xf32; %r = add %a, %a", False),  # no float is added here, so nothing rounds
        ("%r = iota dim = 0 : 100000xi32", False),  # beyond the limit
        ("%r = iota dim = 0 : 1000xi32", True),
    ],
)
def test_what_is_not_folded(body, is_known):
    assert (known(body) is not None) == is_known


def test_floats_are_moved():
    """Where a float goes is known."""
    assert known("%a = constant 1.5 : 3xf32; %r = reshape %a -> 3x1xf32").tolist() == [[1.5], [1.5], [1.5]]


def test_a_splat_is_never_materialised():
    """A tensor of 2^40 equal integers is one of them with a shape, through arithmetic and reshapes."""
    value = known("%a = constant 3 : 1048576x1048576xi32; %b = add %a, %a; %r = reshape %b -> 1099511627776xi32")
    assert (value.shape, value.strides, int(value[0]), is_splat(value)) == ((1 << 40,), (0,), 6, True)
