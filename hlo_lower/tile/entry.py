"""`hl.tile`: from a module to the module whose large values are computed in loops."""

from hlo_lower.base.arguments import silent
from hlo_lower.base.errors import InputError
from hlo_lower.facts.memory.liveness import curves_of
from hlo_lower.ir.binding import is_symbolic
from hlo_lower.ir.reader import Source, copy_graph, read
from hlo_lower.ir.view import Graph
from hlo_lower.ir.writer import to_bytecode, to_text
from hlo_lower.ops.axes.cut import SubsetRules
from hlo_lower.ops.axes.op_axes import default_subset_rules
from hlo_lower.tile.by_hand import ByHand, tile_by_hand
from hlo_lower.tile.byte_sizes import parsed_bytes
from hlo_lower.tile.find.measure import measure_temporaries, require_bytes
from hlo_lower.tile.into_loop import IntoLoop, fuse_into
from hlo_lower.tile.plan_search import Say, SearchLimits, Tell, describe_peak, say_nothing, search
from hlo_lower.tile.prepare.normalize import prepare
from hlo_lower.tile.tiled_module import Tiled


def tile(
    source: Source | Graph,
    *,
    max_temp: str | int | None = None,
    by_hand: ByHand | IntoLoop | None = None,
    name: str | None = None,
    rules: SubsetRules | None = None,
    progress: Tell | None = None,
    effort: SearchLimits | None = None,
    say: Say = say_nothing,
) -> Tiled:
    """Compute what is large in loops over tiles of it. Nothing is verified here.

    Args:
      source: the module: whatever `read` takes, or a graph, which is left as it is.
      max_temp: bytes of temporaries to come down to, as a number or "128MiB": XLA's figure for its CPU, arguments and
        results not counted.
      by_hand: one op to tile, or to fuse into a loop, in the place of a bound.
      name: name for messages.
      rules: subset rules; by default those of the package.
      progress: told how far it is.
      effort: what a search may take.
      say: told of each plan that is tried, a line each.

    Raises:
      InputError: the source cannot be read, it has symbolic sizes, XLA does not compile it, or what is asked for by
        hand does not fit it.
    """
    given = source if isinstance(source, Graph) else read(source, name, is_structured=isinstance(by_hand, IntoLoop))
    if given.is_structured and isinstance(by_hand, IntoLoop):
        graph = copy_graph(given)
        return Tiled(graph, fuse_into(graph, rules or default_subset_rules(), by_hand))
    text = to_text(given)
    if is_symbolic(text):
        raise InputError(
            given.name, "the module has symbolic sizes, and tiles have sizes", next_step="bind them: --bind b=4,s=16"
        )
    if (max_temp is None) == (by_hand is None):
        raise InputError("tile", "either a bound or an op is asked for", next_step="write max_temp='128MiB'")
    known_rules, tell = rules or default_subset_rules(), progress or silent
    budget = None if max_temp is None else parsed_bytes("max_temp", max_temp)
    graph = read(to_bytecode(given), given.name)
    prepare(graph, is_by_hand=by_hand is not None)
    if by_hand is not None:
        return _by_hand(text, graph, by_hand, known_rules)
    assert budget is not None
    found = search(text, graph, budget, known_rules, tell, effort or SearchLimits(), say)
    after = read(found.module if found.is_changed else text, given.name)
    beyond = describe_peak(after, known_rules) if found.size > budget else ()
    loops, pulled, again = tuple(found.loops), tuple(found.pulled), tuple(found.recomputed)
    memory = curves_of(graph, after)
    return Tiled(after, loops, found.before, found.size, budget, beyond, pulled, again, found.ended, memory)


def _by_hand(text: str, graph: Graph, hand: ByHand | IntoLoop, rules: SubsetRules) -> Tiled:
    was = curves_of(graph)
    told = tile_by_hand(graph, rules, hand) if isinstance(hand, ByHand) else fuse_into(graph, rules, hand)
    before, after = (require_bytes(size, graph.name) for _, size in measure_temporaries([text, to_text(graph)]))
    return Tiled(graph, told, before, after, memory=(*was, *curves_of(graph)))
