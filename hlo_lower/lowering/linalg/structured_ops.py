"""The named and generic ops of linalg: indexing maps, the ops that have a name, and the way between the two."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import TypeAlias

from hlo_lower.ir import mlir
from hlo_lower.ir.builder import Builder, rebuilt
from hlo_lower.ir.view import Block, Graph, Node, Value

# --- a tensor of one number ---


def fill_empty(build: Builder, number: Value, raw_type: mlir.RawType, sizes: Sequence[Value] = ()) -> Node:
    """A `linalg.fill` of an empty tensor; `sizes` are those of its dynamic dims."""
    element = mlir.tensor_element(raw_type)
    empty = build.op("tensor.empty", sizes, [raw_type]).result()
    segments = {"operandSegmentSizes": mlir.parse_attribute("array<i32: 1, 1>")}
    fill = build.op("linalg.fill", [number, empty], [raw_type], segments, regions=1)
    body = Block(mlir.append_block(fill.raw, 0, [element, element], fill.raw.location))
    build.at_end(body).op("linalg.yield", [body.argument(0)], [])
    return fill


# --- indexing maps of linalg, read and written: which element of an operand an iteration touches ---
#
#     affine_map<(d0, d1, d2, d3) -> (d0, d1 * 2 + d3, d2)>
#
# An index is a sum of dims, each with a factor and in the order of the dims; an operand's map is a tuple of those.


Index: TypeAlias = tuple[tuple[int, int], ...]
"""An index: (dim, factor) for each dim of the sum."""

IndexMap: TypeAlias = tuple[Index, ...]

_TERM = re.compile(r"d(\d+)(?: \* (\d+))?")


def read_maps(attribute: mlir.RawAttribute) -> tuple[IndexMap, ...] | None:
    """The maps of an array of them; None where an index is another kind of expression."""
    maps = [_read(str(one)) for one in attribute]
    return None if None in maps else tuple(one for one in maps if one is not None)


def _read(text: str) -> IndexMap | None:
    """One map: "affine_map<(d0, d1) -> (d1, d0 * 2)>"."""
    inner = text.split(" -> (", 1)[1].removesuffix(")>") if " -> (" in text else None
    if inner is None:
        return None
    indices: list[Index] = []
    for told in inner.split(", ") if inner else ():
        terms = [_TERM.fullmatch(term) for term in told.split(" + ")]
        if None in terms:
            return None
        indices.append(tuple((int(term[1]), int(term[2] or 1)) for term in terms if term is not None))
    return tuple(indices)


def dims(*numbers: int) -> IndexMap:
    """The map of an operand whose axes are these dims."""
    return tuple(((number, 1),) for number in numbers)


def maps_attribute(rank: int, maps: Sequence[IndexMap]) -> mlir.RawAttribute:
    """The attribute of the maps of operands, from so many dims."""
    given = ", ".join(f"d{number}" for number in range(rank))
    told = (", ".join(" + ".join(map(_term, index)) for index in one) for one in maps)
    return mlir.parse_attribute("[" + ", ".join(f"affine_map<({given}) -> ({indices})>" for indices in told) + "]")


def _term(term: tuple[int, int]) -> str:
    return f"d{term[0]}" if term[1] == 1 else f"d{term[0]} * {term[1]}"


def iterators_attribute(rank: int, output: IndexMap) -> mlir.RawAttribute:
    """The attribute of the kinds of dims: those that no output has are reduced."""
    kept = {dim for index in output for dim, _ in index}
    kinds = ("parallel" if dim in kept else "reduction" for dim in range(rank))
    return mlir.parse_attribute("[" + ", ".join(f"#linalg.iterator_type<{kind}>" for kind in kinds) + "]")


def rank_of(maps: Sequence[IndexMap]) -> int:
    """How many dims maps are over, which all of them occur in one."""
    return 1 + max((dim for one in maps for index in one for dim, _ in index), default=-1)


# --- the convolutions and poolings of linalg that have a name, as data ---
#
# The axes of their operands, letter by letter.
#
# nchw,fcxy->nfhw sums cxy        input[n, c, h * strides[0] + x * dilations[0], w * strides[1] + y * dilations[1]],
#                                 kernel[f, c, x, y] -> result[n, f, h, w]; c, x, y are summed, y innermost


WINDOW_OF = ({"w": "x"}, {"h": "x", "w": "y"}, {"d": "x", "h": "y", "w": "z"})
"""For one, two and three spatial axes: which letter of the window goes along which."""


@dataclass(frozen=True)
class Windowed:
    """A named op over windows.

    Attributes:
      name: without "linalg.".
      letters: of input, kernel (or window) and result.
      summed: the letters of the loops that are reduced, the outermost first.
    """

    name: str
    letters: tuple[str, str, str]
    summed: str

    def steps(self, maps: tuple[IndexMap, IndexMap, IndexMap]) -> tuple[list[int], list[int]] | None:
        """The strides and dilations with which maps are those of the op; None where they are not."""
        bound = self._bound(maps)
        window = WINDOW_OF[sum(letter in "dhw" for letter in self.letters[0]) - 1]
        if bound is None or len(maps[0]) != len(self.letters[0]):
            return None
        strides: list[int] = []
        dilations: list[int] = []
        for letter, index in zip(self.letters[0], maps[0], strict=True):
            wanted = [bound[one] for one in letter + window.get(letter, "")]
            factors = dict(index)
            if sorted(dim for dim, _ in index) != sorted(wanted):
                return None
            if letter in window:
                strides.append(factors[bound[letter]])
                dilations.append(factors[bound[window[letter]]])
            elif factors[bound[letter]] != 1:
                return None
        return strides, dilations

    def _bound(self, maps: tuple[IndexMap, IndexMap, IndexMap]) -> dict[str, int] | None:
        """Which dim each letter is, from kernel and result, where the reduced ones have the order of the op."""
        bound: dict[str, int] = {}
        for letters, one in zip(self.letters[1:], maps[1:], strict=True):
            if len(letters) != len(one):
                return None
            for letter, index in zip(letters, one, strict=True):
                if len(index) != 1 or index[0][1] != 1 or bound.setdefault(letter, index[0][0]) != index[0][0]:
                    return None
        order = [bound[letter] for letter in self.summed]
        return bound if len(set(bound.values())) == len(bound) and order == sorted(order) else None


def _parse_windowed(told: Mapping[str, str]) -> tuple[Windowed, ...]:
    made: list[Windowed] = []
    for name, text in told.items():
        operands, summed = text.split(" sums ")
        inputs, result = operands.split("->")
        given, kernel = inputs.split(",")
        made.append(Windowed(name, (given, kernel, result), summed))
    return tuple(made)


CONVOLUTIONS = _parse_windowed({
    "conv_1d_ncw_fcw": "ncw,fcx->nfw sums cx",
    "conv_2d_nchw_fchw": "nchw,fcxy->nfhw sums cxy",
    "conv_2d_ngchw_gfchw": "ngchw,gfcxy->ngfhw sums cxy",
    "conv_3d_ncdhw_fcdhw": "ncdhw,fcxyz->nfdhw sums cxyz",
    "conv_1d_nwc_wcf": "nwc,xcf->nwf sums xc",
    "conv_2d_nhwc_hwcf": "nhwc,xycf->nhwf sums xyc",
    "conv_3d_ndhwc_dhwcf": "ndhwc,xyzcf->ndhwf sums xyzc",
})  # fmt: skip
"""Static ones with channels last jaxlib's pass names, where it can; its generic ones sum channels outermost."""

_POOLED = {"nwc": "x", "ncw": "x", "nhwc": "xy", "nchw": "xy", "ndhwc": "xyz"}
_WITHOUT = {"ncw": ("max", "sum"), "nchw": ("max", "sum"), "ndhwc": ("max", "min", "sum")}
_KINDS = ("max", "min", "sum", "max_unsigned", "min_unsigned")

POOLINGS = {
    kind: _parse_windowed({
        f"pooling_{axes}_{kind}": f"{axes},{window}->{axes} sums {window}"
        for axes, window in _POOLED.items() if kind in _WITHOUT.get(axes, _KINDS)
    })
    for kind in _KINDS
}  # fmt: skip
"""By what is done with a window."""


# --- every named op of linalg as `linalg.generic` ---
#
# MLIR's own `linalg-generalize-named-ops`, which jaxlib does not have.
#
#     linalg.reduce {arith.addf} ins(%x) outs(%zero) dimensions = [1]
#     ->
#     linalg.generic {indexing_maps = [(d0, d1) -> (d0, d1), (d0, d1) -> (d0)], iterator_types = [parallel, reduction]}
#         ins(%x) outs(%zero) {arith.addf}
#
# Equal: a named op is a generic one with the maps that its name stands for and the same region, which is moved. The
# order of the dims is that of MLIR's, so a reader sums in the same order.


NO_STRUCTURE = frozenset({"linalg.generic", "linalg.index", "linalg.yield", "linalg.softmax"})
"""Operations that are no named form of a generic one."""

OWN_MAPS = ("indexing_maps", "linalg.memoized_indexing_maps")
"""Where an op whose name does not say it all keeps its maps, or MLIR what it made of strides and dilations."""


def generalize(graph: Graph) -> None:
    """Write the named ops of a module as generic ones, in place."""
    with mlir.active(graph.context):
        for node in [node for node in graph.nodes() if node.name.startswith("linalg.")]:
            maps = None if node.name in NO_STRUCTURE else maps_of(node)
            if maps is not None:
                _generic(node, maps)


def maps_of(node: Node) -> Sequence[IndexMap] | None:
    """The indexing maps of a named op, those of its inputs first; None where they are not known."""
    for name in OWN_MAPS:
        attribute = node.attribute(name)
        if attribute is not None:
            return read_maps(attribute)
    *inputs, last = node.operands
    every = dims(*range(len(last.shape)))
    match node.name:
        case "linalg.fill":
            return (), every
        case "linalg.map":
            return [every] * len(node.operands)
        case "linalg.transpose":
            permutation = node.integers("permutation")
            return dims(*(permutation.index(dim) for dim in range(len(permutation)))), every
        case "linalg.broadcast":
            added = node.integers("dimensions")
            return dims(*(dim for dim in range(len(last.shape)) if dim not in added)), every
        case "linalg.reduce":
            rank, reduced = len(inputs[0].shape), node.integers("dimensions")
            kept = dims(*(dim for dim in range(rank) if dim not in reduced))
            half = len(node.operands) // 2
            return [dims(*range(rank))] * half + [kept] * half
        case _:
            return None


def _generic(node: Node, maps: Sequence[IndexMap]) -> None:
    outputs = len(node.results)
    rank = rank_of(maps)
    attributes = {
        "indexing_maps": maps_attribute(rank, maps),
        "iterator_types": iterators_attribute(rank, maps[-1]),
        "operandSegmentSizes": mlir.parse_attribute(f"array<i32: {len(maps) - outputs}, {outputs}>"),
    }
    [block] = node.blocks
    for value in node.operands[len(block.arguments) :]:  # some releases leave out what is only written
        mlir.add_argument(block.raw, mlir.tensor_element(value.raw.type), node.raw.location)
    rebuilt(node, node.operands, [value.raw.type for value in node.results], "linalg.generic", attributes)


# --- generic ops of linalg that are a named one ---
#
# Products, convolutions and poolings that jaxlib's pass leaves generic.
#
# An op is named where its region is the name's and its maps are, up to the order of the loops that are kept. Loops that
# are summed keep their order, so the sums do. What has no name stays generic.
#
#     (b, m, k), (b, n, k) -> (b, m, n), products added                     linalg.batch_matmul with these maps
#     any other product of two operands                                     linalg.contract
#     (n, c, h + x, w + y), (f, c, x, y) -> (n, f, h, w), products added    linalg.conv_2d_nchw_fchw
#     (n, c, h * 2 + x, w * 2 + y), (x, y) -> (n, c, h, w), maxima          linalg.pooling_nchw_max, strides 2


PRODUCTS = {"arith.addf": "arith.mulf", "arith.addi": "arith.muli", "complex.add": "complex.mul"}
"""What adds, and what makes what it adds."""

WIDENS = frozenset({"arith.extf", "arith.extsi"})
"""What a name converts its factors to the type of its sum with."""

POOLED = {
    "arith.maximumf": "max", "arith.maxsi": "max", "arith.maxui": "max_unsigned", "arith.minimumf": "min",
    "arith.minsi": "min", "arith.minui": "min_unsigned", "arith.addf": "sum", "arith.addi": "sum",
}  # fmt: skip

MATMULS = {
    "linalg.matmul": [
        (dims(*a), dims(*b), dims(0, 1)) for a, b in product(((0, 2), (2, 0)), ((2, 1), (1, 2)))
    ],
    "linalg.batch_matmul": [
        (dims(0, *a), dims(0, *b), dims(0, 1, 2)) for a, b in product(((1, 3), (3, 1)), ((3, 2), (2, 3)))
    ],
    "linalg.matvec": [(dims(0, 1), dims(1), dims(0))],
    "linalg.vecmat": [(dims(1), dims(1, 0), dims(0))],
}  # fmt: skip
"""The maps of a product of matrices (m, n, k), of a batch of them (b, m, n, k), either operand transposed, and of one
by a vector."""

OWN = ("linalg.matmul", "linalg.batch_matmul", "linalg.contract")
"""Products that say their maps."""


def specialize(graph: Graph) -> None:
    """Write the generic ops of a module that have a name by that name, in place."""
    with mlir.active(graph.context):
        for node in [node for node in graph.nodes() if node.name == "linalg.generic"]:
            _name_op(node)


def _name_op(node: Node) -> None:
    maps = read_maps(node.raw.attributes["indexing_maps"])
    if maps is None or len(maps) != 3 or len(node.results) != 1:
        return
    first, second, result = maps
    if adds_products(node):
        if not _window(node, (first, second, result), CONVOLUTIONS):
            _product(node, (first, second, result))
    elif (kind := _pools(node)) is not None:
        _window(node, (first, second, result), POOLINGS[kind])


def adds_products(node: Node) -> bool:
    """Whether the region is out + left * right, the factors widened where the sum is wider. Of i1 the names stand for
    other ops."""
    [block] = node.blocks
    arguments, nodes = block.arguments, list(block.nodes)
    if len(arguments) != 3 or len(nodes) < 3 or str(arguments[2].raw.type) == "i1":
        return False
    left, right, out = arguments
    *casts, times, plus, last = nodes
    wide = {cast.operand(0): cast.result() for cast in casts if cast.name in WIDENS}
    return (
        PRODUCTS.get(plus.name) == times.name
        and len(wide) == len(casts)
        and list(times.operands) == [wide.get(left, left), wide.get(right, right)]
        and list(plus.operands) == [out, times.result()]
        and list(last.operands) == [plus.result()]
    )


def _pools(node: Node) -> str | None:
    """What is done with a window: the region is op(out, element), and the second input is not read."""
    [block] = node.blocks
    (element, _, out), nodes = block.arguments, list(block.nodes)
    if len(nodes) != 2 or str(out.raw.type) == "i1":
        return None
    op, last = nodes
    is_one = list(op.operands) == [out, element] and list(last.operands) == list(op.results)
    return POOLED.get(op.name) if is_one else None


def _product(node: Node, maps: tuple[IndexMap, IndexMap, IndexMap]) -> None:
    """A product of matrices under its name, any other one as `linalg.contract`, which has to sum something."""
    axes = [[index[0][0] for index in one if len(index) == 1 and index[0][1] == 1] for one in maps]
    left, right, result = map(set, axes)
    if any(len(found) != len(one) for found, one in zip(axes, maps, strict=True)) or not (left & right) - result:
        return
    if (left | right | result) != (left & right) | (left & result) | (right & result):
        return  # a loop over one operand alone
    name = next((name for name, known in MATMULS.items() if maps in known), "linalg.contract")
    _replace(node, name, {"indexing_maps": maps_attribute(rank_of(maps), maps)} if name in OWN else {})


def _window(node: Node, maps: tuple[IndexMap, IndexMap, IndexMap], known: Sequence[Windowed]) -> bool:
    for one in known:
        steps = one.steps(maps)
        if steps is not None:
            strides, dilations = (mlir.parse_attribute(f"dense<{n}> : tensor<{len(n)}xi64>") for n in steps)
            _replace(node, f"linalg.{one.name}", {"strides": strides, "dilations": dilations})
            return True
    return False


def _replace(node: Node, name: str, attributes: dict[str, mlir.RawAttribute]) -> None:
    segments = {"operandSegmentSizes": mlir.parse_attribute("array<i32: 2, 1>")}
    rebuilt(node, node.operands, [value.raw.type for value in node.results], name, attributes | segments)
