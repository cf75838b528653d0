"""Control flow for targets that refuse it: the bits of XLA's own loops and branches, or it is left and told."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import hlo_lower as hl
from hlo_lower.base.errors import EXIT_NOT_LOWERED, InputError
from hlo_lower.cli import main
from hlo_lower.lowering.control import FlatCopy

CONTROL = ("while", "case", "if", "map", "optimization_barrier", "custom_call")
TARGET = hl.Target("npu", refused={f"stablehlo.{op}": "none" for op in (*CONTROL, "scatter")})
X = np.array([0.5, -3.0, 7.25], np.float32)


def assert_same(source, *inputs, **options):
    """Lowered, it has no control flow and gives the same bits; gives what it was lowered to."""
    lowered = hl.lower(source, target=TARGET, **options)
    assert not any(f"stablehlo.{op}" in lowered.text for op in CONTROL), lowered.text
    for values in inputs:
        expected, found = (np.asarray(jax.jit(e.call)(*values)) for e in (source, lowered.exported))
        assert expected.tobytes() == found.tobytes()
    return lowered


def counted(x):
    """A scan with outputs, over a fori with a step, over a branch that the counter decides."""

    def trip(carry, k):
        inner = lax.fori_loop(0, 3, lambda i, y: lax.cond(i % 2 == 0, lambda: y * 2, lambda: y - k), carry)
        return inner, inner.sum()

    return lax.scan(trip, x, jnp.arange(4, dtype=x.dtype))[1]


@pytest.mark.parametrize("dtype", ["float32", "int8"])
def test_nested_loops_are_unrolled(dtype):
    """Counters, what follows from them, and outputs that are written at them are those of the loops."""
    x = X.astype(dtype)
    lowered = assert_same(hl.export(counted, x), (x,))
    assert any("(while_to_trips)" in note for note in lowered.notes)


def down(x):
    """A loop that counts down by two, and one that does not run."""
    loop = lambda n: lax.while_loop(lambda s: s[0] > 1, lambda s: (s[0] - 2, s[1] * s[0]), (n, x))  # noqa: E731
    return loop(7)[1] + loop(0)[1]


def test_any_condition_that_follows_from_constants_will_do():
    """The counter need not go up by one from zero, and the loop need not run."""
    assert_same(hl.export(down, X), (X,))


def test_what_is_not_known_is_left_and_told():
    """A loop whose end depends on the values, and what stands in it, stays; the command exits with 3."""
    source = hl.export(lambda x: lax.while_loop(lambda y: y.sum() < 100, lambda y: lax.fori_loop(0, 2, step, y), x), X)
    lowered = hl.lower(source, target=TARGET)
    assert lowered.text.count("stablehlo.while") == 1
    assert any(note.startswith("left: stablehlo.while") for note in lowered.notes)
    assert any(note.endswith("how often it runs does not follow from constants") for note in lowered.notes)


def step(_, y):
    """One trip of a loop."""
    return y * 2 + 1


def test_loops_are_unrolled_up_to_a_size(tmp_path, capsys):
    """--max-unroll says how many ops a loop may become; beyond, it is left, and the command exits with 3."""
    source = hl.export(lambda x: lax.fori_loop(0, 50, step, x), X)
    path = tmp_path / "loop.mlir"
    path.write_text(hl.lower(source).text)
    target = tmp_path / "npu.toml"
    target.write_text('[refused]\n"stablehlo.while" = "none"\n"stablehlo.scatter" = "lowered"\n')
    command = ["convert", str(path), "-o", str(tmp_path / "out.mlir"), "--target", str(target)]
    assert main([*command, "--max-unroll", "60"]) == EXIT_NOT_LOWERED
    assert "more than 60 ops (--max-unroll)" in " ".join("".join(capsys.readouterr()).split())
    assert main(command) == 0
    assert "stablehlo.while" not in (tmp_path / "out.mlir").read_text()
    with pytest.raises(InputError, match="max_unroll"):
        hl.lower(source, max_unroll=-1)


@pytest.mark.parametrize("index", [-1, 0, 1, 2, 3])
def test_an_index_that_is_no_branch_takes_the_last(index):
    """As StableHLO says, where jax clamps it to the first: both forms are the module's own."""
    text = CASE.replace("INDEX", str(index))
    lowered = hl.lower(text, target=TARGET)
    assert any("(branches_to_taken)" in note for note in lowered.notes)
    assert ("negate", "add", "abs")[index if 0 <= index < 3 else 2] in lowered.text
    assert hl.verify(text, lowered).ok


CASE = """func.func public @main(%x: tensor<3xf32>) -> tensor<3xf32> {
  %i = stablehlo.constant dense<INDEX> : tensor<i32>
  %r = "stablehlo.case"(%i) ({
    %a = stablehlo.negate %x : tensor<3xf32>
    stablehlo.return %a : tensor<3xf32>
  }, {
    %b = stablehlo.add %x, %x : tensor<3xf32>
    stablehlo.return %b : tensor<3xf32>
  }, {
    %c = stablehlo.abs %x : tensor<3xf32>
    stablehlo.return %c : tensor<3xf32>
  }) : (tensor<i32>) -> tensor<3xf32>
  return %r : tensor<3xf32>
}
"""


def branches(i, x):
    """Branches within a branch, one with a loop; an integer division by what may be zero."""
    other = lambda: lax.cond(x[0] > 0, lambda: x + 1, lambda: lax.fori_loop(0, 3, step, x))  # noqa: E731
    divided = lambda: (jnp.arange(3) // i).astype(x.dtype)  # noqa: E731
    return lax.switch(i, [other, divided, lambda: x * 3])


def test_branches_become_selects():
    """All are computed, nested ones too; dividing by zero in one that is not taken changes nothing."""
    source = hl.export(branches, np.int32(0), X)
    assert_same(source, *((np.int32(i), x) for i in (-5, 0, 1, 2, 9) for x in (X, -X)))


def test_a_branch_that_may_not_end_is_not_computed():
    """Nor is one that is not known to be without effect: it stays, and why is told."""
    endless = hl.export(
        lambda p, x: lax.cond(p, lambda: lax.while_loop(lambda y: y[0] < 9, lambda y: y, x), lambda: x), True, X
    )
    called = CALLING
    for source, why in (
        (endless, "of a loop in one how often it runs does not follow"),
        (called, "may have an effect"),
    ):
        lowered = hl.lower(
            source, target=hl.Target("npu", refused={f"stablehlo.{op}": "none" for op in ("case", "if", "scatter")})
        )
        assert any(why in note for note in lowered.notes), lowered.notes
        assert "stablehlo.case" in lowered.text


CALLING = """func.func public @main(%i: tensor<i32>, %x: tensor<f32>) -> tensor<f32> {
  %r = "stablehlo.case"(%i) ({
    %a = stablehlo.custom_call @print(%x) {has_side_effect = true} : (tensor<f32>) -> tensor<f32>
    stablehlo.return %a : tensor<f32>
  }, {
    stablehlo.return %x : tensor<f32>
  }) : (tensor<i32>) -> tensor<f32>
  return %r : tensor<f32>
}
"""


def test_notes_stay_in_a_module_for_several_devices():
    """There they say something; on one device they do not, and go."""
    lines = [
        "func.func public @main(%x: tensor<4xf32>) -> tensor<4xf32> {",
        '  %r = stablehlo.custom_call @Sharding(%x) {mhlo.sharding = "{replicated}"} '
        ": (tensor<4xf32>) -> tensor<4xf32>",
        "  return %r : tensor<4xf32>\n}",
    ]
    one = "\n".join(lines)
    several = f"module attributes {{mhlo.num_partitions = 8 : i32}} {{\n{one}\n}}"
    assert "@Sharding" not in hl.lower(one, target=TARGET).text
    assert "@Sharding" in hl.lower(several, target=TARGET).text


def test_what_a_scatter_holds_is_lowered_behind_it():
    """A scatter in a loop is lowered at the constant places that its trips give it."""
    source = hl.export(lambda x: lax.fori_loop(0, 3, lambda i, y: y.at[i].set(7.0), x), X)
    lowered = assert_same(source, (X,))
    assert "guarded" not in str([record.rule for record in lowered.records])


@pytest.mark.sweep
@pytest.mark.parametrize("function", [counted, down], ids=lambda function: function.__name__)
def test_unrolled_loops_are_verified(function):
    """Their regions are judged equal, and the module."""
    source = hl.export(function, X)
    assert hl.verify(source, hl.lower(source, target=TARGET), runs=1).ok


@pytest.mark.sweep
def test_selected_branches_are_verified():
    """Their regions are judged equal, and the module."""
    source = hl.export(branches, np.int32(0), X)
    assert hl.verify(source, hl.lower(source, target=TARGET)).ok


@pytest.mark.parametrize("wrong", [pytest.param("one trip less", marks=pytest.mark.sweep), "the other branch"])
def test_a_wrong_form_does_not_verify(wrong, monkeypatch):
    """A trip that is missing and results that are swapped differ."""
    if wrong == "one trip less":
        holds, count = FlatCopy._holds, []
        late = lambda self, *args: (count.append(1), holds(self, *args))[1] and len(count) % 4 != 0  # noqa: E731
        monkeypatch.setattr(FlatCopy, "_holds", late)
        source = hl.export(lambda x: lax.fori_loop(0, 5, step, x), X)
    else:
        chosen = "hlo_lower.lowering.control._chosen"
        monkeypatch.setattr(chosen, lambda build, p, yes, no: build.select(p, no, yes))
        source = hl.export(lambda p, x: lax.cond(p, lambda: x * 2, lambda: x - 1), True, X)
    verdict = hl.verify(source, hl.lower(source, target=TARGET))
    assert not verdict.ok
    assert "differs" in {region.status for region in verdict.regions}


def test_a_target_that_takes_control_flow_gets_it_as_it_is():
    """Nothing is changed or told."""
    source = hl.export(counted, X)
    assert hl.lower(source).notes == ()
    assert hl.lower(source).text.count("stablehlo.while") == 2
