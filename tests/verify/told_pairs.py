"""Pairs of modules: equal ones, and ones that differ where it is easily overlooked, each by what it tries."""

import numpy as np
from untyped_mlir import function, module, split

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
FOLDED = """%z = constant 0.0 : f32
%r = reduce(%x, %z) <dimensions = array<i64: 0>> {%a, %b: %t = call @g(%a, %b) -> f32; return %t} -> f32"""
UNKNOWN = "func.func private @e(tensor<4xf32>) -> tensor<4xf32>"
WRAPPER = function("private @w", "%a: 4xf32", "%r = call @e(%a) -> 4xf32")
TWICE = "%a = call @w(%x) -> 4xf32; %b = call @w(%x) -> 4xf32"


def placed(mesh, count="mhlo.num_partitions = 8 : i32", sharding='{sdy.sharding = #sdy.sharding<@mesh, [{"a"}]>}'):
    """A module of a mesh."""
    main = module(f"%x: 8xf32 {sharding}", "", "%x")
    return f"module attributes {{{count}}} {{\nsdy.mesh @mesh = <[{mesh}]>\n{main}}}"


OF_BYTES = "%x: 200xi32, %i: 1xi8, %u: i32"
BYTES = "%w = scatter(%x, %i, %u) <inserted=[0], to=[0]> {%a, %b: return %b}"
"""XLA drops it, because 200 is not a number of i8."""


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


def counted_truths(kind, test, of_all, byte):
    """Whether all or some truth values hold, and the same by a count of eight bits, which wraps."""
    n, by, unit = (272, "and", "true") if of_all else (600, "or", "false")
    body = f"""{test}; %t = constant {unit} : i1; %z = constant 0 : i8; %k = constant {byte} : i8
    %v = reduce(%p init: %t) applies stablehlo.{by} across dimensions = [0]; %i = convert %p -> {n}xi8
    %s = reduce(%i init: %z) applies stablehlo.add across dimensions = [0]
    %w = compare {"EQ" if of_all else "NE"}, %s, %k"""
    return returning(f"%x: {n}x{kind}", body, "%v")


GREATEST = (
    "%v, %j = chlo.top_k(%x, k = 1) : tensor<9xf32> -> (tensor<1xf32>, tensor<1xi32>); %r = reshape %v -> f32",
    "%z = constant 0xFF800000 : f32; %r = reduce(%x init: %z) applies stablehlo.maximum across dimensions = [0]",
)

SEVEN = """%a0 = not %p0; %n1 = not %p1; %a1 = and %a0, %n1; %a2 = and %a1, %p2; %n3 = not %p3; %a3 = and %a2, %n3
%a4 = and %a3, %p4; %n5 = not %p5; %a5 = and %a4, %n5; %a6 = and %a5, %p6; %n = negate %x; %w = select %a6, %n, %x"""
"""Whether seven truth values are these."""


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

AWAY = """%b = bitcast_convert %y -> 8xui32; %k = constant HALF : 8xui32; %c = add %b, %k; MORE
%m = constant 4294901760 : 8xui32; %e = and %c, %m; %f = bitcast_convert %e -> 8xf32
%n = compare NE, %y, %y; %g = select %n, %y, %f; %r = convert %g -> 8xbf16"""
"""Floats whose last 16 bits are cut off after a half is added to them."""
TO_EVEN = """%o = constant 1 : 8xui32; %h = constant 16 : 8xui32; %i = shift_right_logical %b, %h; %j = and %i, %o
%c1 = add %c, %j"""
BY_HAND = {
    "away": AWAY.replace("HALF", "32768").replace("MORE", ""),
    "even": AWAY.replace("HALF", "32767").replace("MORE", TO_EVEN).replace("and %c,", "and %c1,"),
}


def rounded(before, *ways, size=8):
    """Functions that compute %y and round it in two ways."""
    return tuple(module(f"%x: {size}xf32", f"{before}; {way}".replace("8x", f"{size}x")) for way in ways)


NEAREST = [f"%r = round_nearest_{how} %y" for how in ("even", "afz")]
TENS = "%k0 = constant 11.0 : 8xf32; %z = logistic %x; %y = multiply %z, %k0"
NARROW_TANH = "%y = tanh %x", "%r = convert %y -> 8xbf16"
ABSORBED = "%e = exponential %x; %k = constant HERE : 4xf32; %s = add %e, %k; %r = convert %s -> 4xf16"
"""A summand that only f16's least numbers show, where the sum is the middle between two of them, nearly."""
OF_THREE = """%u = convert %x -> 4xf32; %v = convert %y -> 4xf32; %k = constant 0.75 : 4xf32
%p = HERE; %r = convert %q -> 4xf16"""

HIDDEN = """%e = exponential %x; %o = constant 1.0 : 4xf32; %p = add %e, %o; %k = constant HERE : 4xf32
%s = add %p, %k; %r = sqrt %s"""
"""A summand that is too small to show, beside numbers that are above 1."""

LOOPED = """while(%k = %zero, %v = %x) cond { %c = compare LT, %k, %two; return %c } do {
  %next = add %k, %one; %w = call @e(%v) -> 4xf32; return %next, %w }"""


def called(returned, in_loop):
    """Two calls of a function without a body, or loops that hold such calls, and which of them a module returns."""
    one = LOOPED if in_loop else "call @e(%x) -> 4xf32"
    lines = [f"%{name} = constant {k} : i32" for k, name in enumerate(("zero", "one", "two"))]
    lines += [f"%r{k}{':2' if in_loop else ''} = {one}" for k in range(2)]
    return module(XY, "\n".join(lines), ", ".join(f"%r{k}{'#1' if in_loop else ''}" for k in returned), UNKNOWN)


UNEQUAL = {
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
    "a function that a region calls": tuple(
        module("%x: 8xf32", FOLDED, "%r", function("private @g", "%a: f32, %b: f32", f"%r = {op} %a, %b"))
        for op in ("add", "maximum")
    ),
    "how often what is not known is called": tuple(
        module(XY, TWICE, returned, WRAPPER + UNKNOWN) for returned in ("%a, %b", "%a, %a")
    ),
    "which of two calls that are not known": (called((0, 1), in_loop=False), called((1, 0), in_loop=False)),
    "which of two loops with such calls": (called((0, 0), in_loop=True), called((0, 1), in_loop=True)),
    "the mesh of the shardings": (placed('"a"=2, "b"=4'), placed('"a"=4, "b"=2')),
    "a sharding over devices that are not counted": (placed('"a"=2', ""), placed('"a"=2', "", "")),
    "a write that XLA drops": (module(OF_BYTES, "", "%x"), module(OF_BYTES, BYTES, "%w")),
    "NaN of complex numbers": without_nan("4xcomplex<f32>", "real %x -> 4xf32", "(0.0, 0.0)"),
    "NaN of 8 bits": without_nan("4xf8E4M3FN"),
    "a part beside NaN": written(XY, JOINED, "%y", "%w"),
    "unsigned integers of 4 bits": at_most_one("4xui4"),
    "one float": with_one_value("f32", 3.7),
    "one half": with_one_value("2xf16", 3.5),
    "two floats at once": with_one_value("f32", 3.7, 4.9),
    "two integers of four at once": with_one_value("4xi32", 1234567, 7654321),
    "an integer of two bits": with_one_value("4xi2", -2),
    "a condition at a start behind the end": (counted(10, 5), counted(10, 5, also=10)),
    "one iteration of 3,000": (counted(0, 3000), counted(0, 3000, 1500)),
    "an iteration of an open loop": (counted(0, None), counted(0, None, 100)),
    "all above zero": all_of_one_sign("GT"),
    "seven truth values": returning(", ".join(f"%p{k}: i1" for k in range(7)) + ", %x: 4xf32", SEVEN),
    "NaN beside a number": written("%x: 2x1xf32, %y: 2x1xf32", NARROWED, "%x", "%s"),
    "a number that a reduction compares": written("%x: 8xi32", REDUCED, "%m", "%s"),
    "ties behind a scale": written("%x: 3x16xi8, %s: f32", QUANTIZED, "even", "afz"),
    "a sum of negative zeros": written("%x: 4x5xf32", SUMMED, "0.0", "-0.0"),
    "the number that a mask fills in": written("%x: 2x4x4xf32, %y: 2x4x4xf32", SCORES, "-1.0e30", "-1.0000001e30"),
    "a constant that few numbers show": written("%x: 4xf32", ABSORBED, "1.0e-9", "1.1e-9"),
    "the algorithm of random bits": written("%x: 2xui64", BITS, "PHILOX", "DEFAULT", "%s, %r"),
}


def sized(predicate):
    """A vector, or its opposite where its size is one of these."""
    body = f"%n = get_dimension_size %x, dim = 0; {predicate}; %m = negate %x; %w = select %p, %m, %x"
    return returning("%x: ?xf32", body)


OF_SIZE = "%k = constant {} : i32; %p = compare EQ, %n, %k"
LARGER = "%s = multiply %n, %n; %k = constant {} : i32; %p = compare GT, %s, %k"


def negated(kind, lines, compared, number):
    """x, or -x where %s, computed by lines, is a number."""
    body = f"{lines}; %k = constant {number} : {compared}; %q = compare EQ, %s, %k; %n = negate %x"
    return returning(f"%x: {kind}", f"{body}; %w = select %q, %n, %x")


HASH = """%c = constant 2654435761 : 8xui32; %d = constant 16 : 8xui32
%m = multiply %x, %c; %s = shift_right_logical %m, %d"""
MOVED = "%c = constant 3.0 : 8xf32; %r = reverse %x, dims = [0]; %a = abs %r; %s = add %a, %c"
NEVER = "%c = constant 77 : 8xi32; %y = multiply %x, %x; %z = multiply %y, %c; %s = subtract %z, %x"
"""77 x * x - x is even and never 5, which no law says."""
MET = {
    "a square": ("8xi32", "%s = multiply %x, %x", "8xi32", 1522756),
    "a hash": ("8xui32", HASH, "8xui32", 4242),
    "bits": ("8xf32", "%s = bitcast_convert %x -> 8xi32", "8xi32", 1078530011),
    "a scale": ("8xf32", "%c = constant 0.0078125 : 8xf32; %s = multiply %x, %c", "8xf32", 100.0),
    "a quotient": ("8xi32", "%c = constant 1000 : 8xi32; %s = divide %x, %c", "8xi32", 777),
    "mixed bits": ("8xi32", "%c = constant 1431655765 : 8xi32; %y = xor %x, %c; %s = not %y", "8xi32", 987654321),
    "a conversion": ("8xi32", "%s = convert %x -> 8xf32", "8xf32", 12345.0),
    "a reversal": ("8xf32", MOVED, "8xf32", 2000.5),
}
EDGES = [round(-18 + 0.37 * k, 2) for k in range(40)]
OTHER_EDGES = [*EDGES[:25], EDGES[25] + 1e-4, *EDGES[26:]]
TABLE = """%t = constant HERE : 40xf32; %b = broadcast_in_dim %x, dims = [0] -> 4x40xf32
%u = broadcast_in_dim %t, dims = [1] -> 4x40xf32; %r = compare GE, %b, %u"""

POINTS = "%r = scatter(%x, %i, %u) <inserted=[0], to=[0], ivd=1> {assign}"
UNGUARDED = "%s = reshape %i -> i32; %r = dynamic_update_slice %x, %u, %s"


def point(body=POINTS, returned="%r", n=8):
    """A module that writes one element of n, and returns that or what is computed behind."""
    return module(f"%x: {n}xf32, %u: 1xf32, %i: 1x1xi32", body, returned)


BEHIND = {
    "NaN": "%z = constant 0.0 : 8xf32; %c = compare EQ, %r, %r; %s = select %c, %r, %z",
    "-0.0": "%z = constant 0.0 : 8xf32; %s = add %r, %z",
    "infinity": """%l = constant -3.40282347E+38 : 8xf32; %h = constant 3.40282347E+38 : 8xf32
    %s = clamp %l, %r, %h""",
}


def converted(*names, size=64):
    """A function that converts numbers from one type to the next ones."""
    lines = [f"%{k + 1} = convert %{k} -> {size}x{name}" for k, name in enumerate(names[1:])]
    return module(f"%x: {size}x{names[0]}", "\n".join(lines).replace("%0 ", "%x "), f"%{len(lines)}")


def at_once(*names):
    """A conversion, and one by way of other types."""
    return converted(names[0], names[-1]), converted(*names)


def reduced(format_, narrow):
    """A reduced precision, which has no subnormal numbers, and a narrower type."""
    first = module("%x: 16xf32", f"%r = reduce_precision %x, format = {format_}")
    return first, converted("f32", narrow, "f32", size=16)


def product_of_bytes(terms, through):
    """A product of matrices of i8, computed in a type."""
    body = f"""%u = convert %x -> 2x{terms}x{through}; %v = convert %y -> {terms}x2x{through}
    %f = dot_general %u, %v, contracting_dims = [1] x [0]; %r = convert %f -> 2x2xi32"""
    return module(f"%x: 2x{terms}xi8, %y: {terms}x2xi8", body, "%f" if through == "i32" else "%r")


def quotient(divisor, bits, shift, above=0):
    """A division of unsigned integers by a constant, and a multiplication and a shift."""
    kind, wide = f"16xui{bits}", f"16xui{2 * bits}"
    first = f"%d = constant {divisor} : {kind}; %r = divide %x, %d"
    second = f"""%a = convert %x -> {wide}; %m = constant {(1 << shift) // divisor + above} : {wide}
    %s = constant {shift} : {wide}; %p = multiply %a, %m; %q = shift_right_logical %p, %s; %r = convert %q -> {kind}"""
    return tuple(module(f"%x: {kind}", body) for body in (first, second))


READING = {
    "by one start": ("%p: i32", "%z = constant 0 : i32; %r = dynamic_slice %t, %p, %z, sizes = [1, 4]"),
    "by vectors of starts": (
        "%p: 3x1xi32",
        """%r = gather(%t, %p) <dimension_numbers = #stablehlo.gather<offset_dims = [1],
        collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>,
        slice_sizes = array<i64: 1, 4>> -> 3x4xf32""",
    ),
    "by two starts": ("%p: i32, %q: i32", "%r = dynamic_slice %t, %p, %q, sizes = [1, 1]"),
    "in a way that is not undone": (
        "%p: i32",
        """%k = constant 48271 : i32; %h = multiply %p, %k; %g = xor %h, %p; %z = constant 0 : i32
        %r = dynamic_slice %t, %g, %z, sizes = [1, 4]""",
    ),
}


def table(reading, changed=()):
    """A function that reads a row of a large table, in which some elements are others."""
    numbers = (np.arange(2048 * 4) % 251 + 1).astype(np.float32).reshape(2048, 4)
    for at in changed:
        numbers[at] += 0.25
    arguments, read = READING[reading]
    return module(arguments, f'%t = constant "0x{numbers.tobytes().hex()}" : 2048x4xf32\n{read}')


def read_otherwise(reading, changed):
    """Two such functions."""
    return table(reading), table(reading, changed)


CLAMP = "%lo = constant 0 : i32; %hi = constant {} : i32; %j = clamp %lo, %i, %hi\n"
SCATTER = "%at = reshape %j -> 1xi32; %r = scatter(%o, %at, %u) <window=[0], to=[0]> {%c, %d: return %d}"
UPDATE = "%r = dynamic_update_slice %o, %u, %j"
REMAINDER = """%n = constant 6 : i32; %lo = constant 0 : i32; %m = remainder %i, %n; %s = compare LT, %m, %lo
%up = constant {} : i32; %t = add %m, %up; %j = select %s, %t, %m
"""
GUARDED = """%five = constant 5 : i32; %c = clamp %lo, %j, %five; %p = compare EQ, %c, %j
%v = dynamic_slice %o, %c, sizes = [3]; %w = select %p, %u, %v; %r = dynamic_update_slice %o, %w, %c"""
HASHED = """%k = constant 7919 : i32; %h = multiply %i, %k; %x = constant 123456 : i32; %g = xor %h, %x
%lo = constant 0 : i32; %q = multiply %g, %g; %w = constant 305419896 : i32; %e = compare EQ, %q, %w
%far = constant 9 : i32; %j = select %e, %far, %lo
"""
IN_LOOP = """%s = constant 0 : i32
%r:2 = while(%k = %s, %x = %o) cond {{ %n = constant {} : i32; %p = compare LT, %k, %n; return %p }} do {{
  %one = constant 1 : i32; %next = add %k, %one; %j = add %k, %one
  HERE
  return %next, %r }}"""


def behind(before, second=UPDATE):
    """A scatter, which drops, and an update, which clamps, behind the same computation of where they write."""
    return written("%o: 8xf32, %i: i32, %u: 3xf32", f"{before}HERE", SCATTER, second)


def in_a_loop(turns):
    """The same in a loop of so many turns."""
    return written("%o: 8xf32, %u: 3xf32", IN_LOOP.format(turns), SCATTER, UPDATE, "%r#1")


NARROW = "%k = constant 100 : 8xi8; %s = add %a, %k; %r = convert %s -> 8xi32"
WIDE = "%w = convert %a -> 8xi32; %k = constant 100 : 8xi32; %r = add %w, %k"
SUMMANDS = "%z = constant 0 : 8xi8; %m = constant {} : 8xi8; %a = clamp %z, %b, %m\nHERE"


def limited(most):
    """Sums that cannot wrap around in 8 bits if what is added is at most 27."""
    return written("%b: 8xi8", SUMMANDS.format(most), NARROW, WIDE)


OK, ODD = "%o: 8xf32, %k: i32", "%n = constant -1 : i32; %m = and %j, %n; %c1 = constant 1 : i32; %k = or %m, %c1\n"
"""An odd %k, though nothing says so."""
CHOICE = "%r = case(%k) { %a = abs %o; return %a } { %b = negate %o; return %b } { return %o }"
SELECTS = """%z = constant 0 : i32; %one = constant 1 : i32; %a = abs %o; %b = negate %o; %p = compare EQ, %k, %z
%q = compare EQ, %k, %one; %s = select %q, %b, %o; %r = select %p, %a, %s"""
FIVE_TO_FIVE = """%s = constant 5 : i32; %n = constant 5 : i32
%w:2 = while(%i = %s, %x = %o) cond { %p = compare LT, %i, %n; return %p } do {
  %one = constant 1 : i32; %next = add %i, %one; %y = add %x, %x; return %next, %y }
%r = abs %w#1"""
COUNTS = """%z = constant 0 : i32; %o = constant 1 : i32; %za = constant 0 : HERE; %oa = constant 1 : HERE
%w:2 = while(%i = %z, %a = %za) cond { %p = compare LT, %i, %k; return %p } do {
  %b = add %a, %oa; %n = add %i, %o; return %n, %b }
%r = convert %w#1 -> i64"""


def always(test, first, second):
    """A branch by a test that always comes out alike, though nothing says so, and the one that is taken."""
    body = f"""%n = constant -1 : i32; %j = and %k, %n; %p = compare {test}, %k, %j
    %r = if(%p) {{ %a = {first} %o; return %a }} {{ %b = {second} %o; return %b }}"""
    return written(OK, "HERE", body, "%r = abs %o")


UNCHOSEN = written("%o: 8xf32, %j: i32", f"{ODD}HERE", CHOICE, SELECTS.replace("abs", "sqrt"))
ENDS = "%z = constant 0 : i32; %n = constant 7 : i32; "
DECIDED = "%c = clamp %z, %i, %n; %p = compare LT, %c, %z; %a = add %c, %n; %r = select %p, %a, %c"

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
    "zero with a sign": (
        "%c = constant -0.0 : 4xf32; %r = subtract %x, %c",
        "%c = constant 0.0 : 4xf32; %r = subtract %x, %c",
    ),
}
TURNING = {
    # ties that are computed: an aim undoes what stands before them
    "a half that is rounded away behind tanh": rounded(*NARROW_TANH, BY_HAND["away"]),
    "a tie of one number behind a logistic": rounded(TENS, *NEAREST, size=1),
    # the middle of two numbers of the narrow type, and one that only the widest tells from it
    **{
        f"a number that is rounded twice, {names}": at_once(*names.split())
        for names in ("f64 f32 bf16", "f32 f16 f8E5M2", "i64 f64 f32", "i16 f16 f8E5M2")
    },
    **{f"no subnormal numbers, {how}": reduced(*how.split()) for how in ("e5m10 f16", "e4m3 f8E4M3")},
    # the number is some units too large or too small, or has too few bits
    "a division by a number too large": quotient(1000003, 32, 40, 1),
    "a division by a number too small": quotient(7, 32, 34),
    "a division of 16 bits": quotient(10, 16, 18, 1),
    "a table that is read by one start": read_otherwise("by one start", [(1999, 0), (77, 3)]),
    "a table that is read by vectors": read_otherwise("by vectors of starts", [(k, 1) for k in range(300, 400)]),
    "a table that is read by two starts": read_otherwise("by two starts", [(1000, 2)]),
}
DIFFERENT = {
    **TURNING,
    **{f"a constant that is met through {name}": negated(*how) for name, how in MET.items()},
    "a size above 70": sized(LARGER.format(5000)),
    "one edge of forty": written("%x: 4xf32", TABLE, str(EDGES), str(OTHER_EDGES)),
    **{f"{name} that is lost behind a scatter": (point(), point(f"{POINTS}\n{b}", "%s")) for name, b in BEHIND.items()},
    # 16 of 272 truths are counted like 272, and 256 like none
    "all truths by a byte": counted_truths("i1", "%p = not %x", True, 16),
    "some truths by a byte": counted_truths("i1", "%p = not %x", False, 0),
    "all of some comparisons by a byte": counted_truths(
        "i32", "%c = constant 7 : 272xi32; %p = compare GT, %x, %c", True, 16
    ),
    # a total order puts a negative NaN first, which a positive one beside it hides; so does any number an infinity
    "a greatest number, negative NaN first": written("%x: 9xf32", "HERE", *GREATEST),
    "a greatest number from another begin": written(
        "%x: 9xf32", GREATEST[1].replace("0xFF800000", "HERE"), "0xFF800000", "0xFF7FFFFF"
    ),
    # data below zero, above 31 and at the end of its type
    "integers below zero": returning("%x: 4xi32", "%w = abs %x"),
    "integers above 40": returning("%x: 4xi32", "%m = constant 40 : 4xi32; %w = minimum %x, %m"),
    "the least byte": returning("%x: 4xi8", "%m = constant -127 : 4xi8; %w = maximum %x, %m"),
    "a remainder that is below zero": behind(REMAINDER.format(4)),
    "a remainder that is too large": behind(REMAINDER.format(7)),
    "a sum that wraps around": written("%a: 8xi8", "HERE", NARROW, WIDE),
    "a sum that may wrap around": limited(28),
    "a loop that runs out of bounds": in_a_loop(6),
    # each op rounds by itself, whatever a compiler makes of two
    **{f"{name}, as XLA simplifies it": written(XY, "HERE", *both) for name, both in XLA_MAKES_ONE.items()},
}
UNEQUAL |= {
    **{f"a size of {size}": sized(OF_SIZE.format(size)) for size in (1, 100)},
    "integers that floats do not hold": (product_of_bytes(1040, "i32"), product_of_bytes(1040, "f32")),
    "a table that no run reads": read_otherwise("in a way that is not undone", [(1000, 2)]),
    "one number in 2^32 out of bounds": behind(HASHED),
}


def summed_up_to(most, other=0):
    """The numbers below the minimum of an input and a constant, summed in a loop, and at once; of that constant itself
    the second module may add something."""
    given = f"%z = constant 0 : i32; %one = constant 1 : i32; %most = constant {most} : i32; %t = minimum %x, %most"
    loop = """%s:2 = while(%k = %z, %a = %z) cond { %p = compare LT, %k, %t; return %p } do {
      %n = add %k, %one; %b = add %a, %k; return %n, %b }; %r = negate %s#1"""
    at_once = f"""%two = constant 2 : i32; %o = constant {other} : i32
    %u = maximum %t, %z; %v = subtract %u, %one; %w = multiply %u, %v; %d = divide %w, %two
    %p = compare EQ, %u, %most; %e = add %d, %o; %f = select %p, %e, %d; %r = negate %f"""
    return tuple(module("%x: i32", f"{given}; {made}") for made in (loop, at_once))


EQUAL = {
    "a loop that ends within 20": summed_up_to(20),
    # XLA itself rounds an i32 and an f64 twice on their way to bf16
    **{names: at_once(*names.split()) for names in ("i16 f32 bf16", "f16 f32 f64 bf16")},
    "integers that floats hold": (product_of_bytes(1024, "i32"), product_of_bytes(1024, "f32")),
    # 641 times the number is 2^40 + 2^8, the most by which it may be beyond
    "an exact multiplication": quotient(641, 32, 40, 1),
    "a clamp as a maximum and a minimum": written(
        "%i: i32", f"{ENDS}HERE", "%r = clamp %z, %i, %n", "%m = maximum %i, %z; %r = minimum %m, %n"
    ),
    "a comparison that a clamp decides": written("%i: i32", f"{ENDS}HERE", "%r = clamp %z, %i, %n", DECIDED),
    # 11 and 11 and 2 digits; floats of few digits are at a tie, others are not in so few elements
    "a product of half floats in another order": written(
        "%x: 4xf16, %y: 4xf16",
        OF_THREE,
        "multiply %u, %v; %q = multiply %p, %k",
        "multiply %u, %k; %q = multiply %p, %v",
    ),
    "a half that is rounded to even": rounded(*NARROW_TANH, BY_HAND["even"]),
    "a case on an argument": written(OK, "HERE", CHOICE, SELECTS),
    "a loop from 5 to 5, whose counter says so": written(OK, "HERE", FIVE_TO_FIVE, "%r = abs %o"),
    # a remainder lies in 0 to 5, so no run has a guard that is false, and none need have one
    **{f"a remainder within, {name}": behind(REMAINDER.format(6), w) for name, w in (("bare", UPDATE), ("", GUARDED))},
    "a sum that cannot wrap around": limited(27),
    "a loop that stays within": in_a_loop(4),
}
TO_TEN = """%ten = constant 10 : i32; %three = constant 3 : i32; %y = while(%k = %x) cond {
  %p = compare LT, %k, %ten, SIGNED; return %p } do { %n = add %k, %three; return %n }"""
TO_TEN_AT_ONCE = """%ten = constant 10 : i32; %three = constant 3 : i32; %two = constant 2 : i32
  %p = compare LT, %x, %ten, SIGNED; %d = subtract %ten, %x; %u = add %d, %two; %t = divide %u, %three
  %m = multiply %t, %three; %e = add %x, %m; %y = select %p, %e, %x"""
"""The difference of 10 and the least integers wraps around; the loop takes 700 million trips there."""

ONLY_RUN = {
    "no run had equal": negated("8xi32", NEVER, "8xi32", 5),
    "'arg0.0': 32768} on, which was not": sized(LARGER.format(1 << 30)),
    "no run took branch 0": UNCHOSEN,
    "not exercised: the case at ": UNCHOSEN[::-1],
    "no run took branch 1": always("EQ", "abs", "negate"),
    "not exercised: the if at ": always("NE", "negate", "abs"),
    "no run had a tie above an even neighbour and 3 more": rounded("%y = subtract %x, %x", *NEAREST),
    "no run showed that the other piece has another one": written("%x: 4xf32", HIDDEN, "1.0e-9", "2.0e-9"),
    "no run counts beyond 300": tuple(module("%x: i32", text, "%y") for text in (TO_TEN, TO_TEN_AT_ONCE)),
    "no run counts to the end of int16": written("%k: i32", COUNTS, "i32", "i16"),
}
"""What the verdict says of two modules that may or may not differ where no run was."""
