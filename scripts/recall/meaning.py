"""Whether a composite computes what it is named: its decomposition is run, and held against the op's definition.

This judge needs no list of near misses: whatever a recogniser takes for an op, in any module, has to be that op on
random operands, with its operands in their roles and its attributes as they are told.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from hlo_lower.ir import mlir
from hlo_lower.ir.reader import read
from hlo_lower.verify.run import Executable
from recall.definitions import DEFINITIONS

ROUNDED = {"f64": 1e-9, "f32": 1e-4, "f16": 2e-2, "bf16": 8e-2}
"""How far a result may lie from its definition, relative to the largest, by the element type that is coarsest."""


POSITIONS = ("positions", "position")
"""Operands that say where."""


@dataclass(frozen=True)
class NamedComposite:
    """A composite of a module.

    Attributes:
      op: its name without "hl.".
      attributes: without `operands`.
      operands: the names of its operands, in order.
      values: which operands are the same value: the first place of each.
      function: its decomposition.
    """

    op: str
    attributes: dict[str, Any]
    operands: tuple[str, ...]
    values: tuple[int, ...]
    function: str


def composites_of(text: str) -> list[NamedComposite]:
    """The composites of a raised module, one for each decomposition."""
    graph = read(text)
    found: dict[str, NamedComposite] = {}
    with mlir.active(graph.context):
        for operation in mlir.find_named(graph.module.operation, {"stablehlo.composite"})[0]:
            one = _composite(operation)
            found.setdefault(one.function, one)
    return list(found.values())


def wrong_meanings(text: str) -> Iterator[str]:
    """What the composites of a raised module do not compute, one line each; those without a definition are left out."""
    for composite in composites_of(text):
        if composite.op not in DEFINITIONS:
            continue
        alone = entered(text, composite.function)
        executable = Executable(alone, "quick")
        told = ", ".join(f"{key}={value!r}" for key, value in sorted(composite.attributes.items()))
        has_positions = any(name in POSITIONS for name in composite.operands)
        try:
            far = max(_distance(composite, executable, turn) for turn in range(3 if has_positions else 1))
        except (KeyError, ValueError, IndexError) as error:
            yield f"{composite.op}({told}) of {', '.join(composite.operands)}: {type(error).__name__}: {error}"
            continue
        tolerance = max((ROUNDED[element] for element in ROUNDED if re.search(rf"[<x]{element}>", alone)), default=0.0)
        if far > tolerance:
            yield f"{composite.op}({told}): {far:.3g} from its definition"


def _distance(composite: NamedComposite, executable: Any, turn: int) -> float:
    """How far what a decomposition gives is from its definition, on one drawing of operands."""
    arguments = [drawn(spec, place) for place, spec in zip(composite.values, executable.arguments, strict=True)]
    for place, name in enumerate(composite.operands):
        if name in POSITIONS:
            arguments[place] = positions_for(composite, executable.arguments, place, turn)
    if "variance" in composite.operands:
        same = composite.values[composite.operands.index("variance")]
        arguments = [np.abs(a) if composite.values[n] == same else a for n, a in enumerate(arguments)]
    given = {
        name: np.asarray(argument, np.complex128 if np.iscomplexobj(argument) else np.float64)
        for name, argument in zip(composite.operands, arguments, strict=False)
    }
    wanted = DEFINITIONS[composite.op](given, composite.attributes)
    return min(
        (
            _farthest(composite.op, results, one)
            for results in _runs(executable, composite, arguments)
            for one in (wanted if isinstance(wanted, list) else [wanted])
        ),
        default=np.inf,
    )


def _runs(executable: Any, composite: NamedComposite, arguments: list[Any]) -> Iterator[list[Any]]:
    """What a decomposition gives; one that takes the causal mask as an operand is given it, as it may be written."""
    places = [place for place, name in enumerate(composite.operands) if name == "causal_mask"]
    for written in _causal_masks(executable.arguments[places[0]], composite.attributes) if places else [None]:
        if written is not None:
            arguments[places[0]] = written
        yield [np.asarray(result, np.float64) for result in executable.run(arguments)]


def _causal_masks(spec: Any, attributes: dict[str, Any]) -> Iterator[Any]:
    """True where a position is seen, or where it is hidden; or 0 and a number as low as that of a mask."""
    long = [axis for axis, size in enumerate(spec.shape) if size > 1]
    at = np.indices(spec.shape)
    for query, key in ((long[-2], long[-1]), (long[-1], long[-2])):
        seen = at[key] <= at[query]
        if attributes["window"]:
            seen &= at[key] > at[query] - attributes["window"]
        if spec.dtype.kind == "b":
            yield from (seen, ~seen)
        else:
            yield np.where(seen, 0, -3e4).astype(spec.dtype)


def _farthest(op: str, results: list[Any], wanted: Any) -> float:
    """How far results are from what is wanted; what an attention gives that sees nothing is not asked."""
    several = wanted if isinstance(wanted, tuple) else (wanted,)
    found: list[float] = []
    for result, one in zip(results, map(np.asarray, several), strict=False):
        if result.size == one.size:
            result = result.reshape(one.shape)
            same = np.isnan(one) & (np.isnan(result) | (op == "attention"))
            result, one = np.where(same, 0.0, result), np.where(same, 0.0, one)
        found.append(_far(result, one))
    return max(found)


def positions_for(composite: NamedComposite, specs: Any, place: int, turn: int) -> Any:
    """Positions of a lookup or a cache, different ones where they write: in and out of bounds; few of them in each turn
    others: any, those above first, those below first."""
    spec, table = specs[place], specs[0].shape
    size = composite.attributes.get("depth") or table[composite.attributes.get("axis", 0)]
    inside, generator = [*range(size - 2)], np.random.default_rng(turn)
    known = ([-2, size, *inside, -1, size + 3], [size + 3, size, *inside], [-1, -2, *inside])[turn]
    count = int(np.prod(spec.shape))
    if count > len(known):
        chosen = generator.choice(known, count)
    else:
        chosen = known[:count] if turn else generator.permutation(known)[:count]
    return np.asarray(chosen).reshape(spec.shape).astype(spec.dtype)


def _far(result: Any, wanted: Any) -> float:
    """How far a result is from what is wanted, relative to the largest; infinite where it has another size."""
    if result.size != wanted.size:
        return float("inf")
    if np.isnan(result - wanted.reshape(result.shape)).any():
        return float("inf")
    return float(np.max(np.abs(result - wanted.reshape(result.shape))) / max(1.0, np.max(np.abs(wanted))))


def entered(text: str, function: str) -> str:
    """The module with another function as its entry."""
    text = re.sub(r"func\.func (?:public )?@main\(", "func.func private @entered_before(", text)
    name = re.escape(function)
    text = re.sub(rf'func\.func private @"?{name}"?\(', "func.func public @main(", text)
    return re.sub(rf'@"?{name}"?(?=[\s,}}(])', "@main", text)


def drawn(spec: Any, seed: int) -> Any:
    """An argument: numbers around 0, whole numbers below 2, both truth values."""
    generator = np.random.default_rng(seed)
    if spec.dtype.kind == "b":
        return generator.random(spec.shape) < 0.7
    if spec.dtype.kind in "iu":
        return generator.integers(0, 2, spec.shape).astype(spec.dtype)
    if spec.dtype.kind == "c":
        return (generator.standard_normal(spec.shape) + 1j * generator.standard_normal(spec.shape)).astype(spec.dtype)
    return (generator.standard_normal(spec.shape) * 2).astype(spec.dtype)


def _composite(operation: Any) -> NamedComposite:
    given = operation.attributes
    entries = mlir.entries_of(given["composite_attributes"]) if "composite_attributes" in given else {}
    attributes = {name: _plain(attribute) for name, attribute in entries.items()}
    operands = attributes.pop("operands", ())
    name = str(_plain(given["name"])).removeprefix("hl.")
    values = list(operation.operands)
    return NamedComposite(
        op=name,
        attributes=attributes,
        operands=tuple(operands),
        values=tuple(map(values.index, values)),
        function=mlir.symbol_name(given["decomposition"]),
    )


def _plain(attribute: Any) -> Any:
    """An attribute as Python has it; of arrays a list."""
    if hasattr(attribute, "value"):
        return attribute.value
    return [_plain(item) if hasattr(item, "value") else item for item in attribute]
