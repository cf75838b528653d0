"""The old place of `Options`, which `hlo_lower.verified` still names."""

from hlo_lower.options import Options

__all__ = ["Options"]
