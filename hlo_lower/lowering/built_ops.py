"""The ops that rules build, as their golden modules show them: generated, for the table of rules.

tests/rewrite/test_golden_kinds.py compares it with what is built, and prints what belongs here. Another module may get
others: what a rule built is looked at each time.
"""

import re
from collections.abc import Mapping

_TABLE = """\
bits_to_sums: add compare constant maximum select shift_right_logical subtract xor
atan2_to_polynomial: abs add compare constant divide maximum minimum multiply negate or select subtract
barrier_to_operands:
batch_groups_to_feature_groups: convolution reshape transpose
batch_norm_grad_to_reduce: add broadcast_in_dim constant divide multiply reduce rsqrt subtract
batch_norm_inference_to_elementwise: add broadcast_in_dim constant multiply rsqrt subtract
batch_norm_training_to_reduce: add broadcast_in_dim constant divide multiply reduce rsqrt subtract
branches_to_selects: compare constant select
branches_to_taken:
broadcast_to_steps: broadcast_in_dim reshape
case_to_pairs: and broadcast_in_dim case compare convert
cbrt_to_power: abs compare constant divide negate power select subtract
chlo_to_stablehlo: multiply
cholesky_to_columns: add broadcast_in_dim compare constant divide dynamic_slice iota multiply reshape select sqrt
    subtract while
clamp_to_minimum: broadcast_in_dim maximum minimum
compare_reduce: and broadcast_in_dim compare constant dynamic_slice iota multiply pad reduce reshape select while
complex_to_parts: builtin.unrealized_conversion_cast add concatenate multiply reshape slice subtract
composite_to_call: func.call
composite_to_softmax: add broadcast_in_dim constant divide exponential maximum reduce subtract
constant_gather: broadcast_in_dim constant gather reshape select
constant_slices: constant dynamic_update_slice reshape reverse slice
constant_to_row: constant reshape
count_leading_zeros_to_sums: add and constant not or shift_right_logical subtract
custom_call_to_chlo: chlo.square
custom_call_to_stablehlo: multiply
deprecated_to_present: dot_general
dilated_kernel_to_batches: constant convolution pad reshape slice transpose
dilated_operand_to_spread: broadcast_in_dim concatenate constant convolution reshape slice
dot_to_batches: dot_general reshape transpose
dot_to_ordered_dot: dot_general transpose
dot_to_zeros: broadcast_in_dim constant
dynamic_gather_to_gather: constant gather maximum minimum
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
elementwise_to_row: negate reshape
feature_groups_to_convolutions: concatenate convolution slice
fft_to_dot_general: complex constant dot_general
float_to_f32: add convert
expm1_to_exponential: abs add compare constant exponential multiply select subtract
float_sign_to_select: compare constant select
gather_to_clamped_gather: constant gather maximum minimum
gather_to_compare_sum: add bitcast_convert broadcast_in_dim compare constant iota maximum minimum reduce reshape
    select
gather_to_dynamic_slices: concatenate constant dynamic_slice maximum minimum reshape slice
gather_to_nothing: broadcast_in_dim constant
gather_to_ordered_gather: gather reshape transpose
gather_to_while: add broadcast_in_dim compare constant dynamic_slice dynamic_update_slice maximum minimum reshape
    while
guarded_dynamic_update_slice: clamp compare constant dynamic_slice dynamic_update_slice reshape select
guarded_short_set: broadcast_in_dim compare iota reshape select
guarded_updated_slice: clamp compare constant dynamic_slice dynamic_update_slice reshape select
integer_to_wider: add and constant convert subtract xor
if_to_case: case convert
infinite_to_bits: bitcast_convert broadcast_in_dim constant
integer_dot_to_products: add broadcast_in_dim multiply reshape slice
is_finite_to_subtract: compare constant subtract
last_writer: add and broadcast_in_dim compare constant dynamic_slice gather iota maximum multiply pad reduce reshape
    select while
log1p_to_log: abs add compare constant divide log multiply select
logistic_to_exponential: add constant divide exponential negate
lu_to_columns: abs add broadcast_in_dim compare constant divide dynamic_slice iota maximum minimum multiply reduce
    reshape select subtract while
map_to_elementwise: broadcast_in_dim
mask: and broadcast_in_dim compare constant iota or reduce reshape select slice
note_to_operand:
odd_function_to_magnitude: abs compare negate select sine
one_hot_dot: and broadcast_in_dim compare concatenate constant convert dot_general iota is_finite or reduce reshape
    select slice
only_writer: and broadcast_in_dim compare constant gather iota maximum reduce reshape select
op_to_three_dims: reshape slice
operand:
pad_to_concatenate: broadcast_in_dim concatenate reshape slice
permuted: broadcast_in_dim compare constant gather iota reshape sort
popcnt_to_sums: add and constant shift_right_logical subtract
power_to_magnitude: abs add and compare constant divide floor multiply negate not or power select subtract
qr_to_reflections: abs add broadcast_in_dim compare constant divide dynamic_slice iota maximum multiply negate or
    reduce reshape select sqrt subtract while
random_bits_to_rounds: add broadcast_in_dim compare concatenate constant convert iota or reshape select shift_left
    shift_right_logical slice xor
reduce_precision_to_bits: add and bitcast_convert compare constant or select shift_right_logical
reduce_to_float_halves: concatenate reshape slice
reduce_to_halves: concatenate reshape slice
reduce_to_reduce_and_start: broadcast_in_dim constant reduce
reduce_to_rows: reduce reshape transpose
reduce_to_slices: reshape slice
reduce_window_to_doublings: broadcast_in_dim pad slice
reduce_window_to_float_doublings: broadcast_in_dim pad slice
reduce_window_to_slices: broadcast_in_dim slice
reflections_to_q: add broadcast_in_dim compare constant dynamic_slice iota multiply reduce reshape select subtract
    while
remainder_to_divide: compare constant divide multiply select subtract
remainder_to_subtractions: abs add and compare constant divide multiply negate select subtract
reverse_to_gather: constant gather
reverse_to_reverses: reverse
reverse_to_slices: concatenate slice
reversed_kernel_to_reverse: convolution reverse
round_afz_to_floor: abs add compare constant floor negate select subtract
round_even_to_floor: abs add compare constant floor multiply negate select subtract
rounds: and broadcast_in_dim compare constant gather iota maximum minimum or pad reduce reshape select slice sort
    subtract while
safe_scatter: add and broadcast_in_dim compare constant dynamic_slice dynamic_update_slice iota maximum multiply pad
    reduce reshape scatter select slice transpose
safe_scatter_of_run: and broadcast_in_dim compare constant dynamic_slice dynamic_update_slice iota maximum reduce
    reshape scatter select
select_and_scatter_to_slices: broadcast_in_dim constant pad select slice
select_per_batch: broadcast_in_dim compare iota reshape select slice
set_dimension_size_to_operand:
shift_left_to_multiply: compare constant multiply select
shift_right_logical_to_divide: compare constant divide select
shift_right_to_divide: and compare constant divide select subtract
shifted_dynamic_update_slice: add and broadcast_in_dim clamp compare constant dynamic_slice dynamic_update_slice iota
    pad reshape select slice subtract
shifted_rows: add and broadcast_in_dim clamp compare constant dynamic_slice dynamic_update_slice iota pad reshape
    select slice subtract
shifted_updated_rows: and broadcast_in_dim clamp compare constant dynamic_slice dynamic_update_slice iota pad reshape
    select slice subtract
shifted_updated_slice: and broadcast_in_dim clamp compare constant dynamic_slice dynamic_update_slice iota pad reshape
    select slice subtract
short_set: broadcast_in_dim compare iota reshape select
sort_to_looped_network: add and bitcast_convert broadcast_in_dim compare concatenate constant dynamic_slice gather
    iota or reshape select slice while xor
sort_to_looped_rounds: add and bitcast_convert broadcast_in_dim compare constant dynamic_update_slice gather iota
    maximum minimum reduce reshape select while xor
sort_to_network: and bitcast_convert compare concatenate constant gather iota or reshape select slice xor
sort_to_operands:
sort_to_ranks: add and bitcast_convert broadcast_in_dim compare constant convert gather iota or reduce reshape select
    xor
sort_to_rounds: and bitcast_convert broadcast_in_dim compare concatenate constant gather iota maximum minimum reduce
    reshape select xor
sign_to_select: compare constant select
signed_shift_right_logical_to_divide: add and compare constant divide select subtract
sorted_last_writer: add and broadcast_in_dim compare constant gather iota maximum minimum or reshape select sort
sorted_only_writer: and broadcast_in_dim compare constant gather iota maximum minimum or reshape select sort
sorted_segments: and broadcast_in_dim compare constant gather iota minimum or pad reshape select slice sort
strided_insert_slice: composite reshape
strided_select: broadcast_in_dim constant pad reshape select
tan_to_sine: cosine divide sine
total_order_to_bits: bitcast_convert compare constant select xor
transpose_to_moves: reshape transpose
triangular_solve_to_rows: add broadcast_in_dim compare constant divide dynamic_slice iota multiply reshape select
    subtract transpose while
unrolled: clamp compare constant dynamic_slice dynamic_update_slice reshape select slice
unsigned_to_signed: bitcast_convert constant minimum xor
updated_slice: constant dynamic_slice dynamic_update_slice reshape
updates:
while: clamp compare constant dynamic_slice dynamic_update_slice reshape select while
wide_shift_right_logical_to_halves: add bitcast_convert compare concatenate constant divide reshape select slice
wide_shift_right_to_halves: add bitcast_convert compare concatenate constant divide multiply reshape select slice
wide_signed_shift_right_logical_to_halves: add bitcast_convert compare concatenate constant divide reshape select
    slice
wide_to_halves: bitcast_convert xor
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
