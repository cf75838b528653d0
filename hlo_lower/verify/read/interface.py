"""What alignment cannot see, compared as it stands: public functions, signatures, attributes, effects.

A function's arguments may be donated or aliased, and lie on several devices; a result may be promised in a memory or a
sharding. Two modules that compute the same and promise otherwise are not the same to whoever calls them. For one device
a sharding promises nothing: there is one place.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeAlias

from hlo_lower.ir import mlir
from hlo_lower.ops.spec import PARTITIONS, REPLICAS, SHARDY
from hlo_lower.verify.align.align import BodyPair, Region, Side, regions_of
from hlo_lower.verify.read.numbering import Number
from hlo_lower.verify.read.partitions import is_for_one_device, is_of_places
from hlo_lower.verify.read.program import Body, Composite, Op, Program, ValueId, location_of, ops_within

_COMPUTED = frozenset({"sym_name", "function_type", "arg_attrs", "res_attrs"})
"""Attributes of a function that are compared in their parts."""


def interface_differences(first: Program, second: Program, *, one_device: bool = False) -> list[str]:
    """How the interfaces of two modules of one context differ, a line each.

    Args:
      first, second: the two.
      one_device: whether the second one may be for one device where the first one is for several.
    """
    mine, theirs = _public(first), _public(second)
    is_alone = all(is_for_one_device(program.raw) for program in (first, second))

    def ignored(name: str, attribute: mlir.RawAttribute) -> bool:
        return (is_alone and name == SHARDY) or (one_device and is_of_places(name, attribute))

    found = [f"@{name} is public in the first version only" for name in mine if name not in theirs]
    found += [f"@{name} is public in the second version only" for name in theirs if name not in mine]
    for name, function in mine.items():
        if name in theirs:
            found.extend(f"@{name}: {what}" for what in _differences(function, theirs[name], ignored))
    return found + _of_modules(first, second, one_device=one_device)


def effect_differences(pair: BodyPair) -> list[str]:
    """How the operations with effects of two aligned bodies differ; their operands are compared as what is returned."""
    mine, theirs = pair.first.effects, pair.second.effects
    names = [[op.short_name for op in ops] for ops in (mine, theirs)]
    if names[0] != names[1]:
        told = " and ".join(", ".join(n) or "none" for n in names)
        return [f"{' > '.join(pair.where)}: operations with effects: {told}"]
    told = ((a, _other_effect(pair, a, b)) for a, b in zip(mine, theirs, strict=True))
    return [f"{' > '.join(pair.where)}: {a.short_name} with other {what}" for a, what in told if what]


def _other_effect(pair: BodyPair, a: Op, b: Op) -> str:
    """What two operations with effects do not have in common, operands aside; "" where they do.

    Bodies that are aligned are compared on their own.
    """
    if a.attributes != b.attributes:
        return "attributes"
    sides = (pair.first, a), (pair.second, b)
    types = [[[side.program.types[v] for v in values] for values in (op.inputs, op.results)] for side, op in sides]
    if types[0] != types[1]:
        return "operands or results"
    bodies = [
        [side.table.region(side.program, i, side.numbers, side.depth + 1) for i in op.bodies] for side, op in sides
    ]
    return "" if bodies[0] == bodies[1] or (a, b) in pair.within else "bodies"


def _public(program: Program) -> dict[str, mlir.RawOperation]:
    return {name: function for name, function in program.functions.items() if mlir.is_public(function)}


_Ignored: TypeAlias = Callable[[str, mlir.RawAttribute], bool]


def _differences(first: mlir.RawOperation, second: mlir.RawOperation, ignored: _Ignored) -> list[str]:
    types = [str(f.attributes["function_type"]) for f in (first, second)]
    if types[0] != types[1]:
        return [f"type {types[0]}, and {types[1]} in the second version"]
    found: list[str] = []
    for what, key in (("argument", "arg_attrs"), ("result", "res_attrs")):
        mine, theirs = (_attributes(f, key, ignored) for f in (first, second))
        for place in range(max(len(mine), len(theirs))):
            a = mine[place] if place < len(mine) else {}
            b = theirs[place] if place < len(theirs) else {}
            found.extend(_attribute_changes(f"{what} {place}", a, b))
    own = [{n: a for n, a in mlir.attributes_of(f).items() if n not in _COMPUTED} for f in (first, second)]
    return found + _attribute_changes("function", own[0], own[1])


def _attributes(function: mlir.RawOperation, key: str, ignored: _Ignored) -> list[dict[str, mlir.RawAttribute]]:
    """What is said of each argument or result, but for what is ignored."""
    if key not in function.attributes:
        return []
    said = (mlir.entries_of(entry) for entry in function.attributes[key])
    return [{name: attribute for name, attribute in entry.items() if not ignored(name, attribute)} for entry in said]


def _attribute_changes(
    what: str, mine: dict[str, mlir.RawAttribute], theirs: dict[str, mlir.RawAttribute]
) -> list[str]:
    found = [f"{what} loses {n} = {a}" for n, a in mine.items() if n not in theirs]
    found += [f"{what} gains {n} = {a}" for n, a in theirs.items() if n not in mine]
    return found + [
        f"{what} has {n} = {a}, and {theirs[n]} in the second version"
        for n, a in mine.items()
        if n in theirs and theirs[n] != a
    ]


def _of_modules(first: Program, second: Program, *, one_device: bool) -> list[str]:
    def is_compared(name: str, attribute: mlir.RawAttribute) -> bool:
        of_devices = name in (PARTITIONS, REPLICAS) or is_of_places(name, attribute)
        return name != "sym_name" and not (one_device and of_devices)

    mine, theirs = (
        {n: a for n, a in mlir.attributes_of(program.raw.operation).items() if is_compared(n, a)}
        for program in (first, second)
    )
    return _attribute_changes("module", mine, theirs) + [
        f"module has {mesh}, and {other} in the second version"
        for name, mesh in _meshes(first).items()
        if (other := _meshes(second).get(name, mesh)) != mesh
    ]


def _meshes(program: Program) -> dict[str, str]:
    """The meshes of a module, which its shardings name."""
    meshes = mlir.meshes(program.raw.operation)
    return {mlir.symbol_name(mesh.attributes["sym_name"]): str(mesh) for mesh in meshes}


# --- composites ---
#
# Composites that became others: whoever knows the name of one computes by it, and not by what it stands for.
#
# Both versions are read with their composites written out (`hlo_lower.verify.read.program`), as each is what its
# decomposition computes: so one may be written out, operations may become one, and a wrong decomposition differs as any
# operations do. What a consumer sees beside that is compared here: name, attributes, operands.
#
#     %r = composite "my.norm" %x {epsilon = 1.0e-5}      %r = composite "my.norm" %x {epsilon = 1.0e-3}
#
# Two composites stand at one place where they give values that both versions have, or else within one region. At each
# place as many as are lost may be written out, and as many as come in may be new; where some are lost and others come
# in, one became another.


_Place: TypeAlias = tuple[object, ...]
_Seen: TypeAlias = tuple[Composite, tuple[Number | None, ...] | None]
"""A composite, and the numbers of its operands; None where the two versions cannot be compared in these."""


def composite_differences(pairs: Sequence[BodyPair]) -> list[str]:
    """The composites of the second version that are others than those of the first one, a line each.

    Args:
      pairs: the aligned bodies of a function.
    """
    found: list[str] = []
    aligned = {side.body for pair in pairs for side in (pair.first, pair.second)}
    for pair in pairs:
        regions = regions_of([pair])
        mine, theirs = (dict(_by_place(pair, side, regions, aligned)) for side in (pair.first, pair.second))
        for place in theirs:
            told = _others(mine.get(place, []), theirs[place])
            found.extend(f"{' > '.join(pair.where)}: {what}" for what in told)
    return list(dict.fromkeys(found))


def _others(mine: Sequence[_Seen], theirs: Sequence[_Seen]) -> Iterator[str]:
    """What became another one at one place."""
    before, after = (Counter(composite.attributes for composite, _ in seen) for seen in (mine, theirs))
    for composite, operands in theirs:
        told = f"composite {composite.raw.attributes['name']} at {location_of(composite.raw)}"
        known = [taken for other, taken in mine if other.attributes == composite.attributes]
        if before - after and composite.attributes in after - before:
            yield f"{told}: the first version has none of this name and these attributes there"
        elif known and None not in (operands, *known) and operands not in known:
            yield f"{told}: the first version has none of these operands there"


def _by_place(pair: BodyPair, side: Side, regions: Sequence[Region], aligned: set[Body]) -> dict[_Place, list[_Seen]]:
    """The composites of a body, and of the bodies within that are not aligned on their own, by place."""
    found: dict[_Place, list[_Seen]] = defaultdict(list)
    within = {
        op: place
        for place, region in enumerate(regions)
        for op in ops_within(region.first if side is pair.first else region.second)
    }

    def visit(body: Body, numbers: Mapping[ValueId, Number], way: _Place, has: Callable[[Number | None], bool]) -> None:
        for composite in body.composites:
            taken = tuple(_number(numbers, value) for value in composite.inputs)
            for value in composite.results:
                number, maker = _number(numbers, value), side.program.makers[value]
                if number is not None and has(number):
                    found[*way, number].append((composite, taken if all(map(has, taken)) else None))
                elif maker in within:
                    found["region", within[maker]].append((composite, None))
        for op in body.ops:
            own = tuple(_number(numbers, value) for value in op.results)
            is_common = all(map(has, own))
            for place, inner in enumerate(op.bodies):
                if inner not in aligned and None not in own:
                    inside, _ = side.table.within(side.program, inner, numbers, side.depth + 1 + len(way) // 2)
                    visit(
                        inner, inside, (*way, own, place), lambda number, known=is_common: known and number is not None
                    )

    def both_have(number: Number | None) -> bool:
        return number is not None and pair.first.has(number) and pair.second.has(number)

    visit(side.body, side.numbers, (), both_have)
    return found


def _number(numbers: Mapping[ValueId, Number], value: ValueId) -> Number | None:
    """The number of a value; None where nothing that is returned depends on it."""
    try:
        return numbers[value]
    except KeyError:
        return None
