"""What cannot be read ends in an error of hlo_lower that says where, what and what to do."""

import pytest

from hlo_lower.base.errors import EXIT_BAD_INPUT, InputError
from hlo_lower.ir.reader import read

GOOD = """func.func public @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}
"""


def error_of(source, name=None) -> InputError:
    """The error that reading gives."""
    with pytest.raises(InputError) as caught:
        read(source, name)
    assert caught.value.exit_code == EXIT_BAD_INPUT
    assert caught.value.next_step
    return caught.value


@pytest.mark.parametrize("source", [b"", b"  \n", "\n\n"], ids=repr)
def test_an_empty_input(source):
    """Nothing, or only blanks, is no module."""
    error = error_of(source, "m.mlir")
    assert (error.where, error.what) == ("m.mlir", "the input is empty")


def test_a_syntax_error_has_line_and_column():
    """A parse error is at its line and column, with jaxlib's own message."""
    error = error_of(GOOD.replace("return %x", "return %y"), "m.mlir")
    assert (error.where, "undeclared SSA value" in error.what) == ("m.mlir:2:10", True)


def test_a_module_that_does_not_verify_has_a_place():
    """An op that breaks its own rules is an error at the op."""
    bad = GOOD.replace(
        "  return", "  %r = stablehlo.transpose %x, dims = [1] : (tensor<4xf32>) -> tensor<4xf32>\n  return"
    )
    error = error_of(bad, "m.mlir")
    assert error.where.startswith("m.mlir:2:")
    assert "permutation" in error.what


def test_an_unknown_dialect():
    """An op of a dialect that jaxlib does not register is named."""
    error = error_of(GOOD.replace("  return", '  "torch.aten.add"() : () -> ()\n  return'), "m.mlir")
    assert error.where.startswith("m.mlir:2:")
    assert "torch" in error.facts
    assert "legalize" in error.next_step


def test_text_that_is_no_mlir():
    """Prose is refused in its first line."""
    error = error_of("this is no module\n")
    assert error.where.startswith("<module>:1:")


def test_bytes_that_are_nothing():
    """Bytes of no known form are refused with their first bytes."""
    error = error_of(b"\xff\xfe\x00\x01garbage", "x.bin")
    assert error.where == "x.bin"
    assert "neither MLIR text, MLIR bytecode" in error.what
    assert "ff fe 00 01" in error.facts


@pytest.mark.parametrize("prefix", [b"ML\xefR", b"ML\xefR\x0d\x05StableHLO_v1.9.0\x00"], ids=["bytecode", "portable"])
def test_cut_off_bytecode(prefix):
    """Bytecode that ends early is refused, not crashed on."""
    error = error_of(prefix, "m.mlirbc")
    assert error.where == "m.mlirbc"


def test_a_missing_file_and_a_folder(tmp_path):
    """A path that is not there, or is a folder, is named as it was given."""
    missing = error_of(tmp_path / "no.mlir")
    assert (str(tmp_path / "no.mlir"), "no such file") == (missing.where, missing.what)
    folder = error_of(str(tmp_path))
    assert (str(tmp_path), "is a directory, not a module") == (folder.where, folder.what)


def test_a_module_without_a_public_function():
    """A module of private functions has nothing to convert; they are listed."""
    error = error_of(GOOD.replace("public", "private"), "m.mlir")
    assert (error.what, error.facts) == ("the module has no public function with a body", "functions: @main")


def test_a_module_without_functions():
    """An empty module has no entry either."""
    assert error_of("module {}\n").facts == "functions: none"


def calling(*pairs):
    """A module of functions of which the first of a pair calls the second."""
    called = {}
    for caller, callee in pairs:
        called.setdefault(caller, []).append(callee)
    functions = []
    for name in sorted({name for pair in pairs for name in pair}):
        calls = "".join(
            f"  %{n} = call @{callee}(%x) : (tensor<4xf32>) -> tensor<4xf32>\n"
            for n, callee in enumerate(called.get(name, ()))
        )
        functions.append(GOOD.replace("@main", f"@{name}").replace("  return", f"{calls}  return"))
    return "".join(functions)


@pytest.mark.parametrize(
    ("pairs", "circle"),
    [
        ([("a", "a")], "@a calls @a"),
        ([("a", "b"), ("a", "c"), ("c", "d"), ("d", "c")], "@c calls @d calls @c"),
    ],
)
def test_functions_that_call_themselves(pairs, circle):
    """A circle of calls has no meaning, and kills XLA; the message names it."""
    error = error_of(calling(*pairs), "m.mlir")
    assert (error.where, error.facts) == ("m.mlir", circle)
    assert "call themselves" in error.what


def test_functions_that_are_called_twice_are_no_circle():
    """A diamond, and a chain that is longer than Python's stack, are read."""
    assert len(read(calling(("a", "b"), ("a", "c"), ("b", "d"), ("c", "d"))).functions) == 4
    chain = [(f"f{n:04}", f"f{n + 1:04}") for n in range(1500)]
    assert len(read(calling(*chain)).functions) == 1501


def test_a_scatter_outside_of_functions():
    """What no function holds cannot be lowered; it is named by its line."""
    scatter = """\
%a = stablehlo.constant dense<1.0> : tensor<8xf32>
%i = stablehlo.constant dense<1> : tensor<1xi32>
%u = stablehlo.constant dense<1.0> : tensor<f32>
%r = "stablehlo.scatter"(%a, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<
  inserted_window_dims = [0], scatter_dims_to_operand_dims = [0]>}> ({
^bb0(%c: tensor<f32>, %d: tensor<f32>):
  stablehlo.return %d : tensor<f32>
}) : (tensor<8xf32>, tensor<1xi32>, tensor<f32>) -> tensor<8xf32>
"""
    error = error_of(f"{scatter}{GOOD}", "m.mlir")
    assert (error.where, error.what) == ("m.mlir:4", "a stablehlo.scatter stands in no function")
    within = f"module {{ module {{ {GOOD.replace('  return', scatter + '  return')} }}\n{GOOD} }}"
    assert len(read(within).scatters) == 1


def test_a_function_whose_name_is_no_text():
    """MLIR names may be any bytes; here they must be UTF-8."""
    error = error_of(GOOD.replace("@main", r'@"\FF"'), "m.mlir")
    assert (error.where, error.what) == ("m.mlir", "the name of a function is not UTF-8")


def test_an_error_is_up_to_four_lines():
    """Where and what, the facts, the nearest and the next step, each on its own line."""
    lines = str(error_of(GOOD.replace("public", "private"), "m.mlir")).splitlines()
    assert lines == [
        "m.mlir: the module has no public function with a body",
        "  facts:   functions: @main",
        "  next:    make the entry point public: func.func public @main(...)",
    ]
