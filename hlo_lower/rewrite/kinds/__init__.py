"""The kinds of op. This list is their registration: rules, stages, reports and the command line know a kind from it."""

from hlo_lower.registry import CompositeLoweringRegistry, Rule
from hlo_lower.rewrite.kind import Kind, Stage
from hlo_lower.rewrite.kinds.chlo import ChloKind
from hlo_lower.rewrite.kinds.composite import CompositeKind
from hlo_lower.rewrite.kinds.control import ControlKind
from hlo_lower.rewrite.kinds.custom_call import CustomCallKind
from hlo_lower.rewrite.kinds.dynamic_gather import DynamicGatherKind
from hlo_lower.rewrite.kinds.dynamic_scatter import DynamicScatterKind
from hlo_lower.rewrite.kinds.element_type import ComplexTypeKind, FloatTypeKind, IntegerTypeKind
from hlo_lower.rewrite.kinds.gather import GatherKind
from hlo_lower.rewrite.kinds.linear_algebra import LinearAlgebraKind
from hlo_lower.rewrite.kinds.older_op import OlderOpKind
from hlo_lower.rewrite.kinds.plain_op import PlainOpKind
from hlo_lower.rewrite.kinds.rank import RankKind
from hlo_lower.rewrite.kinds.refused_form import RefusedFormKind
from hlo_lower.rewrite.kinds.reverse import ReverseKind
from hlo_lower.rewrite.kinds.scatter import ScatterKind
from hlo_lower.rewrite.kinds.sort import SortKind

KINDS: tuple[Kind, ...] = (
    ScatterKind(),
    DynamicScatterKind(),
    ReverseKind(),
    GatherKind(),
    DynamicGatherKind(),
    CompositeKind(),
    CustomCallKind(),
    ChloKind(),
    ComplexTypeKind(),
    IntegerTypeKind(),
    FloatTypeKind(),
    RefusedFormKind(),
    SortKind(),
    ControlKind(),
    LinearAlgebraKind(),
    OlderOpKind(),
    PlainOpKind(),
    RankKind(),
)


def kinds_of(stage: Stage) -> tuple[Kind, ...]:
    """The kinds whose ops are looked at in a stage, in order."""
    return tuple(kind for kind in KINDS if kind.stage is stage)


def new_registry() -> CompositeLoweringRegistry:
    """A registry that knows the facts of every kind, without rules."""
    return CompositeLoweringRegistry({kind.name: kind.domains for kind in KINDS})


def default_registry() -> CompositeLoweringRegistry:
    """A fresh registry with the rules of all kinds, checked for ambiguity."""
    registry = new_registry()
    for kind in KINDS:
        for family in kind.families:
            registry.extend(family)
    registry.check()
    return registry


def title_of(rule: Rule) -> str:
    """What a rule is for, for a reader: "Tile x assign, in bounds"."""
    return next(kind for kind in KINDS if kind.name == rule.op).title(rule)
