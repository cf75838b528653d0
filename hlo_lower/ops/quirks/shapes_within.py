"""Reshapes in a region of what is reshaped outside of it, which a consumer merges across the border."""

from hlo_lower.ir import mlir
from hlo_lower.ir.view import Graph, Node, Value
from hlo_lower.ops.names import BROADCAST_IN_DIM, CONVERT, DOT_GENERAL, DYNAMIC_SLICE, RESHAPE, SLICE, WHILE
from hlo_lower.ops.origins import read_at_calls
from hlo_lower.ops.quirks.branches import F
from hlo_lower.ops.quirks.in_place import is_reshape
from hlo_lower.ops.quirks.quirk import Place, Quirk, Rewrite, hold_result, module, over_each

SHAPING = (RESHAPE, BROADCAST_IN_DIM)
"""Ops that may be a reshape for the consumer, and nothing else."""

BEGINNING = (*SHAPING, DOT_GENERAL)
"""Ops that may begin with a reshape of an operand there."""

NOTHING = (CONVERT, SLICE, DYNAMIC_SLICE)
"""Ops that give their first operand where the type is the same, and are erased there then."""

HELD = ("i1", "i32", "f16", "f32")
"""Types of which the consumer computes a maximum, or an `and`."""


def is_reshaped_within(graph: Graph, node: Node) -> bool:
    """Whether what a reshape gives is reshaped by ops of a region that the reshape does not stand in.

    A loop reads what it passes on from turn to turn as it is as from around it, and a function stands where it is
    called.
    """
    if not is_reshape(node) or node.result().element_type not in HELD:
        return False
    pending = [(node.result(), False)]
    seen = set(pending)
    while pending:
        value, is_within = pending.pop()
        for use in value.raw.uses:
            reader, number = Node(use.owner.operation), use.operand_number
            entered = is_within or mlir.block_of(reader.raw) != _home(value)
            if entered and reader.name in BEGINNING:
                return True
            following = [(one, entered) for one in read_at_calls(graph, reader, number)]
            if reader.name == WHILE and (passed := _passed_on(reader, number)) is not None:
                following.append((passed, True))
            if reader.name in NOTHING and number == 0 and reader.result().raw.type == value.raw.type:
                following.append((reader.result(), entered))
            pending += [one for one in following if one not in seen]
            seen.update(following)
    return False


def _passed_on(loop: Node, number: int) -> Value | None:
    """What a loop's body is given for an operand, if it returns that as it was given."""
    body = loop.blocks[1]
    given = body.argument(number)
    return given if body.terminator.operand(number) == given else None


def _home(value: Value) -> mlir.RawBlock:
    """The block of which a value is an argument, or whose op gives it."""
    made = value.node
    return mlir.block_of(made.raw) if made is not None else value.raw.owner


@over_each(*SHAPING)
def hold_shape(graph: Graph, node: Node) -> None:
    """Compute the greater of what such a reshape gives and itself, in place.

        %y = reshape %x   case (%i) { reshape %y }
        ->
        %y = reshape %x   %z = maximum %y, %y   case (%i) { reshape %z }

    Equal: of two numbers that are the same one the greater one is that number, also of zeros and NaN. Of truths it is
    their `and`.
    """
    if is_reshaped_within(graph, node):
        hold_result(node)


G = "tensor<2x2xf32>"
WITHIN = Quirk(
    "reshape within a region of what is reshaped outside",
    SHAPING,
    {"coreml": "coremltools merges both into one, and looks for the outer one among the ops of the region"},
    "the greater of the outer one's result and itself, which a region reads",
    module(
        f"%i: tensor<i32>, %x: {F}",
        F,
        f"%y = stablehlo.reshape %x : ({F}) -> {G}",
        '%r = "stablehlo.case"(%i) ({',
        f"  %z = stablehlo.reshape %y : ({G}) -> {F}",
        f"  stablehlo.return %z : {F}",
        f"}}, {{ stablehlo.return %x : {F} }}) : (tensor<i32>) -> {F}",
    ),
    is_reshaped_within,
    (Rewrite("hold-shapes", "holds back what a region reshapes again", hold_shape, Place.LAST),),
)
