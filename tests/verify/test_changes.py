"""What changed between two modules: what is no change, one op, alike ones, bodies of loops, results that went."""

import pytest
from untyped_mlir import module

from hlo_lower.verify.changes import changes_between

ARGUMENTS = "%x: tensor<8xf32>, %y: tensor<8xf32>"
T = "tensor<8xf32>"


def text(lines, returned="%r", results=T, arguments=ARGUMENTS):
    """A module whose main has these lines."""
    body = "\n".join(f"    {line}" for line in lines)
    return (
        f"module {{\n  func.func public @main({arguments}) -> ({results}) {{\n{body}\n"
        f"    return {returned} : {results}\n  }}\n}}\n"
    )


def op(result, name, *operands):
    """An elementwise op."""
    return f"%{result} = stablehlo.{name} {', '.join(operands)} : {T}"


SUM = [op("a", "tanh", "%x"), op("b", "sine", "%y"), op("r", "add", "%a", "%b")]


@pytest.mark.parametrize(
    "after",
    [
        text([op("k", "sine", "%y"), op("m", "tanh", "%x"), op("r", "add", "%m", "%k")]),
        text([*SUM[:2], op("dead", "cosine", "%x"), SUM[2]]),
        text(
            [SUM[1], f"%a = func.call @f(%x) : ({T}) -> {T}", SUM[2]],
        ).removesuffix("}\n")
        + f"  func.func private @f(%x: {T}) -> {T} {{\n    {op('r', 'tanh', '%x')}\n    return %r : {T}\n  }}\n}}\n",
    ],
    ids=["order", "dead", "called"],
)
def test_what_is_no_change(after):
    """Names, order, dead ops and functions that are written out are the same."""
    found = changes_between(text(SUM), after)
    assert (bool(found), found.same, found.ops) == (False, 3, (3, 3))


def test_an_op_that_became_another_is_one_change():
    """With the op that it reads, who reads it, and where both stand; what stands around it is the same."""
    found = changes_between(text(SUM), text([SUM[0], op("b", "cosine", "%y"), SUM[2]]))
    [change] = found.changes
    assert (change.where, change.first, change.second) == ("main", ("line 4",), ("line 4",))
    assert change.inputs == ("argument 1",)
    assert change.results == ("read by stablehlo.add at line 5",)
    assert change.before[0] == f"%0 = stablehlo.sine %arg0 : {T}"
    assert change.after[0] == f"%0 = stablehlo.cosine %arg0 : {T}"
    assert (found.same, found.ops, found.interface) == (2, (3, 3), ())


def test_alike_changes_are_one_with_a_count():
    """Two layers that changed alike are shown once, with the places of both."""
    texts = [text([op("a", name, "%x"), op("b", name, "%y")], "%a, %b", f"{T}, {T}") for name in ("tanh", "logistic")]
    [change] = changes_between(*texts).changes
    assert (change.count, change.first) == (2, ("line 3", "line 4"))


def test_a_change_in_a_loop_is_told_there():
    """The loop stays the same op; its body has the change, which names the way to it."""
    arguments = "%i: tensor<i32>, %x: tensor<8xf32>"
    texts = [
        f"""module {{
  func.func public @main({arguments}) -> {T} {{
    %one = stablehlo.constant dense<1> : tensor<i32>
    %four = stablehlo.constant dense<4> : tensor<i32>
    %r:2 = stablehlo.while(%a = %i, %b = %x) : tensor<i32>, {T}
    cond {{
      %p = stablehlo.compare LT, %a, %four : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %p : tensor<i1>
    }} do {{
      %n = stablehlo.add %a, %one : tensor<i32>
      %m = stablehlo.{name} %b : {T}
      stablehlo.return %n, %m : tensor<i32>, {T}
    }}
    return %r#1 : {T}
  }}
}}"""
        for name in ("tanh", "sine")
    ]
    [change] = changes_between(*texts).changes
    assert change.where.startswith("main > while 1")
    assert "argument 1 of the while" in change.inputs[0]
    assert (change.before[0].split()[2], change.after[0].split()[2]) == ("stablehlo.tanh", "stablehlo.sine")


def test_a_result_that_went_takes_its_ops_along():
    """The signature differs, and the ops that nothing reads any more are those of the first version alone."""
    before = text([*SUM, op("s", "negate", "%r")], "%r, %s", f"{T}, {T}")
    found = changes_between(before, text(SUM))
    assert len(found.interface) == 1
    [change] = found.changes
    assert (change.after, change.results, change.first) == ((), (), ("line 6",))
    assert "stablehlo.negate" in change.before[0]
    assert (found.same, found.ops) == (3, (4, 3))
    [change] = changes_between(text(SUM), before).changes
    assert (change.before, change.second) == ((), ("line 6",))


def test_a_constant_is_a_change_and_a_long_one_is_shortened():
    """Of another constant the op that reads it changes; what stands in a long one is left out."""
    texts = [
        text([f"%c = stablehlo.constant dense<{values}> : {T}", op("r", "add", "%x", "%c")])
        for values in ("1.0", str([n / 7 for n in range(8)]))
    ]
    [change] = changes_between(*texts).changes
    assert "dense<1.000000e+00>" in change.before[0]
    assert "dense<...>" in change.after[0]


def test_a_flag_of_an_op_is_a_change():
    """What an op promises counts, though it computes the same."""
    arguments, numbers = "%o: 8xf32, %i: 5x1xi32, %u: 5xf32", "inserted=[0], to=[0], ivd=1"
    texts = [
        module(arguments, f"%r = scatter(%o, %i, %u) <{numbers}{flag}> {{%c, %d: return %d}}", "%r")
        for flag in ("", ", unique_indices = true")
    ]
    [change] = changes_between(*texts).changes
    assert [any("unique_indices = true" in line for line in told) for told in (change.before, change.after)] == [
        False,
        True,
    ]
