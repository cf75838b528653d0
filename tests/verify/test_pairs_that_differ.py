"""Pairs of modules that differ where it is easily overlooked: none of them may be told equal."""

import itertools

import pytest

from hlo_lower.verify import Assumed, verify

F = "tensor<4xf32>"
NOISE = f"stablehlo.rng %lo, %hi, %n, distribution = UNIFORM : (tensor<f32>, tensor<f32>, tensor<1xi64>) -> {F}"
BOUNDS = """%lo = stablehlo.constant dense<0.0> : tensor<f32>
%hi = stablehlo.constant dense<1.0> : tensor<f32>
%n = stablehlo.constant dense<4> : tensor<1xi64>"""


def function(body, arguments=f"%x: {F}, %y: {F}", returned="%x", kinds=F):
    """A module of one public function."""
    return f"func.func public @main({arguments}) -> ({kinds}) {{\n{body}\nreturn {returned} : {kinds}\n}}\n"


def told(operands, target="foo", result="()"):
    """A call with an effect."""
    types = ", ".join([F] * len(operands.split(",")))
    made = "" if result == "()" else "%made = "
    return f"{made}stablehlo.custom_call @{target}({operands}) {{has_side_effect = true}} : ({types}) -> {result}\n"


def branch(effects):
    """A branch without results, in which something has effects."""
    lines = f'"stablehlo.if"(%p) ({{\n{effects}stablehlo.return\n}}, {{ stablehlo.return }}) : (tensor<i1>) -> ()'
    return function(lines, f"%p: tensor<i1>, %x: {F}, %y: {F}")


def drawn_within(returned):
    """Noise around a branch and noise in it, one of which the branch returns."""
    chosen = f"{{\n%s = {NOISE}\nstablehlo.return {returned} : {F}\n}}, {{ stablehlo.return %x : {F} }}"
    body = f'{BOUNDS}\n%r = {NOISE}\n%o = "stablehlo.if"(%p) ({chosen}) : (tensor<i1>) -> {F}'
    return function(body, f"%p: tensor<i1>, %x: {F}", "%r, %o", f"{F}, {F}")


def calling(op):
    """A custom call that names a function, which calls another one."""
    f32 = "tensor<f32>"
    body = f"%r = stablehlo.custom_call @foo(%x) {{called_computations = [@f]}} : ({F}) -> {F}"
    call = f"%r = call @g(%a, %b) : ({f32}, {f32}) -> {f32}"
    more = [("f", call), ("g", f"%r = stablehlo.{op} %a, %b : {f32}")]
    functions = [
        f"func.func private @{name}(%a: {f32}, %b: {f32}) -> {f32} {{\n{line}\nreturn %r : {f32}\n}}\n"
        for name, line in more
    ]
    return function(body, returned="%r") + "".join(functions)


def unknown_twice(returned):
    """Two calls of a function that calls one without a body."""
    call = f"call @w(%x) : ({F}) -> {F}"
    wrapper = f"func.func private @w(%a: {F}) -> {F} {{\n%r = call @e(%a) : ({F}) -> {F}\nreturn %r : {F}\n}}\n"
    body = f"%a = {call}\n%b = {call}"
    return function(body, returned=f"%a, {returned}", kinds=f"{F}, {F}") + wrapper + f"func.func private @e({F}) -> {F}"


def called(returned, count=2, *, in_loop=False):
    """Calls of a function without a body, or of a loop that holds such calls, and which of them a module returns."""
    one = f"func.call @e(%x) : ({F}) -> {F}"
    if in_loop:
        i32, i1 = "tensor<i32>", "tensor<i1>"
        one = f"""stablehlo.while(%k = %zero, %v = %x) : {i32}, {F}
cond {{
  %c = stablehlo.compare LT, %k, %two : ({i32}, {i32}) -> {i1}
  stablehlo.return %c : {i1}
}} do {{
  %next = stablehlo.add %k, %one : {i32}
  %w = func.call @e(%v) : ({F}) -> {F}
  stablehlo.return %next, %w : {i32}, {F}
}}"""
    numbers = [f"%{n} = stablehlo.constant dense<{k}> : tensor<i32>" for k, n in enumerate(("zero", "one", "two"))]
    calls = [f"%r{k}{':2' if in_loop else ''} = {one}" for k in range(count)]
    results = [f"%r{k}{'#1' if in_loop else ''}" for k in returned]
    body = function("\n".join(numbers + calls), returned=", ".join(results), kinds=", ".join([F] * len(results)))
    return f"{body}func.func private @e({F}) -> {F}"


def placed(mesh, count="mhlo.num_partitions = 8 : i32", sharding='{sdy.sharding = #sdy.sharding<@mesh, [{"a"}]>}'):
    """A module of a mesh."""
    main = function("", f"%x: tensor<8xf32> {sharding}", kinds="tensor<8xf32>")
    return f"module attributes {{{count}}} {{\nsdy.mesh @mesh = <[{mesh}]>\n{main}}}"


def sorts(*how):
    """Two sorts with a tensor that goes along: whether each is stable, and its comparator, in one of two spellings."""
    kind, lines = "tensor<64xi32>", ""
    for k, (is_stable, less) in enumerate(how):
        lines += f"""%s{k}:2 = "stablehlo.sort"(%k{k}, %v) <{{dimension = 0 : i64, is_stable = {is_stable}}}> ({{
^bb0(%a: tensor<i32>, %b: tensor<i32>, %c: tensor<i32>, %d: tensor<i32>):
  %r = stablehlo.compare {less} : (tensor<i32>, tensor<i32>) -> tensor<i1>
  stablehlo.return %r : tensor<i1>
}}) : ({kind}, {kind}) -> ({kind}, {kind})
"""
    return function(lines, f"%k0: {kind}, %k1: {kind}, %v: {kind}", "%s0#1, %s1#1", f"{kind}, {kind}")


LESS, ALSO_LESS = "LT, %a, %b, SIGNED", "GT, %b, %a, SIGNED"

BYTES = """%r = "stablehlo.scatter"(%o, %i, %u) <{scatter_dimension_numbers =
#stablehlo.scatter<inserted_window_dims = [0], scatter_dims_to_operand_dims = [0]>}> ({
^bb0(%a: tensor<i32>, %b: tensor<i32>): stablehlo.return %b : tensor<i32>
}) : (tensor<200xi32>, tensor<1xi8>, tensor<i32>) -> tensor<200xi32>"""
"""XLA drops it, because 200 is no number of i8."""
OF_BYTES = "%o: tensor<200xi32>, %i: tensor<1xi8>, %u: tensor<i32>"


def without_nan(kind, *, is_kept):
    """A tensor, or one with zeros in the place of NaN."""
    tensor, truths = f"tensor<4x{kind}>", "tensor<4xi1>"
    part = "f32" if "complex" in kind else kind
    real = f"stablehlo.real %x : ({tensor}) -> tensor<4xf32>" if part != kind else f"stablehlo.negate %x : {tensor}"
    zero = "(0.0, 0.0)" if part != kind else "0.0"
    lines = f"""%a = {real}
%n = stablehlo.compare NE, %a, %a : (tensor<4x{part}>, tensor<4x{part}>) -> {truths}
%z = stablehlo.constant dense<{zero}> : {tensor}
%w = stablehlo.select %n, %z, %x : {truths}, {tensor}"""
    return function(lines, f"%x: {tensor}", "%x" if is_kept else "%w", tensor)


def joined(imaginary):
    """A complex number whose imaginary part is lost where the real one is NaN."""
    lines = f"""%n = stablehlo.compare NE, %x, %x : ({F}, {F}) -> tensor<4xi1>
%z = stablehlo.constant dense<0.0> : {F}
%w = stablehlo.select %n, %z, %y : tensor<4xi1>, {F}
%r = stablehlo.complex %x, {imaginary} : tensor<4xcomplex<f32>>"""
    return function(lines, returned="%r", kinds="tensor<4xcomplex<f32>>")


def at_most_one(kind, returned):
    """A tensor of narrow integers, or the lesser of each and 1."""
    tensor = f"tensor<4x{kind}>"
    lines = f"%z = stablehlo.constant dense<1> : {tensor}\n%w = stablehlo.minimum %x, %z : {tensor}"
    return function(lines, f"%x: {tensor}", returned, tensor)


def with_one_value(kind, number, *more):
    """A tensor, and one in which some of its numbers are replaced where they meet in one place."""
    tensor, truths = f"tensor<{kind}>", f"tensor<{kind.replace(kind.split('x')[-1], 'i1')}>"
    lines = []
    for k, value in enumerate((number, *more)):
        lines += [
            f"%c{k} = stablehlo.constant dense<{value}> : {tensor}",
            f"%p{k} = stablehlo.compare EQ, %x{k}, %c{k} : ({tensor}, {tensor}) -> {truths}",
            f"%q{k} = stablehlo.and %p{k}, %{f'q{k - 1}' if k else 'p0'} : {truths}",
        ]
    one = "1" if "i" in kind.split("x")[-1] else "1.0"
    lines += [f"%one = stablehlo.constant dense<{one}> : {tensor}"]
    lines += [f"%w = stablehlo.select %q{len(more)}, %one, %x0 : {truths}, {tensor}"]
    arguments = ", ".join(f"%x{k}: {tensor}" for k in range(1 + len(more)))
    return tuple(function("\n".join(lines), arguments, given, tensor) for given in ("%x0", "%w"))


def counted(start, end, odd=None, *, is_open=False, also=""):
    """A sum in a loop that counts, and that adds one more where the counter has an odd value."""
    whole = "tensor<i32>"
    extra = [] if odd is None else [
        f"%k = stablehlo.constant dense<{odd}> : {whole}",
        f"%q = stablehlo.compare EQ, %i, %k : ({whole}, {whole}) -> tensor<i1>",
        "%b = stablehlo.add %a, %x : tensor<f32>",
        "%c = stablehlo.select %q, %b, %a : tensor<i1>, tensor<f32>",
    ]  # fmt: skip
    ended = "%p" if not also else "%r"
    more = f"""%m = stablehlo.constant dense<{also}> : {whole}
%s = stablehlo.compare EQ, %i, %m : ({whole}, {whole}) -> tensor<i1>
%r = stablehlo.or %p, %s : tensor<i1>""" if also else ""  # fmt: skip
    body = f"""%from = stablehlo.constant dense<{start}> : {whole}
{"" if is_open else f"%to = stablehlo.constant dense<{end}> : {whole}"}
%one = stablehlo.constant dense<1> : {whole}
%w:2 = stablehlo.while(%i = %from, %a = %x) : {whole}, tensor<f32> cond {{
%p = stablehlo.compare LT, %i, %to : ({whole}, {whole}) -> tensor<i1>
{more}
stablehlo.return {ended} : tensor<i1>
}} do {{
{chr(10).join(extra)}
%d = stablehlo.add {"%c" if extra else "%a"}, %x : tensor<f32>
%n = stablehlo.add %i, %one : {whole}
stablehlo.return %n, %d : {whole}, tensor<f32>
}}"""
    arguments = "%x: tensor<f32>" + (f", %to: {whole}" if is_open else "")
    return function(body, arguments, "%w#1", "tensor<f32>")


def all_of_one_sign(direction, returned):
    """A tensor, or its opposite where all of it is of one sign."""
    tensor, truths = "tensor<16xf32>", "tensor<16xi1>"
    lines = f"""%z = stablehlo.constant dense<0.0> : {tensor}
%t = stablehlo.constant dense<true> : tensor<i1>
%p = stablehlo.compare {direction}, %x, %z : ({tensor}, {tensor}) -> {truths}
%a = stablehlo.reduce(%p init: %t) applies stablehlo.and across dimensions = [0] : ({truths}, tensor<i1>) -> tensor<i1>
%n = stablehlo.negate %x : {tensor}
%w = stablehlo.select %a, %n, %x : tensor<i1>, {tensor}"""
    return function(lines, f"%x: {tensor}", returned, tensor)


def where_truths_meet(returned):
    """A tensor, or its opposite where seven truth values are these."""
    lines = ["%a0 = stablehlo.not %p0 : tensor<i1>"]
    for k in range(1, 7):
        lines += [f"%n{k} = stablehlo.not %p{k} : tensor<i1>"] if k % 2 else []
        lines += [f"%a{k} = stablehlo.and %a{k - 1}, {'%n' if k % 2 else '%p'}{k} : tensor<i1>"]
    lines += [f"%n = stablehlo.negate %x : {F}", f"%w = stablehlo.select %a6, %n, %x : tensor<i1>, {F}"]
    arguments = ", ".join(f"%p{k}: tensor<i1>" for k in range(7)) + f", %x: {F}"
    return function("\n".join(lines), arguments, returned)


def where_nan(returned):
    """One of two tensors where the other one is NaN, in narrow floats."""
    tensor, narrow = "tensor<2x1xf32>", "tensor<2x1xbf16>"
    lines = f"""%p = stablehlo.compare EQ, %x, %x : ({tensor}, {tensor}) -> tensor<2x1xi1>
%s = stablehlo.select %p, %x, %y : tensor<2x1xi1>, {tensor}
%r = stablehlo.convert {returned} : ({tensor}) -> {narrow}"""
    return function(lines, f"%x: {tensor}, %y: {tensor}", "%r", narrow)


def product(precision):
    """A product of matrices, with a precision or without."""
    told = f", precision = [{precision}, {precision}]" if precision else ""
    kind = "tensor<8x8xf32>"
    line = f"%r = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0]{told} : ({kind}, {kind}) -> {kind}"
    return function(line, f"%x: {kind}, %y: {kind}", "%r", kind)


def random_bits(algorithm):
    """Random bits by an algorithm."""
    kinds = "tensor<2xui64>, tensor<8xui32>"
    line = f"%s, %r = stablehlo.rng_bit_generator %x, algorithm = {algorithm} : (tensor<2xui64>) -> ({kinds})"
    return function(line, "%x: tensor<2xui64>", "%s, %r", kinds)


def added(flags="", *, counted=False):
    """Numbers added to rows, which an argument names, or which are numbered."""
    kind, rows = "tensor<8xi32>", "tensor<6x1xi32>"
    lines = f"""%k = stablehlo.iota dim = 0 : {rows}
%r = "stablehlo.scatter"(%o, {"%k" if counted else "%i"}, %u) <{{scatter_dimension_numbers = #stablehlo.scatter<
  inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>{flags}}}> ({{
^bb0(%a: tensor<i32>, %b: tensor<i32>):
%c = stablehlo.add %a, %b : tensor<i32>
stablehlo.return %c : tensor<i32>
}}) : ({kind}, {rows}, tensor<6xi32>) -> {kind}"""
    return function(lines, f"%o: {kind}, %i: {rows}, %u: tensor<6xi32>", "%r", kind)


I8 = "tensor<8xi32>"


def reduced(decided="%m"):
    """A maximum whose body may give something else for one number in 2^32."""
    body = f"""%z = stablehlo.constant dense<-2147483648> : tensor<i32>
%r = "stablehlo.reduce"(%x, %z) <{{dimensions = array<i64: 0>}}> ({{
^bb0(%a: tensor<i32>, %b: tensor<i32>):
%m = stablehlo.maximum %a, %b : tensor<i32>
%k = stablehlo.constant dense<7919> : tensor<i32>
%h = stablehlo.multiply %b, %k : tensor<i32>
%w = stablehlo.constant dense<99887766> : tensor<i32>
%p = stablehlo.compare EQ, %h, %w : (tensor<i32>, tensor<i32>) -> tensor<i1>
%s = stablehlo.select %p, %a, %m : tensor<i1>, tensor<i32>
stablehlo.return {decided} : tensor<i32>
}}) : ({I8}, tensor<i32>) -> tensor<i32>"""
    return function(body, f"%x: {I8}", "%r", "tensor<i32>")


def quantized(rounding):
    """Bytes of a product that is rounded and clipped."""
    m, n = "tensor<3x16xi8>", "tensor<3x3xf32>"
    body = f"""%d = stablehlo.dot_general %x, %x, contracting_dims = [1] x [1] : ({m}, {m}) -> tensor<3x3xi32>
%f = stablehlo.convert %d : (tensor<3x3xi32>) -> {n}
%b = stablehlo.broadcast_in_dim %s, dims = [] : (tensor<f32>) -> {n}
%p = stablehlo.multiply %f, %b : {n}
%q = stablehlo.round_nearest_{rounding} %p : {n}
%c = stablehlo.constant dense<127> : tensor<i32>
%g = stablehlo.convert %c : (tensor<i32>) -> tensor<f32>
%h = stablehlo.broadcast_in_dim %g, dims = [] : (tensor<f32>) -> {n}
%l = stablehlo.minimum %q, %h : {n}
%r = stablehlo.convert %l : ({n}) -> tensor<3x3xi8>"""
    return function(body, f"%x: {m}, %s: tensor<f32>", "%r", "tensor<3x3xi8>")


def summed(start):
    """Rows of which the mean is subtracted: -0.0 stays -0.0 only where the sum begins with 0.0."""
    rows = "tensor<4x5xf32>"
    body = f"""%z = stablehlo.constant dense<{start}> : tensor<f32>
%t = stablehlo.reduce(%x init: %z) applies stablehlo.add across dimensions = [1] : ({rows}, tensor<f32>) -> {F}
%n = stablehlo.exponential %t : {F}
%e = stablehlo.divide %t, %n : {F}
%b = stablehlo.broadcast_in_dim %e, dims = [0] : ({F}) -> {rows}
%r = stablehlo.subtract %x, %b : {rows}"""
    return function(body, f"%x: {rows}", "%r", rows)


def masked_scores(fill):
    """The largest of some products, each next to numbers so far below that only a product as large shows which."""
    m, p = "tensor<2x4x4xf32>", "tensor<2x4x4xi1>"
    body = f"""%s = stablehlo.dot_general %x, %y, batching_dims = [0] x [0], contracting_dims = [2] x [2]
  : ({m}, {m}) -> {m}
%i = stablehlo.iota dim = 1 : tensor<2x4x4xi32>
%j = stablehlo.iota dim = 2 : tensor<2x4x4xi32>
%p = stablehlo.compare GE, %i, %j : (tensor<2x4x4xi32>, tensor<2x4x4xi32>) -> {p}
%f = stablehlo.constant dense<{fill}> : {m}
%k = stablehlo.select %p, %s, %f : {p}, {m}
%n = stablehlo.constant dense<0xFF800000> : tensor<f32>
%h = stablehlo.reduce(%k init: %n) applies stablehlo.maximum across dimensions = [2]
  : ({m}, tensor<f32>) -> tensor<2x4xf32>
%b = stablehlo.broadcast_in_dim %h, dims = [0, 1] : (tensor<2x4xf32>) -> {m}
%d = stablehlo.subtract %k, %b : {m}
%r = stablehlo.exponential %d : {m}"""
    return function(body, f"%x: {m}, %y: {m}", "%r", m)


UNIQUE, SORTED = ", unique_indices = true", ", indices_are_sorted = true"

PAIRS = {
    "what an effect within a branch gives": (drawn_within("%s"), drawn_within("%r")),
    "what an effect in a branch without results reads": (branch(told("%x")), branch(told("%y"))),
    "which effect a branch without results has": (branch(told("%x")), branch(told("%x", "bar"))),
    "how many effects a branch without results has": (branch(told("%x")), branch(told("%x") * 2)),
    "which operand is whose": (
        function(told("%x") + told("%y, %y", "bar")),
        function(told("%x, %y") + told("%y", "bar")),
    ),
    "the type that an effect gives": (
        function(told("%x", result=F)),
        function(told("%x", result="tensor<8xf32>")),
    ),
    "a function that a named one calls": (calling("add"), calling("multiply")),
    "how often what is not known is called": (unknown_twice("%b"), unknown_twice("%a")),
    "the mesh of the shardings": (placed('"a"=2, "b"=4'), placed('"a"=4, "b"=2')),
    "a sharding over devices that are not counted": (placed('"a"=2', ""), placed('"a"=2', "", "")),
    "which sort is stable": (
        sorts(("false", LESS), ("true", ALSO_LESS)),
        sorts(("true", ALSO_LESS), ("false", LESS)),
    ),
    "a write that XLA drops": (
        function("", OF_BYTES, "%o", "tensor<200xi32>"),
        function(BYTES, OF_BYTES, "%r", "tensor<200xi32>"),
    ),
    "NaN of complex numbers": tuple(without_nan("complex<f32>", is_kept=kept) for kept in (True, False)),
    "NaN of 8 bits": tuple(without_nan("f8E4M3FN", is_kept=kept) for kept in (True, False)),
    "a part beside NaN": (joined("%y"), joined("%w")),
    "integers of 4 bits": (at_most_one("i4", "%x"), at_most_one("i4", "%w")),
    "unsigned integers of 4 bits": (at_most_one("ui4", "%x"), at_most_one("ui4", "%w")),
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
    "an iteration of an open loop": (counted(0, 0, is_open=True), counted(0, 0, 100, is_open=True)),
    "a late iteration of an open loop": (counted(0, 0, is_open=True), counted(0, 0, 3000, is_open=True)),
    "all above zero": (all_of_one_sign("GT", "%x"), all_of_one_sign("GT", "%w")),
    "all below zero": (all_of_one_sign("LT", "%x"), all_of_one_sign("LT", "%w")),
    "seven truth values": (where_truths_meet("%x"), where_truths_meet("%w")),
    "NaN beside a number": (where_nan("%x"), where_nan("%s")),
    "rows that are said to be unique": (added(), added(UNIQUE)),
    "rows that are said to ascend": (added(), added(SORTED)),
    "a number that a reduction compares": (reduced(), reduced("%s")),
    "ties behind a scale": (quantized("even"), quantized("afz")),
    "a sum of negative zeros": (summed("0.0"), summed("-0.0")),
    "the number that a mask fills in": (masked_scores("-1.0e30"), masked_scores("-1.0000001e30")),
    "the algorithm of random bits": (random_bits("PHILOX"), random_bits("DEFAULT")),
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
    before, after = PAIRS[name]
    assert verify(before, before, level="regions").ok
    assert verify(after, after, level="regions").ok


@pytest.mark.few(2)
@pytest.mark.parametrize("in_loop", [False, True])
@pytest.mark.parametrize(("count", "width"), [(2, 1), (2, 2), (3, 2)])
def test_what_one_call_with_effects_gives_is_not_what_another_one_gives(count, width, in_loop):
    kept = list(itertools.product(range(count), repeat=width))
    wrong = []
    for first, second in itertools.product(kept, kept):
        one, other = called(first, count, in_loop=in_loop), called(second, count, in_loop=in_loop)
        if verify(one, other).ok and first != second:
            wrong.append((first, second))
    assert wrong == []


def test_a_whole_module_whose_second_version_xla_gets_wrong_is_not_run():
    """XLA is no judge of the second version's scatters either."""
    before, after = PAIRS["a write that XLA drops"]
    module = verify(before, after, level="full").module
    assert module is not None
    assert module.status == "not run"


MASKED = """%nan = stablehlo.constant dense<0x7FC00000> : tensor<64xf32>
%s = stablehlo.select %m, %v, %nan : tensor<64xi1>, tensor<64xf32>
%z = stablehlo.constant dense<0.0> : tensor<f32>
%t = stablehlo.reduce(%s init: %z) applies stablehlo.add across dimensions = [0]
  : (tensor<64xf32>, tensor<f32>) -> tensor<f32>
%n = stablehlo.negate %t : tensor<f32>"""


def masked(returned):
    """A sum that is NaN wherever one element is masked."""
    return function(MASKED, "%m: tensor<64xi1>, %v: tensor<64xf32>", returned, "tensor<f32>")


def test_a_mask_that_fills_nan_in_is_driven_beside_ordinary_floats():
    """Of random truth values one is false, and so nothing but NaN was compared."""
    assert verify(masked("%t"), masked("%n"), level="regions").differs


def test_a_result_that_is_nan_in_every_run_is_not_told_equal():
    """Nothing is known of what is computed for it."""
    lines = "%a = stablehlo.subtract %x, %x : tensor<4xf32>\n%n = stablehlo.divide %a, %a : tensor<4xf32>\n"
    second = lines + f"%r = stablehlo.add %n, %y : {F}"
    [region] = verify(function(lines, returned="%n"), function(second, returned="%r"), level="regions").regions
    assert (region.status, region.reason) == ("not judged", "result 0 is NaN in every run")


@pytest.mark.parametrize(("asked", "less"), [("HIGHEST", "DEFAULT"), ("HIGHEST", ""), ("HIGH", "DEFAULT")])
def test_a_product_of_less_precision_is_not_told_equal(asked, less):
    """A CPU computes them alike; more precision is no loss."""
    assert not verify(product(asked), product(less), level="regions").ok
    assert verify(product(less), product(asked), level="regions").ok


def test_what_rounding_decides_is_seen_beside_a_run_of_nan():
    """A run whose result is NaN tells nothing of how much rounding moves it."""
    lines = """%%big = stablehlo.constant dense<1.0e20> : tensor<64xf32>
%%p = stablehlo.multiply %%x, %%big : tensor<64xf32>
%%s = stablehlo.%s %%p : tensor<64xf32>
%%z = stablehlo.constant dense<0.0> : tensor<f32>
%%r = stablehlo.reduce(%%s init: %%z) applies stablehlo.add across dimensions = [0]
  : (tensor<64xf32>, tensor<f32>) -> tensor<f32>"""
    first, second = (function(lines % name, "%x: tensor<64xf32>", "%r", "tensor<f32>") for name in ("sine", "cosine"))
    assert not verify(first, second, Assumed(reassociated=True), level="regions").ok


@pytest.mark.parametrize("size", [1, 7, 100])
def test_a_size_that_is_treated_otherwise_is_tried(size):
    """A version that treats one size otherwise names it."""
    kind = "tensor<?xf32>"
    lines = f"""%n = stablehlo.get_dimension_size %x, dim = 0 : ({kind}) -> tensor<i32>
%k = stablehlo.constant dense<{size}> : tensor<i32>
%p = stablehlo.compare EQ, %n, %k : (tensor<i32>, tensor<i32>) -> tensor<i1>
%m = stablehlo.negate %x : {kind}
%w = stablehlo.select %p, %m, %x : tensor<i1>, {kind}"""
    first, second = (function(lines, f"%x: {kind}", returned, kind) for returned in ("%x", "%w"))
    assert not verify(first, second).ok
    assert verify(second, second).ok


def test_what_waits_for_a_host_is_not_run():
    """An outfeed without a reader would wait without end."""
    lines = """%t = stablehlo.create_token : !stablehlo.token
%u = "stablehlo.outfeed"(%x, %t) <{outfeed_config = "NAME"}> : (tensor<4xf32>, !stablehlo.token) -> !stablehlo.token"""
    first, second = (function(lines.replace("NAME", name)) for name in ("a", "b"))
    assert verify(first, second).differs
    assert verify(first, first).module.status == "not run"


@pytest.mark.parametrize("zero", ["dense<0>", "dense<[1, 0, 2, 3]>"])
def test_a_constant_that_is_divided_by_zero_is_not_run(zero):
    """XLA would end the process."""
    kind = "tensor<4xi32>"
    lines = f"""%a = stablehlo.constant dense<7> : {kind}
%z = stablehlo.constant {zero} : {kind}
%d = stablehlo.divide %a, %z : {kind}
%r = stablehlo.OP %d, %x : {kind}"""
    first, second = (function(lines.replace("OP", op), f"%x: {kind}", "%r", kind) for op in ("add", "subtract"))
    assert not verify(first, second).ok
    assert verify(first, first).module.status == "not run"


def test_what_a_second_version_promises_may_be_true():
    """Rows that are numbered are unique, and ascend; what both versions promise is not asked again."""
    assert verify(added(counted=True), added(UNIQUE + SORTED, counted=True), level="regions").ok
    assert verify(added(UNIQUE), added(UNIQUE), level="regions").ok


@pytest.mark.sweep
@pytest.mark.parametrize("start", ["%a", "%x"])
def test_what_is_divided_may_be_computed_by_any_number_of_ops(start):
    """Eleven hundred sums in a row, of constants and of an argument, before a division by what is not zero; and
    one by a zero that as many ops make is seen."""
    kind = "tensor<4xi32>"
    sums = "\n".join(f"%v{k + 1} = stablehlo.add %v{k}, %o : {kind}" for k in range(1100))
    lines = f"""%a = stablehlo.constant dense<-1100> : {kind}
%o = stablehlo.constant dense<1> : {kind}
%v0 = stablehlo.multiply {start}, %o : {kind}
{sums}
%d = stablehlo.OP : {kind}
%r = stablehlo.add %d, %x : {kind}"""
    fine, zero = (
        function(lines.replace("OP", op), f"%x: {kind}", "%r", kind)
        for op in ("remainder %v1100, %o", "remainder %o, %v1100")
    )
    assert verify(fine, fine).module.status == "equal"
    assert verify(zero, zero).module.status == ("not run" if start == "%a" else "equal")


M, P = "tensor<3x3xf32>", "tensor<3x2xcomplex<f32>>"
SOLVE = "<{left_side = true, lower = true, unit_diagonal = true, transpose_a = #stablehlo<transpose NO_TRANSPOSE>}>"
LEFT = {
    "cholesky": (f"stablehlo.cholesky %a, lower = true : {M}", M),
    "solve": (f'"stablehlo.triangular_solve"(%a, %x) {SOLVE} : ({M}, {M}) -> {M}', M),
    "transform": (f"stablehlo.fft %a, type = RFFT, length = [3] : ({M}) -> {P}", P),
}


@pytest.mark.parametrize("name", LEFT)
def test_what_both_leave_to_a_factorization_or_a_transform_is_compared_for_nan(name):
    """A NaN that is lost before it; what it makes of one is the same in both."""
    tail, kind = LEFT[name]
    lines = f"""%z = stablehlo.constant dense<0.0> : {M}
%p = stablehlo.compare GT, %x, %z : ({M}, {M}) -> tensor<3x3xi1>
%a = CLIPPED
%r = {tail}"""
    first, second = (
        function(lines.replace("CLIPPED", clipped), f"%x: {M}", "%r", kind)
        for clipped in (f"stablehlo.maximum %x, %z : {M}", f"stablehlo.select %p, %x, %z : tensor<3x3xi1>, {M}")
    )
    assert not verify(first, second).ok
    assert verify(first, first).ok


def of_floats(*lines, arguments=f"%x: {F}, %y: {F}"):
    """A function of ops on floats, given by name and operands; the last one is returned."""
    body = [f"%{k} = stablehlo.{name} {operands} : {F}" for k, (name, operands) in enumerate(lines)]
    return function("\n".join(body), arguments, f"%{len(lines) - 1}")


THREE, THIRD = (("constant", f"dense<{value}>") for value in ("3.0", "0x3EAAAAAB"))
EXPONENTIALS = ("exponential", "%x"), ("exponential", "%y")

XLA_MAKES_ONE = {
    "division by a constant": ((THREE, ("divide", "%x, %0")), (THIRD, ("multiply", "%x, %0"))),
    "ratio of exponentials": (
        (*EXPONENTIALS, ("divide", "%0, %1")),
        (("subtract", "%x, %y"), ("exponential", "%0")),
    ),
    "logarithm of an exponential": ((EXPONENTIALS[0], ("log", "%0"), ("add", "%1, %y")), (("add", "%x, %y"),)),
    "constants added up": (
        (THREE, ("add", "%x, %0"), ("add", "%1, %0")),
        (("constant", "dense<6.0>"), ("add", "%x, %0")),
    ),
    "zero with a sign": (
        (("constant", "dense<-0.0>"), ("subtract", "%x, %0")),
        (("constant", "dense<0.0>"), ("subtract", "%x, %0")),
    ),
}


@pytest.mark.few(2)
@pytest.mark.parametrize("name", XLA_MAKES_ONE)
def test_what_xla_would_simplify_is_not_the_same(name):
    """Each op rounds by itself, whatever a compiler makes of two."""
    first, second = (of_floats(*lines) for lines in XLA_MAKES_ONE[name])
    assert verify(first, second).differs
