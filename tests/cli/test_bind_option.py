"""--bind: symbolic sizes on the command line."""

import pytest


@pytest.fixture
def symbolic(folder):
    """A module with rows of unknown number, as poly.mlir."""
    text = (folder / "decode.mlir").read_text()
    (folder / "poly.mlir").write_text(text.replace("8x4xf32", "?x4xf32"))
    return folder


def test_without_sizes_the_module_stays_symbolic(symbolic, command):
    """A scatter of dynamic shape is lowered with its sizes taken at run time, and verified at several of them."""
    result = command("convert", "poly.mlir", "-o", "out.mlir")
    assert (result.code, result.err) == (0, "")
    assert " regions derived; module " in result.out
    assert "dynamic_shape_runtime_window" in result.out
    assert "tensor<?x4xf32>" in (symbolic / "out.mlir").read_text()


def test_with_sizes_it_is_static(symbolic, command):
    """Bound, the module has static shapes and the rules for those."""
    result = command("convert", "poly.mlir", "-o", "out.mlir", "--bind", "arg0.0=6")
    assert (result.code, result.err) == (0, "")
    assert "guarded_dynamic_update_slice" in result.out
    assert "tensor<6x4xf32>" in (symbolic / "out.mlir").read_text()
    assert command("verify", "poly.mlir", "out.mlir", "--bind", "arg0.0=6").code == 0


@pytest.mark.parametrize(
    ("sizes", "says"),
    [
        ("b=6", "poly.mlir: the module has no size called b"),
        ("arg0.1=5", "poly.mlir: arg0.1 is 4 in the module, not 5"),
        ("arg0.0=6,arg0.1=5", "poly.mlir: arg0.1 is 4 in the module, not 5"),
        ("arg0.0", "'arg0.0' is no NAME=SIZE; write --bind b=4,s=16"),
    ],
)
def test_sizes_that_do_not_fit_are_told(symbolic, command, sizes, says):
    """What is wrong is told, with the exit code of bad input, and nothing is written."""
    result = command("convert", "poly.mlir", "-o", "out.mlir", "--bind", sizes)
    assert (result.code, result.out) == (2, "")
    assert says in result.err
    assert "Traceback" not in result.err
    assert not (symbolic / "out.mlir").exists()


def test_sizes_may_be_given_one_by_one(symbolic, command):
    """Each --bind adds to what the others say; the last does not take their place."""
    result = command("convert", "poly.mlir", "-o", "out.mlir", "--bind", "arg0.0=6", "--bind", "arg0.1=4")
    assert (result.code, result.err) == (0, "")
    assert "tensor<6x4xf32>" in (symbolic / "out.mlir").read_text()
