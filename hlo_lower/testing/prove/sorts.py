"""Sorts of a few rows by one key and by two, all of the result read or its first rows.

Keys are integers: floats are ordered by their bits, and the prover has no bits of floats.
"""

from collections.abc import Iterator
from itertools import product

from hlo_lower.base.element_types import element_type
from hlo_lower.base.registry import Rule
from hlo_lower.facts.sort.sort_facts import SortStrategy
from hlo_lower.ops.names import SCATTER, SORT
from hlo_lower.ops.targets.costs import COSTS
from hlo_lower.ops.targets.target import Target
from hlo_lower.testing.fuzz.drawn_types import typed
from hlo_lower.testing.prove.proof_case import ProofCase

SHAPES = (((1,), 0), ((2,), 0), ((3,), 0), ((4,), 0), ((5,), 0), ((2, 3), 0), ((2, 3), 1), ((3, 1), 0), ((0, 2), 1))
"""Shapes, each with the dim that is sorted along."""

LOOPED = frozenset({SortStrategy.LOOPED_NETWORK, SortStrategy.LOOPED_ROUNDS})
ROUNDS = frozenset({SortStrategy.ROUNDS, SortStrategy.LOOPED_ROUNDS})


def sort_cases(rule: Rule) -> Iterator[ProofCase]:
    """Every case that a rule for sorts may take."""
    strategies = rule.constraints.get("strategy", frozenset(SortStrategy))
    few = 1 if strategies & LOOPED else 64
    costs = COSTS.with_entry("few_windows", few).with_entry("few_stages", few)
    if SortStrategy.RANKS not in strategies:
        costs = costs.with_entry("rank_pair", 1e9)
    target = Target("no_sort", refused={SORT: "none", SCATTER: "lowered"}, costs=costs)
    for (shape, dim), direction, element, second in product(SHAPES, ("LT", "GT"), ("i8", "ui8"), (False, True)):
        for rows in (1, 2) if strategies & ROUNDS else (None,):
            if rows is None or rows < shape[dim]:
                yield sort_case(shape, dim, direction, element, target, has_second=second, rows=rows)


def sort_case(
    shape: tuple[int, ...],
    dim: int,
    direction: str,
    element: str,
    target: Target,
    *,
    has_second: bool = False,
    rows: int | None = None,
) -> ProofCase:
    """The module of a sort of keys, with a tensor that goes along.

    Args:
      shape, dim: what is sorted, and along which dim.
      direction: LT or GT.
      element: of the keys.
      target: who is to read it.
      has_second: whether equal keys are decided by what goes along.
      rows: how many rows are read; None for all.
    """
    keys, along = typed(shape, element), typed(shape, "i8")
    kind = element_type(element).compare_type
    pair, other = f"(tensor<{element}>, tensor<{element}>) -> tensor<i1>", "(tensor<i8>, tensor<i8>) -> tensor<i1>"
    lines = f"%first = stablehlo.compare {direction}, %a, %b, {kind} : {pair}\n"
    if has_second:
        lines += (
            f"%equal = stablehlo.compare EQ, %a, %b, {kind} : {pair}\n"
            f"%less = stablehlo.compare LT, %c, %d, SIGNED : {other}\n"
            "%rest = stablehlo.and %equal, %less : tensor<i1>\n%r = stablehlo.or %first, %rest : tensor<i1>\n"
        )
    body = (
        f'%s:2 = "stablehlo.sort"(%x, %y) <{{dimension = {dim} : i64, is_stable = true}}> ({{\n'
        f"^bb0(%a: tensor<{element}>, %b: tensor<{element}>, %c: tensor<i8>, %d: tensor<i8>):\n{lines}"
        f"stablehlo.return %{'r' if has_second else 'first'} : tensor<i1>\n}}) : "
        f"({keys}, {along}) -> ({keys}, {along})\n"
    )
    results, found = (keys, along), "%s#0, %s#1"
    if rows is not None:
        part = tuple(rows if d == dim else size for d, size in enumerate(shape))
        results, found = (typed(part, element), typed(part, "i8")), "%p, %q"
        slices = ", ".join(f"0:{size}" for size in part)
        body += f"%p = stablehlo.slice %s#0 [{slices}] : ({keys}) -> {results[0]}\n"
        body += f"%q = stablehlo.slice %s#1 [{slices}] : ({along}) -> {results[1]}\n"
    text = (
        f"func.func public @main(%x: {keys}, %y: {along}) -> ({results[0]}, {results[1]}) {{\n{body}"
        f"return {found} : {results[0]}, {results[1]}\n}}\n"
    )
    name = f"{direction} of {element} along {dim} of {shape}, rows {rows}, {'two keys' if has_second else 'one key'}"
    return ProofCase(text, name, "xla", {"target": target})
