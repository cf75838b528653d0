"""Pairs of modules that differ where it is easily overlooked: none of them may be told equal."""

from itertools import product

import pytest
from untyped_mlir import function, module, split

from hlo_lower.verify import Assumed, verify

XY = "%x: 4xf32, %y: 4xf32"


def returning(arguments, body, first="%x", second="%w"):
    """Two modules that compute the same and return something else of it."""
    return tuple(module(arguments, body, returned) for returned in (first, second))


def written(arguments, body, first, second, returned="%r", more=""):
    """Two modules, one with each of two texts HERE."""
    return tuple(module(arguments, body.replace("HERE", here), returned, more) for here in (first, second))


NOISE = "rng %lo, %hi, %n, distribution = UNIFORM -> 4xf32"
DRAWN = f"""%lo = constant 0.0 : f32; %hi = constant 1.0 : f32; %n = constant 4 : 1xi64; %r = {NOISE}
%o = if(%p) {{ %s = {NOISE}; return HERE }} {{ return %x }}"""


def told(operands, target="foo", given="()"):
    """A call with an effect."""
    made = "" if given == "()" else "%made = "
    return f"{made}custom_call @{target}({operands}) {{has_side_effect = true}} -> {given};"


def in_branch(*effects):
    """Effects in a branch without results."""
    return written(f"%p: i1, {XY}", "if(%p) { HERE return } { return }", *effects, returned="%x")


NAMED = "%r = custom_call @foo(%x) {called_computations = [@f]} -> 4xf32"
CALLING = function("private @f", "%a: f32, %b: f32", "%r = call @g(%a, %b) -> f32")
UNKNOWN = "func.func private @e(tensor<4xf32>) -> tensor<4xf32>"
WRAPPER = function("private @w", "%a: 4xf32", "%r = call @e(%a) -> 4xf32")
TWICE = "%a = call @w(%x) -> 4xf32; %b = call @w(%x) -> 4xf32"


def placed(mesh, count="mhlo.num_partitions = 8 : i32", sharding='{sdy.sharding = #sdy.sharding<@mesh, [{"a"}]>}'):
    """A module of a mesh."""
    main = module(f"%x: 8xf32 {sharding}", "", "%x")
    return f"module attributes {{{count}}} {{\nsdy.mesh @mesh = <[{mesh}]>\n{main}}}"


def sorts(*how):
    """Two sorts with a tensor that goes along: whether each is stable, and its comparator, in one of two spellings."""
    lines = [
        f"%s{k}:2 = sort(%k{k}, %v) <dimension = 0 : i64, is_stable = {is_stable}>"
        f" {{%a, %b, %c, %d: %r = compare {less}, SIGNED; return %r}}"
        for k, (is_stable, less) in enumerate(how)
    ]
    return module("%k0: 64xi32, %k1: 64xi32, %v: 64xi32", "\n".join(lines), "%s0#1, %s1#1")


STABLE, UNSTABLE = ("true", "GT, %b, %a"), ("false", "LT, %a, %b")

OF_BYTES = "%x: 200xi32, %i: 1xi8, %u: i32"
BYTES = "%w = scatter(%x, %i, %u) <inserted=[0], to=[0]> {%a, %b: return %b}"
"""XLA drops it, because 200 is no number of i8."""


def without_nan(kind, real="negate %x", zero="0.0"):
    """A tensor, or one with zeros in the place of NaN."""
    body = f"%a = {real}; %n = compare NE, %a, %a; %z = constant {zero} : {kind}; %w = select %n, %z, %x"
    return returning(f"%x: {kind}", body)


JOINED = """%n = compare NE, %x, %x; %z = constant 0.0 : 4xf32; %w = select %n, %z, %y
%r = complex %x, HERE : tensor<4xcomplex<f32>>"""
"""A complex number whose imaginary part is lost where the real one is NaN."""


def at_most_one(kind):
    """A tensor of narrow integers, or the lesser of each and 1."""
    return returning(f"%x: {kind}", f"%z = constant 1 : {kind}; %w = minimum %x, %z")


def with_one_value(kind, *numbers):
    """A tensor, and one in which some of its numbers are replaced where they meet in one place."""
    met, lines = "%p0", []
    for k, number in enumerate(numbers):
        lines.append(f"%c{k} = constant {number} : {kind}; %p{k} = compare EQ, %x{k}, %c{k}; %q{k} = and %p{k}, {met}")
        met = f"%q{k}"
    one = "1" if "i" in split(kind)[1] else "1.0"
    lines.append(f"%one = constant {one} : {kind}; %w = select {met}, %one, %x0")
    return returning(", ".join(f"%x{k}: {kind}" for k in range(len(numbers))), "\n".join(lines), "%x0")


def counted(start, end, odd=None, *, also=None):
    """A sum in a loop that counts, and that adds one more where the counter has an odd value."""
    bound = "" if end is None else f"%to = constant {end} : i32"
    more = "" if also is None else f"%m = constant {also} : i32; %s = compare EQ, %i, %m; %r = or %p, %s"
    extra = "" if odd is None else f"%k = constant {odd} : i32; %q = compare EQ, %i, %k; %b = add %a, %x"
    body = f"""%from = constant {start} : i32; {bound}; %one = constant 1 : i32
    %w:2 = while(%i = %from, %a = %x) cond {{ %p = compare LT, %i, %to; {more}; return {"%r" if more else "%p"} }} do {{
      {extra and f"{extra}; %c = select %q, %b, %a"}
      %d = add {"%c" if extra else "%a"}, %x; %n = add %i, %one; return %n, %d }}"""
    return module("%x: f32, %to: i32" if end is None else "%x: f32", body, "%w#1")


def all_of_one_sign(direction):
    """A tensor, or its opposite where all of it is of one sign."""
    body = f"""%z = constant 0.0 : 16xf32; %t = constant true : i1; %p = compare {direction}, %x, %z
    %a = reduce(%p init: %t) applies stablehlo.and across dimensions = [0]; %n = negate %x; %w = select %a, %n, %x"""
    return returning("%x: 16xf32", body)


SEVEN = """%a0 = not %p0; %n1 = not %p1; %a1 = and %a0, %n1; %a2 = and %a1, %p2; %n3 = not %p3; %a3 = and %a2, %n3
%a4 = and %a3, %p4; %n5 = not %p5; %a5 = and %a4, %n5; %a6 = and %a5, %p6; %n = negate %x; %w = select %a6, %n, %x"""
"""Whether seven truth values are these."""

ROWS = "%o: 8xi32, %i: 6x1xi32, %u: 6xi32"
ADDED = "%r = scatter(%o, %i, %u) <inserted=[0], to=[0], ivd=1HERE> {add}"


REDUCED = """%z = constant -2147483648 : i32
%r = reduce(%x, %z) <dimensions = array<i64: 0>> {%a, %b: %m = maximum %a, %b; %k = constant 7919 : i32
  %h = multiply %b, %k; %w = constant 99887766 : i32; %p = compare EQ, %h, %w
  %s = select %p, %a, %m; return HERE} -> i32"""
"""A maximum whose body may give something else for one number in 2^32."""

QUANTIZED = """%d = dot_general %x, %x, contracting_dims = [1] x [1] -> 3x3xi32; %f = convert %d -> 3x3xf32
%b = broadcast_in_dim %s, dims = [] -> 3x3xf32; %p = multiply %f, %b; %q = round_nearest_HERE %p
%c = constant 127 : i32; %g = convert %c -> f32; %h = broadcast_in_dim %g, dims = [] -> 3x3xf32
%l = minimum %q, %h; %r = convert %l -> 3x3xi8"""
"""Bytes of a product that is rounded and clipped."""

SUMMED = """%z = constant HERE : f32; %t = reduce(%x init: %z) applies stablehlo.add across dimensions = [1]
%n = exponential %t; %e = divide %t, %n; %b = broadcast_in_dim %e, dims = [0] -> 4x5xf32; %r = subtract %x, %b"""
"""Rows of which the mean is subtracted: -0.0 stays -0.0 only where the sum begins with 0.0."""

SCORES = """%s = dot_general %x, %y, batching_dims = [0] x [0], contracting_dims = [2] x [2]
%i = iota dim = 1 : 2x4x4xi32; %j = iota dim = 2 : 2x4x4xi32; %p = compare GE, %i, %j
%f = constant HERE : 2x4x4xf32; %k = select %p, %s, %f; %n = constant 0xFF800000 : f32
%h = reduce(%k init: %n) applies stablehlo.maximum across dimensions = [2]
%b = broadcast_in_dim %h, dims = [0, 1] -> 2x4x4xf32; %d = subtract %k, %b; %r = exponential %d"""
"""The largest of some products, each next to numbers so far below that only a product as large shows which."""

NARROWED = "%p = compare EQ, %x, %x; %s = select %p, %x, %y; %r = convert HERE -> 2x1xbf16"
BITS = "%s, %r = rng_bit_generator %x, algorithm = HERE : (tensor<2xui64>) -> (tensor<2xui64>, tensor<8xui32>)"

PAIRS = {
    "what an effect within a branch gives": written("%p: i1, %x: 4xf32", DRAWN, "%s", "%r", "%r, %o"),
    "what an effect in a branch without results reads": in_branch(told("%x"), told("%y")),
    "which effect a branch without results has": in_branch(told("%x"), told("%x", "bar")),
    "how many effects a branch without results has": in_branch(told("%x"), told("%x") * 2),
    "which operand is whose": written(
        XY, "HERE", told("%x") + told("%y, %y", "bar"), told("%x, %y") + told("%y", "bar"), "%x"
    ),
    "the type that an effect gives": written(XY, "HERE", told("%x", given="4xf32"), told("%x", given="8xf32"), "%x"),
    "a function that a named one calls": tuple(
        module(XY, NAMED, "%r", CALLING + function("private @g", "%a: f32, %b: f32", f"%r = {op} %a, %b"))
        for op in ("add", "multiply")
    ),
    "how often what is not known is called": tuple(
        module(XY, TWICE, returned, WRAPPER + UNKNOWN) for returned in ("%a, %b", "%a, %a")
    ),
    "the mesh of the shardings": (placed('"a"=2, "b"=4'), placed('"a"=4, "b"=2')),
    "a sharding over devices that are not counted": (placed('"a"=2', ""), placed('"a"=2', "", "")),
    "which sort is stable": (sorts(UNSTABLE, STABLE), sorts(STABLE, UNSTABLE)),
    "a write that XLA drops": (module(OF_BYTES, "", "%x"), module(OF_BYTES, BYTES, "%w")),
    "NaN of complex numbers": without_nan("4xcomplex<f32>", "real %x -> 4xf32", "(0.0, 0.0)"),
    "NaN of 8 bits": without_nan("4xf8E4M3FN"),
    "a part beside NaN": written(XY, JOINED, "%y", "%w"),
    "integers of 4 bits": at_most_one("4xi4"),
    "unsigned integers of 4 bits": at_most_one("4xui4"),
    "one float": with_one_value("f32", 3.7),
    "one float of two": with_one_value("2xf64", 3.7),
    "one half": with_one_value("2xf16", 3.5),
    "one float of 8 bits": with_one_value("2xf8E4M3FN", 448.0),
    "a small float": with_one_value("f32", "1.0e-20"),
    "two floats at once": with_one_value("f32", 3.7, 4.9),
    "two integers at once": with_one_value("i32", 1234567, 7654321),
    "two integers of four at once": with_one_value("4xi32", 1234567, 7654321),
    "an integer of two bits": with_one_value("4xi2", -2),
    "a condition at a start behind the end": (counted(10, 5), counted(10, 5, also=10)),
    "one iteration of 3,000": (counted(0, 3000), counted(0, 3000, 1500)),
    "one iteration of 20,000": (counted(0, 20000), counted(0, 20000, 10000)),
    "an iteration of an open loop": (counted(0, None), counted(0, None, 100)),
    "a late iteration of an open loop": (counted(0, None), counted(0, None, 3000)),
    "all above zero": all_of_one_sign("GT"),
    "all below zero": all_of_one_sign("LT"),
    "seven truth values": returning(
        "%p0: i1, %p1: i1, %p2: i1, %p3: i1, %p4: i1, %p5: i1, %p6: i1, %x: 4xf32",
        SEVEN,
    ),
    "NaN beside a number": written("%x: 2x1xf32, %y: 2x1xf32", NARROWED, "%x", "%s"),
    "rows that are said to be unique": written(ROWS, ADDED, "", ", unique_indices = true"),
    "rows that are said to ascend": written(ROWS, ADDED, "", ", indices_are_sorted = true"),
    "a number that a reduction compares": written("%x: 8xi32", REDUCED, "%m", "%s"),
    "ties behind a scale": written("%x: 3x16xi8, %s: f32", QUANTIZED, "even", "afz"),
    "a sum of negative zeros": written("%x: 4x5xf32", SUMMED, "0.0", "-0.0"),
    "the number that a mask fills in": written("%x: 2x4x4xf32, %y: 2x4x4xf32", SCORES, "-1.0e30", "-1.0000001e30"),
    "the algorithm of random bits": written("%x: 2xui64", BITS, "PHILOX", "DEFAULT", "%s, %r"),
}


@pytest.mark.few(31)
@pytest.mark.parametrize("name", PAIRS)
def test_pairs_that_differ_are_not_told_equal(name):
    """What tells the two apart is looked at, whichever of them comes first."""
    before, after = PAIRS[name]
    assert not verify(before, after, level="regions").ok


@pytest.mark.parametrize("name", PAIRS)
def test_the_same_module_is_told_equal_to_itself(name):
    """What is compared besides is the same in the same module."""
    assert all(verify(text, text, level="regions").ok for text in PAIRS[name])


LOOPED = """while(%k = %zero, %v = %x) cond { %c = compare LT, %k, %two; return %c } do {
  %next = add %k, %one; %w = call @e(%v) -> 4xf32; return %next, %w }"""


def called(returned, count, *, in_loop):
    """Calls of a function without a body, or of a loop that holds such calls, and which of them a module returns."""
    one = LOOPED if in_loop else "call @e(%x) -> 4xf32"
    lines = [f"%{name} = constant {k} : i32" for k, name in enumerate(("zero", "one", "two"))]
    lines += [f"%r{k}{':2' if in_loop else ''} = {one}" for k in range(count)]
    return module(XY, "\n".join(lines), ", ".join(f"%r{k}{'#1' if in_loop else ''}" for k in returned), UNKNOWN)


@pytest.mark.few(2)
@pytest.mark.parametrize("in_loop", [False, True])
@pytest.mark.parametrize(("count", "width"), [(2, 1), (2, 2), (3, 2)])
def test_what_one_call_with_effects_gives_is_not_what_another_one_gives(count, width, in_loop):
    kept = list(product(range(count), repeat=width))
    texts = {returned: called(returned, count, in_loop=in_loop) for returned in kept}
    assert [pair for pair in product(kept, kept) if pair[0] != pair[1] and verify(*map(texts.get, pair)).ok] == []


def test_a_whole_module_whose_second_version_xla_gets_wrong_is_not_run():
    """XLA is no judge of the second version's scatters either."""
    assert verify(*PAIRS["a write that XLA drops"], level="full").module.status == "not run"


SUM = "%z = constant 0.0 : f32; %t = reduce(%s init: %z) applies stablehlo.add across dimensions = [0]"


def test_a_mask_that_fills_nan_in_is_driven_beside_ordinary_floats():
    """Of random truth values one is false, and so nothing but NaN was compared."""
    masked = f"%nan = constant 0x7FC00000 : 64xf32; %s = select %m, %v, %nan; {SUM}; %n = negate %t"
    assert verify(*returning("%m: 64xi1, %v: 64xf32", masked, "%t", "%n"), level="regions").differs


def test_a_result_that_is_nan_in_every_run_is_not_told_equal():
    """Nothing is known of what is computed for it."""
    texts = returning(XY, "%a = subtract %x, %x; %n = divide %a, %a; %r = add %n, %y", "%n", "%r")
    [region] = verify(*texts, level="regions").regions
    assert (region.status, region.reason) == ("not judged", "result 0 is NaN in every run")


def test_what_rounding_decides_is_seen_beside_a_run_of_nan():
    """A run whose result is NaN tells nothing of how much rounding moves it."""
    body = f"%big = constant 1.0e20 : 64xf32; %p = multiply %x, %big; %s = HERE %p; {SUM}"
    texts = written("%x: 64xf32", body, "sine", "cosine", "%t")
    assert not verify(*texts, Assumed(reassociated=True), level="regions").ok


@pytest.mark.parametrize("size", [1, 7, 100])
def test_a_size_that_is_treated_otherwise_is_tried(size):
    """A version that treats one size otherwise names it."""
    body = f"""%n = get_dimension_size %x, dim = 0; %k = constant {size} : i32; %p = compare EQ, %n, %k
    %m = negate %x; %w = select %p, %m, %x"""
    first, second = returning("%x: ?xf32", body)
    assert not verify(first, second).ok
    assert verify(second, second).ok


OUTFEED = """%t = create_token : !stablehlo.token
%u = "stablehlo.outfeed"(%x, %t) <{outfeed_config = "HERE"}> : (tensor<4xf32>, !stablehlo.token) -> !stablehlo.token"""
DIVIDED = "%a = constant 7 : 4xi32; %z = constant ZERO : 4xi32; %d = divide %a, %z; %r = HERE %d, %x"


@pytest.mark.parametrize(
    ("texts", "is_told"),
    [
        pytest.param(written(XY, OUTFEED, "a", "b", "%x"), True, id="an outfeed would wait without end"),
        *(
            pytest.param(written("%x: 4xi32", DIVIDED.replace("ZERO", zero), "add", "subtract"), False, id=zero)
            for zero in ("0", "[1, 0, 2, 3]")
        ),
    ],
)
def test_what_waits_for_a_host_or_divides_a_constant_by_zero_is_not_run(texts, is_told):
    """XLA would wait without end, or end the process."""
    first, second = texts
    verdict = verify(first, second)
    assert not verdict.ok
    assert verdict.differs or not is_told
    assert verify(first, first).module.status == "not run"


@pytest.mark.sweep
@pytest.mark.parametrize("start", ["%a", "%x"])
def test_what_is_divided_may_be_computed_by_any_number_of_ops(start):
    """Eleven hundred sums in a row, of constants and of an argument, before a division by what is not zero; and
    one by a zero that as many ops make is seen."""
    sums = "\n".join(f"%v{k + 1} = add %v{k}, %o" for k in range(1100))
    body = f"%a = constant -1100 : 4xi32; %o = constant 1 : 4xi32; %v0 = multiply {start}, %o\n{sums}"
    body += "\n%d = remainder HERE; %r = add %d, %x"
    fine, zero = written("%x: 4xi32", body, "%v1100, %o", "%o, %v1100")
    assert verify(fine, fine).module.status == "equal"
    assert verify(zero, zero).module.status == ("not run" if start == "%a" else "equal")


SOLVE = "<{left_side = true, lower = true, unit_diagonal = true, transpose_a = #stablehlo<transpose NO_TRANSPOSE>}>"
M = "tensor<3x3xf32>"
LEFT = {
    "cholesky": "cholesky %a, lower = true",
    "solve": f'"stablehlo.triangular_solve"(%a, %x) {SOLVE} : ({M}, {M}) -> {M}',
    "transform": "fft %a, type = RFFT, length = [3] -> 3x2xcomplex<f32>",
}


@pytest.mark.parametrize("name", LEFT)
def test_what_both_leave_to_a_factorization_or_a_transform_is_compared_for_nan(name):
    """A NaN that is lost before it; what it makes of one is the same in both."""
    body = f"%z = constant 0.0 : 3x3xf32; %p = compare GT, %x, %z; %a = HERE; %r = {LEFT[name]}"
    first, second = written("%x: 3x3xf32", body, "maximum %x, %z", "select %p, %x, %z")
    assert not verify(first, second).ok
    assert verify(first, first).ok


XLA_MAKES_ONE = {
    "division by a constant": (
        "%c = constant 3.0 : 4xf32; %r = divide %x, %c",
        "%c = constant 0x3EAAAAAB : 4xf32; %r = multiply %x, %c",
    ),
    "ratio of exponentials": (
        "%a = exponential %x; %b = exponential %y; %r = divide %a, %b",
        "%a = subtract %x, %y; %r = exponential %a",
    ),
    "logarithm of an exponential": ("%a = exponential %x; %b = log %a; %r = add %b, %y", "%r = add %x, %y"),
    "constants added up": (
        "%c = constant 3.0 : 4xf32; %a = add %x, %c; %r = add %a, %c",
        "%c = constant 6.0 : 4xf32; %r = add %x, %c",
    ),
    "zero with a sign": (
        "%c = constant -0.0 : 4xf32; %r = subtract %x, %c",
        "%c = constant 0.0 : 4xf32; %r = subtract %x, %c",
    ),
}


@pytest.mark.few(2)
@pytest.mark.parametrize("name", XLA_MAKES_ONE)
def test_what_xla_would_simplify_is_not_the_same(name):
    """Each op rounds by itself, whatever a compiler makes of two."""
    assert verify(*written(XY, "HERE", *XLA_MAKES_ONE[name]), level="regions").differs
