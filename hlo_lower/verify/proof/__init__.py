"""Proof: two modules evaluated symbolically, and the question whether they differ put to z3.

A judge of its own: it reads the two texts as the other judges do, calls inlined (`hlo_lower.verify.read.program`),
and has its own definition of every operation, of scatter and gather under both out-of-bounds policies too. Nothing of
the converter's analyses, lowerings or graph is in it.

    prove_equal(before_text, after_text, timeout_s=10.0) -> ProofResult      "proved", "refuted" with inputs, "unknown"

One idea per file: `elements` and `terms` (what an element is), `tensors`, `integers`, `elementwise`, `uninterpreted`,
`moving`, `starts` and `slicing`, `gathering`, `scattering`, `reductions`, `ordering`, `control_flow`; `evaluator` holds
the table of operations; `world` is the setting, `query` the question, `counterexample` what a model means, `equal` all
together.
"""

from hlo_lower.verify.proof.equal import prove_equal
from hlo_lower.verify.proof.proof_result import ProofResult
from hlo_lower.verify.proof.solver import is_installed, require

__all__ = ["ProofResult", "is_installed", "prove_equal", "require"]
