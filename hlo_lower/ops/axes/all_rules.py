"""The subset rules of StableHLO and chlo ops, a file for each family; importing it registers them."""

from hlo_lower.ops.axes import contraction, indexing, reduction, shape, windows
from hlo_lower.ops.axes.rules import SubsetRules, subset_rules

FAMILIES = (contraction, indexing, reduction, shape, windows)


def default_subset_rules() -> SubsetRules:
    """The rules of all families."""
    return subset_rules
