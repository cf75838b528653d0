"""Consumers: compilers that read StableHLO, driven in child processes, and judged by XLA's results.

Each has a file of its own (`iree`, `litert`, `coreml`); `CONSUMERS` are those, and `all_consumers` those of installed
distributions, too, which name theirs in the entry point group `hlo_lower.consumers`:

    [project.entry-points."hlo_lower.consumers"]
    npu = "my_npu.driver:NPU"  # a Consumer

The child imports this package, too, and is to start without JAX: so nothing here imports it.
"""

import os
from pathlib import Path

from hlo_lower.api.module_forms import FORM_BY_SUFFIX
from hlo_lower.base.arguments import likely
from hlo_lower.base.errors import InputError
from hlo_lower.base.installed import WITHOUT, installed_objects, unusable
from hlo_lower.consumers.consumer import Consumer, Runner
from hlo_lower.consumers.consumer_outcome import (
    Array,
    ConsumerOutcome,
    ConsumerRun,
    RefusedError,
    RunsElsewhereError,
    ToolCrashedError,
)
from hlo_lower.consumers.coreml import COREML
from hlo_lower.consumers.iree import IREE
from hlo_lower.consumers.litert import LITERT

__all__ = [
    "CONSUMERS",
    "COREML",
    "IREE",
    "LITERT",
    "Array",
    "Consumer",
    "ConsumerOutcome",
    "ConsumerRun",
    "RefusedError",
    "Runner",
    "RunsElsewhereError",
    "ToolCrashedError",
    "all_consumers",
    "builder_of",
    "consumer_named",
]

CONSUMERS = (IREE, LITERT, COREML)
"""The built-in ones."""

GROUP = "hlo_lower.consumers"


def all_consumers() -> tuple[Consumer, ...]:
    """The built-in consumers, then those of installed distributions.

    Raises:
      PluginError: one of those cannot be imported, is no `Consumer`, or has the name of another one.
    """
    found = list(CONSUMERS)
    for one in () if os.environ.get(WITHOUT) else installed_objects(GROUP, Consumer):
        if any(consumer.name == one.value.name for consumer in found):
            reason = f"there is another consumer named {one.value.name!r}"
            raise unusable(GROUP, one.distribution, one.entry_point, reason)
        found.append(one.value)
    return tuple(found)


def builder_of(path: str, target: str) -> Consumer | None:
    """The consumer whose compiler makes a file, by its suffix; None where that is none of a consumer.

    Raises:
      InputError: it is that of another consumer than the target; the message names the suffixes that go with that.
      PluginError: as `all_consumers`.
    """
    suffix = Path(path).suffix
    if not suffix or suffix in FORM_BY_SUFFIX:
        return None
    builders = [one for one in all_consumers() if one.artifact]
    named = [one for one in builders if one.artifact == suffix]
    found = next((one for one in named if one.name == target), None)
    if named and found is None:
        own = [f"{one.artifact}, or " for one in builders if one.name == target]
        facts = f"of {target}: {''.join(own)}a module: {', '.join(FORM_BY_SUFFIX)}"
        told = f"{suffix} is what {named[0].name} runs, and the target is {target}"
        raise InputError(path, told, facts=facts, next_step=f"--target {named[0].name}, or another suffix")
    return found


def consumer_named(name: str) -> Consumer:
    """The consumer of this name, built in or of an installed distribution.

    Raises:
      InputError: there is none; the message lists those that exist.
      PluginError: as `all_consumers`.
    """
    consumers = all_consumers()
    for consumer in consumers:
        if consumer.name == name:
            return consumer
    known = [consumer.name for consumer in consumers]
    told = f"consumers: {', '.join(known)}"
    raise InputError("", f"no consumer named {name!r}", facts=told, next_step=f"--on {likely(name, known)}")
