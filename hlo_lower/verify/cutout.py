"""Cut each scatter out of a module, with the producers of its indices, as a module of its own.

    main(operands..., updates..., leaves...) -> results of the scatter
    main(leaves...) -> its indices                          (a second module, to know what was hit)

The index producers that the tool reasons about are copied, so that what it proves of the indices it can prove again;
whatever else they need is a leaf. An argument of a private function is followed to the caller, one cut-out per call
site. The scatter itself is copied as it is, region and attributes. What has a dynamic shape is a leaf, too, so a
scatter of dynamic shape comes with its indices as an argument (see `instances`).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from hlo_lower import mlir
from hlo_lower.scatter.spread import HINT, spread_dims
from hlo_lower.scatter.uniform import constant_dims
from hlo_lower.verify.partitions import drop_notes, is_note

FOLLOWED = frozenset(
    f"stablehlo.{name}"
    for name in (
        *("constant", "iota", "broadcast_in_dim", "reshape", "transpose", "slice", "concatenate", "reverse", "convert"),
        *("add", "subtract", "multiply", "negate", "clamp", "minimum", "maximum", "remainder", "divide", "sign", "abs"),
        *("compare", "select", "and", "or", "not", "xor", "shift_left", "shift_right_arithmetic"),
        *("shift_right_logical", "sort", "gather", "reduce_window"),
    )
)
"""Ops that are copied when they produce indices; StableHLO's `abs` and `sign` occur in remainders, and an argsort is
known for a permutation."""

MAX_CALL_SITES = 8
"""Call paths to one scatter that are cut out apart; more of them are represented by the first ones."""

MAX_STEPS = 150
"""Longest chain of producers that is copied, by recursion; beyond it a value is a leaf."""

_CALLS = ("callee", "decomposition")
"""Attributes that name a function, of a call and of a composite."""

_OWN_ATTRIBUTES = frozenset({"scatter_dimension_numbers", "indices_are_sorted", "unique_indices"})


@dataclass(frozen=True)
class Leaf:
    """A value that an index computation starts from.

    Attributes:
      main_argument: the number of the entry point's argument that it is, or None.
    """

    main_argument: int | None


@dataclass(frozen=True)
class Cutout:
    """A scatter on its own.

    Attributes:
      text: the module with the scatter.
      indices_text: the module that computes its indices from the leaves.
      arity: number of operands.
      leaves: the leaves, in the order of the arguments; index leaves first, values that the region captures behind.
      index_leaves: how many of them the indices depend on.
      same_along: for each update the dims along which all its elements are the same, as they are in the module.
    """

    text: str
    indices_text: str
    arity: int
    leaves: tuple[Leaf, ...]
    index_leaves: int
    same_along: tuple[frozenset[int], ...]


@dataclass(frozen=True)
class Place:
    """Where a scatter is: its number in program order from 1, its function, and its source or module position."""

    number: int
    function: str
    location: str

    def __str__(self) -> str:
        return f"scatter {self.number} at {self.location} in @{self.function}"


def location_of(op: mlir.RawOperation) -> str:
    """The source line of an operation ("llama.py:260"), or the module's own ("line 12")."""
    file, line, _ = mlir.file_position(op.location)
    return f"{file.rsplit('/', 1)[-1]}:{line}" if file not in ("", mlir.PARSE_BUFFER) else f"line {line}"


class ModuleIndex:
    """Scatters, functions and calls of a module."""

    def __init__(self, module: mlir.RawModule) -> None:
        self.module = module
        self.scatters: list[mlir.RawOperation] = []
        self.functions: dict[str, mlir.RawOperation] = {}
        self.calls: dict[str, list[mlir.RawOperation]] = {}
        mlir.walk(module.operation, self._visit)

    def _visit(self, op: mlir.RawOperation) -> None:
        if op.name == "stablehlo.scatter":
            self.scatters.append(op)
        elif op.name == "func.func":
            self.functions[mlir.symbol_name(op.attributes["sym_name"])] = op
        elif op.name == "func.call":
            self.calls.setdefault(mlir.symbol_name(op.attributes["callee"]), []).append(op)

    def place(self, number: int) -> Place:
        """The place of the scatter of this number."""
        op = self.scatters[number - 1]
        return Place(number, mlir.symbol_name(function_of(op).attributes["sym_name"]), location_of(op))

    def call_paths(self, function: mlir.RawOperation) -> list[tuple[mlir.RawOperation, ...]]:
        """Ways from a public function to this one, innermost call first; at most one more than `MAX_CALL_SITES`."""
        paths: list[tuple[mlir.RawOperation, ...]] = []

        def extend(current: mlir.RawOperation, path: tuple[mlir.RawOperation, ...]) -> None:
            name = mlir.symbol_name(current.attributes["sym_name"])
            if len(paths) > MAX_CALL_SITES:
                return
            calls = [] if is_public(current) or len(path) > 32 else self.calls.get(name, [])
            if not calls:
                paths.append(path)
            for call in calls:
                extend(function_of(call), (*path, call))

        extend(function, ())
        return paths


def is_public(function: mlir.RawOperation) -> bool:
    """Whether a function is visible from outside."""
    attributes = function.attributes
    return "sym_visibility" not in attributes or mlir.symbol_name(attributes["sym_visibility"]) == "public"


def function_of(op: mlir.RawOperation) -> mlir.RawOperation:
    """The function around an operation."""
    current = op
    while current.name != "func.func":
        current = current.parent.operation
    return current


def cut_out(index: ModuleIndex, number: int) -> Iterator[Cutout]:
    """The cut-outs of a scatter, one per call path to it.

    Raises:
      ValueError: one of its types is no ranked tensor.
    """
    scatter = index.scatters[number - 1]
    for value in scatter.operands:
        if mlir.read_tensor_type(value.type) is None:
            raise ValueError(f"unranked type {value.type}")
    same_along = tuple(constant_dims(value) for value in list(scatter.operands)[len(scatter.results) + 1 :])
    for path in index.call_paths(function_of(scatter))[:MAX_CALL_SITES]:
        with mlir.active(index.module.context):
            whole = _Copy(index, path)
            text = whole.scatter_module(scatter)
            alone = _Copy(index, path)
            indices_text = alone.indices_module(scatter)
        yield Cutout(text, indices_text, len(scatter.results), tuple(whole.leaves), len(alone.leaves), same_along)


class _Copy:
    """One new module with one public function, filled by copying."""

    def __init__(self, index: ModuleIndex, path: Sequence[mlir.RawOperation]) -> None:
        self._index = index
        self._path = tuple(path)
        self._module = mlir.parse_module("module {}", index.module.context)
        self._location = mlir.unknown_location(index.module.context)
        self._function = mlir.create_operation(
            "func.func",
            [],
            [],
            {"sym_name": mlir.parse_attribute('"main"'), "function_type": mlir.parse_attribute("() -> ()")},
            regions=1,
            location=self._location,
            insertion_point=mlir.insert_at_end(self._module.body),
        )
        self._block = mlir.append_block(self._function, 0, [], self._location)
        self._copied: dict[tuple[object, tuple[object, ...]], mlir.RawValue] = {}
        self.leaves: list[Leaf] = []

    def scatter_module(self, scatter: mlir.RawOperation) -> str:
        """main(operands, updates, leaves) -> the scatter's results."""
        arity = len(scatter.results)
        operands = list(scatter.operands)
        tensors = {i: self._argument(operands[i].type) for i in range(len(operands)) if i != arity}
        indices = self._copy(operands[arity], self._path, 0)
        mapped = {value: self._captured(value) for value in _captures(scatter)}
        self._copy_callees(scatter)
        copy = mlir.clone_into(scatter, self._block, mapped)
        for name in [n for n in mlir.attributes_of(copy) if n not in _OWN_ATTRIBUTES]:
            del copy.attributes[name]
        # The form that it is lowered to may depend on where its operand lies (`hlo_lower.scatter.spread`).
        dims = spread_dims(scatter)
        if dims is None or dims:
            told = "unknown" if dims is None else ",".join(map(str, sorted(dims)))
            copy.attributes["mhlo.frontend_attributes"] = mlir.parse_attribute(f'{{{HINT} = "{told}"}}')
        for i in range(len(operands)):
            copy.operands[i] = indices if i == arity else tensors[i]
            if i > arity:  # the form may depend on what is the same everywhere (`hlo_lower.scatter.uniform`)
                copy.operands[i] = self._same_along(tensors[i], constant_dims(operands[i]), copy)
        return self._finish(list(copy.results))

    def indices_module(self, scatter: mlir.RawOperation) -> str:
        """main(leaves) -> the scatter's indices."""
        return self._finish([self._copy(scatter.operands[len(scatter.results)], self._path, 0)])

    def _same_along(self, value: mlir.RawValue, dims: frozenset[int], before: mlir.RawOperation) -> mlir.RawValue:
        """The first element of a tensor along some dims, everywhere along them."""
        shape = [size or 0 for size in mlir.tensor_shape(value.type)]
        dims = frozenset(d for d in dims if shape[d] > 1)
        if not dims:
            return value
        element = mlir.tensor_element(value.type)
        cut = [1 if d in dims else size for d, size in enumerate(shape)]
        bounds = {"start_indices": [0] * len(shape), "limit_indices": cut, "strides": [1] * len(shape)}
        steps = (
            ("slice", mlir.tensor_type(cut, element), bounds),
            ("broadcast_in_dim", value.type, {"broadcast_dimensions": list(range(len(shape)))}),
        )
        for name, result, attributes in steps:
            made = mlir.create_operation(
                f"stablehlo.{name}",
                [value],
                [result],
                {key: mlir.dense_i64(numbers) for key, numbers in attributes.items()},
                location=self._location,
                insertion_point=mlir.insert_before(before),
            )
            value = made.results[0]
        return value

    # --- values ---

    def _argument(self, raw_type: mlir.RawType) -> mlir.RawValue:
        return self._block.add_argument(raw_type, self._location)

    def _leaf(self, value: mlir.RawValue) -> mlir.RawValue:
        number = None
        if mlir.is_block_argument(value):
            owner = value.owner.owner.operation
            if owner.name == "func.func" and is_public(owner):
                number = mlir.argument_number(value)
        self.leaves.append(Leaf(number))
        return self._argument(value.type)

    def _captured(self, value: mlir.RawValue) -> mlir.RawValue:
        constant = not mlir.is_block_argument(value) and value.owner.name == "stablehlo.constant"
        return self._clone(value.owner.operation, value, (), {}) if constant else self._leaf(value)

    def _copy(self, value: mlir.RawValue, path: tuple[mlir.RawOperation, ...], depth: int) -> mlir.RawValue:
        """The copy of a value of a function that was entered by the first call of path."""
        key = (value, path)
        if key not in self._copied:
            self._copied[key] = self._make(value, path, depth)
        return self._copied[key]

    def _make(self, value: mlir.RawValue, path: tuple[mlir.RawOperation, ...], depth: int) -> mlir.RawValue:
        tensor = mlir.read_tensor_type(value.type)
        if depth > MAX_STEPS or tensor is None or not tensor.is_static:
            return self._leaf(value)
        if mlir.is_block_argument(value):
            if value.owner.owner.operation.name == "func.func" and path:
                return self._copy(path[0].operands[mlir.argument_number(value)], path[1:], depth + 1)
            return self._leaf(value)
        op = value.owner.operation
        if op.name == "func.call":
            callee = self._index.functions.get(mlir.symbol_name(op.attributes["callee"]))
            if callee is None or not len(callee.regions[0].blocks):
                return self._leaf(value)
            body = callee.regions[0].blocks[0].operations
            returned = body[len(body) - 1].operands[mlir.result_number(value)]
            return self._copy(returned, (op, *path), depth + 1)
        if is_note(op):  # it names a mesh that is not here, and says nothing of what an index is
            return self._copy(op.operands[0], path, depth + 1)
        if op.name not in FOLLOWED:
            return self._leaf(value)
        captured = {v: self._copy(v, path, depth + 1) for v in _captures(op)}
        return self._clone(op, value, [self._copy(v, path, depth + 1) for v in op.operands], captured)

    def _clone(
        self,
        op: mlir.RawOperation,
        value: mlir.RawValue,
        operands: Sequence[mlir.RawValue],
        captured: dict[mlir.RawValue, mlir.RawValue],
    ) -> mlir.RawValue:
        copy = mlir.clone_into(op, self._block, captured)
        for name in [n for n in mlir.attributes_of(copy) if "." in n]:  # a sharding names a mesh that is not here
            del copy.attributes[name]
        for i, operand in enumerate(operands):
            copy.operands[i] = operand
        return copy.results[mlir.result_number(value)]

    def _copy_callees(self, op: mlir.RawOperation) -> None:
        """Copy the functions that an operation's regions call, and those that they call."""
        pending, copied = [op], set[str]()
        while pending:
            called: list[str] = []

            def visit(inner: mlir.RawOperation, called: list[str] = called) -> None:
                called.extend(mlir.symbol_name(inner.attributes[key]) for key in _CALLS if key in inner.attributes)

            mlir.walk(pending.pop(), visit)
            for name in called:
                if name not in copied and name in self._index.functions:
                    copied.add(name)
                    mlir.clone_into(self._index.functions[name], self._module.body, {})
                    pending.append(self._index.functions[name])

    def _finish(self, results: Sequence[mlir.RawValue]) -> str:
        mlir.create_operation(
            "func.return",
            results,
            [],
            location=self._location,
            insertion_point=mlir.insert_at_end(self._block),
        )
        inputs = ", ".join(str(a.type) for a in self._block.arguments)
        outputs = ", ".join(str(v.type) for v in results)
        self._function.attributes["function_type"] = mlir.parse_attribute(f"({inputs}) -> ({outputs})")
        drop_notes(self._module.operation)
        return mlir.print_module(self._module)


def _captures(scatter: mlir.RawOperation) -> list[mlir.RawValue]:
    """The values that a scatter's region takes from around it."""
    inside: set[mlir.RawValue] = set()
    found: dict[mlir.RawValue, None] = {}

    def visit(op: mlir.RawOperation) -> None:
        for region in op.regions:
            for block in region.blocks:
                inside.update(block.arguments)
                for inner in block.operations:
                    found.update(dict.fromkeys(v for v in inner.operation.operands if v not in inside))
                    inside.update(inner.operation.results)
                    visit(inner.operation)

    visit(scatter)
    return list(found)
