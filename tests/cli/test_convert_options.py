"""Options of `convert`: inputs, scatters and forms; symbolic sizes (--bind), rules (--prefer), targets (--target)."""

import numpy as np
import pytest

import hlo_lower as hl

POINT = """"stablehlo.scatter"(%o, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0],
      scatter_dims_to_operand_dims = [0]>}> ({
    ^bb0(%x: tensor<i32>, %y: tensor<i32>):
      %z = stablehlo.COMBINER %x, %y : tensor<i32>
      stablehlo.return %z : tensor<i32>
    }) : (tensor<8xi32>, tensor<1xi32>, tensor<i32>) -> tensor<8xi32>"""
TWO = f"""\
module {{
  func.func public @main(%o: tensor<8xi32>, %i: tensor<1xi32>, %u: tensor<i32>) -> (tensor<8xi32>, tensor<8xi32>) {{
    %a = {POINT.replace("COMBINER", "maximum")}
    %b = {POINT.replace("COMBINER", "add")}
    return %a, %b : tensor<8xi32>, tensor<8xi32>
  }}
}}
"""
ROW, CACHE = (np.ones(4, np.float32), np.int32(3)), np.zeros((8, 4), np.float32)
CONVERT = "convert decode.mlir -o out.mlir"


def test_convert_verifies_with_the_users_inputs(folder, command):
    """With --inputs the module runs once, on these."""
    np.savez(folder / "x.npz", CACHE, *ROW)
    result = command(f"{CONVERT} --inputs x.npz")
    assert (result.code, result.err) == (0, "")
    assert "module 1 run" in result.out.splitlines()[0]


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ("--inputs missing.npz", "missing.npz: no such file"),
        ("--inputs wrong.npz", "input 0 does not fit"),
        ("--inputs x.npz --no-verify", "--verify off does not run it"),
        ("--inputs x.npz --verify regions", "--verify regions does not run it"),
        *(
            (f"{o} llama.py:1", "no scatter matches 'llama.py:1'\n  facts:   scatters are at decode.mlir:4")
            for o in ("--only", "--skip")
        ),
    ],
)
def test_what_does_not_fit_writes_nothing(folder, refused, options, says):
    """A missing file, a wrong shape, inputs where the module is not run, and a pattern that matches nothing."""
    np.savez(folder / "wrong.npz", np.zeros(3, np.float32), *ROW)
    np.savez(folder / "x.npz", CACHE, *ROW)
    refused(f"{CONVERT} {options}", "decode.mlir: no scatter" if "llama" in options else "", says)


@pytest.mark.parametrize(
    ("options", "left"),
    [
        ("--only #1", "2 scatters -> 1"),
        ("--only #1 --only #2", "2 scatters -> 0"),
        ("--skip #*", "2 scatters -> 2"),
        ("--skip two.mlir:9", "2 scatters -> 1"),
        ("--only main --skip #2", "2 scatters -> 1"),
    ],
)
def test_only_and_skip(folder, command, options, left):
    """Numbers, places and functions choose scatters; what is left on request verifies and is no failure."""
    (folder / "two.mlir").write_text(TWO)
    result = command(f"convert two.mlir -o out.mlir --verify regions {options}")
    assert (result.code, result.err) == (0, "")
    assert left in result.out


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("8x4xf32", "?x4xf32", "dynamic shape tensor<?x4xf32>"),
        ("@decode", "@decode attributes {mhlo.num_partitions = 2 : i32}", "several devices"),
    ],
    ids=["dynamic", "partitioned"],
)
def test_what_cannot_be_an_exported_is_told(folder, command, refused, old, new, says):
    """--emit exported needs a signature that JAX has; other forms are offered, and nothing is written."""
    (folder / "odd.mlir").write_text((folder / "decode.mlir").read_text().replace(old, new))
    options = "--keep-unsupported --no-verify"
    first = "odd.mlir: the module cannot become a jax.export.Exported: "
    assert "internal error" not in refused(f"convert odd.mlir -o out.exported {options}", first, says)
    assert command(f"convert odd.mlir -o out.vhlo {options}").code in (0, 3)
    assert hl.read(folder / "out.vhlo").op_count > 0


CONVERT_POLY = "convert poly.mlir -o out.mlir"


@pytest.fixture
def symbolic(folder):
    """A module with rows of unknown number, as poly.mlir."""
    text = (folder / "decode.mlir").read_text()
    (folder / "poly.mlir").write_text(text.replace("8x4xf32", "?x4xf32"))
    return folder


@pytest.mark.parametrize(
    ("bound", "told", "shape"),
    [
        ("", "dynamic_shape_runtime_window", "tensor<?x4xf32>"),
        (" --bind arg0.0=6", "guarded_dynamic_update_slice", "tensor<6x4xf32>"),
        (" --bind arg0.0=6 --bind arg0.1=4", "guarded_dynamic_update_slice", "tensor<6x4xf32>"),
    ],
    ids=["open, with sizes taken at run time", "static", "one by one"],
)
def test_a_module_is_as_static_as_its_sizes(symbolic, command, bound, told, shape):
    """It is lowered by the rules for what is known, and verified, at several sizes where none is bound."""
    result = command(CONVERT_POLY + bound)
    assert (result.code, result.err) == (0, "")
    assert told in result.out
    assert shape in (symbolic / "out.mlir").read_text()
    if bound:
        assert command(f"verify poly.mlir out.mlir{bound}").code == 0
    else:
        assert " regions derived; module " in result.out


@pytest.mark.parametrize(
    ("sizes", "says"),
    [
        ("b=6", "poly.mlir: the module has no size called b"),
        ("arg0.1=5", "poly.mlir: arg0.1 is 4 in the module, not 5"),
        ("arg0.0=6,arg0.1=5", "poly.mlir: arg0.1 is 4 in the module, not 5"),
        ("arg0.0", "'arg0.0' is no NAME=SIZE; write --bind b=4,s=16"),
    ],
)
def test_sizes_that_do_not_fit_are_told(symbolic, refused, sizes, says):
    """What is wrong is told, with the exit code of bad input, and nothing is written."""
    refused(f"{CONVERT_POLY} --bind {sizes}", "", says)


MANY = """func.func public @main(%o: tensor<8x4xf32>, %i: tensor<6x1xi32>, %up: tensor<6x4xf32>) -> tensor<8x4xf32> {
  %r = "stablehlo.scatter"(%o, %i, %up) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1],
    inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
  ^bb0(%c: tensor<f32>, %u: tensor<f32>):
    stablehlo.return %u : tensor<f32>
  }) : (tensor<8x4xf32>, tensor<6x1xi32>, tensor<6x4xf32>) -> tensor<8x4xf32>
  return %r : tensor<8x4xf32>
}
"""


WHOLE = "a whole number above 0 is wanted"


@pytest.mark.parametrize(
    ("told", "says"),
    [
        ("fastest", "no rule named 'fastest'"),
        ("", "no rule named ''"),
        ("few=3", "no cost named 'few'"),
        *((f"few_windows={n}", f"few_windows: {WHOLE}") for n in ("0", "-1", "2.5", "many", "")),
        *((f"element={n}", "element: a number above 0 is wanted") for n in ("0", "nan", "inf", "1e30")),
    ],
)
def test_what_cannot_be_preferred_is_exit_code_2(told, says, folder, refused):
    """The message names it, no traceback is printed, and nothing is written."""
    (folder / "many.mlir").write_text(MANY)
    refused(f"convert many.mlir -o out.mlir --prefer '{told}'", "", says)
    with pytest.raises(hl.InputError) as error:
        hl.lower(MANY, prefer=[told])
    assert says in str(error.value)


@pytest.mark.parametrize("rule", ["while", "last_writer", "sorted_last_writer", "unrolled"])
def test_a_preferred_rule_is_taken(rule, folder, command):
    """Of several the first that is right counts; it is verified, also by a judge of two texts that knows no rule."""
    (folder / "many.mlir").write_text(MANY)
    options = f"--prefer compare_reduce --prefer {rule} --prefer while"
    result = command(f"convert many.mlir -o out.mlir {options} --verify regions")
    assert (result.code, result.err) == (0, "")
    assert rule in result.out
    assert [record.rule for record in hl.lower(MANY, prefer=("compare_reduce", rule)).records] == [rule]
    result = command("verify many.mlir out.mlir --runs 1")
    assert (result.code, result.err) == (0, "")
    assert rule != "while" or "1 region derived" in result.out


def test_an_entry_of_the_table_is_taken():
    """Windows get ops of their own up to the number that is given, and its cost, whole or not, decides."""
    free = ("window=1", "element=0.001")
    assert hl.lower(MANY, prefer=("few_windows=6", *free)).records[0].rule == "unrolled"
    assert hl.lower(MANY, prefer=("few_windows=5", *free)).records[0].rule != "unrolled"
    assert hl.lower(MANY, prefer=("loop=0.5",)).scatters_left == 0


def test_reassociated_sums_verify():
    """A right lowering under float_mode=reassociate is not accused for rounding otherwise."""
    text = MANY.replace("stablehlo.return %u", "%n = stablehlo.add %c, %u : tensor<f32>\n    stablehlo.return %n")
    options = {"float_mode": "reassociate", "prefer": ("compare_reduce",)}
    lowered = hl.lower(text, **options)
    assert hl.verify(text, lowered).ok
    wrong = lowered.text.replace("EQ", "LE")
    assert wrong != lowered.text
    verdict = hl.verify(text, wrong, float_mode="reassociate")
    assert verdict.module.status == "differs"
    assert {region.status for region in verdict.regions} == {"differs"}


NPU = 'refused = {"stablehlo.while" = "no loops"}\n'
INTEGERS = '[refused_dtypes]\nf32 = "integers only"\n'


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
