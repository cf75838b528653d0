"""What leaves in linalg, in golden files; what a module still holds, and what was taken off, by name and number."""

import sys
from pathlib import Path

import pytest
from filecheck.matcher import Matcher
from filecheck.options import Options
from leaving import left_as_linalg
from untyped_mlir import function, module

import hlo_lower as hl
from hlo_lower.ir import mlir
from hlo_lower.ir.reader import read
from hlo_lower.lowering.linalg.lower import to_linalg

GOLDEN = sorted((Path(__file__).parent / "golden").glob("*.mlir"))


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.stem)
def test_a_module_leaves_in_its_canonical_form(path, tmp_path, capsys):
    """The CHECK lines match what comes out as the first line says, and no operation of another dialect is left."""
    told = path.read_text().splitlines()[0].removeprefix("// options: ").split()
    asked = {name: f"{name}=True" in told for name in ("named", "parallel", "assume_in_bounds")}
    text, report = left_as_linalg(path, **asked)
    assert report.is_complete, report.lines()
    output = tmp_path / "linalg.mlir"
    output.write_text(text)
    options = Options(match_filename=str(path), input_file=str(output))
    assert Matcher.from_opts(options).run() == 0, capsys.readouterr().err + text


LEFT = module(
    "%a: 4xui32, %b: 4xf32",
    """%0 = custom_call @my_kernel(%a) -> 4xui32; %1 = custom_call @my_kernel(%0) -> 4xui32; %2 = maximum %1, %a
  %3:2 = sort(%2, %b) <dimension = 0> {%x, %y, %p, %q: %c = compare LE, %x, %y; return %c}""",
    "%3#0, %3#1",
)


@pytest.mark.parametrize("named", [True, False])
def test_what_the_pass_leaves_is_reported(named):
    """Operations of other dialects are told by name, custom calls with their target, and keep their unsigned types; the
    sort is left because LE is no strict order."""
    text, report = left_as_linalg(LEFT, named=named)
    counts = dict(report.left)
    assert counts.pop("builtin.unrealized_conversion_cast") > 0
    assert counts == {"stablehlo.custom_call @my_kernel": 2, "stablehlo.sort": 1}
    assert not report.is_complete
    assert report.signless == ("ui32",)
    assert "@main(%arg0: tensor<4xi32>, " in text
    assert "@my_kernel(%0) : (tensor<4xui32>) -> tensor<4xui32>" in text
    assert "left: " in report.summary()
    assert "signless now: ui32" in report.lines()


SHARDED = """
module @sharded attributes {mhlo.num_partitions = 2 : i32} {
  sdy.mesh @mesh = <["x"=2]>
  func.func @main(%a: tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>, tf.aliasing_output = 0 : i32},
                  %b: tensor<4xf32> {mhlo.sharding = "{replicated}"}) -> (tensor<4xf32> {jax.result_info = "r"}) {
    %0 = stablehlo.add %a, %b {mhlo.frontend_attributes = {note = "x"}} : tensor<4xf32>
    return %0 : tensor<4xf32>
  }
}
"""


def test_shardings_are_removed_and_counted():
    """Attributes that only StableHLO's readers know go, with the meshes; donation stays."""
    text, report = left_as_linalg(SHARDED)
    names = ("mhlo.frontend_attributes", "mhlo.num_partitions", "mhlo.sharding", "sdy.mesh", "sdy.sharding")
    assert dict(report.removed) == dict.fromkeys(names, 1)
    assert report.is_complete
    assert "tf.aliasing_output = 0 : i32" in text
    assert "sdy" not in text
    assert "mhlo" not in text


PARTS = module(
    "%a: 4xf32, %p: i1",
    """%0 = composite "my.op" %a {decomposition = @twice} -> 4xf32
  %1 = chlo.erf %0 : 4xf32 -> 4xf32; %r = optimization_barrier %1""",
    more=function("private @twice", "%a: 4xf32", "%r = add %a, %a"),
)
ADDED = "applies stablehlo.add across dimensions"
OTHER_WORDS = module(
    "%s: ui32, %t: 1xui32, %e: 0x3xi32, %a: 4xi32",
    f"""%zero = constant 0 : i32
  %0 = broadcast_in_dim %s, dims = [] -> 4x8xui32; %1 = broadcast_in_dim %t, dims = [2] -> 1x3x1xui32
  %2 = reduce(%e init: %zero) {ADDED} = [0]; %3 = reduce(%a init: %zero) {ADDED} = []""",
    "%0, %1, %2, %3",
)


@pytest.mark.parametrize("named", [True, False])
@pytest.mark.parametrize(
    ("text", "holds"),
    [
        (PARTS, "call @twice"),
        (OTHER_WORDS, "-> (tensor<4x8xi32>, tensor<1x3x1xi32>, tensor<3xi32>, tensor<4xi32>)"),
    ],
    ids=["parts", "other words"],
)
def test_what_jaxlib_does_not_take_is_said_in_other_words(text, holds, named):
    """Composites are called, chlo is expanded, a barrier is what goes into it; so are broadcasts of one unsigned
    element and reductions of or over nothing, which jaxlib's pass breaks or leaves."""
    text, report = left_as_linalg(text, named=named)
    assert report.is_complete, report.lines()
    assert holds in text


def test_a_pass_that_fails_is_a_clear_error(monkeypatch):
    """Where jaxlib's pass fails, the error names the module, the pass and what to do."""

    def fail(*_):
        raise mlir.PassError("it fails")

    monkeypatch.setattr(mlir, "run_pass", fail)
    monkeypatch.setattr(mlir, "load_linalg", lambda _: None)
    with pytest.raises(hl.NotLoweredError) as error:
        to_linalg(read(module("%a: 4xf32", "return %a"), "here.mlir"), named=True)
    assert str(error.value).splitlines() == [
        "here.mlir: stablehlo-legalize-to-linalg{enable-primitive-ops=true}: it fails",
        "  next:    --target stablehlo writes the module without linalg",
    ]


def test_no_operation_of_linalg_is_looked_for_as_a_module(monkeypatch):
    """The bindings look for a dialect's Python module at each operation, which takes longer than the rest."""

    asked = []

    class Finder:
        """Keeps the names that are looked for, and finds nothing."""

        @staticmethod
        def find_spec(name, path=None, target=None):
            asked.append(name)

    text = module("%x: 4x8xf32, %i: i32", "%y = dynamic_slice %x, %i, %i, sizes = [2, 8]; %r = exponential %y")
    hl.lower(text, target="linalg")
    monkeypatch.setattr(sys, "meta_path", [Finder, *sys.meta_path])
    assert "linalg.map" in hl.lower(text, target="linalg").text
    assert [name for name in asked if ".dialects." in name] == []
