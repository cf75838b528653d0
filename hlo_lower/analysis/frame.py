"""The call through which a function's body is looked at."""

from dataclasses import dataclass

from hlo_lower.graph import Node


@dataclass(frozen=True, slots=True)
class Frame:
    """A call, and the one around it: what an argument is depends on who calls."""

    call: Node
    caller: "Frame | None"
