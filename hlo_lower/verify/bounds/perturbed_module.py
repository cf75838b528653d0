"""A module that disturbs itself: each float that it rounds is moved by some units in the last place, by a salt.

What another compiler may do to a float is done to it where it arises: a sum in another order, a product that is
contracted with a sum, another exponential. Run under several salts, the results say how far *each element* moves under
roundings, whatever the constants, masks and cancellations on its way: see `rounding_bounds`.

    %r = stablehlo.multiply %a, %b
 ->
    %m = stablehlo.multiply %a, %b
    %d = call @disturbed_f32_4(%m, %salt, %place, %most)    // m, moved by -most to most units in the last place
    %r = select(m == a or m == b, m, d)                     // what is an operand has not been rounded

Moved are results of ops that round. Not moved is what any compiler gets exactly:

- results of ops that move values, arguments and constants;
- a result that is one of its operands (x * 1, x + 0, a mask of -1e30 that swallows what is added to it);
- zeros, infinities, NaN, and short numbers, whose lower half of the mantissa is empty: 1.0, 0.5, 37.0. Sums of counts
  and comparisons with them stay what they are. (Of other f32 one in 4,096 is short, of bf16 one in 32; what this loses
  of an element's noise in one run it has in another.)
- numbers that may become infinite by it, or lie in the two least steps of the exponent.

The argument of a sine, a cosine or an exponential is moved, too, short or not: consumers reduce it to a few bits less
than XLA does, cos(1000.0) in f32 to within what 1000.0 is rounded by.

The terms of a sum of n (of a reduction, a product of matrices, a scatter that adds) and the sum are moved by sqrt(n)
times as many units: in another order a sum of terms of any sign moves by about that many roundings of its partial sums.
How far a number is moved depends on its bits, its op and the salt alone: what was equal within one op stays equal.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from math import ceil, prod, sqrt

from hlo_lower.base.element_types import WIDE_FLOATS, element_type
from hlo_lower.ir import mlir
from hlo_lower.ops import names
from hlo_lower.ops.spec import CONTROL, MANUAL, NEVER_ROUNDED, PRODUCTS, WITH_BODY, Rounds, ops_with
from hlo_lower.verify.align.appended_ops import OpsBeside
from hlo_lower.verify.bounds.matrices import (
    Movement,
    decided_function,
    is_matrix_op,
    matrix_functions,
    movement_of,
    reflects,
    type_suffix,
    units_of,
    vector_results,
)
from hlo_lower.verify.read.program import CALLS, callee_of, functions_of
from hlo_lower.verify.run import entry_function

UNREACHABLE = MANUAL
"""A region that is written for one device and that no value from outside reaches."""

MOVING_CALLS = ("topk", "top_k", "sharding", "shard", "annotate")
PREFIX = "disturbed_"


class CannotDisturbError(Exception):
    """The salt does not reach all of a module."""


def disturb_module(text: str) -> str | None:
    """The module with the salt as a last argument (a `tensor<ui32>`) and with floats that the salt disturbs.

    None if no op of it rounds.

    Raises:
      CannotDisturbError: part of it is written for one device, or its functions are used in another way than called.
    """
    module = mlir.parse_module(text)
    with mlir.active(module.context):
        if mlir.any_operation(module.operation, lambda op: op.name == UNREACHABLE):
            raise CannotDisturbError(UNREACHABLE)
        if not _Disturbing(module).all():
            return None
        refused = mlir.verify_module(module)
        if refused is not None:
            raise CannotDisturbError(refused)
        return mlir.print_module(module)


class _Disturbing:
    """The rewrite of one module."""

    def __init__(self, module: mlir.RawModule) -> None:
        self._module = module
        self._functions = functions_of(module)
        self._made: set[str] = set()
        self._count = 0

    def all(self) -> int:
        """Rewrite what the entry point reaches; the number of values that are disturbed."""
        entry = entry_function(self._module)
        applied = self._callees_within(
            [op for f in self._functions.values() for op in mlir.operations_within(f) if op.name in WITH_BODY]
        )
        reached = [entry]
        for function in reached:
            for op in executed_ops(function):
                name = callee_of(op)
                callee = self._functions.get(name)
                if callee is not None and name not in applied and callee not in reached:
                    reached.append(callee)
        salted = {mlir.symbol_name(f.attributes["sym_name"]) for f in reached}
        for function in reached:
            self._rewrite(function, salted)
        return self._count

    def _callees_within(self, roots: list[mlir.RawOperation]) -> set[str]:
        """The functions that these ops call, directly or through other functions."""
        found: set[str] = set()
        pending = list(roots)
        while pending:
            for op in mlir.operations_within(pending.pop()):
                name = callee_of(op)
                if name in self._functions and name not in found:
                    found.add(name)
                    pending.append(self._functions[name])
        return found

    def _rewrite(self, function: mlir.RawOperation, salted: set[str]) -> None:
        ops = executed_ops(function)
        block = function.regions[0].blocks[0]
        salt = block.add_argument(mlir.parse_type("tensor<ui32>"), function.location)
        if "arg_attrs" in function.attributes:
            own = [str(a) for a in function.attributes["arg_attrs"]]
            function.attributes["arg_attrs"] = mlir.parse_attribute(f"[{', '.join([*own, '{}'])}]")
        for op in ops:
            if callee_of(op) in salted:
                self._pass_salt(op, salt)
            elif op.name not in EXACT and op.name.split(".")[0] in ("stablehlo", "chlo", "func"):
                self._disturb(op, salt)
            elif op.name == "func.call":  # of a function that is applied to elements elsewhere
                self._disturb_results(op, salt, 1)
        mlir.set_signature(function)

    @staticmethod
    def _pass_salt(call: mlir.RawOperation, salt: mlir.RawValue) -> None:
        """Call the function with the salt, too; a composite becomes the call of its decomposition."""
        made = mlir.create_operation(
            "func.call",
            [*call.operands, salt],
            [r.type for r in call.results],
            {"callee": mlir.parse_attribute(f"@{callee_text(call)}")},
            location=call.location,
            insertion_point=mlir.insert_before(call),
        )
        mlir.replace_results(call, made.results)
        call.erase()

    def _disturb(self, op: mlir.RawOperation, salt: mlir.RawValue) -> None:
        """Move what an op rounds, and the terms of its sums."""
        if op.name in WITH_BODY and not any(is_rounding(inner) for inner in mlir.operations_within(op)[1:]):
            return
        if op.name == names.CONVERT and not narrows(op):
            return
        if op.name == names.CUSTOM_CALL:
            target = mlir.call_target(op).lower()
            if any(name in target for name in MOVING_CALLS):
                return
        if is_matrix_op(op):
            for k in range(len(op.operands)):
                self._disturb_matrix(op, k, salt)
            if reflects(op):
                self._mark_undecided(op)
            for k in vector_results(op):
                self._disturb_vectors(op, k, salt)
        terms = terms_of(op)
        if terms > 1:
            for k in summed_operands(op):
                self._disturb_operand(op, k, salt, terms)
        if any(inner.name in REDUCED for inner in mlir.operations_within(op)):
            for k in range(len(op.operands)):
                self._disturb_operand(op, k, salt, 1)
        self._disturb_results(op, salt, terms)

    def _disturb_operand(self, op: mlir.RawOperation, k: int, salt: mlir.RawValue, terms: int) -> None:
        value = op.operands[k]
        if float_format(value.type):
            most = most_of(op, value.type, terms)
            op.operands[k] = self._move(value, most, salt, OpsBeside(op), short=terms == 1)

    def _disturb_matrix(self, op: mlir.RawOperation, k: int, salt: mlir.RawValue) -> None:
        """Move each element of a factorization's operand, whatever it is: see `matrices`."""
        value = op.operands[k]
        if float_format(value.type) and not element_type(mlir.tensor_element_name(value.type)).is_complex:
            op.operands[k] = self._moved_matrix(op, value, movement_of(op), salt, OpsBeside(op))

    def _disturb_vectors(self, op: mlir.RawOperation, k: int, salt: mlir.RawValue) -> None:
        """Move each element of vectors, relative to the largest one: they are orthogonal within that."""
        value = op.results[k]
        uses = [(use.owner.operation, use.operand_number) for use in value.uses]
        if uses and float_format(value.type) and not element_type(mlir.tensor_element_name(value.type)).is_complex:
            moved = self._moved_matrix(op, value, Movement.MATRIX, salt, OpsBeside(op, is_behind=True))
            for user, number in uses:
                user.operands[number] = moved

    def _moved_matrix(
        self, op: mlir.RawOperation, value: mlir.RawValue, how: Movement, salt: mlir.RawValue, beside: OpsBeside
    ) -> mlir.RawValue:
        def move(matrix: mlir.RawValue) -> mlir.RawValue:
            return self._move(matrix, units_of(op), salt, beside, short=True)

        def call(name: str, *operands: mlir.RawValue) -> mlir.RawValue:
            callee = self._ensure_function(name, lambda: matrix_functions(name, value.type))
            return beside.op("func.call", list(operands), value.type, callee=f"@{callee}")

        suffix = type_suffix(value.type)
        places = call(f"{PREFIX}places_{suffix}")
        moves = [value, move(places), places]
        if how is Movement.FIRST_ALIKE:
            moves.append(move(call(f"{PREFIX}sizes_{suffix}", value)))
        return call(f"{PREFIX}{how.value}_{suffix}", *moves)

    def _mark_undecided(self, op: mlir.RawOperation) -> None:
        """What a QR gives is NaN where rounding decides whether a column is reflected: see `matrices`."""
        matrix, results = op.operands[0], list(op.results)
        if not float_format(matrix.type) or element_type(mlir.tensor_element_name(matrix.type)).is_complex:
            return
        uses = [(use.owner.operation, use.operand_number, k) for k, r in enumerate(results) for use in r.uses]
        name = f"{PREFIX}decided_{type_suffix(matrix.type)}"
        callee = self._ensure_function(name, lambda: decided_function(name, matrix.type, results[1].type, units_of(op)))
        made = mlir.create_operation(
            "func.call",
            [matrix, *results],
            [r.type for r in results],
            {"callee": mlir.parse_attribute(f"@{callee}")},
            location=op.location,
            insertion_point=mlir.insert_after(op),
        )
        for user, number, k in uses:
            user.operands[number] = made.results[k]

    def _disturb_results(self, op: mlir.RawOperation, salt: mlir.RawValue, terms: int) -> None:
        for k, result in enumerate(op.results):
            if not float_format(result.type):
                continue
            uses = [(use.owner.operation, use.operand_number) for use in result.uses]
            if not uses:
                continue
            beside = OpsBeside(op, is_behind=True)
            moved = self._move(result, most_of(op, result.type, terms), salt, beside)
            for operand in _passed_on(op, k):
                if operand.type == result.type:
                    is_operand = beside.compare("EQ", [result, operand])
                    moved = beside.op("select", [is_operand, result, moved], result.type)
            for user, number in uses:
                user.operands[number] = moved

    def _move(
        self, value: mlir.RawValue, most: int, salt: mlir.RawValue, beside: OpsBeside, *, short: bool = False
    ) -> mlir.RawValue:
        """A float or complex value, moved by a few units; `short` also moves numbers of few digits."""
        element = mlir.tensor_element_name(value.type)
        if element_type(element).is_complex:
            half = mlir.tensor_type(mlir.tensor_shape(value.type), element_type(element).part)
            halves = [beside.op(name, [value], half) for name in ("real", "imag")]
            moved = [self._move(one, most, salt, beside, short=short) for one in halves]
            return beside.op("complex", moved, value.type)
        self._count += 1
        scalar = mlir.parse_type("tensor<ui32>")
        tail = (1 << 32) - 1 if short else (1 << SHORT[element]) - 1
        numbers = [beside.splat(n, scalar) for n in (self._count, most, tail)]
        callee = f"@{self._function(value.type)}"
        return beside.op("func.call", [value, salt, *numbers], value.type, callee=callee)

    def _function(self, raw_type: mlir.RawType) -> str:
        """The name of the function that moves the elements of this type, made when first needed."""
        shape = list(mlir.static_shape(raw_type))
        element = mlir.tensor_element_name(raw_type)
        name = PREFIX + type_suffix(raw_type)
        return self._ensure_function(name, lambda: function_text(name, shape, element))

    def _ensure_function(self, name: str, text: Callable[[], str]) -> str:
        """Add a function to the module when it is first needed; return its name."""
        if name not in self._made:
            self._made.add(name)
            made = mlir.parse_module(text(), self._module.context)
            self._module.body.append(made.body.operations[0].operation.clone())
        return name


def _passed_on(op: mlir.RawOperation, k: int) -> list[mlir.RawValue]:
    """The operands that result k of an op may be, element by element, without having been rounded."""
    if op.name == names.SCATTER:  # where nothing is added
        return [op.operands[k]]
    return list(op.operands) if op.name not in WITH_BODY and len(op.results) == 1 else []


# --- moved floats ---
#
# How far a float is moved in the last place, and the function in MLIR that moves it by a hash of its bits.


SHORT = {"f64": 26, "f32": 12, "f16": 7, "bf16": 5}
"""Bits at the end of the mantissa that are 0 in a number that is taken as exact."""


@dataclass(frozen=True)
class Most:
    """Units in the last place that a float type is moved by, at most.

    Attributes:
      plain: of what every compiler rounds correctly. Rounding itself is within half a unit, so that 2 is five times its
        spread; wide types have digits to spare.
      function: of exp, tanh and their kin, which consumers approximate; narrow types are computed wider, and rounded.
      term: of a sum of n terms, times sqrt(n).
      sum: the same at most: more would be the number itself.
    """

    plain: int
    function: int
    term: int
    sum: int


MOST = {"f64": Most(8, 32, 4, 256), "f32": Most(8, 32, 4, 256), "f16": Most(2, 4, 1, 8), "bf16": Most(2, 2, 1, 4)}


def float_format(raw_type: mlir.RawType) -> str:
    """The float type of a tensor's elements or their parts, "" where nothing of it is moved, as of 8 bits and less."""
    tensor = mlir.read_tensor_type(raw_type)
    if tensor is None or not tensor.is_static or not prod(size or 0 for size in tensor.shape):
        return ""
    name = element_type(tensor.element_name).part
    return name if name in WIDE_FLOATS else ""


def function_text(name: str, shape: list[int], element: str) -> str:
    """The function that moves each element by -most to most units in the last place, by a hash of its bits.

    Not moved are numbers that have none of `tail_bits`: those are `SHORT`'s, or all of 32 where short ones are moved.

    Bits of a float, taken as an integer, go up by one from a number to the next one of larger magnitude.
    """
    declared = element_type(element)
    width, mantissa = declared.bits, declared.mantissa
    dims = "".join(f"{size}x" for size in shape)
    floats, bits, bools = f"tensor<{dims}{element}>", f"tensor<{dims}ui{width}>", f"tensor<{dims}i1>"
    scalar = f"tensor<ui{width}>"
    infinite, smallest = ((1 << declared.exponent) - 1) << mantissa, 2 << mantissa
    hashes = {64: (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9), 32: (0x9E3779B1, 0x85EBCA6B), 16: (0x9E3B, 0x85CB)}[width]

    def constant(label: str, value: int) -> str:
        return f"  %{label} = stablehlo.constant dense<{value}> : {bits}"

    def binary(label: str, op: str, a: str, b: str) -> str:
        return f"  %{label} = stablehlo.{op} %{a}, %{b} : {bits}"

    def spread(label: str, value: str) -> list[str]:
        narrow = [f"  %{label}n = stablehlo.convert %{value} : (tensor<ui32>) -> {scalar}"]
        return [*narrow, f"  %{label} = stablehlo.broadcast_in_dim %{label}n, dims = [] : ({scalar}) -> {bits}"]

    lines = [
        f"func.func private @{name}(%v: {floats}, %salt: tensor<ui32>, %place: tensor<ui32>, %most: tensor<ui32>,"
        " %tail_bits: tensor<ui32>)"
        f" -> {floats} {{",
        f"  %bits = stablehlo.bitcast_convert %v : ({floats}) -> {bits}",
        "  %golden = stablehlo.constant dense<2654435769> : tensor<ui32>",
        "  %mixed = stablehlo.multiply %place, %golden : tensor<ui32>",
        "  %sum = stablehlo.add %mixed, %salt : tensor<ui32>",
        *spread("key", "sum"),
        *spread("m", "most"),
        *spread("low", "tail_bits"),
        *(constant(label, value) for label, value in (("c1", hashes[0]), ("c2", hashes[1]), ("half", width // 2))),
        *(constant(label, value) for label, value in (("one", 1), ("none", 0))),
        *(constant(label, value) for label, value in (("unsigned", (1 << (width - 1)) - 1), ("inf", infinite))),
        constant("bottom", smallest),
        binary("h0", "xor", "bits", "key"),
        binary("h1", "multiply", "h0", "c1"),
        binary("h2", "shift_right_logical", "h1", "half"),
        binary("h3", "xor", "h1", "h2"),
        binary("h4", "add", "h3", "key"),
        binary("h5", "multiply", "h4", "c2"),
        binary("h6", "shift_right_logical", "h5", "half"),
        binary("h7", "xor", "h5", "h6"),
        binary("twice", "add", "m", "m"),
        binary("span", "add", "twice", "one"),
        binary("step", "remainder", "h7", "span"),
        binary("up", "add", "bits", "step"),
        binary("to", "subtract", "up", "m"),
        f"  %moved = stablehlo.bitcast_convert %to : ({bits}) -> {floats}",
        binary("tail", "and", "bits", "low"),
        binary("size", "and", "bits", "unsigned"),
        binary("top", "subtract", "inf", "m"),
        f"  %k0 = stablehlo.compare EQ, %tail, %none : ({bits}, {bits}) -> {bools}",
        f"  %k1 = stablehlo.compare GE, %size, %top : ({bits}, {bits}) -> {bools}",
        f"  %k2 = stablehlo.compare LT, %size, %bottom : ({bits}, {bits}) -> {bools}",
        f"  %k3 = stablehlo.or %k0, %k1 : {bools}",
        f"  %kept = stablehlo.or %k2, %k3 : {bools}",
        f"  %r = stablehlo.select %kept, %v, %moved : {bools}, {floats}",
        f"  return %r : {floats}",
        "}",
    ]
    return "\n".join(lines)


# --- which ops round ---
#
# Which ops round, and how many terms an element of their results is the sum of.


EXACT = NEVER_ROUNDED | {"func.call", "func.return"}
"""Ops that make no float that is rounded."""

PLAIN = ops_with(rounds=Rounds.ONCE)
"""Ops that every compiler rounds correctly, if it does not contract them."""

REDUCED = frozenset({names.SINE, names.COSINE, names.TAN, names.EXPONENTIAL})
"""Functions whose argument is reduced first, by some consumers with a rounding of its own."""

_CONTRACTED = re.compile(r"lhs_contracting_dimensions = \[([^\]]+)\]")


def executed_ops(function: mlir.RawOperation) -> list[mlir.RawOperation]:
    """The ops of a function and of its control flow, without the bodies that an op applies to elements."""
    found: list[mlir.RawOperation] = []
    pending = [op.operation for region in function.regions for block in region.blocks for op in block.operations]
    while pending:
        op = pending.pop()
        found.append(op)
        if op.name in CONTROL:
            pending += [
                inner.operation for region in op.regions for block in region.blocks for inner in block.operations
            ]
    return found


def callee_text(op: mlir.RawOperation) -> str:
    key = CALLS.get(op.name)
    return "" if key is None else str(op.attributes[key]).removeprefix("@")


def is_rounding(op: mlir.RawOperation) -> bool:
    return op.name not in EXACT and any(float_format(v.type) for v in op.results)


def narrows(convert: mlir.RawOperation) -> bool:
    """Whether a conversion goes from a float type to one of a shorter mantissa."""
    source, to = float_format(convert.operands[0].type), float_format(convert.results[0].type)
    return bool(source and to) and element_type(source).mantissa > element_type(to).mantissa


def summed_operands(op: mlir.RawOperation) -> list[int]:
    """Which operands are terms of sums."""
    count = len(op.operands)
    if op.name in PRODUCTS:
        return [0, 1]
    if op.name in (names.REDUCE, names.REDUCE_WINDOW):
        return list(range(count // 2))
    if op.name == names.SCATTER:
        return list(range(count // 2 + 1, count))
    if op.name == names.FFT:
        return [0]
    return [1] if op.name == names.SELECT_AND_SCATTER else []


def terms_of(op: mlir.RawOperation) -> int:
    """How many terms an element of the result may be the sum of; 1 where it is not a sum."""
    shapes = [mlir.static_shape(v.type) for v in op.operands if mlir.is_ranked_tensor(v.type)]
    if op.name == names.DOT_GENERAL:
        found = _CONTRACTED.search(str(op.attributes["dot_dimension_numbers"]))
        return max(prod(shapes[0][int(d)] for d in found[1].split(",")) if found else 1, 2)
    if op.name == names.DOT:
        return max(shapes[0][-1] if shapes[0] else 1, 2)
    if op.name in (names.CONVOLUTION, names.DYNAMIC_CONV):
        return max(prod(shapes[1]), 2)
    if op.name == names.REDUCE:
        return prod(shapes[0]) // max(prod(mlir.static_shape(op.results[0].type)), 1)
    if op.name == names.REDUCE_WINDOW:
        return max(prod(mlir.integers_of(op.attributes["window_dimensions"])), 2)
    if op.name == names.FFT:
        return max(prod(mlir.integers_of(op.attributes["fft_length"])), 2)
    if op.name == names.SCATTER:
        return max(prod(shapes[len(shapes) // 2]) + 1, 2)
    return 2 if op.name == names.SELECT_AND_SCATTER else 1


def most_of(op: mlir.RawOperation, raw_type: mlir.RawType, terms: int) -> int:
    """Units in the last place that a value of an op is moved by, at most."""
    most = MOST[float_format(raw_type)]
    if terms > 1:
        return max(most.plain, min(ceil(most.term * sqrt(terms)), most.sum))
    return most.plain if op.name in PLAIN or op.name in WITH_BODY else most.function
