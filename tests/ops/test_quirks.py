"""Quirks of consumers: what holds of each of the list, by its own reproducer."""

import contextlib
from math import prod

import numpy as np
import pytest

import hlo_lower as hl
from hlo_lower.ir import mlir
from hlo_lower.ir.mlir import dtype_of
from hlo_lower.ir.view import Node
from hlo_lower.ir.writer import to_text
from hlo_lower.lowering.kinds import default_registry
from hlo_lower.lowering.passes import SIGNATURE
from hlo_lower.lowering.pipeline import PIPELINE
from hlo_lower.ops.quirks import QUIRKS, WORDS
from hlo_lower.ops.quirks.quirk import Rewrite, Rules
from hlo_lower.ops.targets import TARGETS
from hlo_lower.verify.judges.devices import compile_anywhere

RULES = default_registry()


def by_word(function):
    """A test of each quirk."""
    return pytest.mark.parametrize("quirk", [pytest.param(quirk, id=quirk.word) for quirk in QUIRKS])(function)


def found(graph, quirk):
    """The ops of a module that stand in the form of a quirk."""
    nodes = [Node(raw) for raw in mlir.operations_within(graph.module.operation)]
    return [node for node in nodes if node.name in quirk.ops and quirk.finds(graph, node)]


def target_of(quirk):
    """A target that refuses the form, and of the ops all that are taken only out of it."""
    refused = dict.fromkeys(quirk.ops, "none") if quirk.is_exception else {}
    scatter = {"stablehlo.scatter": "lowered"}
    chlo = tuple(op for op in quirk.ops if op.startswith("chlo."))
    how = {"float_mode": "reassociate", "legalize": chlo == quirk.ops}
    return hl.Target("npu", refused={**scatter, **refused}, refused_forms=[quirk.word], composites=chlo, **how)


@by_word
def test_its_cure_leaves_none(quirk):
    """For a target that names it the form is gone, or the op is reported; for others the reproducer is as it was."""
    graph = hl.read(quirk.reproducer)
    assert found(graph, quirk)
    lowered = hl.lower(graph, target=target_of(quirk))
    left = {node.name for node in found(lowered.graph, quirk)}
    assert left == {one.op for one in lowered.refused}
    assert bool(left) is not bool(quirk.cures)
    kept = hl.lower(graph, target=hl.Target("other", refused={"stablehlo.scatter": "lowered"}))
    assert (kept.text, kept.refused) == (to_text(graph), ())


@pytest.mark.sweep
@by_word
def test_its_cure_is_equal(quirk):
    """What becomes of the reproducer is verified against it.

    Equal is what the specification says: between the elements of a dilated operand are zeros. XLA multiplies them by no
    infinity.
    """
    verdict = hl.verify(quirk.reproducer, hl.lower(quirk.reproducer, target=target_of(quirk)))
    assert verdict.ok, verdict.lines()


@by_word
def test_its_consumers_rules_and_passes_are_there(quirk):
    """Its consumers are the targets that name it; rules of its kind have the names; passes keep the signature."""
    assert set(quirk.consumers) == {target.name for target in TARGETS if quirk.word in target.refused_forms}
    assert all(quirk.consumers.values())
    assert quirk.becomes
    for cure in quirk.cures:
        if isinstance(cure, Rules):
            assert set(cure.names) <= {rule.name for rule in RULES.rules(cure.kind)}
        else:
            [one] = [one for one in PIPELINE if one.name == cure.name]
            assert (one.sentence, one.may_change is SIGNATURE) == (cure.sentence, False)
            assert one.why_not(hl.Options(target="xla")) == f"xla does not reject {quirk.word!r}"
            assert one.why_not(hl.Options(target=target_of(quirk))) == ""
    assert all(isinstance(cure, Rules | Rewrite) for cure in quirk.cures)


EDGES = (0.0, -0.0, -1e-10, -1.0, np.inf, -np.inf, -2.5, 3.0)


def edges(graph, turn):
    """For each argument of a module numbers that a kernel may get wrong, in another order for each; small integers."""
    for place, value in enumerate(graph.main.body.arguments):
        shape, count = value.static_shape, prod(value.static_shape)
        floats = [EDGES[(k * (1 + place * turn) + turn) % len(EDGES)] for k in range(count)]
        dtype = np.dtype(dtype_of(value.element_type))
        yield np.asarray(floats if dtype.kind == "f" else range(1, 1 + count), dtype).reshape(shape)


def wide(array):
    """Numbers in the widest type of their kind."""
    return np.asarray(array, np.complex128 if np.iscomplexobj(array) else np.float64)


@pytest.mark.few(3)
@pytest.mark.parametrize("quirk", [pytest.param(q, id=q.word) for q in QUIRKS if "iree" in q.consumers])
def test_iree_refuses_it_for_a_reason(quirk):
    """IREE, where it is installed, refuses the reproducer or gives wrong numbers; what it becomes is right."""
    pytest.importorskip("iree.compiler")
    from hlo_lower.consumers.consumer_outcome import RefusedError, ToolCrashedError
    from hlo_lower.consumers.iree import compile_module

    lowered = hl.lower(quirk.reproducer, target="iree")
    if lowered.refused:  # its cure has to be allowed
        lowered = hl.lower(quirk.reproducer, target="iree", float_mode="reassociate")
    cured, native = compile_module(lowered.text), None
    with contextlib.suppress(RefusedError, ToolCrashedError):
        native = compile_module(quirk.reproducer)
    [reference] = compile_anywhere([(quirk.reproducer, "exact")])
    is_wrong = native is None
    for turn in range(2):
        given = list(edges(hl.read(quirk.reproducer), turn))
        expected = [wide(value) for value in reference.run(given)]
        for one, found in zip(expected, cured(given), strict=True):
            np.testing.assert_allclose(wide(found), one, rtol=1e-5)
        if native is not None:
            pairs = zip(expected, native(given), strict=True)
            is_wrong |= not all(np.allclose(a, wide(b), 1e-2, 0, equal_nan=True) for a, b in pairs)
    assert is_wrong


def test_a_word_that_none_has_is_an_error():
    """The error names the nearest one, and all that there are."""
    with pytest.raises(hl.InputError) as error:
        hl.Target("npu", refused_forms=["constant inf"])
    assert error.value.nearest == ("refused_forms='constant Inf'",)
    assert all(repr(word) in error.value.facts for word in WORDS)
