"""Take a region out: its ops become the body of a private function, and a composite that names it takes their place.

Nothing is computed differently: a composite means what its decomposition computes. Regions that are the same but for
their inputs share one function.
"""

from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, field

from hlo_lower.ir import mlir
from hlo_lower.ir.view import Function, Graph, Node
from hlo_lower.named.match.matches import AttributeValue, Match
from hlo_lower.named.take_out.region import (
    BlockOrder,
    Name,
    RawOperation,
    RawValue,
    Region,
    name_of,
    operations_to_move,
)
from hlo_lower.ops.cleanup import erase_uncalled
from hlo_lower.ops.names import COMPOSITE
from hlo_lower.ops.vocabulary import BY_NAME, PREFIX, VERSION


def written_attributes(match: Match) -> dict[str, AttributeValue]:
    """All attributes of an op's composite: those that were found, the defaults of others, the names of its operands."""
    defaults = {one.name: one.default for one in BY_NAME[match.name].attributes if one.default not in (None, "")}
    return {**defaults, **match.attributes, "operands": tuple(match.inputs)}  # pyright: ignore[reportReturnType]


@dataclass(frozen=True, eq=False)
class Outlined:
    """A region that was taken out."""

    composite: RawOperation  # what stands in its place
    # the function that now holds its operations; None where one does the same already, and they are gone
    function: RawOperation | None = None
    # what stands in the function for values that the operations took
    instead: Mapping[RawValue, RawValue] = field(default_factory=dict[RawValue, RawValue])


@dataclass(eq=False)
class Outliner:
    """Takes regions out of a module."""

    graph: Graph  # the module
    # the decompositions that were made, by what they compute, and by kinds of regions
    functions: dict[Hashable, str] = field(default_factory=dict[Hashable, str])
    _counts: dict[str, int] = field(default_factory=dict[str, int])
    _made: dict[str, dict[str, mlir.RawAttribute]] = field(default_factory=dict[str, dict[str, mlir.RawAttribute]])
    # what is taken out and not needed, and constants that were copied, by what they are known
    _gone: dict[Name, RawOperation] = field(default_factory=dict[Name, RawOperation])
    _copied: dict[Name, RawOperation] = field(default_factory=dict[Name, RawOperation])

    def outline(self, region: Region, order: BlockOrder) -> Outlined | None:
        """Put a composite in the place of a region; None where it is no longer possible."""
        after = operations_to_move(region, order)
        if after is None:
            return None
        key = region.kind if region.kind in self.functions else _key(region)
        known = self.functions.get(key)
        name = known or self._free_name(region.match.name)
        composite = self._composite(region, name)
        _use_instead(region, composite.results, is_erased=known is not None)
        _move_behind(after, composite)
        place = order.place(region.operations[-1])
        self._copied.update(region.kept)
        order.remove_all(region.own_names)
        order.put(place, composite, after)
        self.functions[region.kind] = self.functions[key] = name
        if known is not None:
            self._gone.update(zip(region.own_names, region.own, strict=True))
            return Outlined(composite)
        return Outlined(composite, *self._function(region, name))

    def name_call(self, call: RawOperation, match: Match, order: BlockOrder) -> RawOperation:
        """Put a composite in the place of a call, whose function is its decomposition."""
        composite = mlir.put_instead(call, COMPOSITE, self._attributes(match, Node(call).callee))
        place = order.place(call)
        order.remove_all([name_of(call)])
        order.put(place, composite)
        self._gone[name_of(call)] = call
        return composite

    def finish(self) -> None:
        """Erase what was taken out and is not needed: until then values that stood there can be asked for."""
        copied = {name: operation for name, operation in self._copied.items() if name not in self._gone}
        mlir.discard(list(self._gone.values()))
        for value in reversed(copied):
            if not mlir.is_used(value):
                copied[value].erase()
        self.graph.forget()

    def _composite(self, region: Region, function: str) -> RawOperation:
        last = region.operations[-1]
        return mlir.create_operation(
            COMPOSITE,
            list(region.inputs),
            [value.type for value in region.results],
            self._attributes(region.match, function),
            location=last.location,
            insertion_point=mlir.insert_after(last),
        )

    def _function(self, region: Region, name: str) -> tuple[RawOperation, Mapping[RawValue, RawValue]]:
        """A private function of the region's operations, which are moved into it; constants that stay are copied."""
        location = region.operations[-1].location
        types = [value.type for value in region.inputs]
        function, block = mlir.private_function(self.graph.module, name, types, location)
        instead = dict(zip(region.inputs, block.arguments, strict=True))
        instead.update({other: instead[value] for other, value in region.aliases.items() if value in instead})
        for operation, is_own in zip(region.operations, region.are_own, strict=True):
            if not is_own:
                copy = mlir.clone_into(operation, block, instead)
                instead.update(zip(operation.results, copy.results, strict=True))
                continue
            block.append(operation)
            for inner in mlir.operations_within(operation):
                for number, operand in enumerate(inner.operands):
                    if operand in instead:
                        inner.operands[number] = instead[operand]
        returned = [instead.get(value, value) for value in region.results]
        mlir.create_operation("func.return", returned, [], location=location, insertion_point=mlir.insert_at_end(block))
        mlir.set_signature(function)
        return function, instead

    def _attributes(self, match: Match, function: str) -> dict[str, mlir.RawAttribute]:
        """The attributes of a composite, made once for all that have the same function."""
        known = self._made.get(function)
        if known is None:
            entries = {name: mlir.plain_attribute(value) for name, value in written_attributes(match).items()}
            known = self._made[function] = {
                "name": mlir.string_attribute(f"{PREFIX}{match.name}"),
                "composite_attributes": mlir.dictionary_attribute(entries),
                "decomposition": mlir.parse_attribute(f'@"{function}"'),
                "version": mlir.parse_attribute(f"{VERSION} : i32"),
            }
        return known

    def _free_name(self, name: str) -> str:
        while True:
            count = self._counts.get(name, 0)
            self._counts[name] = count + 1
            found = f"{PREFIX}{name}.impl" + (f"_{count}" if count else "")
            if found not in self.graph.functions:
                return found


def _use_instead(region: Region, results: list[RawValue], *, is_erased: bool) -> None:
    """Let what stands outside of a region take the results of the composite; what is erased may take them as well."""
    for old, new in zip(region.results, results, strict=True):
        if is_erased:
            old.replace_all_uses_with(new)
            continue
        for use in list(old.uses):
            if not region.holds(owner := use.owner.operation):
                owner.operands[use.operand_number] = new


def _move_behind(after: Sequence[RawOperation], composite: RawOperation) -> None:
    """Move what takes something of the composite, and stood before its end, behind it."""
    last = composite
    for operation in after:
        operation.move_after(last)
        last = operation


def _key(region: Region) -> Hashable:
    numbers: dict[RawValue, int] = {}
    for value in region.inputs:
        numbers.setdefault(value, len(numbers))
    for other, value in region.aliases.items():
        numbers[other] = numbers.get(value, -1)
    lines: list[Hashable] = [
        region.match.name,
        tuple(sorted(region.match.attributes.items())),
        tuple(region.match.inputs),
    ]
    lines.append(tuple(value.type for value in region.inputs))
    for operation in region.operations:
        lines.append(_line(operation, numbers))
    lines.append(tuple(numbers[value] for value in region.results))
    return tuple(lines)


def _line(operation: RawOperation, numbers: dict[RawValue, int]) -> Hashable:
    taken = tuple(numbers.get(value, -1) for value in operation.operands)
    for value in operation.results:
        numbers[value] = len(numbers)
    inner: list[Hashable] = []
    for region in operation.regions:
        for block in region.blocks:
            for argument in block.arguments:
                numbers[argument] = len(numbers)
            inner += [_line(op.operation, numbers) for op in block.operations]
    types = tuple(value.type for value in operation.results)
    return operation.name, taken, mlir.attribute_key(operation), types, tuple(inner)


def inline_graph(graph: Graph, only: Collection[str] | None = None) -> int:
    """Write the named ops of these names, by default all, out in place; how many there were."""
    count, unnamed = 0, set[str]()
    while found := [node for node in graph.callers if node.name == COMPOSITE and _is_named(node, only)]:
        for node in found:
            function = graph.functions[node.body_name]
            unnamed.add(function.name)
            write_out(node, function)
        count += len(found)
        graph.forget()
    erase_uncalled(graph, unnamed)
    graph.forget()
    return count


def _is_named(node: Node, only: Collection[str] | None) -> bool:
    name = mlir.symbol_name(node.raw.attributes["name"])
    return name.startswith(PREFIX) and (only is None or name.removeprefix(PREFIX) in only)


def write_out(node: Node, function: Function) -> None:
    """Put the ops of its decomposition in the place of one composite, or a call of a function of the module's own."""
    raw = node.raw
    if function.name.startswith(PREFIX):
        mlir.inline_call(raw, function.node.raw)
    else:
        mlir.put_instead(raw, "func.call", {"callee": raw.attributes["decomposition"]})
        raw.erase()
