"""`prove_equal`: what is proved, what is refuted with inputs, what is neither, and what `unique_indices` promises."""

import importlib.util

import numpy as np
import pytest

pytest.importorskip("z3")

from untyped_mlir import module

from hlo_lower.base.errors import InputError
from hlo_lower.verify.proof import prove_equal
from hlo_lower.verify.run import Executable


def computed(body, kind="2xf32", returned="%r"):
    """A module of three tensors of a type."""
    return module(f"%a: {kind}, %b: {kind}, %c: {kind}", body, returned)


LEFT, RIGHT = computed("%x = add %a, %b; %r = add %x, %c"), computed("%x = add %b, %c; %r = add %a, %x")
SINH = "%{} = chlo.{} %a : tensor<2xf32> -> tensor<2xf32>; "
TWICE = SINH.format("x", "sinh") + "%r = add %x, %x"
APART = SINH.format("x", "sinh") + SINH.format("y", "{}") + "%r = add %y, %x"
SUMMED = "%t = multiply %x, %k; %s = add %t, %y"


def reduced(region=SUMMED, around="%k = constant 2.0 : f32"):
    """A reduction of floats by a region that reads a value from around it."""
    body = f"{around}; %r = reduce(%a, %z) <dimensions = array<i64: 0>> {{%x, %y: {region}; return %s}} -> f32"
    return module("%a: 4xf32, %z: f32, %w: f32", body, "%r")


ROUNDED = "%two = constant 2 : 2xi8; "
STRAIGHT = "%x = optimization_barrier %a; %z = constant 0.0 : f32; "
ALONG = "%r = reduce(%x init: %z) applies stablehlo.add across dimensions = [{}]"


def sort(is_stable, more=""):
    """A module that sorts keys with values, perhaps with something else besides."""
    values = "%a, %b" + more
    names = ", ".join(f"%p{k}, %q{k}" for k in range(values.count("%")))
    body = f"""%s:{values.count("%")} = sort({values}) <dimension = 0 : i64, is_stable = {is_stable}> {{
      {names}: %l = compare LT, %p0, %q0, SIGNED; return %l}}
    %r = negate %s#1"""
    return module("%a: 2xi8, %b: 2xf32", body, "%r")


SHAPED = "%a: 2x3xf32"
CASES = [
    pytest.param(
        *(LEFT, computed("%dead = add %c, %c; %y = add %a, %b; %r = add %y, %c"), "proved"),
        id="other names, a dead operation and another order of lines",
    ),
    pytest.param(
        *(computed(TWICE), computed(APART.format("sinh")), "proved"),
        id="an elementwise op of equal operands",
    ),
    pytest.param(
        *(
            computed(TWICE),
            computed(APART.format("cosh")),
            "refuted",
        ),
        id="another elementwise op",
    ),
    pytest.param(
        *(computed("%x = add %a, %b; %r = add %x, %c", "2xi8"), computed("%x = add %c, %b; %r = add %x, %a", "2xi8")),
        "proved",
        id="an integer sum in another order",
    ),
    # which loses the sign of -0, one of the values that are drawn
    pytest.param(
        *(
            module("%a: 2xf32, %b: i1", f"%z = constant 0.0 : 2xf32; {body}", "%r")
            for body in ("%y = select %b, %a, %z; %r = add %a, %y", "%x = add %a, %a; %r = select %b, %x, %a")
        ),
        "refuted",
        id="a zero that is added",
    ),
    # a reduction of floats is a function of its region and of what it reads
    pytest.param(reduced(), reduced(SUMMED.replace("%t", "%other")), "proved", id="a reduction by other names"),
    pytest.param(reduced(), reduced(SUMMED.replace("add", "subtract")), "refuted", id="by another op"),
    pytest.param(reduced(), reduced(around="%k = constant 3.0 : f32"), "refuted", id="by another constant around"),
    # XLA does not run such a region
    pytest.param(reduced(), reduced(SUMMED.replace("%k", "%w"), ""), "doubted", id="by an argument around"),
    # what a sort that is not stable does with ties is open: one with more operands may do something else
    pytest.param(sort("true"), sort("true", ", %b"), "proved", id="a stable sort of more"),
    pytest.param(sort("false"), sort("false"), "proved", id="a sort that is not stable, and itself"),
    pytest.param(sort("false"), sort("false", ", %b"), "doubted", id="one of more"),
    # the order of a reduce is open
    pytest.param(*[module(SHAPED, STRAIGHT + ALONG.format(1), "%r")] * 2, "proved", id="a sum, and itself"),
]


@pytest.mark.parametrize(("one", "other", "status"), CASES)
def test_what_is_proved_refuted_and_doubted(one, other, status):
    result = prove_equal(one, other)
    assert (result.status, bool(result)) == (status, status == "proved")


def test_a_float_sum_over_a_transposed_operand_is_not_proved():
    turned = STRAIGHT.replace("optimization_barrier %a", "transpose %a, dims = [1, 0]") + ALONG.format(0)
    one, other = (module(SHAPED, body, "%r") for body in (STRAIGHT + ALONG.format(1), turned))
    assert prove_equal(one, other).status != "proved"


def test_a_float_sum_in_another_order_is_refuted_by_a_run():
    """Floats are not associative, and the inputs of the refutation show it when they are run."""
    result = prove_equal(LEFT, RIGHT)
    assert result.status == "refuted"
    [first], [second] = (Executable(text, "quick").run(result.inputs) for text in (LEFT, RIGHT))
    assert not np.array_equal(first, second, equal_nan=True)


def test_a_float_sum_with_its_terms_exchanged_is_doubted():
    """That addition commutes is not known of an uninterpreted function, and no run differs."""
    result = prove_equal(computed("%r = add %a, %b"), computed("%r = add %b, %a"))
    assert (result.status, len(result.inputs) > 1) == ("doubted", True)
    assert "does not show when it is run" in result.reason


def test_an_integer_overflow_is_found():
    """(a + b) / 2 is not a / 2 + b / 2: the inputs say where."""
    one = computed(ROUNDED + "%x = add %a, %b; %r = divide %x, %two", "2xi8")
    other = computed(ROUNDED + "%x = divide %a, %two; %y = divide %b, %two; %r = add %x, %y", "2xi8")
    result = prove_equal(one, other)
    assert result.status == "refuted"
    assert [a.dtype for a in result.inputs] == [np.dtype(np.int8)] * 3


LARGE = "%r = broadcast_in_dim %a, dims = [1] -> 9999x2xf32; %q = negate %r"
RANDOM = "%s = constant 2 : 1xi64; %z = constant 0.0 : f32; %r = rng %z, %z, %s, distribution = UNIFORM -> 2xf32"
ENDLESS = "%r = while(%v = %a) cond { %t = constant true : i1; return %t } do { return %v }"
UNKNOWN = {
    "an operation that is not known": (computed("%r = custom_call @f(%a) -> 2xf32"), "stablehlo.custom_call @f"),
    "a large tensor": (computed(LARGE), "a tensor of more than 4096 elements"),
    "random numbers": (computed(RANDOM), "stablehlo.rng"),
    "a loop without an end": (computed(ENDLESS), "a loop of too many rounds"),
    "a dynamic shape": (module("%a: ?xf32", "%r = negate %a", "%r"), "a value of type tensor<?xf32>"),
}


@pytest.mark.parametrize("name", UNKNOWN)
def test_what_is_beyond_is_unknown_with_a_reason(name):
    """Whatever is not known is never proved, not even against itself."""
    text, reason = UNKNOWN[name]
    result = prove_equal(text, text)
    assert (result.status, result.reason) == ("unknown", reason)


def test_other_signatures_and_no_time_are_unknown():
    """Two modules of other arguments are not compared, and a proof that has no time says so."""
    result = prove_equal(LEFT, module("%a: 2xf32", "%r = add %a, %a", "%r"))
    assert (result.status, result.reason) == ("unknown", "arguments of other types")
    result = prove_equal(LEFT, RIGHT, timeout_s=0)
    assert (result.status, result.reason) == ("unknown", "more than 0 s")


def test_without_z3_the_error_says_how_to_install_it(monkeypatch):
    """The message has four lines, the last of which is a command."""
    found = importlib.util.find_spec
    from hlo_lower.verify.proof import solver

    monkeypatch.setattr(solver, "find_spec", lambda name: None if name == "z3" else found(name))
    with pytest.raises(InputError) as error:
        prove_equal(LEFT, RIGHT)
    assert str(error.value).splitlines() == [
        "prove: z3 is not installed",
        "  facts:   proofs for all index values are made by z3",
        "  nearest: verify without --prove needs no z3: it runs both versions",
        "  next:    pip install z3-solver",
    ]


def test_a_module_that_does_not_parse_is_refused():
    """A text that is no module is the user's mistake."""
    with pytest.raises(InputError):
        prove_equal(LEFT, "func.func")


NO_BOUNDS = "<{start_indices = array<i64>, limit_indices = array<i64>, strides = array<i64>}>"


@pytest.mark.parametrize(
    "line",
    [
        '"stablehlo.reverse"(%a) <{dimensions = array<i64>}> : (tensor<i8>) -> tensor<i8>',
        f'"stablehlo.slice"(%a) {NO_BOUNDS} : (tensor<i8>) -> tensor<i8>',
        "transpose %a, dims = [] -> i8",
        "reshape %a -> i8",
    ],
)
def test_what_moves_one_element_of_rank_0_gives_it(line):
    """An operation that moves elements does nothing to a tensor of rank 0, and is not another one."""
    moved, added, same = (
        module("%a: i8", f"%r = {body}", "%r") for body in (line, "add %a, %a", "optimization_barrier %a")
    )
    assert (prove_equal(moved, same).status, prove_equal(moved, added).status) == ("proved", "refuted")


# --- what `unique_indices` promises holds of the first version's scatters where they are run ---

ARGUMENTS = "%o: 3xi8, %i: 2x1xi8, %u: 2xi8, %p: i1"
SCATTERED = "%r = scatter(%o, {}, %u) <points, unique_indices = true> {{add}}"
"""A scatter whose flag says that no row is written twice."""
UNLESS_BOTH_ZERO = """%x = slice %i [0:1, 0:1]; %y = slice %i [1:2, 0:1]; %b = or %x, %y; %z = constant 0 : 1x1xi8
%e = compare EQ, %b, %z; %q = reshape %e -> i1; %n = negate %o; %w = select %q, %n, %o"""


def branched(otherwise):
    """A scatter where a condition holds, and something else where it does not."""
    body = f"%c = if(%p) {{ {SCATTERED.format('%i')}; return %r }} {{ {otherwise}; return %w }}"
    return module(ARGUMENTS, body, "%c")


def test_a_false_promise_of_the_second_version_proves_nothing():
    """Its scatter writes one row twice and says that it does not; the first version keeps the operand."""
    twice = "%k = slice %i [0:1, 0:1]; %j = concatenate %k, %k, dim = 0 -> 2x1xi8\n" + SCATTERED.format("%j")
    assert not prove_equal(module(ARGUMENTS, "", "%o"), module(ARGUMENTS, twice, "%r"), trust_flags=True)


def test_a_promise_holds_where_its_scatter_is_run():
    """In the other branch nothing is promised of the indices."""
    first = branched("%w = reverse %o, dims = []")
    assert prove_equal(first, first, trust_flags=True)
    assert not prove_equal(first, branched(UNLESS_BOTH_ZERO), trust_flags=True)
