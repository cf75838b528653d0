"""What a rule of one's own imports: facts to constrain, what a rule is given, and what builds the new ops.

A plug-in imports this module and nothing else of the package (examples/plugin is one):

    from hlo_lower.plugin import SCATTER, Combiner, RuleList, ScatterLowering, Subset, Value

    rules = RuleList()

    @rules.lowers(SCATTER, subset={Subset.POINT}, combiner={Combiner.ASSIGN}, form="...")
    def scatter_to_something(op: ScatterLowering) -> Sequence[Value]: ...

    rules.declare("acme.clip", side={"low", "high"})

    @rules.composite("acme.clip", side="low", target="npu", form="...")
    def clip_to_something(op: OpLowering[VariantFacts]) -> Sequence[Value]: ...

docs/adding-a-rule.md says what each is for, docs/tutorials/composites.md what the second is. Names here stay what they
are; where they come from may change.
"""

from hlo_lower.base.registry import DoesNotApply, RuleList, When
from hlo_lower.facts.gather.facts import GatherFacts, GatherStrategy
from hlo_lower.facts.gather.facts import TakenGather as GatherTaken
from hlo_lower.facts.scatter.facts import (
    Arity,
    Dialect,
    Drops,
    FloatMode,
    InBounds,
    Offsets,
    Order,
    OutOfBounds,
    Parts,
    ScatterFacts,
    Strategy,
    Unique,
    Windows,
)
from hlo_lower.facts.values.region import ASSIGNING, Combiner
from hlo_lower.ir.builder import Builder
from hlo_lower.ir.view import Graph, Node, Value
from hlo_lower.lowering.engine.kind import OpLowering, ScatterLowering
from hlo_lower.lowering.gather import GatherLowering
from hlo_lower.lowering.plain.composite import CompositeFacts
from hlo_lower.lowering.plain.composite import TakenComposite as CompositeTaken
from hlo_lower.lowering.plain.variants import VariantFacts
from hlo_lower.lowering.scatter.kind import SCATTER
from hlo_lower.lowering.scatter.one_window import READING, new_values, one_window
from hlo_lower.lowering.single_ops.plain_op import PLAIN, Elements, Numbers, PlainFacts, PlainOp
from hlo_lower.lowering.single_ops.reverse import Axes as ReverseAxes
from hlo_lower.lowering.single_ops.reverse import ReverseFacts
from hlo_lower.ops.names import COMPOSITE, GATHER, REVERSE
from hlo_lower.ops.subset import MANY_WINDOWS, BatchedTile, Empty, Full, Point, Rows, Subset, Tile

__all__ = [
    "ASSIGNING",
    "COMPOSITE",
    "GATHER",
    "MANY_WINDOWS",
    "PLAIN",
    "READING",
    "REVERSE",
    "SCATTER",
    "Arity",
    "BatchedTile",
    "Builder",
    "Combiner",
    "CompositeFacts",
    "CompositeTaken",
    "Dialect",
    "DoesNotApply",
    "Drops",
    "Elements",
    "Empty",
    "FloatMode",
    "Full",
    "GatherFacts",
    "GatherLowering",
    "GatherStrategy",
    "GatherTaken",
    "Graph",
    "InBounds",
    "Node",
    "Numbers",
    "Offsets",
    "OpLowering",
    "Order",
    "OutOfBounds",
    "Parts",
    "PlainFacts",
    "PlainOp",
    "Point",
    "ReverseAxes",
    "ReverseFacts",
    "Rows",
    "RuleList",
    "ScatterFacts",
    "ScatterLowering",
    "Strategy",
    "Subset",
    "Tile",
    "Unique",
    "Value",
    "VariantFacts",
    "When",
    "Windows",
    "new_values",
    "one_window",
]
