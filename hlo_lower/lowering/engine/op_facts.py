"""The facts of an op of any kind: those that its kind reads, and those of every op, which are read once a rule asks.

`dtype` is the element type of the first operand, of an op without any that of its first result; `target` is the name
of the target. `layout` says how the first operand lies in memory, as far as the module does: "default" is row by row,
"{0,1}" are its dims from the fastest to the slowest, as XLA prints them, and an encoding of its type is printed as it
is ("nz").
"""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any

from hlo_lower.base.domains import EVERY
from hlo_lower.base.registry import Facts
from hlo_lower.ir import mlir
from hlo_lower.ir.view import Node, Value

DEFAULT = "default"

LAYOUT_OF_ARGUMENT = "mhlo.layout_mode"
"""The attribute with which JAX says how an argument lies in memory."""


@dataclass(frozen=True)
class OpFacts:
    """What a rule is chosen by, and its condition is asked of.

    Attributes:
      own: the facts that the op's kind reads; what these have counts before what every op has.
      node: the op.
      target_name: the name of the target.
    """

    own: Facts
    node: Node
    target_name: str

    def __getitem__(self, name: str) -> Hashable:
        try:
            return self.own[name]
        except KeyError:
            if name not in EVERY:
                raise
        return fact_of_every(self.node, self.target_name, name)

    def __getattr__(self, name: str) -> Any:
        """What the kind's facts have, for conditions: `facts.operand_shape`; then `facts.dtype` and the like."""
        if name in EVERY and not hasattr(self.own, name):
            return self[name]
        return getattr(self.own, name)


def every_fact(node: Node, target_name: str) -> Mapping[str, str]:
    """The facts of every op, of this one."""
    return {name: fact_of_every(node, target_name, name) for name in EVERY}


def fact_of_every(node: Node, target_name: str, name: str) -> str:
    """One of the facts of every op: dtype, layout or target."""
    if name == "target":
        return target_name
    values = [value for value in (*node.operands, *node.results) if value.is_tensor]
    if name == "dtype":
        return values[0].element_type if values else "none"
    return _layout(node, values[0]) if values else DEFAULT


def _layout(node: Node, value: Value) -> str:
    layouts = node.attribute("operand_layouts")
    if layouts is not None and node.operands:
        return _in_words(next((mlir.dense_integers(one) for one in layouts), ()))
    if encoding := mlir.tensor_encoding(value.raw.type):
        return encoding
    block = value.block
    if block is None or block.owner.name != "func.func":
        return DEFAULT
    attributes = block.owner.attribute("arg_attrs")
    told = {} if attributes is None else mlir.entries_of(list(attributes)[value.number])
    text = mlir.symbol_name(told[LAYOUT_OF_ARGUMENT]) if LAYOUT_OF_ARGUMENT in told else DEFAULT
    return _in_words(tuple(int(dim) for dim in text[1:-1].split(","))) if text.startswith("{") and text[1:-1] else text


def _in_words(dims: tuple[int, ...]) -> str:
    """Dims from the fastest to the slowest, as XLA prints them; "default" where they are in the usual order."""
    return DEFAULT if list(dims) == sorted(dims, reverse=True) else f"{{{','.join(map(str, dims))}}}"
