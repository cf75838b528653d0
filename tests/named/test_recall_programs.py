"""The programs by which the recognition of named ops is judged: what they ask for, and how it is counted."""

import sys
from collections import Counter
from pathlib import Path

import pytest

from hlo_lower.ops.vocabulary import BY_NAME

sys.path.insert(0, str(Path(__file__).parents[2] / "scripts"))

from recall.case import Finding, finds
from recall.counted import CORPUS, counted_modules
from recall.decoders import DECODERS, VARIANTS
from recall.finder import fits
from recall.programs import HITS, NEAR_MISSES
from recall.recall_table import table_lines
from recall.scores import Recall, recall_of

ALL = (*HITS, *NEAR_MISSES, *DECODERS, *VARIANTS)


def test_what_programs_ask_for():
    """Thirty patterns of attention, four or more ways of each op but the rare accumulations, 60 near misses or more;
    the twenty exports hold attentions, norms, activations and rotations by hundreds. Names are unique. What is expected
    or refused has the attributes that are asked of it, with values that they may have. A hit expects, a near miss
    refuses and is named after what it is a near miss of."""
    assert sum(case.source == "inductor patterns" for case in HITS) == 30
    assert (len(NEAR_MISSES) >= 60, len(DECODERS), len(VARIANTS)) == (True, 20, 20)
    kinds = {"attention", "rms_norm", "layer_norm", "swiglu", "gelu", "relu", "rope"}
    assert sum(wanted.times for case in DECODERS for wanted in case.expected if wanted.op in kinds) > 200
    ways = Counter(wanted.op for case in HITS for wanted in case.expected)
    rare = {"cumprod", "cummax", "cummin", "cumlogsumexp"}
    assert set() == {op for op in BY_NAME.keys() - rare if ways[op] < 4}
    assert rare <= ways.keys()
    assert len(ALL) == len({case.name for case in ALL})
    for case in ALL:
        for wanted in (*case.expected, *case.refused):
            known = {attribute.name: attribute for attribute in BY_NAME[wanted.op].attributes}
            assert set() == wanted.attributes.keys() - known.keys(), case.name
            for name, value in wanted.attributes.items():
                assert not known[name].choices or value in known[name].choices, case.name
        assert (bool(case.expected), bool(case.refused)) == ((False, True) if case in NEAR_MISSES else (True, False))
    assert [c.name for c in NEAR_MISSES if not any(f"/{wanted.op}_" in c.name for wanted in c.refused)] == []


@pytest.mark.parametrize("module", counted_modules(), ids=lambda module: module.path)
def test_counted_norms_are_the_reciprocal_roots(module):
    """In the modules that were counted each norm has one reciprocal square root, and nothing else has any."""
    file = CORPUS / module.path
    if not file.is_file():
        pytest.skip("the corpus is not there")
    norms = sum(wanted.times for wanted in module.expected if wanted.op in ("rms_norm", "layer_norm"))
    assert norms == file.read_text().count("stablehlo.rsqrt")


def test_what_is_found_is_counted():
    """An epsilon is what its constant rounds to; a bool is not a number; what is not asked may be anything. Each miss
    is told with what was found in its place; what is found in a near miss by name and attributes, as are attributes
    that are wrong; and more than was counted in a module."""
    norm = Finding("rms_norm", {"epsilon": 9.99999997e-07, "axes": (2,)})
    assert fits(norm, finds("rms_norm", epsilon=1e-6))
    others = (norm, finds("rms_norm", epsilon=1e-5)), (norm, finds("layer_norm"))
    others += ((Finding("attention", {"scale": 0.25}), finds("attention", causal=True)),)
    assert [fits(*pair) for pair in others] == [False] * 3
    nothing = recall_of(HITS[:1], NEAR_MISSES[:1], lambda _: [])
    everything = [Finding("attention", {"scale": 2.0}), Finding("softmax", {"axis": 1})]
    wrong = recall_of(HITS[:1], NEAR_MISSES[:1], lambda _: everything)
    totals = [(recall.total.expected, recall.total.found, recall.total.exact) for recall in (nothing, wrong)]
    assert totals == [(1, 0, 0), (1, 1, 0)]
    assert (nothing.false_positives, wrong.false_positives) == ([], [(NEAR_MISSES[0].name, "softmax(axis=1)")])
    assert nothing.missed[0][1].endswith("0 of 1: nothing")
    assert "near misses: 1 of 1 refused" in list(table_lines(nothing, markdown=False))
    assert "|all|1|1|100.0%|0|" in "".join(table_lines(wrong, markdown=True)).replace(" ", "")
    recall = Recall()
    recall.add_counted("m.mlir", "counted", [Finding("attention")], [Finding("attention", {})] * 2)
    assert recall.surplus == [("m.mlir", "attention: 2 found, 1 counted")]


@pytest.mark.sweep
@pytest.mark.parametrize("case", ALL, ids=lambda case: case.name)
def test_every_program_is_traced(case):
    """Each has a module."""
    assert "func.func public @main" in case.text()
