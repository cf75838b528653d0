"""dropout of inference: x itself, through a product with 1 or a select whose predicate is a constant.

    where(ones, x / 1.0, 0)      x * ones / 1.0      select(training, ..., x), training a constant

It is that and nothing else: what gives x back is what `terms` looks through, and does so by arithmetic: calls, reshapes
and conversions alone are none. No attributes.
"""

from hlo_lower.ir import mlir
from hlo_lower.named.match.found import Found, Match, matchers
from hlo_lower.named.match.terms import Term
from hlo_lower.ops.names import DIVIDE, MULTIPLY, SELECT

ARITHMETIC = frozenset({MULTIPLY, DIVIDE, SELECT})


@matchers.finds("dropout", at=tuple(f"identity {op}" for op in (*sorted(ARITHMETIC), "func.call")))
def dropout(anchor: Term) -> Found:
    """What gives back one of its operands.

    Args:
      anchor: the result, as a term of its own that is not looked through.
    """
    terms, beneath = anchor.terms, anchor.terms.of(anchor.raw)
    if not anchor.is_float or beneath.surface is None or _goes_on(anchor, beneath):
        return None
    chain = terms.passed(anchor.raw)
    made = [producer for raw in chain if (producer := mlir.producer(raw)) is not None]
    if not any(operation.name in ARITHMETIC for operation in made):
        return None
    x = Term(terms, beneath.surface, None, beneath.op, beneath.surface)
    return Match("dropout", {"x": x}, [anchor])


def _goes_on(anchor: Term, beneath: Term) -> bool:
    """Whether what takes the value gives it back as well: then that is the dropout."""
    takers = anchor.terms.takers_of(anchor.raw)
    return any(op.name in (*ARITHMETIC, "func.call") and term is beneath for op, term in takers)
