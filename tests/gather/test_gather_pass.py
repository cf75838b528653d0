"""Gathers in modules: which are lowered for which target, what is told, and what verification makes of them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gather_cases import CASES

import hlo_lower as hl
from hlo_lower.facts.gather.canonical import CanonicalGather
from hlo_lower.lowering import gather
from hlo_lower.ops.targets import target_of

TABLE, PAGES = jnp.zeros((6, 3, 4)), jnp.zeros((2, 3), jnp.int32)
NONE = hl.Target("npu", refused={"stablehlo.scatter": "", "stablehlo.gather": "no gather"})


def read_pages(pool, table):
    """Pages of a pool by a table, as a cache is read."""
    return pool.at[table].get(mode="clip")


def read_known(pool):
    """Pages at places that are known."""
    return pool[jnp.array([0, 5, 2])]


def notes(lowered):
    """What was told of gathers."""
    return [note for note in lowered.notes if "gather" in note]


def test_a_target_that_takes_all_gathers_gets_the_module_as_it_is():
    """Nothing is changed or told for a target that clamps as the specification says."""
    exported = hl.export(read_pages, TABLE, PAGES)
    for target in ("stablehlo", "xla", "linalg"):
        lowered = hl.lower(exported, target=target)
        assert notes(lowered) == []
        assert lowered.stablehlo.count('"stablehlo.gather"') == 1


@pytest.mark.parametrize("target", ["iree", "litert"])
def test_starts_are_clamped_for_targets_that_do_not(target):
    """The place, the form and its rule are told; the gather stays."""
    lowered = hl.lower(hl.export(lambda p, t: p[t], TABLE, PAGES), target=target)
    assert len(notes(lowered)) == 1
    assert notes(lowered)[0].startswith("lowered: stablehlo.gather at test_gather_pass.py:")
    assert notes(lowered)[0].endswith("gather(operand, clamp(0, starts, D - W)) (gather_to_clamped_gather)")
    assert lowered.text.count('"stablehlo.gather"') == 1


def test_starts_that_are_proved_to_be_inside_are_not_clamped():
    """Constant places need nothing, and neither do those that were clipped before."""

    def clipped(pool, table):
        return pool[jnp.clip(table, 0, 5)]

    for exported in (hl.export(read_known, TABLE), hl.export(clipped, TABLE, PAGES)):
        assert notes(hl.lower(exported, target="iree")) == []


@pytest.mark.usefixtures("judged_by_runs")
def test_where_there_is_no_gather_none_is_left():
    """A target that refuses gathers gets none, and the module computes the same on any indices."""
    exported = hl.export(lambda p, t: p[t], TABLE, PAGES)
    lowered = hl.lower(exported, target=NONE)
    assert "stablehlo.gather" not in lowered.text
    verdict = hl.verify(exported, lowered)
    assert verdict.ok
    [region] = verdict.regions
    assert (region.status, region.scatters) == ("equal", ())
    assert {"XLA", "reference"} <= set(region.judges)


@pytest.mark.sweep
@pytest.mark.parametrize(
    ("before", "after"), [("dense<5>", "dense<4>"), ("%7", "%5"), ("stablehlo.minimum %6", "stablehlo.maximum %6")]
)
def test_a_second_version_whose_gathers_are_others_does_not_verify(before, after):
    """XLA clamps by itself, so a clamp that is lost or wrong in the text would not show in any run of it."""
    exported = hl.export(lambda p, t: p.at[t].get(mode="clip"), TABLE, PAGES)
    text = hl.lower(exported, target="iree").text
    place = text.rindex(before) if before == "%7" else text.index(before)
    wrong = text[:place] + text[place:].replace(before, after, 1)
    assert wrong != text
    assert hl.verify(exported, text, target="iree").ok
    verdict = hl.verify(exported, wrong, target="iree")
    assert (verdict.ok, verdict.exit_code) == (False, 1)


@pytest.mark.parametrize("index", ["i4", "ui4", "ui8", "i64", "ui64"])
def test_indices_of_any_type_are_verified(index):
    """Regimes reach the ends of narrow and of wide types."""
    text = CASES[0].text(index=index)
    lowered = hl.lower(text, target="iree")
    verdict = hl.verify(text, lowered, level="regions")
    assert verdict.ok, verdict.lines()


def test_what_has_no_canonical_form_is_left():
    """A window of extent 0 in a dim that is dropped reads at its start, which may be the end: it stays, and is told."""
    text = CASES[0].text().replace("array<i64: 1, 4>", "array<i64: 0, 4>")
    assert "its element type, or an empty window, is not lowered" in notes(hl.lower(text, target="iree"))[0]
    assert notes(hl.lower(text, target=hl.Target("any", op_dtypes={"stablehlo.add": ["f32"]}))) == []


def test_a_clamp_that_the_target_refuses_gives_way_to_other_forms():
    """Where the indices' type is refused on a maximum, or on the gather, rows are read otherwise."""
    for op_dtypes in ({"stablehlo.maximum": ["f32"]}, {"stablehlo.gather": ["f32", "i32"]}):
        target = hl.Target("npu", gather="in_bounds", op_dtypes=op_dtypes)
        text = CASES[0].text(index="i8")
        lowered = hl.lower(text, target=target)
        if "stablehlo.maximum" in op_dtypes:
            assert notes(lowered)[0].startswith("left: ")  # every form clamps
        else:
            assert '"stablehlo.gather"' not in lowered.text


def test_a_sharding_stays_one():
    """A clamped gather keeps its sharding as it is, and gets none behind it."""
    text = CASES[0].text().replace("4>}>", '4>}> {mhlo.sharding = "{replicated}"}')
    lowered = hl.lower(text, target="iree").text
    assert lowered.count("replicated") == 1


def test_a_gather_that_is_lowered_wrongly_does_not_verify(monkeypatch):
    """Judged alone, out of bounds: a clamp that is forgotten differs, whatever the module's own inputs are."""
    exported = hl.export(lambda p, t: p[t], TABLE, PAGES)
    monkeypatch.setattr(CanonicalGather, "clamped", lambda self, build: self.indices)
    lowered = hl.lower(exported, target=hl.Target("npu", refused={**NONE.refused, "stablehlo.dynamic_slice": ""}))
    verdict = hl.verify(exported, lowered)
    assert not verdict.ok
    [region] = verdict.regions
    assert region.status == "differs"
    assert "XLA says result 0" in region.difference


def test_what_no_form_is_legal_for_is_left_and_told():
    """The nearest form and what the target refuses of it are named; the module is written all the same."""
    target = hl.Target("bare", ops=["stablehlo.constant", "stablehlo.add"])
    lowered = hl.lower(hl.export(lambda p, t: p[t], TABLE, PAGES), target=target)
    assert len(notes(lowered)) == 1
    assert notes(lowered)[0].startswith("left: stablehlo.gather at test_gather_pass.py:")
    assert "bare takes no form of it" in notes(lowered)[0]
    assert '"stablehlo.gather"' in lowered.text


TWO = jax.lax.GatherDimensionNumbers(offset_dims=(2,), collapsed_slice_dims=(0, 1), start_index_map=(0, 1))


def by_pairs(pool, pairs):
    """Rows by page and place, as a gather of two components."""
    return jax.lax.gather(pool, pairs, TWO, (1, 1, 4), mode="clip")


INDICES = ("int8", "uint8", "int32", "uint32")
GATHERS = [
    (lambda p, t: p.at[t].get(mode="clip"), ["n, _, _", "b, _"], (2, 3)),
    (lambda p, t: p.at[t].get(mode="clip"), ["n, _, _", "_, _"], (2, 3)),
    (by_pairs, ["n, m, _", "b, _, _"], (2, 3, 2)),
    (by_pairs, ["...", "b, _, _"], (2, 3, 2)),
]


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("fn", "shapes", "indices", "index"),
    [
        pytest.param(*case, index, marks=[] if (a + b) % 4 == 0 else pytest.mark.sweep)
        for a, case in enumerate(GATHERS)
        for b, index in enumerate(INDICES)
    ],
)
def test_a_gather_of_dynamic_shape_is_clamped_by_sizes_of_run_time(fn, shapes, indices, index):
    """One lowered module reads what XLA's own gather reads, at several sizes and beyond them."""
    exported = hl.export(fn, TABLE, jnp.zeros(indices, index), shapes=shapes)
    lowered = hl.lower(exported, target="iree")
    assert "dynamic_shape_gather_to_clamped_gather" in notes(lowered)[0]
    generator = np.random.default_rng(0)
    for n, m, b in ((6, 3, 2), (1, 3, 2), (9, 3, 2)) if "m" not in shapes[0] else ((6, 3, 2), (1, 5, 4), (9, 2, 1)):
        n, m = (6, 3) if shapes[0] == "..." else (n, m)
        pool = generator.normal(size=(n, m, 4)).astype(np.float32)
        places = generator.integers(0 if index[0] == "u" else -3, 12, (b, *indices[1:])).astype(index)
        expected, found = exported.call(pool, places), lowered.exported.call(pool, places)
        assert np.array_equal(expected, found)
    assert hl.verify(exported, lowered).ok


def test_a_limit_of_run_time_that_is_wrong_is_found(monkeypatch):
    """Rows past the end are read where the limit is one too far."""
    exported = hl.export(lambda p, t: p.at[t].get(mode="clip"), TABLE, PAGES, shapes=["n, _, _", "b, _"])
    monkeypatch.setattr(gather, "_limit", lambda build, operand, *_: 1)
    lowered = hl.lower(exported, target="iree")
    places = np.full((1, 3), 4, np.int32)
    pool = np.arange(72, dtype=np.float32).reshape(6, 3, 4)
    assert not np.array_equal(exported.call(pool, places), lowered.exported.call(pool, places))


def test_a_gather_of_dynamic_shape_for_a_target_without_gathers_is_left_and_told():
    """It is only clamped as it is; binding the sizes gives the other forms."""
    exported = hl.export(lambda p, t: p.at[t].get(mode="clip"), TABLE, PAGES, shapes=["n, _, _", "b, _"])
    assert (
        "of dynamic shape, which is only clamped: --bind gives the sizes" in notes(hl.lower(exported, target=NONE))[0]
    )
    assert "stablehlo.gather" not in hl.lower(exported, target=NONE, bind={"n": 6, "b": 2}).text


def test_element_types_that_a_gather_is_refused_for():
    """A gather is lowered where the target takes it on other element types only."""
    target = hl.Target("npu", op_dtypes={"stablehlo.gather": ["i32"]})
    texts = [hl.lower(hl.export(read_pages, TABLE.astype(d), PAGES), target=target).text for d in ("int32", "float32")]
    assert [text.count('"stablehlo.gather"') for text in texts] == [1, 0]


def test_the_field_of_a_target_file(tmp_path):
    """gather = "in_bounds" is read; another word is an error that names those that are known."""
    path = tmp_path / "npu.toml"
    path.write_text('gather = "in_bounds"\n')
    assert target_of(str(path)).gather == "in_bounds"
    path.write_text('gather = "sometimes"\n')
    with pytest.raises(hl.InputError, match="in_bounds"):
        target_of(str(path))


def test_a_gather_in_a_loop_and_in_a_function():
    """Gathers are found wherever they stand, and alike ones are told once."""

    def read(pool, table):
        def turn(carry, page):
            return carry + pool[page].sum(), pool[page]

        return jax.lax.scan(turn, 0.0, table.reshape(-1))

    exported = hl.export(read, TABLE, PAGES)
    lowered = hl.lower(exported, target=NONE)
    assert "stablehlo.gather" not in lowered.text
    assert hl.verify(exported, lowered).ok
    assert np.isfinite(np.asarray(lowered.exported.call(TABLE, PAGES)[0]))
