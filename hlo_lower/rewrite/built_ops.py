"""The ops that rules build, as their golden modules show them: generated, for the table of rules.

tests/rewrite/test_golden_kinds.py compares it with what is built, and prints what belongs here. Another module may get
others: what a rule built is looked at each time.
"""

import re
from collections.abc import Mapping

_TABLE = """\
barrier_to_operands:
branches_to_selects: compare constant select
branches_to_taken:
chlo_to_stablehlo: multiply
compare_reduce: and broadcast_in_dim compare constant dynamic_slice iota multiply pad reduce reshape select while
composite_to_call: func.call
composite_to_softmax: add broadcast_in_dim constant divide exponential maximum reduce subtract
constant_gather: broadcast_in_dim constant gather reshape select
constant_slices: constant dynamic_update_slice reshape reverse slice
custom_call_to_chlo: chlo.square
custom_call_to_stablehlo: multiply
dynamic_shape_gather_to_clamped_gather: concatenate constant dynamic_broadcast_in_dim gather get_dimension_size
    maximum minimum reshape subtract
dynamic_shape_operand:
dynamic_shape_runtime_while: broadcast_in_dim clamp compare concatenate constant dynamic_reshape dynamic_update_slice
    get_dimension_size minimum real_dynamic_slice reshape select slice subtract while
dynamic_shape_runtime_window: add clamp compare concatenate constant dynamic_reshape dynamic_slice
    dynamic_update_slice get_dimension_size minimum real_dynamic_slice reshape select subtract
dynamic_shape_while: clamp compare constant dynamic_slice dynamic_update_slice get_dimension_size reshape select
    subtract while
dynamic_shape_window: clamp compare constant dynamic_slice dynamic_update_slice get_dimension_size reshape select
    subtract
dynamic_update_slice: constant dynamic_update_slice reshape
elementwise:
gather_to_clamped_gather: constant gather maximum minimum
gather_to_compare_sum: add bitcast_convert broadcast_in_dim compare constant iota maximum minimum reduce reshape
    select
gather_to_dynamic_slices: concatenate constant dynamic_slice maximum minimum reshape slice
gather_to_nothing: broadcast_in_dim constant
gather_to_while: add broadcast_in_dim compare constant dynamic_slice dynamic_update_slice maximum minimum reshape
    while
guarded_dynamic_update_slice: and compare constant dynamic_slice dynamic_update_slice reshape select
guarded_updated_slice: and compare constant dynamic_slice dynamic_update_slice reshape select
if_to_case: case convert
last_writer: add and broadcast_in_dim compare constant dynamic_slice gather iota maximum multiply pad reduce reshape
    select while
map_to_elementwise: broadcast_in_dim
mask: and broadcast_in_dim compare constant iota or reduce reshape select slice
note_to_operand:
one_hot_dot: and broadcast_in_dim compare concatenate constant convert dot_general iota is_finite or reduce reshape
    select slice
only_writer: and broadcast_in_dim compare constant gather iota maximum reduce reshape select
operand:
permuted: broadcast_in_dim compare constant gather iota reshape sort
reverse_to_gather: constant gather
reverse_to_slices: concatenate slice
rounds: and broadcast_in_dim compare constant gather iota maximum minimum or pad reduce reshape select slice sort
    subtract while
select_per_batch: broadcast_in_dim compare iota reshape select slice
shifted_dynamic_update_slice: add and broadcast_in_dim clamp compare constant dynamic_slice dynamic_update_slice iota
    pad reshape select slice subtract
shifted_rows: add and broadcast_in_dim clamp compare constant dynamic_slice dynamic_update_slice iota pad reshape
    select slice subtract
shifted_updated_rows: and broadcast_in_dim clamp compare constant dynamic_slice dynamic_update_slice iota pad reshape
    select slice subtract
shifted_updated_slice: and broadcast_in_dim clamp compare constant dynamic_slice dynamic_update_slice iota pad reshape
    select slice subtract
sorted_last_writer: add and broadcast_in_dim compare constant gather iota maximum minimum or reshape select sort
sorted_only_writer: and broadcast_in_dim compare constant gather iota maximum minimum or reshape select sort
sorted_segments: and broadcast_in_dim compare constant gather iota minimum or pad reshape select slice sort
strided_insert_slice: composite reshape
strided_select: broadcast_in_dim constant pad reshape select
unrolled: and compare constant dynamic_slice dynamic_update_slice reshape select slice
updated_slice: constant dynamic_slice dynamic_update_slice reshape
updates:
while: and compare constant dynamic_slice dynamic_update_slice reshape select while
while_to_trips: constant
wrapped_rows: add and broadcast_in_dim clamp compare constant dynamic_slice dynamic_update_slice iota pad reshape
    select slice subtract
wrapped_updated_rows: and broadcast_in_dim clamp compare constant dynamic_slice dynamic_update_slice iota pad reshape
    select slice subtract
"""


def _read(table: str) -> Mapping[str, tuple[str, ...]]:
    rows = (row.partition(":") for row in re.sub(r"\n +", " ", table).splitlines())
    return {rule: tuple(op if "." in op else f"stablehlo.{op}" for op in ops.split()) for rule, _, ops in rows}


BUILT_OPS = _read(_TABLE)
"""For each built-in rule, by its short name, the ops that it built in its golden modules."""
