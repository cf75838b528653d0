"""Damaged and extreme inputs at both front doors: no crash, no hang, no output."""

import shlex
import subprocess
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest

import hlo_lower as hl

SCRIPTS = Path(__file__).parents[2] / "scripts"


def script(name):
    """A script as a module."""
    spec = spec_from_file_location(name, SCRIPTS / f"{name}.py")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


mutations = script("mutations")
WHOLE = {"many_elements"}
"""Extremes that are modules all the same."""


@pytest.mark.few(12)
@pytest.mark.parametrize("name", sorted(mutations.EXTREMES))
def test_an_extreme_input(name):
    """Nesting, sizes, names and cuts beyond what a parser expects are errors, one after the other in one process."""
    data = mutations.EXTREMES[name]
    if name in WHOLE:
        assert hl.lower(data).records == ()
        return
    with pytest.raises(hl.InputError) as caught:
        hl.lower(data, name="extreme")
    assert str(caught.value).startswith("extreme:")
    assert "internal" not in str(caught.value)
    assert caught.value.next_step


def test_mutations_depend_on_the_seed_alone():
    """An input that fails can be made again; two seeds differ."""
    seeds = {"a": b"func.func public @main() { return }" * 3, "b": b"ML\xefR" + bytes(range(256))}
    made = [mutations.mutated(seed, seeds) for seed in range(60)]
    assert made == [mutations.mutated(seed, seeds) for seed in range(60)]
    assert len(set(made)) > 40


def test_the_outcomes_that_fail_are_told_apart():
    """A traceback, silence and a leftover are failures; a clear error is none."""
    fuzz = script("fuzz_inputs")
    assert fuzz._outcome_of("m.mlir:1:1: expected '}'") == "clear error"
    assert fuzz._outcome_of("m: the process that read it died: signal SIGSEGV") == "contained crash"
    assert fuzz._outcome_of("m: was not read after 60 s, the time for a module of 9 bytes") == "over a limit"
    for message in ("Traceback (most recent call last)", "hlo-lower: internal error: KeyError: 'x'"):
        assert fuzz._outcome_of(message) == "TRACEBACK"
    assert fuzz._outcome_of("") == "NO MESSAGE"
    assert {"TRACEBACK", "NO MESSAGE"} <= set(fuzz.BAD)


@pytest.mark.sweep
@pytest.mark.parametrize("argv", ["--runs 16 --seed 5 --models ''", "--runs 2000 --seed 1"])
def test_both_doors_refuse_what_is_damaged(argv, tmp_path):
    """Inputs through the library and the command line: no crash, no hang, and nothing is left."""
    command = [sys.executable, str(SCRIPTS / "fuzz_inputs.py"), *shlex.split(argv)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{argv.split()[1]} inputs made of " in done.stdout.splitlines()[-1].replace(",", "")
    assert list(tmp_path.iterdir()) == []
