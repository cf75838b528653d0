"""Each semantic trap that asks for a test has one."""

import ast
import re
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
NUMBERS = [n for n in range(1, 56) if n not in (27, 38)]
"""The traps that are tests; 27 and 38 are notes, and 56 speaks of measuring."""

ELSEWHERE = {
    29: "test_dynamic_shapes.py",
    30: "test_shardings.py",
    47: "scatter/test_what_indices_are.py",
    48: "scatter/test_what_indices_are.py",
    49: "analysis/test_twins.py",
    50: "test_shardings.py",
    51: "verify/test_reads.py",
    52: "legalize/test_composites.py",
    54: "analysis/test_budgets.py",
    55: "analysis/test_budgets.py",
}
"""Traps whose tests stand in a file of their own."""


def numbers_in(path: Path) -> set[int]:
    """The numbers in the names of a file's tests, `test_trap_NN_what`, and of the cases of a table, `trap NN: what`."""
    nodes = list(ast.walk(ast.parse(path.read_text())))
    names = [node.name for node in nodes if isinstance(node, ast.FunctionDef)]
    names += [str(node.value) for node in nodes if isinstance(node, ast.Constant)]
    return {int(found[1]) for name in names if (found := re.match(r"(?:test_trap_|trap )(\d\d)[_:]", name))}


@pytest.mark.parametrize("number", NUMBERS)
def test_each_trap_has_a_test(number):
    """There is a test named after the number of the trap."""
    own = sorted(Path(__file__).parent.glob("test_traps_*.py"))
    files = [TESTS / ELSEWHERE[number]] if number in ELSEWHERE else own
    assert number in set().union(*map(numbers_in, files))
