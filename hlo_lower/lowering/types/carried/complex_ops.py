"""An op of complex numbers on their real and imaginary parts."""

from collections.abc import Sequence

from hlo_lower.base.element_types import element_type
from hlo_lower.base.registry import DoesNotApply
from hlo_lower.facts.ranges.transfer import comparison_direction
from hlo_lower.ir import mlir
from hlo_lower.ir.regions import only_op
from hlo_lower.ir.view import Graph, Node, Value
from hlo_lower.lowering.engine.traced import on_each
from hlo_lower.lowering.types.carried.carrier import Carrying
from hlo_lower.lowering.types.carried.complex_functions import ARITHMETIC, BOUNDED, EXACT, EXPANDED, size
from hlo_lower.lowering.types.carried.exactness import BY_PART
from hlo_lower.lowering.types.carried.halves import PRODUCTS
from hlo_lower.lowering.types.carried.pairs import (
    Body,
    Pair,
    flat,
    flat_types,
    is_pair,
    join,
    join_pairs,
    on_each_part,
    parts_of,
    split,
    with_region,
)
from hlo_lower.ops.names import ADD, AND, OR

NOT_EXACT = "it is within a bound of XLA's only, which the float mode reassociate allows"


def on_parts(c: Carrying, node: Node, operands: Sequence[Value], body: Body) -> list[Value]:
    """An op of complex numbers on their parts, results on their carriers.

    Args:
      c: builds.
      node: the op.
      operands: those of the op, on their carriers.
      body: for its regions.

    Raises:
      DoesNotApply: it has no such form, or one that is not exact where it has to be.
    """
    if not node.is_static:
        raise DoesNotApply("of dynamic shape")
    name = node.name.removeprefix("stablehlo.")
    if node.has_regions:
        return _with_region(c, node, operands, body)
    if name in BY_PART:
        return _by_part(c, node, operands)
    if name in PRODUCTS:
        return [_product(c, node, *operands)]
    if name == "compare":
        return [_compare(c, node, *(_pair(c, value) for value in operands))]
    if name == "convert":
        return [_convert(c, node, operands[0])]
    if name == "iota":
        return [_with_zero(c, c.build.iota(node.result().static_shape, node.integer("iota_dimension"), _part_of(node)))]
    if name in ("real", "imag"):
        return [_pair(c, operands[0])[name == "imag"]]
    if name == "complex":
        return [join(c.build, (operands[0], operands[1]))]
    pairs = [_pair(c, value) for value in operands]
    if name == "abs":
        return on_each(c.build, size, *pairs[0])
    if name in EXPANDED:
        return [join(c.build, _expand(c, node, pairs[0]))]
    function = {**ARITHMETIC, **EXACT, **(BOUNDED if c.reassociated else {})}.get(name)
    if function is None:
        raise DoesNotApply(NOT_EXACT)
    real, imag = on_each(c.build, function, *(part for pair in pairs for part in pair))
    return [join(c.build, (real, imag))]


def _pair(c: Carrying, value: Value) -> Pair:
    return split(c.build, value)


def _part_type(value: Value) -> mlir.RawType:
    return mlir.tensor_type(value.shape, value.element.part)


def _part_of(node: Node) -> str:
    return node.result().element.part


# --- moves, conversions, comparisons, products ---


def _by_part(c: Carrying, node: Node, operands: Sequence[Value]) -> list[Value]:
    """The op itself on each part; of several results the op once, on all parts."""
    attributes = mlir.attributes_of(node.raw)
    if len(node.results) != 1:
        types = flat_types(c, node.results)
        made = c.build.op(node.name, flat(c, node.operands, operands), types, attributes)
        return join_pairs(c, node.results, made.results)
    return [on_each_part(c, node, parts_of(c, node.operands, operands), attributes)]


def _with_zero(c: Carrying, real: Value) -> Value:
    return join(c.build, (real, c.number(0, real)))


def _convert(c: Carrying, node: Node, x: Value) -> Value:
    """To another precision by parts; a real number has no imaginary part, and a complex one made real loses it."""
    after = node.result().element_type
    if not is_pair(c, node.operand(0)):
        return _with_zero(c, c.build.convert(x, element_type(after).part))
    if not is_pair(c, node.result()):
        if element_type(after).is_complex or after == "i1" or after in c.scheme:
            raise DoesNotApply(f"it makes {after} of a complex number")
        return c.build.convert(_pair(c, x)[0], after)
    real, imag = (c.build.convert(part, element_type(after).part) for part in _pair(c, x))
    return join(c.build, (real, imag))


def _compare(c: Carrying, node: Node, x: Pair, y: Pair) -> Value:
    direction = comparison_direction(node)
    if direction not in ("EQ", "NE"):
        raise DoesNotApply("complex numbers have no order")
    real, imag = (c.build.compare(x[k], direction, y[k]) for k in (0, 1))
    return c.build.elementwise(AND if direction == "EQ" else OR, real, imag)


def _product(c: Carrying, node: Node, left: Value, right: Value) -> Value:
    """ac - bd and ad + bc of matrices: their sums are in another order, and rounded apart."""
    if not c.reassociated:
        raise DoesNotApply(NOT_EXACT)
    if not all(is_pair(c, value) for value in node.operands):
        raise DoesNotApply("of a real and a complex operand")
    (a, b), (x, y) = _pair(c, left), _pair(c, right)
    attributes, raw_type = mlir.attributes_of(node.raw), _part_type(node.result())

    def product(one: Value, other: Value) -> Value:
        return c.build.op(node.name, [one, other], [raw_type], attributes).result()

    real = c.build.subtract(product(a, x), product(b, y))
    return join(c.build, (real, c.build.add(product(a, y), product(b, x))))


# --- regions ---


def _with_region(c: Carrying, node: Node, operands: Sequence[Value], body: Body) -> list[Value]:
    """An op with a body; a sum, which does not mix the parts, once for each."""
    op = only_op(node.blocks[0])
    if len(node.results) == 1 and op is not None and op.name == ADD:
        return [join(c.build, _sums(c, node, [_pair(c, value) for value in operands]))]
    return with_region(c, node, operands, body)


def _sums(c: Carrying, node: Node, operands: Sequence[Pair]) -> Pair:
    scalar = mlir.tensor_type((), _part_of(node))

    def of_part(k: int) -> Value:
        types, attributes = [_part_type(node.result())], mlir.attributes_of(node.raw)
        made = c.build.op(node.name, [pair[k] for pair in operands], types, attributes, regions=1)
        c.build.region(made, 0, [scalar, scalar], lambda build, given: [build.add(*given)])
        return made.result()

    return of_part(0), of_part(1)


# --- what jaxlib writes out ---


def _expand(c: Carrying, node: Node, x: Pair) -> Pair:
    """A function as jaxlib's expander writes it, its ops repeated on the parts.

    Raises:
      DoesNotApply: this jaxlib does not.
    """
    raw_type = node.result().raw.type
    lines = (f"%0 = {node.name} %x : {raw_type}", f"return %0 : {raw_type}")
    text = f"func.func @main(%x: {raw_type}) -> {raw_type} {{\n{lines[0]}\n{lines[1]}\n}}"
    module = mlir.parse_module(text, node.raw.context)
    mlir.run_pass(module.operation, "builtin.module(func.func(stablehlo-complex-math-expander))")
    block = Graph(module, "", has_locations=False).main.body
    known: dict[Value, Value] = {}
    for inner in block.nodes:
        name = inner.name.removeprefix("stablehlo.")
        if name == "complex":
            real, imag = (known[value] for value in inner.operands)
            return real, imag
        if name in ("real", "imag"):
            known[inner.result()] = x[name == "imag"]
        elif inner.name == node.name and inner.operand(0).element.is_complex:
            break
        else:
            made = c.build.clone(inner, [known[v] for v in inner.operands], [r.raw.type for r in inner.results])
            known[inner.result()] = made.result()
    raise DoesNotApply(f"jaxlib does not write out {node.name}")
