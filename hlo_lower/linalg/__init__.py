"""Linalg on tensors: what a module becomes for a target whose dialect is linalg."""

from hlo_lower.linalg.linalg_report import LinalgReport
from hlo_lower.linalg.lower import to_linalg

__all__ = ["LinalgReport", "to_linalg"]
