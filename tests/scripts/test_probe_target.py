"""`scripts/probe_target.py`: the modules of one op, the file that is written, and the comparison with a target."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from hlo_lower.consumers import ConsumerOutcome
from hlo_lower.ir import mlir
from hlo_lower.ops.targets import read_target
from hlo_lower.ops.targets.target import Target

sys.path.insert(0, str(Path(__file__).parents[2] / "scripts"))

from probe.probed import Probed, difference_lines, target_lines
from probe.single_ops import single_ops

SCRIPTS = Path(__file__).parents[2] / "scripts"
EXAMPLE = Path(__file__).parents[2] / "examples" / "consumer"


def outcomes(*results):
    """What became of an op's forms."""
    return [ConsumerOutcome("npu", result, 'no "such" op' if result == "refused" else "") for result in results]


FOUND = [
    Probed("stablehlo.add", {"i8": outcomes("wrong"), "i32": outcomes("right"), "f32": outcomes("right")}),
    Probed(
        "stablehlo.compare", {"i32": outcomes("right", "refused"), "f32": outcomes("right", "right")}, has_flags=True
    ),
    Probed("stablehlo.tan", {"f32": outcomes("refused")}),
]


def test_the_file_is_a_target(tmp_path):
    """It is read as it was found: a type counts where every form is right, and a refusal has the consumer's words."""
    path = tmp_path / "npu.toml"
    path.write_text("\n".join(target_lines("NPU 1.0", FOUND)) + "\n")
    target = read_target(str(path))
    assert target.refuses_op("stablehlo.add") is None
    assert [target.refuses_op_on("stablehlo.add", t) for t in ("i32", "f32", "i8")] == [False, False, True]
    assert [target.refuses_op_on("stablehlo.compare", t) for t in ("i32", "f32", "i1")] == [True, False, False]
    assert "no 'such' op" in target.refuses_op("stablehlo.tan")
    assert '"stablehlo.add" = ["i32", "f32"] # i8 wrong' in path.read_text()


def test_a_target_that_says_something_else_is_told():
    """Types that are listed and were not right, and those that were right and are not listed."""
    target = Target("npu", op_dtypes={"stablehlo.add": {"i8", "i32"}})
    [add, compare, tan] = difference_lines(FOUND, target)
    assert add == "stablehlo.add: listed, and not right: i8; right, and not listed: f32"
    assert compare == "stablehlo.compare: listed, and not right: i32"
    assert tan == "stablehlo.tan: listed, and not right: f32"
    [same] = difference_lines(FOUND[:1], Target("npu", op_dtypes={"stablehlo.add": {"i32", "f32"}}))
    assert same == "stablehlo.add: the same, i32, f32"


def parses(text):
    """Whether a module is legal."""
    try:
        mlir.parse_module(text)
    except ValueError:
        return False
    return True


def test_each_op_has_a_module_that_parses():
    """Of every op and form there is a legal module on f32 or i32, and it holds that op alone."""
    for op, forms in single_ops().items():
        for form, write in forms.items():
            texts = [write(element) for element in ("f32", "i32")]
            assert any(parses(text) for text in texts), (op, form)
            assert all(text.count(op) == text.count("stablehlo.") == 1 for text in texts)


@pytest.mark.sweep
def test_xla_is_probed_through_the_entry_point(tmp_path):
    """XLA as an installed consumer takes an add on every type, and the file that is written says so."""
    info = tmp_path / "xla_consumer-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: xla-consumer\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[hlo_lower.consumers]\nxla = xla_consumer:XLA\n")
    path = os.pathsep.join((str(tmp_path), str(EXAMPLE), str(SCRIPTS.parent)))
    out = tmp_path / "xla.toml"
    command = [sys.executable, SCRIPTS / "probe_target.py", "--on", "xla", "--ops", "stablehlo.add", "--out", out]
    subprocess.run(command, env={**os.environ, "PYTHONPATH": path}, check=True, capture_output=True)
    assert not any(read_target(str(out)).refuses_op_on("stablehlo.add", t) for t in ("i1", "ui8", "bf16", "f64"))
