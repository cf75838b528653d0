"""Targets on the command line: a file of one's own, what it refuses, and what is wrong with it."""

import pytest

NPU = 'refused = {"stablehlo.while" = "no loops"}\n'
INTEGERS = '[refused_dtypes]\nf32 = "integers only"\n'
CONVERT = "convert decode.mlir -o out.mlir"


def test_a_target_file(folder, command):
    """Every command that takes a target takes a file, and the report tells its name; the help says so."""
    (folder / "my_npu.toml").write_text(NPU)
    converted = command(f"{CONVERT} --target my_npu.toml --verify regions")
    assert (converted.code, converted.err) == (0, "")
    assert "target my_npu, oob xla" in converted.out
    for line in ("report decode.mlir", "verify decode.mlir out.mlir", "rules"):
        assert command(f"{line} --target ./my_npu.toml").code == 0
    told = " ".join(command("rules --target my_npu.toml --format markdown").out.split())
    assert "refused: emits stablehlo.while, which my_npu refuses: no loops" in told
    assert "npu.toml" in command("convert --help").out


def test_what_a_target_refuses_is_exit_code_3(folder, command, refused):
    """The message names the type that the target refuses, and a report for the same target; it can be kept."""
    (folder / "my_npu.toml").write_text(INTEGERS)
    lines = refused(f"{CONVERT} --report r.json --target my_npu.toml", code=3).splitlines()
    assert lines[0] == "decode.mlir:4:12: stablehlo.scatter: no lowering for target my_npu"
    assert lines[1].startswith("  facts:   subset=Tile combiner=assign dtype=f32")
    assert lines[2].endswith("needs f32, which my_npu refuses: integers only")
    assert lines[-1] == "  next:    hlo-lower report --explain 1 decode.mlir --target my_npu.toml"
    told = refused(f"{CONVERT} --oob spec --target my_npu.toml", code=3)
    assert told.endswith(" decode.mlir --target my_npu.toml --oob spec\n")
    explained = command("report decode.mlir --target my_npu.toml --explain 1").out
    assert "rule:    none: no lowering for target my_npu" in explained
    assert "needs f32, which my_npu refuses: integers only" in explained
    kept = command(f"{CONVERT} --target my_npu.toml --keep-unsupported --no-verify")
    assert (kept.code, kept.err) == (3, "1 of 1 scatter kept for want of a lowering\n")
    assert "stablehlo.scatter" in (folder / "out.mlir").read_text()


def test_a_module_in_linalg_is_for_a_consumer(command, refused):
    """Where the converted module is read again, the message says that it is in linalg and what compares it."""
    assert command(f"{CONVERT} --target linalg --no-verify").code == 0
    for line in ("verify decode.mlir out.mlir", "report out.mlir"):
        told = refused(line, "", "the module is in linalg, which hlo_lower writes and does not read")
        assert "hlo-lower verify --on iree BEFORE AFTER" in told.splitlines()[-1]


def test_parallel_loops_are_for_linalg(command, refused):
    """--linalg-loops forall is refused for a target that does not read linalg, and taken for one that does."""
    asked = f"{CONVERT} --no-verify --linalg-loops forall"
    assert refused(asked).splitlines()[-1] == "  next:    write --target linalg, or leave it out"
    assert command(f"{asked} --target linalg").code == 0


@pytest.mark.parametrize(
    ("text", "says"),
    [("opps = []", "my_npu.toml: unknown key 'opps'"), (None, "my_npu.toml: no such target file"), ("x", "not a TOML")],
)
def test_a_wrong_target_file_is_exit_code_2(folder, refused, text, says):
    """It is told before any work, by every command."""
    if text is not None:
        (folder / "my_npu.toml").write_text(text)
    for line in ("report decode.mlir", CONVERT, "verify decode.mlir decode.mlir", "rules"):
        refused(f"{line} --target my_npu.toml", "", says)
