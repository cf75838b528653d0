"""What judges the recognition of named ops: programs with the ops, programs that only look like them, and counts.

case                  a function with the shapes of its arguments, and what is to be found in it, or not
attention_patterns    thirty forms of attention that compilers of PyTorch meet; attention_layouts has the second half
attention_styles      attention as people write it in JAX: caches, groups, windows, soft caps
softmaxes, normalizations, channel_norms, activations, rotations, lookups, layers   the other ops
near_*                what is not the op
decoders, decoder_*   exports of decoders with two layers, with counts: twenty, and twenty in other manners
counted_modules.toml  what modules of frameworks hold, counted by reading
"""
