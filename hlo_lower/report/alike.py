"""Alike scatters: the same write in eighty layers is one line of a report."""

from dataclasses import dataclass

from hlo_lower.facts.scatter.record import ScatterRecord


@dataclass(frozen=True)
class Group:
    """Alike scatters: they agree in everything but where they stand. The first one speaks for all."""

    members: tuple[ScatterRecord, ...]

    @property
    def first(self) -> ScatterRecord:
        """The one that comes first in the program."""
        return self.members[0]

    @property
    def count(self) -> int:
        """How many they are."""
        return len(self.members)


def fold(records: tuple[ScatterRecord, ...], *, show_all: bool = False) -> list[Group]:
    """Group alike scatters, in the order of the first of each group; each alone with show_all."""
    if show_all:
        return [Group((record,)) for record in records]
    groups: dict[object, list[ScatterRecord]] = {}
    for record in records:
        groups.setdefault(alike(record), []).append(record)
    return [Group(tuple(members)) for members in groups.values()]


def alike(record: ScatterRecord) -> object:
    """What alike scatters agree in: all but the number and the places (also those within evidence and prose)."""
    r = record
    return (
        (r.file, r.kind, r.subset, r.writes, r.combiner, r.dtype, r.oob, r.in_bounds, r.bounds, r.unique, r.rule),
        (r.operand_shape, r.indices_shape, r.updates_shape),
        tuple((fact.name, fact.value) for fact in r.facts),
        tuple(rejection.rule for rejection in r.why_not),
    )


def hidden_line(groups: list[Group]) -> str:
    """ "158 more alike (--all)", or "" where nothing is folded."""
    hidden = sum(group.count - 1 for group in groups)
    return f"... {hidden:,} more alike (--all)" if hidden else ""
