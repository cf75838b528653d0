"""Cut-outs: each scatter on its own, with what its indices are computed from, one for each call that leads to it."""

from collections.abc import Callable

import numpy as np
import pytest

from hlo_lower import mlir
from hlo_lower.verify import verify
from hlo_lower.verify.cutout import Cutout, ModuleIndex, cut_out
from hlo_lower.verify.run import Executable
from hlo_lower.verify.scatters import group_cutouts

BRANCHES = "update_window_dims = [0], scatter_dims_to_operand_dims = [0]"
TYPES = "(tensor<8xf32>, tensor<1xi32>, tensor<3xf32>) -> tensor<8xf32>"
ASSIGN = "^bb0(%c: tensor<f32>, %d: tensor<f32>): stablehlo.return %d : tensor<f32>"
PRIVATE = f"""
func.func private @write(%o: tensor<8xf32>, %at: tensor<i32>, %u: tensor<3xf32>) -> tensor<8xf32> {{
  %i = stablehlo.reshape %at : (tensor<i32>) -> tensor<1xi32>
  %r = "stablehlo.scatter"(%o, %i, %u) <{{scatter_dimension_numbers = #stablehlo.scatter<{BRANCHES}>}}> ({{
    {ASSIGN}
  }}) : {TYPES}
  return %r : tensor<8xf32>
}}"""
CALLS = """
func.func public @main(%o: tensor<8xf32>, %p: tensor<i32>, %q: tensor<i32>, %u: tensor<3xf32>) -> tensor<8xf32> {{
  %lo = stablehlo.constant dense<0> : tensor<i32>
  %hi = stablehlo.constant dense<5> : tensor<i32>
  %clamped = stablehlo.clamp %lo, %p, %hi : tensor<i32>
  %a = call @write(%o, {first}, %u) : (tensor<8xf32>, tensor<i32>, tensor<3xf32>) -> tensor<8xf32>
  %b = call @write(%a, {second}, %u) : (tensor<8xf32>, tensor<i32>, tensor<3xf32>) -> tensor<8xf32>
  return %b : tensor<8xf32>
}}"""
LOOP = f"""
func.func public @main(%o: tensor<8xf32>, %n: tensor<i32>, %u: tensor<3xf32>) -> tensor<8xf32> {{
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %w:2 = stablehlo.while(%k = %zero, %x = %o) : tensor<i32>, tensor<8xf32> cond {{
    %p = stablehlo.compare LT, %k, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  }} do {{
    %two = stablehlo.constant dense<2> : tensor<i32>
    %s = stablehlo.multiply %k, %two : tensor<i32>
    %i = stablehlo.reshape %s : (tensor<i32>) -> tensor<1xi32>
    %r = "stablehlo.scatter"(%x, %i, %u) <{{scatter_dimension_numbers = #stablehlo.scatter<{BRANCHES}>}}> ({{
      {ASSIGN}
    }}) : {TYPES}
    %one = stablehlo.constant dense<1> : tensor<i32>
    %next = stablehlo.add %k, %one : tensor<i32>
    stablehlo.return %next, %r : tensor<i32>, tensor<8xf32>
  }}
  return %w#1 : tensor<8xf32>
}}"""


def cutouts(text: str) -> list[Cutout]:
    """All cut-outs of a module."""
    index = ModuleIndex(mlir.parse_module(text, mlir.make_context()))
    return [cutout for number in range(1, len(index.scatters) + 1) for cutout in cut_out(index, number)]


def test_the_producers_of_the_indices_are_copied(scatter_text: Callable[..., str]):
    """What computes the indices is part of the cut-out, down to the arguments; the rest of the module is not."""
    before = "%two = stablehlo.constant dense<2> : tensor<5x1xi32> %j = stablehlo.multiply %i, %two : tensor<5x1xi32>"
    before += " %v = stablehlo.negate %u : tensor<5xf32>"
    [cutout] = cutouts(scatter_text(before=before, used="%o, %j, %v"))
    assert ("stablehlo.multiply" in cutout.text, "stablehlo.negate" in cutout.text) == (True, False)
    assert ([leaf.main_argument for leaf in cutout.leaves], cutout.index_leaves, cutout.arity) == ([1], 1, 1)
    [indices] = Executable(cutout.indices_text, "exact").run([np.arange(5, dtype=np.int32).reshape(5, 1)])
    assert indices.ravel().tolist() == [0, 2, 4, 6, 8]


def test_a_cutout_computes_what_the_scatter_does(scatter_text: Callable[..., str]):
    """main(operand, updates, leaves) of a cut-out returns the scatter's result."""
    [cutout] = cutouts(scatter_text())
    operand, updates = np.zeros(8, np.float32), np.arange(1, 6, dtype=np.float32)
    indices = np.asarray([[7], [0], [7], [8], [-1]], np.int32)
    [result] = Executable(cutout.text, "exact").run([operand, updates, indices])
    assert result.tolist() == [2, 0, 0, 0, 0, 0, 0, 3]


def test_one_cutout_for_each_call_site():
    """A private function's scatter is cut out once for each call, with what that call passes as the index."""
    first, second = cutouts(CALLS.format(first="%clamped", second="%q") + PRIVATE)
    assert ("stablehlo.clamp" in first.text, "stablehlo.clamp" in second.text) == (True, False)
    assert ([x.main_argument for x in first.leaves], [x.main_argument for x in second.leaves]) == ([1], [2])


@pytest.mark.parametrize(("second", "groups"), [("%q", 1), ("%clamped", 2)])
def test_alike_cutouts_are_one_group(second, groups):
    """Call sites whose cut-outs have the same text are verified once, and the scatter is named once."""
    index = ModuleIndex(mlir.parse_module(CALLS.format(first="%p", second=second) + PRIVATE, mlir.make_context()))
    found, refused = group_cutouts(index)
    assert (len(found), refused) == (groups, [])
    assert [str(place) for group in found for place in group.places] == ["scatter 1 at line 12 in @write"] * groups


def test_a_scatter_in_a_loop_starts_from_the_carried_value():
    """In a while body the producers are copied up to the loop-carried value, which is no argument of the module."""
    [cutout] = cutouts(LOOP)
    assert ("stablehlo.multiply" in cutout.text, "stablehlo.while" in cutout.text) == (True, False)
    assert [leaf.main_argument for leaf in cutout.leaves] == [None]


def test_functions_that_a_region_calls_come_along(scatter_text: Callable[..., str]):
    """A region's callees are copied, and what they call in turn; other functions are not."""
    body = "%s = func.call @outer(%c, %d) : (tensor<{e}>, tensor<{e}>) -> tensor<{e}> stablehlo.return %s : tensor<{e}>"
    f = "func.func private @{}(%c: tensor<f32>, %d: tensor<f32>) -> tensor<f32> {{ {} return %s : tensor<f32> }}\n"
    text = scatter_text(body=body)
    text += f.format("outer", "%s = call @inner(%c, %d) : (tensor<f32>, tensor<f32>) -> tensor<f32>")
    text += f.format("inner", "%s = stablehlo.add %c, %d : tensor<f32>")
    text += f.format("other", "%s = stablehlo.subtract %c, %d : tensor<f32>")
    [cutout] = cutouts(text)
    assert [f"@{name}(" in cutout.text for name in ("outer", "inner", "other")] == [True, True, False]
    verdict = verify(text, text, convert=lambda module: module, level="scatter")
    assert verdict.ok
    assert {judge for r in verdict.scatters[0].regimes for judge in r.judges} >= {"XLA", "reference"}


def test_a_captured_constant_is_copied(scatter_text: Callable[..., str]):
    """A constant that a region captures is in the cut-out; another captured value becomes an argument."""
    body = "%s = stablehlo.add %k, %d : tensor<{e}> stablehlo.return %s : tensor<{e}>"
    constant = scatter_text(before="%k = stablehlo.constant dense<3.0> : tensor<f32>", body=body)
    [cutout] = cutouts(constant)
    assert ("dense<3.0" in cutout.text, len(cutout.leaves)) == (True, 1)
    [cutout] = cutouts(scatter_text(more=", %k: tensor<f32>", body=body))
    assert ([leaf.main_argument for leaf in cutout.leaves], cutout.index_leaves) == ([1, 3], 1)


def test_a_dynamic_shape_is_cut_out_as_it_is(scatter_text: Callable[..., str]):
    """A scatter of dynamic shape keeps it; both versions of it are compared at several choices of sizes."""
    text = scatter_text("?xf32", "1xi32", "3xf32", BRANCHES)
    verdict = verify(text, text, convert=lambda module: module)
    sizes = {regime.sizes for regime in verdict.scatters[0].regimes}
    assert verdict.ok
    assert len(sizes) == 3
    assert all(told.endswith(", 3, 1") for told in sizes)
    assert verdict.module is not None
    assert (verdict.module.status, "at arg0.0=" in verdict.module.how) == ("equal", True)


def test_call_sites_that_are_not_cut_out_are_told():
    """Of ten calls with constants of their own, eight are cut out, and the verdict says that there are more."""
    lines, previous = [], "%o"
    for k in range(10):
        lines.append(f"%c{k} = stablehlo.constant dense<{k % 6}> : tensor<i32>")
        types = "(tensor<8xf32>, tensor<i32>, tensor<3xf32>) -> tensor<8xf32>"
        lines.append(f"%r{k} = call @write({previous}, %c{k}, %u) : {types}")
        previous = f"%r{k}"
    body = "\n  ".join([*lines, "return %r9 : tensor<8xf32>"])
    text = f"func.func public @main(%o: tensor<8xf32>, %u: tensor<3xf32>) -> tensor<8xf32> {{\n  {body}\n}}{PRIVATE}"
    groups, refused = group_cutouts(ModuleIndex(mlir.parse_module(text, mlir.make_context())))
    assert (refused, len(groups)) == ([], 6)  # the constants 0 to 5, then 0 and 1 again
    assert groups[0].notes == ["call sites of scatter 1 at line 26 in @write beyond the first 8"]


@pytest.mark.parametrize(
    ("size", "says"), [(1 << 33, "is larger than any memory"), (1 << 22, "more than half of this machine's memory")]
)
def test_what_does_not_fit_into_memory_is_not_run(scatter_text: Callable[..., str], size: int, says: str):
    """A size that XLA or NumPy would end the process at is refused before anything is made of it."""
    text = scatter_text(f"{size}x{size}xf32", "1xi32", f"1x{size}xf32", BRANCHES.replace("[0], s", "[0, 1], s"))
    verdict = verify(text, text, convert=lambda module: module)
    assert (verdict.ok, verdict.scatters[0].status, says in verdict.scatters[0].reason) == (False, "refused", True)
