"""What is live over the program order: an estimate of what a compiler must store, to find what is large."""

from dataclasses import dataclass

from hlo_lower.graph import Value
from hlo_lower.tile.dataflow import Dataflow


@dataclass(frozen=True)
class Liveness:
    """Bytes that are live at each node, arguments and results of the module left out.

    Attributes:
      live: bytes at each node, in program order.
      peak: the place at which they are most.
      at_peak: the values that are stored there, the largest first.
    """

    live: tuple[int, ...]
    peak: int
    at_peak: tuple[Value, ...]


def liveness(program: Dataflow) -> Liveness:
    """The liveness of a program in its order; what XLA fuses into its user is not stored, but what it reads stays."""
    last = _last_uses(program)
    stored = [v for v in program.maker if program.size[v] and v not in program.returned and not program.is_fused(v)]
    changes = [0] * (len(program.nodes) + 2)
    for value in stored:
        changes[program.place[program.maker[value]]] += program.size[value]
        changes[last[value] + 1] -= program.size[value]
    live: list[int] = []
    for change in changes[: len(program.nodes)]:
        live.append((live[-1] if live else 0) + change)
    peak = max(range(len(live)), key=lambda place: live[place], default=0)
    there = [v for v in stored if program.place[program.maker[v]] <= peak <= last[v]]
    return Liveness(tuple(live), peak, tuple(sorted(there, key=lambda v: -program.size[v])))


def _last_uses(program: Dataflow) -> dict[Value, int]:
    """The place of the last node that reads each value, itself or through what is fused into it."""
    last: dict[Value, int] = {}
    for value in reversed(list(program.maker)):
        place = program.place[program.maker[value]]
        for user in program.users[value]:
            through = [last[v] for v in user.results if user in program.place and program.is_fused(v)]
            place = max(place, program.place[user], *through)
        last[value] = place
    return last
