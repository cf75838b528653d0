"""Proofs of the rules: for each rule a bounded family of small modules that it takes, each proved for all arguments.

The family establishes what a rule asks for (indices that are clamped, sorted, constant, a run, a permutation) and the
converter decides which rule takes a module. The prover, `hlo_lower.verify.proof`, sees nothing but the two texts.
"""
