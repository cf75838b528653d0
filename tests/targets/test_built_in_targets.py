"""The built-in targets are files of the package: each parses, names what exists, and holds what it says."""

import dataclasses
import json
import re
import tomllib
from pathlib import Path

import pytest
from rule_examples import EXAMPLES

import hlo_lower as hl
from hlo_lower.ir import mlir
from hlo_lower.lowering.engine.legality import dtypes_on
from hlo_lower.ops import targets
from hlo_lower.ops.targets import STABLEHLO, TARGETS, names, read_target, target_file, target_named

FOLDER = Path(target_file.__file__).parent
FILES = {path.stem: path for path in sorted(FOLDER.glob("*.toml"))}
GOLDEN = sorted((Path(__file__).parent.parent / "golden").glob("[!r]*.mlir"))


def test_every_file_is_a_target_and_every_target_a_file():
    """The list is complete, in the order in which targets are shown."""
    assert set(FILES) == set(target_file.NAMES)
    assert [target.name for target in TARGETS] == list(target_file.NAMES)


@pytest.mark.parametrize("name", target_file.NAMES)
def test_a_built_in_file_names_what_exists(name):
    """What is checked of a user's file at each start is checked of a built-in one here."""
    names.check_names(target_named(name), name)
    assert read_target(str(FILES[name])) == target_named(name)
    assert target_named(name).description
    assert target_named(name).refuses_op("stablehlo.scatter")


@pytest.mark.parametrize("name", target_file.NAMES)
def test_a_built_in_file_is_the_same_as_json(name, tmp_path):
    """JSON says what TOML says."""
    path = tmp_path / f"{name}.json"
    path.write_text(json.dumps(tomllib.loads(FILES[name].read_text())))
    assert read_target(str(path)) == target_named(name)


@pytest.mark.parametrize("name", target_file.NAMES)
def test_a_listed_operation_says_its_types(name):
    """Where operations are listed, each is taken on all types or narrowed to some; none is told and not taken."""
    target = target_named(name)
    assert all(target.op_dtypes.values())
    assert not set(target.op_dtypes).difference(target.ops or target.op_dtypes)


def test_targets_are_read_when_they_are_asked_for():
    """A name is enough to know of a target; its file is read once."""
    assert target_file.built_in_target("iree") is target_file.built_in_target("iree")
    with pytest.raises(AttributeError, match="no attribute 'NPU'"):
        targets.NPU  # noqa: B018 - the look-up is what is tested


def test_the_dialect_of_linalg_is_linalg():
    """Only one built-in target leaves StableHLO."""
    assert {target.name for target in TARGETS if target.dialect == "linalg"} == {"linalg"}
    assert STABLEHLO.dialect == "stablehlo"


def point(dtype, index="i32", combiner="", windows=200):
    """Points written at runtime indices, of these types."""
    body = f"%c = stablehlo.{combiner} %a, %b : tensor<{dtype}>" if combiner else ""
    return f"""
func.func public @main(%o: tensor<64x{dtype}>, %i: tensor<{windows}x1x{index}>, %u: tensor<{windows}x{dtype}>)
    -> tensor<64x{dtype}> {{
  %r = "stablehlo.scatter"(%o, %i, %u) <{{scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0],
    scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}}> ({{
  ^bb0(%a: tensor<{dtype}>, %b: tensor<{dtype}>):
    {body}
    stablehlo.return {"%c" if combiner else "%b"} : tensor<{dtype}>
  }}) : (tensor<64x{dtype}>, tensor<{windows}x1x{index}>, tensor<{windows}x{dtype}>) -> tensor<64x{dtype}>
  return %r : tensor<64x{dtype}>
}}"""


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("litert", point("f32", combiner="power"), "emits stablehlo.while, which litert refuses: it is not exported"),
        ("litert", point("f64", combiner="add"), "litert refuses for f64"),
        ("coreml", point("bf16"), "needs bf16, which coreml refuses"),
        ("coreml", point("f32", index="i64"), "needs i64, which coreml refuses"),
        ("coreml", point("i32", combiner="xor"), "coreml refuses for i32"),
    ],
)
def test_what_a_consumer_refuses_is_named(name, text, says):
    """Where it takes no form of a scatter, the error names the op or the type, and the exit code is 3."""
    with pytest.raises(hl.NotLoweredError) as error:
        hl.lower(text, target=name)
    assert error.value.exit_code == 3
    assert f"no lowering for target {name}" in str(error.value)
    assert says in str(error.value)


@pytest.mark.parametrize("target", ["stablehlo", "xla", "iree", "linalg"])
def test_a_consumer_with_loops_takes_every_class(target):
    """Whatever the type and the combiner."""
    for text in (point("bf16"), point("f32", combiner="add"), point("i8", "i64", combiner="multiply")):
        assert hl.lower(text, target=target).scatters_left == 0


def nodes_of(graph):
    """All operations of a module, those in regions included."""
    found = [node for function in graph.functions.values() for node in function.body.nodes]
    for node in found:
        found.extend(inner for block in (node.blocks if node.has_regions else ()) for inner in block.nodes)
    return [node for node in found if node.name not in ("func.return", "stablehlo.return")]


LEFT = {
    ("litert", "case_to_pairs"): {"func.call"},
    ("coreml", "composite_to_call"): {"func.call"},
    ("coreml", "fft_to_dot_general"): {"stablehlo.real", "stablehlo.imag"},
    **{
        ("coreml", f"{op}_to_{form}"): {"stablehlo.bitcast_convert"}
        for op, form in (("count_leading_zeros", "sums"), ("popcnt", "sums"), ("random_bits", "rounds"))
    },
}
"""What a target gets although it lists no such op: calls, into which it looks, and what stands by an op that stays."""


@pytest.mark.few(368)
@pytest.mark.parametrize("name", ["litert", "coreml", "linalg"])
@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.path.stem)
def test_a_converted_module_holds_what_the_target_takes(example, name):
    """Each example is converted to ops and types that the target takes, or refused, or its op is kept."""
    target, before = target_named(name), hl.read(example.path)
    known = {(node.name, dtypes_on(node)) for node in nodes_of(before)}
    try:
        lowered = hl.lower(example.path, target=name, keep_unsupported=True)
    except hl.NotLoweredError as error:  # a rule found out as it built that a type is not taken
        told = f"{error.exit_code} {error.what}"
    else:
        told = ""
    if told:
        assert re.search(f"^3 .* emits stablehlo.pad, which {name} refuses for i1$", told)
        assert example.rule in ("strided_select", "strided_insert_slice")
        return
    built = {(node.name, dtypes_on(node)) for node in nodes_of(lowered.graph)} - known
    refused = {op for op, dtypes in built if target.refusal(op, dtypes) is not None}
    assert refused == LEFT.get((name, example.path.stem), set())
    assert mlir.verify_module(lowered.graph.module) is None
    if name == "linalg":
        assert lowered.scatters_left == 0


@pytest.mark.parametrize(("combiner", "rule"), [("assign", "last_writer"), ("add", "compare_reduce")])
def test_a_target_without_loops_compares_at_once(combiner, rule):
    """There masks are whole, whatever its table says, and no loop is built; asked for in parts, it takes none."""
    added = "%e = stablehlo.add %c, %u : tensor<i32>\n    stablehlo.return %e"
    region = added if combiner == "add" else "stablehlo.return %u"
    text = f"""func.func public @main(%o: tensor<40xi32>, %i: tensor<60x1xi32>, %w: tensor<60xi32>) -> tensor<40xi32> {{
  %r = "stablehlo.scatter"(%o, %i, %w) <{{scatter_dimension_numbers = #stablehlo.scatter<
      inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}}> ({{
  ^bb0(%c: tensor<i32>, %u: tensor<i32>):
    {region} : tensor<i32>
  }}) : (tensor<40xi32>, tensor<60x1xi32>, tensor<60xi32>) -> tensor<40xi32>
  return %r : tensor<40xi32>
}}
"""
    litert = target_named("litert")
    lowered = hl.lower(text, target=litert)
    assert lowered.records[0].rule == rule
    assert "stablehlo.while" not in lowered.text
    assert hl.verify(text, lowered, level="regions").ok
    in_parts = dataclasses.replace(litert, costs=litert.costs.with_entry("mask_elements", 100), keep=())
    assert hl.lower(text, target=in_parts).text == lowered.text
    with pytest.raises(hl.NotLoweredError, match="no lowering for target litert"):
        hl.lower(text, target=in_parts, prefer=("mask_elements=100",))
