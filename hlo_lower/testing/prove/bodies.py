"""The update computations of the family, and the element types that each is proved over.

Floats are uninterpreted, so `f32` stands for every float. Where updates are combined in another order they are integers
of 8 bits, of which every value is tried.
"""

from dataclasses import dataclass

from hlo_lower.facts.values.region import Combiner
from hlo_lower.testing.fuzz.update_computations import Expr, UpdateComputation


@dataclass(frozen=True)
class ProofBody:
    """An update computation, and what it is for.

    Attributes:
      name: for messages.
      combiner: as the region is classified.
      region: it.
      operands: the operands' element types; one may be narrower than the region's.
      is_free: whether updates may be combined with each other first.
      is_wide: whether it is only for rules that multiply, of which few take 8 bits.
    """

    name: str
    combiner: Combiner
    region: UpdateComputation
    operands: tuple[str, ...]
    is_free: bool = False
    is_wide: bool = False


def _body(name: str, combiner: Combiner, *returns: Expr, **how: bool) -> ProofBody:
    elements = tuple(expr.element for expr in returns)
    return ProofBody(
        f"{name} {' and '.join(elements)}", combiner, UpdateComputation(elements, returns), elements, **how
    )


def _binary(op: str, combiner: Combiner, element: str, **how: bool) -> ProofBody:
    return _body(op, combiner, Expr(op, element, (Expr("current", element), Expr("update", element))), **how)


_C, _U = Expr("current", "f32"), Expr("update", "f32")
_D, _V = Expr("current", "f32", number=1), Expr("update", "f32", number=1)
_TRIPLED = Expr("multiply", "f32", (_C, Expr("constant", "f32", number=3)))

BODIES = (
    _body("assign", Combiner.ASSIGN, _U),
    _body("constant", Combiner.ASSIGN_CONSTANT, Expr("constant", "f32", number=2)),
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
    _body("negate", Combiner.UNARY, Expr("negate", "f32", (_C,))),
    _body("3 c - u", Combiner.GENERAL, Expr("subtract", "f32", (_TRIPLED, _U))),
    _body("assign", Combiner.ASSIGN, _U, Expr("update", "i8", number=1)),
    _body("c + v, d - u", Combiner.GENERAL, Expr("add", "f32", (_C, _V)), Expr("subtract", "f32", (_D, _U))),
    ProofBody("add f16 in f32", Combiner.ADD, UpdateComputation(("f32",), (Expr("add", "f32", (_C, _U)),)), ("f16",)),
    _body("nothing", Combiner.NO_OP, _C),
)
