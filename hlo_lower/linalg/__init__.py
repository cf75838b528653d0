"""Linalg on tensors: what a module becomes for a target whose dialect is linalg."""

from hlo_lower.linalg.lower import to_linalg
from hlo_lower.linalg.report import LinalgReport

__all__ = ["LinalgReport", "to_linalg"]
