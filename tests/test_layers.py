"""The layers of docs/architecture.md, held by reading the imports of every file."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import hlo_lower

PACKAGE = Path(hlo_lower.__file__).parent
FILES = sorted(PACKAGE.rglob("*.py"))

ORDER = (
    *(
        "arguments",
        "vocabulary",
        "installed",
        "causes",
        "refused_forms",
        "refused",
        "english",
        "change",
        "memory",
        "short_forms",
        "answering_child",
        "containment",
        "processes",
        "whole_files",
        "mlir",
        "shapes",
        "graph",
        "registry",
        "analysis",
        "subset",
        "drawing",
        "named",
    ),
    *("loop", "scatter", "gather"),
    *("sorting", "lowerings", "targets", "spelling", "naming", "options", "rewrite", "rule_api", "plugins", "legalize"),
    *("linalg", "verify", "tile", "report", "export", "pipeline", "survey", "module_forms", "verified", "converted"),
    *(
        "selection",
        "consumers",
        "testing",
        "tiling",
        "jit",
        "named_attributes",
        "named_function",
        "api",
        "proving",
        "conformance",
        "__init__",
        "cli",
        "__main__",
    ),
)
"""A layer imports itself, `errors`, `arguments` and what stands before it."""

NARROWER = {
    "shapes": ("mlir",),
    "english": ("causes",),
    "change": ("causes", "english"),
    "analysis": ("causes", "mlir", "graph", "shapes"),  # nor what is above them, the English: they give causes
    "scatter": ("causes", "mlir", "graph", "shapes", "registry", "analysis", "subset", "loop"),
    "registry": ("causes",),
    # Names of ops are checked against jaxlib; a target has its table of costs.
    "targets": ("causes", "mlir", "refused_forms", "scatter.costs", "vocabulary"),
    # The judge looks at two texts, and at nothing of those who wrote one of them.
    "verify": ("answering_child", "mlir", "processes", "shapes"),
    # It writes like a converter and measures like the judge; it verifies nothing.
    "tile": ("memory", "short_forms", "drawing", "mlir", "graph", "subset", "loop", "processes", "verify.run"),
    # What is drawn is data; who draws knows nothing of scatters or of plans.
    "drawing": ("memory", "short_forms", "subset.tensor_subset"),
    "report": (
        *("causes", "change", "english", "memory", "short_forms", "refused", "drawing"),
        *("scatter.record", "named.record"),
    ),
}
"""Layers that are allowed less than everything before them, `errors`, `arguments` and their own files aside."""

READING = ("compare", "elementwise_ops", "moves", "numbering", "program", "run")
PROOF = ("mlir", "errors", "verify.proof", *(f"verify.{name}" for name in READING))
"""What the prover may import: it is a judge, so nothing that analyses, lowers or rewrites, nor the graph."""

JAX_INTERNALS = ("jaxlib", "jax._src", "jax.extend", "jax.interpreters")


def name_of(file: Path) -> str:
    """The dotted name below the package: "graph.view", "mlir", "__init__"."""
    return ".".join(file.relative_to(PACKAGE).with_suffix("").parts)


def imports(tree: ast.AST) -> set[str]:
    """Every module that a file imports, at any depth, `from a import b` as "a.b"."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "relative import"
            found.update(f"{node.module}.{alias.name}" for alias in node.names)
    return found


def own_imports(file: Path) -> set[str]:
    """What a file imports of the package, below the package: "graph.Node", "mlir"."""
    found = imports(ast.parse(file.read_text()))
    return {name.removeprefix("hlo_lower.") for name in found if name.startswith("hlo_lower.")}


def violations(layer: str, imported: set[str]) -> set[str]:
    """The imports that a layer may not make."""
    if layer == "errors":
        return imported
    wrong: set[str] = set()
    for name in imported:
        head = name.split(".")[0]
        if head in (layer, "errors", "arguments"):
            continue
        if layer in NARROWER:
            allowed = any(name == part or name.startswith(f"{part}.") for part in NARROWER[layer])
        else:
            allowed = head in ORDER[: ORDER.index(layer)]
        if not allowed:
            wrong.add(name)
    return wrong


@pytest.mark.parametrize("file", FILES, ids=name_of)
def test_a_layer_imports_only_layers_before_it(file):
    """Every import of the package points to a layer that stands before the file's own."""
    assert set() == violations(name_of(file).split(".")[0], own_imports(file))


def test_every_file_belongs_to_a_layer():
    """A file outside the list of layers has no place in the house."""
    assert {"errors", *ORDER} >= {name_of(file).split(".")[0] for file in FILES}


def test_only_who_speaks_to_a_person_puts_causes_into_words():
    """Reports, errors and the table of rules have sentences; what analyses and decides has codes."""
    using = {name_of(file) for file in FILES if any(n.startswith("english") for n in own_imports(file))}
    rewriting = {f"rewrite.{name}" for name in ("engine", "kinds.scatter", "scatters")}
    assert {"api", "change", *rewriting} == {name for name in using if not name.startswith("report.")}
    assert {f"report.{name}" for name in ("explain", "row", "module", "headline")} <= using


def test_the_prover_is_independent():
    """It imports how the judge reads and runs modules, and itself."""
    files = [file for file in FILES if name_of(file).startswith("verify.proof")]
    assert len(files) > 20
    imported = {name for file in files for name in own_imports(file)}
    assert set() == {n for n in imported if not any(n == part or n.startswith(f"{part}.") for part in PROOF)}


def test_the_check_of_layers_can_fail():
    """An import upwards, and verify reading the graph, are found."""
    assert {"lowerings.default_registry"} == violations("graph", {"mlir", "lowerings.default_registry"})
    assert {"graph.read"} == violations("verify", {"mlir", "shapes.bind_module", "graph.read"})
    assert {"scatter.spread", "gather.reference"} == violations(
        "verify", {"scatter.spread", "gather.reference", "errors"}
    )
    assert {"graph.Node"} == violations("registry", {"errors.RegistryError", "graph.Node"})
    assert {"scatter.facts.ScatterFacts"} == violations("report", {"scatter.record.Fact", "scatter.facts.ScatterFacts"})


def test_only_mlir_imports_the_internals_of_jax():
    """jaxlib, jax.extend, jax.interpreters and jax._src are imported by mlir.py alone."""
    using = {
        name_of(file)
        for file in FILES
        for name in imports(ast.parse(file.read_text()))
        if any(name == inner or name.startswith(f"{inner}.") for inner in JAX_INTERNALS)
    }
    assert {"mlir"} == using


def test_mlir_uses_no_private_name_of_jax():
    """mlir.py takes nothing from jax._src and nothing from jaxlib directly."""
    found = imports(ast.parse((PACKAGE / "mlir.py").read_text()))
    assert set() == {name for name in found if name.startswith(("jax._src", "jaxlib"))}


def test_no_file_is_named_after_nothing():
    """No file is called utils, helpers, common or misc."""
    assert set() == {file.stem for file in FILES} & {"utils", "util", "helpers", "helper", "common", "misc"}


OF_THE_CONVERTER = (
    *("analysis", "scatter", "gather", "lowerings", "graph", "registry", "plan", "pipeline", "legalize", "rewrite"),
    *("subset", "loop", "tile", "linalg", "targets", "plugins", "options", "selection"),
)


def test_the_judge_loads_nothing_of_the_converter():
    """In a fresh process `import hlo_lower.verify` brings in no module that classifies, rewrites or plans."""
    code = "import sys, hlo_lower.verify; print(*sorted(n for n in sys.modules if n.startswith('hlo_lower.')))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = {name.split(".")[1] for name in done.stdout.split()}
    assert "verify" in loaded
    assert set() == loaded & set(OF_THE_CONVERTER)
    assert {"verify", "mlir", "answering_child", "processes", "shapes", "errors", "arguments"} >= loaded
