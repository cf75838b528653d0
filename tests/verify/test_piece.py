"""Pieces of modules as modules of their own: what they take, return and call, and what cannot be cut out."""

import re

import numpy as np
import pytest
from two_programs import F8, main, programs, regions

from hlo_lower.ir import mlir
from hlo_lower.verify.align.align import Side
from hlo_lower.verify.align.piece import module_of, piece, pieces_of, types_of
from hlo_lower.verify.read.numbering import Table
from hlo_lower.verify.run import CannotRunError, Executable

VECTOR = np.arange(8, dtype=np.float32)


def pieces(before, after, seen=()):
    """Both pieces of the one region of two modules."""
    [region] = regions(before, after)
    return pieces_of(region, seen), region


def edited(body, old, new, arguments=f"%a: {F8}, %b: {F8}", more=""):
    """The pieces of a module and of the same with one place of its text changed."""
    before, after = (main(arguments, text, "%r", more=more) for text in (body, body.replace(old, new)))
    assert before != after
    return pieces(before, after)[0]


def ran(text, *values):
    """The results of a piece."""
    return Executable(text, "exact").run(list(values))


def test_a_piece_computes_what_is_between_its_inputs_and_its_outputs():
    """What both modules have in common is an input; each piece returns its own result of it."""
    body = f"%n = stablehlo.exponential %a : {F8}\n%r = stablehlo.maximum %n, %b : {F8}"
    found = edited(body, "stablehlo.maximum", "stablehlo.minimum")
    for text in (found.first, found.second):
        assert "exponential" not in text
        assert re.search(r"func.func @main\(%arg0: tensor<8xf32>, %arg1: tensor<8xf32>\) -> tensor<8xf32>", text)
    [larger], [smaller] = (ran(text, VECTOR, VECTOR[::-1].copy()) for text in (found.first, found.second))
    np.testing.assert_array_equal(larger, np.maximum(VECTOR, VECTOR[::-1]))
    np.testing.assert_array_equal(smaller, np.minimum(VECTOR, VECTOR[::-1]))


def test_what_is_watched_comes_behind_the_outputs_of_the_first_piece_alone():
    """A value within the first piece is returned too, and the second piece keeps its results."""
    body = f"%n = stablehlo.add %a, %b : {F8}\n%r = stablehlo.maximum %n, %n : {F8}"
    before, after = main(f"%a: {F8}, %b: {F8}", body, "%r"), main(f"%a: {F8}, %b: {F8}", "", "%a")
    _, region = pieces(before, after)
    inner = next(op for op in region.first if op.short_name == "add")
    number = region.pair.first.numbers[inner.results[0]]
    found = pieces_of(region, [number])
    assert found.seen == (number,)
    given = [VECTOR] * len(region.inputs)
    result, watched = ran(found.first, *given)
    np.testing.assert_array_equal(watched, VECTOR + VECTOR)
    np.testing.assert_array_equal(result, watched)
    assert len(ran(found.second, *given)) == 1


APPLIED = f"""%z = stablehlo.constant dense<0.0> : tensor<f32>
%s = "stablehlo.reduce"(%a, %z) <{{dimensions = array<i64: 0>}}> ({{
^bb0(%c: tensor<f32>, %d: tensor<f32>):
  %t = func.call @outer(%c, %d) : (tensor<f32>, tensor<f32>) -> tensor<f32>
  stablehlo.return %t : tensor<f32>
}}) : ({F8}, tensor<f32>) -> tensor<f32>
%r = stablehlo.broadcast_in_dim %s, dims = [] : (tensor<f32>) -> {F8}"""
SCALARS = "(%c: tensor<f32>, %d: tensor<f32>) -> tensor<f32>"
FUNCTIONS = f"""func.func private @outer{SCALARS} {{
  %t = func.call @inner(%c, %d) : (tensor<f32>, tensor<f32>) -> tensor<f32> return %t : tensor<f32> }}
func.func public @inner{SCALARS} {{ %t = stablehlo.add %c, %d : tensor<f32> return %t : tensor<f32> }}
func.func private @unused{SCALARS} {{ return %c : tensor<f32> }}"""


def symbols(text):
    """The functions of a module, and whether each is public."""
    return {
        mlir.symbol_name(op.operation.attributes["sym_name"]): "sym_visibility" not in op.operation.attributes
        for op in mlir.parse_module(text).body.operations
    }


def test_functions_that_regions_call_are_copied():
    """What a region calls, and what that calls, comes along as a private function; what nobody calls does not."""
    [program] = programs(main(f"%a: {F8}", APPLIED, "%r", more=FUNCTIONS))
    side = Side(program, program.entries["main"], 0, {}, Table())
    [argument] = side.body.arguments
    text = piece(side, side.live, [side.numbers[argument]], side.roots, [program.types[argument]])
    assert symbols(text) == {"main": True, "outer": False, "inner": False}
    [found] = ran(text, VECTOR)
    np.testing.assert_array_equal(found, np.full(8, VECTOR.sum()))


def test_a_composite_is_copied_as_what_it_stands_for():
    """In a body its decomposition stands in its place."""
    own = f"func.func private @own(%x: {F8}) -> {F8} {{ %y = stablehlo.add %x, %x : {F8} return %y : {F8} }}"
    composite = f'%r = stablehlo.composite "my.op" %a {{decomposition = @own}} : ({F8}) -> {F8}'
    [program] = programs(main(f"%a: {F8}", composite, "%r", more=own))
    side = Side(program, program.entries["main"], 0, {}, Table())
    [argument] = side.body.arguments
    text = piece(side, side.live, [side.numbers[argument]], side.roots, [program.types[argument]])
    assert set(symbols(text)) == {"main"}
    [found] = ran(text, VECTOR)
    np.testing.assert_array_equal(found, 2 * VECTOR)


MESH = 'sdy.mesh @mesh = <["x"=2]>'
SHARDED = f"""%n = stablehlo.add %a, %b {{sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{{"x"}}]>]>}} : {F8}
%h = sdy.sharding_constraint %n <@mesh, [{{"x"}}]> : {F8}
%r = stablehlo.negate %h {{mhlo.sharding = "{{devices=[2]0,1}}"}} : {F8}"""


def whole(body, more=""):
    """A module's body with all of its operations, as the piece that returns what it returns."""
    [program] = programs(main(f"%a: {F8}, %b: {F8}", body, "%r", more=more))
    side = Side(program, program.entries["main"], 0, {}, Table())
    given = side.body.arguments
    numbers = dict(enumerate(side.numbers[v] for v in given))
    return module_of(program, side.live, numbers, side.numbers, side.roots, [program.types[v] for v in given])


def test_shardings_are_taken_out():
    """Where values lie does not matter to what they are: a piece says nothing of it, and runs on one device."""
    text = whole(SHARDED, MESH)
    assert "sharding" not in text
    assert "sdy." not in text
    [found] = ran(text, VECTOR, VECTOR)
    np.testing.assert_array_equal(found, -(VECTOR + VECTOR))


GROUPS = "replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>"
OF_ONE_DEVICE = {
    "a collective": f"""%r = "stablehlo.all_gather"(%h) <{{all_gather_dim = 0 : i64, {GROUPS}}}> :
  (tensor<4xf32>) -> {F8}""",
    "its number": f"""%p = stablehlo.partition_id : tensor<ui32>
%q = stablehlo.convert %p : (tensor<ui32>) -> tensor<f32>
%r = stablehlo.broadcast_in_dim %q, dims = [] : (tensor<f32>) -> {F8}""",
    "a manual computation": f"""%r = sdy.manual_computation(%a) in_shardings=[<@mesh, [{{"x"}}]>]
  out_shardings=[<@mesh, [{{"x"}}]>] manual_axes={{"x"}} (%s: tensor<4xf32>) {{
  %t = stablehlo.negate %s : tensor<4xf32> sdy.return %t : tensor<4xf32> }} : ({F8}) -> {F8}""",
}


@pytest.mark.parametrize("name", OF_ONE_DEVICE)
def test_what_is_written_for_one_of_several_devices_is_refused(name):
    """Without its devices such a piece has no meaning, and it is not cut out as if it had one."""
    half = f"%h = stablehlo.slice %a [0:4] : ({F8}) -> tensor<4xf32>\n" if name == "a collective" else ""
    with pytest.raises(CannotRunError, match="written for one of several devices"):
        whole(half + OF_ONE_DEVICE[name], MESH)


def test_the_types_of_the_inputs_are_those_of_either_side():
    """An input that only the second piece reads has a type, too."""
    _, region = pieces(
        main(f"%a: {F8}, %b: {F8}", f"%r = stablehlo.negate %a : {F8}", "%r"),
        main(f"%a: {F8}, %b: {F8}", f"%r = stablehlo.negate %b : {F8}", "%r"),
    )
    assert [str(t) for t in types_of(region)] == [F8, F8]
