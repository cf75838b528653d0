"""The question to the solver: are there arguments for which two modules give different results?"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from hlo_lower.verify.proof.beyond import Beyond
from hlo_lower.verify.proof.elements import ProofType
from hlo_lower.verify.proof.evaluator import Evaluator
from hlo_lower.verify.proof.operation import element_name, static_shape
from hlo_lower.verify.proof.solver import z3
from hlo_lower.verify.proof.tensors import Tensor, built
from hlo_lower.verify.proof.terms import equal, is_known, opposite
from hlo_lower.verify.proof.world import World
from hlo_lower.verify.read.program import Body, Program, ValueId


@dataclass(frozen=True)
class Typed:
    """A tensor of terms with its element type."""

    tensor: Tensor
    element: ProofType


@dataclass(frozen=True)
class Answer:
    """What the solver found.

    Attributes:
      arguments: of both modules.
      before, after: their results.
      model: values for which they differ; None where there are none.
    """

    arguments: list[Typed]
    before: list[Typed]
    after: list[Typed]
    model: Any


def ask(before: Program, after: Program, world: World) -> Answer:
    """Look for arguments for which the results differ.

    Raises:
      Beyond: the signatures differ, a module holds what is not known, or the time is up.
    """
    arguments = _arguments(before, world)
    own, others = (_types(program, _main(program).arguments) for program in (before, after))
    if own != others:
        raise Beyond("arguments of other types")
    first = _results(before, arguments, world)
    world.trusts_flags = False  # what the second module's own flags say is not known
    second = _results(after, arguments, world)
    if [(t.element, t.tensor.shape) for t in first] != [(t.element, t.tensor.shape) for t in second]:
        raise Beyond("results of other types")
    return Answer(arguments, first, second, _difference(first, second, world))


def _difference(first: Sequence[Typed], second: Sequence[Typed], world: World) -> Any:
    """Values for which some element differs; None where there are none."""
    pairs = [
        (a, b, x.element)
        for x, y in zip(first, second, strict=True)
        for a, b in zip(x.tensor.flat, y.tensor.flat, strict=True)
    ]
    found = [d for d in (opposite(equal(a, b, element)) for a, b, element in pairs) if d is not False]
    if not found:
        return None
    differs = z3.Or(*(z3.BoolVal(d) if is_known(d) else d for d in found))
    for solver in world.solvers():
        solver.add(differs)
        status = solver.check()
        if status == z3.unsat:
            return None
        if status == z3.sat:
            return solver.model()
    world.left()
    raise Beyond("a question that the solver gives up on")


def _main(program: Program) -> Body:
    if "main" not in program.entries:
        raise Beyond("a module without a public @main")
    return program.entries["main"]


def _types(program: Program, values: Sequence[ValueId]) -> list[tuple[tuple[int, ...], str]]:
    types = [program.types[value] for value in values]
    return [(static_shape(one), element_name(one)) for one in types]


def _arguments(program: Program, world: World) -> list[Typed]:
    """A variable for each element of each argument of @main."""
    found: list[Typed] = []
    for number, (shape, name) in enumerate(_types(program, _main(program).arguments)):
        element = world.element(name)
        found.append(Typed(_variables(number, shape, element), element))
    return found


def _variables(number: int, shape: Sequence[int], element: ProofType) -> Tensor:
    return built(shape, lambda at: z3.Const(f"argument {number} {list(at)}", element.sort))


def _results(program: Program, arguments: Sequence[Typed], world: World) -> list[Typed]:
    main = _main(program)
    elements = [world.element(name) for _, name in _types(program, main.returned)]
    tensors = Evaluator(program, world).body(main, [a.tensor for a in arguments], {})
    return [Typed(tensor, element) for tensor, element in zip(tensors, elements, strict=True)]
