"""The parent of the command line: exit codes, signals, limits, and what it does behind a child that dies."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest


@pytest.mark.parametrize("code", [0, 1, 2, 3, 130, 141])
def test_the_exit_code_is_the_commands(outcome, code):
    """Whatever the command returns, the program exits with; what it prints is on the program's streams."""
    assert outcome(f"print('done')\nreturn {code}") == (code, "done\n", "")


def test_standard_input_is_the_commands(start):
    """The child reads what the program is given, and sees whether that is a terminal."""
    process = subprocess.run(
        [
            *(sys.executable, "-c"),
            "import sys; from hlo_lower.base.contained.supervisor import supervised\n"
            "sys.exit(supervised(lambda: print(sys.stdin.read(), sys.stdin.isatty()) or 0))",
        ],
        input="module {}",
        capture_output=True,
        text=True,
        check=False,
    )
    assert (process.returncode, process.stdout) == (0, "module {} False\n")


@pytest.mark.parametrize("name", ["SIGSEGV", "SIGABRT", "SIGBUS", "SIGKILL"])
def test_a_child_that_dies_reading_is_a_bad_input(outcome, name):
    """The message names the module and the signal, the exit code is 2."""
    code, out, err = outcome(f"with reading('m.mlir', 1234):\n    os.kill(os.getpid(), signal.{name})")
    assert (code, out) == (2, "")
    assert err.splitlines() == [
        f"m.mlir: the process that read it died: signal {name}",
        "  facts:   1,234 bytes, damaged or nested too deeply for jaxlib's parser",
        "  next:    export the module again; if it is whole, please report it with the module",
    ]


def test_a_child_that_dies_after_reading_is_told_apart(outcome):
    """What was being worked on is named as the user named it, not as a part that was read meanwhile."""
    code, _, err = outcome("with reading('cut-out', 9):\n    pass\nos.abort()")
    assert code == 2
    assert err.startswith("m.mlir: the process that worked on it died: signal SIGABRT\n")


def test_its_temporary_file_is_removed(outcome, tmp_path):
    """A child that dies while it writes leaves nothing; other files stay."""
    (tmp_path / "kept").touch()
    body = "with temporary_file('.out.tmp'):\n    open('.out.tmp', 'w').write('half')\n    os.abort()"
    assert outcome(body)[0] == 2
    assert [path.name for path in tmp_path.iterdir()] == ["kept"]


def test_a_file_that_was_written_whole_stays(outcome, tmp_path):
    """Only what is not done is removed."""
    outcome("with temporary_file('out'):\n    open('out', 'w').write('whole')\nos.abort()")
    assert (tmp_path / "out").read_text() == "whole"


def test_reading_that_takes_too_long_is_ended(outcome):
    """The message says how long it was given; running and compiling have no limit."""
    code, _, err = outcome("with reading('m.mlir', 10):\n    time.sleep(600)", "status_board.BASE_SECONDS = 0.3")
    assert code == 2
    assert err.startswith("m.mlir: was not read after 0 s, the time for a module of 10 bytes\n")
    assert outcome("time.sleep(1)\nreturn 0", "status_board.BASE_SECONDS = 0.3")[0] == 0


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the memory of a process is read from /proc")
def test_reading_that_takes_too_much_memory_is_ended(outcome):
    """The message says how much it was given."""
    body = "with reading('m.mlir', 10):\n    taken = b'x' * (400 << 20)\n    time.sleep(600)"
    code, _, err = outcome(body, "status_board.BASE_MEMORY = 200 << 20")
    assert code == 2
    assert err.startswith("m.mlir: took more than 0.2 GiB to read, the memory for a module of 10 bytes\n")


def test_lowering_that_takes_too_long_is_ended(outcome):
    """A child that computes in Python and never returns is ended, with a message of four lines and no output."""
    body = "with reading('m.mlir', 10):\n    pass\nwith lowering():\n    while True:\n        pass"
    code, out, err = outcome(body, "status_board.LOWERING_SECONDS = 0.3")
    assert (code, out) == (3, "")
    assert err.splitlines() == [
        "m.mlir: was not lowered after 0 s, the time for a module of 10 bytes",
        "  facts:   it was read; the process that lowered it was ended, and nothing was written",
        "  nearest: a part of it may be lowered: export fewer layers, or its functions one by one",
        "  next:    please report it with the module",
    ]


def test_what_is_read_while_lowering_has_the_time_for_reading(outcome):
    """A copy that is read on the way does not begin the time for lowering anew, nor end it."""
    body = "with lowering():\n    while True:\n        with reading('cut-out', 10):\n            pass"
    code, _, err = outcome(body, "status_board.LOWERING_SECONDS = 0.3")
    assert code == 3
    assert err.startswith("m.mlir: was not lowered after 0 s, the time for a module of 10 bytes\n")


def test_lowering_that_ends_in_time_says_nothing(outcome):
    """What comes after the lowering has no limit again."""
    body = "with lowering():\n    pass\ntime.sleep(1)\nreturn 0"
    assert outcome(body, "status_board.LOWERING_SECONDS = 0.3") == (0, "", "")


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the memory of a process is read from /proc")
def test_lowering_that_takes_too_much_memory_is_ended(outcome):
    """The message says how much it was given."""
    body = "with lowering():\n    taken = b'x' * (400 << 20)\n    time.sleep(600)"
    code, _, err = outcome(body, "status_board.BASE_MEMORY = 200 << 20")
    assert code == 3
    assert err.startswith("m.mlir: took more than 0.2 GiB to lower, the memory for a module of 0 bytes\n")


def test_control_c_reaches_the_command(start):
    """The child ends as it would alone."""
    body = "try:\n    print('ready', flush=True)\n    time.sleep(600)\nexcept KeyboardInterrupt:\n    return 130"
    process = start(body)
    assert process.stdout.readline() == "ready\n"
    process.send_signal(signal.SIGINT)
    assert process.wait(30) == 130


def test_control_c_ends_a_command_that_does_not_heed_it(start):
    """Within native code a child does not notice; it is ended after a while."""
    body = "signal.signal(signal.SIGINT, signal.SIG_IGN)\nprint('ready', flush=True)\ntime.sleep(600)"
    process = start(body, "supervisor.PATIENCE = 0.2")
    assert process.stdout.readline() == "ready\n"
    process.send_signal(signal.SIGINT)
    assert process.wait(30) == 130
    assert process.stderr.read() == "interrupted\n"


def test_termination_is_passed_on(start):
    """SIGTERM ends both, without a word about a bad input."""
    process = start("print('ready', flush=True)\ntime.sleep(600)")
    assert process.stdout.readline() == "ready\n"
    process.terminate()
    assert process.wait(30) == 128 + signal.SIGTERM
    assert process.stderr.read() == ""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux ends a child with its parent")
def test_the_child_does_not_outlive_the_program(start):
    """Whoever kills the program, as a time limit does, leaves nothing running: its output ends."""
    process = start("print(os.getpid(), flush=True)\ntime.sleep(600)")
    child = int(process.stdout.readline())
    assert child != process.pid
    process.kill()
    assert process.communicate(timeout=30)[0] == ""
    until = time.monotonic() + 30
    while Path(f"/proc/{child}/cmdline").exists() and Path(f"/proc/{child}/cmdline").read_bytes():
        assert time.monotonic() < until
        time.sleep(0.02)


def test_a_process_with_jax_runs_the_command_itself():
    """What has JAX or threads is not forked."""
    code = (
        "import os, sys; sys.modules['jax'] = os; pid = os.getpid()\n"
        "from hlo_lower.base.contained.supervisor import supervised\n"
        "sys.exit(supervised(lambda: 7 if os.getpid() == pid else 8))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 7
