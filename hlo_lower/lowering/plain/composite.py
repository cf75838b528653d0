"""`stablehlo.composite`: kept whole, written out by a rule of its own, or made a call of its decomposition.

A composite names an operation of some producer ("odml.softmax"), carries its attributes and refers to a function, its
decomposition, which is what it computes. The name, the version and the attributes are claims about that function (trap
52): a name whose meaning is known counts only where the function is seen to compute it. Which of the three it becomes
is chosen like the form of a scatter: by facts, in the same registry.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum

import numpy as np

from hlo_lower.base.causes import Cause, Code
from hlo_lower.base.change import Change, Outcome
from hlo_lower.base.element_types import HALF_FLOATS, WIDE_FLOATS, element_type
from hlo_lower.base.registry import FactsByName, Rule, RuleList
from hlo_lower.facts.sort.key_columns import from_ordered_integers, ordered_integers
from hlo_lower.ir import mlir
from hlo_lower.ir.axes import reduce_along
from hlo_lower.ir.builder import Builder
from hlo_lower.ir.regions import only_op
from hlo_lower.ir.view import Function, Graph, Node, Value
from hlo_lower.lowering.engine.kind import (
    Chosen,
    Context,
    Decision,
    Kept,
    Kind,
    OpLowering,
    Refused,
    Stage,
    Subject,
    values_of,
)
from hlo_lower.lowering.engine.legality import Refusal, dtypes_on, refused_by_name
from hlo_lower.lowering.options import Options
from hlo_lower.lowering.single_ops.plain_op import PlainOp
from hlo_lower.named.match.arithmetic import uncast
from hlo_lower.named.match.axis_atoms import View, are_same
from hlo_lower.named.match.terms import Term, Terms
from hlo_lower.ops.names import ADD, COMPOSITE, EXPONENTIAL, MAXIMUM
from hlo_lower.ops.targets.target import Target


class Name(Enum):
    """What a composite's name stands for, and its decomposition is seen to compute."""

    SOFTMAX = "softmax"
    OTHER = "other"


class TakenComposite(Enum):
    """How the target takes it: one of a name that it takes, but of another meaning or version, it does not."""

    WHOLE = "whole"
    IN_F32 = "in f32"  # a `chlo` operation, not on the bf16 or f16 that it is of
    DECOMPOSED = "decomposed"


class Elements(Enum):
    """The element type of its first operand."""

    FLOAT = "float"
    OTHER = "other"


class Axis(Enum):
    """The axis that its attributes name."""

    LAST = "last"
    INNER = "inner"
    NONE = "none"  # none, or none of its operand's


NAMES: Mapping[str, Name] = {"odml.softmax": Name.SOFTMAX}
"""The names whose meaning is known: LiteRT's exporters write odml.softmax with an attribute axis, -1 for the last."""

VERSIONS = frozenset({0, 1})
"""Versions of the composites of these names that are known; the specification's default is 0."""

OWN = frozenset({"name", "composite_attributes", "decomposition", "version"})
"""The attributes that make it a composite; others go over."""

MEANT = frozenset({"axis"})
"""The attributes of these that are known: whoever takes one whole goes by them."""


@dataclass(frozen=True)
class CompositeFacts(FactsByName):
    """The facts of one composite.

    Attributes:
      name, taken, elements, axis: the facts that rules constrain.
      full_name: its name in the module ("odml.softmax").
      attributes: its `composite_attributes`: truth values, numbers, strings, tuples of these; others as printed.
      axis_number: the axis, counted from 0, or None.
      claim: why its name counts for nothing; None where it does, or is not known.
    """

    name: Name
    taken: TakenComposite
    elements: Elements
    axis: Axis
    full_name: str
    attributes: Mapping[str, object] = field(hash=False)
    axis_number: int | None
    claim: Cause | None = None


rules = RuleList()


def composite_facts(graph: Graph, node: Node, *, whole: Iterable[str]) -> CompositeFacts:
    """The facts of a composite.

    Args:
      graph: the module, for its decomposition.
      node: the composite.
      whole: the names of those that the target takes whole. What one of a name without a known meaning computes is
        between the target and whoever wrote the module.
    """
    full_name = mlir.symbol_name(node.raw.attributes["name"])
    operand = node.operands[0] if node.operands else None
    is_float = operand is not None and operand.is_static and operand.element_type in WIDE_FLOATS
    raw = node.attribute("composite_attributes")
    attributes = {} if raw is None else mlir.plain_entries(raw)
    axis = _axis(node, operand, attributes.get("axis"))
    last = None if operand is None or axis is None else len(operand.static_shape) - 1
    name = NAMES.get(full_name, Name.OTHER)
    function = graph.functions.get(node.body_name)
    is_seen = function is not None and function.has_body and axis is not None and is_softmax(graph, function, axis)
    claim = None
    if name is Name.SOFTMAX and not is_seen:
        name, claim = Name.OTHER, Code.NOT_SEEN_TO_BE("softmax")
    is_taken = full_name in whole and not claim
    if is_taken and full_name in NAMES:
        claim = _unknown(node, attributes)
    return CompositeFacts(
        name=name,
        taken=TakenComposite.WHOLE if is_taken and not claim else TakenComposite.DECOMPOSED,
        elements=Elements.FLOAT if is_float else Elements.OTHER,
        axis=Axis.NONE if axis is None else Axis.LAST if axis == last else Axis.INNER,
        full_name=full_name,
        attributes=attributes,
        axis_number=axis,
        claim=claim,
    )


def _unknown(node: Node, attributes: Iterable[str]) -> Cause | None:
    version = node.attribute("version")
    if version is not None and mlir.integer_of(version) not in VERSIONS:
        return Code.OTHER_VERSION(mlir.integer_of(version))
    others = sorted({*attributes} - MEANT)
    return Code.OTHER_ATTRIBUTES(tuple(others)) if others else None


def _axis(node: Node, operand: Value | None, told: object) -> int | None:
    """The axis along which a composite of one operand works, where its result has that operand's type."""
    if not isinstance(told, int) or operand is None or not operand.is_static or len(node.operands) != 1:
        return None
    if [result.raw.type for result in node.results] != [operand.raw.type]:
        return None
    rank = len(operand.static_shape)
    return told % rank if -rank <= told < rank else None


@rules.lowers(COMPOSITE, taken={TakenComposite.WHOLE}, form="the composite itself")
def composite_to_itself(op: OpLowering[CompositeFacts]) -> Sequence[Value]:
    """Leave a composite that the target takes whole.

        %r = stablehlo.composite "odml.softmax" %x {...}   ->   the same

    Equal: nothing is changed. The target names it among its `composites`, so its compiler has a kernel for it, which
    knows more than what can be read from the decomposition. The decomposition stays in the module. A name whose meaning
    is known has to be that of its decomposition, at a version and with attributes that are known: the kernel goes by
    nothing else.
    """
    return op.node.results


@rules.lowers(
    COMPOSITE,
    form="e = exp(x - max(x)); e / sum(e), along the axis",
    taken={TakenComposite.DECOMPOSED},
    name={Name.SOFTMAX},
    elements={Elements.FLOAT},
    axis={Axis.LAST, Axis.INNER},
)
def composite_to_softmax(op: OpLowering[CompositeFacts]) -> Sequence[Value]:
    """Write a softmax out in its stable form.

        %r = stablehlo.composite "odml.softmax" %x {composite_attributes = {axis = -1 : i64}, ...}
    ->
        %max = reduce(%x, -inf) applies maximum across [axis]
        %e   = exponential(%x - broadcast(%max))
        %r   = %e / broadcast(reduce(%e, 0) applies add across [axis])

    Equal, because the decomposition was seen to be the same (`hlo_lower.lowering.plain.composite`). With the
    greatest x taken off no exponential overflows and the sum is at least 1. A NaN makes its whole row NaN through the
    sum, whatever the maximum makes of it; so does a row of -inf (-inf - -inf), as in the decomposition. f16 and bf16
    are computed in f32 and rounded once. The sum is taken in the compiler's order, so the last bits may differ from
    the decomposition's: within (n + 8) machine epsilons of the result for an axis of n elements.
    """
    build, axis = op.build, op.facts.axis_number
    (given,) = op.node.operands
    assert axis is not None
    value = build.convert(given, "f32") if given.element_type in HALF_FLOATS else given
    dims = [d for d in range(len(value.static_shape)) if d != axis]
    element = mlir.tensor_element(value.raw.type)
    lowest = build.infinity(element, is_negative=True)
    greatest = build.broadcast(reduce_along(build, value, lowest, axis, MAXIMUM), value.static_shape, dims)
    powers = build.elementwise(EXPONENTIAL, build.subtract(value, greatest))
    total = build.broadcast(reduce_along(build, powers, build.zero(element), axis, ADD), value.static_shape, dims)
    return [build.convert(build.divide(powers, total), given.element_type)]


@rules.lowers(COMPOSITE, taken={TakenComposite.IN_F32}, form="the operation of its name, in f32")
def composite_to_f32(op: OpLowering[CompositeFacts]) -> Sequence[Value]:
    """Compute a `chlo` operation that is written as a composite, on bf16 or f16, in f32.

        %v, %i = stablehlo.composite "chlo.top_k" %x {...} : bf16   ->   chlo.top_k(convert %x) : f32; convert %v

    Equal as far as the composite is what its name says, which the target takes it for; then as `chlo_to_f32`.
    """
    attributes = mlir.entries_of(op.node.raw.attributes["composite_attributes"])
    return in_f32(op.build, op.node, op.facts.full_name, attributes)


@rules.lowers(COMPOSITE, form="a call of its decomposition")
def composite_to_call(op: OpLowering[CompositeFacts]) -> Sequence[Value]:
    """Replace a composite by a call of its decomposition.

        %r = stablehlo.composite "name" %x {decomposition = @f, ...}   ->   %r = func.call @f(%x)

    Equal by definition (specification, composite: "semantics are those of the decomposition"). It is a call and not
    the body: a scatter in a decomposition that several composites name stays one scatter, at its place, and the
    consumer's own inliner decides. jaxlib's stablehlo-legalize-composite-to-call does the same for all composites at
    once.
    """
    callee = {"callee": op.node.raw.attributes["decomposition"]}
    return op.build.op("func.call", op.node.operands, [r.raw.type for r in op.node.results], callee).results


def is_taken_in_f32(target: Target, node: Node, name: str) -> bool:
    """Whether a target takes a composite or a `chlo` operation whole, though not on the bf16 or f16 that it is of."""
    dtypes = dtypes_on(node)
    wide = {"f32" if dtype in HALF_FLOATS else dtype for dtype in dtypes}
    return target.takes_whole(name, wide) and not target.takes_whole(name, dtypes)


def is_top_k_in_f32(target: Target, node: Node, facts: CompositeFacts) -> bool:
    """Whether a composite is a top_k, as its name, size and results say, that a target takes in f32 alone."""
    is_top_k = facts.full_name == "chlo.top_k" and len(node.operands) == 1 and len(node.results) == 2
    says_size = is_top_k and facts.attributes == {"k": node.result(0).shape[-1]}
    return says_size and is_taken_in_f32(target, node, facts.full_name)


def in_f32(build: Builder, node: Node, name: str, attributes: Mapping[str, mlir.RawAttribute]) -> list[Value]:
    """Build an operation in f32 where a node is of bf16 or f16, and round its results back; a top_k of f16 in i32.

    A NaN of f16 may get other bits in f32, and another place in the order.
    """
    if name == "chlo.top_k" and node.operand(0).element_type == "f16":
        types = [mlir.tensor_type(result.shape, "i32") for result in node.results]
        ordered = ordered_integers(build, node.operand(0))
        values, places = build.op(name, [ordered], types, dict(attributes)).results
        return [from_ordered_integers(build, values, "f16"), build.convert(places, node.result(1).element_type)]
    operands = [build.convert(v, "f32") if v.element_type in HALF_FLOATS else v for v in node.operands]
    elements = [result.element_type for result in node.results]
    wide = ["f32" if element in HALF_FLOATS else element for element in elements]
    types = [mlir.tensor_type(r.shape, element) for r, element in zip(node.results, wide, strict=True)]
    made = build.op(name, operands, types, dict(attributes))
    return [build.convert(value, element) for value, element in zip(made.results, elements, strict=True)]


LATER = frozenset({PlainOp.LOG1P.value, PlainOp.EXPM1.value})
"""Ops in forms of chlo that rules of their own write out of plainer ones."""


class LegalizedKind(Kind):
    """What portable input has besides StableHLO; what it becomes is looked at again by whatever comes after."""

    stage = Stage.LEGALIZED

    def concerns(self, options: Options) -> bool:
        return True

    def refusal(self, target: Target, graph: Graph, built: Sequence[Node]) -> Refusal | None:
        """What the target refuses by name, but for functions that are lowered afterwards."""
        return refused_by_name(target, graph, [node for node in built if node.name not in LATER])

    def tell(self, context: Context, subject: Subject, decision: Decision) -> Change | None:
        where = str(context.graph.location(subject.node))
        match decision:
            case Chosen():
                return Change(Outcome.LEGALIZED, subject.label, self.became(decision), where)
            case Kept(why=why):
                return Change(Outcome.KEPT, subject.label, why, where)
            case Refused():
                return Change(Outcome.LEFT, subject.label, self.why_left(context, subject, decision), where)

    def became(self, chosen: Chosen) -> Cause:
        """What an op became."""
        return Code.BECAME(chosen.choice.rule.form, "", None)

    def why_left(self, context: Context, subject: Subject, refused: Refused) -> Cause:
        if not refused.nearest:
            return super().why_left(context, subject, refused)
        return Code.LACKS("", refused.nearest[0][1])


class CompositeKind(LegalizedKind):
    """Composites."""

    name = op = COMPOSITE
    domains = CompositeFacts.domains
    families = (rules,)
    owned = OWN

    def read(self, context: Context, node: Node) -> Subject | None:
        """None of one whose parameters are declared: `variants` looked at it first, and left it; and of a top_k that is
        computed in f32, after scatters."""
        name = mlir.symbol_name(node.raw.attributes["name"])
        whole = (name,) if context.target.takes_whole(name, dtypes_on(node)) else ()
        facts = composite_facts(context.graph, node, whole=whole)
        if is_top_k_in_f32(context.target, node, facts):
            return None
        declared = context.registry.declarations.get(facts.full_name)
        if declared and declared.is_for(context.target.name) and facts.full_name not in context.target.composites:
            return None
        return self.subject(context, node, facts, label=f'{COMPOSITE} "{facts.full_name}"')

    def became(self, chosen: Chosen) -> Cause:
        assert isinstance(chosen.facts, CompositeFacts)
        return Code.BECAME(chosen.choice.rule.form, chosen.choice.rule.name, chosen.facts.claim)

    def title(self, rule: Rule) -> str:
        return ", ".join(["composite", *map(values_of, rule.constraints.values())])


# --- whether a function computes the softmax of its argument: the form that exporters write as a decomposition ---
#
#     e = exponential(x - spread(reduce(x, -inf, maximum)))
#     e / spread(reduce(e, 0, add))
#
# A name says nothing of that (trap 52), so the function is read, as the matchers of named ops read values
# (`hlo_lower.named.match.terms`): calls are entered, and barriers are seen through. Conversions are where nothing in
# the function is of a type that does not hold all that the argument's does. A maximum may begin at -inf or at the least
# finite number, and be taken with -inf again, as JAX does. `spread` is any chain of broadcasts and reshapes that puts
# the reduced value back along the axis. Without the maximum it is another function: NaN where a power overflows, 0
# beside an infinity.


MOST_OPS = 256
"""Operations of a function that is read, those of what it calls included."""


def is_softmax(graph: Graph, function: Function, axis: int) -> bool:
    """Whether a function of one float tensor of static shape is seen to give its softmax along an axis."""
    given, returned = function.body.arguments, function.body.terminator.operands
    if len(given) != 1 or len(returned) != 1 or given[0].raw.type != returned[0].raw.type or not given[0].is_static:
        return False
    element = given[0].element
    is_wide = element.name in WIDE_FLOATS
    holding = frozenset(name for name in WIDE_FLOATS if is_wide and element_type(name).holds(element))
    if not _is_within(graph, function, holding):
        return False
    terms = Terms(graph)
    x, quotient = (uncast(terms.of(value.raw)) for value in (given[0], returned[0]))
    power = uncast(quotient.operands[0]) if quotient.op == "divide" else quotient
    less = uncast(power.operands[0]) if power.op == "exponential" else power
    if less.op != "subtract" or uncast(less.operands[0]) is not x:
        return False
    lowest = element_type(x.element).least
    return _is_folded(quotient, "add", power, axis, (0.0,)) and _is_folded(less, "maximum", x, axis, (-np.inf, lowest))


def _is_within(graph: Graph, function: Function, types: frozenset[str]) -> bool:
    """Whether all that a function computes, and what it calls, is of static shape and of one of these types."""
    pending, seen, left = [function], {function.name}, MOST_OPS
    while pending:
        for raw in mlir.operations_within(pending.pop().node.raw):
            left -= 1
            if left < 0 or not all(v.is_static and v.element_type in types for v in map(Value, raw.results)):
                return False
            called = graph.functions.get(Node(raw).body_name)
            if called is not None and called.has_body and called.name not in seen:
                seen.add(called.name)
                pending.append(called)
    return True


def _is_folded(user: Term, name: str, of: Term, axis: int, starts: Sequence[float]) -> bool:
    """Whether the second operand of an op is a reduction of a value along the axis, put back along it: by one op, from
    one of these numbers."""
    view = View.of(user).on(user.operands[1])
    root = view.root()
    if root.term.op != "reduce" or root.term.integers("dimensions") != (axis,):
        return False
    value, *start = root.term.operands
    op = only_op(root.term.node.blocks[0])
    if op is None or op.name != f"stablehlo.{name}" or not uncast(value).is_same(of):
        return False
    kept = [dim for dim in range(len(view.axes)) if dim != axis]
    is_back = all(are_same(root.axis(k), view.axis(dim)) for k, dim in enumerate(kept))
    return is_back and any(start[0].is_number(number) for number in starts)
