"""The kinds of op. This list is their registration: rules, stages, reports and the command line know a kind from it."""

from hlo_lower.base.errors import RegistryError
from hlo_lower.base.registry import CompositeLoweringRegistry, Rule
from hlo_lower.lowering.control.kind import ControlKind
from hlo_lower.lowering.engine.kind import Kind, Stage
from hlo_lower.lowering.gather.dynamic_gather import DynamicGatherKind
from hlo_lower.lowering.gather.kind import GatherKind
from hlo_lower.lowering.matrices.kind import LinearAlgebraKind
from hlo_lower.lowering.plain.chlo import ChloKind
from hlo_lower.lowering.plain.composite import CompositeKind
from hlo_lower.lowering.plain.custom_call import CustomCallKind
from hlo_lower.lowering.plain.older_op import OlderOpKind
from hlo_lower.lowering.quirks.kind import RefusedFormKind
from hlo_lower.lowering.ranks.rank import RankKind
from hlo_lower.lowering.scatter.dynamic_kind import DynamicScatterKind
from hlo_lower.lowering.scatter.kind import ScatterKind
from hlo_lower.lowering.single_ops.kind import PlainOpKind
from hlo_lower.lowering.single_ops.reverse import ReverseKind
from hlo_lower.lowering.sort.kind import SortKind
from hlo_lower.lowering.types.kind import ComplexTypeKind, FloatTypeKind, IntegerTypeKind


def distinct(*kinds: Kind) -> tuple[Kind, ...]:
    """Kinds, each under a name of its own.

    Raises:
      RegistryError: two have one name; the message says where both stand.
    """
    first: dict[str, Kind] = {}
    for kind in kinds:
        other = first.setdefault(kind.name, kind)
        if other is not kind:
            one, two = (f"{type(k).__name__} ({type(k).__module__})" for k in (kind, other))
            raise RegistryError(f"{one} has the name of {two}: {kind.name!r}")
    return kinds


KINDS = distinct(
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
