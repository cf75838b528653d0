"""Pieces of modules as modules of their own: what they take, return and call, and what cannot be cut out."""

import re

import numpy as np
import pytest
from two_programs import programs, regions
from untyped_mlir import function, module

from hlo_lower.ir import mlir
from hlo_lower.verify.align.align import Side
from hlo_lower.verify.align.piece import module_of, pieces_of, types_of
from hlo_lower.verify.align.piece import piece as piece_of
from hlo_lower.verify.read.numbering import Table
from hlo_lower.verify.run import CannotRunError, Executable

VECTOR = np.arange(8, dtype=np.float32)
AB = "%a: 8xf32, %b: 8xf32"


def ran(text, *values):
    """The results of a piece."""
    return Executable(text, "exact").run(list(values))


def test_a_piece_computes_what_is_between_its_inputs_and_its_outputs():
    """What both modules have in common is an input; each piece returns its own result of it."""
    ops = {"maximum": np.maximum, "minimum": np.minimum}
    [region] = regions(*(module(AB, f"%n = exponential %a; %r = {op} %n, %b") for op in ops))
    found = pieces_of(region, ())
    for text, right in zip((found.first, found.second), ops.values(), strict=True):
        assert "exponential" not in text
        assert re.search(r"func.func @main\(%arg0: tensor<8xf32>, %arg1: tensor<8xf32>\) -> tensor<8xf32>", text)
        np.testing.assert_array_equal(ran(text, VECTOR, VECTOR[::-1].copy())[0], right(VECTOR, VECTOR[::-1]))


def test_what_is_watched_comes_behind_the_outputs_of_the_first_piece_alone():
    """A value within the first piece is returned too, and the second piece keeps its results."""
    [region] = regions(module(AB, "%n = add %a, %b; %r = maximum %n, %n"), module(AB, "", "%a"))
    inner = next(op for op in region.first if op.short_name == "add")
    number = region.pair.first.numbers[inner.results[0]]
    found = pieces_of(region, [number])
    assert found.seen == (number,)
    given = [VECTOR] * len(region.inputs)
    result, watched = ran(found.first, *given)
    np.testing.assert_array_equal(watched, VECTOR + VECTOR)
    np.testing.assert_array_equal(result, watched)
    assert len(ran(found.second, *given)) == 1


def symbols(text):
    """The functions of a module, and whether each is public."""
    return {
        mlir.symbol_name(op.operation.attributes["sym_name"]): "sym_visibility" not in op.operation.attributes
        for op in mlir.parse_module(text).body.operations
    }


APPLIED = """%z = constant 0.0 : f32
%s = reduce(%a, %z) <dimensions = array<i64: 0>> {%c, %d: %t = call @outer(%c, %d) -> f32; return %t} -> f32
%r = broadcast_in_dim %s, dims = [] -> 8xf32"""
FUNCTIONS = "".join(
    function(name, "%c: f32, %d: f32", body, "%t")
    for name, body in (
        ("private @outer", "%t = call @inner(%c, %d) -> f32"),
        ("public @inner", "%t = add %c, %d"),
        ("private @unused", "%t = negate %c"),
    )
)
OWN = function("private @own", "%x: 8xf32", "%y = add %x, %x", "%y")
COMPOSITE = '%r = stablehlo.composite "my.op" %a {decomposition = @own} : (tensor<8xf32>) -> tensor<8xf32>'


@pytest.mark.parametrize(
    ("body", "more", "copied", "expected"),
    [
        # what a region calls, and what that calls, comes along as a private function; what nobody calls does not
        (APPLIED, FUNCTIONS, {"main": True, "outer": False, "inner": False}, np.full(8, VECTOR.sum())),
        (COMPOSITE, OWN, {"main": True}, 2 * VECTOR),  # in a body its decomposition stands in its place
    ],
    ids=["functions that regions call", "a composite"],
)
def test_what_a_piece_calls_is_copied(body, more, copied, expected):
    [program] = programs(module("%a: 8xf32", body, "%r", more))
    side = Side(program, program.entries["main"], 0, {}, Table())
    [argument] = side.body.arguments
    text = piece_of(side, side.live, [side.numbers[argument]], side.roots, [program.types[argument]])
    assert symbols(text) == copied
    np.testing.assert_array_equal(ran(text, VECTOR)[0], expected)


def whole(body):
    """A module's body with all of its operations, as the piece that returns what it returns."""
    [program] = programs(module(AB, body, "%r", 'sdy.mesh @mesh = <["x"=2]>'))
    side = Side(program, program.entries["main"], 0, {}, Table())
    given = side.body.arguments
    numbers = dict(enumerate(side.numbers[v] for v in given))
    return module_of(program, side.live, numbers, side.numbers, side.roots, [program.types[v] for v in given])


SHARDED = """%n = add %a, %b {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>}
%h = sdy.sharding_constraint %n <@mesh, [{"x"}]> : tensor<8xf32>
%r = negate %h {mhlo.sharding = "{devices=[2]0,1}"}"""


def test_shardings_are_taken_out():
    """Where values lie does not matter to what they are: a piece says nothing of it, and runs on one device."""
    text = whole(SHARDED)
    assert "sharding" not in text
    assert "sdy." not in text
    np.testing.assert_array_equal(ran(text, VECTOR, VECTOR)[0], -(VECTOR + VECTOR))


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(
            """%h = slice %a [0:4]; %r = "stablehlo.all_gather"(%h) <{all_gather_dim = 0 : i64, replica_groups =
            dense<[[0, 1]]> : tensor<1x2xi64>}> : (tensor<4xf32>) -> tensor<8xf32>""",
            id="a collective",
        ),
        pytest.param(
            "%p = partition_id : ui32; %q = convert %p -> f32; %r = broadcast_in_dim %q, dims = [] -> 8xf32",
            id="its number",
        ),
        pytest.param(
            """%r = sdy.manual_computation(%a) in_shardings=[<@mesh, [{"x"}]>] out_shardings=[<@mesh, [{"x"}]>]
            manual_axes={"x"} (%s: tensor<4xf32>) { %t = stablehlo.negate %s : tensor<4xf32>
            sdy.return %t : tensor<4xf32> } : (tensor<8xf32>) -> tensor<8xf32>""".replace("\n", " "),
            id="a manual computation",
        ),
    ],
)
def test_what_is_written_for_one_of_several_devices_is_refused(body):
    """Without its devices such a piece has no meaning, and it is not cut out as if it had one."""
    with pytest.raises(CannotRunError, match="written for one of several devices"):
        whole(body)


def test_the_types_of_the_inputs_are_those_of_either_side():
    """An input that only the second piece reads has a type, too."""
    [region] = regions(*(module(AB, f"%r = negate {value}") for value in ("%a", "%b")))
    assert [str(t) for t in types_of(region)] == ["tensor<8xf32>"] * 2
