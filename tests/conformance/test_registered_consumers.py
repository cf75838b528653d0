"""Consumers of installed distributions: found by name, and refused with the reason where they cannot be used."""

import pytest
from untyped_mlir import module

import hlo_lower as hl
from hlo_lower.base.installed import WITHOUT
from hlo_lower.consumers import CONSUMERS, all_consumers, consumer_named
from hlo_lower.consumers.verification import verify_on

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
