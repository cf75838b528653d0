"""Targets on the command line: a file of one's own, what it refuses, and what is wrong with it."""

import pytest

from hlo_lower.cli import main

NPU = 'refused = {"stablehlo.while" = "no loops"}\n'


def test_a_target_file(folder, command):
    """Every command that takes a target takes a file, and the report tells its name."""
    (folder / "my_npu.toml").write_text(NPU)
    converted = command("convert", "decode.mlir", "-o", "out.mlir", "--target", "my_npu.toml", "--verify", "regions")
    assert (converted.code, converted.err) == (0, "")
    assert "target my_npu, oob xla" in converted.out
    for argv in (("report", "decode.mlir"), ("verify", "decode.mlir", "out.mlir"), ("rules",)):
        assert command(*argv, "--target", "./my_npu.toml").code == 0
    assert "refused: emits stablehlo.while, which my_npu refuses: no loops" in " ".join(
        command("rules", "--target", "my_npu.toml", "--format", "markdown").out.split()
    )


def test_what_a_target_refuses_is_exit_code_3(folder, command):
    """The message names the type that the target refuses, and a report for the same target; nothing is written."""
    (folder / "my_npu.toml").write_text('[refused_dtypes]\nf32 = "integers only"\n')
    result = command("convert", "decode.mlir", "-o", "out.mlir", "--report", "r.json", "--target", "my_npu.toml")
    assert (result.code, result.out) == (3, "")
    lines = result.err.splitlines()
    assert lines[0] == "decode.mlir:4:12: stablehlo.scatter: no lowering for target my_npu"
    assert lines[1].startswith("  facts:   subset=Tile combiner=assign dtype=f32")
    assert lines[2].endswith("needs f32, which my_npu refuses: integers only")
    assert lines[-1] == "  next:    hlo-lower report --explain 1 decode.mlir --target my_npu.toml"
    assert not (folder / "out.mlir").exists()
    assert not (folder / "r.json").exists()
    result = command("convert", "decode.mlir", "-o", "out.mlir", "--oob", "spec", "--target", "my_npu.toml")
    assert result.err.endswith(" decode.mlir --target my_npu.toml --oob spec\n")
    explained = command("report", "decode.mlir", "--target", "my_npu.toml", "--explain", "1").out
    assert "rule:    none: no lowering for target my_npu" in explained
    assert "needs f32, which my_npu refuses: integers only" in explained


def test_a_module_in_linalg_is_for_a_consumer(folder, command):
    """Where the converted module is read again, the message says that it is in linalg and what compares it."""
    assert command("convert", "decode.mlir", "-o", "out.mlir", "--target", "linalg", "--no-verify").code == 0
    for argv in (("verify", "decode.mlir", "out.mlir"), ("report", "out.mlir")):
        result = command(*argv)
        assert (result.code, result.out) == (2, "")
        assert "the module is in linalg, which hlo_lower writes and does not read" in result.err
        assert "hlo-lower verify --on iree BEFORE AFTER" in result.err.splitlines()[-1]


def test_parallel_loops_are_for_linalg(folder, command):
    """--linalg-loops forall is refused for a target that does not read linalg, and taken for one that does."""
    asked = ("convert", "decode.mlir", "-o", "out.mlir", "--no-verify", "--linalg-loops", "forall")
    refused = command(*asked)
    assert (refused.code, (folder / "out.mlir").exists()) == (2, False)
    assert refused.err.splitlines()[-1] == "  next:    write --target linalg, or leave it out"
    assert command(*asked, "--target", "linalg").code == 0


def test_what_a_target_refuses_can_be_kept(folder, command):
    """With --keep-unsupported the module is written, the scatter counted, and the exit code still 3."""
    (folder / "my_npu.toml").write_text('[refused_dtypes]\nf32 = ""\n')
    options = ("--target", "my_npu.toml", "--keep-unsupported", "--no-verify")
    result = command("convert", "decode.mlir", "-o", "out.mlir", *options)
    assert (result.code, result.err) == (3, "1 of 1 scatter kept for want of a lowering\n")
    assert "stablehlo.scatter" in (folder / "out.mlir").read_text()


@pytest.mark.parametrize(
    ("text", "says"),
    [("opps = []", "my_npu.toml: unknown key 'opps'"), (None, "my_npu.toml: no such target file"), ("x", "not a TOML")],
)
def test_a_wrong_target_file_is_exit_code_2(folder, command, text, says):
    """It is told before any work, by every command."""
    if text is not None:
        (folder / "my_npu.toml").write_text(text)
    for argv in (
        ("report", "decode.mlir"),
        ("convert", "decode.mlir", "-o", "out.mlir"),
        ("verify", "decode.mlir", "decode.mlir"),
        ("rules",),
    ):
        result = command(*argv, "--target", "my_npu.toml")
        assert (result.code, result.out) == (2, "")
        assert says in result.err
    assert not (folder / "out.mlir").exists()


def test_help_says_that_a_target_may_be_a_file(capsys):
    """Whoever asks for help learns of target files."""
    main(["convert", "--help"])
    assert "npu.toml" in capsys.readouterr().out
