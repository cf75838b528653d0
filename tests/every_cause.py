"""Small programs, and the codes of causes that each is there for."""

from dataclasses import dataclass, field
from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from every_op_cause import OP_PROGRAMS

import hlo_lower as hl
from hlo_lower.base.causes import Cause, Code
from hlo_lower.base.registry import DoesNotApply, When
from hlo_lower.facts.scatter.canonical import canonicalize
from hlo_lower.facts.scatter.dimension_numbers import NotCanonicalError
from hlo_lower.facts.scatter.facts import Arity, Drops, InBounds, Offsets, Unique
from hlo_lower.facts.values.region import Combiner
from hlo_lower.lowering.kinds import default_registry
from hlo_lower.ops.subset import Subset
from hlo_lower.ops.targets.native_scatter import NativeScatter

X, S, M = np.zeros(3, np.int32), np.int32(0), np.zeros(8, np.bool_)
LOOP = 50  # iterations
ZEROS = jnp.zeros(3, jnp.int32)


@dataclass(frozen=True)
class Case:
    """A program of an index vector x, an index s and a mask m, or a module's text; its codes; what is asked for."""

    program: object
    codes: tuple[Code, ...]
    how: dict = field(default_factory=dict)

    def text(self):
        """The module."""
        return self.program if isinstance(self.program, str) else jax.jit(self.program).lower(X, S, M).as_text()


def put(rows, *, size=8, how="set", value=1.0, **flags):
    """A write of points, or of rows, as they are: no negative index is moved up."""
    target = size if isinstance(size, jax.Array) else jnp.zeros(size)
    return getattr(target.at[rows], how)(value, mode="drop", wrap_negative_indices=False, **flags)


def cube(x):
    """The rows of a cube, each of whose dims may come in two parts."""
    rows = (wrapped(x[n] + jnp.arange(size), 8) for n, size in enumerate((2, 3, 2)))
    return tuple(jnp.meshgrid(*rows, indexing="ij"))


def within(x, low=0, high=7):
    """A vector between bounds."""
    return jnp.clip(x, low, high)


def wrapped(x, offset):
    """Negative indices moved up."""
    return jax.lax.select(x < 0, x + offset, x)


def inverse(x):
    """The permutation that undoes another."""
    return put(x, size=ZEROS, value=jnp.arange(3))


def carried(step, start, until=LOOP):
    """What a loop makes of a value."""
    return jax.lax.while_loop(lambda c: c[0] < until, lambda c: (c[0] + 1, step(*c)), (0, start))[1]


def in_loop(s):
    """A write at an index that a loop carries."""
    return jax.lax.while_loop(lambda c: c[1] != 5, lambda c: (put(c[1], size=c[0]), c[1] * s), (jnp.zeros(8), s))


NEVER = When("never", lambda facts: False)


def unwilling(op):
    """A rule that does not apply."""
    raise DoesNotApply("not today")


def as_it_is(op):
    """A rule that gives the scatter's own results: it stays."""
    return op.scatter.node.results


def with_rule(lowering, when=None):
    """The built-in rules, and one for tiles that overwrite, which beats them."""
    registry = default_registry()
    tile = {"subset": {Subset.POINT}, "combiner": {Combiner.ASSIGN}, "in_bounds": {InBounds.UNKNOWN}}
    tile |= {"drops": {Drops.WINDOWS}, "arity": {Arity.SINGLE}, "offsets": {Offsets.RUNTIME}, "unique": {Unique.PROVED}}
    registry.lowers("stablehlo.scatter", when=when, **tile)(lowering)
    return registry


V = "tensor<3xi32>"
ASSIGN = "stablehlo.return %v : tensor<f32>"
POINTS = "inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1"


def text(lines="", *, rows="%x", body=ASSIGN, flags="", functions="", numbers=POINTS, function="main", **types):
    """A module that writes points where these lines place them."""
    shapes = {"operand": "8xf32", "indices": "3x1xi32", "updates": "3xf32"} | types
    o, i, u = (f"tensor<{shapes[name]}>" for name in ("operand", "indices", "updates"))
    made = "" if rows == "%i" else f"%i = stablehlo.reshape {rows} : ({V}) -> {i}"
    given = f"%i: {i}, " if types.get("given", True) and rows == "%i" else ""
    return f"""module {{
func.func public @{function}(%o: {o}, {given}%x: {V}, %s: tensor<i32>, %m: tensor<3xi1>, %u: {u}) -> {o} {{
  {lines}
  {made}
  %r = "stablehlo.scatter"(%o, %i, %u) <{{
      scatter_dimension_numbers = #stablehlo.scatter<{numbers}>{flags}}}> ({{
  ^bb0(%c: tensor<f32>, %v: tensor<f32>):
    {body}
  }}) : ({o}, {i}, {u}) -> {o}
  return %r : {o}
}}
{functions}
}}"""


def constant(row):
    """One known row."""
    return f"%i = stablehlo.constant dense<{row}> : tensor<1xi32>"


def computed(line):
    """A region that returns what a line computes."""
    return f"%w = stablehlo.{line} : tensor<f32>\n    stablehlo.return %w : tensor<f32>"


LONG = "\n".join(f"%y{n} = stablehlo.negate %{f'y{n - 1}' if n else 'x'} : {V}" for n in range(201))
PUT = f"(tensor<8xf32>, {V}, tensor<i32>, tensor<3xi1>, tensor<3xf32>)"
PASSES = f"""func.func public @main(%x: {V}, %o: tensor<8xf32>, %u: tensor<3xf32>) -> tensor<8xf32> {{
  %z = stablehlo.constant dense<1> : {V}
  %m = stablehlo.constant dense<true> : tensor<3xi1>
  %s = stablehlo.constant dense<1> : tensor<i32>
  %q = func.call @put(%o, %z, %s, %m, %u) : {PUT} -> tensor<8xf32>
  %r = func.call @put(%q, %x, %s, %m, %u) : {PUT} -> tensor<8xf32>
  return %r : tensor<8xf32>
}}"""
PUBLIC = """func.func public @other(%x: tensor<f32>) -> tensor<f32> {
  return %x : tensor<f32>
}"""
POINT = "inserted_window_dims = [0], scatter_dims_to_operand_dims = [0]"
SLICE = "update_window_dims = [0], scatter_dims_to_operand_dims = [0]"
WINDOWS = "update_window_dims = [1], scatter_dims_to_operand_dims = [0], index_vector_dim = 1"
FLOATS = """%a = stablehlo.constant dense<1.0> : tensor<f32>
  %p = stablehlo.compare LT, %a, %a : (tensor<f32>, tensor<f32>) -> tensor<i1>
  %y = stablehlo.convert %p : (tensor<i1>) -> tensor<i32>
  %i = stablehlo.reshape %y : (tensor<i32>) -> tensor<1xi32>"""
LARGE = "%i = stablehlo.iota dim = 0 : tensor<8388608x1xi32>"
BYTES = """%b = stablehlo.convert %s : (tensor<i32>) -> tensor<ui8>
  %w = stablehlo.broadcast_in_dim %b, dims = [] : (tensor<ui8>) -> tensor<3x1xui8>
  %n = stablehlo.iota dim = 0 : tensor<3x1xui8>
  %i = stablehlo.add %w, %n : tensor<3x1xui8>"""
STEPS = f"""%w = stablehlo.broadcast_in_dim %s, dims = [] : (tensor<i32>) -> {V}
  %n = stablehlo.iota dim = 0 : {V}
  %y = stablehlo.add %w, %n : {V}"""


def summed(count, made, total, line):
    """The sum of so many values, each made by a line, added in pairs."""
    lines = [f"{made}{n} = {line(n)} : {V}" for n in range(count)]
    sums = range(count, 2 * count - 1)
    lines += [f"{made}{n} = stablehlo.add {made}{2 * (n - count)}, {made}{2 * (n - count) + 1} : {V}" for n in sums]
    return "\n".join([*lines, f"{total} = stablehlo.negate {made}{2 * count - 2} : {V}"])


CONSTANTS = "\n".join(f"%k{n} = stablehlo.constant dense<{n}> : {V}" for n in range(80))
MANY = f"{CONSTANTS}\n{summed(80, '%t', '%sum', 'stablehlo.xor %x, %k{}'.format)}"
WORK = summed(2000, "%t", "%z0", lambda _: "stablehlo.negate %x")
ADDS = """func.func private @adds(%c: tensor<f32>, %v: tensor<f32>) -> tensor<f32> {
  %i = stablehlo.constant dense<0> : tensor<1xi32>
  %o = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<f32>) -> tensor<3xf32>
  %r = "stablehlo.scatter"(%o, %i, %v) <{scatter_dimension_numbers = #stablehlo.scatter<
      inserted_window_dims = [0], scatter_dims_to_operand_dims = [0]>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    stablehlo.return %b : tensor<f32>
  }) : (tensor<3xf32>, tensor<1xi32>, tensor<f32>) -> tensor<3xf32>
  %s = stablehlo.slice %r [0:1] : (tensor<3xf32>) -> tensor<1xf32>
  %n = stablehlo.reshape %s : (tensor<1xf32>) -> tensor<f32>
  return %n : tensor<f32>
}"""
CALLS = """%w = func.call @adds(%c, %v) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    stablehlo.return %w : tensor<f32>"""
HOLDS = text(body=CALLS, functions=ADDS)
OUTSIDE = f"%y = func.call @f(%x) : ({V}) -> {V}"
QUANT = "!quant.uniform<i8:f32, 2.0>"
REDUCED = """func.func public @main(%x: tensor<3xi32>) -> tensor<i32> {
  %z = stablehlo.constant dense<0> : tensor<i32>
  %o = stablehlo.constant dense<0> : tensor<8xi32>
  %r = stablehlo.reduce(%x init: %z) across dimensions = [0] : (tensor<3xi32>, tensor<i32>) -> tensor<i32>
  reducer(%a: tensor<i32>, %b: tensor<i32>) {
    %s = "stablehlo.scatter"(%o, %a, %b) <{scatter_dimension_numbers = #stablehlo.scatter<
        inserted_window_dims = [0], scatter_dims_to_operand_dims = [0]>}> ({
    ^bb0(%c: tensor<i32>, %v: tensor<i32>):
      stablehlo.return %v : tensor<i32>
    }) : (tensor<8xi32>, tensor<i32>, tensor<i32>) -> tensor<8xi32>
    %t = stablehlo.slice %s [2:3] : (tensor<8xi32>) -> tensor<1xi32>
    %n = stablehlo.reshape %t : (tensor<1xi32>) -> tensor<i32>
    stablehlo.return %n : tensor<i32>
  }
  return %r : tensor<i32>
}"""
EFFECT = """%w = stablehlo.custom_call @f(%v) {has_side_effect = true} : (tensor<f32>) -> tensor<f32>
    stablehlo.return %w : tensor<f32>"""
WHOLE = "update_window_dims = [0]"
ONE = {"rows": "%i", "indices": "1xi32", "given": False}
OPEN = {"operand": "?x4xf32", "indices": "1xi32", "updates": "4xf32", "rows": "%i"}
OPEN_ROWS = {**OPEN, "operand": "8x?xf32", "updates": "?xf32"}
ROW = "update_window_dims = [0], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 0"
SPREAD = text().replace("module {", "module attributes {mhlo.num_partitions = 4 : i32} {")
UNREDUCED = SPREAD.replace("}) : (", '}) {mhlo.sharding = "{unreduced}"} : (')
NPU = hl.Target("npu", refused={"stablehlo.scatter": "", "stablehlo.select": "slow", "stablehlo.while": ""})
PLAIN = hl.Target("npu", ops={"stablehlo.add"})
NARROW = hl.Target("npu", op_dtypes={"stablehlo.select": {"i32"}, "stablehlo.while": {"i32"}})
ONLY = hl.Target("npu", refused={"stablehlo.scatter": ""}, dtypes={"i32", "i1"})
KEEPS = hl.Target("npu", keep=[NativeScatter(in_bounds="any", unique="any")])
CANONICALIZED = {"canonicalized": True}
KEPT = {"lowered": True, "keep_unsupported": True}


def nearly_named(x, s):
    """What is almost a softmax, twice, almost a norm, and almost a gelu."""
    y = jnp.outer(x, jnp.arange(5)).astype(jnp.float32)
    e, other = jnp.exp(y), jnp.exp(y - y.max(0, keepdims=True))
    root = jax.lax.rsqrt((y * y).mean(-1, keepdims=True) + 1e-6)
    cubic = jnp.tanh(0.7978845608 * (y + 0.05 * y**3))
    found = (e / e.sum(1, keepdims=True), other / other.sum(1, keepdims=True), (y + s) * root, 0.5 * y * (1 + cubic))
    return jax.tree.map(jnp.cos, found)


NAMED = {"named": True}
NEARLY = (Code.NAMED_OP_LACKS, Code.OTHER_AXES, Code.OTHER_VALUE, Code.OTHER_CONSTANT)
ANYWHERE = (
    *(Code.ARGUMENT, Code.NOT_BOUNDED, Code.GUARDED, Code.POLICY, Code.START_WITHIN, Code.ONE_WINDOW),
    *(Code.MERGED, Code.RETURNS_UPDATE, Code.CHOSEN, Code.MISSES, Code.LESS_SPECIFIC),
)
SEVERAL = (Code.SINGLE_ELEMENTS, Code.NO_CLAIM, Code.FORM, Code.COLUMN, Code.LOOSE, Code.COSTS)
NOTHING = (Code.NOTHING_IN_BOUNDS, Code.ALL_DROPPED, Code.NOTHING_WRITTEN)
SIZES = (Code.SIZES_AT_RUN_TIME, Code.WITHOUT_SIZES, Code.SIZE_AT_RUN_TIME, Code.START_OF_UNKNOWN_SIZE)
TWO_RUNS = (Code.SECOND_RUN, Code.ORDER_WOULD_CHANGE, Code.SUM)

CASES = {
    "nearly named": Case(lambda x, s, m: nearly_named(x, s), NEARLY, NAMED),
    "anywhere": Case(lambda x, s, m: put(s), ANYWHERE),
    "several": Case(lambda x, s, m: put(x), SEVERAL),
    # steps of a range
    "clamped": Case(lambda x, s, m: put(jax.lax.clamp(0, s, 7)), (Code.CLAMPED, Code.PROVED)),
    "minimum": Case(lambda x, s, m: put(jnp.maximum(jnp.minimum(x, 7), 0)), (Code.MINIMUM, Code.MAXIMUM)),
    "masked": Case(lambda x, s, m: put(x & 7), (Code.MASKED,)),
    "remainder": Case(lambda x, s, m: put(jax.lax.rem(x, 4)), (Code.REMAINDER,)),
    "ones": Case(lambda x, s, m: put(jax.lax.population_count(x)), (Code.ONES,)),
    "normalised": Case(lambda x, s, m: put(wrapped(within(s, -8, 7), 8)), (Code.NORMALISED,)),
    "operation": Case(lambda x, s, m: put(x + s), (Code.OPERATION,)),
    "constant": Case(lambda x, s, m: put(np.array([0, 2, 4])), (Code.CONSTANT,)),
    "iota": Case(lambda x, s, m: put(jnp.arange(3)), (Code.IOTA,)),
    "sorted": Case(lambda x, s, m: put(jnp.sort(within(x))), (Code.SORTED,)),
    "top_k": Case(lambda x, s, m: put(jax.lax.top_k(within(x), 2)[0]), (Code.TOP_K,)),
    "top_k indices": Case(lambda x, s, m: put(jax.lax.top_k(x, 2)[1]), (Code.TOP_K_INDICES, Code.PICKED)),
    "folded": Case(lambda x, s, m: put(jnp.max(within(x))), (Code.FOLDED,)),
    "summed": Case(lambda x, s, m: put(jnp.sum(within(x))), (Code.SUMMED,)),
    "scattered": Case(lambda x, s, m: put(put(x, size=ZEROS, value=2)), (Code.SCATTERED,)),
    "added": Case(lambda x, s, m: put(put(x, size=ZEROS, value=2, how="add")), (Code.ADDED,)),
    "known points": Case(lambda x, s, m: put(put(np.array([1, 2]), size=ZEROS, value=2)), (Code.KNOWN_POINTS,)),
    "counted": Case(lambda x, s, m: put(carried(lambda i, j: j + 1, jnp.int32(0))), (Code.COUNTED, Code.NOT_KNOWN)),
    "kept within": Case(lambda x, s, m: put(carried(lambda i, j: (j + s) % 4, jnp.int32(0))), (Code.KEPT_WITHIN,)),
    "running sum": Case(lambda x, s, m: put(jnp.cumsum(m) - 1), (Code.RUNNING_SUM,)),
    "running steps": Case(lambda x, s, m: put(jnp.cumsum(within(x, 1, 3))), (Code.RUNNING_STEPS, Code.PLACES)),
    "known floats": Case(text(FLOATS, updates="f32", numbers=POINT, **ONE), (Code.KNOWN_FLOATS,)),
    # sources
    "result of": Case(lambda x, s, m: put(x[within(x)]), (Code.RESULT_OF,)),
    "carried rows": Case(lambda x, s, m: in_loop(s), (Code.CARRIED_BY,)),
    "branches": Case(lambda x, s, m: put(jax.lax.cond(s > 0, lambda: x * 2, lambda: within(x))), (Code.BRANCHES,)),
    "region": Case(REDUCED, (Code.ARGUMENT_OF,)),
    "outside": Case(text(OUTSIDE, rows="%y", functions=f"func.func private @f({V}) -> {V}"), (Code.RESULT_OF_CALL,)),
    "calls": Case(text(function="put", functions=PASSES).replace("public @put", "private @put"), (Code.AT_EACH_CALL,)),
    "never called": Case(text(functions=PUBLIC).replace("public @main", "private @main"), (Code.NEVER_CALLED,)),
    "far": Case(text(LONG, rows="%y200"), (Code.TOO_FAR,)),
    "large": Case(text(LARGE, updates="8388608xf32", **ONE | {"indices": "8388608x1xi32"}), (Code.TOO_LARGE,)),
    # how elements differ
    "moved up": Case(lambda x, s, m: put(wrapped(s + jnp.arange(3), 9)), (Code.MOVED_UP, Code.RUN_OF_ROWS)),
    "sorted along": Case(lambda x, s, m: put(jnp.argsort(x)), (Code.SORTED_ALONG,)),
    "picked or": Case(lambda x, s, m: put(jnp.where(x > 4, jnp.arange(3), 9)), (Code.DISTINCT_OR_WITHIN,)),
    "gathered": Case(lambda x, s, m: put(jnp.argsort(x)[jnp.argsort(x)]), (Code.GATHERED_APART,)),
    "written once": Case(lambda x, s, m: put(inverse(jnp.argsort(x))), (Code.WRITTEN_ONCE,)),
    # bounds, and the part that is written
    "outside bounds": Case(lambda x, s, m: put(np.array([9, 9])), NOTHING),
    "no windows": Case(text(rows="%i", indices="0x1xi32", updates="0xf32"), (Code.NO_WINDOWS,)),
    "whole": Case(text(rows="%i", numbers=WHOLE, indices="0xi32", updates="8xf32"), (Code.NO_INDEXED_DIM,)),
    "batches": Case(lambda x, s, m: put((jnp.arange(3), x), size=jnp.zeros((3, 8))), (Code.WINDOW_PER_BATCH,)),
    "rows": Case(lambda x, s, m: put(x, size=jnp.zeros((8, 2))), (Code.WHOLE_ROWS,)),
    # regions
    "no-op": Case(text(body="stablehlo.return %c : tensor<f32>"), (Code.RETURNS_CURRENT,)),
    "a constant": Case(text(body=computed("constant dense<1.0>")), (Code.RETURNS_CONSTANT,)),
    "of the update": Case(text(body=computed("negate %v")), (Code.OF_UPDATE,)),
    "of the current": Case(text(body=computed("negate %c")), (Code.OF_CURRENT,)),
    "combined": Case(text(body=computed("add %c, %v")), (Code.COMBINED_BY,)),
    "subtracted": Case(text(body=computed("subtract %c, %v")), (Code.SUBTRACTED,)),
    "computed": Case(text(body=computed("subtract %v, %c")), (Code.COMPUTED_BY,)),
    # flags
    "a run": Case(lambda x, s, m: put(s + jnp.arange(3)), (Code.ROWS_OF_RUN,)),
    "claimed": Case(text(flags=", unique_indices = true"), (Code.FLAG_CLAIMED,)),
    "trusted": Case(text(flags=", unique_indices = true"), (Code.FLAG_TRUSTED,), {"trust_flags": True}),
    "constants": Case(lambda x, s, m: put(np.array([5, 1, 2])), (Code.CONSTANTS_DIFFER,)),
    "equal constants": Case(lambda x, s, m: put(np.array([5, 1, 5])), (Code.CONSTANTS_MEET,)),
    # positions
    "repeated": Case(lambda x, s, m: put(jnp.broadcast_to(s, 3)), ()),
    "same place": Case(lambda x, s, m: put(jnp.broadcast_to(s, 3), how="add"), (Code.SAME_PLACE,)),
    "several dims": Case(lambda x, s, m: put((x, x), size=jnp.zeros((8, 8))), (Code.SEVERAL_DIMS,)),
    "stride": Case(lambda x, s, m: put(s + 2 * jnp.arange(3)), (Code.STRIDE,)),
    "little": Case(lambda x, s, m: put(wrapped(s + jnp.arange(3), 5)), (Code.MOVED_UP_TOO_LITTLE,)),
    "wraps": Case(text(BYTES, rows="%i", indices="3x1xui8", given=False), (Code.MAY_WRAP,)),
    "two runs": Case(lambda x, s, m: put(s + jnp.arange(3)[:, None] + jnp.arange(2)), TWO_RUNS),
    # what became of it
    "kept": Case(text(), (Code.KEPT,), {"target": KEEPS}),
    "skipped": Case(text(), (Code.KEPT_ON_REQUEST,), {"lowered": True, "skip": ["#1"]}),
    "refused": Case(text(), (Code.NO_LOWERING, Code.KEPT_UNSUPPORTED, Code.REFUSES_OPS), {**KEPT, "target": PLAIN}),
    "on its type": Case(text(), (Code.REFUSES_OP_ON,), {"target": NARROW}),
    "type": Case(text(), (Code.REFUSES_DTYPE,), {"target": ONLY}),
    "preferred": Case(lambda x, s, m: put(s), (Code.PREFERRED,), {"prefer": ["while"]}),
    "not today": Case(lambda x, s, m: put(s), (Code.SAID,), {"registry": with_rule(unwilling), "lowered": True}),
    "condition": Case(lambda x, s, m: put(s), (Code.NEEDS,), {"registry": with_rule(unwilling, NEVER)}),
    "given back": Case(lambda x, s, m: put(s), (Code.TAKEN_WHOLE,), {"registry": with_rule(as_it_is), "lowered": True}),
    "open": Case(text(**OPEN, numbers=ROW), SIZES),
    "quantized": Case(text().replace("xf32>", f"x{QUANT}>").replace("<f32>", f"<{QUANT}>"), (Code.QUANTIZED,)),
    "effect": Case(text(body=EFFECT), (Code.SIDE_EFFECT,)),
    "index": Case(text(rows="%i", indices="3x1xindex"), (Code.INDEX_ELEMENTS,)),
    "unreduced": Case(UNREDUCED, (Code.UNREDUCED,)),
    "overhanging": Case(text(constant(6), numbers=SLICE, **ONE), (Code.OVERHANGS,), {"oob": "spec"}),
    "many terms": Case(text(MANY, rows="%sum"), (Code.TOO_MANY_TERMS,)),
    "budget": Case(text(WORK, rows="%z0"), (Code.OUT_OF_BUDGET,)),
    "rolled": Case(lambda x, s, m: put(jnp.roll(jnp.argsort(x), 1)), (Code.SLICES_APART,)),
    "start zero": Case(text(constant(0), given=False, **OPEN, numbers=ROW), (Code.START_ZERO,)),
    "start beyond": Case(text(constant(9), given=False, **OPEN_ROWS, numbers=ROW), (Code.START_BEYOND,)),
    "windows": Case(text(STEPS, numbers=WINDOWS, updates="3x2xf32", rows="%y"), (Code.WINDOWS_OF, Code.WINDOW_EXTENT)),
    "three wrapped": Case(lambda x, s, m: put(cube(x), size=jnp.zeros((8, 8, 8))), (Code.TOO_MANY_WRAPPED,)),
    "canonical": Case(text(**OPEN, numbers=ROW), (Code.DYNAMIC_SHAPE,), CANONICALIZED),
    "holds": Case(HOLDS, (Code.HOLDS_KEPT,), {**KEPT, "skip": ["#2"]}),
    **{name: Case(text, codes, {"lowered": True, **how}) for name, (text, codes, how) in OP_PROGRAMS.items()},
}


@cache
def told_of(name):
    """The records of a program, and what became of its other ops, found once."""
    case = CASES[name]
    if case.how in (NAMED, CANONICALIZED):
        return (), ()
    how = dict(case.how)
    if how.pop("lowered", False):
        lowered = hl.lower(case.text(), name="m.mlir", **how)
        return lowered.records, lowered.changes
    return hl.classify(hl.read(case.text(), "m.mlir"), **how), ()


@cache
def causes_of(name):
    """The causes in the records of a program, those within others included, found once."""
    case = CASES[name]
    if case.how == NAMED:
        return tuple(miss.why for miss in hl.raise_named(case.text()).misses)
    if case.how == CANONICALIZED:
        graph = hl.read(case.text())
        with pytest.raises(NotCanonicalError) as error:
            canonicalize(graph.scatters[0])
        return (error.value.cause,)
    records, changes = told_of(name)
    found = [change.why for change in changes]
    found += [cause for record in records for fact in record.facts for cause in fact.evidence]
    found += [reason for record in records for other in record.why_not for reason in other.reasons]
    found += [cause for record in records for cause in (record.bounds, record.why)]
    return tuple(inner for cause in found for inner in within_cause(cause))


def within_cause(cause):
    """A cause and those in it."""
    yield cause
    for value in cause.values:
        for inner in value if isinstance(value, tuple) else (value,):
            if isinstance(inner, Cause):
                yield from within_cause(inner)
