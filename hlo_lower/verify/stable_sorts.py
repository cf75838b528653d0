"""Sorts that are not stable: any order of equal elements is right, so that of a stable sort stands for all of them.

XLA gives another one, which what a converter made need not give. The first version's sorts are therefore taken as
stable ones, which is one of the orders that it allows. Those of the second version are taken as stable only where the
first one has as many of the same, not stable either: a sort that was stable and no longer is stays what it is.
"""

from collections import Counter
from collections.abc import Hashable

from hlo_lower import mlir

SORT, IS_STABLE = "stablehlo.sort", "is_stable"


def make_stable(first: mlir.RawModule, second: mlir.RawModule) -> bool:
    """Take the sorts of two versions as stable ones, in place, as far as that is right; whether there was any.

    Args:
      first, second: the versions, of one context.
    """
    own, others = _unstable(first), _unstable(second)
    if not own:
        return False
    with mlir.active(first.context):
        true = mlir.parse_attribute("true")
        allowed, found = Counter(map(_kind, own)), Counter(map(_kind, others))
        changed = [*own, *(sort for sort in others if found[_kind(sort)] <= allowed[_kind(sort)])]
        for sort in changed:
            sort.attributes[IS_STABLE] = true
    return True


def _unstable(module: mlir.RawModule) -> list[mlir.RawOperation]:
    found: list[mlir.RawOperation] = []

    def visit(op: mlir.RawOperation) -> None:
        if op.name == SORT and not (IS_STABLE in op.attributes and str(op.attributes[IS_STABLE]) == "true"):
            found.append(op)

    mlir.walk(module.operation, visit)
    return found


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
