"""How a module is lowered: the keywords of `lower` and the flags of `hlo-lower convert`, as one value."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from hlo_lower.targets import STABLEHLO, Target


@dataclass(frozen=True)
class Options:
    """How to lower; the keywords of `lower` and the flags of `hlo-lower convert`.

    Attributes:
      target: the consumer.
      oob: "xla" drops whole windows that are out of bounds, "spec" single elements.
      float_mode: "exact" keeps the order of float reductions, "reassociate" allows another; "" becomes the target's, or
        "exact" where it has none.
      trust_flags: take `unique_indices = true` as a proof.
      keep_unsupported: leave a scatter that no rule fits instead of failing.
      only, skip: lower only, or all but, the scatters whose location, scope, function or number ("#3") matches one of
        these patterns (`fnmatch`).
      sizes: symbolic sizes that are bound before lowering (see `hlo_lower.graph.bind`).
      prefer: rules that are taken wherever they are right ("last_writer"), and entries of the target's table of sizes
        with other values ("few_windows=64").
      legalize: make chlo, known mhlo custom calls and composites plain StableHLO first; None: as the target says.
      demote_i64: make 64-bit integers 32 bits wide first; None: as the target says.
      linalg_ops: for a target that reads linalg: "named" ops where there are any, or all "generic".
    """

    target: Target = STABLEHLO
    oob: Literal["xla", "spec"] = "xla"
    float_mode: Literal["exact", "reassociate", ""] = ""
    trust_flags: bool = False
    keep_unsupported: bool = False
    only: tuple[str, ...] = ()
    skip: tuple[str, ...] = ()
    sizes: tuple[tuple[str, int], ...] = ()
    prefer: tuple[str, ...] = ()
    legalize: bool | None = None
    demote_i64: bool | None = None
    linalg_ops: Literal["named", "generic"] = "named"

    def __post_init__(self) -> None:
        """Take what the target says where nothing is given."""
        object.__setattr__(self, "float_mode", self.float_mode or self.target.float_mode or "exact")
        for name in ("legalize", "demote_i64"):
            if getattr(self, name) is None:
                object.__setattr__(self, name, getattr(self.target, name))


def names_of(prefer: Sequence[str]) -> tuple[str, ...]:
    """What is preferred as `Options.prefer` holds it; a str is one name, not its letters."""
    return (prefer,) if isinstance(prefer, str) else tuple(prefer)
