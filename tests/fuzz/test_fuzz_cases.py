"""What is drawn: legal scatters of every cell, the same for the same seed; and the NumPy twins of the regions' ops."""

import pickle
from collections import Counter

import numpy as np
import pytest

import hlo_lower as hl
from hlo_lower.base.element_types import element_type
from hlo_lower.ops.subset import Subset
from hlo_lower.testing.fuzz.case import CELLS, IMPOSSIBLE, STRATA, case_of_seed, recorded_case, replayed_case
from hlo_lower.testing.fuzz.case_arguments import arguments_of, data
from hlo_lower.testing.fuzz.draw import Draw, Replayed, Seeded
from hlo_lower.testing.fuzz.drawn_types import INDEX_TYPES, TYPES, tensor_type
from hlo_lower.testing.fuzz.families import FAMILIES, family_of
from hlo_lower.testing.fuzz.layouts import LAYOUTS
from hlo_lower.testing.fuzz.module_text import module_text
from hlo_lower.verify.bounds.compare import first_difference
from hlo_lower.verify.drive.input_roles import REGIMES
from hlo_lower.verify.judges import definitions
from hlo_lower.verify.judges.interpreter import shared_interpreter
from hlo_lower.verify.run import Executable

SEEDS = range(3 * len(STRATA))


@pytest.fixture(scope="module")
def cases():
    """Three rounds through the cells."""
    return [case_of_seed(seed) for seed in SEEDS]


@pytest.fixture(scope="module")
def records(cases):
    """What `classify` says of them."""
    found = []
    for start in range(0, len(cases), 24):
        found += hl.classify(hl.read(module_text(cases[start : start + 24])))
    return found


def test_every_case_is_legal_and_alone_what_it_is_in_a_batch(cases, records):
    """jaxlib verifies each; each has one scatter, which is the same alone; every cell that can be is reached."""
    assert len(cases) == len(records)
    for case, record in list(zip(cases, records, strict=True))[::40]:
        [alone] = hl.classify(hl.read(module_text([case])))
        assert (alone.subset, alone.combiner, alone.rule) == (record.subset, record.combiner, record.rule)
    found = Counter((record.subset, family_of(record.combiner)) for record in records)
    assert not set(CELLS) - set(found)
    assert not set(IMPOSSIBLE) & set(found)
    assert len(CELLS) + len(IMPOSSIBLE) == len(LAYOUTS) * len(FAMILIES)
    assert set(LAYOUTS) == {subset.value for subset in Subset}


def test_forms_types_and_regions_are_all_drawn(cases):
    """Each form, element type, index type and shape of a region that is asked for is among the cases."""
    forms = [case.form for case in cases]
    seen = {
        "implicit index vector": any(f.implicit for f in forms),
        "index vector first": any(f.index_vector_dim < len(f.positions) and not f.implicit for f in forms),
        "K = 0": any(not f.columns for f in forms),
        "several windows at K = 0": any(not f.columns and np.prod(f.positions) > 1 for f in forms),
        "scalar operand": any(not f.operand for f in forms),
        "scalar indices": any(f.implicit and not f.positions for f in forms),
        "permuted batching dims": any([p for _, p in f.batching] != sorted(p for _, p in f.batching) for f in forms),
        "unsorted index dims": any([c.dim for c in f.columns] != sorted(c.dim for c in f.columns) for f in forms),
        "inserted, not indexed": any(set(f.inserted) - {c.dim for c in f.columns} for f in forms),
        "interleaved window dims": any(f.window_places and f.window_places[0] < len(f.positions) for f in forms),
        "no positions": any(0 in f.positions for f in forms),
        "empty window": any(0 in f.window for f in forms),
        "empty operand": any(0 in f.operand for f in forms),
        "no place": any((0, 1) in zip(f.operand, f.window, strict=True) for f in forms),
        "extent beyond the index type": any(max(f.operand, default=0) > 127 for f in forms),
        "converted indices": any(c.converted for c in cases),
        "promotion": any(c.operands != c.region.elements for c in cases),
        "mixed element types": any(len(set(c.operands)) > 1 for c in cases),
        "captured value": any(c.region.captured_values for c in cases),
        "captured constant": any(e.op == "captured constant" for c in cases for e in c.region.every()),
        "call": any(e.form == "call" for c in cases for e in c.region.every()),
        "not lifted": any(e.form == "boxed" for c in cases for e in c.region.every()),
        "power": any(e.op == "power" for c in cases for e in c.region.every()),
        "division": any(e.op == "divide" for c in cases for e in c.region.every()),
    }
    assert [name for name, is_there in seen.items() if not is_there] == []
    assert set(TYPES) == {name for case in cases for name in case.operands}
    assert set(INDEX_TYPES) == {case.index_type for case in cases}
    assert set(REGIMES) == {regime for case in cases for regime in case.regimes}


def test_a_seed_is_a_case():
    """The same seed draws the same case, pickled or replayed; beyond the record choices are the simplest."""
    for seed in SEEDS[::50]:
        case, choices = recorded_case(seed)
        assert case == case_of_seed(seed) == pickle.loads(pickle.dumps(case)) == replayed_case(list(choices), case)[0]
        twice = [arguments_of(case, 1).all for _ in range(2)]
        assert [a.tobytes() for a in twice[0]] == [a.tobytes() for a in twice[1]]
    draw = Draw(source := Replayed([9, 1]))
    assert [draw.integer(2, 5), draw.choice("abc"), draw.choice("abc"), draw.chance(99)] == [5, "b", "a", False]
    assert source.record == [3, 1, 0, 0]
    draw = Draw(Seeded(1))
    assert sorted(draw.permutation(5)) == list(range(5))


BINARY = ("add", "subtract", "multiply", "minimum", "maximum", "and", "or", "xor")
UNARY = ("negate", "abs", "not")


def ops_of(kind):
    """What is computed on a kind of type."""
    if kind == "bool":
        return ("and", "or", "xor", "add", "multiply", "minimum", "maximum")
    if kind == "complex":
        return ("add", "subtract", "negate")
    if kind == "float":
        return ("add", "subtract", "multiply", "minimum", "maximum", "negate", "abs", "divide")
    return (*BINARY, "power", *(u for u in UNARY if kind == "signed" or u == "not"))


def computed(op, name, inputs):
    """What the interpreter makes of one op; XLA, of complex numbers, which the bindings cannot hand to it."""
    kind = tensor_type(inputs[0].shape, name)
    arguments = ", ".join(f"%a{i}: {kind}" for i in range(len(inputs)))
    names = ", ".join(f"%a{i}" for i in range(len(inputs)))
    text = f"func.func @main({arguments}) -> {kind} {{\n %r = stablehlo.{op} {names} : {kind}\n return %r : {kind}\n}}"
    if name.startswith("complex"):
        return Executable(text, "exact").run(inputs)[0]
    return shared_interpreter().run(text, inputs)[0]


# The interpreter rounds a quotient of f4E2M1FN otherwise, which has no NaN; it is not drawn.
@pytest.mark.parametrize("name", [name for name, t in TYPES.items() if t.kind != "scale" and name != "f4E2M1FN"])
def test_ops_of_a_type(name):
    """Each op gives bit for bit what the other gives, overflow, NaN and zeros of both signs included."""
    element, rng = TYPES[name], np.random.default_rng(3)
    for op in ops_of(element.kind):
        count = 1 if op in UNARY else 2
        inputs = [data(rng, (64,), element, special=n == 0) for n in range(count)]
        if op == "power":  # by a negative exponent it is left open
            inputs[1] = (np.arange(64) % (2 if element_type(name).bits == 2 else 4)).astype(element.dtype)
        with np.errstate(all="ignore"):
            found = definitions.apply(op, element.dtype, inputs)
        difference = first_difference([computed(op, name, inputs)], [found])
        assert difference is None, f"{op} on {name}: {difference}"
