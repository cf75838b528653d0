"""The parent of the command line: exit codes, signals, limits, and what it does behind a child that dies."""

import signal
import subprocess
import sys
import time
from pathlib import Path
from textwrap import indent

import pytest

PROGRAM = """\
import os, resource, signal, sys, time
from hlo_lower.base.contained import status_board, supervisor
from hlo_lower.base.contained.status_board import lowering, reading, temporary_file
from hlo_lower.base.contained.supervisor import run_supervised
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
signal.signal(signal.SIGINT, signal.default_int_handler)  # whoever runs the tests in the background may ignore it
BEFORE
def run():
BODY
sys.exit(run_supervised(run, ["m.mlir"], lambda message: print(message, file=sys.stderr)))
"""


@pytest.fixture
def start(tmp_path):
    """Start a program, without JAX, whose command has this body; what stands before it may be given, too."""
    started = []

    def program(body, before=""):
        code = PROGRAM.replace("BEFORE", before).replace("BODY", indent(body, "    "))
        pipes = dict.fromkeys(("stdout", "stderr"), subprocess.PIPE)
        started.append(subprocess.Popen([sys.executable, "-c", code], cwd=tmp_path, text=True, **pipes))
        return started[-1]

    yield program
    for process in started:
        process.kill()
        process.communicate()


@pytest.fixture
def outcome(start):
    """Run such a program to its end: exit code, standard output, standard error."""

    def run(*text):
        process = start(*text)
        out, err = process.communicate(timeout=60)
        return process.returncode, out, err

    return run


@pytest.mark.parametrize("code", [0, 3, 130])
def test_the_exit_code_is_the_commands(outcome, code):
    """Whatever the command returns, the program exits with; what it prints is on the program's streams."""
    assert outcome(f"print('done')\nreturn {code}") == (code, "done\n", "")


def run(code, **how):
    """Run Python that begins with the import of the supervisor."""
    code = f"import os, sys; from hlo_lower.base.contained.supervisor import run_supervised\n{code}"
    return subprocess.run([sys.executable, "-c", code], text=True, capture_output=True, check=False, **how)


def test_standard_input_is_the_commands():
    """The child reads what the program is given, and sees whether that is a terminal; with JAX there is no child."""
    done = run("sys.exit(run_supervised(lambda: print(sys.stdin.read(), sys.stdin.isatty()) or 0))", input="module {}")
    assert (done.returncode, done.stdout) == (0, "module {} False\n")
    own = "pid = os.getpid(); sys.exit(run_supervised(lambda: 7 if os.getpid() == pid else 8))"
    assert [run(how + own).returncode for how in ("", "sys.modules['jax'] = os; ")] == [8, 7]


READING, LOWERING = "with reading('m.mlir', 1234):\n    ", "with lowering():\n    "
GROWS = "taken = b'x' * (400 << 20)\n    time.sleep(600)"
QUICK, SMALL = "status_board.BASE_SECONDS = 0.3", "status_board.BASE_MEMORY = 200 << 20"
AT_ONCE = "status_board.LOWERING_SECONDS = 0.3"
DIED = [
    "  facts:   1,234 bytes, damaged or nested too deeply for jaxlib's parser",
    "  next:    export the module again; if it is whole, please report it with the module",
]
NOT_LOWERED = [
    "  facts:   it was read; the process that lowered it was ended, and nothing was written",
    "  nearest: a part of it may be lowered: export fewer layers, or its functions one by one",
    "  next:    please report it with the module",
]
ENDS = {  # what the command does, what is set before, the exit code, and what is told of the module
    "dies reading": (f"{READING}os.abort()", "", 2, ["the process that read it died: signal SIGABRT", *DIED]),
    "is killed": (f"{READING}os.kill(os.getpid(), 9)", "", 2, ["the process that read it died: signal SIGKILL", *DIED]),
    "dies working, after it has read a part": (
        *("with reading('cut-out', 9):\n    pass\nos.abort()", "", 2),
        ["the process that worked on it died: signal SIGABRT"],
    ),
    "reads long": (
        *(f"{READING}time.sleep(600)", QUICK, 2),
        ["was not read after 0 s, the time for a module of 1,234 bytes"],
    ),
    "reads large": (
        *(READING + GROWS, SMALL, 2),
        ["took more than 0.2 GiB to read, the memory for a module of 1,234 bytes"],
    ),
    "lowers long": (
        *(f"with reading('m.mlir', 10):\n    pass\n{LOWERING}while True:\n        pass", AT_ONCE, 3),
        ["was not lowered after 0 s, the time for a module of 10 bytes", *NOT_LOWERED],
    ),
    "lowers long, and reads meanwhile": (
        *(f"{LOWERING}while True:\n        with reading('cut-out', 10):\n            pass", AT_ONCE, 3),
        ["was not lowered after 0 s, the time for a module of 10 bytes"],
    ),
    "lowers large": (
        *(LOWERING + GROWS, SMALL, 3),
        ["took more than 0.2 GiB to lower, the memory for a module of 0 bytes", *NOT_LOWERED],
    ),
    "is in time, and works on without a limit": (
        *(f"{READING}pass\n{LOWERING}pass\ntime.sleep(1)\nreturn 0", f"{QUICK}\n{AT_ONCE}", 0),
        [],
    ),
}


@pytest.mark.parametrize("what", ENDS)
def test_how_a_child_ends(outcome, what):
    """The module is named as the user named it, with the signal or the limit, and a next step; nothing is printed."""
    body, before, code, told = ENDS[what]
    if "large" in what and not sys.platform.startswith("linux"):
        pytest.skip("the memory of a process is read from /proc")
    found, out, err = outcome(body, before)
    assert (found, out, bool(err)) == (code, "", bool(told))
    told = [f"m.mlir: {line}" if k == 0 else line for k, line in enumerate(told)]
    assert err.splitlines()[: len(told)] == told


def test_its_temporary_file_is_removed(outcome, tmp_path):
    """A child that dies while it writes leaves neither file nor folder; other files, and one that is whole, stay."""
    (tmp_path / "kept").touch()
    write = "with temporary_file('{0}'):\n    open('{0}', 'w').write('text')\n    {1}\nos.abort()"
    assert outcome(write.format(".out.tmp", "os.abort()"))[0] == 2
    assert outcome(write.format("whole", "pass"))[0] == 2
    room = "os.mkdir('room')\nwith temporary_file('room'):\n    open('room/m.vmfb', 'w').write('half')\n    os.abort()"
    assert outcome(room)[0] == 2
    assert sorted(path.name for path in tmp_path.iterdir()) == ["kept", "whole"]


SLEEPS = "print('ready', flush=True)\ntime.sleep(600)"
HEEDS = f"try:\n    {SLEEPS.replace(chr(10), chr(10) + '    ')}\nexcept KeyboardInterrupt:\n    return 131"
IGNORES = f"signal.signal(signal.SIGINT, signal.SIG_IGN)\n{SLEEPS}"


@pytest.mark.parametrize(
    ("number", "body", "code", "told"),
    [
        (signal.SIGINT, HEEDS, 131, ""),
        (signal.SIGINT, IGNORES, 130, "interrupted\n"),  # within native code a child does not notice
        (signal.SIGTERM, SLEEPS, 128 + signal.SIGTERM, ""),
    ],
    ids=["control-c", "control-c that is not heeded", "termination"],
)
def test_signals_reach_the_command(start, number, body, code, told):
    """The child ends as it would alone; one that does not heed Control-C is ended; no word of a bad input."""
    process = start(body, "supervisor.PATIENCE = 0.2")
    assert process.stdout.readline() == "ready\n"
    process.send_signal(number)
    assert process.wait(30) == code
    assert process.stderr.read() == told


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
