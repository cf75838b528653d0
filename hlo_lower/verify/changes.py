"""What changed between two modules, by meaning: the regions in which their alignment differs, as text.

Both modules are aligned as for a verdict (`hlo_lower.verify.align`), and nothing is run: a change is what the two
versions compute otherwise, whether or not it gives the same. Names, the order of independent ops, dead ops, locations,
and functions that are written out are no change.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from hlo_lower.ir import mlir
from hlo_lower.verify.align.align import Aligner, BodyPair, Region, Side, regions_of
from hlo_lower.verify.align.piece import piece, types_of
from hlo_lower.verify.read.interface import composite_differences, effect_differences, interface_differences
from hlo_lower.verify.read.numbering import Number
from hlo_lower.verify.read.program import Op, Program, ValueId, location_of, ops_within
from hlo_lower.verify.run import CannotRunError, parse_or_refuse

LONGEST = 64
"""Letters of a constant that are shown."""


@dataclass(frozen=True)
class Change:
    """A piece of each version that stand for one another; both have the same inputs, and give the same results.

    Attributes:
      where: the way to the bodies that hold them: "main", "main > while 1".
      first, second: where the ops of the two pieces are.
      inputs: for each argument of the pieces, %arg0 first, what it is in the versions.
      results: what they give, in order: "result 0" of the body, or which ops read it; none where only one version has
        the ops.
      before, after: the ops, a line of MLIR each.
      count: how many such changes there are.
    """

    where: str
    first: tuple[str, ...]
    second: tuple[str, ...]
    inputs: tuple[str, ...]
    results: tuple[str, ...]
    before: tuple[str, ...]
    after: tuple[str, ...]
    count: int = 1


@dataclass(frozen=True)
class Changes:
    """What changed.

    Attributes:
      interface: differences of signatures, attributes, effects and composites, a line each.
      changes: the pieces that differ, those that are alike once.
      same: ops of the first version that the second one has, too, constants aside; calls are inlined.
      ops: how many ops each version has, likewise.
    """

    interface: tuple[str, ...]
    changes: tuple[Change, ...]
    same: int
    ops: tuple[int, int]

    def __bool__(self) -> bool:
        return bool(self.interface or self.changes)


def changes_between(before: str | bytes, after: str | bytes) -> Changes:
    """What changed between two modules.

    Args:
      before, after: the two, text or bytes.

    Raises:
      InputError: a module does not parse.
      TooLargeError: a module has too many ops to be aligned.
    """
    context = mlir.shared_context(len(before) + len(after))
    first, second = (
        Program(parse_or_refuse(source, name, context)) for source, name in ((before, "before"), (after, "after"))
    )
    interface = interface_differences(first, second)
    found: dict[tuple[object, ...], Change] = {}
    same = 0
    for name, body in first.entries.items():
        if name in second.entries:
            pairs = Aligner(first, second, frozenset(), {}).align(name)
            interface += [what for pair in pairs for what in effect_differences(pair)]
            interface += composite_differences(pairs) if first.has_composites and second.has_composites else []
            regions = regions_of(pairs)
            alone = [*_alone(pairs, regions)]
            for change in (*map(_change, regions), *(one for one, _ in alone)):
                key = change.where, change.before, change.after
                known = found.get(key)
                found[key] = change if known is None else _joined(known, change)
            others = {op for region in regions for op in region.first}.union(*(ops for _, ops in alone))
            same += len(_computing(body.live())) - len(_computing(others))
    counts = [sum(len(_computing(body.live())) for body in program.entries.values()) for program in (first, second)]
    return Changes(tuple(interface), tuple(found.values()), max(same, 0), (counts[0], counts[1]))


def _computing(ops: Iterable[Op]) -> list[Op]:
    """Ops and those in their bodies, without constants."""
    return [op for op in ops_within(list(ops)) if op.inputs]


def _alone(pairs: Sequence[BodyPair], regions: Sequence[Region]) -> Iterator[tuple[Change, list[Op]]]:
    """The ops that one version has and the other one has nothing for, as where it returns less: a change for each."""
    for pair in pairs:
        for place, side in enumerate((pair.first, pair.second)):
            held = {op for region in regions if region.pair is pair for op in region.sides[place][1]}
            within = {ops[place] for ops in pair.within}
            other = pair.other(side)
            ops = [
                op
                for op in side.live
                if op.inputs and op.results and op not in held and op not in within
                if not any(other.has(side.numbers[result]) for result in op.results)
            ]
            if ops:
                lines = tuple(_short(mlir.print_operation(op.raw, longest=4)) for op in ops)
                empty: tuple[str, ...] = ()
                texts, places = (lines, empty), (_places(ops), empty)
                if place:
                    texts, places = texts[::-1], places[::-1]
                yield (
                    Change(" > ".join(pair.where), places[0], places[1], (), (), texts[0], texts[1]),
                    [] if place else ops,
                )


def _places(ops: Iterable[Op]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(location_of(op.raw) for op in ops if op.inputs))


def _joined(known: Change, other: Change) -> Change:
    """One change for two that are alike, with the places of both."""
    first, second = (
        tuple(dict.fromkeys([*a, *b])) for a, b in ((known.first, other.first), (known.second, other.second))
    )
    return replace(known, first=first, second=second, count=known.count + 1)


def _change(region: Region) -> Change:
    outputs = [o.first for o in region.outputs], [o.second for o in region.outputs]
    texts = [_lines_of(side, ops, region, values) for (side, ops), values in zip(region.sides, outputs, strict=True)]
    if texts[0] == texts[1]:  # what the ops say beside what they compute, as shardings
        texts = [tuple(_short(mlir.print_operation(op.raw, longest=4)) for op in ops) for _, ops in region.sides]
    return Change(
        region.where,
        *(_places(region.first), _places(region.second)),
        tuple(_named(region.pair, number) for number in region.inputs),
        tuple(o.root or _read_by(region.pair.first, o.first) for o in region.outputs),
        *(texts[0], texts[1]),
    )


def _lines_of(side: Side, ops: Sequence[Op], region: Region, outputs: Sequence[ValueId]) -> tuple[str, ...]:
    """The lines of a piece: of its function's body, and of functions that it calls."""
    try:
        text = piece(side, ops, region.inputs, outputs, types_of(region))
    except CannotRunError:
        return tuple(_short(mlir.print_operation(op.raw, longest=4)) for op in ops)
    lines = [line for line in text.splitlines()[1:] if line.strip() not in ("", "}") or line.startswith("    ")]
    told = [_short(line.removeprefix("    ")) for line in lines if not line.lstrip().startswith("func.func @main(")]
    returned = next(place for place in range(len(told)) if told[place].startswith("return "))
    if returned and told[returned - 1].startswith(f"{told[returned].split()[1]} = "):
        del told[returned]  # it only gives what the op before it makes
    return tuple(told)


def _short(line: str) -> str:
    """A line without what stands in long constants."""
    return re.sub(rf"dense<[^>]{{{LONGEST},}}>", "dense<...>", line)


def _named(pair: BodyPair, number: Number) -> str:
    """What a value is that both versions have: "argument 0", "stablehlo.add at a.py:3"."""
    side = pair.first if number in pair.first.value_of else pair.second
    value = side.value_of[number]
    maker, home = side.program.makers[value], side.program.homes[value]
    if maker is not None:
        return f"{maker.name} at {location_of(maker.raw)}"
    around = "" if home.owner is None else f" of the {home.owner.short_name} at {location_of(home.owner.raw)}"
    return f"argument {home.arguments.index(value)}{around}"


def _read_by(side: Side, value: ValueId) -> str:
    """Who reads a value within its body: "read by stablehlo.add at a.py:3"."""
    users = side.users.get(value, [])
    told = list(dict.fromkeys(f"{user.name} at {location_of(user.raw)}" for user in users))
    more = f" and {len(told) - 1} more" if len(told) > 1 else ""
    return f"read by {told[0]}{more}" if told else "read by nothing"
