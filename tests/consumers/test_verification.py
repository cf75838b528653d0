"""`verify_on`: XLA's results of the original against a consumer's of the converted module."""

import numpy as np
import pytest
from untyped_mlir import module

from hlo_lower.base.errors import EXIT_DIFFERS, EXIT_NOT_LOWERED, EXIT_OK, InputError
from hlo_lower.consumers import CONSUMERS, IREE, consumer_named
from hlo_lower.consumers.verification import SILENT, verify_on

DOUBLED = module("%a: 3xf32", "%r = add %a, %a")
DYNAMIC = module("%a: ?xf32", "return %a")
LOGITS = module("%a: 3xf32", "%ban = constant -1.0e30 : 1xf32; %y = add %a, %a; %r = concatenate %y, %ban, dim = 0")


def test_a_right_module_is_fine(fake):
    """The summary says on what and in how many runs, the lines how results were compared."""
    verdict = verify_on(fake(), DOUBLED, "double")
    assert (verdict.ok, verdict.exit_code) == (True, EXIT_OK)
    assert verdict.summary() == "Fake any: right in 3 runs"
    assert "each computed float within the bound of its own rounding" in verdict.lines()[1]
    assert verdict.to_json()["outcome"]["result"] == "right"


@pytest.mark.parametrize(
    ("after", "code", "line"),
    [
        ("wrong", EXIT_DIFFERS, "Fake any: wrong: run 1 (in range): result 0 at [0]: expected "),
        ("refuse", EXIT_NOT_LOWERED, "Fake any: refused: cannot take it"),
        ("segfault", EXIT_NOT_LOWERED, "Fake any: crashed: ended by SIGSEGV"),
    ],
)
def test_what_is_not_right_has_its_exit_code(fake, after, code, line):
    """A difference is 1; a refusal or a crash is 3."""
    verdict = verify_on(fake(), DOUBLED, after)
    assert (verdict.ok, verdict.exit_code) == (False, code)
    assert verdict.lines()[0].startswith(line)


def test_zeros_beside_a_large_number_are_not_right(fake):
    """The bound of a computed float is that of its own rounding: beside -1e30 zeros are no logits."""
    assert verify_on(fake(), LOGITS, "logits").ok
    verdict = verify_on(fake(), LOGITS, "no_logits")
    assert (verdict.ok, verdict.exit_code) == (False, EXIT_DIFFERS)
    assert "result 0 at [0]: expected " in verdict.lines()[0]


def test_given_inputs_are_run(fake):
    """One run, on the user's arguments; the op that the consumer names in a refusal has a line of its own."""
    assert "  names: stablehlo.sort" in verify_on(fake(), DOUBLED, "refuse").lines()
    verdict = verify_on(fake(), DOUBLED, "double", inputs=[np.ones(3, np.float32)])
    assert verdict.summary() == "Fake any: right in 1 run"


def test_what_xla_does_not_run_is_not_judged(fake):
    """Without XLA's results there is no verdict, and that is no success."""
    verdict = verify_on(fake(), DYNAMIC, "double")
    assert (verdict.ok, verdict.exit_code) == (False, EXIT_NOT_LOWERED)
    assert verdict.summary() == "Fake any: not judged: dynamic shape tensor<?xf32>"


def test_a_converter_needs_no_results(fake):
    """Where nothing is run, the module may be one that XLA does not run; the lines say that nothing was compared."""
    verdict = verify_on(fake(runs=False), DYNAMIC, "convert")
    assert verdict.ok
    assert verdict.lines() == ["Fake any: converted", "  it does not run here: nothing was compared"]


def test_a_scatter_that_is_not_seen_is_told(fake):
    """Where dropping every update changes nothing, the verdict says that the runs show nothing."""
    lines = "%i = constant PLACE : 1xi32; %s = scatter(%a, %i, %u) <inserted=[0], to=[0]> {assign}; %r = add %s, %s"
    lines = f"%u = constant 5.0 : f32; {lines}"
    unseen, seen = (module("%a: 3xf32", lines.replace("PLACE", place)) for place in ("9", "1"))
    verdict = verify_on(fake(), unseen, "double")
    assert verdict.ok
    assert f"  not exercised: {SILENT}" in verdict.lines()
    verdict = verify_on(fake(), seen, "double")
    assert (verdict.ok, verdict.not_exercised) == (False, ())


def test_one_that_is_not_installed_is_an_error_that_names_the_extra(fake):
    """Nothing is run."""
    with pytest.raises(InputError) as caught:
        verify_on(fake(imports=("surely_not_there",)), DOUBLED, "double")
    assert "Fake is not installed" in str(caught.value)
    assert "pip install 'hlo-lower[fake]'" in str(caught.value)


def test_progress_is_told(fake):
    """The stages are XLA and the consumer."""
    told = []
    verify_on(fake(), DOUBLED, "double", progress=lambda *stage: told.append(stage))
    assert [stage[0] for stage in told] == ["XLA", "fake", "fake"]


def test_consumers_are_found_by_name():
    """An unknown name lists those that exist."""
    assert consumer_named("iree") is IREE
    assert all(consumer.extra == consumer.name for consumer in CONSUMERS)
    with pytest.raises(InputError, match="no consumer named 'tvm'") as caught:
        consumer_named("tvm")
    assert "iree, litert, coreml" in str(caught.value)
