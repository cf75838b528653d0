"""Reading and writing: what nobody lowers comes back as jaxlib prints it, whatever form it came in."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import hlo_lower as hl
from hlo_lower.ir import mlir
from hlo_lower.ir.reader import read
from hlo_lower.ir.writer import to_bytecode, to_portable_artifact, to_text


def plain(x, w):
    """A function without scatters: nested regions, calls, constants, a loop."""
    x = jax.lax.fori_loop(0, 3, lambda i, a: jnp.sin(a @ w) + i, x)
    return jnp.sort(x, axis=0)[::-1], jax.nn.relu(x).sum(axis=1), jnp.where(x > 0, x, jnp.inf)


def decode(cache, pos, row):
    """A cache write and something else."""
    return {"cache": cache.at[pos].set(row), "row": row * 2}


ARGUMENTS = (np.zeros((4, 4), np.float32), np.zeros((4, 4), np.float32))
DECODE = (np.zeros((8, 4), np.float32), np.int32(0), np.zeros(4, np.float32))


@pytest.fixture(scope="module")
def traced():
    """The lowered plain function, traced once."""
    return jax.jit(plain).lower(*ARGUMENTS)


@pytest.fixture(scope="module")
def decode_traced():
    """The lowered cache write."""
    return jax.jit(decode).lower(*DECODE)


@pytest.fixture(scope="module")
def decode_exported():
    """The exported cache write."""
    return jax.export.export(jax.jit(decode))(*DECODE)


@pytest.mark.parametrize("locations", [False, True])
def test_a_module_without_scatters_comes_back_byte_for_byte(traced, locations):
    """Text from jaxlib, with or without locations, is written as it was read."""
    text = traced.as_text(debug_info=locations)
    assert ("loc(" in text) is locations
    assert text == to_text(read(text))
    assert text == hl.lower(text).text
    assert text == hl.lower(text.encode()).text


@pytest.mark.parametrize("locations", [False, True])
def test_what_is_not_lowered_keeps_its_lines(decode_traced, locations):
    """Lowering one scatter leaves every line of the other operations as it was."""
    text = decode_traced.as_text(debug_info=locations)
    lowered = hl.lower(text).text
    [kept] = [line for line in text.splitlines() if "stablehlo.multiply" in line]
    assert any(line.split("=")[1].split("loc(")[0].split(" %")[0] == kept.split("=")[1].split("loc(")[0].split(" %")[0]
               for line in lowered.splitlines() if "stablehlo.multiply" in line)  # fmt: skip
    assert ("loc(" in lowered) is locations
    assert "stablehlo.scatter" not in lowered


def forms(traced, exported, path):
    """The same module in every form that can be read."""
    text = traced.as_text(debug_info=True)
    graph = read(text)
    generic = traced.compiler_ir("stablehlo").operation.get_asm(print_generic_op_form=True, enable_debug_info=True)
    path.write_text(text)
    return {
        "pretty text": text,
        "generic text": generic,
        "text as bytes": text.encode(),
        "bytecode": to_bytecode(graph),
        "portable artifact": to_portable_artifact(graph),
        "Exported": exported,
        "serialized Exported": bytes(exported.serialize()),
        "Lowered": traced,
        "path": path,
        "path as str": str(path),
    }


def test_every_form_of_a_module_lowers_to_the_same(decode_traced, decode_exported, tmp_path):
    """Text, generic text, bytecode, a portable artifact, an Exported, a Lowered and a path all give one result."""
    found = {}
    for form, source in forms(decode_traced, decode_exported, tmp_path / "decode.mlir").items():
        graph = read(source)
        lowered = hl.lower(source)
        assert len(graph.scatters) == 1, form
        assert (lowered.records[0].location, lowered.records[0].subset) != ("test_round_trip.py", "Point")
        found[form] = (
            [r.rule for r in lowered.records],
            lowered.records[0].subset,
            "stablehlo.dynamic_update_slice" in lowered.text,
            "stablehlo.scatter" in lowered.text,
        )
    expected = (["guarded_dynamic_update_slice"], "Tile", True, False)
    assert dict.fromkeys(found, expected) == found


def test_every_form_with_locations_names_the_source(decode_traced, decode_exported, tmp_path):
    """The place of a scatter is the line of the user's file in every form that carries locations."""
    line = decode.__code__.co_firstlineno + 2
    places = {
        form: str(graph.location(graph.scatters[0]))
        for form, source in forms(decode_traced, decode_exported, tmp_path / "decode.mlir").items()
        for graph in [read(source)]
    }
    assert dict.fromkeys(places, f"test_round_trip.py:{line}") == places


def test_without_locations_a_place_is_the_modules_own_line(decode_traced, tmp_path):
    """A module without locations gives the line of the op in its own text, under the file's name."""
    text = decode_traced.as_text()
    path = tmp_path / "decode.mlir"
    path.write_text(text)
    graph = read(path)
    line = 1 + next(i for i, one in enumerate(text.splitlines()) if "stablehlo.scatter" in one)
    location = graph.location(graph.scatters[0])
    assert (f"decode.mlir:{line}", "", False) == (str(location), location.scope, graph.has_locations)
    assert (str(path), line) == (location.file, location.line)


def test_a_scope_is_the_name_stack(decode_traced):
    """The scope of an op is the outermost name of its location."""
    graph = read(decode_traced.as_text(debug_info=True))
    assert graph.location(graph.scatters[0]).scope.startswith("jit(decode)/")


def test_bytecode_and_portable_artifact_read_back(decode_traced):
    """Bytes read back as the same text; of a range of columns, jaxlib's bytecode keeps where it begins."""
    graph = read(decode_traced.as_text(debug_info=True))
    assert re.sub(r" to [0-9:]+", "", to_text(graph)) == re.sub(r" to [0-9:]+", "", to_text(read(to_bytecode(graph))))
    assert read(to_portable_artifact(graph)).op_count == graph.op_count


def test_writing_leaves_the_graph_as_it_is(decode_traced):
    """Every form can be asked for, in any order, and asking changes nothing."""
    graph = read(decode_traced)
    before = to_text(graph)
    first = to_portable_artifact(graph)
    assert (to_text(graph), to_portable_artifact(graph)) == (before, first)
    to_bytecode(graph)
    assert to_text(graph) == before


def test_a_portable_artifact_of_an_older_version_reads(decode_traced):
    """A version can be asked for."""
    graph = read(decode_traced.as_text())
    old = to_portable_artifact(graph, "1.0.0")
    assert b"StableHLO_v1.0.0" in old[:64]
    assert read(old).op_count == graph.op_count


def test_an_exported_is_remembered(decode_exported):
    """Read keeps the Exported that a module came from, given or serialized; text has none."""
    assert read(decode_exported).exported is decode_exported
    again = read(bytes(decode_exported.serialize())).exported
    assert again is not None
    assert decode_exported.in_tree == again.in_tree
    assert read(decode_exported.mlir_module()).exported is None


@pytest.mark.parametrize("locations", [False, True])
def test_a_system_without_files_in_memory_prints_the_same(locations, monkeypatch):
    """What is printed into a file in memory is what the bindings print, also where the text is not ASCII."""
    head = 'func.func public @main(%x: tensor<2xf32>) -> tensor<2xf32> attributes {a = "\u00e4"}'
    module = read(f"{head} {{ return %x : tensor<2xf32> }}").module
    printed = mlir.print_module(module, locations=locations)
    assert printed == module.operation.get_asm(enable_debug_info=locations)

    def refused(_name):
        raise OSError

    monkeypatch.setattr("os.memfd_create", refused, raising=False)
    assert mlir.print_module(module, locations=locations) == printed
