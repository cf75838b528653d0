"""--bind: symbolic sizes on the command line."""

import pytest

CONVERT = "convert poly.mlir -o out.mlir"


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
    result = command(CONVERT + bound)
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
    refused(f"{CONVERT} --bind {sizes}", "", says)
