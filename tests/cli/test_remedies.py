"""The shortest command line under which a target takes a module: tried together, printed, and right."""

import json
import shlex

import pytest

import hlo_lower as hl
from hlo_lower.api.many import survey
from hlo_lower.api.many.survey import remedy_of
from hlo_lower.cli import convert, main
from hlo_lower.cli.parser import make_parser

SCATTER = """
  %0 = "stablehlo.scatter"(%x, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1],
    inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
  ^bb0(%a: tensor<bf16>, %b: tensor<bf16>):
    %s = stablehlo.add %a, %b : tensor<bf16>
    stablehlo.return %s : tensor<bf16>
  }) : (tensor<16x8xbf16>, tensor<4x1xi32>, tensor<4x8xbf16>) -> tensor<16x8xbf16>"""
WIDE = """
  %1 = stablehlo.add %k, %k : tensor<4xui64>"""
MODULE = f"""
func.func public @main(%x: tensor<16x8xbf16>, %i: tensor<4x1xi32>, %u: tensor<4x8xbf16>, %k: tensor<4xui64>)
  -> (tensor<16x8xbf16>, tensor<4xui64>) {{{SCATTER}{WIDE}
  return %0, %1 : tensor<16x8xbf16>, tensor<4xui64>
}}"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "both.mlir").write_text(MODULE)
    return tmp_path


def test_convert_prints_a_command_line_that_works(folder, capsys):
    assert main(["convert", "both.mlir", "-o", "out.mlir", "--target", "coreml", "--verify", "regions"]) == 3
    told = capsys.readouterr().err
    [line] = [line for line in told.splitlines() if "next:" in line]
    command = shlex.split(line.partition("next:")[2])
    assert command[-3:] == ["--demote-i64", "--widen", "bf16=f32"]
    assert main(command[1:]) == 0
    assert not hl.lower("out.mlir", target="coreml").refused


def test_flags_of_a_compiler_stay_behind_the_options(folder, capsys):
    line = ["convert", "both.mlir", "-o", "out.mlpackage", "--target", "coreml"]
    args = make_parser().parse_line([*line, "--", "compute_precision=FLOAT16"])
    args.typed, [args.input] = [*line, "--", "compute_precision=FLOAT16"], args.input
    told = convert._try(args, hl.Options(target="coreml"), folder / "both.mlir")
    assert told.endswith("--target coreml --demote-i64 --widen bf16=f32 -- compute_precision=FLOAT16")


def test_the_report_says_what_to_try(folder, capsys):
    main(["report", "both.mlir", "--target", "coreml"])
    assert "try: with --demote-i64 --widen bf16=f32 all of it is accepted" in capsys.readouterr().out


def test_the_report_has_the_exit_code_of_convert_and_the_options_as_data(folder, capsys):
    """3 where the target rejects something, with the options that help together; 0 with them, and none left."""
    for options, expected in (
        ([], (3, ["--demote-i64", "--widen bf16=f32"])),
        (["--demote-i64", "--widen", "bf16=f32"], (0, [])),
    ):
        line = ["both.mlir", "--target", "coreml", *options]
        assert main(["report", *line, "--format", "json"]) == 0
        [told] = json.loads(capsys.readouterr().out)["modules"]
        assert (told["exit_code"], told["best_options"]) == expected
        assert main(["convert", *line, "-o", "out.mlir", "--verify", "regions"]) == told["exit_code"]
        capsys.readouterr()


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, ("--demote-i64", "--widen bf16=f32")),
        ({"demote_i64": True}, ("--widen bf16=f32",)),
        ({"target": "iree"}, None),
    ],
)
def test_no_option_is_named_that_is_given_or_not_needed(given, expected):
    found = remedy_of(hl.read(MODULE), hl.Options(**{"target": "coreml", **given}))
    assert (found and found.options) == expected


def test_what_no_option_removes_is_named_with_its_place():
    text = MODULE.replace("stablehlo.add %k, %k", "stablehlo.count_leading_zeros %k")
    found = remedy_of(hl.read(text, "m.mlir"), hl.Options("coreml"))
    assert found is not None
    assert found.options == ("--widen bf16=f32",)
    assert str(found).endswith("these are left, to be computed elsewhere: 1 stablehlo.count_leading_zeros at m.mlir:10")


def test_an_option_under_which_the_module_cannot_be_lowered_is_left_out():
    """A constant beyond 32 bits cannot be narrowed; what the other option helps is helped."""
    constant = WIDE.replace("stablehlo.add %k, %k", "stablehlo.constant dense<9223372036854775807>")
    found = remedy_of(hl.read(MODULE.replace(WIDE, constant)), hl.Options("coreml"))
    assert found is not None
    assert found.options == ("--widen bf16=f32",)


@pytest.mark.parametrize(("text", "most"), [(MODULE.replace("ui64", "ui32"), 4), (MODULE, 7)])
def test_a_module_is_lowered_few_times(text, most, monkeypatch):
    """What one option removes costs a try of each that comes before; no options are tried twice."""
    tried = []
    trial = survey._trial
    monkeypatch.setattr(survey, "_trial", lambda graph, *given: (tried.append(given[0]), trial(graph, *given))[1])
    assert remedy_of(hl.read(text), hl.Options("coreml")) is not None
    assert len(tried) == len({str(options) for options in tried})
    assert len(tried) <= most
