"""Reading and writing: what nobody lowers comes back as jaxlib prints it, whatever form it came in."""

import re
import subprocess
import sys
from pathlib import Path
from threading import Thread
from unittest.mock import Mock

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from untyped_mlir import module

import hlo_lower as hl
from hlo_lower.ir import mlir
from hlo_lower.ir.reader import read
from hlo_lower.ir.writer import to_bytecode, to_portable_artifact, to_text

BOTH = pytest.mark.parametrize("locations", [False, True])


def plain(x, w):
    """A function without scatters: nested regions, calls, constants, a loop."""
    x = jax.lax.fori_loop(0, 3, lambda i, a: jnp.sin(a @ w) + i, x)
    return jnp.sort(x, axis=0)[::-1], jax.nn.relu(x).sum(axis=1), jnp.where(x > 0, x, jnp.inf)


def decode(cache, pos, row):
    """A cache write and something else."""
    return {"cache": cache.at[pos].set(row), "row": row * 2}


DECODE = (np.zeros((8, 4), np.float32), np.int32(0), np.zeros(4, np.float32))


CALLED = """
func.func @main(%x: tensor<8x4xf32>, %i: tensor<1xi32>, %row: tensor<4xf32>) -> tensor<4xf32> {
  %y = "stablehlo.scatter"(%x, %i, %row) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [0],
    inserted_window_dims = [0], scatter_dims_to_operand_dims = [0]>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    stablehlo.return %b : tensor<f32>
  }) : (tensor<8x4xf32>, tensor<1xi32>, tensor<4xf32>) -> tensor<8x4xf32>
  %z = call @inner(%y) : (tensor<8x4xf32>) -> tensor<4xf32>
  return %z : tensor<4xf32>
}
func.func private @inner(%x: tensor<8x4xf32>) -> tensor<4xf32> {
  %c = stablehlo.constant dense<0> : tensor<i32>
  %s = stablehlo.dynamic_slice %x, %c, %c, sizes = [1, 4]
    : (tensor<8x4xf32>, tensor<i32>, tensor<i32>) -> tensor<1x4xf32>
  %r = stablehlo.reshape %s : (tensor<1x4xf32>) -> tensor<4xf32>
  return %r : tensor<4xf32>
}
"""


@pytest.fixture(scope="module")
def traced():
    """The lowered cache write."""
    return jax.jit(decode).lower(*DECODE)


@pytest.fixture(scope="module")
def exported():
    """The exported cache write."""
    return jax.export.export(jax.jit(decode))(*DECODE)


@BOTH
def test_a_module_without_scatters_comes_back_byte_for_byte(locations):
    """Text from jaxlib, with or without locations, is written as it was read."""
    text = jax.jit(plain).lower(*[np.zeros((4, 4), np.float32)] * 2).as_text(debug_info=locations)
    assert ("loc(" in text) is locations
    assert text == to_text(read(text)) == hl.lower(text).text == hl.lower(text.encode()).text


def test_every_form_of_a_module_lowers_to_the_same(traced, exported, tmp_path):
    """Text, generic text, bytecode, a portable artifact, an Exported, a Lowered and a path all give one result; the
    place of a scatter is the line of the user's file, locations are kept, and an Exported is remembered."""
    text, path = traced.as_text(debug_info=True), tmp_path / "decode.mlir"
    path.write_text(text)
    generic = traced.compiler_ir("stablehlo").operation.get_asm(print_generic_op_form=True, enable_debug_info=True)
    binary = [to_bytecode(read(text)), to_portable_artifact(read(text)), bytes(exported.serialize())]
    place = f"test_round_trip.py:{decode.__code__.co_firstlineno + 2}"
    for source in (text, generic, text.encode(), *binary, exported, traced, path, str(path)):
        graph, lowered = read(source), hl.lower(source)
        assert [str(graph.location(scatter)) for scatter in graph.scatters] == [place]
        assert graph.location(graph.scatters[0]).scope.startswith("jit(decode)/")
        assert [(r.rule, r.subset) for r in lowered.records] == [("guarded_dynamic_update_slice", "Tile")]
        assert "stablehlo.dynamic_update_slice" in lowered.text
        assert "stablehlo.scatter" not in lowered.text
        assert "loc(" in lowered.text
        assert "stablehlo.multiply" in lowered.text
    assert (read(exported).exported is exported, read(exported.mlir_module()).exported) == (True, None)
    assert read(bytes(exported.serialize())).exported.in_tree == exported.in_tree


def test_what_a_graph_hands_out_outlives_it(traced, tmp_path):
    """A node, a block and a value keep their module. The bindings do not: reading one then ends the process."""
    (tmp_path / "decode.mlir").write_text(traced.as_text())
    program = """
import hlo_lower as hl
def decode():
    return hl.read("decode.mlir")
update = decode().scatters[0].operands[2]
last = decode().main.body.terminator
inner = [node for node in decode().functions["main"].body.nodes if node.name == "stablehlo.scatter"][0].blocks[0]
others = [decode() for _ in range(3)]
print(update.shape, last.parent.parent.name, last.operands[0].node.name, inner.owner.name, inner.arguments[0].is_used)
"""
    run = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    assert run.stdout == "(4,) builtin.module stablehlo.scatter stablehlo.scatter False\n"


def test_each_way_to_a_node_a_block_or_a_value_keeps_the_module():
    """Whatever is asked for, and from whatever it is asked."""
    graph = read(CALLED)
    [call], [scatter], main = graph.calls_of("inner"), graph.scatters, graph.main
    block, inner = main.body, scatter.blocks[0]
    nodes = [
        *graph.callers,
        *graph.slices,
        call,
        scatter,
        main.node,
        graph.function_of(scatter).node,
        *block.nodes,
        block.terminator,
        inner.owner,
        scatter.parent,
        call.operand(0).node,
        *block.argument(0).users,
    ]
    nodes += graph.nodes()
    values = [
        *block.arguments,
        block.argument(0),
        *scatter.operands,
        *scatter.results,
        scatter.operand(1),
        scatter.result(),
    ]
    assert len(nodes) > 15
    assert all(one.module is graph.module for one in (*nodes, *values, inner, block))
    assert block.argument(0).block.module is graph.module


def test_without_locations_a_place_is_the_modules_own_line(traced, tmp_path):
    """A module without locations gives the line of the op in its own text, under the file's name. Where no function is
    called main, it is the first public one."""
    text, path = traced.as_text(), tmp_path / "decode.mlir"
    path.write_text(text)
    graph = read(path)
    line = 1 + next(i for i, one in enumerate(text.splitlines()) if "stablehlo.scatter" in one)
    location = graph.location(graph.scatters[0])
    assert (f"decode.mlir:{line}", "", False) == (str(location), location.scope, graph.has_locations)
    assert (str(path), line) == (location.file, location.line)
    assert read(text.replace("@main", "@serve")).main.name == "serve"


def test_a_dynamic_shape_is_not_static():
    """A size that is open is None, and there is no static shape."""
    graph = read("func.func public @main(%x: tensor<?x4xui8>) -> tensor<?x4xui8> { return %x : tensor<?x4xui8> }")
    argument = graph.main.body.argument(0)
    assert (argument.shape, argument.element_type, argument.is_static) == ((None, 4), "ui8", False)
    with pytest.raises(ValueError, match="dynamic shape"):
        _ = argument.static_shape


def test_what_is_written_reads_back_and_leaves_the_graph_as_it_is(traced):
    """Every form can be asked for, in any order; of a range of columns, jaxlib's bytecode keeps where it begins; of a
    portable artifact a version can be asked for."""
    graph = read(traced)
    before = to_text(graph)
    first, old, bytecode = to_portable_artifact(graph), to_portable_artifact(graph, "1.0.0"), to_bytecode(graph)
    assert (to_text(graph), to_portable_artifact(graph)) == (before, first)
    assert re.sub(r" to [0-9:]+", "", to_text(read(bytecode))) == re.sub(r" to [0-9:]+", "", before)
    assert b"StableHLO_v1.0.0" in old[:64]
    assert read(old).op_count == read(first).op_count == graph.op_count


@BOTH
def test_a_system_without_files_in_memory_prints_the_same(locations, monkeypatch):
    """What is printed into a file in memory is what the bindings print, also where the text is not ASCII."""
    head = 'func.func public @main(%x: tensor<2xf32>) -> tensor<2xf32> attributes {a = "\u00e4"}'
    module = read(f"{head} {{ return %x : tensor<2xf32> }}").module
    printed = mlir.print_module(module, locations=locations)
    assert printed == module.operation.get_asm(enable_debug_info=locations)

    monkeypatch.setattr("os.memfd_create", Mock(side_effect=OSError), raising=False)
    assert mlir.print_module(module, locations=locations) == printed


def constants_of(*constants):
    """The constants of a module of such texts and types, as they are read."""
    kinds = ", ".join(kind for _, kind in constants)
    body = "\n".join(f"%{i} = stablehlo.constant {text} : {kind}" for i, (text, kind) in enumerate(constants))
    results = ", ".join(f"%{i}" for i in range(len(constants)))
    graph = hl.read(f"func.func public @main() -> ({kinds}) {{\n{body}\nreturn {results} : {kinds}\n}}")
    return [node.constant() for node in graph.main.body.nodes if node.name == "stablehlo.constant"]


def raw(array):
    """The bytes of an array as text."""
    return f'dense<"0x{array.tobytes().hex()}">'


def test_masks_are_read_as_they_were_written():
    """Each value of a long one comes back, whatever is left over of the last byte. Packed ones are read from the lowest
    bit: as jaxlib 0.9 prints the lower triangle of 16 x 16, two bytes a row; of nine values the last byte holds one."""
    for shape in ((16, 16), (9, 11), (1, 67)):
        mask = np.random.default_rng(0).integers(0, 2, shape).astype(bool)
        rows = f"dense<{mask.tolist()}>".lower()
        np.testing.assert_array_equal(*constants_of((rows, f"tensor<{shape[0]}x{shape[1]}xi1>")), mask)
    lower = "0x0100030007000F001F003F007F00FF00FF01FF03FF07FF0FFF1FFF3FFF7FFFFF"
    mask = mlir.parse_dense(f'dense<"{lower}"> : tensor<16x16xi1>', np.dtype(bool), 256)
    np.testing.assert_array_equal(mask.reshape(16, 16), np.tril(np.ones((16, 16), bool)))
    rest = mlir.parse_dense('dense<"0x0A01"> : tensor<9xi1>', np.dtype(bool), 9)
    np.testing.assert_array_equal(np.flatnonzero(rest), [1, 3, 8])


@pytest.mark.parametrize("count", [16, 99, 130])
def test_text_of_another_mlir_is_read_whichever_way_it_writes_masks(count):
    """As bits and as bytes, side by side, beside raw data of another type: one is not how this MLIR writes."""
    mask = np.random.default_rng(count).integers(0, 2, count).astype(bool)
    floats, kind = np.arange(count, dtype=np.float32), f"tensor<{count}xi1>"
    packed = raw(np.packbits(mask, bitorder="little"))
    found = constants_of((packed, kind), (raw(floats), f"tensor<{count}xf32>"), (raw(mask), kind))
    for one, expected in zip(found, (mask, floats, mask), strict=True):
        np.testing.assert_array_equal(one, expected)


@pytest.mark.parametrize(("text", "kind"), [("0x0A010", "99xi1"), ("0x0A01", "99xi1"), ("0x0A0102", "16xf32")])
def test_raw_data_of_no_known_size_stays_an_error(text, kind):
    """Half a byte, neither bits nor bytes, another type: told at its place."""
    with pytest.raises(hl.InputError, match=r":2:.*hex"):
        constants_of((f'dense<"{text}">', f"tensor<{kind}>"))


def test_a_function_with_a_quoted_name_is_kept_where_it_is_called():
    """Branches become selects, and the function that one of them calls is not taken for one that nothing names."""
    text = Path(__file__).with_name("quoted_name.mlir").read_text()
    target = hl.Target("npu", refused={"stablehlo.scatter": "lowered", "stablehlo.case": "none"})
    lowered = hl.lower(text, target=target)
    assert lowered.refused == ()
    assert hl.verify(text, lowered, level="regions").ok
    module = mlir.parse_module(text)
    calls = [op for op in mlir.operations_within(module.operation) if op.name == "func.call"]
    assert [mlir.symbols_in(op) for op in calls] == [{"<lambda>"}]


def test_a_thread_that_begins_reads_into_the_context_of_one_that_has_ended():
    """A thread has its own; texts share it until much was read into it, and a longer one has its own."""
    if not mlir.BINDINGS_OF_8:
        assert mlir.shared_context(1) is not mlir.shared_context(1)
        return
    found, half = [], mlir.SHARED_CHARACTERS // 2 + 1

    def read_some():
        found.append([mlir.shared_context(size) for size in (1, half, half, 2 * half, 0)])

    mlir._left_behind.clear()  # pyright: ignore[reportPrivateUsage]
    for _ in range(2):
        thread = Thread(target=read_some)
        thread.start()
        thread.join()
    contexts = dict.fromkeys(one for row in found for one in row)
    told = [[list(contexts).index(one) for one in row] for row in found]
    assert told == [[0, 0, 1, 2, 1], [1, 3, 4, 5, 4]]


def test_values_have_the_same_names_when_they_are_numbered_once():
    """Until then, and after it, each asks for its own; what changes the module before the first name counts."""
    context = mlir.make_context()
    with mlir.active(context):
        raw = mlir.parse_module(module("%x: 4xf32", "%y = negate %x; %r = add %y, %x"), context)
        values = [result for op in mlir.operations_within(raw.operation) for result in op.results]
        own = type(values[0]).get_name
        names = [value.get_name() for value in values]
        with mlir.numbered_once(raw):
            assert [value.get_name() for value in values] == names
            assert type(values[0]).get_name is not own
        assert type(values[0]).get_name is own
