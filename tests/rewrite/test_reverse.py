"""A reverse for targets that refuse it: the same bits as XLA's own, on every element type and shape."""

from itertools import chain, combinations

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
from rewrites import assert_same
from rule_examples import target
from untyped_mlir import module

import hlo_lower as hl
from hlo_lower.lowering.single_ops import reverse
from hlo_lower.lowering.single_ops.reverse import MOST_SLICES

TARGET, WITHOUT_GATHER = target("npu", "reverse"), target("bare", "reverse", "gather")
DTYPES = ("bool", "int8", "uint16", "int32", "int64", "float16", "bfloat16", "float32", "float64", "complex64", "int4")
SHAPES = ((), (1,), (5,), (3, 4), (0, 3), (2, 1, 3), (70, 3), (40, 40), (2, 3, 1, 2))
BOTH_FORMS = (3, 4), (300, 2)


def exported(shape, dims, dtype="float32"):
    """A module of one reverse."""
    with jax.enable_x64(True):
        return hl.export(lambda x: jax.lax.rev(x, dims), jnp.zeros(shape, dtype))


def numbers(shape, dtype="float32"):
    """Different elements, as far as the type has them; NaN with a payload, -0.0 and a subnormal among floats."""
    values = np.arange(np.prod(shape, dtype=int)).reshape(shape) % (7 if dtype == "int4" else 251)
    values = (values % 2 if dtype == "bool" else values).astype(ml_dtypes.int4 if dtype == "int4" else jnp.dtype(dtype))
    if dtype == "float32" and values.size > 3:
        values.reshape(-1)[:3] = np.array([0x7FC12345, 0x80000000, 1], np.uint32).view(np.float32)
    return values


@pytest.mark.few(3)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_every_choice_of_dims(shape):
    """Short axes become slices, long ones a gather, none stays a reverse; the bits are those of native XLA."""
    rank = len(shape)
    for dims in chain.from_iterable(combinations(range(rank), n) for n in range(rank + 1)):
        source = exported(shape, dims)
        lowered = hl.lower(source, target=TARGET)
        assert "stablehlo.reverse" not in lowered.text
        moved = sum(shape[d] for d in dims if shape[d] > 1)
        [note] = lowered.notes
        assert note.endswith("(reverse_to_slices)" if moved <= TARGET.costs.few_windows else "(reverse_to_gather)")
        assert_same(source, lowered, numbers(shape))


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_element_type(dtype):
    """Elements are only moved, by both forms; a target that takes it, on all types or some, keeps it on these."""
    for shape in BOTH_FORMS:
        source = exported(shape, (0,), dtype)
        assert_same(source, hl.lower(source, target=TARGET), numbers(shape, dtype))
    for taking in (hl.Target("any"), hl.Target("some", op_dtypes={"stablehlo.reverse": ["f32"]})):
        lowered = hl.lower(source, target=taking)
        is_kept = taking.name == "any" or dtype == "float32"
        assert (lowered.notes == ()) is ("stablehlo.reverse" in lowered.text) is is_kept


@pytest.mark.parametrize("shape", BOTH_FORMS)
def test_a_reverse_that_is_lowered_wrongly_does_not_verify(shape, monkeypatch):
    """The regions are judged equal, and the module; one dim forgotten differs."""
    source = exported(shape, (0, 1))
    assert hl.verify(source, hl.lower(source, target=TARGET)).ok
    facts = reverse.reverse_facts
    wrong = lambda node, few: reverse.replace(facts(node, few=few), dims=(0,))  # noqa: E731
    monkeypatch.setattr(reverse, "reverse_facts", wrong)
    verdict = hl.verify(source, hl.lower(source, target=TARGET))
    assert "differs" in {region.status for region in verdict.regions}


def test_without_a_gather_long_axes_are_sliced_as_well():
    """As far as that stays within bounds; beyond, the reverse is left and told."""
    source = exported((100, 2), (0,))
    lowered = hl.lower(source, target=WITHOUT_GATHER)
    assert "(reverse_to_slices)" in lowered.notes[0]
    assert_same(source, lowered, numbers((100, 2)))
    left = hl.lower(exported((MOST_SLICES + 1,), (0,)), target=WITHOUT_GATHER)
    assert "stablehlo.reverse" in left.text
    assert left.notes[0].startswith("left: stablehlo.reverse at ")
    assert left.notes[0].endswith(": emits stablehlo.gather, which bare rejects: none")


def test_a_reverse_of_dynamic_shape_is_left_and_told():
    """Its sizes are needed; binding them gives the other forms."""
    source = hl.export(lambda x: jax.lax.rev(x, (0,)), jnp.zeros((6, 4)), shapes=["n, _"])
    lowered = hl.lower(source, target=TARGET)
    assert "stablehlo.reverse" in lowered.text
    assert lowered.notes[0].endswith(": of dynamic shape: --bind gives the sizes")
    assert "stablehlo.reverse" not in hl.lower(source, target=TARGET, bind={"n": 6}).text


@pytest.mark.parametrize(
    ("size", "holder"), [(3, "stablehlo.concatenate"), (500, "stablehlo.gather"), (1, "custom_call @Sharding")]
)
def test_a_sharding_goes_over(size, holder):
    """It stands on what gives the result afterwards; where that is the operand itself, on a constraint."""
    text = module(f"%x: {size}xf32", '%r = reverse %x, dims = [0] {mhlo.sharding = "{replicated}"}')
    [line] = [line for line in hl.lower(text, target=TARGET).text.splitlines() if "replicated" in line]
    assert holder in line
