"""Random programs of 64-bit integers for a target that computes on none: each result has the bits of native XLA."""

import jax.numpy as jnp
import numpy as np
import pytest
from element_type_programs import same_bits, target_taking
from halves_programs import FOLDS, OPS, WITHOUT, arguments_of, differing, no_64_bits, program

import hlo_lower as hl
from hlo_lower.lowerings.carried import halves_converted, halves_products, regions_of_pairs
from hlo_lower.verify.devices import compile_anywhere

WORD = ("i1", "i32", "f32")
BIT_OPS = {"and", "or", "xor", "not", *("shift_left", "shift_right_logical", "popcnt", "count_leading_zeros")}
BLOCK = 100
"""Programs of one test of the sweep."""

FEW = [
    (("extreme", "sort"), "all"),
    (("matrices", "own_body", "convolution"), "few_types"),
    (("quotient_by_known", "shift", "unary"), "no_loops"),
    (("convert", "convert_to", "clamp"), "no_shifts"),
    (("dynamic_slice", "gather", "windows"), "few_types"),
]
"""Ops, and a target, of what every run of the tests tries."""


@pytest.mark.parametrize(("names", "target"), FEW, ids=str)
def test_programs_of_few_ops_give_the_bits_of_native_xla(names, target):
    """Sorts, folds of two results, products, quotients, shifts, conversions and moves by indices of 64 bits."""
    assert not differing(program(3, names, steps=4), no_64_bits(target))[0]


@pytest.mark.sweep
@pytest.mark.parametrize("block", range(20))
def test_programs_of_every_op_give_the_bits_of_native_xla(block):
    """Two thousand programs; where the target has bit operations on predicates alone only these may be left."""
    for seed in range(block * BLOCK, (block + 1) * BLOCK):
        target = list(WITHOUT)[seed % 9 % 5]
        differs, left = differing(program(seed), no_64_bits(target), (2 * seed, 2 * seed + 1))
        assert not differs, (seed, target)
        if target in ("all", "no_loops"):
            assert left == set(), (seed, target)
