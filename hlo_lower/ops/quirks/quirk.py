"""What a quirk is, and what cures one: rules of the registry, or a pass over the module."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, TypeVar, overload

from hlo_lower.base.change import Change
from hlo_lower.ir import mlir
from hlo_lower.ir.builder import Builder
from hlo_lower.ir.view import Graph, Node, Value
from hlo_lower.ops.names import OPTIMIZATION_BARRIER, RESHAPE


class Place(Enum):
    """Where in the pipeline the pass of a quirk runs."""

    BEFORE_TYPES = "before refused element types are computed on others"
    AFTER_TYPES = "once values are stored in types that the target has"
    LAST = "after all that builds ops"


@dataclass(frozen=True)
class Rewrite:
    """A pass, after which no op stands in the form; for one form of several cures, a step of it.

    Attributes:
      name: the pass's own.
      sentence: what it does, after its name ("hides the constants that loops begin with").
      change: rewrites a module in place; whether it did, where `retell` asks for that.
      place: where it runs.
      retell: what is then told of an op that an earlier pass left.
    """

    name: str
    sentence: str
    change: Callable[[Graph], bool | None]
    place: Place = Place.AFTER_TYPES
    retell: Callable[[Change], Change] | None = None


@dataclass(frozen=True)
class Rules:
    """Rules of the registry. The kind that reads the op puts the form among its facts.

    Attributes:
      kind: the name of that kind.
      names: the rules.
    """

    kind: str
    names: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Quirk:
    """A form of an op that a consumer refuses, or gets wrong, though it takes the op.

    Attributes:
      word: how `refused_forms` of a target names it.
      ops: the ops that may stand in it.
      consumers: the built-in targets that name it, each with what it does.
      becomes: what the cure makes of it; without a cure, why there is none.
      reproducer: the smallest module with an op that stands in it.
      finds: whether an op does, one of these names.
      cures: in the order in which they are done.
      is_anywhere: whether it is looked for in ops of dynamic shape, too, and in ops that the target refuses anyway.
      is_reported: whether an op that stands in it still is counted as refused. Where only a look at the whole module
        tells, it is not: the pass leaves none.
      is_exception: whether an op that does not stand in it is taken, also where the target refuses the op.
    """

    word: str
    ops: tuple[str, ...]
    consumers: Mapping[str, str]
    becomes: str
    reproducer: str
    finds: Callable[[Graph, Node], bool]
    cures: tuple[Rules | Rewrite, ...] = ()
    is_anywhere: bool = False
    is_reported: bool = True
    is_exception: bool = False

    def is_cured_by(self, kind: str) -> bool:
        """Whether rules of this kind of op are its cure."""
        return any(isinstance(cure, Rules) and cure.kind == kind for cure in self.cures)


Read = TypeVar("Read")


@overload
def over_each(*ops: str) -> Callable[[Callable[[Graph, Node], None]], Callable[[Graph], None]]: ...
@overload
def over_each(
    *ops: str, of: Callable[[Graph], Read]
) -> Callable[[Callable[[Read, Node], None]], Callable[[Graph], None]]: ...
def over_each(*ops: str, of: Callable[[Graph], Any] = lambda graph: graph) -> Any:
    """Make a change of one op, in place, the change of all ops of these names in a module.

    Args:
      ops: the names.
      of: what the change is given beside the op: the module, or what is read of all of it first.
    """

    def of_step(step: Callable[[Any, Node], None]) -> Callable[[Graph], None]:
        def change(graph: Graph) -> None:
            with mlir.active(graph.context):
                read = of(graph)
                for raw in [raw for raw in mlir.operations_within(graph.module.operation) if raw.name in ops]:
                    step(read, Node(raw))
            graph.forget()

        return change

    return of_step


def hold_operand(node: Node, number: int) -> None:
    """Put a barrier behind an operand, which a consumer would move or read into the op, in place."""
    value = node.operand(number)
    [held] = Builder.before(node).op(OPTIMIZATION_BARRIER, [value], [value.raw.type]).results
    node.raw.operands[number] = held.raw


def read_reshaped(build: Builder, value: Value, becomes: mlir.RawType) -> None:
    """Give a value a type of as many elements, and let all that read it read a reshape to the one that it had."""
    uses, before = [(use.owner, use.operand_number) for use in value.raw.uses], value.raw.type
    mlir.set_type(value.raw, becomes)
    back = build.op(RESHAPE, [value], [before]).result()
    for owner, number in uses:
        owner.operands[number] = back.raw


def module(arguments: str, result: str, *lines: str) -> str:
    """The text of a module with one function, whose result is %r."""
    body = "".join(f"  {line}\n" for line in (*lines, f"return %r : {result}"))
    return f"func.func public @main({arguments}) -> {result} {{\n{body}}}\n"
