"""Mutants of a module: every op that an operator is for, and one of them changed."""

from collections.abc import Container, Mapping
from dataclasses import dataclass
from random import Random

from hlo_lower.ir import mlir
from mutating.operators import OPERATORS


@dataclass(frozen=True)
class Mutant:
    """A module with one mutation.

    Attributes:
      module, operator, seed: what it was made of.
      what: what was changed, in words.
      key: the number of the op in the walk of the module as it was.
      op: its name.
      text: the mutant.
    """

    module: str
    operator: str
    seed: int
    what: str
    key: int
    op: str
    text: str


def sites(text: str) -> dict[str, list[int]]:
    """By operator, the numbers of the ops that it is for."""
    module = mlir.parse_module(text, mlir.shared_context(len(text)))
    names = [op.name for op in mlir.operations_within(module.operation)]
    return {
        operator: found
        for operator, (ops, _) in OPERATORS.items()
        if (found := [n for n, name in enumerate(names) if not ops or name in ops])
    }


TRIES = 6


def mutant(name: str, text: str, operator: str, seed: int) -> Mutant | None:
    """The mutant of a seed, or None where the operator finds nothing to change in a few tries."""
    found = sites(text).get(operator, [])
    rng = Random(f"{name} {operator} {seed}")
    rng.shuffle(found)
    for key in found[:TRIES]:
        context = mlir.make_context()
        with mlir.active(context):
            module = mlir.parse_module(text, context)
            plain = mlir.print_module(module)
            op = mlir.operations_within(module.operation)[key]
            try:
                what = OPERATORS[operator][1](op, rng)
            except (ValueError, TypeError, KeyError, IndexError):
                continue
            if what is None or mlir.verify_module(module) is not None:
                continue
            changed = mlir.print_module(module)
            if changed != plain:
                return Mutant(name, operator, seed, what, key, op.name, changed)
    return None


def planned(modules: Mapping[str, str], runs: int, seed: int) -> list[tuple[str, int, list[str]]]:
    """Operator, seed and modules of so many mutants: operators in turn, each with modules that have a site for
    it, in the order in which they are to be tried."""
    of_module = {name: sites(text) for name, text in modules.items()}
    places = {op: [name for name in modules if op in of_module[name]] for op in OPERATORS}
    operators = [op for op in OPERATORS if places[op]]
    plan: list[tuple[str, int, list[str]]] = []
    for number in range(seed, seed + runs):
        operator = operators[number % len(operators)]
        rng = Random(number)
        plan.append((operator, number, rng.sample(places[operator], min(len(places[operator]), MODULES_TRIED))))
    return plan


MODULES_TRIED = 12


def made(
    modules: Mapping[str, str], operator: str, seed: int, names: list[str], known: Container[tuple[str, str]] = ()
) -> Mutant | None:
    """The mutant of the first of these modules in which the operator changes something, none of those that are known
    by the module's name and their text."""
    found = (mutant(name, modules[name], operator, seed) for name in names)
    return next((one for one in found if one and (one.module, one.text) not in known), None)
