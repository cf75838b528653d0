"""Sizes to try a module with where none are given: small ones that satisfy what the module says of its sizes."""

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice, product

from hlo_lower.ir.shapes.constraints import holds, names_of
from hlo_lower.ir.shapes.expressions import symbols_of
from hlo_lower.ir.shapes.specification import Specification, is_place

GREATEST = 4096
"""The greatest size that a constraint on one name alone can push a choice to."""

MIXED = 2048
"""Combinations that are looked at where constraints tie names together."""

_NEAR = (2, 32, 4, 128, 1, 8, 512, 16, 64, 256)
_PRIMES = (3, 2, 5, 7, 11, 13, 17, 19)


def candidates(specification: Specification) -> Iterator[dict[str, int]]:
    """Sizes for which every constraint holds and no dim is negative, each once, the telling ones first.

    They are all different, all equal, multiples of 4 and 16, 1, and sizes that stand in the module, which a size may
    have to be equal to. A choice that a constraint on one name refuses is moved up to the next size that it allows.
    """
    constraints = (*specification.constraints, *_no_negative_dims(specification))
    allowed = {s: _allowed_sizes(s, constraints) for s in specification.symbols}
    if not all(allowed.values()):
        return
    seen: list[dict[str, int]] = []
    for chosen in (*_choices(specification), *_mixed_sizes(constraints, allowed)):
        sizes = {s: next((a for a in allowed[s] if a >= size), allowed[s][-1]) for s, size in chosen.items()}
        if sizes not in seen and all(holds(c, sizes) for c in constraints):
            seen.append(sizes)
            yield sizes


def _no_negative_dims(specification: Specification) -> tuple[str, ...]:
    """That each dim which is computed is 0 or more, as constraints."""
    named = [dim for dims in specification.dims for dim in dims or () if not is_place(dim)]
    return tuple(dict.fromkeys(f"{dim} >= 0" for dim in named if symbols_of(dim) not in ((), (dim,))))


def _choices(specification: Specification) -> Iterator[dict[str, int]]:
    symbols = specification.symbols
    yield {s: _PRIMES[i % len(_PRIMES)] for i, s in enumerate(symbols)}
    yield {s: _PRIMES[-1 - i % len(_PRIMES)] for i, s in enumerate(symbols)}
    for size in (4, 1, 2, 6, 8, 16, 32, 64, 128):
        yield dict.fromkeys(symbols, size)
    for k in range(24):
        yield {s: (1, 2, 3, 4, 5, 8)[(k * (i + 1) + i) % 6] for i, s in enumerate(symbols)}
    static = sorted({int(n) for text in specification.arguments for n in re.findall(r"(?<=[<x])\d+(?=x)", text)})
    for chosen in islice(product(static, repeat=len(symbols)), 64):
        yield dict(zip(symbols, chosen, strict=True))


def _mixed_sizes(constraints: Sequence[str], allowed: Mapping[str, list[int]]) -> Iterator[dict[str, int]]:
    """Combinations of sizes near and far from each other, small ones first, of the names that constraints tie together;
    the other names have a small size."""
    tied = sorted({name for c in constraints if len(names_of(c)) > 1 for name in names_of(c)})
    if not tied:
        return
    each = max(2, int(MIXED ** (1 / len(tied))))
    others = {name: _PRIMES[i % len(_PRIMES)] for i, name in enumerate(allowed) if name not in tied}
    spread = [_spread(allowed[name])[:each] for name in tied]
    for chosen in sorted(islice(product(*spread), MIXED), key=sum):
        yield {**{name: others.get(name, 0) for name in allowed}, **dict(zip(tied, chosen, strict=True))}


def _spread(sizes: list[int]) -> list[int]:
    """Some of the sizes, one near each of a few that lie further and further apart."""
    return list(dict.fromkeys(next((s for s in sizes if s >= near), sizes[-1]) for near in _NEAR))


def _allowed_sizes(symbol: str, constraints: Sequence[str]) -> list[int]:
    """The sizes that the constraints on a name alone leave it."""
    own = [c for c in constraints if names_of(c) == {symbol}]
    return [size for size in range(1, GREATEST + 1) if all(holds(c, {symbol: size}) for c in own)]
