"""What does not end in time is not judged, and what is dear runs in a process that can be ended."""

import sys
from math import inf

import numpy as np
import pytest
from two_programs import regions
from untyped_mlir import function, module

from hlo_lower.verify import verify
from hlo_lower.verify.align.loops import counters_of
from hlo_lower.verify.judges.devices import OPERATIONS, SOON, TookTooLongError, at_most, cost_of, patience
from hlo_lower.verify.judges.devices import executable as executed
from hlo_lower.verify.judges.devices import piece_executable as piece
from hlo_lower.verify.read import program as program_file

I32, F8 = "tensor<i32>", "tensor<8xf32>"


def counted(turns, op="add", depth=1, test="LT, %i0, %end"):
    """A module of loops in one another, each of so many turns."""
    body, result = f"%r0 = stablehlo.{op} %a{depth - 1}, %y : {F8}", "%r0"
    for k in reversed(range(depth)):
        body = f"""%w{k}:2 = stablehlo.while(%i{k} = %zero, %a{k} = {f"%a{k - 1}" if k else "%x"}) : {I32}, {F8} cond {{
          %p{k} = stablehlo.compare LT, %i{k}, %end : ({I32}, {I32}) -> tensor<i1>
          stablehlo.return %p{k} : tensor<i1> }} do {{
        {body}
        %n{k} = stablehlo.add %i{k}, %one : {I32}
        stablehlo.return %n{k}, {result} : {I32}, {F8} }}"""
        result = f"%w{k}#1"
    constants = (f"%{n} = stablehlo.constant dense<{v}> : {I32}" for n, v in (("zero", 0), ("one", 1), ("end", turns)))
    return f"""func.func public @main(%x: {F8}, %y: {F8}) -> {F8} {{
      {" ".join(constants)}
      {body.replace("LT, %i0, %end", test)}
      %r = stablehlo.negate %w0#1 : {F8}
      return %r : {F8} }}"""


ENDLESS, OPEN = counted(4, test="EQ, %i0, %i0"), "NE, %i0, %end"
ONES = [np.ones(8, np.float32)] * 2


def called_twice(depth, op):
    """A module of functions each of which calls the one before twice."""
    more = function("private @f0", "%x: 8xf32", f"%r = {op} %x, %x")
    for k in range(depth):
        calls = f"%a = call @f{k}(%x) -> 8xf32; %b = call @f{k}(%a) -> 8xf32"
        more += function(f"private @f{k + 1}", "%x: 8xf32", calls, "%b")
    return module("%x: 8xf32", f"%r = call @f{depth}(%x) -> 8xf32", "%r", more)


def test_the_cost_of_a_module_grows_with_its_turns_and_operations():
    """Turns of nested loops multiply, an open loop has no end, and calls count as often as they are inlined. A long
    text is dear, as XLA folds what large constants decide, which no count of operations or seconds tells."""
    assert cost_of(counted(10)).is_small
    assert 1e3 < cost_of(counted(100_000, depth=2)).seconds / cost_of(counted(1_000)).seconds < inf
    assert cost_of(counted(10, test=OPEN)).seconds == inf
    assert not cost_of(called_twice(13, "add")).is_small
    assert cost_of(called_twice(30, "add")).operations > 1 << 30 > OPERATIONS
    assert not cost_of(f"{counted(1)}// {'x' * (1 << 24)}").is_small


def test_inputs_of_a_region_that_do_not_fit_are_not_drawn():
    """A value of 2^34 numbers is what two regions have between them; the arguments are small."""
    body = "%a = broadcast_in_dim %x, dims = [] -> 17179869184xf32; %b = {} %a, %a; %r = slice %b [0:8]"
    texts = (module("%x: f32", body.format(op)) for op in ("maximum", "minimum"))
    verdict = verify(*texts, level="regions")
    assert verdict.exit_code == 4, verdict.lines()
    assert "this machine's memory" in "\n".join(verdict.lines())


@pytest.mark.parametrize("size", [200000, 20000])
def test_a_large_value_between_small_ones_is_dear(size):
    """What counts is each value, not the arguments and results alone."""
    body = f"""%z = constant 0.0 : f32; %a = broadcast_in_dim %x, dims = [0] -> {size}x{size}xf32
    %r = reduce(%a init: %z) applies stablehlo.maximum across dimensions = [1]"""
    assert SOON < cost_of(module(f"%x: {size}xf32", body)).seconds < inf


def test_a_run_that_would_take_hours_is_not_tried():
    """Ten thousand million turns are told in no time; nothing is charged."""
    with at_most(2):
        with pytest.raises(TookTooLongError, match="not tried"):
            piece(counted(100_000, depth=2))
        assert patience().left == 2


def test_what_is_late_is_charged_and_then_nothing_dear_is_tried():
    """The seconds are those of the whole verification."""
    with at_most(60):
        late = executed(ENDLESS, "exact")
    with at_most(2):
        with pytest.raises(TookTooLongError, match="took more than 2 s"):
            late.run(ONES)
        assert patience().is_over
        with pytest.raises(TookTooLongError, match="others took"):
            executed(ENDLESS, "exact")


@pytest.mark.sweep
def test_a_child_that_was_ended_mistakes_no_module_for_another_one():
    """What an ended process had compiled is compiled anew, under another number."""
    with at_most(60):
        right, wrong = piece(counted(4, test=OPEN)), piece(ENDLESS)
        [expected] = right.run(ONES)
        for _ in range(2):
            with pytest.raises(TookTooLongError):
                wrong.run(ONES)
            np.testing.assert_array_equal(right.run(ONES)[0], expected)


def test_more_calls_than_are_inlined_are_not_judged(monkeypatch):
    """A module that is too large, or too deep, is no bad input: exit code 4, with the reason."""
    depth = sys.getrecursionlimit() // 3
    for most, told, texts in (
        (1000, "more than 1,000 operations", [called_twice(30, op) for op in ("add", "multiply")]),
        (program_file.MAX_OPS, "too deep", [counted(1, op, depth=depth) for op in ("add", "subtract")]),
    ):
        monkeypatch.setattr(program_file, "MAX_OPS", most)
        verdict = verify(*texts)
        assert verdict.exit_code == 4
        assert told in "\n".join(verdict.lines())


def test_a_counter_of_a_thousand_million_values_is_not_counted_through():
    """Its ends say whether it fits its type."""
    [region] = regions(counted(1_000_000_000), counted(1_000_000_000, "subtract"))
    assert max(map(len, counters_of(region.pair).values())) == 1_000_000_000
