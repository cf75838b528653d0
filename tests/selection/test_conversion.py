"""Many modules converted into a folder: what one conversion gives, whatever the work is spread over, and resumed."""

import json
from concurrent.futures import ThreadPoolExecutor

import pytest

import hlo_lower as hl
from hlo_lower.api.many.conversion import JOURNAL
from hlo_lower.cli import main

QUICK = {"verify": "off"}


def rows(reports):
    """What is told of each module, but for the time that it took."""
    return [(r.file, r.exit_code, r.scatters_left, r.error is None, r.is_resumed) for r in reports]


def written(folder):
    """The files below a folder, with their text; the journal left out."""
    files = (path for path in folder.rglob("*") if path.is_file() and path.name != JOURNAL)
    return {path.relative_to(folder).as_posix(): path.read_text() for path in files}


def test_each_module_is_what_one_conversion_gives(zoo, tmp_path):
    """Modules stand below the folder that they were in; one that cannot be read is a row with its reason."""
    reports = hl.convert_modules("zoo", "out", **QUICK)
    assert rows(reports) == [
        ("zoo/top.mlir", 0, 0, True, False),
        ("zoo/add/add.mlir", 0, 0, True, False),
        ("zoo/add/plain.mlir", 0, 0, True, False),
        ("zoo/poly/poly.mlir", 3, 1, True, False),
        ("zoo/poly/recipe.mlir", 2, None, False, False),
    ]
    found = written(tmp_path / "out")
    assert sorted(found) == ["add/add.mlir", "add/plain.mlir", "poly/poly.mlir", "top.mlir"]
    assert found["add/add.mlir"] == hl.lower((zoo / "add" / "add.mlir").read_bytes(), name="zoo/add/add.mlir").text


@pytest.mark.sweep
def test_however_the_work_is_spread_it_is_the_same(zoo, tmp_path):
    """Here, in processes, through an executor."""
    here = rows(hl.convert_modules("zoo", "here", **QUICK))
    assert rows(hl.convert_modules("zoo", "processes", jobs=2, **QUICK)) == here
    with ThreadPoolExecutor(2) as executor:
        assert rows(hl.convert_modules("zoo", "threads", executor=executor, **QUICK)) == here
    assert written(tmp_path / "here") == written(tmp_path / "processes") == written(tmp_path / "threads")


def test_a_run_that_was_interrupted_goes_on(zoo, tmp_path, monkeypatch):
    """What was written is not made again; what has changed, failed or is gone is; other options are another run, and
    so is another release."""
    hl.convert_modules("zoo", "out", **QUICK)
    (zoo / "add" / "plain.mlir").write_text((zoo / "top.mlir").read_text())
    (tmp_path / "out" / "add" / "add.mlir").unlink()
    with open(tmp_path / "out" / JOURNAL, "a") as journal:
        journal.write('{"output": "out/top.m')  # cut off
    again = hl.convert_modules("zoo", "out", **QUICK)
    assert [(r.file.split("/")[-1], r.exit_code) for r in again if r.is_resumed] == [("top.mlir", 0), ("poly.mlir", 3)]
    assert "add/add.mlir" in written(tmp_path / "out")
    assert not any(report.is_resumed for report in hl.convert_modules("zoo", "out", oob="spec", **QUICK))
    monkeypatch.setattr("hlo_lower.api.many.conversion.version", lambda name: "0.0.1")
    assert not hl.convert_modules("zoo/top.mlir", "out", oob="spec", **QUICK)[0].is_resumed


@pytest.mark.parametrize(
    "other", [{"verify": "regions"}, {"accept_runs": True}, {"target": "iree"}, {"float_mode": "reassociate"}], ids=str
)
def test_what_was_made_otherwise_is_made_again(zoo, other):
    """What was not verified does not stand for what is asked to be, nor one target's module for another's."""
    hl.convert_modules("zoo/top.mlir", "out", **QUICK)
    [again] = hl.convert_modules("zoo/top.mlir", "out", **{**QUICK, **other})
    assert (again.is_resumed, again.exit_code, again.verification is None) == (False, 0, "verify" not in other)


def test_what_is_not_verified_is_not_written(zoo, tmp_path, monkeypatch):
    """A lowering that computes something else is a row with its verdict, and no file."""
    monkeypatch.setattr("hlo_lower.lowering.pipeline.Lowered.stablehlo", (zoo / "top.mlir").read_text())
    [report] = hl.convert_modules("zoo/add/add.mlir", "out", verify="regions")
    assert (report.exit_code, report.verdict["ok"]) == (1, False)
    assert report.error.startswith(f"{report.file}: not written: ")
    assert written(tmp_path / "out") == {}


def test_forms_have_their_suffix(zoo, tmp_path):
    """Two modules of one name and different suffixes stay two."""
    (zoo / "top.stablehlo").write_text((zoo / "top.mlir").read_text())
    hl.convert_modules(["zoo/top.mlir", "zoo/top.stablehlo"], "out", emit="bytecode", **QUICK)
    names = sorted(path.name for path in (tmp_path / "out").rglob("*.mlirbc"))
    assert names == ["top.mlir.mlirbc", "top.stablehlo.mlirbc"]


def test_wrong_arguments_are_named(zoo):
    """Before anything is done."""
    for wrong in ({"emit": "txt"}, {"verify": "some"}, {"jobs": 0}, {"folder": 1}):
        with pytest.raises(hl.InputError, match=next(iter(wrong))):
            hl.convert_modules("zoo", **{"folder": "out", **wrong})


def test_the_command_converts_folders(zoo, tmp_path, capsys):
    """A summary, each failure on standard error, and the worst exit code; the second time it goes on."""
    assert main(["convert", "zoo", "-o", "out", "--no-verify", "--report", "r.json"]) == 2
    told = capsys.readouterr()
    assert told.out.endswith(
        "3 converted\n1 converted, with something that the target rejects\n1 could not be read or converted\n"
        "  left in zoo/poly/poly.mlir: hlo-lower report shows what, and why\n"
    )
    assert told.err.startswith("zoo/poly/recipe.mlir:1:1:")
    rows_told = json.loads((tmp_path / "r.json").read_text())["modules"]
    assert [module["exit_code"] for module in rows_told] == [0, 0, 0, 3, 2]
    assert main(["convert", "zoo/top.mlir", "zoo/add", "-o", "out2", "--no-verify"]) == 0
    assert main(["convert", "zoo/top.mlir", "zoo/add", "-o", "out2", "--no-verify"]) == 0
    assert capsys.readouterr().out.endswith("3 converted\n3 of them before, and not again\n")


def test_what_is_for_one_module_is_refused(zoo, tmp_path, capsys):
    """With the exit code of bad input, and nothing is made."""
    (tmp_path / "top.mlir").write_text("")
    for options, says in (
        ("-o top.mlir", "several modules need a folder, and this is a file"),
        ("-o -", "several modules need a folder, and this is a file"),
        ("-o out --only #1", "--only: is for one module"),
        ("-o out --inputs x.npz", "--inputs: is for one module"),
    ):
        assert main(["convert", "zoo", *options.split()]) == 2
        assert says in capsys.readouterr().err
        assert not (tmp_path / "out").exists()
