"""One module of a family, and how it is to be lowered."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from hlo_lower.ops.targets.target import Target

Array = NDArray[Any]


@dataclass(frozen=True)
class ProofCase:
    """A module to be lowered by a rule."""

    source: str | Callable[[], str]  # the module, with a function @main, or what writes it where it is tried
    name: str  # what it is, in a line
    oob: Literal["xla", "spec"]  # the policy
    options: Mapping[str, Any]  # keywords of `hlo_lower.lower` besides
    trust_flags: bool = False  # whether flags are taken as proofs, so that they are assumed
    dynamic_text: str = ""  # the same with dims of open size, which is what is lowered; "" where the module is

    @cached_property
    def text(self) -> str:
        """The module."""
        return self.source if isinstance(self.source, str) else self.source()


def op_case(name: str, arguments: str, result: str, lines: str, target: Target) -> ProofCase:
    """A module whose @main returns %r, for a target that refuses what it does.

    The arguments are as they are declared ("%x: tensor<3xi8>"), `result` is the type of %r, and `lines` end with it.
    """
    text = f"func.func public @main({arguments}) -> {result} {{\n{lines}\nreturn %r : {result}\n}}\n"
    return ProofCase(text, name, "xla", {"target": target})


def concrete(text: str, inputs: tuple[Array, ...]) -> str:
    """A module without arguments: each, of one line, is a constant."""
    head, _, rest = text.partition("(")
    signature, _, body = rest.partition(") -> ")
    result, _, lines = body.partition("{\n")
    constants: list[str] = []
    for argument, value in zip(signature.split(", %"), inputs, strict=True):
        name, kind = argument.lstrip("%").split(": ")
        constants.append(f"%{name} = stablehlo.constant {dense(value)} : {kind}")
    return f"{head}() -> {result}{{\n" + "\n".join(constants) + f"\n{lines}"


def dense(value: Array) -> str:
    """An array as `dense<...>`; floats that have no decimal form by their bits."""
    if value.dtype == np.bool_:
        return f"dense<{str(value.tolist()).lower()}>"
    if value.dtype.kind in "iu" or not value.size:
        return f"dense<{value.tolist() if value.size else ''}>"
    return f'dense<"0x{np.ascontiguousarray(value).tobytes().hex()}">'
