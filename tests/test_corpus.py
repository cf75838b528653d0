"""Exports of real frameworks, where the corpus is there: the long sweep converts and verifies them all."""

import re
from pathlib import Path

import pytest

import hlo_lower as hl

CORPUS = Path(__file__).parents[2] / "shared" / "corpus" / "modules"
MODULES = sorted(CORPUS.glob("*/*.mlir"))
WINDOWS = {"shifted_rows": 1, "wrapped_rows": 2, "dynamic_update_slice": 1}
"""How many windows a rule writes; a run whose negative rows are moved up needs two (trap 39)."""

needs_corpus = pytest.mark.skipif(not MODULES, reason="the corpus is not there")


def name(path):
    """Folder and file of a module, as the name of its test."""
    return f"{path.parent.name}/{path.stem}"


def converted(path, windows):
    """A module lowered: no scatter is left, each window is one slice update, and no loop is added."""
    before = path.read_text()
    lowered = hl.lower(before)
    assert '"stablehlo.scatter"' not in lowered.text
    for op, added in (("dynamic_update_slice", windows(lowered.records)), ("while", 0)):
        pattern = rf"stablehlo\.{op}\b"
        assert len(re.findall(pattern, lowered.text)) - len(re.findall(pattern, before)) == added
    return lowered.records


@needs_corpus
@pytest.mark.parametrize("path", sorted(CORPUS.glob("torchax/*_decode*.mlir")), ids=name)
def test_decode_modules_write_their_caches_by_slices(path):
    """Each scatter of a decode step into a KV cache is insert_slice and becomes one slice update."""
    assert {record.kind for record in converted(path, len)} == {"insert_slice"}


@needs_corpus
@pytest.mark.parametrize("path", sorted(CORPUS.glob("torchax/*_prefill*.mlir")), ids=name)
def test_prefill_modules_write_their_caches_by_runs_of_rows(path):
    """Each run of rows of a prefill step becomes one shifted window, or two where negative rows are moved up."""

    def windows(records):  # for "8 tiles [b, i, :] of 8x4x64" one for each batch coordinate, or one select
        return sum(r.writes.counts[0] if r.rule == "unrolled" else WINDOWS.get(r.rule, 0) for r in records)

    records = converted(path, windows)
    caches = [record for record in records if record.rule in WINDOWS]
    assert {record.kind for record in caches} == {"insert_slice"}
    assert {record.rule for record in records} <= {*WINDOWS, "unrolled", "select_per_batch"}


@pytest.mark.few(20)
@needs_corpus
@pytest.mark.parametrize("path", MODULES, ids=name)
def test_every_module_converts(path):
    """Every module loses all its scatters, those with symbolic shapes, too."""
    lowered = hl.lower(path)
    assert (lowered.scatters_left, '"stablehlo.scatter"' in lowered.text) == (0, False)


@pytest.mark.sweep
@needs_corpus
@pytest.mark.parametrize("oob", ["xla", "spec"])
@pytest.mark.parametrize("path", [p for p in MODULES if not re.search(r"tensor<[0-9x]*\?", p.read_text())], ids=name)
def test_module_verifies(path, oob):
    """A converted module is verified: each region under both policies, the whole module under XLA's."""
    lowered = hl.lower(path, oob=oob)
    verdict = hl.verify(path, lowered, oob=oob, level="auto" if oob == "xla" else "regions")
    assert verdict.ok, "\n".join(verdict.lines())
