"""The rooms of docs/architecture.md: imports point downwards, and the judge imports nothing of the converter."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import hlo_lower

PACKAGE = Path(hlo_lower.__file__).parent
FILES = sorted(PACKAGE.rglob("*.py"))

ROOMS = (
    *("base", "ir", "ops", "verify", "facts", "named", "report", "lowering", "tile", "api", "consumers", "testing"),
    *("cli", "plugin", "__init__", "__main__"),
)
"""A room imports itself and what stands before it; the public names (`import hlo_lower as hl`) are for `cli` too."""

NARROWER = {
    # the judge looks at two texts, and at nothing of who wrote them
    "verify": ("base.", "ir.mlir", "ir.jax_compile.", "ir.shapes.", "ops.spec.", "ops.names."),
    "verify.pull": (
        *("base.errors.", "base.element_types.", "ir.mlir", "ops.spec.", "ops.names."),
        *("verify.pull.", "verify.read.", "verify.patience."),
    ),
    "base.rule": ("base.",),
    "ops.targets": ("base.", "ir.mlir", "ops."),  # names of ops are checked against jaxlib
    "base.drawing": ("base.",),
}
"""What of the rooms before it a room, or a part of one, may import."""

JAX_INTERNALS = ("jaxlib.", "jax._src.", "jax.extend.", "jax.interpreters.")


def imports(file):
    """Every module that a file imports, at any depth, `from a import b` as "a.b"."""
    found = set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "relative import"
            found.update(f"{node.module}.{alias.name}" for alias in node.names)
    return found


@pytest.fixture(scope="module")
def imported():
    """What each file imports, by its dotted name below the package: "ir.view", "base.drawing.__init__", "__init__"."""
    return {".".join(file.relative_to(PACKAGE).with_suffix("").parts): imports(file) for file in FILES}


@pytest.fixture(scope="module")
def own(imported):
    """What of that is of the package, below the package: "ir.view.Node", "ir.mlir"."""
    start = "hlo_lower."
    return {file: {n.removeprefix(start) for n in names if n.startswith(start)} for file, names in imported.items()}


def violations(name, imported):
    """What a file imports and may not."""
    room = name.split(".")[0]
    wrong = {other for other in imported if other.split(".")[0] not in ROOMS[: ROOMS.index(room) + 1]}
    for part, allowed in NARROWER.items():
        if f"{name}.".startswith(f"{part}."):
            wrong |= {other for other in imported if not f"{other}.".startswith((*allowed, f"{part}."))}
    return wrong


def test_imports_point_downwards(own):
    """Every import points to a room that stands before the file's own; there is no other, and none called utils."""
    assert {name: found for name, names in own.items() if (found := violations(name, names))} == {}
    assert {name.split(".")[0] for name in own} == set(ROOMS)
    assert {file.stem for file in FILES} & {"utils", "util", "helpers", "helper", "common", "misc"} == set()


@pytest.mark.parametrize(
    ("name", "imported", "wrong"),
    [
        ("ir.reader", {"ir.mlir", "facts.scatter.record.Fact"}, "facts.scatter.record.Fact"),
        ("verify.regions", {"ir.mlir", "ir.shapes.bind.bind_module", "ir.view.Node"}, "ir.view.Node"),
        ("verify.pull.derive", {"base.errors.InputError", "verify.regions.Judge"}, "verify.regions.Judge"),
        ("base.rule", {"ir.mlir"}, "ir.mlir"),
    ],
)
def test_the_check_of_rooms_can_fail(name, imported, wrong):
    """An import upwards, and a judge that reads the converter's view, are found."""
    assert violations(name, imported) == {wrong}


def test_only_who_speaks_to_a_person_puts_causes_into_words(own):
    """Reports, errors and the table of rules have sentences; what analyses and decides has codes."""
    using = {file for file, names in own.items() if any(n.startswith("base.english") for n in names)}
    lowering = {"lowering.engine.engine", "lowering.lowered", "lowering.scatter.kind", "lowering.scatter.scatters"}
    assert {"api.functions", "base.change", "base.rule", *lowering} == {
        name for name in using if not name.startswith("report.")
    }
    assert {f"report.{name}" for name in ("explain", "row", "module", "headline")} <= using


def test_only_mlir_imports_the_internals_of_jax(imported):
    """jaxlib, jax.extend, jax.interpreters and jax._src are imported by ir/mlir.py alone, and there not privately."""
    internal = {file: {n for n in names if f"{n}.".startswith(JAX_INTERNALS)} for file, names in imported.items()}
    assert {file for file, names in internal.items() if names} == {"ir.mlir"}
    assert not [name for name in internal["ir.mlir"] if name.startswith(("jax._src", "jaxlib"))]


def test_the_judge_loads_nothing_of_the_converter():
    """In a fresh process `import hlo_lower.verify` brings in no room but those that it may import."""
    code = "import sys, hlo_lower.verify; print(*sorted(n for n in sys.modules if n.startswith('hlo_lower.')))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = {name.removeprefix("hlo_lower.") for name in done.stdout.split()}
    assert {name.split(".")[0] for name in loaded} == {"base", "ir", "ops", "verify"}
    of_ir = {name for name in loaded if name.startswith("ir.")}
    assert all(name.startswith(("ir.mlir", "ir.jax_compile", "ir.shapes")) for name in of_ir)
    assert {name for name in loaded if name.startswith("ops.")} == {"ops.spec", "ops.names"}


def test_the_picture_of_the_rooms_is_current():
    """The flowchart in docs/architecture.md is that of the imports, and `scripts/draw_rooms.py --write` renews it."""
    root = PACKAGE.parent
    page = (root / "docs" / "architecture.md").read_text()
    program = "import sys; sys.path.insert(0, 'scripts'); import draw_rooms as d; print(d.picture(), end='')"
    done = subprocess.run([sys.executable, "-c", program], cwd=root, capture_output=True, text=True, check=True)
    assert done.stdout.count("-->") >= 12
    assert done.stdout in page


def test_a_consumers_child_starts_without_jax():
    """It takes a second otherwise, in each of many processes."""
    code = "import sys, hlo_lower.consumers.consumer_worker; print('jax' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
