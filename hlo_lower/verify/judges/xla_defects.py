"""What XLA's CPU compiler dies of, computes wrongly, or leaves out (jaxlib 0.10.2).

Nothing of it can be caught or seen in a result, so it is read off a module before that is compiled; what is left out is
written so that it is not.
"""

from collections.abc import Hashable, Iterable
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hlo_lower.base.element_types import element_type, element_type_of
from hlo_lower.ir import mlir
from hlo_lower.ops import names
from hlo_lower.ops.spec import CONTROL, RESHAPING, WITH_BODY, Role, identity_of, ops_with
from hlo_lower.verify.align.appended_ops import OpsBeside
from hlo_lower.verify.read.meanings import DIVISIONS, Array, find_constant, maker_and_operands
from hlo_lower.verify.read.program import (
    Program,
    ValueId,
    callee_of,
    inlined_operations,
    ops_within,
    position_of,
    scatters_of,
    terminator,
)

# --- what XLA dies of ---
#
# Where XLA's CPU compiler ends the process (`Check failed`, SIGABRT) instead of refusing a module (jaxlib 0.10.2).
#
# It does so on control flow within the computation that an op applies to elements: a while loop, a case of three
# branches and more, and what it expands into loops or calls (a scatter of several updates, a select_and_scatter, a
# Cholesky decomposition, a triangular solve, an FFT, a product of matrices). It takes `if` there, a case of two
# branches, sorts and reductions. It also dies of a function without a body, of a call back into Python, an address in
# the process that traced the module, and of a known integer divided by a known zero (SIGFPE), also where its simplifier
# is who knows them (`y - y`): outside of regions a divisor stands behind a barrier. What is fed from or to a host it
# waits for without end. Nothing can be caught, so this is read off the module before anything is compiled; it
# says so of a few that XLA's simplifier would have saved, too (a loop of one iteration, a result that is not used).

_APPLIES = WITH_BODY - ops_with(role=Role.DEVICES)
"""Ops that apply their regions to elements."""

_ABORTS = ops_with(role=Role.MATRIX) | {names.WHILE, names.SELECT_AND_SCATTER, names.FFT}
_PRODUCTS = frozenset({names.DOT, names.DOT_GENERAL, names.EINSUM})
_TAKEN_BRANCHES = 2

_WAITS = frozenset({names.INFEED, names.OUTFEED, names.SEND, names.RECV})

MAX_INLINED = 2e5
"""Operations, calls inlined, up to which a module is compiled: XLA takes hours for more, and all memory for many."""


def why_xla_aborts(module: mlir.RawModule) -> str:
    """Why XLA must not compile a module, "" if nothing is known that it dies of."""
    ops, _ = mlir.find_named(module.operation, {"func.func", names.CUSTOM_CALL, *_APPLIES, *_WAITS, *DIVISIONS})
    functions = {mlir.symbol_name(op.attributes["sym_name"]): op for op in ops if op.name == "func.func"}
    if any(map(mlir.calls_python, ops)):
        return "the module calls back into the Python process that traced it (pure_callback, debug.print)"
    if waiting := [op for op in ops if op.name in _WAITS]:
        return f"{waiting[0].name} waits for a host that is not there"
    known: dict[mlir.RawValue, Array | None] = {}
    divisions = [op for op in ops if op.name in DIVISIONS and not _is_straight(op)]  # others are hidden
    if any(_may_divide_by_zero(op, known) and _constant(op.operands[0], known) is not None for op in divisions):
        return "it ends the process where a region divides a constant by a constant 0"
    without = [name for name, function in functions.items() if not len(function.regions[0].blocks)]
    if without:
        return f"@{without[0]} has no body"
    inlined = inlined_operations(module)
    if inlined > MAX_INLINED:
        return f"it inlines the module's calls, which are {inlined:.2g} operations"
    entered: set[str] = set()
    for op in (op for op in ops if op.name in _APPLIES):
        found = _found_within(op, functions, entered)
        if found:
            return f"its CPU compiler aborts on control flow in a region ({found} in {op.name})"
    return ""


def dies_of_fusion(module: mlir.RawModule) -> bool:
    """Whether XLA's newer emitter may die (SIGSEGV) of a module: it fuses `and` and `or` of signed integers with what
    narrows them (`or(convert a, convert b)`, jaxlib 0.10.2); its older one takes the same module.

    Calls are inlined and barriers removed before, so that the two need not stand beside each other.
    """
    found, _ = mlir.find_named(module.operation, (names.AND, names.OR, names.CONVERT))
    bits = [(op.name, _signed_bits(op.results[0]), _signed_bits(op.operands[0])) for op in found]
    narrows = any(name == names.CONVERT and 1 < made < given for name, made, given in bits)
    return narrows and any(name != names.CONVERT and made > 1 for name, made, _ in bits)


def _signed_bits(value: mlir.RawValue) -> int:
    """Bits of a signed integer; 0 of any other element."""
    declared = element_type(mlir.tensor_element_name(value.type))
    return 0 if declared.is_unsigned else declared.integer_bits


def _found_within(op: mlir.RawOperation, functions: dict[str, mlir.RawOperation], entered: set[str]) -> str:
    """The op in an op's regions, or in a function that they call, that XLA dies of, or ""."""
    pending = [op]
    while pending:
        for inner in mlir.operations_within(pending.pop())[1:]:
            if _is_control_flow(inner):
                return inner.name
            name = callee_of(inner)
            if name in functions and name not in entered:
                entered.add(name)
                pending.append(functions[name])
    return ""


def _may_divide_by_zero(op: mlir.RawOperation, known: dict[mlir.RawValue, Array | None]) -> bool:
    """Whether an op divides integers by what is not known to be other than 0."""
    if not element_type(mlir.tensor_element_name(op.results[0].type)).is_integer:
        return False
    divisor = _constant(op.operands[1], known)
    return divisor is None or not divisor.all()


def _constant(value: mlir.RawValue, known: dict[mlir.RawValue, Array | None]) -> Array | None:
    return find_constant(value, known, maker_and_operands)


def _is_control_flow(op: mlir.RawOperation) -> bool:
    if op.name == names.CASE:
        return len(op.regions) > _TAKEN_BRANCHES
    if op.name in _PRODUCTS:
        return bool(mlir.tensor_shape(op.results[0].type))
    return op.name in _ABORTS or op.name == names.SCATTER


# --- scatters that XLA computes wrongly ---
#
# Known errors of XLA's CPU scatter (trap 46): where it is not a judge, and where it must not even be run.
#
# jaxlib 0.10.2. Some are worse than a wrong result. A scatter by indices of a type that is too narrow for its dim may
# corrupt the heap of the process that runs it, and so does a variadic one with the same value as two operands (`free():
# invalid next size`), whether the two are one SSA value, equal constants or equal broadcasts, an `optimization_barrier`
# in between or not. Level one passes each operand as its own argument and is safe; a whole module that may hold such a
# scatter is not run.


_SAME_ELEMENTS = frozenset({names.BROADCAST_IN_DIM, names.RESHAPE, names.OPTIMIZATION_BARRIER})
"""Ops that are seen through: of two equal values they make two equal values."""

_MAX_DEPTH = 12


def why_xla_errs(module: mlir.RawModule) -> list[str]:
    """For each scatter of a module why XLA is not a judge of it, "" if no error of it is known."""
    scatters = scatters_of(module)
    shared = (
        _with_shared_operands(module)
        if any(len(scatter.results) > 1 for scatter in scatters)
        else set[mlir.RawOperation]()
    )
    several = "corrupts memory where two operands are the same value (openxla/xla#29362)"
    return [_why_it_errs(scatter) or (several if scatter in shared else "") for scatter in scatters]


def why_xla_errs_in(module: mlir.RawModule) -> str:
    """The first of these reasons, or one of the module's comparisons."""
    compared = (op.operands[0].type for op in mlir.find_named(module.operation, (names.COMPARE,))[0])
    if any(mlir.tensor_element_name(kind) == "i2" for kind in compared):
        return "finds no negative i2 equal to a constant"
    return next(filter(None, why_xla_errs(module)), "")


def why_no_judge(module: mlir.RawModule) -> str:
    """Why XLA is not a judge of a module, with the scatter, "" where no error is known."""
    known = zip(scatters_of(module), why_xla_errs(module), strict=True)
    told = (
        f"XLA is not a judge of {position_of(op, n)}: it {why}" for n, (op, why) in enumerate(known, start=1) if why
    )
    return next(told, "")


def _why_it_errs(scatter: mlir.RawOperation) -> str:
    """Why XLA is not a judge of a scatter, wherever it stands."""
    numbers = mlir.scatter_dimension_numbers(scatter)
    arity = len(scatter.results)
    values = list(scatter.operands)
    operand, indices, updates = (mlir.read_tensor_type(values[i].type) for i in (0, arity, arity + 1))
    if operand is None or indices is None or updates is None:
        return "its types are not tensors"
    window = set(numbers.update_window_dims)
    positions = prod(size or 0 for d, size in enumerate(updates.shape) if d not in window)
    if not len(numbers.scattered_dims_to_operand_dims) and positions > 1:
        return "applies several updates at an empty index vector once or not at all (openxla/xla#48716)"
    index = element_type(indices.element_name)
    if 2 <= index.integer_bits <= 16 and any((size or 0) > index.most for size in operand.shape):
        return "builds its bounds in a narrow index type (openxla/xla#48718)"
    region = scatter.regions[0].blocks[0].arguments
    if any(mlir.tensor_element_name(region[i].type) != mlir.tensor_element_name(values[i].type) for i in range(arity)):
        return "returns the narrow type of a promoting region"
    for value in terminator(scatter.regions[0].blocks[0]).operands:
        is_constant = not mlir.is_block_argument(value) and value.owner.name == names.CONSTANT
        if is_constant and mlir.tensor_element_name(value.type) == "i2":
            return "writes a negative i2 constant over its neighbours in the byte"
    return ""


def _with_shared_operands(module: mlir.RawModule) -> set[mlir.RawOperation]:
    """The scatters two operands of which are, or may become by inlining and merging of equal ops, the same value."""
    program, found = Program(module), set[mlir.RawOperation]()
    for op in ops_within([op for body in program.entries.values() for op in body.ops]):
        if op.name == names.SCATTER:
            keys = [(program.types[v], _key(program, v, 0)) for v in op.inputs[: len(op.results)]]
            if len(set(keys)) < len(keys):
                found.add(op.raw)
    return found


def _key(program: Program, value: ValueId, depth: int) -> Hashable:
    """The same for two values that are computed alike from the same values."""
    op = program.makers[value]
    if op is None:
        return value
    place = op.results.index(value)
    if op.name == names.CONSTANT:
        return ("constant", _content(op.raw))
    if op.name in _SAME_ELEMENTS:
        return _key(program, op.inputs[place if len(op.results) > 1 else 0], depth)
    if depth > _MAX_DEPTH or op.bodies:
        return value
    return (op.name, place, op.attributes, *(_key(program, v, depth + 1) for v in op.inputs))


def _content(constant: mlir.RawOperation) -> bytes:
    """The elements of a constant, one if they are all the same; nothing where they cannot be read."""
    value = mlir.constant_value(constant)
    if value is None or not value.size:
        return b""
    first = value.reshape(-1)[:1]
    return first.tobytes() if not any(value.strides) else value.tobytes()


# --- what XLA leaves out ---
#
# What XLA's CPU compiler leaves out of an op, written so that it does not.
#
# jaxlib 0.10.2. Its simplifier takes a reduction over dims of one element for a reshape, whatever it starts from; so it
# does with each piece of a concatenation of such pieces, which stands behind a barrier where the start counts. A
# convolution of floats in groups of features, by a kernel as large as what it lies on, is computed as if the window was
# not reversed. Where 0.0 is added it gives the other operand, at each level of optimization, and so keeps a sign that
# -0.0 + 0.0 loses; not where the 0.0 stands behind a barrier. The same of x - -0.0. A version without the start, the
# reversal or the sum would be equal to what is run of the one that has it.
#
# A convolution in groups of its batch is computed of all groups, those of others times 0: NaN of infinite kernels.
# In groups of features it is right. A convolution of f32 or f16 of two dims, whose operand is cut off in front of a dim
# and padded behind it, reads beyond the end of that operand, other numbers in each run; a slice cuts it off.
#
# A sum that reduces one element from 0.0 becomes a reshape: how often the start comes in is the implementation's
# (StableHLO, `reduce`), so the sign of a zero is not said. Reductions that promote their elements XLA does not compile.
# Without its simplifier the compiler dies on a scatter into a scalar, which is one into an array of one element, and
# rejects a pad by less than nothing.
#
# Of constants below 0 it counts the leading zeros of more bits, and less than 0 of them; a constant start that is
# unsigned and large it takes for one below 0. Both stand behind a barrier.
#
# Numbers that XLA converts by way of a type in between it rounds twice: an f64 to bf16 and f16 through f32, integers to
# bf16 through f32, to f8E5M2 through f16. What is cut off is gathered in one bit before (rounded to odd), so that they
# are rounded once.


TWICE = {
    "f64": ("f16", "bf16", "f4E2M1FN"),
    "f32": ("f4E2M1FN", "f8E5M2", "f8E5M2FNUZ"),
    **{f"{sign}{bits}": ("bf16", "f8E5M2", "f8E5M2FNUZ") for sign in ("i", "ui") for bits in (16, 32, 64)},
}
"""Types that XLA converts to others by way of a third one that is no exact one."""

GUARDS = 3
"""Bits behind a type's own that tell on which side of a tie a number lies; the last of them is set if others were."""

INTEGER_GUARDS = 12
"""Bits of a large integer that an f64 may not hold."""

ADDING = (names.ADD, names.SUBTRACT)

STARTS = {names.DYNAMIC_SLICE: 1, names.DYNAMIC_UPDATE_SLICE: 2}
"""Ops that read or write at a start, and the first operand that says where."""

SPREADING = RESHAPING | {names.CONVERT}

STRAIGHT = CONTROL | {"func.func"}
"""What holds ops that are run once each; regions of others are for each element, and take no barrier."""


def _is_straight(op: mlir.RawOperation) -> bool:
    return op.parent is not None and op.parent.name in STRAIGHT


def write_out_omitted(module: mlir.RawModule) -> None:
    """Write out, in place, what XLA would leave out of an op.

    Dims of one element are reduced by a map of the region or a reshape. Behind a barrier stand what else is reduced
    from a start that counts, zeros that are added, integers that may be 0 and divide others, unsigned starts of slices,
    and what leading zeros are counted of. Kernels are reversed
    in front of convolutions, which take groups of features for those of the batch; scatters go into arrays instead of
    scalars, a slice cuts edges off, also of what a convolution pads behind them, and numbers are rounded once.
    """
    known: dict[mlir.RawValue, Array | None] = {}
    for op in mlir.find_named(module.operation, DIVISIONS)[0]:
        if _may_divide_by_zero(op, known):
            _hide(op, [1])
    for op in mlir.find_named(module.operation, (names.COUNT_LEADING_ZEROS, *STARTS))[0]:
        _hide(op, range(len(op.operands)) if op.name not in STARTS else _unsigned_starts(op))
    wanted = (names.REDUCE, names.CONVOLUTION, names.SCATTER, names.CONVERT, names.PAD, *ADDING)
    ops = mlir.find_named(module.operation, wanted)[0]
    for op in reversed(ops):  # what stands in a region before what holds it, which may go
        if op.name == names.CONVOLUTION:
            _reverse_kernel(op)
            _cut_operand(op)
            _group_features(op)
        elif op.name == names.CONVERT:
            _round_once(op)
        elif op.name == names.SCATTER:
            _spread(op)
        elif op.name == names.PAD:
            _cut_edges(op)
        elif op.name in ADDING:
            _hide(op, [place for place, value in enumerate(op.operands) if _is_float_zero(value)])
        elif _is_of_one(op):
            if len(op.results) > 1 or not _changes_nothing(op.operands[1], op.regions[0].blocks[0]):
                _map(op)
            else:
                op.results[0].replace_all_uses_with(OpsBeside(op).op("reshape", [op.operands[0]], op.results[0].type))
                op.erase()
        elif len(op.results) == 1 and not _changes_nothing(op.operands[1], op.regions[0].blocks[0]):
            _hide(op, [0])


TREE = "tree_reduction_rewriter"
"""XLA's pass that reduces long dims piece by piece, each from the start: it takes 5 in 3 times in a sum of 60 integers,
where the interpreter takes it in once (StableHLO leaves open how often)."""

IDEMPOTENT = {names.MAXIMUM, names.MINIMUM, names.AND, names.OR}
"""What gives the same however often a start is taken in."""


def takes_starts_again(module: mlir.RawModule) -> bool:
    """Whether XLA may take the start of a reduction in more often than once, so that it shows."""
    reductions = mlir.find_named(module.operation, (names.REDUCE,))[0]
    single = ((op.operands[1], op.regions[0].blocks[0]) for op in reductions if len(op.results) == 1)
    return any(not (_is_idempotent(block) or _changes_nothing(start, block)) for start, block in single)


def _is_idempotent(block: mlir.RawBlock) -> bool:
    """Whether a region is one operation that gives x of x and x, of both of its arguments."""
    first, *others = (operation.operation for operation in block.operations)
    return len(others) == 1 and first.name in IDEMPOTENT and {*first.operands} == {*block.arguments}


def _reverse_kernel(convolution: mlir.RawOperation) -> None:
    """Equal: that is what a reversed window means."""
    given = convolution.attributes
    turned = list(given["window_reversal"]) if "window_reversal" in given else []
    dims = [dims[1] for dims, is_turned in zip(mlir.convolution_spatial_dimensions(convolution), turned, strict=False)
            if is_turned]  # fmt: skip
    if dims:
        kernel = convolution.operands[1]
        convolution.operands[1] = OpsBeside(convolution).op(
            "reverse", [kernel], kernel.type, dimensions=mlir.dense_i64(dims)
        )
        del given["window_reversal"]


def _cut_operand(convolution: mlir.RawOperation) -> None:
    """Equal: a negative edge takes elements away. Of a dilated operand XLA reads the right ones."""
    given, value = convolution.attributes, convolution.operands[0]
    edges = mlir.dense_integers(given["padding"]) if "padding" in given else ()
    steps = mlir.integers_of(given["lhs_dilation"]) if "lhs_dilation" in given else (1,) * (len(edges) // 2)
    ends = list(zip(edges[::2], edges[1::2], strict=True))
    cut = [k for k, (low, high) in enumerate(ends) if low < 0 < high and steps[k] == 1]
    if not cut or not mlir.is_static(value.type):
        return
    dims, limit = mlir.convolution_spatial_dimensions(convolution), list(mlir.static_shape(value.type))
    start = [0] * len(limit)
    for k in cut:
        start[dims[k][0]] = -ends[k][0]
        ends[k] = (0, ends[k][1])
    convolution.operands[0] = OpsBeside(convolution).slice(value, start, limit)
    given["padding"] = mlir.dense_attribute(np.array(ends, np.int64), mlir.tensor_type([len(ends), 2], "i64"))


def _group_features(convolution: mlir.RawOperation) -> None:
    """Equal: a group of the output's features is made of one part of the batch, as of all features of that part."""
    groups, value = mlir.integer_of(convolution.attributes["batch_group_count"]), convolution.operands[0]
    if groups == 1 or not mlir.is_static(value.type):
        return
    numbers, beside = mlir.convolution_dimension_numbers(convolution), OpsBeside(convolution)
    batch, feature, shape = numbers.input_batch, numbers.input_feature, mlir.static_shape(value.type)
    split = beside.reshape(value, [*shape[:batch], groups, shape[batch] // groups, *shape[batch + 1 :]])
    rest = [dim for dim in range(len(shape) + 1) if dim != batch]
    rest.insert(rest.index(feature + (feature > batch)), batch)  # the group in front of the features
    merged = {batch: shape[batch] // groups, feature: shape[feature] * groups}
    together = [merged.get(dim, size) for dim, size in enumerate(shape)]
    convolution.operands[0] = beside.reshape(beside.transpose(split, rest), together)
    convolution.attributes["batch_group_count"] = mlir.i64_attribute(1)
    convolution.attributes["feature_group_count"] = mlir.i64_attribute(groups)


def _hide(op: mlir.RawOperation, places: Iterable[int]) -> None:
    """Equal: a barrier gives what it takes."""
    for place in places if _is_straight(op) else ():
        value = op.operands[place]
        op.operands[place] = OpsBeside(op).op("optimization_barrier", [value], value.type)


def _unsigned_starts(op: mlir.RawOperation) -> list[int]:
    starts = range(STARTS[op.name], len(op.operands))
    return [place for place in starts if element_type(mlir.tensor_element_name(op.operands[place].type)).is_unsigned]


def _round_once(convert: mlir.RawOperation) -> None:
    """Equal: with its guards a number lies on the same side of the middle of the same two narrow ones."""
    value = convert.operands[0]
    source, made = (mlir.tensor_element_name(v.type) for v in (value, convert.results[0]))
    if made not in TWICE.get(source, ()) or not _is_straight(convert):
        return
    if not mlir.is_static(value.type) or 0 in mlir.static_shape(value.type):
        return
    beside = OpsBeside(convert)
    if element_type(source).is_integer:
        wide = mlir.tensor_type(mlir.tensor_shape(value.type), "f64")
        value, source = beside.op("convert", [_with_guard(beside, value, source)], wide), "f64"
    bits = mlir.tensor_type(mlir.tensor_shape(value.type), element_type(source).unsigned_type)
    cut = element_type(source).mantissa - element_type(made).mantissa - GUARDS
    guarded = _with_sticky_bit(beside, beside.op("bitcast_convert", [value], bits), cut)
    convert.operands[0] = beside.op("bitcast_convert", [guarded], value.type)


def _with_guard(beside: OpsBeside, value: mlir.RawValue, element: str) -> mlir.RawValue:
    """An integer that an f64 holds and that becomes the same narrow float: a large one without its last bits."""
    if not element.endswith("64"):
        return value
    scalar, dtype = mlir.tensor_type([], element), mlir.dtype_of(element)
    low, high = (
        beside.constant(np.asarray(v).astype(dtype), scalar) for v in (-(1 << 52) * (element == "i64"), 1 << 52)
    )
    clamped = beside.op("clamp", [low, value, high], value.type)
    is_small = beside.compare("EQ", [value, clamped])
    return beside.op("select", [is_small, value, _with_sticky_bit(beside, value, INTEGER_GUARDS)], value.type)


def _with_sticky_bit(beside: OpsBeside, value: mlir.RawValue, count: int) -> mlir.RawValue:
    """An integer with its last bits cleared; the first of these is set if any of them was."""
    dtype = mlir.dtype_of(mlir.tensor_element_name(value.type))
    mask = (1 << count) - 1

    def everywhere(number: int) -> mlir.RawValue:
        return beside.constant(np.asarray(number).astype(dtype), value.type)

    rest = beside.op("and", [value, everywhere(mask)], value.type)
    is_some = beside.compare("NE", [rest, everywhere(0)])
    bit = beside.op("select", [is_some, everywhere(1 << (count - 1)), everywhere(0)], value.type)
    whole = beside.op("and", [value, everywhere(~mask)], value.type)
    return beside.op("or", [whole, bit], value.type)


def _spread(scatter: mlir.RawOperation) -> None:
    """Equal: the one element of an array takes what the scalar takes."""
    if any(mlir.tensor_shape(result.type) for result in scatter.results):
        return
    before, behind = OpsBeside(scatter), OpsBeside(scatter, is_behind=True)
    *_, updates = scatter.operands
    for place, value in enumerate(list(scatter.operands)):
        if place != len(scatter.results):
            scatter.operands[place] = before.reshape(value, [*mlir.static_shape(value.type), 1])
    window = len(mlir.tensor_shape(updates.type))
    vector = mlir.ScatterNumbers.of(scatter).index_vector_dim
    numbers = f"#stablehlo.scatter<update_window_dims = [{window}], index_vector_dim = {vector}>"
    scatter.attributes["scatter_dimension_numbers"] = mlir.parse_attribute(numbers)
    for result in scatter.results:
        mlir.set_type(result, mlir.tensor_type([1], mlir.tensor_element(result.type)))
        scalar = behind.reshape(result, [])
        result.replace_all_uses_with(scalar)
        scalar.owner.operands[0] = result


def _cut_edges(pad: mlir.RawOperation) -> None:
    """Equal: a negative edge takes elements away once those between are there."""
    low, high = (list(mlir.integers_of(pad.attributes[f"edge_padding_{end}"])) for end in ("low", "high"))
    if min((*low, *high), default=0) >= 0 or not mlir.is_static(pad.results[0].type):
        return
    shape = mlir.static_shape(pad.results[0].type)
    start = [max(-a, 0) for a in low]
    limit = [a + size for a, size in zip(start, shape, strict=True)]
    whole = [b + max(-c, 0) for b, c in zip(limit, high, strict=True)]
    beside, element = OpsBeside(pad), mlir.tensor_element(pad.results[0].type)
    edges = {
        f"edge_padding_{end}": mlir.dense_i64([max(n, 0) for n in by]) for end, by in (("low", low), ("high", high))
    }
    told = {**edges, "interior_padding": pad.attributes["interior_padding"]}
    made = beside.op("pad", list(pad.operands), mlir.tensor_type(whole, element), **told)
    pad.results[0].replace_all_uses_with(beside.slice(made, start, limit))
    pad.erase()


def _is_float_zero(value: mlir.RawValue) -> bool:
    """Whether a value is 0.0 everywhere, a constant that may be spread."""
    maker = mlir.producer(value)
    while maker is not None and maker.name in SPREADING:
        maker = mlir.producer(maker.operands[0])
    if maker is None or maker.name != names.CONSTANT:
        return False
    is_complex = element_type(mlir.tensor_element_name(value.type)).is_complex
    number = mlir.constant_value(maker, is_complex=True) if is_complex or mlir.is_splat(maker) else None
    return number is not None and number.dtype.kind in "fcV" and not number.any()


def _is_of_one(reduce: mlir.RawOperation) -> bool:
    """Whether a reduction goes over dims of one element, and does not promote them."""
    count, block = len(reduce.results), reduce.regions[0].blocks[0]
    read = [mlir.read_tensor_type(value.type) for value in (*reduce.operands, *reduce.results)]
    types = [one for one in read if one is not None and one.is_static]
    dims = mlir.integers_of(reduce.attributes["dimensions"])
    if len(types) < 3 * count or not dims or any(types[0].shape[d] != 1 for d in dims):
        return False
    inside = [mlir.tensor_element_name(argument.type) for argument in block.arguments]
    return inside[:count] == inside[count:] and all(t.element_name == inside[k % count] for k, t in enumerate(types))


def _changes_nothing(start: mlir.RawValue, block: mlir.RawBlock) -> bool:
    """Whether a start is a constant that the operation of a region gives the other operand for, zeros of any sign.

    XLA's simplifier takes x + 0.0 for x wherever it stands.
    """
    maker, operations = mlir.producer(start), list(block.operations)
    number: NDArray[Any] | None = None
    if maker is not None and maker.name == names.CONSTANT:
        number = mlir.constant_value(maker, is_complex=True)
    if number is None or len(operations) != 2:
        return False
    wanted = identity_of(operations[0].operation.name, element_type_of(number.dtype))
    if number.dtype.kind == "V":  # a float of ml_dtypes
        number = number.astype(np.float64)
    return wanted is not None and bool((number == wanted).all())


def _map(reduce: mlir.RawOperation) -> None:
    """Equal: of one element the region is run once, on the start and it. A map has one result: each gets one."""
    count, block, where = len(reduce.results), reduce.regions[0].blocks[0], reduce.location
    *inner, last = (operation.operation for operation in block.operations)
    values: list[mlir.RawValue] = []
    for number, value in enumerate(reduce.operands):
        made = reduce.results[number % count].type
        if number < count:
            values.append(OpsBeside(reduce).op("reshape", [value], made))
        else:
            values.append(OpsBeside(reduce).broadcast(value, made))
    values = values[count:] + values[:count]
    for result, returned in zip(reduce.results, last.operands, strict=True):
        dims = {"dimensions": mlir.dense_i64(range(len(mlir.tensor_shape(result.type))))}
        at = mlir.insert_before(reduce)
        new = mlir.create_operation(
            names.MAP, values, [result.type], dims, regions=1, location=where, insertion_point=at
        )
        body = mlir.append_block(new, 0, [argument.type for argument in block.arguments], where)
        known = dict(zip(block.arguments, body.arguments, strict=True))
        for raw in inner:
            known.update(zip(raw.results, mlir.clone_into(raw, body, known).results, strict=True))
        end = mlir.insert_at_end(body)
        mlir.create_operation(names.RETURN, [known.get(returned, returned)], [], location=where, insertion_point=end)
        result.replace_all_uses_with(new.results[0])
    reduce.erase()
