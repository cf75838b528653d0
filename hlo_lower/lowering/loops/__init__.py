"""The structured loop: one description of an iteration, emitted as the loop op that a target reads.

It is built as `stablehlo.while`, which every oracle runs; where the module leaves in linalg, a counted loop is read
back (`counted`) and becomes `scf.for` (`scf_for`), or `scf.forall` where its iterations do not meet (`scf_forall`),
which is asked of the numbers that its counter gives (`counter_values`). `tiled` strings tiles of an axis together.
"""
