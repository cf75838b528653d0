"""References that IREE's compiler loses: a branch moves one away, and what follows still reads its register.

The VM holds references, to buffers and to fences, in registers. A branch passes them on: it copies one (`%r4->%r7`), or
moves it at the last argument that it is passed to (`%R4->%r7`), after which %r4 is null. An argument that keeps the
register of its operand needs neither. If an operand has two arguments, and one of them keeps the register, IREE (3.13)
still moves the other (iree-org/iree#24781 is about it):

```
  vm.br ^bb9(%R3->%r5)                          // ^bb9 has two arguments of %r3: %r5, and %r3 itself
^bb9:
  %r1 = vm.call.variadic @hal.fence.join(%i0, %r1, %R3)
```

A null buffer ends the run. A null fence ends nothing: what should wait for it reads too early, in some runs.

So the registers are followed through all paths of a compiled function. One that was moved away, and not written since,
is lost. An op that reads it proves the mistake, with two exceptions. A register that is null on purpose
(`vm.const.ref.zero`) loses nothing. A fence need not be waited for if the host has waited for it, or if the op also
waits for one that signals no earlier.
"""

import re
import subprocess
from collections.abc import Iterator, Sequence
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

BRANCHES = re.compile(r"\b(stablehlo\.(while|case|if)|scf\.\w+|cf\.\w+)\b")
"""The ops without which a compiled module passes on nothing."""

_REGISTER = re.compile(r"%([rR])(\d+)")
_OPERAND = re.compile(r"%([irR])(\d+)")
_SUCCESSOR = re.compile(r"\^(\w+)\(([^)]*)\)")
_REMAP = re.compile(r"%([rR])(\d+)->%r(\d+)")
_OP = re.compile(r"vm\.[\w.]+(?: @([\w.]+))?")
_NULL, _FREES = "vm.const.ref.zero", "vm.discard.refs"
_JOIN, _AWAIT, _QUEUE = "hal.fence.join", "hal.fence.await", "hal.device.queue."


class LostReference(NamedTuple):
    """A read of a register that a branch moved away: in which function and block, by which op, of which register."""

    function: str
    block: str
    op: str
    register: int

    def __str__(self) -> str:
        """What is wrong, where, and what to do."""
        return (
            f"its compiler loses a reference: in {self.function}, {self.op} in ^{self.block} reads %r{self.register}, "
            "which a branch moved away; let each loop and branch pass an array on only once"
        )


class _Registers(NamedTuple):
    """What is known of the registers at a place.

    Attributes:
      lost: those moved away on some path to there.
      idle: those that nothing can lose, on all paths: null on purpose, or a fence that has signaled.
      after: of each, the registers with fences that signal no earlier than its own, which it may have lost.
    """

    lost: frozenset[int]
    idle: frozenset[int]
    after: dict[int, frozenset[int]]

    def later(self, register: int) -> frozenset[int]:
        """The registers with such fences; one that was never written stands for itself."""
        return self.after.get(register, frozenset((register,)))

    def write(self, register: int, source: int | None = None, idle: bool = False) -> "_Registers":
        """These after a register got what another one holds, or something new."""
        one = frozenset((register,))
        after = {at: held | one if source in held else held - one for at, held in self.after.items()}
        after[register] = one if source is None else after.get(source, self.later(source) | one)
        lost = self.lost | one if source in self.lost else self.lost - one
        return _Registers(lost, self.idle | one if idle or source in self.idle else self.idle - one, after)

    def move(self, register: int) -> "_Registers":
        """These after what a register holds has left it."""
        if register in self.idle:
            return self
        one = frozenset((register,))
        after = {at: held - one for at, held in {register: one, **self.after}.items()}
        return self._replace(lost=self.lost | one, after=after)

    def signal(self, fence: int, waits: frozenset[int]) -> "_Registers":
        """These with a fence that signals after others."""
        after = {at: held | {fence} if held & waits else held for at, held in self.after.items()}
        return self._replace(after=after)

    def signaled(self, fences: frozenset[int]) -> "_Registers":
        """These after the host has waited for fences."""
        idle = frozenset(at for at, held in self.after.items() if held & fences)
        return self._replace(lost=self.lost - idle, idle=self.idle | idle)

    def merge(self, other: "_Registers") -> "_Registers":
        """What holds whichever of two paths was taken: of a register, what the path has on which more can be lost."""
        after: dict[int, frozenset[int]] = {}
        for at in self.after | other.after:
            mine, its = ((at in known.lost) - (at in known.idle) for known in (self, other))
            both = [known.later(at) for known, counts in ((self, mine >= its), (other, its >= mine)) if counts]
            after[at] = both[0] & both[-1]
        return _Registers(self.lost | other.lost, self.idle & other.idle, after)


def lost_reference(binary: bytes) -> LostReference | None:
    """The first reference that a compiled module loses; None where it loses none, is no program of the VM, or this
    release of IREE comes without the tool that shows programs."""
    tool = Path(*import_module("iree._runtime_libs").__path__, "iree-dump-module")
    if not tool.exists():
        return None
    with TemporaryDirectory() as folder:
        path = Path(folder, "module.vmfb")
        path.write_bytes(binary)
        shown = subprocess.run([tool, "--output=disassembly", path], capture_output=True, check=False).stdout
    functions = shown[max(0, shown.find(b"\nvm.func ")) :]  # the constants come before, in hexadecimal digits
    return next(lost_references(functions.decode(errors="replace")), None)


def lost_references(program: str) -> Iterator[LostReference]:
    """The references that a program loses, in the text that IREE's disassembler makes of it."""
    for text in program.split("\nvm.func ")[1:]:
        name, _, body = text.partition("(")
        _, *parts = re.split(r"^\^(\w+):.*\n", body.split("\n}")[0] + "\n", flags=re.MULTILINE)
        lines = ([line.split('"')[0].split("//")[0] for line in part.splitlines()] for part in parts[1::2])
        blocks = dict(zip(parts[::2], lines, strict=True))
        if "%R" in body:
            yield from _lost_in(name, blocks)


def _lost_in(function: str, blocks: dict[str, list[str]]) -> Iterator[LostReference]:
    """Those of one function: first what holds at the start of each block, then what each block reads."""
    entry = next(iter(blocks))
    at, waiting = {entry: _Registers(frozenset(), frozenset(), {})}, [entry]
    while waiting:
        block = waiting.pop()
        for successor, after in _run(blocks[block], at[block])[1]:
            before = at.get(successor)
            at[successor] = after if before is None else before.merge(after)
            if at[successor] != before:
                waiting.append(successor)
    for block in (block for block in blocks if block in at):
        yield from (LostReference(function, block, *read) for read in _run(blocks[block], at[block])[0])


def _run(lines: Sequence[str], known: _Registers) -> tuple[list[tuple[str, int]], list[tuple[str, _Registers]]]:
    """What a block does from there: the ops that read lost registers, and what each block gets that it goes to."""
    reads: list[tuple[str, int]] = []
    goes: list[tuple[str, _Registers]] = []
    for line in lines:
        written, _, told = line.rpartition(" = ")
        found = _OP.search(told)
        if found is None:
            continue
        op, results = found[1] or found[0], [int(number) for _, number in _REGISTER.findall(written)]
        operands = [(kind, int(number)) for kind, number in _OPERAND.findall(told[found.end() :].split("^")[0])]
        held = frozenset(register for kind, register in operands if kind != "i")
        joined = held if op == _JOIN else frozenset[int]()
        if op != _FREES:
            reads += [(op, register) for register in sorted(held & known.lost) if not joined & known.later(register)]
        if op == _AWAIT:
            known = known.signaled(held)
        if op.startswith(_QUEUE):  # the device, its affinity, the fence to wait for, and the one to signal
            known = known.signal(operands[3][1], frozenset((operands[2][1],)))
        before = known
        for register in (register for kind, register in operands if kind == "R"):
            known = known.move(register)
        for register in results:
            known = known.write(register, idle=op == _NULL)
        if joined:
            one = frozenset(results)
            after = {at: held | one if before.later(at) & joined else held for at, held in known.after.items()}
            known = known._replace(after=after)
        goes += [(successor, _passed_on(passed, known)) for successor, passed in _SUCCESSOR.findall(told)]
    return reads, goes


def _passed_on(passed: str, known: _Registers) -> _Registers:
    """What a block gets: registers copied and moved in turn, or those that a call writes, which ends its block."""
    remaps = _REMAP.findall(passed)
    for kind, source, target in remaps:
        known = known.write(int(target), int(source))
        known = known.move(int(source)) if kind == "R" else known
    for _, register in [] if remaps else _REGISTER.findall(passed):
        known = known.write(int(register))
    return known
