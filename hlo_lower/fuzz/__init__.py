"""Fuzzing: random legal scatters, lowered, run, and compared with a NumPy reference and with XLA's own scatter.

case        one scatter as plain data: form, types, region, index columns, index regimes
judge       a batch of them, lowered and compiled as one module
campaign    many seeds, in several processes, resumable, failures shrunk and written down
strategy    the same cases as a hypothesis strategy; it alone needs hypothesis
"""

from hlo_lower.fuzz.campaign import Campaign
from hlo_lower.fuzz.case import Case, case_of_seed, draw_case
from hlo_lower.fuzz.judging import judge
from hlo_lower.fuzz.module_text import module_text
from hlo_lower.fuzz.report import report_lines

__all__ = ["Campaign", "Case", "case_of_seed", "draw_case", "judge", "module_text", "report_lines"]
