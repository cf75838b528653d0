"""What is derived, and what is not: rewritings that are equal, and near misses that differ in one place."""

import pytest

pytest.importorskip("z3")

import hlo_lower as hl
from hlo_lower.ir import mlir
from hlo_lower.verify.pull import derive, prover, terms
from hlo_lower.verify.pull.derive import _law
from hlo_lower.verify.pull.solver import z3
from hlo_lower.verify.read.program import Program

TILE = """func.func public @main(%x: tensor<SIZExf32>) -> tensor<SIZExf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %count = stablehlo.constant dense<COUNT> : tensor<i32>
  %step = stablehlo.constant dense<STEP> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %w:2 = stablehlo.while(%k = %zero, %v = %x) : tensor<i32>, tensor<SIZExf32>
    cond {
      %c = stablehlo.compare LT, %k, %count, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %c : tensor<i1>
    } do {
      %next = stablehlo.add %k, %one : tensor<i32>
      %at = stablehlo.multiply %k, %step : tensor<i32>
      %part = stablehlo.dynamic_slice %x, %at, sizes = [WIDTH] : (tensor<SIZExf32>, tensor<i32>) -> tensor<WIDTHxf32>
      %new = stablehlo.tanh %part : tensor<WIDTHxf32>
      %t = stablehlo.dynamic_update_slice %v, %new, %at : (tensor<SIZExf32>, tensor<WIDTHxf32>, tensor<i32>) -> tensor<SIZExf32>
      stablehlo.return %next, %t : tensor<i32>, tensor<SIZExf32>
    }
  return %w#1 : tensor<SIZExf32>
}"""  # noqa: E501


def tiled(count, step, width, size=1 << 20):
    """tanh of a million numbers, tile by tile."""
    text = TILE
    for word, number in (("SIZE", size), ("COUNT", count), ("STEP", step), ("WIDTH", width)):
        text = text.replace(word, str(number))
    return text


def unary(*lines, shape="1048576xf32", result=None):
    """A module of one argument %x whose last line gives %r; T is the type."""
    body = "\n".join(lines).replace("T", f"tensor<{shape}>")
    result = f"tensor<{result or shape}>"
    return f"func.func public @main(%x: tensor<{shape}>) -> {result} {{\n{body}\nreturn %r : {result}\n}}"


NUMBERS = "inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1"
COSINE = unary("%r = stablehlo.cosine %x : T")


def scatter(body, indices="%i"):
    """Eight numbers into a million, at indices of any value."""
    return f"""func.func public @main(
  %x: tensor<1048576xf32>, %i: tensor<8x1xi32>, %u: tensor<8xf32>
) -> tensor<1048576xf32> {{
  %zero = stablehlo.constant dense<0> : tensor<8x1xi32>
  %low = stablehlo.maximum %i, %zero : tensor<8x1xi32>
  %r = "stablehlo.scatter"(%x, {indices}, %u) <{{scatter_dimension_numbers = #stablehlo.scatter<{NUMBERS}>}}> ({{
  ^bb0(%c: tensor<f32>, %d: tensor<f32>):
    {body}
  }}) : (tensor<1048576xf32>, tensor<8x1xi32>, tensor<8xf32>) -> tensor<1048576xf32>
  return %r : tensor<1048576xf32>
}}"""


def summed(filler="-0.0", count=8):
    """`scatter(ADD)` as a sum at each place, of the updates that go there and of fillers."""
    return f"""func.func public @main(
  %x: tensor<1048576xf32>, %i: tensor<8x1xi32>, %u: tensor<8xf32>
) -> tensor<1048576xf32> {{
  %f = stablehlo.constant dense<{filler}> : tensor<f32>
  %j = stablehlo.slice %i [0:{count}, 0:1] : (tensor<8x1xi32>) -> tensor<{count}x1xi32>
  %k = stablehlo.reshape %j : (tensor<{count}x1xi32>) -> tensor<{count}xi32>
  %v = stablehlo.slice %u [0:{count}] : (tensor<8xf32>) -> tensor<{count}xf32>
  %where = stablehlo.broadcast_in_dim %k, dims = [1] : (tensor<{count}xi32>) -> tensor<1048576x{count}xi32>
  %here = stablehlo.iota dim = 0 : tensor<1048576x{count}xi32>
  %is = stablehlo.compare EQ, %where, %here : (tensor<1048576x{count}xi32>, tensor<1048576x{count}xi32>)
    -> tensor<1048576x{count}xi1>
  %all = stablehlo.broadcast_in_dim %v, dims = [1] : (tensor<{count}xf32>) -> tensor<1048576x{count}xf32>
  %none = stablehlo.broadcast_in_dim %f, dims = [] : (tensor<f32>) -> tensor<1048576x{count}xf32>
  %those = stablehlo.select %is, %all, %none : tensor<1048576x{count}xi1>, tensor<1048576x{count}xf32>
  %s = stablehlo.reduce(%those init: %f) applies stablehlo.add across dimensions = [1]
    : (tensor<1048576x{count}xf32>, tensor<f32>) -> tensor<1048576xf32>
  %r = stablehlo.add %x, %s : tensor<1048576xf32>
  return %r : tensor<1048576xf32>
}}"""


IN_ORDER = """func.func public @main(%x: tensor<1024x512xf32>) -> tensor<1024xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %count = stablehlo.constant dense<512> : tensor<i32>
  %none = stablehlo.constant dense<0.0> : tensor<1024xf32>
  %w:2 = stablehlo.while(%k = %zero, %v = %none) : tensor<i32>, tensor<1024xf32>
    cond {
      %c = stablehlo.compare LT, %k, %count, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %c : tensor<i1>
    } do {
      %next = stablehlo.add %k, %one : tensor<i32>
      %part = stablehlo.dynamic_slice %x, %zero, %k, sizes = [1024, 1]
        : (tensor<1024x512xf32>, tensor<i32>, tensor<i32>) -> tensor<1024x1xf32>
      %row = stablehlo.reshape %part : (tensor<1024x1xf32>) -> tensor<1024xf32>
      %t = stablehlo.add %v, %row : tensor<1024xf32>
      stablehlo.return %next, %t : tensor<i32>, tensor<1024xf32>
    }
  return %w#1 : tensor<1024xf32>
}"""
"""The sum of each row, in order."""

ASSIGN, ADD = (
    "stablehlo.return %d : tensor<f32>",
    "%s = stablehlo.add %c, %d : tensor<f32>\nstablehlo.return %s : tensor<f32>",
)
MAXIMUM = ADD.replace("add", "maximum")
TURNED = "%s = stablehlo.add %d, %c : tensor<f32>\nstablehlo.return %s : tensor<f32>"
TANH = unary("%r = stablehlo.tanh %x : T")
TWO, THREE = ("%c = stablehlo.constant dense<2.0> : T", "%c = stablehlo.constant dense<3.0> : T")
HALF_, THIRD = ("%c = stablehlo.constant dense<0.5> : T", "%c = stablehlo.constant dense<0.333333343> : T")
SUBNORMAL = "%c = stablehlo.constant dense<1.0e-38> : T"
DIVIDED, MULTIPLIED = "%r = stablehlo.divide %x, %c : T", "%r = stablehlo.multiply %x, %c : T"
SUM = "%z = stablehlo.constant dense<0.0> : tensor<f32>\n%r = stablehlo.reduce({} init: %z) applies stablehlo.add across dimensions = [{}] : (tensor<{}xf32>, tensor<f32>) -> tensor<1024xf32>"  # noqa: E501
TURN = "%t = stablehlo.transpose %x, dims = [1, 0] : (tensor<1024x512xf32>) -> tensor<512x1024xf32>"


def sized(body):
    """`scatter` into 64 numbers."""
    return scatter(body).replace("1048576", "64")


def masked_maximum(nan="%nan", any_="%any"):
    """A scatter by maximum as a maximum over the updates that go to a place, of which NaN are looked for apart."""
    t, b = "tensor<64x8xf32>", "tensor<64x8xi1>"
    return f"""func.func public @main(%x: tensor<64xf32>, %i: tensor<8x1xi32>, %u: tensor<8xf32>) -> tensor<64xf32> {{
  %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %quiet = stablehlo.constant dense<0x7FC00000> : tensor<64xf32>
  %no = stablehlo.constant dense<false> : tensor<i1>
  %never = stablehlo.constant dense<false> : tensor<64xi1>
  %i1 = stablehlo.reshape %i : (tensor<8x1xi32>) -> tensor<8xi32>
  %where = stablehlo.broadcast_in_dim %i1, dims = [1] : (tensor<8xi32>) -> tensor<64x8xi32>
  %here = stablehlo.iota dim = 0 : tensor<64x8xi32>
  %hit = stablehlo.compare EQ, %where, %here : (tensor<64x8xi32>, tensor<64x8xi32>) -> {b}
  %v = stablehlo.broadcast_in_dim %u, dims = [1] : (tensor<8xf32>) -> {t}
  %is = stablehlo.compare NE, %v, %v : ({t}, {t}) -> {b}
  %isnt = stablehlo.not %is : {b}
  %bad = stablehlo.and %hit, %is : {b}
  %good = stablehlo.and %hit, %isnt : {b}
  %fill = stablehlo.broadcast_in_dim %low, dims = [] : (tensor<f32>) -> {t}
  %w = stablehlo.select %good, %v, %fill : {b}, {t}
  %most = stablehlo.reduce(%w init: %low) applies stablehlo.maximum across dimensions = [1] : ({t}, tensor<f32>) -> tensor<64xf32>
  %nan = stablehlo.reduce(%bad init: %no) applies stablehlo.or across dimensions = [1] : ({b}, tensor<i1>) -> tensor<64xi1>
  %any = stablehlo.reduce(%hit init: %no) applies stablehlo.or across dimensions = [1] : ({b}, tensor<i1>) -> tensor<64xi1>
  %all = stablehlo.select {nan}, %quiet, %most : tensor<64xi1>, tensor<64xf32>
  %more = stablehlo.maximum %x, %all : tensor<64xf32>
  %r = stablehlo.select {any_}, %more, %x : tensor<64xi1>, tensor<64xf32>
  return %r : tensor<64xf32>
}}"""  # noqa: E501


def one_by_one(guarded=range(8), order=range(8)):
    """`scatter(ADD)`, a slice at a time: what reaches out is not written."""
    x, one = "tensor<1048576xf32>", "tensor<1xf32>"
    lines = [
        "%low = stablehlo.constant dense<0> : tensor<i32>",
        "%high = stablehlo.constant dense<1048575> : tensor<i32>",
    ]
    before = "%x"
    for k in order:
        lines += [
            f"%a{k} = stablehlo.slice %i [{k}:{k + 1}, 0:1] : (tensor<8x1xi32>) -> tensor<1x1xi32>",
            f"%i{k} = stablehlo.reshape %a{k} : (tensor<1x1xi32>) -> tensor<i32>",
            f"%u{k} = stablehlo.slice %u [{k}:{k + 1}] : (tensor<8xf32>) -> {one}",
            f"%c{k} = stablehlo.clamp %low, %i{k}, %high : tensor<i32>",
            f"%ok{k} = stablehlo.compare EQ, %i{k}, %c{k} : (tensor<i32>, tensor<i32>) -> tensor<i1>",
            f"%old{k} = stablehlo.dynamic_slice {before}, %c{k}, sizes = [1] : ({x}, tensor<i32>) -> {one}",
            f"%sum{k} = stablehlo.add %old{k}, %u{k} : {one}",
            f"%new{k} = stablehlo.select %ok{k}, %sum{k}, %{'old' if k in guarded else 'sum'}{k} : tensor<i1>, {one}",
            f"%x{k} = stablehlo.dynamic_update_slice {before}, %new{k}, %c{k} : ({x}, {one}, tensor<i32>) -> {x}",
        ]
        before = f"%x{k}"
    body = "\n".join(lines)
    main = f"func.func public @main(%x: {x}, %i: tensor<8x1xi32>, %u: tensor<8xf32>) -> {x}"
    return f"{main} {{\n{body}\nreturn {before} : {x}\n}}"


def masked_halves(filler="-0.0"):
    """A scatter that adds bf16, of which what reaches out goes to row 0 as a filler."""
    t = "tensor<64xbf16>"
    return f"""func.func public @main(%x: {t}, %i: tensor<8x1xi32>, %u: tensor<8xbf16>) -> {t} {{
  %most = stablehlo.constant dense<63> : tensor<8x1xi32>
  %zero = stablehlo.constant dense<0> : tensor<8x1xi32>
  %f = stablehlo.constant dense<{filler}> : tensor<8xbf16>
  %ok = stablehlo.compare LE, %i, %most, UNSIGNED : (tensor<8x1xi32>, tensor<8x1xi32>) -> tensor<8x1xi1>
  %at = stablehlo.select %ok, %i, %zero : tensor<8x1xi1>, tensor<8x1xi32>
  %is = stablehlo.reshape %ok : (tensor<8x1xi1>) -> tensor<8xi1>
  %v = stablehlo.select %is, %u, %f : tensor<8xi1>, tensor<8xbf16>
  %r = "stablehlo.scatter"(%x, %at, %v) <{{scatter_dimension_numbers = #stablehlo.scatter<{NUMBERS}>}}> ({{
  ^bb0(%c: tensor<bf16>, %d: tensor<bf16>):
    {ADD.replace("f32", "bf16")}
  }}) : ({t}, tensor<8x1xi32>, tensor<8xbf16>) -> {t}
  return %r : {t}
}}"""


def flat_rows(size=64):
    """Rows of two heads, written where their indices say, as rows of one matrix."""
    return f"""func.func public @main(
  %x: tensor<2x64xf32>, %i: tensor<8x1xi32>, %u: tensor<2x8xf32>
) -> tensor<2x64xf32> {{
  %flat = stablehlo.reshape %x : (tensor<2x64xf32>) -> tensor<128xf32>
  %low = stablehlo.constant dense<-1> : tensor<8x2xi32>
  %high = stablehlo.constant dense<64> : tensor<8x2xi32>
  %out = stablehlo.constant dense<128> : tensor<8x2xi32>
  %size = stablehlo.constant dense<{size}> : tensor<8x2xi32>
  %j = stablehlo.broadcast_in_dim %i, dims = [0, 1] : (tensor<8x1xi32>) -> tensor<8x2xi32>
  %a = stablehlo.compare GT, %j, %low : (tensor<8x2xi32>, tensor<8x2xi32>) -> tensor<8x2xi1>
  %b = stablehlo.compare LT, %j, %high : (tensor<8x2xi32>, tensor<8x2xi32>) -> tensor<8x2xi1>
  %ok = stablehlo.and %a, %b : tensor<8x2xi1>
  %head = stablehlo.iota dim = 1 : tensor<8x2xi32>
  %begin = stablehlo.multiply %head, %size : tensor<8x2xi32>
  %row = stablehlo.add %j, %begin : tensor<8x2xi32>
  %at = stablehlo.select %ok, %row, %out : tensor<8x2xi1>, tensor<8x2xi32>
  %at1 = stablehlo.reshape %at : (tensor<8x2xi32>) -> tensor<16x1xi32>
  %t = stablehlo.transpose %u, dims = [1, 0] : (tensor<2x8xf32>) -> tensor<8x2xf32>
  %v = stablehlo.reshape %t : (tensor<8x2xf32>) -> tensor<16xf32>
  %r = "stablehlo.scatter"(%flat, %at1, %v) <{{scatter_dimension_numbers = #stablehlo.scatter<{NUMBERS}>}}> ({{
  ^bb0(%c: tensor<f32>, %d: tensor<f32>):
    stablehlo.return %d : tensor<f32>
  }}) : (tensor<128xf32>, tensor<16x1xi32>, tensor<16xf32>) -> tensor<128xf32>
  %back = stablehlo.reshape %r : (tensor<128xf32>) -> tensor<2x64xf32>
  return %back : tensor<2x64xf32>
}}"""


ROWS = """func.func public @main(%x: tensor<2x64xf32>, %i: tensor<8x1xi32>, %u: tensor<2x8xf32>) -> tensor<2x64xf32> {
  %r = "stablehlo.scatter"(%x, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [0],
    inserted_window_dims = [1], scatter_dims_to_operand_dims = [1], index_vector_dim = 1>}> ({
  ^bb0(%c: tensor<f32>, %d: tensor<f32>):
    stablehlo.return %d : tensor<f32>
  }) : (tensor<2x64xf32>, tensor<8x1xi32>, tensor<2x8xf32>) -> tensor<2x64xf32>
  return %r : tensor<2x64xf32>
}"""


def running_sum(*steps):
    """The sums of the first 1, 2, ..., 24 numbers, in steps that add what stands so far before."""
    lines = ["%zero = stablehlo.constant dense<0> : tensor<i32>"]
    before = "%x"
    for k in steps:
        lines += [
            f"%s{k} = stablehlo.slice {before} [0:{24 - k}] : (T) -> tensor<{24 - k}xi32>",
            f"%p{k} = stablehlo.pad %s{k}, %zero, low = [{k}], high = [0], interior = [0]"
            f" : (tensor<{24 - k}xi32>, tensor<i32>) -> T",
            f"%x{k} = stablehlo.add {before}, %p{k} : T",
        ]
        before = f"%x{k}"
    lines[-1] = lines[-1].replace(before, "%r", 1)
    return unary(*lines, shape="24xi32")


FULL_WINDOW = """%r = "stablehlo.reduce_window"(%all, %seven) <{window_dimensions = array<i64: 24>}> ({
  ^bb0(%c: tensor<i32>, %d: tensor<i32>):
    %e = stablehlo.BODY %c, %d : tensor<i32>
    stablehlo.return %e : tensor<i32>
  }) : (tensor<47xi32>, tensor<i32>) -> T"""
SEVEN = "%seven = stablehlo.constant dense<7> : tensor<i32>"
AROUND = "%all = stablehlo.pad %x, %seven, low = [23], high = [0], interior = [0] : (T, tensor<i32>) -> tensor<47xi32>"


def of_sevens(body):
    """Windows that reach out, begun with 7: told so, and over what was padded with 7 before."""
    reaching = FULL_WINDOW.replace("%all", "%x").replace("47xi32", "24xi32")
    reaching = reaching.replace("<i64: 24>}", "<i64: 24>, padding = dense<[[23, 0]]> : tensor<1x2xi64>}")
    pairs = (SEVEN, reaching), (SEVEN, AROUND, FULL_WINDOW)
    return tuple(unary(*lines, shape="24xi32").replace("BODY", body) for lines in pairs)


WINDOWS = unary(
    "%zero = stablehlo.constant dense<0> : tensor<i32>",
    """%r = "stablehlo.reduce_window"(%x, %zero) <{
    window_dimensions = array<i64: 24>, padding = dense<[[23, 0]]> : tensor<1x2xi64>}> ({
  ^bb0(%c: tensor<i32>, %d: tensor<i32>):
    %e = stablehlo.add %c, %d : tensor<i32>
    stablehlo.return %e : tensor<i32>
  }) : (T, tensor<i32>) -> T""",
    shape="24xi32",
)


IS_INF = unary("BODY", result="1048576xi1")
TOLD = "%r = chlo.is_inf %x : tensor<1048576xf32> -> tensor<1048576xi1>"
MAGNITUDE = """%c = stablehlo.constant dense<0x7F800000> : tensor<1048576xf32>
%m = stablehlo.abs %x : tensor<1048576xf32>
%r = stablehlo.compare EQ, %m, %c : (tensor<1048576xf32>, tensor<1048576xf32>) -> tensor<1048576xi1>"""


def from_zero(*changes, body=ADD, zero="0.0"):
    """`sized`, into zeros, and its form as a product of 0 and 1; of this one some words are changed."""
    zeros = f"%o = stablehlo.constant dense<{zero}> : tensor<64xf32>\n  %r ="
    given = sized(body).replace("%r =", zeros, 1).replace('scatter"(%x', 'scatter"(%o')
    product = hl.lower(given, target="litert", prefer="one_hot_dot").text
    for old, new in changes:
        assert old in product, old
        product = product.replace(old, new)
    return given, product


CHOSEN = """func.func public @main(%i: tensor<8x1xi32>, %p: tensor<8xi1>) -> tensor<64xf32> {
  %o = stablehlo.constant dense<BASE> : tensor<64xf32>
  %one = stablehlo.constant dense<1.0> : tensor<8xf32>
  %none = stablehlo.constant dense<-0.0> : tensor<8xf32>
  %u = stablehlo.select %p, %one, %none : tensor<8xi1>, tensor<8xf32>
  BODY
  return %r : tensor<64xf32>
}"""
SCATTERED = sized(ADD)[sized(ADD).index("%r =") : sized(ADD).index("return %r")].replace("%x", "%o")
PRODUCT = """%j = stablehlo.reshape %i : (tensor<8x1xi32>) -> tensor<8xi32>
  %at = stablehlo.broadcast_in_dim %j, dims = [1] : (tensor<8xi32>) -> tensor<64x8xi32>
  %here = stablehlo.iota dim = 0 : tensor<64x8xi32>
  %is = stablehlo.compare EQ, %at, %here : (tensor<64x8xi32>, tensor<64x8xi32>) -> tensor<64x8xi1>
  %hot = stablehlo.convert %is : (tensor<64x8xi1>) -> tensor<64x8xf32>
  %s = stablehlo.dot_general %hot, %u, contracting_dims = [1] x [0], precision = [HIGHEST, HIGHEST]
    : (tensor<64x8xf32>, tensor<8xf32>) -> tensor<64xf32>
  %r = stablehlo.add %o, %s : tensor<64xf32>"""


def of_chosen(base):
    """Ones and zeros with a sign, added to a number at each place: as a scatter, and as a product of 0 and 1."""
    return [CHOSEN.replace("BASE", base).replace("BODY", body) for body in (SCATTERED, PRODUCT)]


EQUAL = {
    "a product of 0 and 1 that is added to zeros": of_chosen("0.0"),
    "a scatter as a product of 0 and 1": from_zero(),
    "tiles that cover it": (TANH, tiled(64, 16384, 16384)),
    "tiles that overlap": (TANH, tiled(1365, 768, 1024)),
    "an odd function": (
        TANH,
        unary("%n = stablehlo.negate %x : T", "%t = stablehlo.tanh %n : T", "%r = stablehlo.negate %t : T"),
    ),
    "a division by a power of two": (unary(TWO, DIVIDED), unary(HALF_, MULTIPLIED)),
    "operands of a combiner exchanged": (scatter(ADD), scatter(TURNED)),
    "a sum of a transpose": (
        unary(SUM.format("%x", 1, "1024x512"), shape="1024x512xf32", result="1024xf32"),
        unary(TURN, SUM.format("%t", 0, "512x1024"), shape="1024x512xf32", result="1024xf32"),
    ),
    "a scatter as a sum": (scatter(ADD), summed()),
    "a reverse of a reverse": (
        unary("%r = stablehlo.optimization_barrier %x : T"),
        unary("%t = stablehlo.reverse %x, dims = [0] : T", "%r = stablehlo.reverse %t, dims = [0] : T"),
    ),
    "a maximum of updates with NaN among them": (sized(MAXIMUM), masked_maximum()),
    "windows that are added one by one": (scatter(ADD), one_by_one()),
    "fillers among halves": (sized(ADD).replace("f32", "bf16"), masked_halves()),
    "rows of heads in one matrix": (ROWS, flat_rows()),
    "a least number that begins with 7": of_sevens("minimum"),
    "a test for infinities": (IS_INF.replace("BODY", TOLD), IS_INF.replace("BODY", MAGNITUDE)),
    "a running sum": (WINDOWS, running_sum(1, 2, 4, 8, 16)),
    "a square": (unary("%r = chlo.square %x : T -> T"), unary("%r = stablehlo.multiply %x, %x : T")),
}  # fmt: skip

DIFFERENT = {
    "a product of 0 and 1 that is added to zeros with a sign": of_chosen("-0.0"),
    "a test for one infinity": (
        IS_INF.replace("BODY", TOLD).replace("is_inf", "is_pos_inf"),
        IS_INF.replace("BODY", MAGNITUDE),
    ),
    "a product of 0 and 1 into zeros that have a sign": from_zero(zero="-0.0"),
    "a product of 0 and 1 that is not exact": from_zero((", precision = [HIGHEST, HIGHEST]", "")),
    "a product of 0 and 1 that loses one infinity": from_zero(("compare LT,", "compare GT,")),
    "a product of 0 and 1 that loses both": from_zero(("-8388608", "2139095040")),
    "a tile is missing": (TANH, tiled(63, 16384, 16384)),
    "tiles with gaps": (TANH, tiled(1365, 768, 512)),
    "an even function taken for an odd one": (
        COSINE,
        unary("%n = stablehlo.negate %x : T", "%t = stablehlo.cosine %n : T", "%r = stablehlo.negate %t : T"),
    ),
    "a division by three": (unary(THREE, DIVIDED), unary(THIRD, MULTIPLIED)),
    "clamped indices": (scatter(ADD), scatter(ADD, "%low")),
    "the last writer and a sum": (scatter(ASSIGN), scatter(ADD)),
    "zeros among what is summed": (scatter(ADD), summed("0.0")),
    "a summand less": (scatter(ADD), summed(count=7)),
    "a sum in order and one in any order": (
        IN_ORDER,
        unary(SUM.format("%x", 1, "1024x512"), shape="1024x512xf32", result="1024xf32"),
    ),
    "a sum along the other dim": (
        unary(SUM.format("%x", 1, "1024x1024"), shape="1024x1024xf32", result="1024xf32"),
        unary(SUM.format("%x", 0, "1024x1024"), shape="1024x1024xf32", result="1024xf32"),
    ),
    "a subnormal number more": (
        TANH,
        unary(SUBNORMAL, "%t = stablehlo.tanh %x : T", "%r = stablehlo.add %t, %c : T"),
    ),
    "zero with its sign": (
        unary("%r = stablehlo.optimization_barrier %x : T"),
        unary("%c = stablehlo.constant dense<0.0> : T", "%r = stablehlo.add %x, %c : T"),
    ),
    "a maximum that loses NaN": (sized(MAXIMUM), masked_maximum(nan="%never")),
    "a maximum of none that is written": (sized(MAXIMUM), masked_maximum(any_="%nan")),
    "a window that reaches out and is added": (scatter(ADD), one_by_one(guarded=(0, 1, 2, 3, 5, 6, 7))),
    "windows that are added in another order": (scatter(ADD), one_by_one(order=(0, 1, 3, 2, 4, 5, 6, 7))),
    "fillers among halves that lose a sign": (sized(ADD).replace("f32", "bf16"), masked_halves("0.0")),
    "rows of heads that overlap": (ROWS, flat_rows(63)),
    "a sum that begins with 7, of which XLA leaves out what lies outside": of_sevens("add"),
    "a running sum without its last step": (WINDOWS, running_sum(1, 2, 4, 8)),
}  # fmt: skip


@pytest.mark.few(4)
@pytest.mark.parametrize("name", EQUAL)
def test_what_is_equal_is_derived(name):
    """Whatever the size."""
    found = derive(*EQUAL[name], seconds=30)  # where other processes run, too
    assert found, found.reason


@pytest.mark.few(15)
@pytest.mark.parametrize("name", DIFFERENT)
def test_what_differs_is_not(name):
    """It stays open, with a reason."""
    found = derive(*DIFFERENT[name])
    assert found.status == "open"
    assert found.reason


def test_terms_that_are_too_large_are_not_derived(monkeypatch):
    """Before z3 is asked the terms are walked through, which takes as long as they are large."""
    monkeypatch.setattr(terms, "MOST_PARTS", 2)
    found = derive(scatter("stablehlo.return %d : tensor<f32>"), scatter("stablehlo.return %c : tensor<f32>"))
    assert found.reason == "a term of more than 2 parts"


def test_what_was_not_found_out_in_time_is_asked_again_where_there_is_more(monkeypatch):
    """A short question about a result comes before a long one; it is not asked twice for as long."""
    asked = []
    monkeypatch.setattr(
        prover.Prover, "_asked", lambda self, goal, seconds: asked.append(seconds) or (seconds > 1 or None)
    )
    program = Program(mlir.parse_module(COSINE))
    asking = prover.Prover((program, program), _law, seconds=60, oob="xla", chain=1)
    pairs = [(terms.number(1), z3.BitVec("x", terms.POSITION))]
    assert [asking.same(pairs, seconds) for seconds in (0.5, 0.5, 5, 5, 0.5)] == [None, None, True, True, True]
    assert asked == [0.5, 5]


def test_tests_that_nobody_had_time_to_compare_stay_two(monkeypatch):
    """What is not found out is not taken for equal."""
    monkeypatch.setattr(prover, "SOON_SECONDS", 0.0)
    assert not derive(*DIFFERENT["fillers among halves that lose a sign"])


@pytest.mark.parametrize(("least", "is_derived"), [(0, True), (-1, False)])
def test_integers_of_an_argument_lie_where_it_is_said(least, is_derived):
    """Indices that are not negative need no clamp; each of eight may be the one that is."""
    assert bool(derive(*DIFFERENT["clamped indices"], within={1: (least, 50)})) == is_derived
