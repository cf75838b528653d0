"""What alignment cannot see, compared as it stands: public functions, signatures, attributes, effects.

A function's arguments may be donated or aliased, and lie on several devices; a result may be promised in a memory or a
sharding. Two modules that compute the same and promise otherwise are not the same to whoever calls them. For one device
a sharding promises nothing: there is one place.
"""

from hlo_lower import mlir
from hlo_lower.verify.align import BodyPair
from hlo_lower.verify.partitions import SHARDY, device_count
from hlo_lower.verify.program import Program, is_public

_COMPUTED = frozenset({"sym_name", "function_type", "arg_attrs", "res_attrs"})
"""Attributes of a function that are compared in their parts."""


def interface_differences(first: Program, second: Program) -> list[str]:
    """How the interfaces of two modules of one context differ, a line each."""
    mine, theirs = _public(first), _public(second)
    ignored = SHARDY if all(device_count(program.raw) == 1 for program in (first, second)) else ""
    found = [f"@{name} is public in the first version only" for name in mine if name not in theirs]
    found += [f"@{name} is public in the second version only" for name in theirs if name not in mine]
    for name, function in mine.items():
        if name in theirs:
            found.extend(f"@{name}: {what}" for what in _differences(function, theirs[name], ignored))
    return found + _of_modules(first, second)


def effect_differences(pair: BodyPair) -> list[str]:
    """How the operations with effects of two aligned bodies differ; their operands are compared as what is returned."""
    mine, theirs = pair.first.effects, pair.second.effects
    names = [[op.short_name for op in ops] for ops in (mine, theirs)]
    if names[0] != names[1]:
        told = " and ".join(", ".join(n) or "none" for n in names)
        return [f"{' > '.join(pair.where)}: operations with effects: {told}"]
    return [
        f"{' > '.join(pair.where)}: {a.short_name} with other attributes"
        for a, b in zip(mine, theirs, strict=True)
        if a.attributes != b.attributes
    ]


def _public(program: Program) -> dict[str, mlir.RawOperation]:
    return {name: function for name, function in program.functions.items() if is_public(function)}


def _differences(first: mlir.RawOperation, second: mlir.RawOperation, ignored: str) -> list[str]:
    types = [str(f.attributes["function_type"]) for f in (first, second)]
    if types[0] != types[1]:
        return [f"type {types[0]}, and {types[1]} in the second version"]
    found: list[str] = []
    for what, key in (("argument", "arg_attrs"), ("result", "res_attrs")):
        mine, theirs = (_attributes(f, key, ignored) for f in (first, second))
        for place in range(max(len(mine), len(theirs))):
            a = mine[place] if place < len(mine) else {}
            b = theirs[place] if place < len(theirs) else {}
            found.extend(_changed(f"{what} {place}", a, b))
    own = [{n: a for n, a in mlir.attributes_of(f).items() if n not in _COMPUTED} for f in (first, second)]
    return found + _changed("function", own[0], own[1])


def _attributes(function: mlir.RawOperation, key: str, ignored: str) -> list[dict[str, mlir.RawAttribute]]:
    """What is said of each argument or result, but for one attribute."""
    if key not in function.attributes:
        return []
    said = (mlir.entries_of(entry) for entry in function.attributes[key])
    return [{name: attribute for name, attribute in entry.items() if name != ignored} for entry in said]


def _changed(what: str, mine: dict[str, mlir.RawAttribute], theirs: dict[str, mlir.RawAttribute]) -> list[str]:
    found = [f"{what} loses {n} = {a}" for n, a in mine.items() if n not in theirs]
    found += [f"{what} gains {n} = {a}" for n, a in theirs.items() if n not in mine]
    return found + [
        f"{what} has {n} = {a}, and {theirs[n]} in the second version"
        for n, a in mine.items()
        if n in theirs and theirs[n] != a
    ]


def _of_modules(first: Program, second: Program) -> list[str]:
    mine, theirs = (
        {n: a for n, a in mlir.attributes_of(program.raw.operation).items() if n != "sym_name"}
        for program in (first, second)
    )
    return _changed("module", mine, theirs)
