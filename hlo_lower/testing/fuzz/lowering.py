"""The lowerings that are fuzzed."""

from collections.abc import Callable, Sequence

from hlo_lower.base.registry import CompositeLoweringRegistry
from hlo_lower.lowering.lowered import Lowered
from hlo_lower.lowering.options import Options
from hlo_lower.lowering.pipeline import lower
from hlo_lower.testing.fuzz.what_shows import FloatMode, Policy


def built_in(
    oob: Policy,
    prefer: Sequence[str] = (),
    float_mode: FloatMode = "exact",
    registry: CompositeLoweringRegistry | None = None,
) -> Callable[[str], Lowered]:
    """Lower to plain StableHLO under a policy.

    Args:
      oob: the policy.
      prefer, float_mode: as in `hlo_lower.lower`.
      registry: the rules; by default those that are installed.
    """
    options = Options(oob=oob, float_mode=float_mode, prefer=tuple(prefer))
    return lambda text: lower(text, options=options, name="fuzzed", registry=registry)
