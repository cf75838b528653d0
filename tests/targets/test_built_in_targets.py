"""The built-in targets are files of the package: each parses, names what exists, and holds what it says."""

import dataclasses
import json
import re
import tomllib
from pathlib import Path

import pytest
from rule_examples import EXAMPLES
from untyped_mlir import module, of

import hlo_lower as hl
from hlo_lower.ir import mlir
from hlo_lower.lowering.engine.legality import dtypes_on
from hlo_lower.ops import targets
from hlo_lower.ops.targets import TARGETS, names, read_target, target_file, target_named

FOLDER = Path(target_file.__file__).parent
FILES = {path.stem: path for path in sorted(FOLDER.glob("*.toml"))}


def test_every_file_is_a_target_and_every_target_a_file():
    """The list is complete, in the order in which targets are shown."""
    assert set(FILES) == set(target_file.NAMES)
    assert [target.name for target in TARGETS] == list(target_file.NAMES)


@pytest.mark.parametrize("name", target_file.NAMES)
def test_a_built_in_file_names_what_exists(name, tmp_path):
    """What is checked of a user's file is checked of a built-in one here; JSON says the same; each op has its types."""
    target, path = target_named(name), tmp_path / f"{name}.json"
    names.check_names(target, name)
    assert read_target(str(FILES[name])) == target is target_named(name)
    path.write_text(json.dumps(tomllib.loads(FILES[name].read_text())))
    assert read_target(str(path)) == target
    assert target.description
    assert target.refuses_op("stablehlo.scatter")
    assert all(target.op_dtypes.values())
    assert not set(target.op_dtypes).difference(target.ops or target.op_dtypes, target.composites)
    assert target.dialect == ("linalg" if name == "linalg" else "stablehlo")


def test_an_unknown_target_is_no_attribute():
    """Targets are read when they are asked for."""
    with pytest.raises(AttributeError, match="no attribute 'NPU'"):
        targets.NPU  # noqa: B018 - the look-up is what is tested


def scatter(dtype, index="i32", combiner="assign", windows=200, size=64):
    """Points written at runtime indices, of these types."""
    x, at = of([size], dtype), of([windows, 1], index)
    text = f"%r = scatter(%o, %i, %u) <inserted=[0], to=[0], ivd=1> {{{combiner}}}"
    return module(f"%o: {x}, %i: {at}, %u: {of([windows], dtype)}", text)


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("litert", scatter("f32", combiner="power"), "emits stablehlo.while, which litert rejects: it is not exported"),
        ("litert", scatter("f64", combiner="add"), "litert rejects for f64"),
        ("coreml", scatter("bf16"), "needs bf16, which coreml rejects"),
        ("coreml", scatter("f32", index="i64"), "needs i64, which coreml rejects"),
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
    for text in (scatter("bf16"), scatter("f32", combiner="add"), scatter("i8", "i64", combiner="multiply")):
        assert hl.lower(text, target=target, lower_all=True).scatters_left == 0


def nodes_of(graph):
    """All operations of a module, those in regions included."""
    found = [node for function in graph.functions.values() for node in function.body.nodes]
    for node in found:
        found.extend(inner for block in (node.blocks if node.has_regions else ()) for inner in block.nodes)
    return [node for node in found if node.name not in ("func.return", "stablehlo.return")]


LEFT = {
    ("litert", "case_to_pairs"): {"func.call"},
    ("litert", "while_to_bounded_trips"): {"func.call"},
    **{(target, "composite_to_call"): {"func.call"} for target in ("litert", "coreml")},
    ("coreml", "random_bits_to_rounds"): {"stablehlo.bitcast_convert"},
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
        assert re.search(f"^3 .* emits stablehlo.pad, which {name} rejects for i1$", told)
        assert example.rule in ("strided_select", "strided_insert_slice")
        return
    built = {(node.name, dtypes_on(node)) for node in nodes_of(lowered.graph)} - known
    built = {(op, dtypes) for op, dtypes in built if not target.takes_whole(op, dtypes)}
    refused = {op for op, dtypes in built if target.refusal(op, dtypes) is not None}
    assert refused == LEFT.get((name, example.path.stem), set())
    assert mlir.verify_module(lowered.graph.module) is None
    if name == "linalg":
        assert lowered.scatters_left == 0


@pytest.mark.parametrize(("combiner", "rule"), [("assign", "last_writer"), ("add", "compare_reduce")])
def test_a_target_without_loops_compares_at_once(combiner, rule):
    """There masks are whole, whatever its table says, and no loop is built; asked for in parts, it takes none."""
    text, litert = scatter("i32", combiner=combiner, windows=30, size=20), target_named("litert")
    litert = dataclasses.replace(litert, costs=litert.costs.with_entry("top_k", 0), keep=())  # no sort, no scatter
    lowered = hl.lower(text, target=litert)
    assert lowered.records[0].rule == rule
    assert "stablehlo.while" not in lowered.text
    in_parts = dataclasses.replace(litert, costs=litert.costs.with_entry("mask_elements", 100))
    assert hl.lower(text, target=in_parts).text == lowered.text
    with pytest.raises(hl.NotLoweredError, match="no lowering for target litert"):
        hl.lower(text, target=in_parts, prefer=("mask_elements=100",))
