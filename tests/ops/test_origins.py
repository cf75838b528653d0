"""What a value may come from: each value is looked at once, and what is told is what a walk of its own would tell."""

import random

import pytest
from untyped_mlir import function

import hlo_lower as hl
from hlo_lower.ir import mlir
from hlo_lower.ir.view import Graph, Node, Value
from hlo_lower.ops import names
from hlo_lower.ops.origins import MOVED_OR_ALONE, ComesFrom, given_at_calls, made_by

SOURCES = {names.TRANSPOSE, names.SORT}
OPS = (
    "%{r} = negate %{a}",
    "%{r} = add %{a}, %{b}",
    "%{r} = reverse %{a}, dims = [0]",
    "%{r} = sort(%{a}) <dimension = 0> {{LT}}",
    "%{r} = transpose %{a}, dims = [1, 0] -> 2x2xf32",
    "%{r} = call @{f}(%{a}) -> 2x2xf32",
)


def program(seed: int) -> str:
    """Functions of random ops; each may call those behind it, several times, and with what they gave."""
    draw = random.Random(seed)
    functions = [f"f{k}" for k in range(3)]
    texts = list[str]()
    for number, name in enumerate(["main", *functions]):
        known, lines = ["x"], list[str]()
        for k in range(draw.randint(2, 9)):
            callees = functions[number:]
            weights = [6, 3, 2, 1, 1, 6 * bool(callees)]
            [line] = draw.choices(OPS, weights)
            a, b = draw.choice(known[-3:]), draw.choice(known)
            lines.append(line.format(r=f"v{k}", a=a, b=b, f=draw.choice(callees or functions)))
            known.append(f"v{k}")
        kind = "public" if name == "main" else "private"
        texts.append(function(f"{kind} @{name}", "%x: 2x2xf32", "; ".join(lines), f"%{known[-1]}"))
    return "".join(texts)


def walked(graph: Graph, value: Value) -> bool:
    """The same by a walk from one value."""
    seen, pending = {value}, [value]
    while pending:
        last = pending.pop()
        before, made = given_at_calls(graph, last), last.node
        if not before and made is not None and made.name in SOURCES:
            return True
        if not before and made is not None and made.name in MOVED_OR_ALONE:
            before = list(made.operands)
        pending += [one for one in before if one not in seen]
        seen.update(before)
    return False


@pytest.mark.parametrize("seed", range(40))
def test_each_value_is_told_as_by_a_walk_of_its_own(seed):
    """Whatever is asked first; functions that are called with what they gave make rounds."""
    graph = hl.read(program(seed))
    values = [value for raw in mlir.operations_within(graph.module.operation) for value in Node(raw).results]
    random.Random(seed).shuffle(values)
    comes_from = ComesFrom(graph, made_by(SOURCES), MOVED_OR_ALONE)
    assert [comes_from(value) for value in values] == [walked(graph, value) for value in values]


def test_a_long_chain_is_looked_at_once():
    """Of 5,000 ops each is asked: a walk for each would take minutes."""
    lines = [f"%v{k + 1} = negate %v{k}" for k in range(5_000)]
    graph, looked = hl.read(function("public @main", "%v0: 2xf32", "; ".join(lines), "%v5000")), []

    def is_source(made: Node | None) -> bool:
        looked.append(made)
        return False

    comes_from = ComesFrom(graph, is_source, MOVED_OR_ALONE)
    assert not any(comes_from(Node(raw).result()) for raw in mlir.operations_within(graph.module.operation)[2:-1])
    assert len(looked) < 20_000
