"""What a site comes from: calls, branches, loops and operations, each looked at once, here, for every analysis."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from hlo_lower.base.causes import Cause, Code
from hlo_lower.facts.values.budget import FOLLOWED
from hlo_lower.facts.values.evidence import source_of
from hlo_lower.facts.values.site import Frames, Site
from hlo_lower.ir import mlir
from hlo_lower.ir.view import Block, Graph, Node, Value
from hlo_lower.ops import names
from hlo_lower.ops.names import CUSTOM_CALL, OPTIMIZATION_BARRIER
from hlo_lower.ops.purity import PLACEMENT_NOTES


def is_identity(node: Node) -> bool:
    """Whether each result of an op is its operand: a barrier, or a note on where a tensor is to live."""
    name = node.name
    if name == CUSTOM_CALL:
        return mlir.call_target(node.raw) in PLACEMENT_NOTES
    return name in (OPTIMIZATION_BARRIER, "sdy.sharding_constraint")


def through_identities(value: Value) -> Value:
    """The value beneath identities."""
    node = value.node
    while node is not None and is_identity(node):
        value = node.operand(value.number)
        node = value.node
    return value


@dataclass(frozen=True, slots=True)
class Same:
    """It holds what another site holds: what a call passes or returns, or what an identity takes."""

    site: Site


@dataclass(frozen=True, slots=True)
class OneOf:
    """It holds, as a whole, what one of several sites holds: of branches, or of all calls of a private function.

    Attributes:
      sites: of which it is one.
      why: that it is one of them.
      node: the node that branches; None for an argument.
    """

    sites: Sequence[Site]
    why: Cause
    node: Node | None = None


@dataclass(frozen=True, slots=True)
class Carried:
    """A while carries it: at first the initial site, and in each iteration what the body made of the argument.

    Attributes:
      loop: the `stablehlo.while`.
      number: which of its values.
      initial: before the loop.
      argument: in the body.
      following: what the body returns.
      inside: the body or the condition, whose argument the site is; None for the loop's result.
    """

    loop: Node
    number: int
    initial: Site
    argument: Site
    following: Site
    inside: Block | None = None

    @classmethod
    def at(cls, site: Site, loop: Node, number: int, inside: Block | None = None) -> "Carried":
        """A value of a loop that is looked at as a site is."""
        body = loop.blocks[1]
        argument, following = site.to(body.argument(number)), site.to(body.terminator.operand(number))
        return cls(loop, number, site.to(loop.operand(number)), argument, following, inside)

    def beside(self, number: int) -> "Carried":
        """Another value of the loop."""
        return Carried.at(self.initial, self.loop, number)

    @property
    def in_condition(self) -> Site:
        """The argument in the condition."""
        return self.initial.to(self.loop.blocks[0].argument(self.number))

    @property
    def is_kept(self) -> bool:
        """Whether the body returns its argument as it is."""
        return self.following == self.argument


@dataclass(frozen=True, slots=True)
class Unknown:
    """It comes from outside of the module, or from an op that says nothing of the arguments of its regions.

    Attributes:
      why: what it is.
      node: the op whose region's argument it is, or whose result.
    """

    why: Cause
    node: Node | None = None


Origin: TypeAlias = Same | OneOf | Carried | Unknown | Node
"""A node: it is made by that from the node's operands."""


class Sources:
    """What the sites of one graph come from.

    Attributes:
      frames: the calls through which functions are looked at.
    """

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self.frames = Frames(graph)

    def of(self, site: Site) -> Origin:
        """What a site comes from (trap 40: an argument of a private function is one of what all of its calls pass)."""
        value, frame = site
        node = value.node
        if node is None:
            return self._of_argument(site)
        match node.name:
            case "func.call":
                function = self._graph.functions.get(node.callee)
                if function is None or not function.has_body:
                    return Unknown(Code.RESULT_OF_CALL(node.callee), node)
                returned = function.body.terminator.operand(value.number)
                if not returned.is_static:
                    return Unknown(Code.RESULT_OF_CALL(node.callee), node)
                return Same(Site(returned, self.frames.enter(node, frame)))
            case names.CASE | names.IF:
                branches = [site.to(block.terminator.operand(value.number)) for block in node.blocks]
                return OneOf(branches, Code.BRANCHES(len(branches)), node)
            case names.WHILE:
                return Carried.at(site, node, value.number)
            case _:
                return Same(site.to(node.operand(value.number))) if is_identity(node) else node

    def resolve(self, site: Site) -> Site:
        """The first site with the same value, through calls, kept values and conversions of a type to itself."""
        for _ in range(FOLLOWED):
            origin = self.of(site)
            if isinstance(origin, Same):
                site = origin.site
            elif (
                isinstance(origin, Node)
                and origin.name == names.CONVERT
                and origin.operand(0).raw.type == site.value.raw.type
            ):
                site = site.to(origin.operand(0))
            else:
                break
        return site

    def _of_argument(self, site: Site) -> Origin:
        passed, block = site.caller_site, site.value.block
        assert block is not None
        if passed is not None:
            return Same(passed)
        owner = block.owner
        if owner.name == names.WHILE:
            return Carried.at(site, owner, site.value.number, block)
        unknown = Unknown(source_of(self._graph, site.value), None if owner.name == "func.func" else owner)
        if owner.name != "func.func":
            return unknown
        function = self._graph.function_of(owner)
        if function.is_public or self._graph.has_other_reference(function.name):
            return unknown
        calls = self._graph.calls_of(function.name)
        if not calls:
            return Unknown(Code.NEVER_CALLED(function.name))
        sites = [Site(call.operand(site.value.number)) for call in calls]
        return OneOf(sites, Code.AT_EACH_CALL(len(sites), function.name))
