"""Draw update computations of a combiner family: its types, and one of the ways in which programs write it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from hlo_lower.base.element_types import element_type
from hlo_lower.testing.fuzz.draw import Draw
from hlo_lower.testing.fuzz.drawn_types import ANY, INTEGERS, NUMBERS, ORDERED, TYPES, WIDER
from hlo_lower.testing.fuzz.update_computations import Expr, UpdateComputation

FAMILIES = (
    *("assign", "add", "assign_constant", "sub", "mul", "min/max", "and/or/xor"),
    *("unary", "no_op", "general", "mixed"),
)
"""The combiner families, the simplest first; "mixed" is a variadic scatter whose operands disagree."""

_OF_COMBINER = {"min": "min/max", "max": "min/max", "and": "and/or/xor", "or": "and/or/xor", "xor": "and/or/xor"}


def family_of(combiner: str) -> str:
    """The family of a record's combiner, "add" or "assign, add"."""
    parts = [part.strip() for part in combiner.split(",")]
    return _OF_COMBINER.get(parts[0], parts[0]) if len(set(parts)) == 1 else "mixed"


def draw_region(draw: Draw, family: str) -> tuple[tuple[str, ...], UpdateComputation]:
    """The operands' element types, and an update computation of a family on them."""
    operands, elements, returns = _draw_mixed(draw) if family == "mixed" else _draw_alike(draw, family)
    return operands, UpdateComputation(elements, _number_captured(returns))


_Drawn = tuple[tuple[str, ...], tuple[str, ...], tuple[Expr, ...]]


def _draw_alike(draw: Draw, family: str) -> _Drawn:
    """One operand, or two of the same family."""
    arity = 2 if draw.chance(12) else 1
    operands: list[str] = []
    elements: list[str] = []
    for i in range(arity):
        allowed = _types_of(family)
        # XLA refuses different float types in one scatter: mostly the same, so that it can judge.
        name = operands[0] if i and draw.chance(60) else _type(draw, allowed)
        operands.append(name)
        elements.append(_draw_wider(draw, name))
    if arity > 1 and family == "general" and draw.chance(50):
        return tuple(operands), tuple(elements), _coupled_region(draw, elements)
    return tuple(operands), tuple(elements), tuple(DRAWERS[family](draw, e, i) for i, e in enumerate(elements))


def _draw_mixed(draw: Draw) -> _Drawn:
    """Operands of different families, computed apart."""
    arity = 3 if draw.chance(20) else 2
    first = draw.choice(("assign", "add", "mul", "sub", "min/max", "unary", "general", "assign_constant"))
    second = draw.choice([f for f in ("add", "assign", "no_op", "general", "unary", "min/max") if f != first])
    families = [first, second, draw.choice(("assign", "add"))][:arity]
    operands: list[str] = []
    for family in families:
        allowed = _types_of(family)
        same = [name for name in operands if name in allowed]
        operands.append(same[0] if same and not draw.chance(40) else _type(draw, allowed))
    elements = [_draw_wider(draw, name) for name in operands]
    returns = [DRAWERS[f](draw, e, i) for i, (f, e) in enumerate(zip(families, elements, strict=True))]
    if operands[0] == operands[1] and elements[0] == elements[1] and draw.chance(15):
        returns[0], returns[1] = returns[1], returns[0]  # coupled: each result comes from the other operand
    return tuple(operands), tuple(elements), tuple(returns)


def _number_captured(returns: Sequence[Expr]) -> tuple[Expr, ...]:
    """Number the runtime values that are captured, one for each element type."""
    numbers: dict[str, int] = {}

    def settle(expr: Expr) -> Expr:
        if expr.op == "captured":
            return replace(expr, number=numbers.setdefault(expr.element, len(numbers)))
        return replace(expr, args=tuple(settle(a) for a in expr.args))

    return tuple(settle(e) for e in returns)


def _types_of(family: str) -> tuple[str, ...]:
    if family in ("assign", "assign_constant", "no_op"):
        return ANY
    if family == "and/or/xor":
        return (*INTEGERS, "i1", "i1", "i1")
    if family == "mul":
        return tuple(name for name in NUMBERS if TYPES[name].kind != "complex")
    return NUMBERS if family in ("add", "sub") else (*ORDERED, "i1") if family == "min/max" else ORDERED


def _type(draw: Draw, allowed: Sequence[str]) -> str:
    common = [name for name in ("f32", "i32", "bf16", "i8", "ui8", "f16", "i1") if name in allowed]
    return draw.choice(allowed) if draw.chance(55) else draw.choice(common)


def _draw_wider(draw: Draw, name: str) -> str:
    return draw.choice(WIDER[name]) if name in WIDER and draw.chance(8) else name


# --- one family each ---


def _current(element: str, i: int) -> Expr:
    return Expr("current", element, number=i)


def _update(element: str, i: int) -> Expr:
    return Expr("update", element, number=i)


def _number(draw: Draw, element: str) -> Expr:
    """A value that is neither: a constant, within the region or captured, or captured at run time (trap 44)."""
    how = draw.choice(("constant",) * 6 + ("captured constant",) * 3 + ("captured",) * 2)
    # The numbers of captured values are settled when all returned expressions are there.
    return Expr(how, element, number=0 if how == "captured" else draw.integer(2, 5))


def _binary(draw: Draw, op: str, a: Expr, b: Expr, *, plain: bool = True) -> Expr:
    """Mostly the op itself, where the family is known by it."""
    form = "" if plain or not draw.chance(30) else draw.choice(("call", "boxed"))
    return Expr(op, a.element, (a, b), form=form)


def _either_order(draw: Draw, op: str, element: str, i: int) -> Expr:
    pair = (_current(element, i), _update(element, i))
    return _binary(draw, op, *(pair[::-1] if draw.chance(30) else pair))


def _signed(element: str) -> bool:
    return TYPES[element].kind in ("float", "signed", "complex")


def _assign(draw: Draw, element: str, i: int) -> Expr:
    update = _update(element, i)
    if element not in ORDERED or not draw.chance(25):
        return update
    ways = [lambda: _binary(draw, "add", update, _number(draw, element), plain=False)]
    ways.append(lambda: _binary(draw, "maximum", update, _number(draw, element), plain=False))
    if _signed(element):
        ways.append(lambda: Expr("negate", element, (update,)))
    return draw.choice(ways)()


def _unary(draw: Draw, element: str, i: int) -> Expr:
    current = _current(element, i)
    ways = [lambda: _binary(draw, "add", current, _number(draw, element), plain=False)]
    ways.append(lambda: _binary(draw, "multiply", current, _number(draw, element), plain=False))
    ways.append(lambda: _binary(draw, "subtract", _number(draw, element), current, plain=False))
    if _signed(element):
        ways.append(lambda: Expr("negate", element, (current,)))
        ways.append(lambda: Expr("abs", element, (current,)))
    if TYPES[element].kind in ("signed", "unsigned"):
        ways.append(lambda: Expr("not", element, (current,)))
    return draw.choice(ways)()


def _general(draw: Draw, element: str, i: int) -> Expr:
    """What no other family is: swapped subtraction, nested ops, compare-select bodies, calls, division, power."""
    current, update = _current(element, i), _update(element, i)
    is_float = TYPES[element].kind == "float"

    def compare(direction: str, a: Expr, b: Expr) -> Expr:
        return Expr(f"compare {direction}", "i1", (a, b))

    def select(condition: Expr, a: Expr, b: Expr) -> Expr:
        return Expr("select", element, (condition, a, b))

    ways: list[Callable[[], Expr]] = [
        lambda: _binary(draw, "subtract", update, current, plain=False),
        lambda: select(compare(draw.choice(("LT", "LE", "GT", "EQ")), update, current), update, current),
        lambda: select(compare("GT", current, _number(draw, element)), current, _binary(draw, "add", current, update)),
        lambda: _binary(draw, "maximum", _binary(draw, "add", current, _number(draw, element)), update, plain=False),
        lambda: Expr("add", element, (current, update), form="call"),
        lambda: Expr("add", element, (current, update), form="boxed"),
        lambda: Expr("subtract", element, (current, _binary(draw, "add", update, _number(draw, element)))),
        lambda: Expr("maximum", element, (current, update), form=draw.choice(("call", "boxed"))),
    ]
    if is_float and element != "f4E2M1FN":  # which has no NaN for 0 / 0
        ways.append(lambda: _binary(draw, "divide", current, update, plain=False))
        ways.append(lambda: _binary(draw, "divide", update, current))
    if TYPES[element].kind in ("signed", "unsigned"):
        ways.append(lambda: _affine(draw, current, update))
        ways.append(lambda: Expr("power", element, (current, Expr("and", element, (update, _exponent(element))))))
    if element in WIDER and TYPES[element].kind in ("signed", "unsigned", "float"):
        wide = WIDER[element][0]
        ways.append(lambda: _through(wide, current, update))
    return draw.choice(ways)()


def _affine(draw: Draw, current: Expr, update: Expr) -> Expr:
    """3 c - u: neither commutative nor associative."""
    tripled = Expr("multiply", current.element, (current, _number(draw, current.element)))
    return _binary(draw, "subtract", tripled, update, plain=False)


def _exponent(element: str) -> Expr:
    return Expr("constant", element, number=1 if element_type(element).bits <= 2 else 3)


def _through(wide: str, current: Expr, update: Expr) -> Expr:
    """Computed in a wider type and converted back: max(wide c, wide u) is exact in both."""
    inputs = tuple(Expr("convert", wide, (e,)) for e in (current, update))
    return Expr("convert", current.element, (Expr("maximum", wide, inputs),))


def _coupled_region(draw: Draw, elements: Sequence[str]) -> tuple[Expr, ...]:
    """Lexicographic argmin: where the first update is less, all operands take theirs."""
    condition = Expr(
        f"compare {draw.choice(('LT', 'LE', 'GT'))}", "i1", (_update(elements[0], 0), _current(elements[0], 0))
    )
    return tuple(Expr("select", e, (condition, _update(e, i), _current(e, i))) for i, e in enumerate(elements))


def _bitwise(draw: Draw, element: str, i: int) -> Expr:
    ops = ("or", "and", "xor", "add", "multiply") if element == "i1" else ("or", "and", "xor")
    return _either_order(draw, draw.choice(ops), element, i)


DRAWERS: Mapping[str, Callable[[Draw, str, int], Expr]] = {
    "assign": _assign,
    "assign_constant": lambda draw, element, _: _number(draw, element),
    "add": lambda draw, element, i: _either_order(draw, "add", element, i),
    "sub": lambda draw, element, i: Expr("subtract", element, (_current(element, i), _update(element, i))),
    "mul": lambda draw, element, i: _either_order(draw, "multiply", element, i),
    "min/max": lambda draw, element, i: _either_order(draw, draw.choice(("minimum", "maximum")), element, i),
    "and/or/xor": _bitwise,
    "unary": _unary,
    "no_op": lambda _, element, i: _current(element, i),
    "general": _general,
}
"""How the one operand number i of a family is drawn."""
