"""What a loop of a plan takes of each tensor in a step, to be told and drawn: what it reads, computes and gives."""

from collections.abc import Iterable

from hlo_lower.base.drawing.picture import Look
from hlo_lower.facts.memory.dataflow import Dataflow
from hlo_lower.ir.view import Value
from hlo_lower.ops.axes.cut import Steps
from hlo_lower.tile.emit.emit_loops import is_made_inside, read_around
from hlo_lower.tile.emit.phases import Loop, LoopPlan
from hlo_lower.tile.loop_picture import LoopPart


def loop_parts(program: Dataflow, plan: LoopPlan, loop: Loop, steps: Steps) -> tuple[LoopPart, ...]:
    """The tensors that a loop is about, those of a role in order of their bytes; before it is emitted.

    Scalars, constants of one value and masks that are made in the loop are left out, and of what is computed what is
    not large.

    Args:
      program, plan, loop: what is computed, and how it is cut.
      steps: those of a tile.
    """
    dims, least = plan.labels.dims, plan.labels.core.least

    def told(look: Look, found: Iterable[tuple[Value, int | None]], combine: str = "") -> list[LoopPart]:
        known = [(v, dim) for v, dim in dict.fromkeys(found) if v.static_shape]
        known.sort(key=lambda pair: -program.size[pair[0]])
        return [LoopPart(look, _named(program, v) + combine, steps.part(v.static_shape, dim)) for v, dim in known]

    around = [pair for pair in read_around(program, plan, loop) if not is_made_inside(program, plan, pair[0])]
    made = [value for node in loop.nodes if node not in loop.accumulators for value in node.results]
    held = [v for v in made if v not in loop.tiles and v not in program.cheap and program.size[v] >= least]
    parts = told(Look.READ, around) + told(Look.HELD, ((v, dims[v]) for v in held if v in dims))
    parts += told(Look.WRITTEN, ((v, dims[v]) for v in loop.tiles))
    for node in loop.accumulators:
        parts += told(Look.ADDED, ((v, None) for v in node.results), f" by {plan.labels.axes[node].combine}")
    return tuple(parts)


def _named(program: Dataflow, value: Value) -> str:
    maker = program.maker.get(value) or value.node
    return f"argument {value.number}" if maker is None else maker.name.removeprefix("stablehlo.")
