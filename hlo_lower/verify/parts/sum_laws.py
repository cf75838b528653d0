"""Laws of ops that sum, or combine otherwise: products, reductions, convolutions, and scatters with their updates.

What is summed is cut, too: a part of a sum is a sum of part of it, over the runs of `Part.summed`. The dims that are
summed are those of `summed_extents`. Scatter positions are such a dim: their outermost one, in order.
"""

from collections.abc import Sequence

from hlo_lower.ir import mlir
from hlo_lower.verify.parts.op_parts import Goal, OpParts, Run, all_goals, integers, shape_of
from hlo_lower.verify.parts.place_laws import beside
from hlo_lower.verify.parts.positions import ZERO
from hlo_lower.verify.read.program import Op, Program

NEUTRAL = {"add": 0, "multiply": 1, "or": 0, "and": -1, "xor": 0}
"""What each combiner leaves alone, as an integer; the extremes of the type are those of maximum and minimum."""


def summed_extents(program: Program, op: Op) -> tuple[int, ...]:
    """How long what an op sums is, for each dim that is summed; () where it sums nothing that is cut."""
    if op.name == "stablehlo.reduce":
        shape = shape_of(program, op.inputs[0])
        return tuple(shape[d] for d in integers(op, "dimensions"))
    if op.name == "stablehlo.dot_general":
        shape = shape_of(program, op.inputs[0])
        summed: Sequence[int] = mlir.dot_dimension_numbers(op.raw).lhs_contracting_dimensions
        return tuple(shape[d] for d in summed)
    if op.name == "stablehlo.scatter":
        place = outermost_position(program, op)
        return () if place is None else (shape_of(program, op.inputs[len(op.results)])[place],)
    return ()


def combiner_of(op: Op) -> str | None:
    """The elementwise op by which parts of a sum are combined; None where there is none."""
    if op.name == "stablehlo.dot_general":
        return "add"
    if op.name != "stablehlo.reduce" or len(op.results) != 1:
        return None
    [body] = op.bodies
    if len(body.ops) != 1 or body.returned != body.ops[0].results or set(body.ops[0].inputs) != set(body.arguments):
        return None
    name = body.ops[0].short_name
    return name if name in (*NEUTRAL, "maximum", "minimum") else None


def summed_runs(asked: OpParts) -> tuple[Run, ...]:
    """What is summed of each summed dim."""
    return asked.part.summed or tuple((ZERO, n) for n in summed_extents(asked.programs[0], asked.first))


def reduce(asked: OpParts) -> list[Goal] | None:
    """An element is reduced from its own line of the inputs: dims that stay are cut alike, reduced ones as summed."""
    if not (asked.has_same_attributes() and asked.is_same_body(0)):
        return None
    count = len(asked.first.results)
    reduced = integers(asked.first, "dimensions")
    kept = [d for d in range(len(asked.shape(0))) if d not in reduced]
    runs = {d: asked.run(place) for place, d in enumerate(kept)} | dict(zip(reduced, summed_runs(asked), strict=True))
    return all_goals([asked.goal(k, runs if k < count else None) for k in range(2 * count)])


def dot_general(asked: OpParts) -> list[Goal] | None:
    """Batching dims are cut in all three, free ones in an operand and the result, contracting ones as summed."""
    if not asked.has_same_attributes():
        return None
    numbers = mlir.dot_dimension_numbers(asked.first.raw)
    batching = tuple(map(int, numbers.lhs_batching_dimensions)), tuple(map(int, numbers.rhs_batching_dimensions))
    summed = tuple(map(int, numbers.lhs_contracting_dimensions)), tuple(map(int, numbers.rhs_contracting_dimensions))
    place = len(batching[0])
    goals: list[Goal | None] = []
    for number in (0, 1):
        runs = {d: asked.run(i) for i, d in enumerate(batching[number])}
        runs |= dict(zip(summed[number], summed_runs(asked), strict=True))
        for dim in range(len(asked.shape(number))):
            if dim not in runs:
                runs[dim] = asked.run(place)
                place += 1
        goals.append(asked.goal(number, runs))
    return all_goals(goals)


def convolution(asked: OpParts) -> list[Goal] | None:
    """Each image is convolved by itself; each feature of the output has its own part of the kernel."""
    numbers = mlir.convolution_dimension_numbers(asked.first.raw)
    may_cut, given = {numbers.output_batch}, asked.first.raw.attributes
    if mlir.integer_of(given["batch_group_count"]) != 1:
        may_cut = set[int]()
    elif mlir.integer_of(given["feature_group_count"]) == 1:
        may_cut.add(numbers.output_feature)
    if not asked.has_same_attributes():
        return None
    if not all(asked.takes_all(d) for d in range(len(asked.result)) if d not in may_cut):
        return None
    images = {numbers.input_batch: asked.run(numbers.output_batch)} if numbers.output_batch in may_cut else {}
    kernel = {}
    if numbers.output_feature in may_cut:
        kernel = {numbers.kernel_output_feature: asked.run(numbers.output_feature)}
    return all_goals([asked.goal(0, images), asked.goal(1, kernel)])


def reduce_window(asked: OpParts) -> list[Goal] | None:
    """Along a dim of windows of one element that move by one, without dilation or padding, elements stay apart."""
    rank = len(asked.result)
    names = ("window_dimensions", "window_strides", "base_dilations", "window_dilations")
    given = [integers(asked.first, name) for name in names if name in asked.first.raw.attributes]
    edges = [0] * (2 * rank)
    if "padding" in asked.first.raw.attributes:
        edges = list(mlir.dense_integers(asked.first.raw.attributes["padding"]))
    single = [d for d in range(rank) if all(values[d] == 1 for values in given) and not any(edges[2 * d : 2 * d + 2])]
    others = set(range(rank)) - set(single)
    return beside(asked, others, len(asked.first.results)) if asked.is_same_body(0) else None


def outermost_position(program: Program, op: Op) -> int | None:
    """The dim of a scatter's indices that counts its positions and comes first of those of more than one."""
    numbers = mlir.ScatterNumbers.of(op.raw)
    shape = shape_of(program, op.inputs[len(op.results)])
    places = (d for d in range(len(shape)) if d != numbers.index_vector_dim and shape[d] != 1)
    place = next(places, None)
    return None if place in numbers.scatter_indices_batching_dims else place


def scatter(asked: OpParts) -> list[Goal] | None:
    """Window dims that updates cover and indices do not move are cut alike; batching dims; positions as summed.

    Right: along such a dim each position of the result is written from the updates of the same position; a window that
    is dropped is dropped for every part, because what indices say does not change.
    """
    if not (asked.has_same_attributes() and asked.is_same_body(0)):
        return None
    numbers = mlir.ScatterNumbers.of(asked.first.raw)
    count = len(asked.first.results)
    indices, updates = asked.shape(count), asked.shape(count + 1)
    places = [d for d in range(len(indices)) if d != numbers.index_vector_dim]
    positions = [d for d in range(len(updates)) if d not in numbers.update_window_dims]
    update_dim = dict(zip(places, positions, strict=True))
    mine: dict[int, Run] = {}
    its: dict[int, Run] = {}
    index: dict[int, Run] = {}
    gone = (*numbers.inserted_window_dims, *numbers.input_batching_dims)
    windows = [d for d in range(len(asked.result)) if d not in gone]
    for dim, window in zip(windows, numbers.update_window_dims, strict=True):
        if asked.result[dim] == updates[window] and dim not in numbers.scatter_dims_to_operand_dims:
            mine[dim] = its[window] = asked.run(dim)
    for dim, place in zip(numbers.input_batching_dims, numbers.scatter_indices_batching_dims, strict=True):
        mine[dim] = index[place] = its[update_dim[place]] = asked.run(dim)
    if not all(asked.takes_all(d) for d in range(len(asked.result)) if d not in mine):
        return None
    place = outermost_position(asked.programs[0], asked.first)
    if place is not None:
        [index[place]] = summed_runs(asked)
        its[update_dim[place]] = index[place]
    given = [mine] * count + [index] + [its] * count
    return all_goals([asked.goal(k, runs) for k, runs in enumerate(given)])


SUM_LAWS = {
    "stablehlo.reduce": reduce,
    "stablehlo.dot_general": dot_general,
    "stablehlo.convolution": convolution,
    "stablehlo.reduce_window": reduce_window,
    "stablehlo.scatter": scatter,
}
