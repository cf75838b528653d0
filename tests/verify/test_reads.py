"""Trap 51: where a consumer does not clamp, a gather that may point outside differs, though XLA does not show it."""

import numpy as np
import pytest
from untyped_mlir import module

import hlo_lower as hl
from hlo_lower.ir import mlir
from hlo_lower.verify import Assumed, verify
from hlo_lower.verify.align.loops import trips_of
from hlo_lower.verify.read.program import Program

DERIVES = True

GATHER = """%g = gather(%x, START) <dimension_numbers = #stablehlo.gather<offset_dims = [1],
  collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>,
  slice_sizes = array<i64: 1, 4>> -> 3x4xf32"""
CLAMP = "%z = constant 0 : 3x1xi32; %hi = constant {} : 3x1xi32; %j = clamp %z, %i, %hi"


def reads_inside(text, other=None, **how):
    """The verdict on two modules, the same by default, where a consumer does not clamp what gathers read."""
    return verify(text, other or text, level="regions", inside={"stablehlo.gather"}, **how)


def rows(starts="%i", before=""):
    """A module that reads three rows of eight."""
    return module("%x: 8x4xf32, %i: 3x1xi32", f"{before}\n{GATHER.replace('START', starts)}", "%g")


@pytest.fixture(params=["tested", "derived"])
def basis(request):
    """What is found of what lies inside: by runs alone, or for all inputs."""
    if request.param == "tested":
        request.getfixturevalue("judged_by_runs")
    return request.param


def test_trap_51_a_clamp_that_is_lost_is_told_though_xla_computes_the_same():
    """Without what is asked of reads both modules are one function; with it the one without a clamp differs."""
    clamped, bare = rows("%j", CLAMP.format(7)), rows()
    assert verify(clamped, bare, level="regions").ok
    verdict = reads_inside(clamped, bare)
    assert (verdict.ok, verdict.exit_code) == (False, 1)
    [told] = [region for region in verdict.regions if region.status == "differs"]
    assert told.where.endswith(", reads inside")
    index = told.inputs[1]
    assert ((index < 0) | (index > 7)).any()


MOD_OF_CONSTANT = """%c = constant [[-9], [0], [7]] : 3x1xi32; %n = constant 8 : 3x1xi32; %zero = constant 0 : 3x1xi32
%r = remainder %c, %n; %some = compare NE, %r, %zero, SIGNED; %below = compare LT, %r, %zero, SIGNED
%turned = compare LT, %n, %zero, SIGNED; %other = compare NE, %below, %turned, UNSIGNED; %both = and %other, %some
%up = add %r, %n; %j = select %both, %up, %r"""
CHOSEN = """%c = constant [[7], [0], [7]] : 3x1xi32; %zero = constant 0 : 3x1xi32; %k = select %yes, %c, %i
%some = compare GE, %k, %zero, SIGNED; %j = select %some, %k, %zero"""
WRAP = """%z = constant 0 : 3x1xi32; %n = constant 8 : 3x1xi32; %neg = compare LT, %i, %z, SIGNED
%up = add %i, %n; %j = select %neg, %up, %i"""
STARTS = {
    "a clamp": (CLAMP.format(7), True),
    "a clamp that is too wide": (CLAMP.format(8), False),
    "an iota": ("%j = iota dim = 0 : 3x1xi32", True),
    "an iota with a step": ("%k = iota dim = 0 : 3x1xi32; %n = constant 4 : 3x1xi32; %j = multiply %k, %n", False),
    "a constant that is too large": ("%j = constant [[7], [8], [7]] : 3x1xi32", False),
    "a wrap of negative numbers alone": (WRAP, False),
    "what jnp.mod leaves of a constant": (MOD_OF_CONSTANT, True),
    "what JAX leaves of a choice that is always made": (f"%yes = constant true : i1; {CHOSEN}", True),
}


@pytest.mark.parametrize("name", STARTS)
def test_only_starts_that_lie_inside_are_accepted(name, basis):
    """Whatever keeps the starts inside makes the reads equal; one row too many makes the same two texts differ."""
    computed, is_inside = STARTS[name]
    text = rows("%j", computed)
    assert verify(text, text, level="regions").ok
    verdict = reads_inside(text)
    assert (verdict.ok, verdict.differs) == (is_inside, not is_inside), verdict.lines()
    assert verdict.exit_code == (0 if is_inside else 1)
    assert not is_inside or set(verdict.counts()) <= {basis}


POINTS = """%g = gather(%x, %j) <dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0, 1],
  start_index_map = [0, 1], index_vector_dim = 1>, slice_sizes = array<i64: 1, 1>> -> 3xf32"""
EACH = """%z = constant 0 : 3x1xi32; %m = constant 7 : 3x1xi32; %n = constant {} : 3x1xi32
%p = clamp %z, %i, %m; %q = clamp %z, %i, %n; {}"""
BESIDE = "%j = concatenate %p, %q, dim = 1"
TOGETHER = "%k = concatenate %p, %q, dim = 1; %e = constant 0 : 3x2xi32; %j = add %k, %e"


@pytest.mark.parametrize("vector", [BESIDE, TOGETHER], ids=["beside each other", "behind another op"])
@pytest.mark.parametrize(("most", "is_inside"), [(3, True), (4, False)])
def test_each_column_of_starts_is_held_against_its_own_dim(vector, most, is_inside, basis):
    """Of eight rows of four the second column reaches to 3; all rows would be in what both together reach."""
    text = module("%x: 8x4xf32, %i: 3x1xi32", f"{EACH.format(most, vector)}\n{POINTS}", "%g")
    verdict = reads_inside(text)
    assert (verdict.ok, verdict.differs) == (is_inside, not is_inside), verdict.lines()
    assert not is_inside or set(verdict.counts()) <= {basis}


def test_what_is_equal_in_some_order_of_a_sum_alone_is_not_derived_to_read_inside():
    """Where two sums of the same floats are equal it reads row 0, else row 9."""
    text = module(
        "%x: 8x4xf32, %y: 64xf32",
        f"""%z = constant 0.0 : f32; %o = constant 0.0 : 1xf32; %at = constant 0 : 64x1xi32
    %s = reduce(%y init: %z) applies stablehlo.add across dimensions = [0]; %a = reshape %s -> 1xf32
    %b = scatter(%o, %at, %y) <inserted=[0], to=[0], ivd=1> {{add}}; %e = compare EQ, %a, %b, TOTALORDER
    %in = constant 0 : 1xi32; %out = constant 9 : 1xi32; %k = select %e, %in, %out
    %j = broadcast_in_dim %k, dims = [0] -> 3x1xi32; {GATHER.replace("START", "%j")}""",
        "%g",
    )
    assert verify(text, text, level="regions").ok
    assert "derived" not in reads_inside(text).counts()


def in_loop(computed, count=8, *, starts="%at", before="", ends="return %p"):
    """A module that reads rows in each iteration, at starts that may be computed from the counter %k."""
    body = f"""{before}; %s = constant 0 : i32
    %w:2 = while(%k = %s, %y = %a) cond {{ %n = constant {count} : i32; %p = compare LT, %k, %n; {ends} }} do {{
      %one = constant 1 : i32; %next = add %k, %one; {computed}
      {GATHER.replace("START", starts)}; %t = add %y, %g; return %next, %t }}"""
    return module("%x: 8x4xf32, %i: 3x1xi32, %a: 3x4xf32", body, "%w#1")


@pytest.mark.parametrize(("start", "count", "ok"), [("%k", 8, True), ("%next", 8, False), ("%k", 9, False)])
def test_a_gather_in_a_loop_is_inside_if_the_loop_counts_to_the_last_row(start, count, ok, basis):
    """The counter of eight iterations reads rows 0 to 7; row 8 in the last iteration is not verified to be inside."""
    verdict = reads_inside(in_loop(f"%at = broadcast_in_dim {start}, dims = [] -> 3x1xi32", count))
    assert verdict.ok == ok, verdict.lines()
    assert verdict.counts() == {basis: 1} or not ok
    assert verdict.exit_code in ((0,) if ok else (1, 4))


@pytest.mark.parametrize(("joined", "ok"), [("and", True), ("or", False)])
def test_a_loop_that_may_end_early_counts_no_further(joined, ok, basis):
    """Nor is it read as eight iterations; one that may go on beyond its count says nothing of the counter."""
    more = f"%f = slice %i [0:1, 0:1]; %e = reshape %f -> i32; %q = compare NE, %e, %n; %b = {joined} %q, %p; return %b"
    text = in_loop("%at = broadcast_in_dim %k, dims = [] -> 3x1xi32", ends=more)
    verdict = reads_inside(text)
    assert verdict.ok == ok, verdict.lines()
    assert verdict.counts() == {basis: 1} or not ok
    program = Program(mlir.parse_module(text))
    [loop] = [op for op in program.entries["main"].ops if op.bodies]
    assert trips_of(program, loop) == 0


IN_BRANCH = f"{CLAMP.format(7)}\n%r = if(%p) {{ {GATHER}; return %g }} {{ return %a }}"


@pytest.mark.parametrize(("starts", "ok"), [("%j", True), ("%i", False)])
def test_a_clamp_around_a_branch_or_a_loop_keeps_the_reads_in_it_inside(starts, ok, basis):
    """What a branch or a loop takes from around it is looked at with what computes it there."""
    arguments = "%x: 8x4xf32, %i: 3x1xi32, %a: 3x4xf32, %p: i1"
    for text in (
        module(arguments, IN_BRANCH.replace("START", starts)),
        in_loop("", starts=starts, before=CLAMP.format(7)),
    ):
        verdict = reads_inside(text)
        assert verdict.ok == ok, verdict.lines()
        assert verdict.counts() == {basis: 1} or not ok


def test_what_is_converted_for_iree_reads_inside_and_its_clamp_may_not_go():
    """The tool's own conversion of a gather is equal; with its clamps taken out IREE would read elsewhere."""
    source = hl.export(lambda x, i: x[i], np.zeros((8, 4), np.float32), np.zeros(3, np.int32))
    verdict = hl.verify(source, hl.lower(source, target="iree"), level="regions")
    assert verdict.ok, verdict.lines()
    assert hl.verify(source, source, target="iree", level="regions").differs
    assert hl.verify(source, source).ok


def adding(rows, unique="false", ascending="false"):
    """A scatter of rows that adds at indices computed from an argument %i of 6 numbers, with flags."""
    body = f"""{rows}; %k = reshape %j -> 6x1xi32
    %r = scatter(%x, %k, %u) <indices_are_sorted = {ascending}, unique_indices = {unique},
      window=[1], inserted=[0], to=[0], ivd=1> {{add}}"""
    return module("%x: 64x2xf32, %i: 6xi32, %u: 6x2xf32", body)


CLAMPED = "%z = constant 0 : i32; %l = constant 63 : i32; %j = clamp %z, %i, %l"
COUNTED = "%j = iota dim = 0 : 6xi32"


@pytest.mark.parametrize("flags", [("true", "false"), ("false", "true")], ids=["unique", "sorted"])
def test_a_false_promise_of_a_scatter_is_found(flags):
    """XLA computes the same whatever the flags say, and a consumer's kernel may not; what is true is not accused."""
    inside = {"stablehlo.scatter"}
    verdict = verify(adding(CLAMPED), adding(CLAMPED, *flags), level="regions", inside=inside)
    assert "differs" in [region.status for region in verdict.regions if "promises kept" in region.where]
    assert verify(adding(CLAMPED), adding(CLAMPED), level="regions", inside=inside).ok
    assert verify(adding(COUNTED), adding(COUNTED, *flags), level="regions", inside=inside).ok
    told = adding(CLAMPED, *flags)  # where the user answers for the flags only what is out of bounds is looked at
    assert verify(told, told, Assumed(trust_flags=True), level="regions", inside=inside).ok


PERMUTED = """%zero = constant 0 : i32; %first = constant FROM : i32; %one = constant 1 : i32
%step = constant STEP : i32; %three = constant 3 : i32; %p0 = iota dim = 0 : 3x1xi32
%r:4 = while(%k = %zero, %n = %first, %p = %p0, %s = %zero) cond {
  %c = compare LT, %k, %three, SIGNED; return %c } do {
  %v = reshape %n -> 1x1xi32
  %e = gather(%y, %v) <dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0], start_index_map = [0],
    index_vector_dim = 1>, slice_sizes = array<i64: 1>> -> 1xi32
  %t = reshape %e -> i32; %u = add %s, %t; %more = broadcast_in_dim %one, dims = [] -> 3x1xi32; %up = add %p, %more
  %odd = compare GT, %t, %zero, SIGNED; %q = select %odd, %up, %p; %k1 = add %k, %one; %n1 = add %n, %step
  return %k1, %n1, %q, %u }
"""


@pytest.mark.parametrize(("step", "start", "is_inside"), [(-1, 2, True), (1, 1, False)])
def test_a_second_count_is_known_and_a_loop_with_reads_is_entered(step, start, is_inside):
    """What goes along with a loop's counter, as JAX writes it, is known, also to a read behind the loop."""
    body = PERMUTED.replace("FROM", str(start)).replace("STEP", str(step)) + GATHER.replace("START", "%r#2")
    verdict = reads_inside(module("%x: 8x4xf32, %y: 3xi32", body, "%g, %r#3"))
    assert is_inside == verdict.ok, verdict.lines()
    assert {"equal"} == {region.status for region in verdict.regions if region.where == "main, reads inside"}
