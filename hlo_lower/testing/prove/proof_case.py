"""One module of the family: a scatter of a form, its indices, region and policy; and how it is to be lowered."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from hlo_lower.ops.targets.target import Target
from hlo_lower.testing.fuzz.case import Case
from hlo_lower.testing.fuzz.drawn_types import typed
from hlo_lower.testing.fuzz.module_text import module_text
from hlo_lower.testing.prove.family_forms import ProofBody, told
from hlo_lower.testing.prove.producers import Indices, Made

Array = NDArray[Any]


@dataclass(frozen=True)
class ProofCase:
    """A module to be lowered by a rule.

    Attributes:
      text: the module, with a function @main.
      name: what it is, in a line.
      oob: the policy.
      options: keywords of `hlo_lower.lower` besides.
      trust_flags: whether flags are taken as proofs, so that they are assumed.
      dynamic_text: the same with dims of open size, which is what is lowered; "" where the module is.
    """

    text: str
    name: str
    oob: Literal["xla", "spec"]
    options: Mapping[str, Any]
    trust_flags: bool = False
    dynamic_text: str = ""


def op_case(name: str, arguments: str, result: str, lines: str, target: Target) -> ProofCase:
    """A module whose @main returns %r, for a target that refuses what it does.

    Args:
      name: what it is, in a line.
      arguments: as they are declared ("%x: tensor<3xi8>").
      result: the type of %r.
      lines: operations that end with %r.
      target: who is to read it.
    """
    text = f"func.func public @main({arguments}) -> {result} {{\n{lines}\nreturn %r : {result}\n}}\n"
    return ProofCase(text, name, "xla", {"target": target})


def scatter_case(
    indices: Indices,
    body: ProofBody,
    index: str,
    oob: Literal["xla", "spec"],
    options: Mapping[str, Any],
    *,
    is_uniform: bool = False,
) -> ProofCase:
    """The module of a scatter.

    Args:
      indices, body: the scatter.
      index: the index type.
      oob: the policy.
      options: keywords of `hlo_lower.lower`.
      is_uniform: whether every update is the same element, an argument.
    """
    form, made = indices.form, list(indices.made)
    if is_uniform:
        for k, element in enumerate(body.operands):
            given, updates = typed((), element), typed(form.updates, element)
            spread = f"%w{k} = stablehlo.broadcast_in_dim %one{k}, dims = [] : ({given}) -> {updates}"
            made.append(Made(f"%w{k}", f"%one{k}", given, spread))
    text = module_text([Case("", ("", ""), form, body.operands, body.region, index, "", (), 0)])
    text = text.replace("<{scatter_dimension_numbers", f"<{{{indices.flags}scatter_dimension_numbers")
    for one in made:
        text = _with_made(text, one)
    name = f"{told(form)}, {index} {indices.name}, {'one ' if is_uniform else ''}{body.name}, oob={oob}"
    return ProofCase(text, name, oob, options, bool(indices.flags))


def _with_made(text: str, made: Made) -> str:
    """A module, one of whose arguments is made of another one."""
    head, _, body = text.partition("{\n")
    before, _, behind = head.partition(f"{made.name}: ")
    kind = behind[: behind.index(">") + 1]
    return f"{before}{made.source}: {made.kind}{behind.removeprefix(kind)}{{\n{made.lines}\n{body}"


def concrete(text: str, inputs: tuple[Array, ...]) -> str:
    """A module without arguments: each is a constant.

    Args:
      text: a module as above, whose arguments stand in one line.
      inputs: an array for each argument.
    """
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
