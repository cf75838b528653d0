"""`hlo-lower conformance`: the suite, the table, and consumers, installed ones too, that err or cannot be used."""

import json
from dataclasses import replace

import numpy as np
import pytest
from untyped_mlir import module

import hlo_lower as hl
from hlo_lower.base.errors import InputError
from hlo_lower.base.installed import WITHOUT
from hlo_lower.cli import main
from hlo_lower.consumers import CONSUMERS, IREE, ConsumerOutcome, all_consumers, consumer_named
from hlo_lower.consumers.verification import verify_on
from hlo_lower.testing.conformance.conformance_run import Check
from hlo_lower.testing.conformance.conformance_table import exit_code, lines
from hlo_lower.testing.conformance.suite import FORMS, SUITE, select_modules
from hlo_lower.testing.conformance.suite_arguments import INDICES, runs_of

FEW = ("--only", "rows/affine/i32/i32", "--only", "batched/add/*")


@pytest.fixture
def conformance(capfdbinary):
    """Run the command; give its exit code and what it printed."""

    def run(*argv):
        code = main(("conformance", *argv))
        out, err = capfdbinary.readouterr()
        return code, out.decode(), err.decode()

    return run


def test_xla_is_right_by_the_definition(example, conformance):
    """The reference in NumPy and XLA's own scatter agree, and what is converted computes the same."""
    code, out, _ = conformance("--on", "xla", "--target", "stablehlo", *FEW)
    assert code == 0
    assert "XLA (CPU) " in out
    assert "|  | native right | converted right |" in out
    assert "| all | 8 | 8 |" in out
    assert "| combiner affine | 4 | 4 |" in out
    assert "Gained by conversion: 0. Lost: 0." in out


def test_what_a_consumer_does_wrong_is_found(clamping, conformance):
    """Each set of indices is judged by itself: clamped ones are wrong out of bounds, a death spoils no other."""
    only = [f for name in ("assign", "maximum") for f in ("--only", f"rows/{name}/i32/i32")]
    code, out, _ = conformance("--on", "clamping", "--json", *only)
    told = json.loads(out)
    found = {(c["module"].split("/")[1], c["indices"]): c["native"]["result"] for c in told["checks"]}
    assert code == 3  # it takes nothing that is converted
    assert told["converted"] == {"refused": 8}
    assert [found["assign", indices] for indices in INDICES] == ["right", "right", "wrong", "crashed"]
    assert {"refused"} == {found["maximum", indices] for indices in INDICES}


def checks(*results):
    """A check for each pair of results."""
    told = [[ConsumerOutcome("npu", result) for result in pair] for pair in results]
    return [Check("rows/add/f32/i32", "distinct", *pair) for pair in told]


def test_exit_code_and_table():
    """The converted decide: 0 right, 1 wrong, 3 not taken; those that end alike stand in one line."""
    assert exit_code(checks(("crashed", "right"), ("refused", "converted"))) == 0
    assert exit_code(checks(("right", "refused"), ("right", "wrong"))) == 1
    assert exit_code(checks(("right", "crashed"))) == 3
    [first, second] = checks(("right", "refused"), ("crashed", "refused"))
    told = replace(first.converted, message="no sort")
    text = "\n".join(lines("NPU 1", [replace(first, converted=told), replace(second, converted=told)]))
    assert "| all | 1 | 1 | 2 |" in text
    assert "Lost: 1." in text
    assert "- refused: no sort: rows/add/f32/i32 (distinct), rows/add/f32/i32 (distinct)" in text


def test_indices_are_what_they_are_called():
    """Distinct windows lie in bounds and do not overlap; duplicates repeat; every other far window is outside."""
    for name in FORMS:
        module = next(m for m in SUITE if (m.form, m.combiner) == (name, "add"))
        case, runs = module.case.form, {run.what: run for run in runs_of(module, "xla")}
        assert set(INDICES) == set(runs)
        given = {what: run.arguments[2] for what, run in runs.items()}
        last = -1 if case.implicit else case.index_vector_dim
        flat = {k: v[..., None] if case.implicit else np.moveaxis(v, last, -1) for k, v in given.items()}
        sizes, steps = np.array([case.extent(c) for c in case.columns]).T
        high = sizes - steps
        inside = {what: ((v >= 0) & (v <= high)).all(-1).reshape(-1) for what, v in flat.items()}
        assert inside["distinct"].all()
        assert inside["duplicates"].all()
        assert len(np.unique(flat["duplicates"].reshape(-1, len(high)), axis=0)) <= 2
        batch = case.positions[0] if case.batching else 1
        cells = (flat["distinct"] // steps).reshape(batch, -1, len(high))
        assert all(len(np.unique(rows, axis=0)) == len(rows) for rows in cells)
        assert not inside["out of bounds"][::2].any()
        assert not inside["far out"][::2].any()
        assert inside["far out"][1::2].all()


def test_the_suite_has_every_form_combiner_and_type(conformance):
    """82 modules, each of a name of its own; a pattern and a consumer that are none are errors."""
    assert len({m.name for m in SUITE}) == len(SUITE) == 82
    assert {m.form for m in SUITE} == set(FORMS)
    with pytest.raises(InputError, match="no module of the suite fits lines/"):
        select_modules(["lines/*"])
    code, _, err = conformance("--on", "tpu")
    assert (code, "consumers: iree, litert, coreml" in err) == (2, True)


@pytest.mark.sweep
@pytest.mark.parametrize("oob", ["xla", "spec"])
def test_the_whole_suite_converted_on_xla(example, conformance, oob):
    """Under both policies each converted scatter computes what the definition says."""
    code, out, _ = conformance("--on", "xla", "--target", "stablehlo", "--oob", oob)
    assert code == 0, out


@pytest.mark.sweep
@pytest.mark.skipif(not IREE.version(), reason="the extra iree is not installed")
def test_iree_is_right_on_what_is_converted(conformance):
    """Rows in every combiner on i32, as IREE's target lowers them."""
    code, out, _ = conformance("--on", "iree", "--only", "rows/*/i32/i32", "--jobs", "2")
    assert code == 0, out


NPU = "from hlo_lower.consumers import Consumer\nNPU = Consumer('NAME', 'NPU', driver=__name__)\n"


def test_the_example_is_found_and_runs_modules(example, monkeypatch):
    """It stands behind the built-in ones, and `verify --on` judges by it in a child; a variable leaves it out."""
    assert [*(c.name for c in CONSUMERS), "xla"] == [c.name for c in all_consumers()]
    right, wrong = (module("%a: 3xf32", f"%r = {op} %a, %a") for op in ("add", "subtract"))
    verdict = verify_on(consumer_named("xla"), right, wrong, runs=1)
    assert (verdict.outcome.result, verdict.exit_code) == ("wrong", 1)
    monkeypatch.setenv(WITHOUT, "1")
    assert all_consumers() == CONSUMERS


@pytest.mark.parametrize(
    ("point", "source", "says"),
    [
        ("my_npu:NPU", NPU.replace("NAME", "iree"), "there is another consumer named 'iree'"),
        ("my_npu:NAME", "NAME = 'npu'\n", "my_npu:NAME is a str, not a Consumer"),
        ("my_npu:NPU", "import of_nobody\n", "cannot be imported: ModuleNotFoundError: No module named 'of_nobody'"),
    ],
)
def test_what_cannot_be_used_is_told(install, point, source, says):
    """A name that is taken, what is no consumer and what does not import are errors that name the distribution."""
    install("my-npu", f"npu = {point}", source=source)
    with pytest.raises(hl.PluginError) as error:
        all_consumers()
    assert f"{WITHOUT}=1 runs without plug-ins" in error.value.next_step
    assert "my-npu 1.0, entry point npu of hlo_lower.consumers" in str(error.value)
    assert says in str(error.value)


def test_a_consumer_without_an_extra_says_what_to_install(install):
    """The error names the distribution that is missing."""
    source = NPU.replace("driver=__name__", "driver=__name__, imports=('of_nobody',), package='npu-tools'")
    install("my-npu", "npu = my_npu:NPU", source=source.replace("NAME", "npu"))
    with pytest.raises(hl.InputError, match="pip install npu-tools"):
        consumer_named("npu").require()
