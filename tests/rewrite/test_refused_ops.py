"""What a target refuses of a whole module: every op and element type, where, how often, and what would help."""

from pathlib import Path

import pytest
from rewrites import main as module
from rule_examples import target

import hlo_lower as hl
from hlo_lower.api.many.survey import survey
from hlo_lower.base.change import summed
from hlo_lower.cli import main

F, N = "tensor<4xf32>", "tensor<4xi64>"


def function(name, body):
    """A private function of one op."""
    return f"func.func private @{name}(%x: {F}) -> {F} {{ %y = {body} : {F} return %y : {F} }}\n"


def scattered(operand, at, updates, numbers, types):
    """A scatter that sets."""
    return f"""%d = "stablehlo.scatter"({operand}, {at}, {updates}) <{{scatter_dimension_numbers = #stablehlo.scatter<
    {numbers}, scatter_dims_to_operand_dims = [0]>}}> ({{
    ^bb0(%old: tensor<f32>, %new: tensor<f32>):
      stablehlo.return %new : tensor<f32>
    }}) : {types}"""


POINT = scattered("%c", "%at", "%one", "update_window_dims = [0]", f"({F}, tensor<1xi32>, tensor<1xf32>) -> {F}")
BODY = f"""%a = call @inner(%x) : ({F}) -> {F}
  %b = call @inner(%a) : ({F}) -> {F}
  %c = "stablehlo.sort"(%b) <{{dimension = 0 : i64}}> ({{
    ^bb0(%p: tensor<f32>, %q: tensor<f32>):
      %less = stablehlo.compare LT, %p, %q : (tensor<f32>, tensor<f32>) -> tensor<i1>
      stablehlo.return %less : tensor<i1>
    }}) : ({F}) -> {F}
  %m = stablehlo.add %n, %n : {N}
  %one = stablehlo.constant dense<1.0> : tensor<1xf32>
  %at = stablehlo.reshape %i : (tensor<i32>) -> tensor<1xi32>
  {POINT}"""
MODULE = module(f"%x: {F}, %n: {N}, %i: tensor<i32>", BODY, f"%d, %m : {F}, {N}")
MODULE += function("inner", "stablehlo.sine %x") + function("unused", "stablehlo.cosine %x")
TAKEN = {f"stablehlo.{op}": {"f32", "i32"} for op in ("dynamic_slice", "bitcast_convert")}
WIDE = MODULE.replace("%i: tensor<i32>", "%i: tensor<i64>").replace("tensor<1xi32>", "tensor<1xi64>")
WIDE = WIDE.replace("%i : (tensor<i32>)", "%i : (tensor<i64>)")
WAVE = f'%y = stablehlo.composite "odml.wave" %x {{decomposition = @wave}} : ({F}) -> {F}'
COMPOSITE = module(f"%x: {F}", WAVE, f"%y : {F}") + function("wave", "stablehlo.sine %x")
OPEN, ROW = "tensor<?x4xf32>", "update_window_dims = [0], inserted_window_dims = [0]"
DYNAMIC = module(
    f"%x: {OPEN}, %i: tensor<1xi32>, %u: {F}",
    scattered("%x", "%i", "%u", ROW, f"({OPEN}, tensor<1xi32>, {F}) -> {OPEN}"),
    f"%d : {OPEN}",
)


def refused(npu, text=MODULE, **options):
    """What is refused after lowering, as (op, count, remedy)."""
    found = survey(hl.read(text), options=hl.Options(target=npu, **options)).refused
    return {(one.op, one.count, one.remedy) for one in found}


@pytest.mark.parametrize(
    ("npu", "text", "options", "expected"),
    [  # an op counts once for each place; one in a function that nothing calls is in nobody's way
        (target("npu", "sort", "sine", "cosine"), MODULE, {}, {("stablehlo.sort", 1, ""), ("stablehlo.sine", 1, "")}),
        (target("all"), MODULE, {}, set()),
        # what stands in the comparator of a sort is part of the module
        (target("npu", "compare"), MODULE, {}, {("stablehlo.compare", 1, ""), ("stablehlo.scatter", 1, "")}),
        # an element type on all ops at once; the remedy is found by trying: with narrow integers none is left
        (target("npu", refused_dtypes={"i64": "too wide"}), MODULE, {}, {("", 1, "--demote-i64")}),
        (target("npu", refused_dtypes={"i64": "too wide"}), MODULE, {"demote_i64": True}, set()),
        # a scatter that cannot be lowered, and an option that gives it a rule
        (target("npu", op_dtypes=TAKEN), WIDE, {}, {("stablehlo.scatter", 1, "--demote-i64")}),
        (target("npu", op_dtypes=TAKEN), WIDE, {"demote_i64": True}, set()),
        # a decomposition of a composite that is taken whole is nobody's business; else it is named with what it is
        (hl.Target("npu", ops={"stablehlo.add"}, composites={"odml.wave"}), COMPOSITE, {}, set()),
        (
            hl.Target("npu", ops={"stablehlo.sine"}),
            COMPOSITE,
            {},
            {("stablehlo.composite @odml.wave", 1, "--legalize")},
        ),
        (hl.Target("npu", ops={"stablehlo.add"}), COMPOSITE, {}, {("stablehlo.composite @odml.wave", 1, "")}),
        # a module whose sizes are read at run time needs none of that once they are bound
        (target("npu", "get_dimension_size"), DYNAMIC, {}, {("stablehlo.scatter", 1, "--bind")}),
    ],
)
def test_what_is_refused_and_what_helps(npu, text, options, expected):
    """Every op that is left, how often, and an option with which it would not be."""
    assert refused(npu, text, **options) == expected


def test_a_type_on_one_op_is_refused_there_only():
    """The op is taken on other types."""
    npu = target("npu", op_dtypes={"stablehlo.add": {"f32"}})
    [one] = survey(hl.read(MODULE), options=hl.Options(target=npu)).refused
    line = 1 + MODULE[: MODULE.index("stablehlo.add")].count("\n")
    assert (one.op, one.reason["dtypes"], one.places) == ("stablehlo.add", ("i64",), (f"<module>:{line}",))


def test_a_function_that_lowering_took_away_is_not_looked_at():
    """Indices that are computed by a call become constants, and the function goes."""
    i, u = "tensor<2x1xi32>", "tensor<2xf32>"
    numbers = "inserted_window_dims = [0], index_vector_dim = 1"
    body = f"%i = call @places() : () -> {i} " + scattered("%x", "%i", "%u", numbers, f"({F}, {i}, {u}) -> {F}")
    text = module(f"%x: {F}, %u: {u}", body, f"%d : {F}")
    text += f"func.func private @places() -> {i} {{ %i = stablehlo.iota dim = 0 : {i} return %i : {i} }}"
    npu = target("npu", "iota", "sine")
    lowered = hl.lower(text, target=npu)
    assert "@places" not in lowered.text
    assert lowered.refused == ()
    assert refused(npu, text) == set()


def test_modules_are_summed():
    """Alike ones of several modules are one, with how many modules they are in; what is in most modules comes first."""
    found = survey(hl.read(MODULE), options=hl.Options(target=target("npu", "sort", "sine"))).refused
    one, other = summed([found, found, [r for r in found if r.op == "stablehlo.sine"]])
    assert (one.op, one.count, one.modules, one.places) == ("stablehlo.sine", 3, 3, ())
    assert (other.op, other.count, other.modules) == ("stablehlo.sort", 2, 2)


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A module in a file, and the file of a target that refuses its sort: where the sort is."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "m.mlir").write_text(MODULE)
    (tmp_path / "npu.toml").write_text('[refused]\n"stablehlo.scatter" = "none"\n"stablehlo.sort" = "no kernel"\n')
    return f"m.mlir:{1 + MODULE[: MODULE.index('stablehlo.sort')].count(chr(10))}"


def test_convert_says_what_stays(place, capsys):
    """The module is written, since its scatters are lowered; what stays is told, and the exit code is 3."""
    assert main(["convert", "m.mlir", "-o", "out.mlir", "--target", "npu.toml", "--no-verify"]) == 3
    assert capsys.readouterr().err == (
        "out.mlir holds what npu refuses\n"
        f"  1 stablehlo.sort: no kernel; at {place}\n"
        "  next:    hlo-lower report m.mlir --target npu.toml\n"
    )
    assert "stablehlo.sort" in Path("out.mlir").read_text()


def test_report_names_it_and_can_fail_on_it(place, capsys):
    """The line that a person reads, and the exit code for a build."""
    assert main(["report", "m.mlir", "--target", "npu.toml", "--fail-on", "refused"]) == 3
    told = capsys.readouterr()
    assert f"  refused:   1 stablehlo.sort: no kernel; at {place}\n" in told.out
    assert told.err == "1 op that npu refuses (--fail-on refused)\n"
    assert main(["report", "m.mlir", "--fail-on", "refused"]) == 0


@pytest.mark.parametrize(
    ("kind", "code", "says"),
    [
        (", TOTALORDER", 0, ("lowered: stablehlo.sort at m.mlir:", "(sort_to_ranks)")),
        ("", 3, ("left: stablehlo.sort at m.mlir:", "compare_type TOTALORDER")),
    ],
)
def test_a_report_says_what_would_be_lowered_by_which_rule(kind, code, says, place, capsys):
    """A sort that the target refuses and a rule lowers is a line of its own, and is not refused; one that is not read
    says why."""
    Path("m.mlir").write_text(MODULE.replace("LT, %p, %q", f"LT, %p, %q{kind}"))
    assert main(["report", "m.mlir", "--target", "npu.toml", "--fail-on", "refused"]) == code
    told = " ".join(capsys.readouterr().out.split())
    assert all(part in told for part in says)
