"""`prove_equal`: what is proved, what is refuted with inputs, and what is neither."""

import importlib.util

import numpy as np
import pytest

pytest.importorskip("z3")

from hlo_lower.base.errors import InputError
from hlo_lower.verify.proof import prove_equal
from hlo_lower.verify.run import Executable


def module(*lines, arguments="%a: tensor<2xf32>, %b: tensor<2xf32>, %c: tensor<2xf32>", result="tensor<2xf32>"):
    """A module that returns %r."""
    body = "\n".join(lines)
    return f"func.func public @main({arguments}) -> {result} {{\n{body}\nreturn %r : {result}\n}}"


def add(r, a, b, kind="tensor<2xf32>"):
    """A line of an addition."""
    return f"{r} = stablehlo.add {a}, {b} : {kind}"


LEFT = module(add("%x", "%a", "%b"), add("%r", "%x", "%c"))
RIGHT = module(add("%x", "%b", "%c"), add("%r", "%a", "%x"))
INTEGERS = {"arguments": "%a: tensor<2xi8>, %b: tensor<2xi8>, %c: tensor<2xi8>", "result": "tensor<2xi8>"}


def test_the_same_computation_is_proved():
    """Other names, a dead operation and another order of lines change nothing."""
    other = module(add("%dead", "%c", "%c"), add("%y", "%a", "%b"), add("%r", "%y", "%c"))
    result = prove_equal(LEFT, other)
    assert (result.status, bool(result)) == ("proved", True)


def test_a_float_sum_in_another_order_is_refuted_by_a_run():
    """Floats are not associative, and the inputs of the refutation show it when they are run."""
    result = prove_equal(LEFT, RIGHT)
    assert result.status == "refuted"
    [first], [second] = (Executable(text, "quick").run(result.inputs) for text in (LEFT, RIGHT))
    assert not np.array_equal(first, second, equal_nan=True)


def test_a_float_sum_with_its_terms_exchanged_is_doubted():
    """That addition commutes is not known of an uninterpreted function, and no run differs."""
    one, other = module(add("%r", "%a", "%b")), module(add("%r", "%b", "%a"))
    result = prove_equal(one, other)
    assert (result.status, len(result.inputs) > 1) == ("doubted", True)
    assert "does not show when it is run" in result.reason


def test_an_elementwise_op_is_a_function_of_its_elements():
    """Of equal operands it gives the same, whatever it computes; another one does not."""
    sinh = "%x = chlo.sinh %a : tensor<2xf32> -> tensor<2xf32>"
    one = module(sinh, add("%r", "%x", "%x"))
    other = module(sinh, sinh.replace("%x", "%y"), add("%r", "%y", "%x"))
    assert prove_equal(one, other).status == "proved"
    assert prove_equal(one, other.replace("%y = chlo.sinh", "%y = chlo.cosh")).status == "refuted"


def reduced(*lines, around="%k = stablehlo.constant dense<2.0> : tensor<f32>", read="%k"):
    """A reduction of floats by a region that reads a value from around it."""
    region = "\n".join(lines).replace("READ", read)
    return module(
        around,
        f"""%r = "stablehlo.reduce"(%a, %z) <{{dimensions = array<i64: 0>}}> ({{
          ^bb0(%x: tensor<f32>, %y: tensor<f32>):
            {region}
            stablehlo.return %s : tensor<f32>
        }}) : (tensor<4xf32>, tensor<f32>) -> tensor<f32>""",
        arguments="%a: tensor<4xf32>, %z: tensor<f32>, %w: tensor<f32>",
        result="tensor<f32>",
    )


SUMMED = ("%t = stablehlo.multiply %x, READ : tensor<f32>", "%s = stablehlo.add %t, %y : tensor<f32>")


@pytest.mark.parametrize(
    ("other", "status"),
    [
        (reduced(*(line.replace("%t", "%other") for line in SUMMED)), "proved"),
        (reduced(SUMMED[0], SUMMED[1].replace("add", "subtract")), "refuted"),
        (reduced(*SUMMED, around="%k = stablehlo.constant dense<3.0> : tensor<f32>"), "refuted"),
        (reduced(*SUMMED, around="", read="%w"), "doubted"),  # XLA does not run such a region
    ],
    ids=["other names", "another op", "another constant from around", "an argument from around"],
)
def test_a_reduction_of_floats_is_a_function_of_its_region_and_of_what_it_reads(other, status):
    """Names do not count; its operations do, and what the region takes from around it."""
    assert prove_equal(reduced(*SUMMED), other).status == status


def test_an_integer_sum_in_another_order_is_proved():
    """Integers are computed modulo 2^w, in which order ever."""
    kind = "tensor<2xi8>"
    one = module(add("%x", "%a", "%b", kind), add("%r", "%x", "%c", kind), **INTEGERS)
    other = module(add("%x", "%c", "%b", kind), add("%r", "%x", "%a", kind), **INTEGERS)
    assert prove_equal(one, other).status == "proved"


def test_an_integer_overflow_is_found():
    """(a + b) / 2 is not a / 2 + b / 2: the inputs say where."""
    kind = "tensor<2xi8>"
    two, half = f"%two = stablehlo.constant dense<2> : {kind}", "stablehlo.divide"
    one = module(two, add("%x", "%a", "%b", kind), f"%r = {half} %x, %two : {kind}", **INTEGERS)
    other = module(
        two, f"%x = {half} %a, %two : {kind}", f"%y = {half} %b, %two : {kind}", add("%r", "%x", "%y", kind), **INTEGERS
    )
    result = prove_equal(one, other)
    assert result.status == "refuted"
    assert [a.dtype for a in result.inputs] == [np.dtype(np.int8)] * 3


def test_a_zero_that_is_added_is_found():
    """x + 0 loses the sign of -0, which is one of the values that are drawn."""
    arguments = {"arguments": "%a: tensor<2xf32>, %b: tensor<i1>"}
    zero = "%z = stablehlo.constant dense<0.0> : tensor<2xf32>"
    pick = "%y = stablehlo.select %b, %a, %z : tensor<i1>, tensor<2xf32>"
    one = module(zero, pick, add("%r", "%a", "%y"), **arguments)
    other = module(
        zero,
        add("%x", "%a", "%a"),
        "%r = stablehlo.select %b, %x, %a : tensor<i1>, tensor<2xf32>",
        **arguments,
    )
    assert prove_equal(one, other).status == "refuted"


UNKNOWN = {
    "an operation that is not known": (
        module("%r = stablehlo.custom_call @f(%a) : (tensor<2xf32>) -> tensor<2xf32>"),
        "stablehlo.custom_call @f",
    ),
    "a large tensor": (
        module(
            "%r = stablehlo.broadcast_in_dim %a, dims = [1] : (tensor<2xf32>) -> tensor<9999x2xf32>",
            "%q = stablehlo.negate %r : tensor<9999x2xf32>",
            result="tensor<9999x2xf32>",
        ),
        "a tensor of more than 4096 elements",
    ),
    "random numbers": (
        module(
            "%s = stablehlo.constant dense<2> : tensor<1xi64>\n%z = stablehlo.constant dense<0.0> : tensor<f32>\n"
            "%r = stablehlo.rng %z, %z, %s, distribution = UNIFORM "
            ": (tensor<f32>, tensor<f32>, tensor<1xi64>) -> tensor<2xf32>"
        ),
        "stablehlo.rng",
    ),
    "a loop without an end": (
        module(
            "%r = stablehlo.while(%v = %a) : tensor<2xf32>\n cond {\n"
            " %t = stablehlo.constant dense<true> : tensor<i1>\n"
            " stablehlo.return %t : tensor<i1>\n } do {\n stablehlo.return %v : tensor<2xf32>\n }"
        ),
        "a loop of too many rounds",
    ),
    "a dynamic shape": (
        module("%r = stablehlo.negate %a : tensor<?xf32>", arguments="%a: tensor<?xf32>", result="tensor<?xf32>"),
        "a value of type tensor<?xf32>",
    ),
}


@pytest.mark.parametrize("name", UNKNOWN)
def test_what_is_beyond_is_unknown_with_a_reason(name):
    """Whatever is not known is never proved, not even against itself."""
    text, reason = UNKNOWN[name]
    result = prove_equal(text, text)
    assert (result.status, result.reason) == ("unknown", reason)


def test_other_signatures_are_unknown():
    """Two modules of other arguments are not compared."""
    result = prove_equal(LEFT, module(add("%r", "%a", "%a"), arguments="%a: tensor<2xf32>"))
    assert (result.status, result.reason) == ("unknown", "arguments of other types")


def test_no_time_is_unknown():
    """A proof that has no time says so."""
    result = prove_equal(LEFT, RIGHT, timeout_s=0)
    assert (result.status, result.reason) == ("unknown", "more than 0 s")


def sort(is_stable, more=""):
    """A module that sorts keys with values, perhaps with something else besides."""
    values = "%a, %b" + more
    blocks = "".join(f", %p{k}: tensor<f32>, %q{k}: tensor<f32>" for k in range(values.count("%") - 1))
    types = ", ".join(["tensor<2xi8>"] + ["tensor<2xf32>"] * (values.count("%") - 1))
    return module(
        f'%s:{values.count("%")} = "stablehlo.sort"({values}) <{{dimension = 0 : i64, is_stable = {is_stable}}}> ({{\n'
        f"^bb0(%x: tensor<i8>, %y: tensor<i8>{blocks}):\n"
        " %l = stablehlo.compare LT, %x, %y, SIGNED : (tensor<i8>, tensor<i8>) -> tensor<i1>\n"
        f" stablehlo.return %l : tensor<i1>\n}}) : ({types}) -> ({types})\n"
        "%r = stablehlo.negate %s#1 : tensor<2xf32>",
        arguments="%a: tensor<2xi8>, %b: tensor<2xf32>",
    )


def test_a_sort_with_ties_is_only_itself_where_it_is_not_stable():
    """What a sort that is not stable does with ties is open: one with more operands may do something else."""
    assert prove_equal(sort("true"), sort("true", ", %b")).status == "proved"
    assert prove_equal(sort("false"), sort("false")).status == "proved"
    assert prove_equal(sort("false"), sort("false", ", %b")).status == "doubted"


def test_a_float_reduction_is_only_itself():
    """The order of a reduce is open: the same one is proved, one over a transposed operand is not."""

    def reduced(dim, kind, line):
        zero = "%z = stablehlo.constant dense<0.0> : tensor<f32>"
        along = f"across dimensions = [{dim}] : ({kind}, tensor<f32>) -> tensor<2xf32>"
        reduce = f"%r = stablehlo.reduce(%x init: %z) applies stablehlo.add {along}"
        return module(line, zero, reduce, arguments="%a: tensor<2x3xf32>")

    straight = reduced(1, "tensor<2x3xf32>", "%x = stablehlo.optimization_barrier %a : tensor<2x3xf32>")
    transposed = "%x = stablehlo.transpose %a, dims = [1, 0] : (tensor<2x3xf32>) -> tensor<3x2xf32>"
    turned = reduced(0, "tensor<3x2xf32>", transposed)
    assert prove_equal(straight, straight).status == "proved"
    assert prove_equal(straight, turned).status != "proved"


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


@pytest.mark.parametrize(
    "line",
    [
        '"stablehlo.reverse"(%a) <{dimensions = array<i64>}> : (tensor<i8>) -> tensor<i8>',
        '"stablehlo.slice"(%a) <{start_indices = array<i64>, limit_indices = array<i64>, strides = array<i64>}>'
        " : (tensor<i8>) -> tensor<i8>",
        "stablehlo.transpose %a, dims = [] : (tensor<i8>) -> tensor<i8>",
        "stablehlo.reshape %a : (tensor<i8>) -> tensor<i8>",
    ],
)
def test_what_moves_one_element_of_rank_0_gives_it(line):
    """An operation that moves elements does nothing to a tensor of rank 0, and is not another one."""
    kind = {"arguments": "%a: tensor<i8>", "result": "tensor<i8>"}
    moved, added = module(f"%r = {line}", **kind), module(add("%r", "%a", "%a", "tensor<i8>"), **kind)
    same = module("%r = stablehlo.optimization_barrier %a : tensor<i8>", **kind)
    assert (prove_equal(moved, same).status, prove_equal(moved, added).status) == ("proved", "refuted")
