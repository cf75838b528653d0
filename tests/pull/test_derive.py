"""What is derived, and what is not: rewritings that are equal, and near misses that differ in one place."""

import re
import sys
from math import inf

import numpy as np
import pytest

pytest.importorskip("z3")

from untyped_mlir import module

import hlo_lower as hl
from hlo_lower.ir import mlir
from hlo_lower.verify.pull import derive, folding, parts, prover, terms
from hlo_lower.verify.pull.derive import _law
from hlo_lower.verify.pull.solver import z3
from hlo_lower.verify.read.program import Program

MANY = 1 << 20
"""A size that no run would be needed for."""


def unary(body, kind=f"{MANY}xf32"):
    """A module of one argument %x that returns %r."""
    return module(f"%x: {kind}", body)


def tiled(count, step, width):
    """tanh of a million numbers, tile by tile."""
    return module(
        f"%x: {MANY}xf32",
        f"""%zero = constant 0 : i32; %count = constant {count} : i32; %step = constant {step} : i32
        %one = constant 1 : i32
        %w:2 = while(%k = %zero, %v = %x) cond {{ %c = compare LT, %k, %count, SIGNED; return %c }} do {{
          %next = add %k, %one; %at = multiply %k, %step; %part = dynamic_slice %x, %at, sizes = [{width}]
          %new = tanh %part; %t = dynamic_update_slice %v, %new, %at; return %next, %t }}""",
        "%w#1",
    )


ASSIGN, TURNED = "%c, %d: return %d", "%c, %d: %s = add %d, %c; return %s"


def scatter(body, indices="%i", *, size=MANY, element="f32"):
    """Eight numbers into many, at indices of any value."""
    text = f"""%zero = constant 0 : 8x1xi32; %low = maximum %i, %zero
    %r = scatter(%x, {indices}, %u) <inserted=[0], to=[0], ivd=1> {{{body}}}"""
    return module(f"%x: {size}x{element}, %i: 8x1xi32, %u: 8x{element}", text)


def summed(filler="-0.0", count=8):
    """`scatter("add")` as a sum at each place, of the updates that go there and of fillers."""
    n = f"{MANY}x{count}"
    body = f"""%f = constant {filler} : f32; %j = slice %i [0:{count}, 0:1]; %k = reshape %j -> {count}xi32
    %v = slice %u [0:{count}]; %where = broadcast_in_dim %k, dims = [1] -> {n}xi32; %here = iota dim = 0 : {n}xi32
    %is = compare EQ, %where, %here; %all = broadcast_in_dim %v, dims = [1] -> {n}xf32
    %none = broadcast_in_dim %f, dims = [] -> {n}xf32; %those = select %is, %all, %none
    %s = reduce(%those init: %f) applies stablehlo.add across dimensions = [1]; %r = add %x, %s"""
    return module(f"%x: {MANY}xf32, %i: 8x1xi32, %u: 8xf32", body)


IN_ORDER = module(
    "%x: 1024x512xf32",
    """%zero = constant 0 : i32; %one = constant 1 : i32; %count = constant 512 : i32; %none = constant 0.0 : 1024xf32
    %w:2 = while(%k = %zero, %v = %none) cond { %c = compare LT, %k, %count, SIGNED; return %c } do {
      %next = add %k, %one; %part = dynamic_slice %x, %zero, %k, sizes = [1024, 1]
      %row = reshape %part -> 1024xf32; %t = add %v, %row; return %next, %t }""",
    "%w#1",
)
"""The sum of each row, in order."""


def total(value, dim, kind, before=""):
    """Sums along a dim."""
    body = f"""{before}; %z = constant 0.0 : f32
    %r = reduce({value} init: %z) applies stablehlo.add across dimensions = [{dim}]"""
    return unary(body, kind)


def joined(before="", dims="[1]", to="64x512"):
    """A sum over a dim that two were, perhaps turned before."""
    given = "%t" if before else "%x"
    made = f"{before}; %y = reshape {given} -> {to}xf32; %z = constant 0.0 : f32; "
    return module(
        "%x: 64x32x16xf32", f"{made}%r = reduce(%y init: %z) applies stablehlo.add across dimensions = {dims}"
    )


def convolved(numbers="[b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1]", *, before="", pad="[1, 1], [0, 0]", given="%x"):
    """A convolution, perhaps in another layout."""
    window = f"window = {{pad = [{pad}]}} {{batch_group_count = 1 : i64, feature_group_count = 1 : i64}}"
    return module(
        "%x: 2x3x9x9xf32, %k: 4x3x3x3xf32",
        f"%z = constant 0.0 : f32; {before}; "
        f"%r = convolution({given}, %k) dim_numbers = {numbers}, {window} -> 2x4x9x7xf32",
    )


def in_batches(groups, given="%x", before=""):
    """A convolution of which each half of the features reads a half of the batch, or of which all read the first."""
    window = f"{{batch_group_count = {groups} : i64, feature_group_count = 1 : i64}}"
    line = (
        f"%r = convolution({given}, %k) dim_numbers = [b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1], window = {{}} {window}"
    )
    return module("%x: 4x3x9x9xf32, %k: 4x3x3x3xf32", f"{before}; {line} -> 2x4x7x7xf32")


LAST = "%t = transpose %x, dims = [0, 2, 3, 1] -> 2x9x9x3xf32"
PADDED = "%t = pad %x, %z, low = [0, 0, 1, 0], high = [0, 0, 1, 0], interior = [0, 0, 0, 0] -> 2x3x11x9xf32"

BOTH_DIMS = module(
    "%x: 64x32x16xf32",
    "%z = constant 0.0 : f32; %r = reduce(%x init: %z) applies stablehlo.add across dimensions = [1, 2]",
)


def masked_maximum(nan="%nan", any_="%any"):
    """A scatter by maximum as a maximum over the updates that go to a place, of which NaN are looked for apart."""
    body = f"""%low = constant 0xFF800000 : f32; %quiet = constant 0x7FC00000 : 64xf32; %no = constant false : i1
    %never = constant false : 64xi1; %i1 = reshape %i -> 8xi32; %where = broadcast_in_dim %i1, dims = [1] -> 64x8xi32
    %here = iota dim = 0 : 64x8xi32; %hit = compare EQ, %where, %here; %v = broadcast_in_dim %u, dims = [1] -> 64x8xf32
    %is = compare NE, %v, %v; %isnt = not %is; %bad = and %hit, %is; %good = and %hit, %isnt
    %fill = broadcast_in_dim %low, dims = [] -> 64x8xf32; %w = select %good, %v, %fill
    %most = reduce(%w init: %low) applies stablehlo.maximum across dimensions = [1]
    %nan = reduce(%bad init: %no) applies stablehlo.or across dimensions = [1]
    %any = reduce(%hit init: %no) applies stablehlo.or across dimensions = [1]
    %all = select {nan}, %quiet, %most; %more = maximum %x, %all; %r = select {any_}, %more, %x"""
    return module("%x: 64xf32, %i: 8x1xi32, %u: 8xf32", body)


def one_by_one(guarded=range(8), order=range(8)):
    """`scatter("add")`, a slice at a time: what reaches out is not written."""
    lines, before = [f"%low = constant 0 : i32; %high = constant {MANY - 1} : i32"], "%x"
    for k in order:
        lines.append(f"""%a{k} = slice %i [{k}:{k + 1}, 0:1]; %i{k} = reshape %a{k} -> i32
        %u{k} = slice %u [{k}:{k + 1}]; %c{k} = clamp %low, %i{k}, %high; %ok{k} = compare EQ, %i{k}, %c{k}
        %old{k} = dynamic_slice {before}, %c{k}, sizes = [1]; %sum{k} = add %old{k}, %u{k}
        %new{k} = select %ok{k}, %sum{k}, %{"old" if k in guarded else "sum"}{k}
        %x{k} = dynamic_update_slice {before}, %new{k}, %c{k}""")
        before = f"%x{k}"
    return module(f"%x: {MANY}xf32, %i: 8x1xi32, %u: 8xf32", "\n".join(lines), before)


def masked_halves(filler="-0.0"):
    """A scatter that adds bf16, of which what reaches out goes to row 0 as a filler."""
    body = f"""%most = constant 63 : 8x1xi32; %zero = constant 0 : 8x1xi32; %f = constant {filler} : 8xbf16
    %ok = compare LE, %i, %most, UNSIGNED; %at = select %ok, %i, %zero; %is = reshape %ok -> 8xi1
    %v = select %is, %u, %f; %r = scatter(%x, %at, %v) <inserted=[0], to=[0], ivd=1> {{add}}"""
    return module("%x: 64xbf16, %i: 8x1xi32, %u: 8xbf16", body)


def flat_rows(size=64):
    """Rows of two heads, written where their indices say, as rows of one matrix."""
    body = f"""%flat = reshape %x -> 128xf32; %low = constant -1 : 8x2xi32; %high = constant 64 : 8x2xi32
    %out = constant 128 : 8x2xi32; %size = constant {size} : 8x2xi32; %j = broadcast_in_dim %i, dims = [0, 1] -> 8x2xi32
    %a = compare GT, %j, %low; %b = compare LT, %j, %high; %ok = and %a, %b; %head = iota dim = 1 : 8x2xi32
    %begin = multiply %head, %size; %row = add %j, %begin; %at = select %ok, %row, %out; %at1 = reshape %at -> 16x1xi32
    %t = transpose %u, dims = [1, 0]; %v = reshape %t -> 16xf32
    %r = scatter(%flat, %at1, %v) <inserted=[0], to=[0], ivd=1> {{{ASSIGN}}}
    %back = reshape %r -> 2x64xf32"""
    return module("%x: 2x64xf32, %i: 8x1xi32, %u: 2x8xf32", body, "%back")


ROWS = module(
    "%x: 2x64xf32, %i: 8x1xi32, %u: 2x8xf32",
    f"""%r = scatter(%x, %i, %u) <window=[0], inserted=[1], to=[1], ivd=1> {{{ASSIGN}}}""",
    "%r",
)


def running_sum(*steps):
    """The sums of the first 1, 2, ..., 24 numbers, in steps that add what stands so far before."""
    lines, before = ["%zero = constant 0 : i32"], "%x"
    for k in steps:
        lines.append(f"""%s{k} = slice {before} [0:{24 - k}]
        %p{k} = pad %s{k}, %zero, low = [{k}], high = [0], interior = [0] -> 24xi32
        %x{k} = add {before}, %p{k}""")
        before = f"%x{k}"
    return module("%x: 24xi32", "\n".join(lines), before)


def reaching_back(count):
    """Windows of all that stands before."""
    return f"<window_dimensions = array<i64: {count}>, padding = dense<[[{count - 1}, 0]]> : tensor<1x2xi64>>"


def windows(count=24):
    """`running_sum`, as it is told."""
    body = f"%zero = constant 0 : i32; %r = reduce_window(%x, %zero) {reaching_back(count)} {{add}} -> {count}xi32"
    return unary(body, f"{count}xi32")


def padded_sum(old="", new=""):
    """Forty of them, of what is padded with zeros; with another slice in the place of one."""
    text = hl.lower(windows(40), target="coreml").text
    assert not old or text.count(old) == 1, text
    return text.replace(old, new) if old else text


def of_sevens(op):
    """Windows that reach out, begun with 7: told so, and over what was padded with 7 before."""
    padded = f"""%all = pad %x, %seven, low = [23], high = [0], interior = [0] -> 47xi32
    %r = reduce_window(%all, %seven) <window_dimensions = array<i64: 24>> {{{op}}} -> 24xi32"""
    reaching = f"%r = reduce_window(%x, %seven) {reaching_back(24)} {{{op}}} -> 24xi32"
    return [unary(f"%seven = constant 7 : i32; {body}", "24xi32") for body in (reaching, padded)]


def infinities(op="is_inf"):
    """A test for infinities: told so, and as a comparison."""
    told = f"%r = chlo.{op} %x : tensor<{MANY}xf32> -> tensor<{MANY}xi1>"
    return unary(told), unary(f"%c = constant 0x7F800000 : {MANY}xf32; %m = abs %x; %r = compare EQ, %m, %c")


def from_zero(*changes, zero="0.0"):
    """A scatter that adds to zeros, and its form as a product of 0 and 1; of this one some words are changed."""
    given = scatter("add", size=64).replace('scatter"(%x', 'scatter"(%o')
    given = given.replace("%r =", f"%o = stablehlo.constant dense<{zero}> : tensor<64xf32>\n%r =", 1)
    text = re.sub("compare +", "compare ", hl.lower(given, target="litert", prefer="one_hot_dot").text)
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new)
    return given, text


PRODUCT = """%j = reshape %i -> 8xi32; %at = broadcast_in_dim %j, dims = [1] -> 64x8xi32
%here = iota dim = 0 : 64x8xi32; %is = compare EQ, %at, %here; HOT
%s = dot_general %hot, %u, contracting_dims = [1] x [0], precision = [HIGHEST, HIGHEST] -> 64xf32; %r = add %o, %s"""


def of_chosen(base, one="1.0", hot="%hot = convert %is -> 64x8xf32"):
    """Ones and zeros with a sign, added to a number at each place: as a scatter, and as a product of 0 and 1."""
    chosen = f"""%o = constant {base} : 64xf32; %one = constant {one} : 8xf32; %none = constant -0.0 : 8xf32
    %u = select %p, %one, %none
    """
    bodies = "%r = scatter(%o, %i, %u) <inserted=[0], to=[0], ivd=1> {add}", PRODUCT.replace("HOT", hot)
    return [module("%i: 8x1xi32, %p: 8xi1", chosen + body) for body in bodies]


def of_twos():
    """Zeros with a sign added to zeros; and threes and such zeros times 0 or 2, which would be so if only a 1 chose."""
    twos = "%two = constant 2.0 : 64x8xf32; %no = constant 0.0 : 64x8xf32; %hot = select %is, %two, %no"
    return of_chosen("0.0", "-0.0")[0], of_chosen("0.0", "3.0", twos)[1]


def number(value):
    """A constant %c of the many."""
    return f"%c = constant {value} : {MANY}xf32; "


TANH, KEPT = unary("%r = tanh %x"), unary("%r = optimization_barrier %x")
HALVES, SQUARE = scatter("add", size=64, element="bf16"), f"tensor<{MANY}xf32>"
TURN = "%t = transpose %x, dims = [1, 0]"


def remainder(text, kind="i32"):
    """A module on integers of any value."""
    return module(f"%x: 8x{kind}, %y: 8x{kind}", text)


def one_hot(one, count):
    """A product of integers with a choice between 0 and a number, and the sum of what is chosen."""
    chosen = f"%one = constant {one} : {count}xi32; %z = constant 0 : {count}xi32; %h = select %p, %one, %z"
    product = f"{chosen}; %r = dot_general %h, %x, contracting_dims = [0] x [0] -> i32"
    sums = "%zero = constant 0 : i32; %k = select %p, %x, %z"
    sums += "; %r = reduce(%k init: %zero) applies stablehlo.add across dimensions = [0]"
    arguments = f"%p: {count}xi1, %x: {count}xi32"
    return module(arguments, product), module(arguments, f"%z = constant 0 : {count}xi32; {sums}")


WHAT_IS_LEFT = "%d = constant 7 : 8xKIND; %q = divide %x, %d; %m = multiply %q, %d; %r = subtract %x, %m"
REMAINDERS = {
    kind: [
        remainder(text.replace("KIND", kind), kind)
        for text in ("%d = constant 7 : 8xKIND; %r = remainder %x, %d", WHAT_IS_LEFT)
    ]
    for kind in ("i32", "ui32")
}


def uniform(body, by=9):
    """Floats of the upper bits of integers."""
    return module(f"%x: {MANY}xi32", f"%m = shift_right_logical %x, {by}; {body}")


def as_sum(one):
    """The same as sums of a whole number, scaled, and a power of two."""
    return f"%f = convert %m -> {MANY}xf32; %s = multiply %f, 1.1920929E-7; %r = add %s, {one}"


BITS = f"%b = or %m, 1065353216; %r = bitcast_convert %b -> {MANY}xf32"


def root(of_zero="%q", kind=f"{MANY}xf32"):
    """`rsqrt` that is not computed of zeros."""
    return unary(
        f"""%zero = constant 0.0 : {kind}; %one = constant 1.0 : {kind}; %is = compare EQ, %x, %zero
        %n = select %is, %one, %x; %s = rsqrt %n; %q = divide %one, %x; %m = abs %q
        %r = select %is, {of_zero}, %s""",
        kind,
    )


def logarithm(of_zero="-inf"):
    """`log` that is not computed of zeros."""
    kind = f"{MANY}xf32"
    bits = {"-inf": "0xFF800000", "inf": "0x7F800000"}[of_zero]
    return unary(
        f"""%zero = constant 0.0 : {kind}; %one = constant 1.0 : {kind}; %is = compare EQ, %x, %zero
        %n = select %is, %one, %x; %s = log %n; %q = constant {bits} : {kind}; %r = select %is, %q, %s"""
    )


def finite_root(other="%x"):
    """`cbrt` of finite numbers, and something else of others."""
    body = "%is = is_finite %x; %s = cbrt %x; %n = negate %x; %r = select %is, %s, "
    return unary(body + other)


def divided_root(over="1.0"):
    """A number over a root."""
    return unary(f"%s = sqrt %x; %c = constant {over} : {MANY}xf32; %r = divide %c, %s")


EIGHT = ("f8E4M3FN",)


def by_algorithm(kind="bf16", types="bf16", sums="f32", steps=1, *, is_imprecise="false"):
    """A product by an algorithm that takes its operands as of one type, and sums in another one."""
    told = f"algorithm = <lhs_precision_type = {types}, rhs_precision_type = {types}, accumulation_type = {sums}, "
    told += f"lhs_component_count = 1, rhs_component_count = 1, num_primitive_operations = {steps}, "
    return product_of(kind, f"{told}allow_imprecise_accumulation = {is_imprecise}>")


def product_of(kind, told="precision = [HIGHEST, HIGHEST]"):
    """A product of two batches of matrices, with how it is computed."""
    dims = "batching_dims = [0] x [0], contracting_dims = [2] x [1]"
    return module(f"%x: 2x8x64x{kind}, %y: 2x64x8x{kind}", f"%r = dot_general %x, %y, {dims}, {told} -> 2x8x8xf32")


def beside_its(op, *, wide=False, kind="f16"):
    """What rows of half floats have beside their extreme, or another fold; wide: it is rounded at the end alone."""
    given, start = ("f32", "%w = convert %x -> 64x8xf32") if wide else (kind, f"%w = reshape %x -> 64x8x{kind}")
    body = f"""{start}; %z = constant 0.5 : {given}
    %r = reduce(%w init: %z) applies stablehlo.{op} across dimensions = [1]
    %s = broadcast_in_dim %r, dims = [0] -> 64x8x{given}; %d = subtract %w, %s; %e = convert %d -> 64x8x{kind}"""
    return module(f"%x: 64x8x{kind}", body, "%e")


EQUAL = {
    "floats by their bits and by a sum": (uniform(BITS), uniform(as_sum(1.0))),
    "a logarithm of what is not 0": (unary("%r = log %x"), logarithm()),
    "a root that is divided by": (unary("%r = rsqrt %x"), divided_root()),
    "a root that is divided for": (unary("%r = rsqrt %x"), root()),
    "a cube root of finite numbers": (unary("%r = cbrt %x"), finite_root()),
    "one of f16": (unary("%r = rsqrt %x", f"{MANY}xf16"), root(kind=f"{MANY}xf16")),
    "a remainder as what its quotient leaves": REMAINDERS["i32"],
    "an unsigned one": REMAINDERS["ui32"],
    "one by a number that is not known": [
        remainder("%r = remainder %x, %y"),
        remainder("%q = divide %x, %y; %m = multiply %q, %y; %r = subtract %x, %m"),
    ],
    "a product of integers that are 0 or 1": one_hot(1, 100),
    "a product of 0 and 1 that is added to zeros": of_chosen("0.0"),
    "a scatter as a product of 0 and 1": from_zero(),
    "tiles that cover it": (TANH, tiled(64, 16384, 16384)),
    "tiles that overlap": (TANH, tiled(1365, 768, 1024)),
    "an odd function": (TANH, unary("%n = negate %x; %t = tanh %n; %r = negate %t")),
    "a division by a power of two": (
        unary(number("2.0") + "%r = divide %x, %c"),
        unary(number("0.5") + "%r = multiply %x, %c"),
    ),
    "operands of a combiner exchanged": (scatter("add"), scatter(TURNED)),
    "a sum of a transpose": (total("%x", 1, "1024x512xf32"), total("%t", 0, "1024x512xf32", TURN)),
    "a sum over two dims that are one": (BOTH_DIMS, joined()),
    "one over two dims that are cut otherwise": (BOTH_DIMS, joined(dims="[1, 2]", to="64x8x64")),
    "a convolution of a transpose": (
        convolved(),
        convolved("[b, 0, 1, f]x[o, i, 0, 1]->[b, f, 0, 1]", before=LAST, given="%t"),
    ),
    "a convolution of a pad": (convolved(), convolved(before=PADDED, pad="[0, 0], [0, 0]", given="%t")),
    "a scatter as a sum": (scatter("add"), summed()),
    "a reverse of a reverse": (KEPT, unary("%t = reverse %x, dims = [0]; %r = reverse %t, dims = [0]")),
    "a maximum of updates with NaN among them": (scatter("maximum", size=64), masked_maximum()),
    "windows that are added one by one": (scatter("add"), one_by_one()),
    "fillers among halves": (HALVES, masked_halves()),
    "rows of heads in one matrix": (ROWS, flat_rows()),
    "a least number that begins with 7": of_sevens("minimum"),
    "a test for infinities": infinities(),
    "a running sum": (windows(), running_sum(1, 2, 4, 8, 16)),
    "a long one": (windows(40), padded_sum()),
    "an algorithm of the operands' own type": (by_algorithm(), product_of("bf16")),
    "one that takes bf16 as f32": (by_algorithm(types="f32"), product_of("bf16")),
    "one of 8 bits": (by_algorithm(*EIGHT * 2), product_of(*EIGHT)),
    "an extreme of f16 in f32": (beside_its("maximum"), beside_its("maximum", wide=True)),
    "one of bf16": (beside_its("minimum", kind="bf16"), beside_its("minimum", wide=True, kind="bf16")),
    "a square": (unary(f"%r = chlo.square %x : {SQUARE} -> {SQUARE}"), unary("%r = multiply %x, %x")),
}

DIFFERENT = {
    "a sum of f16 that is not rounded": (beside_its("add"), beside_its("add", wide=True)),
    "an algorithm that rounds what is multiplied": (by_algorithm("f32"), product_of("f32")),
    "one of several steps": (by_algorithm(steps=3), product_of("bf16")),
    "one that sums in another type": (by_algorithm(types="f64", sums="f64"), product_of("bf16")),
    "one that may sum in fewer digits": (by_algorithm(*EIGHT * 2, is_imprecise="true"), product_of(*EIGHT)),
    "one at a lower precision": (by_algorithm(), product_of("bf16", "precision = [HIGH, HIGHEST]")),
    "a sum of another exponent": (uniform(BITS), uniform(as_sum(2.0))),
    "a sum of a bit too many": (uniform(BITS, by=8), uniform(as_sum(1.0), by=8)),
    "a logarithm of 0 that is above": (unary("%r = log %x"), logarithm("inf")),
    "a cube root of infinities of the other sign": (unary("%r = cbrt %x"), finite_root("%n")),
    "a root that another number is divided by": (unary("%r = rsqrt %x"), divided_root("2.0")),
    "a root of zeros without a sign": (unary("%r = rsqrt %x"), root(of_zero="%m")),
    "one of f16 that is no infinity": (
        unary("%r = rsqrt %x", f"{MANY}xf16"),
        root(of_zero="%zero", kind=f"{MANY}xf16"),
    ),
    "a remainder of another quotient": (
        REMAINDERS["i32"][0],
        remainder(WHAT_IS_LEFT.replace("KIND", "i32").replace("multiply %q, %d", "multiply %q, %x")),
    ),
    "a remainder beside its quotient": (
        remainder("%q = divide %x, %y; %m = remainder %x, %y; %r = add %q, %m"),
        remainder("%q = divide %x, %y; %r = add %q, %x"),
    ),
    "a product of integers that are 0 or 2": one_hot(2, 12),
    "a product of 0 and 1 that is added to zeros with a sign": of_chosen("-0.0"),
    "a test for one infinity": infinities("is_pos_inf"),
    "a product of 0 and 1 into zeros that have a sign": from_zero(zero="-0.0"),
    "a product of 0 and 1 that is not exact": from_zero((", precision = [HIGHEST, HIGHEST]", "")),
    "a product of 0 and 1 that loses one infinity": from_zero(("compare LT,", "compare GT,")),
    "a product of 0 and 1 that loses both": from_zero(("-8388608", "2139095040")),
    "a tile is missing": (TANH, tiled(63, 16384, 16384)),
    "tiles with gaps": (TANH, tiled(1365, 768, 512)),
    "an even function taken for an odd one": (
        unary("%r = cosine %x"),
        unary("%n = negate %x; %t = cosine %n; %r = negate %t"),
    ),
    "a division by three": (
        unary(number("3.0") + "%r = divide %x, %c"),
        unary(number("0.333333343") + "%r = multiply %x, %c"),
    ),
    "clamped indices": (scatter("add"), scatter("add", "%low")),
    "the last writer and a sum": (scatter(ASSIGN), scatter("add")),
    "zeros among what is summed": (scatter("add"), summed("0.0")),
    "a summand less": (scatter("add"), summed(count=7)),
    "a sum in order and one in any order": (IN_ORDER, total("%x", 1, "1024x512xf32")),
    "a sum over two dims that are one, column by column": (
        BOTH_DIMS,
        joined("%t = transpose %x, dims = [0, 2, 1] -> 64x16x32xf32"),
    ),
    "one over two dims in the other order": (
        BOTH_DIMS,
        joined("%t = transpose %x, dims = [0, 2, 1] -> 64x16x32xf32", "[1, 2]", "64x16x32"),
    ),
    "one over as many elements of other rows": (BOTH_DIMS, joined(dims="[0]", to="512x64")),
    "a convolution by a kernel that is turned": (convolved(), convolved("[b, f, 0, 1]x[o, i, 1, 0]->[b, f, 0, 1]")),
    "a convolution that is padded on one side": (convolved(), convolved(pad="[2, 0], [0, 0]")),
    "a convolution of a pad by a number": (
        convolved(),
        convolved(
            before=PADDED.replace("%x, %z", "%x, %o").replace("%t", "%o = constant 1.0 : f32; %t", 1),
            pad="[0, 0], [0, 0]",
            given="%t",
        ),
    ),
    "a sum along the other dim": (total("%x", 1, "1024x1024xf32"), total("%x", 0, "1024x1024xf32")),
    "a subnormal number more": (TANH, unary(number("1.0e-38") + "%t = tanh %x; %r = add %t, %c")),
    "zero with its sign": (KEPT, unary(number("0.0") + "%r = add %x, %c")),
    "a maximum that loses NaN": (scatter("maximum", size=64), masked_maximum(nan="%never")),
    "a maximum of none that is written": (scatter("maximum", size=64), masked_maximum(any_="%nan")),
    "a window that reaches out and is added": (scatter("add"), one_by_one(guarded=(0, 1, 2, 3, 5, 6, 7))),
    "windows that are added in another order": (scatter("add"), one_by_one(order=(0, 1, 3, 2, 4, 5, 6, 7))),
    "fillers among halves that lose a sign": (HALVES, masked_halves("0.0")),
    "rows of heads that overlap": (ROWS, flat_rows(63)),
    "a sum that begins with 7, of which XLA leaves out what lies outside": of_sevens("add"),
    "a running sum without its last step": (windows(), running_sum(1, 2, 4, 8)),
    "a long one in which a step is too short": (windows(40), padded_sum("[8:48]", "[7:47]")),
}


@pytest.mark.parametrize("name", EQUAL)
def test_what_is_equal_is_derived(name):
    """Whatever the size."""
    found = derive(*EQUAL[name], seconds=30)  # where other processes run, too
    assert found, found.reason


@pytest.mark.parametrize("name", DIFFERENT)
def test_what_differs_is_not(name):
    """It stays open, with a reason."""
    found = derive(*DIFFERENT[name], seconds=0.5)
    assert found.status == "open"
    assert found.reason


@pytest.mark.parametrize(
    ("others", "results", "reason"),
    [
        ("%x: 4xi64, %y: 4xi64", "%r", "arguments of different types"),
        ("%x: 4xi32, %y: 2x2xi32", "%r", "arguments of different types"),
        ("%x: 4xi32, %y: 5xi32", "%r", "arguments of different types"),
        ("%x: 4xi32", "%r", "a different number of arguments or results"),
        ("%x: 4xi32, %y: 4xi32", "%r, %r", "a different number of arguments or results"),
    ],
)
def test_modules_of_two_signatures_are_not_derived(others, results, reason):
    body = "%c = constant 5.0 : 4xf32; %r = tanh %c"
    one, other = module("%x: 4xi32, %y: 4xi32", body), module(others, body, results)
    assert all(derive(text, text) for text in (one, other))
    assert derive(one, other).reason == reason == derive(other, one).reason


def test_a_choice_of_0_and_2_is_none_of_0_and_1():
    """Alone, so that the cases above that the default run takes stay the same."""
    assert derive(*of_twos()).status == "open"


@pytest.mark.parametrize(
    ("argument", "spread", "over", "is_derived"),
    [
        ("%n", "add %e, %o", "%o", True),
        ("%x", "add %e, %o", "%o", False),
        ("%n", "subtract %e, %o", "%o", False),
        ("%n", "add %e, %o", "%e", False),
    ],
    ids=["as it is defined", "of the other sign", "a difference", "its complement"],
)
def test_a_logistic_is_what_it_is_defined_as(argument, spread, over, is_derived):
    """1 / (exp(-x) + 1), and nothing near it."""
    told = f"%o = constant 1.0 : {MANY}xf32; %n = negate %x; %e = exponential {argument}; %s = {spread}; "
    assert bool(derive(unary("%r = logistic %x"), unary(f"{told}%r = divide {over}, %s"))) == is_derived


def in_features(before):
    """A convolution of which each half of the features reads a half of the features given."""
    line = (
        "%r = convolution(%h, %k) dim_numbers = [b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1], window = {} "
        "{batch_group_count = 1 : i64, feature_group_count = 2 : i64}"
    )
    return module("%x: 4x3x9x9xf32, %k: 4x3x3x3xf32", f"{before}; {line} -> 2x4x7x7xf32")


BESIDE = (
    "%s = reshape %x -> 2x2x3x9x9xf32; %t = transpose %s, dims = [{}] -> {}x9x9xf32; %h = reshape %t -> 2x6x9x9xf32"
)


def test_a_convolution_in_groups_of_its_batch_reads_a_part_of_it():
    """Each half of its features reads a half of the batch: in groups of features so far as these are that half."""
    first_half = in_batches(1, "%h", "%h = slice %x [0:2, 0:3, 0:9, 0:9]")
    assert not derive(in_batches(2), first_half, seconds=0.5)
    assert derive(in_batches(2), in_features(BESIDE.format("1, 0, 2, 3, 4", "2x2x3")))
    assert not derive(in_batches(2), in_features(BESIDE.format("0, 1, 2, 3, 4", "2x2x3")), seconds=0.5)
    assert not derive(in_batches(2), in_features(BESIDE.format("1, 2, 0, 3, 4", "2x3x2")), seconds=0.5)


def test_terms_that_are_too_large_are_not_derived(monkeypatch):
    """Before z3 is asked the terms are walked through, which takes as long as they are large."""
    monkeypatch.setattr(parts, "MOST_PARTS", 2)
    assert derive(scatter(ASSIGN), scatter("%c, %d: return %c")).reason == "a term of more than 2 parts"


def test_what_was_not_found_out_in_time_is_asked_again_where_there_is_more(monkeypatch):
    """A short question about a result comes before a long one; it is not asked twice for as long."""
    asked = []
    monkeypatch.setattr(
        prover.Prover, "_asked", lambda self, goal, seconds: asked.append(seconds) or (seconds > 1 or None)
    )
    program = Program(mlir.parse_module(TANH))
    asking = prover.Prover((program, program), _law, seconds=60, oob="xla", chain=1)
    pairs = [(terms.number(1), z3.BitVec("x", terms.POSITION))]
    assert [asking.same(pairs, seconds) for seconds in (0.5, 0.5, 5, 5, 0.5)] == [None, None, True, True, True]
    assert asked == [0.5, 5]


def test_a_maximum_of_updates_is_derived_where_sums_may_be_in_any_order():
    """Whether there are updates at all is asked there, too."""
    found = derive(*EQUAL["a maximum of updates with NaN among them"], reassociated=True)
    assert found, found.reason
    for name in ("a maximum that loses NaN", "a maximum of none that is written"):
        assert not derive(*DIFFERENT[name], reassociated=True, seconds=0.5)


def test_tests_that_nobody_had_time_to_compare_stay_two(monkeypatch):
    """What is not found out is not taken for equal."""
    monkeypatch.setattr(prover, "SOON_SECONDS", 0.0)
    assert not derive(*DIFFERENT["fillers among halves that lose a sign"])


@pytest.mark.parametrize(("least", "is_derived"), [(0, True), (-1, False)])
def test_integers_of_an_argument_lie_where_it_is_said(least, is_derived):
    """Indices that are not negative need no clamp; each of eight may be the one that is."""
    assert bool(derive(*DIFFERENT["clamped indices"], within={1: (least, 50)})) == is_derived


@pytest.mark.parametrize(("is_pulled", "count"), [(False, 1), (True, 3)])
def test_attempts_end_with_one_that_had_no_time_to_ask(monkeypatch, is_pulled, count):
    """Whoever has no time to find what the outputs are has none for another order either; a question may be easier."""
    tried = []

    def hurried(own):
        own.is_pulled = is_pulled
        tried.append(own)
        return "no time is left"

    monkeypatch.setattr(sys.modules[derive.__module__], "_open", hurried)
    pair = [module("%a: 4xi32", body) for body in ("%r = negate %a", "%r = abs %a")]
    assert derive(*pair).reason == "no time is left"
    assert len(tried) == count


def test_what_has_many_steps_looks_at_the_time_between_them(monkeypatch):
    """The greatest number of which a test holds may be one of very many positions: a board that is written often."""
    right = folding._candidates
    monkeypatch.setattr(folding, "_candidates", lambda *given: right(*given) * 200_000)
    found = derive(scatter(ASSIGN), scatter("%c, %d: %s = add %d, %d; return %s"), seconds=0.3)
    assert found.reason == "no time is left"
    assert found.seconds < 3.0


def test_the_clock_ends_what_takes_far_longer_than_is_counted(monkeypatch):
    """It is read once for many elements."""
    program = Program(mlir.parse_module(unary("%r = tanh %x")))
    asking = prover.Prover((program, program), _law, seconds=60, oob="xla", chain=1)
    monkeypatch.setattr(prover, "thread_time", lambda: inf)
    for _ in range(prover.CLOCK_EVERY - 1):
        asking.check_time()
    with pytest.raises(prover.Beyond, match="no time is left"):
        asking.check_time()


def zeros_but_at(places, values=None):
    """A constant of 300 zeros but at some places, and the same written element by element."""
    numbers = [0] * 300
    for place, value in zip(places, values or range(1, len(places) + 1), strict=True):
        numbers[place] = value
    first = f"%r = constant {numbers} : 300xi32"
    second = ["%v0 = constant 0 : 300xi32"]
    for k, place in enumerate(places):
        second += [f"%i{k} = constant {place} : i32", f"%u{k} = constant {k + 1} : 1xi32"]
        second.append(f"%v{k + 1} = dynamic_update_slice %v{k}, %u{k}, %i{k}")
    bodies = first, f"{'; '.join(second)}; %r = add %v{len(places)}, %x"
    return module("%x: 300xi32", f"{bodies[0].replace('%r', '%c')}; %r = add %c, %x"), module("%x: 300xi32", bodies[1])


@pytest.mark.parametrize("count", [1, 3, 20])
@pytest.mark.parametrize("seed", range(3))
def test_a_constant_that_is_one_number_almost_everywhere_is_what_was_written(count, seed):
    """Another number at one place, or the same one a place further, is another constant."""
    rng = np.random.default_rng(seed)
    places = rng.choice(299, count, replace=False).tolist()
    assert derive(*zeros_but_at(places))
    wrong = list(range(1, count + 1))
    wrong[rng.integers(count)] += 1
    assert not derive(*zeros_but_at(places, wrong), seconds=0.5)
    text, written = zeros_but_at(places)
    moved = [place + (k == count - 1) for k, place in enumerate(places)]
    assert len(set(moved)) < count or not derive(zeros_but_at(moved)[0], written)
    assert derive(text, text.replace("add %c, %x", "add %x, %c"))
