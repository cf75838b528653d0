"""Numbers that ops read: which elements are computed as scalars, and clamps that are taken away: random programs of
clamps, casts, tests and branches give the same numbers after it."""

import random

import numpy as np
import pytest

from hlo_lower.ir import mlir
from hlo_lower.ir.reader import read
from hlo_lower.lowering.linalg.scalars import drop_clamps, read_scalars

LIMITS = (-2, 0, 1, 5, 6, 7, 100)
EXTREME = {
    "arith.maxsi": np.maximum,
    "arith.minsi": np.minimum,
    "arith.maxui": np.maximum,
    "arith.minui": np.minimum,
}


class Program:
    """A random function of an i8 in linalg's scalars."""

    def __init__(self, rng):
        self.rng, self.count = rng, 0
        self.lines = ["%tells_the_reader_that_this_is_stablehlo = stablehlo.constant dense<0> : tensor<i8>"]
        self.lines += [f"%c{n}_{kind} = arith.constant {n} : {kind}" for n in LIMITS for kind in ("i8", "index")]

    def add(self, text, kind):
        """A line that gives a new value."""
        self.count += 1
        self.lines.append(f"%v{self.count} = {text}")
        return f"%v{self.count}", kind

    def chain(self, values, length):
        """Clamps and casts of values, added to them."""
        for _ in range(length):
            value, kind = self.rng.choice(values[-2:] + 3 * values[-1:])
            if kind == "i8" and self.rng.random() < 0.3:
                cast = self.rng.choice(("index_cast", "index_castui"))
                values.append(self.add(f"arith.{cast} {value} : i8 to index", "index"))
            elif self.rng.random() < 0.5:
                low, high = self.rng.choice((0, 0, 1)), self.rng.choice(LIMITS)
                sign = self.rng.choice("su")
                inner, _ = self.add(f"arith.max{sign}i {value}, %c{low}_{kind} : {kind}", kind)
                values.append(self.add(f"arith.min{sign}i {inner}, %c{high}_{kind} : {kind}", kind))
            else:
                op = self.rng.choice(list(EXTREME))
                values.append(self.add(f"{op} {value}, %c{self.rng.choice(LIMITS)}_{kind} : {kind}", kind))

    def condition(self, values):
        """A test of values, or of two of them."""
        value, kind = self.rng.choice(values)
        if self.rng.random() < 0.6:
            other = self.rng.choice([v for v, k in values if k == kind])
            test, _ = self.add(f"arith.cmpi eq, {value}, {other} : {kind}", "i1")
        else:
            predicate = self.rng.choice(("ule", "ult", "sle"))
            test, _ = self.add(f"arith.cmpi {predicate}, {value}, %c{self.rng.choice(LIMITS)}_{kind} : {kind}", "i1")
        if self.rng.random() < 0.3:
            test, _ = self.add(f"arith.andi {test}, {self.condition(values)} : i1", "i1")
        return test

    def text(self):
        """The function: what it computes in front of a branch, and in it."""
        values = [("%x", "i8")]
        self.chain(values, self.rng.randrange(1, 7))
        test = self.condition(values)
        self.count += 1
        whole = f"%v{self.count}"
        self.lines.append(f"{whole} = scf.if {test} -> (index) {{")
        inner = list(values)
        self.chain(inner, self.rng.randrange(1, 4))
        value, kind = inner[-1]
        index = value if kind == "index" else self.add(f"arith.index_cast {value} : i8 to index", "index")[0]
        self.lines.append(f"scf.yield {index} : index }} else {{ scf.yield %c100_index : index }}")
        value, kind = values[-1]
        returned = f"return {test}, {whole}, {value} : i1, index, {kind}"
        body = "\n".join([*self.lines, returned])
        return f"func.func public @main(%x: i8) -> (i1, index, {kind}) {{\n{body}\n}}"


def evaluate(block, known):
    """What a block returns, as arrays of numbers with a sign."""
    for node in block.nodes:
        if node.name == "stablehlo.constant":
            continue
        given = [known[operand] for operand in node.operands]
        if node.name in ("func.return", "scf.yield"):
            return given
        if node.name == "scf.if":
            taken, other = (evaluate(branch, known)[0] for branch in node.blocks)
            known[node.result()] = np.where(given[0], taken, other)
        else:
            known[node.result()] = computed(node, given)
    raise AssertionError(block)


def computed(node, given):
    """One op of arith; of an index 64 bits are enough to be read without a sign."""
    if node.name == "arith.constant":
        return np.full(256, int(node.attribute("value").value))
    narrow = str(node.operand(0).raw.type) == "i8"
    bare = [number % 256 if narrow else number.astype(np.uint64) for number in given]
    predicate = node.integer("predicate") if node.name == "arith.cmpi" else 0
    of = bare if predicate >= 6 or node.name.endswith("ui") else given
    if node.name == "arith.cmpi":
        return {0: np.equal, 3: np.less_equal, 6: np.less, 7: np.less_equal}[predicate](*of)
    if node.name in EXTREME:
        return EXTREME[node.name](*of).astype(np.int8 if narrow else np.int64).astype(np.int64)
    return of[0] & given[1] if node.name == "arith.andi" else of[0].astype(np.int64)


def results(graph):
    """What the function gives for each number."""
    block = graph.main.body
    return [number.tolist() for number in evaluate(block, {block.argument(0): np.arange(-128, 128)})]


@pytest.mark.parametrize("seed", range(4))
def test_random_programs(seed):
    """A hundred programs each; in a third of them something is taken away."""
    rng, changed = random.Random(seed), 0
    for _ in range(100):
        text = Program(rng).text()
        graph = read(text)
        expected = results(graph)
        changed += drop_clamps(graph)
        assert results(graph) == expected, text
    assert changed > 30


@pytest.mark.parametrize(
    ("iterator", "of", "is_scalar"), [('"reduction"', "(d0) -> (d0)", False), ("", "() -> ()", True)]
)
def test_a_generic_op_is_a_scalar_where_it_has_no_loops(iterator, of, is_scalar):
    """A sum of a whole row has a result without dims, too, and reads more than one element."""
    shape, dims = ("4x", "(d0)") if iterator else ("", "()")
    graph = read(
        f"""func.func public @main(%x: tensor<{shape}i32>) -> i32 {{
        %zero = arith.constant dense<0> : tensor<i32>
        %r = linalg.generic {{indexing_maps = [affine_map<{of}>, affine_map<{dims} -> ()>],
                             iterator_types = [{iterator}]}}
            ins(%x : tensor<{shape}i32>) outs(%zero : tensor<i32>) {{
        ^bb0(%a: i32, %b: i32):
          %c = arith.addi %a, %b : i32
          linalg.yield %c : i32
        }} -> tensor<i32>
        %e = tensor.extract %r[] : tensor<i32>
        return %e : i32
        }}""",
        is_structured=True,
    )
    assert read_scalars(graph) == is_scalar
    assert not mlir.verify_module(graph.module)
