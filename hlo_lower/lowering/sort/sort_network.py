"""Sorts of long axes: a sorting network of compare-exchanges, written out or in a loop."""

from collections.abc import Sequence

import numpy as np

from hlo_lower.base.registry import RuleList
from hlo_lower.facts.sort.key_columns import comes_first
from hlo_lower.facts.sort.sort_facts import ExchangeStage, SortStrategy, stages_of
from hlo_lower.ir.builder import Builder
from hlo_lower.ir.view import Value
from hlo_lower.lowering.loops.structured import StructuredLoop, Values
from hlo_lower.lowering.sort.sort import SortLowering
from hlo_lower.ops.names import SORT

rules = RuleList()


@rules.lowers(SORT, strategy={SortStrategy.NETWORK}, form="merge exchange: slices, compare, select, concatenate")
def sort_to_network(op: SortLowering) -> Sequence[Value]:
    """Sort by Batcher's merge exchange, each stage a compare and two selects of whole slices.

        %even, %odd = the even and the odd blocks of p rows, one after the other
        %swap       = key(%lower) < key(%upper)                  as far as there is a lower row
        %upper'     = select(%swap, %lower, %upper)              for each column that goes along
        %lower'     = select(%swap, %upper, %lower)

    Equal: merge exchange sorts any number of rows by any total order, and with the position as the last key the
    comparator is one, so the result is the one that a stable sort gives. Rows i and i + d of a stage stand as far
    apart in the even blocks and the odd ones as the blocks do, so both are slices, and those without a lower row are
    the last ones: nothing is padded. Costs log2(n) ** 2 / 2 stages.
    """
    build = op.build
    columns, tail = _columns(op)
    count = len(op.ascending) - 1 + tail
    split: list[tuple[Value, Value]] = []
    block = 0
    for stage in stages_of(op.sort.canonical_shape[1]):
        if stage.block != block:
            whole = columns if not block else [_joined(build, even, odd, block) for even, odd in split]
            block = stage.block
            split = [_split(build, column, block) for column in whole]
        split = _exchanged(build, split, stage, count, op.ascending[:count])
    return _results(op, [_joined(build, even, odd, block) for even, odd in split])


def _columns(op: SortLowering) -> tuple[list[Value], bool]:
    """What goes along: the keys, the positions where anything is told by them, and operands that are not gathered; and
    whether the positions are among them."""
    keys, sort = [key.value for key in op.keys], op.sort
    if op.is_told_by_keys:
        return keys, False
    return [*keys, op.positions, *(sort.column(op.build, k) for k in _along(op))], True


def _along(op: SortLowering) -> list[int]:
    """The operands that go along: what is read, and is neither a key, nor positions, nor gathered."""
    told = {key.operand for key in op.keys} | set(op.facts.gathered)
    return [k for k in op.sort.wanted if k not in told and not op.sort.is_numbering(k)]


def _results(op: SortLowering, columns: Sequence[Value]) -> list[Value]:
    """The values that replace what is read, from columns in order."""
    sort, build = op.sort, op.build
    read = [build.slice(column, *sort.read) for column in columns]
    keys, rest = read[: len(op.keys)], read[len(op.keys) :]
    return op.results(rest[0] if rest else None, keys, dict(zip(_along(op), rest[1:], strict=False)))


def _split(build: Builder, column: Value, block: int) -> tuple[Value, Value]:
    """The even and the odd blocks of so many rows, each one after the other."""
    a, n, c = column.static_shape
    full = n // (2 * block)
    end = full * 2 * block
    halves: list[list[Value]] = [[], []]
    if full:
        pairs = build.reshape(build.slice(column, [0, 0, 0], [a, end, c]), (a, full, 2, block * c))
        own = [build.slice(pairs, [0, 0, half, 0], [a, full, half + 1, block * c]) for half in (0, 1)]
        halves = [[build.reshape(part, (a, full * block, c))] for part in own]
    middle = min(end + block, n)
    for half, (low, high) in zip(halves, ((end, middle), (middle, n)), strict=True):
        half += [build.slice(column, [0, low, 0], [a, high, c])] if high > low else []
    return build.concatenate(halves[0], 1), build.concatenate(halves[1], 1)


def _joined(build: Builder, even: Value, odd: Value, block: int) -> Value:
    """The inverse of `_split`."""
    (a, evens, c), odds = even.static_shape, odd.static_shape[1]
    full = odds // block
    end = full * block
    parts: list[Value] = []
    if full:
        halves = [
            build.reshape(build.slice(half, [0, 0, 0], [a, end, c]), (a, full, 1, block * c)) for half in (even, odd)
        ]
        parts.append(build.reshape(build.concatenate(halves, 2), (a, 2 * end, c)))
    parts += [build.slice(half, [0, end, 0], [a, size, c]) for half, size in ((even, evens), (odd, odds)) if size > end]
    return build.concatenate(parts, 1)


def _exchanged(
    build: Builder, split: Sequence[tuple[Value, Value]], stage: ExchangeStage, count: int, ascending: Sequence[bool]
) -> list[tuple[Value, Value]]:
    """A stage on columns in even and odd blocks; the first `count` of them decide."""
    a, evens, c = split[0][0].static_shape
    odds = split[0][1].static_shape[1]
    # Odd block k meets even block k + skip; where the upper rows are the even ones, even block k meets odd block k.
    skip = (stage.distance // stage.block + 1) // 2 * stage.block if stage.is_odd else 0
    met = evens - skip if stage.is_odd else odds
    if met <= 0:
        return list(split)

    def parts(pair: tuple[Value, Value]) -> tuple[Value, Value]:
        upper, lower = (pair[1], pair[0]) if stage.is_odd else pair
        return build.slice(upper, [0, 0, 0], [a, met, c]), build.slice(lower, [0, skip, 0], [a, skip + met, c])

    met_parts = [parts(pair) for pair in split]
    swap = comes_first(build, [low for _, low in met_parts[:count]], [up for up, _ in met_parts[:count]], ascending)
    found: list[tuple[Value, Value]] = []
    for pair, (up, low) in zip(split, met_parts, strict=True):
        upper, lower = (pair[1], pair[0]) if stage.is_odd else pair
        upper = _with(build, upper, build.select(swap, low, up), 0)
        lower = _with(build, lower, build.select(swap, up, low), skip)
        found.append((lower, upper) if stage.is_odd else (upper, lower))
    return found


def _with(build: Builder, column: Value, part: Value, start: int) -> Value:
    """A column with other rows from a start on."""
    a, n, c = column.static_shape
    end = start + part.static_shape[1]
    parts = [build.slice(column, [0, 0, 0], [a, start, c])] if start else []
    parts.append(part)
    parts += [build.slice(column, [0, end, 0], [a, n, c])] if end < n else []
    return build.concatenate(parts, 1)


@rules.lowers(SORT, strategy={SortStrategy.LOOPED_NETWORK}, form="while over the stages of merge exchange")
def sort_to_looped_network(op: SortLowering) -> Sequence[Value]:
    """The same network, a stage in each iteration, whose block and distance stand in tables.

        while s < stages:
          %lower = dynamic_slice(concatenate(%x, %x), d[s])        row i + d, from the start again behind the end
          %swap  = %is_upper[s] & key(%lower) < key(%x)
          %x     = select(%swap, %lower, select(%swap of row i - d, row i - d, %x))

    Equal: a row is the upper one of a pair where its block of p is even, or odd, and i + d < n; then i - d of the lower
    one is it, and both take the other's columns. Whatever comes around from the end is not taken. Costs twice the
    comparisons of the network, and a text that does not grow with n.
    """
    build = op.build
    columns, tail = _columns(op)
    count = len(op.ascending) - 1 + tail
    a, n, c = op.sort.canonical_shape
    stages = stages_of(n)
    blocks = sorted({stage.block for stage in stages})
    parity = build.concatenate([_parities(build, n, block) for block in blocks], 0)
    tables = [
        build.constant_array(np.asarray(numbers), "i32")
        for numbers in (
            [stage.distance for stage in stages],
            [n - stage.distance for stage in stages],
            [blocks.index(stage.block) for stage in stages],
            [int(stage.is_odd) for stage in stages],
        )
    ]

    def iteration(inner: Builder, turn: Value, carried: Values, invariant: Values) -> Sequence[Value]:
        distance, rest, block, is_odd = (
            inner.reshape(inner.dynamic_slice(table, [turn], [1]), ()) for table in invariant[1:]
        )
        zero = inner.constant(0, (), "i32")
        shape, row = (a, n, c), (1, n)
        own = inner.dynamic_slice(invariant[0], [block, zero], [1, n])
        is_own = inner.compare(own, "EQ", inner.broadcast(is_odd, row))
        is_inside = inner.compare(inner.iota(row, 1, "i32"), "LT", inner.broadcast(rest, row))
        is_upper = inner.reshape(inner.and_(is_own, is_inside), (n,))

        def shifted(twice: Value, start: Value) -> Value:
            return inner.dynamic_slice(twice, [zero, start, zero], shape)

        twice = [inner.concatenate([column, column], 1) for column in carried]
        lower = [shifted(column, distance) for column in twice]
        before = comes_first(inner, lower[:count], carried[:count], op.ascending[:count])
        swap = inner.and_(inner.broadcast(is_upper, shape, [1]), before)
        back = shifted(inner.concatenate([swap, swap], 1), rest)
        return [
            inner.select(swap, low, inner.select(back, shifted(both, rest), column))
            for column, both, low in zip(carried, twice, lower, strict=True)
        ]

    found = StructuredLoop(len(stages), "i32").emit_while(build, columns, [parity, *tables], iteration)
    return _results(op, found)


def _parities(build: Builder, rows: int, block: int) -> Value:
    """For each row whether its block of so many is odd: [1, rows] of i32."""
    pairs = -(-rows // (2 * block))
    blocks = build.reshape(build.iota((pairs, 2, block), 1, "i32"), (1, pairs * 2 * block))
    return build.slice(blocks, [0, 0], [1, rows])
