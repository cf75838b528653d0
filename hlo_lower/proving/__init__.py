"""Proofs of the rules: for each rule a bounded family of small modules that it takes, each proved for all arguments.

The family establishes what a rule asks for (indices that are clamped, sorted, constant, a run, a permutation) and the
converter decides which rule takes a module. The prover, `hlo_lower.verify.proof`, sees nothing but the two texts.
"""

from hlo_lower.proving.proof_campaign import prove_rules, rules_named
from hlo_lower.proving.proof_outcome import Refuted, RuleOutcome, Undecided
from hlo_lower.proving.table import render_json, render_text

__all__ = ["Refuted", "RuleOutcome", "Undecided", "prove_rules", "render_json", "render_text", "rules_named"]
