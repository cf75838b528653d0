"""Selection: which modules a report is about, and their classification and conversion, in one process or in many."""

from hlo_lower.selection.conversion import convert_modules
from hlo_lower.selection.files import SNIFFED, SUFFIXES, Selected, select
from hlo_lower.selection.modules import classify_modules, default_jobs

__all__ = ["SNIFFED", "SUFFIXES", "Selected", "classify_modules", "convert_modules", "default_jobs", "select"]
