"""Control flow for targets that refuse it: the bits of XLA's own loops and branches, or it is left and told."""

import jax
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


@pytest.mark.parametrize("more", [0, 80])
def test_small_functions_are_copied_into_the_trips_that_call_them(more):
    """So what a trip gives them is known; large ones are called."""

    @jax.jit
    def called(y, k):
        for _ in range(more):
            y = y * 2 - k
        return y * k

    source = hl.export(lambda x: lax.fori_loop(0, 4, lambda k, y: called(y, k.astype(y.dtype)), x), X)
    lowered = assert_same(source, (X,))
    assert ("call @called" in lowered.text) == bool(more)


def up_to(n, x):
    """A loop over at most six trips, or fewer, as a number says."""
    return lax.fori_loop(1, jnp.minimum(n, 7), lambda i, y: y * 2 + i, x)


def down_to(n, x):
    """One that counts down from at most 240 by 40, unsigned, and may end early."""
    going = lambda s: (s[0] >= 40) & (s[1].sum() < 40)  # noqa: E731
    return lax.while_loop(going, lambda s: (s[0] - np.uint8(40), s[1] * 1.5 + 1), (n.astype(np.uint8), x))


def uneven(n, x):
    """One whose counter goes on by 1 or by 3, as a number says: the least step makes the most trips."""
    by = jnp.where(n % 2 == 1, 1, 3)
    return lax.while_loop(lambda s: s[0] < 6, lambda s: (s[0] + by, s[1] * 2 + 1), (jnp.int32(0), x))


def within(n, x):
    """One of at most as many trips as the bounded one around it has made, in a branch that may not be taken."""
    inner = lambda i, y: lax.while_loop(  # noqa: E731
        lambda s: (s[0] < i) & (s[1][0] < 9), lambda s: (s[0] + 1, s[1] * 2 + 1), (jnp.int32(0), y)
    )
    return lax.cond(n > 4, lambda: x, lambda: lax.fori_loop(0, jnp.clip(n, 0, 3), lambda i, y: inner(i, y)[1] - i, x))


@pytest.mark.parametrize("function", [up_to, down_to, uneven, within])
def test_loops_of_bounded_trips_are_unrolled(function):
    """They give what they carry where they end: before the first trip, after each one, and after the last."""
    source = hl.export(function, np.int32(0), X)
    lowered = assert_same(source, *((np.int32(n), x) for n in (-(2**31), -1, 0, 1, 2, 3, 5, 100, 255) for x in (X, -X)))
    assert "select" in lowered.text


COUNTING = (
    "%z = constant 0 : i32; %o = constant 1 : i32; %ten = constant 10 : i32; %end = minimum %n, %ten; "
    "%few = compare LT, %n, %ten; %may = convert %few -> i32"
)


def test_a_loop_that_ends_early_stays_one_where_its_values_are_stored_otherwise():
    """A target without ui32 takes it on the bits in i32; a loop of known trips is unrolled, as the counter is known."""

    def draw(key, n):
        def trip(s):
            return s[0] + 1, s[1] * 3 + s[0]

        return lax.while_loop(lambda s: (s[0] < 6) & (s[1].sum() < n), trip, (np.uint32(0), key))[1]

    def mixed(key):
        return lax.fori_loop(0, 3, lambda i, s: s * 3 + lax.convert_element_type(i, np.uint32), key)

    key, target = np.array([1, 7], np.uint32), hl.Target("npu", dtypes=["i1", "i32"])
    kept = hl.lower(source := hl.export(draw, key, np.uint32(99)), target=target)
    assert (kept.text.count("stablehlo.while"), "ui32" in kept.text) == (1, False)
    assert (kept.refused, hl.verify(source, kept).ok) == ((), True)
    assert "stablehlo.while" not in hl.lower(hl.export(mixed, key), target=target).text


@pytest.mark.parametrize(
    ("start", "step", "compared"),
    [
        ("%z", "multiply %i, %o", "LT, %i, %end"),
        ("%z", "add %i, %n", "LT, %i, %end"),
        ("%z", "add %i, %o", "NE, %i, %end"),
        ("%z", "add %i, %o", "LT, %i, %n"),
        ("%n", "add %i, %o", "LT, %i, %end"),
        ("%z", "subtract %i, %o", "LT, %i, %end"),
        ("%z", "add %i, %may", "LT, %i, %end"),
    ],
)
def test_a_loop_that_nothing_bounds_is_left(start, step, compared):
    """Its step, its start or its limit may be anything, or it may step over the limit."""
    loop = f"%r = while(%i = {start}) {{ %p = compare {compared}; return %p }} {{ %j = {step}; return %j }}"
    lowered = hl.lower(module("%n: i32", f"{COUNTING}; {loop}"), target=TARGET)
    assert any(note.endswith("and nothing bounds it") for note in lowered.notes), lowered.notes


@pytest.mark.parametrize(("step", "compared"), [("subtract", "GT, %i, %z"), ("add", "LT, %i, %top")])
def test_a_counter_that_may_leave_its_type_bounds_nothing(step, compared):
    """Of 8 bits it comes back on the other side."""
    head = "%z = constant 0 : ui8; %d = constant 40 : ui8; %top = constant 230 : ui8"
    loop = f"%r = while(%i = %n) {{ %p = compare {compared}; return %p }} {{ %j = {step} %i, %d; return %j }}"
    lowered = hl.lower(module("%n: ui8", f"{head}; {loop}"), target=TARGET)
    assert any(note.endswith("and nothing bounds it") for note in lowered.notes), lowered.notes


def test_a_trip_with_an_effect_is_not_made_in_vain():
    """A loop that may end early and calls the host stays."""
    call = "custom_call @print(%i) {has_side_effect = true} -> i32"
    loop = (
        f"%r = while(%i = %z) {{ %p = compare LT, %i, %end; return %p }} {{ %a = {call}; %j = add %i, %o; return %j }}"
    )
    lowered = hl.lower(module("%n: i32", f"{COUNTING}; {loop}"), target=target("npu", "while"))
    assert any(note.endswith("may have an effect") for note in lowered.notes), lowered.notes


def test_what_is_not_known_is_left_and_told():
    """A loop whose end depends on the values, and what stands in it, stays."""
    source = hl.export(lambda x: lax.while_loop(lambda y: y.sum() < 100, lambda y: lax.fori_loop(0, 2, step, y), x), X)
    lowered = hl.lower(source, target=TARGET)
    assert lowered.text.count("stablehlo.while") == 1
    assert any(note.startswith("left: stablehlo.while") for note in lowered.notes)
    assert any(note.endswith("constants do not say how often it runs, and nothing bounds it") for note in lowered.notes)


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
