"""Hold what is claimed of random index programs against what they compute: XLA runs them, NumPy predicates judge."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from facts_programs import Program
from short_mlir import function

import hlo_lower
from hlo_lower.facts.scatter.predicates import Claims, apply, broken
from hlo_lower.testing.fuzz.index_columns import Array
from hlo_lower.verify.run import Executable

Policy = Literal["xla", "spec"]
POLICIES: tuple[Policy, ...] = ("xla", "spec")


@dataclass(frozen=True)
class Ran:
    """One run of a program with a set of arguments: what it computed."""

    program: Program
    number: int
    indices: Array
    updates: Array


@dataclass(frozen=True)
class Violation:
    """A claim that does not hold: of which program, under which policy, with which set of arguments, and which."""

    seed: int
    oob: str
    number: int
    claim: str


def run_programs(programs: Sequence[Program], sets: int) -> list[Ran]:
    """Compile programs that differ in their seeds as one module and run it with so many sets of hostile arguments."""
    arguments, lines, returned = list[str](), list[str](), list[str]()
    for p in programs:
        given, name = p.lines.arguments, f"%r{p.seed}"
        arguments += [f"%a{p.seed}_{k}: {a.type}" for k, a in enumerate(given)]
        own = ", ".join(f"%a{p.seed}_{k}" for k in range(len(given)))
        lines.append(f"{name}:2 = call @p{p.seed}({own}) -> ({p.indices.type}, {p.updates.type})")
        returned += [f"{name}#0", f"{name}#1"]
    main = function(", ".join(arguments), "\n".join([*lines, f"return {', '.join(returned)}"]))
    executable = Executable(main + "".join(p.computing() for p in programs), "quick")
    ran: list[Ran] = []
    for number in range(sets):
        found = executable.run([v for p in programs for v in p.inputs(number)])
        ran += [Ran(p, number, found[2 * k], found[2 * k + 1]) for k, p in enumerate(programs)]
    return ran


def claimed(programs: Sequence[Program], oob: Policy) -> dict[int, Claims]:
    """What is claimed of each program, by its seed."""
    text = "\n".join(p.scattering for p in programs)
    records = hlo_lower.classify(hlo_lower.read(text), oob=oob)
    claims = {int(record.function.removeprefix("p")): record.claims for record in records}
    return {seed: told for seed, told in claims.items() if told is not None}


def violations(programs: Sequence[Program], ran: Sequence[Ran]) -> list[Violation]:
    """The claims that do not hold in some run, under either policy."""
    found: list[Violation] = []
    for oob in POLICIES:
        claims = claimed(programs, oob)
        for run in ran:
            p = run.program
            at = apply(p.numbers, p.operand_shape, p.updates.shape, run.indices)
            names = broken(claims[p.seed], at, (run.updates,))
            found += [Violation(p.seed, oob, run.number, name) for name in names]
    return found
