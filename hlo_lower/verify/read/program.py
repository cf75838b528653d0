"""A module as the judge reads it: bodies of operations over numbered values, calls and composites inlined.

Nothing of the reader that the converter uses is used here, so that a mistake of that one cannot hide a mistake of the
writer. The raw operations stay at hand: a piece of a module is made by copying them (`hlo_lower.verify.align.piece`).
"""

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import inf
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from hlo_lower.ir import mlir
from hlo_lower.ops import names
from hlo_lower.ops.spec import RESHAPING, Role, ops_with
from hlo_lower.verify.patience import patience
from hlo_lower.verify.read.partitions import is_for_one_device

ValueId: TypeAlias = int
"""The number of a value in its program."""

MAX_OPS = 200_000
"""Operations, calls inlined, up to which a module is read: seconds of reading. XLA is asked for no more, either."""

LOOKS = 1_000
"""Operations that are read between two looks at the deadline of the verification."""

TOO_DEEP = "calls, loops or branches stand too deep in one another"

TERMINATORS = frozenset({"func.return", names.RETURN, "sdy.return", "mhlo.return"})

_EFFECTS = ops_with(role=Role.HOST) | ops_with(role=Role.RANDOM, is_pure=False)
"""Operations with effects or hidden state: two of them are never the same value (`rng_bit_generator` has none)."""

CALLS = {"func.call": "callee", names.COMPOSITE: "decomposition"}
"""Operations that are what a function computes, and the attribute that names it: a composite is its decomposition."""

COPIES = frozenset({names.CONVERT, names.RESHAPE, names.REVERSE, names.SORT, names.OPTIMIZATION_BARRIER})
"""Operations that may be their operands: those of the type that stays, behind each argument of modules that were HLO,
those that put one row in order, and barriers."""

SHARDING_RULE = "sdy.sharding_rule"
"""An attribute that says how operands and results may be cut among devices."""

NAMING = frozenset({*CALLS, names.CUSTOM_CALL})
"""Operations whose attributes may name functions."""


@dataclass(slots=True, eq=False)
class Op:
    """An operation.

    Attributes:
      name, raw: its name and the operation of jaxlib's bindings.
      attributes: name and attribute, sorted by name; attributes of one context are compared by identity.
      inputs, results: its operands and results.
      bodies: its regions, one block each.
      captured: what its regions take from around them, by the raw value that they name.
      parent: the body that it stands in.
      order: its place there.
      has_effects: whether it, or what its regions hold, does more than compute.
    """

    name: str
    raw: mlir.RawOperation
    attributes: tuple[tuple[str, Hashable], ...]
    inputs: tuple[ValueId, ...]
    results: tuple[ValueId, ...]
    bodies: "tuple[Body, ...]"
    captured: dict[mlir.RawValue, ValueId]
    parent: "Body"
    order: int
    has_effects: bool

    @property
    def reads(self) -> tuple[ValueId, ...]:
        """Its operands, and what its regions capture."""
        return (*self.inputs, *self.captured.values())

    @property
    def short_name(self) -> str:
        """Its name without the dialect."""
        return self.name.split(".", 1)[-1]


@dataclass(frozen=True)
class Composite:
    """A composite that was inlined, as who knows its name sees it (`hlo_lower.verify.read.interface`).

    Attributes:
      raw: the operation.
      attributes: its attributes, the name of its decomposition aside.
      inputs, results: what it takes, and what its decomposition gives for it.
    """

    raw: mlir.RawOperation
    attributes: tuple[tuple[str, Hashable], ...]
    inputs: tuple[ValueId, ...]
    results: tuple[ValueId, ...]


@dataclass(slots=True, eq=False)
class Body:
    """A block: arguments, operations, what it returns, and the composites that were inlined in it."""

    arguments: tuple[ValueId, ...] = ()
    ops: list[Op] = field(default_factory=list[Op])
    returned: tuple[ValueId, ...] = ()
    owner: Op | None = None
    composites: list[Composite] = field(default_factory=list[Composite])
    called: dict[tuple[str, tuple[ValueId, ...]], tuple[ValueId, ...]] = field(
        default_factory=dict[tuple[str, tuple[ValueId, ...]], tuple[ValueId, ...]]
    )
    """Results of calls that were inlined here: the same call of a function without effects is inlined once."""

    def live(self) -> list[Op]:
        """The operations on which what is returned depends, and those with effects, in order."""
        needed = set(self.returned)
        found: list[Op] = []
        for op in reversed(self.ops):
            if op.has_effects or any(result in needed for result in op.results):
                found.append(op)
                needed.update(op.reads)
        return found[::-1]


class TooLargeError(Exception):
    """The module has more operations than are read, its calls inlined, or they stand too deep in one another."""


class Program:
    """A module that is compared.

    Args:
      raw: the module.
      trips: how many trips of a loop are read in its place, one behind the other; 0 where it stays a loop. It may ask
        the program for what stands before the loop. Loops with effects stay.

    Attributes:
      raw: the module.
      types: the type of each value.
      makers: the operation that gives each value, None for a body's argument.
      functions: all functions by name.
      entries: the bodies of the public ones.
      op_count: operations read, calls inlined.
      scatter_numbers: of every scatter its number in the order of the text, from 1, as a report counts them.
      loop_numbers: the same of every `while`.
      has_composites: whether a composite was inlined.

    Raises:
      TooLargeError: it has more than `MAX_OPS` operations, or they stand too deep in one another.
    """

    def __init__(self, raw: mlir.RawModule, trips: "Callable[[Program, Op], int] | None" = None) -> None:
        self.raw = raw
        self.types: list[mlir.RawType] = []
        self.makers: list[Op | None] = []
        self.homes: list[Body] = []
        self.op_count = 0
        self.has_composites = False
        self.functions = functions_of(raw)
        self._effects: dict[str, bool] = {}
        self._is_on_one = is_for_one_device(raw)
        self._trips = trips
        numbered, _ = mlir.find_named(raw.operation, (names.SCATTER, names.WHILE))
        self.scatter_numbers, self.loop_numbers = (
            {op: number for number, op in enumerate((op for op in numbered if op.name == name), start=1)}
            for name in (names.SCATTER, names.WHILE)
        )
        try:
            self.entries = {
                name: self._body(function.regions[0].blocks[0], {}, (name,), None, {})
                for name, function in self.functions.items()
                if mlir.is_public(function) and len(function.regions[0].blocks)
            }
        except RecursionError:
            raise TooLargeError(TOO_DEEP) from None

    def read_of_one_result(self, value: ValueId) -> list[ValueId]:
        """The values that were read of the same result of an operation as this one, in order; it alone of no result."""
        own = self.makers[value]
        if own is None:
            return [value]
        place = own.results.index(value)
        return [op.results[place] for op in self._read_of_one[own]]

    @cached_property
    def _read_of_one(self) -> dict[Op, list[Op]]:
        """The operations that were read of the same one, for each of them."""
        alike = dict[mlir.RawOperation, list[Op]]()
        for op in dict.fromkeys(self.makers):
            if op is not None:
                alike.setdefault(op.raw, []).append(op)
        return {op: ops for ops in alike.values() for op in ops}

    @cached_property
    def varying(self) -> frozenset[ValueId]:
        """The values that depend on an argument, of a function or of a body."""
        found = set[ValueId]()
        for value, maker in enumerate(self.makers):
            if maker is None or maker.has_effects or any(read in found for read in maker.reads):
                found.add(value)
        return frozenset(found)

    @cached_property
    def op_names(self) -> frozenset[str]:
        """The names of all operations, those in bodies included, and of what custom calls call."""
        ops = [op for op in dict.fromkeys(self.makers) if op is not None]
        return frozenset(name for op in ops for name in (op.name, mlir.call_target(op.raw)))

    def type_of(self, value: ValueId) -> mlir.TensorType | None:
        """A value's tensor type; None for a token or a tuple."""
        return mlir.read_tensor_type(self.types[value])

    def dtype_of(self, value: ValueId) -> np.dtype[Any] | None:
        """The NumPy type of a tensor's elements; None where there is none."""
        tensor = self.type_of(value)
        return None if tensor is None else mlir.dtype_of(tensor.element_name)

    def shape_of(self, value: ValueId) -> tuple[int, ...]:
        """A value's sizes, 0 where one is not known; none of what is not a tensor."""
        tensor = self.type_of(value)
        return () if tensor is None else tuple(int(size or 0) for size in tensor.shape)

    def constant_behind(self, value: ValueId) -> NDArray[Any] | None:
        """The constant that a value is, perhaps spread or in another shape; None of anything else."""
        maker = self.makers[value]
        while maker is not None and maker.name in RESHAPING:
            maker = self.makers[maker.inputs[0]]
        return mlir.constant_value(maker.raw) if maker is not None and maker.name == names.CONSTANT else None

    def maker_of_scalar(self, value: ValueId) -> tuple[mlir.RawOperation, tuple[ValueId, ...]] | None:
        """The operation of one result, a number, that makes a value, and its operands; None of anything else."""
        op, tensor = self.makers[value], self.type_of(value)
        if op is None or op.bodies or len(op.results) > 1 or tensor is None or tensor.shape != ():
            return None
        return op.raw, op.inputs

    def _value(self, raw: mlir.RawValue, maker: Op | None, home: Body, env: dict[mlir.RawValue, ValueId]) -> ValueId:
        number = len(self.types)
        self.types.append(raw.type)
        self.makers.append(maker)
        self.homes.append(home)
        env[raw] = number
        return number

    def _body(
        self,
        block: mlir.RawBlock,
        env: dict[mlir.RawValue, ValueId],
        stack: tuple[str, ...],
        owner: Op | None,
        kept: Mapping[int, ValueId],
    ) -> Body:
        body = Body(owner=owner)
        body.arguments = tuple(self._value(argument, None, body, env) for argument in block.arguments)
        env.update((block.arguments[place], value) for place, value in kept.items())
        body.returned = self._fill(body, block, env, stack)
        return body

    def _fill(
        self, body: Body, block: mlir.RawBlock, env: dict[mlir.RawValue, ValueId], stack: tuple[str, ...]
    ) -> tuple[ValueId, ...]:
        """Read a block's operations into a body; what it returns."""
        for operation in block.operations:
            raw = operation.operation
            if raw.name in TERMINATORS:
                return tuple(env[v] for v in raw.operands)
            if raw.name in CALLS and self._inlined(body, raw, env, stack):
                continue
            if raw.name in COPIES and _is_copy(raw):
                env.update((result, env[operand]) for result, operand in zip(raw.results, raw.operands, strict=True))
                continue
            if raw.name == names.WHILE and self._trips is not None:
                self._loop(body, raw, env, stack, self._trips)
            else:
                self._op(body, raw, env, stack)
        return ()

    def _loop(
        self,
        body: Body,
        raw: mlir.RawOperation,
        env: dict[mlir.RawValue, ValueId],
        stack: tuple[str, ...],
        trips: "Callable[[Program, Op], int]",
    ) -> None:
        """Read a loop, or so many trips of it in its place."""
        around = dict(env)  # without what stands in the loop
        self._op(body, raw, env, stack)
        count = 0 if body.ops[-1].has_effects else trips(self, body.ops[-1])
        if count:
            carried = body.ops.pop().inputs
            block = raw.regions[1].blocks[0]
            for _ in range(count):
                carried = self._fill(body, block, {**around, **dict(zip(block.arguments, carried, strict=True))}, stack)
            env.update(zip(raw.results, carried, strict=True))

    def _inlined(
        self, body: Body, call: mlir.RawOperation, env: dict[mlir.RawValue, ValueId], stack: tuple[str, ...]
    ) -> bool:
        """Read a called function in the place of the call; False where it has no body or calls itself."""
        name = callee_of(call)
        function = self.functions.get(name)
        if function is None or not len(function.regions[0].blocks) or name in stack:
            return False
        inputs = tuple(env[v] for v in call.operands)
        known = body.called.get((name, inputs))
        if known is None or self._function_has_effects(name):
            block = function.regions[0].blocks[0]
            inner = dict(zip(block.arguments, inputs, strict=True))
            known = self._fill(body, block, inner, (*stack, name))
            body.called[name, inputs] = known
        env.update(zip(call.results, known, strict=True))
        if call.name == names.COMPOSITE:
            seen = sorted((n, a) for n, a in mlir.attributes_of(call).items() if n != CALLS[call.name])
            body.composites.append(Composite(call, tuple(seen), inputs, known))
            self.has_composites = True
        return True

    def _op(
        self, body: Body, raw: mlir.RawOperation, env: dict[mlir.RawValue, ValueId], stack: tuple[str, ...]
    ) -> None:
        self.op_count += 1
        if self.op_count % LOOKS == 0:
            patience().deadline.check()
        if self.op_count > MAX_OPS:
            raise TooLargeError(f"more than {MAX_OPS:,} operations, calls inlined")
        inputs = tuple(env[v] for v in raw.operands)
        op = Op(raw.name, raw, self._attributes(raw), inputs, (), (), {}, body, len(body.ops), False)
        blocks = [block for region in raw.regions for block in region.blocks]
        kept: dict[int, ValueId] = {}  # what a loop carries and does not change is what went into it
        if blocks:
            op.captured = _captures(raw, env)  # before they are read: what is known by now stands around them
            if raw.name == names.WHILE:
                kept = {place: inputs[place] for place in self._invariant_arguments(blocks[1])}
            op.bodies = tuple(self._body(block, env, stack, op, kept) for block in blocks)
        op.has_effects = self._op_has_effects(raw) or any(inner.has_effects for b in op.bodies for inner in b.ops)
        op.results = tuple(self._value(result, op, body, env) for result in raw.results)
        env.update((raw.results[place], value) for place, value in kept.items())
        body.ops.append(op)

    def _invariant_arguments(self, body: mlir.RawBlock) -> list[int]:
        """The places where a loop body returns its own argument, so that every iteration reads the initial value."""
        returned = terminator(body).operands
        return [
            place for place, value in enumerate(returned) if self._origin_of_copy(value, ()) == body.arguments[place]
        ]

    def _origin_of_copy(self, value: mlir.RawValue, stack: tuple[str, ...]) -> mlir.RawValue:
        """The value that this value copies, also through functions that return an argument.

        Args:
          value: the value.
          stack: the functions that are looked into.
        """
        while not mlir.is_block_argument(value):
            maker, name = value.owner.operation, callee_of(value.owner.operation)
            function = self.functions.get(name)
            if maker.name in COPIES and _is_copy(maker):
                value = maker.operands[mlir.result_number(value)]
            elif function is None or not len(function.regions[0].blocks) or name in stack:
                break
            else:
                block = function.regions[0].blocks[0]
                place = mlir.result_number(value)
                given = self._origin_of_copy(terminator(block).operands[place], (*stack, name))
                if given not in list(block.arguments):
                    break
                value = maker.operands[list(block.arguments).index(given)]
        return value

    def _attributes(self, raw: mlir.RawOperation) -> tuple[tuple[str, Hashable], ...]:
        """The attributes of an operation, functions that they name by their text."""
        found: list[tuple[str, Hashable]] = list(mlir.attributes_of(raw).items())
        if self._is_on_one:  # where operands may be cut says nothing there
            found = [pair for pair in found if pair[0] != SHARDING_RULE]
        if raw.name in NAMING:
            found.append(("", tuple(str(function) for function in self.functions_named(raw))))
        return tuple(sorted(found, key=lambda pair: pair[0]))

    def functions_named(self, raw: mlir.RawOperation) -> list[mlir.RawOperation]:
        """The functions that an operation or one in its regions names, and those that these name, in a fixed order."""
        found: dict[str, mlir.RawOperation] = {}
        pending = [raw]
        while pending:
            for op in mlir.operations_within(pending.pop()):
                more = mlir.symbols_in(op) - set(found) if op.name in NAMING else set[str]()
                for name in sorted(more & set(self.functions)):
                    found[name] = self.functions[name]
                    pending.append(found[name])
        return list(found.values())

    def _op_has_effects(self, raw: mlir.RawOperation) -> bool:
        if raw.name in _EFFECTS or (not len(raw.results) and raw.name not in TERMINATORS):
            return True
        if raw.name == names.CUSTOM_CALL:
            return mlir.is_true(raw, "has_side_effect")
        if raw.name in CALLS:  # one that is not inlined: what it does is not known
            return True
        return any("token" in str(result.type) for result in raw.results)

    def _function_has_effects(self, name: str) -> bool:
        """Whether a function, or one that it calls, does more than compute."""
        if name not in self._effects:
            self._effects[name] = False  # for one that calls itself
            function = self.functions[name]

            def holds(op: mlir.RawOperation) -> bool:
                if called := callee_of(op):
                    return called not in self.functions or self._function_has_effects(called)
                return op.name not in ("func.func", *TERMINATORS) and self._op_has_effects(op)

            # What a function without a body does is not known.
            self._effects[name] = not len(function.regions[0].blocks) or mlir.any_operation(function, holds)
        return self._effects[name]


def functions_of(module: mlir.RawModule) -> dict[str, mlir.RawOperation]:
    """The functions of a module, by name."""
    ops = (op.operation for op in module.body.operations)
    return {mlir.symbol_name(op.attributes["sym_name"]): op for op in ops if op.name == "func.func"}


def callee_of(op: mlir.RawOperation) -> str:
    """The function that an operation calls, or is by its decomposition; "" of any other one."""
    return mlir.symbol_name(op.attributes[CALLS[op.name]]) if op.name in CALLS else ""


def inline_calls(module: mlir.RawModule) -> None:
    """Write every call's function out in its place, in all public functions."""
    known = functions_of(module)
    written = {name: function for name, function in known.items() if len(function.regions[0].blocks)}
    with mlir.active(module.context):
        for function in filter(mlir.is_public, known.values()):
            while calls := [op for op in mlir.operations_within(function) if callee_of(op) in written]:
                for call in calls:
                    mlir.inline_call(call, written[callee_of(call)])


def terminator(block: mlir.RawBlock) -> mlir.RawOperation:
    """The last operation of a block."""
    return block.operations[len(block.operations) - 1].operation


def inlined_operations(module: mlir.RawModule) -> float:
    """The operations of a module's largest function, each call counted with all that is called: what XLA compiles."""
    functions = functions_of(module)
    counts: dict[str, float] = {}

    def count(name: str) -> float:
        if name not in counts:
            counts[name] = 0.0  # for one that calls itself
            calls, own = mlir.find_named(functions[name], CALLS)
            called = map(callee_of, calls)
            counts[name] = own + sum(count(callee) for callee in called if callee in functions)
        return counts[name]

    try:
        return max((count(name) for name in functions), default=0.0)
    except RecursionError:
        return inf


def _is_copy(raw: mlir.RawOperation) -> bool:
    if raw.name in (names.REVERSE, names.SORT):
        shape = mlir.tensor_shape(raw.operands[0].type)
        if raw.name == names.REVERSE:
            return all(shape[dim] == 1 for dim in mlir.integers_of(raw.attributes["dimensions"]))
        dim = mlir.integer_of(raw.attributes["dimension"]) if "dimension" in raw.attributes else -1
        return bool(shape) and shape[dim] == 1
    types = [value.type for value in raw.operands]
    if raw.name == names.OPTIMIZATION_BARRIER and not all(map(mlir.is_ranked_tensor, types)):  # tokens are of an order
        return False
    return [value.type for value in raw.results] == types and not mlir.attributes_of(raw)


def location_of(raw: mlir.RawOperation) -> str:
    """The source line of an operation ("llama.py:260"), or the module's own ("line 12")."""
    file, line, _ = mlir.file_position(raw.location)
    return f"{file.rsplit('/', 1)[-1]}:{line}" if file not in ("", mlir.PARSE_BUFFER) else f"line {line}"


def _captures(raw: mlir.RawOperation, env: dict[mlir.RawValue, ValueId]) -> dict[mlir.RawValue, ValueId]:
    """What the regions of an operation take from around it."""
    read = (value for inner in mlir.operations_within(raw)[1:] for value in inner.operands)
    return {value: env[value] for value in read if value in env}


def ops_within(ops: Sequence[Op]) -> list[Op]:
    """Operations and all that stand in their regions."""
    found: list[Op] = []
    for op in ops:
        found += [op, *(inner for body in op.bodies for inner in ops_within(body.ops))]
    return found


# --- positions of scatters ---
#
# Where the scatters of a module are, and which of them a result depends on.


@dataclass(frozen=True)
class ScatterPosition:
    """Where a scatter is: its number in program order from 1, its function, and its source or module position."""

    number: int
    function: str
    location: str

    def __str__(self) -> str:
        return f"scatter {self.number} at {self.location} in @{self.function}"


def scatters_of(module: mlir.RawModule) -> list[mlir.RawOperation]:
    """The scatters of a module, in the order in which they are printed."""
    return mlir.find_named(module.operation, (names.SCATTER,))[0]


def position_of(scatter: mlir.RawOperation, number: int) -> ScatterPosition:
    """The position of the scatter of this number."""
    around = scatter
    while around.name != "func.func":
        around = around.parent.operation
    return ScatterPosition(number, mlir.symbol_name(around.attributes["sym_name"]), location_of(scatter))


def scatters_on_path(program: Program, body: Body, result: int) -> tuple[ScatterPosition, ...]:
    """The scatters that a result of a public function depends on, through calls and regions."""
    found: dict[int, mlir.RawOperation] = {}
    seen: set[Op] = set()
    pending = [body.returned[result]]
    while pending:
        op = program.makers[pending.pop()]
        if op is not None and op not in seen:
            seen.add(op)
            scatters = (inner.raw for inner in ops_within([op]) if inner.name == names.SCATTER)
            found.update((program.scatter_numbers[raw], raw) for raw in scatters)
            pending.extend(op.reads)
    return tuple(position_of(found[number], number) for number in sorted(found))
