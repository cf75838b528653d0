"""Verdicts on whole versions that are kept: read only where all that they rest on is the same, and only good ones."""

import sys
from dataclasses import replace

import pytest
from untyped_mlir import module

import hlo_lower as hl
import hlo_lower.api.verified
from hlo_lower.facts.scatter.predicates import Claims
from hlo_lower.verify import ModuleVerdict, RegionVerdict, Verdict
from hlo_lower.verify.cache import VerdictCache
from hlo_lower.verify.claim_checks import Check, ClaimsVerdict
from hlo_lower.verify.kept_verdicts import FROM_CACHE, find_verdict, keep_verdict
from hlo_lower.verify.verdict import LARGE_AND_EQUAL

verified = sys.modules["hlo_lower.api.verified"]  # the function of this name hides it

DERIVES = True

WRITE = module(
    "%o: 8x4xf32, %i: 1xi32, %u: 4xf32",
    "%k = add %i, 1; %r = scatter(%o, %k, %u) <window=[0], inserted=[0], to=[0]> {%c, %d: return %d}",
)
REGION = RegionVerdict("main", "main", ("line 3",), ("line 3", "line 4"), (1,), how="derived", laws=("fold",))
GOOD = Verdict((REGION,), (), ModuleVerdict("equal", 3), claims=ClaimsVerdict((1,)))
LATE = ModuleVerdict("not run", reason="its compilation took more than 60 s")


@pytest.fixture
def judged(monkeypatch, tmp_path):
    """How often the judge was asked in a verification that has a cache, of a judge that finds all good."""
    asked = []
    monkeypatch.setattr(verified, "_verify", lambda *texts, **how: asked.append(texts) or GOOD)

    def run(source=WRITE, lowered=None, **how):
        before = len(asked)
        verdict = hl.verify(source, hl.lower(source) if lowered is None else lowered, cache=tmp_path, **how)
        assert verdict.ok
        return len(asked) - before

    return run


def test_a_verdict_is_read_again_and_says_so(tmp_path):
    """The second time nothing is judged: regions and runs are those of before, and say that they were kept."""
    first, again = (hl.verify(WRITE, hl.lower(WRITE), cache=tmp_path) for _ in range(2))
    assert (first.exit_code, replace(again, module=first.module)) == (0, first)
    assert again.module == replace(first.module, how=first.module.how + FROM_CACHE)
    assert {region.from_cache for region in again.regions} == {True}
    assert again.summary().endswith("1 from the cache; module 3 runs")


@pytest.mark.parametrize(
    "how",
    [
        *({name: value} for name, value in (("level", "full"), ("seed", 1), ("runs", 4), ("accept_runs", True))),
        *({name: value} for name, value in (("require", "derived"), ("prove", True), ("oob", "spec"))),
        *({name: value} for name, value in (("float_mode", "reassociate"), ("trust_flags", True))),
        *({name: value} for name, value in (("target", "iree"), ("checked", True))),
    ],
    ids=lambda how: next(iter(how)),
)
def test_other_questions_are_asked_anew(judged, how):
    """Of the effort and of what the versions mean, each thing that the verdict rests on."""
    text = hl.lower(WRITE).text
    assert [judged(lowered=text), judged(lowered=text), judged(lowered=text, **how)] == [1, 0, 1]
    assert judged(lowered=text, jobs=2, patience=7) == 0


def test_other_versions_are_judged_anew(judged, monkeypatch):
    """Another text of either version, other claims, ops that have to stay inside, or sources of the package."""
    lowered = hl.lower(WRITE)
    assert [judged(lowered=lowered), judged(lowered=lowered)] == [1, 0]
    assert judged(WRITE.replace("add", "subtract"), lowered=lowered) == 1
    others = [lowered.text, lowered.text.replace("add", "subtract")] * 2
    assert [judged(lowered=text) for text in others] == [1, 1, 0, 0]
    claims = Check({1: Claims("xla", (1,), in_bounds="always")}, frozenset(), lambda *_: "")
    for name, other in (("_claims_of", claims), ("_claims_of", replace(claims, of_updates=frozenset({1})))):
        monkeypatch.setattr(verified, name, lambda _, other=other: other)
        assert [judged(lowered=lowered), judged(lowered=lowered)] == [1, 0]
    monkeypatch.setattr(verified, "_inside", lambda *_: frozenset({"stablehlo.gather"}))
    assert judged(lowered=lowered) == 1
    monkeypatch.setattr(verified, "_forms_of", lambda _: ("another form of linalg",))
    assert judged(lowered=lowered) == 1
    monkeypatch.setattr(verified, "version_of_package", lambda: "another version")
    assert judged(lowered=lowered) == 1


def test_what_is_made_on_the_way_is_of_the_content(judged, monkeypatch):
    """A plain form that is another one, and arguments of one's own, which are not looked at."""
    text = module("%x: 4xi64", "%r = add %x, %x")
    lowered = hl.lower(text, demote_i64=True)
    assert [judged(text, lowered), judged(text, lowered)] == [1, 0]
    plain_form = verified.plain_form
    monkeypatch.setattr(verified, "plain_form", lambda *given: replace(plain_form(*given), demotion=None))
    assert judged(text, lowered) == 1
    zeros = [[0.0] * 4] * 8, [0], [0.0] * 4
    assert [judged(inputs=zeros), judged(inputs=zeros)] == [1, 1]


@pytest.mark.parametrize(
    ("change", "is_kept"),
    [
        ({}, True),
        ({"module": ModuleVerdict("not run", reason=LARGE_AND_EQUAL)}, True),
        ({"one_form": GOOD}, True),
        ({"one_form": replace(GOOD, module=LATE)}, False),
        ({"module": LATE}, False),
        ({"plain": LATE}, False),
        ({"module": ModuleVerdict("differs")}, False),
        ({"interface": ("another result",)}, False),
        ({"regions": (replace(REGION, status="only run"),)}, False),
        ({"regions": (replace(REGION, status="only run"),), "accepts_runs": True}, True),
        ({"regions": (replace(REGION, status="not judged"),)}, False),
        ({"regions": (replace(REGION, excluded=("XLA is known to be wrong here",)),)}, False),
        ({"claims": ClaimsVerdict((1,), ("scatter 1",))}, False),
    ],
)
def test_only_good_verdicts_are_kept(tmp_path, change, is_kept):
    """Nothing that differs, is doubtful, or may depend on how long something took."""
    cache, found = VerdictCache(str(tmp_path), "a version"), replace(GOOD, **change)
    keep_verdict(cache, "content", found)
    again = find_verdict(cache, "content")
    assert (again is not None) is is_kept
    assert find_verdict(cache, "another") is None
    if again is not None:
        as_first = {name: getattr(found, name) for name in ("module", "one_form")}
        assert replace(again, **as_first) == found
        assert again.module.reason == found.module.reason
    for path in tmp_path.iterdir():
        path.write_bytes(path.read_bytes().replace(b"derived", b"widened"))
    assert find_verdict(cache, "content") is None
