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
ROWS, OPEN = CASES["rows"], ["n, _, _", "b, _"]


def read_pages(pool, table):
    """Pages of a pool by a table, as a cache is read."""
    return pool.at[table].get(mode="clip")


@pytest.fixture(scope="module")
def by_index():
    """Pages read by an index that counts from the end where it is negative."""
    return hl.export(lambda p, t: p[t], TABLE, PAGES)


def notes(lowered):
    """What was told of gathers."""
    return [note for note in lowered.notes if "gather" in note]


def test_what_needs_nothing():
    """Nothing is changed or told for a target that clamps as the specification says, nor of places that are constants
    or were clipped before."""
    for target in ("stablehlo", "xla", "linalg"):
        lowered = hl.lower(hl.export(read_pages, TABLE, PAGES), target=target)
        assert (notes(lowered), lowered.stablehlo.count('"stablehlo.gather"')) == ([], 1)
    known = hl.export(lambda pool: pool[jnp.array([0, 5, 2])], TABLE)
    clipped = hl.export(lambda pool, table: pool[jnp.clip(table, 0, 5)], TABLE, PAGES)
    assert [notes(hl.lower(exported, target="iree")) for exported in (known, clipped)] == [[], []]


@pytest.mark.parametrize("target", ["iree", "litert"])
def test_starts_are_clamped_for_targets_that_do_not(target, by_index):
    """The place, the form and its rule are told; the gather stays."""
    lowered = hl.lower(by_index, target=target)
    [told] = notes(lowered)
    assert told.startswith("lowered: stablehlo.gather at test_gather_pass.py:")
    assert told.endswith("gather(operand, clamp(0, starts, D - W)) (gather_to_clamped_gather)")
    assert lowered.text.count('"stablehlo.gather"') == 1


@pytest.mark.usefixtures("judged_by_runs")
def test_where_there_is_no_gather_none_is_left(by_index, monkeypatch):
    """A target that refuses gathers gets none, and the module computes the same on any indices; a clamp that is
    forgotten differs, whatever the module's own inputs are."""
    lowered = hl.lower(by_index, target=NONE)
    assert "stablehlo.gather" not in lowered.text
    verdict = hl.verify(by_index, lowered, level="regions")
    [region] = verdict.regions
    assert (verdict.ok, region.status, region.scatters) == (True, "equal", ())
    assert {"XLA", "reference"} <= set(region.judges)
    monkeypatch.setattr(CanonicalGather, "clamped_indices", lambda self, build: self.indices)
    lowered = hl.lower(by_index, target=hl.Target("npu", refused={**NONE.refused, "stablehlo.dynamic_slice": ""}))
    verdict = hl.verify(by_index, lowered, level="regions")
    [region] = verdict.regions
    assert (verdict.ok, region.status) == (False, "differs")
    assert "XLA says result 0" in region.difference


@pytest.mark.sweep
@pytest.mark.parametrize(
    ("before", "after"), [("dense<5>", "dense<4>"), ("%7", "%5"), ("stablehlo.minimum %6", "stablehlo.maximum %6")]
)
def test_a_second_version_whose_gathers_are_others_does_not_verify(before, after):
    """XLA clamps by itself, so a clamp that is lost or wrong in the text would not show in any run of it."""
    exported = hl.export(read_pages, TABLE, PAGES)
    text = hl.lower(exported, target="iree").text
    place = text.rindex(before) if before == "%7" else text.index(before)
    wrong = text[:place] + text[place:].replace(before, after, 1)
    assert wrong != text
    assert hl.verify(exported, text, target="iree").ok
    verdict = hl.verify(exported, wrong, target="iree")
    assert (verdict.ok, verdict.exit_code) == (False, 1)


@pytest.mark.few(3)
@pytest.mark.parametrize("index", ["i4", "ui4", "ui8", "i64", "ui64"])
def test_indices_of_any_type_are_verified(index):
    """Regimes reach the ends of narrow and of wide types."""
    text = ROWS.text(index=index)
    verdict = hl.verify(text, hl.lower(text, target="iree"), level="regions")
    assert verdict.ok, verdict.lines()


def test_what_is_left_is_told(by_index):
    """A window of extent 0 in a dim that is dropped reads at its start, which may be the end; where no form is legal,
    the nearest one and what the target refuses of it are named; of dynamic shape it is only clamped as it is."""
    text = ROWS.text().replace("array<i64: 1, 4>", "array<i64: 0, 4>")
    assert "its element type, or an empty window, is not lowered" in notes(hl.lower(text, target="iree"))[0]
    assert notes(hl.lower(text, target=hl.Target("any", op_dtypes={"stablehlo.add": ["f32"]}))) == []
    lowered = hl.lower(by_index, target=hl.Target("bare", ops=["stablehlo.constant", "stablehlo.add"]))
    [told] = notes(lowered)
    assert told.startswith("left: stablehlo.gather at test_gather_pass.py:")
    assert "bare accepts no form of it" in told
    assert '"stablehlo.gather"' in lowered.text
    exported = hl.export(read_pages, TABLE, PAGES, shapes=OPEN)
    told = "of dynamic shape, which is only clamped: --bind gives the sizes"
    assert told in notes(hl.lower(exported, target=NONE))[0]
    assert "stablehlo.gather" not in hl.lower(exported, target=NONE, bind={"n": 6, "b": 2}).text


def test_element_types_that_are_refused():
    """Where the indices' type is refused on a maximum, the gather is left, for every form clamps; where each type
    of indices is on the gather, rows are read otherwise. A gather is lowered where the target takes it on other element
    types only."""
    text = ROWS.text(index="i8")
    clamps, reads = (
        hl.lower(text, target=hl.Target("npu", gather="in_bounds", op_dtypes=op_dtypes))
        for op_dtypes in ({"stablehlo.maximum": ["f32"]}, {"stablehlo.gather": ["f32"]})
    )
    assert notes(clamps)[0].startswith("left: ")
    assert '"stablehlo.gather"' not in reads.text
    target = hl.Target("npu", op_dtypes={"stablehlo.gather": ["i32"]})
    texts = [hl.lower(hl.export(read_pages, TABLE.astype(d), PAGES), target=target).text for d in ("int32", "float32")]
    assert [text.count('"stablehlo.gather"') for text in texts] == [1, 0]


def test_a_sharding_stays_one():
    """A clamped gather keeps its sharding as it is, and gets none behind it."""
    text = ROWS.text().replace("4>}>", '4>}> {mhlo.sharding = "{replicated}"}')
    assert hl.lower(text, target="iree").text.count("replicated") == 1


TWO = jax.lax.GatherDimensionNumbers(offset_dims=(2,), collapsed_slice_dims=(0, 1), start_index_map=(0, 1))


def by_pairs(pool, pairs):
    """Rows by page and place, as a gather of two components."""
    return jax.lax.gather(pool, pairs, TWO, (1, 1, 4), mode="clip")


GATHERS = [
    (read_pages, OPEN, (2, 3)),
    (read_pages, ["n, _, _", "_, _"], (2, 3)),
    (by_pairs, ["n, m, _", "b, _, _"], (2, 3, 2)),
    (by_pairs, ["...", "b, _, _"], (2, 3, 2)),
]


@pytest.mark.few(2)
@pytest.mark.parametrize("index", ["int8", "uint8", "int32", "uint32"])
@pytest.mark.parametrize(("fn", "shapes", "indices"), GATHERS, ids=[str(shapes) for _, shapes, _ in GATHERS])
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
        assert np.array_equal(exported.call(pool, places), lowered.exported.call(pool, places))
    assert hl.verify(exported, lowered, level="regions").ok


def test_a_limit_of_run_time_that_is_wrong_is_found(monkeypatch):
    """Rows past the end are read where the limit is one too far."""
    exported = hl.export(read_pages, TABLE, PAGES, shapes=OPEN)
    monkeypatch.setattr(gather, "_limit", lambda build, operand, *_: 1)
    lowered = hl.lower(exported, target="iree")
    given = np.arange(72, dtype=np.float32).reshape(6, 3, 4), np.full((1, 3), 4, np.int32)
    assert not np.array_equal(exported.call(*given), lowered.exported.call(*given))


def test_the_field_of_a_target_file(tmp_path):
    """gather = "in_bounds" is read; another word is an error that names those that are known."""
    path = tmp_path / "npu.toml"
    path.write_text('gather = "in_bounds"\n')
    assert target_of(str(path)).gather == "in_bounds"
    path.write_text('gather = "sometimes"\n')
    with pytest.raises(hl.InputError, match="in_bounds"):
        target_of(str(path))


def test_a_gather_in_a_loop_and_in_a_function():
    """Gathers are found wherever they stand."""

    def read(pool, table):
        return jax.lax.scan(lambda carry, page: (carry + pool[page].sum(), pool[page]), 0.0, table.reshape(-1))

    exported = hl.export(read, TABLE, PAGES)
    lowered = hl.lower(exported, target=NONE)
    assert "stablehlo.gather" not in lowered.text
    assert hl.verify(exported, lowered, level="regions").ok
