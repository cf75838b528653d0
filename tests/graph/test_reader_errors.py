"""What cannot be read ends in an error of hlo_lower that says where, what and what to do."""

import pytest

from hlo_lower.errors import EXIT_BAD_INPUT, InputError
from hlo_lower.graph import read

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


def test_an_error_is_up_to_four_lines():
    """Where and what, the facts, the nearest and the next step, each on its own line."""
    lines = str(error_of(GOOD.replace("public", "private"), "m.mlir")).splitlines()
    assert lines == [
        "m.mlir: the module has no public function with a body",
        "  facts:   functions: @main",
        "  next:    make the entry point public: func.func public @main(...)",
    ]
