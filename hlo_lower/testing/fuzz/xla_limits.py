"""What XLA's CPU compiler refuses or gets wrong in a fuzzed scatter, beyond what `verify.xla_errors` names."""

from hlo_lower.testing.fuzz.case import Case
from hlo_lower.testing.fuzz.drawn_types import PACKED, TYPES


def is_packed(case: Case) -> bool:
    """Whether an element takes less than a byte in XLA's memory."""
    return any(name in PACKED for name in (*case.operands, *case.region.elements))


def why_not_native(case: Case) -> str:
    """Why XLA is no judge of a case, "" if it is one (jaxlib 0.10.2)."""
    floats = {e for e in case.region.elements if TYPES[e].kind in ("float", "scale")}
    if len(floats) > 1:
        return "refuses floating point types of different precisions in one scatter"
    if any(e.op in ("constant", "captured constant") and e.element == "i2" for e in case.region.returns):
        return "writes a negative i2 constant over its neighbours in the byte"
    if case.region.captured:
        return "refuses a captured value that is no constant (trap 44)"
    return ""
