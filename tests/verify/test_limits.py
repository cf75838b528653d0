"""What does not end in time is not judged, and what is dear runs in a process that can be ended."""

import sys
from math import inf

import numpy as np
import pytest
from two_programs import F8, main, regions

from hlo_lower.verify import verify
from hlo_lower.verify.align.loops import counters_of
from hlo_lower.verify.judges.devices import (
    OPERATIONS,
    SOON,
    TookTooLongError,
    at_most,
    cost_of,
    executable,
    patience,
    piece_executable,
)
from hlo_lower.verify.read import program as program_file

INT = "tensor<i32>"


def counted(turns, op="add", depth=1):
    """A module of loops in one another, each of so many turns."""
    head = "".join(
        f"""%w{k}:2 = stablehlo.while(%i{k} = %zero, %a{k} = {f"%a{k - 1}" if k else "%x"}) : {INT}, {F8} cond {{
      %p{k} = stablehlo.compare LT, %i{k}, %end : ({INT}, {INT}) -> tensor<i1>
      stablehlo.return %p{k} : tensor<i1>
    }} do {{
      """
        for k in range(depth)
    )
    tail = "".join(
        f"""%n{k} = stablehlo.add %i{k}, %one : {INT}
      stablehlo.return %n{k}, {"%r0" if k == depth - 1 else f"%w{k + 1}#1"} : {INT}, {F8}
    }}
    """
        for k in reversed(range(depth))
    )
    constants = "".join(
        f"%{name} = stablehlo.constant dense<{value}> : {INT}\n"
        for name, value in (("zero", 0), ("one", 1), ("end", turns))
    )
    body = f"{constants}{head}%r0 = stablehlo.{op} %a{depth - 1}, %y : {F8}\n{tail}%r = stablehlo.negate %w0#1 : {F8}"
    return main(f"%x: {F8}, %y: {F8}", body, "%r")


def called_twice(depth, op):
    """A module of functions each of which calls the one before twice."""
    functions = [f"func.func private @f0(%x: {F8}) -> {F8} {{ %r = stablehlo.{op} %x, %x : {F8} return %r : {F8} }}"]
    for k in range(depth):
        call = f"func.call @f{k}"
        functions.append(
            f"func.func private @f{k + 1}(%x: {F8}) -> {F8} {{ %a = {call}(%x) : ({F8}) -> {F8} "
            f"%b = {call}(%a) : ({F8}) -> {F8} return %b : {F8} }}"
        )
    return "\n".join(functions) + main(f"%x: {F8}", f"%r = func.call @f{depth}(%x) : ({F8}) -> {F8}", "%r")


def test_the_cost_of_a_module_grows_with_its_turns_and_operations():
    """Turns of nested loops multiply, an open loop has no end, and calls count as often as they are inlined."""
    assert cost_of(counted(10)).is_small
    assert 1e3 < cost_of(counted(100_000, depth=2)).seconds / cost_of(counted(1_000)).seconds < inf
    assert cost_of(counted(10).replace("LT, %i0, %end", "NE, %i0, %end")).seconds == inf
    assert not cost_of(called_twice(13, "add")).is_small
    assert cost_of(called_twice(30, "add")).operations > 1 << 30 > OPERATIONS


def test_a_long_text_is_dear():
    """XLA folds what large constants decide, which no count of operations or seconds tells."""
    assert not cost_of(f"{counted(1)}// {'x' * (1 << 24)}").is_small


def test_inputs_of_a_region_that_do_not_fit_are_not_drawn():
    """A value of 2^34 numbers is what two regions have between them; the arguments are small."""
    kind, large = "tensor<f32>", "tensor<17179869184xf32>"
    texts = [
        main(
            f"%x: {kind}",
            f"""%a = stablehlo.broadcast_in_dim %x, dims = [] : ({kind}) -> {large}
            %b = stablehlo.{op} %a, %a : {large}
            %r = stablehlo.slice %b [0:8] : ({large}) -> {F8}""",
            "%r",
        )
        for op in ("maximum", "minimum")
    ]
    verdict = verify(*texts, level="regions")
    assert verdict.exit_code == 4, verdict.lines()
    assert "this machine's memory" in "\n".join(verdict.lines())


@pytest.mark.parametrize(
    ("shape", "op"),
    [("200000x200000", "maximum"), ("20000x20000", "maximum")],
)
def test_a_large_value_between_small_ones_is_dear(shape, op):
    """What counts is each value, not the arguments and results alone."""
    n = shape.split("x", 1)[0]
    kind, large = f"tensor<{n}xf32>", f"tensor<{shape}xf32>"
    body = f"""%z = stablehlo.constant dense<0.0> : tensor<f32>
    %a = stablehlo.broadcast_in_dim %x, dims = [0] : ({kind}) -> {large}
    %r = stablehlo.reduce(%a init: %z) applies stablehlo.{op} across dimensions = [1]
      : ({large}, tensor<f32>) -> {kind}"""
    cost = cost_of(main(f"%x: {kind}", body, "%r", kind))
    assert SOON < cost.seconds < inf


def test_a_run_that_would_take_hours_is_not_tried():
    """Ten thousand million turns are told in no time; nothing is charged."""
    with at_most(2):
        with pytest.raises(TookTooLongError, match="not tried"):
            piece_executable(counted(100_000, depth=2))
        assert patience().left == 2


def test_what_is_late_is_charged_and_then_nothing_dear_is_tried():
    """The seconds are those of the whole verification."""
    endless = counted(4).replace("LT, %i0, %end", "EQ, %i0, %i0")
    with at_most(60):
        late = executable(endless, "exact")
    with at_most(2):
        with pytest.raises(TookTooLongError, match="took more than 2 s"):
            late.run([np.ones(8, np.float32)] * 2)
        assert patience().is_over
        with pytest.raises(TookTooLongError, match="others took"):
            executable(endless, "exact")


@pytest.mark.sweep
def test_a_child_that_was_ended_mistakes_no_module_for_another_one():
    """What an ended process had compiled is compiled anew, under another number."""
    vector = [np.ones(8, np.float32)] * 2
    endless = counted(4).replace("LT, %i0, %end", "EQ, %i0, %i0")
    with at_most(60):
        right, wrong = piece_executable(counted(4).replace("LT, %i0", "NE, %i0")), piece_executable(endless)
        [expected] = right.run(vector)
        for _ in range(2):
            with pytest.raises(TookTooLongError):
                wrong.run(vector)
            np.testing.assert_array_equal(right.run(vector)[0], expected)


def test_more_calls_than_are_inlined_are_not_judged(monkeypatch):
    """A module that is too large, or too deep, is no bad input: exit code 4, with the reason."""
    monkeypatch.setattr(program_file, "MAX_OPS", 1000)
    verdict = verify(called_twice(30, "add"), called_twice(30, "multiply"))
    assert verdict.exit_code == 4
    assert "more than 1,000 operations" in "\n".join(verdict.lines())
    monkeypatch.undo()
    deep = [counted(1, op, depth=sys.getrecursionlimit() // 3) for op in ("add", "subtract")]
    verdict = verify(*deep)
    assert verdict.exit_code == 4
    assert "too deep" in "\n".join(verdict.lines())


def test_a_counter_of_a_thousand_million_values_is_not_counted_through():
    """Its ends say whether it fits its type."""
    [region] = regions(counted(1_000_000_000), counted(1_000_000_000, "subtract"))
    assert max(map(len, counters_of(region.pair).values())) == 1_000_000_000
