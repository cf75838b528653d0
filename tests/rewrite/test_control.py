"""Control flow for targets that refuse it: the bits of XLA's own loops and branches, or it is left and told."""

import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from rewrites import assert_same as same
from rule_examples import CONTROL, target
from untyped_mlir import module

import hlo_lower as hl
from hlo_lower import cli
from hlo_lower.base.errors import EXIT_NOT_LOWERED, InputError
from hlo_lower.lowering.control import FlatCopy

TARGET = target("npu", *CONTROL)
X = np.array([0.5, -3.0, 7.25], np.float32)


def assert_same(source, *inputs):
    """Lowered, it has no control flow and gives the same bits; gives what it was lowered to."""
    lowered = hl.lower(source, target=TARGET)
    assert not any(f"stablehlo.{op}" in lowered.text for op in CONTROL), lowered.text
    for values in inputs:
        same(source, lowered, *values)
    return lowered


def counted(x):
    """A scan with outputs, over a fori with a step, over a branch that the counter decides."""

    def trip(carry, k):
        inner = lax.fori_loop(0, 3, lambda i, y: lax.cond(i % 2 == 0, lambda: y * 2, lambda: y - k), carry)
        return inner, inner.sum()

    return lax.scan(trip, x, jnp.arange(4, dtype=x.dtype))[1]


def down(x):
    """A loop that counts down by two, and one that does not run."""
    loop = lambda n: lax.while_loop(lambda s: s[0] > 1, lambda s: (s[0] - 2, s[1] * s[0]), (n, x))  # noqa: E731
    return loop(7)[1] + loop(0)[1]


def step(_, y):
    """One trip of a loop."""
    return y * 2 + 1


@pytest.mark.parametrize(("function", "dtype"), [(counted, "float32"), (counted, "int8"), (down, "float32")])
def test_loops_that_follow_from_constants_are_unrolled(function, dtype):
    """Counters, what follows from them, and outputs that are written at them are those of the loops; the counter need
    not go up by one from zero, and the loop need not run. A target that takes loops gets them as they are."""
    x = X.astype(dtype)
    source = hl.export(function, x)
    assert any("(while_to_trips)" in note for note in assert_same(source, (x,)).notes)
    taken = hl.lower(source)
    assert (taken.notes, taken.text.count("stablehlo.while")) == ((), 2)


def test_what_is_not_known_is_left_and_told():
    """A loop whose end depends on the values, and what stands in it, stays."""
    source = hl.export(lambda x: lax.while_loop(lambda y: y.sum() < 100, lambda y: lax.fori_loop(0, 2, step, y), x), X)
    lowered = hl.lower(source, target=TARGET)
    assert lowered.text.count("stablehlo.while") == 1
    assert any(note.startswith("left: stablehlo.while") for note in lowered.notes)
    assert any(note.endswith("constants do not say how often it runs") for note in lowered.notes)


def test_loops_are_unrolled_up_to_a_size(tmp_path, capsys):
    """--max-unroll says how many ops a loop may become; beyond, it is left, and the command exits with 3."""
    source = hl.export(lambda x: lax.fori_loop(0, 50, step, x), X)
    path, npu, out = (tmp_path / name for name in ("loop.mlir", "npu.toml", "out.mlir"))
    path.write_text(hl.lower(source).text)
    npu.write_text('[refused]\n"stablehlo.while" = "none"\n"stablehlo.scatter" = "lowered"\n')
    command = ["convert", str(path), "-o", str(out), "--target", str(npu), "--no-verify"]
    assert cli.main([*command, "--max-unroll", "60"]) == EXIT_NOT_LOWERED
    assert "more than 60 ops (--max-unroll)" in " ".join("".join(capsys.readouterr()).split())
    assert cli.main(command) == 0
    assert "stablehlo.while" not in out.read_text()
    with pytest.raises(InputError, match="max_unroll"):
        hl.lower(source, max_unroll=-1)


@pytest.mark.parametrize("index", [-1, 0, 1, 2, 3])
def test_an_index_that_is_no_branch_takes_the_last(index):
    """As StableHLO says, where jax clamps it to the first: both forms are the module's own."""
    branches = " ".join(f"{{ %a = {op}; return %a }}" for op in ("negate %x", "add %x, %x", "abs %x"))
    text = module("%x: 3xf32", f"%i = constant {index} : i32; %r = case(%i) {branches}")
    lowered = hl.lower(text, target=TARGET)
    assert any("(branches_to_taken)" in note for note in lowered.notes)
    assert ("negate", "add", "abs")[index if 0 <= index < 3 else 2] in lowered.text
    same(text, lowered, X)


def branches(i, x):
    """Branches within a branch, one with a loop; an integer division by what may be zero."""
    other = lambda: lax.cond(x[0] > 0, lambda: x + 1, lambda: lax.fori_loop(0, 3, step, x))  # noqa: E731
    divided = lambda: (jnp.arange(3) // i).astype(x.dtype)  # noqa: E731
    return lax.switch(i, [other, divided, lambda: x * 3])


def test_branches_become_selects():
    """All are computed, nested ones too; dividing by zero in one that is not taken changes nothing."""
    source = hl.export(branches, np.int32(0), X)
    assert_same(source, *((np.int32(i), x) for i in (-5, 0, 1, 2, 9) for x in (X, -X)))


CALLING = "%r = case(%i) { %a = custom_call @print(%x) {has_side_effect = true} -> f32; return %a } { return %x }"


def endless(p, x):
    """A branch that may not end."""
    return lax.cond(p, lambda: lax.while_loop(lambda y: y[0] < 9, lambda y: y, x), lambda: x)


@pytest.mark.parametrize(
    ("source", "why"),
    [
        (hl.export(endless, True, X), "in one there is a loop: constants do not say how often it runs"),
        (module("%i: i32, %x: f32", CALLING), "may have an effect"),
    ],
    ids=["endless", "calling"],
)
def test_a_branch_that_may_not_end_or_has_an_effect_is_not_computed(source, why):
    """It stays, and why is told."""
    lowered = hl.lower(source, target=target("npu", "case", "if"))
    assert any(why in note for note in lowered.notes), lowered.notes
    assert "stablehlo.case" in lowered.text


def test_notes_stay_in_a_module_for_several_devices():
    """There they say something; on one device they do not, and go."""
    one = module("%x: f32", '%r = custom_call @Sharding(%x) {mhlo.sharding = "{replicated}"} -> f32')
    several = f"module attributes {{mhlo.num_partitions = 8 : i32}} {{\n{one}\n}}"
    assert ["@Sharding" in hl.lower(text, target=TARGET).text for text in (one, several)] == [False, True]


def test_what_a_scatter_holds_is_lowered_behind_it():
    """A scatter in a loop is lowered at the constant places that its trips give it."""
    lowered = assert_same(hl.export(lambda x: lax.fori_loop(0, 3, lambda i, y: y.at[i].set(7.0), x), X), (X,))
    assert "guarded" not in str([record.rule for record in lowered.records])


@pytest.mark.sweep
@pytest.mark.parametrize("given", [(counted, X), (down, X), (branches, np.int32(0), X)])
def test_what_becomes_of_control_flow_is_verified(given):
    """Its regions are judged equal, and the module."""
    source = hl.export(*given)
    assert hl.verify(source, hl.lower(source, target=TARGET), runs=1).ok


@pytest.mark.parametrize("wrong", [pytest.param("one trip less", marks=pytest.mark.sweep), "the other branch"])
def test_a_wrong_form_does_not_verify(wrong, monkeypatch):
    """A trip that is missing and results that are swapped differ."""
    if wrong == "one trip less":
        holds, count = FlatCopy._holds, []
        late = lambda self, *args: (count.append(1), holds(self, *args))[1] and len(count) % 4 != 0  # noqa: E731
        monkeypatch.setattr(FlatCopy, "_holds", late)
        source = hl.export(lambda x: lax.fori_loop(0, 5, step, x), X)
    else:
        chosen = "hlo_lower.lowering.control._select"
        monkeypatch.setattr(chosen, lambda build, p, yes, no: build.select(p, no, yes))
        source = hl.export(lambda p, x: lax.cond(p, lambda: x * 2, lambda: x - 1), True, X)
    verdict = hl.verify(source, hl.lower(source, target=TARGET))
    assert "differs" in {region.status for region in verdict.regions}
