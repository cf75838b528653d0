"""Linear forms of index elements: for each op that the walk looks through, a hit and a near miss."""

import numpy as np
import pytest
from untyped_mlir import function, module

from hlo_lower.base.causes import Code
from hlo_lower.facts.forms.affine import AffineAnalysis, fit_strides
from hlo_lower.facts.forms.linear import Element, Linear, Normalized, Position, positions
from hlo_lower.facts.forms.places import Entry
from hlo_lower.facts.ranges.index_facts import IndexAnalysis
from hlo_lower.facts.values.site import Site
from hlo_lower.ir.reader import read

ARGUMENTS = "%a: i32, %v: 6xi32, %p: i1, %q: 6xi1, %open: ?xi32"
RUN = "%base = broadcast_in_dim %a, dims = [] -> 6xi32; %i = iota dim = 0 : 6xi32; %x = add %base, %i\n"
DATA = (0, {}, 0, 1)
IOTA, RUN_FORM = (0, {0: 1}, 0, 0), (0, {0: 1}, 1, 0)
WHILE = """%zero = constant 0 : i32
    %k, %r = while(%n = %zero, %w = %x) cond {
      %go = compare LT, %n, 5; return %go
    } do {
      %next = add %n, 1; BODY
    }"""
F = function("private @f", "%y: 6xi32", "%s = iota dim = 0 : 6xi32; %r = add %y, %s")


def element_of(lines, functions=F, value=lambda graph: graph.main.body.terminator.operand(0), arguments=ARGUMENTS):
    """The form of %r, or of another value of the module, at a symbolic place."""
    graph = read(module(arguments, lines) + functions)
    sizes = enumerate(value(graph).static_shape)
    place = tuple(Linear(0, {Position(n, size): 1}) if size > 1 else Linear(0) for n, size in sizes)
    return AffineAnalysis(IndexAnalysis(graph)).of(Entry(Site(value(graph)), place))


def told(form):
    """A form in short: the constant, the stride along each position, the number of bases, and of moving symbols."""
    strides = {s.dim: c for s, c in form.terms.items() if isinstance(s, Position)}
    others = [s for s in form.terms if not isinstance(s, Position)]
    moving = [s for s in others if positions([Linear(0, {s: 1})])]
    return form.constant, strides, len(others) - len(moving), len(moving)


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        # iota, even constants, sums, differences and products with a constant have a form
        ("%r = iota dim = 0 : 6xi32", IOTA),
        ("%r = add %base, %i", RUN_FORM),
        ("%r = subtract %base, %i", (0, {0: -1}, 1, 0)),
        ("%r = subtract %i, %i", (0, {}, 0, 0)),
        ("%r = add %i, %v", (0, {0: 1}, 0, 1)),
        ("%r = negate %i", (0, {0: -1}, 0, 0)),
        ("%r = multiply %i, 16", (0, {0: 16}, 0, 0)),
        ("%r = multiply 16, %i", (0, {0: 16}, 0, 0)),
        ("%r = multiply %v, 0", (0, {}, 0, 0)),
        ("%r = constant [9, 7, 5, 3, 1, -1] : 6xi32", (9, {0: -2}, 0, 0)),
        # a table that is not even, a product of two values and other ops are data
        ("%r = constant [2, 3, 4, 5, 6, 8] : 6xi32", DATA),
        ("%r = multiply %i, %base", DATA),
        ("%r = xor %i, %base", DATA),
        # ops that move elements change the place that is looked at; a place without a form is data
        ("%r = broadcast_in_dim %x, dims = [1] -> 3x6xi32", (0, {1: 1}, 1, 0)),
        ("%r = broadcast_in_dim %a, dims = [] -> 3x6xi32", (0, {}, 1, 0)),
        ("%r = reshape %x -> 1x6x1xi32", (0, {1: 1}, 1, 0)),
        ("%r = reshape %x -> 2x3xi32", (0, {0: 3, 1: 1}, 1, 0)),
        ("%y = iota dim = 1 : 2x3xi32; %r = reshape %y -> 6xi32", DATA),
        ("%y = iota dim = 2 : 2x1x3xi32; %r = reshape %y -> 2x3xi32", (0, {1: 1}, 0, 0)),
        ("%y = iota dim = 1 : 2x3xi32; %r = transpose %y, dims = [1, 0]", IOTA),
        ("%r = slice %x [1:6:2]", (1, {0: 2}, 1, 0)),
        ("%r = reverse %x, dims = [0]", (5, {0: -1}, 1, 0)),
        ("%y = iota dim = 1 : 2x3xi32; %r = reverse %y, dims = [0]", (0, {1: 1}, 0, 0)),
        ("%s = slice %x [2:6]; %t = slice %v [0:2]; %c = concatenate %t, %s, dim = 0; %r = slice %c [3:4]",
         (3, {}, 1, 0)),
        ("%r = concatenate %x, %x, dim = 0", DATA),
        ("%r = dynamic_slice %i, %a, sizes = [3]", RUN_FORM),
        ("%r = dynamic_slice %i, %a, sizes = [6]", IOTA),
        ("%r = dynamic_slice %open, %a, sizes = [3]", DATA),
        # of columns put together each is looked at for itself
        ("%c = reshape %x -> 6x1xi32; %d = reshape %v -> 6x1xi32; %e = concatenate %d, %c, dim = 1\n"
         "%r = slice %e [0:6, 1:2]", RUN_FORM),
        # clamps are looked through where the bounds cut nothing off: a clamped run is no run
        ("%r = minimum %i, 5", IOTA),
        ("%r = minimum %i, 4", DATA),
        ("%r = maximum %i, 0", IOTA),
        ("%r = maximum %i, 4", DATA),
        ("%r = clamp 0, %i, 5", IOTA),
        ("%r = clamp 0, %i, 4", DATA),
        ("%r = clamp 4, %i, 5", DATA),
        # what no operand tells apart from position to position is one base, whatever op makes it; data stays data
        ("%c = minimum %base, 20; %r = add %c, %i", RUN_FORM),
        # a known predicate is followed, one that is the same everywhere chooses a base, any other one makes data
        ("%yes = constant true : 6xi1; %r = select %yes, %x, %v", RUN_FORM),
        ("%no = constant false : 6xi1; %r = select %no, %v, %x", RUN_FORM),
        ("%r = select %q, %x, %x", RUN_FORM),
        ("%r = select %p, %x, %i", RUN_FORM),
        ("%pb = broadcast_in_dim %p, dims = [] -> 6xi1; %r = select %pb, %x, %i", RUN_FORM),
        ("%r = select %q, %x, %i", DATA),
        ("%r = select %p, %x, %v", DATA),
        ("%some = constant [true, true, false, true, true, true] : 6xi1; %r = select %some, %x, %v", DATA),
        # a barrier and a note on placement return what they take; another custom call is data
        ("%r = optimization_barrier %x", RUN_FORM),
        ("%r = custom_call @Sharding(%x) -> 6xi32", RUN_FORM),
        ("%r = custom_call @annotate_device_placement(%x) -> 6xi32", RUN_FORM),
        ("%r = custom_call @other(%x) -> 6xi32", DATA),
        # a constant is converted as arithmetic in the type would
        ("%k = constant 200 : 6xui8; %r = convert %k -> 6xi8", (-56, {}, 0, 0)),
        # a call is looked through, whatever other calls pass
        ("%r = call @f(%base) -> 6xi32; %other = call @f(%v) -> 6xi32; return %r", RUN_FORM),
        ("%r = call @f(%v) -> 6xi32; %other = call @f(%base) -> 6xi32; return %r", (0, {0: 1}, 0, 1)),
        # a branch chooses one base for all elements where the branches agree on what moves
        *(
            (f"%r = {op} {{ return %x }} {{ return {second} }}", expected)
            for second, expected in (("%x", RUN_FORM), ("%i", RUN_FORM), ("%v", DATA))
            for op in ("if(%p)", "case(%a)")
        ),
        (WHILE.replace("BODY", "return %next, %w"), RUN_FORM),
        # where each iteration adds one number to all elements, their distances stay; else it is data (trap 40)
        *(
            (WHILE.replace("BODY", f"{body}; return %next, %w2"), expected)
            for body, expected in (
                ("%w2 = reshape %w -> 6xi32", RUN_FORM),
                ("%w2 = add %w, 1", RUN_FORM),
                ("%s = broadcast_in_dim %n, dims = [] -> 6xi32; %w2 = subtract %w, %s", RUN_FORM),
                *((f"%w2 = {op}", DATA) for op in ("add %w, %i", "add %w, %w", "reverse %w, dims = [0]")),
                ("%w2 = reshape %v -> 6xi32", DATA),
            )
        ),
    ],
)  # fmt: skip
def test_one_op(lines, expected):
    """Each op is looked through as its comment says."""
    assert told(element_of(RUN + lines)) == expected


@pytest.mark.parametrize(
    ("before", "after", "expected", "width"),
    [
        ("i32", "i8", RUN_FORM, 8),  # modulo 256 it holds
        ("i32", "ui32", RUN_FORM, 32),
        ("i8", "i32", RUN_FORM, 8),  # it may have wrapped around: only modulo 256
        ("ui8", "i32", DATA, 32),  # what wrapped around lands inside again
        ("i8", "ui32", DATA, 32),
    ],
)
def test_convert_of_what_may_wrap_around(before, after, expected, width):
    """A sum that is converted holds modulo the narrower type; of an unsigned one nothing is left (trap 41)."""
    lines = RUN.replace("i32", before) + f"%r = convert %x -> 6x{after}"
    form = element_of(lines, arguments=f"%a: {before}")
    assert (told(form), form.width) == (expected, width)


def test_convert_of_a_sum_that_cannot_wrap_around_is_exact():
    """With a bounded base the sum stays in i8, so it is the same number in i32."""
    lines = "%n = clamp 0, %a, {}\n" + RUN.replace("%a", "%n").replace("i32", "i8") + "%r = convert %x -> 6xi32"
    assert [element_of(lines.format(high), arguments="%a: i8").width for high in (122, 123)] == [32, 8]


def test_what_is_added_after_a_narrow_sum_is_remembered():
    """Constants added in a wider type move what wrapped around by as much; another runtime value ends the form."""
    lines = "%n = convert %a -> i8\n" + RUN.replace("%a", "%n").replace("i32", "i8") + "%w = convert %x -> 6xi32\n"
    for op, constant in (("add 9, %w", 9), ("subtract %w, 9", -9)):
        form = element_of(lines + f"%r = {op}")
        assert (told(form), form.width, form.drift) == ((constant, {0: 1}, 1, 0), 8, 9)
    for near in ("add %w, %v", "add %w, %w", "subtract 9, %w", "multiply %w, 9", "negate %w"):
        assert told(element_of(lines + f"%r = {near}")) == DATA


@pytest.mark.parametrize(
    ("lines", "offset"),
    [
        ("%n = compare LT, %x, 0; %r = select %n, %up, %x", 10),
        ("%n = compare GE, %x, 0; %r = select %n, %x, %up", 10),
        ("%down = add %x, -7; %n = compare LT, %x, 0; %r = select %n, %down, %x", None),
        ("%n = compare GE, %x, 0; %r = select %n, %up, %x", None),
        ("%n = compare LE, %x, 0; %r = select %n, %up, %x", None),
        ("%n = compare LT, %x, 1; %r = select %n, %up, %x", None),
        ("%n = compare LT, %x, 0; %r = select %n, %x, %up", None),
        ("%n = compare LT, %x, 0; %r = select %n, %up, %i", None),
    ],
)
def test_normalisation(lines, offset):
    """select(x < 0, x + A, x) is one symbol around the form of x; other choices of moving values are data."""
    form = element_of(RUN + "%up = add %x, 10\n" + lines)
    [symbol] = form.terms
    if offset is None:
        assert isinstance(symbol, Element)
        assert told(form) == DATA
    else:
        assert isinstance(symbol, Normalized)
        assert (told(symbol.inner), symbol.offset) == (RUN_FORM, offset)


@pytest.mark.parametrize(("added", "offset"), [((100, 100, 100), 44), ((100, 100), None), ((50,), 50)])
def test_an_offset_is_what_the_type_makes_of_it(added, offset):
    """In i8 three times 100 is 44, and two times 100 is negative: the offset is counted as the type counts."""
    lines = RUN.replace("i32", "i8") + "%up0 = optimization_barrier %x\n"
    lines += "".join(f"%up{n + 1} = add %up{n}, {number}\n" for n, number in enumerate(added))
    lines += f"%n = compare LT, %x, 0; %r = select %n, %up{len(added)}, %x"
    [symbol] = element_of(lines, arguments="%a: i8").terms
    assert (symbol.offset if isinstance(symbol, Normalized) else None) == offset


@pytest.mark.parametrize(
    ("functions", "calls", "expected"),
    [
        (F, ("%x", "%x"), RUN_FORM),
        (F, ("%x", "%i"), RUN_FORM),  # two runs at different bases: a run at some base
        (F, ("%x", "%down"), DATA),
        (F, ("%x", "%v"), DATA),
        # a public function, one without a call and one that a composite names may be given anything
        (F.replace("private", "public"), ("%x",), DATA),
        (F, (), DATA),
        (F, ("%x", '%d = composite "my.f" %x {decomposition = @f} -> 6xi32'), DATA),
    ],
)
def test_an_argument_is_what_all_call_sites_agree_on(functions, calls, expected):
    """What moves with the position has to be the same at every call; the rest becomes a base (trap 40)."""
    lines = [call if "=" in call else f"%c{n} = call @f({call}) -> 6xi32" for n, call in enumerate(calls)]
    lines = "\n".join([RUN, "%down = negate %i", *lines, "return %v"])
    assert told(element_of(lines, functions, lambda graph: graph.functions["f"].body.argument(0))) == expected


def test_branches_on_data_are_no_base_at_the_first_position():
    """Where data moves in each branch, the result is not its first element plus what moves: the two differ by it."""
    lines = """%y = if(%p) { %s = add %v, 1; return %s } { %t = add %v, 2; return %t }
        %first = slice %y [0:1]; %back = broadcast_in_dim %first, dims = [0] -> 6xi32
        %e = subtract %y, %back; %r = subtract %e, %v"""
    assert told(element_of(lines)) != (0, {}, 0, 0)


def test_a_chain_that_is_too_long_is_not_followed():
    """Beyond a hundred steps an element is data, and the reason says so; a shorter one is followed."""

    def chain(steps):
        lines = "".join(f"%x{n + 1} = negate %x{n}\n" for n in range(steps))
        return element_of(f"{RUN}%x0 = add %base, %i\n{lines}%r = reshape %x{steps} -> 6xi32")

    assert told(chain(80)) == RUN_FORM
    form = chain(120)
    assert told(form) == DATA
    assert next(iter(form.terms)).why == Code.TOO_FAR(100)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (5 - 2 * np.arange(6), (5, (-2,))),
        (3 * np.arange(4)[:, None] + np.arange(2) + 7, (7, (3, 1))),
        (np.full((2, 3), 4), (4, (0, 0))),
        (np.asarray([[1, 2], [3, 5]]), None),
        (np.asarray([2**64 - 2, 2**64 - 1], np.uint64), (2**64 - 2, (1,))),
        (np.asarray([-(2**63), 2**63 - 1]), (-(2**63), (2**64 - 1,))),
        (np.zeros((0,), np.int64), None),
        # nothing of the shape of a constant of one value is made: a Tebi of elements is one number
        (np.broadcast_to(np.int8(3), (1 << 20, 1 << 20)), (3, (0, 0))),
    ],
)
def test_fitted(values, expected):
    """Base and strides are recovered exactly, for 64-bit numbers too, and only where every element fits."""
    assert fit_strides(values) == expected


def test_long_constants_are_fitted_in_parts(monkeypatch):
    """An even table is recognised part by part, and one that is uneven in its middle is not."""
    monkeypatch.setattr("hlo_lower.facts.forms.affine.MAX_PART", 7)
    values = 5 + 3 * np.arange(40).reshape(8, 5)
    assert fit_strides(values) == (5, (15, 3))
    values[4, 2] += 1
    assert fit_strides(values) is None
