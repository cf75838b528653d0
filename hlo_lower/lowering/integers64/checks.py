"""What narrowing 64-bit integers assumes: what must not overflow, and the tests of that at run time."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from math import prod
from typing import Any

import jax
import jax.core
import jax.export
import numpy as np

from hlo_lower.base.errors import NotLoweredError
from hlo_lower.ir import mlir
from hlo_lower.ir.builder import Builder, rebuilt
from hlo_lower.ir.view import Block, Function, Graph, Node, Value
from hlo_lower.lowering.integers64.demand import FOLDING, ORDERED, WITHIN, Demand, is_wide
from hlo_lower.ops import names
from hlo_lower.ops.names import CASE, CONSTANT, CONVERT, IF, WHILE
from hlo_lower.ops.spec import PRODUCTS

# --- whether the result of a narrowed integer op is the number that its 64-bit original gives, computed at run time ---
#
# Each test is of operands that are such numbers themselves, and true only where the result is one, too: by induction
# over the ops in the order in which they run, all of them are where every test is true.


WIDTH = 32
DIGITS = ((16, 1 << 15), (8, 1 << 23))
"""How many bits a digit has of which so many are summed: a sum of digits and a carry fit in 32 bits then."""

SUMMED = frozenset({names.REDUCE, names.REDUCE_WINDOW})

MOST_PRODUCTS = 1 << 22
"""Products of one sum of which the rounded sum of magnitudes says enough (`_sum_of_products`)."""


def why_not_testable(node: Node) -> str:
    """Why there is no test of an op, "" where there is one."""
    if not node.is_static:
        return "its shape is not known beforehand"
    if node.name in SUMMED:
        return _why_no_sum(node)
    if node.name in PRODUCTS:
        count = prod(node.operand(1).static_shape)
        return "" if count <= MOST_PRODUCTS else f"it sums {count} products"
    return "" if node.name in _TESTS or node.name in _CLOSED else "there is no test of this op"


def fits(node: Node) -> Value:
    """Build behind a narrowed op whether each element of its result is right: a scalar i1."""
    build = Builder(mlir.insert_after(node.raw), node.raw.location)
    if node.name in _CLOSED:
        return build.constant(1, (), "i1")
    if node.name in SUMMED:
        held = _sum_fits(build, node)
    elif node.name in PRODUCTS:
        held = _sum_of_products(build, node)
    else:
        held = _TESTS[node.name](build, node)
    return every(build, held)


def every(build: Builder, held: Value) -> Value:
    """Whether all elements of an i1 tensor are true: a scalar."""
    rank = len(held.static_shape)
    if not rank:
        return held
    scalar = mlir.tensor_type((), "i1")
    start = build.constant(1, (), "i1")
    node = build.op(names.REDUCE, [held, start], [scalar], {"dimensions": mlir.dense_i64(range(rank))}, regions=1)
    build.region(node, 0, [scalar, scalar], lambda inner, pair: [inner.and_(*pair)])
    return node.result()


# --- elementwise --------------------------------------------------------------------------------------------------


def _number(build: Builder, number: int, like: Value) -> Value:
    return build.constant(number, like.static_shape, like.element_type)


def _not_negative(build: Builder, value: Value) -> Value:
    return build.compare(value, "GE", 0)


def _either(build: Builder, left: Value, right: Value) -> Value:
    return build.or_(left, right)


def _least(build: Builder, like: Value) -> Value:
    return _number(build, -(1 << WIDTH - 1), like)


def _add(build: Builder, node: Node) -> Value:
    """Signed: the sum has the sign of an operand. Unsigned: it is no less than an operand."""
    (left, right), total = node.operands, node.result()
    if total.element.is_unsigned:
        return build.compare(total, "GE", left)
    changed = [build.xor(operand, total) for operand in (left, right)]
    return _not_negative(build, build.and_(*changed))


def _subtract(build: Builder, node: Node) -> Value:
    """Signed: the operands have one sign, or the difference that of the first one."""
    (left, right), rest = node.operands, node.result()
    if rest.element.is_unsigned:
        return build.compare(left, "GE", right)
    changed = [build.xor(left, other) for other in (right, rest)]
    return _not_negative(build, build.and_(*changed))


def _negate(build: Builder, node: Node) -> Value:
    """All but the least number; of unsigned ones 0 alone."""
    operand = node.operand(0)
    if operand.element.is_unsigned:
        return build.compare(operand, "EQ", _number(build, 0, operand))
    return build.compare(operand, "NE", _least(build, operand))


def _not(build: Builder, node: Node) -> Value:
    """The upper half of an unsigned one is all ones."""
    return build.constant(int(not node.result().element.is_unsigned), node.result().static_shape, "i1")


def _multiply(build: Builder, node: Node) -> Value:
    """The product divided by a factor other than 0 and -1 is the other one; -1 negates.

    A quotient of the least number by -1, which some consumers trap on, is not computed.
    """
    (left, right), product = node.operands, node.result()
    one, zero = (_number(build, k, left) for k in (1, 0))
    if product.element.is_unsigned:
        divisor = build.select(build.compare(left, "EQ", zero), one, left)
        same = build.compare(build.divide(product, divisor), "EQ", right)
        return _either(build, same, build.compare(left, "EQ", zero))
    is_negation = build.compare(left, "EQ", _number(build, -1, left))
    special = _either(build, build.compare(left, "EQ", zero), is_negation)
    divisor = build.select(special, one, left)
    same = build.compare(build.divide(product, divisor), "EQ", right)
    negated = build.and_(is_negation, build.compare(right, "NE", _least(build, right)))
    is_zero = build.compare(left, "EQ", zero)
    plain = build.and_(build.elementwise(names.NOT, special), same)
    return _either(build, _either(build, is_zero, negated), plain)


def _divide(build: Builder, node: Node) -> Value:
    """Not the least number by -1; of unsigned ones nothing by 0, which gives all ones."""
    left, right = node.operands
    if left.element.is_unsigned:
        return build.compare(right, "NE", _number(build, 0, right))
    by_one = build.compare(right, "NE", _number(build, -1, right))
    return _either(build, by_one, build.compare(left, "NE", _least(build, left)))


def _shift_left(build: Builder, node: Node) -> Value:
    """Shifted back it is what it was."""
    (operand, amount), shifted = node.operands, node.result()
    name = "shift_right_logical" if operand.element.is_unsigned else "shift_right_arithmetic"
    return build.compare(build.elementwise(name, shifted, amount), "EQ", operand)


def _convert(build: Builder, node: Node) -> Value:
    """Of a float: it is between the least number less 1 and the greatest plus 1. NaN is not.

    Of an integer of the other sign: both are not negative.
    """
    given, result = node.operand(0), node.result()
    is_unsigned = result.element.is_unsigned
    if given.element.is_float:
        wide = build.convert(given, "f64" if given.element_type == "f64" else "f32")
        low = (-1.0, False) if is_unsigned else (-float(1 << 31), True)
        if wide.element_type == "f64" and not is_unsigned:
            low = (-float(1 << 31) - 1.0, False)
        high = float(1 << (32 if is_unsigned else 31))
        least, most = (build.float_splat(v, wide.static_shape, wide.element_type) for v in (low[0], high))
        above = build.compare(wide, "GE" if low[1] else "GT", least)
        return build.elementwise("and", above, build.compare(wide, "LT", most))
    if given.element_type == "i1" or given.element.is_unsigned == is_unsigned:
        return build.constant(1, result.static_shape, "i1")
    return _not_negative(build, given if is_unsigned else result)


_CLOSED = frozenset({names.AND, names.OR, names.XOR})
"""Ops that give numbers of 32 bits of such: the upper half is made of copies of the sign, or zeros."""

_TESTS: Mapping[str, Callable[[Builder, Node], Value]] = {
    names.ADD: _add,
    names.SUBTRACT: _subtract,
    names.NEGATE: _negate,
    names.ABS: _negate,
    names.NOT: _not,
    names.MULTIPLY: _multiply,
    names.DIVIDE: _divide,
    names.SHIFT_LEFT: _shift_left,
    names.CONVERT: _convert,
}


# --- sums ---------------------------------------------------------------------------------------------------------


def _summand_count(node: Node) -> int:
    """How many elements a sum adds for one of its result, the start included."""
    if node.name == names.REDUCE_WINDOW:
        return prod(node.integers("window_dimensions")) + 1
    shape = node.operand(0).static_shape
    return prod(shape[dim] for dim in node.integers("dimensions")) + 1


def _why_no_sum(node: Node) -> str:
    body = node.blocks[0]
    returned = body.terminator.operand(0).node
    is_sum = returned is not None and returned.name == names.ADD and set(returned.operands) == {*body.arguments}
    if len(node.results) != 1 or not is_sum:
        return "it is not a sum"
    count = _summand_count(node)
    return "" if count <= DIGITS[-1][1] else f"it sums {count - 1} elements"


def _sum_fits(build: Builder, node: Node) -> Value:
    """A sum by digits, whose carries go up: it fits where that of the upmost digits does.

    Of n numbers of b bits each the sum is below n 2^b; the upmost digit is signed where the number is.
    """
    bits = next(bits for bits, most in DIGITS if _summand_count(node) <= most)
    places = range(0, WIDTH, bits)
    given = [_digits(build, value, bits) for value in node.operands]
    types = [value.raw.type for value in node.results]
    sums = [build.copy_on(node, [part[k] for part in given], types, {}).result() for k in range(len(places))]
    total = sums[0]
    unsigned = total.element.is_unsigned
    for following in sums[1:]:
        carry = build.elementwise(names.SHIFT_RIGHT_LOGICAL, total, _number(build, bits, total))
        total = build.add(following, carry)
    low, high = (0, 1 << bits) if unsigned else (-(1 << bits - 1), 1 << bits - 1)
    below = build.compare(total, "LT", _number(build, high, total))
    return below if unsigned else build.and_(below, build.compare(total, "GE", _number(build, low, total)))


def _digits(build: Builder, value: Value, bits: int) -> list[Value]:
    """The digits of numbers, the least first; the last one has the sign."""
    mask, parts = _number(build, (1 << bits) - 1, value), list[Value]()
    for place in range(0, WIDTH, bits):
        is_last = place + bits == WIDTH
        name = "shift_right_arithmetic" if is_last and not value.element.is_unsigned else "shift_right_logical"
        moved = build.elementwise(name, value, _number(build, place, value)) if place else value
        parts.append(moved if is_last else build.and_(moved, mask))
    return parts


# --- sums of products ---------------------------------------------------------------------------------------------


def _sum_of_products(build: Builder, node: Node) -> Value:
    """The sum of the magnitudes of all products is below 2^30, rounded in f32.

    Factors that are rounded to 8 bits or more, and 2^22 additions that are rounded to 24 or more, take less than a half
    of a sum of what is not negative: (1 - 2^-8)^2 (1 - 2^-24)^(2^22) > 0.77. So the sum is below 2^31. It may fit where
    this is false.
    """
    factors = [build.abs(build.convert(value, "f32")) for value in node.operands]
    raw_type = mlir.tensor_type(node.result().static_shape, "f32")
    total = build.op(node.name, factors, [raw_type], mlir.attributes_of(node.raw)).result()
    return build.compare(total, "LT", build.float_splat(float(1 << 30), total.static_shape, "f32"))


# --- one more result of every public function: whether what was assumed of a module held in this run ---
#
#     func.func public @main(%0: tensor<f32>) -> (tensor<i32>, tensor<i1> {jax.result_info = "assumptions_hold"})
#
# What is tested in a loop is carried by it, what is tested in a branch is a result of the branch, what is tested in a
# private function is a result of that.


RESULT = "assumptions_hold"


def give_result(graph: Graph, tested: Collection[Node]) -> None:
    """Give each public function of a module one more result, true where all tests were true; in place.

    Args:
      graph: the module, its integers narrowed.
      tested: the nodes that are tested (`overflow.fits`), all in reach of a public function.

    Raises:
      NotLoweredError: a public function is named otherwise than by calls, so that its type cannot change.
    """
    with mlir.active(graph.context):
        _Threading(graph, tested).run()
    graph.forget()


class _Threading:
    def __init__(self, graph: Graph, tested: Collection[Node]) -> None:
        self._graph = graph
        self._tests: dict[Block, list[Value]] = {}  # by block, as what a node is hashed by changes with its operands
        for node in tested:
            self._tests.setdefault(Block(mlir.block_of(node.raw)), []).append(fits(node))
        self._functions = graph.functions
        self._known: dict[str, bool] = {}

    def run(self) -> None:
        for name, function in self._functions.items():
            if function.is_public and function.has_body:
                self._gives(name)

    def _gives(self, name: str) -> bool:
        """Whether a function gives what was tested, as its last result; it does from now on."""
        if name not in self._known:
            function = self._functions.get(name)
            self._known[name] = function is not None and function.has_body and self._extend(function)
        return self._known[name]

    def _extend(self, function: Function) -> bool:
        held = self._truths(function.body)
        if not held and not function.is_public:
            return False
        if self._graph.has_other_reference(function.name):
            what = f"@{function.name} is named by a composite or a custom call, and so cannot get a result more"
            raise NotLoweredError(self._graph.name, what, next_step="convert without --checked, or with --legalize")
        _name_result(function)
        _return_also(function.body, held)
        mlir.set_signature(function.node.raw)
        return True

    def _truths(self, block: Block) -> list[Value]:
        """The truths of all tests in a block and below; inner loops and branches return theirs."""
        found = self._tests.get(block, [])
        for node in list(block.nodes):
            if node.name == "func.call":
                found += [_add_truth_result(node, node.operands).results[-1]] if self._gives(node.callee) else []
            elif node.name == WHILE:
                inner = self._truths(node.blocks[1])
                found += [_carry_truth(node, inner)] if inner else []
            elif node.name in (CASE, IF):
                branches = [self._truths(branch) for branch in node.blocks]
                found += [_select_truth(node, branches)] if any(branches) else []
        return found


def _all_of(build: Builder, held: Sequence[Value]) -> Value:
    if not held:
        return build.constant(1, (), "i1")
    found = held[0]
    for other in held[1:]:
        found = build.and_(found, other)
    return found


def _return_also(block: Block, held: Sequence[Value]) -> None:
    """Let a block return whether all tests held, behind what it returns."""
    last = block.terminator
    build = Builder.before(last)
    build.op(last.name, [*last.operands, _all_of(build, held)], [], mlir.attributes_of(last.raw))
    last.raw.erase()


def _add_truth_result(node: Node, operands: Sequence[Value]) -> Node:
    return rebuilt(node, operands, [*(value.raw.type for value in node.results), mlir.tensor_type((), "i1")])


def _carry_truth(node: Node, held: Sequence[Value]) -> Value:
    """Make a loop carry whether its tests held in all trips so far; returns that result."""
    start = Builder.before(node).constant(1, (), "i1")
    body = node.blocks[1]
    for block in node.blocks:
        mlir.add_argument(block.raw, start.raw.type, node.raw.location)
    _return_also(body, [body.arguments[-1], *held])
    return _add_truth_result(node, [*node.operands, start]).results[-1]


def _select_truth(node: Node, branches: Sequence[Sequence[Value]]) -> Value:
    for block, held in zip(node.blocks, branches, strict=True):
        _return_also(block, held)
    return _add_truth_result(node, node.operands).results[-1]


def _name_result(function: Function) -> None:
    """Say what the result is, in the place where JAX says what a result is."""
    raw, count = function.node.raw, len(function.body.terminator.operands)
    given = [str(entry) for entry in raw.attributes["res_attrs"]] if "res_attrs" in raw.attributes else ["{}"] * count
    if function.is_public or "res_attrs" in raw.attributes:
        told = f'{{jax.result_info = "{RESULT}"}}' if function.is_public else "{}"
        raw.attributes["res_attrs"] = mlir.parse_attribute(f"[{', '.join([*given, told])}]")


NAMED = "_out_named_shardings"
"""A field of `Exported` with an entry for each result, since jax 0.9."""


def with_result(graph: Graph) -> jax.export.Exported | None:
    """The `Exported` that a graph came from: it gives a pair, of what it gave and of whether the assumptions held.

    None where it came from none.
    """
    exported: Any = graph.exported
    if exported is None:
        return None
    tree: Any = jax.tree_util
    given = exported.out_tree.unflatten([0] * exported.out_tree.num_leaves)
    named: dict[str, Any] = {NAMED: (*getattr(exported, NAMED), None)} if hasattr(exported, NAMED) else {}
    return replace(
        exported,
        out_tree=tree.tree_structure((given, 0)),
        out_avals=(*exported.out_avals, jax.core.ShapedArray((), np.dtype(np.bool_))),
        **named,
        out_shardings_hlo=(*exported.out_shardings_hlo, None),
        mlir_module_serialized=mlir.module_portable_artifact(graph.module),
    )


# --- which ops have to be tested at run time, so that what narrowing 64-bit integers assumes is known to hold ---
#
# An assumption says that the result of an op fits. A test computes that from the op's narrowed operands, and says
# something only where these are right themselves: so what they are made of is tested, too, as far as it is not proved.


THREADED = frozenset({WHILE, CASE, IF})
"""Ops whose regions can give one more result."""


class RunTimeChecks:
    """The tests of a module's assumptions.

    Args:
      graph: the module before it is narrowed.
      demand: what is asked of its 64-bit integers.
      callers: for each function the nodes that call it, or name it as composites.

    Attributes:
      tested: the nodes to be tested.
      untested: the assumed nodes of which no test can be made, each with the reason.
    """

    def __init__(self, graph: Graph, demand: Demand, callers: Mapping[str, Sequence[Node]]) -> None:
        self._graph = graph
        self._demand = demand
        self._callers = callers
        self.tested: dict[Node, None] = {}
        self.untested: dict[Node, str] = {}
        for node in demand.assumed:
            found, reason = self._nodes_to_test(node)
            if reason:
                self.untested[node] = reason
            else:
                self.tested.update(found)

    def _nodes_to_test(self, assumed: Node) -> tuple[dict[Node, None], str]:
        """The nodes that are tested for one assumption; why there is no test, "" where there is one."""
        found: dict[Node, None] = {}
        seen: set[Value] = set()
        pending = [assumed.result()]
        while pending:
            value = pending.pop()
            if value in seen or not is_wide(value) or (value != assumed.result() and self._demand.fits(value)):
                continue
            seen.add(value)
            node = value.node
            if node is not None and node.name == CONSTANT:
                return {}, "it uses a constant that does not fit"
            sources = self._demand.sources_of(value)
            if sources is not None:
                pending += sources
            elif node is not None and (node.name in ORDERED | WITHIN or _is_nothing(node)):
                pending += node.operands
            elif node is not None:
                parent = node.parent
                tested = parent if parent is not None and parent.name in FOLDING else node
                reason = why_not_testable(tested) or self._why_out_of_reach(tested)
                if reason:
                    return {}, reason
                found[tested] = None
                pending += tested.operands
            # else an argument of a public function: whoever calls it narrows it
        return found, ""

    def _why_out_of_reach(self, node: Node) -> str:
        """Why what is computed behind a node cannot become a result of the public functions, "" where it can."""
        child = node
        while (parent := child.parent) is not None and parent.name != "func.func":
            if parent.name not in THREADED:
                return f"it stands within a {parent.name.removeprefix('stablehlo.')}"
            if parent.name == WHILE and child in list(parent.blocks[0].nodes):
                return "it stands in the condition of a loop"
            child = parent
        if parent is None:
            return "it stands in no function"
        return self._why_function_out_of_reach(Function(parent))

    def _why_function_out_of_reach(self, function: Function) -> str:
        if self._graph.has_other_reference(function.name):
            return f"@{function.name} is named otherwise than by calls"
        callers = self._callers.get(function.name, ())
        return next((reason for call in callers if (reason := self._why_out_of_reach(call))), "")


def _is_nothing(node: Node) -> bool:
    """Whether a node converts to the type that is there already, and so goes."""
    return node.name == CONVERT and node.operand(0).element_type == node.result().element_type
