"""A module as the judge reads it: calls inlined, effects and captures told, what does not matter left out."""

import pytest
from two_programs import programs
from untyped_mlir import function, module

from hlo_lower.verify.read import program as program_file
from hlo_lower.verify.read.program import TooLargeError, ops_within


def read(body, returned, more="", arguments="%a: 8xf32"):
    """A module as it is read, and its entry."""
    [program] = programs(module(arguments, body, returned, more))
    return program, program.entries["main"]


def called(name, body):
    """A private function of %x that returns %y."""
    return function(f"private @{name}", "%x: 8xf32", body, "%y")


NEGATED = called("f", "%y = negate %x")
CALL = "%{0} = call @f(%{1}) -> 8xf32; "
DRAW = """%n = constant 8 : 1xi64; %lo = constant 0.0 : f32; %hi = constant 1.0 : f32
%y = rng %lo, %hi, %n, distribution = UNIFORM -> 8xf32"""


def test_calls_are_inlined_and_the_same_one_once():
    """Two calls on one value are one operation, one on another value is another."""
    _, entry = read(CALL.format("p", "a") + CALL.format("q", "a") + CALL.format("r", "p"), "%p, %q, %r", NEGATED)
    assert [op.short_name for op in entry.ops] == ["negate", "negate"]
    assert entry.returned[0] == entry.returned[1] != entry.returned[2]


def test_calls_fifteen_deep_stay_small():
    """A function that calls the next one twice on one value has one operation inlined, not 2^15."""
    more = "".join(
        called(f"f{k}", f"%p = call @f{k + 1}(%x) -> 8xf32; %q = call @f{k + 1}(%x) -> 8xf32; %y = add %p, %q")
        for k in range(15)
    )
    program, _ = read("%r = call @f0(%a) -> 8xf32", "%r", more + called("f15", "%y = negate %x"))
    assert program.op_count == 16


def test_a_function_with_effects_is_inlined_for_each_call():
    """Two calls of a function that draws random numbers are two draws."""
    _, entry = read(CALL.format("p", "a") + CALL.format("q", "a"), "%p", called("f", DRAW))
    assert [op.has_effects for op in entry.ops if op.short_name == "rng"] == [True, True]
    assert [op.short_name for op in entry.live()].count("rng") == 2


def test_captures_are_what_regions_take_from_around():
    """A branch captures the values of the body around it that it reads, each once, and reads them as operands."""
    body = "%r = if(%p) { %x = add %a, %a; return %x } { return %b }"
    _, entry = read(body, "%r", arguments="%p: i1, %a: 8xf32, %b: 8xf32")
    [op] = entry.ops
    assert op.reads == entry.arguments  # %a once, though it is read twice
    assert [inner.short_name for inner in ops_within(entry.ops)] == ["if", "add"]


def test_dead_operations_do_not_live():
    """What nothing returned depends on is left out, what has effects is not."""
    assert [op.short_name for op in read("%x = add %a, %a; %r = negate %a", "%r")[1].live()] == ["negate"]


def test_a_module_of_too_many_operations_is_refused(monkeypatch):
    """Beyond the limit, calls inlined, the module is not read."""
    monkeypatch.setattr(program_file, "MAX_OPS", 2)
    with pytest.raises(TooLargeError, match="more than 2 operations"):
        read("%x = negate %a; %y = negate %x; %r = negate %y", "%r")
