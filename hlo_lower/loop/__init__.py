"""The structured loop: one description of an iteration, emitted as the loop op that a target reads."""

from hlo_lower.loop.structured import StructuredLoop

__all__ = ["StructuredLoop"]
