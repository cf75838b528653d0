"""`hl.tile`: tiling and verifying together. Whoever tiles nothing does not import it."""

from collections.abc import Callable
from typing import Literal

from hlo_lower.api.verified import require_ok
from hlo_lower.api.verified import verify as _verify
from hlo_lower.base.arguments import one_of, seconds
from hlo_lower.base.errors import InputError
from hlo_lower.ir.reader import Source, read
from hlo_lower.ir.view import Graph
from hlo_lower.tile.by_hand import ByHand
from hlo_lower.tile.entry import tile as _tile
from hlo_lower.tile.into_loop import IntoLoop
from hlo_lower.tile.plan_search import SearchLimits
from hlo_lower.tile.tiled_module import Tiled
from hlo_lower.verify import Level
from hlo_lower.verify.effort import checked_level


def tile(
    source: Source | Graph,
    *,
    max_temp: str | int | None = None,
    by_hand: ByHand | IntoLoop | None = None,
    name: str | None = None,
    oob: Literal["xla", "spec"] = "xla",
    verify: Level | None = None,
    timeout: float | None = None,
    progress: Callable[[str, int, int], None] | None = None,
) -> Tiled:
    """Compute what is large in loops over tiles of it, so that a module needs less memory (docs/tiling.md).

    Args:
      source: whatever `read` takes, or a graph, which is left as it is.
      max_temp: the temporaries to come down to, as bytes or "128MiB": what XLA plans for its CPU, arguments and results
        not counted. The loops are searched for.
      by_hand: one op to tile, or to fuse into a loop of the module, in the place of a bound.
      name: name for messages.
      oob: what its scatters do out of bounds, as a consumer runs them: those of the result are the same ones, cut so
        that each means the same under either policy. It is verified under this one.
      verify: what is verified before the result is returned: "regions", "auto" or "full", as in `verify`; by default
        nothing.
      timeout: seconds after which the search begins no other plan, and gives the best so far; 600 by default.
      progress: called with a stage, how much of it is done and how much there is.

    Returns:
      The module: `.text`, `.loops`, `.before` and `.after` in bytes, `.reached`, and `.left` where it is not.

    Raises:
      InputError: the source cannot be read or compiled, it has symbolic sizes, or an argument does not fit it.
      DifferenceError: the result is not verified to be equal.

    Example:
      >>> hl.tile("decode.mlir", max_temp="1MiB").loops
      ()
    """
    if verify is not None:
        checked_level("verify", verify)
    one_of("oob", oob, ("xla", "spec"))
    is_fused = isinstance(by_hand, IntoLoop)
    graph = source if isinstance(source, Graph) else read(source, name, is_structured=is_fused)
    if verify is not None and graph.is_structured:
        told = "only a consumer can verify a module in linalg"
        raise InputError("verify", told, next_step="hlo-lower verify --on iree ORIGINAL OUT")
    effort = None if timeout is None else SearchLimits(seconds=seconds("timeout", timeout))
    tiled = _tile(graph, max_temp=max_temp, by_hand=by_hand, progress=progress, effort=effort)
    if verify is not None:
        verdict = _verify(graph, tiled.text, float_mode=tiled.float_mode, oob=oob, level=verify)
        require_ok(verdict, graph.name, "tiled")
    return tiled
