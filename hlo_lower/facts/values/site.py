"""Sites: a value and the call through which its function is looked at. They are what every analysis walks."""

from collections.abc import Hashable
from dataclasses import dataclass
from typing import NamedTuple

from hlo_lower.ir import mlir
from hlo_lower.ir.view import Graph, Node, Value
from hlo_lower.ops.names import RNG
from hlo_lower.ops.spec import Role, ops_with

_UNEQUAL = ops_with(role=Role.HOST) | ops_with(role=Role.CALLS) | {RNG}
"""Ops that may give something else each time, whatever they are given; a composite may stand for one of them."""


@dataclass(frozen=True, slots=True, eq=False)
class Frame:
    """A call, and the one around it: what an argument is depends on who calls. Made by `Frames`, each once."""

    call: Node
    caller: "Frame | None"


class Site(NamedTuple):
    """A value where it is looked at.

    Attributes:
      value: the value.
      frame: the call through which its function is looked at; None stands for every call.
    """

    value: Value
    frame: Frame | None = None

    @property
    def node(self) -> Node | None:
        """The node whose result it is; None for an argument."""
        return self.value.node

    @property
    def caller_site(self) -> "Site | None":
        """For an argument of a function that was entered through a call: the operand that the call passes."""
        value, frame = self
        if frame is None:
            return None
        block = value.block
        if block is None or block.owner.name != "func.func":
            return None
        return Site(frame.call.operand(value.number), frame.caller)

    def to(self, value: Value) -> "Site":
        """Another value of the same function, looked at in the same way."""
        return Site(value, self.frame)

    def sees(self, argument: "Site") -> bool:
        """Whether it may depend on an argument of a block.

        The argument of a region is seen inside of the op that holds the region, and in what is called there.
        """
        block = argument.value.block
        if block is None or block.owner.name == "func.func":
            return True  # a function's argument is seen wherever its function calls
        at, frame = self.value.node or (self.value.block and self.value.block.owner), self.frame
        while frame is not argument.frame:
            if frame is None:
                return False
            at, frame = frame.call, frame.caller
        while at is not None and at != block.owner:
            at = at.parent
        return at is not None


class Frames:
    """The frames of one graph.

    Two calls that pass the same values to the same function are looked at through one frame: each value inside is the
    same in both, because nothing else tells them apart. So `f_k(x) = f_{k-1}(x) + f_{k-1}(x)` has k frames and not
    2^k. A function that holds an op which may give something else each time has a frame for each call.
    """

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._of_call: dict[tuple[Node, Frame | None], Frame] = {}
        self._of_arguments: dict[Hashable, Frame] = {}
        self._repeats: dict[str, bool] = {}

    def __len__(self) -> int:
        return len(set(self._of_call.values()))

    def enter(self, call: Node, caller: Frame | None) -> Frame:
        """The frame of a call in a function that is itself looked at through a frame, or through every call (None)."""
        known = self._of_call.get((call, caller))
        if known is None:
            known = self._of_call[call, caller] = self._frame_of(call, caller)
        return known

    def _frame_of(self, call: Node, caller: Frame | None) -> Frame:
        passed = (call.callee, *(_outermost(Site(operand, caller)) for operand in call.operands))
        first = self._of_arguments.setdefault(passed, frame := Frame(call, caller))
        return first if first is frame or self._gives_the_same(call.callee) else frame

    def _gives_the_same(self, name: str) -> bool:
        """Whether a function's results depend on nothing but its arguments."""
        known = self._repeats.get(name)
        if known is None:
            self._repeats[name] = False  # for what calls itself
            function = self._graph.functions.get(name)
            called: set[str] = set()

            def is_unequal(raw: mlir.RawOperation) -> bool:
                if raw.name == "func.call":
                    called.add(Node(raw).callee)
                return raw.name in _UNEQUAL

            known = function is not None and not mlir.any_operation(function.node.raw, is_unequal)
            known = self._repeats[name] = known and all(map(self._gives_the_same, sorted(called)))
        return known


def _outermost(site: Site) -> Site:
    """A site as the outermost caller sees it: an argument of a function becomes the operand of the call."""
    while (passed := site.caller_site) is not None:
        site = passed
    return site
