"""Trap 51: where a consumer does not clamp, a gather that may point outside differs, though XLA does not show it."""

import numpy as np
import pytest

import hlo_lower as hl
from hlo_lower.verify import Assumed, verify

GATHER = """%g = "stablehlo.gather"(%x, {starts}) <{{dimension_numbers = #stablehlo.gather<offset_dims = [1],
    collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 4>}}>
    : (tensor<8x4xf32>, tensor<3x1xi32>) -> tensor<3x4xf32>"""
CLAMP = """%z = stablehlo.constant dense<0> : tensor<3x1xi32>
  %hi = stablehlo.constant dense<{last}> : tensor<3x1xi32>
  %j = stablehlo.clamp %z, %i, %hi : tensor<3x1xi32>"""
WRAP = """%z = stablehlo.constant dense<0> : tensor<3x1xi32>
  %n = stablehlo.constant dense<8> : tensor<3x1xi32>
  %neg = stablehlo.compare LT, %i, %z, SIGNED : (tensor<3x1xi32>, tensor<3x1xi32>) -> tensor<3x1xi1>
  %up = stablehlo.add %i, %n : tensor<3x1xi32>
  %j = stablehlo.select %neg, %up, %i : tensor<3x1xi1>, tensor<3x1xi32>"""


def rows(starts="%i", before=""):
    """A module that reads three rows of eight."""
    return f"""func.func public @main(%x: tensor<8x4xf32>, %i: tensor<3x1xi32>) -> tensor<3x4xf32> {{
  {before}
  {GATHER.format(starts=starts)}
  return %g : tensor<3x4xf32>
}}"""


def test_trap_51_a_clamp_that_is_lost_is_told_though_xla_computes_the_same():
    """Without what is asked of reads both modules are one function; with it the one without a clamp differs."""
    clamped, bare = rows("%j", CLAMP.format(last=7)), rows()
    assert verify(clamped, bare, level="regions").ok
    verdict = verify(clamped, bare, level="regions", inside={"stablehlo.gather"})
    assert (verdict.ok, verdict.exit_code) == (False, 1)
    [told] = [region for region in verdict.regions if region.status == "differs"]
    assert told.where.endswith(", reads inside")
    index = told.inputs[1]
    assert ((index < 0) | (index > 7)).any()


MOD_OF_CONSTANT = """%c = stablehlo.constant dense<[[-9], [0], [7]]> : tensor<3x1xi32>
  %n = stablehlo.constant dense<8> : tensor<3x1xi32>
  %zero = stablehlo.constant dense<0> : tensor<3x1xi32>
  %r = stablehlo.remainder %c, %n : tensor<3x1xi32>
  %some = stablehlo.compare NE, %r, %zero, SIGNED : (tensor<3x1xi32>, tensor<3x1xi32>) -> tensor<3x1xi1>
  %below = stablehlo.compare LT, %r, %zero, SIGNED : (tensor<3x1xi32>, tensor<3x1xi32>) -> tensor<3x1xi1>
  %turned = stablehlo.compare LT, %n, %zero, SIGNED : (tensor<3x1xi32>, tensor<3x1xi32>) -> tensor<3x1xi1>
  %other = stablehlo.compare NE, %below, %turned, UNSIGNED : (tensor<3x1xi1>, tensor<3x1xi1>) -> tensor<3x1xi1>
  %both = stablehlo.and %other, %some : tensor<3x1xi1>
  %up = stablehlo.add %r, %n : tensor<3x1xi32>
  %j = stablehlo.select %both, %up, %r : tensor<3x1xi1>, tensor<3x1xi32>"""
"""What `jnp.mod(constant, 8)` is: nothing that stands between the constant and the read can move."""

CHOSEN = """%yes = stablehlo.constant dense<true> : tensor<i1>
  %c = stablehlo.constant dense<[[7], [0], [7]]> : tensor<3x1xi32>
  %zero = stablehlo.constant dense<0> : tensor<3x1xi32>
  %k = stablehlo.select %yes, %c, %i : tensor<i1>, tensor<3x1xi32>
  %some = stablehlo.compare GE, %k, %zero, SIGNED : (tensor<3x1xi32>, tensor<3x1xi32>) -> tensor<3x1xi1>
  %j = stablehlo.select %some, %k, %zero : tensor<3x1xi1>, tensor<3x1xi32>"""
"""What JAX leaves of a condition that was known when the function was traced."""

INSIDE = {
    "a clamp": CLAMP.format(last=7),
    "a narrower clamp": CLAMP.format(last=3),
    "an iota": "%j = stablehlo.iota dim = 0 : tensor<3x1xi32>",
    "a constant": "%j = stablehlo.constant dense<[[7], [0], [7]]> : tensor<3x1xi32>",
    "what Python's mod leaves of a constant": MOD_OF_CONSTANT,
    "the first of a choice that is always made": CHOSEN,
    "the same where constants are compared": CHOSEN.replace(
        "constant dense<true>", "compare GE, %u, %u, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>", 1
    )
    .replace("%yes =", "%u = stablehlo.constant dense<1> : tensor<i32>\n  %yes =", 1)
    .replace("tensor<i1> : tensor<i1>", "tensor<i1>", 1),
}


@pytest.mark.parametrize("name", INSIDE)
def test_starts_that_lie_inside_are_accepted(name):
    """Whatever keeps the starts inside makes the reads equal, and nothing else is asked of them."""
    text = rows("%j", INSIDE[name])
    verdict = verify(text, text, level="regions", inside={"stablehlo.gather"})
    assert verdict.ok, verdict.lines()


OUTSIDE = {
    "a clamp that is too wide": CLAMP.format(last=8),
    "a wrap of negative numbers alone": WRAP,
    "a constant": "%j = stablehlo.constant dense<[[7], [8], [7]]> : tensor<3x1xi32>",
    "an iota with a step": """%k = stablehlo.iota dim = 0 : tensor<3x1xi32>
  %four = stablehlo.constant dense<4> : tensor<3x1xi32>
  %j = stablehlo.multiply %k, %four : tensor<3x1xi32>""",
}


@pytest.mark.parametrize("name", OUTSIDE)
def test_starts_that_may_not_are_not(name):
    """One row too many, by whatever computes it, makes the verdict differ, though both texts are the same."""
    text = rows("%j", OUTSIDE[name])
    assert verify(text, text, level="regions").ok
    verdict = verify(text, text, level="regions", inside={"stablehlo.gather"})
    assert (verdict.differs, verdict.exit_code) == (True, 1), verdict.lines()


def in_loop(start, count=8):
    """A module that reads a row in each iteration, at a start that is computed of the counter %k."""
    return f"""func.func public @main(%x: tensor<8x4xf32>, %a: tensor<3x4xf32>) -> tensor<3x4xf32> {{
  %s = stablehlo.constant dense<0> : tensor<i32>
  %w:2 = stablehlo.while(%k = %s, %y = %a) : tensor<i32>, tensor<3x4xf32> cond {{
    %n = stablehlo.constant dense<{count}> : tensor<i32>
    %p = stablehlo.compare LT, %k, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  }} do {{
    %one = stablehlo.constant dense<1> : tensor<i32>
    %next = stablehlo.add %k, %one : tensor<i32>
    %i = stablehlo.broadcast_in_dim {start}, dims = [] : (tensor<i32>) -> tensor<3x1xi32>
    {GATHER.format(starts="%i")}
    %t = stablehlo.add %y, %g : tensor<3x4xf32>
    stablehlo.return %next, %t : tensor<i32>, tensor<3x4xf32>
  }}
  return %w#1 : tensor<3x4xf32>
}}"""


def test_a_gather_in_a_loop_that_counts_to_the_last_row_is_inside():
    """The counter of eight iterations reads rows 0 to 7."""
    verdict = verify(in_loop("%k"), in_loop("%k"), level="regions", inside={"stablehlo.gather"})
    assert verdict.ok, verdict.lines()


@pytest.mark.parametrize(("start", "count"), [("%next", 8), ("%k", 9)])
def test_a_gather_in_a_loop_that_counts_further_is_not(start, count):
    """Row 8 in the last iteration is not verified to be inside."""
    text = in_loop(start, count)
    verdict = verify(text, text, level="regions", inside={"stablehlo.gather"})
    assert not verdict.ok
    assert verdict.exit_code in (1, 4)


def in_branch(starts):
    """A module that reads rows in a branch, at starts that are computed around it."""
    return f"""func.func public @main(%x: tensor<8x4xf32>, %i: tensor<3x1xi32>, %a: tensor<3x4xf32>, %p: tensor<i1>)
    -> tensor<3x4xf32> {{
  {CLAMP.format(last=7)}
  %r = "stablehlo.if"(%p) ({{
    {GATHER.format(starts=starts)}
    stablehlo.return %g : tensor<3x4xf32> }}, {{
    stablehlo.return %a : tensor<3x4xf32> }}) : (tensor<i1>) -> tensor<3x4xf32>
  return %r : tensor<3x4xf32>
}}"""


@pytest.mark.parametrize(("starts", "ok"), [("%j", True), ("%i", False)])
def test_a_clamp_around_a_branch_keeps_the_reads_in_it_inside(starts, ok):
    """What a branch takes from around it is looked at with what computes it there."""
    verdict = verify(in_branch(starts), in_branch(starts), level="regions", inside={"stablehlo.gather"})
    assert verdict.ok == ok, verdict.lines()


def test_a_clamp_around_a_loop_keeps_the_reads_in_it_inside():
    """Rows that are the same in each iteration are clamped once, before the loop."""
    before = f"  {CLAMP.format(last=7)}\n  %s = stablehlo.constant"
    text = in_loop("%k").replace("%x: tensor<8x4xf32>,", "%x: tensor<8x4xf32>, %i: tensor<3x1xi32>,")
    text = text.replace("  %s = stablehlo.constant", before).replace(
        "%i = stablehlo.broadcast", "%unused = stablehlo.broadcast"
    )
    for starts, ok in (("%j", True), ("%i", False)):
        asked = text.replace('"stablehlo.gather"(%x, %i)', f'"stablehlo.gather"(%x, {starts})')
        verdict = verify(asked, asked, level="regions", inside={"stablehlo.gather"})
        assert verdict.ok == ok, verdict.lines()


def test_what_is_converted_for_iree_reads_inside_and_its_clamp_may_not_go():
    """The tool's own conversion of a gather is equal; with its clamps taken out IREE would read elsewhere."""
    source = hl.export(lambda x, i: x[i], np.zeros((8, 4), np.float32), np.zeros(3, np.int32))
    lowered = hl.lower(source, target="iree")
    verdict = hl.verify(source, lowered, level="regions")
    assert verdict.ok, verdict.lines()
    bare = hl.verify(source, source, target="iree", level="regions")
    assert bare.differs
    assert hl.verify(source, source, level="regions").ok


def adding(rows, unique="false", ascending="false"):
    """A scatter of rows that adds at indices computed from an argument %i of 6 numbers, with flags."""
    return f"""func.func public @main(%x: tensor<64x2xf32>, %i: tensor<6xi32>, %u: tensor<6x2xf32>)
        -> tensor<64x2xf32> {{
      {rows}
      %k = stablehlo.reshape %j : (tensor<6xi32>) -> tensor<6x1xi32>
      %r = "stablehlo.scatter"(%x, %k, %u) <{{indices_are_sorted = {ascending}, unique_indices = {unique},
        scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0],
        scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}}> ({{
      ^bb0(%a: tensor<f32>, %b: tensor<f32>):
        %c = stablehlo.add %a, %b : tensor<f32>
        stablehlo.return %c : tensor<f32>
      }}) : (tensor<64x2xf32>, tensor<6x1xi32>, tensor<6x2xf32>) -> tensor<64x2xf32>
      return %r : tensor<64x2xf32>
    }}"""


CLAMPED = """%z = stablehlo.constant dense<0> : tensor<i32>
      %l = stablehlo.constant dense<63> : tensor<i32>
      %j = stablehlo.clamp %z, %i, %l : (tensor<i32>, tensor<6xi32>, tensor<i32>) -> tensor<6xi32>"""
COUNTED = "%j = stablehlo.iota dim = 0 : tensor<6xi32>"


@pytest.mark.parametrize("flags", [("true", "false"), ("false", "true")], ids=["unique", "sorted"])
def test_a_false_promise_of_a_scatter_is_found(flags):
    """XLA computes the same whatever the flags say, and a consumer's kernel may not; what is true is not accused."""
    inside = {"stablehlo.scatter"}
    verdict = verify(adding(CLAMPED), adding(CLAMPED, *flags), level="regions", inside=inside)
    assert "differs" in [region.status for region in verdict.regions if "promises kept" in region.where]
    assert verify(adding(CLAMPED), adding(CLAMPED), level="regions", inside=inside).ok
    assert verify(adding(COUNTED), adding(COUNTED, *flags), level="regions", inside=inside).ok


def test_a_promise_that_the_user_answers_for_is_not_looked_at():
    """With the flags trusted only what is out of bounds is."""
    text = adding(CLAMPED, "true", "true")
    assert verify(text, text, Assumed(trust_flags=True), level="regions", inside={"stablehlo.scatter"}).ok


def permuted(step, start=0):
    """A loop that counts twice, as JAX writes it, and gathers by the second count, then rows by what it has carried."""
    element = "slice_sizes = array<i64: 1>"
    numbers = "collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1"
    return f"""func.func public @main(%x: tensor<8x4xf32>, %y: tensor<3xi32>) -> (tensor<3x4xf32>, tensor<i32>) {{
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %first = stablehlo.constant dense<{start}> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %step = stablehlo.constant dense<{step}> : tensor<i32>
  %three = stablehlo.constant dense<3> : tensor<i32>
  %p0 = stablehlo.iota dim = 0 : tensor<3x1xi32>
  %r:4 = stablehlo.while(%k = %zero, %n = %first, %p = %p0, %s = %zero)
      : tensor<i32>, tensor<i32>, tensor<3x1xi32>, tensor<i32>
  cond {{
    %c = stablehlo.compare LT, %k, %three, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  }} do {{
    %v = stablehlo.reshape %n : (tensor<i32>) -> tensor<1x1xi32>
    %e = "stablehlo.gather"(%y, %v) <{{dimension_numbers = #stablehlo.gather<{numbers}>, {element}}}>
        : (tensor<3xi32>, tensor<1x1xi32>) -> tensor<1xi32>
    %t = stablehlo.reshape %e : (tensor<1xi32>) -> tensor<i32>
    %u = stablehlo.add %s, %t : tensor<i32>
    %more = stablehlo.broadcast_in_dim %one, dims = [] : (tensor<i32>) -> tensor<3x1xi32>
    %up = stablehlo.add %p, %more : tensor<3x1xi32>
    %odd = stablehlo.compare GT, %t, %zero, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %q = stablehlo.select %odd, %up, %p : tensor<i1>, tensor<3x1xi32>
    %k1 = stablehlo.add %k, %one : tensor<i32>
    %n1 = stablehlo.add %n, %step : tensor<i32>
    stablehlo.return %k1, %n1, %q, %u : tensor<i32>, tensor<i32>, tensor<3x1xi32>, tensor<i32>
  }}
  {GATHER.format(starts="%r#2")}
  return %g, %r#3 : tensor<3x4xf32>, tensor<i32>
}}"""


@pytest.mark.parametrize(("step", "start", "is_inside"), [(1, 0, True), (-1, 2, True), (1, 1, False)])
def test_a_second_count_is_known_and_a_loop_with_reads_is_entered(step, start, is_inside):
    """What goes along with a loop's counter is one of its values; what is read behind the loop is what it computes."""
    text = permuted(step, start)
    verdict = verify(text, text, level="regions", inside={"stablehlo.gather"})
    assert is_inside == verdict.ok, verdict.lines()
    assert {"equal"} == {region.status for region in verdict.regions if region.where == "main, reads inside"}


@pytest.mark.parametrize(("carried", "is_inside"), [("%c", True), ("%up", False), ("%n", False)])
def test_what_a_loop_carries_unchanged_is_what_it_was_given(carried, is_inside):
    """JAX hands the constants that a function closes over to its loop: unchanged they keep their values there."""
    gather = GATHER.format(starts="%c").replace("%x, %c", "%y, %c")
    text = f"""func.func public @main(%x: tensor<8x4xf32>, %n: tensor<3x1xi32>) -> tensor<3x4xf32> {{
  %i = stablehlo.constant dense<[[7], [0], [7]]> : tensor<3x1xi32>
  %z = stablehlo.constant dense<0.0> : tensor<3x4xf32>
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %r:4 = stablehlo.while(%k = %zero, %c = %i, %y = %x, %s = %z)
      : tensor<i32>, tensor<3x1xi32>, tensor<8x4xf32>, tensor<3x4xf32>
  cond {{
    %three = stablehlo.constant dense<3> : tensor<i32>
    %more = stablehlo.compare LT, %k, %three, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %more : tensor<i1>
  }} do {{
    %ones = stablehlo.constant dense<1> : tensor<3x1xi32>
    %up = stablehlo.add %c, %ones : tensor<3x1xi32>
    {gather}
    %t = stablehlo.add %s, %g : tensor<3x4xf32>
    %one = stablehlo.constant dense<1> : tensor<i32>
    %k1 = stablehlo.add %k, %one : tensor<i32>
    stablehlo.return %k1, {carried}, %y, %t : tensor<i32>, tensor<3x1xi32>, tensor<8x4xf32>, tensor<3x4xf32>
  }}
  return %r#3 : tensor<3x4xf32>
}}"""
    verdict = verify(text, text, level="regions", inside={"stablehlo.gather"})
    assert is_inside == verdict.ok, verdict.lines()
