"""Pairs of modules as text of which the second one is wrong in one way, as tools that write modules go wrong.

Nobody lowered them: whoever wrote the second version, verification has nothing but the two texts.
"""

from dataclasses import dataclass

POINT = "inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = {v}"
F8, I8 = "tensor<8xf32>", "tensor<8xi32>"


@dataclass(frozen=True)
class Pair:
    """Two versions of a module.

    Attributes:
      before, after: the two.
      what: what is wrong with the second one.
      is_interface: whether it is wrong beside what it computes.
    """

    before: str
    after: str
    what: str
    is_interface: bool = False


PAIRS: dict[str, Pair] = {}


def main(arguments: str, body: str, returned: str, *, results: str = "", more: str = "") -> str:
    """A module; `returned` is "value : type" for one result, or values for `results`."""
    values, _, kinds = returned.partition(" : ")
    kinds = kinds or results
    return f"""{more}
func.func public @main({arguments}) -> ({results or kinds}) {{
  {body}
  return {values} : {kinds}
}}"""


def pair(name: str, what: str, before: str, after: str, *, is_interface: bool = False) -> None:
    """Write a pair down."""
    PAIRS[name] = Pair(before, after, what, is_interface)


def edited(name: str, what: str, before: str, old: str, new: str, *, is_interface: bool = False) -> None:
    """Write down a module and the same with one place of its text changed."""
    assert before.count(old) == 1, name
    pair(name, what, before, before.replace(old, new), is_interface=is_interface)


def behind(name: str, what: str, body: str, kind: str = F8) -> None:
    """Write down a module that returns what it computes, and one with a mistake written behind: %r from %y."""
    arguments, ops = f"%a: {kind}, %b: {kind}", f"%y = stablehlo.subtract %a, %b : {kind}"
    pair(name, what, main(arguments, ops, f"%y : {kind}"), main(arguments, f"{ops}\n  {body}", f"%r : {kind}"))


# --- one index, written wrongly for some of its values ---


def written(rows: int, index: str, change: str = "") -> str:
    """A module that writes a number to a row; `change` makes the index %j that is used of %i."""
    operand, at = f"tensor<{rows}xf32>", f"tensor<1x{index}>"
    body = f"""{change}
  %r = "stablehlo.scatter"(%o, {"%j" if change else "%i"}, %u) <{{
    scatter_dimension_numbers = #stablehlo.scatter<{POINT.format(v=0)}>}}> ({{
  ^bb0(%c: tensor<f32>, %d: tensor<f32>):
    stablehlo.return %d : tensor<f32>
  }}) : ({operand}, {at}, tensor<f32>) -> {operand}"""
    return main(f"%o: {operand}, %i: {at}, %u: tensor<f32>", body, f"%r : {operand}")


def index_wrong(name: str, what: str, rows: int, index: str, change: str) -> None:
    """Write down a module that writes a row, and one that changes the index before."""
    ready = change.replace("$t", f"tensor<1x{index}>")
    pair(name, what, written(rows, index), written(rows, index, ready))


ONE_MORE = """%k = stablehlo.constant dense<{k}> : $t
  %one = stablehlo.constant dense<1> : $t
  %is = stablehlo.compare EQ, %i, %k : ($t, $t) -> tensor<1xi1>
  %next = stablehlo.add %i, %one : $t
  %j = stablehlo.select %is, %next, %i : tensor<1xi1>, $t"""
AT_MOST = "%k = stablehlo.constant dense<{k}> : $t\n  %j = stablehlo.minimum %i, %k : $t"
THROUGH = "%n = stablehlo.convert %i : ($t) -> tensor<1x{t}>\n  %j = stablehlo.convert %n : (tensor<1x{t}>) -> $t"

index_wrong("one_row_of_eight", "row 5 is written to row 6", 8, "i32", ONE_MORE.format(k=5))
index_wrong(
    "one_row_of_many", "row 54,321 of 100,000 is written to the next one", 100_000, "i32", ONE_MORE.format(k=54_321)
)
index_wrong("last_row_of_eight", "the last row is never written", 8, "i32", AT_MOST.format(k=6))
index_wrong("last_row_of_many", "the last of 100,000 rows is never written", 100_000, "i32", AT_MOST.format(k=99_998))
index_wrong("index_through_i16", "rows from 32,768 on", 100_000, "i32", THROUGH.format(t="i16"))
index_wrong("index_through_bf16", "rows from 257 on, not all", 5_000, "i32", THROUGH.format(t="bf16"))
index_wrong("index_above_2_31", "an index of 2^32 + k is row k", 8, "i64", THROUGH.format(t="i32"))
index_wrong(
    "index_clamped",
    "what lies outside is written to the ends",
    8,
    "i32",
    """%lo = stablehlo.constant dense<0> : $t
  %hi = stablehlo.constant dense<7> : $t
  %j = stablehlo.clamp %lo, %i, %hi : $t""",
)
index_wrong(
    "far_index_wraps",
    "an index is taken modulo 2^20",
    8,
    "i32",
    """%k = stablehlo.constant dense<131071> : $t
  %j = stablehlo.and %i, %k : $t""",
)


# --- several indices ---


def scattered(
    body: str, *, indices: str = "%i", updates: str = "%u", before: str = "", element: str = "i32", count: int = 6
) -> str:
    """A module that scatters points."""
    operand, points, at = f"tensor<8x{element}>", f"tensor<{count}x{element}>", f"tensor<{count}x1xi32>"
    ops = f"""{before}
  %r = "stablehlo.scatter"(%o, {indices}, {updates}) <{{
    scatter_dimension_numbers = #stablehlo.scatter<{POINT.format(v=1)}>}}> ({{
  ^bb0(%c: tensor<{element}>, %d: tensor<{element}>):
    {body.replace("$t", f"tensor<{element}>")}
  }}) : ({operand}, {at}, {points}) -> {operand}"""
    return main(f"%o: {operand}, %i: {at}, %u: {points}", ops, f"%r : {operand}")


ADD = "%s = stablehlo.add %c, %d : $t stablehlo.return %s : $t"
ASSIGN = "stablehlo.return %d : $t"
EARLIER = """%f = stablehlo.reshape %i : (tensor<6x1xi32>) -> tensor<6xi32>
  %p = stablehlo.broadcast_in_dim %f, dims = [0] : (tensor<6xi32>) -> tensor<6x6xi32>
  %q = stablehlo.broadcast_in_dim %f, dims = [1] : (tensor<6xi32>) -> tensor<6x6xi32>
  %same = stablehlo.compare EQ, %p, %q : (tensor<6x6xi32>, tensor<6x6xi32>) -> tensor<6x6xi1>
  %m = stablehlo.iota dim = 0 : tensor<6x6xi32>
  %n = stablehlo.iota dim = 1 : tensor<6x6xi32>
  %before = stablehlo.compare GT, %m, %n : (tensor<6x6xi32>, tensor<6x6xi32>) -> tensor<6x6xi1>
  %both = stablehlo.and %same, %before : tensor<6x6xi1>
  %count = stablehlo.convert %both : (tensor<6x6xi1>) -> tensor<6x6xi32>
  %z = stablehlo.constant dense<0> : tensor<i32>
  %sum = stablehlo.reduce(%count init: %z) applies stablehlo.add across dimensions = [1]
    : (tensor<6x6xi32>, tensor<i32>) -> tensor<6xi32>
  %most = stablehlo.constant dense<{k}> : tensor<6xi32>
  %late = stablehlo.compare GE, %sum, %most : (tensor<6xi32>, tensor<6xi32>) -> tensor<6xi1>
  %nothing = stablehlo.constant dense<0> : tensor<6xi32>
  %v = stablehlo.select %late, %nothing, %u : tensor<6xi1>, tensor<6xi32>"""

pair(
    "third_duplicate",
    "of the updates of one row the third and later ones are lost",
    scattered(ADD),
    scattered(ADD, before=EARLIER.format(k=2), updates="%v"),
)
pair(
    "fifth_duplicate",
    "of the updates of one row the fifth and later ones are lost",
    scattered(ADD),
    scattered(ADD, before=EARLIER.format(k=4), updates="%v"),
)
REVERSED = """%j = stablehlo.reverse %i, dims = [0] : tensor<6x1xi32>
  %v = stablehlo.reverse %u, dims = [0] : tensor<6xi32>"""
pair(
    "first_writer_wins",
    "of two updates of one row the first one stays",
    scattered(ASSIGN),
    scattered(ASSIGN, before=REVERSED, indices="%j", updates="%v"),
)
pair(
    "last_update_lost",
    "the last update is that of the one before",
    scattered(ASSIGN, element="f32"),
    scattered(
        ASSIGN,
        element="f32",
        updates="%v",
        before="""%a = stablehlo.slice %u [0:5] : (tensor<6xf32>) -> tensor<5xf32>
  %b = stablehlo.slice %u [4:5] : (tensor<6xf32>) -> tensor<1xf32>
  %v = stablehlo.concatenate %a, %b, dim = 0 : (tensor<5xf32>, tensor<1xf32>) -> tensor<6xf32>""",
    ),
)


def placed(flat: bool) -> str:
    """A module that writes a number at a row and a column; flat it goes by row * 4 + column alone."""
    ops = """%r = "stablehlo.scatter"(%o, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<
    inserted_window_dims = [0, 1], scatter_dims_to_operand_dims = [0, 1]>}> ({
  ^bb0(%c: tensor<f32>, %d: tensor<f32>):
    stablehlo.return %d : tensor<f32>
  }) : (tensor<8x4xf32>, tensor<2xi32>, tensor<f32>) -> tensor<8x4xf32>"""
    if flat:
        ops = f"""%row = stablehlo.slice %i [0:1] : (tensor<2xi32>) -> tensor<1xi32>
  %column = stablehlo.slice %i [1:2] : (tensor<2xi32>) -> tensor<1xi32>
  %four = stablehlo.constant dense<4> : tensor<1xi32>
  %start = stablehlo.multiply %row, %four : tensor<1xi32>
  %j = stablehlo.add %start, %column : tensor<1xi32>
  %p = stablehlo.reshape %o : (tensor<8x4xf32>) -> tensor<32xf32>
  %q = "stablehlo.scatter"(%p, %j, %u) <{{scatter_dimension_numbers = #stablehlo.scatter<{POINT.format(v=0)}>}}> ({{
  ^bb0(%c: tensor<f32>, %d: tensor<f32>):
    stablehlo.return %d : tensor<f32>
  }}) : (tensor<32xf32>, tensor<1xi32>, tensor<f32>) -> tensor<32xf32>
  %r = stablehlo.reshape %q : (tensor<32xf32>) -> tensor<8x4xf32>"""
    return main("%o: tensor<8x4xf32>, %i: tensor<2xi32>, %u: tensor<f32>", ops, "%r : tensor<8x4xf32>")


pair("column_leaks_into_the_next_row", "a column outside is one of a neighbouring row", placed(False), placed(True))

SLICED = """%s = stablehlo.dynamic_slice %o, %i, sizes = [3] : (tensor<8xf32>, tensor<i32>) -> tensor<3xf32>"""
WRAPPED = """%z = stablehlo.constant dense<0> : tensor<i32>
  %n = stablehlo.constant dense<8> : tensor<i32>
  %is = stablehlo.compare LT, %i, %z : (tensor<i32>, tensor<i32>) -> tensor<i1>
  %w = stablehlo.add %i, %n : tensor<i32>
  %j = stablehlo.select %is, %w, %i : tensor<i1>, tensor<i32>
  """
pair(
    "negative_start_wraps",
    "a negative start counts from the end",
    main("%o: tensor<8xf32>, %i: tensor<i32>", SLICED, "%s : tensor<3xf32>"),
    main("%o: tensor<8xf32>, %i: tensor<i32>", WRAPPED + SLICED.replace("%i", "%j"), "%s : tensor<3xf32>"),
)

# --- branches ---

BRANCHES = f"""%r = "stablehlo.case"(%k) ({{
    %x = stablehlo.add %a, %b : {F8} stablehlo.return %x : {F8}
  }}, {{
    %x = stablehlo.subtract %a, %b : {F8} stablehlo.return %x : {F8}
  }}, {{
    %x = stablehlo.maximum %a, %b : {F8} stablehlo.return %x : {F8}
  }}) : (tensor<i32>) -> {F8}"""
CASE = main(f"%k: tensor<i32>, %a: {F8}, %b: {F8}", BRANCHES, f"%r : {F8}")
edited("last_branch", "the third branch", CASE, "maximum", "minimum")
RARE = main(
    f"%k: tensor<i32>, %a: {F8}, %b: {F8}",
    f"""%n = stablehlo.constant dense<123456> : tensor<i32>
  %is = stablehlo.compare EQ, %k, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
  %r = "stablehlo.if"(%is) ({{
    %x = stablehlo.subtract %a, %b : {F8} stablehlo.return %x : {F8}
  }}, {{
    %x = stablehlo.add %a, %b : {F8} stablehlo.return %x : {F8}
  }}) : (tensor<i1>) -> {F8}""",
    f"%r : {F8}",
)
edited("rare_branch", "the branch that is taken for one number", RARE, "subtract %a, %b", "subtract %b, %a")
edited("branch_for_another_number", "the number for which the branch is taken", RARE, "123456", "123457")
pair(
    "selected_rarely",
    "numbers above 1e6 are replaced",
    main(f"%a: {F8}", f"%r = stablehlo.negate %a : {F8}", f"%r : {F8}"),
    main(
        f"%a: {F8}",
        f"""%y = stablehlo.negate %a : {F8}
  %k = stablehlo.constant dense<1.0e6> : {F8}
  %is = stablehlo.compare GT, %a, %k : ({F8}, {F8}) -> tensor<8xi1>
  %r = stablehlo.select %is, %k, %y : tensor<8xi1>, {F8}""",
        f"%r : {F8}",
    ),
)
TIES = main(
    f"%a: {F8}, %b: {F8}",
    f"""%is = stablehlo.compare LT, %a, %b : ({F8}, {F8}) -> tensor<8xi1>
  %s = stablehlo.negate %a : {F8}
  %r = stablehlo.select %is, %s, %b : tensor<8xi1>, {F8}""",
    f"%r : {F8}",
)
edited("ties_of_floats", "equal numbers are taken as less", TIES, "compare LT", "compare LE")
edited("ties_of_integers", "equal numbers are taken as less", TIES.replace("f32", "i32"), "compare LT", "compare LE")

# --- several results, loops ---

SEVERAL = main(
    f"%a: {F8}, %b: {F8}",
    f"""%x = stablehlo.add %a, %b : {F8}
  %y = stablehlo.multiply %a, %b : {F8}
  %z = stablehlo.maximum %a, %b : {F8}""",
    "%x, %y, %z",
    results=f"{F8}, {F8}, {F8}",
)
edited("one_of_three_results", "the third result", SEVERAL, "maximum", "minimum")
edited("results_exchanged", "the first two results", SEVERAL, "return %x, %y", "return %y, %x")

LOOP = main(
    f"%a: {F8}, %b: {F8}",
    f"""%z = stablehlo.constant dense<0> : tensor<i32>
  %n = stablehlo.constant dense<4> : tensor<i32>
  %w:3 = stablehlo.while(%k = %z, %x = %a, %y = %b) : tensor<i32>, {F8}, {F8} cond {{
    %p = stablehlo.compare LT, %k, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  }} do {{
    %one = stablehlo.constant dense<1> : tensor<i32>
    %next = stablehlo.add %k, %one : tensor<i32>
    %s = stablehlo.subtract %x, %y : {F8}
    %t = stablehlo.maximum %x, %y : {F8}
    stablehlo.return %next, %s, %t : tensor<i32>, {F8}, {F8}
  }}""",
    f"%w#1 : {F8}",
)
edited(
    "second_iteration",
    "in the loop's second iteration nothing is subtracted",
    LOOP,
    f"%s = stablehlo.subtract %x, %y : {F8}",
    f"""%is = stablehlo.compare EQ, %k, %one : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %d = stablehlo.subtract %x, %y : {F8}
    %s = stablehlo.select %is, %x, %d : tensor<i1>, {F8}""",
)
edited("an_iteration_short", "the loop ends before the last iteration", LOOP, "dense<4>", "dense<3>")
edited("carried_values_exchanged", "two carried values", LOOP, "%next, %s, %t :", "%next, %t, %s :")
edited("other_start", "the loop begins with the second iteration", LOOP, "dense<0>", "dense<1>")

# --- attributes ---

TWICE = main(
    f"%a: {F8} {{tf.aliasing_output = 0 : i32}}, %b: {F8} {{jax.buffer_donor = true}}",
    f"""%x = stablehlo.add %a, %b : {F8}
  %y = stablehlo.multiply %a, %b : {F8}""",
    "%x, %y",
    results=f"{F8}, {F8}",
)
edited("aliasing_lost", "argument 0", TWICE, " {tf.aliasing_output = 0 : i32}", "", is_interface=True)
edited("another_alias", "argument 0", TWICE, "aliasing_output = 0", "aliasing_output = 1", is_interface=True)
edited("donor_lost", "argument 1", TWICE, " {jax.buffer_donor = true}", "", is_interface=True)
edited(
    "donor_gained",
    "argument 0",
    TWICE.replace(" {tf.aliasing_output = 0 : i32}", ""),
    f"%a: {F8}",
    f"%a: {F8} {{jax.buffer_donor = true}}",
    is_interface=True,
)
edited(
    "sharded_otherwise",
    "argument 0",
    TWICE.replace("tf.aliasing_output = 0 : i32", 'mhlo.sharding = "{replicated}"'),
    "{replicated}",
    "{maximal device=0}",
    is_interface=True,
)
edited(
    "result_sharded_otherwise",
    "result 0",
    TWICE.replace(f"-> ({F8},", f'-> ({F8} {{mhlo.sharding = "{{replicated}}"}},'),
    "{replicated}",
    "{maximal device=0}",
    is_interface=True,
)
COMPOSITE = main(
    f"%a: {F8}",
    f"""%r = stablehlo.composite "my.op" %a {{
    composite_attributes = {{scale = 2.0 : f32}}, decomposition = @own}} : ({F8}) -> {F8}""",
    f"%r : {F8}",
    more=f"func.func private @own(%a: {F8}) -> {F8} {{ %r = stablehlo.add %a, %a : {F8} return %r : {F8} }}",
)
edited("composite_attribute", "the composite's attribute", COMPOSITE, "scale = 2.0", "scale = 3.0", is_interface=True)
edited("another_composite", "the composite's name", COMPOSITE, "my.op", "my.other", is_interface=True)
edited("decomposition", "what the composite stands for", COMPOSITE, "stablehlo.add", "stablehlo.subtract")

# --- small mistakes in what is returned ---

CONSTANT = "%k = stablehlo.constant dense<{k}> : " + F8 + "\n  "
behind("minus_zero_lost", "-0.0 becomes 0.0", CONSTANT.format(k="0.0") + f"%r = stablehlo.add %y, %k : {F8}")
behind(
    "above_1e4_lost", "numbers are clamped at 1e4", CONSTANT.format(k="1.0e4") + f"%r = stablehlo.minimum %y, %k : {F8}"
)
behind(
    "nan_lost",
    "NaN becomes 0",
    CONSTANT.format(k="0.0")
    + f"""%is = stablehlo.compare NE, %y, %y : ({F8}, {F8}) -> tensor<8xi1>
  %r = stablehlo.select %is, %k, %y : tensor<8xi1>, {F8}""",
)
behind(
    "infinity_lost",
    "infinities become the largest number",
    f"""%lo = stablehlo.constant dense<-3.40282347E+38> : tensor<f32>
  %hi = stablehlo.constant dense<3.40282347E+38> : tensor<f32>
  %r = stablehlo.clamp %lo, %y, %hi : (tensor<f32>, {F8}, tensor<f32>) -> {F8}""",
)
behind(
    "large_lost",
    "magnitudes above 1e30 become 0",
    CONSTANT.format(k="1.0e30")
    + f"""%z = stablehlo.constant dense<0.0> : {F8}
  %m = stablehlo.abs %y : {F8}
  %is = stablehlo.compare GT, %m, %k : ({F8}, {F8}) -> tensor<8xi1>
  %r = stablehlo.select %is, %z, %y : tensor<8xi1>, {F8}""",
)
behind(
    "squares_overflow",
    "what overflows when it is squared becomes 0",
    f"""%q = stablehlo.multiply %y, %y : {F8}
  %is = stablehlo.is_finite %q : ({F8}) -> tensor<8xi1>
  %isnot = stablehlo.not %is : tensor<8xi1>
  %isin = stablehlo.is_finite %y : ({F8}) -> tensor<8xi1>
  %both = stablehlo.and %isnot, %isin : tensor<8xi1>
  %z = stablehlo.constant dense<0.0> : {F8}
  %r = stablehlo.select %both, %z, %y : tensor<8xi1>, {F8}""",
)
behind(
    "one_half_lost",
    "0.5 alone",
    CONSTANT.format(k="5.0e-1")
    + f"""%is = stablehlo.compare EQ, %y, %k : ({F8}, {F8}) -> tensor<8xi1>
  %n = stablehlo.negate %y : {F8}
  %r = stablehlo.select %is, %n, %y : tensor<8xi1>, {F8}""",
)
behind(
    "rounded",
    "the last bits",
    f"""%n = stablehlo.convert %y : ({F8}) -> tensor<8xf16>
  %r = stablehlo.convert %n : (tensor<8xf16>) -> {F8}""",
)
pair(
    "halved",
    "a negative odd number is rounded down",
    main(f"%a: {I8}", f"%k = stablehlo.constant dense<2> : {I8}\n  %r = stablehlo.divide %a, %k : {I8}", f"%r : {I8}"),
    main(
        f"%a: {I8}",
        f"%k = stablehlo.constant dense<1> : {I8}\n  %r = stablehlo.shift_right_arithmetic %a, %k : {I8}",
        f"%r : {I8}",
    ),
)
pair(
    "remainder",
    "of a negative number",
    main(
        f"%a: {I8}", f"%k = stablehlo.constant dense<8> : {I8}\n  %r = stablehlo.remainder %a, %k : {I8}", f"%r : {I8}"
    ),
    main(f"%a: {I8}", f"%k = stablehlo.constant dense<7> : {I8}\n  %r = stablehlo.and %a, %k : {I8}", f"%r : {I8}"),
)
behind(
    "least_integer",
    "the least i32 alone",
    f"""%k = stablehlo.constant dense<-2147483647> : {I8}
  %r = stablehlo.maximum %y, %k : {I8}""",
    I8,
)
L8 = "tensor<8xi64>"
behind(
    "above_2_40",
    "integers above 2^40",
    f"""%k = stablehlo.constant dense<1099511627776> : {L8}
  %r = stablehlo.minimum %y, %k : {L8}""",
    L8,
)
BYTES = "tensor<8xui8>"
MEAN = f"""%s = stablehlo.add %a, %b : {BYTES}
  %one = stablehlo.constant dense<1> : {BYTES}
  %r = stablehlo.shift_right_logical %s, %one : {BYTES}"""
WIDE = """%x = stablehlo.convert %a : (tensor<8xui8>) -> tensor<8xui16>
  %y = stablehlo.convert %b : (tensor<8xui8>) -> tensor<8xui16>
  %s = stablehlo.add %x, %y : tensor<8xui16>
  %one = stablehlo.constant dense<1> : tensor<8xui16>
  %h = stablehlo.shift_right_logical %s, %one : tensor<8xui16>
  %r = stablehlo.convert %h : (tensor<8xui16>) -> tensor<8xui8>"""
pair(
    "narrow_sum",
    "the carry of a sum of bytes is lost",
    main(f"%a: {BYTES}, %b: {BYTES}", WIDE, f"%r : {BYTES}"),
    main(f"%a: {BYTES}, %b: {BYTES}", MEAN, f"%r : {BYTES}"),
)
LARGE = "tensor<131072xf32>"
pair(
    "last_of_many",
    "the last element of a large tensor",
    main(f"%a: {LARGE}", f"%r = stablehlo.negate %a : {LARGE}", f"%r : {LARGE}"),
    main(
        f"%a: {LARGE}",
        f"""%y = stablehlo.negate %a : {LARGE}
  %n = stablehlo.iota dim = 0 : tensor<131072xi32>
  %k = stablehlo.constant dense<131071> : tensor<131072xi32>
  %is = stablehlo.compare EQ, %n, %k : (tensor<131072xi32>, tensor<131072xi32>) -> tensor<131072xi1>
  %r = stablehlo.select %is, %a, %y : tensor<131072xi1>, {LARGE}""",
        f"%r : {LARGE}",
    ),
)
pair(
    "order_of_a_sum",
    "a sum in another order",
    main(
        f"%a: {F8}, %b: {F8}, %c: {F8}",
        f"%x = stablehlo.add %a, %b : {F8}\n  %r = stablehlo.add %x, %c : {F8}",
        f"%r : {F8}",
    ),
    main(
        f"%a: {F8}, %b: {F8}, %c: {F8}",
        f"%x = stablehlo.add %b, %c : {F8}\n  %r = stablehlo.add %a, %x : {F8}",
        f"%r : {F8}",
    ),
)
NEGATED_TWICE = f"""%n = stablehlo.negate %a : {F8}
  %z = stablehlo.constant dense<0.0> : {F8}
  %r = stablehlo.subtract %z, %n : {F8}"""
UNLESS_SEVEN = f"""%z = stablehlo.constant dense<0.0> : {F8}
  %s = stablehlo.constant dense<7> : tensor<i32>
  %is = stablehlo.compare EQ, %k, %s : (tensor<i32>, tensor<i32>) -> tensor<i1>
  %y = stablehlo.add %z, %a : {F8}
  %r = stablehlo.select %is, %a, %y : tensor<i1>, {F8}"""
pair(
    "a_zero_s_sign_for_one_number",
    "-0.0 stays -0.0, for 7 alone",
    main(f"%k: tensor<i32>, %a: {F8}", NEGATED_TWICE, f"%r : {F8}"),
    main(f"%k: tensor<i32>, %a: {F8}", UNLESS_SEVEN, f"%r : {F8}"),
)
