"""Twins: what is found for one scatter is told of another, alike one, with that one's own places."""

import hlo_lower as hl
from hlo_lower.analysis.twins import Twins

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
    twins = Twins(graph)
    first, second, third, fourth = (twins.number(node.operand(1)) for node in graph.scatters)
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
            assert f"iota 0..2 at m.mlir:{number}" in evidence
            assert not any(f"m.mlir:{other}" in step for other in iotas if other != number for step in evidence)


def test_another_argument_is_told_by_its_own_name():
    """What differs in what it takes is planned on its own: each record names the argument that it depends on."""
    first, second = hl.classify(hl.read(module(("%p", "add"), ("%q", "add"))))
    assert (first.bounds, second.bounds) == ("guarded: argument 2 of @main", "guarded: argument 3 of @main")
