"""Convolutions in one form while a module is StableHLO: in a layout that has a name in linalg, of what is not turned.

    %t = transpose %x : NCHW -> NHWC
    %y = convolution(%t, %k) [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]        %u = transpose %k : HWIO -> OIHW
    %r = transpose %y : NHWC -> NCHW                                  ->    %r = convolution(%x, %u) [b, f, 0, 1]x[..]

1. Transposes of the input, of the kernel and of the result go into the dimension numbers; zeros that a pad puts around
   the input go into the padding.
2. Where input and result have their channels first, so has the kernel: OIHW. Where one of them has its channels last,
   both get them, and the kernel is HWIO. These are the layouts of linalg's names. Any other one stays.

Equal: the same products are summed. StableHLO gives the order of a convolution's sum to its compiler; in linalg the
layout says it: channels outermost where they are first, the window outermost where they are last.
"""

import re
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np

from hlo_lower.ir import mlir
from hlo_lower.ir.builder import Builder
from hlo_lower.ir.view import Node, Value
from hlo_lower.lowering.linalg.moved_forms import is_read_once, maker_named, number_at, static_maker
from hlo_lower.ops.names import CONVOLUTION, PAD, RESHAPE, TRANSPOSE

Letters: TypeAlias = tuple[str, ...]
"""What each dim is: b, f, o, i, and spatial dims by number, as StableHLO prints them."""

_NUMBERS = re.compile(r"\[([^\]]*)\]x\[([^\]]*)\]->\[([^\]]*)\]")


def letters_of(node: Node) -> tuple[Letters, Letters, Letters]:
    """The dims of a convolution's input, kernel and result."""
    found = _NUMBERS.search(str(node.raw.attributes["dimension_numbers"]))
    assert found is not None
    first, kernel, result = (tuple(one.split(", ")) for one in found.groups())
    return first, kernel, result


def convolution_of_sources(build: Builder, node: Node) -> Value | None:
    """A convolution of what was padded, or turned, for it."""
    return _of_padded(build, node) or _in_layout(build, node, letters_of(node)[2])


def convolution_turned(build: Builder, node: Node, wanted: Sequence[str]) -> Value:
    """A convolution whose result has its dims in another order."""
    made, result = _in_layout(build, node, wanted), letters_of(node)[2]
    return made or build.transpose(node.result(), [result.index(letter) for letter in wanted])


def reshape_of_convolution(build: Builder, node: Node) -> Value | None:
    """A convolution in the layout of its input, where a reshape moves dims of extent 1 of its result to that."""
    value, source = node.operand(0), static_maker(node.operand(0), CONVOLUTION)
    if source is None or not is_read_once(value) or len(value.shape) != len(node.result().shape):
        return None
    given, _, result = letters_of(source)
    wanted = source_of(source.operand(0), given)[1]
    is_it = wanted != result and wanted in _layouts(given) and _long(value, result) == _long(node.result(), wanted)
    return _in_layout(build, source, wanted) if is_it else None


def _in_layout(build: Builder, node: Node, wanted: Sequence[str]) -> Value | None:
    """A convolution in its one layout, its result turned as it is wanted; None where it is in that layout."""
    now = letters_of(node)
    sources = [source_of(operand, own) for operand, own in zip(node.operands, now[:2], strict=True)]
    layout = _layout(sources[0][1], sources[1][1], tuple(wanted))
    if layout == now:
        return None
    operands = [
        build.transpose(source, [own.index(letter) for letter in to])
        for (source, own), to in zip(sources, layout[:2], strict=True)
    ]
    size = dict(zip(now[2], node.result().shape, strict=True))
    attributes = mlir.attributes_of(node.raw)
    attributes["dimension_numbers"] = mlir.parse_attribute(
        "#stablehlo.conv<[{}]x[{}]->[{}]>".format(*(", ".join(one) for one in layout))
    )
    ones = (1,) * (len(wanted) - 2)  # jaxlib 0.9 names no convolution whose steps are not written out
    for name in ("window_strides", "rhs_dilation"):
        attributes.setdefault(name, mlir.dense_i64(ones))
    raw_type = mlir.tensor_type([size[letter] for letter in layout[2]], node.result().element_type)
    made = build.op(CONVOLUTION, operands, [raw_type], attributes).result()
    return build.transpose(made, [layout[2].index(letter) for letter in wanted])


def source_of(value: Value, letters: Letters) -> tuple[Value, Letters]:
    """What an operand is before it is turned, and the dims of that."""
    turn, reshape = maker_named(value, TRANSPOSE), static_maker(value, RESHAPE)
    if turn is not None:
        permutation = turn.integers("permutation")
        return turn.operand(0), tuple(letters[permutation.index(dim)] for dim in range(len(letters)))
    if reshape is not None:  # where dims of extent 1 alone move, a transpose is a reshape
        source = reshape.operand(0)
        for before in _layouts(letters) if len(source.shape) == len(letters) else ():
            if _long(source, before) == _long(value, letters):
                return source, before
    return value, letters


def _long(value: Value, letters: Letters) -> list[tuple[str, int]]:
    """The dims of an extent of more than 1."""
    return [(letter, size) for letter, size in zip(letters, value.static_shape, strict=True) if size != 1]


def _layouts(letters: Letters) -> tuple[Letters, Letters]:
    """The dims of the same operand where channels come first, and where they come last."""
    spatial = tuple(str(number) for number in range(len(letters) - 2))
    return (
        (("b", "f", *spatial), ("b", *spatial, "f")) if "b" in letters else (("o", "i", *spatial), (*spatial, "i", "o"))
    )


def _layout(given: Letters, kernel: Letters, result: Letters) -> tuple[Letters, Letters, Letters]:
    """The one layout for an input, a kernel and a result whose dims stand so."""
    both, kernels = _layouts(given), _layouts(kernel)
    if not {given, result} <= set(both):
        return given, kernel, result
    number = int(given != both[0] or result != both[0])
    return both[number], kernels[number], both[number]


def _of_padded(build: Builder, node: Node) -> Value | None:
    """With the zeros that a pad puts around the input as padding."""
    pad = maker_named(node.operand(0), PAD)
    if pad is None or not is_read_once(node.operand(0)) or not _is_zero(pad.operand(1)):
        return None
    given, *_ = letters_of(node)
    amounts = [pad.integers(name) for name in ("edge_padding_low", "edge_padding_high", "interior_padding")]
    spatial = [given.index(str(number)) for number in range(len(given) - 2)]
    if any(amounts[2]) or any(one[dim] for one in amounts[:2] for dim in range(len(given)) if dim not in spatial):
        return None
    if any(step != 1 for step in node.integers("lhs_dilation", (1,))):
        return None
    before = np.array(node.padding(len(spatial)), np.int64).reshape(-1, 2)
    around = before + np.array([[one[dim] for one in amounts[:2]] for dim in spatial], np.int64).reshape(-1, 2)
    attributes = mlir.attributes_of(node.raw)
    attributes["padding"] = mlir.parse_attribute(f"dense<{around.tolist()}> : tensor<{len(spatial)}x2xi64>")
    operands = [pad.operand(0), node.operand(1)]
    return build.op(CONVOLUTION, operands, [node.result().raw.type], attributes).result()


def _is_zero(value: Value) -> bool:
    """Whether a value is 0, and not -0.0."""
    number = number_at(value)
    return number is not None and number == 0 and not np.signbit(number)
