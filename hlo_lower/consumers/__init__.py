"""Consumers: compilers that read StableHLO, driven in child processes, and judged by XLA's results.

Each has a file of its own (`iree`, `litert`, `coreml`); `CONSUMERS` is the whole list. The child imports this package,
too, and is to start without JAX: so nothing here imports it.
"""

from hlo_lower.consumers.consumer import Consumer
from hlo_lower.consumers.consumer_outcome import ConsumerOutcome, ConsumerRun
from hlo_lower.consumers.coreml import COREML
from hlo_lower.consumers.iree import IREE
from hlo_lower.consumers.litert import LITERT
from hlo_lower.errors import InputError

__all__ = ["CONSUMERS", "COREML", "IREE", "LITERT", "Consumer", "ConsumerOutcome", "ConsumerRun", "consumer_named"]

CONSUMERS = (IREE, LITERT, COREML)


def consumer_named(name: str) -> Consumer:
    """The consumer of this name.

    Raises:
      InputError: there is none; the message lists those that exist.
    """
    for consumer in CONSUMERS:
        if consumer.name == name:
            return consumer
    known = ", ".join(consumer.name for consumer in CONSUMERS)
    raise InputError(
        "", f"no consumer named {name!r}", facts=f"consumers: {known}", next_step=f"--on {CONSUMERS[0].name}"
    )
