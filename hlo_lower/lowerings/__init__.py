"""The lowerings of `stablehlo.scatter`, one family per file. This file is the whole list.

A family's file holds its canonical forms, each a function under the facts that it is for, and in the docstring of each
why the module computes the same before and after. `default_registry` puts them together and checks that each class has
exactly one most specific rule.
"""

from hlo_lower.lowerings import insert_slice, loop, nothing, replace, update_slice
from hlo_lower.registry import CompositeLoweringRegistry
from hlo_lower.scatter.facts import DOMAINS

FAMILIES = (
    nothing.rules,
    replace.rules,
    insert_slice.rules,
    update_slice.rules,
    loop.rules,
)


def default_registry() -> CompositeLoweringRegistry:
    """A fresh registry with the rules of all families, checked for ambiguity."""
    registry = CompositeLoweringRegistry({"stablehlo.scatter": DOMAINS})
    for family in FAMILIES:
        registry.extend(family)
    registry.check()
    return registry
