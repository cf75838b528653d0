"""A module as the judge reads it: calls inlined, effects and captures told, what does not matter left out."""

import pytest
from two_programs import F8, main, programs

from hlo_lower.verify.read import program as program_file
from hlo_lower.verify.read.program import TooLargeError, ops_within

NEGATED = f"func.func private @f(%x: {F8}) -> {F8} {{ %y = stablehlo.negate %x : {F8} return %y : {F8} }}"
CALL = f"%{{0}} = call @f(%{{1}}) : ({F8}) -> {F8}"


def test_calls_are_inlined_and_the_same_one_once():
    """Two calls on one value are one operation, one on another value is another."""
    body = "\n".join([CALL.format("p", "a"), CALL.format("q", "a"), CALL.format("r", "p")])
    [program] = programs(main(f"%a: {F8}", body, "%p, %q, %r", f"{F8}, {F8}, {F8}", NEGATED))
    entry = program.entries["main"]
    assert [op.short_name for op in entry.ops] == ["negate", "negate"]
    assert entry.returned[0] == entry.returned[1] != entry.returned[2]


def test_calls_fifteen_deep_stay_small():
    """A function that calls the next one twice on one value has one operation inlined, not 2^15."""
    functions = [
        f"func.func private @f{k}(%x: {F8}) -> {F8} {{ %p = call @f{k + 1}(%x) : ({F8}) -> {F8} "
        f"%q = call @f{k + 1}(%x) : ({F8}) -> {F8} %y = stablehlo.add %p, %q : {F8} return %y : {F8} }}"
        for k in range(15)
    ]
    last = NEGATED.replace("@f(", "@f15(")
    call = f"%r = call @f0(%a) : ({F8}) -> {F8}"
    [program] = programs(main(f"%a: {F8}", call, "%r", more="\n".join([*functions, last])))
    assert program.op_count == 16


def test_a_function_with_effects_is_inlined_for_each_call():
    """Two calls of a function that draws random numbers are two draws."""
    draw = f"""func.func private @f(%x: {F8}) -> {F8} {{
  %n = stablehlo.constant dense<8> : tensor<1xi64>
  %lo = stablehlo.constant dense<0.0> : tensor<f32>
  %hi = stablehlo.constant dense<1.0> : tensor<f32>
  %y = stablehlo.rng %lo, %hi, %n, distribution = UNIFORM : (tensor<f32>, tensor<f32>, tensor<1xi64>) -> {F8}
  return %y : {F8} }}"""
    body = f"{CALL.format('p', 'a')}\n{CALL.format('q', 'a')}"
    [program] = programs(main(f"%a: {F8}", body, "%p", more=draw))
    assert [op.has_effects for op in program.entries["main"].ops if op.short_name == "rng"] == [True, True]
    assert [op.short_name for op in program.entries["main"].live()].count("rng") == 2


def test_captures_are_what_regions_take_from_around():
    """A branch captures the values of the body around it that it reads, each once, and reads them as operands."""
    branches = f"""%r = "stablehlo.if"(%p) ({{
  %x = stablehlo.add %a, %a : {F8} stablehlo.return %x : {F8} }}, {{ stablehlo.return %b : {F8} }})
  : (tensor<i1>) -> {F8}"""
    [program] = programs(main(f"%p: tensor<i1>, %a: {F8}, %b: {F8}", branches, "%r"))
    entry = program.entries["main"]
    [op] = entry.ops
    assert op.reads == entry.arguments  # %a once, though it is read twice
    assert [inner.short_name for inner in ops_within(entry.ops)] == ["if", "add"]


def test_dead_operations_do_not_live():
    """What nothing returned depends on is left out, what has effects is not."""
    dead = f"%x = stablehlo.add %a, %a : {F8} %r = stablehlo.negate %a : {F8}"
    [program] = programs(main(f"%a: {F8}", dead, "%r"))
    assert [op.short_name for op in program.entries["main"].live()] == ["negate"]


def test_a_module_of_too_many_operations_is_refused(monkeypatch):
    """Beyond the limit, calls inlined, the module is not read."""
    monkeypatch.setattr(program_file, "MAX_OPS", 2)
    body = "\n".join(f"%{k + 1} = stablehlo.negate %{k} : {F8}" for k in range(3)).replace("%0", "%a")
    with pytest.raises(TooLargeError, match="more than 2 operations"):
        programs(main(f"%a: {F8}", body.replace("%1", "%x").replace("%2", "%y").replace("%3", "%r"), "%r"))
