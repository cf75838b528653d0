"""Random programs of 64-bit integers, and targets that compute on none of them."""

import numpy as np
from element_type_programs import same_bits, target_taking
from halves_arithmetic_ops import (
    binary,
    bitcast,
    clamp,
    compare,
    convert,
    convert_to,
    quotient_by_known,
    same,
    select,
    shift,
    unary,
)
from halves_folding_ops import (
    case,
    convolution,
    cumulative,
    extreme,
    matrices,
    own_body,
    own_order,
    reduce,
    sort,
    while_loop,
    windows,
)
from halves_moving_ops import (
    broadcast,
    concatenate,
    dynamic_slice,
    gather,
    iota,
    pad,
    reshape,
    reverse,
    scatter,
    slices,
    transpose,
)
from halves_text import Program, drawn

import hlo_lower as hl
from hlo_lower.ir import mlir
from hlo_lower.ir.view import Node
from hlo_lower.lowering.types.element_type import WITH_BODIES
from hlo_lower.verify.judges.devices import compile_anywhere

OPS = {
    "binary": (binary, 6),
    "same": (same, 1),
    "quotient_by_known": (quotient_by_known, 2),
    "unary": (unary, 3),
    "shift": (shift, 3),
    "compare": (compare, 2),
    "select": (select, 2),
    "clamp": (clamp, 2),
    "convert": (convert, 3),
    "convert_to": (convert_to, 2),
    "bitcast": (bitcast, 2),
    "reshape": (reshape, 1),
    "transpose": (transpose, 1),
    "broadcast": (broadcast, 1),
    "slices": (slices, 1),
    "concatenate": (concatenate, 1),
    "reverse": (reverse, 1),
    "pad": (pad, 1),
    "iota": (iota, 1),
    "dynamic_slice": (dynamic_slice, 2),
    "gather": (gather, 2),
    "scatter": (scatter, 2),
    "reduce": (reduce, 3),
    "windows": (windows, 2),
    "cumulative": (cumulative, 1),
    "extreme": (extreme, 1),
    "own_body": (own_body, 1),
    "sort": (sort, 1),
    "own_order": (own_order, 1),
    "matrices": (matrices, 1),
    "convolution": (convolution, 1),
    "while_loop": (while_loop, 1),
    "case": (case, 1),
}


def program(seed, names=tuple(OPS), steps=8):
    """A random program."""
    rng = np.random.default_rng(seed)
    p = Program(rng, str(rng.choice(["i64", "ui64"])))
    weights = np.array([OPS[name][1] for name in names], float)
    while len(p.names) < steps:
        OPS[str(rng.choice(names, p=weights / weights.sum()))][0](p)
        if p.chance(0.15):
            p.element = p.pick(("i64", "ui64"))
    return p


def in_bodies(graph):
    """The values of the ops in bodies of folds and sorts."""
    nodes = [Node(raw) for raw in mlir.walked(graph.module.operation)]
    within = (inner for n in nodes if n.name in WITH_BODIES for inner in mlir.walked(n.raw) if inner != n.raw)
    return [value for inner in within for value in Node(inner).results]


def differing(p, target, seeds=(0, 1)):
    """The values of a program that the lowered one gives other bits of, and what the target refuses of it still."""
    text = p.text()
    lowered = hl.lower(text, target=target, keep_unsupported=True)
    assert all(value.shape == () for value in in_bodies(lowered.graph)), "a target may take scalars alone in a body"
    native, ours = compile_anywhere([(text, "quick"), (lowered.as_given, "quick")])
    found = set()
    for seed in seeds:
        given = arguments_of(p, seed)
        results = zip(p.pool, native.run(given), ours.run(given), strict=True)
        found |= {v for v, one, other in results if not same_bits(np.asarray(one), np.asarray(other)).all()}
    return found, {one.op for one in lowered.refused}


def arguments_of(p, seed):
    """Numbers for a program."""
    rng = np.random.default_rng((seed, 1))
    return [drawn(rng, v.shape, v.element) for v in p.arguments]


TAKEN = ("i1", "i8", "ui8", "i16", "ui16", "i32", "ui32", "bf16", "f16", "f32", "f64")
WITHOUT = {
    "all": (),
    "no_loops": ("while",),
    "no_shifts": ("shift_left", "shift_right_logical", "shift_right_arithmetic"),
    "few_types": (),
    "no_bits": ("shift_left", "shift_right_logical", "popcnt", "count_leading_zeros"),
}


ON_64_BITS = ("add", "multiply", "compare", "iota", "select", "broadcast_in_dim", "slice", "concatenate", "reduce")
"""Ops that a consumer may take on signed integers of 64 bits, where it knows no others of that width."""


def no_unsigned_64_bits():
    """A target without room for unsigned integers of 64 bits, without shifts, that takes signed ones on a few ops."""
    target = target_taking(*TAKEN, without=WITHOUT["no_shifts"])
    taken = {**target.op_dtypes, "stablehlo.convert": [*TAKEN, "i64"], "stablehlo.bitcast_convert": [*TAKEN, "i64"]}
    taken |= {f"stablehlo.{op}": [*TAKEN, "i64"] for op in ON_64_BITS}
    return hl.Target("npu", refused=target.refused, op_dtypes=taken, refused_dtypes={"ui64": "none"})


def no_64_bits(without="all"):
    """A target that computes on no integers of 64 bits, and has room for them."""
    types = ("i1", "i32", "f32") if without == "few_types" else TAKEN
    target = target_taking(*types, without=WITHOUT[without])
    taken = {**target.op_dtypes, "stablehlo.convert": [*types]}
    taken |= {f"stablehlo.{op}": ["i1"] for op in ("and", "or", "xor", "not") if without == "no_bits"}
    return hl.Target("npu", refused=target.refused, op_dtypes=taken)
