"""The versions of one class: native, lowered, lowered with sums in any order, by the default costs, and the loop."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, Literal

import jax
from numpy.typing import NDArray

import hlo_lower as hl
from benchmark.classes import Arrays, Case
from hlo_lower.base.registry import CompositeLoweringRegistry
from hlo_lower.ir.export.trace import export, exported_text
from hlo_lower.lowering.kinds import new_registry
from hlo_lower.lowering.scatter import many_windows
from hlo_lower.ops.targets import target_of
from hlo_lower.ops.targets.costs import CostTable

NATIVE, LOWERED, REASSOCIATE, DEFAULT, LOOP = CANDIDATES = ("native", "lowered", "reassociate", "default", "loop")


@dataclass(frozen=True)
class Version:
    """One version of a class.

    Attributes:
      candidate: one of `CANDIDATES`, or a rule that was preferred.
      text: its module.
      rules: the rules that made it, none for native.
      kinds: what its scatters were classified as.
      same_as: an earlier candidate that has the same module, or "".
      refused: why there is no module, or "".
    """

    candidate: str
    text: str
    rules: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    same_as: str = ""
    refused: str = ""


class Prepared:
    """A class with its arguments, its versions and the right results."""

    def __init__(self, case: Case, prefer: Sequence[str] = (), target: str = "stablehlo") -> None:
        self.case = case
        self.arguments: Arrays = case.arguments()
        self.versions = versions_of(case, self.arguments, prefer, target)

    @cached_property
    def reference(self) -> NDArray[Any]:
        """What native scatter gives under XLA on the CPU."""
        from benchmark.on_xla import XlaRunner

        return XlaRunner(self, self.versions[0], jax.devices("cpu")[0]).result()


def versions_of(case: Case, arguments: Arrays, prefer: Sequence[str], target: str) -> tuple[Version, ...]:
    """Each version's module; one that is equal to an earlier one says so.

    Args:
      case, arguments: the class.
      prefer: rules; for each that is right for the class, sums in any order, and is not there yet, one more version.
      target: for whom it is lowered; `default` is what its capabilities and the default table of costs give.
    """
    specs = [jax.ShapeDtypeStruct(a.shape, a.dtype) for a in arguments]
    donate = (0,) if case.donated else ()
    native = exported_text(export(case.function, *specs, donate=donate, name=case.name, platforms=["cpu"]))
    lower = partial(hl.lower, native, target=target)
    made = [Version(NATIVE, native), _version(LOWERED, lower, ())]
    if case.float_sum:
        made.append(_version(REASSOCIATE, partial(lower, float_mode="reassociate"), made))
    default = replace(target_of(target), costs=CostTable())
    made.append(_version(DEFAULT, partial(lower, target=default, float_mode=_free(case)), made))
    made.append(_version(LOOP, partial(hl.lower, native, registry=loop_only()), made))
    for rule in prefer:
        version = _version(rule, partial(lower, float_mode=_free(case), prefer=(rule,)), made)
        if rule in version.rules and (not version.same_as or version.same_as == LOWERED):
            made.append(version)
    return tuple(made)


def _free(case: Case) -> Literal["exact", "reassociate"]:
    return "reassociate" if case.float_sum else "exact"


def _version(candidate: str, lower: Callable[[], Any], earlier: Sequence[Version]) -> Version:
    try:
        lowered = lower()
    except hl.HloLowerError as error:
        return Version(candidate, "", refused=f"not lowered: {str(error).splitlines()[0]}")
    text = lowered.text
    rules = tuple(dict.fromkeys(record.rule for record in lowered.records))
    kinds = tuple(dict.fromkeys(str(record.kind) for record in lowered.records))
    same = next((v.candidate for v in earlier if v.text == text and not v.refused), "")
    return Version(candidate, text, rules, kinds, same)


def loop_only() -> CompositeLoweringRegistry:
    """A registry of the catch-all alone."""
    registry = new_registry()
    registry.extend(many_windows.rules)
    return registry
