"""What a target refuses of a whole module: every op and element type, where, how often, and what would help."""

from pathlib import Path

import pytest

import hlo_lower as hl
from hlo_lower.api.many.survey import survey
from hlo_lower.base.change import summed
from hlo_lower.cli import main

MODULE = """module @m {
  func.func private @inner(%x: tensor<4xf32>) -> tensor<4xf32> {
    %y = stablehlo.sine %x : tensor<4xf32>
    return %y : tensor<4xf32>
  }
  func.func private @unused(%x: tensor<4xf32>) -> tensor<4xf32> {
    %y = stablehlo.cosine %x : tensor<4xf32>
    return %y : tensor<4xf32>
  }
  func.func public @main(%x: tensor<4xf32>, %n: tensor<4xi64>, %i: tensor<i32>) -> (tensor<4xf32>, tensor<4xi64>) {
    %a = call @inner(%x) : (tensor<4xf32>) -> tensor<4xf32>
    %b = call @inner(%a) : (tensor<4xf32>) -> tensor<4xf32>
    %c = "stablehlo.sort"(%b) <{dimension = 0 : i64}> ({
    ^bb0(%p: tensor<f32>, %q: tensor<f32>):
      %less = stablehlo.compare LT, %p, %q : (tensor<f32>, tensor<f32>) -> tensor<i1>
      stablehlo.return %less : tensor<i1>
    }) : (tensor<4xf32>) -> tensor<4xf32>
    %m = stablehlo.add %n, %n : tensor<4xi64>
    %one = stablehlo.constant dense<1.0> : tensor<1xf32>
    %at = stablehlo.reshape %i : (tensor<i32>) -> tensor<1xi32>
    %d = "stablehlo.scatter"(%c, %at, %one) <{scatter_dimension_numbers = #stablehlo.scatter<
        update_window_dims = [0], scatter_dims_to_operand_dims = [0]>}> ({
    ^bb0(%old: tensor<f32>, %new: tensor<f32>):
      stablehlo.return %new : tensor<f32>
    }) : (tensor<4xf32>, tensor<1xi32>, tensor<1xf32>) -> tensor<4xf32>
    return %d, %m : tensor<4xf32>, tensor<4xi64>
  }
}
"""
WITHOUT = {"stablehlo.scatter": "no kernel"}


def refused(target, text=MODULE, **options):
    """What is refused after lowering, as (op, count, remedy)."""
    found = survey(hl.read(text), options=hl.Options(target=target, **options)).refused
    return {(one.op, one.count, one.remedy) for one in found}


def test_ops_that_are_not_scatters_are_named():
    """An op counts once for each place; one in a function that nothing calls is in nobody's way."""
    npu = hl.Target("npu", refused={**WITHOUT, "stablehlo.sort": "", "stablehlo.sine": "", "stablehlo.cosine": ""})
    assert refused(npu) == {("stablehlo.sort", 1, ""), ("stablehlo.sine", 1, "")}
    assert refused(hl.Target("all", refused=WITHOUT)) == set()


def test_a_region_is_looked_into():
    """What stands in the comparator of a sort is part of the module."""
    assert refused(hl.Target("npu", refused={**WITHOUT, "stablehlo.compare": ""})) >= {("stablehlo.compare", 1, "")}


def test_an_element_type_is_refused_on_all_ops_at_once():
    """Its remedy is found by trying: with 64-bit integers made narrow, none is left."""
    npu = hl.Target("npu", refused=WITHOUT, refused_dtypes={"i64": "too wide"})
    assert refused(npu) == {("", 1, "--demote-i64")}
    assert refused(npu, demote_i64=True) == set()


def test_a_type_on_one_op_is_refused_there_only():
    """The op is taken on other types."""
    npu = hl.Target("npu", refused=WITHOUT, op_dtypes={"stablehlo.add": {"f32"}})
    [one] = survey(hl.read(MODULE), options=hl.Options(target=npu)).refused
    assert (one.op, one.reason["dtypes"], one.places) == ("stablehlo.add", ("i64",), ("<module>:18",))


def test_a_scatter_that_cannot_be_lowered_is_among_them():
    """With what stands in the way of the nearest rule, and an option that gives it a rule."""
    text = MODULE.replace("%i: tensor<i32>", "%i: tensor<i64>").replace("tensor<1xi32>", "tensor<1xi64>")
    text = text.replace("%i : (tensor<i32>)", "%i : (tensor<i64>)")
    taken = {f"stablehlo.{op}": {"f32", "i32"} for op in ("dynamic_slice", "bitcast_convert")}
    npu = hl.Target("npu", refused=WITHOUT, op_dtypes=taken)
    assert refused(npu, text) == {("stablehlo.scatter", 1, "--demote-i64")}
    assert refused(npu, text, demote_i64=True) == set()


def test_a_composite_that_is_taken_whole_is_not_looked_into():
    """Its decomposition is nobody's business; where it is not taken, it is named with what it is."""
    text = """func.func public @main(%x: tensor<4xf32>) -> tensor<4xf32> {
      %y = stablehlo.composite "odml.wave" %x {decomposition = @wave} : (tensor<4xf32>) -> tensor<4xf32>
      return %y : tensor<4xf32>
    }
    func.func private @wave(%x: tensor<4xf32>) -> tensor<4xf32> {
      %y = stablehlo.sine %x : tensor<4xf32>
      return %y : tensor<4xf32>
    }"""
    name = "stablehlo.composite @odml.wave"
    assert refused(hl.Target("npu", ops={"stablehlo.add"}, composites={"odml.wave"}), text) == set()
    assert refused(hl.Target("npu", ops={"stablehlo.sine"}), text) == {(name, 1, "--legalize")}
    assert refused(hl.Target("npu", ops={"stablehlo.add"}), text) == {(name, 1, "")}  # a sine would be refused instead


def test_sizes_are_a_remedy():
    """A module of dynamic shape whose sizes are read at run time needs none of that once they are bound."""
    text = """func.func public @main(%x: tensor<?x4xf32>, %i: tensor<1xi32>, %u: tensor<4xf32>) -> tensor<?x4xf32> {
      %d = "stablehlo.scatter"(%x, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<
          update_window_dims = [0], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0]>}> ({
      ^bb0(%old: tensor<f32>, %new: tensor<f32>):
        stablehlo.return %new : tensor<f32>
      }) : (tensor<?x4xf32>, tensor<1xi32>, tensor<4xf32>) -> tensor<?x4xf32>
      return %d : tensor<?x4xf32>
    }"""
    npu = hl.Target("npu", refused={**WITHOUT, "stablehlo.get_dimension_size": "static only"})
    assert refused(npu, text) == {("stablehlo.scatter", 1, "--bind")}


def test_a_function_that_lowering_took_away_is_not_looked_at():
    """Indices that are computed by a call become constants, and the function goes."""
    text = """func.func public @main(%x: tensor<4xf32>, %u: tensor<2xf32>) -> tensor<4xf32> {
      %i = call @places() : () -> tensor<2x1xi32>
      %d = "stablehlo.scatter"(%x, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<
          inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
      ^bb0(%old: tensor<f32>, %new: tensor<f32>):
        stablehlo.return %new : tensor<f32>
      }) : (tensor<4xf32>, tensor<2x1xi32>, tensor<2xf32>) -> tensor<4xf32>
      return %d : tensor<4xf32>
    }
    func.func private @places() -> tensor<2x1xi32> {
      %i = stablehlo.iota dim = 0 : tensor<2x1xi32>
      return %i : tensor<2x1xi32>
    }"""
    npu = hl.Target("npu", refused={**WITHOUT, "stablehlo.iota": "", "stablehlo.sine": ""})
    lowered = hl.lower(text, target=npu)
    assert "@places" not in lowered.text
    assert lowered.refused == ()
    assert refused(npu, text) == set()


def test_modules_are_summed():
    """Alike ones of several modules are one, with how many modules they are in; what is in most modules comes first."""
    npu = hl.Target("npu", refused={**WITHOUT, "stablehlo.sort": "", "stablehlo.sine": ""})
    found = survey(hl.read(MODULE), options=hl.Options(target=npu)).refused
    one, other = summed([found, found, [r for r in found if r.op == "stablehlo.sine"]])
    assert (one.op, one.count, one.modules, one.places) == ("stablehlo.sine", 3, 3, ())
    assert (other.op, other.count, other.modules) == ("stablehlo.sort", 2, 2)


@pytest.fixture
def npu(tmp_path, monkeypatch):
    """A module, and the file of a target that refuses its sort."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "m.mlir").write_text(MODULE)
    (tmp_path / "npu.toml").write_text('[refused]\n"stablehlo.scatter" = "none"\n"stablehlo.sort" = "no kernel"\n')


def test_convert_says_what_stays(npu, capsys):
    """The module is written, since its scatters are lowered; what stays is told, and the exit code is 3."""
    assert main(["convert", "m.mlir", "-o", "out.mlir", "--target", "npu.toml", "--no-verify"]) == 3
    said = capsys.readouterr().err
    assert said == (
        "out.mlir holds what npu refuses\n"
        "  1 stablehlo.sort: no kernel; at m.mlir:13\n"
        "  next:    hlo-lower report m.mlir --target npu.toml\n"
    )
    assert "stablehlo.sort" in Path("out.mlir").read_text()


def test_report_names_it_and_can_fail_on_it(npu, capsys):
    """The line that a person reads, and the exit code for a build."""
    assert main(["report", "m.mlir", "--target", "npu.toml", "--fail-on", "refused"]) == 3
    told = capsys.readouterr()
    assert "  refused:   1 stablehlo.sort: no kernel; at m.mlir:13\n" in told.out
    assert told.err == "1 op that npu refuses (--fail-on refused)\n"
    assert main(["report", "m.mlir", "--fail-on", "refused"]) == 0


def test_a_report_says_what_would_be_lowered_by_which_rule(tmp_path, capsys):
    """A sort that the target refuses and a rule lowers is a line of its own, and is not refused; one that is not read
    says why."""
    npu = tmp_path / "npu.toml"
    npu.write_text('[refused]\n"stablehlo.scatter" = "none"\n"stablehlo.sort" = "none"\n')
    files = {}
    for name, kind in (("total", ", TOTALORDER"), ("partial", "")):
        files[name] = tmp_path / f"{name}.mlir"
        files[name].write_text(MODULE.replace("LT, %p, %q", f"LT, %p, %q{kind}"))
    assert main(["report", str(files["total"]), "--target", str(npu), "--fail-on", "refused"]) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert "lowered: stablehlo.sort at total.mlir:" in told
    assert "(sort_to_ranks)" in told
    assert main(["report", str(files["partial"]), "--target", str(npu), "--fail-on", "refused"]) == 3
    told = " ".join(capsys.readouterr().out.split())
    assert "left: stablehlo.sort at partial.mlir:" in told
    assert "compare_type TOTALORDER" in told
