"""Values by what computes them: two modules whose results have the same numbers are the same function.

What depends on no argument is computed, and integers have a range (after a clip an index is never negative), which
decides comparisons.
"""

from dataclasses import dataclass
from hashlib import sha256
from math import inf
from typing import Any

import numpy as np

from mutating.evaluator import Array, BadInput, Block, Module, Node, Unsupported


@dataclass(frozen=True, eq=False)
class Known:
    """What is known of a value: its number, itself where no argument matters, and between what its integers lie."""

    number: str
    value: Array | None = None
    low: float = -inf
    high: float = inf


COMMUTATIVE = ("add", "multiply", "and", "or", "xor")
SAME_RANGE = ("broadcast_in_dim", "reshape", "transpose", "slice", "reverse", "gather", "dynamic_slice", "convert")


def _hash(*parts: Any) -> str:
    return sha256(repr(parts).encode()).hexdigest()[:24]


def _of_value(value: Array) -> Known:
    number = _hash(value.dtype.name, value.shape, np.ascontiguousarray(value).tobytes())
    ranged = value.size and (value.dtype == np.bool_ or value.dtype.kind in "iu")
    return Known(number, value, *((int(value.min()), int(value.max())) if ranged else ()))


class _Numbering:
    def __init__(self, module: Module) -> None:
        self._module = module
        self._depth = 0

    def block(self, block: Block, arguments: list[Known], env: dict[int, Known]) -> list[Known]:
        env.update(zip(block.arguments, arguments, strict=True))
        for node in block.nodes:
            env.update(zip(node.outs, self._node(node, [env[i] for i in node.ins], env), strict=True))
        return [env[i] for i in block.returns]

    def _node(self, node: Node, ins: list[Known], env: dict[int, Known]) -> list[Known]:
        called = node.attributes.get("callee") or node.attributes.get("decomposition")
        function = self._module.functions.get(str(called))
        if function is not None:
            return self.block(function, ins, {})
        if not node.blocks and all(known.value is not None for known in ins):
            try:
                with np.errstate(all="ignore"):
                    results = self._module.evaluated(
                        node, [known.value for known in ins if known.value is not None], {}
                    )
                return [_of_value(np.asarray(r)) for r in results]
            except (Unsupported, BadInput, ValueError):
                pass
        name = node.name.removeprefix("stablehlo.")
        if name == "select" and ins[0].low == 1:
            return [ins[1]]
        if name == "select" and ins[0].high == 0:
            return [ins[2]]
        numbers = [known.number for known in ins]
        if name in COMMUTATIVE:
            numbers.sort()
        regions: list[Any] = []
        for block in node.blocks:
            self._depth += 1
            inner = [Known(_hash("argument", self._depth, n)) for n in range(len(block.arguments))]
            regions.append([known.number for known in self.block(block, inner, dict(env))])
            self._depth -= 1
        attributes = sorted((k, str(v)) for k, v in node.attributes.items() if k != "value")
        number = _hash(name, attributes, numbers, regions, [(t and (t.shape, t.element_name)) for t in node.types])
        low, high = _range(node, name, ins)
        return [Known(_hash(number, n), None, low, high) for n in range(len(node.outs))]


def _range(node: Node, name: str, ins: list[Known]) -> tuple[float, float]:
    """Between what the integers of a result lie."""
    tensor = node.types[0] if node.types else None
    element = tensor.element_name if tensor else ""
    if name == "compare":
        return _compared(node, *ins)
    if not element.startswith(("i", "ui")):
        return -inf, inf
    if name in SAME_RANGE:
        bits = int(element.lstrip("ui"))
        limit = 2 ** (bits - (element[0] == "i")) - 1
        fits = ins[0].low >= (0 if element[0] == "u" else -limit) and ins[0].high <= limit and bits > 1
        return (ins[0].low, ins[0].high) if name != "convert" or fits else (-inf, inf)
    if name in ("maximum", "minimum"):
        pick = max if name == "maximum" else min
        return pick(ins[0].low, ins[1].low), pick(ins[0].high, ins[1].high)
    if name == "clamp":
        low, x, high = ins
        return min(max(x.low, low.low), high.low), min(max(x.high, low.high), high.high)
    if name in ("select", "concatenate"):
        parts = ins[name == "select" :]
        return min(p.low for p in parts), max(p.high for p in parts)
    if name == "and" and element != "i1":
        ends = [known.high for known in ins if known.low >= 0]
        return (0, min(ends)) if ends else (-inf, inf)
    if name == "add":
        low, high = ins[0].low + ins[1].low, ins[0].high + ins[1].high
        return (low, high) if element in ("i32", "i64") and -(2**31) <= low <= high < 2**31 else (-inf, inf)
    return -inf, inf


def _compared(node: Node, a: Known, b: Known) -> tuple[float, float]:
    direction = node.attributes["comparison_direction"]
    below, above = a.high < b.low, a.low > b.high
    never, always = {
        "LT": (a.low >= b.high, below),
        "LE": (above, a.high <= b.low),
        "GT": (a.high <= b.low, above),
        "GE": (below, a.low >= b.high),
        "EQ": (below or above, False),
        "NE": (False, below or above),
    }[direction]
    return (0, 0) if never else (1, 1) if always else (0, 1)


def result_numbers(module: Module) -> list[str]:
    """The numbers of the results of main."""
    main = module.main
    arguments = [Known(_hash("main", n)) for n in range(len(main.arguments))]
    return [known.number for known in _Numbering(module).block(main, arguments, {})]
