"""What commands refuse ends in a message that says what is wrong and what to do: exit code 2, and no output."""

import os

import numpy as np
import pytest

import hlo_lower as hl
from hlo_lower.cli.parser import COMMANDS
from hlo_lower.ir.writer import to_bytecode

USAGE = [  # a command line, and how the usage error ends
    ("reprt x", "  next:    did you mean report?"),
    ("convert x -o y --tarqet iree", "  next:    did you mean --target?"),
    ("rules --formt=text", "  next:    did you mean --format?"),
    ("report x --format htlm", "  next:    did you mean html?"),
    ("report decode.mlir --form json", "  next:    did you mean --format?"),
    ("convert decode.mlir", "required: -o/--output"),
    ("verify decode.mlir", "required: AFTER"),
    ("verify decode.mlir decode.mlir --runs -1", "'-1' is not a count"),
    ("export llama.py:step -o x.mlir --set layers", "'layers' is not KEY=VALUE, as in layers=80"),
    ("prove mask --timeout -1", "'-1' is not a number of seconds above 0"),
    ("prove mask --shapes 0", "'0' is not a number from 1"),
    ("conformance --on iree --jobs 0", "'0' is not a number from 1"),
    ("conformance --on iree --limit soon", "'soon' is not a number of seconds above 0"),
    ("report decode.mlir --jobs x", "'x' is not a number from 1"),
    ("report decode.mlir --timeout nan", "'nan' is not a number of seconds above 0"),
    ("tile plain.mlir -o out.mlir --op a:1 --sizes 0=", "'0=' is not DIM=SIZE, as in 0=128"),
    ("tile plain.mlir -o out.mlir --op a:1 --sizes 0=0", "'0=0' is not DIM=SIZE, as in 0=128"),
]


@pytest.mark.parametrize(("line", "end"), USAGE)
def test_what_is_mistyped(refused, line, end):
    """A line names the command and what is wrong; the last one says what is near, or where help stands."""
    command = line.split()[0]
    of = f"hlo-lower {command}" if command in {one.name for one in COMMANDS} else "hlo-lower"
    message, *following = refused(line, f"{of}: error: ").splitlines()
    assert [message, *following][-1 if "next:" in end else 0].endswith(end)
    assert following[-1].startswith("  next:    ")
    assert len(following) == 1


WHOLE = "few_windows: a whole number above 0 is wanted"
POSITIVE = "element: a number above 0 is wanted"
TILE = "tile plain.mlir --max-temp 1MiB"
REFUSED = [  # a command line, how the message begins, and what it says besides
    # modules: of no form, not there, a folder, cut off, of other sizes
    ("report rubbish.bin", "rubbish.bin: is neither MLIR text, MLIR bytecode", "00 01 02 03"),
    ("report cut.mlirbc", "cut.mlirbc: "),
    ("convert bread.mlir -o out.mlir --report r.json", "bread.mlir:1:1: ", "unknown", "  next:    "),
    ("verify decode.mlir bread.mlir", "bread.mlir:1:1: "),
    ("convert missing/deep.mlir -o out.mlir", "missing/deep.mlir: no such file\n"),
    ("verify missing.mlir decode.mlir", "missing.mlir: no such file\n"),
    ("pipeline none.mlir", "none.mlir: no such file\n  next:    check the path"),
    ("report a.mlir b.mlir -o r.txt --jobs 1", "a.mlir: no such file", "b.mlir: no such file"),
    ("convert models -o o.mlir", "models: is a directory without a module in it\n  facts:   modules end in .mlir, "),
    ("tile poly.mlir -o out.mlir --max-temp 1MiB", "poly.mlir: the module has symbolic sizes"),
    ("convert poly.mlir -o out.mlir --bind b=6", "poly.mlir: the module has no size called b"),
    ("convert poly.mlir -o out.mlir --bind arg0.1=5", "poly.mlir: arg0.1 is 4 in the module, not 5"),
    ("convert poly.mlir -o out.mlir --bind arg0.0",
     "hlo-lower convert: error: ", "'arg0.0' is not a NAME=SIZE; write --bind b=4,s=16"),
    ("convert poly.mlir -o out.exported --keep-unsupported --no-verify",
     "poly.mlir: the module cannot become a jax.export.Exported: ", "dynamic shape tensor<?x4xf32>"),
    ("convert parts.mlir -o out.exported --no-verify",
     "parts.mlir: the module cannot become a jax.export.Exported: ", "several devices"),
    # functions
    ("export llama.py:steps -o out.mlir", "llama.py: no function steps\n", "hlo-lower export llama.py:step -o OUT"),
    ("export llama.py -o out.mlir", "llama.py: not the name of a function"),
    # targets, consumers, rules, ops, scatters
    ("report decode.mlir --target irre", "no target named 'irre'", "--target iree, or a file of your own"),
    ("convert decode.mlir -o o.mlir --target opps.toml", "opps.toml: unknown key 'opps'"),
    ("verify decode.mlir decode.mlir --on lite", "", "--on litert"),
    ("rules maks", "rules: no rule named 'maks'\n", "nearest: mask\n", "hlo-lower rules"),
    ("ops tahn", "ops: StableHLO and chlo have no op named 'tahn'\n", "nearest: tanh\n", "hlo-lower ops"),
    ("raise plain.mlir -o out.mlir --only sofmax", "raise: 'sofmax': no named op", "next:    write 'softmax'"),
    ("report decode.mlir --explain 2", "decode.mlir: there is no scatter 2 to explain", "the only scatter is number 1"),
    ("convert decode.mlir -o out.mlir --only no.py:*",
     "decode.mlir: no scatter matches 'no.py:*'\n  facts:   scatters are at decode.mlir:4"),
    # inputs
    ("verify decode.mlir decode.mlir --inputs missing.npz", "missing.npz: no such file"),
    ("verify decode.mlir decode.mlir --inputs bread.mlir", "bread.mlir: "),
    ("convert decode.mlir -o out.mlir --inputs wrong.npz", "", "input 0 does not fit"),
    ("convert decode.mlir -o out.mlir --inputs x.npz --no-verify", "", "--verify off does not run it"),
    ("convert decode.mlir -o out.mlir --inputs x.npz --verify regions", "", "--verify regions does not run it"),
    # outputs, which are looked at before the input is read
    ("convert rubbish.bin -o no/such/out.mlir",
     "no/such/out.mlir: the folder no/such does not exist\n  next:    make it: mkdir -p no/such\n"),
    ("convert rubbish.bin -o out.mlir --report no/r.json", "no/r.json: the folder no does not exist"),
    ("convert rubbish.bin -o out.mlir --cache decode.mlir", "decode.mlir: decode.mlir is not a folder\n"),
    ("convert missing.mlir a.mlir -o out --cache decode.mlir/v", "decode.mlir/v: ", "decode.mlir is not a folder\n"),
    ("verify rubbish.bin rubbish.bin --cache ''", "an empty name is not a folder\n"),
    ("verify rubbish.bin rubbish.bin --cache decode.mlir", "decode.mlir: decode.mlir is not a folder\n"),
    ("report rubbish.bin -o no/r.json --format json", "no/r.json: the folder no does not exist"),
    ("export missing.py:step -o no/out.mlir", "no/out.mlir: the folder no does not exist"),
    (f"{TILE} -o no/out.mlir", "no/out.mlir: the folder no does not exist"),
    ("convert decode.mlir -o models", "models: is a directory, cannot write"),
    ("convert decode.mlir -o plain.mlir/out.mlir", "plain.mlir/out.mlir: plain.mlir is not a folder"),
    ("convert decode.mlir -o out.mlir --report ./out.mlir", "./out.mlir: is also the output of the module"),
    (f"{TILE} -o out.mlir --report out.mlir", "out.mlir: is also the output"),
    ("convert decode.mlir -o ./decode.mlir", "./decode.mlir: is also the input", "--in-place"),
    ("convert . -o .", ".: is the folder of ., too", "--in-place"),
    ("convert plain.mlir decode.mlir -o .", "", "--in-place"),
    ("tile decode.mlir -o decode.mlir --max-temp 1MiB", "decode.mlir: is also the input"),
    ("raise decode.mlir -o decode.mlir", "decode.mlir: is also the input"),
    ("verify - -", "-: standard input is named twice"),
    ("report - -", "-: standard input is named twice"),
    ("convert decode.mlir -o - --report -", "-: standard output is named twice"),
    # forms
    ("raise plain.mlir -o raised.exported", "raised.exported: ", "forms are text, bytecode, portable"),
    (f"{TILE} -o out.exported", "out.exported: ", "is not written as an Exported"),
    ("report --named plain.mlir -o named.sarif", "report: --named has no format sarif"),
    ("report . --format model-explorer --jobs 1", "--format model-explorer: node data are for one module"),
    # options that do not go together, and values that say nothing
    (TILE, "", "no output is named", "  next:    "),
    (f"{TILE} --plan -o out.mlir", "", "a plan is shown, not written"),
    ("tile plain.mlir --op softmax.mlir:3 -o out.mlir", "", "--op and --sizes go together"),
    ("tile plain.mlir --op a:1 --sizes 0=4 --sizes 1=4,0=5 -o out.mlir", "", "names dim 0 twice, of 4 and 5"),
    (f"{TILE} --into a:1 -o out.mlir", "", "--into fuses --op into an existing loop"),
    (f"{TILE} --fuse-operand 1 -o out.mlir", "", "--fuse-operand is of --op"),
    (f"{TILE} --sizes 0=4 -o out.mlir", "", "--op and --sizes go together"),
    ("tile plain.mlir --max-temp 12Q --plan", "", "is not an amount of memory", "write it as in 128MiB"),
    ("convert decode.mlir -o out.mlir --linalg-loops forall", "linalg_loops: ", "write --target linalg, or leave it"),
    ("convert decode.mlir -o out.mlir --prefer fastest", "--prefer: no rule named 'fastest'"),
    ("convert decode.mlir -o out.mlir --prefer few=3", "--prefer: no cost named 'few'"),
    *((f"convert decode.mlir -o out.mlir --prefer few_windows={n}", "", WHOLE) for n in ("0", "2.5", "many", "")),
    *((f"convert decode.mlir -o out.mlir --prefer element={n}", "", POSITIVE) for n in ("0", "nan", "1e30")),
]  # fmt: skip
MODEL = """\
import jax
def step(x): return x + 1
EXPORTS = {"step": {"args": (jax.ShapeDtypeStruct((3,), "float32"),)}}
"""


@pytest.fixture
def stocked(folder):
    """The folder with all that the commands are asked about."""
    decode = (folder / "decode.mlir").read_text()
    (folder / "models").mkdir()
    (folder / "rubbish.bin").write_bytes(bytes(range(256)))
    (folder / "cut.mlirbc").write_bytes(to_bytecode(hl.read(decode))[:100])
    for name, text in {
        "bread.mlir": "this is a recipe for bread\n",
        "poly.mlir": decode.replace("8x4xf32", "?x4xf32"),
        "parts.mlir": decode.replace("@decode", "@decode attributes {mhlo.num_partitions = 2 : i32}"),
        "llama.py": MODEL,
        "opps.toml": "opps = []",
    }.items():
        (folder / name).write_text(text)
    row = np.ones(4, np.float32), np.int32(3)
    np.savez(folder / "x.npz", np.zeros((8, 4), np.float32), *row)
    np.savez(folder / "wrong.npz", np.zeros(3, np.float32), *row)
    return folder


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: case[0])
def test_what_is_refused(stocked, refused, case):
    """What is wrong is named, with what is near or a next step; nothing is written, nothing else printed."""
    told = refused(*case)
    assert "internal error" not in told


@pytest.mark.parametrize("denied", [".", "out.mlir"])
def test_output_without_permission(folder, refused, monkeypatch, denied):
    """A folder without permission and a write-protected file are told before any work (root may write anywhere)."""
    (folder / "out.mlir").write_text("kept")
    real, access = os.path.realpath(denied), os.access
    monkeypatch.setattr(os, "access", lambda path, mode: str(path) != real and access(path, mode))
    (folder / "rubbish.bin").write_bytes(bytes(4))
    assert "neither MLIR" not in refused("convert rubbish.bin -o out.mlir", "out.mlir: ")
    assert (folder / "out.mlir").read_text() == "kept"


def test_a_module_in_linalg_is_for_a_consumer(command, refused):
    """Where the converted module is read again, the message says that it is in linalg and what compares it."""
    assert command("convert decode.mlir -o out.mlir --target linalg --linalg-loops forall --no-verify").code == 0
    for line in ("verify decode.mlir out.mlir", "report out.mlir"):
        told = refused(line, "", "the module is in linalg, which hlo_lower writes and does not read")
        assert "hlo-lower verify --on iree BEFORE AFTER" in told.splitlines()[-1]
