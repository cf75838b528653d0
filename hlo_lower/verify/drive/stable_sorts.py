"""Sorts that are not stable: any order of equal elements is right, so that of a stable sort stands for all of them.

XLA gives another one only in rows of more than 16 elements, so what a sort allows is judged as a property of the
operation. The first version's sorts are taken as stable ones, which is one of the orders that they allow. One of the
second version that is not stable either is taken so, too, where it stands for such a sort: one of the same operands and
the same comparator, as a function, or the only ones of their type in a region. Any other one is replaced by what it may
give as well: the order of equal elements turned round. Where that makes no difference no stability was lost, as where
no elements are equal, or those that are cannot be told apart.

What such a sort of the first version allows beside the order that it is run in is not known: where one falls into a
region, a difference may be another order, and the region is not judged (`allows_another`).

What was found to stand for another one is marked, and is looked at again where it falls into a region (`freed_order`):
the match may rest on values that are not equal.
"""

from collections import Counter, defaultdict
from collections.abc import Hashable, Sequence
from typing import Any, TypeAlias

from hlo_lower.ir import mlir
from hlo_lower.verify.align.align import Aligner, regions_of
from hlo_lower.verify.align.counterparts import Numbered, counterparts
from hlo_lower.verify.read.program import Op, Program, TooLargeError, ops_within

SORT, IS_STABLE = "stablehlo.sort", "is_stable"
MARK = "mhlo.any_order"
"""Of a sort that is taken as stable and is not."""


def make_stable(first: mlir.RawModule, second: mlir.RawModule) -> bool:
    """Take the sorts of two versions as stable ones, in place, as far as that is right; whether any was changed.

    Args:
      first, second: the versions, of one context.
    """
    found = [_unstable(module) for module in (first, second)]
    if not any(found):
        return False
    with mlir.active(first.context):
        free, unclear = (mlir.parse_attribute(text) for text in ("true", "false"))
        for sort in (*found[0], *found[1]):
            sort.attributes[IS_STABLE] = free
        own, others = map(set, found)  # only now: an operation's hash is that of its attributes, too
        by_number, by_region = _counterparts(first, second) if own and others else ({}, {})
        marks: list[tuple[mlir.RawOperation, mlir.RawAttribute]] = []
        turned: list[mlir.RawOperation] = []
        for other in others:
            mine = by_number.get(other) or by_region.get(other, set())
            if mine & own:
                marks += [(other, free if mine <= own or other in by_number else unclear)]
                marks += [(sort, free) for sort in mine & own]
            else:
                turned.append(other)
        matched = {sort for mine in by_number.values() for sort in mine}
        marks += [(sort, free) for sort in own - matched]
        for sort, mark in marks:
            sort.attributes[MARK] = mark
        for sort in turned:
            _turn_round(sort)
    return True


def allows_another(ops: Sequence[Op]) -> bool:
    """Whether a piece of the first version holds a sort that may give another order than it is run in."""
    return bool(_marked(ops))


def freed_order(first: Sequence[Op], second: Sequence[Op]) -> str:
    """Why two pieces are not compared: one that is run in a stable order may take another one; "" else."""
    own, others = _marked(first), _marked(second)
    is_freed = Counter(map(_kind, others)) - Counter(map(_kind, own))
    if is_freed or any(str(sort.attributes[MARK]) == "false" for sort in others):
        return "a sort that is not stable, in the place of none of the first version's"
    return ""


def _marked(ops: Sequence[Op]) -> list[mlir.RawOperation]:
    return [op.raw for op in ops_within(ops) if MARK in op.raw.attributes]


def _unstable(module: mlir.RawModule) -> list[mlir.RawOperation]:
    sorts, _ = mlir.named(module.operation, (SORT,))
    return [op for op in sorts if IS_STABLE not in op.attributes or str(op.attributes[IS_STABLE]) != "true"]


Standing: TypeAlias = dict[mlir.RawOperation, set[mlir.RawOperation]]


def _counterparts(first: mlir.RawModule, second: mlir.RawModule) -> tuple[Standing, Standing]:
    """The sorts of the first version for which one of the second may stand, all of them taken as stable: those of the
    same number, and those of the same kind in its region."""
    by_number, by_region = defaultdict[Any, set[Any]](set), defaultdict[Any, set[Any]](set)
    try:
        programs = Program(first), Program(second)
    except TooLargeError:
        return by_number, by_region
    for name in set(programs[0].entries) & set(programs[1].entries):
        pairs = Aligner(*programs, frozenset(), {}).align(name)
        for pair in pairs:
            own, other = (Numbered(s.program, s.live, s.numbers, s.depth) for s in (pair.first, pair.second))
            for mine, op in counterparts(pair.first.table, own, other, _is_sort):
                if mine:
                    by_number[op.raw].update(one.raw for one in mine)
        for region in regions_of(pairs):
            sorts = [[op.raw for op in ops_within(ops) if _is_sort(op)] for _, ops in region.sides]
            for sort in sorts[1]:
                by_region[sort].update(one for one in sorts[0] if _kind(one) == _kind(sort))
    return by_number, by_region


def _is_sort(op: Op) -> bool:
    return op.name == SORT


def _kind(sort: mlir.RawOperation) -> Hashable:
    """The same for sorts of the same types along the same dim."""
    dim = str(sort.attributes["dimension"]) if "dimension" in sort.attributes else ""
    return tuple(str(value.type) for value in sort.operands), dim


def _turn_round(sort: mlir.RawOperation) -> None:
    """Let a stable sort leave equal elements in the opposite order: it sorts the rows turned round."""
    shape = mlir.tensor_shape(sort.operands[0].type)
    dim = mlir.integer_of(sort.attributes["dimension"]) if "dimension" in sort.attributes else -1
    dimensions = {"dimensions": mlir.dense_i64([dim % len(shape)])}
    for place, value in enumerate(sort.operands):
        where = {"location": sort.location, "insertion_point": mlir.insert_before(sort)}
        turned = mlir.create_operation("stablehlo.reverse", [value], [value.type], dimensions, **where)
        sort.operands[place] = turned.results[0]
