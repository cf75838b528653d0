"""Many modules classified, however the work is spread."""

import multiprocessing
import os
import pickle
from concurrent.futures import BrokenExecutor, Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor

import pytest

import hlo_lower as hl
from hlo_lower.api.many.files import Selected
from hlo_lower.api.many.modules import classify_modules, default_jobs
from hlo_lower.base.causes import Code
from hlo_lower.base.errors import InputError
from hlo_lower.report.render import FORMATS, render


def by_name(reports):
    """Reports by the name of their file."""
    return {os.path.basename(report.file): report for report in reports}


class Here(Executor):
    """An executor that does the work when it is submitted, and breaks for a module of some name."""

    def __init__(self, breaks_at="\0", error=None):
        self.breaks_at, self.error = breaks_at, error or BrokenExecutor()
        self.submitted, self.broken = [], False

    def submit(self, fn, /, *args, **kwargs):
        """Do the work."""
        if self.broken:
            raise BrokenExecutor
        future = Future()
        self.submitted.append(args[-1].file)
        self.broken = args[-1].file.endswith(self.breaks_at)
        if self.broken:
            future.set_exception(self.error)
        else:
            future.set_result(fn(*args, **kwargs))
        return future


def test_bad_modules_are_reports_with_their_reason(zoo):
    """An unreadable module has an error, one of a quantized type a record without a rule; the others are classified."""
    found = by_name(classify_modules(zoo))
    assert found["recipe.mlir"].error.startswith(f"{zoo}/poly/recipe.mlir:1:1: ")
    assert [report.error for name, report in found.items() if name != "recipe.mlir"] == [None] * 4
    (refused,) = found["poly.mlir"].records
    assert (refused.rule, refused.why) == ("", Code.QUANTIZED("!quant.uniform<i8:f32, 2.000000e+00>"))
    assert [record.kind for record in found["add.mlir"].records] == ["reduction_add"]
    assert (found["plain.mlir"].op_count > 0, found["plain.mlir"].records) == (True, ())
    assert [report.group for report in found.values()] == [".", "add", "add", "poly", "poly"]


@pytest.mark.sweep
def test_however_the_work_is_spread_the_reports_are_the_same(zoo):
    """In this process, in two of its own, in threads, in a pool: every format has the same bytes."""
    spawn = multiprocessing.get_context("spawn")
    with ThreadPoolExecutor(3) as threads, ProcessPoolExecutor(1, mp_context=spawn) as processes:
        ways = ({}, {"jobs": 2}, {"executor": threads}, {"executor": processes}, {"executor": Here()})
        reports = [classify_modules(["zoo", "missing.mlir"], **way) for way in ways]
    for form in FORMATS:
        for explain in ((), (1,)):
            texts = {render(report, form, explain=explain) for report in reports}
            assert len(texts) == 1
            assert "returns the update" in texts.pop() or form != "html"  # the evidence has come along


def test_a_module_that_crashes_the_parser_costs_itself(zoo, crash):
    """jaxlib's parser dies of deep nesting; the module is a report with that reason, all others are done."""
    (zoo / "deep.mlir").write_text(crash)
    told = []
    names = ["deep.mlir", "top.mlir", "poly/recipe.mlir"]
    reports = classify_modules([zoo / n for n in names], jobs=2, progress=lambda *now: told.append(now))
    assert [report.error is not None for report in reports] == [True, False, True]
    assert told == [("modules", number, 3) for number in range(1, 4)]


def test_what_an_executor_does_not_do(zoo):
    """What one that breaks left undone is done in processes of their own, and what it had done is kept; whatever else
    it raises for a module becomes that module's reason."""
    executor = Here(breaks_at="poly.mlir")
    reports = classify_modules(zoo, executor=executor)
    names = ["top.mlir", "add/add.mlir", "add/plain.mlir", "poly/poly.mlir"]
    assert executor.submitted == [f"{zoo}/{name}" for name in names]
    assert render(reports, "json") == render(classify_modules(zoo), "json")
    (report,) = classify_modules(zoo / "top.mlir", executor=Here("top.mlir", ConnectionError("gone")))
    assert "internal error: ConnectionError: gone" in report.error


def test_an_internal_error_is_the_modules_own(zoo, monkeypatch):
    """A mistake of the classifier stops nothing, and asks to be reported."""
    monkeypatch.setattr("hlo_lower.api.many.survey.survey", lambda *args, **kwargs: 1 / 0)
    errors = [report.error for report in classify_modules(zoo)]
    assert sum("internal error: ZeroDivisionError: division by zero" in error for error in errors) == 4
    assert "please report it with hlo-lower report --debug" in errors[0]


def test_policy_and_content_are_passed_on(zoo):
    """Records speak of the policy that was asked for; standard input comes as bytes, in its place among files."""
    (report,) = classify_modules(zoo / "top.mlir", oob="spec")
    assert (report.oob, report.records[0].oob) == ("spec", "spec")
    content = Selected("-", ".", (zoo / "top.mlir").read_bytes())
    reports = classify_modules([content, zoo / "add" / "plain.mlir"])
    assert [(report.file, len(report.records)) for report in reports] == [("-", 1), (f"{zoo}/add/plain.mlir", 0)]


def test_mistakes_of_the_caller_are_errors(zoo):
    """An unknown target, an empty folder, and a time limit that nobody could keep."""
    (zoo / "empty").mkdir()
    with pytest.raises(InputError, match="no target named 'toaster'"):
        classify_modules(zoo, target="toaster")
    with pytest.raises(InputError, match="without a module"):
        classify_modules(zoo / "empty")
    with pytest.raises(InputError, match="cannot be held to a time limit"):
        classify_modules(zoo, executor=Here(), timeout=1)


def test_records_of_a_graph_can_be_pickled(zoo):
    """Evidence, whose places are looked up when it is read, arrives with its places; the rest is equal."""
    records = hl.classify(hl.read(zoo / "top.mlir"))
    arrived = pickle.loads(pickle.dumps(records))
    assert arrived == records
    evidence, own = ([fact.evidence for r in some for fact in r.facts] for some in (arrived, records))
    assert evidence == own
    assert any(fact.evidence for fact in arrived[0].facts)


def test_jobs_suit_the_modules(monkeypatch):
    """One module needs no process; several get two, many as many as there are CPUs."""
    cases = (1, 8, 1), (2, 8, 2), (3, 1, 1), (16, 8, 2), (17, 8, 3), (999, 8, 8)
    for modules, cpus, jobs in cases:
        monkeypatch.setattr("hlo_lower.api.many.modules._cpus", lambda cpus=cpus: cpus)
        assert jobs == default_jobs(modules)
