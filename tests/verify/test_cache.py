"""Verdicts that are kept: taken only where texts, terms and judges are the same, and never in place of a difference."""

import json
from dataclasses import replace
from unittest.mock import Mock

import ml_dtypes
import numpy as np
import pytest
from untyped_mlir import module

from hlo_lower.verify import Assumed, cache, region_proofs, verify
from hlo_lower.verify import effort as effort_of
from hlo_lower.verify.cache import VerdictCache
from hlo_lower.verify.drive.driven_runs import Run
from hlo_lower.verify.judges import kept
from hlo_lower.verify.judges.judge import Judgement, Terms
from hlo_lower.verify.judges.kept import in_cache, keep
from hlo_lower.verify.patience import Deadline, at_most, patience

DERIVES = True

ABS = "%m = negate %a; %x = abs %m"
TWICE = "%c = constant 2.0 : 8xf32; %t = add %b, %b; %y = tanh %t"
AS_PRODUCT = "%c = constant 2.0 : 8xf32; %t = multiply %b, %c; %y = tanh %t"
CHOSEN = "%p = compare GT, %s, 3, SIGNED"
FIRST = f"%x = abs %a; {TWICE}; {CHOSEN}"
SECOND = f"{ABS}; {AS_PRODUCT}; {CHOSEN}"
WRONG = SECOND.replace("abs", "sign")
WRONG_PRODUCT = SECOND.replace("2.0", "3.0")
WRONG_CHOICE = SECOND.replace("GT", "GE")
KEPT = [("derived", True), ("tested", True)]


def texts(*bodies, arguments="%a: 8xf32, %b: 8xf32, %s: i32", returned="%x, %y, %p"):
    """Modules of one signature."""
    return [module(arguments, body, returned) for body in bodies]


@pytest.fixture
def judged(tmp_path):
    """The verdict on two bodies, with a cache that all calls share."""

    def run(*bodies, assumed=None, **how):
        return verify(*texts(*bodies), assumed or Assumed(), level="regions", cache=tmp_path / "new" / "cache", **how)

    return run


def bases(verdict):
    """Of each region what its verdict rests on, and whether it comes from the cache."""
    return sorted((region.basis, region.from_cache) for region in verdict.regions)


def test_a_verdict_is_taken_from_the_cache_and_says_so(judged, tmp_path):
    """One region is derived, one is tested; the second time neither is judged, by one process or by two."""
    first = judged(FIRST, SECOND)
    assert bases(first) == bases(verify(*texts(FIRST, SECOND), level="regions", jobs=2, cache=tmp_path / "other"))
    assert bases(first) == [("derived", False), ("tested", False)], first.lines()
    assert "cache" not in first.summary()
    again = judged(FIRST, SECOND)
    assert again.regions == first.regions
    assert bases(again) == bases(judged(FIRST, SECOND, jobs=2)) == KEPT
    assert again.summary() == "2 regions: 1 derived, 1 tested, 2 from the cache"
    assert [line.endswith(", from the cache") for line in again.lines()] == [True, True]
    assert [one["from_cache"] for one in again.to_json()["regions"]] == [True, True]


def test_what_was_run_on_another_processor_is_run_again(judged, monkeypatch):
    """XLA compiles for the instructions of a machine; a derivation holds on all of them."""
    judged(FIRST, SECOND)
    monkeypatch.setattr(cache, "kind_of_processor", lambda: "another")
    assert bases(judged(FIRST, SECOND)) == [("derived", True), ("tested", False)]
    assert bases(judged(FIRST, SECOND)) == KEPT


@pytest.mark.parametrize("wrong", [WRONG, WRONG_PRODUCT, WRONG_CHOICE])
def test_a_wrong_region_differs_whatever_is_kept(judged, wrong):
    """Beside a region that is kept another one differs, at the same place; the difference is kept with its inputs."""
    judged(FIRST, SECOND)
    found = judged(FIRST, wrong)
    assert (found.exit_code, bases(found).count(("differs", False))) == (1, 1), found.lines()
    again = judged(FIRST, wrong)
    assert (again.exit_code, again.regions) == (1, found.regions)
    assert {one.from_cache for one in again.regions} == {True}
    for one, other in zip(again.regions, found.regions, strict=True):
        assert one.inputs.keys() == other.inputs.keys()
        pairs = zip(one.inputs.values(), other.inputs.values(), strict=True)
        assert all(a.dtype == b.dtype and np.array_equal(a, b) for a, b in pairs)


SLICED = "%s = dynamic_slice %a, %k, sizes = [1]; %t = tanh %s"
BEHIND = {  # a right piece behind a first line, the other version of it, and a line behind which that is wrong
    "%k = clamp 0, %i, 7": (
        f"{SLICED}; %x = tanh %t",
        f"""{SLICED}; %p = compare LT, %k, 8, SIGNED; %y = tanh %t; %n = constant 0x7FC00000 : 1xf32
        %q = broadcast_in_dim %p, dims = [] -> 1xi1; %x = select %q, %y, %n""",
        "%k = clamp 0, %i, 8",
    ),
    "%k = abs %a": ("%x = tanh %k", "%z = constant 0.0 : 8xf32; %m = maximum %k, %z; %x = tanh %m", "%k = negate %a"),
}


@pytest.mark.parametrize("right", BEHIND)
def test_what_stands_before_a_region_is_of_its_content(tmp_path, right):
    """A piece is right behind one line, by its interval or with it inside: kept there, it differs behind another."""
    first, second, wrong = BEHIND[right]

    def run(before):
        both = texts(*(f"{before}; {rest}" for rest in (first, second)), arguments="%a: 8xf32, %i: i32", returned="%x")
        return verify(*both, level="regions", cache=tmp_path)

    assert [run(right).exit_code for _ in range(2)] == [0, 0]
    assert run(right).regions[0].from_cache
    assert run(wrong).exit_code == 1
    assert run(right).ok


def test_a_judgement_rests_on_all_that_it_is_made_of(monkeypatch):
    """Two that differ in one thing alone are two: a text, what is cut off, values, ends, terms, the limit, what is
    sought."""
    given = {
        "first": "a",
        "second": "b",
        "seen": (),
        "values": {},
        "within": (),
        "seed": 0,
        "seconds": 60,
        "sought": [],
    }
    run = {"input 0": np.arange(3, dtype=np.int32)}
    others = [{"first": "b"}, {"second": "a"}, {"seen": (1,)}, {"values": {1: range(3)}}, {"within": ((0, (1, 2)),)},
              {"seed": 1}, {"seconds": 61}, {"sought": None}, {"sought": [(run, False)]}, {"sought": [(run, True)]},
              {"sought": [({"input 1": run["input 0"]}, True)]}, {"sought": [({"input 0": run["input 0"] + 1}, True)]},
              {"sought": [({"input 0": run["input 0"].view(np.float32)}, True)]}]  # fmt: skip
    contents = set()
    for one in ({}, *others):
        a = given | one
        monkeypatch.setattr(kept, "values_of", lambda _, values=a["values"]: values)
        monkeypatch.setattr(kept, "patience", lambda seconds=a["seconds"]: Mock(given=seconds))
        sought = None if a["sought"] is None else Mock(sought_arrays=lambda runs=a["sought"]: runs)
        pieces = Mock(first=a["first"], second=a["second"], seen=a["seen"])
        terms = replace(Terms(), seed=a["seed"])
        contents.add(repr(kept.content_of(Mock(inputs=(0, 1)), pieces, terms, sought, a["within"])))
    assert len(contents) == 1 + len(others)


@pytest.mark.parametrize(
    "how", [{"assumed": Assumed(reassociated=True)}, {"assumed": Assumed(oob="spec")}, {"seed": 1}, {"patience": 61}]
)
def test_other_terms_are_judged_anew(judged, how):
    """What was tested under one seed, limit, policy or mode of floats says nothing of another one."""
    judged(FIRST, SECOND)
    assert ("tested", False) in bases(judged(FIRST, SECOND, **how))


def test_what_has_to_be_derived_is_tried_again(judged, monkeypatch):
    """A derivation that was in vain once is tried again where nothing else counts, and only there."""
    tried = []
    derive = region_proofs.derive
    monkeypatch.setattr(region_proofs, "derive", lambda *texts, **how: tried.append(texts) or derive(*texts, **how))
    judged(FIRST, SECOND)
    tried.clear()
    judged(FIRST, SECOND)
    assert not tried
    region_proofs.forget_derivations()  # as another process does
    judged(FIRST, SECOND, require="derived")
    assert tried


def test_producers_are_taken_in_only_where_a_region_alone_was_tried_in_vain(tmp_path, monkeypatch):
    """With an empty cache as without one; what is derived with a producer is found again without another attempt."""
    widened, tried = [], []
    widen, derive = region_proofs.widen_region, region_proofs.derive
    monkeypatch.setattr(region_proofs, "widen_region", lambda *a, **how: widened.append(a) or widen(*a, **how))
    monkeypatch.setattr(region_proofs, "derive", lambda *a, **how: tried.append(a) or derive(*a, **how))

    def run(*bodies):
        widened.clear()
        tried.clear()
        region_proofs.forget_derivations()
        both = texts(*bodies, arguments="%a: 8xi32, %b: 8xi32", returned="%k, %x")
        [region] = verify(*both, level="regions", cache=tmp_path).regions
        return region.basis, region.from_cache, region.producers, bool(widened), bool(tried)

    alone, behind = (
        [f"%k = negate %a; {line}" for line in lines]
        for lines in (("%x = add %a, %a", "%x = multiply %a, 2"), ("%x = add %k, %b", "%x = subtract %b, %a"))
    )
    assert run(*alone) == ("derived", False, 0, False, True)
    assert run(*alone) == ("derived", True, 0, False, False)
    assert run(*behind) == ("derived", False, 1, True, True)
    assert run(*behind) == ("derived", True, 1, True, False)


def test_another_law_judges_anew(judged, monkeypatch):
    """The version of the judge is of the content: with another one nothing is taken."""
    judged(FIRST, SECOND)
    monkeypatch.setattr(effort_of, "version_of_judges", lambda: "another law")
    assert {kept for _, kept in bases(judged(FIRST, SECOND))} == {False}


def test_a_damaged_file_is_written_anew(judged, tmp_path):
    """Cut off, of another verdict, foreign, nested too deep, or a folder: each is no verdict, and none is an error."""
    first = judged(FIRST, WRONG)
    folder = tmp_path / "new" / "cache"
    held = {path: path.read_bytes() for path in folder.iterdir()}
    assert len({path.suffix for path in held}) == 1
    for damaged in (b"", b"{}", b"[" * 100_000, b"\xff", None, b'{"verdict": 1, "digest": 2}'):
        for path, content in held.items():
            other = next(one for one in held.values() if one != content)
            path.write_bytes(other if damaged is None else damaged)
        assert {kept for _, kept in bases(judged(FIRST, WRONG))} == {False}, damaged
        assert {path: path.read_bytes() for path in folder.iterdir()} == held
    for path, content in held.items():  # it still parses
        data = json.loads(content)
        data["verdict"] = {**data["verdict"], "status": "equal", "laws": ["fold"]}
        path.write_text(json.dumps(data))
    again = judged(FIRST, WRONG)
    assert (again.regions, {kept for _, kept in bases(again)}) == (first.regions, {False})
    for path in held:
        path.unlink()
        path.mkdir()
    assert judged(FIRST, WRONG).regions == first.regions


def test_what_was_tried_in_a_hurry_is_not_kept(judged, monkeypatch):
    """After seconds in vain the solver has less time to find what tells a region apart: runs alone are no verdict."""
    monkeypatch.setattr(region_proofs, "VAIN_SECONDS", -1.0)
    judged(FIRST, SECOND)
    assert bases(judged(FIRST, SECOND)) == [("derived", True), ("tested", False)]


LARGE = Run("large", [np.zeros(1 << 18, np.float32), np.zeros(1)], is_special=False)


@pytest.mark.parametrize(
    ("found", "spent", "is_kept"),
    [
        (Judgement(runs=3), 0.0, True),
        (Judgement(runs=3), 0.1, False),
        (Judgement("not judged", reason="an input of type !stablehlo.token"), 0.0, False),
        (Judgement(not_exercised=("a branch",)), 0.0, False),
        (Judgement(doubt=()), 0.0, False),
        (Judgement("differs", failures=[LARGE]), 0.0, False),
        (Judgement("differs", failures=[replace(LARGE, arguments=[np.zeros((), ml_dtypes.int4)])]), 0.0, True),
    ],
)
def test_what_is_kept_of_judgements(tmp_path, found, spent, is_kept):
    """A whole verdict of no great size, as long as no second was spent in vain."""
    cache = VerdictCache(str(tmp_path), "a version")
    with at_most(9.0):
        patience().charge(spent)
        keep(cache, "content", found)
    again = in_cache(cache, "content")
    assert (again is not None) == is_kept
    assert again is None or (again.status, again.runs, again.from_cache) == (found.status, found.runs, True)
    assert in_cache(cache, "another content") is None


def test_what_is_judged_behind_a_deadline_is_not_kept():
    """A judge may be missing then; in a process as little as in a folder."""
    for deadline, is_kept in ((Deadline(0.0), False), (Deadline(60.0), True)):
        with at_most(9.0, deadline):
            keep(None, "content", Judgement("equal", runs=1))
        assert (in_cache(None, "content") is not None) == is_kept


def test_what_took_too_long_is_not_kept(tmp_path, one_second):
    """A loop that does not end is not judged, the second time neither, and the folder says nothing of it."""
    body = """%z = constant 0 : i32
    %x:2 = while(%k = %z, %v = %a) cond { %p = compare GE, %k, 0, SIGNED; return %p } do {
      %n = and %k, 7; %w = OP %v, %v; return %n, %w }"""
    both = texts(*(body.replace("OP", op) for op in ("add", "multiply")), arguments="%a: 8xf32", returned="%x#1")
    for _ in range(2):
        found = verify(*both, level="regions", cache=tmp_path, patience=1)
        assert (found.exit_code, [one.from_cache for one in found.regions]) == (4, [False]), found.lines()
    kept = [json.loads(path.read_text())["verdict"].get("status") for path in tmp_path.iterdir()]
    assert set(kept) & {"equal", "differs"}
    assert "not judged" not in kept
