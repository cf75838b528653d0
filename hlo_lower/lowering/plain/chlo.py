"""`chlo` operations, made plain StableHLO by jaxlib's own pass, one by one.

The pass is run over a function of its own that holds nothing but the operation, and what it wrote there (erf as a
quotient of polynomials, top_k as a sort) is put in the operation's place, under its location.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from hlo_lower.base.registry import DoesNotApply, FactsByName, RuleList
from hlo_lower.ir import mlir
from hlo_lower.ir.builder import Builder
from hlo_lower.ir.view import Block, Graph, Node, Value
from hlo_lower.lowering.engine.kind import Context, OpLowering, Subject
from hlo_lower.lowering.engine.legality import dtypes_on
from hlo_lower.lowering.plain.composite import LegalizedKind, in_f32
from hlo_lower.lowering.sort import TOP_K, becomes_sort
from hlo_lower.ops.refused_forms import refused_form

CHLO = "chlo."
"""How the names of these operations begin, and the name under which rules for them are registered."""

TO_STABLEHLO = "func.func(chlo-legalize-to-stablehlo)"
FROM_SHAPE = "func.func(shape-legalize-to-stablehlo)"
"""For dynamic shapes, which the first pass computes with operations of the shape dialect."""

ALONE = "hlo_lower_alone"
"""The function in which an operation is written out."""


class TakenChlo(Enum):
    """How the target takes it."""

    WHOLE = "whole"
    IN_F32 = "in f32"  # not on the bf16 or f16 that it is of
    WRITTEN_OUT = "written out"


@dataclass(frozen=True)
class ChloFacts(FactsByName):
    """The facts of one `chlo` operation.

    Attributes:
      taken: how the target takes it.
      op: its name ("chlo.erf"), for conditions of rules.
    """

    taken: TakenChlo
    op: str


rules = RuleList()


@rules.lowers(CHLO, taken={TakenChlo.WHOLE}, form="the operation itself")
def chlo_to_itself(op: OpLowering[ChloFacts]) -> Sequence[Value]:
    """Leave an operation that the target names among its composites. Equal: it is the same operation."""
    return op.node.results


@rules.lowers(CHLO, taken={TakenChlo.IN_F32}, form="the operation in f32, rounded back")
def chlo_to_f32(op: OpLowering[ChloFacts]) -> Sequence[Value]:
    """Compute an operation on bf16 or f16 in f32, where the target takes it whole on that.

        %v, %i = chlo.top_k(%x) : bf16   ->   %v, %i = chlo.top_k(convert %x) : f32; convert %v

    Equal: f32 holds the same numbers in the same order, so the greatest are the same, at the same places. A NaN of f16
    may get another place: a top_k of f16 is one of i32, in the order of the bits.
    """
    return in_f32(op.build, op.node, op.node.name, mlir.attributes_of(op.node.raw))


@rules.lowers(CHLO, taken={TakenChlo.WRITTEN_OUT}, form="jaxlib's StableHLO form")
def chlo_to_stablehlo(op: OpLowering[ChloFacts]) -> Sequence[Value]:
    """Write an operation out as jaxlib's pass does.

        %r = chlo.square %x   ->   %r = stablehlo.multiply %x, %x

    Equal as far as that pass is right: it is the definition that XLA's own frontends use, exact for what is exact
    (top_k) and an approximation by a stated polynomial for what is not (erf, lgamma).
    """
    return written_out(op.graph, op.build, op.node, op.node.name, mlir.attributes_of(op.node.raw))


def written_out(
    graph: Graph,
    build: Builder,
    node: Node,
    name: str,
    attributes: Mapping[str, mlir.RawAttribute],
    by: str = TO_STABLEHLO,
) -> list[Value]:
    """Build what a pass of jaxlib makes of an operation.

    Args:
      graph: the module.
      build: in front of the node.
      node: what it stands for: its operands and the types of its results are the operation's.
      name, attributes: the operation.
      by: the pass.

    Raises:
      DoesNotApply: the pass fails, or has no form for it.
    """
    operands = node.operands[: len(node.operands) if name == node.name else 1]
    top = Builder(mlir.insert_at_end(graph.module.body), node.raw.location)
    types = [", ".join(str(value.raw.type) for value in values) for values in (operands, node.results)]
    signature = {
        "sym_name": mlir.parse_attribute(f'"{graph.free_name(ALONE)}"'),
        "sym_visibility": mlir.parse_attribute('"private"'),
        "function_type": mlir.parse_attribute(f"({types[0]}) -> ({types[1]})"),
    }
    function = top.op("func.func", [], [], signature, regions=1)
    block = Block(mlir.append_block(function.raw, 0, [value.raw.type for value in operands], node.raw.location))
    inner = top.at_end(block)
    made = inner.op(name, block.arguments, [result.raw.type for result in node.results], dict(attributes))
    inner.op("func.return", made.results, [])
    try:
        mlir.run_pass(function.raw, by)
        if not all(value.is_static for value in (*operands, *node.results)):
            mlir.run_pass(function.raw, FROM_SHAPE)
        if any(written.name == name or written.name.startswith(CHLO) for written in block.nodes):
            raise DoesNotApply("jaxlib has no StableHLO form for it")
        return build.inline(block, operands)
    except mlir.PassError as error:
        raise DoesNotApply(f"jaxlib cannot write it out: {error}") from None
    finally:
        function.raw.erase()


class ChloKind(LegalizedKind):
    """`chlo` operations."""

    name = op = CHLO
    domains = ChloFacts.domains
    families = (rules,)
    owned = None

    def read(self, context: Context, node: Node) -> Subject | None:
        """What is known of it; None where it is looked at after scatters, as a sort."""
        if node.name == TOP_K and becomes_sort(context.target, node):
            return None
        is_whole = context.target.takes_whole(node.name, dtypes_on(node))
        is_whole = is_whole and refused_form(context.graph, context.target, node, CHLO) is None
        taken = TakenChlo.WHOLE if is_whole else TakenChlo.WRITTEN_OUT
        return self.subject(context, node, ChloFacts(taken, node.name))
