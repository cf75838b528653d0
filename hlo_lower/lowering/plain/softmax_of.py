"""Whether a function computes the softmax of its argument: the form that exporters write as a decomposition.

    e = exponential(x - spread(reduce(x, -inf, maximum)))
    e / spread(reduce(e, 0, add))

A name says nothing of that (trap 52), so the function is read, as the matchers of named ops read values
(`hlo_lower.named.match.terms`): calls are entered, and barriers are seen through. Conversions are where nothing in the
function is of a type that does not hold all that the argument's does. A maximum may begin at -inf or at the least
finite number, and be taken with -inf again, as JAX does. `spread` is any chain of broadcasts and reshapes that puts the
reduced value back along the axis. Without the maximum it is another function: NaN where a power overflows, 0 beside an
infinity.
"""

from collections.abc import Sequence

import numpy as np

from hlo_lower.base.element_types import WIDE_FLOATS, element_type
from hlo_lower.ir import mlir
from hlo_lower.ir.regions import only_op
from hlo_lower.ir.view import Function, Graph, Node, Value
from hlo_lower.named.match.arithmetic import uncast
from hlo_lower.named.match.axis_atoms import View, are_same
from hlo_lower.named.match.terms import Term, Terms

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
        for raw in mlir.walked(pending.pop().node.raw):
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
