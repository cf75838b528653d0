"""Search for loops until a module's temporaries are within a budget, or nothing is gained any more.

XLA's figure for the compiled module accepts or refuses; the estimates only say in which order to try.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from hlo_lower.graph import Graph, read, to_bytecode, to_text
from hlo_lower.subset import Boundary, SubsetRules
from hlo_lower.tile.choose import choices
from hlo_lower.tile.emit import emit
from hlo_lower.tile.liveness import liveness
from hlo_lower.tile.measure import known, measured
from hlo_lower.tile.program import Program
from hlo_lower.tile.tiled import TiledLoopRecord, records, shown_bytes, type_of

ROUNDS = 12
"""Most loops, one after the other."""

TRIED = 6
"""Plans that are compiled in a round, at most."""

GAIN = 0.98
"""A plan is worth it if it leaves no more than this of the temporaries."""

SHOWN = 4
"""Values that are told to be left."""

Tell = Callable[[str, int, int], None]


@dataclass
class Search:
    """How far a search is.

    Attributes:
      name: of the module.
      module: the module so far, as bytecode, which keeps the places that it came with.
      size, before: bytes of its temporaries, now and as it was given; 0 until they are measured.
      loops: the loops so far.
    """

    name: str
    module: bytes
    size: int = 0
    before: int = 0
    loops: list[TiledLoopRecord] = field(default_factory=list[TiledLoopRecord])


@dataclass(frozen=True)
class Attempt:
    """A plan, built: the module, its text, and what is told of its loops."""

    module: bytes
    text: str
    loops: tuple[TiledLoopRecord, ...]


def search(original: str, graph: Graph, budget: int, rules: SubsetRules, tell: Tell) -> Search:
    """Make loops until the temporaries are within the budget, or nothing is gained.

    Args:
      original: the module as it was given.
      graph: the module, prepared; is left as it is.
      budget: bytes.
      rules: the subset rules.
      tell: told how many loops there are.

    Raises:
      InputError: XLA does not compile the module.
    """
    found = Search(graph.name, to_bytecode(graph))
    for number in range(ROUNDS):
        tell("loops", number, ROUNDS)
        if not _improve(found, original if number == 0 else None, budget, rules) or found.size <= budget:
            break
    return found


def _improve(found: Search, original: str | None, budget: int, rules: SubsetRules) -> bool:
    """Take the best of the plans that are tried, or the first that is within the budget; whether there was one.

    Args:
      found: is changed.
      original: the module as it was given, where it has not been measured.
      budget, rules: see `search`.
    """
    attempts = _attempts(found.module, found.name, budget, rules)
    first = [] if original is None else [original]
    best: tuple[int, Attempt] | None = None
    for number, size in measured([*first, *(attempt.text for attempt in attempts)]):
        if number < len(first):
            found.size = found.before = known(size, found.name)
            if found.size <= budget:
                return False
            continue
        if isinstance(size, int) and size < (best[0] if best else found.size * GAIN):
            best = size, attempts[number - len(first)]
        if best and best[0] <= budget:
            break
    if best is None:
        return False
    found.size, found.module = best[0], best[1].module
    found.loops += best[1].loops
    return True


def _attempts(module: bytes, name: str, budget: int, rules: SubsetRules) -> list[Attempt]:
    """The most promising plans, each built in a copy of the module."""
    count = min(TRIED, len(choices(Program(read(module, name), rules), budget)))
    found: list[Attempt] = []
    for number in range(count):
        graph = read(module, name)
        program = Program(graph, rules)
        choice = choices(program, budget)[number]
        told = records(program, choice.plan, choice.sizes)
        emit(program, choice.plan, choice.sizes)
        found.append(Attempt(to_bytecode(graph), to_text(graph), told))
    return found


def left(graph: Graph, rules: SubsetRules) -> tuple[str, ...]:
    """The largest values that are stored at the peak, and why each is not cut."""
    program = Program(graph, rules)
    found: list[str] = []
    for value in liveness(program).at_peak[:SHOWN]:
        node = program.maker[value]
        axes = program.axes(node)
        why = axes.reason if isinstance(axes, Boundary) else "no loop along its axes was found to need less"
        where = graph.location(node)
        found.append(f"{shown_bytes(program.size[value])} {type_of(value)} of {node.name} at {where}: {why}")
    return tuple(found)
