"""Whether a function computes the softmax of its argument: the form that exporters write as a decomposition.

    e = exponential(x - spread(reduce(x, -inf, maximum)))
    e / spread(reduce(e, 0, add))

A name says nothing of that (trap 52), so the function is read: calls are entered, what only says where a tensor lives
is seen through, and so are conversions to a type that holds all that the argument's does. Values that are computed
alike are one. A maximum may begin at -inf or at the least finite number, and be taken with -inf again, as JAX does.
`spread` is any chain of broadcasts and reshapes that puts the reduced value back along the axis. Without the maximum it
is another function: NaN where a power overflows, 0 beside an infinity.
"""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import ml_dtypes
import numpy as np

from hlo_lower import mlir
from hlo_lower.analysis.identity import is_identity
from hlo_lower.graph import Function, Graph, Node, Value
from hlo_lower.graph.regions import only_op

MAX_VALUES = 256
"""Values of a function that are read; one with more is no softmax that is known here."""

_HOLDS: Mapping[str, frozenset[str]] = {
    "f16": frozenset({"f16", "f32", "f64"}),
    "bf16": frozenset({"bf16", "f32", "f64"}),
    "f32": frozenset({"f32", "f64"}),
    "f64": frozenset({"f64"}),
}
"""For each type those that hold all of its values."""


@dataclass(frozen=True, eq=False)
class _Term:
    """A value of the function, calls entered: what gives it, and of what. The argument is one of no node.

    Two that are computed alike are the same object.
    """

    node: Node | None
    number: int
    of: tuple["_Term", ...]

    def is_op(self, name: str) -> bool:
        return self.node is not None and self.node.name == f"stablehlo.{name}"

    @property
    def shape(self) -> tuple[int, ...]:
        assert self.node is not None
        return self.node.result(self.number).static_shape


class _TooLongError(Exception):
    """A function of more values than are read."""


def is_softmax(graph: Graph, function: Function, axis: int) -> bool:
    """Whether a function of one float tensor of static shape is seen to give its softmax along an axis."""
    body = function.body
    arguments, returned = body.arguments, body.terminator.operands
    if len(arguments) != 1 or len(returned) != 1 or arguments[0].raw.type != returned[0].raw.type:
        return False
    argument = arguments[0]
    holds = _HOLDS.get(argument.element_type)
    if holds is None or not argument.is_static:
        return False
    reader = _Reader(graph, holds)
    try:
        result = reader.term(returned[0], {argument: _Term(None, 0, ())})
    except _TooLongError:
        return False
    return result is not None and _is_quotient(result, argument.static_shape, axis)


class _Reader:
    """Makes terms of values."""

    def __init__(self, graph: Graph, holds: frozenset[str]) -> None:
        self._graph = graph
        self._holds = holds
        self._left = MAX_VALUES
        self._terms: dict[Hashable, _Term] = {}

    def term(self, value: Value, known: dict[Value, _Term | None]) -> _Term | None:
        """The term of a value; None where something in it is not known here."""
        if value not in known:
            self._left -= 1
            if self._left < 0:
                raise _TooLongError
            known[value] = self._made(value, known)
        return known[value]

    def _made(self, value: Value, known: dict[Value, _Term | None]) -> _Term | None:
        node = value.node
        if node is None or not value.is_static or value.element_type not in self._holds:
            return None
        if is_identity(node):
            return self.term(node.operand(value.number), known)
        if node.name == "stablehlo.convert":
            return self.term(node.operand(0), known)
        terms: list[_Term] = []
        for operand in node.operands:
            term = self.term(operand, known)
            if term is None:
                return None
            terms.append(term)
        callee = self._graph.functions.get(node.body_name)
        if callee is not None and callee.has_body:
            inner: dict[Value, _Term | None] = dict(zip(callee.body.arguments, terms, strict=True))
            return self.term(callee.body.terminator.operand(value.number), inner)
        attributes = tuple(sorted((name, str(own)) for name, own in mlir.attributes_of(node.raw).items()))
        regions = tuple(str(region) for region in node.blocks) if node.has_regions else ()
        key = (node.name, value.number, tuple(terms), value.raw.type, attributes, regions)
        return self._terms.setdefault(key, _Term(node, value.number, tuple(terms)))


def _is_quotient(result: _Term, shape: tuple[int, ...], axis: int) -> bool:
    if not result.is_op("divide"):
        return False
    powers, total = result.of
    summed = _spread_of(total, shape, axis)
    if summed is None or not powers.is_op("exponential"):
        return False
    return _is_folded(summed, "add", powers, axis, (0.0,)) and _is_exponent(powers.of[0], shape, axis)


def _is_exponent(term: _Term, shape: tuple[int, ...], axis: int) -> bool:
    """Whether a term is the argument less its greatest value along the axis."""
    if not term.is_op("subtract") or term.of[0].node is not None:
        return False
    greatest = _spread_of(term.of[1], shape, axis)
    return greatest is not None and _is_folded(greatest, "maximum", term.of[0], axis, (-np.inf, None))


def _is_folded(term: _Term, name: str, of: _Term, axis: int, starts: Sequence[float | None]) -> bool:
    """Whether a term is a reduce of another one along the axis, by one op, from one of these values.

    None stands for the least finite number.
    """
    node = term.node
    if node is None or node.name != "stablehlo.reduce" or len(term.of) != 2 or term.of[0] is not of:
        return False
    if node.integers("dimensions") != (axis,):
        return False
    op, start = only_op(node.blocks[0]), _splat(term.of[1])
    return op is not None and op.name == f"stablehlo.{name}" and start is not None and _is_one_of(start, starts)


def _is_one_of(value: np.generic, starts: Sequence[float | None]) -> bool:
    lowest = float(cast(Any, ml_dtypes).finfo(value.dtype).min)
    return any(float(value) == (lowest if start is None else start) for start in starts)


def _splat(term: _Term) -> np.generic | None:
    """The one value of a constant that is the same everywhere, in whatever shape it is spread."""
    while term.is_op("broadcast_in_dim") or term.is_op("reshape"):
        (term,) = term.of
    if not term.is_op("constant") or term.node is None:
        return None
    values = term.node.constant()
    if values is None or values.size == 0 or not bool(np.all(values == values.flat[0])):
        return None
    return values.flat[0]


def _spread_of(term: _Term, shape: tuple[int, ...], axis: int) -> _Term | None:
    """The reduced value that a term is, put back along the axis; None where it is not that.

    Dims of one element are told by no place: in a reshape the others have to stay in their order.
    """
    steps: list[_Term] = []
    while term.is_op("broadcast_in_dim") or term.is_op("reshape") or _is_floored(term):
        if not _is_floored(term):
            steps.append(term)
        term = term.of[_floored(term)] if _is_floored(term) else term.of[0]
    if not term.is_op("reduce"):
        return None
    kept = [d for d in range(len(shape)) if d != axis]
    if term.shape != tuple(shape[d] for d in kept):
        return None
    places: list[int | None] = [d if shape[d] != 1 else None for d in kept]
    sizes = term.shape
    for step in reversed(steps):
        assert step.node is not None
        following: list[int | None] = [None] * len(step.shape)
        if step.is_op("reshape"):
            long = [n for n, size in enumerate(step.shape) if size != 1]
            if [step.shape[n] for n in long] != [size for size in sizes if size != 1]:
                return None
            pairs = zip(long, [p for p, size in zip(places, sizes, strict=True) if size != 1], strict=True)
        else:
            dims = step.node.integers("broadcast_dimensions")
            pairs = ((d, p) for d, p, size in zip(dims, places, sizes, strict=True) if size != 1)
        for n, place in pairs:
            following[n] = place
        places, sizes = following, step.shape
    wanted = [d if d != axis and size != 1 else None for d, size in enumerate(shape)]
    return term if sizes == tuple(shape) and places == wanted else None


def _is_floored(term: _Term) -> bool:
    """Whether a term is the maximum of something and -inf, which is that something."""
    return term.is_op("maximum") and any(_is_lowest(t) for t in term.of)


def _floored(term: _Term) -> int:
    return 1 if _is_lowest(term.of[0]) else 0


def _is_lowest(term: _Term) -> bool:
    start = _splat(term)
    return start is not None and float(start) == -np.inf
