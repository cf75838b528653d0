"""Ops of static shape that a target refuses, whole or on some element types, each lowered by a rule of its own."""

from collections.abc import Sequence
from math import prod

from hlo_lower.base.causes import Cause
from hlo_lower.base.element_types import WIDE_FLOATS
from hlo_lower.base.registry import Rule
from hlo_lower.facts.sort.total_order import may_have_one_nan
from hlo_lower.facts.values.site import Site
from hlo_lower.ir.view import Node, Value
from hlo_lower.lowering import gather
from hlo_lower.lowering.engine.kind import Context, Kind, Refused, Stage, Subject
from hlo_lower.lowering.engine.legality import dtypes_on
from hlo_lower.lowering.single_ops import arithmetic, fft, float_bits, products, random_bits, reductions, updates
from hlo_lower.lowering.single_ops.plain_op import PLAIN, Elements, Numbers, PlainFacts, PlainOp, Whole, elements_of
from hlo_lower.lowering.types.element_type import is_of_parts
from hlo_lower.ops.names import AND, DIVIDE, OR, SORT
from hlo_lower.ops.quirks.quirk import Quirk
from hlo_lower.ops.quirks.sums import summed_over
from hlo_lower.ops.refused_forms import RefusedForm, refused_form
from hlo_lower.ops.targets.target import Target


class PlainOpKind(Kind):
    """Ops for which there is a table of rules."""

    name = op = PLAIN
    ops = frozenset(op.value for op in PlainOp)
    stage = Stage.LOWERED
    domains = PlainFacts.domains
    families = (
        *(arithmetic.rules, reductions.rules, products.rules, fft.rules, random_bits.rules, gather.plain_rules),
        float_bits.rules,
        updates.rules,
    )
    owned = frozenset(
        (
            *("window_dimensions", "window_strides", "base_dilations", "window_dilations", "padding", "dimensions"),
            *("exponent_bits", "mantissa_bits", "epsilon", "feature_index", "result_accuracy"),
            *("dot_dimension_numbers", "precision_config", "algorithm", "fft_type", "fft_length"),
            *("edge_padding_low", "edge_padding_high", "interior_padding", "dimension_numbers", "feature_group_count"),
            *("batch_group_count", "lhs_dilation", "rhs_dilation", "window_reversal", "rng_algorithm"),
        )
    )

    def read(self, context: Context, node: Node) -> Subject | None:
        """What is known of it; without any form where its shape is dynamic, None where the target takes it.

        One that is taken is read, too, where it stands in a form that is not. An op that is refused for its element
        types alone is first computed on others, where that can be done; one of complex numbers always is. A comparator
        stays as it is for the rules of its sort.
        """
        parent = node.parent
        if parent is not None and parent.name == SORT and context.target.refuses_op(SORT) is not None:
            return None
        is_whole = context.target.refuses_op(node.name) is not None
        form = None if is_whole else refused_form(context.graph, context.target, node, self.name)
        if form is None and context.target.refusal(node.name, dtypes_on(node)) is None:
            return None
        if form is None and not context.is_carried and not is_whole:
            return None
        if is_of_parts(context.target, node) and node.name != PlainOp.FFT.value:
            return None
        if not node.is_static:
            return self.subject(context, node)
        return self.subject(context, node, _facts(context, node, form))

    def nodes_to_judge(self, target: Target, built: Sequence[Node]) -> Sequence[Node]:
        """All but shifts and bitcasts of words: they are lowered next, and those rules build none."""
        return [node for node in built if node.name not in SHIFTS and not is_bitcast_of_words(node)]

    def nearest(self, context: Context, subject: Subject, refused: Refused) -> Sequence[tuple[Rule, tuple[Cause, ...]]]:
        """The rules for ops of its name."""
        facts = context.op_facts(subject.node, subject.candidates[0].facts)
        tried = {rule.name: why for rule, why in refused.nearest}
        known = context.registry.rules(PLAIN)
        own = [r for r in known if all(facts[f] in r.constraints.get(f, {facts[f]}) for f in ("named", "needs"))]
        return [(rule, tried.get(rule.name) or rule.misses(facts)) for rule in own]

    def title(self, rule: Rule) -> str:
        """ "round_nearest_even, elements floats"."""
        return super().title(rule).removeprefix("op, named stablehlo.")


SHIFTS = frozenset(op.value for op in (PlainOp.SHIFT_LEFT, PlainOp.SHIFT_RIGHT, PlainOp.SHIFT_RIGHT_LOGICAL))

BUILT = SHIFTS | {PlainOp.DYNAMIC_UPDATE_SLICE.value}
"""Ops that rules may build for a target without them: they are lowered next."""

WINDOWED = (PlainOp.REDUCE_WINDOW, PlainOp.SELECT_AND_SCATTER)


WIDE = 64
"""Bits of integers that are divided on their halves where a target does not divide them."""


def is_bitcast_of_words(node: Node) -> bool:
    """Whether it makes what `random_bits_to_rounds` gives for a state, which is taken as words alone."""
    is_bitcast = node.name == PlainOp.BITCAST_CONVERT.value
    return is_bitcast and (node.operand(0).element_type, node.result().element_type) == (
        random_bits.WORD,
        random_bits.STATE,
    )


def _facts(context: Context, node: Node, form: Quirk | None) -> PlainFacts:
    named = PlainOp(node.name)
    exponent, may_have_sign = _common_exponent(context, node) if named is PlainOp.BITCAST_CONVERT else (0, False)
    return PlainFacts(
        named,
        elements_of(node.operand(0).element_type),
        Numbers.BOUNDED if context.options.float_mode == "reassociate" else Numbers.EXACT,
        Whole.WHOLE if form is None else RefusedForm.of(form),
        node.operand(0).element.integer_bits,
        is_safe_divisor=named is PlainOp.REMAINDER and _is_safe_divisor(context, node),
        window=prod(node.integers("window_dimensions")) if named in WINDOWED else 0,
        summed=summed_over(node) if named is PlainOp.DOT_GENERAL else 0,
        exponent=exponent,
        may_have_sign=may_have_sign,
        has_one_nan=named is PlainOp.BITCAST_CONVERT
        and may_have_one_nan(context.analysis.sources, Site(node.operand(0))),
        shift=_known_shift(context, node) if node.name in SHIFTS else None,
    )


def _known_shift(context: Context, node: Node) -> int | None:
    """By how many bits a shift shifts, where all elements are shifted by the same number of them."""
    amount = node.operand(1)
    if elements_of(amount.element_type) not in (Elements.SIGNED, Elements.UNSIGNED) or not prod(amount.static_shape):
        return None
    low, high = context.analysis.of(Site(amount)).hull()
    return low if low == high else None


def _common_exponent(context: Context, node: Node) -> tuple[int, bool]:
    """The exponent's bits of the floats of which integers are the bits, where all are alike, as rules want it; and
    whether one may have a sign."""
    made, (given, result) = node.result().element, (node.operand(0), node.result())
    if made.name not in WIDE_FLOATS or elements_of(given.element_type) not in (Elements.SIGNED, Elements.UNSIGNED):
        return 0, False
    if given.element.bits != made.bits or not prod(result.static_shape):
        return 0, False
    zeros, ones = _known_bits(context, given)
    most = (1 << made.exponent) - 1
    exponent = ones >> made.mantissa & most
    is_known = (zeros | ones) >> made.mantissa & most == most and made.mantissa < exponent < most
    return (exponent, not zeros >> made.bits - 1) if is_known else (0, False)


MOST_MASKS = 4
"""Ops on bits behind one another that are looked at."""


def _known_bits(context: Context, value: Value, depth: int = MOST_MASKS) -> tuple[int, int]:
    """The bits that are 0 in each element of integers, and those that are 1."""
    every = (1 << value.element.bits) - 1
    low, high = context.analysis.of(Site(value)).hull()
    # of numbers that all have a sign, or all none, those above the highest one that differs
    known = every & -1 << (low ^ high).bit_length() if (low < 0) == (high < 0) else 0
    zeros, ones = ~low & known, low & known
    made = value.node
    if depth and made is not None and made.name in (AND, OR):
        (zeros_a, ones_a), (zeros_b, ones_b) = (_known_bits(context, one, depth - 1) for one in made.operands)
        zeros |= zeros_a | zeros_b if made.name == AND else zeros_a & zeros_b
        ones |= ones_a & ones_b if made.name == AND else ones_a | ones_b
    return zeros, ones


def _is_safe_divisor(context: Context, node: Node) -> bool:
    """Whether a divisor is never 0 or -1, or is divided by in long division, which any number is right for."""
    divisor = node.operand(1)
    if elements_of(divisor.element_type) not in (Elements.SIGNED, Elements.UNSIGNED):
        return False
    if divisor.element.integer_bits == WIDE and context.target.refusal(DIVIDE, dtypes_on(node)) is not None:
        return True
    low, high = context.analysis.of(Site(divisor)).hull()
    return low > 0 or high < -1
