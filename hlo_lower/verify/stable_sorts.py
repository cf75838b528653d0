"""Sorts that are not stable: any order of equal elements is right, so that of a stable sort stands for all of them.

XLA gives another one, which what a converter made need not give. The first version's sorts are therefore taken as
stable ones, which is one of the orders that it allows. Those of the second version are taken as stable only where the
first one has as many of the same, not stable either: a sort that was stable and no longer is stays what it is. Where
the first version has stable ones of that kind, too, it is not known which of them is left in the second: then nothing
is taken for another, in neither version.

Counting is not enough: a comparator may be written in two ways, and a sort may be dead. So what is taken as stable is
marked, and a marked sort of the second version has to stand for a marked one of the first: it is matched with it, as
the mark is one of its attributes, or falls into one region with it (`freed_order`).
"""

from collections import Counter
from collections.abc import Hashable, Sequence

from hlo_lower import mlir
from hlo_lower.verify.program import Op, ops_within

SORT, IS_STABLE = "stablehlo.sort", "is_stable"
MARK = "mhlo.any_order"
"""Of a sort that is taken as stable and is not."""


def make_stable(first: mlir.RawModule, second: mlir.RawModule) -> bool:
    """Take the sorts of two versions as stable ones, in place, as far as that is right; whether any was taken so.

    Args:
      first, second: the versions, of one context.
    """
    own, others = (_sorts(module, is_stable=False) for module in (first, second))
    if not own:
        return False
    with mlir.active(first.context):
        true = mlir.parse_attribute("true")
        allowed, found = Counter(map(_kind, own)), Counter(map(_kind, others))
        fixed = set(map(_kind, _sorts(first, is_stable=True)))
        changed = [sort for sort in own if not found[_kind(sort)] or _kind(sort) not in fixed]
        changed += [sort for sort in others if found[_kind(sort)] <= allowed[_kind(sort)] and _kind(sort) not in fixed]
        for sort in changed:
            sort.attributes[IS_STABLE] = sort.attributes[MARK] = true
    return bool(changed)


def freed_order(first: Sequence[Op], second: Sequence[Op]) -> str:
    """Why two pieces are not compared: one that is run in a stable order may take another one; "" else."""
    marked, others = (
        Counter(_kind(op.raw) for op in ops_within(ops) if MARK in op.raw.attributes) for ops in (first, second)
    )
    return "a sort that is not stable, in the place of none of the first version's" if others - marked else ""


def _sorts(module: mlir.RawModule, *, is_stable: bool) -> list[mlir.RawOperation]:
    sorts, _ = mlir.named(module.operation, (SORT,))
    return [op for op in sorts if (IS_STABLE in op.attributes and str(op.attributes[IS_STABLE]) == "true") == is_stable]


def _kind(sort: mlir.RawOperation) -> Hashable:
    """The same for sorts of the same types by the same comparator; of names and locations nothing counts."""
    block = sort.regions[0].blocks[0]
    numbers: dict[mlir.RawValue, int] = {value: k for k, value in enumerate(block.arguments)}
    inner: list[Hashable] = []
    for op in mlir.walked(sort)[1:]:
        read = tuple(numbers.setdefault(value, len(numbers)) for value in op.operands)
        made = tuple((numbers.setdefault(value, len(numbers)), str(value.type)) for value in op.results)
        inner.append((op.name, read, made, tuple(sorted((n, str(a)) for n, a in mlir.attributes_of(op).items()))))
    dim = str(sort.attributes["dimension"]) if "dimension" in sort.attributes else ""
    return tuple(str(value.type) for value in sort.operands), dim, tuple(inner)
