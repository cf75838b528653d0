"""Ops on element types that the target refuses for them: the same op on a carrier of the type, exact."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from hlo_lower.base.registry import FactsByName, RuleList
from hlo_lower.ir.view import Value
from hlo_lower.lowering.engine.op import OpLowering
from hlo_lower.lowering.types.carried.carrier import Carrier, Form
from hlo_lower.lowering.types.carried.carrying import Carrying
from hlo_lower.lowering.types.carried.on_carriers import lowered

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
    """

    carried: Form
    op: str
    scheme: Mapping[str, Carrier]
    takes: Callable[[str, str], bool]
    reassociated: bool = False


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
    ON_INTEGERS, carried={Form.WIDER}, form="the op on a wider integer, settled into the range of the type"
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


@integer_rules.lowers(ON_INTEGERS, carried={Form.ITSELF}, form="and, or: by xor, sums and the signs")
def bits_to_sums(op: OpLowering[ElementTypeFacts]) -> Sequence[Value]:
    """Compute `and` and `or` of signed integers where the target has no bit operation but `xor`.

        %r = stablehlo.and %x, %y : i32    ->   half of x + y - (x xor y), and the sign bit where both are negative

    Equal: x + y = (x xor y) + 2 (x and y) modulo 2^32, which leaves the uppermost bit open.
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
    return lowered(op.node, Carrying(op.build, facts.scheme, facts.takes, facts.reassociated))
