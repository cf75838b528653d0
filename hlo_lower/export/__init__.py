"""From a Python function to StableHLO: which function, with which arguments, and text that is the same everywhere."""

from hlo_lower.export.load import load_function
from hlo_lower.export.model_function import ExportTarget
from hlo_lower.export.trace import export, exported_text

__all__ = ["ExportTarget", "export", "exported_text", "load_function"]
