"""Regions that several processes judge."""

import pytest
from untyped_mlir import module

from hlo_lower.verify import region_processes, verify
from hlo_lower.verify.regions import RegionJudge

DERIVES = True  # the patch of one process is none of another

TWO = module("%a: 8xf32, %b: 8xf32", "%x = abs %a; %y = negate %b", "%x, %y")
OTHERWISE = module(
    "%a: 8xf32, %b: 8xf32",
    "%m = negate %a; %x = maximum %a, %m; %z = constant -1.0 : 8xf32; %y = multiply %b, %z",
    "%x, %y",
)
WRONG = OTHERWISE.replace("dense<-1.0>", "dense<-2.0>")


@pytest.mark.parametrize("after", [OTHERWISE, WRONG])
def test_several_processes_say_what_one_says(after):
    """Two regions, both equal or one of them not: the verdicts of two processes are those of one."""
    alone, shared = (verify(TWO, after, level="regions", jobs=jobs) for jobs in (1, 2))
    assert len(alone.regions) == 2
    assert alone.differs is (after is WRONG)
    assert shared.regions == alone.regions
    assert [sorted(r.inputs) for r in shared.regions] == [sorted(r.inputs) for r in alone.regions]


@pytest.mark.sweep
def test_a_region_that_a_process_does_not_find_is_judged_here(monkeypatch):
    """A process whose pieces are others says nothing of the region, and this one judges it: nothing is lost."""
    here, settled = [], RegionJudge.settled

    def counted(self, name, region):
        here.append(region.where)
        return settled(self, name, region)

    monkeypatch.setattr(RegionJudge, "settled", counted)
    assert verify(TWO, WRONG, level="regions", jobs=2).differs
    assert here == []
    monkeypatch.setattr(region_processes, "digest", lambda pieces: "")
    assert verify(TWO, WRONG, level="regions", jobs=2).differs
    assert here == ["main", "main"]
