"""rope(x, cos, sin): pairs of elements of the last axis turned by an angle each.

    (a, b) -> (a * cos - b * sin, b * cos + a * sin)      a = x[i], b = x[i + size / 2]     pairs "halves"
                                                          a = x[2 * i], b = x[2 * i + 1]    pairs "interleaved"
    the second one with results as i and i + size / 2: pairs "interleaved_to_halves"

    x * cos + concat(-b, a) * sin      concat(a * cos - b * sin, b * cos + a * sin)      x * cos + roll(x) * (-sin, sin)
    stacked and reshaped, or a product of complex numbers; a part of x turned, the rest joined to it or to its halves

All of these give each element as a sum of two products, so that is what is asked: for some places of the result, which
elements of x and of which tables it is made of, and with which signs, through slices, concatenations, layout and
conversions. The places are the first and the last of each half (of each of a pair), with other coordinates at their
ends: what lies between goes the same way, as slices and concatenations are of runs.

It is a rotation and nothing else: an element is multiplied by the same table as its partner, the partner by the other
one, the first of a pair with a minus; both are of one value, at the place itself and at its partner's.

A product of complex numbers has one table, the operand `rotation` of cos + i * sin, in the place of two.

Attributes: `pairs`; `axes`, along which of x the tables run, which sizes alone do not tell; `size`, how many elements
from the first on are turned, 0 for all.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from hlo_lower.base.causes import Cause, Code
from hlo_lower.named.match.arithmetic import uncast, users_of_cast, with_constant
from hlo_lower.named.match.axis_atoms import LAYOUT
from hlo_lower.named.match.matches import Found, Match, NearMiss, matchers
from hlo_lower.named.match.pointwise import beneath
from hlo_lower.named.match.softmax import through
from hlo_lower.named.match.terms import Term, above
from hlo_lower.ops.names import CONCATENATE

Place = tuple[int, ...]
Table = tuple[Term, Place, str]
"""A table, the place in it, and of a complex one the part."""

WALKED = LAYOUT | {"convert", "concatenate", "negate", "multiply", "add", "subtract", "real", "imag", "complex"}


@dataclass(frozen=True)
class Part:
    """A product: an element of x, with a sign, by an element of a table."""

    sign: int
    place: Place
    table: Table | None = None


@matchers.finds("rope", at=(CONCATENATE,))
def rope(anchor: Term) -> Found:
    """A rotation of pairs that a concatenation is a part of."""
    if not anchor.is_float or len(anchor.operands) not in (2, 3) or -1 in anchor.shape:
        return None
    missed: NearMiss | None = None
    for result in _results(anchor):
        x = _rotated_value(result)
        size = _size(result)
        if x is None or x.shape != result.shape or size % 2 or not size:
            continue
        found = _rotation(result, x, size)
        if isinstance(found, Match):
            return found if found.attributes["size"] else _with_the_rest(found)
        missed = missed or (None if found is None else NearMiss("rope", found, result))
    return missed


def _size(result: Term) -> int:
    """How many elements are turned: of two halves and a rest that are joined those of the halves, else all."""
    if result.op == "concatenate" and len(result.operands) == 3:
        return result.operands[0].shape[-1] + result.operands[1].shape[-1]
    return result.shape[-1]


def _results(anchor: Term) -> Iterator[Term]:
    """What may be the end of a rotation: the sum that it goes into, what it is reshaped to, or itself."""
    if len(anchor.operands) == 3:
        yield anchor
        return
    ends = [anchor, *(user for user in anchor.users if user.op == "reshape")]
    for end in ends:
        for user in through(end, LAYOUT | {"convert"}, 12):
            if user.op == "multiply":
                yield from (total for total in users_of_cast(user) if total.op == "add")
    yield from reversed(ends)


def _rotated_value(result: Term) -> Term | None:
    """The value that is sliced: x, if the result is a rotation."""
    for term in above(result, lambda term: term.operands if term.op in WALKED else (), 40):
        if term.op == "slice":
            x = term.operands[0]
            if x.op == "reshape" and x.operands[0].shape == result.shape:
                x = x.operands[0]
            if x.shape == result.shape:
                return uncast(x)
    return None


def _rotation(result: Term, x: Term, size: int) -> Match | Cause | None:
    """The match, if each element is that of a rotation, or behind those that are turned x itself."""
    whole = result.shape[-1]
    for at in {size, whole - 1} if size < whole else ():
        ends = [0 for _ in result.shape], [n - 1 for n in result.shape]
        if any(_parts(result, place, x) != [Part(1, place)] for place in ((*end[:-1], at) for end in ends)):
            return None
    for pairs in ("halves", "interleaved", "interleaved_to_halves"):
        tables = _tables(result, x, size, pairs)
        if isinstance(tables, tuple):
            cos, sin = tables
            if cos.op == "sine" or sin.op == "cosine":
                return Code.OTHER_VALUE("the table of cosines")
            axes = _axes(result, x, size, pairs)
            if axes is None:
                return Code.OTHER_AXES("the cosines", "the sines")
            inputs = {"x": x, "rotation": cos} if cos is sin else {"x": x, "cos": cos, "sin": sin}
            attributes = {"pairs": pairs, "axes": axes, "size": size if size < whole else 0}
            return Match("rope", inputs, [result], attributes)
        if tables is not None:
            return tables
    return None


def _tables(result: Term, x: Term, size: int, pairs: str) -> tuple[Term, Term] | Cause | None:
    half = size // 2
    tables: tuple[Term, Term] | None = None
    for i, others in ((0, [0 for _ in result.shape]), (half - 1, [n - 1 for n in result.shape])):
        for second in (False, True):
            found = _pair(result, x, (*others[:-1], i), half, pairs, second=second)
            if found is None:
                return None
            mine, its = found
            if mine.sign != 1 or its.sign != (1 if second else -1):
                return Code.OTHER_VALUE("the sign of one half")
            assert mine.table is not None
            assert its.table is not None
            if mine.table[1] != its.table[1] and mine.table[0].shape == its.table[0].shape:
                return Code.OTHER_VALUE("the table of sines")
            if mine.table[0].is_same(its.table[0]) and mine.table[2] == its.table[2]:
                return Code.OTHER_VALUE("the table of sines")
            if tables is not None and (not (tables[0].is_same(mine.table[0]) and tables[1].is_same(its.table[0]))):
                return Code.OTHER_VALUE("the table of one half")
            tables = mine.table[0], its.table[0]
    return tables


def _pair(result: Term, x: Term, at: Place, half: int, pairs: str, *, second: bool) -> tuple[Part, Part] | None:
    """What the first or second element of a pair is made of: itself by a table, and its partner by another. The last
    coordinate of `at` is the number of the pair."""
    others, i = at[:-1], at[-1]
    place = own = i + half * second
    partner = i + half * (not second)
    if pairs != "halves":
        own, partner = 2 * i + second, 2 * i + (not second)
        place = own if pairs == "interleaved" else place
    parts = _parts(result, (*others, place), x)
    by_place = {part.place: part for part in parts or ()}
    mine, its = by_place.get((*others, own)), by_place.get((*others, partner))
    if parts is None or len(parts) != 2 or mine is None or its is None or mine.table is None or its.table is None:
        return None
    return mine, its


def _axes(result: Term, x: Term, size: int, pairs: str) -> tuple[int, ...] | None:
    """The axes of x along which the axes of both tables run, in their order, one along one each; None where they run
    along others."""

    def tables(*ends: int) -> list[Table] | None:
        at = tuple(n - 1 if d in ends else 0 for d, n in enumerate(result.shape[:-1]))
        found = _pair(result, x, (*at, 0), size // 2, pairs, second=False)
        return None if found is None else [part.table for part in found if part.table is not None]

    first, along = tables(), list[tuple[int, int]]()
    for dim in range(len(result.shape) - 1):
        moved = tables(dim) if result.shape[dim] > 1 else first
        if first is None or moved is None or not all(a[0].is_same(b[0]) for a, b in zip(first, moved, strict=True)):
            return None
        one, other = (
            [(k - len(a[1]), j - i) for k, (i, j) in enumerate(zip(a[1], b[1], strict=True)) if i != j]
            for a, b in zip(first, moved, strict=True)
        )
        if not one and not other:
            continue
        if one != other or len(one) != 1 or one[0][0] == -1 or one[0][1] != result.shape[dim] - 1:
            return None
        along.append((one[0][0], dim))
    return tuple(dim for _, dim in along) if sorted(along) == along else None


def _parts(term: Term, place: Place, x: Term, depth: int = 24) -> list[Part] | None:
    """An element as a sum of elements of x by elements of tables; None where it is something else."""
    if term is x:
        return [Part(1, place)]
    if not depth:
        return None
    if (moved := _source_at(term, place)) is not None:
        return _parts(*moved, x, depth - 1)
    if term.op in ("add", "subtract"):
        first, second = (_parts(operand, place, x, depth - 1) for operand in term.operands)
        if first is None or second is None:
            return None
        return first + ([_negate(part) for part in second] if term.op == "subtract" else second)
    if term.op == "negate":
        inner = _parts(term.operands[0], place, x, depth - 1)
        return None if inner is None else [_negate(part) for part in inner]
    if term.op == "multiply":
        return _product(term, place, x, depth)
    if term.op in ("real", "imag"):
        both = _complex_parts(term.operands[0], place, x, depth - 1)
        return None if both is None else both[term.op == "imag"]
    return None


def _product(term: Term, place: Place, x: Term, depth: int) -> list[Part] | None:
    negative = with_constant(term, "multiply")
    if negative is not None:
        inner = _parts(negative[0], place, x, depth - 1) if float(negative[1]) == -1 else None
        return None if inner is None else [_negate(part) for part in inner]
    for value, other in (term.operands, term.operands[::-1]):
        inner = _parts(value, place, x, depth - 1)
        if inner is not None:
            sign, table = _table(other, place)
            return _times(inner, sign, table)
    return None


def _times(parts: list[Part], sign: int, table: Table) -> list[Part] | None:
    if any(part.table is not None for part in parts):
        return None
    return [Part(part.sign * sign, part.place, table) for part in parts]


def _negate(part: Part) -> Part:
    return Part(-part.sign, part.place, part.table)


def _table(term: Term, place: Place) -> tuple[int, Table]:
    """The element of a table, and its sign, beneath layout, concatenations and negations.

    A slice is a table: what it leaves out is none of the operand.
    """
    sign = 1
    for _ in range(24):
        if term.op == "negate":
            sign, term = -sign, term.operands[0]
        elif (negative := with_constant(term, "multiply")) is not None and float(negative[1]) == -1:
            sign, term = -sign, negative[0]
        elif term.op != "slice" and (moved := _source_at(term, place)) is not None:
            term, place = moved
        else:
            break
    return sign, (term, place, "")


def _complex_parts(term: Term, place: Place, x: Term, depth: int) -> tuple[list[Part], list[Part]] | None:
    if not depth:
        return None
    moved = _source_at(term, place)
    if moved is not None:
        return _complex_parts(*moved, x, depth - 1)
    if term.op == "complex":
        first, second = (_parts(operand, place, x, depth - 1) for operand in term.operands)
        return None if first is None or second is None else (first, second)
    if term.op != "multiply":
        return None
    for value, other in (term.operands, term.operands[::-1]):
        inner = _complex_parts(value, place, x, depth - 1)
        if inner is None:
            continue
        cos, sin = _complex_table(other, place)
        (a, b), ((one, c), (two, s)) = inner, (cos, sin)
        ac, bs, as_, bc = _times(a, one, c), _times(b, two, s), _times(a, two, s), _times(b, one, c)
        if ac is None or bs is None or as_ is None or bc is None:
            return None
        return ac + [_negate(part) for part in bs], as_ + bc
    return None


def _complex_table(term: Term, place: Place) -> tuple[tuple[int, Table], tuple[int, Table]]:
    while (moved := _source_at(term, place)) is not None:
        term, place = moved
    if term.op == "complex":
        return _table(term.operands[0], place), _table(term.operands[1], place)
    return (1, (term, place, "real")), (1, (term, place, "imag"))


def _source_at(term: Term, place: Place) -> tuple[Term, Place] | None:
    if term.op == "convert":
        return term.operands[0], place
    if term.op != "concatenate":
        moved = beneath(term, place)
        return None if moved is None else (term.operands[0], moved)
    dim = term.node.integer("dimension")
    offset = place[dim]
    for operand in term.operands:
        if offset < operand.shape[dim]:
            return operand, (*place[:dim], offset, *place[dim + 1 :])
        offset -= operand.shape[dim]
    return None


def _with_the_rest(found: Match) -> Match:
    """The same of a larger value, where what is turned is the first part of it and the rest is joined again."""
    [result] = found.results
    x, joined = found.inputs["x"], result.only_user
    ends = [result] if joined is None or joined.op != "convert" else [result, joined]
    joined = ends[-1].only_user
    if joined is None or joined.op != "concatenate" or len(joined.operands) != 2 or x.op != "slice":
        return found
    whole, (first, rest) = x.operands[0], joined.operands
    dim = len(whole.shape) - 1
    if first is not ends[-1] or rest.op != "slice" or rest.operands[0] is not whole or joined.shape != whole.shape:
        return found
    size = result.shape[-1]
    starts = [0] * dim
    if list(x.integers("start_indices")) != [*starts, 0]:
        return found
    if list(rest.integers("start_indices")) != [*starts, size] or any(s != 1 for s in rest.integers("strides")):
        return found
    return Match("rope", {**found.inputs, "x": whole}, [joined], {**found.attributes, "size": size})
