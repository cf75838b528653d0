"""Traps of consumers that take less of an operation than the specification has."""

from itertools import product

import numpy as np
import pytest
from one_scatter import points

import hlo_lower as hl
from hlo_lower.base.element_types import type_range
from hlo_lower.ir import mlir


def reduces(text):
    """The operation of each reduce, its element type, and the constant that it begins with."""
    found = []

    def visit(op):
        if op.name != "stablehlo.reduce":
            return
        *combined, _ = op.regions[0].blocks[0].operations
        for k, initial in enumerate(list(op.operands)[len(op.operands) // 2 :]):
            value = mlir.constant_value(initial.owner)
            assert value is not None
            name = combined[k].operation.name.removeprefix("stablehlo.")
            found.append((name, mlir.tensor_element_name(initial.type), value[()]))

    mlir.walk(mlir.parse_module(text).operation, visit)
    return found


def identity(name, element):
    """What changes no value of a type under an operation; the sign of a zero aside."""
    bounds = type_range(element)
    low, high = bounds if bounds is not None else (-np.inf, np.inf)
    return {"add": 0, "or": 0, "multiply": 1, "and": -1 if low < 0 else high, "maximum": low, "minimum": high}[name]


RULES = ["compare_reduce", "last_writer", "only_writer", "mask"]


@pytest.mark.few(17)
@pytest.mark.parametrize(
    ("combiner", "element"),
    [
        *product(["assign", "add", "multiply", "maximum", "minimum"], ["f32", "i32", "ui8", "i1"]),
        *product(["and", "or"], ["i32", "ui8", "i1"]),
    ],
)
def test_trap_53_a_reduce_begins_with_its_operations_identity(combiner, element):
    """LiteRT takes no other: the number of a row's last writer is a maximum from the least number of its type, too."""
    text = points(3, 6, element=element, combiner=combiner).text()
    kinds = set()
    for target in ("stablehlo", "litert"):
        for rule in RULES:
            lowered = hl.lower(text, target=target, prefer=[rule], keep_unsupported=True)
            for name, kind, value in reduces(lowered.text):
                kinds.add(name)
                assert value == identity(name, kind), (target, rule, name, kind, value)
    assert kinds
