"""The bounded family of scatters: extents 0 to 3, up to 3 updates (or 2 by 2), windows that overlap."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import Literal

from hlo_lower.facts.values.region import Combiner
from hlo_lower.testing.fuzz.case_forms import CaseForm
from hlo_lower.testing.fuzz.index_columns import DrawnColumn
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


EXTENTS = (0, 1, 2, 3)
COUNTS = ((), (0,), (1,), (2,), (3,))
"""Scatter dims: none, which is one window, or up to three positions."""


def form_of(
    operand: tuple[int, ...],
    window: tuple[int | None, ...],
    indexed: tuple[int, ...],
    positions: tuple[int, ...],
    *,
    is_batched: bool = False,
    vector: Literal["last", "first", "implied"] = "last",
) -> CaseForm:
    """A form of the family, its scatter dims before its window dims.

    Args:
      operand: the operand's shape.
      window: for each operand dim the window's extent; None where the dim is inserted, or batching.
      indexed: the operand dims that the components of the index vector are for, in their order.
      positions: the scatter dims.
      is_batched: whether dim 0 of the operand is a batching dim, counted by the first scatter dim.
      vector: where the index vector stands; "implied": nowhere, for it has one component.
    """
    count, inserted = (
        len(positions),
        tuple(d for d, w in enumerate(window) if w is None and not (is_batched and d == 0)),
    )
    return CaseForm(
        operand,
        tuple(1 if w is None else w for w in window),
        inserted,
        ((0, 0),) if is_batched else (),
        positions,
        tuple(map(DrawnColumn, indexed)),
        0 if vector == "first" else count,
        vector == "implied",
        tuple(range(count, count + sum(w is not None for w in window))),
    )


def told(form: CaseForm) -> str:
    """A form in a line."""
    sizes = "x".join(str(w) if d in form.kept else "_" for d, w in enumerate(form.window))
    where = f"{'x'.join(map(str, form.positions))} windows" if form.positions else "1 window"
    dims = [column.dim for column in form.columns]
    return f"{'x'.join(map(str, form.operand))}: {where} of {sizes} at dims {dims}"


def is_vector_last(form: CaseForm) -> bool:
    """Whether the index vector stands behind the scatter dims."""
    return not form.implicit and form.index_vector_dim == len(form.positions)


PAIRS = ((2, 3), (3, 2), (3, 3), (2, 1), (0, 2))
"""Operand shapes of rank 2; the largest is written by two windows at most."""


def forms() -> Iterator[CaseForm]:
    """Every form of the family; the index tensor is an argument."""
    for size, count in product(EXTENTS, COUNTS):
        yield form_of((size,), (None,), (0,), count)
        yield from (form_of((size,), (w,), (0,), count) for w in (0, 1, 2, 3) if w <= size)
    for pair, count in product(PAIRS, COUNTS):
        if pair != (3, 3) or count != (3,):
            yield from _of_two(pair, count)
    for size, count in product((2, 3), ((), (2,), (3,))):
        yield form_of((size, 2), (None, 2), (0,), count, vector="first")
        yield form_of((size, 2), (None, 2), (0,), count, vector="implied")
    yield from _batched()
    yield from (form_of(shape, (None, None), (0, 1), (2, 2)) for shape in ((2, 3), (3, 3)))


def _of_two(shape: tuple[int, int], count: tuple[int, ...]) -> Iterator[CaseForm]:
    """Rows, columns, points, and windows that overlap."""
    rows, columns = shape
    yield form_of(shape, (None, columns), (0,), count)
    yield form_of(shape, (rows, None), (1,), count)
    yield form_of(shape, (None, None), (0, 1), count)
    if min(shape) >= 1:
        yield form_of(shape, (None, None), (1, 0), count)
        # What no component is for begins at 0, and the window does not cover it.
        yield form_of(shape, (None, None), (1,), count)
        yield form_of(shape, (None, 1), (0,), count)
        yield form_of(shape, (1, min(columns, 2)), (0, 1), count)
    if min(shape) >= 2:
        yield form_of(shape, (2, 2), (0, 1), count)
        yield form_of(shape, (2, 1), (0,), count)


def _batched() -> Iterator[CaseForm]:
    """One row or window for each coordinate of a batching dim."""
    for batches, size, is_first in product((1, 2, 3), (1, 2, 3), (False, True)):
        for window in (None, min(size, 2)):
            vector = "first" if is_first else "last"
            yield form_of((batches, size), (None, window), (1,), (batches,), is_batched=True, vector=vector)
    yield form_of((2, 2, 2), (None, None, 2), (1,), (2,), is_batched=True)
