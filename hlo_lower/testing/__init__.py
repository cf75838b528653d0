"""Random legal scatters for any tool that rewrites them: drawn, run, and judged by a NumPy reference and XLA.

    from hlo_lower.testing import arguments_of, case_of_seed, module_text, reference

    case = case_of_seed(17)
    text = module_text([case])                    # a StableHLO module with one scatter
    arguments = arguments_of(case, 0)             # in one of the regimes: out of bounds, duplicates, NaN, ...
    expected = reference(case, arguments, "xla")  # by the definition, in NumPy; "spec" drops single elements

case        one scatter as plain data: form, types, region, index columns, index regimes
judge       a batch of them, lowered by a function that is given, compiled as one module, and compared
campaign    many seeds, in several processes, resumable, failures shrunk and written down
refusing    makes JAX on a CPU refuse what the backend of a target would refuse, to try `hl.install` without one
strategy    `legal_scatters()`, the same cases as a hypothesis strategy; it alone needs hypothesis (the extra "testing")
"""

from hlo_lower.testing.fuzz.campaign import Campaign, report_lines
from hlo_lower.testing.fuzz.case import Case, case_of_seed, draw_case
from hlo_lower.testing.fuzz.case_arguments import arguments_of
from hlo_lower.testing.fuzz.judging import judge
from hlo_lower.testing.fuzz.module_text import module_text
from hlo_lower.testing.fuzz.sensitivity import reference
from hlo_lower.testing.refusing import refusing

__all__ = [
    "Campaign",
    "Case",
    "arguments_of",
    "case_of_seed",
    "draw_case",
    "judge",
    "module_text",
    "reference",
    "refusing",
    "report_lines",
]
