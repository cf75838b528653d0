"""References that IREE's compiler loses: in programs of its VM, and in a module that it compiles."""

import numpy as np
import pytest

import hlo_lower as hl
from hlo_lower.consumers import IREE
from hlo_lower.consumers.consumer_outcome import RefusedError
from hlo_lower.consumers.iree import compile_module, load
from hlo_lower.consumers.iree_registers import BRANCHES, LostReference, lost_references

PASSED_ON = "%r3->%r4, %R3->%r5"
JOIN = "%r1 = vm.call.variadic @hal.fence.join segments[65535, 2](%i0, {})"


def program(passed, *after, before="%r3 = vm.call @hal.fence.create(%r0, %i0)"):
    """A program of the VM with one branch, as IREE's disassembler writes it."""
    blocks = ["^bb0:", before, f"vm.cond_br %i2, ^bb1({passed}), ^bb2()", "^bb1:", *after, "vm.return %R4"]
    lines = [line if line.startswith("^") else f"  {line}" for line in (*blocks, "^bb2:", 'vm.fail %i1, "of %r3"')]
    return "\n".join(["vm.rodata[0] = 00", "", "vm.func @main(%r0: !vm.ref<?>) -> (!vm.ref<?>) {", *lines, "}"])


LOST = {
    "a fence": (program(PASSED_ON, JOIN.format("%r2, %R3")), "hal.fence.join", 3),
    "a buffer": (program(PASSED_ON, "%r1 = vm.call @hal.buffer_view.create(%R3, %i0)"), "hal.buffer_view.create", 3),
    "passed on again": (program(f"{PASSED_ON}, %r3->%r6", JOIN.format("%r2, %r6")), "hal.fence.join", 6),
    "with the one that took its place": (program("%R3->%r4, %R2->%r5", JOIN.format("%r5, %r3")), "hal.fence.join", 3),
    "of an argument": (program("%r0->%r4, %R0->%r5", JOIN.format("%r2, %R0")), "hal.fence.join", 0),
    "moved into a call": (program("", JOIN.format("%r2, %R3"), JOIN.format("%r2, %r3")), "hal.fence.join", 3),
    "with an equal one that is written again": (
        program(PASSED_ON, "%r5 = vm.call @hal.fence.create(%r0, %i0)", JOIN.format("%r5, %R3")),
        "hal.fence.join",
        3,
    ),
}
KEPT = {
    "copied": program("%r3->%r4, %r3->%r5", JOIN.format("%r2, %R3")),
    "moved, and not read": program(PASSED_ON, JOIN.format("%r4, %R5"), "vm.discard.refs %r3"),
    "written again": program(PASSED_ON, "%r3 = vm.call @hal.fence.create(%r0, %i0)", JOIN.format("%r2, %R3")),
    "null on purpose": program(PASSED_ON, JOIN.format("%r2, %R3"), before="%r3 = vm.const.ref.zero"),
    "read beside an equal one": program(PASSED_ON, JOIN.format("%r4, %R3")),
    "read beside one that signals later": program(
        PASSED_ON, "vm.call @hal.device.queue.execute(%r0, %i0, %r4, %r6, %r7)", JOIN.format("%r6, %R3")
    ),
    "read beside one of several": program(PASSED_ON, JOIN.format("%R5, %r7"), JOIN.format("%r1, %R3")),
    "waited for": program(
        PASSED_ON, "vm.call.variadic @hal.fence.await segments[65535, 1](%i0, %r5)", JOIN.format("%r2, %R3")
    ),
}

TYPES = "tensor<4xf32>, tensor<4x4xf32>, tensor<2xf32>"
IF = f"""func.func @main(%a: tensor<4xf32>, %b: tensor<4x4xf32>, %c: tensor<2xf32>, %p: tensor<i1>) -> ({TYPES}) {{
  %r:3 = "stablehlo.if"(%p) ({{
    %d = stablehlo.sine %a : tensor<4xf32>
    %e = stablehlo.cosine %b : tensor<4x4xf32>
    %f = stablehlo.cosine %c : tensor<2xf32>
    stablehlo.return %d, %e, %f : {TYPES}
  }}, {{
    stablehlo.return %a, %b, %c : {TYPES}
  }}) : (tensor<i1>) -> ({TYPES})
  %g = stablehlo.add %r#0, %a : tensor<4xf32>
  return %g, %r#1, %r#2 : {TYPES}
}}"""
"""IREE (3.13) compiles it, and a run in which %p holds ends with `ref is null`."""


@pytest.mark.parametrize("name", LOST)
def test_a_reference_that_is_read_after_it_was_moved_away_is_lost(name):
    """The report names the function, the block, the op and the register."""
    text, op, register = LOST[name]
    assert list(lost_references(text)) == [LostReference("@main", "bb1", op, register)]


@pytest.mark.parametrize("name", KEPT)
def test_what_no_op_needs_is_not_lost(name):
    """What was copied, is null on purpose, or signals no later than what the op waits for."""
    assert list(lost_references(KEPT[name])) == []


def test_a_loop_is_followed_until_nothing_changes():
    """What its third trip reads was lost in its first one."""
    text = program("", JOIN.format("%r2, %r6"), "vm.cond_br %i2, ^bb1(%r5->%r6, %r4->%r5, %R4->%r7), ^bb2()")
    assert ("hal.fence.join", 6) in [(lost.op, lost.register) for lost in lost_references(text)]


def test_what_is_null_on_one_path_is_lost_on_the_other():
    """Only what is null on purpose on all paths loses nothing."""
    made, null = "%r3 = vm.call @hal.fence.create(%r0, %i0)", "%r3 = vm.const.ref.zero"
    after = (made, "vm.br ^bb3()", "^bb3:", f"vm.br ^bb4({PASSED_ON})", "^bb4:", JOIN.format("%r2, %R3"))
    assert [lost.block for lost in lost_references(program("), ^bb3(", *after, before=null))] == ["bb4"]


def test_what_an_equal_one_stands_for_on_one_path_is_not_lost_on_the_other():
    """A path on which it is not moved away asks for nothing."""
    text = program("), ^bb3(%R3->%r5", "vm.br ^bb3(%r3->%r6)", "^bb3:", JOIN.format("%r5, %R3"))
    assert list(lost_references(text)) == []


@pytest.mark.parametrize("op", ["stablehlo.while", "stablehlo.case", "stablehlo.if", "scf.for", "scf.while", "cf.br"])
def test_what_passes_values_on_is_looked_at(op):
    assert BRANCHES.search(f"  %r:2 = {op}(%a, %b)")
    assert BRANCHES.search(f'  %r:2 = "{op}"(%a, %b)')


@pytest.mark.skipif(not IREE.version(), reason="the extra iree is not installed")
def test_a_module_that_loses_one_is_rejected():
    """The message says what is wrong and where. Lowered for IREE, its branches are selects, and it compiles."""
    load()
    with pytest.raises(
        RefusedError, match=r"loses a reference: in @main, hal\.buffer_view\.create in \^bb\d+ reads %r"
    ):
        compile_module(IF)
    a, b, c = np.float32([1, 2, 3, 4]), np.ones((4, 4), np.float32), np.float32([5, 6])
    results = compile_module(hl.lower(IF, target="iree").text)([a, b, c, np.True_])
    assert [
        np.allclose(one, more) for one, more in zip(results, (np.sin(a) + a, np.cos(b), np.cos(c)), strict=True)
    ] == [True] * 3
