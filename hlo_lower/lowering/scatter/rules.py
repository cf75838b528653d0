"""The lowerings of every kind of op, one family per file. This file lists those of `stablehlo.scatter`.

A family's file holds its canonical forms, each a function under the facts that it is for, and in the docstring of each
why the module computes the same before and after. `hlo_lower.lowering.kinds` puts them together and checks that each
class has exactly one most specific rule.
"""

from enum import Enum

from hlo_lower.base.registry import Rule
from hlo_lower.facts.scatter.dynamic import DYNAMIC_SCATTER, Positions, WindowSizes
from hlo_lower.facts.scatter.facts import Dialect, Drops, InBounds
from hlo_lower.facts.values.region import ASSIGNING
from hlo_lower.lowering.scatter import (
    batched_tile,
    constant,
    dynamic_shape,
    last_writer,
    loop,
    one_window,
    reduction,
    replace,
    rounds,
    safe_scatter,
    short_operand,
    tensor_slice,
    unrolled,
)
from hlo_lower.lowering.scatter.window import READING
from hlo_lower.ops.subset import Tile

FAMILIES = (
    replace.rules,
    one_window.rules,
    short_operand.rules,
    batched_tile.rules,
    unrolled.rules,
    constant.rules,
    tensor_slice.rules,
    last_writer.rules,
    reduction.rules,
    rounds.rules,
    safe_scatter.rules,
    loop.rules,
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


def class_name(rule: Rule) -> str:
    """What a rule for scatters is for, for a reader: "Tile x assign, in bounds"."""
    constraints = rule.constraints
    told = {
        fact: _NAMES.get(values, "|".join(sorted(str(v.value) for v in values))) for fact, values in constraints.items()
    }
    whole = "dynamic shape" if rule.op == DYNAMIC_SCATTER else "anything"
    subset, combiner = told.pop("subset", whole), told.pop("combiner", "")
    return ", ".join(filter(None, (f"{subset} x {combiner}" if combiner else subset, *told.values())))
