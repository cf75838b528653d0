"""Consumers of installed distributions: found by name, and refused with the reason where they cannot be used."""

import pytest

import hlo_lower as hl
from hlo_lower.base.installed import WITHOUT
from hlo_lower.consumers import CONSUMERS, all_consumers, consumer_named
from hlo_lower.consumers.verification import verify_on

NPU = "from hlo_lower.consumers import Consumer\nNPU = Consumer('NAME', 'NPU', driver=__name__)\n"
MODULE = """func.func public @main(%a: tensor<3xf32>) -> tensor<3xf32> {
  %r = stablehlo.add %a, %a : tensor<3xf32>
  return %r : tensor<3xf32>
}"""


def refused():
    """What is said where an installed consumer cannot be used."""
    with pytest.raises(hl.PluginError) as error:
        all_consumers()
    assert f"{WITHOUT}=1 runs without plug-ins" in error.value.next_step
    return str(error.value)


def test_the_example_is_found_and_runs_modules(example):
    """It stands behind the built-in ones, and `verify --on` judges by it in a child process."""
    assert [*(c.name for c in CONSUMERS), "xla"] == [c.name for c in all_consumers()]
    verdict = verify_on(consumer_named("xla"), MODULE, MODULE.replace("add", "subtract"), runs=1)
    assert (verdict.outcome.result, verdict.exit_code) == ("wrong", 1)


def test_without_plugins_there_are_only_the_built_in_ones(example, monkeypatch):
    """The environment variable that leaves rules out leaves consumers out, too."""
    monkeypatch.setenv(WITHOUT, "1")
    assert all_consumers() == CONSUMERS


def test_a_name_is_taken_once(install):
    """A consumer of a built-in one's name is an error that names the distribution."""
    install("my-npu", "npu = my_npu:NPU", source=NPU.replace("NAME", "iree"))
    told = refused()
    assert "my-npu 1.0, entry point npu of hlo_lower.consumers" in told
    assert "there is another consumer named 'iree'" in told


def test_what_is_no_consumer_is_told(install):
    """An entry point that names something else says what it is."""
    install("my-npu", "npu = my_npu:NAME", source="NAME = 'npu'\n")
    assert "my_npu:NAME is a str, not a Consumer" in refused()


def test_what_does_not_import_is_told(install):
    """So does one whose module fails."""
    install("my-npu", "npu = my_npu:NPU", source="import of_nobody\n")
    assert "cannot be imported: ModuleNotFoundError: No module named 'of_nobody'" in refused()


def test_a_consumer_without_an_extra_says_what_to_install(install):
    """The error names the distribution that is missing."""
    source = NPU.replace("driver=__name__", "driver=__name__, imports=('of_nobody',), package='npu-tools'")
    install("my-npu", "npu = my_npu:NPU", source=source.replace("NAME", "npu"))
    with pytest.raises(hl.InputError, match="pip install npu-tools"):
        consumer_named("npu").require()
