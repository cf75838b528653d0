"""Linear forms of index elements: for each op that the walk looks through, a hit and a near miss."""

import numpy as np
import pytest

from hlo_lower.base.causes import Code
from hlo_lower.facts.forms.affine import AffineAnalysis, fitted
from hlo_lower.facts.forms.linear import Element, Linear, Normalized, Position, positions
from hlo_lower.facts.forms.places import Entry
from hlo_lower.facts.ranges.index_facts import IndexAnalysis
from hlo_lower.facts.values.site import Site
from hlo_lower.ir.reader import read

ARGUMENTS = "%a: $0, %b: $0, %v: $v, %p: tensor<i1>, %q: tensor<6xi1>"
BASE = "%base = stablehlo.broadcast_in_dim %a, dims = [] : ($0) -> $v\n%i = stablehlo.iota dim = 0 : $v\n"
RUN = BASE + "%x = stablehlo.add %base, %i : $v\n"


def element_of(lines, shape=(6,), element="i32", functions="", value=None):
    """The form of %r, a tensor of this shape, at a symbolic place; $v is a vector of 6, $0 a scalar, $r the result."""
    told = f"tensor<{'x'.join(map(str, (*shape, element)))}>"

    def typed(text):
        return text.replace("$v", f"tensor<6x{element}>").replace("$0", f"tensor<{element}>").replace("$r", told)

    text = f"func.func public @main({ARGUMENTS}) -> $r {{\n{lines}\nreturn %r : $r\n}}\n{functions}"
    graph = read(typed(text))
    affine = AffineAnalysis(IndexAnalysis(graph))
    place = tuple(Linear(0, {Position(n, size): 1}) if size > 1 else Linear(0) for n, size in enumerate(shape))
    return affine.of(Entry(Site(value(graph) if value else graph.main.body.terminator.operand(0)), place))


def told(form):
    """A form in short: the constant, the stride along each position, the number of bases, and of moving symbols."""
    strides = {s.dim: c for s, c in form.terms.items() if isinstance(s, Position)}
    others = [s for s in form.terms if not isinstance(s, Position)]
    moving = [s for s in others if positions([Linear(0, {s: 1})])]
    return form.constant, strides, len(others) - len(moving), len(moving)


def constant(name, values, shape="6x", element="i32"):
    """A line that defines a constant."""
    return f"%{name} = stablehlo.constant dense<{values}> : tensor<{shape}{element}>\n"


DATA = (0, {}, 0, 1)
LOOSE_BASE = (0, {}, 1, 0)


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ("%r = stablehlo.iota dim = 0 : $v", (0, {0: 1}, 0, 0)),
        ("%r = stablehlo.reshape %v : ($v) -> $v", DATA),
        (RUN.replace("%x =", "%r ="), (0, {0: 1}, 1, 0)),
        (BASE + "%r = stablehlo.add %i, %base : $v", (0, {0: 1}, 1, 0)),
        (BASE + "%r = stablehlo.subtract %base, %i : $v", (0, {0: -1}, 1, 0)),
        (BASE + "%r = stablehlo.subtract %i, %i : $v", (0, {}, 0, 0)),
        (BASE + "%r = stablehlo.add %i, %v : $v", (0, {0: 1}, 0, 1)),
        (BASE + "%r = stablehlo.negate %i : $v", (0, {0: -1}, 0, 0)),
        (BASE + constant("k", 16) + "%r = stablehlo.multiply %i, %k : $v", (0, {0: 16}, 0, 0)),
        (BASE + constant("k", 16) + "%r = stablehlo.multiply %k, %i : $v", (0, {0: 16}, 0, 0)),
        (BASE + constant("k", 0) + "%r = stablehlo.multiply %v, %k : $v", (0, {}, 0, 0)),
        (BASE + "%r = stablehlo.multiply %i, %base : $v", DATA),
        (BASE + "%r = stablehlo.xor %i, %base : $v", DATA),
        (constant("r", "[2, 3, 4, 5, 6, 7]"), (2, {0: 1}, 0, 0)),
        (constant("r", "[9, 7, 5, 3, 1, -1]"), (9, {0: -2}, 0, 0)),
        (constant("r", "[2, 3, 4, 5, 6, 8]"), DATA),
        (constant("r", 7), (7, {}, 0, 0)),
    ],
)
def test_sums(lines, expected):
    """iota, even constants, sums, differences and products with a constant have a form; a table that is not even, a
    product of two values and other ops are data."""
    assert told(element_of(lines)) == expected


@pytest.mark.parametrize(
    ("lines", "shape", "expected"),
    [
        ("%r = stablehlo.broadcast_in_dim %x, dims = [1] : ($v) -> $r", (3, 6), (0, {1: 1}, 1, 0)),
        ("%r = stablehlo.broadcast_in_dim %v, dims = [1] : ($v) -> $r", (3, 6), DATA),
        ("%r = stablehlo.broadcast_in_dim %a, dims = [] : ($0) -> $r", (3, 6), LOOSE_BASE),
        ("%r = stablehlo.reshape %x : ($v) -> $r", (1, 6, 1), (0, {1: 1}, 1, 0)),
        ("%r = stablehlo.reshape %x : ($v) -> $r", (2, 3), (0, {0: 3, 1: 1}, 1, 0)),
        ("%y = stablehlo.iota dim = 1 : tensor<2x3xi32>\n%r = stablehlo.reshape %y : (tensor<2x3xi32>) -> $r", (6,),
         DATA),
        ("%y = stablehlo.iota dim = 1 : tensor<2x3xi32>\n%r = stablehlo.reshape %y : (tensor<2x3xi32>) -> $r", (3, 2),
         DATA),
        ("%y = stablehlo.iota dim = 2 : tensor<2x1x3xi32>\n%r = stablehlo.reshape %y : (tensor<2x1x3xi32>) -> $r",
         (2, 3), (0, {1: 1}, 0, 0)),
        ("%y = stablehlo.iota dim = 1 : tensor<2x3xi32>\n%r = stablehlo.transpose %y, dims = [1, 0] :"
         " (tensor<2x3xi32>) -> $r", (3, 2), (0, {0: 1}, 0, 0)),
        ("%r = stablehlo.slice %x [1:6:2] : ($v) -> $r", (3,), (1, {0: 2}, 1, 0)),
        ("%r = stablehlo.slice %v [1:6:2] : ($v) -> $r", (3,), DATA),
        ("%r = stablehlo.reverse %x, dims = [0] : $v", (6,), (5, {0: -1}, 1, 0)),
        ("%y = stablehlo.iota dim = 1 : tensor<2x3xi32>\n%r = stablehlo.reverse %y, dims = [0] : $r", (2, 3),
         (0, {1: 1}, 0, 0)),
        ("%s = stablehlo.slice %x [2:6] : ($v) -> tensor<4xi32>\n"
         "%t = stablehlo.slice %v [0:2] : ($v) -> tensor<2xi32>\n"
         "%c = stablehlo.concatenate %t, %s, dim = 0 : (tensor<2xi32>, tensor<4xi32>) -> $v\n"
         "%r = stablehlo.slice %c [3:4] : ($v) -> $r", (1,), (3, {}, 1, 0)),
        ("%r = stablehlo.concatenate %x, %x, dim = 0 : ($v, $v) -> $r", (12,), DATA),
        ("%r = stablehlo.dynamic_slice %i, %a, sizes = [3] : ($v, $0) -> $r", (3,), (0, {0: 1}, 1, 0)),
        ("%r = stablehlo.dynamic_slice %v, %a, sizes = [3] : ($v, $0) -> $r", (3,), DATA),
        ("%r = stablehlo.dynamic_slice %i, %a, sizes = [6] : ($v, $0) -> $r", (6,), (0, {0: 1}, 0, 0)),
    ],
)  # fmt: skip
def test_ops_that_move_elements(lines, shape, expected):
    """Broadcast, reshape, transpose, slice, reverse, concatenate and dynamic_slice change the place that is looked at;
    a place without a form is data."""
    assert told(element_of(RUN + lines, shape)) == expected


def test_a_column_of_a_concatenate_is_the_operand_at_that_column():
    """An index vector put together from columns is looked at column by column."""
    columns = (
        "%c = stablehlo.reshape %x : ($v) -> tensor<6x1xi32>\n%d = stablehlo.reshape %v : ($v) -> tensor<6x1xi32>\n"
        "%both = stablehlo.concatenate %d, %c, dim = 1 : (tensor<6x1xi32>, tensor<6x1xi32>) -> tensor<6x2xi32>\n"
    )
    for column, expected in ((0, DATA), (1, (0, {0: 1}, 1, 0))):
        cut = f"%r = stablehlo.slice %both [0:6, {column}:{column + 1}] : (tensor<6x2xi32>) -> $r"
        assert told(element_of(RUN + columns + cut, (6, 1))) == expected


# --- types ---

CONVERT = "%r = stablehlo.convert %x : (tensor<6x{0}>) -> $r"


@pytest.mark.parametrize(
    ("before", "after", "expected", "width"),
    [
        ("i32", "i8", (0, {0: 1}, 1, 0), 8),  # modulo 256 it holds
        ("i32", "ui32", (0, {0: 1}, 1, 0), 32),
        ("i8", "i32", (0, {0: 1}, 1, 0), 8),  # it may have wrapped around: only modulo 256
        ("ui8", "i32", DATA, 32),  # what wrapped around lands inside again
        ("i8", "ui32", DATA, 32),
    ],
)
def test_convert_of_what_may_wrap_around(before, after, expected, width):
    """A sum that is converted holds modulo the narrower type; of an unsigned one nothing is left (trap 41)."""
    vector, scalar = f"tensor<6x{before}>", f"tensor<{before}>"
    lines = RUN.replace("%base =", "%as = stablehlo.convert %a : ($0) -> SC\n%base =").replace("%a, dims", "%as, dims")
    lines = lines.replace("($0) -> $v", f"({scalar}) -> {vector}").replace("$v", vector).replace("SC", scalar)
    form = element_of(lines + CONVERT.format(before), element=after)
    assert (told(form), form.width) == (expected, width)


def test_convert_of_a_sum_that_cannot_wrap_around_is_exact():
    """With a bounded base the sum stays in i8, so it is the same number in i32."""
    lines = """%lo = stablehlo.constant dense<0> : tensor<i8>
%hi = stablehlo.constant dense<{}> : tensor<i8>
%n = stablehlo.convert %a : ($0) -> tensor<i8>
%c = stablehlo.clamp %lo, %n, %hi : tensor<i8>
%base = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i8>) -> tensor<6xi8>
%i = stablehlo.iota dim = 0 : tensor<6xi8>
%x = stablehlo.add %base, %i : tensor<6xi8>
%r = stablehlo.convert %x : (tensor<6xi8>) -> $r"""
    assert [element_of(lines.format(high)).width for high in (122, 123)] == [32, 8]


def test_what_is_added_after_a_narrow_sum_is_remembered():
    """Constants added in a wider type move what wrapped around by as much; another runtime value ends the form."""
    lines = (
        RUN.replace("$v", "tensor<6xi8>").replace("%base =", "%n = stablehlo.convert %a : ($0) -> tensor<i8>\n%base =")
        .replace("%a, dims", "%n, dims").replace("($0) -> tensor<6", "(tensor<i8>) -> tensor<6")
        + "%w = stablehlo.convert %x : (tensor<6xi8>) -> $v\n" + constant("k", 9)
    )  # fmt: skip
    added = element_of(lines + "%r = stablehlo.add %k, %w : $v")
    assert (told(added), added.width, added.drift) == ((9, {0: 1}, 1, 0), 8, 9)
    taken = element_of(lines + "%r = stablehlo.subtract %w, %k : $v")
    assert (told(taken), taken.width, taken.drift) == ((-9, {0: 1}, 1, 0), 8, 9)
    for near in ("add %w, %v", "add %w, %w", "subtract %k, %w", "multiply %w, %k", "negate %w"):
        assert told(element_of(lines + f"%r = stablehlo.{near} : $v")) == DATA


def test_a_constant_is_converted_as_arithmetic_in_the_type_would():
    """200 as ui8 is -56 as i8."""
    lines = constant("k", 200, element="ui8") + "%r = stablehlo.convert %k : (tensor<6xui8>) -> $r"
    assert told(element_of(lines, element="i8")) == (-56, {}, 0, 0)


# --- choices ---


@pytest.mark.parametrize(
    ("op", "expected"),
    [
        ("minimum %i, %k5", (0, {0: 1}, 0, 0)),
        ("minimum %k5, %i", (0, {0: 1}, 0, 0)),
        ("minimum %i, %k4", DATA),
        ("maximum %i, %k0", (0, {0: 1}, 0, 0)),
        ("maximum %i, %k4", DATA),
        ("clamp %k0, %i, %k5", (0, {0: 1}, 0, 0)),
        ("clamp %k0, %i, %k4", DATA),
        ("clamp %k4, %i, %k5", DATA),
    ],
)
def test_a_clamp_that_changes_nothing(op, expected):
    """clamp, minimum and maximum are looked through where the bounds cut nothing off: a clamped run is no run."""
    lines = BASE + constant("k0", 0) + constant("k4", 4) + constant("k5", 5)
    assert told(element_of(lines + f"%r = stablehlo.{op} : $v")) == expected


def normalisation(direction="LT", bound=0, on_true="%up", on_false="%x", offset=10):
    """%r = select(x < 0, x + 10, x) unless told otherwise."""
    return (
        RUN + constant("z", bound) + constant("d", offset) + "%up = stablehlo.add %x, %d : $v\n"
        f"%n = stablehlo.compare {direction}, %x, %z : ($v, $v) -> tensor<6xi1>\n"
        f"%r = stablehlo.select %n, {on_true}, {on_false} : tensor<6xi1>, $v"
    )  # fmt: skip


@pytest.mark.parametrize(
    ("given", "offset"),
    [
        ({}, 10),
        ({"direction": "GE", "on_true": "%x", "on_false": "%up"}, 10),
        ({"offset": 7}, 7),
        ({"offset": -7}, None),
        ({"direction": "LE"}, None),
        ({"direction": "GE"}, None),
        ({"bound": 1}, None),
        ({"on_true": "%x", "on_false": "%up"}, None),
        ({"on_true": "%v"}, None),
        ({"on_false": "%i"}, None),
    ],
)
def test_normalisation(given, offset):
    """select(x < 0, x + A, x) is one symbol around the form of x; other choices of moving values are data."""
    form = element_of(normalisation(**given))
    [symbol] = form.terms
    if offset is None:
        assert isinstance(symbol, Element)
        assert told(form) == DATA
    else:
        assert isinstance(symbol, Normalized)
        assert (told(symbol.inner), symbol.offset) == ((0, {0: 1}, 1, 0), offset)


@pytest.mark.parametrize(("added", "offset"), [((100, 100, 100), 44), ((100, 100), None), ((50,), 50)])
def test_an_offset_is_what_the_type_makes_of_it(added, offset):
    """In i8 three times 100 is 44, and two times 100 is negative: the offset is counted as the type counts."""
    lines = RUN + constant("z", 0, element="i8")
    for n, number in enumerate(added):
        lines += constant(f"d{n}", number, element="i8")
        lines += f"%up{n} = stablehlo.add {f'%up{n - 1}' if n else '%x'}, %d{n} : $v\n"
    lines += "%n = stablehlo.compare LT, %x, %z : ($v, $v) -> tensor<6xi1>\n"
    form = element_of(lines + f"%r = stablehlo.select %n, %up{len(added) - 1}, %x : tensor<6xi1>, $v", element="i8")
    [symbol] = form.terms
    assert (symbol.offset if isinstance(symbol, Normalized) else None) == offset


def test_elementwise_ops_on_a_base_give_a_base():
    """What no operand tells apart from position to position is one base, whatever op makes it; data stays data."""
    lines = BASE + constant("k", 20)
    assert told(element_of(lines + "%c = stablehlo.minimum %base, %k : $v\n%r = stablehlo.add %c, %i : $v")) == (
        0, {0: 1}, 1, 0,
    )  # fmt: skip
    assert told(element_of(lines + "%r = stablehlo.minimum %v, %k : $v")) == DATA


@pytest.mark.parametrize(
    ("choice", "expected"),
    [
        ("%yes, %x, %v : tensor<6xi1>, $v", (0, {0: 1}, 1, 0)),
        ("%no, %v, %x : tensor<6xi1>, $v", (0, {0: 1}, 1, 0)),
        ("%q, %x, %x : tensor<6xi1>, $v", (0, {0: 1}, 1, 0)),
        ("%p, %x, %i : tensor<i1>, $v", (0, {0: 1}, 1, 0)),  # a scalar chooses one base for all
        ("%pb, %x, %i : tensor<6xi1>, $v", (0, {0: 1}, 1, 0)),
        ("%q, %x, %i : tensor<6xi1>, $v", DATA),  # each element chooses
        ("%p, %x, %v : tensor<i1>, $v", DATA),
        ("%some, %x, %v : tensor<6xi1>, $v", DATA),
    ],
)
def test_select(choice, expected):
    """A known predicate is followed, one that is the same everywhere chooses a base, any other one makes data."""
    lines = (
        RUN + constant("yes", "true", element="i1") + constant("no", "false", element="i1")
        + constant("some", "[true, true, false, true, true, true]", element="i1")
        + "%pb = stablehlo.broadcast_in_dim %p, dims = [] : (tensor<i1>) -> tensor<6xi1>\n"
    )  # fmt: skip
    assert told(element_of(lines + f"%r = stablehlo.select {choice}")) == expected


# --- calls, branches, loops ---

F = """func.func private @f(%y: $v) -> $v {
  %s = stablehlo.iota dim = 0 : $v
  %t = stablehlo.add %y, %s : $v
  return %t : $v
}"""


def test_the_result_of_a_call_is_looked_up_with_its_arguments():
    """A call is looked through, whatever other calls pass."""
    lines = RUN + "%r = func.call @f(%base) : ($v) -> $v\n%other = func.call @f(%v) : ($v) -> $v"
    assert told(element_of(lines, functions=F)) == (0, {0: 1}, 1, 0)
    assert told(element_of(lines.replace("%r =", "%s =").replace("%other =", "%r ="), functions=F)) == (0, {0: 1}, 0, 1)


@pytest.mark.parametrize(
    ("calls", "expected"),
    [
        (("%x",), (0, {0: 1}, 1, 0)),
        (("%x", "%x"), (0, {0: 1}, 1, 0)),
        (("%x", "%i"), (0, {0: 1}, 1, 0)),  # two runs at different bases: a run at some base
        (("%x", "%down"), DATA),
        (("%x", "%v"), DATA),
        (("%v", "%v"), DATA),
    ],
)
def test_an_argument_is_what_all_call_sites_agree_on(calls, expected):
    """What moves with the position has to be the same at every call; the rest becomes a base (trap 40)."""
    lines = RUN + "%down = stablehlo.negate %i : $v\n" + "\n".join(
        f"%c{n} = func.call @f({name}) : ($v) -> $v" for n, name in enumerate(calls)
    )  # fmt: skip
    form = element_of(
        lines + "\n%r = stablehlo.reshape %v : ($v) -> $v",
        functions=F,
        value=lambda graph: graph.functions["f"].body.argument(0),
    )
    assert told(form) == expected


@pytest.mark.parametrize(
    ("functions", "calls"),
    [
        (F.replace("private", "public"), "%c = func.call @f(%x) : ($v) -> $v\n"),
        (F, ""),
        (
            F,
            "%c = func.call @f(%x) : ($v) -> $v\n"
            '%d = stablehlo.composite "my.f" %x {decomposition = @f} : ($v) -> $v\n',
        ),
    ],
)
def test_an_argument_that_others_may_give_is_data(functions, calls):
    """Of a public function, one without a call and one that a composite names, the arguments are anything."""
    form = element_of(
        RUN + calls + "%r = stablehlo.reshape %v : ($v) -> $v",
        functions=functions,
        value=lambda graph: graph.functions["f"].body.argument(0),
    )
    assert told(form) == DATA


@pytest.mark.parametrize(
    ("branches", "expected"),
    [(("%x", "%x"), (0, {0: 1}, 1, 0)), (("%x", "%i"), (0, {0: 1}, 1, 0)), (("%x", "%v"), DATA)],
)
@pytest.mark.parametrize("op", ["if", "case"])
def test_branches(op, branches, expected):
    """A branch chooses one base for all elements where the branches agree on what moves."""
    blocks = ", ".join(f"{{ stablehlo.return {b} : $v }}" for b in branches)
    predicate = ("%p", "tensor<i1>") if op == "if" else ("%a", "$0")
    lines = RUN + f'%r = "stablehlo.{op}"({predicate[0]}) ({blocks}) : ({predicate[1]}) -> $v'
    assert told(element_of(lines)) == expected


def test_branches_on_data_are_no_base_at_the_first_position():
    """Where data moves in each branch, the result is not its first element plus what moves: the two differ by it."""
    lines = (
        RUN
        + constant("one", 1)
        + constant("two", 2)
        + """%y = "stablehlo.if"(%p) ({
  %s = stablehlo.add %v, %one : $v
  stablehlo.return %s : $v
}, {
  %s = stablehlo.add %v, %two : $v
  stablehlo.return %s : $v
}) : (tensor<i1>) -> $v
%first = stablehlo.slice %y [0:1] : ($v) -> tensor<1xi32>
%back = stablehlo.broadcast_in_dim %first, dims = [0] : (tensor<1xi32>) -> $v
%e = stablehlo.subtract %y, %back : $v
%r = stablehlo.subtract %e, %v : $v"""
    )
    assert told(element_of(lines)) != (0, {}, 0, 0)


def loop(body, initial="%x"):
    """A while of five iterations that carries a vector %w; body defines %w2."""
    return (
        RUN + constant("zero", 0, "") + constant("one", 1, "") + constant("five", 5, "")
        + f"""%k, %r = stablehlo.while(%n = %zero, %w = {initial}) : $0, $v
cond {{
  %go = stablehlo.compare LT, %n, %five : ($0, $0) -> tensor<i1>
  stablehlo.return %go : tensor<i1>
}} do {{
  %n2 = stablehlo.add %n, %one : $0
  {body}
  stablehlo.return %n2, %w2 : $0, $v
}}"""
    )  # fmt: skip


SPREAD = "%s = stablehlo.broadcast_in_dim {}, dims = [] : ($0) -> $v\n  "


@pytest.mark.parametrize(
    ("body", "initial", "expected"),
    [
        ("%w2 = stablehlo.add %w, %zeros : $v", "%x", (0, {0: 1}, 1, 0)),
        (SPREAD.format("%one") + "%w2 = stablehlo.add %w, %s : $v", "%x", (0, {0: 1}, 1, 0)),
        (SPREAD.format("%n") + "%w2 = stablehlo.subtract %w, %s : $v", "%x", (0, {0: 1}, 1, 0)),
        ("%w2 = stablehlo.add %w, %i : $v", "%x", DATA),
        ("%w2 = stablehlo.add %w, %w : $v", "%x", DATA),
        ("%w2 = stablehlo.reverse %w, dims = [0] : $v", "%x", DATA),
        ("%w2 = stablehlo.reshape %v : ($v) -> $v", "%x", DATA),
    ],
)
def test_a_while(body, initial, expected):
    """Where each iteration adds one number to all elements, their distances stay; else it is data (trap 40)."""
    lines = loop(body, initial).replace("%zero =", constant("zeros", 0).strip() + "\n%zero =", 1)
    assert told(element_of(lines)) == expected


def test_a_while_that_returns_its_argument():
    """What goes through a loop unchanged is what it was, inside of the loop and behind it."""
    lines = loop("").replace("%n2, %w2", "%n2, %w")
    assert told(element_of(lines)) == (0, {0: 1}, 1, 0)

    def inside(graph):
        [node] = [n for n in graph.main.body.nodes if n.name == "stablehlo.while"]
        return node.blocks[1].argument(1)

    assert told(element_of(lines, value=inside)) == (0, {0: 1}, 1, 0)


@pytest.mark.parametrize(
    ("op", "expected"),
    [
        ("%r = stablehlo.optimization_barrier %x : $v", (0, {0: 1}, 1, 0)),
        ('%r = stablehlo.custom_call @Sharding(%x) : ($v) -> $v', (0, {0: 1}, 1, 0)),
        ('%r = stablehlo.custom_call @annotate_device_placement(%x) : ($v) -> $v', (0, {0: 1}, 1, 0)),
        ('%r = stablehlo.custom_call @other(%x) : ($v) -> $v', DATA),
    ],
)  # fmt: skip
def test_notes_are_looked_through(op, expected):
    """A barrier and a note on placement return what they take; another custom call is data."""
    assert told(element_of(RUN + op)) == expected


def test_a_chain_that_is_too_long_is_not_followed():
    """Beyond a hundred steps an element is data, and the reason says so; a shorter one is followed."""

    def chain(steps):
        lines = RUN.replace("%x =", "%x0 =")
        lines += "".join(f"%x{n + 1} = stablehlo.negate %x{n} : $v\n" for n in range(steps))
        return element_of(lines + f"%r = stablehlo.reshape %x{steps} : ($v) -> $v")

    assert told(chain(80)) == (0, {0: 1}, 1, 0)
    form = chain(120)
    assert told(form) == DATA
    assert next(iter(form.terms)).why == Code.TOO_FAR(100)


def test_a_slice_of_a_tensor_of_dynamic_shape_is_data():
    """A dynamic_slice of static size out of a tensor whose size is not known is looked at as far as that goes."""
    text = """func.func public @main(%d: tensor<?xi32>, %a: tensor<i32>) -> tensor<3xi32> {
  %r = stablehlo.dynamic_slice %d, %a, sizes = [3] : (tensor<?xi32>, tensor<i32>) -> tensor<3xi32>
  return %r : tensor<3xi32>
}"""
    graph = read(text)
    place = (Linear(0, {Position(0, 3): 1}),)
    assert (
        told(AffineAnalysis(IndexAnalysis(graph)).of(Entry(Site(graph.main.body.terminator.operand(0)), place))) == DATA
    )


def test_a_value_that_is_used_twice_is_followed_once():
    """A chain of doublings takes as many steps as it has sums, not two to the power of that."""
    lines = RUN.replace("%x =", "%x0 =") + "".join(
        f"%x{n + 1} = stablehlo.add %x{n}, %x{n} : $v\n" for n in range(STEPS)
    )  # fmt: skip
    followed = []
    original = AffineAnalysis.of

    def counted(self, entry):
        followed.append(entry)
        return original(self, entry)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(AffineAnalysis, "of", counted)
        form = element_of(lines + f"%r = stablehlo.reshape %x{STEPS} : ($v) -> $v")
    assert told(form) == (0, {0: 2**STEPS}, 1, 0)
    assert len(followed) < 10 * STEPS


STEPS = 8


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (np.arange(6), (0, (1,))),
        (5 - 2 * np.arange(6), (5, (-2,))),
        (3 * np.arange(4)[:, None] + np.arange(2) + 7, (7, (3, 1))),
        (np.full((2, 3), 4), (4, (0, 0))),
        (np.asarray(9), (9, ())),
        (np.asarray([[1, 2], [3, 5]]), None),
        (np.asarray([0, 1, 2, 4]), None),
        (np.asarray([2**64 - 2, 2**64 - 1], np.uint64), (2**64 - 2, (1,))),
        (np.asarray([-(2**63), 2**63 - 1]), (-(2**63), (2**64 - 1,))),
        (np.zeros((0,), np.int64), None),
    ],
)
def test_fitted(values, expected):
    """Base and strides are recovered exactly, for 64-bit numbers too, and only where every element fits."""
    assert fitted(values) == expected
