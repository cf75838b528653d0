"""One module of the family: a scatter of a form, its indices, region and policy; and how it is to be lowered."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from hlo_lower.proving.bodies import ProofBody
from hlo_lower.proving.family_forms import FamilyForm, typed
from hlo_lower.proving.producers import Indices

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
      indices_text: a module of the same arguments that returns indices and updates; "" where there is none.
      dynamic_text: the same with dims of open size, which is what is lowered; "" where the module is.
    """

    text: str
    name: str
    oob: Literal["xla", "spec"]
    options: Mapping[str, Any]
    trust_flags: bool = False
    indices_text: str = ""
    dynamic_text: str = ""


def scatter_case(
    form: FamilyForm,
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
      form, indices, body: the scatter.
      index: the index type.
      oob: the policy.
      options: keywords of `hlo_lower.lower`.
      is_uniform: whether every update is the same element, an argument.
    """
    operands, updates, results = (
        [typed(shape, element) for element in elements]
        for shape, elements in (
            (form.operand, body.elements),
            (form.updates, body.elements),
            (form.operand, body.results),
        )
    )
    count = len(operands)
    given = [typed((), element) for element in body.elements] if is_uniform else updates
    names = ("%o", "%p")[:count], ("%up", "%vp")[:count], ("%s", "%t")[:count]
    arguments = [*zip(names[0], operands, strict=True), *indices.arguments, *zip(names[1], given, strict=True)]
    lines = [indices.lines]
    if is_uniform:
        spread = zip(names[2], names[1], given, updates, strict=True)
        lines += [f"{s} = stablehlo.broadcast_in_dim {u}, dims = [] : ({a}) -> {b}" for s, u, a, b in spread]
    taken = ", ".join(names[2 if is_uniform else 1])
    start = f"func.func public @main({', '.join(f'{name}: {kind}' for name, kind in arguments)}) -> "
    starts = typed(form.indices, index)
    scalars = [typed((), element) for element in body.results] * 2
    block = zip((*("%c", "%d")[:count], *("%u", "%v")[:count]), scalars, strict=True)
    joined, produced = ", ".join(results), "\n".join(lines)
    text = (
        f"{start}({joined}) {{\n{produced}\n"
        f'%r:{count} = "stablehlo.scatter"({", ".join(names[0])}, %j, {taken}) '
        f"<{{{indices.flags}scatter_dimension_numbers = {form.numbers}}}> ({{\n"
        f"^bb0({', '.join(f'{name}: {kind}' for name, kind in block)}):\n {body.text}\n"
        f"}}) : ({', '.join((*operands, starts, *updates))}) -> ({joined})\n"
        f"return {', '.join(f'%r#{k}' for k in range(count))} : {joined}\n}}\n"
    )
    made = (
        f"{start}({', '.join((starts, *updates))}) {{\n{produced}\n"
        f"return %j, {taken} : {', '.join((starts, *updates))}\n}}\n"
    )
    told = f"{form}, {index} {indices.name}, {'one ' if is_uniform else ''}{body.name}, oob={oob}"
    return ProofCase(text, told, oob, options, bool(indices.flags), made)


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
