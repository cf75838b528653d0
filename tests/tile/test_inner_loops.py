"""What is large in the body of a scan is computed in loops within the body; what a scan stacks is named."""

import jax
import jax.numpy as jnp

import hlo_lower as hl
from hlo_lower.facts.memory.dataflow import ENTERED, Dataflow
from hlo_lower.facts.memory.liveness import liveness, programs_at_peak
from hlo_lower.ir.writer import to_text
from hlo_lower.ops.axes.all_rules import default_subset_rules
from hlo_lower.ops.axes.cut import Boundary
from hlo_lower.tile.emit.emit_loops import emit
from hlo_lower.tile.find.choose import choices
from hlo_lower.tile.prepare.normalize import prepare

F32 = jnp.float32


def layers(count=3, tokens=48, width=4):
    """A scan over layers of attention, whose scores are large, and which stacks what it goes through."""

    def forward(x, weights):
        def layer(x, w):
            scores = jax.nn.softmax(jnp.einsum("td,sd->ts", x @ w, x), -1)
            return x + scores @ x, x

        return jax.lax.scan(layer, x, weights)

    shapes = ((tokens, width), (count, width, width))
    return jax.jit(forward).lower(*(jax.ShapeDtypeStruct(s, F32) for s in shapes)).as_text()


def prepared(text):
    """A module, its calls inlined in loops, too."""
    graph = hl.read(text)
    prepare(graph)
    return graph, Dataflow(graph, default_subset_rules())


def test_a_loop_within_the_body_of_a_scan():
    """The scores of a layer are live in the scan's body; a loop over their rows is made there, and both are equal."""
    text = layers()
    graph, program = prepared(text)
    outer, inner = programs_at_peak(program)
    assert (outer, liveness(outer).most >= 48 * 48 * 4) == (program, True)
    choice = next(c for c in choices(program, 4096) if c.program is inner)
    assert choice.plan.labels.core.seed.static_shape == (48, 48)
    emit(choice.program, choice.plan, choice.sizes)
    after = to_text(graph)
    assert after.count("stablehlo.while") == text.count("stablehlo.while") + 1
    assert 2 * liveness(prepared(after)[1]).most < liveness(prepared(text)[1]).most
    assert hl.verify(text, after, level="regions", float_mode="reassociate").ok


def test_loops_are_scf_for_in_linalg():
    """Converted for linalg, the loop over tiles within the scan and the scan are `scf.for`, and no `while` is left."""
    graph, program = prepared(layers())
    choice = next(c for c in choices(program, 4096) if c.program is not program)
    emit(choice.program, choice.plan, choice.sizes)
    text = hl.lower(graph, target="linalg").text
    assert text.count("scf.for") == 2
    assert "while" not in text


def test_what_a_scan_stacks_is_named():
    """A loop itself is a boundary, and says that loops are made within it and that what it stacks is whole."""
    program = prepared(layers())[1]
    [axes] = [program.axes(node) for node in program.nodes if node.name == "stablehlo.while"]
    assert isinstance(axes, Boundary)
    assert axes.reason == ENTERED
