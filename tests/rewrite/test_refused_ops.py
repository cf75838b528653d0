"""What a target refuses of a whole module: every op and element type, where, how often, and what would help."""

from pathlib import Path

import pytest
from rule_examples import target
from untyped_mlir import function, module

import hlo_lower as hl
from hlo_lower.api.many.survey import survey
from hlo_lower.base.change import total_refusals
from hlo_lower.cli import main

WAVES = function("private @inner", "%x: 4xf32", "%r = sine %x") + function(
    "private @unused", "%x: 4xf32", "%r = cosine %x"
)
BODY = """%a = call @inner(%x) -> 4xf32; %b = call @inner(%a) -> 4xf32
  %c = sort(%b) <dimension = 0> {LT}
  %m = add %n, %n; %one = constant 1.0 : 1xf32; %at = reshape %i -> 1xINDEX
  %d = scatter(%c, %at, %one) <window=[0], to=[0]> {assign}"""
MODULE, WIDE = (
    module(f"%x: 4xf32, %n: 4xi64, %i: {index}", BODY.replace("INDEX", index), "%d, %m", WAVES)
    for index in ("i32", "i64")
)
TAKEN = {f"stablehlo.{op}": {"f32", "i32"} for op in ("dynamic_slice", "bitcast_convert")}
COMPOSITE = module("%x: 4xf32", '%r = composite "odml.wave" %x {decomposition = @inner} -> 4xf32', more=WAVES)
DYNAMIC = module(
    "%x: ?x4xf32, %i: 1xi32, %u: 4xf32", "%r = scatter(%x, %i, %u) <window=[0], inserted=[0], to=[0]> {assign}"
)
NO_I64 = target("npu", refused_dtypes={"i64": "too wide"})


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
        (NO_I64, MODULE, {}, {("", 1, "--demote-i64")}),
        (NO_I64, MODULE, {"demote_i64": True}, set()),
        # a scatter that cannot be lowered, and an option that gives it a rule
        (target("npu", op_dtypes=TAKEN), WIDE, {}, {("stablehlo.scatter", 1, "--demote-i64")}),
        (target("npu", op_dtypes=TAKEN), WIDE, {"demote_i64": True}, set()),
        # a decomposition of a composite that is taken whole is nobody's business; else it is called, and looked into
        (hl.Target("npu", ops={"stablehlo.add"}, composites={"odml.wave"}), COMPOSITE, {}, set()),
        (hl.Target("npu", ops={"stablehlo.sine"}), COMPOSITE, {}, set()),
        (hl.Target("npu", ops={"stablehlo.add"}), COMPOSITE, {}, {("stablehlo.sine", 1, "")}),
        # a module whose sizes are read at run time needs none of that once they are bound
        (target("npu", "get_dimension_size"), DYNAMIC, {}, {("stablehlo.scatter", 1, "--bind")}),
    ],
)
def test_what_is_refused_and_what_helps(npu, text, options, expected):
    """Every op that is left, how often, and an option with which it would not be."""
    assert refused(npu, text, **options) == expected


def line_of(op):
    """The line of an op in the module."""
    return 1 + MODULE[: MODULE.index(f"stablehlo.{op}")].count("\n")


def test_a_type_on_one_op_is_refused_there_only():
    """The op is taken on other types."""
    npu = target("npu", op_dtypes={"stablehlo.add": {"f32"}})
    [one] = survey(hl.read(MODULE), options=hl.Options(target=npu)).refused
    assert (one.op, one.reason["dtypes"], one.places) == ("stablehlo.add", ("i64",), (f"<module>:{line_of('add')}",))


def test_a_function_that_lowering_took_away_is_not_looked_at():
    """Indices that are computed by a call become constants, and the function goes."""
    body = "%i = call @places() -> 2x1xi32; %r = scatter(%x, %i, %u) <inserted=[0], to=[0], ivd=1> {assign}"
    text = module("%x: 4xf32, %u: 2xf32", body, more=function("private @places", "", "%r = iota dim = 0 : 2x1xi32"))
    npu = target("npu", "iota", "sine")
    lowered = hl.lower(text, target=npu)
    assert "@places" not in lowered.text
    assert lowered.refused == ()
    assert refused(npu, text) == set()


def test_modules_are_summed():
    """Alike ones of several modules are one, with how many modules they are in; what is in most modules comes first."""
    found = survey(hl.read(MODULE), options=hl.Options(target=target("npu", "sort", "sine"))).refused
    one, other = total_refusals([found, found, [r for r in found if r.op == "stablehlo.sine"]])
    assert (one.op, one.count, one.modules, one.places) == ("stablehlo.sine", 3, 3, ())
    assert (other.op, other.count, other.modules) == ("stablehlo.sort", 2, 2)


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A module in a file, and the file of a target that refuses its sort: where the sort is."""
    monkeypatch.chdir(tmp_path)
    Path("m.mlir").write_text(MODULE)
    Path("npu.toml").write_text('refused = {"stablehlo.scatter" = "none", "stablehlo.sort" = "no kernel"}')
    return f"m.mlir:{line_of('sort')}"


def test_convert_says_what_stays(place, capsys):
    """The module is written, since its scatters are lowered; what stays is told, and the exit code is 3."""
    assert main(["convert", "m.mlir", "-o", "out.mlir", "--target", "npu.toml", "--no-verify"]) == 3
    assert capsys.readouterr().err == (
        "out.mlir holds ops that npu rejects\n"
        f"  1 stablehlo.sort: no kernel; at {place}\n"
        "  next:    hlo-lower report m.mlir --target npu.toml\n"
    )
    assert "stablehlo.sort" in Path("out.mlir").read_text()


def test_report_names_it_and_can_fail_on_it(place, capsys):
    """What is refused is a line, and an exit code for a build; what a rule would lower is another one, and none."""
    command = ["report", "m.mlir", "--target", "npu.toml", "--fail-on", "refused"]
    assert main(command) == 3
    told = capsys.readouterr()
    assert f"  refused:   1 stablehlo.sort: no kernel; at {place}\n" in told.out
    assert told.err == "1 op that npu rejects (--fail-on refused)\n"
    said = " ".join(told.out.split())
    assert all(part in said for part in ("left: stablehlo.sort at m.mlir:", "compare_type TOTALORDER"))
    assert main(["report", "m.mlir", "--fail-on", "refused"]) == 0
    capsys.readouterr()
    head, mark, rest = MODULE.partition("compare LT, ")
    at = rest.index(" : ")
    Path("m.mlir").write_text(f"{head}{mark}{rest[:at]}, TOTALORDER{rest[at:]}")
    assert main(command) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert all(part in said for part in ("lowered: stablehlo.sort at m.mlir:", "(sort_to_ranks)"))
