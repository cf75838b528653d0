"""Unsigned integers that one version computes on signed ones of the same bits: both are read on signed ones.

A target without ui32 computes on i32 what the other version computes on ui32. A value of one type is never assumed to
be one of the other, so nothing between the arguments and the results would have a counterpart. Read on signed integers,
most ops are the same ones, as they give the same bits; the others stand between casts:

    %s = add %x, %y : ui32        ->   %s = add %x, %y : i32
    %q = divide %x, %y : ui32     ->   %q = bitcast(divide(bitcast %x, bitcast %y) : ui32) : i32

The modules are run as they were given.
"""

from collections.abc import Collection, Mapping, Sequence

from hlo_lower.ir import mlir
from hlo_lower.ops import names
from hlo_lower.ops.spec import CONTROL, MOVES, OPS, SIGNLESS
from hlo_lower.verify.align.appended_ops import OpsBeside

PASSING = CONTROL | {names.OPTIMIZATION_BARRIER, names.REDUCE, names.RETURN, "func.call", "func.func", "func.return"}
"""Ops that take and give values of any type; what their bodies compute is read, too."""


def read_on_signed(texts: Sequence[str]) -> list[str] | None:
    """Two versions on signed integers where one alone computes on unsigned ones, and the other casts their bits.

    None where both do or none does, and where such integers stand in a body that is kept, or are passed to a function
    that is named otherwise than by a call.
    """
    if not any("bitcast_convert" in text and ("xui" in text or "<ui" in text) for text in texts):
        return None  # nothing is parsed without a cast of the bits of unsigned integers
    context = mlir.shared_context(sum(map(len, texts)))
    with mlir.active(context):
        modules = [mlir.parse_module(text, context) for text in texts]
        (first, cast), (second, other) = map(_computed_and_cast, modules)
        becomes = {kind: kind.removeprefix("u") for kind in (first - second) & other | (second - first) & cast}
        if not becomes or not all(_Reading(module, becomes).is_done for module in modules):
            return None
        return [mlir.print_module(module, locations=True) for module in modules]


def _computed_and_cast(module: mlir.RawModule) -> tuple[set[str], set[str]]:
    """The unsigned element types that the ops of a module compute, and those whose bits it casts."""
    computed, cast = set[str](), set[str]()
    for op in mlir.operations_within(module.operation):
        if op.name == names.BITCAST_CONVERT:
            cast |= {_kind(op.operands[0]), _kind(op.results[0])}
        else:
            computed |= set(map(_kind, op.results))
    return {kind for kind in computed if kind.startswith("ui")}, {kind for kind in cast if kind.startswith("ui")}


def _kind(value: mlir.RawValue) -> str:
    tensor = mlir.read_tensor_type(value.type)
    return "" if tensor is None else tensor.element_name


class _Reading:
    """Puts a module on other element types of the same bits, in place.

    Attributes:
      is_done: whether it could be; the module is of no use else.
    """

    def __init__(self, module: mlir.RawModule, becomes: Mapping[str, str]) -> None:
        self._becomes = becomes
        self._changed: list[mlir.RawValue] = []
        functions = [op.operation for op in module.body.operations]
        self.is_done = all(map(self._read, functions))
        if self.is_done:
            self._give_types(functions)

    def _give_types(self, functions: Sequence[mlir.RawOperation]) -> None:
        """Give what changes its type, and take casts away that cast nothing any more."""
        for value in self._changed:
            mlir.set_type(value, self._changed_type(value))
        for value in self._changed:
            maker = mlir.producer(value)
            if maker is not None and maker.name == names.BITCAST_CONVERT and maker.operands[0].type == value.type:
                value.replace_all_uses_with(maker.operands[0])
        for function in functions:
            if function.name == "func.func":
                mlir.set_signature(function)

    def _is_of(self, values: Collection[mlir.RawValue]) -> bool:
        return any(_kind(value) in self._becomes for value in values)

    def _changed_type(self, value: mlir.RawValue) -> mlir.RawType:
        kind = _kind(value)
        return mlir.tensor_type(mlir.tensor_shape(value.type), self._becomes.get(kind, kind))

    def _change(self, values: Collection[mlir.RawValue]) -> None:
        self._changed += [value for value in values if _kind(value) in self._becomes]

    def _read(self, op: mlir.RawOperation) -> bool:
        """Note what changes of an op and of its bodies, and make the casts around what does not; whether it can be."""
        if op.name in PASSING:
            return self._read_passing(op)
        if not self._is_of([*mlir.taken_by(op), *op.results]):
            return not any(self._is_of(mlir.defined_by(inner)) for inner in mlir.operations_within(op)[1:])
        if _is_signless(op):
            moved = OPS[op.name].moved if op.name in MOVES else None
            self._cast_operands(op, [k for k in range(len(op.operands)) if moved is not None and k not in moved])
            self._change(op.results)
            self._rewrite_attributes(op)
            return True
        if mlir.symbols_in(op) or self._is_of(mlir.taken_by(op)[len(op.operands) :]):
            return False
        self._cast_operands(op, range(len(op.operands)))
        self._cast_values(op, [value for value in op.results if self._is_of([value])])
        return True

    def _read_passing(self, op: mlir.RawOperation) -> bool:
        """See `_read`; the arguments and results of a public function keep their types."""
        is_public = op.name == "func.func" and mlir.is_public(op)
        blocks = [block for region in op.regions for block in region.blocks]
        if op.name == "func.func" and not blocks:
            return False
        inner = [each.operation for block in blocks for each in block.operations]
        if not all(map(self._read, inner)):
            return False
        arguments = [argument for block in blocks for argument in block.arguments]
        if not is_public:
            self._change([*arguments, *op.results])
            return True
        self._cast_operands(inner[-1], range(len(inner[-1].operands)))
        first = blocks[0].operations[0].operation
        self._cast_values(first, [value for value in arguments if self._is_of([value])], before=True)
        return True

    def _cast_operands(self, op: mlir.RawOperation, places: Collection[int]) -> None:
        """Let an op take what it takes now: its operands are cast, as these change."""
        for place in places:
            if self._is_of([value := op.operands[place]]):
                op.operands[place] = OpsBeside(op).op(names.BITCAST_CONVERT, [value], value.type)

    def _cast_values(self, op: mlir.RawOperation, values: Sequence[mlir.RawValue], *, before: bool = False) -> None:
        """Keep the type of values, and let what uses them use what they are cast to, beside an op."""
        for value in values:
            uses = [(use.owner, use.operand_number) for use in value.uses]
            cast = OpsBeside(op, is_behind=not before).op(names.BITCAST_CONVERT, [value], value.type)
            self._changed.append(cast)
            for user, place in uses:
                user.operands[place] = cast

    def _rewrite_attributes(self, op: mlir.RawOperation) -> None:
        if op.name == names.COMPARE:
            op.attributes["compare_type"] = mlir.parse_attribute("#stablehlo<comparison_type SIGNED>")
        elif op.name == names.CONSTANT and (numbers := mlir.constant_value(op)) is not None:
            made = self._changed_type(op.results[0])
            shown = numbers.reshape(-1)[:1] if mlir.is_splat(op) else numbers
            op.attributes["value"] = mlir.dense_attribute(shown, made)


def _is_signless(op: mlir.RawOperation) -> bool:
    """Whether an op gives the same bits of signed and of unsigned integers."""
    if op.name == names.COMPARE:
        return mlir.enum_value(op.attributes["comparison_direction"]) in ("EQ", "NE")
    return op.name in SIGNLESS and (op.name != names.CONSTANT or mlir.constant_value(op) is not None)
