"""The lowerings of `stablehlo.scatter`, of gathers and of composites, one family per file. This file is the whole list.

A family's file holds its canonical forms, each a function under the facts that it is for, and in the docstring of each
why the module computes the same before and after. `default_registry` puts them together and checks that each class has
exactly one most specific rule.
"""

from enum import Enum

from hlo_lower.analysis import ASSIGNING
from hlo_lower.gather import GATHER_DOMAINS
from hlo_lower.gather.facts import GATHER
from hlo_lower.lowerings import (
    batched_tile,
    composite,
    constant,
    dynamic_gather,
    dynamic_shape,
    gather,
    insert_slice,
    last_writer,
    loop,
    nothing,
    reduction,
    replace,
    rounds,
    rows,
    tensor_slice,
    unrolled,
    update_slice,
)
from hlo_lower.lowerings.window import READING
from hlo_lower.registry import CompositeLoweringRegistry, Rule
from hlo_lower.scatter.dynamic import DYNAMIC_DOMAINS, DYNAMIC_SCATTER, Positions, WindowSizes
from hlo_lower.scatter.facts import DOMAINS, Dialect, Drops, InBounds
from hlo_lower.subset.kinds import Tile

FAMILIES = (
    nothing.rules,
    replace.rules,
    insert_slice.rules,
    update_slice.rules,
    rows.rules,
    batched_tile.rules,
    unrolled.rules,
    constant.rules,
    tensor_slice.rules,
    last_writer.rules,
    reduction.rules,
    rounds.rules,
    loop.rules,
    dynamic_shape.rules,
    composite.rules,
    gather.rules,
    dynamic_gather.rules,
)


_NAMES: dict[frozenset[Enum], str] = {
    frozenset(Tile): "Tile",
    frozenset(loop.WRITTEN): "anything",
    frozenset(ASSIGNING): "assign",
    frozenset(READING): "any other combiner",
    frozenset({InBounds.ALWAYS}): "in bounds",
    frozenset({InBounds.UNKNOWN}): "",
    frozenset({Drops.WINDOWS}): "whole windows may be dropped",
    frozenset({Drops.ELEMENTS}): "single elements may be dropped",
    frozenset({Dialect.LINALG}): "for linalg",
    frozenset({Positions.ONE}): "one window",
    frozenset({WindowSizes.STATIC}): "window extents known",
    frozenset({WindowSizes.RUNTIME}): "window extents at run time",
    dynamic_shape.WRITING: "",
}


SCATTER_DOMAINS = {"stablehlo.scatter": DOMAINS, DYNAMIC_SCATTER: DYNAMIC_DOMAINS}
"""The facts of scatters for a registry: of static shape, and of dynamic shape."""

RULE_DOMAINS = {
    **SCATTER_DOMAINS,
    GATHER: GATHER_DOMAINS,
    dynamic_gather.DYNAMIC_GATHER: dynamic_gather.DYNAMIC_GATHER_DOMAINS,
    composite.COMPOSITE: composite.COMPOSITE_DOMAINS,
}
"""The facts of everything that has rules."""


def class_name(rule: Rule) -> str:
    """What a rule is for, for a reader: "Tile x assign, in bounds"."""
    constraints = rule.constraints
    if rule.op == composite.COMPOSITE:
        return ", ".join(["composite", *("|".join(sorted(str(v.value) for v in c)) for c in constraints.values())])
    if rule.op in (GATHER, dynamic_gather.DYNAMIC_GATHER):
        named = (f"{k} {'|'.join(sorted(str(v.value) for v in c))}" for k, c in constraints.items())
        return ", ".join([rule.op.removeprefix("stablehlo."), *named])
    told = {
        fact: _NAMES.get(values, "|".join(sorted(str(v.value) for v in values))) for fact, values in constraints.items()
    }
    whole = "dynamic shape" if rule.op == DYNAMIC_SCATTER else "anything"
    subset, combiner = told.pop("subset", whole), told.pop("combiner", "")
    return ", ".join(filter(None, (f"{subset} x {combiner}" if combiner else subset, *told.values())))


def default_registry() -> CompositeLoweringRegistry:
    """A fresh registry with the rules of all families, checked for ambiguity."""
    registry = CompositeLoweringRegistry(RULE_DOMAINS)
    for family in FAMILIES:
        registry.extend(family)
    registry.check()
    return registry
