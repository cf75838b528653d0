"""Small programs that together reach every code of a cause."""

from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from untyped_mlir import function, module

import hlo_lower as hl
from hlo_lower.base.causes import Cause
from hlo_lower.base.registry import DoesNotApply, When
from hlo_lower.facts.scatter.canonical import canonicalize
from hlo_lower.facts.scatter.dimension_numbers import NotCanonicalError
from hlo_lower.facts.scatter.facts import Arity, Drops, InBounds, Offsets, Unique
from hlo_lower.facts.values.region import Combiner
from hlo_lower.lowering.kinds import default_registry
from hlo_lower.ops.subset import Subset
from hlo_lower.ops.targets.native_scatter import NativeScatter

X, S, M = np.zeros(3, np.int32), np.int32(0), np.zeros(8, np.bool_)
ZEROS = jnp.zeros(3, jnp.int32)


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


def carried(step, start, until=50):
    """What a loop makes of a value."""
    return jax.lax.while_loop(lambda c: c[0] < until, lambda c: (c[0] + 1, step(*c)), (0, start))[1]


def in_loop(s):
    """A write at an index that a loop carries."""
    return jax.lax.while_loop(lambda c: c[1] != 5, lambda c: (put(c[1], size=c[0]), c[1] * s), (jnp.zeros(8), s))


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


POINTS = "inserted=[0], to=[0], ivd=1"


def text(lines="", *, rows="%x", body="assign", flags="", functions="", numbers=POINTS, name="main", **types):
    """A module that writes points where these lines place them."""
    shapes = {"operand": "8xf32", "indices": "3x1xi32", "updates": "3xf32"} | types
    made = "" if rows == "%i" else f"%i = reshape {rows} -> {shapes['indices']}"
    given = f"%i: {shapes['indices']}, " if types.get("given", True) and rows == "%i" else ""
    arguments = f"%o: {shapes['operand']}, {given}%x: 3xi32, %s: i32, %m: 3xi1, %u: {shapes['updates']}"
    line = f"%r = scatter(%o, %i, %u) <{numbers}{flags}> {{{body}}}"
    return f"module {{\n{function(f'public @{name}', arguments, f'{lines}; {made}; {line}')}{functions}}}"


def computed(line):
    """A region that returns what a line computes."""
    return f"%c, %v: %w = {line}; return %w"


PUT = "call @put({}, %s, %m, %u) -> 8xf32"
PASSES = function(
    "public @main",
    "%x: 3xi32, %o: 8xf32, %u: 3xf32",
    f"""%z = constant 1 : 3xi32; %m = constant true : 3xi1; %s = constant 1 : i32
    %q = {PUT.format("%o, %z")}; %r = {PUT.format("%q, %x")}""",
)
FLOATS = "%a = constant 1.0 : f32; %p = compare LT, %a, %a; %y = convert %p -> i32; %i = reshape %y -> 1xi32"
BYTES = """%b = convert %s -> ui8; %w = broadcast_in_dim %b, dims = [] -> 3x1xui8
  %n = iota dim = 0 : 3x1xui8; %i = add %w, %n"""
STEPS = "%w = broadcast_in_dim %s, dims = [] -> 3xi32; %n = iota dim = 0 : 3xi32; %y = add %w, %n"
LONG = "\n".join(f"%y{n} = negate {f'%y{n - 1}' if n else '%x'}" for n in range(201))


def summed(count, line):
    """The sum %sum of so many values, each made by a line, added in pairs."""
    lines = [f"%t{n} = {line.format(n=n)}" for n in range(count)]
    lines += [f"%t{n} = add %t{2 * (n - count)}, %t{2 * (n - count) + 1}" for n in range(count, 2 * count - 1)]
    return "\n".join([*lines, f"%sum = negate %t{2 * count - 2}"])


MANY = "\n".join(f"%k{n} = constant {n} : 3xi32" for n in range(80)) + "\n" + summed(80, "xor %x, %k{n}")
ADDS = function(
    "private @adds",
    "%c: f32, %v: f32",
    """%i = constant 0 : 1xi32; %o = broadcast_in_dim %c, dims = [] -> 3xf32
    %w = scatter(%o, %i, %v) <inserted=[0], to=[0]> {assign}; %s = slice %w [0:1]; %r = reshape %s -> f32""",
)
QUANT = "!quant.uniform<i8:f32, 2.0>"
REDUCED = module(
    "%x: 3xi32",
    """%z = constant 0 : i32; %o = constant 0 : 8xi32
    %r = reduce(%x, %z) <dimensions = array<i64: 0>> {%a, %b:
      %s = scatter(%o, %a, %b) <inserted=[0], to=[0]> {assign}; %t = slice %s [2:3]; %n = reshape %t -> i32; return %n
    } -> i32""",
)
ONE = {"rows": "%i", "indices": "1xi32", "given": False}
OPEN = {"operand": "?x4xf32", "indices": "1xi32", "updates": "4xf32", "rows": "%i"}
OPEN_ROWS = {**OPEN, "operand": "8x?xf32", "updates": "?xf32"}
ROW = "window=[0], inserted=[0], to=[0], ivd=0"
SPREAD = text().replace("module {", "module attributes {mhlo.num_partitions = 4 : i32} {")
PLAIN = hl.Target("npu", ops={"stablehlo.add"})
NARROW = hl.Target("npu", op_dtypes={"stablehlo.select": {"i32"}, "stablehlo.while": {"i32"}})
ONLY = hl.Target("npu", refused={"stablehlo.scatter": ""}, dtypes={"i32", "i1"})
KEEPS = hl.Target("npu", keep=[NativeScatter(in_bounds="any", unique="any")])
KEPT = {"lowered": True, "keep_unsupported": True}
ANYWHERE = lambda x, s, m: put(s)  # noqa: E731


def nearly_named(x, s):
    """What is almost a softmax, twice, almost a norm, and almost a gelu."""
    y = jnp.outer(x, jnp.arange(5)).astype(jnp.float32)
    e, other = jnp.exp(y), jnp.exp(y - y.max(0, keepdims=True))
    root = jax.lax.rsqrt((y * y).mean(-1, keepdims=True) + 1e-6)
    cubic = jnp.tanh(0.7978845608 * (y + 0.05 * y**3))
    found = (e / e.sum(1, keepdims=True), other / other.sum(1, keepdims=True), (y + s) * root, 0.5 * y * (1 + cubic))
    return jax.tree.map(jnp.cos, found)


NAMED, CANONICALIZED = {"named": True}, {"canonicalized": True}
VECTOR = "6xf32"
SELF = "mhlo.attributes = {}, mhlo.version = 1 : i64"


def refusing(*ops):
    """How a module is lowered for a target that refuses ops."""
    return {"lowered": True, "target": hl.Target("npu", refused={f"stablehlo.{op}": "none" for op in ops})}


def program(line, kind=VECTOR, functions=""):
    """A module of one function whose result a line computes from its argument."""
    return module(f"%x: {kind}", f"%r = {line}", more=functions)


def sort(compare, kind=VECTOR):
    """A sort by a comparator."""
    return program(f"sort(%x) {{%a, %b: %lt = compare LT, %a, %b, {compare}; return %lt}}", kind)


def call(name, attributes=SELF, result=VECTOR):
    """A custom call."""
    return program(f"custom_call @{name}(%x) {{{attributes}}} -> {result}")


def softmax(attributes, body="", version=""):
    """A composite that says that it is a softmax, and what it becomes."""
    says = f"decomposition = @own, composite_attributes = {{{attributes}}}{version}"
    functions = function("private @own", "%x: 6xf32", body or "%r = sign %x")
    return program(f'composite "odml.softmax" %x {{{says}}} -> 6xf32', functions=functions)


SOFTMAX = """%low = constant 0xFF800000 : f32; %zero = constant 0.0 : f32
  %m = reduce(%x init: %low) applies stablehlo.maximum across dimensions = [0]
  %mb = broadcast_in_dim %m, dims = [] -> 6xf32; %d = subtract %x, %mb; %e = exponential %d
  %s = reduce(%e init: %zero) applies stablehlo.add across dimensions = [0]
  %sb = broadcast_in_dim %s, dims = [] -> 6xf32; %r = divide %e, %sb"""


def loop(last):
    """A loop that adds a value to itself, up to a number of iterations."""
    return module(
        "%x: 6xf32, %n: i32",
        f"""%zero = constant 0 : i32
        %r:2 = while(%i = %zero, %y = %x) cond {{%p = compare LT, %i, {last}; return %p}} do {{
          %j = add %i, 1; %z = add %y, %y; return %j, %z
        }}
        return %r#1""",
    )


def branches(inner):
    """A branch that computes something, and one that does not."""
    return module("%x: 6xf32, %i: i32", f"%r = case(%i) {{{inner}; return %b}} {{return %x}}")


ENDLESS = """%l:2 = while(%k = %i, %c = %x) cond {%p = compare LT, %k, 0; return %p} do {return %k, %c}
  %b = negate %l#1"""
IN_VAIN = module(
    "%x: 6xf32, %i: i32",
    """%z = constant 0 : i32; %few = constant 3 : i32; %end = minimum %i, %few
    %l:2 = while(%k = %z, %c = %x) cond {%p = compare LT, %k, %end; return %p} do {
      %a = custom_call @print(%c) {has_side_effect = true} -> 6xf32; %j = add %k, 1; return %j, %a
    }
    return %l#1""",
)
GATHER = (
    "dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>"
)


def gather(kind):
    """A gather of points."""
    return module(f"%x: {kind}, %i: 3x1xi32", f"%r = gather(%x, %i) <{GATHER}, slice_sizes = array<i64: 1>> -> 3xf32")


REVERSED = program("reverse %x, dims = [0]")
TOP_K = "{mhlo.attributes = {k = 2 : i64, largest = false}, mhlo.version = 1 : i64} -> (2xf32, 2xi32)"
SMALLEST = module("%x: 6xf32", f"%r:2 = custom_call @mhlo.topk(%x) {TOP_K}\nreturn %r#0")
LEGAL = {"lowered": True, "target": hl.Target("npu", legalize=True)}
WHOLE = {"lowered": True, "target": hl.Target("npu", legalize=True, composites={"odml.softmax"})}
NO_BYTES = hl.Target("npu", op_dtypes={f"stablehlo.{op}": ["f32"] for op in ("add", "convert")})
MAPPED = """module {
  sdy.mesh @m = <["x"=2]>
  func.func public @main(%x: tensor<4xf32>) -> tensor<4xf32> {
    %r = sdy.manual_computation(%x) in_shardings=[<@m, [{"x"}]>] out_shardings=[<@m, [{"x"}]>] manual_axes={"x"}
        (%y: tensor<2xf32>) {
      %z = stablehlo.sign %y : tensor<2xf32>
      sdy.return %z : tensor<2xf32>
    } : (tensor<4xf32>) -> tensor<4xf32>
    return %r : tensor<4xf32>
  }
}"""
PLACED = program("sign %x {sdy.sharding = #sdy.sharding_per_value<[<@m, [{}]>]>}", functions="sdy.mesh @m = <[]>")

CASES = {
    "nearly named": (lambda x, s, m: nearly_named(x, s), NAMED),
    "anywhere": lambda x, s, m: put(s),
    "several": lambda x, s, m: put(x),
    "clamped": lambda x, s, m: put(jax.lax.clamp(0, s, 7)),
    "masked": lambda x, s, m: put(x & 7),
    "remainder": lambda x, s, m: put(jax.lax.rem(x, 4)),
    "ones": lambda x, s, m: put(jax.lax.population_count(x)),
    "normalised": lambda x, s, m: put(wrapped(within(s, -8, 7), 8)),
    "constant": lambda x, s, m: put(np.array([0, 2, 4])),
    "sorted": lambda x, s, m: put(jnp.sort(within(x))),
    "top_k": lambda x, s, m: put(jax.lax.top_k(within(x), 2)[0]),
    "top_k indices": lambda x, s, m: put(jax.lax.top_k(x, 2)[1]),
    "folded": lambda x, s, m: put(jnp.max(within(x))),
    "summed": lambda x, s, m: put(jnp.sum(within(x))),
    "added": lambda x, s, m: put(put(x, size=ZEROS, value=2, how="add")),
    "known points": lambda x, s, m: put(put(np.array([1, 2]), size=ZEROS, value=2)),
    "counted": lambda x, s, m: put(carried(lambda i, j: j + 1, jnp.int32(0))),
    "kept within": lambda x, s, m: put(carried(lambda i, j: (j + s) % 4, jnp.int32(0))),
    "running sum": lambda x, s, m: put(jnp.cumsum(m) - 1),
    "running steps": lambda x, s, m: put(jnp.cumsum(within(x, 1, 3))),
    "known floats": text(FLOATS, updates="f32", numbers="inserted=[0], to=[0]", **ONE),
    "carried rows": lambda x, s, m: in_loop(s),
    "branches": lambda x, s, m: put(jax.lax.cond(s > 0, lambda: x * 2, lambda: within(x))),
    "region": REDUCED,
    "outside": text(
        "%y = call @f(%x) -> 3xi32", rows="%y", functions="func.func private @f(tensor<3xi32>) -> tensor<3xi32>\n"
    ),
    "calls": text(name="put", functions=PASSES).replace("public @put", "private @put"),
    "never called": text(functions=function("public @other", "%r: f32", "")).replace("public @main", "private @main"),
    "far": text(LONG, rows="%y200"),
    "large": text("%i = iota dim = 0 : 8388608x1xi32", updates="8388608xf32", **ONE | {"indices": "8388608x1xi32"}),
    "sorted along": lambda x, s, m: put(jnp.argsort(x)),
    "picked or": lambda x, s, m: put(jnp.where(x > 4, jnp.arange(3), 9)),
    "gathered": lambda x, s, m: put(jnp.argsort(x)[jnp.argsort(x)]),
    "written once": lambda x, s, m: put(put(jnp.argsort(x), size=ZEROS, value=jnp.arange(3))),
    "outside bounds": lambda x, s, m: put(np.array([9, 9])),
    "no windows": text(rows="%i", indices="0x1xi32", updates="0xf32"),
    "whole": text(rows="%i", numbers="window=[0]", indices="0xi32", updates="8xf32"),
    "batches": lambda x, s, m: put((jnp.arange(3), x), size=jnp.zeros((3, 8))),
    "rows": lambda x, s, m: put(x, size=jnp.zeros((8, 2))),
    "no-op": text(body="%c, %v: return %c"),
    "a constant": text(body=computed("constant 1.0 : f32")),
    "of the update": text(body=computed("negate %v")),
    "of the current": text(body=computed("negate %c")),
    "subtracted": text(body=computed("subtract %c, %v")),
    "a run": lambda x, s, m: put(s + jnp.arange(3)),
    "claimed": text(flags=", unique_indices = true"),
    "trusted": (text(flags=", unique_indices = true"), {"trust_flags": True}),
    "repeated": lambda x, s, m: put(jnp.broadcast_to(s, 3)),
    "same place": lambda x, s, m: put(jnp.broadcast_to(s, 3), how="add"),
    "several dims": lambda x, s, m: put((x, x), size=jnp.zeros((8, 8))),
    "little": lambda x, s, m: put(wrapped(s + jnp.arange(3), 5)),
    "wraps": text(BYTES, rows="%i", indices="3x1xui8", given=False),
    "assumed": (text(), {"lowered": True, "assume_in_bounds": True}),
    "two runs": lambda x, s, m: put(s + jnp.arange(3)[:, None] + jnp.arange(2)),
    "kept": (text(), {"target": KEEPS}),
    "kept as faster": (text(), {"target": "xla"}),
    "refused": (text(), {**KEPT, "target": PLAIN}),
    "on its type": (text(), {"target": NARROW}),
    "type": (text(), {"target": ONLY}),
    "preferred": (ANYWHERE, {"prefer": ["while"]}),
    "not today": (ANYWHERE, {"registry": with_rule(unwilling), "lowered": True}),
    "condition": (ANYWHERE, {"registry": with_rule(unwilling, When("never", lambda facts: False))}),
    "given back": (ANYWHERE, {"registry": with_rule(as_it_is), "lowered": True}),
    "open": text(**OPEN, numbers=ROW),
    "quantized": text().replace("xf32>", f"x{QUANT}>").replace("<f32>", f"<{QUANT}>"),
    "effect": text(body=computed("custom_call @f(%v) {has_side_effect = true} -> f32")),
    "index": text(rows="%i", indices="3x1xindex"),
    "unreduced": SPREAD.replace("}) : (", '}) {mhlo.sharding = "{unreduced}"} : ('),
    "overhanging": (text("%i = constant 6 : 1xi32", numbers="window=[0], to=[0]", **ONE), {"oob": "spec"}),
    "many terms": text(MANY, rows="%sum"),
    "budget": text(summed(2000, "negate %x"), rows="%sum"),
    "rolled": lambda x, s, m: put(jnp.roll(jnp.argsort(x), 1)),
    "start zero": text("%i = constant 0 : 1xi32", given=False, **OPEN, numbers=ROW),
    "start beyond": text("%i = constant 9 : 1xi32", given=False, **OPEN_ROWS, numbers=ROW),
    "windows": text(STEPS, numbers="window=[1], to=[0], ivd=1", updates="3x2xf32", rows="%y"),
    "three wrapped": lambda x, s, m: put(cube(x), size=jnp.zeros((8, 8, 8))),
    "canonical": (text(**OPEN, numbers=ROW), CANONICALIZED),
    "holds": (text(body=computed("call @adds(%c, %v) -> f32"), functions=ADDS), {**KEPT, "skip": ["#2"]}),
    "roundings": (program("cholesky %x, lower = true", "3x3xf32"), refusing("cholesky")),
    "routine": (call("lapack_snovel_ffi", ""), refusing("custom_call")),
    "run for all devices": (MAPPED, {"lowered": True, "one_device": True}),
    "placed on one device": (PLACED, {"lowered": True, "target": hl.Target("npu", refused={"sdy.mesh": "none"})}),
    "became": (REVERSED, refusing("reverse")),
    "no form": (REVERSED, refusing("reverse", "slice", "gather", "concatenate")),
    "sizes": (program("sign %x", "?xf32"), refusing("sign")),
    "on types": (program("add %x, %x", "6xui8"), {"lowered": True, "target": NO_BYTES}),
    "comparator": (sort("FLOAT"), refusing("sort")),
    "key": (sort("TOTALORDER", "6xf8E4M3FN"), refusing("sort")),
    "more than i32": (sort("TOTALORDER", "2000000000xf32"), refusing("sort")),
    "in vain": (IN_VAIN, refusing("while")),
    "unrolled": (loop(50), {**refusing("while"), "max_unroll": 60}),
    "branch with an effect": (branches("%b = custom_call @f(%x) {has_side_effect = true} -> 6xf32"), refusing("case")),
    "loop in a branch": (branches(ENDLESS), refusing("case")),
    "unknown call": (call("my.op"), LEGAL),
    "version of a call": (call("mhlo.erf", "mhlo.version = 2 : i64"), LEGAL),
    "name in doubt": (call("mhlo.erf", f'{SELF}, backend_config = "a"'), LEGAL),
    "not unary": (call("mhlo.erf", result="3xf32"), LEGAL),
    "no top k": (call("mhlo.topk"), LEGAL),
    "smallest": (SMALLEST, LEGAL),
    "check of a size": (call("shape_assertion", 'error_message = "x"'), LEGAL),
    "callback": (call("xla_ffi_python_cpu_callback"), LEGAL),
    "no softmax": (softmax("axis = 0 : i64"), LEGAL),
    "version": (softmax("axis = 0 : i64", SOFTMAX, ", version = 7 : i32"), WHOLE),
    "attributes": (softmax("axis = 0 : i64, beta = 2.0 : f32", SOFTMAX), WHOLE),
    "only clamped": (gather("?xf32"), refusing("gather")),
    "gather of no form": (gather(VECTOR).replace("xf32>", f"x{QUANT}>"), refusing("gather")),
}
"""Programs of an index vector x, an index s and a mask m, or the texts of modules, some with what is asked for."""


def case_of(name):
    """The module of a program, and what is asked for."""
    program, how = found if isinstance(found := CASES[name], tuple) else (found, {})
    return program if isinstance(program, str) else jax.jit(program).lower(X, S, M).as_text(), dict(how)


@cache
def told_of(name):
    """The records of a program, and what became of its other ops, found once."""
    text, how = case_of(name)
    if how in (NAMED, CANONICALIZED):
        return (), ()
    if how.pop("lowered", False):
        lowered = hl.lower(text, name="m.mlir", **how)
        return lowered.records, lowered.changes
    return hl.classify(hl.read(text, "m.mlir"), **how), ()


@cache
def causes_of(name):
    """The causes in the records of a program, those within others included, found once."""
    text, how = case_of(name)
    if how == NAMED:
        return tuple(miss.why for miss in hl.raise_named(text).misses)
    if how == CANONICALIZED:
        graph = hl.read(text)
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
