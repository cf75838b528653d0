"""Named ops: found in a module of plain ops, kept as composites, written out again.

An export is flat: a softmax is five ops, an attention thirty. Here these are seen to be a softmax and an attention,
and a `stablehlo.composite` "hl.softmax" takes their place, whose decomposition are the very ops that were there.
Nothing is computed differently, and whoever does not know the name inlines it.

How it goes:

    terms           what a matcher looks at: a value beneath calls, products with 1, selects of constants
    axis_atoms      an axis as a product of atoms, so that layout does not multiply patterns
    rows            "this sum is over the rows of that value", by atoms
    arithmetic      products and sums with constants, in whatever order they are written
    found           what a matcher gives: a match, or a near miss and what it lacks; the table of matchers
    softmax, attention, norms, activations, ...     one file for an op or its kin: definition, variants, predicate
    positions, small_programs    positions as exports write them; what a reducer or a comparator computes
    listing, twins  layers repeat: what was found in one is found in the others without a look
    region          which ops a match covers, and whether they can be taken out
    outline         they become a function, and a composite stands in their place
    raised          a module: find, choose the largest where they overlap, take out; within them the smaller ones
    inline_named    the inverse
    record, flops   what was found, as data for reports

To add an op: a line in `hlo_lower.ops.vocabulary`; a file with its definition as a formula, its variants, why what
matches is the op and nothing else, and a function under `@matchers.finds(name, at=anchors)`, imported in `MATCHERS`
below. An anchor is a rare op that every variant has (an exponential, a root). The function goes up from it to what it
is made of (`Term.operands`) and down to what is made of it (`Term.users`), compares values by `is` or `is_same`, rows
by atoms and constants by `is_number`, and returns a `Match` of terms: inputs by their roles and the results. It does
not list the ops in between; those that lie between inputs and results are the op. What has the parts and lacks one is
a `NearMiss` with a cause. It asks nothing but terms, and keeps nothing but in `Terms.found`: so one knows what its
answer depends on (`twins`). Then cases in `scripts/recall`: ways to write it, and what only looks like it.

Attention is the example of what atoms are for: no layout is named in it. See docs/named-ops.md.
"""

from collections.abc import Collection

from hlo_lower.ir.reader import Source, read
from hlo_lower.ir.view import Graph
from hlo_lower.named.match import (
    activations,
    attention,
    cumulative,
    kv_cache_update,
    linear,
    lookups,
    norms,
    rope,
    selection,
    softmax,
)
from hlo_lower.named.match.matches import Match, NearMiss, matchers
from hlo_lower.named.take_out.raising import NamedModule, find_named, raise_graph

__all__ = ["MATCHERS", "Match", "NamedModule", "NearMiss", "find", "find_named", "matchers", "raise_graph"]

MATCHERS = (attention, activations, norms, rope, softmax, kv_cache_update, lookups, selection, cumulative, linear)
"""The files that register matchers."""


def find(source: Source | Graph, only: Collection[str] | None = None) -> list[Match]:
    """The named ops of a module, the largest where they overlap; each call of a function counted."""
    graph = source if isinstance(source, Graph) else read(source)
    found = find_named(graph, matchers, only)
    blocks = [block for block in found.blocks if not block.is_within]
    return [one.match for block in blocks for _ in range(found.times(block)) for one in block.roots]
