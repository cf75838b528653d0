"""Twins: what is found for one scatter is told of another, alike one, with that one's own places."""

import pytest
from untyped_mlir import function, module

import hlo_lower as hl
from hlo_lower.base.causes import Code
from hlo_lower.facts.values.value_numbering import ValueNumbering

CHAIN = """%b{n} = broadcast_in_dim {base}, dims = [] -> 3xi32
%i{n} = iota dim = 0 : 3xi32
%x{n} = {op} %b{n}, %i{n}
%j{n} = reshape %x{n} -> 3x1xi32
%r{n} = scatter({operand}, %j{n}, %u) <window=[1], inserted=[0], to=[0], ivd=1> {{assign}}
"""


def linked(*links):
    """Scatters one after the other, each with an index chain of its own: (base, op) for each."""
    lines = "".join(
        CHAIN.format(n=n, base=base, op=op, operand=f"%r{n - 1}" if n else "%o") for n, (base, op) in enumerate(links)
    )
    return module("%o: 8x4xf32, %u: 3x4xf32, %p: i32, %q: i32", f"{lines}return %r{len(links) - 1}")


def numbers(graph, values):
    """The numbers of values."""
    twins = ValueNumbering(graph)
    return [twins.computation(value).number for value in values]


def test_values_computed_alike_have_one_number():
    """The same ops on the same values are twins; another value or another op makes another number."""
    graph = hl.read(linked(("%p", "add"), ("%p", "add"), ("%q", "add"), ("%p", "subtract")))
    first, second, third, fourth = numbers(graph, [node.operand(1) for node in graph.scatters])
    assert first == second
    assert len({first, third, fourth}) == 3


def test_evidence_of_a_twin_has_its_own_places():
    """Each of two alike scatters is explained by the lines of its own index chain, also after lowering."""
    text = linked(("%p", "add"), ("%p", "add"))
    iotas = [n for n, line in enumerate(text.splitlines(), 1) if "stablehlo.iota" in line]
    for records in (hl.classify(hl.read(text, "m.mlir")), hl.lower(text, name="m.mlir").records):
        for number, record in zip(iotas, records, strict=True):
            evidence = [step for fact in record.facts for step in fact.evidence]
            assert Code.IOTA(2).with_place(f"m.mlir:{number}") in evidence
            assert not any(f"m.mlir:{other}" == step.at for other in iotas if other != number for step in evidence)


PUT = """%b{n} = broadcast_in_dim {base}, dims = [] -> 8xi32; %i{n} = iota dim = 0 : 8xi32; %x{n} = add %b{n}, %i{n}
%k{n} = reshape %x{n} -> 8x1xi32; %l{n} = reshape %j -> 8x1xi32; %m{n} = concatenate %k{n}, %l{n}, dim = 1
%r{n} = scatter(%o, %m{n}, %u) <inserted=[0, 1], to=[0, 1], ivd=1> {{assign}}
"""
RNG = "rng %a, %b, %s, distribution = UNIFORM -> i32"
DRAWS = {
    "rng": RNG,
    "a call of what calls it": "call @draw(%a, %b, %s) -> i32",
    "custom_call": "custom_call @dice(%a, %b, %s) -> i32",
}


def drawn(draw, inner=RNG):
    """Two scatters at x - x + iota and at x - y + iota of numbers that are drawn in the same way."""
    lines = f"""%a = constant 0 : i32; %b = constant 100 : i32; %s = constant [] : 0xi64
        %first = {DRAWS[draw]}
        %second = {DRAWS[draw]}
        %none = subtract %first, %first; %some = subtract %first, %second\n"""
    lines += "".join(PUT.format(n=n, base=base) for n, base in enumerate(("%none", "%some")))
    return (
        module("%o: 8x4xf32, %u: 8xf32, %j: 8xi32", lines + "return %r0, %r1, %some")
        + function("private @draw", "%a: i32, %b: i32, %s: 0xi64", "%r = call @inner(%a, %b, %s) -> i32")
        + function("private @inner", "%a: i32, %b: i32, %s: 0xi64", f"%r = {inner}")
    )


@pytest.mark.parametrize("draw", DRAWS)
def test_trap_49_what_is_drawn_twice_is_two_numbers(draw):
    """Ops that read a state, calls of what holds them, and ops that nobody knows are twins of themselves only."""
    graph = hl.read(drawn(draw))
    first, second = numbers(graph, [node.operand(1) for node in graph.scatters])
    assert first != second
    one, other = (record.claims.coordinates for record in hl.classify(graph))
    assert (one, other) == (((0, 0),), ())


@pytest.mark.parametrize(("inner", "are_twins"), [("add %a, %b", True), (RNG, False)])
def test_a_call_of_pure_functions_has_twins(inner, are_twins):
    """Two calls of one function with equal arguments are one number where all that it runs is a function of them."""
    graph = hl.read(drawn("a call of what calls it", inner))
    calls = [node.result() for node in graph.functions["main"].body.nodes if node.name == "func.call"]
    first, second = numbers(graph, calls)
    assert (first == second) == are_twins


def test_constants_are_told_apart_by_value_and_type():
    """Equal numbers of one type are twins, whatever stands beside the value; another number or type is another one."""
    lines = """%a = constant [1, 2] : 2xi32; %c = constant [1, 3] : 2xi32; %d = constant [1, 2] : 2xi64
        %b = constant {mhlo.sharding = "{replicated}"} dense<[1, 2]> : 2xi32
        return %a, %b, %c, %d"""
    graph = hl.read(module("", lines))
    a, b, c, d = numbers(graph, graph.main.body.terminator.operands)
    assert a == b
    assert len({a, c, d}) == 3


def test_what_a_value_is_computed_by_is_known_when_it_is_gone():
    """The places of a chain are read while it stands: its ops may be erased before somebody asks for the evidence."""
    graph = hl.read(linked(("%p", "add")))
    computed = ValueNumbering(graph).computation(graph.scatters[0].operand(1))
    before = [str(location) for location in computed.trail()]
    for node in reversed(list(graph.main.body.nodes)):
        node.raw.erase()
    assert len(before) == 4
    assert [str(location) for location in computed.trail()] == before
