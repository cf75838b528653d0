"""A module that disturbs itself: each float that it rounds is moved by some units in the last place, by a salt.

What another compiler may do to a float is done to it where it arises: a sum in another order, a product that is
contracted with a sum, another exponential. Run under several salts, the results say how far *each element* moves under
roundings, whatever the constants, masks and cancellations on its way: see `noise`.

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
- numbers next to the ends of the exponent's range.

The terms of a sum of n (of a reduction, a product of matrices, a scatter that adds) and the sum are moved by sqrt(n)
times as many units: in another order a sum of terms of any sign moves by about that many roundings of its partial sums. How far a
number is moved depends on its bits, its op and the salt alone, so what was equal within one op stays equal.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from math import ceil, prod, sqrt
from typing import Any

from hlo_lower import mlir
from hlo_lower.verify.run import entry_function

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

EXACT = frozenset(
    f"stablehlo.{name}"
    for name in (
        *("constant", "iota", "reshape", "transpose", "broadcast_in_dim", "slice", "dynamic_slice", "reverse"),
        *("dynamic_update_slice", "concatenate", "pad", "gather", "select", "compare", "return", "sort", "clamp"),
        *("while", "case", "if", "optimization_barrier", "get_dimension_size", "real_dynamic_slice", "bitcast_convert"),
        *("dynamic_reshape", "dynamic_broadcast_in_dim", "dynamic_iota", "dynamic_pad", "dynamic_gather", "is_finite"),
        *("abs", "negate", "sign", "floor", "ceil", "round_nearest_afz", "round_nearest_even", "maximum", "minimum"),
        *("real", "imag", "complex", "broadcast", "tuple", "get_tuple_element", "torch_index_select", "rng"),
        *("all_gather", "all_to_all", "collective_permute", "collective_broadcast", "rng_bit_generator"),
    )
) | {"func.call", "func.return", "chlo.top_k"}
"""Ops that make no float that is rounded."""

PLAIN = frozenset(f"stablehlo.{name}" for name in ("add", "subtract", "multiply", "divide", "remainder", "convert"))
"""Ops that every compiler rounds correctly, if it does not contract them."""

APPLYING = frozenset(
    f"stablehlo.{name}"
    for name in ("reduce", "reduce_window", "scatter", "select_and_scatter", "map", "sort", "all_reduce")
) | {"stablehlo.reduce_scatter"}
"""Ops whose regions are not entered."""

ENTERED = frozenset(f"stablehlo.{name}" for name in ("while", "case", "if"))
"""Ops whose regions are disturbed with what is around them."""

UNREACHABLE = "sdy.manual_computation"
"""A region that is written for one device and that no value from outside reaches."""

PRODUCTS = frozenset(f"stablehlo.{name}" for name in ("dot_general", "dot", "convolution", "dynamic_conv"))
MOVING_CALLS = ("topk", "top_k", "sharding", "shard", "annotate")

FORMATS = {"f64": (64, 52, 11), "f32": (32, 23, 8), "f16": (16, 10, 5), "bf16": (16, 7, 8)}
"""Bits in all, of the mantissa and of the exponent; floats of 8 bits and less are left as they are."""

SHORT = {"f64": 26, "f32": 12, "f16": 7, "bf16": 5}
"""Bits at the end of the mantissa that are 0 in a number that is taken as exact."""

PREFIX = "disturbed_"

_CONTRACTED = re.compile(r"lhs_contracting_dimensions = \[([^\]]+)\]")


class CannotDisturbError(Exception):
    """The salt does not reach all of a module."""


def disturbed(text: str) -> str | None:
    """The module with one more argument, the salt (a `tensor<ui32>`, the last), and floats disturbed by it.

    None where nothing of it rounds.

    Raises:
      CannotDisturbError: part of it is written for one device, or its functions are used in another way than called.
    """
    module = mlir.parse_module(text, mlir.make_context())
    with mlir.active(module.context):
        if mlir.any_operation(module.operation, lambda op: op.name == UNREACHABLE):
            raise CannotDisturbError(UNREACHABLE)
        if not _Disturbing(module).all():
            return None
        refused = mlir.verify_module(module)
        if refused is not None:
            raise CannotDisturbError(refused)
        return mlir.print_module(module)


@dataclass
class _Place:
    """Where ops are built: behind an op, and what salts them."""

    salt: mlir.RawValue
    location: Any


class _Disturbing:
    """The rewrite of one module."""

    def __init__(self, module: mlir.RawModule) -> None:
        self._module = module
        self._functions = {
            mlir.symbol_name(op.operation.attributes["sym_name"]): op.operation
            for op in module.body.operations
            if op.operation.name == "func.func"
        }
        self._made: set[str] = set()
        self._count = 0

    def all(self) -> int:
        """Rewrite what the entry point reaches; the number of values that are disturbed."""
        entry = entry_function(self._module)
        applied = self._called([op for f in self._functions.values() for op in _below(f) if op.name in APPLYING])
        reached = [entry]
        for function in reached:
            for op in _entered(function):
                name = _callee(op)
                callee = self._functions.get(name)
                if callee is not None and name not in applied and callee not in reached:
                    reached.append(callee)
        names = {mlir.symbol_name(f.attributes["sym_name"]) for f in reached}
        for function in reached:
            self._rewrite(function, names)
        return self._count

    def _called(self, roots: list[mlir.RawOperation]) -> set[str]:
        """The functions that are called within some ops, also by what they call."""
        found: set[str] = set()
        pending = list(roots)
        while pending:
            for op in _below(pending.pop()):
                name = _callee(op)
                if name in self._functions and name not in found:
                    found.add(name)
                    pending.append(self._functions[name])
        return found

    def _rewrite(self, function: mlir.RawOperation, salted: set[str]) -> None:
        ops = _entered(function)
        block = function.regions[0].blocks[0]
        location = function.location
        salt = block.add_argument(mlir.parse_type("tensor<ui32>"), location)
        if "arg_attrs" in function.attributes:
            own = [str(a) for a in function.attributes["arg_attrs"]]
            function.attributes["arg_attrs"] = mlir.parse_attribute(f"[{', '.join([*own, '{}'])}]")
        place = _Place(salt, location)
        for op in ops:
            if _callee(op) in salted:
                self._pass_salt(op, place)
            elif op.name not in EXACT and op.name.split(".")[0] in ("stablehlo", "chlo", "func"):
                self._disturb(op, place)
            elif op.name == "func.call":  # of a function that is applied to elements elsewhere
                self._disturb_results(op, place, 1)
        mlir.set_signature(function)

    @staticmethod
    def _pass_salt(call: mlir.RawOperation, place: _Place) -> None:
        """Call the function with the salt, too; a composite becomes the call of its decomposition."""
        made = mlir.create_operation(
            "func.call",
            [*call.operands, place.salt],
            [r.type for r in call.results],
            {"callee": mlir.parse_attribute(f"@{_callee_text(call)}")},
            location=call.location,
            insertion_point=mlir.insert_before(call),
        )
        for old, new in zip(call.results, made.results, strict=True):
            old.replace_all_uses_with(new)
        call.erase()

    def _disturb(self, op: mlir.RawOperation, place: _Place) -> None:
        """Move what an op rounds, and the terms of its sums."""
        if op.name in APPLYING and not any(_is_rounding(inner) for inner in _below(op)[1:]):
            return
        if op.name == "stablehlo.convert" and not _narrows(op):
            return
        if op.name == "stablehlo.custom_call":
            target = str(op.attributes["call_target_name"]).lower()
            if any(name in target for name in MOVING_CALLS):
                return
        terms = _terms(op)
        if terms > 1:
            for k in _summed(op):
                self._disturb_operand(op, k, place, terms)
        self._disturb_results(op, place, terms)

    def _disturb_operand(self, op: mlir.RawOperation, k: int, place: _Place, terms: int) -> None:
        value = op.operands[k]
        if _format(value.type):
            op.operands[k] = self._moved(value, _most(op, value.type, terms), place, lambda: mlir.insert_before(op))

    def _disturb_results(self, op: mlir.RawOperation, place: _Place, terms: int) -> None:
        for k, result in enumerate(op.results):
            if not _format(result.type):
                continue
            uses = [(use.owner.operation, use.operand_number) for use in result.uses]
            if not uses:
                continue
            anchor = _Behind(op)
            moved = self._moved(result, _most(op, result.type, terms), place, anchor)
            kept = [op.operands[k]] if op.name == "stablehlo.scatter" else list(op.operands)
            if op.name in APPLYING and op.name != "stablehlo.scatter" or len(op.results) > 1 and len(kept) > 1:
                kept = []
            for operand in kept:
                if operand.type == result.type:
                    moved = _unless_equal(result, operand, moved, place, anchor)
            for user, number in uses:
                user.operands[number] = moved

    def _moved(self, value: mlir.RawValue, most: int, place: _Place, point: Callable[[], Any]) -> mlir.RawValue:
        """A value of a float or complex type, moved."""
        element = mlir.tensor_element_name(value.type)
        if element.startswith("complex"):
            shape, part = mlir.tensor_shape(value.type), element[len("complex<") : -1]
            half = mlir.tensor_type(shape, part)
            halves = [_built(f"stablehlo.{name}", [value], half, place, point) for name in ("real", "imag")]
            moved = [self._moved(one, most, place, point) for one in halves]
            return _built("stablehlo.complex", moved, value.type, place, point)
        self._count += 1
        scalar = mlir.parse_type("tensor<ui32>")
        numbers = [
            _built("stablehlo.constant", [], scalar, place, point, value=f"dense<{n}> : tensor<ui32>")
            for n in (self._count, most)
        ]
        callee = f"@{self._function(value.type)}"
        return _built("func.call", [value, place.salt, *numbers], value.type, place, point, callee=callee)

    def _function(self, raw_type: mlir.RawType) -> str:
        """The name of the function that moves the elements of this type, made when first needed."""
        shape = [int(size or 0) for size in mlir.tensor_shape(raw_type)]
        element = mlir.tensor_element_name(raw_type)
        name = PREFIX + "_".join([element, *map(str, shape)])
        if name not in self._made:
            self._made.add(name)
            made = mlir.parse_module(function_text(name, shape, element), self._module.context)
            function = made.body.operations[0].operation
            self._module.body.append(function.clone())
        return name


class _Behind:
    """The insertion point behind an op and what was built there before."""

    def __init__(self, op: mlir.RawOperation) -> None:
        self.last = op

    def __call__(self) -> Any:
        return mlir.insert_after(self.last)


def _built(
    name: str,
    operands: list[mlir.RawValue],
    raw_type: mlir.RawType,
    place: _Place,
    point: Callable[[], Any],
    **attributes: str,
) -> mlir.RawValue:
    """The result of an op that is made at a point."""
    made = mlir.create_operation(
        name,
        operands,
        [raw_type],
        {key: mlir.parse_attribute(text) for key, text in attributes.items()},
        location=place.location,
        insertion_point=point(),
    )
    if isinstance(point, _Behind):
        point.last = made
    return made.results[0]


def _unless_equal(
    result: mlir.RawValue, operand: mlir.RawValue, moved: mlir.RawValue, place: _Place, point: Callable[[], Any]
) -> mlir.RawValue:
    """What was moved, but the result itself where it is the operand."""
    shape = mlir.tensor_shape(result.type)
    is_equal = _built(
        "stablehlo.compare",
        [result, operand],
        mlir.tensor_type(shape, "i1"),
        place,
        point,
        comparison_direction="#stablehlo<comparison_direction EQ>",
    )
    return _built("stablehlo.select", [is_equal, result, moved], result.type, place, point)


def function_text(name: str, shape: list[int], element: str) -> str:
    """The function that moves each element by -most to most units in the last place, by a hash of its bits.

    Bits of a float, taken as an integer, go up by one from a number to the next one of larger magnitude.
    """
    width, mantissa, exponent = FORMATS[element]
    dims = "".join(f"{size}x" for size in shape)
    floats, bits, bools = f"tensor<{dims}{element}>", f"tensor<{dims}ui{width}>", f"tensor<{dims}i1>"
    scalar = f"tensor<ui{width}>"
    largest, smallest = ((1 << exponent) - 2) << mantissa, 2 << mantissa
    hashes = {64: (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9), 32: (0x9E3779B1, 0x85EBCA6B), 16: (0x9E3B, 0x85CB)}[width]

    def constant(label: str, value: int) -> str:
        return f"  %{label} = stablehlo.constant dense<{value}> : {bits}"

    def binary(label: str, op: str, a: str, b: str) -> str:
        return f"  %{label} = stablehlo.{op} %{a}, %{b} : {bits}"

    def spread(label: str, value: str) -> list[str]:
        narrow = [f"  %{label}n = stablehlo.convert %{value} : (tensor<ui32>) -> {scalar}"]
        return [*narrow, f"  %{label} = stablehlo.broadcast_in_dim %{label}n, dims = [] : ({scalar}) -> {bits}"]

    lines = [
        f"func.func private @{name}(%v: {floats}, %salt: tensor<ui32>, %place: tensor<ui32>, %most: tensor<ui32>)"
        f" -> {floats} {{",
        f"  %bits = stablehlo.bitcast_convert %v : ({floats}) -> {bits}",
        "  %golden = stablehlo.constant dense<2654435769> : tensor<ui32>",
        "  %mixed = stablehlo.multiply %place, %golden : tensor<ui32>",
        "  %sum = stablehlo.add %mixed, %salt : tensor<ui32>",
        *spread("key", "sum"),
        *spread("m", "most"),
        *(constant(label, value) for label, value in (("c1", hashes[0]), ("c2", hashes[1]), ("half", width // 2))),
        *(constant(label, value) for label, value in (("one", 1), ("low", (1 << SHORT[element]) - 1), ("none", 0))),
        *(constant(label, value) for label, value in (("unsigned", (1 << (width - 1)) - 1), ("top", largest))),
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


# --- what an op rounds ---


def _below(op: mlir.RawOperation) -> list[mlir.RawOperation]:
    """An op and all that its regions hold."""
    found: list[mlir.RawOperation] = []
    mlir.walk(op, found.append)
    return found


def _entered(function: mlir.RawOperation) -> list[mlir.RawOperation]:
    """The ops of a function, those in the regions of control flow too, those in regions that are applied not."""
    found: list[mlir.RawOperation] = []
    pending = [op.operation for region in function.regions for block in region.blocks for op in block.operations]
    while pending:
        op = pending.pop()
        found.append(op)
        if op.name in ENTERED:
            pending += [inner.operation for region in op.regions for block in region.blocks for inner in block.operations]
    return found


def _callee_text(op: mlir.RawOperation) -> str:
    key = {"func.call": "callee", "stablehlo.composite": "decomposition"}.get(op.name)
    return "" if key is None else str(op.attributes[key]).removeprefix("@")


def _callee(op: mlir.RawOperation) -> str:
    """The function that an op calls, or ""."""
    key = {"func.call": "callee", "stablehlo.composite": "decomposition"}.get(op.name)
    return "" if key is None else mlir.symbol_name(op.attributes[key])


def _format(raw_type: mlir.RawType) -> str:
    """The float type of a tensor's elements or their parts, "" where nothing of it is moved."""
    tensor = mlir.read_tensor_type(raw_type)
    if tensor is None or not tensor.is_static or not prod(size or 0 for size in tensor.shape):
        return ""
    name = tensor.element_name.removeprefix("complex<").removesuffix(">")
    return name if name in FORMATS else ""


def _is_rounding(op: mlir.RawOperation) -> bool:
    return op.name not in EXACT and any(_format(v.type) for v in op.results)


def _narrows(convert: mlir.RawOperation) -> bool:
    """Whether a conversion goes from a float type to one of a shorter mantissa."""
    source, to = _format(convert.operands[0].type), _format(convert.results[0].type)
    return bool(source and to) and FORMATS[source][1] > FORMATS[to][1]


def _most(op: mlir.RawOperation, raw_type: mlir.RawType, terms: int) -> int:
    """Units in the last place that a value of an op is moved by, at most."""
    most = MOST[_format(raw_type)]
    if terms > 1:
        return max(most.plain, min(ceil(most.term * sqrt(terms)), most.sum))
    return most.plain if op.name in PLAIN or op.name in APPLYING else most.function


def _summed(op: mlir.RawOperation) -> list[int]:
    """Which operands are terms of sums."""
    count = len(op.operands)
    if op.name in PRODUCTS:
        return [0, 1]
    if op.name in ("stablehlo.reduce", "stablehlo.reduce_window"):
        return list(range(count // 2))
    if op.name == "stablehlo.scatter":
        return list(range(count // 2 + 1, count))
    return [1] if op.name == "stablehlo.select_and_scatter" else []


def _terms(op: mlir.RawOperation) -> int:
    """How many terms an element of the result may be the sum of; 1 where it is no sum."""
    shapes = [[int(s or 0) for s in mlir.tensor_shape(v.type)] for v in op.operands if mlir.is_ranked_tensor(v.type)]
    if op.name == "stablehlo.dot_general":
        found = _CONTRACTED.search(str(op.attributes["dot_dimension_numbers"]))
        return max(prod(shapes[0][int(d)] for d in found[1].split(",")) if found else 1, 2)
    if op.name == "stablehlo.dot":
        return max(shapes[0][-1] if shapes[0] else 1, 2)
    if op.name in ("stablehlo.convolution", "stablehlo.dynamic_conv"):
        return max(prod(shapes[1]), 2)
    if op.name == "stablehlo.reduce":
        return prod(shapes[0]) // max(prod(int(s or 0) for s in mlir.tensor_shape(op.results[0].type)), 1)
    if op.name == "stablehlo.reduce_window":
        return max(prod(mlir.integers_of(op.attributes["window_dimensions"])), 2)
    if op.name == "stablehlo.scatter":
        return max(prod(shapes[len(shapes) // 2]) + 1, 2)
    return 2 if op.name == "stablehlo.select_and_scatter" else 1
