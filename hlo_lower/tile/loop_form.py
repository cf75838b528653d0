"""Loops in the form of the structured dialects: subsets as values, what is materialized, and what is yielded to which.

    parallel %i = 0 to 20 shared(%i0 = %0 : 80xf32) at "sums.mlir:4" {
      %1 = stablehlo.broadcast_in_dim(0.0) {broadcast_dimensions = array<i64>} : 4xf32
      for %j = 0 to 15 carries(%j0 = %1 : 4xf32) at "sums.mlir:4" {
        %s0 = subset [tile(4*i, 4), tile(4*j, 4)] of 80x60
        %2 = materialize %arg0[%s0]
        %3 = stablehlo.multiply(%2, %2) : 4x4xf32
        %4 = stablehlo.reduce(%3, 0.0) {dimensions = array<i64: 1>} by add : 4xf32
        %5 = stablehlo.add(%j0, %4) : 4xf32
        yield %5 to %j0[full]
      } -> %6
      %s1 = subset [tile(4*i, 4)] of 80
      yield %6 to %i0[%s1]
    } -> %7

A dim of a subset is `full`, a `tile(start, size)` or `tile(start, size, stride)`, a `point(start)`, or a
`filter(index, size)` by an index tensor. A start is a multiple of an iterator and a constant; or a name: of a value, or
of a start that does not go beyond a bound (`min(7*i, 73)`, a last tile that is moved back). `printed` writes loops, and
`parsed` reads them.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from hlo_lower.base.errors import InputError
from hlo_lower.ops.axes.parts import DimSubset, Filter, Offset, StridedRange, TensorSubset, whole

FULL = "full"


@dataclass(frozen=True)
class Computed:
    """An op of a body that takes no subset, as text without its results."""

    results: tuple[str, ...]
    text: str


@dataclass(frozen=True)
class Materialized:
    """The elements of a subset of a tensor."""

    result: str
    tensor: str
    subset: TensorSubset


@dataclass(frozen=True)
class Yielded:
    """What an iteration gives for a subset of what the loop carries; None: for all of it."""

    value: str
    into: str
    subset: TensorSubset | None


@dataclass(frozen=True)
class Carried:
    """What a loop carries: the name in the body, that of what it begins with, and the type."""

    name: str
    initial: str
    type: str


@dataclass(frozen=True)
class LoopForm:
    """A loop.

    Attributes:
      where: its place.
      iterator, trips: what counts from 0, and to where.
      is_parallel: whether iterations may run in any order: each reads nothing that another one yields to.
      carried: what is yielded to.
      body: what an iteration computes.
      yields: what it gives.
      results: names of what the loop gives.
    """

    where: str
    iterator: str
    trips: int
    is_parallel: bool
    carried: tuple[Carried, ...]
    body: "tuple[Item, ...]"
    yields: tuple[Yielded, ...]
    results: tuple[str, ...]

    def loops(self) -> "Iterator[LoopForm]":
        """This loop and those within it."""
        yield self
        for item in self.body:
            if isinstance(item, LoopForm):
                yield from item.loops()


Item: TypeAlias = Computed | Materialized | LoopForm


# --- print ---


def print_loops(loops: Sequence[LoopForm]) -> str:
    """The loops as text; a body that uses a subset names it once."""
    names: list[str] = []
    return "".join(f"{line}\n" for loop in loops for line in _lines(loop, names))


def _lines(loop: LoopForm, names: list[str]) -> list[str]:
    kind, word = ("parallel", "shared") if loop.is_parallel else ("for", "carries")
    told = ", ".join(f"{one.name} = {one.initial} : {one.type}" for one in loop.carried)
    lines = [f'{kind} %{loop.iterator} = 0 to {loop.trips} {word}({told}) at "{loop.where}" {{']
    known: dict[TensorSubset, str] = {}

    def name_of(subset: TensorSubset) -> str:
        if subset not in known:
            known[subset] = f"%s{len(names)}"
            names.append(known[subset])
            dims = ", ".join(_dim_text(axis, n) for axis, n in zip(subset.axes, subset.shape, strict=True))
            lines.append(f"  {known[subset]} = subset [{dims}] of {'x'.join(map(str, subset.shape))}")
        return known[subset]

    for item in loop.body:
        if isinstance(item, LoopForm):
            lines += (f"  {line}" for line in _lines(item, names))
        elif isinstance(item, Materialized):
            subset = name_of(item.subset)
            lines.append(f"  {item.result} = materialize {item.tensor}[{subset}]")
        else:
            lines.append(f"  {', '.join(item.results)} = {item.text}")
    for given in loop.yields:
        subset = FULL if given.subset is None else name_of(given.subset)
        lines.append(f"  yield {given.value} to {given.into}[{subset}]")
    return [*lines, f"}} -> {', '.join(loop.results)}"]


def _dim_text(axis: DimSubset, extent: int) -> str:
    if axis == whole(extent):
        return FULL
    if isinstance(axis, Filter):
        return f"filter({axis.index}, {axis.size})"
    if axis.size == 1:
        return f"point({axis.start})"
    stride = f", {axis.stride}" if axis.stride != 1 else ""
    return f"tile({axis.start}, {axis.size}{stride})"


# --- parse ---

HEAD = re.compile(r'(parallel|for) %(\w+) = 0 to (\d+) (?:shared|carries)\((.*)\) at "(.*)" \{')
CARRIED = re.compile(r"(%[\w.#]+) = (.+) : (\S+)")
SUBSET = re.compile(r"(%s\d+) = subset \[(.*)\] of (.*)")
MATERIALIZED = re.compile(r"(%[\w.#]+) = materialize (\S+)\[(%s\d+)\]")
YIELDED = re.compile(r"yield (.+) to (%[\w.#]+)\[(full|%s\d+)\]")
COMPUTED = re.compile(r"((?:%[\w.#]+(?:, )?)*) = (.*)")
DIM = re.compile(r"(full|(?:tile|point|filter)\((?:[^()]|\([^()]*\))*\))(?:, |$)")
START = re.compile(r"(?:(?P<scale>-?\d+)\*)?(?P<name>%[\w.#]+|[a-z]|min\(.*\))(?:\+(?P<constant>-?\d+))?")


def parse_loops(text: str) -> tuple[LoopForm, ...]:
    """Parse the text of loops; InputError names the first line that is wrong."""
    lines = [(number, line.strip()) for number, line in enumerate(text.splitlines(), 1) if line.strip()]
    loops: list[LoopForm] = []
    while lines:
        loops.append(_loop(lines))
    return tuple(loops)


def _loop(lines: list[tuple[int, str]]) -> LoopForm:
    head = _match(HEAD, *lines.pop(0))
    kind, iterator, trips, told, where = head.groups()
    carried = tuple(Carried(*_match(CARRIED, 0, one).groups()) for one in re.split(", (?=%)", told) if one)
    subsets: dict[str, TensorSubset] = {}
    body, yields = list[Item](), list[Yielded]()
    while lines:
        number, line = lines[0]
        if line.startswith("} ->"):
            lines.pop(0)
            results = tuple(name for name in line.removeprefix("} ->").strip().split(", ") if name)
            return LoopForm(
                where, iterator, int(trips), kind == "parallel", carried, tuple(body), tuple(yields), results
            )
        if HEAD.fullmatch(line):
            body.append(_loop(lines))
            continue
        lines.pop(0)
        if found := SUBSET.fullmatch(line):
            subsets[found[1]] = _subset(number, found[2], found[3])
        elif found := MATERIALIZED.fullmatch(line):
            body.append(Materialized(found[1], found[2], _find_subset(subsets, found[3], number)))
        elif found := YIELDED.fullmatch(line):
            subset = None if found[3] == FULL else _find_subset(subsets, found[3], number)
            yields.append(Yielded(found[1], found[2], subset))
        else:
            found = _match(COMPUTED, number, line)
            body.append(Computed(tuple(found[1].split(", ")), found[2]))
    raise _wrong(0, "a loop has no end")


def _find_subset(subsets: dict[str, TensorSubset], name: str, number: int) -> TensorSubset:
    if name not in subsets:
        raise _wrong(number, f"there is no subset {name}")
    return subsets[name]


def _subset(number: int, told: str, shape: str) -> TensorSubset:
    sizes = tuple(int(n) for n in shape.split("x") if n.isdecimal())
    dims = DIM.findall(told)
    if len(dims) != len(sizes):
        raise _wrong(number, f"{len(dims)} dims of {shape}")
    return TensorSubset(sizes, tuple(_dim(number, dim, n) for dim, n in zip(dims, sizes, strict=True)))


def _dim(number: int, text: str, extent: int) -> DimSubset:
    if text == FULL:
        return whole(extent)
    kind, _, told = text.removesuffix(")").partition("(")
    parts = re.split(r", (?![^(]*\))", told)
    counts = {"point": (1,), "filter": (2,), "tile": (2, 3)}[kind]
    if len(parts) not in counts or not all(re.fullmatch(r"-?\d+", part) for part in parts[1:]):
        raise _wrong(number, f"{text!r} is not point(start), tile(start, size) or filter(index, size)")
    if kind == "filter":
        return Filter(parts[0], whole(int(parts[1])))
    return StridedRange(_start(number, parts[0]), *map(int, parts[1:]) if kind == "tile" else (1,))


def _start(number: int, text: str) -> Offset:
    if text.lstrip("-").isdecimal():
        return Offset(int(text))
    found = _match(START, number, text)
    return Offset(int(found["constant"] or 0), found["name"], int(found["scale"] or 1))


def _match(pattern: re.Pattern[str], number: int, text: str) -> re.Match[str]:
    found = pattern.fullmatch(text)
    if found is None:
        raise _wrong(number, f"{text!r} is not a part of a loop")
    return found


def _wrong(number: int, what: str) -> InputError:
    return InputError(f"loops:{number}", what, next_step="--print-loops writes the form that is read")
