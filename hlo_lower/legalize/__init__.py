"""Portable input: 64-bit integers made 32 bits wide. What is no plain StableHLO are kinds of `hlo_lower.rewrite`."""

from hlo_lower.change import Change, Outcome
from hlo_lower.legalize.demote import assume_nothing, demote_i64, plan_demotion
from hlo_lower.legalize.demotion import DemotedValue, Demotion, narrow_arguments, narrow_array
from hlo_lower.legalize.wrapper import with_original_signature

__all__ = [
    "Change",
    "DemotedValue",
    "Demotion",
    "Outcome",
    "assume_nothing",
    "demote_i64",
    "narrow_arguments",
    "narrow_array",
    "plan_demotion",
    "with_original_signature",
]
