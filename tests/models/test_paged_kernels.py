"""The kernels of models/paged_attention.py as composites: which there are, and rules that take the place of one."""

import re
from collections import Counter
from importlib import import_module

import jax
import numpy as np
import pytest
from model_runs import model, target_of

import hlo_lower as hl
from hlo_lower.ir.axes import matrix_products
from hlo_lower.lowering.kinds import default_registry

model("paged_attention.py")  # whose folder is imported from
kernels = import_module("paged.kernels")
TIERED = ("load_keys", "load_values", "qk", "softmax_prepare", "pv", "online_update")
COMPOSITE = re.compile(r'stablehlo\.composite "paged\.(\w+)" [^{]*\{(?:composite_attributes = \{(.*?)\})?')


def exported(function, **settings):
    """An export, as text."""
    return target_of(f"paged_attention.py:{function}", **settings).export().mlir_module()


def composites(text):
    """How often each kernel is there, with its attributes."""
    return Counter((name, attributes.replace(" : i64", "")) for name, attributes in COMPOSITE.findall(text))


def test_each_kernel_is_a_composite_of_its_tier():
    """Tiles share what is loaded; one tier has the one-block forms alone; where none is asked for there is none."""
    for tiers in (2, 1):
        found = composites(exported("prefill", tile=4, tiers=tiers))  # 18 rows are 5 tiles
        tiled = {
            (name, f"block_size = 4, blocks = {blocks}"): 1 if name.startswith("load") else 5
            for name in TIERED
            for blocks in range(1, tiers + 1)
        }
        assert found == {**tiled, ("finish", ""): 5}
    assert not composites(exported("prefill", composites=False))
    assert not composites(exported("prefill_open"))  # jax.lax.composite has no operands for the sizes


@pytest.mark.xfail(jax.__version_info__ < (0, 10), reason="JAX 0.9 writes a gather for each tile", strict=True)
def test_keys_are_turned_once_for_a_load():
    """More tiles of queries have no more transposes, nor more selects of values."""
    counts = [
        [exported("prefill", tile=tile, composites=False).count(f"stablehlo.{op}") for op in ("transpose", "gather")]
        for tile in (18, 4)
    ]
    assert counts[0] == counts[1]


def products(op):
    """Scores by the product of keys and queries, turned."""
    (q, keys), build = op.node.operands, op.build
    return [build.transpose(matrix_products(build, keys, build.transpose(q, (0, 2, 1))), (0, 2, 1))]


def doubled(op):
    """The same twice as large."""
    [scores] = products(op)
    return [op.build.add(scores, scores)]


def lowered_by(rule, text):
    """A module lowered with a rule for scores over two blocks; over one the kernel is called."""
    own = default_registry()
    own.declare("paged.qk", blocks={1, 2}, block_size=int, otherwise="call")
    own.register("paged.qk", rule, blocks=2, form="keys by queries, turned")
    return hl.lower(text, registry=own)


def test_a_rule_of_ones_own_takes_the_place_of_a_kernel():
    """It is taken for two blocks, over one the kernel is called, and others stay; verification judges what it built."""
    lowered = lowered_by(products, exported("decode"))
    told = [note.partition("attention.py")[2].partition(": ")[2] for note in lowered.notes]
    assert told == ["keys by queries, turned (products)", "a call of its decomposition (composite_to_call)"]
    assert {name for name, _ in composites(lowered.text)} == {*TIERED, "finish"} - {"qk"}
    qk = kernels.called(kernels.qk, {"blocks": 2, "block_size": 4})
    alone = hl.export(qk, np.zeros((2, 3, 8), np.float32), np.zeros((2, 8, 8), np.float32)).mlir_module()
    verdicts = [hl.verify(alone, lowered_by(rule, alone), level="regions") for rule in (products, doubled)]
    assert [(verdict.ok, verdict.differs) for verdict in verdicts] == [(True, False), (False, True)]


@pytest.mark.sweep
def test_a_step_with_such_a_rule_is_verified():
    """In a whole step the regions that changed are equal, and so are the runs."""
    for function in ("decode", "prefill"):
        text = exported(function)
        verdict = hl.verify(text, lowered_by(products, text))
        assert (verdict.ok, verdict.module.status) == (True, "equal")


def test_a_target_without_composites_is_given_plain_ops():
    """LiteRT takes the export without --legalize; one of a declared name that no rule fits is still left."""
    lowered = hl.lower(exported("decode"), target="litert")
    assert (lowered.refused, "stablehlo.composite" in lowered.text) == ((), False)
    own = default_registry()
    own.declare("paged.qk", blocks={1, 2}, block_size=int)
    kept = hl.lower(exported("decode"), target="litert", registry=own, keep_unsupported=True)
    assert {name for name, _ in composites(kept.text)} == {"qk"}
    assert [(refused.op, refused.count) for refused in kept.refused] == [("stablehlo.composite @paged.qk", 2)]
