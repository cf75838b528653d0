"""Ops on element types that the target refuses for them: the same op on a carrier of the type, exact."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from itertools import zip_longest
from typing import ClassVar

from hlo_lower.base.causes import Cause, Code
from hlo_lower.base.element_types import COMPLEX
from hlo_lower.base.registry import FactsByName, Rule, RuleList
from hlo_lower.facts.ranges.transfer import comparison_direction
from hlo_lower.facts.values.site import Site
from hlo_lower.ir.view import Node, Value
from hlo_lower.lowering.engine.kind import Context, Kind, OpLowering, Refused, Stage, Subject
from hlo_lower.lowering.engine.legality import PART_OPS, dtypes_on
from hlo_lower.lowering.options import Options
from hlo_lower.lowering.single_ops.plain_op import PlainOp
from hlo_lower.lowering.types import element_type
from hlo_lower.lowering.types.carried.bits import BY_BITS
from hlo_lower.lowering.types.carried.carrier import PAIRED, Carrier, Carrying, Form, carriers_of
from hlo_lower.lowering.types.carried.exactness import CHLO_ON_F32, TABLE, How
from hlo_lower.lowering.types.carried.narrower import compares_widened, narrowed
from hlo_lower.lowering.types.carried.on_carriers import lower_on_carriers
from hlo_lower.named.match.matches import Match
from hlo_lower.named.match.selection import argmax
from hlo_lower.named.match.terms import Terms
from hlo_lower.ops import names
from hlo_lower.ops.spec import LAYOUT, MIRRORED, WITH_BODY
from hlo_lower.ops.targets.target import Target

ON_INTEGERS = "stablehlo. on integers"
ON_FLOATS = "stablehlo. on floats"
ON_COMPLEX = "stablehlo. on complex numbers"
"""The names under which rules for ops of any name are registered."""


@dataclass(frozen=True)
class ElementTypeFacts(FactsByName):
    """The facts of one op on element types that are refused for it.

    Attributes:
      carried: how its values are carried, of several types that of the first one.
      op: its name, for conditions of rules.
      scheme: what each type that is refused is carried in.
      takes: whether the target takes an op ("and") on an element type.
      reassociated: whether floats may be added in another order.
      are_truths: whether a bit operation is one of numbers that are 0 or 1.
      are_apart: whether it is one of two numbers that have no bit in common.
      is_extreme: whether it reduces to an extreme and its first place, from the end of the type.
      divisor: of a quotient or remainder, what is divided by everywhere; 0 where that is not known.
    """

    carried: Form
    op: str
    scheme: Mapping[str, Carrier]
    takes: Callable[[str, str], bool]
    reassociated: bool = False
    are_truths: bool = False
    are_apart: bool = False
    is_extreme: bool = False
    divisor: int = 0


integer_rules, float_rules, complex_rules = RuleList(), RuleList(), RuleList()


@integer_rules.lowers(ON_INTEGERS, carried={Form.SIGNED}, form="the op on signed integers of the same bits")
def unsigned_to_signed(op: OpLowering[ElementTypeFacts]) -> Sequence[Value]:
    """Compute unsigned integers as the signed ones of the same bits.

        %r = stablehlo.add %x, %y : ui32        ->   add of the bits as i32
        %r = stablehlo.minimum %x, %y : ui32    ->   minimum(x xor 2^31, y xor 2^31) xor 2^31, as i32
        %r = stablehlo.divide %x, %y : ui32     ->   from the quotient of half of x, by signed division

    Equal: both types hold the numbers modulo 2^w, so sums, products and bit operations are those of the bits. Order is
    that of signed integers once the sign bit is flipped. Quotients, conversions and the rest are written out, each with
    its proof (`lowering/types/carried`).
    """
    return _on_carriers(op)


@integer_rules.lowers(
    ON_INTEGERS, carried={Form.WIDER}, form="the op on a wider integer, wrapped into the range of the type"
)
def integer_to_wider(op: OpLowering[ElementTypeFacts]) -> Sequence[Value]:
    """Compute narrow integers, or unsigned ones, in a wider signed type.

        %r = stablehlo.maximum %x, %y : i8    ->   maximum of the numbers as i32
        %r = stablehlo.add %x, %y : ui8       ->   (x + y) and 255, as i32

    Equal: the wider type holds the same numbers. Where an op can leave the range of the narrow type its result is
    congruent to the right one modulo 2^w, and is put back into the range.
    """
    return _on_carriers(op)


@integer_rules.lowers(ON_INTEGERS, carried={Form.HALVES}, form="the op on the lower and the upper 32 bits")
def wide_to_halves(op: OpLowering[ElementTypeFacts]) -> Sequence[Value]:
    """Compute 64-bit integers on their lower and upper halves.

        %r = stablehlo.xor %x, %y : 4xi64           ->   xor of the bits as 4x2xi32
        %r = stablehlo.add %x, %y : 4xi64           ->   sums of the halves, and the carry
        %r = stablehlo.reduce(%x, %i) : f32, i64    ->   a reduce of three operands, its body on halves
        %r = stablehlo.dot_general %x, %y : i64     ->   36 products of digits of 8 bits, each in its place

    Equal: the halves are the bits in their order, and put together they are the bits again. What each op needs stands,
    with its proof, in `lowering/types/carried`.
    """
    return _on_carriers(op)


@integer_rules.lowers(ON_INTEGERS, carried={Form.ITSELF}, form="and, or, xor, not: by sums, or bit by bit")
def bits_to_sums(op: OpLowering[ElementTypeFacts]) -> Sequence[Value]:
    """Compute bit operations of signed integers where the target has none but `xor`, or none at all.

        %r = stablehlo.and %x, %y : i32    ->   half of x + y - (x xor y), and the sign bit where both are negative
        %r = stablehlo.xor %x, %y : i32    ->   each bit as a truth value, along a last dim; the sum of those set
        %r = stablehlo.and %x, %y : i32    ->   minimum, where both are 0 or 1; or: maximum; xor: whether they differ
        %r = stablehlo.not %x : i32        ->   -1 - x
        %r = stablehlo.or %x, %y : i32     ->   x + y, where no bit is set in both: x is 8 a, and y is below 8

    Equal: x + y = (x xor y) + 2 (x and y) modulo 2^32, which leaves the uppermost bit open. A number is the sum of its
    bits, the uppermost counted as -2^31. What is 0 or 1, or below a power
    of two, shows the analysis of ranges.
    """
    return _on_carriers(op)


@float_rules.lowers(ON_FLOATS, carried={Form.FLOAT}, form="the op in f32, rounded back")
def float_to_f32(op: OpLowering[ElementTypeFacts]) -> Sequence[Value]:
    """Compute bf16 and f16 in f32, and round each result back.

        %r = stablehlo.add %x, %y : bf16    ->   convert(add(convert(x), convert(y)))

    Equal: f32 holds the same numbers. Its sums, products, quotients and roots, rounded again, are those rounded once,
    as it has more than twice the digits and two more; of other functions XLA's definition is the same. A reduction by
    a sum or product is rounded at each step, as XLA does, or once where floats may be added in another order; a matrix
    product is accumulated in f32 by XLA, too, and rounded once.
    """
    return _on_carriers(op)


@float_rules.lowers(ON_FLOATS, carried={Form.NARROWER}, form="the comparison in f32 of what was widened to f64")
def comparison_to_f32(op: OpLowering[ElementTypeFacts]) -> Sequence[Value]:
    """Compare numbers that were widened to f64 as the numbers of f32 that they are.

        %r = stablehlo.compare GT, convert(%x), 0.1 : f64    ->   compare GT, %x, 0.099999994 : f32

    Equal: f64 holds the numbers of f32 in their order, and NaN. A constant between two of them is the lower one for GT
    and LE, the upper one for LT and GE, and NaN, which nothing is equal to, for EQ and NE.
    """
    left, right = op.node.operands
    direction = comparison_direction(op.node)
    narrow = narrowed(op.build, left, MIRRORED[direction]), narrowed(op.build, right, direction)
    return [op.build.compare(narrow[0], direction, narrow[1])]


@complex_rules.lowers(ON_COMPLEX, carried={Form.PARTS}, form="the op on the real and the imaginary part")
def complex_to_parts(op: OpLowering[ElementTypeFacts]) -> Sequence[Value]:
    """Compute complex numbers on their real and imaginary parts.

        %r = stablehlo.multiply %x, %y : complex<f32>      ->   (a c - b d, a d + b c), as f32
        %r = stablehlo.gather(%x, %i) : complex<f32>       ->   a gather of the real parts, one of the imaginary parts
        %r = stablehlo.exponential %x : complex<f32>       ->   as jaxlib writes it out, for XLA, too

    Equal, bit for bit: moves, sums, products, quotients, sizes and signs are written as XLA computes them on a CPU,
    Inf, NaN and zeros of both signs included. So are exp, log, log1p, sqrt, tanh and tan. Other functions are within 4
    units in the last place of the result's size (`complex_functions`), and matrix products are summed in another order:
    those are built where floats may come out otherwise (float mode reassociate). What XLA contracts within its own
    product or quotient it contracts of the parts, too, where it fuses them: elsewhere these differ by a rounding, which
    the verification tells in the exact mode. What is not taken apart at once, an argument, what a loop carries, stands
    in one tensor with a last dim of 2.
    """
    return _on_carriers(op)


def _on_carriers(op: OpLowering[ElementTypeFacts]) -> Sequence[Value]:
    facts = op.facts
    return lower_on_carriers(
        op.node,
        Carrying(
            op.build,
            facts.scheme,
            facts.takes,
            facts.reassociated,
            facts.are_truths,
            facts.are_apart,
            facts.is_extreme,
            facts.divisor,
        ),
    )


# --- ops of any name on element types that the target refuses for them, where it takes the op on other ones ---


WITH_BODIES = WITH_BODY & TABLE.keys()
"""Ops whose body is lowered with them."""

OF_FEW = frozenset({*PART_OPS, names.CONVOLUTION})
"""Ops that are looked at only on types that they have a form for."""

RULED = frozenset(op.value for op in PlainOp)
"""Ops for which there are rules, once they are of real numbers."""

STORED = (Form.SIGNED, Form.WIDER, Form.PARTS)
"""How values are stored whose type a target has no room for."""

HOLDERS = frozenset({"func.func", names.WHILE, names.IF, names.CASE})
"""What an op has to stand in to be lowered by itself."""


class ElementTypeKind(Kind):
    """Ops on element types that are refused for them."""

    op = "stablehlo."
    stage = Stage.TYPES
    domains = ElementTypeFacts.domains
    owned = None
    forms: ClassVar[frozenset[Form]]

    def concerns(self, options: Options) -> bool:
        return options.target.restricts_dtypes

    def read(self, context: Context, node: Node) -> Subject | None:
        """What is known of it; None where the target takes it, or refuses the op itself."""
        target = context.target
        if node.name not in TABLE or is_refused_by_name(target, node):
            return None
        refused = self.carried_types(refused_types(target, node.name, dtypes_on(node)))
        if node.name in OF_FEW and not any(_has_form(node.name, element) for element in refused):
            return None
        parent = node.parent
        if not refused or parent is None or parent.name not in HOLDERS:
            return None
        reassociated = context.options.float_mode == "reassociate"
        facts = (facts_of(target, node, scheme) for scheme in schemes(target, refused, node))
        are_truths = node.name in BY_BITS and all(_is_truth(context, value) for value in node.operands)
        are_apart = node.name in (names.OR, names.XOR) and _are_apart(context, *node.operands)
        told = {
            "are_truths": are_truths,
            "are_apart": are_apart,
            "is_extreme": _is_extreme(context, node),
            "divisor": _divisor(context, node),
        }
        known = [replace(known, reassociated=reassociated, **told) for known in facts]
        if (known[0].carried if known else Form.WIDER) not in self.forms:
            return None
        return self.subject(context, node, *known, told=f"element types {', '.join(refused)}")

    def carried_types(self, refused: list[str]) -> list[str]:
        """The refused types of an op that this kind carries on another type."""
        return refused

    def nodes_to_judge(self, target: Target, built: Sequence[Node]) -> Sequence[Node]:
        """All but casts of types that it has no room for, which are gone in the end."""
        return [node for node in built if not is_cast_of_storage(target, node)]

    def why_left(self, context: Context, subject: Subject, refused: Refused) -> Cause:
        types = refused_types(context.target, subject.node.name, dtypes_on(subject.node))
        name = context.target.name
        why = super().why_left(context, subject, refused) if subject.candidates else Code.NO_FORM_TAKEN(name, ())
        return Code.ON_TYPES(tuple(types), why)

    def title(self, rule: Rule) -> str:
        [form] = rule.constraints["carried"]
        return f"any op, {TITLES[form]}"


class IntegerTypeKind(ElementTypeKind):
    """Ops on integers that are refused for them."""

    name = ON_INTEGERS
    families = (element_type.integer_rules,)
    forms = frozenset({Form.SIGNED, Form.WIDER, Form.HALVES, Form.ITSELF})


class FloatTypeKind(ElementTypeKind):
    """Ops on floats that are refused for them."""

    name = ON_FLOATS
    ops = frozenset({"stablehlo.", *CHLO_ON_F32})
    families = (element_type.float_rules,)
    forms = frozenset({Form.FLOAT, Form.NARROWER})


class ComplexTypeKind(ElementTypeKind):
    """Ops on complex numbers that are refused for them, before the other types: what it builds may be refused, too."""

    name = ON_COMPLEX
    stage = Stage.COMPLEX
    families = (element_type.complex_rules,)
    forms = frozenset({Form.PARTS})

    def carried_types(self, refused: list[str]) -> list[str]:
        """The complex types alone: the stage of element types lowers what is left, on their parts."""
        return [element for element in refused if element in COMPLEX]

    def nodes_to_judge(self, target: Target, built: Sequence[Node]) -> Sequence[Node]:
        """All but casts, and ops that there are rules for."""
        return [node for node in built if not _is_lowered_later(target, node)]


def _is_lowered_later(target: Target, node: Node) -> bool:
    if node.name == PAIRED:
        return is_cast_of_storage(target, node) or all(target.refusal(op, dtypes_on(node)) is None for op in PART_OPS)
    return target.refuses_op(node.name) is not None and node.name in RULED


TITLES: Mapping[Enum, str] = {
    Form.SIGNED: "unsigned integers that are rejected on it",
    Form.WIDER: "integers that are rejected on it",
    Form.FLOAT: "bf16 or f16 that is rejected on it",
    Form.NARROWER: "f64 that is rejected on it, and was widened to",
    Form.PARTS: "complex numbers that are rejected on it",
    Form.HALVES: "64-bit integers that are rejected on it",
    Form.ITSELF: "integers that are rejected on it (and, or)",
}


def _is_truth(context: Context, value: Value) -> bool:
    """Whether a value is 0 or 1 everywhere."""
    low, high = context.analysis.of(Site(value)).hull()
    return low >= 0 and high <= 1


def _is_extreme(context: Context, node: Node) -> bool:
    """Whether a reduction gives an extreme and its first place, along a dim with elements, from the end of the type."""
    if node.name != names.REDUCE or len(node.results) != 2 or not node.is_static:
        return False
    found = argmax(Terms(context.graph).of(node.result(0).raw))
    return isinstance(found, Match) and all(node.operand(0).static_shape[d] for d in node.integers("dimensions"))


def _are_apart(context: Context, x: Value, y: Value) -> bool:
    """Whether no bit is set in both of two numbers: one ends in so many zeros as the other one has bits."""
    for value, other in ((x, y), (y, x)):
        low, high = context.analysis.of(Site(other)).hull()
        if low >= 0 and high < 1 << _zeros_of(context, value):
            return True
    return False


def _divisor(context: Context, node: Node) -> int:
    """What a quotient or remainder of integers is divided by everywhere; 0 of others, or where that is not known."""
    if node.name not in (names.DIVIDE, names.REMAINDER) or not node.operand(1).element.is_integer:
        return 0
    low, high = context.analysis.of(Site(node.operand(1))).hull()
    return int(low) if low == high else 0


def _zeros_of(context: Context, value: Value) -> int:
    """In how many zeros all elements of an integer end, as far as its op tells."""
    node = value.node
    if node is None or not value.element.is_integer:
        return 0
    if (numbers := node.constant()) is not None:
        found = {int(number) for number in numbers.reshape(-1)} - {0}
        return min(((number & -number).bit_length() - 1 for number in found), default=value.element.bits)
    if node.name in LAYOUT:
        return _zeros_of(context, node.operand(0))
    if node.name == names.MULTIPLY:
        return min(sum(_zeros_of(context, operand) for operand in node.operands), value.element.bits)
    if node.name == names.SHIFT_LEFT:
        return min(max(context.analysis.of(Site(node.operand(1))).hull()[0], 0), value.element.bits)
    return 0


def refused_types(target: Target, op: str, dtypes: frozenset[str]) -> list[str]:
    """The element types on an op that the target takes on no op, or not on this one."""
    return [d for d in sorted(dtypes) if target.refuses_dtype(d) is not None or target.refuses_op_on(op, d)]


def is_refused_by_name(target: Target, node: Node) -> bool:
    """Whether a target refuses an op whatever its types are; what is made of it of complex numbers may be other ops."""
    is_refused = target.refuses_op(node.name) is not None and node.name not in target.composites
    return is_refused and not is_of_parts(target, node)


def is_of_parts(target: Target, node: Node) -> bool:
    """Whether an op is one of complex numbers that the target has no room for."""
    return any(element in COMPLEX and is_refused_as_such(target, element) for element in dtypes_on(node))


def is_refused_as_such(target: Target, element: str) -> bool:
    """Whether a target has no room for an element type: what holds values of it has to hold another type."""
    return target.refuses_dtype(element) is not None


def storage_of(target: Target, element: str) -> Carrier | None:
    """What a type is stored in on a target that has no room for it: an integer that holds all its numbers or bits, or
    the two parts of a complex number.

    Predicates are stored in nothing else: what compares, selects, branches and loops is of i1 by definition.
    """
    if element == "i1" or not is_refused_as_such(target, element):
        return None
    found = (carrier for carrier in carriers_of(element) if carrier.form in STORED)
    return next((carrier for carrier in found if target.refuses_dtype(carrier.after) is None), None)


def stored_types(target: Target, dtypes: Iterable[str]) -> frozenset[str]:
    """Element types as a target stores them in the end."""
    becomes = {dtype: storage_of(target, dtype) for dtype in dtypes}
    return frozenset(dtype if carrier is None else carrier.after for dtype, carrier in becomes.items())


def _has_form(name: str, element: str) -> bool:
    return any(TABLE[name].on(carrier.form) is not How.NONE for carrier in carriers_of(element))


def schemes(target: Target, refused: Sequence[str], node: Node) -> Iterator[Mapping[str, Carrier]]:
    """For the types that are refused of an op what each may be carried in, those first that are cheaper.

    A type that the target has no room for is carried in what it is stored in, or in the halves of that.
    """
    choices = [_choices(target, element, node) for element in refused]
    if not all(choices):
        return
    for chosen in zip_longest(*choices):
        pairs = zip(chosen, choices, strict=True)
        yield {carrier.before: carrier for carrier in (one or among[-1] for one, among in pairs)}


def _choices(target: Target, element: str, node: Node) -> list[Carrier]:
    if element == "f64" and compares_widened(node):
        return [Carrier("f64", "f32", Form.NARROWER)]
    stored = storage_of(target, element)
    if is_refused_as_such(target, element):
        return [] if stored is None else [stored, *_usable_carriers(target, node, _halves_of(stored))]
    return _usable_carriers(target, node, carriers_of(element))


def _halves_of(stored: Carrier) -> Iterator[Carrier]:
    """The halves of what a type is stored in by its bits."""
    for carrier in carriers_of(stored.after) if stored.form is Form.SIGNED else ():
        if carrier.form is Form.HALVES:
            yield replace(carrier, before=stored.before, through=stored.after)


def _usable_carriers(target: Target, node: Node, carriers: Iterable[Carrier]) -> list[Carrier]:
    """The carriers on which an op has a form that the target accepts."""
    found = [c for c in carriers if TABLE[node.name].on(c.form) is not How.NONE]
    taken = [c for c in found if c.form is Form.PARTS or not refused_types(target, node.name, frozenset({c.after}))]
    by_bits = sorted(found, key=lambda carrier: carrier.form is not Form.ITSELF) if node.name in BY_BITS else []
    return taken or by_bits


def facts_of(target: Target, node: Node, scheme: Mapping[str, Carrier]) -> ElementTypeFacts:
    """The facts of an op under one choice of carriers."""
    types = (value.element_type for value in (*node.operands, *node.results) if value.is_tensor)
    types = sorted(types, key=lambda element: element not in COMPLEX)
    first = next((scheme[element] for element in types if element in scheme), next(iter(scheme.values())))

    def takes(op: str, element: str) -> bool:
        return target.refusal(f"stablehlo.{op}", (element,)) is None

    return ElementTypeFacts(first.form, node.name, scheme, takes)


def is_cast_of_storage(target: Target, node: Node) -> bool:
    """Whether an op casts between a type that the target has no room for and what it is stored in."""
    if node.name not in (names.CONVERT, names.BITCAST_CONVERT, PAIRED):
        return False
    before, after = node.operand(0).element_type, node.result().element_type
    found = (storage_of(target, element) for element in (before, after))
    return any(c is not None and {c.before, c.after} == {before, after} and c.cast == node.name for c in found)
