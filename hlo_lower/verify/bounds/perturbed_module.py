"""A module that disturbs itself: each float that it rounds is moved by some units in the last place, by a salt.

What another compiler may do to a float is done to it where it arises: a sum in another order, a product that is
contracted with a sum, another exponential. Run under several salts, the results say how far *each element* moves under
roundings, whatever the constants, masks and cancellations on its way: see `rounding_error`.

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

The argument of a sine, a cosine or an exponential is moved, too, short or not: consumers reduce it to a few bits less
than XLA does, cos(1000.0) in f32 to within what 1000.0 is rounded by.

The terms of a sum of n (of a reduction, a product of matrices, a scatter that adds) and the sum are moved by sqrt(n)
times as many units: in another order a sum of terms of any sign moves by about that many roundings of its partial sums.
How far a number is moved depends on its bits, its op and the salt alone: what was equal within one op stays equal.
"""

from collections.abc import Callable

from hlo_lower.base.element_types import element_type
from hlo_lower.ir import mlir
from hlo_lower.verify.align.appended_ops import OpsBeside
from hlo_lower.verify.bounds.matrix_ops import is_matrix_op, units_of
from hlo_lower.verify.bounds.perturbed_floats import SHORT, float_format, function_text
from hlo_lower.verify.bounds.perturbed_matrices import Movement, matrix_functions, movement_of, type_suffix
from hlo_lower.verify.bounds.rounding_ops import (
    APPLYING,
    EXACT,
    REDUCED,
    callee_of,
    callee_text,
    entered,
    is_rounding,
    most_of,
    narrows,
    summed_operands,
    terms_of,
)
from hlo_lower.verify.run import entry_function

UNREACHABLE = "sdy.manual_computation"
"""A region that is written for one device and that no value from outside reaches."""

MOVING_CALLS = ("topk", "top_k", "sharding", "shard", "annotate")
PREFIX = "disturbed_"


class CannotDisturbError(Exception):
    """The salt does not reach all of a module."""


def disturbed(text: str) -> str | None:
    """The module with one more argument, the salt (a `tensor<ui32>`, the last), and floats disturbed by it.

    None where nothing of it rounds.

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
        applied = self._called([op for f in self._functions.values() for op in mlir.walked(f) if op.name in APPLYING])
        reached = [entry]
        for function in reached:
            for op in entered(function):
                name = callee_of(op)
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
            for op in mlir.walked(pending.pop()):
                name = callee_of(op)
                if name in self._functions and name not in found:
                    found.add(name)
                    pending.append(self._functions[name])
        return found

    def _rewrite(self, function: mlir.RawOperation, salted: set[str]) -> None:
        ops = entered(function)
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
        for old, new in zip(call.results, made.results, strict=True):
            old.replace_all_uses_with(new)
        call.erase()

    def _disturb(self, op: mlir.RawOperation, salt: mlir.RawValue) -> None:
        """Move what an op rounds, and the terms of its sums."""
        if op.name in APPLYING and not any(is_rounding(inner) for inner in mlir.walked(op)[1:]):
            return
        if op.name == "stablehlo.convert" and not narrows(op):
            return
        if op.name == "stablehlo.custom_call":
            target = mlir.call_target(op).lower()
            if any(name in target for name in MOVING_CALLS):
                return
        if is_matrix_op(op):
            for k in range(len(op.operands)):
                self._disturb_matrix(op, k, salt)
        terms = terms_of(op)
        if terms > 1:
            for k in summed_operands(op):
                self._disturb_operand(op, k, salt, terms)
        if any(inner.name in REDUCED for inner in mlir.walked(op)):
            for k in range(len(op.operands)):
                self._disturb_operand(op, k, salt, 1)
        self._disturb_results(op, salt, terms)

    def _disturb_operand(self, op: mlir.RawOperation, k: int, salt: mlir.RawValue, terms: int) -> None:
        value = op.operands[k]
        if float_format(value.type):
            most = most_of(op, value.type, terms)
            op.operands[k] = self._moved(value, most, salt, OpsBeside(op), short=terms == 1)

    def _disturb_matrix(self, op: mlir.RawOperation, k: int, salt: mlir.RawValue) -> None:
        """Move each element of a factorization's operand, whatever it is: see `matrix_ops`."""
        value = op.operands[k]
        if not float_format(value.type) or element_type(mlir.tensor_element_name(value.type)).is_complex:
            return
        beside = OpsBeside(op)

        def moved(matrix: mlir.RawValue) -> mlir.RawValue:
            return self._moved(matrix, units_of(op), salt, beside, short=True)

        def called(name: str, *operands: mlir.RawValue) -> mlir.RawValue:
            callee = self._known(name, lambda: matrix_functions(name, value.type))
            return beside.op("func.call", list(operands), value.type, callee=f"@{callee}")

        suffix = type_suffix(value.type)
        places = called(f"{PREFIX}places_{suffix}")
        how = movement_of(op)
        moves = [value, moved(places), places]
        if how is Movement.FIRST_ALIKE:
            moves.append(moved(called(f"{PREFIX}sizes_{suffix}", value)))
        op.operands[k] = called(f"{PREFIX}{how.value}_{suffix}", *moves)

    def _disturb_results(self, op: mlir.RawOperation, salt: mlir.RawValue, terms: int) -> None:
        for k, result in enumerate(op.results):
            if not float_format(result.type):
                continue
            uses = [(use.owner.operation, use.operand_number) for use in result.uses]
            if not uses:
                continue
            beside = OpsBeside(op, is_behind=True)
            moved = self._moved(result, most_of(op, result.type, terms), salt, beside)
            for operand in _passed_on(op, k):
                if operand.type == result.type:
                    is_operand = beside.compare("EQ", [result, operand])
                    moved = beside.op("select", [is_operand, result, moved], result.type)
            for user, number in uses:
                user.operands[number] = moved

    def _moved(
        self, value: mlir.RawValue, most: int, salt: mlir.RawValue, beside: OpsBeside, *, short: bool = False
    ) -> mlir.RawValue:
        """A value of a float or complex type, moved, short numbers too where it is said."""
        element = mlir.tensor_element_name(value.type)
        if element_type(element).is_complex:
            half = mlir.tensor_type(mlir.tensor_shape(value.type), element_type(element).part)
            halves = [beside.op(name, [value], half) for name in ("real", "imag")]
            moved = [self._moved(one, most, salt, beside, short=short) for one in halves]
            return beside.op("complex", moved, value.type)
        self._count += 1
        scalar = mlir.parse_type("tensor<ui32>")
        tail = (1 << 32) - 1 if short else (1 << SHORT[element]) - 1
        numbers = [
            beside.op("constant", [], scalar, value=f"dense<{n}> : tensor<ui32>") for n in (self._count, most, tail)
        ]
        callee = f"@{self._function(value.type)}"
        return beside.op("func.call", [value, salt, *numbers], value.type, callee=callee)

    def _function(self, raw_type: mlir.RawType) -> str:
        """The name of the function that moves the elements of this type, made when first needed."""
        shape = list(mlir.static_shape(raw_type))
        element = mlir.tensor_element_name(raw_type)
        name = PREFIX + type_suffix(raw_type)
        return self._known(name, lambda: function_text(name, shape, element))

    def _known(self, name: str, text: Callable[[], str]) -> str:
        """The name of a function, which is made when it is first needed."""
        if name not in self._made:
            self._made.add(name)
            made = mlir.parse_module(text(), self._module.context)
            self._module.body.append(made.body.operations[0].operation.clone())
        return name


def _passed_on(op: mlir.RawOperation, k: int) -> list[mlir.RawValue]:
    """The operands that result k of an op may be, element by element, without having been rounded."""
    if op.name == "stablehlo.scatter":  # where nothing is added
        return [op.operands[k]]
    return list(op.operands) if op.name not in APPLYING and len(op.results) == 1 else []
