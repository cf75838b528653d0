"""Forms of what loops carry are the same whatever was asked before, also while another carried value is assumed."""

import pytest
import slow_modules as slow

from hlo_lower.facts.forms.affine import AffineAnalysis
from hlo_lower.facts.forms.linear import Linear, Position
from hlo_lower.facts.forms.places import Entry
from hlo_lower.facts.ranges.index_facts import IndexAnalysis
from hlo_lower.facts.values.site import Site
from hlo_lower.ir.reader import read

PLACE = (Linear(0, {Position(0, 16): 1}),)
BODY = f"""%a = stablehlo.broadcast_in_dim %i, dims = [] : (tensor<i32>) -> {slow.VECTOR}
%p = stablehlo.add %w0, %a : {slow.VECTOR}
%q = stablehlo.add %w1, %w0 : {slow.VECTOR}
%d = stablehlo.subtract %q, %w0 : {slow.VECTOR}"""


def loop_graph():
    """A loop over two runs: the first goes up by the counter, the second by the first and down by it again."""
    run = f"%run = stablehlo.iota dim = 0 : {slow.VECTOR}\n"
    return read(slow.scattered(run + slow.loop(BODY, ["%p", "%d"], ["%run", "%run"]), "%w#2"))


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_a_run_that_a_loop_moves_stays_a_run(order):
    """Both are runs behind the loop, whichever is asked for first."""
    graph = loop_graph()
    loop = graph.scatters[0].operand(1).node.operand(0).node
    forms = AffineAnalysis(IndexAnalysis(graph))
    for number in order:
        assert forms.of(Entry(Site(loop.result(number + 1)), PLACE)).stride(0) == 1
