"""Twins: what is found for one scatter is told of another, alike one, with that one's own places."""

import numpy as np
import pytest

import hlo_lower as hl
from hlo_lower.base.causes import Code
from hlo_lower.facts.values.value_numbering import ValueNumbering
from hlo_lower.verify.run import Executable

CHAIN = """%b{n} = stablehlo.broadcast_in_dim {base}, dims = [] : (tensor<i32>) -> tensor<3xi32>
    %i{n} = stablehlo.iota dim = 0 : tensor<3xi32>
    %x{n} = stablehlo.{op} %b{n}, %i{n} : tensor<3xi32>
    %j{n} = stablehlo.reshape %x{n} : (tensor<3xi32>) -> tensor<3x1xi32>
    %r{n} = "stablehlo.scatter"({operand}, %j{n}, %u) <{{scatter_dimension_numbers = #stablehlo.scatter<
      update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0],
      index_vector_dim = 1>}}> ({{
    ^bb0(%c: tensor<f32>, %v: tensor<f32>):
      stablehlo.return %v : tensor<f32>
    }}) : (tensor<8x4xf32>, tensor<3x1xi32>, tensor<3x4xf32>) -> tensor<8x4xf32>
    """


def module(*links):
    """Scatters one after the other, each with index chain of its own: (base, op) for each."""
    lines, operand = "", "%o"
    for n, (base, op) in enumerate(links):
        lines += CHAIN.format(n=n, base=base, op=op, operand=operand)
        operand = f"%r{n}"
    return f"""module {{
  func.func public @main(%o: tensor<8x4xf32>, %u: tensor<3x4xf32>, %p: tensor<i32>, %q: tensor<i32>)
      -> tensor<8x4xf32> {{
    {lines}return {operand} : tensor<8x4xf32>
  }}
}}
"""


def test_values_computed_alike_have_one_number():
    """The same ops on the same values are twins; another value or another op makes another number."""
    graph = hl.read(module(("%p", "add"), ("%p", "add"), ("%q", "add"), ("%p", "subtract")))
    twins = ValueNumbering(graph)
    first, second, third, fourth = (twins.computed(node.operand(1)).number for node in graph.scatters)
    assert first == second
    assert len({first, third, fourth}) == 3


def test_evidence_of_a_twin_has_its_own_places():
    """Each of two alike scatters is explained by the lines of its own index chain, also after lowering."""
    text = module(("%p", "add"), ("%p", "add"))
    lines = text.splitlines()
    iotas = [n for n, line in enumerate(lines, 1) if "stablehlo.iota" in line]
    for records in (hl.classify(hl.read(text, "m.mlir")), hl.lower(text, name="m.mlir").records):
        for number, record in zip(iotas, records, strict=True):
            evidence = [step for fact in record.facts for step in fact.evidence]
            assert Code.IOTA(2).placed(f"m.mlir:{number}") in evidence
            assert not any(f"m.mlir:{other}" == step.at for other in iotas if other != number for step in evidence)


def test_another_argument_is_told_by_its_own_name():
    """What differs in what it takes is planned on its own: each record names the argument that it depends on."""
    first, second = hl.classify(hl.read(module(("%p", "add"), ("%q", "add"))))
    assert [r.bounds for r in (first, second)] == [Code.GUARDED(Code.ARGUMENT(n, "main", None)) for n in (2, 3)]


RANDOM = """module {{
  func.func public @main(%o: tensor<8x4xf32>, %u: tensor<8xf32>, %j: tensor<8xi32>)
      -> (tensor<8x4xf32>, tensor<8x4xf32>, tensor<i32>) {{
    %low = stablehlo.constant dense<0> : tensor<i32>
    %high = stablehlo.constant dense<100> : tensor<i32>
    %shape = stablehlo.constant dense<> : tensor<0xi64>
    %first = {draw}
    %second = {draw}
    %none = stablehlo.subtract %first, %first : tensor<i32>
    %some = stablehlo.subtract %first, %second : tensor<i32>
    {puts}
    return %r0, %r1, %some : tensor<8x4xf32>, tensor<8x4xf32>, tensor<i32>
  }}
  func.func private @draw(%a: tensor<i32>, %b: tensor<i32>, %s: tensor<0xi64>) -> tensor<i32> {{
    %n = func.call @inner(%a, %b, %s) : (tensor<i32>, tensor<i32>, tensor<0xi64>) -> tensor<i32>
    return %n : tensor<i32>
  }}
  func.func private @inner(%a: tensor<i32>, %b: tensor<i32>, %s: tensor<0xi64>) -> tensor<i32> {{
    %n = stablehlo.rng %a, %b, %s, distribution = UNIFORM : (tensor<i32>, tensor<i32>, tensor<0xi64>) -> tensor<i32>
    return %n : tensor<i32>
  }}
}}
"""
PUT = """%b{n} = stablehlo.broadcast_in_dim {base}, dims = [] : (tensor<i32>) -> tensor<8xi32>
    %i{n} = stablehlo.iota dim = 0 : tensor<8xi32>
    %x{n} = stablehlo.add %b{n}, %i{n} : tensor<8xi32>
    %k{n} = stablehlo.reshape %x{n} : (tensor<8xi32>) -> tensor<8x1xi32>
    %l{n} = stablehlo.reshape %j : (tensor<8xi32>) -> tensor<8x1xi32>
    %m{n} = stablehlo.concatenate %k{n}, %l{n}, dim = 1 : (tensor<8x1xi32>, tensor<8x1xi32>) -> tensor<8x2xi32>
    %r{n} = "stablehlo.scatter"(%o, %m{n}, %u) <{{scatter_dimension_numbers = #stablehlo.scatter<
      inserted_window_dims = [0, 1], scatter_dims_to_operand_dims = [0, 1], index_vector_dim = 1>}}> ({{
    ^bb0(%c: tensor<f32>, %v: tensor<f32>):
      stablehlo.return %v : tensor<f32>
    }}) : (tensor<8x4xf32>, tensor<8x2xi32>, tensor<8xf32>) -> tensor<8x4xf32>
    """
TYPES = "(tensor<i32>, tensor<i32>, tensor<0xi64>) -> tensor<i32>"
DRAWS = {
    "rng": f"stablehlo.rng %low, %high, %shape, distribution = UNIFORM : {TYPES}",
    "a call of what calls it": f"func.call @draw(%low, %high, %shape) : {TYPES}",
    "custom_call": f"stablehlo.custom_call @dice(%low, %high, %shape) : {TYPES}",
}


def drawn(draw):
    """Two scatters at x - x + iota and at x - y + iota of numbers that are drawn in the same way."""
    puts = "".join(PUT.format(n=n, base=base) for n, base in enumerate(("%none", "%some")))
    return RANDOM.format(draw=DRAWS[draw], puts=puts)


@pytest.mark.parametrize("draw", DRAWS)
def test_trap_49_what_is_drawn_twice_is_two_numbers(draw):
    """Ops that read a state, calls of what holds them, and ops that nobody knows are twins of themselves only."""
    graph = hl.read(drawn(draw))
    twins = ValueNumbering(graph)
    first, second = (twins.computed(node.operand(1)).number for node in graph.scatters)
    assert first != second
    one, other = (record.claims.coordinates for record in hl.classify(graph))
    assert (one, other) == (((0, 0),), ())


def test_a_call_of_pure_functions_has_twins():
    """Two calls of one function with equal arguments are one number where all that it runs is a function of them."""
    drawing = (
        "stablehlo.rng %a, %b, %s, distribution = UNIFORM : (tensor<i32>, tensor<i32>, tensor<0xi64>) -> tensor<i32>"
    )
    text = drawn("a call of what calls it")
    for inner, are_twins in (("stablehlo.add %a, %b : tensor<i32>", True), (drawing, False)):
        graph = hl.read(text.replace(drawing, inner))
        twins = ValueNumbering(graph)
        first, second = (node.result() for node in graph.functions["main"].body.nodes if node.name == "func.call")
        assert (twins.computed(first).number == twins.computed(second).number) == are_twins


def test_two_draws_write_at_two_places():
    """The lowered module writes where the numbers that it draws itself say."""
    lowered = Executable(hl.lower(drawn("rng")).text, "quick")
    operand, updates = np.zeros((8, 4), np.float32), np.arange(1, 9, dtype=np.float32)
    moved = set()
    for _ in range(6):
        one, other, apart = lowered.run([operand, updates, np.arange(8, dtype=np.int32) % 4])
        moved.add(int(apart))
        for found, base in ((one, 0), (other, int(apart))):
            expected = operand.copy()
            for k in range(8):
                if 0 <= base + k < 8:
                    expected[base + k, k % 4] = updates[k]
            assert np.array_equal(found, expected)
    assert moved != {0}


def test_constants_are_told_apart_by_value_and_type():
    """Equal numbers of one type are twins, whatever stands beside the value; another number or type is another one."""
    graph = hl.read("""func.func public @main() -> (tensor<2xi32>, tensor<2xi32>, tensor<2xi32>, tensor<2xi64>) {
  %a = stablehlo.constant dense<[1, 2]> : tensor<2xi32>
  %b = stablehlo.constant {mhlo.sharding = "{replicated}"} dense<[1, 2]> : tensor<2xi32>
  %c = stablehlo.constant dense<[1, 3]> : tensor<2xi32>
  %d = stablehlo.constant dense<[1, 2]> : tensor<2xi64>
  return %a, %b, %c, %d : tensor<2xi32>, tensor<2xi32>, tensor<2xi32>, tensor<2xi64>
}""")
    twins = ValueNumbering(graph)
    a, b, c, d = (twins.computed(value).number for value in graph.main.body.terminator.operands)
    assert a == b
    assert len({a, c, d}) == 3


def test_what_a_value_is_computed_by_is_known_when_it_is_gone():
    """The places of a chain are read while it stands: its ops may be erased before somebody asks for the evidence."""
    graph = hl.read(module(("%p", "add")))
    computed = ValueNumbering(graph).computed(graph.scatters[0].operand(1))
    before = [str(location) for location in computed.trail()]
    for node in reversed(list(graph.main.body.nodes)):
        node.raw.erase()
    assert len(before) == 4
    assert [str(location) for location in computed.trail()] == before
