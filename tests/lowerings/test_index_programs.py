"""Random programs that compute indices, lowered and run against the NumPy reference, under both policies.

What is recognised in a program (runs, wrapped runs, batch coordinates, constants) chooses the rule, so each rule is
only as right as the recognition before it. The arguments take the extremes of the index type.
"""

from collections import Counter

import numpy as np
import pytest
from index_programs import draw_arguments, draw_case

import hlo_lower as hl
from hlo_lower.verify.judges.definitions import combine_of, scatter
from hlo_lower.verify.run import Executable

POLICIES = ("xla", "spec")
SLOW_LOOPS = ("loop=12000", "window=5000", "step=10000", "pass_element=1", "copy_element=0.005")
"""Costs by which every form is the cheapest one somewhere."""

# Style and combiner, so that a few draws reach each rule.
DEFAULT = [
    *((seed, "runs", ("assign", "mixed")[seed % 2]) for seed in range(10)),
    *((seed, "batched", None) for seed in (3, 5, 15, 16, 19, 20, 21, 22, 31, 39)),
    *((seed, "constant", ("assign", "add")[seed % 2]) for seed in range(20, 30)),
    *((seed, None, None) for seed in range(30, 40)),
]
NEW_RULES = {
    *("shifted_rows", "shifted_updated_rows", "wrapped_rows", "wrapped_updated_rows"),
    *("unrolled", "select_per_batch"),
    *("constant_slices", "strided_select", "constant_gather"),
}


def check(seed, style=None, combiner=None):
    """Compare one program under both policies, with eight sets of arguments each; returns the rules."""
    rng = np.random.default_rng(seed)
    case = draw_case(rng, style, combiner)
    graph = hl.read(case.text)
    combine = combine_of(graph.scatters[0].raw, {})
    rules, executables = [], {}
    for oob in POLICIES:
        lowered = hl.lower(case.text, oob=oob, prefer=SLOW_LOOPS)
        assert "stablehlo.scatter" not in lowered.text
        rules.append(lowered.records[0].rule)
        if lowered.text not in executables:
            executables[lowered.text] = Executable(lowered.text, "exact")
        executable = executables[lowered.text]
        for n in range(8):
            arguments = draw_arguments(rng, case, n)
            operand = rng.integers(-50, 50, case.operand).astype(np.int32)
            updates = rng.integers(-50, 50, case.updates).astype(np.int32)
            index = case.program.run(arguments)[case.index]
            given = [operand], index, [updates], case.numbers, combine, [np.dtype(np.int32)]
            [expected] = scatter(*given, oob=oob)
            [found] = executable.run([operand, updates, *arguments])
            what = f"seed {seed}, oob={oob}, {rules[-1]}, arguments {[a.tolist() for a in arguments]}\n{case.text}"
            np.testing.assert_array_equal(found, expected, what)
    return rules


def test_every_new_rule_is_right_on_computed_indices():
    """Forty programs give what the reference gives; each rule of runs, batches and constants lowers some of them."""
    rules = Counter(rule for given in DEFAULT for rule in check(*given))
    assert not NEW_RULES - set(rules), rules


@pytest.mark.sweep
@pytest.mark.parametrize("block", range(20))
def test_a_thousand_programs(block):
    """A thousand programs give what the reference gives."""
    for seed in range(1000 + 50 * block, 1050 + 50 * block):
        check(seed)
