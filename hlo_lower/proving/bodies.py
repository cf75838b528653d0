"""The update computations of the family, and the element types that each is proved over.

Floats are uninterpreted, so `f32` stands for every float. Where updates are combined in another order they are integers
of 8 bits, of which every value is tried.
"""

from dataclasses import dataclass

from hlo_lower.analysis import Combiner


@dataclass(frozen=True)
class ProofBody:
    """A region on current %c and update %u, of element type $t.

    Attributes:
      name: for messages.
      combiner: as the region is classified.
      element: the operand's element type.
      text: its operations.
      is_free: whether updates may be combined with each other first.
      is_wide: whether it is only for rules that multiply, of which few take 8 bits.
      more: the element type of a second operand, whose current value is %d and whose update is %v; "" for none.
      operand: the operand's element type where the region's is wider.
    """

    name: str
    combiner: Combiner
    element: str
    text: str
    is_free: bool = False
    is_wide: bool = False
    more: str = ""
    operand: str = ""

    @property
    def elements(self) -> list[str]:
        """The element type of each operand."""
        return [self.operand or self.element, *([self.more] if self.more else [])]

    @property
    def results(self) -> list[str]:
        """The element type of each result."""
        return [self.element, *([self.more] if self.more else [])]


def _binary(op: str, combiner: Combiner, element: str, *, is_free: bool = False, is_wide: bool = False) -> ProofBody:
    text = f"%n = stablehlo.{op} %c, %u : tensor<{element}>\n stablehlo.return %n : tensor<{element}>"
    return ProofBody(f"{op} {element}", combiner, element, text, is_free, is_wide)


def _constant(element: str, value: str) -> ProofBody:
    text = f"%n = stablehlo.constant dense<{value}> : tensor<{element}>\n stablehlo.return %n : tensor<{element}>"
    return ProofBody(f"constant {element}", Combiner.ASSIGN_CONSTANT, element, text)


BODIES = (
    ProofBody("assign f32", Combiner.ASSIGN, "f32", "stablehlo.return %u : tensor<f32>"),
    _constant("f32", "2.5"),
    _binary("add", Combiner.ADD, "f32"),
    _binary("subtract", Combiner.SUB, "f32"),
    _binary("add", Combiner.ADD, "i8", is_free=True),
    _binary("add", Combiner.ADD, "i32", is_free=True, is_wide=True),
    _binary("subtract", Combiner.SUB, "i8", is_free=True),
    _binary("minimum", Combiner.MIN, "i8", is_free=True),
    _binary("maximum", Combiner.MAX, "i8", is_free=True),
    _binary("xor", Combiner.XOR, "i8", is_free=True),
    _binary("or", Combiner.OR, "i1", is_free=True),
    _binary("and", Combiner.AND, "i1", is_free=True),
    ProofBody(
        "negate f32",
        Combiner.UNARY,
        "f32",
        "%n = stablehlo.negate %c : tensor<f32>\n stablehlo.return %n : tensor<f32>",
    ),
    ProofBody(
        "3 c - u f32",
        Combiner.GENERAL,
        "f32",
        "%k = stablehlo.constant dense<3.0> : tensor<f32>\n %m = stablehlo.multiply %c, %k : tensor<f32>\n"
        " %n = stablehlo.subtract %m, %u : tensor<f32>\n stablehlo.return %n : tensor<f32>",
    ),
    ProofBody(
        "assign f32 and i8",
        Combiner.ASSIGN,
        "f32",
        "stablehlo.return %u, %v : tensor<f32>, tensor<i8>",
        more="i8",
    ),
    ProofBody(
        "c + v, d - u f32",
        Combiner.GENERAL,
        "f32",
        "%n = stablehlo.add %c, %v : tensor<f32>\n %m = stablehlo.subtract %d, %u : tensor<f32>\n"
        " stablehlo.return %n, %m : tensor<f32>, tensor<f32>",
        more="f32",
    ),
    ProofBody(
        "add f16 in f32",
        Combiner.ADD,
        "f32",
        "%n = stablehlo.add %c, %u : tensor<f32>\n stablehlo.return %n : tensor<f32>",
        operand="f16",
    ),
    ProofBody("nothing f32", Combiner.NO_OP, "f32", "stablehlo.return %c : tensor<f32>"),
)
