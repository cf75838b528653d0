"""Sizes that are not known: what the laws say at any of them is what XLA computes there, and nothing is derived that is
wrong at one of them."""

import inspect
import re
import sys
import types
from contextlib import suppress
from itertools import product

import numpy as np
import pytest

pytest.importorskip("z3")

from evaluated import Evaluated, bits_of
from test_laws import DYNAMIC, drawn
from untyped_mlir import module

import hlo_lower as hl
from hlo_lower.ir import mlir
from hlo_lower.ir.shapes.bind import bind_module
from hlo_lower.ir.shapes.given_sizes import SizesError
from hlo_lower.verify.pull import (
    derive,
    dynamic,
    elementwise,
    folding,
    loops,
    moving,
    positions,
    prover,
    quotients,
    shapes,
    validity,
)
from hlo_lower.verify.pull.beyond import Beyond
from hlo_lower.verify.pull.sizes import extent
from hlo_lower.verify.read.program import Program
from hlo_lower.verify.run import Executable, read_signature

derivations = sys.modules["hlo_lower.verify.pull.derive"]

SHAPES = [
    dict(
        zip(("arg0.0", "arg1.0", "arg1.1", "arg2.0", "arg3.0", "arg5.1", "arg6.0"), (n, a, b, m, m, b, e), strict=True)
    )
    for n, a, b, m, e in ((2, 3, 2, 4, 3), (0, 1, 3, 2, 1), (1, 0, 1, 0, 1), (3, 2, 0, 1, 1))
]


def bound(text, sizes):
    """A module at sizes by place, as text."""
    return mlir.print_module(bind_module(mlir.parse_module(text), sizes))


def inputs_of(text, seed=0):
    """Drawn arguments of a module."""
    rng = np.random.default_rng(seed)
    return [drawn(aval, rng) for aval in read_signature(mlir.parse_module(text)).arguments]


def wrong_elements(text, choices):
    """Yield what the laws say otherwise than XLA computes, at some sizes."""
    programs = (Program(mlir.parse_module(text)),) * 2
    valid = derivations._valid(programs, 60, "xla")
    how = {"sizes": derivations._sizes, "assumptions": valid.assumptions}
    law = prover.Prover(programs, derivations._law, seconds=60, oob="xla", chain=1, **how)
    law.invariant |= valid.invariant
    values = programs[0].entries["main"].returned
    kinds = [law.type_of_function(0, value)[0] for value in values]
    places = [law.positions.place(f"p{k}.", shape) for k, shape in enumerate(kinds)]
    terms = [law.element(0, value, place) for value, place in zip(values, places, strict=True)]
    for sizes in choices:
        here = bound(text, sizes)
        inputs = inputs_of(here)
        evaluated = Evaluated(law, inputs)
        for k, expected in enumerate(Executable(here, "quick").run(inputs)):
            shape = tuple(evaluated(extent(n), {}) for n in kinds[k])
            if shape != expected.shape:
                yield k, sizes, shape, expected.shape
                continue
            names = [term.decl().name() for term in places[k]]
            for at in product(*map(range, shape)):
                told = evaluated(terms[k], dict(zip(names, at, strict=True)))
                if told != bits_of(expected[at], terms[k].size()):
                    yield k, sizes, at, expected[at]


def test_a_law_says_what_xla_computes_at_any_sizes():
    """Shapes and elements, of each op that takes its sizes from values, and of those that have any."""
    assert list(wrong_elements(DYNAMIC, SHAPES)) == []


# --- pairs ---

N = "%n = get_dimension_size %x, dim = 0; %s = reshape %n -> 1xi32; %z = constant 0 : i32; %one = constant 1 : i32"
V = "%v0 = constant [0] : 1xi32; %v1 = constant [1] : 1xi32"
X, XY = "%x: ?xi32", "%x: ?xi32, %y: ?xi32"


def of(body, arguments=X, returned="%r"):
    """A module in which the size of %x, and some constants, have names."""
    return module(arguments, f"{N}\n{V}\n{body}", returned)


def where(test, then="%w = negate %x", arguments=X):
    """`then` where a number of elements passes a test, else x."""
    return of(f"%t = {test}; {then}; %r = select %t, %w, %x", arguments)


def loop(body, limit="%n", carried="%x", kind="?xi32"):
    """A loop from 0 to a limit; its body makes %b of %i and %a."""
    return of(
        f"""%m = add %n, %one
        %l:2 = while(%i = %z, %a = {carried}) cond {{ %c = compare LT, %i, {limit}; return %c }} do {{
          %j = add %i, %one
          {body}
          return %j, %b
        }}""",
        returned="%l#1",
    )


def slice_of(begin, end, whole="%x"):
    """A slice by values."""
    return f"real_dynamic_slice {whole}, {begin}, {end}, %v1 : (?xi32, 1xi32, 1xi32, 1xi32) -> ?xi32"


def written(width):
    """A loop that writes slices of x over x."""
    more = f"%b1 = reshape %i -> 1xi32; %q = minimum %n, {width}; %k = reshape %q -> 1xi32; %e1 = add %b1, %k"
    return loop(f"{more}; %d = {slice_of('%b1', '%e1')}; %b = dynamic_update_slice %a, %d, %i")


def fold(begin, numbers="%k = abs %x"):
    """A product of floats that begins with a number."""
    more = f"{numbers}; %f = convert %k -> ?xf32; %f0 = constant 0.0 : f32; %f1 = constant 1.0 : f32"
    line = "reduce(%f init: %g) applies stablehlo.multiply across dimensions = [0] : (?xf32, f32) -> f32"
    return of(f"{more}; {begin}; %r = {line}")


def asserts(test):
    """x, where an assertion holds."""
    call = 'custom_call @shape_assertion(%t, %n) {api_version = 2 : i32, error_message = "", has_side_effect = true}'
    return of(f"%t = {test}; {call} : (i1, i32) -> ()", returned="%x")


def writes(count, body="assign"):
    """A scatter of 5 to place 2, as often as x has elements or once if it has more than a number."""
    if count is None:
        more = "%s2 = concatenate %s, %v1, dim = 0; %two = constant 2 : i32; %five = constant 5 : i32"
        more += "; %i = dynamic_broadcast_in_dim %two, %s2, dims = [] -> ?x1xi32"
        more += "; %u = dynamic_broadcast_in_dim %five, %s, dims = [] -> ?xi32"
        return of(f"{more}; %r = scatter(%y, %i, %u) <inserted=[0], to=[0], ivd=1> {{{body}}}", "%x: ?xi32, %y: 5xi32")
    more = f"%five = constant [5] : 1xi32; %w = dynamic_update_slice %y, %five, 2; %t = compare GT, %n, {count}"
    return of(f"{more}; %r = select %t, %w, %y", "%x: ?xi32, %y: 5xi32")


def reduced(op, body, init, kind="i32"):
    """A reduce of as many elements as x has."""
    line = f"reduce(%b init: %k) applies stablehlo.{op} across dimensions = [0] : (?x{kind}, {kind}) -> {kind}"
    return of(f"{body}; %k = constant {init} : {kind}; %r = {line}")


ALL = "%c = constant true : i1; %b = dynamic_broadcast_in_dim %c, %s, dims = [] -> ?xi1"
POSITIVE = "%o = dynamic_broadcast_in_dim %one, %s, dims = [] -> ?xi32; %b = maximum %x, %o"
SCATTER = "%x: ?xf32, %i: ?x1xi32, %u: ?xf32"
ADDING = module(SCATTER, "%r = scatter(%x, %i, %u) <inserted=[0], to=[0], ivd=1> {add}")
BRANCH = of(
    "%t = compare GE, %n, 3\n"
    "%r = if(%t) {%q = slice %x [0:3] -> 3xi32; %w = dynamic_update_slice %x, %q, %z; return %w} {return %x}"
)
"""Three elements of x over x, where it has so many: XLA refuses a slice of more, also where it is not made."""
ITSELF = of("", returned="%x")
TURNED = "%m = negate %x; %k = maximum %m, %x"


def product_of(kind):
    """The product of two sizes, computed in a type."""
    more = f"%m = get_dimension_size %y, dim = 0; %a = convert %n -> {kind}; %b = convert %m -> {kind}"
    return of(f"{more}; %p = multiply %a, %b; %r = convert %p -> i64", XY)


def iota_of(kind):
    """As many numbers as x has elements, where the size goes through a type."""
    return of(f"%a = convert %n -> {kind}; %b = reshape %a -> 1x{kind}; %r = dynamic_iota %b, dim = 0 -> ?xi32")


def thirds(test):
    """Elements of rows of three, but 0 where a test of their numbers %i, of %q = %i / 3 and %e = %i rem 3 holds."""
    more = "%k = constant [3] : 1xi32; %m = multiply %s, %k; %f = dynamic_reshape %x, %m -> ?xi32"
    more += "; %i = dynamic_iota %m, dim = 0 -> ?xi32; %three = constant 3 : i32"
    more += "; %d = dynamic_broadcast_in_dim %three, %m, dims = [] -> ?xi32; %q = divide %i, %d; %e = remainder %i, %d"
    more += "; %last = subtract %n, %one; %l = dynamic_broadcast_in_dim %last, %m, dims = [] -> ?xi32"
    more += "; %two = subtract %three, %one; %c = dynamic_broadcast_in_dim %two, %m, dims = [] -> ?xi32"
    return of(f"{more}; %o = subtract %f, %f; %t = {test}; %r = select %t, %o, %f", "%x: ?x3xi32")


WRONG = {
    "negated at 7": (ITSELF, where("compare EQ, %n, 7"), {"arg0.0": 7}),
    "negated from 1001 on": (ITSELF, where("compare GT, %n, 1000"), {"arg0.0": 1001}),
    "cut off at 1000": (ITSELF, of(f"%k = minimum %n, 1000; %e = reshape %k -> 1xi32; %r = {slice_of('%v0', '%e')}"),
                        {"arg0.0": 1001}),
    "another greatest of none": (reduced("maximum", POSITIVE, "0"), reduced("maximum", POSITIVE, "-5"), {"arg0.0": 0}),
    "all of none": (reduced("or", ALL, "false", "i1"), of("%r = constant true : i1"), {"arg0.0": 0}),
    "a product of none": (fold("%g = convert %f1 -> f32"),
                          fold("%t = compare GT, %n, 0; %g = select %t, %f1, %f0", TURNED),
                          {"arg0.0": 0}),
    "no round": (loop("%b = minimum %one, %one", carried="%z"), of("%r = convert %one -> i32"), {"arg0.0": 0}),
    "a round more": (loop("%b = add %a, %one", carried="%z"), loop("%b = add %a, %one", "%m", "%z"), {"arg0.0": 3}),
    "no write": (writes(None), writes(-1), {"arg0.0": 0}),
    "sizes of two": (of("%r = convert %n -> i32", XY), of("%r = get_dimension_size %y, dim = 0", XY),
                     {"arg0.0": 1, "arg1.0": 2}),
    "a wrap": (product_of("i64"), product_of("i32"), None),
    "a size in i8": (iota_of("i32"), iota_of("i8"), {"arg0.0": 128}),
    "beyond in the last round": (ITSELF, written(2), None),
    "a branch that is too large": (ITSELF, BRANCH, {"arg0.0": 2}),
    "a loop that cuts off": (ITSELF, loop(f"%k = minimum %s, %v1; %b = {slice_of('%v0', '%k', '%a')}"),
                             {"arg0.0": 2}),
    "an assertion more": (asserts("compare LT, %n, 101"), asserts("compare LT, %n, 100"), {"arg0.0": 100}),
    "never valid": (asserts("compare LT, %n, 0"), where("compare EQ, %n, 7"), None),
    "the last row": (thirds("compare GT, %q, %l"), thirds("compare GE, %q, %l"), {"arg0.0": 2}),
    "the last column": (thirds("compare GT, %e, %c"), thirds("compare GE, %e, %c"), {"arg0.0": 2}),
    "bits of floats": (of("%a = constant 6.0 : f32; %b = constant 3.0 : f32; %r = divide %a, %b"),
                       of("%r = constant 0x00000001 : f32"), {"arg0.0": 1}),
    "the lowest bit": (of("%r = convert %x -> ?xi1"),
                       of("%b = dynamic_broadcast_in_dim %one, %s, dims = [] -> ?xi32; %c = and %x, %b\n"
                          "%r = convert %c -> ?xi1"), {"arg0.0": 8}),
    "dims exchanged": (module("%x: ?x?xi32", "%r = transpose %x, dims = [1, 0] : (?x?xi32) -> ?x?xi32"),
                       module("%x: ?x?xi32", "%a = get_dimension_size %x, dim = 0\n"
                              "%b = get_dimension_size %x, dim = 1; %p = reshape %b -> 1xi32\n"
                              "%q = reshape %a -> 1xi32; %s = concatenate %p, %q, dim = 0\n"
                              "%r = dynamic_reshape %x, %s -> ?x?xi32"), {"arg0.0": 2, "arg0.1": 3}),
    "8 of 8": (*(m.replace("tensor<?xi32>", "tensor<?xi32, #stablehlo.bounds<8>>")
                 for m in (ITSELF, where("compare EQ, %n, 8"))), None),
}  # fmt: skip
"""Two modules, and sizes at which they differ or the second one is not valid; None where these cannot be run."""

RIGHT = {
    "negated nowhere": (ITSELF, where("compare LT, %n, 0")),
    "slices of x over x": (ITSELF, written(1)),
    "writes": (writes(None), writes(0)),
    "no row behind the last": (thirds("compare GT, %q, %l"), thirds("compare LT, %i, %q")),
    "an assertion less": (asserts("compare GE, %n, 1"), where("compare EQ, %n, 0")),
    "lowered": (ADDING, hl.lower(ADDING).text),
    "bits there and back": (
        ITSELF,
        of("%f = bitcast_convert %x -> ?xf32; %b = optimization_barrier %f : ?xf32\n%r = bitcast_convert %b -> ?xi32"),
    ),
}
"""Two modules that are equal at all sizes."""

UNFIT = {
    "add": "%r = add %x, %y",
    "select": "%t = compare LT, %y, %y; %r = select %t, %x, %x",
    "a size of the type": f"%r = {slice_of('%v0', '%s').replace('-> ?xi32', '-> 4xi32')}",
    "broadcast": "%m = get_dimension_size %y, dim = 0; %k = reshape %m -> 1xi32\n"
                 "%r = dynamic_broadcast_in_dim %x, %k, dims = [0] -> ?xi32",
    "reshape": "%m = get_dimension_size %y, dim = 0; %k = reshape %m -> 1xi32; %r = dynamic_reshape %x, %k -> ?xi32",
    "iota": "%m = subtract %n, %one; %k = reshape %m -> 1xi32; %r = dynamic_iota %k, dim = 0 -> ?xi32",
    "slice": "%r = slice %x [0:3] -> 3xi32",
    "real_dynamic_slice": f"%r = {slice_of('%v1', '%s')}",
    "real_dynamic_slice beyond": "%p = minimum %n, 8; %m = add %p, %one\n"
                                 f"%k = reshape %m -> 1xi32; %r = {slice_of('%v1', '%k')}",
    "dynamic_slice": "%r = dynamic_slice %x, %z, sizes = [3]",
    "dynamic_update_slice": "%r = dynamic_update_slice %x, %y, %z",
    "concatenate": "%r = concatenate %x, %x, dim = 0 -> ?xi32",
    "pad": "%r = pad %x, %z, low = [-2], high = [0], interior = [0] -> ?xi32",
    "gather": '%r = "stablehlo.gather"(%x, %v0) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0], '
              "start_index_map = [0]>, slice_sizes = array<i64: 1>}> : (?xi32, 1xi32) -> i32",
    "scatter": "%i = reshape %v0 -> 1x1xi32; %r = scatter(%x, %i, %y) <inserted=[0], to=[0], ivd=1> {add}",
    "window": "%r = scatter(%x, %v0, %y) <window=[0], to=[0]> {add}",
    "dot_general": "%r = dot_general %x, %y, contracting_dims = [0] x [0] -> i32",
    "top_k": "%r:2 = chlo.top_k(%x, k = 3) : ?xi32 -> (3xi32, 3xi32)",
    "sort": "%r:2 = sort(%x, %y) <dimension = 0> {%a, %b, %c, %d: %t = compare LT, %a, %b; return %t}",
}  # fmt: skip
"""Ops that are not valid at some sizes of x and y, though nothing needs them."""


def found(first, second):
    """What is derived of two modules, in a few seconds."""
    return derive(first, second, seconds=1)


def differ(first, second, sizes):
    """Whether two modules differ at some sizes, as XLA runs them, or the second one alone has no place there."""
    text = bound(first, sizes)
    try:
        other = bound(second, sizes)
    except SizesError:
        return True
    for seed in range(3):
        inputs = inputs_of(text, seed)
        results = [Executable(one, "quick").run(inputs) for one in (text, other)]
        if not all(map(np.array_equal, *results)):
            return True
    return False


@pytest.mark.parametrize("name", WRONG)
def test_what_differs_at_one_size_is_not_derived(name):
    """It differs there, and is equal at others or could not be told apart by a few."""
    first, second, sizes = WRONG[name]
    assert not found(first, second)
    assert sizes is None or differ(first, second, sizes)


@pytest.mark.parametrize("name", RIGHT)
def test_what_is_derived_for_all_sizes_is_equal_at_some(name):
    """At sizes of 0 and 1, and a few larger ones, XLA computes the same."""
    first, second = RIGHT[name]
    assert found(first, second)
    symbols = [n for n, text in enumerate(re.search(r"@main\((.*?)\) ->", first).group(1).split(", ")) if "?" in text]
    rng = np.random.default_rng(len(name))
    for least in (0, 1, 3, 8):
        sizes = {f"arg{n}.0": least for n in symbols}
        if len(symbols) > 1:  # indices and updates are alike
            sizes |= dict.fromkeys(("arg1.0", "arg2.0"), int(rng.integers(0, 9)))
        try:
            bound(first, sizes)
        except SizesError:
            assert least == 0  # the first version has no place there
        else:
            assert not differ(first, second, sizes)


@pytest.mark.parametrize("name", UNFIT)
def test_the_second_version_has_to_be_valid(name):
    """Of an op that nothing needs and that fits at some sizes alone nothing is derived."""
    second = of(UNFIT[name], XY, "%x")
    assert found(of("", XY, "%x"), second).reason.endswith("whose sizes may not fit")
    assert found(second, of("", XY, "%x"))  # what the first one needs, it has


# --- broken laws ---

BROKEN = [
    (dynamic, "number(0) if is_one(size) else start + term * stride", "start + term", "elements"),
    (dynamic, "z3.ZeroExt(low.size() - POSITION, term) - low)", "z3.ZeroExt(low.size() - POSITION, term))", "elements"),
    (moving, "choose(z3.simplify(extent(size) == 1), number(0), term)", "term", "elements"),
    (moving, "extent(size) - extent(sizes[dim])", "extent(size)", "elements"),
    (positions, "self.split(whole, [to[d] for d in theirs])", "[whole] * len(theirs)", "elements"),
    (positions, "found[theirs.pop(end)] = place[mine.pop(end)]", "theirs.pop(end), mine.pop(end)", "elements"),
    (shapes, "z3.UDiv(length - 1, stride) + 1", "z3.UDiv(length, stride)", "elements"),
    (shapes, "low + own + holes + high)", "low + own + holes)", "elements"),
    (shapes, "z3.Extract(POSITION - 1, 0, total)", "sizes[dim]", "elements"),
    (loops, "last > first, last - first, number", "last > first, last, number", "elements"),
    (folding, "z3.And(test, extent(total) != 0)", "test", "no write"),
    (folding, "z3.simplify(extent(total) != 0)", "test", "all of none"),
    (prover, "all(self.same([pair]) for pair in pairs) if self._sizes is not None else bool(self.same(pairs))",
     "bool(self.same(pairs))", "a product of none"),
    (prover, "found is None and self._are_equal(term, other.term)", "found is None", "sizes of two"),
    (validity, "if not all(map(is_same, before, after)):", "if False:", "a loop that cuts off"),
    (validity, "if not prover.is_possible():", "if False:", "never valid"),
    (validity, "return [prover.pull(At(prover, frame, DEPTH, op, 0, ()).operand(0, ()))]", "return []",
     "an assertion more"),
    (validity, "test if _is_of_arguments(test) else z3.Implies(when, test)", "z3.Implies(when, test)",
     "a branch that is too large"),
    (validity, "z3.ULE(symbol(place, d), number(most))", "z3.ULT(symbol(place, d), number(most))", "8 of 8"),
    (shapes, "z3.And([z3.ULT(term, number(LIMIT, bits)) for term in wide])", "z3.BoolVal(True)", "iota"),
    (shapes, "[test for other in full[1:] for test in _equal(first, other)]", "[]",
     "add"),
    (shapes, "valid.append(z3.Or(extent(size) == 1, extent(size) == sizes[dim]))", "pass", "broadcast"),
    (shapes, "products[0] == products[1]", "z3.BoolVal(True)", "reshape"),
    (shapes, "_at_most([b for _, b, _ in rows], shape)", "[]", "slice"),
    (shapes, "z3.ULE(reach, whole)", "z3.BoolVal(True)", "real_dynamic_slice"),
    (shapes, "z3.ULE(wide, whole)", "z3.BoolVal(True)", "real_dynamic_slice beyond"),
    (shapes, "_at_most(sizes, at.operand_type(0)[0])", "[]", "dynamic_slice"),
    (shapes, "_at_most(at.operand_type(1)[0], shape)", "[]", "dynamic_update_slice"),
    (shapes, "z3.ULT(total, number(LIMIT, bits))", "z3.BoolVal(True)", "concatenate"),
    (shapes, "z3.ULT(whole, number(LIMIT, bits))", "z3.BoolVal(True)", "pad"),
    (shapes, "z3.ULE(size, extent(whole))", "z3.BoolVal(True)", "gather"),
    (shapes, "_equal(_without(updates, numbers.update_window_dims), _without(indices, [numbers.index_vector_dim]))",
     "[]", "scatter"),
    (shapes, "_at_most([updates[d] for d in numbers.update_window_dims], whole)", "[]", "window"),
    (shapes, "valid += _equal(*(", "_equal(*(", "dot_general"),
    (shapes, "for k in range(1, len(at.op.inputs))", "for k in ()", "sort"),
    (quotients, "z3.ULT(term, _product(rest))", "z3.ULT(term + 1, _product(rest))", "the last row"),
    (quotients, "z3.ULT(part.term, part.term.arg(1))", "z3.ULT(part.term + 1, part.term.arg(1))", "the last column"),
    (elementwise, "z3.UDiv(x, y) if name", "z3.UDiv(x + 1, y) if name", "elements"),
    (validity, "term == number(size) for size", "z3.BoolVal(True) for size", "a size of the type"),
]  # fmt: skip
"""Laws broken in one place, and the pair that is derived then."""


def broken(monkeypatch, module, old, new):
    """Put what a module says with one text in the place of another wherever its functions and classes are used."""
    source = inspect.getsource(module)
    assert source.count(old) == 1, (old, source.count(old))
    fake = types.ModuleType(module.__name__)
    exec(compile(source.replace(old, new), module.__file__, "exec"), fake.__dict__)
    own = {name: value for name, value in vars(module).items() if getattr(value, "__module__", "") == module.__name__}
    other = {id(value): vars(fake)[name] for name, value in own.items()}
    for name, user in list(sys.modules.items()):
        if name.startswith("hlo_lower.verify.pull"):
            for key, value in list(vars(user).items()):
                if id(value) in other:
                    monkeypatch.setattr(user, key, other[id(value)])
                elif isinstance(value, dict) and key.isupper():
                    for op in [op for op, law in value.items() if id(law) in other]:
                        monkeypatch.setitem(value, op, other[id(value[op])])


@pytest.mark.parametrize(("module", "old", "new", "name"), BROKEN)
def test_a_broken_law_of_sizes_is_seen(module, old, new, name, monkeypatch):
    """What it says is not what XLA computes, or a pair that differs is derived."""
    broken(monkeypatch, module, old, new)
    if name == "elements":
        with suppress(Beyond):
            assert next(wrong_elements(DYNAMIC, SHAPES), None) is not None
    else:
        first, second = WRONG[name][:2] if name in WRONG else (of("", XY, "%x"), of(UNFIT[name], XY, "%x"))
        assert derivations.derive(first, second, seconds=4)
